//! The memory of a request's arguments, counted against the receive memory of the ORB while the request is
//! served.

use std::sync::Arc;

use giop_proto::pool::BufferPool;

/// Arguments smaller than this are not counted. All uncounted arguments of an endpoint together take at most
/// the capacity of its pool.
const WORTH: usize = 16 * 1024;

/// A number of bytes that are counted until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Charge(Option<(Arc<BufferPool>, usize)>);

impl Charge {
    /// Returns whether arguments of this size are counted.
    #[inline]
    pub(crate) fn is_worth(octets: usize) -> bool {
        octets >= WORTH
    }

    /// Counts `octets` bytes.
    #[cold]
    pub(crate) fn new(pool: &Arc<BufferPool>, octets: usize) -> Self {
        pool.charge_outside(octets);
        Self(Some((Arc::clone(pool), octets)))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some((pool, octets)) = self.0.take() {
            pool.discharge_outside(octets);
        }
    }
}

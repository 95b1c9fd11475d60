//! What the arguments of a request take in memory, counted against the memory of all connections while it is served.

use std::sync::Arc;

use giop_proto::pool::BufferPool;

/// Arguments that take less are not counted: all requests of an endpoint together then take no more uncounted than its pool may hold.
const WORTH: usize = 16 * 1024;

/// Octets that are counted until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Charge(Option<(Arc<BufferPool>, usize)>);

impl Charge {
    /// Whether so many octets are worth being counted.
    #[inline]
    pub(crate) fn is_worth(octets: usize) -> bool {
        octets >= WORTH
    }

    /// Counts so many octets.
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

//! Accounting of decoded arguments: while a request is served, their memory counts against the receive memory
//! of the ORB.

use std::sync::Arc;

use giop_proto::pool::BufferPool;

/// The minimum size of arguments that are counted, in bytes. All uncounted arguments of an endpoint together
/// take at most the capacity of the receive pool.
const MIN_CHARGED_SIZE: usize = 16 * 1024;

/// A number of bytes that count against the pool until the value is dropped.
#[derive(Debug, Default)]
pub(crate) struct Charge(Option<(Arc<BufferPool>, usize)>);

impl Charge {
    /// Returns whether arguments of this size are counted.
    #[inline]
    pub(crate) fn is_required(size: usize) -> bool {
        size >= MIN_CHARGED_SIZE
    }

    /// Counts `size` bytes.
    #[cold]
    pub(crate) fn new(pool: &Arc<BufferPool>, size: usize) -> Self {
        pool.charge_outside(size);
        Self(Some((Arc::clone(pool), size)))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some((pool, size)) = self.0.take() {
            pool.discharge_outside(size);
        }
    }
}

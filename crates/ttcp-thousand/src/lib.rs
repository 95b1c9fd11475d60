//! The interfaces of a thousand operations of the `ttcp` experiments, in a crate of their own: rustc takes minutes for them, so they are to be
//! compiled seldom. Debug builds, and builds without the feature `thousand`, have nothing here but [`Calls`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(all(feature = "thousand", not(debug_assertions)))]
mod large;

#[cfg(all(feature = "thousand", not(debug_assertions)))]
pub use large::{Last, find, servant};

/// Calls that servants counted, since they were last taken.
#[derive(Debug, Default)]
pub struct Calls {
    last: AtomicU64,
    others: AtomicU64,
}

impl Calls {
    /// Counts one, of the last operation or of another.
    #[inline]
    pub fn count(&self, is_last: bool) {
        if is_last { &self.last } else { &self.others }.fetch_add(1, Relaxed);
    }

    /// Those of the last operations, and those of all others.
    pub fn take(&self) -> (u64, u64) {
        (self.last.swap(0, Relaxed), self.others.swap(0, Relaxed))
    }
}

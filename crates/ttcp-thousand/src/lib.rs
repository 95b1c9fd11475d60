//! The interfaces with a thousand operations for the `ttcp` experiments. They are in a crate of their own
//! because rustc takes minutes to compile them. Debug builds, and builds without the feature `thousand`,
//! contain only [`Calls`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(all(feature = "thousand", not(debug_assertions)))]
mod large;

#[cfg(all(feature = "thousand", not(debug_assertions)))]
pub use large::{Last, find, servant};

/// Calls that servants have counted since the last [`take`](Calls::take).
#[derive(Debug, Default)]
pub struct Calls {
    last: AtomicU64,
    others: AtomicU64,
}

impl Calls {
    /// Counts a call, of the last operation or of another.
    #[inline]
    pub fn count(&self, is_last: bool) {
        if is_last { &self.last } else { &self.others }.fetch_add(1, Relaxed);
    }

    /// Returns the numbers of calls of the last operations and of all others, and resets them.
    pub fn take(&self) -> (u64, u64) {
        (self.last.swap(0, Relaxed), self.others.swap(0, Relaxed))
    }
}

//! The numbers of calls that servants with very many operations have received.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug, Default)]
pub(super) struct CallCounts {
    last: AtomicU64,
    others: AtomicU64,
}

impl CallCounts {
    pub(super) fn count_last(&self) {
        self.last.fetch_add(1, Relaxed);
    }

    pub(super) fn count_other(&self) {
        self.others.fetch_add(1, Relaxed);
    }

    /// Returns two numbers: the calls of the last operations, and the calls of all others. Resets both.
    pub(super) fn take(&self) -> (u64, u64) {
        (self.last.swap(0, Relaxed), self.others.swap(0, Relaxed))
    }
}

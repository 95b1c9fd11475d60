//! Counters of limits that no connection counts.

use std::sync::atomic::{AtomicU32, Ordering};

use giop_proto::{Limit, LimitHits};

/// The number of times that each limit was hit.
#[derive(Debug, Default)]
pub(crate) struct LimitCounters([AtomicU32; Limit::ALL.len()]);

impl LimitCounters {
    /// Returns the current counts.
    pub(crate) fn read(&self) -> LimitHits {
        let mut hits = LimitHits::default();
        for (limit, count) in Limit::ALL.iter().zip(&self.0) {
            hits.add(*limit, count.load(Ordering::Relaxed));
        }
        hits
    }

    /// Counts a limit that was hit.
    pub(crate) fn hit(&self, limit: Limit) {
        if let Some(count) = self.0.get(limit as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

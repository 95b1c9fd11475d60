//! Counters of the limits that belong to no single connection.

use std::sync::atomic::{AtomicU32, Ordering};

use giop_proto::{Limit, LimitHits};

/// How often each limit was reached.
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

    /// Counts one time that a limit was reached.
    pub(crate) fn hit(&self, limit: Limit) {
        if let Some(count) = self.0.get(limit as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

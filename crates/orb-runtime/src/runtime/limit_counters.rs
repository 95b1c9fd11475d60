//! Counters of limits that no connection counts.

use std::sync::atomic::{AtomicU32, Ordering};

use giop_codec::DecodeError;
use giop_proto::{Limit, LimitHits};

use crate::runtime::Shared;

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
}

impl Shared {
    /// Counts a limit that was hit.
    #[cold]
    pub(crate) fn hit(&self, limit: Limit) {
        if let Some(count) = self.counters.limits.0.get(limit as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the limit that caused a decoding error, if one did.
    #[cold]
    pub(crate) fn hit_by(&self, error: &DecodeError) {
        if let Some(limit) = Limit::of_decoding(error) {
            self.hit(limit);
        }
    }
}

//! Limits that were hit where no connection counts them.

use std::sync::atomic::{AtomicU32, Ordering};

use giop_codec::DecodeError;
use giop_proto::{Limit, LimitHits};

use super::OrbCore;

/// How often each limit was hit.
#[derive(Debug, Default)]
pub(crate) struct Hits([AtomicU32; Limit::ALL.len()]);

impl Hits {
    /// What was counted so far.
    pub(super) fn read(&self) -> LimitHits {
        let mut hits = LimitHits::default();
        for (limit, count) in Limit::ALL.iter().zip(&self.0) {
            hits.add(*limit, count.load(Ordering::Relaxed));
        }
        hits
    }
}

impl OrbCore {
    /// Counts a limit that was hit.
    #[cold]
    pub(crate) fn hit(&self, limit: Limit) {
        if let Some(count) = self.hits.0.get(limit as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the limit, if that is what is wrong with the values of a message.
    #[cold]
    pub(crate) fn hit_by(&self, error: &DecodeError) {
        if let Some(limit) = Limit::of_decoding(error) {
            self.hit(limit);
        }
    }
}

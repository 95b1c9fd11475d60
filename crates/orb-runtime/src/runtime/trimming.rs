//! Trimming: large receive buffers that are unused for one to two seconds are freed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::runtime::Shared;

/// The interval between trims. Each trim frees the buffers that were unused for a whole interval.
const MIN_UNUSED_TIME: Duration = Duration::from_secs(1);

/// The maximum size of the pool, in bytes, that is not trimmed.
const MAX_UNTRIMMED_SIZE: usize = 1 << 20;

/// Whether a task is trimming the pool.
#[derive(Debug, Default)]
pub(crate) struct Trimming(AtomicBool);

impl Shared {
    /// Starts a task that trims the pool if it is large. Called when a connection becomes idle or is closed,
    /// because its buffers may be unused then.
    pub(crate) fn trim_pool_later(self: &Arc<Self>) {
        if self.pool.held() > MAX_UNTRIMMED_SIZE
            && !self.closing.has_begun()
            && !self.trimming.0.swap(true, Ordering::Relaxed)
        {
            self.spawn_until_closed(trim(Arc::downgrade(self)));
        }
    }
}

async fn trim(core: Weak<Shared>) {
    loop {
        tokio::time::sleep(MIN_UNUSED_TIME).await;
        let Some(core) = core.upgrade() else { return };
        if !core.pool.trim() {
            core.trimming.0.store(false, Ordering::Relaxed);
            return;
        }
    }
}

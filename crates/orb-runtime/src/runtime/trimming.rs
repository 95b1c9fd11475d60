//! Releases large unused receive buffers to the system after a second or two.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::runtime::Shared;

/// Minimum time for which a buffer stays unused before it is freed. It is freed within twice this time.
const UNUSED: Duration = Duration::from_secs(1);

/// Size of the pool, in bytes, up to which nothing is freed.
const LITTLE: usize = 1 << 20;

/// Set while a task trims the pool.
#[derive(Debug, Default)]
pub(crate) struct Trimming(AtomicBool);

impl Shared {
    /// Starts to trim the pool if it is large, because a connection has become idle or closed and buffers may
    /// be unused.
    pub(crate) fn trim_pool_later(self: &Arc<Self>) {
        if self.pool.held() > LITTLE
            && !self.closing.has_begun()
            && !self.trimming.0.swap(true, Ordering::Relaxed)
        {
            self.spawn_until_closed(trim(Arc::downgrade(self)));
        }
    }
}

async fn trim(core: Weak<Shared>) {
    loop {
        tokio::time::sleep(UNUSED).await;
        let Some(core) = core.upgrade() else { return };
        if !core.pool.trim() {
            core.trimming.0.store(false, Ordering::Relaxed);
            return;
        }
    }
}

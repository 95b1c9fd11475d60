//! Large receive buffers that nothing uses any more: the system gets their memory back after a second or two.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::OrbCore;

/// How long a buffer stays unused before it is freed, at least. It is freed within twice this time.
const UNUSED: Duration = Duration::from_secs(1);

/// What the pool may hold without being looked at.
const LITTLE: usize = 1 << 20;

/// Whether a task looks after the pool.
#[derive(Debug, Default)]
pub(super) struct Trimming(AtomicBool);

impl OrbCore {
    /// A connection is quiet or closed: buffers of the pool may be of no more use.
    pub(crate) fn trim_pool_later(self: &Arc<Self>) {
        if self.pool().held() > LITTLE && !self.is_closing() && !self.trimming.0.swap(true, Ordering::Relaxed)
        {
            self.spawn_until_closed(trim(Arc::downgrade(self)));
        }
    }
}

async fn trim(core: Weak<OrbCore>) {
    loop {
        tokio::time::sleep(UNUSED).await;
        let Some(core) = core.upgrade() else { return };
        if !core.pool().trim() {
            core.trimming.0.store(false, Ordering::Relaxed);
            return;
        }
    }
}

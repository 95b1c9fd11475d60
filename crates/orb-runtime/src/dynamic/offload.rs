//! Decoding and encoding of large values on threads for blocking work, so that connections and tasks of the
//! runtime are not delayed.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::available_parallelism;

use giop_codec::exception::{CompletionStatus, SystemException};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::runtime::Shared;

/// The minimum size of values that another thread processes. Smaller ones take at most a few milliseconds.
const MIN_OFFLOADED_BYTES: usize = 64 << 10;

/// Permits for work on large values, one per processor, so that this work does not starve the runtime.
#[derive(Debug)]
pub(crate) struct OffloadPermits(Arc<Semaphore>);

impl Default for OffloadPermits {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(available_parallelism().map_or(1, NonZero::get))))
    }
}

pub(super) fn is_large(bytes: usize) -> bool {
    bytes >= MIN_OFFLOADED_BYTES
}

/// Runs the work on another thread as soon as a permit is available. Without a tokio runtime, runs it on this
/// thread. Fails with TRANSIENT and `completed` if the runtime shuts down before the work has begun.
pub(super) async fn offload<T: Send + 'static>(
    orb: &Shared,
    completed: CompletionStatus,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SystemException> {
    let Some(runtime) = orb.tasks.runtime.clone().or_else(|| Handle::try_current().ok()) else {
        return Ok(work());
    };
    let permit = Arc::clone(&orb.runtime_types().offload_permits.0).acquire_owned().await.ok();
    let done = runtime.spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    done.await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => SystemException::transient()
            .completed(completed)
            .with_reason("the runtime shut down before large values were decoded or encoded"),
    })
}

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

/// The size of values in bytes from which work on them runs on another thread. Work on smaller values takes a
/// few milliseconds at most.
const LARGE: usize = 64 << 10;

/// Permits for such work, one per processor. Any number of large messages therefore leaves processor time to
/// the runtime's own threads.
#[derive(Debug)]
pub(crate) struct Permits(Arc<Semaphore>);

impl Default for Permits {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(available_parallelism().map_or(1, NonZero::get))))
    }
}

/// Returns whether work on values of that size runs on another thread.
pub(super) fn is_large(bytes: usize) -> bool {
    bytes >= LARGE
}

/// Runs the work on another thread as soon as a permit is available. Without a runtime, runs it on this
/// thread.
///
/// # Errors
/// TRANSIENT with the completion status `completed`, if the runtime shuts down.
///
/// # Cancel safety
/// If the future is dropped, work that has begun runs to its end, and its result is dropped.
pub(super) async fn offload<T: Send + 'static>(
    orb: &Shared,
    completed: CompletionStatus,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SystemException> {
    let Some(runtime) = orb.tasks.runtime.clone().or_else(|| Handle::try_current().ok()) else {
        return Ok(work());
    };
    let permit = Arc::clone(&orb.known().permits.0).acquire_owned().await.ok();
    let done = runtime.spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    done.await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => ends(completed),
    })
}

#[cold]
fn ends(completed: CompletionStatus) -> SystemException {
    SystemException::transient()
        .completed(completed)
        .with_reason("the runtime shut down before large values were decoded or encoded")
}

//! Calls from plain threads.

use std::cell::OnceCell;
use std::future::Future;

thread_local! {
    /// Each thread has its own runtime, and so its own connections: a call is written and read by the thread itself.
    static RUNTIME: OnceCell<Option<tokio::runtime::Runtime>> = const { OnceCell::new() };
}

/// Waits for a call on a thread that is not part of a tokio runtime: `wait(account.balance())?`.
///
/// The call runs on a runtime of the calling thread, without a second thread: connections made here are used by this
/// thread only, and are served only while it waits.
///
/// # Panics
/// Inside a tokio runtime, where `.await` is the way; and where the system has no descriptors for a runtime.
#[expect(clippy::panic, reason = "a mistake of the program, as with tokio's block_on")]
pub fn wait<F: Future>(future: F) -> F::Output {
    assert!(
        tokio::runtime::Handle::try_current().is_err(),
        "zorb::blocking::wait was called inside a tokio runtime: use `.await` there"
    );
    RUNTIME.with(|runtime| {
        let runtime =
            runtime.get_or_init(|| tokio::runtime::Builder::new_current_thread().enable_all().build().ok());
        match runtime {
            Some(runtime) => runtime.block_on(future),
            None => panic!("no descriptors left for a runtime of this thread"),
        }
    })
}

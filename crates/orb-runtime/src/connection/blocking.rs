//! Calls from plain threads.
//!
//! [`wait`] runs a future on a tokio runtime of the calling thread. While the future waits only for the reply
//! of one call, the thread waits directly on the socket of that call, which is faster than in the runtime.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use crate::connection::SharedConnection;
use crate::lock::lock;

thread_local! {
    /// Each thread has its own runtime, and its own connections, which it reads and writes itself.
    static RUNTIME: OnceCell<Option<tokio::runtime::Runtime>> = const { OnceCell::new() };

    static WAIT_STATE: WaitState = const {
        WaitState {
            mode: Cell::new(PollMode::Async),
            calls: Cell::new(0),
            waker: RefCell::new(None),
            unflushed: RefCell::new(Vec::new()),
        }
    };

    static MAP_LOCALS_INITIALIZED: Cell<bool> = const { Cell::new(false) };
}

/// Initializes the thread-locals that object maps use before `RUNTIME`, so that they are destroyed after it.
/// The destruction of the runtime may drop the last reference to an ORB, with its object maps.
fn initialize_map_locals() {
    if !MAP_LOCALS_INITIALIZED.replace(true) {
        drop(papaya::HashMap::<(), ()>::new().guard());
    }
}

struct WaitState {
    mode: Cell<PollMode>,
    /// The number of calls without a reply that the last poll of the future has polled.
    calls: Cell<usize>,
    waker: RefCell<Option<Waker>>,
    /// Connections with queued oneways. They must be flushed, because their drivers run only during the wait.
    unflushed: RefCell<Vec<Arc<SharedConnection>>>,
}

/// The behaviour of a pending call when it is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollMode {
    /// The call registers its waker. Used outside of [`wait`], and if the future waits for several events.
    Async,
    /// The call is only counted.
    CountOnly,
    /// The call blocks the thread on its socket, because no other event can wake the future.
    InPlace,
    /// The call registers its waker and is counted. The driver reads, because the next poll may be late.
    Deferred,
}

/// Returns how a call without a reply behaves when it is polled. Counts the call if it is deferred.
#[inline]
pub(crate) fn poll_mode(cx: &Context<'_>) -> PollMode {
    WAIT_STATE.with(|waiting| match waiting.mode.get() {
        PollMode::Async => PollMode::Async,
        PollMode::Deferred => {
            waiting.calls.set(waiting.calls.get() + 1);
            PollMode::Deferred
        }
        // A combinator with its own wakers polls a child future only after the child's waker was woken.
        // Therefore, the call must register its waker.
        mode if waiting.waker.borrow().as_ref().is_some_and(|own| own.will_wake(cx.waker())) => mode,
        _ => PollMode::Async,
    })
}

/// Counts a call without a reply that did not register its waker.
pub(crate) fn count_call() {
    WAIT_STATE.with(|waiting| waiting.calls.set(waiting.calls.get() + 1));
}

/// Counts a collocated call that a servant has begun and not finished.
pub(crate) fn count_collocated_call() {
    WAIT_STATE.with(|waiting| {
        if waiting.mode.get() == PollMode::Deferred {
            waiting.calls.set(waiting.calls.get() + 1);
        }
    });
}

/// Ends waiting in place after the reply, because the future may next wait for several events.
pub(crate) fn end_wait_in_place() {
    WAIT_STATE.with(|waiting| waiting.mode.set(PollMode::CountOnly));
}

/// Polls a call whose next poll may be much later. Also returns whether the call waits for a reply.
pub(crate) fn poll_deferred<T>(poll: impl FnOnce() -> T) -> (T, bool) {
    /// Restores the state of the thread, even if a servant in this process panics.
    struct RestoreGuard(PollMode, usize);

    impl Drop for RestoreGuard {
        fn drop(&mut self) {
            WAIT_STATE.with(|waiting| {
                waiting.mode.set(self.0);
                waiting.calls.set(self.1);
            });
        }
    }

    let _guard = WAIT_STATE
        .with(|waiting| RestoreGuard(waiting.mode.replace(PollMode::Deferred), waiting.calls.replace(0)));
    let polled = poll();
    (polled, WAIT_STATE.with(|waiting| waiting.calls.get()) > 0)
}

/// Ensures that the connection is flushed before the thread stops waiting.
#[inline]
pub(crate) fn flush_later(link: &Arc<SharedConnection>) {
    WAIT_STATE.with(|waiting| {
        if waiting.waker.borrow().is_some() {
            let mut unflushed = waiting.unflushed.borrow_mut();
            if !unflushed.iter().any(|known| Arc::ptr_eq(known, link)) {
                unflushed.push(Arc::clone(link));
            }
        }
    });
}

/// Waits for a call on a thread that is not part of a tokio runtime: `wait(account.balance())?`.
///
/// The call runs on a tokio runtime that belongs to the calling thread. Only this thread uses the connections
/// that it opens, and they are served only while this function runs. When it returns, all oneways are sent.
///
/// # Panics
/// If it is called inside a tokio runtime, where `.await` must be used, or if the runtime cannot be created.
#[expect(clippy::panic, reason = "a mistake of the program, as with tokio's block_on")]
pub fn wait<F: Future>(future: F) -> F::Output {
    assert!(
        tokio::runtime::Handle::try_current().is_err(),
        "zorb::blocking::wait was called inside a tokio runtime: use `.await` there"
    );
    initialize_map_locals();
    let build = || tokio::runtime::Builder::new_current_thread().enable_all().build().ok();
    RUNTIME.with(|runtime| match runtime.get_or_init(build) {
        Some(runtime) => runtime.block_on(poll_in_place(future)),
        None => {
            panic!("cannot create a tokio runtime for this thread: the process may have too many open files")
        }
    })
}

/// Wakes the task that polls the future. If there are further references to this, other events can wake it.
struct FutureWaker {
    outer: Mutex<Waker>,
}

impl Wake for FutureWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        lock(&self.outer).wake_by_ref();
    }
}

struct WaitGuard;

impl Drop for WaitGuard {
    fn drop(&mut self) {
        WAIT_STATE.with(|waiting| {
            waiting.mode.set(PollMode::Async);
            waiting.waker.take();
            for link in waiting.unflushed.take() {
                link.flush_in_place();
            }
        });
    }
}

/// Polls the future. If the future waits only for one call, that call blocks the thread on its socket.
async fn poll_in_place<F: Future>(future: F) -> F::Output {
    let shared = Arc::new(FutureWaker { outer: Mutex::new(Waker::noop().clone()) });
    let waker = Waker::from(Arc::clone(&shared));
    WAIT_STATE.with(|waiting| waiting.waker.replace(Some(waker.clone())));
    let _guard = WaitGuard;
    // Counts the references in `shared`, in `waker`, and in `WAIT_STATE`.
    let own_count = Arc::strong_count(&shared);
    let mut future = pin!(future);
    poll_fn(|outer| {
        lock(&shared.outer).clone_from(outer.waker());
        let mut poll = |mode| {
            WAIT_STATE.with(|waiting| {
                waiting.calls.set(0);
                waiting.mode.set(mode);
            });
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            WAIT_STATE.with(|waiting| (polled, waiting.calls.get(), waiting.mode.replace(PollMode::Async)))
        };
        let (mut polled, mut calls, _) = poll(PollMode::CountOnly);
        while polled.is_pending() && calls == 1 && Arc::strong_count(&shared) == own_count {
            let mode;
            (polled, calls, mode) = poll(PollMode::InPlace);
            if mode == PollMode::InPlace {
                break; // The call could not wait in place.
            }
        }
        if polled.is_ready() {
            return polled;
        }
        // Let calls register their wakers, because they did not do so before.
        poll(PollMode::Async).0
    })
    .await
}

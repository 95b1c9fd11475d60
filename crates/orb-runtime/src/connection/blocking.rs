//! Calls from plain threads.
//!
//! [`wait`] runs a future on a runtime of the calling thread. It is faster than that runtime alone: while the
//! future waits for nothing but the reply of one call, the thread waits on that call's socket directly. The
//! runtime's scheduler, timers and epoll are then not involved.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use crate::connection::SharedConnection;

thread_local! {
    /// Each thread has its own runtime and therefore its own connections: a call is written and read by the
    /// thread itself.
    static RUNTIME: OnceCell<Option<tokio::runtime::Runtime>> = const { OnceCell::new() };

    static WAITING: Waiting = const {
        Waiting {
            mode: Cell::new(Mode::Async),
            calls: Cell::new(0),
            waker: RefCell::new(None),
            unflushed: RefCell::new(Vec::new()),
        }
    };

    /// The thread-locals that object maps use have been initialized.
    static PREPARED: Cell<bool> = const { Cell::new(false) };
}

/// Initializes the thread-locals of object maps before the runtime. Thread-locals are destroyed in reverse
/// order of their initialization. The runtime may hold the last reference to an ORB, whose object maps are
/// emptied when it is destroyed, so their thread-locals must still exist then.
fn prepare() {
    if !PREPARED.replace(true) {
        drop(papaya::HashMap::<(), ()>::new().guard());
    }
}

/// The state of a thread in [`wait`].
struct Waiting {
    mode: Cell<Mode>,
    /// Calls that were found without a reply during the last poll of the future.
    calls: Cell<usize>,
    /// The waker with which the future is polled.
    waker: RefCell<Option<Waker>>,
    /// Connections with gathered oneways. They must be flushed at the end of the wait, because their drivers
    /// do not run after it.
    unflushed: RefCell<Vec<Arc<SharedConnection>>>,
}

/// The behaviour of a pending call when it is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The call registers its waker: outside of `wait`, and if the future waits for more than one thing.
    Async,
    /// The call is counted only.
    Count,
    /// The call waits on its socket, because nothing else can wake the future.
    InPlace,
    /// It is counted, registers its waker and leaves reading to the driver, because it may not be polled
    /// again for long.
    Apart,
}

/// Returns the behaviour of a call that is polled with this waker.
#[inline]
pub(crate) fn mode(cx: &Context<'_>) -> Mode {
    WAITING.with(|waiting| match waiting.mode.get() {
        Mode::Async => Mode::Async,
        Mode::Apart => {
            waiting.calls.set(waiting.calls.get() + 1);
            Mode::Apart
        }
        // Combinators that install their own wakers poll only the woken child, so the call must register its
        // waker.
        mode if waiting.waker.borrow().as_ref().is_some_and(|own| own.will_wake(cx.waker())) => mode,
        _ => Mode::Async,
    })
}

/// Counts a call without a reply that did not register its waker.
pub(crate) fn count() {
    WAITING.with(|waiting| waiting.calls.set(waiting.calls.get() + 1));
}

/// Counts a collocated call that a servant has begun and not finished.
pub(crate) fn begun() {
    WAITING.with(|waiting| {
        if waiting.mode.get() == Mode::Apart {
            waiting.calls.set(waiting.calls.get() + 1);
        }
    });
}

/// Ends the wait in place after a call has its reply. The future continues, and may wait for several things
/// next.
pub(crate) fn answered() {
    WAITING.with(|waiting| waiting.mode.set(Mode::Count));
}

/// Polls a call that may not be polled again for long. Also returns whether it waits for a reply.
pub(crate) fn apart<T>(poll: impl FnOnce() -> T) -> (T, bool) {
    /// Restores the state of the thread, even if a servant of this process panics.
    struct Before(Mode, usize);

    impl Drop for Before {
        fn drop(&mut self) {
            WAITING.with(|waiting| {
                waiting.mode.set(self.0);
                waiting.calls.set(self.1);
            });
        }
    }

    let _before = WAITING.with(|waiting| Before(waiting.mode.replace(Mode::Apart), waiting.calls.replace(0)));
    let polled = poll();
    (polled, WAITING.with(|waiting| waiting.calls.get()) > 0)
}

/// Registers a connection to be flushed before the thread stops waiting.
#[inline]
pub(crate) fn flush_later(link: &Arc<SharedConnection>) {
    WAITING.with(|waiting| {
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
/// The call runs on a runtime of the calling thread, without a second thread. Connections that are opened
/// here are used by this thread only, and are served only while it waits. Oneways have been passed to the
/// kernel when it returns.
///
/// # Panics
/// Inside a tokio runtime, where `.await` must be used, and if the system has no descriptors for a runtime.
#[expect(clippy::panic, reason = "a mistake of the program, as with tokio's block_on")]
pub fn wait<F: Future>(future: F) -> F::Output {
    assert!(
        tokio::runtime::Handle::try_current().is_err(),
        "zorb::blocking::wait was called inside a tokio runtime: use `.await` there"
    );
    prepare();
    RUNTIME.with(|runtime| {
        let runtime =
            runtime.get_or_init(|| tokio::runtime::Builder::new_current_thread().enable_all().build().ok());
        match runtime {
            Some(runtime) => runtime.block_on(in_place(future)),
            None => panic!("no descriptors left for a runtime of this thread"),
        }
    })
}

/// Wakes the task that polls the whole future. Its number of references tells whether something other than a
/// call may wake the future.
struct Shared {
    outer: Mutex<Waker>,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.outer.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
    }
}

/// Ends the wait of the thread, however the future ended.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        WAITING.with(|waiting| {
            waiting.mode.set(Mode::Async);
            waiting.waker.take();
            for link in waiting.unflushed.take() {
                link.flush_in_place();
            }
        });
    }
}

/// Polls the future so that a call waits in place if the future waits for nothing else.
async fn in_place<F: Future>(future: F) -> F::Output {
    let shared = Arc::new(Shared { outer: Mutex::new(Waker::noop().clone()) });
    let waker = Waker::from(Arc::clone(&shared));
    WAITING.with(|waiting| waiting.waker.replace(Some(waker.clone())));
    let _ended = Ended;
    // The references of `shared`, `waker`, and the thread.
    let own = Arc::strong_count(&shared);
    let mut future = pin!(future);
    poll_fn(|outer| {
        shared.outer.lock().unwrap_or_else(PoisonError::into_inner).clone_from(outer.waker());
        let mut poll = |mode| {
            WAITING.with(|waiting| {
                waiting.calls.set(0);
                waiting.mode.set(mode);
            });
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            WAITING.with(|waiting| (polled, waiting.calls.get(), waiting.mode.replace(Mode::Async)))
        };
        let (mut polled, mut calls, _) = poll(Mode::Count);
        while polled.is_pending() && calls == 1 && Arc::strong_count(&shared) == own {
            let mode;
            (polled, calls, mode) = poll(Mode::InPlace);
            if mode == Mode::InPlace {
                break; // it could not wait in place
            }
        }
        if polled.is_ready() {
            return polled;
        }
        // Calls that did not register their waker do so now.
        poll(Mode::Async).0
    })
    .await
}

//! Calls from plain threads.
//!
//! [`wait`] runs a future on a runtime of the calling thread. What makes it faster than that runtime alone: while the
//! future waits for nothing but the reply of one call, the thread waits on that call's socket by itself, without the
//! runtime's scheduler, timers and epoll between them.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use crate::link::Link;

thread_local! {
    /// Each thread has its own runtime, and so its own connections: a call is written and read by the thread itself.
    static RUNTIME: OnceCell<Option<tokio::runtime::Runtime>> = const { OnceCell::new() };

    static WAITING: Waiting = const {
        Waiting {
            mode: Cell::new(Mode::Async),
            calls: Cell::new(0),
            waker: RefCell::new(None),
            unflushed: RefCell::new(Vec::new()),
        }
    };

    /// What object maps keep for the thread was made.
    static PREPARED: Cell<bool> = const { Cell::new(false) };
}

/// Locals of a thread go in the reverse order in which they came. The runtime may hold the last of an ORB, whose object maps are
/// emptied then: what these need of the thread has to come before it.
fn prepare() {
    if !PREPARED.replace(true) {
        drop(papaya::HashMap::<(), ()>::new().guard());
    }
}

/// What a thread in [`wait`] is about.
struct Waiting {
    mode: Cell<Mode>,
    /// Calls that were found without a reply while the future was polled last.
    calls: Cell<usize>,
    /// The waker that the future is polled with.
    waker: RefCell<Option<Waker>>,
    /// Connections with oneways that gather: their drivers get no turn when the wait is over.
    unflushed: RefCell<Vec<Arc<Link>>>,
}

/// What a call does that has no reply yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It leaves its waker: outside of `wait`, and where the future waits for more than one thing.
    Async,
    /// It only says that it is there.
    Count,
    /// It waits on its socket: nothing else can wake the future.
    InPlace,
    /// It says that it is there, and leaves its waker and the reading to the driver: nobody may look at it for long.
    Apart,
}

/// What a call that is polled with this waker has to do.
#[inline]
pub(crate) fn mode(cx: &Context<'_>) -> Mode {
    WAITING.with(|waiting| match waiting.mode.get() {
        Mode::Async => Mode::Async,
        Mode::Apart => {
            waiting.calls.set(waiting.calls.get() + 1);
            Mode::Apart
        }
        // Combinators with wakers of their own poll only whom they woke.
        mode if waiting.waker.borrow().as_ref().is_some_and(|own| own.will_wake(cx.waker())) => mode,
        _ => Mode::Async,
    })
}

/// A call has no reply, and did not leave its waker.
pub(crate) fn count() {
    WAITING.with(|waiting| waiting.calls.set(waiting.calls.get() + 1));
}

/// A servant of this process has begun with a call, and is not done.
pub(crate) fn begun() {
    WAITING.with(|waiting| {
        if waiting.mode.get() == Mode::Apart {
            waiting.calls.set(waiting.calls.get() + 1);
        }
    });
}

/// A call that waited in place has its reply. The future goes on, and may wait for several things next.
pub(crate) fn answered() {
    WAITING.with(|waiting| waiting.mode.set(Mode::Count));
}

/// Polls a call of which nobody knows when it is looked at again. Says whether it waits for a reply.
pub(crate) fn apart<T>(poll: impl FnOnce() -> T) -> (T, bool) {
    /// Brings back what the thread was about, also if a servant of this process panics.
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

/// What was queued on this connection has to be written before the thread stops waiting.
#[inline]
pub(crate) fn flush_later(link: &Arc<Link>) {
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
/// The call runs on a runtime of the calling thread, without a second thread: connections made here are used by this
/// thread only, and are served only while it waits. Oneways are with the kernel when it returns.
///
/// # Panics
/// Inside a tokio runtime, where `.await` is the way; and where the system has no descriptors for a runtime.
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

/// Wakes whoever polls the whole. How many of it there are says whether anybody but a call may wake the future.
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

/// Ends what the thread waits for, however the future ended.
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

/// The future, with calls that wait in place where nothing else is waited for.
async fn in_place<F: Future>(future: F) -> F::Output {
    let shared = Arc::new(Shared { outer: Mutex::new(Waker::noop().clone()) });
    let waker = Waker::from(Arc::clone(&shared));
    WAITING.with(|waiting| waiting.waker.replace(Some(waker.clone())));
    let _ended = Ended;
    // `shared`, `waker`, and the thread's own.
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
        // Whoever did not leave the waker does now.
        poll(Mode::Async).0
    })
    .await
}

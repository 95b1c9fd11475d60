//! Thread models: serialized requests, and requests that run on the thread that calls `Orb::run_until`.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, Stream};
use giop_codec::exception::{SystemException, minor};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};

use crate::servant::active_object::ActiveObject;
use crate::servant::request::{Outcome, ReplyTo, panicked};

/// The turn of serialized requests: a semaphore with one permit, which is given in order of arrival.
pub(crate) type Turn = Arc<Semaphore>;

/// The objects of the callers of a collocated request. Their turns are not acquired again, and their end is
/// not awaited.
pub(crate) struct CallStack {
    pub(crate) entry: Arc<ActiveObject>,
    pub(crate) outer: Option<Arc<CallStack>>,
}

impl CallStack {
    /// Returns the innermost object for which `is` holds.
    pub(crate) fn find(&self, is: impl Fn(&ActiveObject) -> bool) -> Option<&Arc<ActiveObject>> {
        let mut callers = Some(self);
        while let Some(CallStack { entry, outer }) = callers {
            if is(entry) {
                return Some(entry);
            }
            callers = outer.as_deref();
        }
        None
    }
}

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The requests of POAs with MAIN_THREAD_MODEL. Their number is bounded by the requests in flight on the
/// connections.
pub(crate) struct MainThread {
    pub(crate) turn: Turn,
    jobs: UnboundedSender<Job>,
    queue: Mutex<Option<Jobs>>,
}

struct Jobs {
    coming: UnboundedReceiver<Job>,
    running: FuturesUnordered<Job>,
}

impl Default for MainThread {
    fn default() -> Self {
        let (jobs, coming) = unbounded_channel();
        let queue = Mutex::new(Some(Jobs { coming, running: FuturesUnordered::new() }));
        Self { turn: Arc::new(Semaphore::new(1)), jobs, queue }
    }
}

impl MainThread {
    /// Runs a request on the main thread.
    pub(crate) async fn run(
        &self,
        work: impl Future<Output = Outcome> + Send + 'static,
        to: ReplyTo,
    ) -> Outcome {
        let (done, outcome) = oneshot::channel();
        let job = async move {
            let outcome = AssertUnwindSafe(work).catch_unwind().await;
            // If the connection is gone, no task waits for the outcome.
            let _ = done.send(outcome.unwrap_or_else(|panic| to.failed(panicked(&*panic))));
        };
        if self.jobs.send(Box::pin(job)).is_err() {
            return to.failed(nobody());
        }
        outcome.await.unwrap_or_else(|_| to.failed(nobody()))
    }

    /// Runs requests until `until` completes, unless another call runs them already.
    pub(crate) async fn serve<T>(&self, until: impl Future<Output = T>) -> T {
        /// Returns the queue when it is dropped, so that the next call can continue.
        struct Serving<'a>(&'a MainThread, Option<Jobs>);
        impl Drop for Serving<'_> {
            fn drop(&mut self) {
                if let Some(jobs) = self.1.take() {
                    *self.0.queue() = Some(jobs);
                }
            }
        }
        let taken = self.queue().take();
        let mut serving = Serving(self, taken);
        let mut until = pin!(until);
        poll_fn(|cx| {
            if let Poll::Ready(ended) = until.as_mut().poll(cx) {
                return Poll::Ready(ended);
            }
            if let Some(jobs) = &mut serving.1 {
                jobs.poll(cx);
            }
            Poll::Pending
        })
        .await
    }

    /// Drops all requests, unless a call runs them. They hold the ORB, which holds them.
    pub(crate) fn end(&self) {
        let jobs = self.queue().take();
        drop(jobs);
    }

    fn queue(&self) -> MutexGuard<'_, Option<Jobs>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    fn poll(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(job)) = self.coming.poll_recv(cx) {
            self.running.push(job);
        }
        while let Poll::Ready(Some(())) = Pin::new(&mut self.running).poll_next(cx) {}
    }
}

#[cold]
fn nobody() -> SystemException {
    SystemException::transient()
        .with_minor(minor::TRANSIENT_DISCARDED)
        .with_reason("the ORB is gone whose `run_until` the request waited for")
}

impl fmt::Debug for MainThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MainThread").finish_non_exhaustive()
    }
}

//! The thread models of POAs: serialized requests, and requests in the task of `Orb::run_until`.

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

/// A fair semaphore with one permit. A serialized request holds the permit while it runs.
pub(crate) type Turn = Arc<Semaphore>;

/// The objects of a collocated request and of its callers. A nested request for one of these objects neither
/// acquires the turn of its POA again nor waits for its etherealization, because either would deadlock.
pub(crate) struct CallStack {
    pub(crate) entry: Arc<ActiveObject>,
    pub(crate) outer: Option<Arc<CallStack>>,
}

impl CallStack {
    pub(crate) fn find(&self, is: impl Fn(&ActiveObject) -> bool) -> Option<&Arc<ActiveObject>> {
        let callers = std::iter::successors(Some(self), |caller| caller.outer.as_deref());
        callers.map(|caller| &caller.entry).find(|entry| is(entry))
    }
}

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The queue of requests for POAs with MAIN_THREAD_MODEL. It needs no limit, because the connections limit
/// the number of requests.
pub(crate) struct MainThreadQueue {
    pub(crate) turn: Turn,
    sender: UnboundedSender<Job>,
    /// `None` while a call of `serve` runs the requests, and after the shutdown of the ORB.
    jobs: Mutex<Option<Jobs>>,
}

struct Jobs {
    receiver: UnboundedReceiver<Job>,
    running: FuturesUnordered<Job>,
}

impl Default for MainThreadQueue {
    fn default() -> Self {
        let (sender, receiver) = unbounded_channel();
        let jobs = Mutex::new(Some(Jobs { receiver, running: FuturesUnordered::new() }));
        Self { turn: Arc::new(Semaphore::new(1)), sender, jobs }
    }
}

impl MainThreadQueue {
    /// Queues a request, and waits until a call of [`serve`](Self::serve) has run it.
    pub(crate) async fn run(
        &self,
        work: impl Future<Output = Outcome> + Send + 'static,
        to: ReplyTo,
    ) -> Outcome {
        let (done, outcome) = oneshot::channel();
        let job = async move {
            let outcome = AssertUnwindSafe(work).catch_unwind().await;
            // If the connection has ended, no task waits for the outcome.
            let _ = done.send(outcome.unwrap_or_else(|panic| to.exception_outcome(panicked(&*panic))));
        };
        if self.sender.send(Box::pin(job)).is_err() {
            return to.exception_outcome(never_run());
        }
        outcome.await.unwrap_or_else(|_| to.exception_outcome(never_run()))
    }

    /// Runs queued requests until `until` completes, unless another call runs them already.
    pub(crate) async fn serve<T>(&self, until: impl Future<Output = T>) -> T {
        /// Puts the requests back on drop, so that the next call of `serve` can run them.
        struct Serving<'a>(&'a MainThreadQueue, Option<Jobs>);
        impl Drop for Serving<'_> {
            fn drop(&mut self) {
                if let Some(jobs) = self.1.take() {
                    *self.0.lock() = Some(jobs);
                }
            }
        }
        let jobs = self.lock().take();
        let mut serving = Serving(self, jobs);
        let mut until = pin!(until);
        poll_fn(|cx| {
            let ended = until.as_mut().poll(cx);
            if ended.is_pending()
                && let Some(jobs) = &mut serving.1
            {
                jobs.poll(cx);
            }
            ended
        })
        .await
    }

    /// Drops all queued requests, unless a call of `serve` runs them. This breaks the reference cycle between
    /// the ORB and these requests.
    pub(crate) fn drop_requests(&self) {
        let jobs = self.lock().take();
        drop(jobs);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Jobs>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    fn poll(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(job)) = self.receiver.poll_recv(cx) {
            self.running.push(job);
        }
        while let Poll::Ready(Some(())) = Pin::new(&mut self.running).poll_next(cx) {}
    }
}

#[cold]
fn never_run() -> SystemException {
    SystemException::transient()
        .with_minor(minor::TRANSIENT_DISCARDED)
        .with_reason("the ORB was shut down or dropped before `run_until` ran the request")
}

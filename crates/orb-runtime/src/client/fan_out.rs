//! [`fan_out`], which makes one call to many objects, with one deadline for all of them.

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::Stream;
use futures_util::stream::FuturesUnordered;
use giop_codec::exception::{SystemException, minor};
use giop_proto::later;

use crate::connection::now;
use crate::reference::Reference;
use crate::servant::request::reply_timeout;

const DEFAULT_MAX_CONCURRENT: usize = 64;

/// Calls many objects, with one deadline for all calls: `timeout` from now.
///
/// `call` receives each reference with the remaining time as its timeout, or with its own timeout if that is
/// shorter. By default, at most 64 calls run concurrently ([`FanOut::max_concurrent`]). Await the returned
/// [`FanOut`] to get all answers in the order of the references, or take answers as they arrive
/// ([`FanOut::next`], [`Stream`]). Nothing is sent before the `FanOut` is polled.
///
/// No task is spawned. Dropping the `FanOut` cancels the calls that have no answer yet.
///
/// # Errors
/// Each answer has its own result:
///
/// * the result of `call`;
/// * TIMEOUT minor OMG 3, COMPLETED_MAYBE, if the call was running at the deadline;
/// * TIMEOUT minor OMG 2, COMPLETED_NO, if the call had not started at the deadline.
///
/// ```
/// # use orb_runtime::{ObjectRef, Reference, fan_out};
/// # use std::time::Duration;
/// # async fn ask(objects: Vec<ObjectRef>) {
/// let timeout = Duration::from_millis(500);
/// let answers = fan_out(&objects, timeout, |object| async move { object.non_existent().await }).await;
/// for answer in answers {
///     match answer.result {
///         Ok(gone) => println!("{:?}: {gone}", answer.reference),
///         Err(error) => println!("{:?}: {error}", answer.reference),
///     }
/// }
/// # }
/// ```
pub fn fan_out<'a, 'r, R, F, Fut, T, E>(
    references: impl IntoIterator<Item = &'r R>,
    timeout: Duration,
    call: F,
) -> FanOut<'a, R, T, E>
where
    R: Reference,
    F: Fn(R) -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
    E: From<SystemException>,
{
    FanOut {
        references: references.into_iter().cloned().map(Some).collect(),
        call: Box::new(move |reference| Box::pin(call(reference))),
        running: FuturesUnordered::new(),
        started_calls: 0,
        timeout_cursor: 0,
        max_concurrent: DEFAULT_MAX_CONCURRENT,
        deadline: later(now(), timeout),
        timer: None,
        state: DeadlineState::Ahead,
    }
}

/// The answer of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<R, T, E> {
    /// The index of the object among the references, from 0.
    pub index: usize,
    /// The reference that was passed in.
    pub reference: R,
    /// The result of the call.
    pub result: Result<T, E>,
}

type CallFuture<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Calls to many objects: see [`fan_out`].
#[must_use = "nothing is called before it is awaited"]
pub struct FanOut<'a, R, T, E> {
    /// `None` for a reference whose answer was returned.
    references: Vec<Option<R>>,
    call: Box<dyn Fn(R) -> CallFuture<'a, T, E> + Send + 'a>,
    running: FuturesUnordered<IndexedCall<'a, T, E>>,
    /// The number of calls that have been started. Calls are started in the order of the references.
    started_calls: usize,
    /// The number of references that [`Self::next_timeout`] has visited after the deadline.
    timeout_cursor: usize,
    max_concurrent: usize,
    deadline: Instant,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
    state: DeadlineState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeadlineState {
    Ahead,
    /// The deadline has passed. The calls are polled once more, because their errors are more specific.
    LastPoll,
    Passed,
}

struct IndexedCall<'a, T, E> {
    index: usize,
    future: CallFuture<'a, T, E>,
}

impl<T, E> Future for IndexedCall<'_, T, E> {
    type Output = (usize, Result<T, E>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let index = self.index;
        self.future.as_mut().poll(cx).map(|result| (index, result))
    }
}

impl<R: Reference, T, E: From<SystemException>> FanOut<'_, R, T, E> {
    /// Sets the maximum number of concurrent calls. 0 is treated as 1.
    pub fn max_concurrent(mut self, calls: usize) -> Self {
        self.max_concurrent = calls.max(1);
        self
    }

    /// Returns the next answer that arrives from any object, or `None` after the last one.
    ///
    /// # Cancel safety
    /// No answer is lost. The calls make progress only while an answer is awaited.
    pub async fn next(&mut self) -> Option<Answer<R, T, E>> {
        poll_fn(|cx| self.poll_answer(cx)).await
    }

    /// Returns all answers, in the order of the references.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the calls that have no answer yet.
    pub async fn all(mut self) -> Vec<Answer<R, T, E>> {
        let mut answers = Vec::with_capacity(self.references.len());
        while let Some(answer) = self.next().await {
            answers.push(answer);
        }
        answers.sort_unstable_by_key(|answer| answer.index);
        answers
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Option<Answer<R, T, E>>> {
        loop {
            if self.state == DeadlineState::Ahead {
                let deadline = self.deadline.into();
                let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
                match timer.as_mut().poll(cx) {
                    Poll::Ready(()) => self.state = DeadlineState::LastPoll,
                    Poll::Pending => self.begin_calls(),
                }
            }
            match Pin::new(&mut self.running).poll_next(cx) {
                Poll::Ready(Some((index, result))) => {
                    if let Some(answer) = self.answer(index, result) {
                        return Poll::Ready(Some(answer));
                    }
                }
                Poll::Ready(None)
                    if self.state != DeadlineState::Passed && self.started_calls == self.references.len() =>
                {
                    return Poll::Ready(None);
                }
                Poll::Ready(None) | Poll::Pending => match self.state {
                    DeadlineState::Ahead if self.running.is_empty() => {}
                    DeadlineState::Ahead => return Poll::Pending,
                    DeadlineState::LastPoll => {
                        self.state = DeadlineState::Passed;
                        if !self.running.is_empty() {
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                    }
                    DeadlineState::Passed => return Poll::Ready(self.next_timeout()),
                },
            }
        }
    }

    fn begin_calls(&mut self) {
        while self.running.len() < self.max_concurrent
            && let Some(reference) = self.references.get(self.started_calls)
        {
            let index = self.started_calls;
            self.started_calls += 1;
            if let Some(reference) = reference {
                let future = (self.call)(with_deadline(reference, self.deadline));
                self.running.push(IndexedCall { index, future });
            }
        }
    }

    fn answer(&mut self, index: usize, result: Result<T, E>) -> Option<Answer<R, T, E>> {
        let reference = self.references.get_mut(index)?.take()?;
        Some(Answer { index, reference, result })
    }

    /// Cancels the running calls. Returns TIMEOUT for the next reference without an answer, if any.
    #[cold]
    fn next_timeout(&mut self) -> Option<Answer<R, T, E>> {
        self.running.clear();
        while self.timeout_cursor < self.references.len() {
            let index = self.timeout_cursor;
            self.timeout_cursor += 1;
            let answer = self.answer(index, Err(timeout_exception(index < self.started_calls).into()));
            if answer.is_some() {
                return answer;
            }
        }
        None
    }
}

/// Returns the reference with the time until the deadline as its timeout, unless its own timeout is shorter.
fn with_deadline<R: Reference>(reference: &R, deadline: Instant) -> R {
    let object = reference.as_object();
    let left = deadline.saturating_duration_since(now());
    match object.options().timeout.unwrap_or(object.orb().config.client.timeout) {
        Some(own) if own <= left => reference.clone(),
        _ => reference.with_timeout(left),
    }
}

#[cold]
fn timeout_exception(has_started: bool) -> SystemException {
    if has_started {
        return reply_timeout("the call had no reply at the deadline of the fan-out");
    }
    SystemException::timeout().with_minor(minor::TIMEOUT_REQUEST_END).with_reason(
        "the call had not started at the deadline of the fan-out (FanOut::max_concurrent limits concurrent calls)",
    )
}

impl<R: Reference, T, E: From<SystemException>> Stream for FanOut<'_, R, T, E> {
    type Item = Answer<R, T, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_answer(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.references.iter().flatten().count();
        (left, Some(left))
    }
}

/// Each call is pinned by its own box.
impl<R, T, E> Unpin for FanOut<'_, R, T, E> {}

impl<'a, R, T, E> IntoFuture for FanOut<'a, R, T, E>
where
    R: Reference,
    T: Send + 'a,
    E: From<SystemException> + Send + 'a,
{
    type Output = Vec<Answer<R, T, E>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.all())
    }
}

impl<R, T, E> fmt::Debug for FanOut<'_, R, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FanOut")
            .field("references", &self.references.len())
            .field("running", &self.running.len())
            .field("max_concurrent", &self.max_concurrent)
            .finish_non_exhaustive()
    }
}

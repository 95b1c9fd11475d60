//! Deferred calls: sent now and awaited later.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::connection::blocking;

/// Sends a call now, to be awaited later: `let balance = account.balance().deferred();`.
///
/// Implemented for every future: for each operation of every reference, and for an `async` block with several
/// calls.
///
/// ```
/// # use orb_runtime::{Defer, ObjectRef, Reference, SystemException};
/// # async fn ask(near: ObjectRef, far: ObjectRef) -> Result<(), SystemException> {
/// let far = far.non_existent().deferred(); // in flight
/// let near = near.non_existent().await?; // meanwhile
/// let far = far.await?;
/// # let _ = (near, far);
/// # Ok(()) }
/// ```
#[doc(alias = "send_deferred")]
pub trait Defer: Future + Send + Sized {
    /// Polls the call once and returns it.
    ///
    /// If the reference has a connection, the request is sent when this returns. Otherwise connecting has
    /// begun, and [`Deferred::sent`] waits until the request is sent. The deadline of the call counts from
    /// now on. Its result is read from the connection whether it is awaited or not.
    ///
    /// No task is spawned: the rest of the future runs only while it is awaited. The same holds for calls to
    /// objects of this ORB, whose servants run in the task of the caller.
    fn deferred<'a>(self) -> Deferred<'a, Self::Output>
    where
        Self: 'a,
    {
        let mut deferred = Deferred { call: Call::Waiting(Box::pin(self)), sent: false };
        let _ = deferred.look(&mut Context::from_waker(Waker::noop()));
        deferred
    }
}

impl<F: Future + Send> Defer for F {}

/// A call that was sent by [`Defer::deferred`]. Await it for its result. Dropping it cancels the call.
///
/// If it is polled again after it has returned its result, it stays pending.
#[must_use = "dropping it cancels the call"]
#[doc(alias = "CORBA::Request")]
pub struct Deferred<'a, T> {
    call: Call<'a, T>,
    /// A call in the future is waiting for its reply, or has received it.
    sent: bool,
}

enum Call<'a, T> {
    Waiting(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
    Done(T),
    Taken,
}

impl<T> Deferred<'_, T> {
    /// Returns whether the result is available, so that awaiting returns immediately. It never blocks.
    pub fn poll_response(&mut self) -> bool {
        let _ = self.look(&mut Context::from_waker(Waker::noop()));
        !matches!(self.call, Call::Waiting(_))
    }

    /// Waits until the request is sent or the call has ended, so that only the result is outstanding. If the
    /// future makes several calls, the first one counts.
    ///
    /// A call whose bytes come from a source counts as sent after its last byte.
    ///
    /// # Cancel safety
    /// Dropping the future of this method has no effect.
    pub async fn sent(&mut self) {
        poll_fn(|cx| self.look(cx)).await;
    }

    /// Polls the call. Ready once the request is sent.
    fn look(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Call::Waiting(call) = &mut self.call {
            let (polled, waits) = blocking::apart(|| call.as_mut().poll(cx));
            self.sent |= waits;
            if let Poll::Ready(result) = polled {
                self.call = Call::Done(result);
                self.sent = true;
            }
        }
        if self.sent { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<T> Future for Deferred<'_, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        if let Call::Waiting(call) = &mut this.call {
            let polled = call.as_mut().poll(cx);
            if polled.is_ready() {
                this.call = Call::Taken;
            }
            return polled;
        }
        match std::mem::replace(&mut this.call, Call::Taken) {
            Call::Done(result) => Poll::Ready(result),
            Call::Waiting(_) | Call::Taken => Poll::Pending,
        }
    }
}

/// The result is never pinned, and the future is boxed.
impl<T> Unpin for Deferred<'_, T> {}

impl<T> fmt::Debug for Deferred<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = !matches!(self.call, Call::Waiting(_));
        f.debug_struct("Deferred").field("sent", &self.sent).field("done", &done).finish()
    }
}

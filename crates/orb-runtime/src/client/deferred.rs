//! Deferred calls, which are sent now and awaited later, and calls whose outcome a reply handler receives
//! (the callback model of the OMG's asynchronous messaging).

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use giop_codec::exception::SystemException;

use crate::connection::blocking;

/// Sends a call now, to be awaited later: `let balance = account.balance().deferred();`.
///
/// The trait is implemented for every future: for a call, and also for an `async` block with several calls.
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
    /// If the reference has a connection, the request has been sent when this method returns. If it has none,
    /// a connection is being opened, and [`Deferred::sent`] waits until the request is sent. The timeout of
    /// the call begins now. The reply is read from the connection even if the call is not awaited yet.
    ///
    /// No task is spawned. After the first poll, the future runs only while it is awaited. A servant in this
    /// ORB, which runs in the task of its caller, therefore makes progress only while the call is awaited.
    fn deferred<'a>(self) -> Deferred<'a, Self::Output>
    where
        Self: 'a,
    {
        let mut deferred = Deferred { call: Call::Waiting(Box::pin(self)), is_sent: false };
        let _ = deferred.poll_sent(&mut Context::from_waker(Waker::noop()));
        deferred
    }
}

impl<F: Future + Send> Defer for F {}

/// A call that was begun by [`Defer::deferred`]. Await it to get its result. Dropping it cancels the call.
///
/// Polling it again after it has returned its result never completes.
#[must_use = "dropping it cancels the call"]
#[doc(alias = "CORBA::Request")]
pub struct Deferred<'a, T> {
    call: Call<'a, T>,
    /// True if a request of the future has been sent, or the future has completed.
    is_sent: bool,
}

enum Call<'a, T> {
    Waiting(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
    Done(T),
    Taken,
}

impl<T> Deferred<'_, T> {
    /// Polls the call without blocking. Returns whether the result is available.
    pub fn poll_response(&mut self) -> bool {
        let _ = self.poll_sent(&mut Context::from_waker(Waker::noop()));
        !matches!(self.call, Call::Waiting(_))
    }

    /// Waits until the request is sent, or the call has ended. Of several calls, waits for the first.
    ///
    /// A request with a `@stream` argument is sent when its last byte is sent.
    ///
    /// # Cancel safety
    /// Dropping the future of this method has no effect.
    pub async fn sent(&mut self) {
        poll_fn(|cx| self.poll_sent(cx)).await;
    }

    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Call::Waiting(call) = &mut self.call {
            let (polled, waits_for_reply) = blocking::poll_deferred(|| call.as_mut().poll(cx));
            self.is_sent |= waits_for_reply;
            if let Poll::Ready(result) = polled {
                self.call = Call::Done(result);
                self.is_sent = true;
            }
        }
        if self.is_sent { Poll::Ready(()) } else { Poll::Pending }
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

/// The future is boxed, and the result is never pinned.
impl<T> Unpin for Deferred<'_, T> {}

impl<T> fmt::Debug for Deferred<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = !matches!(self.call, Call::Waiting(_));
        f.debug_struct("Deferred").field("sent", &self.is_sent).field("done", &done).finish()
    }
}

/// Sends a call as [`Defer::deferred`] does, and passes its outcome to `reply` in a task of the current tokio
/// runtime. Called by generated code. Outside of a tokio runtime, sends nothing and fails with INITIALIZE.
pub fn sendc<T: Send + 'static, F: Future<Output = ()> + Send>(
    call: impl Future<Output = T> + Send + 'static,
    reply: impl FnOnce(T) -> F + Send + 'static,
) -> Result<(), SystemException> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| crate::errors::no_runtime())?;
    let call = call.deferred();
    runtime.spawn(async move { reply(call.await).await });
    Ok(())
}

/// Copies a large array to the heap without copying it to the stack. Called by generated code.
pub fn boxed_array<T: Clone, const N: usize>(array: &[T; N]) -> Box<[T; N]> {
    // The conversion cannot fail, because the vector has `N` elements.
    array.to_vec().try_into().unwrap_or_else(|_| Box::new(array.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use giop_codec::exception::SystemExceptionKind;

    #[test]
    fn boxed_array_equals_the_array() {
        let array = [3_u64; 100_000];
        assert_eq!(*boxed_array(&array), array);
        assert_eq!(*boxed_array(&[[1_u8, 2], [3, 4]]), [[1, 2], [3, 4]]);
    }

    #[test]
    fn without_a_runtime_nothing_is_sent() {
        let error = sendc(async { unreachable!("the call was polled") }, |(): ()| async {}).unwrap_err();
        assert_eq!(error.kind, SystemExceptionKind::Initialize);
    }
}

//! Collocated requests with a `@stream` result, whose source the client polls in the context of the request.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use giop_codec::exception::SystemException;
use tokio::time::Sleep;

use crate::servant::current::Request;
use crate::servant::request::{panicked, reply_timeout};

/// A collocated request whose result is a stream that the caller is reading.
pub(crate) struct CollocatedRequest {
    request: Request,
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl CollocatedRequest {
    pub(crate) fn new(request: Request, deadline: Option<Instant>) -> Self {
        Self { request, deadline, timer: None }
    }

    /// Polls the source of the result: sets the current request, catches panics, and checks the deadline of
    /// the call if the source is pending.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<Option<Result<T, SystemException>>>,
    ) -> Poll<Option<Result<T, SystemException>>> {
        match catch_unwind(AssertUnwindSafe(|| self.request.enter(|| poll(cx)))) {
            Ok(Poll::Pending) => {}
            Ok(ready) => return ready,
            Err(panic) => return Poll::Ready(Some(Err(panicked(&*panic)))),
        }
        let Some(deadline) = self.deadline else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        let text = "the deadline of the call passed before its result was complete";
        timer.as_mut().poll(cx).map(|()| Some(Err(reply_timeout(text))))
    }
}

impl fmt::Debug for CollocatedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollocatedRequest").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

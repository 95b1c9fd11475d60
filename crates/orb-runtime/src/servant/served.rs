//! `@stream` results of servants in this process. The caller that takes the result polls its source as part
//! of the request.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use giop_codec::exception::{CompletionStatus, SystemException, minor};
use tokio::time::Sleep;

use crate::servant::current::Request;
use crate::servant::request::panicked;

/// A request whose result is being taken.
pub(crate) struct Served {
    request: Request,
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Served {
    pub(crate) fn new(request: Request, deadline: Option<Instant>) -> Self {
        Self { request, deadline, timer: None }
    }

    /// Polls the source with the current request, the panic guard and the deadline of the call. A source that
    /// is ready does not time out.
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
        timer.as_mut().poll(cx).map(|()| Some(Err(late())))
    }
}

#[cold]
fn late() -> SystemException {
    SystemException::timeout()
        .with_minor(minor::TIMEOUT_REPLY_END)
        .completed(CompletionStatus::Maybe)
        .with_reason("the deadline of the call passed in the middle of its result".to_owned())
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

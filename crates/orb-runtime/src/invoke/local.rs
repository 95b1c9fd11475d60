//! Collocated calls: straight to the servant, without marshalling.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};

use super::Operation;
use crate::reference::ObjectRef;
use crate::serve::Request;
use crate::serve::adapter::Entry;
use crate::serve::request::panicked;

/// The future of a collocated call.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A servant of this very ORB, by its interface.
#[derive(Debug)]
pub struct LocalServant<L: ?Sized> {
    servant: Arc<L>,
    entry: Arc<Entry>,
}

/// The servant of the object, if it is active in the reference's ORB and has the interface.
#[inline]
#[must_use]
pub fn local<L: ?Sized + Send + Sync + 'static>(target: &ObjectRef) -> Option<LocalServant<L>> {
    let entry = target.home()?;
    if entry.is_gone() {
        return None;
    }
    let mut found: Option<Arc<L>> = None;
    Arc::clone(&entry.skeleton).local(&mut found as &mut dyn Any);
    found.map(|servant| LocalServant { servant, entry: Arc::clone(entry) })
}

impl<L: ?Sized + Send + Sync + 'static> LocalServant<L> {
    /// Calls the servant with the deadline, the panic guard and the current request of a call from afar.
    ///
    /// # Errors
    /// What the servant raised; TIMEOUT; UNKNOWN when it panicked.
    ///
    /// # Cancel safety
    /// Dropping the future drops the servant's.
    pub async fn call<'a, T: 'static, E: From<SystemException> + std::fmt::Display>(
        &'a self,
        target: &ObjectRef,
        operation: &'static Operation,
        f: impl FnOnce(&'a L) -> LocalFuture<'a, Result<T, E>> + Send,
    ) -> Result<T, E> {
        let orb = target.orb();
        if orb.is_closing() {
            return Err(crate::orb::closed().into());
        }
        let deadline = super::deadline(target, crate::link::now());
        let mut timer = deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into())));
        let accepting = &mut pin!(orb.accepting());
        poll_fn(|cx| match accepting.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => match timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(Err(held(operation))),
                _ => Poll::Pending,
            },
        })
        .await?;
        let Some(_entered) = self.entry.enter() else {
            return Err(orb.no_such_object(self.entry.key.as_slice()).into());
        };
        let request = Request::local(Arc::clone(orb), Arc::clone(&self.entry), operation.name, deadline);
        let mut future = f(&self.servant);
        let outcome = poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| request.enter(|| future.as_mut().poll(cx))));
            match polled {
                Ok(Poll::Pending) => {}
                Ok(ready) => return ready,
                Err(panic) => return Poll::Ready(Err(panicked(&*panic).into())),
            }
            match timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(Err(late(operation).into())),
                _ => Poll::Pending,
            }
        })
        .await;
        match outcome {
            // As from afar, a oneway's caller is not told how it went.
            Err(error) if operation.oneway => {
                orb.note_failed_oneway(&error);
                nothing().ok_or(error)
            }
            outcome => outcome,
        }
    }
}

/// What a oneway returns.
fn nothing<T: 'static>() -> Option<T> {
    let mut nothing: Option<T> = None;
    if let Some(nothing) = (&mut nothing as &mut dyn Any).downcast_mut::<Option<()>>() {
        *nothing = Some(());
    }
    nothing
}

#[cold]
fn held(operation: &Operation) -> SystemException {
    SystemException::new(SystemExceptionKind::Timeout, minor::TIMEOUT_REPLY_END, CompletionStatus::No)
        .because(format!(
            "`{}` was held at the deadline: this ORB does not accept requests yet",
            operation.name
        ))
}

#[cold]
fn late(operation: &Operation) -> SystemException {
    SystemException::new(SystemExceptionKind::Timeout, minor::TIMEOUT_REPLY_END, CompletionStatus::Maybe)
        .because(format!("`{}` in this process was not done at the deadline", operation.name))
}

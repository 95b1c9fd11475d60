//! Collocated calls: direct calls of the servant, without marshalling.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::ObjectKey;
use tokio::time::Sleep;

use crate::connection::blocking;
use crate::opaque::Opaque;
use crate::poa::lookup::no_such_object;
use crate::poa::manager::HeldRequest;
use crate::reference::ObjectRef;
use crate::reference::operation::{CallOperation, Operation};
use crate::runtime::Shared;
use crate::servant::active_object::{ActiveObject, InFlight};
use crate::servant::poa_gate::Gate;
use crate::servant::request::panicked;
use crate::servant::{
    LocalFuture, Request, ResultRequest, ResultSource, ServedResult, etherealizing_in_caller, holds_turn,
};

/// A servant in the same ORB as its caller, with its interface.
#[derive(Debug)]
pub struct LocalServant<L: ?Sized> {
    servant: Arc<L>,
    entry: Opaque<ActiveObject>,
    /// The key of the called object, if the entry serves several objects.
    key: Option<ObjectKey>,
}

/// Returns the servant of the object, if it is active in the reference's ORB and has the interface.
#[inline]
#[must_use]
pub fn local<L: ?Sized + Send + Sync + 'static>(target: &ObjectRef) -> Option<LocalServant<L>> {
    let entry = target.active_entry()?;
    let mut found: Option<Arc<L>> = None;
    Arc::clone(&entry.skeleton).local(&mut found as &mut dyn Any);
    // It runs in the task of `Orb::run_until`, unless the caller holds the turn there.
    if entry.mode.on_main_thread && !entry.poa.turn.as_ref().is_some_and(holds_turn) {
        return None;
    }
    let key = if entry.is_shared { target.own_key().map(ObjectKey::from) } else { None };
    found.map(|servant| LocalServant { servant, entry: entry.into(), key })
}

impl<L: ?Sized + Send + Sync + 'static> LocalServant<L> {
    /// Calls the servant with the deadline, the panic guard and the current request of a remote call.
    ///
    /// # Errors
    /// The exception that the servant raised; TIMEOUT; UNKNOWN if it panicked.
    ///
    /// # Cancel safety
    /// Dropping the future drops the future of the servant.
    pub fn call<'a, T: 'static, E: From<SystemException> + std::fmt::Display>(
        &'a self,
        target: &ObjectRef,
        operation: &'static Operation,
        f: impl FnOnce(&'a L) -> LocalFuture<'a, Result<T, E>> + Send,
    ) -> impl Future<Output = Result<T, E>> + Send {
        async move {
            match self.run(target, operation, f).await?.0 {
                // The caller of a oneway does not get the outcome, as in remote calls.
                Err(error) if operation.oneway => {
                    target.orb().counters.record_failed_oneway(&error);
                    nothing().ok_or(error)
                }
                outcome => outcome,
            }
        }
    }

    /// Calls the servant of an operation with a `@stream` result, and returns the stream. If the thread model
    /// serializes requests, the whole result is collected before the turn ends.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    ///
    /// # Cancel safety
    /// That of [`call`](Self::call).
    pub fn call_into<'a, S: ResultSource + 'static, E: From<SystemException> + std::fmt::Display + 'a>(
        &'a self,
        target: &ObjectRef,
        operation: &'static Operation,
        f: impl FnOnce(&'a L) -> LocalFuture<'a, Result<S, E>> + Send,
    ) -> impl Future<Output = Result<S::Stream, E>> + Send {
        async move {
            if self.entry.poa.turn.is_some() {
                let whole = |servant| -> LocalFuture<'a, Result<S, E>> {
                    let result = f(servant);
                    Box::pin(async move {
                        let source = result.await?;
                        Ok(source.collect().await?)
                    })
                };
                return Ok(self.run(target, operation, whole).await?.0?.into_stream(None));
            }
            let (source, request) = self.run(target, operation, f).await?;
            let deadline = request.deadline();
            Ok(source?.into_stream(Some(ResultRequest(ServedResult::new(request, deadline)))))
        }
    }

    /// Returns the outcome of the servant and the request. Fails if the servant was not called.
    async fn run<'a, T, E: From<SystemException> + std::fmt::Display>(
        &'a self,
        target: &ObjectRef,
        operation: &'static Operation,
        f: impl FnOnce(&'a L) -> LocalFuture<'a, Result<T, E>> + Send,
    ) -> Result<(Result<T, E>, Request), E> {
        let orb = target.orb();
        if orb.refuses_calls() {
            return Err(crate::errors::closed().into());
        }
        let deadline = crate::client::deadline(target, crate::connection::now());
        #[cfg(feature = "tracing")]
        let seen = crate::client::call_span::local(target, operation);
        #[cfg(not(feature = "tracing"))]
        let seen = crate::telemetry::RequestSpan;
        let mut timer = deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into())));
        let _entered = in_time(admit(orb, &self.entry), operation.name, &mut timer).await?;
        let _turn = match &self.entry.poa.turn {
            Some(turn) if !holds_turn(turn) => {
                let turn = Arc::clone(turn).acquire_owned();
                in_time(async { Ok(turn.await.ok()) }, operation.name, &mut timer).await?
            }
            _ => None,
        };
        let request = Request::local(
            Arc::clone(orb),
            self.entry.to_arc(),
            self.key.clone(),
            operation.name,
            deadline,
            seen,
        );
        let mut future = f(&self.servant);
        let outcome = poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| request.enter(|| future.as_mut().poll(cx))));
            match polled {
                Ok(Poll::Pending) => blocking::begun(),
                Ok(ready) => return ready,
                Err(panic) => return Poll::Ready(Err(panicked(&*panic).into())),
            }
            match timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(Err(late(operation).into())),
                _ => Poll::Pending,
            }
        })
        .await;
        match &outcome {
            Ok(_) => request.span().results(),
            Err(error) => request.span().local_exception(error),
        }
        request.span().count();
        Ok((outcome, request))
    }
}

/// Waits for a condition of the call's start, up to the deadline of the call.
async fn in_time<T>(
    what: impl Future<Output = Result<T, SystemException>>,
    operation: &str,
    timer: &mut Option<Pin<Box<Sleep>>>,
) -> Result<T, SystemException> {
    let mut what = pin!(what);
    poll_fn(|cx| match what.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(done),
        Poll::Pending => match timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => Poll::Ready(Err(held(operation))),
            _ => Poll::Pending,
        },
    })
    .await
}

/// Counts a request on an object of this ORB, as soon as requests may start.
async fn admit<'e>(
    orb: &Arc<Shared>,
    entry: &'e ActiveObject,
) -> Result<InFlight<&'e ActiveObject>, SystemException> {
    tokio::select! {
        biased;
        () = orb.pauses.wait_until_accepting(|| orb.links.next_number()) => {}
        () = orb.closing.wait() => return Err(crate::errors::closed()),
    }
    loop {
        let again = || etherealizing_in_caller(orb, entry.key()).and_then(|_| entry.enter_nested());
        let Some(entered) = entry.enter().or_else(again) else {
            return Err(no_such_object(entry.key()));
        };
        if entry.poa.is_open() || entry.poa.serves_activator_task(orb) {
            return Ok(entered);
        }
        drop(entered);
        let held =
            HeldRequest::new(&entry.poa, 0, &orb.config.limits).ok_or_else(|| Gate::Holding.refusal())?;
        let gate = poll_fn(|cx| match held.poll_gate(cx) {
            Gate::Holding => Poll::Pending,
            gate => Poll::Ready(gate),
        });
        // An ORB that is closing waits for running requests, but not for those that the POA manager holds.
        let gate = tokio::select! {
            biased;
            gate = gate => gate,
            () = orb.closing.wait() => return Err(crate::errors::closed()),
        };
        if gate != Gate::Active {
            return Err(gate.refusal());
        }
    }
}

/// Returns whether an object of this ORB exists for a call, after requests of its POA may start.
///
/// # Errors
/// The exception of its POA; TIMEOUT.
pub(crate) async fn is_there(
    target: &ObjectRef,
    entry: &ActiveObject,
    operation: &str,
) -> Result<bool, SystemException> {
    let orb = target.orb();
    if orb.refuses_calls() {
        return Err(crate::errors::closed());
    }
    let deadline = crate::client::deadline(target, crate::connection::now());
    let mut timer = deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into())));
    match in_time(admit(orb, entry), operation, &mut timer).await {
        Ok(_entered) => Ok(true),
        Err(error) if error.kind == SystemExceptionKind::ObjectNotExist => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns `Some` if `T` is `()`, the result of a oneway.
fn nothing<T: 'static>() -> Option<T> {
    let mut nothing: Option<T> = None;
    if let Some(nothing) = (&mut nothing as &mut dyn Any).downcast_mut::<Option<()>>() {
        *nothing = Some(());
    }
    nothing
}

#[cold]
fn held(operation: &str) -> SystemException {
    SystemException::timeout().with_minor(minor::TIMEOUT_REPLY_END)
        .with_reason(format!("`{operation}` was held at the deadline: this ORB, the object's POA manager or its thread model does not let it start yet"))
}

#[cold]
fn late(operation: &CallOperation<'_>) -> SystemException {
    SystemException::timeout()
        .with_minor(minor::TIMEOUT_REPLY_END)
        .completed(CompletionStatus::Maybe)
        .with_reason(format!("`{}` in this process was not done at the deadline", operation.name))
}

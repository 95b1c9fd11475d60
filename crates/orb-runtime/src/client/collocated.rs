//! Collocated calls: direct calls to servants of the same ORB, without marshalling.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use giop_codec::exception::{SystemException, SystemExceptionKind, minor};
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
use crate::servant::poa_core::Gate;
use crate::servant::request::{panicked, reply_timeout};
use crate::servant::{
    BoxedFuture, CollocatedRequest, Request, ResultRequest, ResultSource,
    find_object_etherealized_after_callers, holds_turn,
};

/// A servant in the same ORB as its caller, with its interface.
#[derive(Debug)]
pub struct LocalServant<L: ?Sized> {
    servant: Arc<L>,
    entry: Opaque<ActiveObject>,
    /// The key of the called object, if `entry` is used for several objects.
    key: Option<ObjectKey>,
}

/// Returns the servant of the object, if it is active in the reference's ORB and has the interface.
#[inline]
#[must_use]
pub fn local<L: ?Sized + Send + Sync + 'static>(target: &ObjectRef) -> Option<LocalServant<L>> {
    let entry = target.active_entry()?;
    let mut found: Option<Arc<L>> = None;
    Arc::clone(&entry.skeleton).downcast_into(&mut found as &mut dyn Any);
    // With the main thread model, a servant can be called directly only if the caller already holds the turn
    // of the main thread. Other calls are sent as messages, which the task of `Orb::run_until` serves.
    if entry.mode.on_main_thread && !entry.poa.turn.as_ref().is_some_and(holds_turn) {
        return None;
    }
    let key = if entry.is_shared { target.own_key().map(ObjectKey::from) } else { None };
    found.map(|servant| LocalServant { servant, entry: entry.into(), key })
}

impl<L: ?Sized + Send + Sync + 'static> LocalServant<L> {
    /// Calls the servant. As for a remote call, there is a deadline, panics are caught, and the servant has a
    /// current request. Dropping the returned future drops the future of the servant.
    pub fn call<'a, T: 'static, E: From<SystemException> + std::fmt::Display>(
        &'a self,
        target: &ObjectRef,
        operation: &'static Operation,
        f: impl FnOnce(&'a L) -> BoxedFuture<'a, Result<T, E>> + Send,
    ) -> impl Future<Output = Result<T, E>> + Send {
        async move {
            match self.run(target, operation, f).await?.0 {
                // As for remote calls, the caller of a oneway does not get its outcome.
                Err(error) if operation.is_oneway => {
                    target.orb().counters.record_failed_oneway(&error);
                    unit_result().ok_or(error)
                }
                outcome => outcome,
            }
        }
    }

    /// Calls the servant of an operation with a `@stream` result, and returns the stream. If the thread model
    /// of the POA serializes requests, the whole result is collected before the next request starts.
    pub fn call_into<'a, S: ResultSource + 'static, E: From<SystemException> + std::fmt::Display + 'a>(
        &'a self,
        target: &ObjectRef,
        operation: &'static Operation,
        f: impl FnOnce(&'a L) -> BoxedFuture<'a, Result<S, E>> + Send,
    ) -> impl Future<Output = Result<S::Stream, E>> + Send {
        async move {
            if self.entry.poa.turn.is_some() {
                let whole = |servant| -> BoxedFuture<'a, Result<S, E>> {
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
            Ok(source?.into_stream(Some(ResultRequest(CollocatedRequest::new(request, deadline)))))
        }
    }

    /// Returns the outcome of the servant, and the request. Fails if the servant was not called.
    async fn run<'a, T, E: From<SystemException> + std::fmt::Display>(
        &'a self,
        target: &ObjectRef,
        operation: &'static Operation,
        f: impl FnOnce(&'a L) -> BoxedFuture<'a, Result<T, E>> + Send,
    ) -> Result<(Result<T, E>, Request), E> {
        let orb = target.orb();
        if orb.refuses_calls() {
            return Err(crate::errors::orb_shut_down().into());
        }
        let deadline = crate::client::deadline(target, crate::connection::now());
        #[cfg(feature = "tracing")]
        let span = crate::client::call_span::begin_collocated(target, operation);
        #[cfg(not(feature = "tracing"))]
        let span = crate::telemetry::RequestSpan;
        let mut timer = deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into())));
        let _in_flight = start_by_deadline(admit(orb, &self.entry), operation.name, &mut timer).await?;
        let _permit = match &self.entry.poa.turn {
            Some(turn) if !holds_turn(turn) => {
                let permit = Arc::clone(turn).acquire_owned();
                start_by_deadline(async { Ok(permit.await.ok()) }, operation.name, &mut timer).await?
            }
            _ => None,
        };
        let request = Request::collocated(
            Arc::clone(orb),
            self.entry.to_arc(),
            self.key.clone(),
            operation.name,
            deadline,
            span,
        );
        let mut future = f(&self.servant);
        let outcome = poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| request.enter(|| future.as_mut().poll(cx))));
            match polled {
                Ok(Poll::Pending) => blocking::count_collocated_call(),
                Ok(ready) => return ready,
                Err(panic) => return Poll::Ready(Err(panicked(&*panic).into())),
            }
            match timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(Err(unfinished_at_deadline(operation).into())),
                _ => Poll::Pending,
            }
        })
        .await;
        match &outcome {
            Ok(_) => request.span().record_results(),
            Err(error) => request.span().record_local_exception(error),
        }
        request.span().count_call();
        Ok((outcome, request))
    }
}

/// Waits until the call may start, but at most until its deadline.
async fn start_by_deadline<T>(
    start: impl Future<Output = Result<T, SystemException>>,
    operation: &str,
    timer: &mut Option<Pin<Box<Sleep>>>,
) -> Result<T, SystemException> {
    let mut start = pin!(start);
    poll_fn(|cx| match start.as_mut().poll(cx) {
        Poll::Ready(outcome) => Poll::Ready(outcome),
        Poll::Pending => match timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => Poll::Ready(Err(not_started_at_deadline(operation))),
            _ => Poll::Pending,
        },
    })
    .await
}

/// Waits until requests on the object may start. Returns a guard that counts the request as in flight.
async fn admit<'e>(
    orb: &Arc<Shared>,
    entry: &'e ActiveObject,
) -> Result<InFlight<&'e ActiveObject>, SystemException> {
    tokio::select! {
        biased;
        () = orb.pauses.wait_for_resume(|| orb.connections.next_number()) => {}
        () = orb.closing.wait() => return Err(crate::errors::orb_shut_down()),
    }
    loop {
        let nested =
            || find_object_etherealized_after_callers(orb, entry.key()).and_then(|_| entry.enter_nested());
        let Some(in_flight) = entry.enter().or_else(nested) else {
            return Err(no_such_object(entry.key()));
        };
        if entry.poa.is_open() || entry.poa.serves_activator_task(orb) {
            return Ok(in_flight);
        }
        drop(in_flight);
        let held =
            HeldRequest::new(&entry.poa, 0, &orb.config.limits).ok_or_else(|| Gate::Holding.refusal())?;
        let gate = poll_fn(|cx| match held.poll_gate(cx) {
            Gate::Holding => Poll::Pending,
            gate => Poll::Ready(gate),
        });
        // An ORB that shuts down waits for running requests, but not for requests that the POA manager holds.
        let gate = tokio::select! {
            biased;
            gate = gate => gate,
            () = orb.closing.wait() => return Err(crate::errors::orb_shut_down()),
        };
        if gate != Gate::Active {
            return Err(gate.refusal());
        }
    }
}

/// Returns whether an object of this ORB exists. Waits until requests to its POA may start. Fails with
/// TIMEOUT, if the ORB shuts down, or with the exception with which the POA refuses requests.
pub(crate) async fn exists_here(
    target: &ObjectRef,
    entry: &ActiveObject,
    operation: &str,
) -> Result<bool, SystemException> {
    let orb = target.orb();
    if orb.refuses_calls() {
        return Err(crate::errors::orb_shut_down());
    }
    let deadline = crate::client::deadline(target, crate::connection::now());
    let mut timer = deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into())));
    match start_by_deadline(admit(orb, entry), operation, &mut timer).await {
        Ok(_in_flight) => Ok(true),
        Err(error) if error.kind == SystemExceptionKind::ObjectNotExist => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns `Some` if `T` is `()`, the result of a oneway.
fn unit_result<T: 'static>() -> Option<T> {
    let mut result: Option<T> = None;
    if let Some(unit) = (&mut result as &mut dyn Any).downcast_mut::<Option<()>>() {
        *unit = Some(());
    }
    result
}

#[cold]
fn not_started_at_deadline(operation: &str) -> SystemException {
    SystemException::timeout().with_minor(minor::TIMEOUT_REPLY_END).with_reason(format!(
        "`{operation}` had not started at the deadline: this ORB, the object's POA manager or its thread model held it back"
    ))
}

#[cold]
fn unfinished_at_deadline(operation: &CallOperation<'_>) -> SystemException {
    reply_timeout(format!(
        "the servant of `{}` in this process had not finished at the deadline",
        operation.name
    ))
}

//! Telemetry of calls on the client side.

use giop_codec::exception::SystemException;
use giop_codec::giop::{ContextId, ReplyStatus, ServiceContext, ServiceContexts};
use giop_proto::Reply;
use tracing::Span;
use tracing::field::display;

use crate::reference::operation::CallOperation;
use crate::reference::{ObjectRef, Reference};
use crate::runtime::Shared;
use crate::servant::current_trace;
use crate::telemetry::context::TraceContext;
#[cfg(feature = "admin")]
use crate::telemetry::operation_stats::{CallEnd, CountedCall, Side};
use crate::telemetry::server::record_system_exception;
use crate::telemetry::{RequestSpan, call_span, record_ids, spans_enabled};
use crate::transport::Peer;

/// The tracing span of a call until its outcome. If it is dropped before, it records a cancellation.
pub(crate) struct CallSpan {
    span: Span,
    context: Option<ServiceContext>,
    has_outcome: bool,
    #[cfg(feature = "admin")]
    counted_call: Option<CountedCall>,
}

/// The span of a call, or `None` if nothing observes the call.
#[derive(Clone, Copy)]
pub(crate) struct CallObserver<'a>(Option<&'a CallSpan>);

impl<'a> CallObserver<'a> {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn new(span: &'a CallSpan) -> Self {
        Self(Some(span))
    }

    #[inline]
    pub(crate) fn context(self) -> Option<&'a ServiceContext> {
        self.0?.context.as_ref()
    }

    #[inline]
    pub(crate) fn record_peer(self, peer: &Peer) {
        if let Some(call) = self.0 {
            call.span.record("network.peer.address", display(peer));
        }
    }
}

impl CallSpan {
    /// Begins a call. Returns `None` if no subscriber, admin endpoint or trace observes the call.
    #[inline]
    pub(crate) fn begin(target: &ObjectRef, operation: &CallOperation<'_>) -> Option<Box<Self>> {
        let (has_subscriber, trace) = (spans_enabled(), current_trace());
        #[cfg(feature = "admin")]
        let is_counted = target.orb().operation_stats().is_some();
        #[cfg(not(feature = "admin"))]
        let is_counted = false;
        if !has_subscriber && trace.is_none() && !is_counted {
            return None;
        }
        Self::begin_observed(target, operation, has_subscriber, trace)
    }

    #[cold]
    fn begin_observed(
        target: &ObjectRef,
        operation: &CallOperation<'_>,
        has_subscriber: bool,
        trace: Option<TraceContext>,
    ) -> Option<Box<Self>> {
        // A trace context in the reference has priority. A gateway sets it to the trace of a forwarded call.
        let own = &target.options().contexts;
        let has_own_trace = own.iter().any(|context| context.id == ContextId::ZORB_TRACE);
        let trace = if has_own_trace && !has_subscriber {
            // The context of the reference is sent unchanged.
            None
        } else if has_own_trace {
            TraceContext::from_contexts(&ServiceContexts::from(&**own))
        } else {
            trace
        };
        let (id, name) = (target.repository_id(), operation.name);
        let span = call_span!(has_subscriber, "zorb.client", "client", Span::current(), id, name);
        let context = trace_context(&span, target.orb(), trace);
        let context = context.and_then(|context| context.to_service_context().ok());
        #[cfg(feature = "admin")]
        let counted_call =
            |calls| CountedCall::begin(calls, Side::Made, target.repository_id(), operation.name);
        Some(Box::new(Self {
            span,
            context,
            has_outcome: false,
            #[cfg(feature = "admin")]
            counted_call: target.orb().operation_stats().map(counted_call),
        }))
    }

    /// Records the outcome of a call: a reply with results or a user exception, or a system exception.
    pub(crate) fn record_reply(&mut self, outcome: Result<&Reply, &SystemException>) {
        self.has_outcome = true;
        match outcome {
            Ok(reply) if reply.status() == ReplyStatus::UserException => {
                #[cfg(feature = "admin")]
                self.count(CallEnd::UserException);
                self.span.record("rpc.response.status_code", "USER_EXCEPTION");
                self.span.record("error.type", reply.body().read_unconverted_str().unwrap_or("?"));
                self.span.record("otel.status_code", "ERROR");
            }
            Ok(_) => {
                #[cfg(feature = "admin")]
                self.count(CallEnd::Results);
                self.span.record("rpc.response.status_code", "NO_EXCEPTION");
            }
            Err(exception) => {
                #[cfg(feature = "admin")]
                self.count(CallEnd::Failure);
                record_system_exception(&self.span, exception);
            }
        }
    }

    #[cfg(feature = "admin")]
    fn count(&self, ending: CallEnd) {
        if let Some(counted_call) = &self.counted_call {
            counted_call.set_end(ending);
            counted_call.count();
        }
    }

    /// Records that a call without a reply was sent, or that sending failed.
    pub(crate) fn record_sent(&mut self, outcome: Result<(), &SystemException>) {
        self.has_outcome = true;
        #[cfg(feature = "admin")]
        self.count(if outcome.is_ok() { CallEnd::Results } else { CallEnd::Failure });
        if let Err(exception) = outcome {
            record_system_exception(&self.span, exception);
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if !self.has_outcome {
            #[cfg(feature = "admin")]
            self.count(CallEnd::Failure);
            self.span.record("error.type", "cancelled");
            self.span.record("otel.status_code", "ERROR");
        }
    }
}

/// Begins a call to a servant in this process. Returns its span, whose trace the servant's calls continue.
pub(crate) fn begin_collocated(target: &ObjectRef, operation: &CallOperation<'_>) -> RequestSpan {
    let (has_subscriber, trace) = (spans_enabled(), current_trace());
    if !has_subscriber && trace.is_none() {
        #[cfg(feature = "admin")]
        return RequestSpan::default().with_counted_call(
            target.orb(),
            target.repository_id(),
            operation.name,
        );
        #[cfg(not(feature = "admin"))]
        return RequestSpan::default();
    }
    let (id, name) = (target.repository_id(), operation.name);
    let span = call_span!(has_subscriber, "zorb.local", "internal", Span::current(), id, name);
    span.record("network.peer.address", display(Peer::Local));
    let context = trace_context(&span, target.orb(), trace);
    let span = RequestSpan::new(span, context);
    #[cfg(feature = "admin")]
    let span = span.with_counted_call(target.orb(), target.repository_id(), operation.name);
    span
}

/// Returns the trace context to send with calls in this span. `trace` is that of the running code.
fn trace_context(span: &Span, orb: &Shared, trace: Option<TraceContext>) -> Option<TraceContext> {
    if span.is_disabled() {
        // Without a span for this call, the callee continues the trace of the running code.
        return trace;
    }
    if let Some(ids) = orb.propagator() {
        return ids.0.inject(span).or(trace);
    }
    let context = trace.map_or_else(TraceContext::begin_trace, |trace| trace.child_span());
    record_ids(span, &context);
    Some(context)
}

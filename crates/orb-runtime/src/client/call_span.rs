//! Telemetry of a call at its client.

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
use crate::telemetry::operation_stats::{CallEnd, Side, Tally};
use crate::telemetry::server::record_system_exception;
use crate::telemetry::{RequestSpan, call_span, record_ids, spans_enabled};
use crate::transport::Peer;

/// A call from its start to its outcome. Dropping it earlier records a cancellation.
pub(crate) struct CallSpan {
    span: Span,
    /// The service context with the trace, for the requests of the call.
    context: Option<ServiceContext>,
    over: bool,
    #[cfg(feature = "admin")]
    tally: Option<Tally>,
}

/// The telemetry of an attempt to make a call. May be absent.
#[derive(Clone, Copy)]
pub(crate) struct CallObserver<'a>(Option<&'a CallSpan>);

impl<'a> CallObserver<'a> {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn by(outbound: &'a CallSpan) -> Self {
        Self(Some(outbound))
    }

    /// Returns the trace context for the request.
    #[inline]
    pub(crate) fn context(self) -> Option<&'a ServiceContext> {
        self.0?.context.as_ref()
    }

    /// Records the address of the server, when it becomes known or changes.
    #[inline]
    pub(crate) fn sent_to(self, peer: &Peer) {
        if let Some(call) = self.0 {
            call.span.record("network.peer.address", display(peer));
        }
    }
}

impl CallSpan {
    /// Begins a call. `None`: no subscriber or admin endpoint records it, and it belongs to no trace.
    #[inline]
    pub(crate) fn begin(target: &ObjectRef, operation: &CallOperation<'_>) -> Option<Box<Self>> {
        let (wanted, trace) = (spans_enabled(), current_trace());
        #[cfg(feature = "admin")]
        let counted = target.orb().calls().is_some();
        #[cfg(not(feature = "admin"))]
        let counted = false;
        if !wanted && trace.is_none() && !counted {
            return None;
        }
        Self::begun(target, operation, wanted, trace)
    }

    #[cold]
    fn begun(
        target: &ObjectRef,
        operation: &CallOperation<'_>,
        wanted: bool,
        trace: Option<TraceContext>,
    ) -> Option<Box<Self>> {
        // The trace in the reference takes precedence over the current one: code that passes a call on sets
        // the trace of that call.
        let own = &target.options().contexts;
        let given = own.iter().any(|context| context.id == ContextId::ZORB_TRACE);
        let trace = if given && !wanted {
            // The context of the reference is sent unchanged.
            None
        } else if given {
            TraceContext::from_contexts(&ServiceContexts::from(&**own))
        } else {
            trace
        };
        let span = call_span!(
            wanted,
            "zorb.client",
            "client",
            Span::current(),
            target.repository_id(),
            operation.name
        );
        let context = context_of(&span, target.orb(), trace);
        let context = context.and_then(|context| context.to_service_context().ok());
        #[cfg(feature = "admin")]
        let tally = |calls| Tally::begin(calls, Side::Made, target.repository_id(), operation.name);
        Some(Box::new(Self {
            span,
            context,
            over: false,
            #[cfg(feature = "admin")]
            tally: target.orb().calls().map(tally),
        }))
    }

    /// Records the outcome: a reply, or an exception after which no reply can arrive.
    pub(crate) fn replied(&mut self, outcome: Result<&Reply, &SystemException>) {
        self.over = true;
        match outcome {
            Ok(reply) if reply.status() == ReplyStatus::UserException => {
                #[cfg(feature = "admin")]
                self.count(CallEnd::UserException);
                self.span.record("rpc.response.status_code", "USER_EXCEPTION");
                self.span.record("error.type", reply.body().read_str_ascii().unwrap_or("?"));
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

    /// Counts the call for the admin endpoint.
    #[cfg(feature = "admin")]
    fn count(&self, ending: CallEnd) {
        if let Some(tally) = &self.tally {
            tally.set_end(ending);
            tally.count();
        }
    }

    /// Records that a call without a reply was sent, or that sending failed.
    pub(crate) fn sent(&mut self, outcome: Result<(), &SystemException>) {
        self.over = true;
        #[cfg(feature = "admin")]
        self.count(if outcome.is_ok() { CallEnd::Results } else { CallEnd::Failure });
        if let Err(exception) = outcome {
            record_system_exception(&self.span, exception);
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if !self.over {
            #[cfg(feature = "admin")]
            self.count(CallEnd::Failure);
            self.span.record("error.type", "cancelled");
            self.span.record("otel.status_code", "ERROR");
        }
    }
}

/// Begins a collocated call: its span, and the trace that the servant's calls continue.
pub(crate) fn local(target: &ObjectRef, operation: &CallOperation<'_>) -> RequestSpan {
    let (wanted, trace) = (spans_enabled(), current_trace());
    if !wanted && trace.is_none() {
        #[cfg(feature = "admin")]
        return RequestSpan::default().with_tally(target.orb(), target.repository_id(), operation.name);
        #[cfg(not(feature = "admin"))]
        return RequestSpan::default();
    }
    let span =
        call_span!(wanted, "zorb.local", "internal", Span::current(), target.repository_id(), operation.name);
    span.record("network.peer.address", display(Peer::Local));
    let context = context_of(&span, target.orb(), trace);
    let seen = RequestSpan::new(span, context);
    #[cfg(feature = "admin")]
    let seen = seen.with_tally(target.orb(), target.repository_id(), operation.name);
    seen
}

/// Returns the trace context for the calls in that span, if the running code belongs to `trace`.
fn context_of(span: &Span, orb: &Shared, trace: Option<TraceContext>) -> Option<TraceContext> {
    if span.is_disabled() {
        // The callee continues the trace in which this code was called.
        return trace;
    }
    if let Some(ids) = orb.propagator() {
        return ids.0.inject(span).or(trace);
    }
    let context = trace.map_or_else(TraceContext::begin, |trace| trace.child());
    record_ids(span, &context);
    Some(context)
}

//! Spans and counters of requests at the server.

use std::fmt::{self, Write as _};

use giop_codec::exception::{SystemException, SystemExceptionKind};
use giop_codec::giop::ServiceContexts;
use tracing::Span;
use tracing::field::display;

use crate::runtime::Shared;
use crate::telemetry::context::TraceContext;
#[cfg(feature = "admin")]
use crate::telemetry::operation_stats::{CallEnd, CountedCall, Side};
use crate::telemetry::{call_span, record_ids, spans_enabled};
use crate::transport::Peer;

/// The span of a request, if a subscriber enables it, its trace context, and its entry in the counters.
#[derive(Default)]
pub(crate) struct RequestSpan {
    span: Option<Span>,
    context: Option<TraceContext>,
    #[cfg(feature = "admin")]
    counted_call: Option<CountedCall>,
}

impl RequestSpan {
    pub(crate) fn new(span: Span, context: Option<TraceContext>) -> Self {
        let span = (!span.is_disabled()).then_some(span);
        Self {
            span,
            context,
            #[cfg(feature = "admin")]
            counted_call: None,
        }
    }

    #[cfg(feature = "admin")]
    #[inline]
    pub(crate) fn with_counted_call(mut self, orb: &Shared, interface: &str, operation: &str) -> Self {
        self.counted_call =
            orb.operation_stats().map(|stats| CountedCall::begin(stats, Side::Served, interface, operation));
        self
    }

    /// Begins the telemetry of a request that is about to be dispatched to its servant.
    #[inline]
    pub(crate) fn begin<'a>(
        orb: &Shared,
        contexts: &ServiceContexts<'_>,
        peer: &Peer,
        interface: impl FnOnce() -> &'a str,
        operation: impl FnOnce() -> &'a str,
    ) -> Self {
        let trace = TraceContext::from_contexts(contexts);
        if !spans_enabled() {
            return Self::new(Span::none(), trace);
        }
        Self::begin_span(orb, trace, peer, interface(), operation())
    }

    #[cold]
    fn begin_span(
        orb: &Shared,
        trace: Option<TraceContext>,
        peer: &Peer,
        interface: &str,
        operation: &str,
    ) -> Self {
        // The span has no parent, because the current span belongs to the task that reads the connection.
        let span = call_span!(true, "zorb.server", "server", None, interface, operation);
        span.record("network.peer.address", display(peer));
        let context = match (orb.propagator(), trace) {
            (_, trace) if span.is_disabled() => trace,
            (Some(propagator), Some(trace)) => {
                propagator.0.extract(&span, &trace);
                Some(trace)
            }
            (Some(_), None) => None,
            (None, trace) => {
                let context = trace.map_or_else(TraceContext::begin_trace, |trace| trace.child_span());
                record_ids(&span, &context);
                Some(context)
            }
        };
        Self::new(span, context)
    }

    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        self.context.as_ref()
    }

    #[inline]
    pub(crate) fn servant_span(&self) -> ServantSpan {
        self.span.clone()
    }

    #[cold]
    pub(crate) fn record_user_exception(&self, id: &str) {
        #[cfg(feature = "admin")]
        self.set_end(CallEnd::UserException);
        if let Some(span) = &self.span {
            span.record("rpc.response.status_code", "USER_EXCEPTION");
            span.record("error.type", id);
        }
    }

    #[cold]
    pub(crate) fn record_system_exception(&self, exception: &SystemException) {
        #[cfg(feature = "admin")]
        self.set_end(match exception.kind {
            SystemExceptionKind::BadOperation => CallEnd::BadOperation,
            _ => CallEnd::Failure,
        });
        if let Some(span) = &self.span {
            record_system_exception(span, exception);
        }
    }

    /// Records the exception of a call within this process. Its name is the first word of its text.
    #[cold]
    pub(crate) fn record_local_exception(&self, exception: &dyn std::fmt::Display) {
        if !self.is_recorded() {
            return;
        }
        let mut name = FirstWord::default();
        // Writing stops with an error after the first word.
        let _ = write!(name, "{exception}");
        let FirstWord(name) = &name;
        let is_system = SystemExceptionKind::from_name(name).is_some();
        #[cfg(feature = "admin")]
        self.set_end(if is_system { CallEnd::Failure } else { CallEnd::UserException });
        let Some(span) = &self.span else { return };
        let status = if is_system { "SYSTEM_EXCEPTION" } else { "USER_EXCEPTION" };
        span.record("rpc.response.status_code", status);
        span.record("error.type", name.as_str());
        span.record("otel.status_code", "ERROR");
    }

    #[inline]
    pub(crate) fn record_results(&self) {
        if let Some(span) = &self.span {
            span.record("rpc.response.status_code", "NO_EXCEPTION");
        }
    }

    fn is_recorded(&self) -> bool {
        #[cfg(feature = "admin")]
        if self.counted_call.is_some() {
            return true;
        }
        self.span.is_some()
    }

    #[cfg(feature = "admin")]
    fn set_end(&self, end: CallEnd) {
        if let Some(counted_call) = &self.counted_call {
            counted_call.set_end(end);
        }
    }

    #[inline]
    pub(crate) fn count_call(&self) {
        #[cfg(feature = "admin")]
        if let Some(counted_call) = &self.counted_call {
            counted_call.count();
        }
    }

    #[inline]
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }
}

#[derive(Default)]
struct FirstWord(String);

impl fmt::Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        self.0.push_str(text.get(..end.unwrap_or(text.len())).unwrap_or_default());
        if end.is_none() { Ok(()) } else { Err(fmt::Error) }
    }
}

pub(crate) type ServantSpan = Option<Span>;

#[inline]
pub(crate) fn in_span<R>(span: ServantSpan, f: impl FnOnce() -> R) -> R {
    match span {
        Some(span) => span.in_scope(f),
        None => f(),
    }
}

#[cold]
pub(crate) fn record_system_exception(span: &Span, exception: &SystemException) {
    span.record("rpc.response.status_code", "SYSTEM_EXCEPTION");
    span.record("error.type", exception.kind.name());
    span.record("corba.completed", display(exception.completed));
    span.record("otel.status_code", "ERROR");
}

//! Telemetry of a request at its server.

use std::fmt::{self, Write as _};

use giop_codec::exception::{SystemException, SystemExceptionKind};
use giop_codec::giop::ServiceContexts;
use tracing::Span;
use tracing::field::display;

use crate::runtime::Shared;
use crate::telemetry::context::TraceContext;
#[cfg(feature = "admin")]
use crate::telemetry::operation_stats::{Ending, Side, Tally};
use crate::telemetry::{call_span, is_wanted, show};
use crate::transport::Peer;

/// The telemetry of a request that is being served.
#[derive(Default)]
pub(crate) struct RequestSpan {
    /// `None`: no subscriber enables it.
    span: Option<Span>,
    /// The trace that the servant's calls continue.
    context: Option<TraceContext>,
    #[cfg(feature = "admin")]
    tally: Option<Tally>,
}

impl RequestSpan {
    pub(crate) fn new(span: Span, context: Option<TraceContext>) -> Self {
        let span = (!span.is_disabled()).then_some(span);
        Self {
            span,
            context,
            #[cfg(feature = "admin")]
            tally: None,
        }
    }

    /// Counts the request for the admin endpoint, if there is one.
    #[cfg(feature = "admin")]
    #[inline]
    pub(crate) fn counted(mut self, orb: &Shared, interface: &str, operation: &str) -> Self {
        self.tally = orb.calls().map(|calls| Tally::begin(calls, Side::Served, interface, operation));
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
        let (wanted, trace) = (is_wanted(), TraceContext::among(contexts));
        if !wanted {
            return Self::new(Span::none(), trace);
        }
        Self::begun(orb, trace, peer, interface(), operation())
    }

    #[cold]
    fn begun(
        orb: &Shared,
        trace: Option<TraceContext>,
        peer: &Peer,
        interface: &str,
        operation: &str,
    ) -> Self {
        // The current span of the reading task is unrelated to the caller, so the span has no parent.
        let span = call_span!(true, "zorb.server", "server", None, interface, operation);
        span.record("network.peer.address", display(peer));
        let context = match (orb.propagator(), trace) {
            (_, trace) if span.is_disabled() => trace,
            (Some(ids), Some(trace)) => {
                ids.0.extract(&span, &trace);
                Some(trace)
            }
            (Some(_), None) => None,
            (None, trace) => {
                let context = trace.map_or_else(TraceContext::begin, |trace| trace.child());
                show(&span, &context);
                Some(context)
            }
        };
        Self::new(span, context)
    }

    /// Returns the trace that the servant's calls continue.
    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        self.context.as_ref()
    }

    /// Returns the span, to be entered while the request itself is lent.
    #[inline]
    pub(crate) fn kept(&self) -> Kept {
        self.span.clone()
    }

    /// Records a user exception of the servant.
    #[cold]
    pub(crate) fn user_exception(&self, id: &str) {
        #[cfg(feature = "admin")]
        self.ends(Ending::UserException);
        if let Some(span) = &self.span {
            span.record("rpc.response.status_code", "USER_EXCEPTION");
            span.record("error.type", id);
        }
    }

    /// Records a system exception of the servant, or its failure to complete.
    #[cold]
    pub(crate) fn system_exception(&self, exception: &SystemException) {
        #[cfg(feature = "admin")]
        self.ends(match exception.kind {
            SystemExceptionKind::BadOperation => Ending::Unknown,
            _ => Ending::Failure,
        });
        if let Some(span) = &self.span {
            raised(span, exception);
        }
    }

    /// Records the exception of a servant in this process, by its text: `TRANSIENT (..)`, `Broke { .. }`.
    #[cold]
    pub(crate) fn local_exception(&self, exception: &dyn std::fmt::Display) {
        if !self.is_kept() {
            return;
        }
        let mut name = FirstWord::default();
        // Writing stops with an error after the first word.
        let _ = write!(name, "{exception}");
        let FirstWord(name) = &name;
        let system = SystemExceptionKind::from_name(name).is_some();
        #[cfg(feature = "admin")]
        self.ends(if system { Ending::Failure } else { Ending::UserException });
        let Some(span) = &self.span else { return };
        let status = if system { "SYSTEM_EXCEPTION" } else { "USER_EXCEPTION" };
        span.record("rpc.response.status_code", status);
        span.record("error.type", name.as_str());
        span.record("otel.status_code", "ERROR");
    }

    /// Records that the servant returned results.
    #[inline]
    pub(crate) fn results(&self) {
        if let Some(span) = &self.span {
            span.record("rpc.response.status_code", "NO_EXCEPTION");
        }
    }

    /// Returns whether the outcome is recorded.
    fn is_kept(&self) -> bool {
        #[cfg(feature = "admin")]
        if self.tally.is_some() {
            return true;
        }
        self.span.is_some()
    }

    #[cfg(feature = "admin")]
    fn ends(&self, ending: Ending) {
        if let Some(tally) = &self.tally {
            tally.ends(ending);
        }
    }

    /// Counts the request, after its outcome is known or it was dropped.
    #[inline]
    pub(crate) fn count(&self) {
        #[cfg(feature = "admin")]
        if let Some(tally) = &self.tally {
            tally.count();
        }
    }

    /// Ends the span, even if the request is still held.
    #[inline]
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }
}

/// The first word of a text, which may be long.
#[derive(Default)]
struct FirstWord(String);

impl fmt::Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        self.0.push_str(text.get(..end.unwrap_or(text.len())).unwrap_or_default());
        if end.is_none() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// The span that is entered around a servant.
pub(crate) type Kept = Option<Span>;

/// Runs `f` inside the span.
#[inline]
pub(crate) fn within<R>(span: Kept, f: impl FnOnce() -> R) -> R {
    match span {
        Some(span) => span.in_scope(f),
        None => f(),
    }
}

/// Records a system exception as the outcome.
#[cold]
pub(crate) fn raised(span: &Span, exception: &SystemException) {
    span.record("rpc.response.status_code", "SYSTEM_EXCEPTION");
    span.record("error.type", exception.kind.name());
    span.record("corba.completed", display(exception.completed));
    span.record("otel.status_code", "ERROR");
}

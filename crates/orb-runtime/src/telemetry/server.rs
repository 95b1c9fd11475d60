//! A request that somebody looks on at, at its server.

use std::fmt::{self, Write as _};

use giop_codec::exception::{SystemException, SystemExceptionKind};
use giop_codec::giop::ServiceContexts;
use tracing::Span;
use tracing::field::display;

use super::{TraceContext, call_span, is_wanted, show};
#[cfg(feature = "admin")]
use crate::admin::calls::{Ending, Side, Tally};
use crate::orb::OrbCore;
use crate::transport::Peer;

/// What is kept of a request that is served.
#[derive(Default)]
pub(crate) struct Seen {
    /// `None`: nobody wants it.
    span: Option<Span>,
    /// What calls made by the servant belong to.
    context: Option<TraceContext>,
    #[cfg(feature = "admin")]
    tally: Option<Tally>,
}

impl Seen {
    pub(super) fn new(span: Span, context: Option<TraceContext>) -> Self {
        let span = (!span.is_disabled()).then_some(span);
        Self {
            span,
            context,
            #[cfg(feature = "admin")]
            tally: None,
        }
    }

    /// The same, counted for the admin endpoint if there is one.
    #[cfg(feature = "admin")]
    #[inline]
    pub(crate) fn counted(mut self, orb: &OrbCore, interface: &str, operation: &str) -> Self {
        self.tally = orb.calls().map(|calls| Tally::begin(calls, Side::Served, interface, operation));
        self
    }

    /// A request gets to its servant.
    #[inline]
    pub(crate) fn begin<'a>(
        orb: &OrbCore,
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
        orb: &OrbCore,
        trace: Option<TraceContext>,
        peer: &Peer,
        interface: &str,
        operation: &str,
    ) -> Self {
        // Where the connection is read says nothing of who calls.
        let span = call_span!(true, "zorb.server", "server", None, interface, operation);
        span.record("network.peer.address", display(peer));
        let context = match (&orb.config.propagate, trace) {
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

    /// What calls made by the servant belong to.
    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        self.context.as_ref()
    }

    /// The same, to be entered where the request itself is lent.
    #[inline]
    pub(crate) fn kept(&self) -> Kept {
        self.span.clone()
    }

    /// The servant raised one of its own exceptions.
    #[cold]
    pub(crate) fn user_exception(&self, id: &str) {
        #[cfg(feature = "admin")]
        self.ends(Ending::UserException);
        if let Some(span) = &self.span {
            span.record("rpc.response.status_code", "USER_EXCEPTION");
            span.record("error.type", id);
        }
    }

    /// The servant raised a system exception, or did not get to an end.
    #[cold]
    pub(crate) fn system_exception(&self, exception: &SystemException) {
        #[cfg(feature = "admin")]
        self.ends(match exception.kind {
            SystemExceptionKind::BadOperation => Ending::Unknown,
            _ => Ending::Failure,
        });
        if let Some(span) = &self.span {
            super::client::raised(span, exception);
        }
    }

    /// A servant in this process raised what says so of itself: `TRANSIENT (..)`, `Broke { .. }`.
    #[cold]
    pub(crate) fn local_exception(&self, exception: &dyn std::fmt::Display) {
        if !self.is_kept() {
            return;
        }
        let mut name = FirstWord::default();
        // It fails where the word ends.
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

    /// The servant is done.
    #[inline]
    pub(crate) fn results(&self) {
        if let Some(span) = &self.span {
            span.record("rpc.response.status_code", "NO_EXCEPTION");
        }
    }

    /// Whether how it ends is kept anywhere.
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

    /// The outcome is there, or will never be.
    #[inline]
    pub(crate) fn count(&self) {
        #[cfg(feature = "admin")]
        if let Some(tally) = &self.tally {
            tally.count();
        }
    }

    /// The outcome is there: the span ends, though the request may be held on to.
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

/// What is entered around a servant.
pub(crate) type Kept = Option<Span>;

/// Runs `f` inside of it.
#[inline]
pub(crate) fn within<R>(span: Kept, f: impl FnOnce() -> R) -> R {
    match span {
        Some(span) => span.in_scope(f),
        None => f(),
    }
}

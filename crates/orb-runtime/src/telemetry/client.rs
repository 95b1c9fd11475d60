//! A call that somebody looks on at, at its client.

use giop_codec::exception::SystemException;
use giop_codec::giop::{ContextId, ReplyStatus, ServiceContext, ServiceContexts};
use giop_proto::Reply;
use tracing::Span;
use tracing::field::display;

use super::{Seen, TraceContext, call_span, is_wanted, show};
#[cfg(feature = "admin")]
use crate::admin::calls::{Ending, Side, Tally};
use crate::invoke::Called;
use crate::orb::OrbCore;
use crate::reference::{ObjectRef, Reference};
use crate::serve::current_trace;
use crate::transport::Peer;

/// A call from its beginning to its outcome. Dropped before that, it was given up.
pub(crate) struct Outbound {
    span: Span,
    /// What its requests carry.
    context: Option<ServiceContext>,
    over: bool,
    #[cfg(feature = "admin")]
    tally: Option<Tally>,
}

/// What an attempt to make a call tells whoever looks on.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a>(Option<&'a Outbound>);

impl<'a> Watch<'a> {
    pub(crate) const NOBODY: Self = Self(None);

    pub(crate) fn by(outbound: &'a Outbound) -> Self {
        Self(Some(outbound))
    }

    /// What the request carries for it.
    #[inline]
    pub(crate) fn context(self) -> Option<&'a ServiceContext> {
        self.0?.context.as_ref()
    }

    /// Where the call goes is known now, or goes elsewhere.
    #[inline]
    pub(crate) fn sent_to(self, peer: &Peer) {
        if let Some(call) = self.0 {
            call.span.record("network.peer.address", display(peer));
        }
    }
}

impl Outbound {
    /// A call begins. `None`: nobody looks on, and it belongs to no trace.
    #[inline]
    pub(crate) fn begin(target: &ObjectRef, operation: &Called<'_>) -> Option<Box<Self>> {
        let (wanted, trace) = (is_wanted(), current_trace());
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
        operation: &Called<'_>,
        wanted: bool,
        trace: Option<TraceContext>,
    ) -> Option<Box<Self>> {
        // What the reference says goes before what runs here: whoever passes a call on says whose it is.
        let own = &target.options().contexts;
        let given = own.iter().any(|context| context.id == ContextId::ZORB_TRACE);
        let trace = if given && !wanted {
            // It goes along as it is.
            None
        } else if given {
            TraceContext::among(&ServiceContexts::from(&**own))
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

    /// A reply came, or nothing can come any more.
    pub(crate) fn replied(&mut self, outcome: Result<&Reply, &SystemException>) {
        self.over = true;
        match outcome {
            Ok(reply) if reply.status() == ReplyStatus::UserException => {
                #[cfg(feature = "admin")]
                self.count(Ending::UserException);
                self.span.record("rpc.response.status_code", "USER_EXCEPTION");
                self.span.record("error.type", reply.body().read_str_ascii().unwrap_or("?"));
                self.span.record("otel.status_code", "ERROR");
            }
            Ok(_) => {
                #[cfg(feature = "admin")]
                self.count(Ending::Results);
                self.span.record("rpc.response.status_code", "NO_EXCEPTION");
            }
            Err(exception) => {
                #[cfg(feature = "admin")]
                self.count(Ending::Failure);
                raised(&self.span, exception);
            }
        }
    }

    /// For the admin endpoint.
    #[cfg(feature = "admin")]
    fn count(&self, ending: Ending) {
        if let Some(tally) = &self.tally {
            tally.ends(ending);
            tally.count();
        }
    }

    /// A call without a reply is sent, or is not.
    pub(crate) fn sent(&mut self, outcome: Result<(), &SystemException>) {
        self.over = true;
        #[cfg(feature = "admin")]
        self.count(if outcome.is_ok() { Ending::Results } else { Ending::Failure });
        if let Err(exception) = outcome {
            raised(&self.span, exception);
        }
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        if !self.over {
            #[cfg(feature = "admin")]
            self.count(Ending::Failure);
            self.span.record("error.type", "cancelled");
            self.span.record("otel.status_code", "ERROR");
        }
    }
}

/// A call within this process: its span, and what its servant's calls go on with.
pub(crate) fn local(target: &ObjectRef, operation: &Called<'_>) -> Seen {
    let (wanted, trace) = (is_wanted(), current_trace());
    if !wanted && trace.is_none() {
        #[cfg(feature = "admin")]
        return Seen::default().counted(target.orb(), target.repository_id(), operation.name);
        #[cfg(not(feature = "admin"))]
        return Seen::default();
    }
    let span =
        call_span!(wanted, "zorb.local", "internal", Span::current(), target.repository_id(), operation.name);
    span.record("network.peer.address", display(Peer::Local));
    let context = context_of(&span, target.orb(), trace);
    let seen = Seen::new(span, context);
    #[cfg(feature = "admin")]
    let seen = seen.counted(target.orb(), target.repository_id(), operation.name);
    seen
}

/// What a call of that span belongs to, when what runs here belongs to `trace`.
fn context_of(span: &Span, orb: &OrbCore, trace: Option<TraceContext>) -> Option<TraceContext> {
    if span.is_disabled() {
        // Whoever is called goes on with what this was called by.
        return trace;
    }
    if let Some(ids) = &orb.config.propagate {
        return ids.0.inject(span).or(trace);
    }
    let context = trace.map_or_else(TraceContext::begin, |trace| trace.child());
    show(span, &context);
    Some(context)
}

/// A system exception is the outcome.
#[cold]
pub(super) fn raised(span: &Span, exception: &SystemException) {
    span.record("rpc.response.status_code", "SYSTEM_EXCEPTION");
    span.record("error.type", exception.kind.name());
    span.record("corba.completed", display(exception.completed));
    span.record("otel.status_code", "ERROR");
}

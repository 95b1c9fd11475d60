//! Who looks on at calls: spans of the `tracing` facade, and the trace that a call belongs to (feature `tracing`).
//!
//! Each call is a span at the client (`zorb.client`), one at the server (`zorb.server`), and one alone where both are in this process
//! (`zorb.local`); their target is `zorb::calls`, their level info. Fields are those of OpenTelemetry's conventions for RPC:
//!
//! | field | what it says |
//! |---|---|
//! | `otel.name`, `rpc.method` | interface and operation, `Bank.Account/deposit` |
//! | `otel.kind` | `client`, `server` or `internal` |
//! | `rpc.system.name` | `corba` |
//! | `corba.repository_id` | the interface, as the reference or the servant says; empty where the reference does not |
//! | `network.peer.address` | the other side, `127.0.0.1:2809`, `uiop://PATH`; at a client once it is known |
//! | `trace_id`, `span_id` | the span in the trace that zorb made, where no [`Propagate`] has ids of its own |
//! | `rpc.response.status_code` | `NO_EXCEPTION`, `USER_EXCEPTION`, `SYSTEM_EXCEPTION` |
//! | `error.type` | the repository id of a user exception, the name of a system exception; `cancelled` where the caller gave up |
//! | `corba.completed` | of a system exception: `COMPLETED_NO`, `COMPLETED_YES`, `COMPLETED_MAYBE` |
//! | `otel.status_code` | `ERROR`; at a server not for user exceptions, which are what the servant meant to say |
//!
//! A span begins when the operation is called, or when the servant begins, and ends with its outcome. Requests that get to no servant have
//! a span at the client alone. A servant runs inside its span: spans and calls that it makes are below that.
//!
//! The trace goes along in a service context ([`TraceContext`]). Without a subscriber that wants these spans nothing is sent, but that a servant's calls
//! carry on the trace of its request. The first span that has no trace begins one.

mod client;
mod context;
mod server;

use std::fmt;

use giop_codec::Printable;

pub use context::TraceContext;

pub(crate) use client::{Outbound, Watch, local};
pub(crate) use server::{Seen, within};

/// The target of all spans, for filters of subscribers.
pub const TARGET: &str = "zorb::calls";

/// Where the ids of spans come from, if not from zorb: the bridge to a tracing system that has its own, such as OpenTelemetry.
///
/// For `tracing-opentelemetry`, `inject` gives the span context of `span.context()`, and `extract` makes `context`, as a remote span
/// context, the parent by `span.set_parent(..)`. Both are called for enabled spans alone, before these are entered.
///
/// Both run on the threads of calls: they must not block.
pub trait Propagate: Send + Sync + 'static {
    /// What a call that is about to be made sends: the context of its own span. `None`: nothing.
    fn inject(&self, span: &tracing::Span) -> Option<TraceContext>;

    /// A request came that belongs to a trace: its span gets that parent.
    fn extract(&self, span: &tracing::Span, context: &TraceContext);
}

/// A [`Propagate`] of an ORB.
#[derive(Clone)]
pub(crate) struct Propagator(pub(crate) std::sync::Arc<dyn Propagate>);

impl fmt::Debug for Propagator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Propagator")
    }
}

/// `Bank.Account/deposit` of `IDL:Bank/Account:1.0`; other ids as they are. Ids and operations come from peers: they are [`Printable`].
struct Method<'a> {
    interface: &'a str,
    operation: &'a str,
}

impl fmt::Display for Method<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.interface.is_empty() {
            let name = self.interface.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':'));
            match name {
                Some((name, _)) => {
                    for (at, part) in name.split('/').enumerate() {
                        write!(f, "{}{}", if at == 0 { "" } else { "." }, Printable::new(part))?;
                    }
                }
                None => Printable::new(self.interface).fmt(f)?,
            }
            f.write_str("/")?;
        }
        Printable::new(self.operation).fmt(f)
    }
}

/// Sixteen digits of a span's id, thirty-two of a trace's.
struct Id<'a>(&'a [u8]);

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Writes the ids that zorb made into a span, so that logs can be joined by them.
fn show(span: &tracing::Span, context: &TraceContext) {
    span.record("trace_id", tracing::field::display(Id(&context.trace_id())));
    span.record("span_id", tracing::field::display(Id(&context.span_id())));
}

/// Whether somebody wants the spans of calls.
#[inline]
fn is_wanted() -> bool {
    tracing::enabled!(target: "zorb::calls", tracing::Level::INFO) && is_heard()
}

/// What is wanted on other threads alone passes for wanted here, too.
#[cold]
fn is_heard() -> bool {
    tracing::dispatcher::get_default(|here| !here.is::<tracing::subscriber::NoSubscriber>())
}

/// The span of a call. A macro, because its name must be a constant.
macro_rules! call_span {
    ($wanted:expr, $name:literal, $kind:literal, $parent:expr, $interface:expr, $operation:expr) => {{
        let (interface, operation): (&str, &str) = ($interface, $operation);
        let method = $crate::telemetry::Method { interface, operation };
        if !$wanted { tracing::Span::none() } else { tracing::info_span!(
            target: "zorb::calls",
            parent: $parent,
            $name,
            otel.name = %method,
            otel.kind = $kind,
            rpc.system.name = "corba",
            rpc.method = %method,
            corba.repository_id = interface,
            network.peer.address = tracing::field::Empty,
            trace_id = tracing::field::Empty,
            span_id = tracing::field::Empty,
            rpc.response.status_code = tracing::field::Empty,
            error.type = tracing::field::Empty,
            corba.completed = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        ) }
    }};
}
use call_span;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_by_interface_and_operation() {
        let method = |interface, operation| Method { interface, operation }.to_string();
        assert_eq!(method("IDL:Bank/Account:1.0", "deposit"), "Bank.Account/deposit");
        assert_eq!(
            method("IDL:omg.org/CosNaming/NamingContext:1.0", "bind"),
            "omg.org.CosNaming.NamingContext/bind"
        );
        assert_eq!(method("RMI:java.lang.Object:0", "x"), "RMI:java.lang.Object:0/x");
        assert_eq!(method("", "x"), "x");
    }
}

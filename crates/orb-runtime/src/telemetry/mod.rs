//! Telemetry of calls: spans of the `tracing` facade, and trace contexts (feature `tracing`).
//!
//! Each call has a span at the client (`zorb.client`) and a span at the server (`zorb.server`). A call within
//! this process has only one span (`zorb.local`). The target of these spans is `zorb::calls`, and their level
//! is INFO. The fields follow OpenTelemetry's conventions for RPC:
//!
//! | field | value |
//! |---|---|
//! | `otel.name`, `rpc.method` | interface and operation, `Bank.Account/deposit` |
//! | `otel.kind` | `client`, `server` or `internal` |
//! | `rpc.system.name` | `corba` |
//! | `corba.repository_id` | the interface according to the reference or the servant; empty if the reference has none |
//! | `network.peer.address` | the peer, `127.0.0.1:2809`, `uiop://PATH`; at a client once it is known |
//! | `trace_id`, `span_id` | the span in the trace, if zorb generated the ids (no [`Propagate`]) |
//! | `rpc.response.status_code` | `NO_EXCEPTION`, `USER_EXCEPTION`, `SYSTEM_EXCEPTION` |
//! | `error.type` | the repository id of a user exception (in `zorb.local` its name), the name of a system exception; `cancelled` if the caller cancelled |
//! | `corba.completed` | the status of a system exception, not in `zorb.local`: `COMPLETED_NO`, `COMPLETED_YES`, `COMPLETED_MAYBE` |
//! | `otel.status_code` | `ERROR`; not for user exceptions in `zorb.server`, which are intended results |
//!
//! A span at the client begins with the call, and a span at the server when the servant starts. Requests that
//! reach no servant have no span there. A servant's spans and calls are children of its request's span.
//!
//! If a subscriber enables these spans, each call sends its [`TraceContext`] in a service context. Otherwise,
//! only calls that a servant makes send one: that of the servant's request. A span begins a new trace if its
//! request or the calling servant has no trace context.

pub(crate) mod context;
#[cfg(feature = "admin")]
pub(crate) mod latency;
#[cfg(feature = "admin")]
pub(crate) mod operation_stats;
pub(crate) mod server;

use std::fmt;

use giop_codec::Printable;

pub use context::TraceContext;
pub(crate) use server::{RequestSpan, in_span};

use crate::runtime::Shared;

/// The target of all spans, for the filters of subscribers.
pub const TARGET: &str = "zorb::calls";

/// A bridge to a tracing system that generates the ids of spans, such as OpenTelemetry.
///
/// With `tracing-opentelemetry`, `inject` returns the span context of `span.context()`, and `extract` calls
/// `span.set_parent(..)` to make `context` the remote parent.
pub trait Propagate: Send + Sync + 'static {
    /// Returns the trace context of a call's span. It is sent with the call, unless it is `None`.
    fn inject(&self, span: &tracing::Span) -> Option<TraceContext>;

    /// Sets the parent of the span of a request that was received with a trace context.
    fn extract(&self, span: &tracing::Span, context: &TraceContext);
}

#[derive(Clone)]
pub(crate) struct Propagator(pub(crate) std::sync::Arc<dyn Propagate>);

impl fmt::Debug for Propagator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Propagator")
    }
}

impl Shared {
    pub(crate) fn propagator(&self) -> Option<&Propagator> {
        self.extensions.propagator.get()
    }
}

/// Formats an operation with its interface: `Bank.Account/deposit` for `IDL:Bank/Account:1.0`.
pub(crate) struct Method<'a> {
    pub(crate) interface: &'a str,
    pub(crate) operation: &'a str,
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

/// Formats an id in hexadecimal: 16 digits for a span, 32 for a trace.
struct HexId<'a>(&'a [u8]);

impl fmt::Display for HexId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

pub(crate) fn record_ids(span: &tracing::Span, context: &TraceContext) {
    span.record("trace_id", tracing::field::display(HexId(&context.trace_id())));
    span.record("span_id", tracing::field::display(HexId(&context.span_id())));
}

#[inline]
pub(crate) fn spans_enabled() -> bool {
    tracing::enabled!(target: "zorb::calls", tracing::Level::INFO) && has_subscriber()
}

/// Returns whether this thread has a subscriber, because `tracing::enabled!` asks those of all threads.
#[cold]
fn has_subscriber() -> bool {
    tracing::dispatcher::get_default(|dispatch| !dispatch.is::<tracing::subscriber::NoSubscriber>())
}

/// Creates the span of a call. This is a macro because the name of a span must be a constant.
macro_rules! call_span {
    ($is_enabled:expr, $name:literal, $kind:literal, $parent:expr, $interface:expr, $operation:expr) => {{
        let (interface, operation): (&str, &str) = ($interface, $operation);
        let method = $crate::telemetry::Method { interface, operation };
        if !$is_enabled { tracing::Span::none() } else { tracing::info_span!(
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
pub(crate) use call_span;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_formatted_with_interface_and_operation() {
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

//! Spans of calls, and their traces, between ORBs and on the wire.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod spans;
mod wire;

use std::sync::{Arc, Mutex};

use spans::{Seen, Spans};
use zorb::prelude::*;
use zorb::telemetry::{Propagate, TraceContext};
use zorb::wire::ContextId;

zorb::idl! {
    module Shop {
        exception SoldOut { long left; };
        interface Till {
            long pay(in long cents) raises (SoldOut);
            oneway void note(in long cents);
            string trace();
            void wait();
        };
    };
}

const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Forwards calls to the next till, if there is one.
#[derive(Default)]
struct Till {
    behind: Option<shop::TillRef>,
}

impl shop::TillServant for Till {
    async fn pay(&self, cents: i32) -> Result<i32, shop::till::PayError> {
        tracing::info_span!("in the servant").in_scope(|| {});
        match (&self.behind, cents) {
            (_, 0) => Err(shop::SoldOut { left: 0 }.into()),
            (_, 1) => Err(SystemException::no_resources().into()),
            (_, 2) => panic!("it was told to"),
            (Some(behind), cents) => behind.pay(cents).await,
            (None, cents) => Ok(cents),
        }
    }

    async fn note(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    async fn trace(&self) -> Result<String, SystemException> {
        match &self.behind {
            Some(behind) => behind.trace().await,
            None => {
                let request = zorb::request();
                let trace = request.trace();
                Ok(trace.map_or(String::new(), |trace| format!("{trace} {}", trace.tracestate())))
            }
        }
    }

    async fn wait(&self) -> Result<(), SystemException> {
        std::future::pending().await
    }
}

/// Two ORBs, and a till at one of them for the other.
struct Pair {
    pair: zorb::testing::Pair,
    till: shop::TillRef,
}

impl Pair {
    async fn of(client: zorb::OrbBuilder, server: zorb::OrbBuilder, till: Till) -> Self {
        let pair = zorb::testing::pair_of(client, server);
        let here: shop::TillRef = pair.server.activate(till).unwrap();
        let till = pair.client.resolve(&here.to_string()).await.unwrap();
        Self { pair, till }
    }

    async fn new(till: Till) -> Self {
        Self::of(Orb::builder(), Orb::builder(), till).await
    }
}

/// Lets the remaining work of calls complete.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn id(text: &str) -> String {
    text.split('-').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn a_call_is_a_span_at_its_client_and_one_at_its_server() {
    let calls = Pair::new(Till::default()).await;
    let (spans, _watching) = Spans::watch();
    let outer = tracing::info_span!("outer");
    let entered = outer.clone();
    tracing::Instrument::instrument(async { calls.till.pay(7).await.unwrap() }, entered).await;
    settle().await;
    let (client, server) = (spans.one("zorb.client"), spans.one("zorb.server"));
    for (span, kind) in [(&client, "client"), (&server, "server")] {
        assert_eq!(span.field("otel.kind"), kind);
        assert_eq!(span.field("otel.name"), "Shop.Till/pay");
        assert_eq!(span.field("rpc.method"), "Shop.Till/pay");
        assert_eq!(span.field("rpc.system.name"), "corba");
        assert_eq!(span.field("corba.repository_id"), "IDL:Shop/Till:1.0");
        assert_eq!(span.field("network.peer.address"), "in-memory pipe");
        assert_eq!(span.field("rpc.response.status_code"), "NO_EXCEPTION");
        assert_eq!((span.field("error.type"), span.field("otel.status_code")), ("", ""));
        assert!(span.ended, "{span:?}");
    }
    assert_eq!(client.parent, Some(spans.one("outer").id), "it is below what its caller is in");
    assert_eq!(server.parent, None, "the connection's task is nobody's caller");
    assert_eq!(spans.one("in the servant").parent, Some(server.id));
    assert_eq!(client.field("trace_id"), server.field("trace_id"));
    assert_eq!((client.field("trace_id").len(), client.field("span_id").len()), (32, 16));
    assert_ne!(client.field("span_id"), server.field("span_id"));
    drop(calls.pair);
}

#[tokio::test]
async fn calls_of_a_servant_carry_on_the_trace_of_its_request() {
    let back = Pair::new(Till::default()).await;
    let front = Pair::new(Till { behind: Some(back.till.clone()) }).await;
    let (spans, _watching) = Spans::watch();
    let told = front.till.trace().await.unwrap();
    let (clients, servers) = (spans.named("zorb.client"), spans.named("zorb.server"));
    let of = |span: &Seen| span.field("trace_id").to_owned();
    assert_eq!((clients.len(), servers.len()), (2, 2));
    let (first, second) = (&clients[0], &clients[1]);
    assert_eq!(second.parent, Some(servers[0].id), "the servant's call is within its span");
    assert!(
        clients.iter().chain(&servers).all(|span| of(span) == of(first)),
        "{spans:?}",
        spans = spans.all()
    );
    assert_eq!(id(&told), of(first));
    // A second call of the same client is a separate trace.
    let again = front.till.trace().await.unwrap();
    assert_ne!(id(&again), of(first));
}

#[tokio::test]
async fn servant_without_a_subscriber_forwards_the_trace() {
    let back = Pair::new(Till::default()).await;
    let front = Pair::new(Till { behind: Some(back.till.clone()) }).await;
    let given = TraceContext::parse(TEXT, "vendor=1").unwrap();
    let till = front.till.with_context(ContextId::ZORB_TRACE, given.to_service_context().unwrap().data);
    assert_eq!(till.trace().await.unwrap(), format!("{TEXT} vendor=1"));
    // Without a subscriber and without an incoming trace, nothing is sent.
    assert_eq!(front.till.trace().await.unwrap(), "");
}

#[tokio::test]
async fn a_trace_that_a_reference_is_given_is_the_parent_of_its_calls() {
    let calls = Pair::new(Till::default()).await;
    let given = TraceContext::parse(TEXT, "vendor=1").unwrap();
    let till = calls.till.with_context(ContextId::ZORB_TRACE, given.to_service_context().unwrap().data);
    let (spans, _watching) = Spans::watch();
    let told = till.trace().await.unwrap();
    let (client, server) = (spans.one("zorb.client"), spans.one("zorb.server"));
    assert_eq!(told, format!("00-{}-{}-01 vendor=1", id(TEXT), server.field("span_id")));
    assert_eq!(client.field("trace_id"), id(TEXT));
    assert_ne!(client.field("span_id"), "00f067aa0ba902b7");
}

#[tokio::test]
async fn what_is_no_trace_is_none() {
    let calls = Pair::new(Till::default()).await;
    let long = "x=".to_owned() + &"y".repeat(1000);
    let good = TraceContext::parse(TEXT, "").unwrap().to_service_context().unwrap().data;
    let mut bad = vec![Bytes::new(), Bytes::from_static(b"\0"), Bytes::from_static(&[0xff; 100])];
    bad.extend((0..good.len() - 6).map(|cut| good.slice(..cut)));
    for bad in bad {
        let till = calls.till.with_context(ContextId::ZORB_TRACE, bad.clone());
        assert_eq!(till.trace().await.unwrap(), "", "{bad:?}");
        let (_spans, _watching) = Spans::watch();
        assert_eq!(till.pay(7).await.unwrap(), 7);
    }
    let mut state = good.to_vec();
    state.truncate(state.len() - 5);
    state.resize(state.len().next_multiple_of(4), 0);
    let octets = if cfg!(target_endian = "little") { 1003_u32.to_le_bytes() } else { 1003_u32.to_be_bytes() };
    state.extend(octets);
    state.extend(long.as_bytes());
    state.push(0);
    let till = calls.till.with_context(ContextId::ZORB_TRACE, state);
    assert_eq!(till.trace().await.unwrap(), format!("{TEXT} "), "the state is too long, the rest counts");
}

#[tokio::test]
async fn spans_say_how_calls_ended() {
    let calls = Pair::new(Till::default()).await;
    let ended = async |cents| {
        let (spans, _watching) = Spans::watch();
        calls.till.pay(cents).await.unwrap_err();
        settle().await;
        let said = |name: &str| {
            let span = spans.one(name);
            assert!(span.ended);
            let said = ["rpc.response.status_code", "error.type", "corba.completed", "otel.status_code"];
            said.map(|field| span.field(field).to_owned())
        };
        [said("zorb.client"), said("zorb.server")]
    };
    let broke = "IDL:Shop/SoldOut:1.0";
    assert_eq!(
        ended(0).await,
        [["USER_EXCEPTION", broke, "", "ERROR"], ["USER_EXCEPTION", broke, "", ""]],
        "what a servant says on purpose is no error of it"
    );
    let system = ["SYSTEM_EXCEPTION", "NO_RESOURCES", "COMPLETED_NO", "ERROR"];
    assert_eq!(ended(1).await, [system, system]);
    let panicked = ["SYSTEM_EXCEPTION", "UNKNOWN", "COMPLETED_MAYBE", "ERROR"];
    assert_eq!(ended(2).await, [panicked, panicked]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_says_so() {
    let calls = Pair::new(Till::default()).await;
    let (spans, _watching) = Spans::watch();
    tokio::time::timeout(Duration::from_secs(1), calls.till.wait()).await.unwrap_err();
    let client = spans.one("zorb.client");
    assert_eq!((client.field("error.type"), client.field("otel.status_code")), ("cancelled", "ERROR"));
    assert!(client.ended);
    let late = calls.till.with_timeout(Duration::from_secs(1)).wait().await.unwrap_err();
    assert_eq!(late.kind, SystemExceptionKind::Timeout);
    let client = spans.named("zorb.client").pop().unwrap();
    assert_eq!(client.field("error.type"), "TIMEOUT");
    assert_eq!(client.field("corba.completed"), "COMPLETED_MAYBE");
}

#[tokio::test]
async fn oneways_and_calls_within_a_process_are_spans_too() {
    let calls = Pair::new(Till::default()).await;
    let (spans, _watching) = Spans::watch();
    calls.till.note(1).await.unwrap();
    calls.till.pay(5).await.unwrap();
    settle().await;
    assert!(spans.named("zorb.server").iter().all(|span| span.ended));
    let named =
        |name| spans.named(name).iter().map(|span| span.field("rpc.method").to_owned()).collect::<Vec<_>>();
    assert_eq!(named("zorb.client"), ["Shop.Till/note", "Shop.Till/pay"]);
    assert_eq!(named("zorb.server"), ["Shop.Till/note", "Shop.Till/pay"]);

    let here: shop::TillRef = calls.pair.server.activate(Till { behind: Some(calls.till.clone()) }).unwrap();
    assert_eq!(here.pay(9).await.unwrap(), 9);
    let local = spans.one("zorb.local");
    assert_eq!((local.field("otel.kind"), local.field("network.peer.address")), ("internal", "this process"));
    assert_eq!(local.field("rpc.response.status_code"), "NO_EXCEPTION");
    let client = spans.named("zorb.client").pop().unwrap();
    assert_eq!(client.parent, Some(local.id));
    assert_eq!(client.field("trace_id"), local.field("trace_id"));
    here.pay(0).await.unwrap_err();
    assert_eq!(spans.named("zorb.local").pop().unwrap().field("rpc.response.status_code"), "USER_EXCEPTION");
}

/// Ids of another tracing system.
#[derive(Clone, Default)]
struct Ids(Arc<Mutex<Vec<(String, String)>>>);

impl Propagate for Ids {
    fn inject(&self, span: &tracing::Span) -> Option<TraceContext> {
        self.0.lock().unwrap().push((span.metadata().unwrap().name().to_owned(), String::new()));
        Some(TraceContext::parse(TEXT, "theirs=1").unwrap())
    }

    fn extract(&self, span: &tracing::Span, context: &TraceContext) {
        self.0.lock().unwrap().push((span.metadata().unwrap().name().to_owned(), context.to_string()));
    }
}

#[tokio::test]
async fn another_tracing_system_gives_its_ids_and_takes_those_of_callers() {
    let ids = Ids::default();
    let builder = || Orb::builder().propagate(ids.clone());
    let calls = Pair::of(builder(), builder(), Till::default()).await;
    calls.till.pay(7).await.unwrap();
    assert_eq!(*ids.0.lock().unwrap(), [], "nobody wants spans");
    let (spans, _watching) = Spans::watch();
    assert_eq!(calls.till.trace().await.unwrap(), format!("{TEXT} theirs=1"));
    let told = [("zorb.client".to_owned(), String::new()), ("zorb.server".to_owned(), TEXT.to_owned())];
    assert_eq!(*ids.0.lock().unwrap(), told);
    assert_eq!(spans.one("zorb.client").field("trace_id"), "", "the ids of spans are not zorb's");
}

//! Large messages that are sent in fragments: every kind of call, and other messages between the fragments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use test_support::{contents, transport};
use zorb::prelude::*;
use zorb::{Orb, SystemExceptionKind};

use contents::octets;

zorb::idl! {
    module Cut {
        struct Sample { short s; char c; long l; octet o; double d; };
        typedef sequence<Sample> Samples;
        typedef sequence<octet> Octets;
        exception Refused { Octets why; };
        interface Sink {
            Octets echo(in Octets octets) raises (Refused);
            Samples structs(in Samples samples);
            string text(in string text, in Samples samples, in Octets octets);
            oneway void push(in unsigned long number, in Octets octets);
            unsigned long pushed();
            void hold(in Octets octets);
            long add(in long a, in long b);
        };
    };
}

use cut::sink::EchoError;
use cut::{Refused, Sample, SinkRef, SinkServant};

/// The fragment size of both sides.
const SIZE: usize = 16 * 1024;

#[derive(Default)]
struct Servant {
    pushed: AtomicU32,
    /// Executions of `hold` in progress.
    held: Arc<AtomicU64>,
}

fn samples(n: usize) -> Vec<Sample> {
    (0..n).map(|i| Sample { s: i as i16, c: Char(i as u8), l: i as i32 * 77, o: 3, d: i as f64 }).collect()
}

impl SinkServant for Servant {
    async fn echo(&self, given: Bytes) -> Result<Bytes, EchoError> {
        if given.first() == Some(&255) {
            return Err(Refused { why: given }.into());
        }
        Ok(given)
    }
    async fn structs(&self, given: &[Sample]) -> Result<Vec<Sample>, SystemException> {
        Ok(given.to_vec())
    }
    async fn text(&self, text: &str, given: &[Sample], octets: Bytes) -> Result<String, SystemException> {
        Ok(format!("{text}{}{}", given.len(), octets.len()))
    }
    async fn push(&self, number: u32, given: Bytes) -> Result<(), SystemException> {
        assert!(given == octets(given.len()));
        assert_eq!(self.pushed.fetch_add(1, Ordering::Relaxed), number, "oneways keep their order");
        Ok(())
    }
    async fn pushed(&self) -> Result<u32, SystemException> {
        Ok(self.pushed.load(Ordering::Relaxed))
    }
    async fn hold(&self, _: Bytes) -> Result<(), SystemException> {
        self.held.fetch_add(1, Ordering::Relaxed);
        zorb::request().cancelled().await;
        self.held.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a + b)
    }
}

/// Returns a server, a client of it, and the target as seen by the client.
async fn orbs(servant: Servant) -> (Orb, Orb, SinkRef) {
    let listen = "iiop://127.0.0.1:0";
    let server = transport::builder().listen(listen).fragment_size(SIZE).build().await.unwrap();
    let client = transport::builder().fragment_size(SIZE).build().await.unwrap();
    let sink: SinkRef = server.activate(servant).unwrap();
    let sink = client.resolve(&sink.to_string()).await.unwrap();
    (server, client, sink)
}

// clause: giop.fragment.send, giop.fragment.join_1_2
#[tokio::test]
async fn requests_replies_and_exceptions_of_every_size_come_whole() {
    let (server, client, sink) = orbs(Servant::default()).await;
    for len in [0, 1, SIZE - 100, SIZE - 64, SIZE, 3 * SIZE - 7, 100_000, 1 << 20, 10 << 20] {
        assert!(sink.echo(octets(len)).await.unwrap() == octets(len), "{len} octets");
    }
    for count in [1, 700, 30_000, 200_000] {
        assert!(sink.structs(&samples(count)).await.unwrap() == samples(count), "{count} structs");
    }
    let all = sink.text("behind", &samples(40_000), octets(300_000)).await.unwrap();
    assert_eq!(all, "behind40000300000");
    let mut why = vec![255; 50_000];
    why[7] = 1;
    match sink.echo(why.clone()).await {
        Err(EchoError::Refused(refused)) => assert!(refused.why == why),
        other => panic!("{other:?}"),
    }
    for orb in [&client, &server] {
        let stats = orb.stats();
        assert!(stats.messages_out > 1000, "they leave in fragments: {stats:?}");
        assert_eq!((stats.stray_messages, stats.requests_refused), (0, 0));
    }
    transport::assert_used(&client);
}

// clause: giop.fragment.interleave
#[tokio::test]
async fn large_and_small_calls_of_one_connection_go_side_by_side() {
    let (_server, client, sink) = orbs(Servant::default()).await;
    sink.add(1, 2).await.unwrap();
    let large: Vec<_> = (0..12)
        .map(|i| {
            let sink = sink.clone();
            tokio::spawn(
                async move { sink.echo(octets(2_000_000 + i)).await.unwrap() == octets(2_000_000 + i) },
            )
        })
        .collect();
    for i in 0..200 {
        assert_eq!(sink.add(i, 1).await.unwrap(), i + 1);
    }
    for call in large {
        assert!(call.await.unwrap());
    }
    assert_eq!(client.stats().stray_messages, 0);
}

#[tokio::test]
async fn oneways_keep_their_order() {
    let (_server, client, sink) = orbs(Servant::default()).await;
    for number in 0..50 {
        let len = if number % 2 == 0 { 300_000 } else { 10 };
        sink.push(number, octets(len)).await.unwrap();
    }
    assert_eq!(sink.pushed().await.unwrap(), 50);
    assert!(client.stats().messages_out > 400, "they leave in fragments");
}

// clause: giop.cancel.fragments
#[tokio::test]
async fn calls_given_up_in_the_middle_leave_nothing_behind() {
    let held = Arc::new(AtomicU64::new(0));
    let (server, client, sink) = orbs(Servant { held: Arc::clone(&held), ..Servant::default() }).await;
    for round in 0u64..60 {
        let call = sink.hold(octets(4_000_000));
        let _ = tokio::time::timeout(Duration::from_micros(round * 150), call).await;
        assert_eq!(sink.add(1, 2).await.unwrap(), 3);
    }
    let late = sink.with_timeout(Duration::from_millis(20)).hold(octets(4_000_000)).await.unwrap_err();
    assert_eq!(late.kind, SystemExceptionKind::Timeout);
    assert_eq!(sink.add(1, 2).await.unwrap(), 3);
    for _ in 0..500 {
        if held.load(Ordering::Relaxed) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(held.load(Ordering::Relaxed), 0, "those that came whole were cancelled");
    assert_eq!((client.stats().stray_messages, server.stats().requests_refused), (0, 0));
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_that_closes_finishes_its_reply() {
    let (server, _client, sink) = orbs(Servant::default()).await;
    let call = tokio::spawn({
        let sink = sink.clone();
        async move { sink.echo(octets(10 << 20)).await }
    });
    while server.stats().messages_out < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.shutdown().await;
    assert!(call.await.unwrap().unwrap() == octets(10 << 20));
}

//! Counts copies in user space: none of bulk data by default, all of it in an ORB with copying enabled.

use test_support::transport;
use zorb::prelude::*;
use zorb::{OrbBuilder, Stats};

zorb::idl! {
    module Bulk {
        typedef sequence<octet> Octets;
        typedef sequence<double> Doubles;
        interface Sink {
            oneway void push(in Octets octets);
            oneway void push_doubles(in Doubles doubles);
            void settle();
            Octets echo(in Octets octets);
            Doubles echo_doubles(in Doubles doubles);
        };
    };
}

#[derive(Default)]
struct Sink;

impl bulk::SinkServant for Sink {
    async fn push(&self, octets: Bytes) -> Result<(), SystemException> {
        assert_eq!(octets.last(), Some(&7));
        Ok(())
    }
    async fn push_doubles(&self, doubles: Seq<f64>) -> Result<(), SystemException> {
        assert_eq!(doubles.last(), Some(&7.5));
        Ok(())
    }
    async fn settle(&self) -> Result<(), SystemException> {
        Ok(())
    }
    async fn echo(&self, octets: Bytes) -> Result<Bytes, SystemException> {
        Ok(octets)
    }
    async fn echo_doubles(&self, doubles: Seq<f64>) -> Result<Seq<f64>, SystemException> {
        Ok(doubles)
    }
}

struct Two {
    client: Orb,
    server: Orb,
    sink: bulk::SinkRef,
}

async fn two(build: impl Fn() -> OrbBuilder) -> Two {
    let server = build().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let published: bulk::SinkRef = server.activate_named("sink", Sink).unwrap();
    let client = build().build().await.unwrap();
    let sink = client.resolve(&published.to_string()).await.unwrap();
    Two { client, server, sink }
}

/// Returns what sender and receiver copied for `n` messages within a stream.
async fn steady(two: &Two, n: u64, send: impl AsyncFn(&bulk::SinkRef)) -> (u64, u64) {
    let round = async |n| {
        for _ in 0..n {
            send(&two.sink).await;
        }
        two.sink.settle().await.unwrap();
        (two.client.stats().bytes_copied_out, two.server.stats().bytes_copied_in)
    };
    let before = round(n).await;
    let after = round(n).await;
    (after.0 - before.0, after.1 - before.1)
}

/// Maximum size of a request's control part with its padding, bytes. A batch copies it.
const CONTROL: u64 = 128;

/// At the start and end of a stream, part of a message may be in a window with others.
const EDGE: u64 = 64 * 1024;

#[tokio::test]
async fn a_steady_bulk_stream_is_not_copied() {
    const N: u64 = 100;
    for size in [16 * 1024, 48_000, 64 * 1024, 100_000, 1 << 20] {
        let two = two(transport::builder).await;
        let mut octets = vec![1; size];
        octets[size - 1] = 7;
        let octets = Bytes::from(octets);
        let (sent, received) = steady(&two, N, async |sink| sink.push(octets.clone()).await.unwrap()).await;
        assert!(sent <= (N + 1) * CONTROL, "sent {size}: {sent}");
        assert!(received <= N * 12 + EDGE, "received {size}: {received}");

        let mut doubles = vec![1.5; size / 8];
        *doubles.last_mut().unwrap() = 7.5;
        let doubles = Seq::from(doubles);
        let (sent, received) =
            steady(&two, N, async |sink| sink.push_doubles(doubles.clone()).await.unwrap()).await;
        assert!(sent <= (N + 1) * CONTROL, "sent {size} octets of doubles: {sent}");
        assert!(received <= N * 12 + EDGE, "received {size} octets of doubles: {received}");
    }
}

#[tokio::test]
async fn a_copying_orb_copies_both_ways() {
    const N: u64 = 20;
    for size in [16 * 1024u64, 64 * 1024, 1 << 20] {
        let two = two(|| transport::builder().zero_copy(false)).await;
        let mut octets = vec![1; size as usize];
        octets[size as usize - 1] = 7;
        let octets = Bytes::from(octets);
        let (sent, received) = steady(&two, N, async |sink| sink.push(octets.clone()).await.unwrap()).await;
        assert!(sent >= N * size, "sent {size}: {sent}");
        assert!(received >= N * size, "received {size}: {received}");
        assert!(received <= 2 * N * size + 2 * EDGE, "once into its message, not more: {received}");
    }
}

#[tokio::test]
async fn a_copying_orb_gives_the_same_answers() {
    let plain = transport::builder;
    let copying = || transport::builder().zero_copy(false);
    let orbs: [(OrbBuilder, OrbBuilder); 3] =
        [(copying(), plain()), (plain(), copying()), (copying(), copying())];
    for (client, server) in orbs {
        let pair = zorb::testing::pair_of(client, server);
        let published: bulk::SinkRef = pair.server.activate_named("sink", Sink).unwrap();
        let sink: bulk::SinkRef = pair.client.resolve(&published.to_string()).await.unwrap();
        for len in [0, 1, 100, 4096, 16_000, 16_384, 65_524, 65_536, 70_000, 200_000, 1_000_000] {
            let octets: Bytes = (0..len).map(|i| (i * 7) as u8).collect();
            assert_eq!(sink.echo(octets.clone()).await.unwrap(), octets, "{len}");
            let doubles: Seq<f64> = (0..len / 8).map(|i| i as f64).collect();
            assert_eq!(sink.echo_doubles(doubles.clone()).await.unwrap(), doubles, "{len}");
        }
        // Many concurrent calls, of all sizes.
        let calls = (0..50usize).map(|i| {
            let (sink, octets) = (sink.clone(), Bytes::from(vec![i as u8; i * 3011]));
            tokio::spawn(async move { assert_eq!(sink.echo(octets.clone()).await.unwrap(), octets) })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_closed_connections_counted_stays() {
    let pair = zorb::testing::pair();
    let published: bulk::SinkRef = pair.server.activate_named("sink", Sink).unwrap();
    let sink: bulk::SinkRef = pair.client.resolve(&published.to_string()).await.unwrap();
    sink.echo(Bytes::from(vec![1; 100_000])).await.unwrap();
    let open: Stats = pair.client.stats();
    assert_eq!((open.messages_in, open.messages_out), (1, 1));
    assert!(open.bytes_in > 100_000 && open.bytes_out > 100_000);
    pair.client.shutdown().await;
    pair.server.shutdown().await;
    assert_eq!(pair.client.open_connections(), 0);
    let closed = pair.client.stats();
    assert!(closed.bytes_in >= open.bytes_in && closed.bytes_out >= open.bytes_out);
    assert!(pair.server.stats().bytes_in > 100_000);
}

//! The metrics of the `metrics` facade: names, units and values.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use test_support::{certificates, transport};
use zorb::prelude::*;

zorb::idl! {
    module Bulk {
        typedef sequence<octet> Octets;
        interface Sink { Octets echo(in Octets octets); };
    };
}

struct Sink;

impl bulk::SinkServant for Sink {
    async fn echo(&self, octets: Bytes) -> Result<Bytes, SystemException> {
        Ok(octets)
    }
}

/// A recorder that stores the metrics.
#[derive(Default)]
struct Kept {
    counters: Mutex<HashMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<HashMap<String, Arc<AtomicU64>>>,
    units: Mutex<HashMap<String, Unit>>,
}

impl Kept {
    fn counter(&self, name: &str) -> u64 {
        let counters = self.counters.lock().unwrap();
        counters.get(name).map_or(0, |counter| counter.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn gauge(&self, name: &str) -> f64 {
        let gauges = self.gauges.lock().unwrap();
        f64::from_bits(gauges.get(name).map_or(0, |gauge| gauge.load(std::sync::atomic::Ordering::Relaxed)))
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.units.lock().unwrap().insert(key.as_str().into(), unit.unwrap());
    }
    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.units.lock().unwrap().insert(key.as_str().into(), unit.unwrap());
    }
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels = key.labels().map(|label| format!("{{{}={}}}", label.key(), label.value()));
        let name = key.name().to_owned() + &labels.collect::<String>();
        let mut counters = self.counters.lock().unwrap();
        Counter::from_arc(Arc::clone(counters.entry(name).or_default()))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let mut gauges = self.gauges.lock().unwrap();
        Gauge::from_arc(Arc::clone(gauges.entry(key.name().into()).or_default()))
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn figures_of_pool_and_copies_reach_the_facade() {
    let kept = Kept::default();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&kept, || {
        runtime.block_on(async {
            let pair = zorb::testing::pair_of(
                Orb::builder().max_receive_memory(1 << 20),
                Orb::builder().max_receive_memory(3 << 20),
            );
            let published: bulk::SinkRef = pair.server.activate_named("sink", Sink).unwrap();
            let sink: bulk::SinkRef = pair.client.resolve(&published.to_string()).await.unwrap();
            for _ in 0..10 {
                sink.echo(Bytes::from(vec![1; 100_000])).await.unwrap();
            }
            // Published without a query.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            let (client, server) = (pair.client.stats(), pair.server.stats());
            let both = |of: fn(&zorb::Stats) -> u64| of(&client) + of(&server);
            assert_eq!(both(|stats| stats.messages_in), 20);
            assert_eq!(kept.counter("zorb_messages_received_total"), 20);
            assert_eq!(kept.counter("zorb_messages_sent_total"), 20);
            assert!(kept.counter("zorb_received_bytes_total") > 2_000_000);
            assert_eq!(kept.counter("zorb_received_bytes_total"), kept.counter("zorb_sent_bytes_total"));
            assert_eq!(kept.counter("zorb_copied_received_bytes_total"), both(|stats| stats.bytes_copied_in));
            assert_eq!(kept.counter("zorb_copied_sent_bytes_total"), both(|stats| stats.bytes_copied_out));
            assert!(kept.counter("zorb_copied_sent_bytes_total") > 0);
            assert_eq!(kept.gauge("zorb_connections"), 2.0);
            assert_eq!(kept.gauge("zorb_pool_cap_bytes"), f64::from(4 << 20));

            pair.client.record_metrics();
            pair.server.record_metrics();
            let (client, server) = (pair.client.pool_stats(), pair.server.pool_stats());
            assert!(client.held > 0 && client.hits > 0 && client.misses > 0);
            assert_eq!(kept.gauge("zorb_pool_held_bytes"), (client.held + server.held) as f64);
            assert_eq!(kept.counter("zorb_pool_hits_total"), client.hits + server.hits);
            assert_eq!(kept.counter("zorb_pool_misses_total"), client.misses + server.misses);
            let named = kept.counters.lock().unwrap().len() + kept.gauges.lock().unwrap().len();
            assert!(kept.units.lock().unwrap().len() >= named, "each has a unit");
            assert_eq!(kept.units.lock().unwrap()["zorb_pool_held_bytes"], Unit::Bytes);

            pair.client.shutdown().await;
            pair.server.shutdown().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert_eq!(kept.gauge("zorb_connections"), 0.0);
            drop((sink, published, pair));
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert_eq!(kept.gauge("zorb_pool_cap_bytes"), 0.0, "an ORB that is gone holds nothing");
            assert_eq!(kept.gauge("zorb_pool_held_bytes"), 0.0);
        });
    });
}

#[test]
fn limits_that_were_hit_are_told_by_their_names() {
    let kept = Kept::default();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&kept, || {
        runtime.block_on(async {
            let mut limits = zorb::Limits::default();
            limits.max_message_size = 10_000;
            let pair = zorb::testing::pair_of(Orb::builder(), Orb::builder().limits(limits));
            let published: bulk::SinkRef = pair.server.activate_named("sink", Sink).unwrap();
            let sink: bulk::SinkRef = pair.client.resolve(&published.to_string()).await.unwrap();
            for _ in 0..3 {
                assert!(sink.echo(Bytes::from(vec![1; 100_000])).await.is_err());
            }
            for _ in 0..2 {
                pair.server.record_metrics();
                assert_eq!(kept.counter("zorb_limit_hits_total{limit=max_message_size}"), 3);
                assert_eq!(kept.counter("zorb_refused_requests_total"), 3);
            }
            assert_eq!(kept.units.lock().unwrap()["zorb_limit_hits_total"], Unit::Count);
        });
    });
}

#[test]
fn what_goes_over_sockets_is_counted_on_every_transport() {
    let kept = Kept::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&kept, || {
        runtime.block_on(async {
            let server = transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
            let published: bulk::SinkRef = server.activate_named("sink", Sink).unwrap();
            let client = transport::builder().build().await.unwrap();
            let sink: bulk::SinkRef = client.resolve(&published.to_string()).await.unwrap();
            for _ in 0..10 {
                sink.echo(Bytes::from(vec![1; 100_000])).await.unwrap();
            }
            transport::assert_used(&client);
            // Published automatically after a second.
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                if kept.counter("zorb_messages_received_total") == 20 {
                    break;
                }
            }
            client.record_metrics();
            server.record_metrics();
            let (of_client, of_server) = (client.stats(), server.stats());
            assert_eq!(kept.counter("zorb_messages_sent_total"), 20);
            assert_eq!(kept.counter("zorb_sent_bytes_total"), of_client.bytes_out + of_server.bytes_out);
            assert_eq!(kept.counter("zorb_socket_reads_total"), of_client.reads + of_server.reads);
            assert_eq!(kept.counter("zorb_socket_writes_total"), of_client.writes + of_server.writes);
            assert!(kept.counter("zorb_socket_writes_total") >= 20);
            assert_eq!(kept.gauge("zorb_connections"), 2.0);
            client.shutdown().await;
            server.shutdown().await;
            client.record_metrics();
            server.record_metrics();
            assert_eq!(kept.gauge("zorb_connections"), 0.0);
        });
    });
}

/// Sends bytes, and waits until the server closes the connection.
#[cfg(feature = "tls")]
async fn sent_away(address: &str, octets: &[u8]) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    // The server may close it before that.
    let _ = stream.write_all(octets).await;
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

#[cfg(feature = "tls")]
#[test]
fn handshakes_are_counted_by_what_came_of_them() {
    use tokio::io::AsyncWriteExt;
    use zorb::tls::{Identity, Tls, Trust};

    let kept = Kept::default();
    let ca = certificates::Authority::new("ca");
    let (certificate, key) = ca.issue("server");
    let serving = Tls::builder().identity(Identity::pem(certificate, key)).max_handshakes(1).build().unwrap();
    let calling = Tls::builder().trust(Trust::pem(ca.pem())).build().unwrap();
    let other = certificates::Authority::new("other");
    let mistaken = Tls::builder().trust(Trust::pem(other.pem())).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&kept, || {
        runtime.block_on(async {
            let builder = transport::builder().tls(serving);
            let server = builder.listen("iiop://127.0.0.1:0").listen("ssliop://127.0.0.1:0").build();
            let server = server.await.unwrap();
            let published: bulk::SinkRef = server.activate_named("sink", Sink).unwrap();
            let (plain, secure) = (server.endpoints().remove(0), server.endpoints().remove(1));
            let secure = secure.strip_prefix("ssliop://").unwrap();

            // A slow handshake occupies the only slot; it is aborted after the next one was rejected.
            let mut slow = tokio::net::TcpStream::connect(secure).await.unwrap();
            slow.write_all(&[0x16, 3, 1]).await.unwrap();
            sent_away(secure, b"").await;
            drop(slow);
            while server.transport_stats().tls_failures == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // Published without a query, even though no connection was ever open.
            while kept.counter("zorb_tls_shed_total") == 0 || kept.counter("zorb_tls_failures_total") == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            sent_away(secure, b"GIOP\x01\x02\0\x05\0\0\0\0").await;
            sent_away(&plain, &[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3, 0]).await;
            let client = transport::builder().tls(calling).build().await.unwrap();
            let sink: bulk::SinkRef = client.resolve(&published.to_string()).await.unwrap();
            sink.echo(Bytes::from_static(b"octets")).await.unwrap();
            let stranger = transport::builder().tls(mistaken).build().await.unwrap();
            let refused: bulk::SinkRef = stranger.resolve_unchecked(&published.to_string()).await.unwrap();
            refused.echo(Bytes::new()).await.unwrap_err();
            let counted = || {
                let stats = [&client, &server, &stranger].map(|orb| orb.transport_stats());
                [
                    ("sessions", 2, stats.iter().map(|stats| stats.tls_sessions).sum::<u64>()),
                    ("failures", 3, stats.iter().map(|stats| stats.tls_failures).sum()),
                    ("plaintext", 1, stats.iter().map(|stats| stats.tls_plaintext).sum()),
                    ("misdirected", 1, stats.iter().map(|stats| stats.tls_misdirected).sum()),
                    ("shed", 1, stats.iter().map(|stats| stats.tls_rejected_by_limit).sum()),
                ]
            };
            // The server's side of each is counted when it notices the end.
            while counted().iter().any(|(_, expected, counted)| counted < expected) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            for orb in [&client, &server, &stranger] {
                orb.record_metrics();
            }
            for (what, expected, counted) in counted() {
                let name = format!("zorb_tls_{what}_total");
                assert_eq!((kept.counter(&name), counted), (expected, expected), "{name}");
                assert_eq!(kept.units.lock().unwrap()[&name], Unit::Count);
            }
        });
    });
}

//! Properties of io_uring: counted operations, memory of idle connections, and the fallback to epoll.
#![cfg(feature = "uring")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zorb::prelude::*;
use zorb::{OrbBuilder, Transport};

zorb::idl! {
    typedef sequence<octet> Octets;

    interface Sink {
        void ping();
        oneway void bytes(in Octets data);
        Octets echo(in Octets data);
        unsigned long long seen();
    };
}

#[derive(Default)]
struct Counter {
    seen: AtomicU64,
}

impl SinkServant for Counter {
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn bytes(&self, data: Bytes) -> Result<(), SystemException> {
        assert!(data.iter().all(|octet| *octet == 7));
        self.seen.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn echo(&self, data: Bytes) -> Result<Bytes, SystemException> {
        Ok(data)
    }

    async fn seen(&self) -> Result<u64, SystemException> {
        Ok(self.seen.swap(0, Ordering::Relaxed))
    }
}

fn builder() -> OrbBuilder {
    Orb::builder().transport(Transport::IoUring)
}

struct Pair {
    server: Orb,
    client: Orb,
    text: String,
    sink: SinkRef,
}

/// Returns two ORBs with a connection, unless the kernel does not support it.
async fn pair() -> Option<Pair> {
    let server = builder().listen("iiop://127.0.0.1:0").max_connections(1000, 1000).build().await.unwrap();
    let here: SinkRef = server.activate(Arc::new(Counter::default())).unwrap();
    let text = here.to_string();
    let client = builder().build().await.unwrap();
    let sink: SinkRef = client.resolve(&text).await.unwrap();
    sink.ping().await.unwrap();
    let stats = client.transport_stats();
    if stats.fallbacks > 0 {
        assert!(std::env::var_os("REQUIRE_URING").is_none(), "there is no io_uring: {stats:?}");
        eprintln!("SKIPPED: no io_uring here");
        return None;
    }
    assert_eq!((stats.ring_connections, stats.fallbacks), (1, 0));
    Some(Pair { server, client, text, sink })
}

impl Pair {
    fn submissions(&self) -> (u64, u64) {
        (self.client.transport_stats().submissions, self.server.transport_stats().submissions)
    }
}

#[tokio::test]
async fn a_ping_is_one_send_and_one_receive_a_side() {
    let Some(pair) = pair().await else { return };
    pair.sink.ping().await.unwrap();
    let before = pair.submissions();
    for _ in 0..1000 {
        pair.sink.ping().await.unwrap();
    }
    let after = pair.submissions();
    for count in [after.0 - before.0, after.1 - before.1] {
        assert!((2000..2010).contains(&count), "{count} operations for 1000 pings");
    }
}

#[tokio::test]
async fn small_oneways_are_gathered() {
    let Some(pair) = pair().await else { return };
    let data = Bytes::from(vec![7; 1024]);
    let before = pair.submissions();
    for _ in 0..10_000 {
        pair.sink.bytes(data.clone()).await.unwrap();
    }
    assert_eq!(pair.sink.seen().await.unwrap(), 10_000 * 1024);
    let after = pair.submissions();
    // 64 KiB per send, and as much per receive if that is available.
    assert!(after.0 - before.0 < 400, "{} sends", after.0 - before.0);
    assert!(after.1 - before.1 < 1000, "{} receives", after.1 - before.1);
}

#[tokio::test]
async fn a_bulk_message_is_one_send_and_two_linked_receives() {
    let Some(pair) = pair().await else { return };
    let data = Bytes::from(vec![7; 1 << 20]);
    let send = async |messages: u64| {
        for _ in 0..messages {
            pair.sink.bytes(data.clone()).await.unwrap();
        }
        assert_eq!(pair.sink.seen().await.unwrap(), messages << 20);
    };
    // Warm-up until memory is granted for such messages.
    send(10).await;
    let before = pair.submissions();
    send(100).await;
    let after = pair.submissions();
    let (sends, receives) = (after.0 - before.0, after.1 - before.1);
    assert!(sends <= 110, "{sends} operations of the sender for 100 messages");
    assert!(receives <= 220, "{receives} operations of the receiver for 100 messages");
    assert_eq!(pair.sink.echo(data.clone()).await.unwrap(), data);
}

#[tokio::test]
async fn idle_connections_hold_no_window() {
    let Some(pair) = pair().await else { return };
    let mut others = Vec::new();
    for _ in 0..200 {
        let client = builder().build().await.unwrap();
        let sink: SinkRef = client.resolve(&pair.text).await.unwrap();
        sink.ping().await.unwrap();
        others.push((client, sink));
    }
    // The pool lets 64 connections keep their window for a second.
    let held = pair.server.pool_stats().held;
    assert!(held < 70 * (64 << 10), "{held} bytes for {} connections", others.len());
    let before = pair.submissions();
    let in_use = || {
        let stats = pair.server.pool_stats();
        stats.held - stats.free
    };
    // They are removed from the ring, each by one operation.
    while in_use() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let after = pair.submissions();
    assert!(after.1 - before.1 < 200, "{} operations", after.1 - before.1);
    tokio::time::sleep(Duration::from_millis(1300)).await;
    assert_eq!(pair.submissions(), after, "connections that wait do nothing");
    for (_, sink) in &others {
        sink.ping().await.unwrap();
    }
    assert!(pair.server.pool_stats().held < 70 * (64 << 10));
}

#[tokio::test]
async fn a_server_that_goes_is_seen_before_the_next_call_is_written() {
    let Some(pair) = pair().await else { return };
    let address = pair.server.endpoints().remove(0);
    pair.server.shutdown().await;
    let again = builder().listen(format!("iiop://{address}")).build().await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    // The object no longer exists, which the new server reports: the old connection is not used.
    let error = pair.sink.ping().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::ObjectNotExist, "{error}");
    assert_eq!(again.transport_stats().ring_connections, 1);
}

#[tokio::test]
async fn orbs_that_go_with_operations_under_way_free_everything() {
    let Some(pair) = pair().await else { return };
    let data = Bytes::from(vec![7; 4 << 20]);
    for round in 0..20 {
        let client = builder().build().await.unwrap();
        let sink: SinkRef = client.resolve(&pair.text).await.unwrap();
        let call = sink.echo(data.clone());
        // Somewhere in the middle of the request or of the reply.
        let cut = tokio::time::timeout(Duration::from_micros(200 * round), call).await;
        drop((sink, client));
        drop(cut);
    }
    for _ in 0..200 {
        if pair.server.open_connections() == 1 && data.is_unique() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(pair.server.open_connections(), 1, "only the one of this test is left");
    assert!(data.is_unique(), "no operation holds the argument");
    assert_eq!(pair.sink.echo(data.clone()).await.unwrap(), data);
}

/// Runs a server on a thread and a runtime of its own, until the sender is dropped.
fn serve_elsewhere(
    builder: impl FnOnce() -> OrbBuilder + Send + 'static,
) -> (String, tokio::sync::oneshot::Sender<()>, std::thread::JoinHandle<()>) {
    let (told, tell) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
            let here: SinkRef = server.activate(Arc::new(Counter::default())).unwrap();
            told.send(here.to_string()).unwrap();
            drop(stopped.await);
            server.shutdown().await;
        });
    });
    (tell.recv().unwrap(), stop, thread)
}

#[tokio::test]
async fn busy_polling_call_takes_replies_without_sleeping_and_yields_to_tasks() {
    if pair().await.is_none() {
        return;
    }
    let spin = || builder().wait_strategy(zorb::WaitStrategy::BusyPoll(Duration::from_millis(5)));
    let (text, stop, thread) = serve_elsewhere(spin);
    let client = spin().build().await.unwrap();
    let sink: SinkRef = client.resolve(&text).await.unwrap();
    sink.ping().await.unwrap();
    let turns = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    tokio::task::yield_now().await;
    let (begin, mut alone) = (turns.load(Ordering::Relaxed), 0);
    for round in 0..400_usize {
        let before = turns.load(Ordering::Relaxed);
        let data = Bytes::from(vec![7; if round % 100 == 0 { 1 << 20 } else { round }]);
        assert_eq!(sink.echo(data.clone()).await.unwrap(), data);
        alone += u32::from(turns.load(Ordering::Relaxed) == before);
    }
    // The caller read most replies itself, in the same poll, without letting other tasks run, but not
    // forever. Without spinning, others run in each call.
    assert!(alone > 10, "only {alone} of 400 calls took their reply without letting others run");
    assert!(turns.load(Ordering::Relaxed) - begin >= 5, "others run now and then");
    assert_eq!(client.transport_stats().fallbacks, 0);
    // The end of a server that spun is noticed even without calls.
    drop(stop);
    thread.join().unwrap();
    for _ in 0..200 {
        if client.open_connections() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(client.open_connections(), 0);
    other.abort();
}

#[tokio::test]
async fn spinning_ends_where_nothing_comes() {
    let Some(pair) = pair().await else { return };
    // The server cannot answer while this thread spins.
    let client = builder()
        .wait_strategy(zorb::WaitStrategy::BusyPoll(Duration::from_millis(30)))
        .build()
        .await
        .unwrap();
    let sink: SinkRef = client.resolve(&pair.text).await.unwrap();
    sink.ping().await.unwrap();
    let begun = std::time::Instant::now();
    for _ in 0..3 {
        sink.ping().await.unwrap();
    }
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(30) && took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_threads_fall_back_to_epoll() {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let here: SinkRef = server.activate(Arc::new(Counter::default())).unwrap();
    let client = builder().build().await.unwrap();
    let sink: SinkRef = client.resolve(&here.to_string()).await.unwrap();
    sink.ping().await.unwrap();
    for stats in [client.transport_stats(), server.transport_stats()] {
        assert_eq!((stats.ring_connections, stats.fallbacks, stats.submissions), (0, 1, 0));
    }
}

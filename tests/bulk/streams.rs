//! `@stream` parameters: servants that receive bytes while they arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use test_support::{contents, transport};
use tokio::sync::{Mutex, Notify};
use zorb::prelude::*;
use zorb::testing::PipeFaults;
use zorb::{ByteStream, Limits, OrbBuilder};

use contents::{checksum, octets};

zorb::idl! {
    module Bulk {
        typedef sequence<octet> Octets;
        exception Full { unsigned long long taken; };
        interface Store {
            /// Gives a checksum and the number of chunks.
            unsigned long long put(in string name, in double factor, @stream in Octets data);
            unsigned long long put_some(in unsigned long long most, @stream in Octets data) raises (Full);
            oneway void push(@stream in Octets data);
            void ping();
            void later(@stream in Octets data);
        };
        interface Derived : Store {
            unsigned long long count(in Octets whole);
        };
    };
}

#[derive(Default)]
struct Store {
    taken: AtomicU64,
    chunks: AtomicUsize,
    largest: AtomicUsize,
    /// Chunks are only taken while there are permits here.
    gate: Option<Arc<Notify>>,
    kept: Arc<Mutex<Option<ByteStream>>>,
}

impl Store {
    async fn take(&self, mut data: ByteStream) -> Result<u64, SystemException> {
        let mut total = 0;
        while let Some(chunk) = data.next().await {
            if let Some(gate) = &self.gate {
                gate.notified().await;
            }
            let chunk = chunk?;
            assert!(!chunk.is_empty());
            self.chunks.fetch_add(1, Ordering::Relaxed);
            self.largest.fetch_max(chunk.len(), Ordering::Relaxed);
            self.taken.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            total = checksum(total, &chunk);
        }
        assert_eq!(data.remaining(), 0);
        Ok(total)
    }
}

impl bulk::StoreServant for Store {
    async fn put(&self, name: &str, factor: f64, data: ByteStream) -> Result<u64, SystemException> {
        assert_eq!((name, factor), ("a name", 2.0));
        self.take(data).await
    }
    async fn put_some(&self, most: u64, mut data: ByteStream) -> Result<u64, bulk::store::PutSomeError> {
        let mut taken = 0;
        while let Some(chunk) = data.next().await {
            taken += chunk?.len() as u64;
            if taken >= most {
                return Err(bulk::Full { taken }.into());
            }
        }
        Ok(taken)
    }
    async fn push(&self, data: ByteStream) -> Result<(), SystemException> {
        self.take(data).await.map(drop)
    }
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }
    async fn later(&self, data: ByteStream) -> Result<(), SystemException> {
        *self.kept.lock().await = Some(data);
        Ok(())
    }
}

impl bulk::DerivedServant for Store {
    async fn count(&self, whole: Bytes) -> Result<u64, SystemException> {
        Ok(whole.len() as u64)
    }
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.max_message_size = 128 << 20;
    limits
}

fn large() -> OrbBuilder {
    transport::builder().limits(limits())
}

/// Returns client and server over TCP.
async fn over_tcp(servant: Arc<Store>) -> (Orb, Orb, bulk::StoreRef) {
    let server = large().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let published: bulk::StoreRef = server.activate_named("store", servant).unwrap();
    let client = large().build().await.unwrap();
    let store = client.resolve(&published.to_string()).await.unwrap();
    (client, server, store)
}

#[tokio::test]
async fn streams_of_all_sizes_arrive_whole_and_calls_go_on() {
    let servant = Arc::new(Store::default());
    let (_client, server, store) = over_tcp(Arc::clone(&servant)).await;
    for len in [0, 1, 16_000, 65_000, 65_536, 66_000, 200_000, 1 << 20, (5 << 20) + 3] {
        let data = octets(len);
        let expected = checksum(0, &data);
        for _ in 0..3 {
            assert_eq!(store.put("a name", 2.0, data.clone()).await.unwrap(), expected, "{len}");
            store.ping().await.unwrap();
        }
    }
    assert!(servant.largest.load(Ordering::Relaxed) <= 256 * 1024);
    // From a vector, a text, a slice.
    assert_eq!(store.put("a name", 2.0, vec![1; 100_000]).await.unwrap(), checksum(0, &[1; 100_000]));
    assert_eq!(store.put("a name", 2.0, "\u{1}\u{2}").await.unwrap(), checksum(0, &[1, 2]));
    // Operations of the same object without streams, and inherited streamed ones.
    let derived: bulk::DerivedRef = server.activate(Store::default()).unwrap();
    let derived: bulk::DerivedRef = _client.resolve(&derived.to_string()).await.unwrap();
    let data = octets(1 << 20);
    assert_eq!(derived.count(data.clone()).await.unwrap(), 1 << 20);
    assert_eq!(derived.put("a name", 2.0, data.clone()).await.unwrap(), checksum(0, &data));
}

#[tokio::test]
async fn a_stream_takes_constant_memory() {
    let servant = Arc::new(Store::default());
    let (_client, server, store) = over_tcp(Arc::clone(&servant)).await;
    let data = octets(64 << 20);
    let expected = checksum(0, &data);
    assert_eq!(store.put("a name", 2.0, data).await.unwrap(), expected);
    assert!(servant.chunks.load(Ordering::Relaxed) >= 256);
    let held = server.pool_stats().held;
    assert!(held <= 3 << 20, "{held} octets held for a stream of 64 MiB");
    // A ring receives the first header separately.
    let header = if transport::transport() == zorb::Transport::Epoll { 0 } else { 12 };
    assert!(
        server.stats().bytes_copied_in <= header,
        "{} octets of it were copied",
        server.stats().bytes_copied_in
    );
}

#[tokio::test]
async fn a_slow_servant_makes_the_sender_wait() {
    let gate = Arc::new(Notify::new());
    let servant = Arc::new(Store { gate: Some(Arc::clone(&gate)), ..Store::default() });
    let (client, server, store) = over_tcp(Arc::clone(&servant)).await;
    let data = octets(64 << 20);
    let expected = checksum(0, &data);
    let call = tokio::spawn(async move { store.put("a name", 2.0, data).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let received = server.stats().bytes_in;
    assert!(received <= 2 << 20, "{received} octets came though nobody took them");
    assert!(client.stats().bytes_out < 32 << 20, "the sender waits as well");
    let opened = tokio::spawn(async move {
        loop {
            gate.notify_one();
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(call.await.unwrap().unwrap(), expected);
    opened.abort();
}

#[tokio::test]
async fn a_servant_that_has_enough_answers_and_the_rest_is_skipped() {
    let (_client, server, store) = over_tcp(Arc::new(Store::default())).await;
    for most in [1, 300_000, 4 << 20] {
        let failed = store.put_some(most, octets(8 << 20)).await.unwrap_err();
        assert!(matches!(failed, bulk::store::PutSomeError::Full(full) if full.taken >= most));
        store.ping().await.unwrap();
    }
    assert_eq!(store.put_some(u64::MAX, octets(8 << 20)).await.unwrap(), 8 << 20);
    assert_eq!(server.open_connections(), 1);
    assert!(server.stats().bytes_skipped > 8 << 20);
}

#[tokio::test]
async fn a_call_to_no_object_or_no_operation_skips_the_payload() {
    let (client, server, store) = over_tcp(Arc::new(Store::default())).await;
    let gone: bulk::StoreRef = server.activate_named("gone", Store::default()).unwrap();
    let reference: bulk::StoreRef = client.resolve(&gone.to_string()).await.unwrap();
    server.deactivate(&gone);
    let failed = reference.put("a name", 2.0, octets(1 << 20)).await.unwrap_err();
    assert_eq!(failed.kind, SystemExceptionKind::ObjectNotExist);
    store.ping().await.unwrap();
}

#[tokio::test]
async fn a_stream_may_outlive_its_request() {
    let servant = Arc::new(Store::default());
    let (_client, _server, store) = over_tcp(Arc::clone(&servant)).await;
    let data = octets(6 << 20);
    store.later(data.clone()).await.unwrap();
    let kept = servant.kept.lock().await.take().unwrap();
    assert_eq!(kept.remaining(), 6 << 20);
    let after = tokio::spawn(async move { store.ping().await });
    assert_eq!(kept.collect(8 << 20).await.unwrap(), data);
    after.await.unwrap().unwrap();
}

#[tokio::test]
async fn collecting_has_a_limit() {
    let servant = Arc::new(Store::default());
    let (_client, _server, store) = over_tcp(Arc::clone(&servant)).await;
    store.later(octets(2 << 20)).await.unwrap();
    let kept = servant.kept.lock().await.take().unwrap();
    assert_eq!(kept.collect(1 << 20).await.unwrap_err().kind, SystemExceptionKind::ImpLimit);
    store.ping().await.unwrap();
}

#[tokio::test]
async fn oneways_calls_in_process_and_other_ways_to_run_take_streams() {
    let servant = Arc::new(Store::default());
    let (_client, server, store) = over_tcp(Arc::clone(&servant)).await;
    for _ in 0..10 {
        store.push(octets(500_000)).await.unwrap();
    }
    store.ping().await.unwrap();
    assert_eq!(servant.taken.load(Ordering::Relaxed), 5_000_000);

    let data = octets(3 << 20);
    let local: bulk::StoreRef = zorb::testing::local(Store::default());
    assert_eq!(local.put("a name", 2.0, data.clone()).await.unwrap(), checksum(0, &data));

    for activation in [server.activation().blocking(), server.activation().spawned()] {
        let published: bulk::StoreRef = activation.activate(Store::default()).unwrap();
        let store: bulk::StoreRef = _client.resolve(&published.to_string()).await.unwrap();
        assert_eq!(store.put("a name", 2.0, data.clone()).await.unwrap(), checksum(0, &data));
        store.ping().await.unwrap();
    }
}

#[tokio::test]
async fn a_copying_orb_takes_streams_too() {
    let pair = zorb::testing::pair_of(large(), large().zero_copy(false));
    let published: bulk::StoreRef = pair.server.activate_named("store", Store::default()).unwrap();
    let store: bulk::StoreRef = pair.client.resolve(&published.to_string()).await.unwrap();
    let data = octets(1 << 20);
    assert_eq!(store.put("a name", 2.0, data.clone()).await.unwrap(), checksum(0, &data));
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_sender_dies_fails_in_the_servant() {
    let pair = zorb::testing::pair_of(large(), large());
    let servant = Arc::new(Store::default());
    let published: bulk::StoreRef = pair.server.activate_named("store", Arc::clone(&servant)).unwrap();
    let mut faults = PipeFaults::default();
    faults.cut_after = Some(700_000);
    pair.set_faults(faults, PipeFaults::default());
    let store: bulk::StoreRef = pair.client.resolve(&published.to_string()).await.unwrap();
    let failed = store.put("a name", 2.0, octets(2 << 20)).await.unwrap_err();
    // The servant was executing, so the call must not be repeated.
    assert_eq!(failed.completed, CompletionStatus::Maybe);
    let taken = servant.taken.load(Ordering::Relaxed);
    assert!((100_000..700_000).contains(&taken), "{taken}");
    assert_eq!(pair.server.open_connections(), 0);
}

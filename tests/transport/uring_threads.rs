//! io_uring on threads of the ORB: their start, the code that runs on them, and their end.
#![cfg(feature = "uring")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use zorb::prelude::*;
use zorb::{OrbBuilder, Transport};

zorb::idl! {
    typedef sequence<octet> Octets;

    interface Post {
        string thread();
        oneway void note(in Octets data);
        Octets echo(in Octets data);
        unsigned long long seen();
        void leave_task();
        void block(in unsigned long milliseconds);
        void call_back(in Post other, in unsigned long depth);
    };
}

#[derive(Default)]
struct Office {
    seen: AtomicU64,
    alive: Arc<()>,
}

impl PostServant for Office {
    async fn thread(&self) -> Result<String, SystemException> {
        Ok(std::thread::current().name().unwrap_or_default().to_owned())
    }

    async fn note(&self, data: Bytes) -> Result<(), SystemException> {
        self.seen.fetch_add(data.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn echo(&self, data: Bytes) -> Result<Bytes, SystemException> {
        Ok(data)
    }

    async fn seen(&self) -> Result<u64, SystemException> {
        Ok(self.seen.load(Ordering::Relaxed))
    }

    async fn leave_task(&self) -> Result<(), SystemException> {
        let alive = Arc::clone(&self.alive);
        tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(alive);
        });
        Ok(())
    }

    async fn block(&self, milliseconds: u32) -> Result<(), SystemException> {
        std::thread::sleep(Duration::from_millis(milliseconds.into()));
        Ok(())
    }

    async fn call_back(&self, other: Option<PostRef>, depth: u32) -> Result<(), SystemException> {
        let (Some(other), 1..) = (other, depth) else { return Ok(()) };
        let own: PostRef = zorb::request().target();
        other.call_back(&own, depth - 1).await
    }
}

fn builder() -> OrbBuilder {
    Orb::builder().transport(Transport::IoUringThreads(2)).max_connections(1000, 1000)
}

struct Two {
    server: Orb,
    client: Orb,
    text: String,
    post: PostRef,
    alive: Arc<()>,
}

/// Returns two ORBs with a connection, unless the kernel does not support it.
async fn two() -> Option<Two> {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let office = Office::default();
    let alive = Arc::clone(&office.alive);
    let here: PostRef = server.activate_named("post", office).unwrap();
    let client = builder().build().await.unwrap();
    assert_eq!((server.transport_stats().threads, client.transport_stats().threads), (0, 0));
    let text = here.to_string();
    let post: PostRef = client.resolve(&text).await.unwrap();
    post.seen().await.unwrap();
    let stats = client.transport_stats();
    if stats.fallbacks > 0 {
        assert!(std::env::var_os("REQUIRE_URING").is_none(), "there is no io_uring: {stats:?}");
        eprintln!("SKIPPED: no io_uring here");
        return None;
    }
    assert_eq!((stats.ring_connections, stats.fallbacks, stats.threads), (1, 0, 2));
    assert_eq!(server.transport_stats().threads, 2);
    Some(Two { server, client, text, post, alive })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn calls_of_many_tasks_share_the_connection_and_all_get_their_reply() {
    let Some(two) = two().await else { return };
    let tasks: Vec<_> = (0..16_u8)
        .map(|task| {
            let post = two.post.clone();
            tokio::spawn(async move {
                for round in 0..50 {
                    let size = if round % 10 == 0 { 300_000 } else { 100 };
                    let data = Bytes::from(vec![task; size]);
                    post.note(data.clone()).await.unwrap();
                    assert_eq!(post.echo(data.clone()).await.unwrap(), data);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(two.post.seen().await.unwrap(), 16 * (5 * 300_000 + 45 * 100));
    assert_eq!((two.client.open_connections(), two.server.open_connections()), (1, 1));
    let stats = two.client.transport_stats();
    // Concurrent calls are gathered: there are 1,600 of them.
    assert!(stats.submissions > 50 && stats.enter_calls > 50, "{stats:?}");
}

#[tokio::test]
async fn servants_run_on_the_threads_or_at_home_as_they_ask() {
    let Some(two) = two().await else { return };
    assert!(two.post.thread().await.unwrap().starts_with("zorb-io-"));
    let here = std::thread::current().name().unwrap().to_owned();
    let spawned: PostRef = two.server.activation().spawned().activate(Office::default()).unwrap();
    let spawned: PostRef = two.client.resolve(&spawned.to_string()).await.unwrap();
    assert_eq!(spawned.thread().await.unwrap(), here, "the test's runtime has this thread alone");
    let blocking: PostRef = two.server.activation().blocking().activate(Office::default()).unwrap();
    let blocking: PostRef = two.client.resolve(&blocking.to_string()).await.unwrap();
    let thread = blocking.thread().await.unwrap();
    assert!(!thread.starts_with("zorb-io-") && thread != here, "{thread}");
}

#[test]
fn runtimes_and_plain_threads_share_connections_that_outlive_them() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let outer = runtime();
    let Some(two) = outer.block_on(two()) else { return };
    let data = Bytes::from(vec![3; 200_000]);
    for _ in 0..4 {
        let inner = runtime();
        inner.block_on(async {
            for _ in 0..10 {
                assert_eq!(two.post.echo(data.clone()).await.unwrap(), data);
            }
        });
        drop(inner);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert_eq!(zorb::blocking::wait(two.post.echo(data.clone())).unwrap(), data);
                }
            });
        });
    }
    assert!(two.client.open_connections() <= 2, "one for each thread of the ORB at most");
    // No runtime is driven on this thread.
    assert_eq!(zorb::blocking::wait(two.post.echo(data.clone())).unwrap(), data);
}

#[test]
fn oneways_of_a_plain_thread_are_with_the_kernel_when_the_wait_ends() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let Some(two) = runtime.block_on(two()) else { return };
    for size in [10, 300_000, 4 << 20] {
        let data = Bytes::from(vec![1; size]);
        let before = zorb::blocking::wait(async {
            two.post.echo(Bytes::new()).await.unwrap();
            two.client.stats().bytes_out
        });
        zorb::blocking::wait(async {
            for _ in 0..3 {
                two.post.note(data.clone()).await.unwrap();
            }
        });
        let written = two.client.stats().bytes_out - before;
        assert!(written >= 3 * size as u64, "{written} of 3 x {size}");
    }
}

#[tokio::test]
async fn servants_call_each_other_back_from_thread_to_thread() {
    let Some(two) = two().await else { return };
    let client = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let own: PostRef = client.activate(Office::default()).unwrap();
    let post: PostRef = client.resolve(&two.text).await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), post.call_back(&own, 50)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_spread_over_the_threads() {
    let Some(two) = two().await else { return };
    let mut names = std::collections::HashSet::new();
    let mut clients = Vec::new();
    for _ in 0..4 {
        let client = builder().build().await.unwrap();
        let post: PostRef = client.resolve(&two.text).await.unwrap();
        names.insert(post.thread().await.unwrap());
        clients.push(client);
    }
    assert_eq!(names.len(), 2, "{names:?}");
}

#[tokio::test]
async fn shutdown_joins_the_threads() {
    let Some(two) = two().await else { return };
    two.post.leave_task().await.unwrap();
    assert_eq!(Arc::strong_count(&two.alive), 3);
    let begun = Instant::now();
    two.client.shutdown().await;
    two.server.shutdown().await;
    assert_eq!((two.server.transport_stats().threads, two.client.transport_stats().threads), (0, 0));
    assert_eq!(Arc::strong_count(&two.alive), 2, "what servants spawned ends with the ORB");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let error = two.post.seen().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::BadInvOrder, "{error}");
}

#[tokio::test]
async fn dropping_the_orb_ends_its_threads() {
    let Some(two) = two().await else { return };
    two.post.leave_task().await.unwrap();
    let Two { server, client, post, alive, .. } = two;
    // A pending call ends as well.
    let call = tokio::spawn(async move { post.echo(Bytes::from(vec![1; 8 << 20])).await });
    tokio::task::yield_now().await;
    drop((server, client));
    let _ = tokio::time::timeout(Duration::from_secs(10), call).await.unwrap().unwrap();
    for _ in 0..1000 {
        if Arc::strong_count(&alive) == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(Arc::strong_count(&alive), 1, "a thread still runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_servant_that_blocks_its_thread_delays_a_shutdown_for_a_bounded_time() {
    let server = builder()
        .listen("iiop://127.0.0.1:0")
        .drain_timeout(Duration::from_millis(100))
        .build()
        .await
        .unwrap();
    let here: PostRef = server.activate(Office::default()).unwrap();
    let client = Orb::builder().build().await.unwrap();
    let post: PostRef = client.resolve(&here.to_string()).await.unwrap();
    post.seen().await.unwrap();
    if server.transport_stats().fallbacks > 0 {
        return;
    }
    let call = tokio::spawn(async move { post.block(6000).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = Instant::now();
    server.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(server.transport_stats().threads, 1, "the one that is blocked");
    drop(call.await);
}

#[tokio::test]
async fn spinning_servers_and_clients_answer_on_threads_too() {
    let Some(two) = two().await else { return };
    let spin = || builder().wait_strategy(zorb::WaitStrategy::BusyPoll(Duration::from_micros(50)));
    let server = spin().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let here: PostRef = server.activate(Office::default()).unwrap();
    let client = spin().build().await.unwrap();
    let post: PostRef = client.resolve(&here.to_string()).await.unwrap();
    let (other, order) = (two.post.clone(), Arc::new(Mutex::new(Vec::new())));
    for round in 0..300_usize {
        let data = Bytes::from(vec![round as u8; round * 300]);
        let (first, second) = tokio::join!(post.echo(data.clone()), other.echo(data.clone()));
        assert_eq!((&first.unwrap(), &second.unwrap()), (&data, &data));
        order.lock().unwrap().push(round);
    }
    assert_eq!(order.lock().unwrap().len(), 300);
}

//! Every future is dropped at every await point: calls of all kinds, binds, streams, deposits, flushes and
//! shutdowns.
//!
//! `runtime_faults/drops.rs` checks the outcome of the dropped call; this test checks that nothing is left of
//! it.

use std::pin::Pin;
use std::sync::Arc;

use zorb::prelude::*;
use zorb::testing::{Pair, PipeFaults, RandomFaults, drop_after_polls, pair};
use zorb::{ByteSource, fan_out};

use crate::faults::target::{Target, TargetRef, leaves_nothing, octets, over};

/// More polls than any future here needs.
const MANY: usize = 5000;

type Work = Pin<Box<dyn Future<Output = bool>>>;

/// Returns a pipe through which a message needs several writes and reads.
fn narrow() -> PipeFaults {
    let mut faults = PipeFaults::default();
    (faults.max_read_bytes, faults.max_write_bytes, faults.capacity) = (7000, 5000, 6000);
    faults
}

/// Repeatedly creates the future of `work`, and drops it after 0, 1, 2 ... polls until it completes. After
/// each drop it checks that reference and ORBs work as before, and that nothing is left.
async fn drop_everywhere(what: &str, bound: bool, work: impl Fn(&Pair, &TargetRef) -> Work) {
    for pipe in 0..3 {
        let mut polls = 0;
        loop {
            let what = format!("{what} over pipe {pipe}, dropped after {polls} polls");
            let orbs = pair();
            let (servant, target) = over(&orbs).await;
            match pipe {
                0 => {}
                1 => orbs.set_faults(narrow(), narrow()),
                _ => orbs.set_random_faults(RandomFaults::seeded(polls as u64).delay(Duration::ZERO)),
            }
            if bound {
                target.add(1, 2).await.unwrap();
            }
            let done = drop_after_polls(polls, work(&orbs, &target)).await;
            still_good(&target, &servant, &what).await;
            drop(target);
            leaves_nothing(orbs, servant, &what).await;
            if let Some(right) = done {
                assert!(right, "{what}: a wrong answer");
                break;
            }
            polls += 1;
            assert!(polls < MANY, "{what}: it does not end");
        }
        assert!(polls > 0, "{what}");
    }
}

async fn still_good(target: &TargetRef, servant: &Arc<Target>, what: &str) {
    assert_eq!(target.add(20, 3).await.unwrap(), 23, "{what}");
    let (number, back) = target.once(77, 0, octets(20_000)).await.unwrap();
    assert!(number == 77 && back == octets(20_000), "{what}");
    assert_eq!(servant.times(77), 1, "{what}");
    assert!(servant.times(5) <= 1, "{what}");
}

/// Work with a reference.
fn with<F: Future<Output = bool> + 'static>(
    work: impl Fn(TargetRef) -> F + 'static,
) -> impl Fn(&Pair, &TargetRef) -> Work {
    move |_, target| Box::pin(work(target.clone()))
}

#[tokio::test(start_paused = true)]
async fn a_first_call_dropped_anywhere_leaves_nothing() {
    // Binding is part of it.
    let work = |target: TargetRef| async move { target.add(1, 2).await == Ok(3) };
    drop_everywhere("a first call", false, with(work)).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_anywhere_leaves_nothing() {
    let work =
        |target: TargetRef| async move { target.once(5, 0, octets(90_000)).await == Ok((5, octets(90_000))) };
    drop_everywhere("a large call", true, with(work)).await;
    let work = |target: TargetRef| async move {
        target.note(5, octets(30_000)).await.is_ok() && target.flush().await.is_ok()
    };
    drop_everywhere("a oneway", true, with(work)).await;
}

#[tokio::test(start_paused = true)]
async fn deferred_calls_and_many_at_once_dropped_anywhere_leave_nothing() {
    let work = |target: TargetRef| async move {
        let call = target.once(5, 0, octets(3000)).deferred();
        tokio::task::yield_now().await;
        call.await == Ok((5, octets(3000)))
    };
    drop_everywhere("a deferred call", true, with(work)).await;
    let work = |target: TargetRef| async move {
        let targets = vec![target; 10];
        let all = fan_out(&targets, Duration::from_secs(9), |target| async move {
            target.once(9, 0, octets(500)).await
        });
        all.await.into_iter().all(|answer| answer.result.is_ok())
    };
    drop_everywhere("calls at the same time", true, with(work)).await;
}

/// Returns the bytes of a source that is not always ready.
fn source(len: usize) -> ByteSource {
    let pieces = (0..len).step_by(9000).map(move |at| Ok::<_, std::io::Error>(octets(9000.min(len - at))));
    let pieces = futures_util::StreamExt::then(futures_util::stream::iter(pieces), |piece| async {
        tokio::task::yield_now().await;
        piece
    });
    ByteSource::stream(len as u64, pieces)
}

#[tokio::test(start_paused = true)]
async fn a_stream_to_a_servant_dropped_anywhere_leaves_nothing() {
    let work = |target: TargetRef| async move { target.put(octets(90_000)).await == Ok(90_000) };
    drop_everywhere("a stream from memory", true, with(work)).await;
    let work = |target: TargetRef| async move { target.put(source(90_000)).await == Ok(90_000) };
    drop_everywhere("a stream from a source", true, with(work)).await;
}

#[tokio::test(start_paused = true)]
async fn a_deposit_dropped_anywhere_leaves_nothing() {
    let work = |target: TargetRef| async move { target.deposit(octets(90_000)).await == Ok(90_000) };
    drop_everywhere("a deposit", true, with(work)).await;
    let work = |target: TargetRef| async move { target.deposit(source(90_000)).await == Ok(90_000) };
    drop_everywhere("a deposit from a source", true, with(work)).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_from_a_servant_dropped_anywhere_leaves_nothing() {
    let work = |target: TargetRef| async move {
        match target.read(90_000).await {
            Ok(data) => data.collect(90_000).await.is_ok_and(|data| data.len() == 90_000),
            Err(_) => false,
        }
    };
    drop_everywhere("a streamed result", true, with(work)).await;
}

#[tokio::test(start_paused = true)]
async fn resolving_and_narrowing_dropped_anywhere_leave_nothing() {
    let resolves = |orbs: &Pair, target: &TargetRef| -> Work {
        let (client, text) = (orbs.client.clone(), target.to_string());
        Box::pin(async move { client.resolve::<TargetRef>(&text).await.is_ok() })
    };
    drop_everywhere("resolve", false, resolves).await;
    let work = |target: TargetRef| async move { target.narrow::<TargetRef>().await.is_ok() };
    drop_everywhere("narrow", false, with(work)).await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_dropped_anywhere_goes_on_and_leaves_nothing() {
    for at_the_server in [false, true] {
        let mut polls = 0;
        loop {
            let orbs = pair();
            let (servant, target) = over(&orbs).await;
            let calls: Vec<_> = (0..4)
                .map(|number| {
                    let target = target.with_timeout(Duration::from_secs(5));
                    tokio::spawn(async move { target.once(number, 20, octets(100)).await })
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(10)).await;
            let orb = if at_the_server { orbs.server.clone() } else { orbs.client.clone() };
            let done = drop_after_polls(polls, async move { orb.shutdown().await }).await;
            for (number, call) in (0..).zip(calls) {
                match call.await.unwrap() {
                    Ok(_) => assert_eq!(servant.times(number), 1, "{polls} polls"),
                    Err(error) => assert_eq!(error.completed, CompletionStatus::No, "{polls} polls: {error}"),
                }
            }
            drop(target);
            leaves_nothing(orbs, servant, &format!("a shutdown dropped after {polls} polls")).await;
            if done.is_some() {
                break;
            }
            polls += 1;
            // Time does not advance while other tasks are ready, so this future never completes: its last
            // await point was reached.
            if polls > 50 {
                break;
            }
        }
    }
}

#[tokio::test]
async fn binds_over_tcp_dropped_anywhere_leave_no_descriptor() {
    let server = test_support::transport::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let servant = Arc::new(Target::default());
    let here: TargetRef = server.activate_named("Target", Arc::clone(&servant)).unwrap();
    let mut polls = 0;
    loop {
        let client = test_support::transport::builder().build().await.unwrap();
        let target: TargetRef = client.resolve_unchecked(&here.to_string()).await.unwrap();
        let done = drop_after_polls(polls, target.put(octets(500_000))).await;
        assert_eq!(target.add(20, 3).await.unwrap(), 23, "dropped after {polls} polls");
        client.shutdown().await;
        assert_eq!(client.open_connections(), 0);
        if done.is_some_and(|result| result.is_ok()) {
            break;
        }
        polls += 1;
        assert!(polls < 100_000);
    }
    tokio::time::timeout(Duration::from_secs(30), async {
        while server.open_connections() > 0 || servant.inside() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the server keeps connections of clients that are gone");
    let pool = server.pool_stats();
    assert_eq!(pool.free, pool.held, "{pool:?}");
}

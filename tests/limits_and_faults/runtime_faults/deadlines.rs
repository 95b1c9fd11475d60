//! Deadlines, in virtual time: they expire on time, with the right completion status.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zorb::prelude::*;
use zorb::testing::{PipeFaults, local, pair, pair_of};

use crate::runtime_faults::probe::{Probe, ProbeRef, over};

#[track_caller]
fn assert_late(error: &SystemException, completed: CompletionStatus) {
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, completed), "{error}");
}

/// Returns the result, and its duration in milliseconds of virtual time.
async fn timed<T>(work: impl Future<Output = T>) -> (T, u128) {
    let start = Instant::now();
    let value = work.await;
    (value, start.elapsed().as_millis())
}

// clause: poa.messaging.relative_timeout, poa.messaging.levels, exc.when.request_timeout
#[tokio::test(start_paused = true)]
async fn a_call_ends_at_the_deadline_of_its_reference() {
    let orbs = pair();
    let (servant, probe) = over(&orbs).await;
    for limit in [1, 50, 5000] {
        let hasty = probe.with_timeout(Duration::from_millis(limit));
        let (result, took) = timed(hasty.nap(100_000)).await;
        assert_late(&result.unwrap_err(), CompletionStatus::Maybe);
        assert!((u128::from(limit)..=u128::from(limit) + 2).contains(&took), "{took} ms instead of {limit}");
        assert_eq!(hasty.add(1, 2).await.unwrap(), 3, "the next call has the whole time again");
    }
    assert_eq!(orbs.client.open_connections(), 1);
    // The servant was notified, and only the notified requests ended early.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(servant.cancelled(), 3);
}

// clause: poa.messaging.relative_timeout, poa.messaging.levels
#[tokio::test(start_paused = true)]
async fn without_a_word_a_call_ends_at_the_orbs_deadline() {
    let orbs = pair_of(Orb::builder().timeout(Duration::from_secs(3)), Orb::builder());
    let (_servant, probe) = over(&orbs).await;
    let (result, took) = timed(probe.nap(100_000)).await;
    assert_late(&result.unwrap_err(), CompletionStatus::Maybe);
    assert!((3000..=3002).contains(&took), "{took} ms");

    let orbs = pair();
    let (_servant, probe) = over(&orbs).await;
    let (result, took) = timed(probe.nap(100_000)).await;
    assert_late(&result.unwrap_err(), CompletionStatus::Maybe);
    assert!((60_000..=60_002).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_a_call_takes_as_long_as_it_takes() {
    let orbs = pair_of(Orb::builder().no_timeout(), Orb::builder());
    let (_servant, probe) = over(&orbs).await;
    let (result, took) = timed(probe.nap(150_000)).await;
    result.unwrap();
    assert!((150_000..=150_002).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn each_of_many_calls_ends_at_its_own_deadline() {
    let orbs = pair();
    let (_servant, probe) = over(&orbs).await;
    let mut calls = Vec::new();
    // The latest first, so that the timer has to be moved to an earlier time.
    for limit in (1..=40u64).rev() {
        let probe = probe.with_timeout(Duration::from_millis(limit * 10));
        calls.push(tokio::spawn(async move { (limit, timed(probe.nap(100_000)).await) }));
    }
    for call in calls {
        let (limit, (result, took)) = call.await.unwrap();
        assert_late(&result.unwrap_err(), CompletionStatus::Maybe);
        assert!(
            (u128::from(limit) * 10..=u128::from(limit) * 10 + 2).contains(&took),
            "{took} ms for {limit}0"
        );
    }
    // The server sent nothing in all this time.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(orbs.client.open_connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn reply_at_the_deadline_leaves_the_connection_usable() {
    let orbs = pair();
    let (_servant, probe) = over(&orbs).await;
    let hasty = probe.with_timeout(Duration::from_millis(10));
    for round in 0..20 {
        // The servant's reply and the deadline coincide.
        let _ = hasty.nap(9 + round % 3).await;
        assert_eq!(probe.add(round as i32, 1).await.unwrap(), round as i32 + 1);
    }
    assert_eq!(orbs.client.open_connections(), 1);
}

// clause: giop.cancel.queued
#[tokio::test(start_paused = true)]
async fn a_server_that_holds_requests_lets_the_deadline_pass() {
    let orbs = pair_of(Orb::builder(), Orb::builder().start_paused());
    let (servant, probe) = over(&orbs).await;
    let hasty = probe.with_timeout(Duration::from_millis(100));
    let (result, took) = timed(hasty.add(1, 2)).await;
    assert_late(&result.unwrap_err(), CompletionStatus::Maybe);
    assert!((100..=102).contains(&took), "{took} ms");
    // A request that its caller abandoned is not executed when the server continues.
    orbs.server.resume();
    assert_eq!(probe.add(1, 2).await.unwrap(), 3);
    assert_eq!(servant.begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_oneway_waits_for_room_until_its_deadline() {
    // A server that does not serve yet stops reading when enough is in flight.
    let orbs = pair_of(Orb::builder(), Orb::builder().start_paused());
    let mut slow = PipeFaults::default();
    slow.capacity = 1000;
    orbs.set_faults(slow, PipeFaults::default());
    let (servant, probe) = over(&orbs).await;
    let hasty = probe.with_timeout(Duration::from_millis(100));
    let mut sent = 0;
    let error = loop {
        assert!(sent < 1_000_000, "nothing bounds the queue");
        match hasty.note(1).await {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_late(&error, CompletionStatus::No);
    assert!(sent > 100, "{sent}");
    // None of them is lost, and the rejected one was not executed.
    orbs.server.resume();
    assert_eq!(probe.noted().await.unwrap(), sent);
    assert_eq!(servant.begun(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_peer_does_not_take_in_is_not_completed() {
    let orbs = pair_of(Orb::builder(), Orb::builder().start_paused());
    let mut slow = PipeFaults::default();
    slow.capacity = 1000;
    orbs.set_faults(slow, PipeFaults::default());
    let (servant, probe) = over(&orbs).await;
    // Enough is in flight that the server stops reading; then the pipe is full as well.
    for _ in 0..2000 {
        probe.note(1).await.unwrap();
    }
    let (result, took) = timed(probe.with_timeout(Duration::from_millis(100)).add(1, 2)).await;
    assert_late(&result.unwrap_err(), CompletionStatus::No);
    assert!((100..=102).contains(&took), "{took} ms");
    orbs.server.resume();
    assert_eq!(probe.noted().await.unwrap(), 2000);
    assert_eq!(servant.begun(), 0, "what is told to be not completed is not begun later");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_others_wait_behind_is_not_said_to_be_not_completed_and_executed_later() {
    let orbs = pair_of(Orb::builder(), Orb::builder().start_paused());
    let mut slow = PipeFaults::default();
    slow.capacity = 1000;
    orbs.set_faults(slow, PipeFaults::default());
    let (servant, probe) = over(&orbs).await;
    for _ in 0..2000 {
        probe.note(1).await.unwrap();
    }
    let hasty = probe.with_timeout(Duration::from_millis(100));
    let (first, second) = tokio::join!(hasty.add(1, 2), async {
        let second = probe.add(3, 4);
        tokio::time::timeout(Duration::from_millis(200), second).await
    });
    let error = first.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::Timeout, "{error}");
    assert!(second.is_err(), "it was given up by its caller");
    orbs.server.resume();
    assert_eq!(probe.noted().await.unwrap(), 2000);
    let executed = servant.begun();
    assert!(error.completed == CompletionStatus::Maybe || executed == 0, "{error}, but {executed} executed");
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_servant_end_with_the_request_they_are_made_for() {
    let orbs = pair();
    let (_servant, there) = over(&orbs).await;
    let middle: ProbeRef = orbs.client.activate(Probe::default()).unwrap();
    let hasty = middle.with_timeout(Duration::from_millis(50));
    let (result, took) = timed(hasty.nap_there(&there, 100_000)).await;
    assert_late(&result.unwrap_err(), CompletionStatus::Maybe);
    assert!((50..=52).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn a_collocated_call_ends_at_its_deadline_and_its_servant_with_it() {
    let servant = Arc::new(Probe::default());
    let probe: ProbeRef = local(Arc::clone(&servant));
    let (result, took) = timed(probe.with_timeout(Duration::from_millis(50)).nap(10_000)).await;
    assert_late(&result.unwrap_err(), CompletionStatus::Maybe);
    assert!((50..=52).contains(&took), "{took} ms");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((servant.begun(), servant.ended()), (1, 0));
}

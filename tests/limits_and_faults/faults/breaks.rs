//! Peers that are killed, stop responding, or are slow, during calls.

use zorb::prelude::*;
use zorb::testing::{Cut, Pair, PipeFaults, RandomFaults, pair, pair_of, seeds};
use zorb::{Limits, Retry};

use crate::faults::target::{Target, TargetRef, leaves_nothing, octets, over};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a pipe in which a message of 100 KB takes some tens of milliseconds.
fn slow() -> PipeFaults {
    let mut faults = PipeFaults::default();
    (faults.capacity, faults.delay) = (8000, Duration::from_millis(2));
    faults
}

/// Returns the object over a separate connection without faults.
async fn other(orbs: &Pair) -> TargetRef {
    orbs.client.resolve_unchecked("corbaloc:iiop:1.1@server.memory:1/Target").await.unwrap()
}

#[track_caller]
fn assert_true(outcome: &Result<(u64, Bytes), SystemException>, servant: &Target, number: u64, what: &str) {
    let times = servant.times(number);
    match outcome {
        Ok(_) => assert_eq!(times, 1, "{what}"),
        Err(error) => match error.completed {
            CompletionStatus::No => assert_eq!(times, 0, "{what}: {error}"),
            _ => assert!(times <= 1, "{what}: {error}"),
        },
    }
}

// clause: giop.connection.lost
#[tokio::test(start_paused = true)]
async fn a_peer_killed_in_mid_message_costs_the_calls_under_way_and_no_more() {
    let (mut failed, mut went_well) = (0, 0);
    for cut in [Cut::End, Cut::Reset] {
        for at in (0..120).step_by(3) {
            let what = format!("{cut:?} after {at} ms");
            let orbs = pair();
            let (servant, target) = over(&orbs).await;
            orbs.set_faults(slow(), slow());
            let calls: Vec<_> = (0..3)
                .map(|number| {
                    let target = target.with_retry(Retry::Never);
                    tokio::spawn(async move { target.once(number, 0, octets(60_000)).await })
                })
                .collect();
            tokio::time::sleep(Duration::from_millis(at)).await;
            orbs.cut(cut);
            for (number, call) in (0..).zip(calls) {
                let outcome = call.await.unwrap();
                assert_true(&outcome, &servant, number, &what);
                match outcome {
                    Ok(_) => went_well += 1,
                    Err(error) => {
                        // TRANSIENT if no part of it was sent.
                        let broken = [SystemExceptionKind::CommFailure, SystemExceptionKind::Transient];
                        assert!(broken.contains(&error.kind), "{what}: {error}");
                        failed += 1;
                    }
                }
            }
            // A new connection is opened automatically.
            assert_eq!(target.once(9, 0, octets(60_000)).await.unwrap().0, 9, "{what}");
            drop(target);
            leaves_nothing(orbs, servant, &what).await;
        }
    }
    assert!(failed > 50 && went_well > 3, "{failed} {went_well}");
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_peer_surely_did_not_execute_is_sent_again_by_itself() {
    for at in 0..25 {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        orbs.set_faults(slow(), slow());
        let call = {
            let target = target.clone();
            // Sending takes longer than the connection lives.
            tokio::spawn(async move { target.once(1, 0, octets(200_000)).await })
        };
        tokio::time::sleep(Duration::from_millis(at)).await;
        orbs.cut(Cut::Reset);
        assert_eq!(call.await.unwrap().unwrap().0, 1, "cut after {at} ms");
        assert_eq!(servant.times(1), 1, "cut after {at} ms");
        drop(target);
        leaves_nothing(orbs, servant, "a call that was sent again").await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_to_a_peer_that_goes_silent_end_at_their_deadlines() {
    for at in [0, 1, 5, 20, 50] {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        orbs.set_faults(slow(), slow());
        let hasty = target.with_timeout(5 * SECOND).with_retry(Retry::Never);
        hasty.add(1, 2).await.unwrap();
        let calls: Vec<_> = (0..3)
            .map(|number| {
                let target = hasty.clone();
                tokio::spawn(async move { target.once(number, 60, octets(30_000)).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(at)).await;
        assert_eq!(orbs.cut(Cut::Silence), 1);
        for (number, call) in (0..).zip(calls) {
            let outcome = call.await.unwrap();
            assert_true(&outcome, &servant, number, &format!("silent after {at} ms"));
            let error = outcome.unwrap_err();
            assert_eq!(error.kind, SystemExceptionKind::Timeout, "silent after {at} ms: {error}");
        }
        // Both sides close the connection by their timeouts: of a partial message, of a write, or because it
        // is idle.
        tokio::time::sleep(200 * SECOND).await;
        for orb in [&orbs.client, &orbs.server] {
            assert_eq!(orb.open_connections(), 0, "silent after {at} ms");
        }
        assert_eq!(target.add(20, 3).await.unwrap(), 23);
        drop((target, hasty));
        leaves_nothing(orbs, servant, &format!("silent after {at} ms")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn flush_reports_oneways_that_the_server_had_not_read_when_the_connection_broke() {
    for cut in [Cut::Reset, Cut::End] {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        let mut stuck = PipeFaults::default();
        (stuck.cut_after, stuck.cut) = (Some(50), Cut::Silence);
        orbs.set_faults(stuck, PipeFaults::default());
        target.note(1, octets(10_000)).await.unwrap();
        // The pipe has taken all of it, which is all that is known while the connection exists.
        target.flush().await.unwrap();
        assert_eq!(orbs.cut(cut), 1);
        tokio::time::sleep(Duration::from_millis(1)).await;
        let error = target.flush().await.unwrap_err();
        assert_eq!(error.kind, SystemExceptionKind::CommFailure, "{cut:?}: {error}");
        assert_eq!(error.completed, CompletionStatus::Maybe, "{cut:?}: {error}");
        assert!(error.to_string().contains("oneways may be lost"), "{cut:?}: {error}");
        orbs.set_faults(PipeFaults::default(), PipeFaults::default());
        // It is reported as long as the reference uses that connection.
        assert!(target.flush().await.is_err(), "{cut:?}");
        assert_eq!(target.add(20, 3).await.unwrap(), 23);
        target.flush().await.unwrap();
        assert_eq!(servant.times(1), 0);
        drop(target);
        leaves_nothing(orbs, servant, &format!("{cut:?}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn flush_reports_once_that_an_earlier_connection_lost_oneways() {
    let orbs = pair();
    let (servant, target) = over(&orbs).await;
    let mut stuck = PipeFaults::default();
    (stuck.cut_after, stuck.cut) = (Some(50), Cut::Silence);
    orbs.set_faults(stuck, PipeFaults::default());
    target.note(1, octets(1000)).await.unwrap();
    assert_eq!(orbs.cut(Cut::Reset), 1);
    tokio::time::sleep(Duration::from_millis(1)).await;
    orbs.set_faults(PipeFaults::default(), PipeFaults::default());
    assert_eq!(target.add(20, 3).await.unwrap(), 23);
    let error = target.flush().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::CommFailure, "{error}");
    target.flush().await.unwrap();
    assert_eq!(servant.times(1), 0);
    drop(target);
    leaves_nothing(orbs, servant, "an earlier connection").await;
}

#[tokio::test(start_paused = true)]
async fn oneways_before_an_answered_call_are_not_lost_when_the_connection_breaks_later() {
    let orbs = pair();
    let (servant, target) = over(&orbs).await;
    target.note(1, octets(100)).await.unwrap();
    target.add(1, 2).await.unwrap();
    assert_eq!(orbs.cut(Cut::Reset), 1);
    tokio::time::sleep(Duration::from_millis(1)).await;
    target.flush().await.unwrap();
    assert_eq!(servant.times(1), 1);
    drop(target);
    leaves_nothing(orbs, servant, "answered").await;
}

#[tokio::test(start_paused = true)]
async fn calls_after_three_timeouts_go_over_a_new_connection() {
    let orbs = pair();
    let (servant, target) = over(&orbs).await;
    let hasty = target.with_timeout(2 * SECOND).with_retry(Retry::Never);
    hasty.add(1, 2).await.unwrap();
    assert_eq!(orbs.cut(Cut::Silence), 1);
    for _ in 0..3 {
        let error = hasty.add(1, 2).await.unwrap_err();
        assert_eq!(error.kind, SystemExceptionKind::Timeout, "{error}");
    }
    assert_eq!(hasty.add(20, 3).await.unwrap(), 23);
    drop((target, hasty));
    leaves_nothing(orbs, servant, "silent").await;
}

#[tokio::test(start_paused = true)]
async fn flush_ends_at_the_deadline_of_a_call_when_the_server_does_not_read() {
    let orbs = pair();
    let (servant, target) = over(&orbs).await;
    let mut stuck = PipeFaults::default();
    (stuck.capacity, stuck.cut_after, stuck.cut) = (1000, Some(50), Cut::Silence);
    orbs.set_faults(stuck, PipeFaults::default());
    let hasty = target.with_timeout(2 * SECOND);
    hasty.note(1, octets(100_000)).await.unwrap();
    let begun = tokio::time::Instant::now();
    let error = hasty.flush().await.unwrap_err();
    assert_eq!(begun.elapsed().as_secs(), 2);
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    assert!(error.to_string().contains("has not accepted all oneways within 2s"), "{error}");
    // The write timeout ends the connection, and the oneways with it.
    tokio::time::sleep(200 * SECOND).await;
    let error = hasty.flush().await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::CommFailure, "{error}");
    drop((target, hasty));
    leaves_nothing(orbs, servant, "not read").await;
}

#[tokio::test(start_paused = true)]
async fn one_octet_at_a_time_is_enough_for_everything() {
    let mut single = PipeFaults::default();
    (single.max_read_bytes, single.max_write_bytes, single.capacity) = (1, 1, 1);
    let orbs = pair();
    let (servant, target) = over(&orbs).await;
    orbs.set_faults(single, single);
    for version in ["1.0", "1.1", "1.2"] {
        let url = format!("corbaloc:iiop:{version}@server.memory:1/Target");
        let target: TargetRef = orbs.client.resolve(&url).await.unwrap();
        assert_eq!(target.add(20, 3).await.unwrap(), 23);
        assert_eq!(target.once(1, 0, octets(5000)).await.unwrap(), (1, octets(5000)));
        assert_eq!(target.stumble().await.unwrap_err().kind, SystemExceptionKind::Unknown);
        assert!(target.non_existent().await.is_ok_and(|gone| !gone));
        target.note(2, octets(100)).await.unwrap();
        target.flush().await.unwrap();
        assert_eq!(target.put(octets(17_000)).await.unwrap(), 17_000);
        assert_eq!(target.deposit(octets(17_000)).await.unwrap(), 17_000);
        assert_eq!(target.read(17_000).await.unwrap().remaining(), 17_000);
    }
    drop(target);
    leaves_nothing(orbs, servant, "octet by octet").await;
}

#[tokio::test(start_paused = true)]
async fn slow_reader_does_not_delay_others_and_a_stopped_one_is_closed() {
    // To a reader of 1 KB/s, and to one that reads the first 2000 bytes and no more.
    for stops in [None, Some(2000)] {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        let mut replies = PipeFaults::default();
        (replies.capacity, replies.delay) = (1000, SECOND);
        (replies.cut_after, replies.cut) = (stops, Cut::Silence);
        orbs.set_faults(PipeFaults::default(), replies);
        let patient = target.with_timeout(1000 * SECOND).with_retry(Retry::Never);
        let slow = tokio::spawn(async move { patient.once(1, 0, octets(200_000)).await });
        let sibling = target.with_timeout(1000 * SECOND).with_retry(Retry::Never);
        let behind = tokio::spawn(async move { sibling.once(2, 0, octets(10)).await });
        tokio::time::sleep(SECOND).await;
        orbs.set_faults(PipeFaults::default(), PipeFaults::default());
        let other = other(&orbs).await;
        for number in 100..200 {
            other.once(number, 0, octets(1000)).await.unwrap();
        }
        // The timeout for receiving a message has expired, or that for writing to a peer that does not read.
        let error = slow.await.unwrap().unwrap_err();
        assert_eq!(error.completed, CompletionStatus::Maybe, "{error}");
        behind.await.unwrap().unwrap_err();
        tokio::time::sleep(50 * SECOND).await;
        other.add(1, 2).await.unwrap();
        assert_eq!(orbs.server.open_connections(), 1, "only the good one");
        assert_eq!((servant.times(1), servant.times(2)), (1, 1));
        drop((target, other));
        leaves_nothing(orbs, servant, "a slow reader").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_in_the_middle_of_a_write_leaves_the_connection_good() {
    let (mut late, mut whole) = (0, 0);
    for milliseconds in (1..150).step_by(2) {
        let what = format!("{milliseconds} ms");
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        orbs.set_faults(slow(), slow());
        target.add(1, 2).await.unwrap();
        let hasty = target.with_timeout(Duration::from_millis(milliseconds)).with_retry(Retry::Never);
        let outcome = hasty.once(1, 0, octets(150_000)).await;
        assert!(servant.times(1) <= 1, "{what}");
        match &outcome {
            Ok(_) => whole += 1,
            Err(error) => {
                assert_eq!(error.kind, SystemExceptionKind::Timeout, "{what}: {error}");
                // The rest of a partially written message follows.
                assert_eq!(error.completed, CompletionStatus::Maybe, "{what}: {error}");
                late += 1;
            }
        }
        // A partially written message is completed: the next call is another message.
        assert_eq!(target.add(20, 3).await.unwrap(), 23, "{what}");
        assert_eq!(orbs.client.open_connections(), 1, "{what}");
        assert_true(&outcome, &servant, 1, &what);
        drop((target, hasty, outcome));
        leaves_nothing(orbs, servant, &what).await;
    }
    assert!(late > 0 && whole > 0, "{late} {whole}");
}

#[tokio::test(start_paused = true)]
async fn blocked_write_ends_at_its_deadline_and_the_connection_at_its_timeout() {
    let mut limits = Limits::default();
    limits.write_timeout = 20 * SECOND;
    // The server has long timeouts, so the writer closes the connection.
    let mut patient = Limits::default();
    (patient.first_header_timeout, patient.message_timeout) = (1000 * SECOND, 1000 * SECOND);
    let orbs = pair_of(Orb::builder().limits(limits), Orb::builder().limits(patient));
    let (servant, target) = over(&orbs).await;
    let mut requests = PipeFaults::default();
    (requests.capacity, requests.cut_after, requests.cut) = (5000, Some(100), Cut::Silence);
    orbs.set_faults(requests, PipeFaults::default());
    let hasty = target.with_timeout(5 * SECOND).with_retry(Retry::Never);
    for number in 0..3 {
        let error = hasty.once(number, 0, octets(50_000)).await.unwrap_err();
        // The first one is partially written, and its rest would follow if the peer read; the others are
        // queued after it.
        let completed = if number == 0 { CompletionStatus::Maybe } else { CompletionStatus::No };
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::Timeout, completed),
            "{number}: {error}"
        );
    }
    orbs.set_faults(PipeFaults::default(), PipeFaults::default());
    // It is queued when the connection is closed, and is sent over a new one within its deadline.
    assert_eq!(target.once(4, 0, octets(100)).await.unwrap().0, 4);
    assert_eq!((0..3).map(|number| servant.times(number)).sum::<u32>(), 0);
    drop((target, hasty));
    leaves_nothing(orbs, servant, "a write that nobody takes").await;
}

#[tokio::test(start_paused = true)]
async fn deadlines_at_any_time_over_any_pipe_tell_the_truth() {
    for seed in seeds(100) {
        let orbs = pair();
        let (servant, target) = over(&orbs).await;
        let faults = RandomFaults::seeded(seed).delay(Duration::from_millis(20));
        orbs.set_random_faults(faults.clone());
        let calls: Vec<_> = (0..10)
            .map(|number| {
                let hasty = target.with_timeout(Duration::from_millis(1 + (seed * 7 + number * 13) % 400));
                tokio::spawn(async move { hasty.once(number, 0, octets(number as usize * 900)).await })
            })
            .collect();
        let mut outcomes = Vec::new();
        for call in calls {
            outcomes.push(call.await.unwrap());
        }
        assert_eq!(target.add(20, 3).await.unwrap(), 23, "{faults}");
        for (number, outcome) in (0..).zip(&outcomes) {
            assert_true(outcome, &servant, number, &faults.to_string());
        }
        drop((target, outcomes));
        leaves_nothing(orbs, servant, &faults.to_string()).await;
    }
}

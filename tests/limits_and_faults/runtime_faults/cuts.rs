//! Connections that break at every byte of a request and of a reply.

use zorb::Retry;
use zorb::prelude::*;
use zorb::testing::{Pair, PipeFaults, pair};

use crate::runtime_faults::probe::over;

/// Longer than a small request or reply.
const LONG: u64 = 400;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Requests,
    Replies,
}

/// Breaks connections that are opened from now on after `after` bytes in one direction.
fn cut(orbs: &Pair, way: Way, after: Option<u64>) {
    let mut faults = PipeFaults::default();
    faults.cut_after = after;
    match way {
        Way::Requests => orbs.set_faults(faults, PipeFaults::default()),
        Way::Replies => orbs.set_faults(PipeFaults::default(), faults),
    }
}

#[track_caller]
fn assert_broken(error: &SystemException, after: u64) {
    let kinds = [SystemExceptionKind::CommFailure, SystemExceptionKind::Transient];
    assert!(kinds.contains(&error.kind), "cut after {after}: {error}");
}

// clause: exc.completed.nothing_sent, giop.connection.lost
#[tokio::test(start_paused = true)]
async fn a_request_cut_anywhere_fails_its_call_and_is_not_executed() {
    for after in 0.. {
        let orbs = pair();
        let (servant, probe) = over(&orbs).await;
        cut(&orbs, Way::Requests, Some(after));
        match probe.with_retry(Retry::Never).add(1, 2).await {
            // All of it was transferred: that is its length.
            Ok(sum) => {
                assert_eq!((sum, servant.begun()), (3, 1));
                assert!((12..LONG).contains(&after), "{after}");
                break;
            }
            Err(error) => {
                assert_broken(&error, after);
                assert_eq!(servant.begun(), 0, "cut after {after}");
            }
        }
        cut(&orbs, Way::Requests, None);
        assert_eq!(probe.add(3, 4).await.unwrap(), 7, "cut after {after}: the next call connects again");
    }
}

// clause: exc.completed.no_reply, giop.connection.lost
#[tokio::test(start_paused = true)]
async fn a_reply_cut_anywhere_fails_its_call_which_may_have_been_executed() {
    for after in 0.. {
        let orbs = pair();
        let (servant, probe) = over(&orbs).await;
        cut(&orbs, Way::Replies, Some(after));
        match probe.with_retry(Retry::Never).add(1, 2).await {
            Ok(sum) => {
                assert_eq!(sum, 3);
                assert!((12..LONG).contains(&after), "{after}");
                break;
            }
            Err(error) => {
                assert_broken(&error, after);
                assert_eq!(error.completed, CompletionStatus::Maybe, "cut after {after}: {error}");
            }
        }
        assert_eq!(servant.begun(), 1, "cut after {after}");
        cut(&orbs, Way::Replies, None);
        assert_eq!(probe.add(3, 4).await.unwrap(), 7, "cut after {after}");
    }
}

// clause: exc.when.retry
#[tokio::test(start_paused = true)]
async fn what_may_have_been_executed_is_only_sent_again_where_that_is_allowed() {
    for after in 0..LONG {
        for (retry, may_repeat) in [(Retry::default(), false), (Retry::idempotent(1), true)] {
            let orbs = pair();
            let (servant, probe) = over(&orbs).await;
            let probe = probe.with_retry(retry);
            // Cut within the second reply, or after it.
            cut(&orbs, Way::Replies, Some(after));
            // The first call of a connection that breaks immediately fails, or is repeated over a connection
            // that breaks too.
            let first = probe.add(0, 0).await;
            cut(&orbs, Way::Replies, None);
            if first.is_err() {
                continue;
            }
            let before = servant.begun();
            let second = probe.add(1, 2).await;
            match second {
                Ok(sum) => assert_eq!(sum, 3),
                Err(error) => {
                    assert!(!may_repeat, "cut after {after}: {error}");
                    assert_eq!(error.completed, CompletionStatus::Maybe, "cut after {after}: {error}");
                }
            }
            let executed = servant.begun() - before;
            assert!(executed == 1 || may_repeat && executed == 2, "cut after {after}: {executed} times");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bulk_message_cut_anywhere_fails_its_call() {
    const SIZE: u64 = 80_000;
    let octets = Bytes::from((0..SIZE as u32).map(|i| i as u8).collect::<Vec<_>>());
    for way in [Way::Requests, Way::Replies] {
        // Around the header, the first window, and the end.
        let places = (0..30).chain((65_500..65_700).step_by(9)).chain(SIZE - 5..SIZE + LONG);
        for after in places {
            let orbs = pair();
            let (_servant, probe) = over(&orbs).await;
            cut(&orbs, way, Some(after));
            match probe.with_retry(Retry::Never).echo(octets.clone()).await {
                Ok(echo) => {
                    // The other positions are beyond its end.
                    assert!(echo == octets && after >= SIZE, "cut after {after}");
                    break;
                }
                Err(error) => assert_broken(&error, after),
            }
            cut(&orbs, way, None);
            assert_eq!(probe.echo(octets.clone()).await.unwrap(), octets, "cut after {after}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_callers_of_a_connection_hear_of_its_end() {
    for after in (0..10_000).step_by(61) {
        let orbs = pair();
        let (servant, probe) = over(&orbs).await;
        cut(&orbs, Way::Replies, Some(after));
        let calls: Vec<_> = (0..50)
            .map(|i| {
                let probe = probe.with_retry(Retry::Never);
                tokio::spawn(async move { probe.add(i, 1).await })
            })
            .collect();
        let mut answered = 0;
        for (i, call) in (0..).zip(calls) {
            match call.await.unwrap() {
                Ok(sum) => {
                    assert_eq!(sum, i + 1);
                    answered += 1;
                }
                Err(error) => assert_broken(&error, after),
            }
        }
        assert!(answered <= servant.begun());
        if answered == 50 {
            break;
        }
        cut(&orbs, Way::Replies, None);
        assert_eq!(probe.add(3, 4).await.unwrap(), 7);
    }
}

// clause: exc.when.retry_oneway
#[tokio::test(start_paused = true)]
async fn a_lost_oneway_is_reported_by_flush_or_the_next_call() {
    for after in (0..LONG).step_by(13) {
        let orbs = pair();
        let (_servant, probe) = over(&orbs).await;
        cut(&orbs, Way::Requests, Some(after));
        let (mut refused, mut reported) = (0, 0);
        for _ in 0..20 {
            if let Err(error) = probe.note(1).await {
                assert_broken(&error, after);
                refused += 1;
            } else if let Err(error) = probe.flush().await {
                assert_eq!(error.kind, SystemExceptionKind::CommFailure, "cut after {after}: {error}");
                assert_eq!(error.completed, CompletionStatus::Maybe, "cut after {after}: {error}");
                reported += 1;
            }
        }
        // The end of the connection has been noticed by now.
        tokio::time::sleep(Duration::from_millis(1)).await;
        reported += i32::from(probe.flush().await.is_err());
        cut(&orbs, Way::Requests, None);
        assert_eq!(probe.add(3, 4).await.unwrap(), 7, "cut after {after}");
        let noted = probe.noted().await.unwrap();
        assert!(noted + refused <= 20);
        assert!(noted + refused == 20 || reported > 0, "cut after {after}: {noted} of 20, {refused} refused");
        probe.flush().await.unwrap();
    }
}

// clause: exc.when.refused
#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_connections_is_transient_and_named() {
    let orbs = pair();
    let (servant, probe) = over(&orbs).await;
    orbs.set_refusing(true);
    let error = probe.add(1, 2).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    let text = error.to_string();
    assert!(text.contains("server.memory") && text.contains("refused"), "{text}");
    orbs.set_refusing(false);
    assert_eq!(probe.add(1, 2).await.unwrap(), 3);
    assert_eq!(servant.begun(), 1);
}

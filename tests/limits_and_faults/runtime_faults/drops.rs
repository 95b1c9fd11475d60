//! Futures dropped at every poll: what was begun is cancelled, the connection stays usable, and no message is
//! partially sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use zorb::prelude::*;
use zorb::testing::{PipeFaults, local, pair};

use crate::runtime_faults::on_both_flavours;
use crate::runtime_faults::probe::{Probe, ProbeRef, over, tcp};

/// More polls than any call here needs.
const MANY: usize = 3000;

/// Polls the future up to `polls` times with other tasks in between, then drops it. Returns its output if it
/// completed.
async fn drop_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future: Pin<Box<F>> = Box::pin(future);
    for _ in 0..polls {
        let polled = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Returns a pipe through which a message needs several writes and reads.
fn narrow() -> PipeFaults {
    let mut faults = PipeFaults::default();
    (faults.max_read_bytes, faults.max_write_bytes, faults.capacity) = (700, 500, 600);
    faults
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_poll_leaves_the_connection_good() {
    for faults in [PipeFaults::default(), narrow()] {
        let octets = Bytes::from(vec![7; 20_000]);
        let mut polls = 0;
        loop {
            let orbs = pair();
            orbs.set_faults(faults, faults);
            let (_servant, probe) = over(&orbs).await;
            probe.ping().await.unwrap();
            let done = drop_after(polls, probe.echo(octets.clone())).await;
            assert_eq!(probe.add(20, 3).await.unwrap(), 23, "dropped after {polls} polls");
            assert_eq!(probe.echo(octets.clone()).await.unwrap(), octets, "dropped after {polls} polls");
            assert_eq!(orbs.client.open_connections(), 1, "dropped after {polls} polls");
            if let Some(echo) = done {
                assert_eq!(echo.unwrap(), octets);
                break;
            }
            polls += 1;
            assert!(polls < MANY);
        }
        assert!(polls > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_call_dropped_at_any_poll_leaves_the_reference_good() {
    let mut polls = 0;
    loop {
        let orbs = pair();
        let (_servant, probe) = over(&orbs).await;
        // Connecting is part of it.
        let done = drop_after(polls, probe.add(1, 2)).await;
        assert_eq!(probe.add(20, 3).await.unwrap(), 23, "dropped after {polls} polls");
        assert_eq!(orbs.client.open_connections(), 1);
        if done.is_some() {
            break;
        }
        polls += 1;
        assert!(polls < MANY);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_at_its_servant() {
    let orbs = pair();
    let (servant, probe) = over(&orbs).await;
    let mut begun = 0;
    for polls in 0..20 {
        assert!(drop_after(polls, probe.nap(1_000_000)).await.is_none());
        // Long enough for request and CancelRequest, far too short for the nap.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(servant.cancelled(), servant.begun(), "dropped after {polls} polls");
        begun = servant.begun();
    }
    assert!(begun > 0, "none of them came so far");
    assert_eq!(orbs.client.open_connections(), 1);
    probe.ping().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_others_of_a_dropped_call_go_on() {
    for polls in 0..10 {
        let orbs = pair();
        let (_servant, probe) = over(&orbs).await;
        let (dropped, before, behind) =
            (probe.with_timeout(Duration::from_secs(9)), probe.clone(), probe.clone());
        let before = tokio::spawn(async move { before.nap(20).await });
        tokio::task::yield_now().await;
        let ((), result) = tokio::join!(
            async {
                drop_after(polls, dropped.nap(1_000_000)).await;
            },
            behind.nap(30)
        );
        result.unwrap();
        before.await.unwrap().unwrap();
        assert_eq!(orbs.client.open_connections(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn unpolled_call_does_not_stall_other_calls() {
    let orbs = pair();
    let (_servant, probe) = over(&orbs).await;
    let mut held = Box::pin(probe.nap(1));
    std::future::poll_fn(|cx| {
        assert!(held.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    // The held call has the read role, and is not polled.
    for i in 0..100 {
        assert_eq!(probe.add(i, 1).await.unwrap(), i + 1);
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    held.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_oneway_dropped_at_any_poll_is_sent_whole_or_not_at_all() {
    let orbs = pair();
    orbs.set_faults(narrow(), narrow());
    let (_servant, probe) = over(&orbs).await;
    let mut least = 0;
    let mut most = 0;
    // More than the queue's capacity, so that some of them wait for space when they are dropped.
    for i in 0..30_000 {
        match drop_after(i % 4, probe.note(1)).await {
            Some(Ok(())) => (least, most) = (least + 1, most + 1),
            Some(Err(error)) => panic!("{error}"),
            None if i % 4 > 0 => most += 1,
            None => {}
        }
    }
    let noted = probe.noted().await.unwrap();
    assert!((least..=most).contains(&noted), "{noted} of {least} to {most}");
    assert_eq!(orbs.client.open_connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_collocated_call_drops_the_servants_future() {
    let servant = Arc::new(Probe::default());
    let probe: ProbeRef = local(Arc::clone(&servant));
    for polls in 0..5 {
        assert!(drop_after(polls, probe.nap(10)).await.is_none());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((servant.begun(), servant.ended()), (4, 0));
    assert_eq!(probe.add(1, 2).await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn dropping_resolve_and_shutdown_leaves_nothing_behind() {
    for polls in 0..20 {
        let orbs = pair();
        let (_servant, probe) = over(&orbs).await;
        let text = probe.to_string();
        drop_after(polls, orbs.client.resolve::<ProbeRef>(&text)).await;
        drop_after(polls, probe.flush()).await;
        assert_eq!(probe.add(1, 2).await.unwrap(), 3);
        drop_after(polls, orbs.server.shutdown()).await;
        assert_eq!(orbs.server.shutdown().await.aborted_connections, 0);
        let error = probe.add(1, 2).await;
        assert!(error.is_ok() || error.is_err_and(|error| error.completed == CompletionStatus::No));
    }
}

on_both_flavours! {
    async fn calls_dropped_over_tcp_leave_the_connection_good() {
        let tcp = tcp().await;
        let octets = Bytes::from(vec![7; 300_000]);
        for polls in 0..30 {
            drop_after(polls, tcp.probe.echo(octets.clone())).await;
            drop_after(polls, tcp.probe.nap(1)).await;
            assert_eq!(tcp.probe.add(polls as i32, 1).await.unwrap(), polls as i32 + 1);
        }
        assert_eq!(tcp.probe.echo(octets.clone()).await.unwrap(), octets);
        assert_eq!(tcp.client.open_connections(), 1);
        assert_eq!(tcp.server.shutdown().await.aborted_connections, 0);
    }

    async fn tasks_aborted_at_any_time_leave_the_connection_good() {
        let tcp = tcp().await;
        for round in 0..30u64 {
            let tasks: Vec<_> = (0..8)
                .map(|i| {
                    let probe = tcp.probe.clone();
                    tokio::spawn(async move {
                        loop {
                            assert_eq!(probe.add(i, 1).await.unwrap(), i + 1);
                        }
                    })
                })
                .collect();
            tokio::time::sleep(Duration::from_micros(100 * (round % 10))).await;
            for task in &tasks {
                task.abort();
            }
            assert_eq!(tcp.probe.add(1, 2).await.unwrap(), 3);
            for task in tasks {
                assert!(task.await.unwrap_err().is_cancelled(), "a wrong answer");
            }
        }
        assert_eq!(tcp.client.open_connections(), 1);
    }
}

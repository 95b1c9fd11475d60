//! Tests of plain threads: calls that block on their socket, and futures that wait for more than that.

use std::time::{Duration, Instant};

use crate::probe::{Probe, ProbeRef, builder};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use orb_runtime::blocking::wait;
use orb_runtime::{CompletionStatus, Orb, Reference, SystemExceptionKind, WaitStrategy};

/// A server on threads of its own. Dropping it ends it.
struct Server {
    runtime: tokio::runtime::Runtime,
    orb: Orb,
    text: String,
}

fn server() -> Server {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let orb = runtime.block_on(builder().listen("iiop://127.0.0.1:0").build()).unwrap();
    let activation = orb.activation().concurrent();
    let text = activation.activate::<ProbeRef, _>(Probe::default()).unwrap().to_string();
    Server { runtime, orb, text }
}

fn client(latency: WaitStrategy) -> Orb {
    wait(builder().wait_strategy(latency).build()).unwrap()
}

fn probe(orb: &Orb, server: &Server) -> ProbeRef {
    wait(orb.resolve(&server.text)).unwrap()
}

#[test]
fn calls_bring_their_results_in_one_wait_or_many() {
    let server = server();
    for latency in [WaitStrategy::Park, WaitStrategy::BusyPoll(Duration::from_micros(20))] {
        let orb = client(latency);
        let probe = probe(&orb, &server);
        for k in 0..100 {
            assert_eq!(wait(probe.add(k, 5)).unwrap(), k + 5);
        }
        wait(async {
            for k in 0..100 {
                assert_eq!(probe.add(k, 7).await.unwrap(), k + 7);
            }
            for size in [0, 5000, 70_000, 8 << 20] {
                let octets = Bytes::from(vec![7; size]);
                assert_eq!(probe.echo(octets.clone()).await.unwrap(), octets, "{size}");
            }
        });
        assert_eq!(wait(probe.panic()).unwrap_err().kind, SystemExceptionKind::Unknown);
        assert_eq!(orb.open_connections(), 1);
    }
}

#[test]
fn a_future_that_waits_for_several_things_gets_each_of_them() {
    let server = server();
    let orb = client(WaitStrategy::Park);
    let probe = probe(&orb, &server);
    let begun = Instant::now();
    wait(async {
        let both = async { tokio::join!(probe.sleep(300), probe.sleep(300), probe.add(1, 2)) };
        let (a, b, sum) = both.await;
        a.unwrap();
        b.unwrap();
        assert_eq!(sum.unwrap(), 3);
        // The first call is answered in place, the next two are not.
        probe.ping().await.unwrap();
        let (a, b) = tokio::join!(probe.sleep(300), probe.sleep(300));
        a.unwrap();
        b.unwrap();
    });
    assert!(begun.elapsed() < Duration::from_millis(1200), "one after the other: {:?}", begun.elapsed());
    let sum = wait(async {
        let mut calls: FuturesUnordered<_> = (0..10).map(|k| probe.add(k, 0)).collect();
        let mut sum = 0;
        while let Some(result) = calls.next().await {
            sum += result.unwrap();
        }
        sum
    });
    assert_eq!(sum, 45);
}

#[test]
fn others_wake_a_thread_that_waits_for_a_call_as_well() {
    let server = server();
    let orb = client(WaitStrategy::Park);
    let probe = probe(&orb, &server);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        sender.send(7).unwrap();
    });
    let begun = Instant::now();
    let seven = wait(async {
        tokio::select! {
            seven = receiver => seven.unwrap(),
            _ = probe.sleep(20_000) => 0,
        }
    });
    assert_eq!(seven, 7);
    let timed_out =
        wait(async { tokio::time::timeout(Duration::from_millis(50), probe.sleep(20_000)).await });
    assert!(timed_out.is_err());
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(wait(probe.add(1, 1)).unwrap(), 2, "the connection is good after both calls were dropped");
    other.join().unwrap();
}

#[test]
fn a_deadline_and_a_dead_server_end_a_wait() {
    let server = server();
    let orb = client(WaitStrategy::Park);
    let probe = probe(&orb, &server);
    wait(probe.ping()).unwrap();
    let begun = Instant::now();
    let error = wait(probe.with_timeout(Duration::from_millis(100)).sleep(20_000)).unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let Server { runtime, orb: served, .. } = server;
    let address = served.endpoints().remove(0);
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        runtime.shutdown_background();
        drop(served);
    });
    let error = wait(probe.sleep(20_000)).unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::CommFailure, "{error}");
    killer.join().unwrap();
    // The listener is closed shortly after its runtime ends. Until then, connections are accepted by the
    // system but not served.
    while std::net::TcpStream::connect(&address).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{address} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(wait(probe.ping()).unwrap_err().completed, CompletionStatus::No);
}

#[test]
fn oneways_are_written_when_the_wait_is_over() {
    let server = server();
    let orb = client(WaitStrategy::Park);
    let probe = probe(&orb, &server);
    // Includes gathered messages: no later call would write them.
    for k in 0..20 {
        wait(probe.note(k, 0)).unwrap();
    }
    wait(async {
        for k in 20..2000 {
            probe.note(k, 0).await.unwrap();
        }
    });
    let other: ProbeRef = server.runtime.block_on(server.orb.resolve(&server.text)).unwrap();
    let begun = Instant::now();
    loop {
        let notes = server.runtime.block_on(other.notes()).unwrap();
        if notes.len() == 2000 {
            assert_eq!(notes, (0..2000).collect::<Vec<_>>());
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{} of 2000 arrived", notes.len());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn threads_have_connections_of_their_own() {
    let server = server();
    let orb = client(WaitStrategy::Park);
    let probe = probe(&orb, &server);
    std::thread::scope(|scope| {
        for i in 0..8 {
            let probe = &probe;
            scope.spawn(move || {
                for k in 0..200 {
                    assert_eq!(wait(probe.add(i, k)).unwrap(), i + k);
                }
            });
        }
    });
}

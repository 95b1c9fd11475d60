//! Servers and clients in processes of their own, which signals kill and suspend.

use std::sync::Arc;

use rustix::process::Signal;
use zorb::Retry;
use zorb::prelude::*;

use crate::faults::role::Child;
use crate::faults::target::{Target, TargetRef, octets};
use test_support::transport::builder;

async fn to(ior: &str) -> (Orb, TargetRef) {
    let client = builder().build().await.unwrap();
    let target = client.resolve_unchecked(ior).await.unwrap();
    (client, target)
}

// clause: giop.connection.lost
#[tokio::test]
async fn a_server_killed_in_mid_message_fails_the_calls_under_way_and_its_successor_serves_the_next() {
    // A port that the successors can use as well.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("iiop://127.0.0.1:{port}");
    let with: &[(&str, &str)] = &[("ENDPOINT", &endpoint)];
    let mut server = Child::start("server", with).await;
    server.says().await;
    let (client, target) = to(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/Target")).await;
    for round in 0..3 {
        let calls: Vec<_> = (0..8u64)
            .map(|caller| {
                let target = target.with_retry(Retry::Never);
                tokio::spawn(async move {
                    let mut answered = 0u64;
                    loop {
                        match target.once(caller << 32 | answered, 0, octets(300_000)).await {
                            Ok(_) => answered += 1,
                            Err(error) => return (answered, error),
                        }
                    }
                })
            })
            .collect();
        // In the middle of the transfer: hundreds of kilobytes are always in transit in each direction.
        while client.stats().bytes_in < (round + 1) * 20_000_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.kill().await;
        for call in calls {
            let (_, error) =
                tokio::time::timeout(Duration::from_secs(60), call).await.expect("a call hangs").unwrap();
            let kinds = [SystemExceptionKind::CommFailure, SystemExceptionKind::Transient];
            assert!(kinds.contains(&error.kind), "{error}");
            assert!(error.completed != CompletionStatus::Yes, "{error}");
        }
        // Also the connection over which the reference was queried.
        while client.open_connections() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // No server is listening.
        let error = target.add(1, 2).await.unwrap_err();
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::Transient, CompletionStatus::No),
            "{error}"
        );
        server = Child::start("server", with).await;
        server.says().await;
        assert_eq!(target.once(7, 0, octets(1000)).await.unwrap().0, 7);
        assert_eq!(server.told("7").await, "1");
    }
    // The connection over which the reference was queried ends by itself.
    while client.open_connections() > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client.shutdown().await;
    let pool = client.pool_stats();
    assert_eq!(pool.free, pool.held, "{pool:?}");
}

#[tokio::test]
async fn clients_killed_in_mid_message_leave_nothing_at_the_server() {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let servant = Arc::new(Target::default());
    let here: TargetRef = server.activate_named("Target", Arc::clone(&servant)).unwrap();
    let ior = here.to_string();
    let (client, target) = to(&ior).await;
    for _ in 0..3 {
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = Child::start("client", &[("IOR", &ior), ("FLOODS", "1")]).await;
            assert_eq!(client.says().await, "calling");
            clients.push(client);
        }
        assert_eq!(target.add(1, 2).await.unwrap(), 3);
        for client in clients {
            client.kill().await;
        }
        let gone = async {
            while server.open_connections() > 1 || servant.inside() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), gone).await.expect("connections of dead clients stay");
        assert_eq!(target.add(1, 2).await.unwrap(), 3);
    }
    client.shutdown().await;
    assert_eq!(server.shutdown().await.aborted_connections, 0);
    let pool = server.pool_stats();
    assert_eq!(pool.free, pool.held, "{pool:?}");
}

// clause: exc.when.request_timeout
#[tokio::test]
async fn calls_to_a_stopped_server_end_at_their_deadlines_and_go_on_when_it_does() {
    let mut server = Child::start("server", &[]).await;
    let ior = server.says().await;
    let (client, target) = to(&ior).await;
    target.once(1, 0, octets(1000)).await.unwrap();
    server.stop().await;
    let hasty = target.with_timeout(Duration::from_millis(100));
    let calls: Vec<_> = (10..20)
        .map(|number| {
            let hasty = hasty.clone();
            tokio::spawn(async move { hasty.once(number, 0, octets(1000)).await })
        })
        .collect();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(
            (error.kind, error.completed),
            (SystemExceptionKind::Timeout, CompletionStatus::Maybe),
            "{error}"
        );
    }
    // This call waits until the server is resumed.
    let patient = {
        let target = target.clone();
        tokio::spawn(async move { target.once(30, 0, octets(1000)).await })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!patient.is_finished());
    server.signal(Signal::CONT);
    assert_eq!(patient.await.unwrap().unwrap().0, 30);
    assert_eq!(client.open_connections(), 1, "the same connection");
    for number in 10..20 {
        let times = server.told(&number.to_string()).await;
        assert!(times == "0" || times == "1", "{number}: {times}");
    }
    client.shutdown().await;
    assert!(server.told("shutdown").await.contains("aborted_connections: 0"));
}

#[tokio::test]
async fn a_stopped_client_costs_others_nothing_and_goes_on_when_it_is_woken() {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let servant = Arc::new(Target::default());
    let here: TargetRef = server.activate_named("Target", Arc::clone(&servant)).unwrap();
    let ior = here.to_string();
    let (client, target) = to(&ior).await;
    target.add(1, 2).await.unwrap();
    // It is suspended with its own requests partially sent, or replies partially read.
    let mut stopped = Vec::new();
    for _ in 0..4 {
        let mut child = Child::start("client", &[("IOR", &ior), ("FLOODS", "1")]).await;
        assert_eq!(child.says().await, "calling");
        child.stop().await;
        stopped.push(child);
    }
    for i in 0..100 {
        assert_eq!(target.add(i, 1).await.unwrap(), i + 1);
    }
    for child in &stopped {
        child.signal(Signal::CONT);
    }
    // They continue on the old connection, or on a new one.
    let before = servant.times(1);
    let go_on = async {
        while servant.times(1) < before + 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), go_on).await.expect("they do not go on");
    drop(stopped);
    client.shutdown().await;
}

/// A process without memory is killed, which the previous test covers. This test shows that the memory that
/// peers can make a server use is limited. An rlimit is used, because a memory cgroup would outlive a killed
/// test.
#[tokio::test]
async fn a_server_with_little_memory_outlives_a_flood_of_large_messages() {
    let mut server = Child::start("server", &[("POOL", "16777216"), ("SPARE", "67108864")]).await;
    let ior = server.says().await;
    let (client, target) = to(&ior).await;
    // Far more than it has, if each were granted the announced amount.
    let mut clients = Vec::new();
    for _ in 0..10 {
        let mut child = Child::start("client", &[("IOR", &ior), ("FLOODS", "8")]).await;
        assert_eq!(child.says().await, "calling");
        clients.push(child);
    }
    for number in 100..200 {
        assert_eq!(target.once(number, 0, octets(1000)).await.unwrap().0, number);
    }
    for child in clients {
        child.kill().await;
    }
    assert_eq!(server.told("199").await, "1");
    client.shutdown().await;
    assert!(server.told("shutdown").await.contains("aborted_connections: 0"));
}

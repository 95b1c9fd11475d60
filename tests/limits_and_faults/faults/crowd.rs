//! A thousand clients at once, and exhausted descriptors on either side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpStream;
use zorb::prelude::*;

use crate::faults::role::Child;
use crate::faults::target::{Target, TargetRef};
use test_support::transport::builder;

const CLIENTS: usize = 1000;

/// Raises the limit of descriptors to the maximum. Returns whether it suffices for both ends of the
/// connections.
fn descriptors(connections: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    limit.maximum.is_none_or(|most| most > 2 * connections + 200)
}

/// Fails if `CI` is set, otherwise reports that the test is skipped.
pub(crate) fn skip(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "SKIPPED in CI: {what}");
    eprintln!("SKIPPED: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_clients_that_connect_at_once_are_all_served() {
    if !descriptors(CLIENTS as u64) {
        return skip("a thousand clients need more descriptors than this process may have (ulimit -n)");
    }
    let server = builder().listen("iiop://127.0.0.1:0").max_connections(1100, 1100).build().await.unwrap();
    let servant = Arc::new(Target::default());
    let here: TargetRef = server.activate_named("Target", Arc::clone(&servant)).unwrap();
    let (start, most) = (Arc::new(tokio::sync::Barrier::new(CLIENTS)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..CLIENTS as u64)
        .map(|number| {
            let (ior, start) = (here.to_string(), Arc::clone(&start));
            let (server, most) = (server.clone(), Arc::clone(&most));
            tokio::spawn(async move {
                // Epoll, because a thousand ORBs with threads of their own would be a different test.
                let client = Orb::builder().build().await.unwrap();
                let target: TargetRef = client.resolve_unchecked(&ior).await.unwrap();
                start.wait().await;
                let (same, _) = target.once(number, 0, Bytes::from_static(b"crowd")).await.unwrap();
                assert_eq!(same, number);
                start.wait().await;
                // All clients are connected at this point.
                most.fetch_max(server.open_connections(), Ordering::SeqCst);
                start.wait().await;
                assert_eq!(target.add(1, 2).await.unwrap(), 3);
                client.shutdown().await;
            })
        })
        .collect();
    let all = async {
        for client in clients {
            client.await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(120), all).await.expect("clients hang");
    assert_eq!(most.load(Ordering::SeqCst), CLIENTS);
    for number in 0..CLIENTS as u64 {
        assert_eq!(servant.times(number), 1, "{number}");
    }
    assert_eq!(server.shutdown().await.aborted_connections, 0);
    assert_eq!(server.open_connections(), 0);
}

/// Returns a reference to the object of a server in another process.
async fn to(client: &Orb, ior: &str) -> TargetRef {
    client.resolve_unchecked(ior).await.unwrap()
}

#[tokio::test]
async fn server_without_descriptors_serves_open_connections_and_new_ones_later() {
    let mut server = Child::start("server", &[]).await;
    let ior = server.says().await;
    let client = builder().build().await.unwrap();
    let target = to(&client, &ior).await;
    target.once(1, 0, Bytes::new()).await.unwrap();
    assert_eq!(server.told("limit").await, "done");
    // More connections than it has descriptors left: the system accepts them all, the server only some.
    let address = ior_address(&ior);
    let mut guests = Vec::new();
    for _ in 0..20 {
        guests.push(TcpStream::connect(&address).await.unwrap());
    }
    let late = builder().build().await.unwrap();
    let waiting = to(&late, &ior).await;
    let error = waiting.with_timeout(Duration::from_millis(300)).once(2, 0, Bytes::new()).await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::Timeout, "{error}");
    for number in 10..60 {
        target.once(number, 0, Bytes::new()).await.unwrap();
    }
    // Dropping these frees descriptors for the others.
    drop(guests);
    assert_eq!(waiting.once(3, 0, Bytes::new()).await.unwrap().0, 3);
    assert_eq!(server.told("unlimit").await, "done");
    let another = builder().build().await.unwrap();
    assert_eq!(to(&another, &ior).await.once(4, 0, Bytes::new()).await.unwrap().0, 4);
    for number in [1, 3, 4, 10, 59] {
        assert_eq!(server.told(&number.to_string()).await, "1");
    }
    let log = String::from_utf8(server.output().await.stderr).unwrap();
    // Each failure is logged once, followed by a pause of 50 ms. A busy loop would log tens of thousands of
    // times.
    let failed = log.lines().filter(|line| line.contains("cannot accept")).count();
    assert!(
        (1..500).contains(&failed),
        "{failed} times\n{}",
        log.lines().take(20).collect::<Vec<_>>().join("\n")
    );
    assert!(log.contains("Too many open files"), "{log}");
}

/// Returns the address in an IOR.
fn ior_address(ior: &str) -> String {
    let octets: Vec<u8> =
        (4..ior.len()).step_by(2).map(|at| u8::from_str_radix(&ior[at..at + 2], 16).unwrap()).collect();
    let host = b"127.0.0.1\0";
    let at = octets.windows(host.len()).position(|octets| octets == host).unwrap() + host.len();
    // The port is aligned to two bytes in its encapsulation, which begins aligned to four.
    let at = at + at % 2;
    let port = [octets[at], octets[at + 1]];
    let port = if octets[0] == 1 { u16::from_le_bytes(port) } else { u16::from_be_bytes(port) };
    format!("127.0.0.1:{port}")
}

// clause: exc.when.refused
#[tokio::test]
async fn a_client_without_descriptors_is_told_so_and_calls_when_they_come_back() {
    let server = builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let servant = Arc::new(Target::default());
    let here: TargetRef = server.activate_named("Target", Arc::clone(&servant)).unwrap();
    let ended = Child::start("poor-client", &[("IOR", &here.to_string())]).await.ended().await;
    assert!(
        ended.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    );
    assert_eq!(servant.executed(), 1);
}

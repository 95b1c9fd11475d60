//! Replies that their clients do not read: the limit of their total memory.

use std::net::{Ipv4Addr, SocketAddr};

use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};
use test_support::transport;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use zorb::minor;
use zorb::testing::PipeFaults;

use super::floods::until;
use super::*;

const CAP: usize = 4 << 20;
const REPLY: u32 = 500_000;

/// Returns a request for `large` in GIOP 1.0, for a result of `bytes` bytes.
fn request(bytes: u32) -> Vec<u8> {
    // No service context, id 1, with response_expected; key and operation; no principal, and the argument.
    let body = b"\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x04desk\x00\x00\x00\x06large\x00\x00\x00\x00\x00\x00\x00";
    let body = [&body[..], &bytes.to_be_bytes()].concat();
    let header = MessageHeader::new(Version::V1_0, ByteOrder::Big, MessageType::Request);
    [&MessageHeader { size: body.len() as u32, ..header }.encode()[..], &body].concat()
}

/// Opens a connection from an address of this machine that sends a request and never reads.
async fn asks_from(address: Ipv4Addr, server: &str, request: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    socket.bind(SocketAddr::from((address, 0))).unwrap();
    let mut stream = socket.connect(server.parse().unwrap()).await.unwrap();
    stream.write_all(request).await.unwrap();
    stream
}

#[tokio::test]
async fn unread_first_replies_stay_below_the_cap_and_other_calls_succeed() {
    let orb =
        transport::builder().listen("iiop://127.0.0.1:0").max_receive_memory(CAP).socket_buffer(16 << 10);
    let orb = orb.build().await.unwrap();
    let published: DeskRef = orb.activate_named("desk", Servant::default()).unwrap();
    let client = transport::builder().build().await.unwrap();
    let desk: DeskRef = client.resolve(&published.to_string()).await.unwrap();
    let address = orb.endpoints()[0].clone();
    let (watched, most) = (orb.clone(), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let watching = tokio::spawn(async move {
        loop {
            seen.fetch_max(watched.pool_stats().queued, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let mut peers = Vec::new();
    for last in 2..6 {
        for _ in 0..10 {
            peers.push(asks_from(Ipv4Addr::new(127, 0, 0, last), &address, &request(REPLY)).await);
        }
    }
    until(|| hits(&orb, Limit::Pool) > 0).await;
    for i in 0..20 {
        assert_eq!(desk.add(i, 1).await.unwrap(), i + 1, "small replies wait for nobody");
    }
    // Connections that read nothing are closed, and the address without queued data is served first.
    assert_eq!(desk.large(REPLY).await.unwrap().len(), REPLY as usize);
    assert!(orb.open_connections() > 1, "not all of the others had to end for it");
    client.shutdown().await;
    drop(peers);
    watching.abort();
    let most = most.load(Ordering::Relaxed);
    assert!(most > CAP / 4, "{most} bytes were queued: nothing was tested");
    assert!(most < CAP + REPLY as usize, "{most} bytes were queued");
    orb.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_larger_than_all_memory_is_sent_and_so_are_those_after_it() {
    let (pair, _, desk) = desk(Orb::builder().max_receive_memory(1 << 20)).await;
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let desk = desk.clone();
            tokio::spawn(async move { desk.large(3_000_000).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().len(), 3_000_000);
    }
    until(|| pair.server.pool_stats().queued == 0).await;
}

#[tokio::test(start_paused = true)]
async fn replies_that_are_made_when_all_memory_is_taken_become_exceptions() {
    let (pair, _, _) = desk(Orb::builder().max_receive_memory(CAP)).await;
    let servant = Arc::new(Servant::default());
    let published: DeskRef = pair.server.activate_named("other", Arc::clone(&servant)).unwrap();
    let mut slow = PipeFaults::default();
    slow.delay = Duration::from_millis(50);
    pair.set_faults(PipeFaults::default(), slow);
    pair.cut(zorb::testing::Cut::End);
    let desk: DeskRef = pair.client.resolve_unchecked(&published.to_string()).await.unwrap();
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let desk = desk.clone();
            tokio::spawn(async move { desk.later(1_000_000).await })
        })
        .collect();
    while servant.begun() < 12 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    servant.let_go(12);
    let (mut whole, mut refused) = (0, 0);
    for call in calls {
        match call.await.unwrap() {
            Ok(bytes) => {
                assert_eq!(bytes.len(), 1_000_000);
                whole += 1;
            }
            Err(error) => {
                assert_eq!(
                    (error.kind, error.minor, error.completed),
                    (SystemExceptionKind::Transient, minor::TRANSIENT_OVERLOADED, CompletionStatus::Yes)
                );
                refused += 1;
            }
        }
    }
    assert!(whole >= 4 && refused >= 6, "{whole} replies, {refused} exceptions");
    assert!(hits(&pair.server, Limit::Pool) >= refused);
    // The next ones wait until memory is free.
    servant.let_go(12);
    assert_eq!(desk.later(1_000_000).await.unwrap().len(), 1_000_000);
}

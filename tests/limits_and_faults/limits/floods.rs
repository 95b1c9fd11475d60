//! Floods: connections, cancels, locate requests and lengths, and a client that is served nevertheless.

use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};
use test_support::transport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

struct Endpoint {
    orb: Orb,
    address: String,
    desk: DeskRef,
    client: Orb,
}

async fn endpoint(limits: Limits, connections: (usize, usize)) -> Endpoint {
    let (all, per_address) = connections;
    let orb =
        transport::builder().listen("iiop://127.0.0.1:0").limits(limits).max_connections(all, per_address);
    let orb = orb.evict_idle_after(None).build().await.unwrap();
    let published: DeskRef = orb.activate_named("desk", Servant::default()).unwrap();
    let client = transport::builder().build().await.unwrap();
    let desk: DeskRef = client.resolve(&published.to_string()).await.unwrap();
    let address = orb.endpoints()[0].clone();
    Endpoint { orb, address, desk, client }
}

/// Waits until the condition holds; otherwise the test fails.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to that");
}

fn message(kind: MessageType, body: &[u8]) -> Vec<u8> {
    let header = MessageHeader::new(Version::V1_2, ByteOrder::Big, kind);
    [&MessageHeader { size: body.len() as u32, ..header }.encode()[..], body].concat()
}

/// Sends the bytes repeatedly until the peer closes.
async fn flood(address: &str, octets: &[u8]) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let reading = tokio::spawn(async move {
        let mut octets = [0; 4096];
        while let Ok(1..) = from.read(&mut octets).await {}
    });
    let many = octets.repeat(200);
    while to.write_all(&many).await.is_ok() {
        if reading.is_finished() {
            break;
        }
    }
    let _ = reading.await;
}

#[tokio::test]
async fn floods_of_cancels_and_questions_are_cut_and_counted() {
    let flooded = endpoint(limits(|limits| limits.max_control_rate = 500), (100, 100)).await;
    let cancel = message(MessageType::CancelRequest, &[0, 0, 0, 9]);
    // The id, a key of four bytes.
    let locate = message(MessageType::LocateRequest, &[0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4]);
    let stray = message(MessageType::Fragment, &[0, 0, 0, 9, 0, 0, 0, 0]);
    for (octets, times) in [(&cancel, 1), (&locate, 2), (&stray, 3)] {
        let (flooding, calls) = (flood(&flooded.address, octets), async {
            for i in 0..50 {
                assert_eq!(flooded.desk.add(i, 1).await.unwrap(), i + 1);
            }
        });
        tokio::join!(flooding, calls);
        until(|| hits(&flooded.orb, Limit::ControlRate) == times).await;
    }
    assert_eq!(flooded.desk.add(1, 2).await.unwrap(), 3);
    flooded.client.shutdown().await;
    flooded.orb.shutdown().await;
}

#[tokio::test]
async fn a_flood_leaves_others_their_turns() {
    if transport::has_threads() {
        // The connection's task is the only one on its thread, so the counting task here has a thread to
        // itself.
        return;
    }
    let limits = limits(|limits| limits.max_control_rate = u32::MAX);
    // The whole flood must be received before the server reads.
    let orb = transport::builder().listen("iiop://127.0.0.1:0").limits(limits).socket_buffer(512 << 10);
    let orb = orb.build().await.unwrap();
    let cancel = message(MessageType::CancelRequest, &[0, 0, 0, 9]);
    let mut stream = TcpStream::connect(&orb.endpoints()[0]).await.unwrap();
    stream.write_all(&cancel).await.unwrap();
    until(|| orb.stats().messages_in == 1).await;
    let all = 10_000;
    let flood = cancel.repeat(all);
    let mut sent = 0;
    // The server does not run in between.
    while sent < flood.len() {
        sent += stream.try_write(&flood[sent..]).unwrap();
    }
    let (counted, mut turns) = (orb.clone(), 0);
    let turns = tokio::spawn(std::future::poll_fn(move |cx| {
        let taken = counted.stats().messages_in as usize;
        turns += usize::from(taken > 1 && taken <= all);
        // In the same run queue as the task of the connection: a yielding task goes to the end of the queue.
        cx.waker().wake_by_ref();
        if taken > all { std::task::Poll::Ready(turns) } else { std::task::Poll::Pending }
    }));
    let turns = turns.await.unwrap();
    assert!(turns > 0, "nobody had a turn beside {all} messages");
    orb.shutdown().await;
}

#[tokio::test]
async fn connections_over_the_limits_are_closed_at_once_and_counted() {
    for (limits_of, limit) in
        [((20, 5), Limit::ConnectionsPerAddress), ((5, 20), Limit::Connections), ((5, 5), Limit::Connections)]
    {
        let flooded = endpoint(Limits::default(), limits_of).await;
        assert_eq!(flooded.desk.add(1, 2).await.unwrap(), 3);
        let mut held = Vec::new();
        for _ in 0..30 {
            held.push(TcpStream::connect(&flooded.address).await.unwrap());
        }
        until(|| hits(&flooded.orb, limit) == 26).await;
        assert_eq!(flooded.orb.open_connections(), 5);
        // A rejected client is notified that nothing was executed.
        let mut told = Vec::new();
        held.pop().unwrap().read_to_end(&mut told).await.unwrap();
        assert_eq!(told, b"GIOP\x01\x00\x00\x05\0\0\0\0");
        assert_eq!(flooded.desk.add(2, 2).await.unwrap(), 4, "who was there is served");
        drop(held);
        until(|| flooded.orb.open_connections() == 1).await;
        flooded.client.shutdown().await;
        flooded.orb.shutdown().await;
    }
}

#[tokio::test]
async fn announced_lengths_without_bytes_take_no_memory_and_delay_no_calls() {
    let flooded = endpoint(Limits::default(), (200, 200)).await;
    assert_eq!(flooded.desk.add(1, 2).await.unwrap(), 3);
    let before = flooded.orb.pool_stats().held;
    let mut bombs = Vec::new();
    for _ in 0..100 {
        let mut bomb = TcpStream::connect(&flooded.address).await.unwrap();
        let mut octets = message(MessageType::Request, &[0; 40]);
        octets[8..12].copy_from_slice(&(15u32 << 20).to_be_bytes());
        bomb.write_all(&octets).await.unwrap();
        bombs.push(bomb);
    }
    until(|| flooded.orb.open_connections() == 101).await;
    for i in 0..100 {
        assert_eq!(flooded.desk.add(i, 1).await.unwrap(), i + 1);
    }
    let held = flooded.orb.pool_stats().held - before;
    assert!(held <= 101 * (130 << 10), "{held} octets for 100 messages of 15 MiB of which 52 octets came");
    drop(bombs);
    flooded.client.shutdown().await;
    flooded.orb.shutdown().await;
}

/// Requests `times` replies without reading them yet.
async fn asks(address: &str, request: &[u8], times: usize) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
    stream.write_all(&request.repeat(times)).await.unwrap();
    stream
}

#[tokio::test]
async fn unread_replies_share_a_budget_of_all_connections() {
    const PEERS: usize = 12;
    const TIMES: usize = 40;
    const OCTETS: usize = 60_000;
    const CAP: usize = 1 << 20;
    let orb =
        transport::builder().listen("iiop://127.0.0.1:0").max_receive_memory(CAP).socket_buffer(16 << 10);
    let orb = orb.build().await.unwrap();
    let published: DeskRef = orb.activate_named("desk", Servant::default()).unwrap();
    let client = transport::builder().build().await.unwrap();
    let desk: DeskRef = client.resolve(&published.to_string()).await.unwrap();
    // No service context, id 1, with response_expected; key and operation; no principal, and the argument.
    let body = b"\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x04desk\x00\x00\x00\x06large\x00\x00\x00\x00\x00\x00\x00";
    let body = [&body[..], &(OCTETS as u32).to_be_bytes()].concat();
    let header = MessageHeader::new(Version::V1_0, ByteOrder::Big, MessageType::Request);
    let request = [&MessageHeader { size: body.len() as u32, ..header }.encode()[..], &body].concat();
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        peers.push(asks(&orb.endpoints()[0], &request, TIMES).await);
    }
    while hits(&orb, Limit::Pool) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for i in 0..100 {
        assert_eq!(desk.add(i, 1).await.unwrap(), i + 1, "who takes its replies waits for nobody");
    }
    let queued = orb.pool_stats().queued;
    // The last replies before the limit was reached, and 64 KiB that each connection may have.
    let most = CAP + PEERS * (2 * (64 << 10) + OCTETS);
    assert!((CAP..most).contains(&queued), "{queued} octets are queued, {most} may be");
    // All of them arrive as soon as they are read.
    for peer in &mut peers {
        let mut left = TIMES * (OCTETS + 28);
        let mut octets = vec![0; 64 << 10];
        while left > 0 {
            let read = peer.read(&mut octets).await.unwrap();
            assert!(read > 0 && read <= left, "{left} octets are missing");
            left -= read;
        }
    }
    // With io_uring, the peer has the last bytes before the ORB is notified of their completion.
    until(|| orb.pool_stats().queued == 0).await;
    client.shutdown().await;
    orb.shutdown().await;
}

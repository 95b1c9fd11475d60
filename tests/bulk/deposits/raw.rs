//! Senders that are not ORBs: requests in fragments, and requests that stop in the middle.

use giop_codec::cdr::CdrEncode;
use giop_codec::{ByteOrder, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use test_support::raw_requests::{fragmented, reply, reply_octets};

/// Returns a request to `put` as any ORB would send it.
fn request(id: u32, how: &str, arg: u64, data: &Bytes) -> Vec<u8> {
    test_support::raw_requests::request((ByteOrder::NATIVE, Version::V1_2), id, ("sink", "put"), |e| {
        how.encode(e).unwrap();
        arg.encode(e).unwrap();
        data.encode(e).unwrap();
    })
}

async fn raw(server: OrbBuilder, servant: Arc<Sink>) -> (Orb, TcpStream) {
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = probe.local_addr().unwrap();
    let server = server.listener(probe).build().await.unwrap();
    let _: place::SinkRef = server.activate_named("sink", servant).unwrap();
    (server, TcpStream::connect(address).await.unwrap())
}

#[tokio::test]
async fn a_deposit_that_is_given_up_lets_go_of_its_target_and_skips_the_rest() {
    let servant = Arc::new(Sink::default());
    let (server, mut stream) = raw(large(), Arc::clone(&servant)).await;
    let data = octets(3 * MIB);
    for block in [3 * MIB, 100_000] {
        let message = request(2, "patience", block as u64, &data);
        let (early, late) = message.split_at(2 * MIB);
        stream.write_all(early).await.unwrap();
        assert_eq!(reply(&mut stream).await, (2, 0));
        for _ in 0..100 {
            if servant.targets.load(Ordering::SeqCst) == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(servant.targets.load(Ordering::SeqCst), 0, "though the peer sends nothing");
        stream.write_all(late).await.unwrap();
        stream.write_all(&request(4, "aligned", 4096, &data)).await.unwrap();
        assert_eq!(reply(&mut stream).await, (4, checksum(0, &data)));
    }
    assert!(server.stats().bytes_skipped > MIB as u64);
}

#[tokio::test]
async fn fragments_land_in_place_and_hold_constant_memory() {
    let (server, mut stream) = raw(large(), Arc::new(Sink::default())).await;
    let data = octets(12 * MIB);
    let expected = checksum(0, &data);
    let mut id = 0;
    for (how, arg) in [("aligned", 4096), ("box", 0), ("blocks", 100_000), ("chunk first", 0)] {
        // Like GlassFish and omniORB; a tiny piece followed by a large one; pieces of all sizes.
        for (first, step) in
            [(1024, 32 << 10), (8192, 1016), (7 * MIB, 5 * MIB), (64, 14 * MIB), (16 << 10, 64 << 10)]
        {
            id += 2;
            let (before, skipped) = (server.pool_stats().held, server.stats().bytes_skipped);
            let message = fragmented(&request(id, how, arg, &data), first, step);
            stream.write_all(&message).await.unwrap();
            assert_eq!(reply(&mut stream).await, (id, expected), "{how} in {first} and {step}");
            let held = server.pool_stats().held;
            assert!(how == "aligned" || held <= before + 3 * MIB, "{how} in {first} and {step}: {held}");
            assert_eq!(server.stats().bytes_skipped, skipped);
            // Large pieces are not copied.
            if step >= 5 * MIB {
                let copied = server.stats().bytes_copied_in;
                let message = fragmented(&request(id + 1000, how, arg, &data), first, step);
                stream.write_all(&message).await.unwrap();
                assert_eq!(reply(&mut stream).await.1, expected);
                let copied = server.stats().bytes_copied_in - copied;
                assert!(copied <= 150 << 10, "{how} in {first} and {step}: {copied}");
            }
        }
    }
    assert_eq!(server.open_connections(), 1);
}

#[tokio::test]
async fn streams_are_not_bounded_by_the_message_size_but_by_their_own_limit() {
    let mut limits = Limits::default();
    limits.max_message_size = MIB;
    limits.max_stream_size = 8 * MIB as u64;
    let (server, mut stream) = raw(transport::builder().limits(limits), Arc::new(Sink::default())).await;
    let data = octets(8 * MIB);
    let expected = checksum(0, &data);
    stream.write_all(&request(2, "box", 0, &data)).await.unwrap();
    assert_eq!(reply(&mut stream).await, (2, expected));
    stream.write_all(&fragmented(&request(4, "box", 0, &data), 8 << 10, 100_000)).await.unwrap();
    assert_eq!(reply(&mut stream).await, (4, expected));

    let client = large().build().await.unwrap();
    let text = format!("corbaloc:iiop:1.2@{}/sink", stream.peer_addr().unwrap());
    let sink: place::SinkRef = client.resolve(&text).await.unwrap();
    let place::sink::PutError::System(failed) = sink.put("box", 0, octets(9 * MIB)).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(failed.kind, SystemExceptionKind::ImpLimit);
    sink.ping().await.unwrap();
    // In fragments, the servant is notified.
    stream
        .write_all(&fragmented(&request(6, "limited", LIMIT as u64, &octets(9 * MIB)), 8 << 10, MIB))
        .await
        .unwrap();
    let (_, body) = reply_octets(&mut stream).await;
    assert!(body.windows(9).any(|part| part == b"IMP_LIMIT"));
    stream.write_all(&request(8, "box", 0, &data)).await.unwrap();
    assert_eq!(reply(&mut stream).await, (8, expected));
    // The connection over which the client queried the reference ends by itself.
    while server.open_connections() > 2 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(server.open_connections(), 2);
}

#[tokio::test]
async fn a_peer_that_ends_in_the_middle_of_a_deposit_fails_it_with_its_target() {
    let servant = Arc::new(Sink::default());
    let (server, mut stream) = raw(large(), Arc::clone(&servant)).await;
    let message = request(2, "blocks", 3 * MIB as u64, &octets(3 * MIB));
    stream.write_all(&message[..2 * MIB]).await.unwrap();
    while servant.targets.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    stream.shutdown().await.unwrap();
    for _ in 0..400 {
        if servant.targets.load(Ordering::SeqCst) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(servant.targets.load(Ordering::SeqCst), 0);
    assert_eq!(servant.broken_off.load(Ordering::SeqCst), 1);
    drop(server);
}

#[tokio::test]
async fn a_peer_that_stalls_in_the_middle_is_closed_by_the_least_rate() {
    let mut limits = Limits::default();
    limits.message_timeout = Duration::from_millis(300);
    limits.min_message_rate = 100 << 20;
    let servant = Arc::new(Sink::default());
    for (how, broken_off) in [("blocks", 1), ("aligned", 1)] {
        let (server, mut stream) =
            raw(transport::builder().limits(limits.clone()), Arc::clone(&servant)).await;
        let arg = if how == "blocks" { 3 * MIB } else { 4096 };
        let message = request(2, how, arg as u64, &octets(3 * MIB));
        stream.write_all(&message[..2 * MIB]).await.unwrap();
        // Closed, without a reply.
        let mut rest = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "it is not closed");
        for _ in 0..1000 {
            if servant.targets.load(Ordering::SeqCst) == 0 && server.open_connections() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!((servant.targets.load(Ordering::SeqCst), server.open_connections()), (0, 0));
        assert_eq!(servant.broken_off.load(Ordering::SeqCst), broken_off);
    }
}

#[test]
fn a_runtime_that_ends_in_the_middle_of_a_deposit_drops_the_target() {
    use std::io::Write;
    let servant = Arc::new(Sink::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, stream) = runtime.block_on(raw(large(), Arc::clone(&servant)));
    let mut stream = stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    let message = request(2, "blocks", 3 * MIB as u64, &octets(3 * MIB));
    let sender = std::thread::spawn(move || {
        stream.write_all(&message[..2 * MIB]).unwrap();
        stream
    });
    runtime.block_on(async {
        while servant.targets.load(Ordering::SeqCst) == 0 || server.stats().bytes_in < 60_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    });
    drop((runtime, server));
    // On the ORB's own threads, it ends after its handle was dropped.
    for _ in 0..1000 {
        if servant.targets.load(Ordering::SeqCst) == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(servant.targets.load(Ordering::SeqCst), 0);
    drop(sender.join());
}

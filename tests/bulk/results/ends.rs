//! The end of incomplete results: failures, cancels, clients that are slow or gone.

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::giop::{
    MessageType, RequestHeader, RequestId, ResponseFlags, ServiceContexts, TargetAddress, begin_body,
    finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

#[tokio::test]
async fn what_fails_before_anything_left_is_an_ordinary_exception() {
    let over = Over::tcp().await;
    let kinds = [
        ("error", SystemExceptionKind::Unknown, CompletionStatus::Maybe),
        ("exception", SystemExceptionKind::PersistStore, CompletionStatus::No),
        ("short", SystemExceptionKind::Unknown, CompletionStatus::Maybe),
        ("panic", SystemExceptionKind::Unknown, CompletionStatus::Maybe),
    ];
    let old = over.in_version("1.0").await;
    for shelf in [&over.shelf, &old] {
        for after in [0, 10, 60] {
            for (how, kind, completed) in kinds {
                let error = failed(shelf.fail(how, after).await).await;
                assert_eq!((error.kind, error.completed), (kind, completed), "{how} {after}");
            }
        }
    }
    // In a single message, nothing is sent before it is complete.
    for (how, kind, completed) in kinds {
        let error = failed(old.fail(how, 500).await).await;
        assert_eq!((error.kind, error.completed), (kind, completed), "{how}");
    }
    assert_eq!(over.shelf.add(1, 2).await.unwrap(), 3);
    over.until(|over| over.alive() == 0).await;
}

// clause: exc.when.lost
#[tokio::test]
async fn what_fails_behind_the_first_fragment_closes_the_connection() {
    let over = Over::tcp().await;
    for how in ["error", "exception", "short", "panic"] {
        assert_eq!(over.shelf.add(1, 2).await.unwrap(), 3);
        let error = failed(over.shelf.fail(how, 2000).await).await;
        assert_eq!(error.kind, SystemExceptionKind::CommFailure, "{how}: {error}");
        assert_eq!(error.completed, CompletionStatus::Maybe, "{how}");
    }
    // The next call uses another connection.
    assert_eq!(over.shelf.add(1, 2).await.unwrap(), 3);
    over.until(|over| over.alive() == 0 && over.server.open_connections() == 1).await;
}

// clause: giop.msg.cancel_request, giop.cancel.server
#[tokio::test]
async fn a_call_that_is_given_up_drops_what_makes_its_result() {
    let over = Over::tcp().await;
    over.shelf.add(1, 2).await.unwrap();
    // Nothing was sent, only the first fragment, or more.
    for given in [0, 1, 3, 17] {
        let before = over.made();
        let shelf = over.shelf.clone();
        let call = tokio::spawn(async move { bytes(shelf.read(10_000_000, true).await.unwrap()).await });
        over.servant.gate.add_permits(given);
        over.until(|over| over.made() - before == given as u64 && over.alive() == 1).await;
        call.abort();
        over.until(|over| over.alive() == 0).await;
        assert_eq!(over.shelf.add(1, 2).await.unwrap(), 3);
    }
    let late = failed(over.shelf.with_timeout(Duration::from_millis(30)).read(10_000_000, true).await).await;
    assert_eq!(late.kind, SystemExceptionKind::Timeout);
    over.until(|over| over.alive() == 0).await;
    assert_eq!(over.shelf.add(1, 2).await.unwrap(), 3);
    assert_eq!(over.server.stats().stray_messages, 0);
}

#[tokio::test]
async fn a_server_that_closes_finishes_its_results() {
    let over = Over::tcp().await;
    let shelf = over.shelf.clone();
    let call = tokio::spawn(async move { bytes(shelf.read(1_000_000, true).await.unwrap()).await });
    over.servant.gate.add_permits(3);
    over.until(|over| over.made() == 3).await;
    let gate = Arc::clone(&over.servant.gate);
    let shutdown = over.server.shutdown();
    let give = async {
        tokio::task::yield_now().await;
        gate.add_permits(100);
    };
    tokio::join!(shutdown, give);
    assert!(call.await.unwrap() == octets(100_000).repeat(10));
}

/// Returns a request to `read`, as any client of GIOP 1.2 would send it.
pub(super) fn request(
    id: u32,
    response: ResponseFlags,
    operation: &str,
    arguments: impl Fn(&mut Encoder),
) -> Vec<u8> {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let size_at = put_message_header(&mut e, MessageType::Request);
    RequestHeader {
        request_id: RequestId(id),
        response,
        target: TargetAddress::Key(b"shelf"),
        operation,
        contexts: ServiceContexts::EMPTY,
    }
    .encode(&mut e)
    .unwrap();
    begin_body(&mut e);
    arguments(&mut e);
    finish_message(&mut e, size_at).unwrap();
    e.into_bytes().to_vec()
}

/// Returns a request for `len` bytes.
pub(super) fn read(id: u32, response: ResponseFlags, len: u64) -> Vec<u8> {
    request(id, response, "read", |e| {
        len.encode(e).unwrap();
        false.encode(e).unwrap();
    })
}

/// Connects a client that is not an ORB.
pub(super) async fn stranger(over: &Over) -> TcpStream {
    let ior: zorb::wire::Ior = over.shelf.to_string().parse().unwrap();
    let profile = ior.iiop_profile().unwrap();
    TcpStream::connect((profile.host.as_str(), profile.port)).await.unwrap()
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_what_makes_its_result() {
    let mut limits = Limits::default();
    limits.write_timeout = Duration::from_millis(700);
    let over = Over::with(transport::builder().limits(limits), large()).await;
    let mut stream = stranger(&over).await;
    stream.write_all(&read(2, ResponseFlags::Target, 1 << 30)).await.unwrap();
    over.until(|over| over.made() > 0 && over.alive() == 0).await;
    // The capacity of the sockets, and a few pieces.
    assert!(over.made() * 100_000 < 32 << 20, "{} items were made", over.made());
    over.until(|over| over.server.open_connections() == 0).await;
}

#[tokio::test]
async fn a_client_that_is_gone_ends_what_makes_its_result() {
    let over = Over::tcp().await;
    for taken in [0, 1, 300_000] {
        let before = over.made();
        let mut stream = stranger(&over).await;
        stream.write_all(&read(2, ResponseFlags::Target, 1 << 30)).await.unwrap();
        stream.read_exact(&mut vec![0; taken]).await.unwrap();
        over.until(|over| over.made() > before).await;
        drop(stream);
        over.until(|over| over.alive() == 0).await;
    }
}

#[tokio::test]
async fn a_client_that_wants_no_result_gets_none() {
    let over = Over::tcp().await;
    let mut stream = stranger(&over).await;
    stream.write_all(&read(2, ResponseFlags::None, 1 << 30)).await.unwrap();
    stream.write_all(&read(4, ResponseFlags::Target, 0)).await.unwrap();
    let mut start = [0; 16];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(start[12..], 4u32.to_ne_bytes());
    assert_eq!((over.made(), over.alive()), (0, 0), "what it would be made of is dropped");
}

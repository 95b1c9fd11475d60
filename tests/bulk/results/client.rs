//! Results as clients receive them: piece by piece, in bounded memory, with errors in the middle.

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::giop::{
    MessageType, ReplyHeader, ReplyStatus, RequestId, ServiceContexts, begin_body, finish_message,
    put_message_header,
};
use giop_codec::{ByteOrder, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const MIB: u64 = 1 << 20;

/// Returns the peak memory of the client and its server while a result is received.
fn most(over: &Over, runtime: &tokio::runtime::Runtime, take: impl AsyncFn(&ShelfRef)) -> u64 {
    allocation_counter::measure(|| runtime.block_on(take(&over.shelf))).bytes_max
}

#[test]
fn fifty_mebibytes_of_each_kind_take_bounded_memory() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let over = runtime.block_on(Over::with(transport::builder(), transport::builder()));
    let bytes = most(&over, &runtime, async |shelf| {
        let (mut read, mut came) = (shelf.read(50 * MIB, false).await.unwrap(), 0);
        assert_eq!(read.remaining(), 50 * MIB);
        while let Some(chunk) = read.next().await {
            came += chunk.unwrap().len() as u64;
        }
        assert_eq!((came, read.remaining()), (50 * MIB, 0));
    });
    let numbers = most(&over, &runtime, async |shelf| {
        let count = (50 * MIB / 8) as u32;
        let (mut samples, mut next) = (shelf.samples(count).await.unwrap(), 0);
        while let Some(chunk) = samples.next().await {
            for sample in chunk.unwrap().iter() {
                assert_eq!(*sample, f64::from(next));
                next += 1;
            }
        }
        assert_eq!(next, count);
    });
    let items = most(&over, &runtime, async |shelf| {
        let (mut rows, mut next) = (shelf.rows(270_000, false).await.unwrap(), 0);
        while let Some(came) = rows.next().await {
            assert_eq!(came.unwrap(), row(next));
            next += 1;
        }
        assert_eq!(next, 270_000);
    });
    assert!([bytes, numbers, items].iter().all(|most| *most < 6 * MIB), "{bytes} {numbers} {items}");
}

#[tokio::test]
async fn a_server_is_not_asked_for_what_the_client_does_not_take() {
    let over = Over::tcp().await;
    let mut read = over.shelf.read(1 << 30, false).await.unwrap();
    read.next().await.unwrap().unwrap();
    // Other calls continue in the meantime, over another connection.
    for n in 0..200 {
        assert_eq!(over.shelf.add(n, 1).await.unwrap(), n + 1);
    }
    assert!(over.made() * 100_000 < 64 << 20, "{} pieces of 100,000 bytes were made", over.made());
    drop(read);
    over.until(|over| over.alive() == 0).await;
    assert_eq!(over.shelf.add(1, 2).await.unwrap(), 3);
}

#[tokio::test]
async fn a_result_goes_to_memory_of_the_client() {
    let over = Over::tcp().await;
    let wanted = octets(100_000).repeat(30);
    let read = over.shelf.read(3_000_000, false).await.unwrap();
    let filled = read.deposit_into(vec![0_u8; 3_000_000].into_boxed_slice()).await.unwrap();
    assert!(*filled == wanted);
    let read = over.shelf.read(3_000_000, false).await.unwrap();
    let aligned = read.into_aligned(4096, 3_000_000).await.unwrap();
    assert!(aligned == wanted && aligned.as_ptr().addr() % 4096 == 0);
    let error = over.shelf.read(3_000_000, false).await.unwrap().collect(2_999_999).await.unwrap_err();
    assert_eq!(error.kind, SystemExceptionKind::ImpLimit);
}

#[tokio::test]
async fn a_result_above_the_limit_is_refused_and_says_which_limit() {
    let mut limits = Limits::default();
    limits.max_stream_size = 2 << 20;
    let over = Over::with(large(), transport::builder().limits(limits)).await;
    let error = over.shelf.read(3 << 20, false).await.unwrap_err();
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::ImpLimit, CompletionStatus::Yes));
    assert!(error.to_string().contains("Limits::max_stream_size"), "{error}");
    let error = failed(over.shelf.fail("none", 3000).await).await;
    assert_eq!(error.kind, SystemExceptionKind::ImpLimit);
    assert_eq!(bytes(over.shelf.read(1 << 20, false).await.unwrap()).await.len(), 1 << 20);
}

#[tokio::test]
async fn the_deadline_of_the_call_covers_the_whole_result() {
    let over = Over::tcp().await;
    over.servant.gate.add_permits(3);
    let mut read = over.shelf.with_timeout(Duration::from_millis(500)).read(10_000_000, true).await.unwrap();
    let error = loop {
        if let Err(error) = read.next().await.unwrap() {
            break error;
        }
    };
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    assert!(read.next().await.is_none());
    over.until(|over| over.alive() == 0).await;
}

/// A server without an ORB. It answers the first request of a client with a result in writes of `write`
/// bytes, and closes the connection. `size` is the size in the header of its message, or 0 for the true one.
async fn raw_server(
    (version, order): (Version, ByteOrder),
    body: impl Fn(&mut Encoder),
    write: usize,
    size: u32,
) -> (Orb, ShelfRef, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut e = Encoder::new(order, version);
    let size_at = put_message_header(&mut e, MessageType::Reply);
    let header = ReplyHeader {
        request_id: RequestId(1 << 17),
        status: ReplyStatus::NoException,
        contexts: ServiceContexts::EMPTY,
    };
    header.encode(&mut e).unwrap();
    begin_body(&mut e);
    body(&mut e);
    finish_message(&mut e, size_at).unwrap();
    let mut reply = e.into_bytes().to_vec();
    if size > 0 {
        let size = if order == ByteOrder::Little { size.to_le_bytes() } else { size.to_be_bytes() };
        reply[8..12].copy_from_slice(&size);
    }
    let answer = async move {
        let (mut stream, _): (TcpStream, _) = listener.accept().await.unwrap();
        let mut header = [0; 12];
        stream.read_exact(&mut header).await.unwrap();
        let size = if header[6] & 1 == 1 {
            u32::from_le_bytes(header[8..].try_into().unwrap())
        } else {
            u32::from_be_bytes(header[8..].try_into().unwrap())
        };
        stream.read_exact(&mut vec![0; size as usize]).await.unwrap();
        for piece in reply.chunks(write) {
            // A client that rejects the result closes the connection.
            if stream.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    let client = transport::builder().build().await.unwrap();
    let url = format!("corbaloc:iiop:1.{}@127.0.0.1:{port}/shelf", version.minor());
    let shelf = client.resolve_unchecked(&url).await.unwrap();
    (client, shelf, tokio::spawn(answer))
}

fn rows(count: u32) -> Vec<Row> {
    (0..count).map(row).collect()
}

#[tokio::test]
async fn results_of_every_version_and_order_come_from_any_server() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let way = (version, order);
            let (_orb, shelf, _) = raw_server(way, |e| rows(2_000).encode(e).unwrap(), 50_000, 0).await;
            assert!(all(shelf.rows(2_000, false).await.unwrap()).await == rows(2_000), "{way:?}");
            let wanted: Seq<f64> = (0..60_000).map(f64::from).collect();
            let (_orb, shelf, _) = raw_server(way, |e| wanted.encode(e).unwrap(), 50_001, 0).await;
            let samples = shelf.samples(60_000).await.unwrap();
            assert!(samples.collect(60_000).await.unwrap() == wanted, "{way:?}");
        }
    }
}

// clause: exc.when.lost
#[tokio::test]
async fn a_connection_that_ends_in_the_middle_is_comm_failure() {
    let way = (Version::V1_2, ByteOrder::Little);
    let more = |e: &mut Encoder| {
        3_000_u32.encode(e).unwrap();
        rows(2_000).iter().for_each(|row| row.encode(e).unwrap());
    };
    let (_orb, shelf, _) = raw_server(way, more, 100_000, 2_000_000).await;
    let error = failed(shelf.rows(1, false).await.map_err(SystemException::from)).await;
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe));
    // The message ends here.
    let (_orb, shelf, _) = raw_server(way, more, 100_000, 0).await;
    let error = failed(shelf.rows(1, false).await.map_err(SystemException::from)).await;
    assert_eq!((error.kind, error.completed), (SystemExceptionKind::Marshal, CompletionStatus::Maybe));
}

#[tokio::test]
async fn counts_that_are_lies_take_no_memory() {
    let way = (Version::V1_2, ByteOrder::Big);
    let hostile = |e: &mut Encoder| {
        u32::MAX.encode(e).unwrap();
        (0..20_000_u32).for_each(|n| n.encode(e).unwrap());
    };
    let (_orb, shelf, _) = raw_server(way, hostile, 1000, 0).await;
    assert_eq!(shelf.read(1, false).await.unwrap_err().kind, SystemExceptionKind::Marshal);
    let (_orb, shelf, _) = raw_server(way, hostile, 1000, 0).await;
    assert_eq!(shelf.samples(1).await.unwrap_err().kind, SystemExceptionKind::Marshal);
    let (_orb, shelf, _) = raw_server(way, hostile, 1000, 0).await;
    assert!(matches!(
        shelf.rows(1, false).await,
        Err(RowsError::System(error)) if error.kind == SystemExceptionKind::Marshal
    ));
}

/// It is not copied and decoded again as a whole for each byte that a peer sends.
#[test]
fn a_large_item_in_small_pieces_is_copied_a_few_times() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let name = "x".repeat(1 << 20);
    let way = (Version::V1_2, ByteOrder::Little);
    let names = |e: &mut Encoder| vec![name.clone()].encode(e).unwrap();
    let (_orb, shelf, _) = runtime.block_on(raw_server(way, names, 1000, 0));
    let cost = allocation_counter::measure(|| {
        let came = runtime.block_on(async { all(shelf.fail("", 0).await.unwrap()).await });
        assert!(came == [name.as_str()]);
    });
    // With growth by a sixteenth at a time, the joins copy 17 times the item. A join for each piece would
    // copy 500 times the item.
    assert!(cost.bytes_total < 120 << 20, "{} bytes", cost.bytes_total);
}

/// The connection may split the data in the middle of an item, of a number, or of a length.
#[tokio::test]
async fn items_and_numbers_may_be_cut_anywhere() {
    let wanted: Seq<f64> = (0..10_000).map(f64::from).collect();
    // An item has up to 400 bytes.
    for cut in (66_000..66_420).step_by(3) {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let way = (Version::V1_2, order);
            let (_orb, shelf, _) = raw_server(way, |e| rows(600).encode(e).unwrap(), cut, 0).await;
            assert!(all(shelf.rows(600, false).await.unwrap()).await == rows(600), "{order:?} at {cut}");
        }
        let way = (Version::V1_2, ByteOrder::Big);
        let (_orb, shelf, _) = raw_server(way, |e| wanted.encode(e).unwrap(), cut, 0).await;
        assert!(shelf.samples(10_000).await.unwrap().collect(10_000).await.unwrap() == wanted, "at {cut}");
    }
}

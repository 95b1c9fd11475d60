//! Senders that are no zorb: either byte order, every version, whole and in fragments.

use giop_codec::cdr::{CdrEncode, Encoder};
use giop_codec::giop::{
    MessageHeader, MessageType, RequestHeader, RequestId, ResponseFlags, ServiceContexts, TargetAddress,
    begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// A request with these elements as its last argument.
fn request<T: Element>(
    order: ByteOrder,
    version: Version,
    operation: &str,
    name: &str,
    data: &Seq<T>,
) -> Vec<u8> {
    let mut e = Encoder::new(order, version);
    let size_at = put_message_header(&mut e, MessageType::Request);
    RequestHeader {
        request_id: RequestId(6),
        response: ResponseFlags::Target,
        target: TargetAddress::Key(b"numbers"),
        operation,
        contexts: ServiceContexts::EMPTY,
    }
    .encode(&mut e)
    .unwrap();
    begin_body(&mut e);
    name.encode(&mut e).unwrap();
    data.encode(&mut e).unwrap();
    finish_message(&mut e, size_at).unwrap();
    e.into_bytes().to_vec()
}

/// The message as a first piece of `first` octets and fragments of `step` octets of payload.
fn fragmented(message: &[u8], first: usize, step: usize) -> Vec<u8> {
    let header = MessageHeader::decode(message.first_chunk().unwrap()).unwrap();
    let piece = |kind, octets: &[u8], more| {
        let header = MessageHeader { kind, more_fragments: more, size: octets.len() as u32, ..header };
        [&header.encode()[..], octets].concat()
    };
    let id: &[u8] = if header.version == Version::V1_2 { &message[12..16] } else { &[] };
    let mut octets = piece(MessageType::Request, &message[12..first], true);
    let mut pieces = message[first..].chunks(step).peekable();
    while let Some(payload) = pieces.next() {
        octets.extend(piece(MessageType::Fragment, &[id, payload].concat(), pieces.peek().is_some()));
    }
    octets
}

/// The number in the next reply.
async fn reply(stream: &mut TcpStream) -> u64 {
    let mut header = [0; 12];
    stream.read_exact(&mut header).await.unwrap();
    let header = MessageHeader::decode(&header).unwrap();
    assert_eq!((header.kind, header.order), (MessageType::Reply, ByteOrder::NATIVE));
    let mut body = vec![0; header.size as usize];
    stream.read_exact(&mut body).await.unwrap();
    let at = if header.version == Version::V1_2 { 4 } else { 8 };
    let status = u32::from_ne_bytes(body[at..at + 4].try_into().unwrap());
    assert_eq!(status, 0, "an exception");
    u64::from_ne_bytes(body[body.len() - 8..].try_into().unwrap())
}

async fn raw(servant: Arc<Numbers>) -> (Orb, TcpStream) {
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = probe.local_addr().unwrap();
    let server = large().listener(probe).build().await.unwrap();
    let _: bulk::NumbersRef = server.activate_named("numbers", servant).unwrap();
    (server, TcpStream::connect(address).await.unwrap())
}

#[tokio::test]
async fn numbers_of_either_byte_order_and_every_version_come_right() {
    let (_server, mut stream) = raw(Arc::default()).await;
    let doubles = doubles(50_000);
    let shorts = items::<i16>(150_001);
    let exact = items::<LongDouble>(20_000);
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            for name in ["", "a", "abcdefgh"] {
                let wanted = [doubles.as_bytes(), shorts.as_bytes(), exact.as_bytes()];
                let messages = [
                    request(order, version, "doubles", name, &doubles),
                    request(order, version, "shorts", name, &shorts),
                    request(order, version, "exact", name, &exact),
                ];
                for (message, wanted) in messages.iter().zip(wanted) {
                    // The pause leaves an element cut.
                    let (early, late) = message.split_at(100_001);
                    stream.write_all(early).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    stream.write_all(late).await.unwrap();
                    let sum = reply(&mut stream).await;
                    assert_eq!(sum, checksum(0, wanted), "{order:?} {version:?} {name:?}");
                }
            }
        }
    }
}

// clause: giop.fragment.join_1_1, giop.fragment.join_1_2
#[tokio::test]
async fn numbers_come_right_wherever_fragments_cut_them() {
    let (server, mut stream) = raw(Arc::default()).await;
    let doubles = doubles(200_000);
    let exact = items::<LongDouble>(100_000);
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let messages = [Version::V1_1, Version::V1_2].map(|version| {
            [
                (request(order, version, "doubles", "abc", &doubles), doubles.as_bytes()),
                (request(order, version, "exact", "abc", &exact), exact.as_bytes()),
            ]
        });
        for (message, wanted) in messages.into_iter().flatten() {
            for (first, step) in
                [(1024, 32 << 10), (8192, 1016), (MIB, MIB / 2), (64 << 10, 40_000), (24 << 10, 16)]
            {
                stream.write_all(&fragmented(&message, first, step)).await.unwrap();
                let sum = reply(&mut stream).await;
                assert_eq!(sum, checksum(0, wanted), "{order:?} {first} {step}");
            }
        }
    }
    let held = server.pool_stats().held;
    assert!(held <= 4 << 20, "{held}");
}

/// In GIOP 1.1 each fragment is aligned by itself: a run that begins with one has its padding behind the fragment's header.
// clause: giop.fragment.alignment_1_1, giop.fragment.empty_last
#[tokio::test]
async fn numbers_that_begin_with_a_fragment_of_giop_1_1_are_aligned_in_it() {
    let (_server, mut stream) = raw(Arc::default()).await;
    for len in [1, 20, 3_000, 100_000] {
        let items = doubles(len);
        for name in ["", "abc", "abcdefgh"] {
            let message = request(ByteOrder::NATIVE, Version::V1_1, "doubles", name, &items);
            let octets = items.as_bytes();
            let before = &message[..message.len() - octets.len()];
            let count = before.windows(4).rposition(|word| word == (len as u32).to_ne_bytes()).unwrap();
            let header = MessageHeader::decode(message.first_chunk().unwrap()).unwrap();
            let piece = |kind, octets: &[u8], more| {
                let header =
                    MessageHeader { kind, more_fragments: more, size: octets.len() as u32, ..header };
                [&header.encode()[..], octets].concat()
            };
            let (near, far) = octets.split_at(octets.len() / 2);
            let pieces = [
                piece(MessageType::Request, &message[12..count + 4], true),
                piece(MessageType::Fragment, &[&[0; 4], near].concat(), true),
                piece(MessageType::Fragment, far, true),
                piece(MessageType::Fragment, &[], false),
            ];
            stream.write_all(&pieces.concat()).await.unwrap();
            assert_eq!(reply(&mut stream).await, checksum(0, octets), "{len} {name:?}");
        }
    }
}

#[tokio::test]
async fn a_count_of_more_elements_than_the_message_has_is_marshal() {
    let (server, mut stream) = raw(Arc::default()).await;
    let items = doubles(50_000);
    let message = request(ByteOrder::NATIVE, Version::V1_2, "doubles", "", &items);
    let at = message.len() - items.as_bytes().len();
    let count = message[..at].windows(4).rposition(|word| word == 50_000u32.to_ne_bytes()).unwrap();
    for lie in [50_001, 1 << 29, u32::MAX] {
        let mut message = message.clone();
        message[count..count + 4].copy_from_slice(&u32::to_ne_bytes(lie));
        stream.write_all(&message).await.unwrap();
        let mut header = [0; 12];
        stream.read_exact(&mut header).await.unwrap();
        let header = MessageHeader::decode(&header).unwrap();
        let mut body = vec![0; header.size as usize];
        stream.read_exact(&mut body).await.unwrap();
        assert!(body.windows(7).any(|part| part == b"MARSHAL"), "{lie}");
    }
    stream.write_all(&message).await.unwrap();
    assert_eq!(reply(&mut stream).await, checksum(0, items.as_bytes()));
    assert_eq!(server.open_connections(), 1);
}

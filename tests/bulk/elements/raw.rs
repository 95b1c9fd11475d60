//! Senders other than zorb: either byte order, every version, whole and in fragments.

use giop_codec::cdr::CdrEncode;
use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::*;
use test_support::raw_requests::{fragmented, piece, reply_octets};

/// Returns a request with these elements as its last argument.
fn request<T: Element>(
    order: ByteOrder,
    version: Version,
    operation: &str,
    name: &str,
    data: &Seq<T>,
) -> Vec<u8> {
    test_support::raw_requests::request((order, version), 6, ("numbers", operation), |e| {
        name.encode(e).unwrap();
        data.encode(e).unwrap();
    })
}

/// Returns the number in the next reply.
async fn reply(stream: &mut TcpStream) -> u64 {
    test_support::raw_requests::reply(stream).await.1
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
                    // The pause splits an element.
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

/// In GIOP 1.1, each fragment is aligned separately. A run that begins with a fragment has its padding after
/// the fragment's header, unless it was aligned at the end of the preceding fragment.
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
            let (near, far) = octets.split_at(octets.len() / 2);
            let pieces = [
                piece(header, MessageType::Request, &message[12..count + 4], true),
                piece(header, MessageType::Fragment, &[&[0; 4][..(count + 4) % 8], near].concat(), true),
                piece(header, MessageType::Fragment, far, true),
                piece(header, MessageType::Fragment, &[], false),
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
        let (_, body) = reply_octets(&mut stream).await;
        assert!(body.windows(7).any(|part| part == b"MARSHAL"), "{lie}");
    }
    stream.write_all(&message).await.unwrap();
    assert_eq!(reply(&mut stream).await, checksum(0, items.as_bytes()));
    assert_eq!(server.open_connections(), 1);
}

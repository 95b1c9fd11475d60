//! The encoding of a trace, byte by byte.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zorb::prelude::*;

use super::{Ids, TEXT, Till, shop};
use crate::spans::Spans;

/// Returns the service context of [`TEXT`] with the state `theirs=1`, in little-endian order: its id, its
/// length, and an encapsulation of two strings in the byte order `order`.
fn context(order: u8) -> Vec<u8> {
    let number = |number: u32| if order == 1 { number.to_le_bytes() } else { number.to_be_bytes() };
    let mut octets = Vec::new();
    octets.extend(number(0x5A4F_5204));
    // Order and padding, 4 + 56 of the first string, 4 + 9 of the second.
    octets.extend(number(4 + 60 + 13));
    octets.extend([order, 0, 0, 0]);
    octets.extend(number(56));
    octets.extend(TEXT.as_bytes());
    octets.push(0);
    octets.extend(number(9));
    octets.extend(b"theirs=1\0");
    octets
}

#[tokio::test]
async fn a_request_carries_the_trace_in_a_service_context() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let orb = Orb::builder().propagate(Ids::default()).build().await.unwrap();
    let till: shop::TillRef =
        orb.resolve_unchecked(&format!("corbaloc:iiop:1.2@{address}/Till")).await.unwrap();
    let (_spans, _watching) = Spans::watch();
    let capture = async {
        let (mut peer, _) = listener.accept().await.unwrap();
        let mut octets = vec![0; 12];
        peer.read_exact(&mut octets).await.unwrap();
        assert_eq!(&octets[..4], b"GIOP");
        let size = u32::from_le_bytes(octets[8..].try_into().unwrap());
        octets.resize(12 + size as usize, 0);
        peer.read_exact(&mut octets[12..]).await.unwrap();
        octets
    };
    let octets = tokio::select! {
        octets = capture => octets,
        paid = till.pay(7) => unreachable!("nobody answers: {paid:?}"),
    };
    let expected = context(u8::from(cfg!(target_endian = "little")));
    assert!(octets.windows(expected.len()).any(|window| window == expected), "{octets:02x?}");
}

/// Returns a request of GIOP 1.2 for `trace` of the object `Till`, with a trace.
fn request(order: u8) -> Vec<u8> {
    let number = |number: u32| if order == 1 { number.to_le_bytes() } else { number.to_be_bytes() };
    let mut body = Vec::new();
    body.extend(number(5)); // request id
    body.extend([3, 0, 0, 0]); // with a reply
    body.extend([0, 0, 0, 0]); // addressed by key
    body.extend(number(4));
    body.extend(b"Till");
    body.extend(number(6));
    body.extend(b"trace\0");
    body.extend([0; 2]);
    body.extend(number(1));
    body.extend(context(order));
    let mut octets = b"GIOP\x01\x02".to_vec();
    octets.extend([order, 0]);
    octets.extend(number(u32::try_from(body.len()).unwrap()));
    octets.extend(body);
    octets
}

#[tokio::test]
async fn requests_of_others_bring_their_trace_in_either_byte_order() {
    let orb = Orb::builder().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let _till: shop::TillRef = orb.activate_named("Till", Till::default()).unwrap();
    for order in [0, 1] {
        let mut peer = TcpStream::connect(&orb.endpoints()[0]).await.unwrap();
        peer.write_all(&request(order)).await.unwrap();
        let mut reply = vec![0; 12];
        peer.read_exact(&mut reply).await.unwrap();
        let size = u32::from_le_bytes(reply[8..].try_into().unwrap()) as usize;
        reply.resize(12 + size, 0);
        peer.read_exact(&mut reply[12..]).await.unwrap();
        let told = format!("{TEXT} theirs=1");
        assert!(reply.windows(told.len()).any(|window| window == told.as_bytes()), "{reply:02x?}");
    }
    orb.shutdown().await;
}

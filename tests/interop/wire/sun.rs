//! GlassFish and the JDK's ORB, which only accept messages of over 256,000 bytes in fragments.

use giop_codec::Version;
use giop_codec::giop::{
    ContextId, MessageHeader, MessageType, ObjectKey, ReplyHeader, ReplyStatus, ServiceContext,
    ServiceContexts, begin_body,
};
use giop_codec::ior::{ComponentTag, IiopProfile, TaggedComponent};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use zorb::prelude::*;

use crate::wire::peer::{Raw, message, read, reference};
use crate::wire::server::serving;
use crate::wire::wire::DeskRef;

const PIECE: usize = 64 << 10;

/// The sizes of the pieces of a message, and its whole body.
struct Pieces {
    sizes: Vec<usize>,
    octets: Vec<u8>,
}

/// Reads a message that may be fragmented.
async fn read_pieces(socket: &mut tokio::net::TcpStream) -> Pieces {
    let (mut header, octets) = read(socket).await.unwrap();
    let mut pieces = Pieces { sizes: vec![octets.len()], octets: octets.to_vec() };
    while header.more_fragments {
        assert!(pieces.sizes.last().unwrap().is_multiple_of(8));
        let octets;
        (header, octets) = read(socket).await.unwrap();
        assert_eq!(header.kind, MessageType::Fragment);
        pieces.sizes.push(octets.len());
        pieces.octets.extend(&octets[MessageHeader::LEN + 4..]);
    }
    pieces
}

/// Simulates a server at a profile, which answers one request with an empty result.
async fn one_request(profile: IiopProfile, text: &str, by_option: Option<usize>) -> Pieces {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let profile = IiopProfile { port: listener.local_addr().unwrap().port(), ..profile };
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let pieces = read_pieces(&mut socket).await;
        // In older versions, the number of contexts, zero, precedes it.
        let (version, id_at) = if pieces.octets[5] < 2 { (Version::V1_1, 16) } else { (Version::V1_2, 12) };
        let id = u32::from_ne_bytes(pieces.octets[id_at..id_at + 4].try_into().unwrap());
        let reply = message(version, MessageType::Reply, |e| {
            let (status, contexts) = (ReplyStatus::NoException, ServiceContexts::EMPTY);
            let request_id = giop_codec::giop::RequestId(id);
            ReplyHeader { request_id, status, contexts }.encode(e).unwrap();
            begin_body(e);
            e.put_unconverted_str("answer").unwrap();
        });
        socket.write_all(&reply).await.unwrap();
        pieces
    });
    let orb = Orb::builder().build().await.unwrap();
    let mut desk: DeskRef = orb.resolve_unchecked(&reference(&[profile]).to_string()).await.unwrap();
    if let Some(size) = by_option {
        desk = desk.with_fragment_size(size);
    }
    assert_eq!(desk.same(text).await.unwrap(), "answer");
    server.await.unwrap()
}

#[tokio::test]
async fn requests_and_replies_leave_in_pieces_that_glassfish_takes() {
    let text = "t".repeat(300_000);
    let key = |key: &'static [u8]| IiopProfile::new("127.0.0.1", 0, ObjectKey::from_static(key));
    let format = TaggedComponent {
        tag: ComponentTag::RMI_CUSTOM_MAX_STREAM_FORMAT,
        data: Bytes::from_static(&[0, 2]),
    };
    for (profile, by_option, piece) in [
        (key(b"\xaf\xab\xcb\x00\0\0\0\x20desk"), None, Some(PIECE)),
        (key(b"desk").with_component(format), None, Some(PIECE)),
        (key(b"desk"), Some(32 << 10), Some(32 << 10)),
        (key(b"\xaf\xab\xcb\x00desk"), Some(32 << 10), Some(32 << 10)),
        (key(b"\xaf\xab\xcbdesk"), None, None),
        // GIOP 1.1 has no fragments that all ORBs interpret in the same way.
        (key(b"\xaf\xab\xcb\x00desk").with_version(Version::V1_1), None, None),
    ] {
        let pieces = one_request(profile, &text, by_option).await;
        assert!(pieces.octets.ends_with(b"ttt\0"), "it came whole");
        match piece {
            Some(piece) => {
                assert!(pieces.sizes.len() > 4 && pieces.sizes.iter().all(|size| *size <= piece));
            }
            None => assert_eq!(pieces.sizes.len(), 1),
        }
    }

    let (orb, _desk) = serving().await;
    for id in [ContextId::SUN_ORB_VERSION, ContextId(0x4e45_4f01)] {
        let mut raw = Raw::connect(&orb, b"desk").await;
        let context = ServiceContext { id, data: Bytes::from_static(&[0, 2]) };
        raw.send("same", &[context], |e| e.put_unconverted_str(&text).unwrap()).await;
        let pieces = read_pieces(&mut raw.socket).await;
        assert!(pieces.octets.ends_with(b"ttt\0"), "it came whole");
        let is_cut = pieces.sizes.len() > 4 && pieces.sizes.iter().all(|size| *size <= PIECE);
        assert_eq!(is_cut, id == ContextId::SUN_ORB_VERSION, "{:?}", pieces.sizes);
    }
}

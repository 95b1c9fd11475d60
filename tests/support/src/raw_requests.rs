//! Requests as any ORB would send them, byte by byte, whole and in fragments, and the replies to them.

use giop_codec::cdr::Encoder;
use giop_codec::giop::{
    MessageHeader, MessageType, RequestHeader, RequestId, ResponseFlags, ServiceContexts, TargetAddress,
    begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Returns a request to the object with that key.
pub fn request(
    (order, version): (ByteOrder, Version),
    id: u32,
    (key, operation): (&str, &str),
    arguments: impl FnOnce(&mut Encoder),
) -> Vec<u8> {
    let mut e = Encoder::new(order, version);
    let size_at = put_message_header(&mut e, MessageType::Request);
    RequestHeader {
        request_id: RequestId(id),
        response: ResponseFlags::Target,
        target: TargetAddress::Key(key.as_bytes()),
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

/// Returns a piece of the message with that header.
pub fn piece(header: MessageHeader, kind: MessageType, octets: &[u8], more: bool) -> Vec<u8> {
    let header = MessageHeader { kind, more_fragments: more, size: octets.len() as u32, ..header };
    [&header.encode()[..], octets].concat()
}

/// Returns the message as a first piece of `first` bytes and fragments of `step` bytes of payload.
pub fn fragmented(message: &[u8], first: usize, step: usize) -> Vec<u8> {
    let header = MessageHeader::decode(message.first_chunk().unwrap()).unwrap();
    let id: &[u8] = if header.version == Version::V1_2 { &message[12..16] } else { &[] };
    let mut octets = piece(header, MessageType::Request, &message[12..first], true);
    let mut pieces = message[first..].chunks(step).peekable();
    while let Some(payload) = pieces.next() {
        let payload = [id, payload].concat();
        octets.extend(piece(header, MessageType::Fragment, &payload, pieces.peek().is_some()));
    }
    octets
}

/// Returns the next message, which must be a reply: its header, and the following bytes.
pub async fn reply_octets(stream: &mut TcpStream) -> (MessageHeader, Vec<u8>) {
    let mut header = [0; 12];
    stream.read_exact(&mut header).await.unwrap();
    let header = MessageHeader::decode(&header).unwrap();
    assert_eq!((header.kind, header.order), (MessageType::Reply, ByteOrder::NATIVE));
    let mut body = vec![0; header.size as usize];
    stream.read_exact(&mut body).await.unwrap();
    (header, body)
}

/// Returns the next reply, which must not be an exception: its id, and the number in it.
pub async fn reply(stream: &mut TcpStream) -> (u32, u64) {
    let (header, body) = reply_octets(stream).await;
    let word = |at: usize| u32::from_ne_bytes(body[at..at + 4].try_into().unwrap());
    // Before GIOP 1.2 the service contexts come first; there are none.
    let at = if header.version == Version::V1_2 { 0 } else { 4 };
    assert_eq!(word(at + 4), 0, "an exception");
    (word(at), u64::from_ne_bytes(body[body.len() - 8..].try_into().unwrap()))
}

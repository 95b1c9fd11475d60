//! Messages as a stub, a skeleton or a stranger would write them.

use std::sync::OnceLock;

use bytes::Bytes;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{
    LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader, MessageType, ReplyHeader,
    ReplyStatus, RequestHeader, RequestId, ResponseFlags, ServiceContexts, TargetAddress,
    announce_message_size, begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};

/// The number that identifies a request on both sides.
pub type Tag = u32;

/// Size of the tag in a body.
pub const TAG: usize = 4;

/// Returns the body of a request or reply: a tag, and a byte pattern that does not repeat at buffer
/// boundaries.
pub fn body(tag: Tag, len: usize) -> Bytes {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| (0..1usize << 18).map(|i| (i * 31 + i / 251) as u8).collect());
    let mut body = tag.to_ne_bytes().to_vec();
    body.extend_from_slice(&pattern[..len.min(pattern.len())]);
    body.into()
}

/// Returns the tag of a complete and correct body.
pub fn tag_of(octets: &[u8]) -> Option<Tag> {
    let tag = Tag::from_ne_bytes(*octets.first_chunk()?);
    (octets == body(tag, octets.len() - TAG)).then_some(tag)
}

/// A request up to its body, of which `coming` bytes follow in another way.
pub struct Ask<'a> {
    pub version: Version,
    pub order: ByteOrder,
    pub id: RequestId,
    pub response: ResponseFlags,
    pub key: &'a [u8],
    pub body: Bytes,
    pub coming: u64,
}

impl Ask<'_> {
    pub fn encoder(self) -> Encoder {
        let mut e = Encoder::new(self.order, self.version);
        let size_at = put_message_header(&mut e, MessageType::Request);
        RequestHeader {
            request_id: self.id,
            response: self.response,
            target: TargetAddress::Key(self.key),
            operation: "ping",
            contexts: ServiceContexts::EMPTY,
        }
        .encode(&mut e)
        .expect("a request encodes");
        put_body(&mut e, self.body, self.coming);
        announce_message_size(&mut e, size_at, self.coming).expect("it is short");
        e
    }
}

/// Returns a reply, of whose body `coming` bytes follow in another way.
pub fn reply(version: Version, order: ByteOrder, id: RequestId, body: Bytes, coming: u64) -> Encoder {
    let mut e = Encoder::new(order, version);
    let size_at = put_message_header(&mut e, MessageType::Reply);
    ReplyHeader::new(id, ReplyStatus::NoException).encode(&mut e).expect("a reply encodes");
    put_body(&mut e, body, coming);
    announce_message_size(&mut e, size_at, coming).expect("it is short");
    e
}

fn put_body(e: &mut Encoder, body: Bytes, coming: u64) {
    if !body.is_empty() || coming > 0 {
        begin_body(e);
        e.put_shared(body);
    }
}

pub fn locate(version: Version, id: RequestId) -> Encoder {
    let mut e = Encoder::new(ByteOrder::NATIVE, version);
    let size_at = put_message_header(&mut e, MessageType::LocateRequest);
    let header = LocateRequestHeader { request_id: id, target: TargetAddress::Key(b"key") };
    header.encode(&mut e).and_then(|_| finish_message(&mut e, size_at)).expect("it encodes");
    e
}

pub fn locate_reply(version: Version, order: ByteOrder, id: RequestId) -> Encoder {
    let mut e = Encoder::new(order, version);
    let size_at = put_message_header(&mut e, MessageType::LocateReply);
    let header = LocateReplyHeader { request_id: id, status: LocateStatus::ObjectHere };
    header.encode(&mut e).and_then(|_| finish_message(&mut e, size_at)).expect("it encodes");
    e
}

/// Returns a message that consists of a header, followed by a word if given.
pub fn bare(version: Version, order: ByteOrder, kind: MessageType, word: Option<u32>) -> Vec<u8> {
    let size = if word.is_some() { 4 } else { 0 };
    let mut octets = MessageHeader { size, ..MessageHeader::new(version, order, kind) }.encode().to_vec();
    if let Some(word) = word {
        octets.extend(match order {
            ByteOrder::Big => word.to_be_bytes(),
            ByteOrder::Little => word.to_le_bytes(),
        });
    }
    octets
}

/// Splits the message into a first piece of `at` bytes, and fragments of `step` bytes.
pub fn pieces(message: &[u8], at: usize, step: usize) -> Vec<Vec<u8>> {
    let Some(Ok(header)) = message.first_chunk().map(MessageHeader::decode) else { return Vec::new() };
    let (first, mut rest) = message.split_at(at.clamp(MessageHeader::LEN, message.len()));
    let id = message.get(12..16).filter(|_| header.version == Version::V1_2).unwrap_or_default();
    let piece = |kind, start: &[u8], octets: &[u8], more_fragments| {
        let size = (start.len() + octets.len()) as u32;
        let mut piece = MessageHeader { kind, size, more_fragments, ..header }.encode().to_vec();
        piece.extend_from_slice(start);
        piece.extend_from_slice(octets);
        piece
    };
    let mut pieces = vec![piece(header.kind, &[], &first[MessageHeader::LEN..], true)];
    loop {
        let (octets, left) = rest.split_at(step.max(1).min(rest.len()));
        rest = left;
        pieces.push(piece(MessageType::Fragment, id, octets, !rest.is_empty()));
        if rest.is_empty() {
            return pieces;
        }
    }
}

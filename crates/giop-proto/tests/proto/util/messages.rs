//! Messages as written by a stub, a skeleton or another implementation.

use bytes::Bytes;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{
    LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader, MessageType, ReplyHeader,
    ReplyStatus, RequestHeader, RequestId, ResponseFlags, ServiceContext, ServiceContexts, TargetAddress,
    announce_message_size, begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use giop_proto::{CallId, IncomingRequest, ServeToken};

use super::Pair;

/// A request to be written.
#[derive(Clone, Debug)]
pub struct Ask {
    pub version: Version,
    pub order: ByteOrder,
    pub id: u32,
    pub response: ResponseFlags,
    pub key: Vec<u8>,
    pub operation: String,
    pub contexts: Vec<ServiceContext>,
    pub body: Vec<u8>,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            version: Version::V1_2,
            order: ByteOrder::NATIVE,
            id: 2,
            response: ResponseFlags::Target,
            key: b"key".to_vec(),
            operation: "ping".into(),
            contexts: Vec::new(),
            body: Vec::new(),
        }
    }
}

impl Ask {
    pub fn encoder(&self) -> Encoder {
        let mut e = Encoder::new(self.order, self.version);
        let size_at = put_message_header(&mut e, MessageType::Request);
        RequestHeader {
            request_id: RequestId(self.id),
            response: self.response,
            target: TargetAddress::Key(&self.key),
            operation: &self.operation,
            contexts: ServiceContexts::from(&*self.contexts),
        }
        .encode(&mut e)
        .unwrap();
        if !self.body.is_empty() {
            begin_body(&mut e);
            e.put_shared(Bytes::copy_from_slice(&self.body));
        }
        finish_message(&mut e, size_at).unwrap();
        e
    }

    pub fn octets(&self) -> Vec<u8> {
        self.encoder().into_bytes().to_vec()
    }
}

/// Returns a GIOP 1.2 request without arguments, to a target of any form.
pub fn request_to(id: RequestId, target: TargetAddress<'_>) -> Encoder {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let size_at = put_message_header(&mut e, MessageType::Request);
    let (response, contexts) = (ResponseFlags::Target, ServiceContexts::EMPTY);
    RequestHeader { request_id: id, response, target, operation: "ping", contexts }.encode(&mut e).unwrap();
    finish_message(&mut e, size_at).unwrap();
    e
}

pub fn reply(version: Version, id: RequestId, status: ReplyStatus, body: &[u8]) -> Encoder {
    let mut e = Encoder::new(ByteOrder::NATIVE, version);
    let size_at = put_message_header(&mut e, MessageType::Reply);
    ReplyHeader::new(id, status).encode(&mut e).unwrap();
    if !body.is_empty() {
        begin_body(&mut e);
        e.put_shared(Bytes::copy_from_slice(body));
    }
    finish_message(&mut e, size_at).unwrap();
    e
}

pub fn locate(version: Version, id: RequestId, key: &[u8]) -> Encoder {
    let mut e = Encoder::new(ByteOrder::NATIVE, version);
    let size_at = put_message_header(&mut e, MessageType::LocateRequest);
    LocateRequestHeader { request_id: id, target: TargetAddress::Key(key) }.encode(&mut e).unwrap();
    finish_message(&mut e, size_at).unwrap();
    e
}

pub fn locate_reply(version: Version, id: RequestId, status: LocateStatus) -> Encoder {
    let mut e = Encoder::new(ByteOrder::NATIVE, version);
    let size_at = put_message_header(&mut e, MessageType::LocateReply);
    LocateReplyHeader { request_id: id, status }.encode(&mut e).unwrap();
    finish_message(&mut e, size_at).unwrap();
    e
}

pub fn cancel(version: Version, id: u32) -> Vec<u8> {
    let mut octets = MessageHeader {
        size: 4,
        ..MessageHeader::new(version, ByteOrder::NATIVE, MessageType::CancelRequest)
    }
    .encode()
    .to_vec();
    octets.extend_from_slice(&id.to_ne_bytes());
    octets
}

/// Returns a message that consists of a header only.
pub fn bare(version: Version, kind: MessageType) -> Vec<u8> {
    MessageHeader::new(version, ByteOrder::NATIVE, kind).encode().to_vec()
}

/// Splits the message into a first piece of `at` bytes, with the flag set, and fragments of `step` bytes.
pub fn fragmented(message: &[u8], at: usize, step: usize) -> Vec<Vec<u8>> {
    let header = MessageHeader::decode(message.first_chunk().unwrap()).unwrap();
    let id = &message[12..16];
    let patch = |mut piece: Vec<u8>, more: bool| {
        let header = MessageHeader { more_fragments: more, size: piece.len() as u32 - 12, ..header };
        let kind = piece[7];
        piece[..12].copy_from_slice(&header.encode());
        piece[7] = kind;
        piece
    };
    let mut pieces = vec![patch(message[..at].to_vec(), true)];
    let mut rest = &message[at..];
    loop {
        let len = rest.len().min(step);
        let mut piece = vec![0; 12];
        piece[7] = MessageType::Fragment as u8;
        if header.version == Version::V1_2 {
            piece.extend_from_slice(id);
        }
        piece.extend_from_slice(&rest[..len]);
        rest = &rest[len..];
        pieces.push(patch(piece, !rest.is_empty()));
        if rest.is_empty() {
            return pieces;
        }
    }
}

impl Pair {
    /// Starts a call of the client and queues its request.
    pub fn call(&mut self, ask: &Ask) -> CallId {
        let call = self.client.conn.start_call(None, self.now).unwrap();
        let id = self.client.conn.call(call).request_id().0;
        self.client.conn.call(call).send_request(&mut Ask { id, ..ask.clone() }.encoder());
        call
    }

    /// Takes the oldest request that the server received.
    pub fn request(&mut self) -> IncomingRequest {
        self.server.requests.pop_front().expect("the server has a request")
    }

    /// Answers a request of the client.
    pub fn answer(&mut self, request: &IncomingRequest, body: &[u8]) {
        self.answer_token(request.token(), request.version(), request.id(), body);
    }

    pub fn answer_token(&mut self, token: ServeToken, version: Version, id: RequestId, body: &[u8]) {
        self.server.conn.request(token).send_reply(&mut reply(version, id, ReplyStatus::NoException, body));
    }
}

/// Returns the start of a request `put`, up to its arguments. `coming` bytes of these follow what the encoder
/// has then. `before` appends what precedes them.
pub fn start_of_put(
    id: RequestId,
    version: Version,
    answered: bool,
    coming: usize,
    before: impl FnOnce(&mut Encoder),
) -> Encoder {
    let mut e = Encoder::new(ByteOrder::NATIVE, version);
    let at = put_message_header(&mut e, MessageType::Request);
    RequestHeader {
        request_id: id,
        response: if answered { ResponseFlags::Target } else { ResponseFlags::None },
        target: TargetAddress::Key(b"key"),
        operation: "put",
        contexts: ServiceContexts::EMPTY,
    }
    .encode(&mut e)
    .unwrap();
    begin_body(&mut e);
    before(&mut e);
    announce_message_size(&mut e, at, coming as u64).unwrap();
    e
}

//! Requests and locate requests, as handed to the serving side.

use bytes::{Bytes, BytesMut};
use giop_codec::cdr::{CodeSets, Decoder};
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    LocateRequestHeader, MessageHeader, MessageType, ObjectKey, RequestId, ResponseFlags, ServiceContexts,
};
use giop_codec::{ByteOrder, DecodeError, Version};

use super::head::{RequestHead, locate_key};
use super::{Body, MessageSettings, decoder, message_part};
use crate::frame::JoinedMessage;
use crate::pool::BufferPool;
use crate::serving::ServeToken;

/// A request of the peer. It is complete, except for a payload that [follows as a stream](Self::coming).
///
/// Decoded byte sequences are views of [`message`](Self::message).
#[derive(Debug)]
pub struct IncomingRequest {
    pub(super) body: Body,
    head: RequestHead,
    token: ServeToken,
    coming: usize,
}

/// The arguments of a large request, separate from its headers, so that they can have the only view of it.
#[derive(Debug)]
pub struct Arguments {
    pub(super) body: Body,
}

/// The peer's query for the location of an object.
#[derive(Debug)]
pub struct IncomingLocate {
    message: Bytes,
    outside_key: Option<Box<ObjectKey>>,
    id: RequestId,
    key_at: u32,
    key_len: u32,
    version: Version,
    order: ByteOrder,
}

impl IncomingRequest {
    #[inline]
    pub(crate) fn new(
        header: MessageHeader,
        message: JoinedMessage,
        head: RequestHead,
        token: ServeToken,
        settings: MessageSettings,
        coming: usize,
    ) -> Self {
        let body = settings.body(header, message, head.body_at, head.has_contexts);
        Self { body, head, token, coming }
    }

    /// Returns whether the peer reads lists of blocks
    /// ([`announce_blocks`](giop_codec::giop::announce_blocks)).
    #[inline]
    pub fn reads_blocks(&self) -> bool {
        self.body.reads_blocks
    }

    /// Returns the number of bytes that follow [`message`](Self::message) as a stream: see
    /// `Connection::take_chunk`. 0 except for the requests that `Config::streams` selects.
    #[inline]
    pub fn coming(&self) -> usize {
        self.coming
    }

    /// Returns the token with which the reply is sent or the request finished.
    #[inline]
    pub fn token(&self) -> ServeToken {
        self.token
    }

    /// Returns the request id that the reply must carry.
    #[inline]
    pub fn id(&self) -> RequestId {
        self.head.id
    }

    /// Returns the version to reply in.
    #[inline]
    pub fn version(&self) -> Version {
        self.body.version
    }

    /// Returns the byte order of the request.
    #[inline]
    pub fn order(&self) -> ByteOrder {
        self.body.order
    }

    /// Returns whether and when the client expects a reply.
    #[inline]
    pub fn response(&self) -> ResponseFlags {
        self.head.response
    }

    /// Returns the key of the object, in whatever form the client addressed it. At most 64 KiB.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.head.key(&self.body.message)
    }

    /// Copies a small message, so that it does not pin the receive window. A large one has its own buffer.
    pub fn detach(&mut self) {
        self.body.detach();
    }

    /// Returns the operation's name.
    #[inline]
    pub fn operation(&self) -> &str {
        std::str::from_utf8(self.operation_name_bytes()).unwrap_or_default() // ASCII: the decoder checked it
    }

    /// Returns the operation's name as encoded in the message.
    #[inline]
    pub fn operation_name_bytes(&self) -> &[u8] {
        self.head.operation(&self.body.message)
    }

    /// Returns whether key, operation, contexts and response flags equal those of the previous request of the
    /// connection. The results of its look-up can then be reused.
    #[inline]
    pub fn repeats(&self) -> bool {
        self.head.repeats
    }

    /// Returns whether the request asks for the reference of its object
    /// ([`ContextId::ZORB_REFERENCE`](giop_codec::giop::ContextId::ZORB_REFERENCE)).
    #[inline]
    pub fn asks_for_reference(&self) -> bool {
        self.head.asks_for_reference
    }

    /// Returns whether the request carried new listen points of the peer: see `Peer::listen_points`.
    #[inline]
    pub fn announces(&self) -> bool {
        self.head.announces
    }

    /// Returns the service contexts of the request.
    #[inline]
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.body.contexts(MessageType::Request)
    }

    /// Returns the code sets of the connection when the request was received. The reply uses the same.
    #[inline]
    pub fn code_sets(&self) -> CodeSets {
        self.body.code_sets
    }

    /// Returns a decoder at the first argument, with the connection's code sets and limits.
    #[inline]
    pub fn arguments(&self) -> Decoder<'_> {
        self.body.decoder()
    }

    /// Takes the arguments of a large request, so that the request has none. Returns `None` for a small
    /// request, which is left unchanged. The headers, some hundred bytes, are copied to `header_memory`,
    /// whose memory is reused once this request is dropped.
    pub fn take_arguments(&mut self, header_memory: &mut BytesMut) -> Option<Arguments> {
        if !self.body.is_large() {
            return None;
        }
        let headers = self.body.message.get(..self.body.at as usize)?;
        header_memory.clear();
        if !header_memory.try_reclaim(headers.len()) {
            header_memory.reserve(headers.len());
        }
        header_memory.extend_from_slice(headers);
        let headers = Body { message: header_memory.split().freeze(), layout: None, ..self.body };
        Some(Arguments { body: std::mem::replace(&mut self.body, headers) })
    }

    /// Returns the whole message from its message header on. The pieces of a fragmented message are joined.
    /// If blocks have buffers of their own, only the bytes outside of blocks are returned; after
    /// [`take_arguments`](Self::take_arguments) only the headers.
    pub fn message(&self) -> &Bytes {
        &self.body.message
    }

    /// Returns the offsets of the later fragments, like [`Reply::pieces`](super::Reply::pieces).
    pub fn pieces(&self) -> &[u32] {
        self.body.fragments()
    }
}

impl Arguments {
    /// Decodes the arguments by `f`, like [`Reply::decode`](super::Reply::decode).
    ///
    /// # Errors
    /// The errors of `f`.
    #[inline]
    pub fn decode<R>(
        mut self,
        pool: &BufferPool,
        f: impl Fn(Decoder<'_>) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        self.body.decode(pool, f)
    }

    /// Returns a decoder at the first argument.
    pub fn decoder(&self) -> Decoder<'_> {
        self.body.decoder()
    }
}

impl IncomingLocate {
    pub(crate) fn decode(
        message_header: &MessageHeader,
        message: Bytes,
    ) -> Result<Result<Self, (RequestId, SystemException)>, DecodeError> {
        let header = LocateRequestHeader::decode(&mut decoder(message_header, &message))?;
        let id = header.request_id;
        let (key_at, key_len, outside_key) = match locate_key(&message, &header.target) {
            Ok(location) => location,
            Err(exception) => return Ok(Err((id, exception))),
        };
        let MessageHeader { version, order, .. } = *message_header;
        Ok(Ok(Self { message, outside_key, id, key_at, key_len, version, order }))
    }

    /// Returns the request id that the reply must carry.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// Returns the version to reply in.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the byte order of the locate request.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the key of the object. At most 64 KiB.
    pub fn key(&self) -> &[u8] {
        match &self.outside_key {
            None => message_part(&self.message, self.key_at, self.key_len),
            Some(key) => key.as_slice(),
        }
    }
}

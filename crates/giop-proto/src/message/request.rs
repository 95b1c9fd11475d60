//! Requests and LocateRequests, in the form in which a connection hands them out to be served.

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

/// A request of the peer. It is complete, except for a payload that [follows as a stream](Self::stream_len).
///
/// Byte sequences that are decoded from it can be views of [`message`](Self::message).
#[derive(Debug)]
pub struct IncomingRequest {
    pub(super) body: Body,
    head: RequestHead,
    token: ServeToken,
    stream_len: usize,
}

/// The arguments of a large request, which are separated from its headers. They have the only view of the
/// message's buffer, which is therefore released when they are dropped.
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
        stream_len: usize,
    ) -> Self {
        let body = settings.body(header, message, head.body_at, head.has_contexts);
        Self { body, head, token, stream_len }
    }

    /// Returns whether the peer accepts lists of the blocks of bulk data in a message
    /// ([`insert_block_list`](giop_codec::giop::insert_block_list)).
    #[inline]
    pub fn reads_blocks(&self) -> bool {
        self.body.reads_blocks
    }

    /// Returns the number of bytes that follow [`message`](Self::message) as a stream, or `usize::MAX` if it
    /// is unknown. It is 0 for requests that `Config::streams` does not select.
    #[inline]
    pub fn stream_len(&self) -> usize {
        self.stream_len
    }

    /// Returns the token that identifies the request when it is answered or finished.
    #[inline]
    pub fn token(&self) -> ServeToken {
        self.token
    }

    /// Returns the request id that the reply must have.
    #[inline]
    pub fn id(&self) -> RequestId {
        self.head.id
    }

    /// Returns the version that the reply must have.
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

    /// Returns the key of the object, even if it was sent in a profile or reference. At most 64 KiB.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.head.key(&self.body.message)
    }

    /// Copies a small message, so that it does not keep the buffer into which it was read.
    pub fn detach(&mut self) {
        self.body.detach();
    }

    /// Returns the name of the operation.
    #[inline]
    pub fn operation(&self) -> &str {
        std::str::from_utf8(self.operation_name_bytes()).unwrap_or_default() // UTF-8, as the decoder checked
    }

    /// Returns the name of the operation as it is encoded in the message.
    #[inline]
    pub fn operation_name_bytes(&self) -> &[u8] {
        self.head.operation(&self.body.message)
    }

    /// Returns whether the key, operation, contexts and response flags equal those of the previous request of
    /// the connection. The results of looking up the object and the operation can then be reused.
    #[inline]
    pub fn repeats_last_header(&self) -> bool {
        self.head.repeats_last
    }

    /// Returns whether the request asks for the reference of its object
    /// ([`ContextId::ZORB_REFERENCE`](giop_codec::giop::ContextId::ZORB_REFERENCE)).
    #[inline]
    pub fn asks_for_reference(&self) -> bool {
        self.head.asks_for_reference
    }

    /// Returns whether the request announced new listen points of the peer: see `Peer::listen_points`.
    #[inline]
    pub fn has_new_listen_points(&self) -> bool {
        self.head.has_new_listen_points
    }

    /// Returns the service contexts of the request.
    #[inline]
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.body.contexts(MessageType::Request)
    }

    /// Returns the code sets that the connection had for the request, and that the reply must use.
    #[inline]
    pub fn code_sets(&self) -> CodeSets {
        self.body.code_sets
    }

    /// Returns a decoder at the first argument, with the connection's code sets and limits.
    #[inline]
    pub fn arguments(&self) -> Decoder<'_> {
        self.body.decoder()
    }

    /// Takes the arguments out of a large request. Returns `None` for a small one, which is unchanged.
    ///
    /// The headers are copied to `header_memory`, which the next call reuses if this request has been
    /// dropped.
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

    /// Returns the whole message, including its message header. The pieces of a fragmented message are
    /// joined. Blocks of bulk data with buffers of their own, and bytes that follow as a stream, are not
    /// included. After [`take_arguments`](Self::take_arguments), only the headers are returned.
    pub fn message(&self) -> &Bytes {
        &self.body.message
    }

    /// Returns the offsets of the later fragments, as [`Reply::fragment_offsets`](super::Reply) does.
    pub fn fragment_offsets(&self) -> &[u32] {
        self.body.fragment_offsets()
    }
}

impl Arguments {
    /// Decodes the arguments by `f`. `f` and `pool` are used as by [`Reply::decode`](super::Reply::decode).
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

    /// Returns a decoder that is positioned at the first argument.
    pub fn decoder(&self) -> Decoder<'_> {
        self.body.decoder()
    }
}

impl IncomingLocate {
    /// Decodes a LocateRequest. The inner error is the exception with which it must be answered.
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

    /// Returns the request id that the reply must have.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// Returns the version that the reply must have.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the byte order of the LocateRequest.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the key of the object, of at most 64 KiB.
    pub fn key(&self) -> &[u8] {
        match &self.outside_key {
            None => message_part(&self.message, self.key_at, self.key_len),
            Some(key) => key.as_slice(),
        }
    }
}

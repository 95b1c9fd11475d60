//! Requests and locate requests, as handed to the serving side.

use bytes::{Bytes, BytesMut};
use giop_codec::cdr::{CodeSets, Decoder};
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    LocateRequestHeader, MessageHeader, MessageType, ObjectKey, RequestId, ResponseFlags, ServiceContexts,
};
use giop_codec::{ByteOrder, DecodeError, Version};

use super::head::{RequestHead, place_of_key};
use super::{Body, MessageSettings, decoder, part};
use crate::frame::{Frame, JoinedMessage};
use crate::pool::BufferPool;
use crate::serving::ServeToken;

/// A request of the peer. It is complete, except for a payload that is still [coming](Self::coming).
///
/// Decoding its arguments copies no byte sequences: they are views of [`message`](Self::message).
#[derive(Debug)]
pub struct IncomingRequest {
    pub(super) body: Body,
    head: RequestHead,
    token: ServeToken,
    coming: usize,
}

/// The arguments of a large request, separate from the names of its object and operation. The decoder of the
/// arguments may thus hold the only view of the message.
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
        terms: MessageSettings,
        coming: usize,
    ) -> Self {
        let body = terms.body(header, message, head.body_at, head.has_contexts);
        Self { body, head, token, coming }
    }

    /// Returns whether the reply may list its blocks
    /// ([`announce_blocks`](giop_codec::giop::announce_blocks)), because the peer has announced that it reads
    /// such lists.
    #[inline]
    #[must_use]
    pub fn reads_blocks(&self) -> bool {
        self.body.reads_blocks
    }

    /// Returns the number of bytes that follow those of [`message`](Self::message) as a stream: see
    /// `Connection::take_chunk`. 0 for all requests except those that `Config::streams` names.
    #[inline]
    #[must_use]
    pub fn coming(&self) -> usize {
        self.coming
    }

    /// Returns the token by which the reply is sent or the request finished.
    #[inline]
    #[must_use]
    pub fn token(&self) -> ServeToken {
        self.token
    }

    /// Returns the request id that the reply must carry.
    #[inline]
    #[must_use]
    pub fn id(&self) -> RequestId {
        self.head.id
    }

    /// Returns the version to reply in.
    #[inline]
    #[must_use]
    pub fn version(&self) -> Version {
        self.body.version
    }

    /// Returns the byte order of the request.
    #[inline]
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.body.order
    }

    /// Returns whether and when the client expects a reply.
    #[inline]
    #[must_use]
    pub fn response(&self) -> ResponseFlags {
        self.head.response
    }

    /// Returns the key of the object, whatever form of address the client chose. At most 64 KiB.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.head.key(&self.body.message)
    }

    /// Copies a small message out of the connection's receive window. It may then be kept for long without
    /// pinning the window. A large message has a buffer of its own.
    pub fn detach(&mut self) {
        self.body.detach();
    }

    /// Returns the operation's name.
    #[inline]
    #[must_use]
    pub fn operation(&self) -> &str {
        std::str::from_utf8(self.operation_octets()).unwrap_or_default() // ASCII: the decoder checked it
    }

    /// Returns the operation's name as encoded in the message.
    #[inline]
    #[must_use]
    pub fn operation_octets(&self) -> &[u8] {
        self.head.operation(&self.body.message)
    }

    /// Returns whether key, operation, contexts and response flags equal those of the previous request on the
    /// connection. If so, the results of its look-up can be reused.
    #[inline]
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.head.repeats
    }

    /// Returns whether it asks for the reference of its object
    /// ([`ContextId::ZORB_REFERENCE`](giop_codec::giop::ContextId::ZORB_REFERENCE)).
    #[inline]
    #[must_use]
    pub fn asks_for_reference(&self) -> bool {
        self.head.asks
    }

    /// Returns whether it carried listen points of the peer that were not known yet: see
    /// `Connection::peer_listen_points`.
    #[inline]
    #[must_use]
    pub fn announces(&self) -> bool {
        self.head.announces
    }

    /// Returns the service contexts of the request.
    #[inline]
    #[must_use]
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.body.contexts(MessageType::Request)
    }

    /// Returns the code sets of the connection at the time when the request was received. The reply uses the
    /// same.
    #[inline]
    #[must_use]
    pub fn code_sets(&self) -> CodeSets {
        self.body.code_sets
    }

    /// Returns a decoder at the first argument, with the connection's code sets and limits.
    #[inline]
    #[must_use]
    pub fn arguments(&self) -> Decoder<'_> {
        self.body.decoder()
    }

    /// Takes the arguments of a large request out; the remaining request has none. Returns `None` for a small
    /// request, which is left unchanged. Copies the headers, some hundred bytes, to `room`, whose memory is
    /// reused once this request is dropped.
    pub fn take_arguments(&mut self, room: &mut BytesMut) -> Option<Arguments> {
        if !self.body.is_large() {
            return None;
        }
        let headers = self.body.message.get(..self.body.at as usize)?;
        room.clear();
        if !room.try_reclaim(headers.len()) {
            room.reserve(headers.len());
        }
        room.extend_from_slice(headers);
        let headers = Body {
            message: room.split().freeze(),
            pieces: None,
            limits: self.body.limits,
            at: self.body.at,
            version: self.body.version,
            order: self.body.order,
            code_sets: self.body.code_sets,
            has_contexts: self.body.has_contexts,
            shares: self.body.shares,
            reads_blocks: self.body.reads_blocks,
        };
        Some(Arguments { body: std::mem::replace(&mut self.body, headers) })
    }

    /// Returns the whole message, from its message header on. For a fragmented message, all pieces are
    /// joined. For a message whose blocks have buffers of their own, only the bytes that are in no block.
    /// After [`take_arguments`](Self::take_arguments), only its headers.
    #[must_use]
    pub fn message(&self) -> &Bytes {
        &self.body.message
    }

    /// Returns the offsets of the second and later pieces of a message that was received in GIOP 1.1
    /// fragments. Empty for all messages in which the fragments do not affect decoding.
    ///
    /// Such a message is joined as it was received. A sender that aligns values in each fragment separately,
    /// as omniORB does, places values after a joint differently from a sender that aligns over the whole
    /// message. [`arguments`](Self::arguments) reads them as omniORB writes them, because no other ORB is
    /// known to send such fragments.
    #[must_use]
    pub fn pieces(&self) -> &[u32] {
        self.body.fragments()
    }
}

impl Arguments {
    /// Decodes the arguments by `f`. `f` runs twice if that makes views of sequences of structs. `pool` is
    /// the pool that the connection reads into.
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
    #[must_use]
    pub fn decoder(&self) -> Decoder<'_> {
        self.body.decoder()
    }
}

impl IncomingLocate {
    pub(crate) fn decode(frame: Frame) -> Result<Result<Self, (RequestId, SystemException)>, DecodeError> {
        let mut d = decoder(&frame.header, &frame.octets);
        let header = LocateRequestHeader::decode(&mut d)?;
        let id = header.request_id;
        let (key_at, key_len, outside_key) = match place_of_key(&frame.octets, &header.target) {
            Ok(place) => place,
            Err(exception) => return Ok(Err((id, exception))),
        };
        let (version, order) = (frame.header.version, frame.header.order);
        Ok(Ok(Self { message: frame.octets, outside_key, id, key_at, key_len, version, order }))
    }

    /// Returns the request id that the reply must carry.
    #[must_use]
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// Returns the version to reply in.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the byte order of the locate request.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Returns the key of the object. At most 64 KiB.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.outside_key {
            None => part(&self.message, self.key_at, self.key_len),
            Some(key) => key.as_slice(),
        }
    }
}

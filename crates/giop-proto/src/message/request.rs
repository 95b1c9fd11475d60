//! Requests and locate requests as whoever serves gets them.

use bytes::{Bytes, BytesMut};
use giop_codec::cdr::{CodeSets, Decoder};
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    LocateRequestHeader, MessageHeader, MessageType, ObjectKey, RequestId, ResponseFlags, ServiceContexts,
};
use giop_codec::{ByteOrder, DecodeError, Version};

use super::head::{RequestHead, place_of_key};
use super::{Body, Terms, decoder, part};
use crate::fragments::Joined;
use crate::pool::BufferPool;
use crate::receive::Frame;
use crate::serving::ServeToken;

/// A request of the peer: whole, but for a payload that is still [coming](Self::coming).
///
/// Decoding its arguments copies no octet sequences: they are views of [`message`](Self::message).
#[derive(Debug)]
pub struct IncomingRequest {
    pub(super) body: Body,
    head: RequestHead,
    token: ServeToken,
    coming: usize,
}

/// The arguments of a large request, apart from what names its object and operation, so that whoever decodes them may be the
/// only one who holds the message.
#[derive(Debug)]
pub struct Arguments {
    pub(super) body: Body,
}

/// A question of the peer where an object is.
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
        message: Joined,
        head: RequestHead,
        token: ServeToken,
        terms: Terms,
        coming: usize,
    ) -> Self {
        let body = terms.body(header, message, head.body_at, head.has_contexts);
        Self { body, head, token, coming }
    }

    /// Whether the reply may list its blocks ([`announce_blocks`](giop_codec::giop::announce_blocks)): the peer has said that it
    /// reads such lists.
    #[inline]
    #[must_use]
    pub fn reads_blocks(&self) -> bool {
        self.body.reads_blocks
    }

    /// How many octets of it come as a stream, behind those of [`message`](Self::message): see
    /// `Connection::take_chunk`. 0 for all requests but those that `Config::streams` names.
    #[inline]
    #[must_use]
    pub fn coming(&self) -> usize {
        self.coming
    }

    /// By this the reply is sent, or the request finished.
    #[inline]
    #[must_use]
    pub fn token(&self) -> ServeToken {
        self.token
    }

    /// The number the reply must carry.
    #[inline]
    #[must_use]
    pub fn id(&self) -> RequestId {
        self.head.id
    }

    /// The version to reply in.
    #[inline]
    #[must_use]
    pub fn version(&self) -> Version {
        self.body.version
    }

    /// The byte order of the request.
    #[inline]
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.body.order
    }

    /// Whether and when the client wants a reply.
    #[inline]
    #[must_use]
    pub fn response(&self) -> ResponseFlags {
        self.head.response
    }

    /// The octets that name the object, whatever form of address the client chose; 64 KiB at the most.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.head.key(&self.body.message)
    }

    /// Copies a small message out of the connection's receive window, so that it may be kept for long without pinning that.
    /// A large one has a buffer of its own.
    pub fn detach(&mut self) {
        self.body.detach();
    }

    /// The operation's name.
    #[inline]
    #[must_use]
    pub fn operation(&self) -> &str {
        std::str::from_utf8(self.operation_octets()).unwrap_or_default() // ASCII: the header's decoder saw to it
    }

    /// The operation's name as it stands in the message.
    #[inline]
    #[must_use]
    pub fn operation_octets(&self) -> &[u8] {
        self.head.operation(&self.body.message)
    }

    /// Whether key, operation, contexts and response flags are those of the request before it on the connection, so that
    /// what was looked up for that may be used again.
    #[inline]
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.head.repeats
    }

    /// Whether it asks for the reference of its object ([`ContextId::ZORB_REFERENCE`](giop_codec::giop::ContextId::ZORB_REFERENCE)).
    #[inline]
    #[must_use]
    pub fn asks_for_reference(&self) -> bool {
        self.head.asks
    }

    /// Whether it brought listen points of the peer's that were not known: see `Connection::peer_listen_points`.
    #[inline]
    #[must_use]
    pub fn announces(&self) -> bool {
        self.head.announces
    }

    /// What travels beside the arguments.
    #[inline]
    #[must_use]
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.body.contexts(MessageType::Request)
    }

    /// The code sets of the connection, as they were when the request came: those for the reply.
    #[inline]
    #[must_use]
    pub fn code_sets(&self) -> CodeSets {
        self.body.code_sets
    }

    /// A decoder at the first argument, with the connection's code sets and limits.
    #[inline]
    #[must_use]
    pub fn arguments(&self) -> Decoder<'_> {
        self.body.decoder()
    }

    /// Takes the arguments of a large request out; `None` of a small one, which stays as it is. Copies the headers, some
    /// hundred octets, to `room`, whose memory is used again once this request is dropped. What is left has no arguments.
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

    /// The whole message, from its message header on. Of a fragmented one, all pieces joined; of one whose blocks have
    /// buffers of their own, what is in none of them. Only its headers behind [`take_arguments`](Self::take_arguments).
    #[must_use]
    pub fn message(&self) -> &Bytes {
        &self.body.message
    }

    /// Where the second and later pieces of a message start that came in GIOP 1.1 fragments; empty for all messages where that
    /// does not matter.
    ///
    /// Such a message is joined as it came. A sender that aligns values in each fragment by itself, as omniORB does, has put
    /// values behind a joint elsewhere than a sender would that aligns through the whole message;
    /// [`arguments`](Self::arguments) reads as omniORB writes, since no other ORB is known to send such fragments.
    #[must_use]
    pub fn pieces(&self) -> &[u32] {
        self.body.fragments()
    }
}

impl Arguments {
    /// Decodes them by `f`, which runs twice where that makes views of sequences of structs: `pool` is the one the
    /// connection reads into.
    ///
    /// # Errors
    /// What `f` returns.
    #[inline]
    pub fn decode<R>(
        mut self,
        pool: &BufferPool,
        f: impl Fn(Decoder<'_>) -> Result<R, DecodeError>,
    ) -> Result<R, DecodeError> {
        self.body.decode(pool, f)
    }

    /// A decoder at the first argument.
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

    /// The number the reply must carry.
    #[must_use]
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// The version to reply in.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The byte order of the question.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// The octets that name the object; 64 KiB at the most.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.outside_key {
            None => part(&self.message, self.key_at, self.key_len),
            Some(key) => key.as_slice(),
        }
    }
}

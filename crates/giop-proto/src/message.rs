//! What a connection hands out: requests to serve, and replies.

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, DecodeLimits, Decoder};
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader, MessageType, ObjectKey, ReplyHeader, ReplyStatus,
    RequestHeader, RequestId, ResponseFlags, ServiceContexts, TargetAddress, enter_body,
};
use giop_codec::{ByteOrder, DecodeError, Version};

use crate::limits::Limits;
use crate::receive::{Frame, HEADER_LEN};
use crate::serving::ServeToken;

/// A whole request of the peer.
///
/// Decoding its arguments copies no octet sequences: they are views of [`message`](Self::message).
#[derive(Debug)]
pub struct IncomingRequest {
    body: Body,
    head: RequestHead,
    token: ServeToken,
}

/// Where the parts of a request's header lie.
#[derive(Debug)]
pub(crate) struct RequestHead {
    /// The key, where the peer sent it inside a profile.
    outside_key: Option<Box<ObjectKey>>,
    pub(crate) id: RequestId,
    key_at: u32,
    key_len: u32,
    operation_at: u32,
    body_at: u32,
    operation_len: u16,
    pub(crate) response: ResponseFlags,
    pub(crate) has_contexts: bool,
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

/// The peer's answer to a call: a Reply, or a LocateReply where the call was a LocateRequest.
#[derive(Debug)]
pub struct Reply {
    body: Body,
    answer: Answer,
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    Reply(ReplyStatus),
    Locate(LocateStatus),
}

/// What requests and replies have in common.
#[derive(Debug)]
struct Body {
    message: Bytes,
    limits: DecodeLimits,
    at: u32,
    version: Version,
    order: ByteOrder,
    code_sets: CodeSets,
    has_contexts: bool,
}

/// Why a request is answered by an exception before anybody sees it.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The header does not decode.
    Header(DecodeError),
    /// The header decodes; this exception is the answer.
    Refused(RequestId, ResponseFlags, SystemException),
}

/// What a connection knows of all its messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) code_sets: CodeSets,
    pub(crate) max_depth: u16,
    pub(crate) max_decoded: usize,
}

impl Terms {
    pub(crate) fn new(limits: &Limits, code_sets: CodeSets) -> Self {
        Self { code_sets, max_depth: limits.max_depth, max_decoded: limits.max_decoded }
    }

    #[inline]
    fn body(&self, frame: Frame, at: u32, has_contexts: bool) -> Body {
        let alloc = self.max_decoded.max(frame.octets.len().saturating_mul(8));
        Body {
            limits: DecodeLimits { depth: self.max_depth, alloc },
            at,
            version: frame.header.version,
            order: frame.header.order,
            code_sets: self.code_sets,
            has_contexts,
            message: frame.octets,
        }
    }
}

impl RequestHead {
    /// Decodes the header of a request.
    #[inline]
    pub(crate) fn decode(frame: &Frame) -> Result<Self, RequestError> {
        let mut d = decoder(&frame.octets, &frame.header);
        let header = RequestHeader::decode(&mut d).map_err(RequestError::Header)?;
        enter_body(&mut d);
        let (id, response) = (header.request_id, header.response);
        let (key_at, key_len, outside_key) = match place_of_key(&frame.octets, &header.target) {
            Ok(place) => place,
            Err(exception) => return Err(RequestError::Refused(id, response, exception)),
        };
        let (operation_at, operation_len) = place_of(&frame.octets, header.operation.as_bytes());
        Ok(Self {
            outside_key,
            id,
            key_at,
            key_len,
            operation_at,
            body_at: narrow(d.position()),
            operation_len: operation_len as u16, // at most `MAX_OPERATION`
            response,
            has_contexts: !header.contexts.is_empty(),
        })
    }
}

impl IncomingRequest {
    #[inline]
    pub(crate) fn new(frame: Frame, head: RequestHead, token: ServeToken, terms: Terms) -> Self {
        Self { body: terms.body(frame, head.body_at, head.has_contexts), head, token }
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
        match &self.head.outside_key {
            None => part(&self.body.message, self.head.key_at, self.head.key_len),
            Some(key) => key.as_slice(),
        }
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
        part(&self.body.message, self.head.operation_at, u32::from(self.head.operation_len))
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

    /// The whole message, from its message header on. Of a fragmented one, all pieces joined.
    #[must_use]
    pub fn message(&self) -> &Bytes {
        &self.body.message
    }
}

impl IncomingLocate {
    pub(crate) fn decode(frame: Frame) -> Result<Result<Self, (RequestId, SystemException)>, DecodeError> {
        let mut d = decoder(&frame.octets, &frame.header);
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

impl Reply {
    #[inline]
    pub(crate) fn decode(frame: Frame, terms: Terms) -> Result<(RequestId, Self), DecodeError> {
        let mut d = decoder(&frame.octets, &frame.header);
        let header = ReplyHeader::decode(&mut d)?;
        let has_contexts = !header.contexts.is_empty();
        enter_body(&mut d);
        let (id, answer, at) = (header.request_id, Answer::Reply(header.status), narrow(d.position()));
        Ok((id, Self { body: terms.body(frame, at, has_contexts), answer }))
    }

    pub(crate) fn decode_locate(frame: Frame, terms: Terms) -> Result<(RequestId, Self), DecodeError> {
        let mut d = decoder(&frame.octets, &frame.header);
        let header = LocateReplyHeader::decode(&mut d)?;
        let (id, answer, at) = (header.request_id, Answer::Locate(header.status), narrow(d.position()));
        Ok((id, Self { body: terms.body(frame, at, false), answer }))
    }

    /// What the body is. Of a LocateReply the status that says the same of a request:
    /// [`NoException`](ReplyStatus::NoException) for `UNKNOWN_OBJECT` and `OBJECT_HERE`, so look at
    /// [`locate_status`](Self::locate_status) first.
    #[inline]
    #[must_use]
    pub fn status(&self) -> ReplyStatus {
        match self.answer {
            Answer::Reply(status) => status,
            Answer::Locate(LocateStatus::UnknownObject | LocateStatus::ObjectHere) => ReplyStatus::NoException,
            Answer::Locate(LocateStatus::ObjectForward) => ReplyStatus::LocationForward,
            Answer::Locate(LocateStatus::ObjectForwardPerm) => ReplyStatus::LocationForwardPerm,
            Answer::Locate(LocateStatus::SystemException) => ReplyStatus::SystemException,
            Answer::Locate(LocateStatus::NeedsAddressingMode) => ReplyStatus::NeedsAddressingMode,
        }
    }

    /// What a LocateReply says; `None` of a Reply.
    #[must_use]
    pub fn locate_status(&self) -> Option<LocateStatus> {
        match self.answer {
            Answer::Reply(_) => None,
            Answer::Locate(status) => Some(status),
        }
    }

    /// A decoder at the first result, with the connection's code sets and limits.
    #[inline]
    #[must_use]
    pub fn body(&self) -> Decoder<'_> {
        self.body.decoder()
    }

    /// What travels beside the results.
    #[must_use]
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.body.contexts(MessageType::Reply)
    }

    /// The version of the message.
    #[must_use]
    pub fn version(&self) -> Version {
        self.body.version
    }

    /// The byte order of the message.
    #[must_use]
    pub fn order(&self) -> ByteOrder {
        self.body.order
    }

    /// The whole message, from its message header on. Of a fragmented one, all pieces joined.
    #[must_use]
    pub fn message(&self) -> &Bytes {
        &self.body.message
    }
}

impl Body {
    #[inline]
    fn decoder(&self) -> Decoder<'_> {
        let mut d = Decoder::from_bytes(&self.message, self.order, self.version).at(self.at as usize);
        d.set_code_sets(self.code_sets);
        d.set_limits(self.limits);
        d
    }

    /// The contexts, found by decoding the header again: they are asked for more seldom than they are there.
    fn contexts(&self, kind: MessageType) -> ServiceContexts<'_> {
        if self.has_contexts { contexts_at(&self.message, self.order, self.version, kind) } else { ServiceContexts::EMPTY }
    }
}

/// The service contexts of a request or reply.
pub(crate) fn contexts_of(frame: &Frame) -> ServiceContexts<'_> {
    contexts_at(&frame.octets, frame.header.order, frame.header.version, frame.header.kind)
}

fn contexts_at(message: &Bytes, order: ByteOrder, version: Version, kind: MessageType) -> ServiceContexts<'_> {
    let mut d = Decoder::from_bytes(message, order, version).at(HEADER_LEN);
    let contexts = match kind {
        MessageType::Request => RequestHeader::decode(&mut d).map(|header| header.contexts),
        _ => ReplyHeader::decode(&mut d).map(|header| header.contexts),
    };
    contexts.unwrap_or_default()
}

fn decoder<'a>(message: &'a Bytes, header: &MessageHeader) -> Decoder<'a> {
    Decoder::from_bytes(message, header.order, header.version).at(HEADER_LEN)
}

type KeyPlace = (u32, u32, Option<Box<ObjectKey>>);

#[inline]
fn place_of_key(message: &[u8], target: &TargetAddress<'_>) -> Result<KeyPlace, SystemException> {
    match target {
        TargetAddress::Key(key) if key.len() <= giop_codec::giop::MAX_OBJECT_KEY => {
            let (at, len) = place_of(message, key);
            Ok((at, len, None))
        }
        other => outside_key(other),
    }
}

#[cold]
fn outside_key(target: &TargetAddress<'_>) -> Result<KeyPlace, SystemException> {
    Ok((0, 0, Some(Box::new(target.object_key()?))))
}

/// Where `inner`, a view of `whole`, lies in it.
#[inline]
fn place_of(whole: &[u8], inner: &[u8]) -> (u32, u32) {
    (narrow(inner.as_ptr().addr().saturating_sub(whole.as_ptr().addr())), narrow(inner.len()))
}

#[inline]
fn part(message: &[u8], at: u32, len: u32) -> &[u8] {
    message.get(at as usize..).and_then(|rest| rest.get(..len as usize)).unwrap_or_default()
}

/// An offset of a header part. They all lie far below 4 GiB; what does not would be found to be empty.
#[inline]
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

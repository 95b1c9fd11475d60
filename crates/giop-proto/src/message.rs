//! What a connection hands out: requests to serve, and replies.

use bytes::Bytes;
use giop_codec::cdr::{CodeSets, DecodeLimits, Decoder};
use giop_codec::exception::SystemException;
use giop_codec::giop::{
    LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageHeader, MessageType, ObjectKey, ReplyHeader,
    ReplyStatus, RequestHeader, RequestId, ResponseFlags, ServiceContexts, TargetAddress, enter_body,
};
use giop_codec::{ByteOrder, DecodeError, Version};

use crate::fragments::Joined;
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
    /// It says the same as the one before.
    pub(crate) repeats: bool,
    /// Where the header ends, padding before the body not counted.
    end: u32,
}

/// The last request header, octet by octet: the next one is often the same but for its id.
#[derive(Debug, Default)]
pub(crate) struct LastHead {
    /// From behind the request id to the end of the header.
    octets: Vec<u8>,
    header: Option<(MessageHeader, RequestHead)>,
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

/// What a reply's header says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyHead {
    pub(crate) id: RequestId,
    answer: Answer,
    at: u32,
    has_contexts: bool,
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
    /// See `Joined`.
    pieces: Option<Box<[u32]>>,
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
    fn body(&self, header: MessageHeader, message: Joined, at: u32, has_contexts: bool) -> Body {
        Body {
            limits: DecodeLimits {
                depth: self.max_depth,
                alloc: self.max_decoded.max(message.octets.len().saturating_mul(8)),
            },
            at,
            version: header.version,
            order: header.order,
            code_sets: self.code_sets,
            has_contexts,
            message: message.octets,
            pieces: message.pieces,
        }
    }
}

/// Where the request id of a GIOP 1.2 message ends.
const ID_END: usize = HEADER_LEN + 4;

impl RequestHead {
    /// Decodes the header of a request.
    pub(crate) fn decode(header: &MessageHeader, octets: &[u8]) -> Result<Self, RequestError> {
        let mut d = decoder(header, octets);
        let request = RequestHeader::decode(&mut d).map_err(RequestError::Header)?;
        let end = narrow(d.position());
        enter_body(&mut d);
        let (id, response) = (request.request_id, request.response);
        let (key_at, key_len, outside_key) = match place_of_key(octets, &request.target) {
            Ok(place) => place,
            Err(exception) => return Err(RequestError::Refused(id, response, exception)),
        };
        let (operation_at, operation_len) = place_of(octets, request.operation.as_bytes());
        Ok(Self {
            outside_key,
            id,
            key_at,
            key_len,
            operation_at,
            body_at: narrow(d.position()),
            operation_len: operation_len as u16, // at most `MAX_OPERATION`
            response,
            has_contexts: !request.contexts.is_empty(),
            repeats: false,
            end,
        })
    }
}

impl LastHead {
    /// The header of a message that repeats the last one, which then need not be decoded.
    #[inline]
    pub(crate) fn recall(&self, header: &MessageHeader, octets: &[u8]) -> Option<RequestHead> {
        let (last, head) = self.header.as_ref()?;
        let end = head.end as usize;
        if last.version != header.version
            || last.order != header.order
            || octets.get(ID_END..end)? != self.octets.as_slice()
        {
            return None;
        }
        let body_at = if octets.len() == end { end } else { end.next_multiple_of(8).min(octets.len()) };
        Some(RequestHead {
            outside_key: None,
            id: word(header.order, octets)?,
            body_at: narrow(body_at),
            repeats: true,
            key_at: head.key_at,
            key_len: head.key_len,
            operation_at: head.operation_at,
            operation_len: head.operation_len,
            response: head.response,
            has_contexts: head.has_contexts,
            end: head.end,
        })
    }

    /// Remembers a header. Those before GIOP 1.2 have the id in their middle.
    pub(crate) fn remember(&mut self, header: &MessageHeader, head: &RequestHead, octets: &[u8]) {
        let end = head.end as usize;
        self.header = None;
        if let Some(octets) = octets.get(ID_END..end)
            && header.version == Version::V1_2
            && head.outside_key.is_none()
            && octets.len() <= LONGEST_REMEMBERED
        {
            self.octets.clear();
            self.octets.extend_from_slice(octets);
            self.header = Some((*header, RequestHead { outside_key: None, ..*head }));
        }
    }
}

/// Longer headers are decoded each time.
const LONGEST_REMEMBERED: usize = 512;

impl IncomingRequest {
    #[inline]
    pub(crate) fn new(
        header: MessageHeader,
        message: Joined,
        head: RequestHead,
        token: ServeToken,
        terms: Terms,
    ) -> Self {
        Self { body: terms.body(header, message, head.body_at, head.has_contexts), head, token }
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

    /// Whether key, operation, contexts and response flags are those of the request before it on the connection, so that
    /// what was looked up for that may be used again.
    #[inline]
    #[must_use]
    pub fn repeats(&self) -> bool {
        self.head.repeats
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

    /// Where the second and later pieces of a message start that came in GIOP 1.1 fragments; empty for all messages where that
    /// does not matter.
    ///
    /// Such a message is joined as it came. A sender that aligns values in each fragment by itself, as omniORB does, has
    /// put a value of 8 octets (behind an odd number of octets: any value of 2 to 8) elsewhere than
    /// a decoder of the joined message looks for it: each piece starts at phase 4 modulo 8 for the sender. Octets
    /// and characters are right in any case.
    #[must_use]
    pub fn pieces(&self) -> &[u32] {
        self.body.pieces.as_deref().unwrap_or_default()
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

impl ReplyHead {
    /// Decodes the header of a Reply or a LocateReply.
    #[inline]
    pub(crate) fn decode(header: &MessageHeader, octets: &[u8]) -> Result<Self, DecodeError> {
        let mut d = decoder(header, octets);
        if header.kind == MessageType::LocateReply {
            return Self::decode_locate(&mut d);
        }
        let reply = ReplyHeader::decode(&mut d)?;
        enter_body(&mut d);
        Ok(Self {
            id: reply.request_id,
            answer: Answer::Reply(reply.status),
            at: narrow(d.position()),
            has_contexts: !reply.contexts.is_empty(),
        })
    }

    #[cold]
    fn decode_locate(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let reply = LocateReplyHeader::decode(d)?;
        let (answer, at) = (Answer::Locate(reply.status), narrow(d.position()));
        Ok(Self { id: reply.request_id, answer, at, has_contexts: false })
    }
}

impl Reply {
    #[inline]
    pub(crate) fn new(header: MessageHeader, message: Joined, head: ReplyHead, terms: Terms) -> Self {
        Self { body: terms.body(header, message, head.at, head.has_contexts), answer: head.answer }
    }

    /// What the body is. Of a LocateReply the status that says the same of a request:
    /// [`NoException`](ReplyStatus::NoException) for `UNKNOWN_OBJECT` and `OBJECT_HERE`, so look at
    /// [`locate_status`](Self::locate_status) first.
    #[inline]
    #[must_use]
    pub fn status(&self) -> ReplyStatus {
        match self.answer {
            Answer::Reply(status) => status,
            Answer::Locate(LocateStatus::UnknownObject | LocateStatus::ObjectHere) => {
                ReplyStatus::NoException
            }
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

    /// Where the second and later pieces of a message start that came in GIOP 1.1 fragments; empty for all messages where that
    /// does not matter.
    ///
    /// Such a message is joined as it came. A sender that aligns values in each fragment by itself, as omniORB does, has
    /// put a value of 8 octets (behind an odd number of octets: any value of 2 to 8) elsewhere than
    /// a decoder of the joined message looks for it: each piece starts at phase 4 modulo 8 for the sender. Octets
    /// and characters are right in any case.
    #[must_use]
    pub fn pieces(&self) -> &[u32] {
        self.body.pieces.as_deref().unwrap_or_default()
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
        if self.has_contexts {
            contexts_at(&self.message, self.order, self.version, kind)
        } else {
            ServiceContexts::EMPTY
        }
    }
}

/// The service contexts of a request or reply.
pub(crate) fn contexts_of<'a>(header: &MessageHeader, octets: &'a [u8]) -> ServiceContexts<'a> {
    contexts_at(octets, header.order, header.version, header.kind)
}

fn contexts_at(octets: &[u8], order: ByteOrder, version: Version, kind: MessageType) -> ServiceContexts<'_> {
    let mut d = Decoder::new(octets, order, version).at(HEADER_LEN);
    let contexts = match kind {
        MessageType::Request => RequestHeader::decode(&mut d).map(|header| header.contexts),
        _ => ReplyHeader::decode(&mut d).map(|header| header.contexts),
    };
    contexts.unwrap_or_default()
}

#[inline]
fn decoder<'a>(header: &MessageHeader, octets: &'a [u8]) -> Decoder<'a> {
    Decoder::new(octets, header.order, header.version).at(HEADER_LEN)
}

/// The first word behind the message header: the id in all messages but requests and replies before GIOP 1.2.
#[inline]
pub(crate) fn word(order: ByteOrder, octets: &[u8]) -> Option<RequestId> {
    let word = octets.get(HEADER_LEN..)?.first_chunk::<4>()?;
    Some(RequestId(match order {
        ByteOrder::Big => u32::from_be_bytes(*word),
        ByteOrder::Little => u32::from_le_bytes(*word),
    }))
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

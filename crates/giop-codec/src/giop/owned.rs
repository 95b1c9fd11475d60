//! Requests and replies that own their message: what a connection hands to whoever serves or waits.

use std::ops::Range;

use bytes::Bytes;

use super::MAX_OBJECT_KEY;
use super::context::{ContextsPlace, ServiceContexts, range_in};
use super::message::enter_body;
use super::reply::{ReplyHeader, ReplyStatus};
use super::request::{RequestHeader, ResponseFlags};
use super::target::{ObjectKey, RequestId, TargetAddress, TargetError};
use super::{MessageHeader, MessageType};
use crate::cdr::Decoder;
use crate::{ByteOrder, DecodeError, DecodeErrorKind, Version};

/// A received Request: the message's octets and where in them the parts lie.
///
/// Decoded once, without an allocation (but for targets that are not keys); moving it moves no octets.
#[derive(Clone, Debug)]
pub struct RequestMessage {
    frame: Frame,
    request_id: RequestId,
    response: ResponseFlags,
    key: Key,
    operation: Range<usize>,
}

impl RequestMessage {
    /// Takes a whole message, from its message header on, that starts with `header`.
    ///
    /// # Errors
    /// As [`RequestHeader::decode`]; [`Malformed`](DecodeErrorKind::Malformed) if it is no Request.
    pub fn decode(header: &MessageHeader, message: Bytes) -> Result<Self, DecodeError> {
        if header.kind != MessageType::Request {
            return Err(DecodeError::new(DecodeErrorKind::Malformed, 0));
        }
        let mut d = Decoder::from_bytes(&message, header.order, header.version).at(MessageHeader::LEN);
        let request = RequestHeader::decode(&mut d)?;
        enter_body(&mut d);
        let (request_id, response) = (request.request_id, request.response);
        let key = match &request.target {
            TargetAddress::Key(key) => Key::Inside(range_in(&message, key)),
            other => Key::Outside(other.object_key()),
        };
        let operation = range_in(&message, request.operation.as_bytes());
        let (contexts, body_at) = (request.contexts.place(&message), d.position());
        let frame = Frame { version: header.version, order: header.order, contexts, body_at, message };
        Ok(Self { frame, request_id, response, key, operation })
    }

    /// The number the reply must carry.
    pub fn request_id(&self) -> RequestId {
        self.request_id
    }

    /// Whether and when the client wants a reply.
    pub fn response(&self) -> ResponseFlags {
        self.response
    }

    /// The version to reply in.
    pub fn version(&self) -> Version {
        self.frame.version
    }

    /// The byte order of the message.
    pub fn order(&self) -> ByteOrder {
        self.frame.order
    }

    /// The octets that name the object, whatever form of address the client chose.
    ///
    /// # Errors
    /// They are more than [`MAX_OBJECT_KEY`], or the address holds no usable IIOP profile.
    #[inline]
    pub fn object_key(&self) -> Result<&[u8], TargetError> {
        match &self.key {
            Key::Inside(range) if range.len() > MAX_OBJECT_KEY => Err(TargetError::KeyTooLong(range.len())),
            Key::Inside(range) => Ok(self.frame.message.get(range.clone()).unwrap_or_default()),
            Key::Outside(key) => key.as_ref().map(ObjectKey::as_slice).map_err(|error| *error),
        }
    }

    /// The operation's name.
    #[inline]
    pub fn operation(&self) -> &str {
        let octets = self.frame.message.get(self.operation.clone()).unwrap_or_default();
        // Checked when the header was decoded.
        std::str::from_utf8(octets).unwrap_or_default()
    }

    /// What travels beside the arguments.
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.frame.contexts()
    }

    /// A decoder at the first argument; set the connection's code sets before text is read.
    #[inline]
    pub fn body(&self) -> Decoder<'_> {
        self.frame.body()
    }

    /// Where the body starts in the message, padding skipped.
    pub fn body_at(&self) -> usize {
        self.frame.body_at
    }

    /// The whole message.
    pub fn message(&self) -> &Bytes {
        &self.frame.message
    }

    /// The whole message, by value.
    pub fn into_message(self) -> Bytes {
        self.frame.message
    }
}

/// A received Reply: the message's octets and where in them the parts lie.
#[derive(Clone, Debug)]
pub struct ReplyMessage {
    frame: Frame,
    request_id: RequestId,
    status: ReplyStatus,
}

impl ReplyMessage {
    /// Takes a whole message, from its message header on, that starts with `header`.
    ///
    /// # Errors
    /// As [`ReplyHeader::decode`]; [`Malformed`](DecodeErrorKind::Malformed) if it is no Reply.
    pub fn decode(header: &MessageHeader, message: Bytes) -> Result<Self, DecodeError> {
        if header.kind != MessageType::Reply {
            return Err(DecodeError::new(DecodeErrorKind::Malformed, 0));
        }
        let mut d = Decoder::from_bytes(&message, header.order, header.version).at(MessageHeader::LEN);
        let reply = ReplyHeader::decode(&mut d)?;
        enter_body(&mut d);
        let (request_id, status) = (reply.request_id, reply.status);
        let (contexts, body_at) = (reply.contexts.place(&message), d.position());
        let frame = Frame { version: header.version, order: header.order, contexts, body_at, message };
        Ok(Self { frame, request_id, status })
    }

    /// The request it answers.
    pub fn request_id(&self) -> RequestId {
        self.request_id
    }

    /// What the body is.
    pub fn status(&self) -> ReplyStatus {
        self.status
    }

    /// The version of the message.
    pub fn version(&self) -> Version {
        self.frame.version
    }

    /// The byte order of the message.
    pub fn order(&self) -> ByteOrder {
        self.frame.order
    }

    /// What travels beside the results.
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.frame.contexts()
    }

    /// A decoder at the first result; set the connection's code sets before text is read.
    #[inline]
    pub fn body(&self) -> Decoder<'_> {
        self.frame.body()
    }

    /// Where the body starts in the message, padding skipped.
    pub fn body_at(&self) -> usize {
        self.frame.body_at
    }

    /// The whole message.
    pub fn message(&self) -> &Bytes {
        &self.frame.message
    }

    /// The whole message, by value.
    pub fn into_message(self) -> Bytes {
        self.frame.message
    }
}

/// A message and the places in it that requests and replies have in common.
#[derive(Clone, Debug)]
struct Frame {
    message: Bytes,
    version: Version,
    order: ByteOrder,
    contexts: ContextsPlace,
    body_at: usize,
}

impl Frame {
    fn decoder(&self) -> Decoder<'_> {
        Decoder::from_bytes(&self.message, self.order, self.version)
    }

    fn contexts(&self) -> ServiceContexts<'_> {
        ServiceContexts::at_place(&self.contexts, &self.message, self.order)
    }

    fn body(&self) -> Decoder<'_> {
        self.decoder().at(self.body_at)
    }
}

/// Where the object key is.
#[derive(Clone, Debug)]
enum Key {
    /// In the message, as the target address itself.
    Inside(Range<usize>),
    /// In a profile of a reference, which has its own octets.
    Outside(Result<ObjectKey, TargetError>),
}

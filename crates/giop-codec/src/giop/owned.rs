//! Received requests and replies that own their message. A connection passes requests to the dispatcher, and
//! replies to the callers that await them.

use std::ops::Range;

use bytes::Bytes;

use super::MAX_OBJECT_KEY_BYTES;
use super::context::{ContextsRange, ServiceContexts, range_in};
use super::message::enter_body;
use super::reply::{ReplyHeader, ReplyStatus};
use super::request::{RequestHeader, ResponseFlags};
use super::target::{RequestId, TargetAddress, TargetError};
use super::{MessageHeader, MessageType};
use crate::cdr::Decoder;
use crate::ior::ObjectKey;
use crate::{ByteOrder, DecodeError, DecodeErrorKind, Version};

/// A received Request: the message, and the positions of its parts.
///
/// The header is decoded once. This allocates memory only if the target is not an object key.
#[derive(Clone, Debug)]
pub struct RequestMessage {
    frame: MessageFrame,
    request_id: RequestId,
    response: ResponseFlags,
    key: RequestKey,
    operation: Range<usize>,
}

impl RequestMessage {
    /// Decodes the header after the message header. `message` is the whole message, and `header` its decoded
    /// message header.
    ///
    /// # Errors
    /// Those of [`RequestHeader::decode`]. [`Malformed`](DecodeErrorKind::Malformed) if it is not a Request.
    pub fn decode(header: &MessageHeader, message: Bytes) -> Result<Self, DecodeError> {
        if header.kind != MessageType::Request {
            return Err(DecodeError::new(DecodeErrorKind::Malformed, 0));
        }
        let mut d = Decoder::from_bytes(&message, header.order, header.version).at(MessageHeader::LEN);
        let request = RequestHeader::decode(&mut d)?;
        enter_body(&mut d);
        let (request_id, response) = (request.request_id, request.response);
        let key = match &request.target {
            TargetAddress::Key(key) => RequestKey::InMessage(range_in(&message, key)),
            other => RequestKey::InProfile(other.object_key()),
        };
        let operation = range_in(&message, request.operation.as_bytes());
        let (contexts, body_at) = (request.contexts.range_in(&message), d.position());
        let frame = MessageFrame { version: header.version, order: header.order, contexts, body_at, message };
        Ok(Self { frame, request_id, response, key, operation })
    }

    /// Returns the id that the reply must have.
    pub fn request_id(&self) -> RequestId {
        self.request_id
    }

    /// Returns whether and when the client expects a reply.
    pub fn response(&self) -> ResponseFlags {
        self.response
    }

    /// Returns the version of the message, which the reply must have too.
    pub fn version(&self) -> Version {
        self.frame.version
    }

    /// Returns the byte order of the message.
    pub fn order(&self) -> ByteOrder {
        self.frame.order
    }

    /// Returns the object key, whatever the form of the target address.
    ///
    /// # Errors
    /// The key is longer than [`MAX_OBJECT_KEY_BYTES`], or the address contains no usable IIOP profile.
    #[inline]
    pub fn object_key(&self) -> Result<&[u8], TargetError> {
        match &self.key {
            RequestKey::InMessage(range) if range.len() > MAX_OBJECT_KEY_BYTES => {
                Err(TargetError::KeyTooLong(range.len()))
            }
            RequestKey::InMessage(range) => Ok(self.frame.message.get(range.clone()).unwrap_or_default()),
            RequestKey::InProfile(key) => key.as_ref().map(ObjectKey::as_slice).map_err(|error| *error),
        }
    }

    /// Returns the operation's name.
    #[inline]
    pub fn operation(&self) -> &str {
        let bytes = self.frame.message.get(self.operation.clone()).unwrap_or_default();
        // This cannot fail, because the name was checked when the header was decoded.
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Returns the service contexts of the request.
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.frame.contexts()
    }

    /// Returns a decoder at the first argument. Set the connection's code sets before reading text.
    #[inline]
    pub fn body(&self) -> Decoder<'_> {
        self.frame.body()
    }

    /// Returns the offset of the body in the message, after the padding.
    pub fn body_at(&self) -> usize {
        self.frame.body_at
    }

    /// Returns the whole message.
    pub fn message(&self) -> &Bytes {
        &self.frame.message
    }

    /// Returns the whole message by value.
    pub fn into_message(self) -> Bytes {
        self.frame.message
    }
}

/// A received Reply: the message, and the positions of its parts.
#[derive(Clone, Debug)]
pub struct ReplyMessage {
    frame: MessageFrame,
    request_id: RequestId,
    status: ReplyStatus,
}

impl ReplyMessage {
    /// Decodes the header after the message header. `message` is the whole message, and `header` its decoded
    /// message header.
    ///
    /// # Errors
    /// Those of [`ReplyHeader::decode`]. [`Malformed`](DecodeErrorKind::Malformed) if it is not a Reply.
    pub fn decode(header: &MessageHeader, message: Bytes) -> Result<Self, DecodeError> {
        if header.kind != MessageType::Reply {
            return Err(DecodeError::new(DecodeErrorKind::Malformed, 0));
        }
        let mut d = Decoder::from_bytes(&message, header.order, header.version).at(MessageHeader::LEN);
        let reply = ReplyHeader::decode(&mut d)?;
        enter_body(&mut d);
        let (request_id, status) = (reply.request_id, reply.status);
        let (contexts, body_at) = (reply.contexts.range_in(&message), d.position());
        let frame = MessageFrame { version: header.version, order: header.order, contexts, body_at, message };
        Ok(Self { frame, request_id, status })
    }

    /// Returns the id of the request.
    pub fn request_id(&self) -> RequestId {
        self.request_id
    }

    /// Returns the status, which determines the content of the body.
    pub fn status(&self) -> ReplyStatus {
        self.status
    }

    /// Returns the version of the message.
    pub fn version(&self) -> Version {
        self.frame.version
    }

    /// Returns the byte order of the message.
    pub fn order(&self) -> ByteOrder {
        self.frame.order
    }

    /// Returns the service contexts of the reply.
    pub fn contexts(&self) -> ServiceContexts<'_> {
        self.frame.contexts()
    }

    /// Returns a decoder at the body. Set the connection's code sets before reading text.
    #[inline]
    pub fn body(&self) -> Decoder<'_> {
        self.frame.body()
    }

    /// Returns the offset of the body in the message, after the padding.
    pub fn body_at(&self) -> usize {
        self.frame.body_at
    }

    /// Returns the whole message.
    pub fn message(&self) -> &Bytes {
        &self.frame.message
    }

    /// Returns the whole message by value.
    pub fn into_message(self) -> Bytes {
        self.frame.message
    }
}

/// The parts that requests and replies have in common.
#[derive(Clone, Debug)]
struct MessageFrame {
    message: Bytes,
    version: Version,
    order: ByteOrder,
    contexts: ContextsRange,
    body_at: usize,
}

impl MessageFrame {
    fn contexts(&self) -> ServiceContexts<'_> {
        ServiceContexts::at_range(&self.contexts, &self.message, self.order)
    }

    fn body(&self) -> Decoder<'_> {
        Decoder::from_bytes(&self.message, self.order, self.version).at(self.body_at)
    }
}

#[derive(Clone, Debug)]
enum RequestKey {
    /// The position of the key in the message.
    InMessage(Range<usize>),
    /// The key from a profile, which owns its data.
    InProfile(Result<ObjectKey, TargetError>),
}

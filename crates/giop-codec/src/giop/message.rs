//! The common parts of all messages: the size in the header, the alignment of the body, and the type.

use super::context::ServiceContexts;
use super::locate::{LocateReplyHeader, LocateRequestHeader};
use super::reply::ReplyHeader;
use super::request::RequestHeader;
use super::target::RequestId;
use super::{MessageHeader, MessageType};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, EncodeError, EncodeErrorKind, Version};

/// Writes a message header with size 0 and returns the index of the size in [`Encoder::head`].
///
/// The encoder must be at the start of a message: new, reset, or after [`Encoder::begin_message`].
#[inline]
pub fn put_message_header(e: &mut Encoder, kind: MessageType) -> usize {
    debug_assert_eq!(e.position(), 0, "a message header must be at the start of its message");
    e.put_raw(&MessageHeader::new(e.version(), e.order(), kind).encode());
    e.head().len() - MessageHeader::LEN + MessageHeader::SIZE_AT
}

/// Sets the size of the current message in its header, and returns it. The size is the number of bytes after
/// the message header. `message_size_at` is the result of [`put_message_header`].
///
/// # Errors
/// The message is longer than its size field can express.
#[inline]
pub fn finish_message(e: &mut Encoder, message_size_at: usize) -> Result<u32, EncodeError> {
    let size = e.position().saturating_sub(MessageHeader::LEN);
    let size = u32::try_from(size).map_err(|_| EncodeErrorKind::TooLong)?;
    e.patch_u32(message_size_at, size);
    Ok(size)
}

/// Sets the size like [`finish_message`], but `remaining_bytes` of the message are not encoded yet.
///
/// # Errors
/// The message is longer than its size field can express.
pub fn announce_message_size(
    e: &mut Encoder,
    message_size_at: usize,
    remaining_bytes: u64,
) -> Result<u32, EncodeError> {
    let size = (e.position().saturating_sub(MessageHeader::LEN) as u64).saturating_add(remaining_bytes);
    let size = u32::try_from(size).map_err(|_| EncodeErrorKind::TooLong)?;
    e.patch_u32(message_size_at, size);
    Ok(size)
}

/// Aligns to 8 for the body of a Request or Reply in GIOP 1.2. Does nothing in earlier versions.
///
/// Call it only if a body follows. A request or reply without a body must end without padding.
#[inline]
pub fn begin_body(e: &mut Encoder) {
    if e.version() >= Version::V1_2 {
        e.align(8);
    }
}

/// Skips to the body of a Request or Reply, if there is one.
///
/// If the data ends inside the padding, moves to the end of the data. Decoding a value then fails.
#[inline]
pub fn enter_body(d: &mut Decoder<'_>) {
    if d.version() >= Version::V1_2 && d.remaining() > 0 && d.align(8).is_err() {
        let end = d.position() + d.remaining();
        *d = d.clone().at(end);
    }
}

/// A CancelRequest: the client no longer awaits the reply.
///
/// Source clause: "GIOP Message Formats / CancelRequest Message".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    /// The id of the Request or LocateRequest to cancel.
    pub request_id: RequestId,
}

/// The start of a Fragment, after the message header.
///
/// Source clause: "GIOP Message Formats / Fragment Message".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    /// The id of the message that the fragment continues. `None` in GIOP 1.1, where a fragment continues the
    /// preceding message of the connection.
    pub request_id: Option<RequestId>,
}

/// Any GIOP message. Its header is decoded, but its body is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A call.
    Request(RequestHeader<'a>),
    /// The reply to a Request.
    Reply(ReplyHeader<'a>),
    /// The client no longer awaits a reply.
    CancelRequest(CancelRequest),
    /// The client asks where an object is.
    LocateRequest(LocateRequestHeader<'a>),
    /// The reply to a LocateRequest.
    LocateReply(LocateReplyHeader),
    /// The sender closes the connection in an orderly way.
    CloseConnection,
    /// The sender cannot parse a message that it received.
    MessageError,
    /// A further fragment of a message.
    Fragment(FragmentHeader),
}

impl<'a> Message<'a> {
    /// Returns the type of the message.
    pub const fn kind(&self) -> MessageType {
        match self {
            Self::Request(_) => MessageType::Request,
            Self::Reply(_) => MessageType::Reply,
            Self::CancelRequest(_) => MessageType::CancelRequest,
            Self::LocateRequest(_) => MessageType::LocateRequest,
            Self::LocateReply(_) => MessageType::LocateReply,
            Self::CloseConnection => MessageType::CloseConnection,
            Self::MessageError => MessageType::MessageError,
            Self::Fragment(_) => MessageType::Fragment,
        }
    }

    /// Reads the part of a message of this type that is between the message header and the body.
    ///
    /// # Errors
    /// `MARSHAL`, for the reasons that the `decode` method of the header type lists.
    pub fn decode(kind: MessageType, d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(match kind {
            MessageType::Request => {
                let header = RequestHeader::decode(d)?;
                enter_body(d);
                Self::Request(header)
            }
            MessageType::Reply => {
                let header = ReplyHeader::decode(d)?;
                enter_body(d);
                Self::Reply(header)
            }
            MessageType::CancelRequest => {
                Self::CancelRequest(CancelRequest { request_id: RequestId(d.read_u32()?) })
            }
            MessageType::LocateRequest => Self::LocateRequest(LocateRequestHeader::decode(d)?),
            MessageType::LocateReply => Self::LocateReply(LocateReplyHeader::decode(d)?),
            MessageType::CloseConnection => Self::CloseConnection,
            MessageType::MessageError => Self::MessageError,
            MessageType::Fragment => {
                let request_id = (d.version() >= Version::V1_2).then(|| d.read_u32().map(RequestId));
                Self::Fragment(FragmentHeader { request_id: request_id.transpose()? })
            }
        })
    }

    /// Writes the message header and the header of this type. Returns the index of the size, for
    /// [`finish_message`] after the body.
    ///
    /// # Errors
    /// The errors that the `encode` method of the header type lists.
    pub fn encode(&self, e: &mut Encoder) -> Result<usize, EncodeError> {
        let size_at = put_message_header(e, self.kind());
        match self {
            Self::Request(header) => header.encode(e).map(|_| ())?,
            Self::Reply(header) => header.encode(e).map(|_| ())?,
            Self::CancelRequest(cancel) => e.put_u32(cancel.request_id.0),
            Self::LocateRequest(header) => header.encode(e)?,
            Self::LocateReply(header) => header.encode(e)?,
            Self::CloseConnection | Self::MessageError => {}
            Self::Fragment(fragment) => {
                if let Some(id) = fragment.request_id.filter(|_| e.version() >= Version::V1_2) {
                    e.put_u32(id.0);
                }
            }
        }
        Ok(size_at)
    }

    /// Returns the id of the request to which the message belongs, if it contains one.
    pub fn request_id(&self) -> Option<RequestId> {
        match self {
            Self::Request(header) => Some(header.request_id),
            Self::Reply(header) => Some(header.request_id),
            Self::CancelRequest(cancel) => Some(cancel.request_id),
            Self::LocateRequest(header) => Some(header.request_id),
            Self::LocateReply(header) => Some(header.request_id),
            Self::CloseConnection | Self::MessageError => None,
            Self::Fragment(fragment) => fragment.request_id,
        }
    }

    /// Returns the service contexts, which only requests and replies have.
    pub fn contexts(&self) -> ServiceContexts<'a> {
        match self {
            Self::Request(header) => header.contexts,
            Self::Reply(header) => header.contexts,
            _ => ServiceContexts::EMPTY,
        }
    }
}

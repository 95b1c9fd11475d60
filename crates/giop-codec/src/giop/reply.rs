//! The header of a Reply in its three versions, and replies that contain a system exception.

use super::MessageHeader;
use super::MessageType;
use super::context::ServiceContexts;
use super::message::{begin_body, finish_message, put_message_header};
use super::target::RequestId;
use crate::cdr::{CdrEncode, Decoder, Encoder};
use crate::exception::SystemException;
use crate::{DecodeError, DecodeErrorKind, EncodeError, Version};

/// The outcome of a request, with its number on the wire. It determines the content of the reply's body.
///
/// Source clause: "GIOP Message Formats / Reply Header" (`GIOP::ReplyStatusType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ReplyStatus {
    /// The body has the return value, followed by the inout and out parameters.
    NoException = 0,
    /// The body has the repository id and members of an exception in the operation's `raises` clause.
    UserException = 1,
    /// The body has a [`SystemException`].
    SystemException = 2,
    /// The body has an [`Ior`](crate::ior::Ior) to which the request must be sent.
    LocationForward = 3,
    /// The body has an [`Ior`](crate::ior::Ior) that replaces the reference permanently (GIOP 1.2).
    LocationForwardPerm = 4,
    /// The body has the required [`AddressingDisposition`](super::AddressingDisposition) (GIOP 1.2).
    NeedsAddressingMode = 5,
}

impl ReplyStatus {
    /// Returns the status with this number. Numbers 4 and 5 exist only in GIOP 1.2.
    pub const fn from_wire(value: u32, version: Version) -> Option<Self> {
        Some(match (value, version) {
            (0, _) => Self::NoException,
            (1, _) => Self::UserException,
            (2, _) => Self::SystemException,
            (3, _) => Self::LocationForward,
            (4, Version::V1_2) => Self::LocationForwardPerm,
            (5, Version::V1_2) => Self::NeedsAddressingMode,
            _ => return None,
        })
    }
}

/// The header of a Reply.
///
/// Source clause: "GIOP Message Formats / Reply Header".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyHeader<'a> {
    /// The id of the request.
    pub request_id: RequestId,
    /// The status, which determines the content of the body.
    pub status: ReplyStatus,
    /// The service contexts of the reply.
    pub contexts: ServiceContexts<'a>,
}

/// The positions of those parts of a reply that may be set after encoding. They are indices into
/// [`Encoder::head`], for [`Encoder::patch_u32`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeaderLayout {
    /// Index of the message size, for [`finish_message`].
    pub message_size_at: usize,
    /// Index of the request id.
    pub request_id_at: usize,
    /// Index of the status.
    pub status_at: usize,
    /// Index of the end of the header.
    pub end: usize,
}

impl<'a> ReplyHeader<'a> {
    /// Creates a header without contexts.
    pub const fn new(request_id: RequestId, status: ReplyStatus) -> Self {
        Self { request_id, status, contexts: ServiceContexts::EMPTY }
    }

    /// Writes the header after a message header (see [`put_message_header`]), in the encoder's version.
    ///
    /// # Errors
    /// A context is 4 GiB or longer.
    #[inline]
    pub fn encode(&self, e: &mut Encoder) -> Result<ReplyHeaderLayout, EncodeError> {
        if e.version() < Version::V1_2 {
            self.contexts.encode(e)?;
        }
        e.put_u32(self.request_id.0);
        let request_id_at = e.head().len() - 4;
        // Headers have no shared chunks, so indices into the head and offsets differ by a constant.
        let message_size_at = (request_id_at + 4).saturating_sub(e.position()) + MessageHeader::SIZE_AT;
        e.put_u32(self.status as u32);
        if e.version() >= Version::V1_2 {
            self.contexts.encode(e)?;
        }
        Ok(ReplyHeaderLayout {
            message_size_at,
            request_id_at,
            status_at: request_id_at + 4,
            end: e.head().len(),
        })
    }

    /// Reads the header in the decoder's version, starting after the message header.
    ///
    /// # Errors
    /// `MARSHAL`: the data ends early, the version has no such status, or there are more than 64 contexts.
    #[inline]
    pub fn decode(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        match d.version() {
            Version::V1_0 | Version::V1_1 => {
                let contexts = ServiceContexts::decode(d)?;
                let (request_id, status) = read_id_and_status(d)?;
                Ok(Self { request_id, status, contexts })
            }
            Version::V1_2 => {
                let (request_id, status) = read_id_and_status(d)?;
                let contexts = ServiceContexts::decode(d)?;
                Ok(Self { request_id, status, contexts })
            }
        }
    }
}

#[inline]
fn read_id_and_status(d: &mut Decoder<'_>) -> Result<(RequestId, ReplyStatus), DecodeError> {
    let request_id = RequestId(d.read_u32()?);
    match ReplyStatus::from_wire(d.read_u32()?, d.version()) {
        Some(status) => Ok((request_id, status)),
        None => Err(DecodeError::new(DecodeErrorKind::InvalidEnum, d.position() - 4)),
    }
}

/// Writes a whole reply with a system exception. The encoder must be at the start of a message.
///
/// # Errors
/// A context is 4 GiB or longer.
#[cold]
pub fn put_exception_reply(
    e: &mut Encoder,
    request_id: RequestId,
    exception: &SystemException,
    contexts: &ServiceContexts<'_>,
) -> Result<(), EncodeError> {
    let size_at = put_message_header(e, MessageType::Reply);
    ReplyHeader { request_id, status: ReplyStatus::SystemException, contexts: *contexts }.encode(e)?;
    begin_body(e);
    exception.encode(e)?;
    finish_message(e, size_at)?;
    Ok(())
}

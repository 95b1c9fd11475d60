//! LocateRequest and LocateReply: asking where an object is.

use super::target::{RequestId, TargetAddress};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind, EncodeError, Version};

/// The header, and all, of a LocateRequest.
///
/// Source clause: "GIOP Message Formats / LocateRequest Message".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocateRequestHeader<'a> {
    /// Its number, from the same space as the requests'.
    pub request_id: RequestId,
    /// The object.
    pub target: TargetAddress<'a>,
}

impl<'a> LocateRequestHeader<'a> {
    /// Writes it behind a message header, in the encoder's version.
    ///
    /// # Errors
    /// As [`RequestHeader::encode`](super::RequestHeader::encode) of the target.
    pub fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.request_id.0);
        self.target.encode(e)
    }

    /// Reads it in the decoder's version; the decoder stands behind the message header.
    ///
    /// # Errors
    /// `MARSHAL`: octets that end early, a target of an unknown form.
    pub fn decode(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let request_id = RequestId(d.read_u32()?);
        Ok(Self { request_id, target: TargetAddress::decode(d)? })
    }
}

/// What the server knows about an object; the number is the one on the wire.
///
/// Source clause: "GIOP Message Formats / LocateReply Message" (`GIOP::LocateStatusType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum LocateStatus {
    /// There is no such object.
    UnknownObject = 0,
    /// Requests for it may be sent here.
    ObjectHere = 1,
    /// An [`Ior`](crate::ior::Ior) to send requests to follows.
    ObjectForward = 2,
    /// The same, for good (GIOP 1.2).
    ObjectForwardPerm = 3,
    /// A [`SystemException`](crate::exception::SystemException) follows (GIOP 1.2).
    SystemException = 4,
    /// The [`AddressingDisposition`](super::AddressingDisposition) the server wants follows (GIOP 1.2).
    NeedsAddressingMode = 5,
}

impl LocateStatus {
    /// The status of that number; 3 to 5 exist in GIOP 1.2 only.
    pub const fn from_wire(value: u32, version: Version) -> Option<Self> {
        Some(match (value, version) {
            (0, _) => Self::UnknownObject,
            (1, _) => Self::ObjectHere,
            (2, _) => Self::ObjectForward,
            (3, Version::V1_2) => Self::ObjectForwardPerm,
            (4, Version::V1_2) => Self::SystemException,
            (5, Version::V1_2) => Self::NeedsAddressingMode,
            _ => return None,
        })
    }

    /// That the object is elsewhere: for good only where the version can say so.
    #[must_use]
    pub const fn forward(permanent: bool, version: Version) -> Self {
        match (permanent, version) {
            (true, Version::V1_2) => Self::ObjectForwardPerm,
            _ => Self::ObjectForward,
        }
    }
}

/// The header of a LocateReply.
///
/// The body follows at once, without alignment, in every version: an urgent issue against the specification settled so, and all
/// ORBs do.
/// Source clause: "GIOP Message Formats / LocateReply Message".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocateReplyHeader {
    /// The locate request it answers.
    pub request_id: RequestId,
    /// What the server knows.
    pub status: LocateStatus,
}

impl LocateReplyHeader {
    /// Writes it behind a message header.
    ///
    /// # Errors
    /// None today.
    pub fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.request_id.0);
        e.put_u32(self.status as u32);
        Ok(())
    }

    /// Reads it; the decoder stands behind the message header and afterwards at the body.
    ///
    /// # Errors
    /// `MARSHAL`: octets that end early, a status that the version does not have.
    pub fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let request_id = RequestId(d.read_u32()?);
        match LocateStatus::from_wire(d.read_u32()?, d.version()) {
            Some(status) => Ok(Self { request_id, status }),
            None => Err(DecodeError::new(DecodeErrorKind::InvalidEnum, d.position() - 4)),
        }
    }
}

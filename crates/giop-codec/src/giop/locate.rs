//! The messages LocateRequest and LocateReply, by which a client asks for the location of an object.

use super::target::{RequestId, TargetAddress};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind, EncodeError, Version};

/// The header of a LocateRequest, which has no other content.
///
/// Source clause: "GIOP Message Formats / LocateRequest Message".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocateRequestHeader<'a> {
    /// The number of the request, which is unique among the connection's outstanding requests of both kinds.
    pub request_id: RequestId,
    /// The object that is to be located.
    pub target: TargetAddress<'a>,
}

impl<'a> LocateRequestHeader<'a> {
    /// Writes the header after a message header, in the encoder's version.
    ///
    /// # Errors
    /// The errors of the target in [`RequestHeader::encode`](super::RequestHeader::encode).
    pub fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.request_id.0);
        self.target.encode(e)
    }

    /// Reads the header in the decoder's version, starting after the message header.
    ///
    /// # Errors
    /// `MARSHAL`: the data ends early, or the form of the target is unknown.
    pub fn decode(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let request_id = RequestId(d.read_u32()?);
        Ok(Self { request_id, target: TargetAddress::decode(d)? })
    }
}

/// The location of an object, with its number on the wire.
///
/// Source clause: "GIOP Message Formats / LocateReply Message" (`GIOP::LocateStatusType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum LocateStatus {
    /// The object does not exist.
    UnknownObject = 0,
    /// The server accepts requests for the object.
    ObjectHere = 1,
    /// An [`Ior`](crate::ior::Ior) follows, to which requests must be sent.
    ObjectForward = 2,
    /// An [`Ior`](crate::ior::Ior) follows, which replaces the reference permanently (GIOP 1.2).
    ObjectForwardPerm = 3,
    /// A [`SystemException`](crate::exception::SystemException) follows (GIOP 1.2).
    SystemException = 4,
    /// The required [`AddressingDisposition`](super::AddressingDisposition) follows (GIOP 1.2).
    NeedsAddressingMode = 5,
}

impl LocateStatus {
    /// Returns the status with this number. Numbers 3 to 5 exist only in GIOP 1.2.
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

    /// Returns the status of a forward. Before GIOP 1.2, there is no status for a permanent forward.
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
/// The body follows without alignment in every version, as a later decision of the OMG requires. Source
/// clause: "GIOP Message Formats / LocateReply Message".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocateReplyHeader {
    /// The id of the LocateRequest.
    pub request_id: RequestId,
    /// The location of the object.
    pub status: LocateStatus,
}

impl LocateReplyHeader {
    /// Writes the header after a message header.
    ///
    /// # Errors
    /// It never fails at present.
    pub fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.request_id.0);
        e.put_u32(self.status as u32);
        Ok(())
    }

    /// Reads the header, starting after the message header, and leaves the decoder at the body.
    ///
    /// # Errors
    /// `MARSHAL`: the data ends early, or the status does not exist in the version.
    pub fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let request_id = RequestId(d.read_u32()?);
        match LocateStatus::from_wire(d.read_u32()?, d.version()) {
            Some(status) => Ok(Self { request_id, status }),
            None => Err(DecodeError::new(DecodeErrorKind::InvalidEnum, d.position() - 4)),
        }
    }
}

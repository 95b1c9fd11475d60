//! The target of a request: an object key, or another of the three forms of a target address.

use std::fmt;

use super::MAX_OBJECT_KEY_BYTES;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::exception::{SystemException, minor};
use crate::ior::{IiopProfile, Ior, ObjectKey, TaggedProfile, put_octets};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Version};

/// The number of a request, which is unique among the outstanding requests of a connection.
///
/// Source clause: "GIOP Message Formats / Request Header".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u32);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The form of a target address, with its number on the wire.
///
/// Source clause: "GIOP Message Formats / Request Header" (`GIOP::AddressingDisposition`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum AddressingDisposition {
    /// An object key.
    Key = 0,
    /// A profile.
    Profile = 1,
    /// A whole reference and the index of the selected profile.
    Reference = 2,
}

impl CdrEncode for AddressingDisposition {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_i16(*self as i16);
        Ok(())
    }
}

impl CdrDecode for AddressingDisposition {
    const MIN_SIZE: usize = 2;

    #[inline]
    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match d.read_i16()? {
            0 => Ok(Self::Key),
            1 => Ok(Self::Profile),
            2 => Ok(Self::Reference),
            _ => Err(DecodeError::new(DecodeErrorKind::InvalidDiscriminator, d.position() - 2)),
        }
    }
}

/// The target of a Request or LocateRequest.
///
/// Clients send keys. They send the other forms only to servers that request them by `NEEDS_ADDRESSING_MODE`.
/// In GIOP 1.0 and 1.1, which have only keys, the key of the selected IIOP profile is sent in place of the
/// other forms.
/// Source clause: "GIOP Message Formats / Request Header" (`GIOP::TargetAddress`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetAddress<'a> {
    /// The object key. In a received header, it is a view of the message.
    Key(&'a [u8]),
    /// One profile.
    Profile(TaggedProfile),
    /// A whole reference and the index of the selected profile.
    Reference(Box<TargetReference>),
}

/// A whole reference as the target of a request.
///
/// Source clause: "GIOP Message Formats / Request Header" (`GIOP::IORAddressingInfo`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetReference {
    /// The index of the selected profile in `ior`.
    pub selected_profile: u32,
    /// The reference.
    pub ior: Ior,
}

impl TargetAddress<'_> {
    /// Returns the form of the address.
    pub const fn disposition(&self) -> AddressingDisposition {
        match self {
            Self::Key(_) => AddressingDisposition::Key,
            Self::Profile(_) => AddressingDisposition::Profile,
            Self::Reference(_) => AddressingDisposition::Reference,
        }
    }

    /// Returns the object key as a copy of the key, or as a view of the profile that contains it.
    ///
    /// # Errors
    /// The key is longer than [`MAX_OBJECT_KEY_BYTES`], or the address contains no usable IIOP profile.
    pub fn object_key(&self) -> Result<ObjectKey, TargetError> {
        let key = match self {
            Self::Key(key) if key.len() <= MAX_OBJECT_KEY_BYTES => ObjectKey::from(*key),
            Self::Key(key) => return Err(TargetError::KeyTooLong(key.len())),
            Self::Profile(profile) => iiop_key(profile)?,
            Self::Reference(target) => {
                let selected = usize::try_from(target.selected_profile).ok();
                let profile =
                    selected.and_then(|i| target.ior.profiles.get(i)).ok_or(TargetError::NoUsableProfile)?;
                iiop_key(profile)?
            }
        };
        let len = key.as_slice().len();
        if len > MAX_OBJECT_KEY_BYTES { Err(TargetError::KeyTooLong(len)) } else { Ok(key) }
    }

    /// Writes the form and the address (GIOP 1.2), or only the key (1.0 and 1.1).
    pub(super) fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        if e.version() < Version::V1_2 {
            let Self::Key(key) = self else {
                let key = self.object_key().map_err(|_| EncodeErrorKind::Unrepresentable)?;
                return put_octets(e, key.as_slice());
            };
            return put_octets(e, key);
        }
        self.disposition().encode(e)?;
        match self {
            Self::Key(key) => put_octets(e, key),
            Self::Profile(profile) => profile.encode(e),
            Self::Reference(target) => {
                e.put_u32(target.selected_profile);
                target.ior.encode(e)
            }
        }
    }
}

impl<'a> TargetAddress<'a> {
    /// Reads the form and the address (GIOP 1.2), or only the key (1.0 and 1.1).
    #[inline]
    pub(super) fn decode(d: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        if d.version() < Version::V1_2 {
            return Ok(Self::Key(read_key(d)?));
        }
        match AddressingDisposition::decode(d)? {
            AddressingDisposition::Key => Ok(Self::Key(read_key(d)?)),
            AddressingDisposition::Profile => TaggedProfile::decode(d).map(Self::Profile),
            AddressingDisposition::Reference => {
                let selected_profile = d.read_u32()?;
                Ok(Self::Reference(Box::new(TargetReference { selected_profile, ior: Ior::decode(d)? })))
            }
        }
    }
}

#[inline]
fn read_key<'a>(d: &mut Decoder<'a>) -> Result<&'a [u8], DecodeError> {
    let len = d.read_len(1)?;
    d.take(len)
}

#[cold]
fn iiop_key(profile: &TaggedProfile) -> Result<ObjectKey, TargetError> {
    IiopProfile::from_tagged(profile).map(|p| p.object_key).map_err(|_| TargetError::NoUsableProfile)
}

/// The reason why a well-formed target address identifies no object.
///
/// It is converted to `OBJECT_NOT_EXIST` with OMG minor 1 and `COMPLETED_NO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The key exceeds [`MAX_OBJECT_KEY_BYTES`]. The number is its length in bytes.
    #[error("the object key has {0} bytes, but the limit is {MAX_OBJECT_KEY_BYTES}")]
    KeyTooLong(usize),
    /// The selected profile is missing, or is not a usable IIOP profile.
    #[error("the target address contains no usable IIOP profile")]
    NoUsableProfile,
}

impl From<TargetError> for SystemException {
    #[cold]
    fn from(error: TargetError) -> Self {
        Self::object_not_exist().with_minor(minor::OBJECT_NOT_EXIST_NO_OBJECT).with_source(error)
    }
}

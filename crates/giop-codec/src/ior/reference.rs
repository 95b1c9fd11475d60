//! The reference itself: a type id and tagged profiles.

use std::fmt;

use bytes::Bytes;

use super::encapsulation::{put_octets, read_list, read_octets_owned};
use super::{IiopProfile, MAX_PROFILES, MAX_REPOSITORY_ID_BYTES, UiopProfile};
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind, EncodeError};

/// The kind of a profile.
///
/// Source clause: "Object References / Standard IOR Profiles".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileTag(pub u32);

impl ProfileTag {
    /// `TAG_INTERNET_IOP`: an IIOP address, see [`IiopProfile`].
    pub const INTERNET_IOP: Self = Self(0);
    /// `TAG_MULTIPLE_COMPONENTS`: components without an address.
    pub const MULTIPLE_COMPONENTS: Self = Self(1);
    /// `TAG_SCCP_IOP`: telecommunication networks.
    pub const SCCP_IOP: Self = Self(2);
    /// `TAG_UIPMC`: multicast.
    pub const UIPMC: Self = Self(3);
    /// TAO's Unix sockets, see [`UiopProfile`].
    pub const TAO_UIOP: Self = Self(0x5441_4f00);
    /// TAO's shared memory.
    pub const TAO_SHMIOP: Self = Self(0x5441_4f02);
    /// TAO's datagrams.
    pub const TAO_DIOP: Self = Self(0x5441_4f04);
    /// TAO's SCTP.
    pub const TAO_SCIOP: Self = Self(0x5441_4f0e);
}

/// A profile as it is on the wire: its tag and its data, which zorb never changes.
///
/// Source clause: "Object References / IOR" (`IOP::TaggedProfile`).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TaggedProfile {
    /// The kind of the profile.
    pub tag: ProfileTag,
    /// The profile data, which is an encapsulation for almost every kind.
    pub data: Bytes,
}

impl fmt::Debug for TaggedProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaggedProfile(tag {:#x}, {} bytes)", self.tag.0, self.data.len())
    }
}

impl CdrEncode for TaggedProfile {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.tag.0);
        put_octets(e, &self.data)
    }
}

/// Copies the profile's data.
impl CdrDecode for TaggedProfile {
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let tag = ProfileTag(d.read_u32()?);
        Ok(Self { tag, data: read_octets_owned(d)? })
    }
}

/// An interoperable object reference: a type id and profiles, which contain the addresses of the object.
///
/// Profiles that zorb does not understand keep their data and their place, so that a reference is forwarded
/// as it was received. A reference without profiles is the nil reference.
///
/// `Display` and `FromStr` use the text form `IOR:0100...`. `CdrDecode` copies the data of the profiles.
/// Source clause: "Object References / IOR".
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Ior {
    /// The repository id of the most derived interface that the sender knows, or empty. It is only a hint.
    pub type_id: String,
    /// The profiles, in the order in which a client should try them.
    pub profiles: Vec<TaggedProfile>,
}

impl Ior {
    /// Returns the nil reference.
    #[doc(alias = "_nil")]
    pub const fn nil() -> Self {
        Self { type_id: String::new(), profiles: Vec::new() }
    }

    /// Returns whether this is the nil reference, which has no profiles. The type id does not matter.
    pub fn is_nil(&self) -> bool {
        self.profiles.is_empty()
    }

    /// Creates a reference with these IIOP profiles.
    ///
    /// # Errors
    /// A host name that has no encoding because it contains a NUL.
    pub fn from_profiles(type_id: impl Into<String>, profiles: &[IiopProfile]) -> Result<Self, EncodeError> {
        let profiles = profiles.iter().map(IiopProfile::to_tagged).collect::<Result<_, _>>()?;
        Ok(Self { type_id: type_id.into(), profiles })
    }

    /// Returns the IIOP profiles in order. Skips profiles that [`IiopProfile::from_tagged`] cannot read.
    pub fn iiop_profiles(&self) -> impl Iterator<Item = IiopProfile> + '_ {
        self.profiles.iter().filter_map(|profile| IiopProfile::from_tagged(profile).ok())
    }

    /// Returns TAO's profiles for Unix sockets. Skips profiles that [`UiopProfile::from_tagged`] cannot read.
    pub fn uiop_profiles(&self) -> impl Iterator<Item = UiopProfile> + '_ {
        self.profiles.iter().filter_map(|profile| UiopProfile::from_tagged(profile).ok())
    }

    /// Returns the first of [`iiop_profiles`](Self::iiop_profiles).
    pub fn iiop_profile(&self) -> Option<IiopProfile> {
        self.iiop_profiles().next()
    }
}

impl CdrEncode for Ior {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_unconverted_str(&self.type_id)?;
        e.put_len(self.profiles.len())?;
        self.profiles.iter().try_for_each(|profile| profile.encode(e))
    }
}

impl Ior {
    /// Skips a reference, with the same checks as [`decode`](CdrDecode::decode).
    pub(crate) fn skip(d: &mut Decoder<'_>) -> Result<(), DecodeError> {
        read_type_id(d)?;
        let at = d.position();
        let count = d.read_len(TaggedProfile::MIN_SIZE)?;
        if count > MAX_PROFILES {
            return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
        }
        for _ in 0..count {
            d.read_u32()?;
            let len = d.read_len(1)?;
            d.take(len)?;
        }
        Ok(())
    }
}

impl CdrDecode for Ior {
    /// The length of the type id and the number of profiles, 4 bytes each. Some peers send an empty type id
    /// without its NUL.
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let type_id = String::from(read_type_id(d)?);
        let profiles = read_list(d, TaggedProfile::MIN_SIZE, MAX_PROFILES, TaggedProfile::decode)?;
        Ok(Self { type_id, profiles })
    }
}

fn read_type_id<'a>(d: &mut Decoder<'a>) -> Result<&'a str, DecodeError> {
    let at = d.position();
    let type_id = d.read_unconverted_str()?;
    if type_id.len() > MAX_REPOSITORY_ID_BYTES {
        return Err(DecodeError::new(DecodeErrorKind::LimitExceeded, at));
    }
    Ok(type_id)
}

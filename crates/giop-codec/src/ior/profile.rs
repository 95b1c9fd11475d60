//! The IIOP profile: host, port, object key and components.

use std::error::Error;
use std::fmt;

use super::component::{
    ComponentTag, OmniUnixAddress, OrbType, SslSecTrans, TaggedComponent, put_components, read_components,
};
use super::encapsulation::{encapsulation, open_encapsulation, put_octets, read_octets_shared};
use super::object_key::ObjectKey;
use super::policies::Policies;
use super::{ProfileTag, TaggedProfile};
use crate::cdr::Decoder;
use crate::code_set::CodeSetComponentInfo;
use crate::{DecodeError, EncodeError, Version};

/// The body of a `TAG_INTERNET_IOP` profile: the Internet address of an object and further properties that
/// its server publishes.
///
/// Source clause: "IIOP IOR Profiles".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IiopProfile {
    /// The highest GIOP version that the server supports. A higher minor number on the wire is read as 1.2.
    pub version: Version,
    /// DNS name, IPv4 or IPv6 address, the latter without brackets.
    pub host: String,
    /// TCP port; 0 if the server does not listen on plain TCP at this address.
    pub port: u16,
    /// The key of the object within its server.
    pub object_key: ObjectKey,
    /// Further properties; not in IIOP 1.0.
    pub components: Vec<TaggedComponent>,
}

impl IiopProfile {
    /// Creates a profile of version 1.2 without components.
    pub fn new(host: impl Into<String>, port: u16, object_key: ObjectKey) -> Self {
        Self { version: Version::V1_2, host: host.into(), port, object_key, components: Vec::new() }
    }

    /// Sets the version. In 1.0 components are not encoded; before 1.2 alternate addresses are ignored.
    #[must_use]
    pub fn with_version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Adds a component.
    #[must_use]
    pub fn with_component(mut self, component: TaggedComponent) -> Self {
        self.components.push(component);
        self
    }

    /// Reads the body of a profile.
    ///
    /// Data after the known fields is ignored. The data of components is not decoded here; a corrupt
    /// component does not invalidate the profile.
    ///
    /// # Errors
    /// Another tag, another major version, or data that does not decode.
    pub fn from_tagged(profile: &TaggedProfile) -> Result<Self, ProfileError> {
        if profile.tag != ProfileTag::INTERNET_IOP {
            return Err(ProfileError::Tag(profile.tag));
        }
        let mut d = open_encapsulation(&profile.data)?;
        let version = read_version(&mut d)?;
        let host = String::from(d.read_str_ascii()?);
        let port = d.read_u16()?;
        let object_key = ObjectKey::from(read_octets_shared(&mut d)?);
        let components = match version {
            Version::V1_0 => Vec::new(),
            _ => read_components(&mut d)?,
        };
        Ok(Self { version, host: without_brackets(host), port, object_key, components })
    }

    /// Encodes the profile.
    ///
    /// # Errors
    /// A host name that has no encoding because it contains a NUL.
    pub fn to_tagged(&self) -> Result<TaggedProfile, EncodeError> {
        let data = encapsulation(|e| {
            e.put_u8(1);
            e.put_u8(self.version.minor());
            e.put_ascii(&self.host)?;
            e.put_u16(self.port);
            put_octets(e, self.object_key.as_slice())?;
            if self.version > Version::V1_0 {
                put_components(e, &self.components)?;
            }
            Ok(())
        })?;
        Ok(TaggedProfile { tag: ProfileTag::INTERNET_IOP, data })
    }

    /// Returns the addresses to try, in order: host and port of the profile (unless its port is 0), then the
    /// alternate addresses (IIOP 1.2 only).
    pub fn addresses(&self) -> Vec<(String, u16)> {
        let mut addresses = Vec::with_capacity(1);
        if self.port != 0 {
            addresses.push((self.host.clone(), self.port));
        }
        if self.version >= Version::V1_2 {
            addresses.extend(self.components.iter().filter_map(TaggedComponent::as_alternate_address));
        }
        for (host, _) in &mut addresses {
            *host = without_brackets(std::mem::take(host));
        }
        addresses
    }

    /// Returns the first component with that tag.
    pub fn component(&self, tag: ComponentTag) -> Option<&TaggedComponent> {
        self.components.iter().find(|component| component.tag == tag)
    }

    /// Returns the server's code sets; `None` if there are none, or they do not decode.
    pub fn code_sets(&self) -> Option<CodeSetComponentInfo> {
        self.component(ComponentTag::CODE_SETS)?.as_code_sets()
    }

    /// Returns the ORB that created the reference.
    pub fn orb_type(&self) -> Option<OrbType> {
        self.component(ComponentTag::ORB_TYPE)?.as_orb_type()
    }

    /// Returns the TLS port and requirements.
    pub fn ssl(&self) -> Option<SslSecTrans> {
        self.component(ComponentTag::SSL_SEC_TRANS)?.as_ssl_sec_trans()
    }

    /// Returns the quality of service that the server publishes; `None` if there is none, or it does not
    /// decode.
    pub fn policies(&self) -> Option<Policies> {
        self.component(ComponentTag::POLICIES)?.as_policies()
    }

    /// Returns the Unix sockets on which an omniORB server also listens.
    pub fn omni_unix_addresses(&self) -> impl Iterator<Item = OmniUnixAddress> + '_ {
        self.components.iter().filter_map(TaggedComponent::as_omni_unix)
    }
}

/// Reads the version of a profile; an unknown minor number is read as the highest known version.
pub(super) fn read_version(d: &mut Decoder<'_>) -> Result<Version, ProfileError> {
    let (major, minor) = (d.read_u8()?, d.read_u8()?);
    if major != 1 {
        return Err(ProfileError::Major(major));
    }
    Ok(Version::from_minor(minor).unwrap_or(Version::V1_2))
}

/// Removes the brackets with which some ORBs write an IPv6 address into a profile.
pub(crate) fn without_brackets(host: String) -> String {
    match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(bare) if !bare.contains(['[', ']']) => bare.to_owned(),
        _ => host,
    }
}

/// The reason why a profile cannot be used as one of the requested kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// It is of another kind.
    Tag(ProfileTag),
    /// Its major version is not 1.
    Major(u8),
    /// Its data does not decode; the offset counts from the start of the profile data.
    Decode(DecodeError),
}

impl From<DecodeError> for ProfileError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => write!(f, "profile with tag {:#x} is of another kind", tag.0),
            Self::Major(major) => write!(f, "profile of major version {major}, only 1 is known"),
            Self::Decode(_) => f.write_str("profile does not decode"),
        }
    }
}

impl Error for ProfileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Decode(error) => Some(error),
            _ => None,
        }
    }
}

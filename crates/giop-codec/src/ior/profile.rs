//! The profiles that zorb uses: [`IiopProfile`] and, for Unix sockets, TAO's [`UiopProfile`].

use super::component::{ComponentTag, OmniUnixAddress, OrbType, SslSecTrans, TaggedComponent};
use super::encapsulation::{encapsulation, open_encapsulation, put_octets, read_list, read_octets_shared};
use super::object_key::ObjectKey;
use super::policies::Policies;
use super::{MAX_COMPONENTS, ProfileTag, TaggedProfile};
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::code_set::CodeSetComponentInfo;
use crate::{DecodeError, EncodeError, Version};

/// The body of a `TAG_INTERNET_IOP` profile: an address, the object key, and published properties.
///
/// Source clause: "IIOP IOR Profiles".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IiopProfile {
    /// The highest GIOP version that the server supports. A higher minor number on the wire is read as 1.2.
    pub version: Version,
    /// A DNS name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    /// TCP port; 0 if the server does not listen on plain TCP at this address.
    pub port: u16,
    /// The key of the object within its server.
    pub object_key: ObjectKey,
    /// Further properties; empty in IIOP 1.0.
    pub components: Vec<TaggedComponent>,
}

impl IiopProfile {
    /// Creates a profile of version 1.2 without components.
    pub fn new(host: impl Into<String>, port: u16, object_key: ObjectKey) -> Self {
        Self { version: Version::V1_2, host: host.into(), port, object_key, components: Vec::new() }
    }

    /// Sets the version. Version 1.0 is encoded without components. Only 1.2 has alternate addresses.
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
    /// Data after the known fields is ignored. The data of components is not decoded here, so that a corrupt
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
        let host = without_brackets(String::from(d.read_unconverted_str()?));
        let port = d.read_u16()?;
        let (object_key, components) = read_key_and_components(&mut d, version)?;
        Ok(Self { version, host, port, object_key, components })
    }

    /// Encodes the profile.
    ///
    /// # Errors
    /// A host name that has no encoding because it contains a NUL.
    pub fn to_tagged(&self) -> Result<TaggedProfile, EncodeError> {
        let data = encapsulation(|e| {
            put_version(e, self.version);
            e.put_unconverted_str(&self.host)?;
            e.put_u16(self.port);
            put_key_and_components(e, &self.object_key, &self.components, self.version)
        })?;
        Ok(TaggedProfile { tag: ProfileTag::INTERNET_IOP, data })
    }

    /// Returns the addresses in the order in which to try them. The first is the host and port of the
    /// profile, unless its port is 0. The alternate addresses follow, in IIOP 1.2 only.
    pub fn addresses(&self) -> Vec<(String, u16)> {
        let main = (self.port != 0).then(|| (self.host.clone(), self.port));
        let alternate = self.components.iter().filter_map(TaggedComponent::as_alternate_address);
        let alternate = alternate.filter(|_| self.version >= Version::V1_2);
        main.into_iter().chain(alternate).map(|(host, port)| (without_brackets(host), port)).collect()
    }

    /// Returns the first component with this tag.
    pub fn component(&self, tag: ComponentTag) -> Option<&TaggedComponent> {
        self.components.iter().find(|component| component.tag == tag)
    }

    /// Returns the server's code sets; `None` if the component is missing or does not decode.
    pub fn code_sets(&self) -> Option<CodeSetComponentInfo> {
        self.component(ComponentTag::CODE_SETS)?.as_code_sets()
    }

    /// Returns the ORB that created the reference; `None` if the component is missing or does not decode.
    pub fn orb_type(&self) -> Option<OrbType> {
        self.component(ComponentTag::ORB_TYPE)?.as_orb_type()
    }

    /// Returns the TLS port and requirements; `None` if the component is missing or does not decode.
    pub fn ssl(&self) -> Option<SslSecTrans> {
        self.component(ComponentTag::SSL_SEC_TRANS)?.as_ssl_sec_trans()
    }

    /// Returns the quality of service that the server publishes; `None` if the component is missing or does
    /// not decode.
    pub fn policies(&self) -> Option<Policies> {
        self.component(ComponentTag::POLICIES)?.as_policies()
    }

    /// Returns the Unix sockets on which an omniORB server also listens.
    pub fn omni_unix_addresses(&self) -> impl Iterator<Item = OmniUnixAddress> + '_ {
        self.components.iter().filter_map(TaggedComponent::as_omni_unix)
    }
}

/// Reads the version. An unknown minor number is read as the highest known version.
fn read_version(d: &mut Decoder<'_>) -> Result<Version, ProfileError> {
    let (major, minor) = (d.read_u8()?, d.read_u8()?);
    if major != 1 {
        return Err(ProfileError::MajorVersion(major));
    }
    Ok(Version::from_minor(minor).unwrap_or(Version::V1_2))
}

fn put_version(e: &mut Encoder, version: Version) {
    e.put_u8(1);
    e.put_u8(version.minor());
}

/// Reads the object key and the components, with which a profile ends. Version 1.0 has no components.
fn read_key_and_components(
    d: &mut Decoder<'_>,
    version: Version,
) -> Result<(ObjectKey, Vec<TaggedComponent>), DecodeError> {
    let object_key = ObjectKey::from(read_octets_shared(d)?);
    let components = match version {
        Version::V1_0 => Vec::new(),
        _ => read_list(d, TaggedComponent::MIN_SIZE, MAX_COMPONENTS, TaggedComponent::decode)?,
    };
    Ok((object_key, components))
}

fn put_key_and_components(
    e: &mut Encoder,
    object_key: &ObjectKey,
    components: &[TaggedComponent],
    version: Version,
) -> Result<(), EncodeError> {
    put_octets(e, object_key.as_slice())?;
    if version > Version::V1_0 {
        e.put_len(components.len())?;
        TaggedComponent::encode_slice(components, e)?;
    }
    Ok(())
}

/// Removes the brackets around an IPv6 address, which some ORBs write into profiles.
pub(crate) fn without_brackets(host: String) -> String {
    match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        Some(bare) if !bare.contains(['[', ']']) => bare.to_owned(),
        _ => host,
    }
}

/// The reason why a profile cannot be used as one of the requested kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The profile is of another kind.
    #[error("the profile is of another kind, with tag {:#x}", .0.0)]
    Tag(ProfileTag),
    /// The major version of the profile is not 1.
    #[error("the profile has major version {0}, but only 1 is supported")]
    MajorVersion(u8),
    /// The profile data does not decode. The offset in the error counts from the start of this data.
    #[error("the data of the profile does not decode")]
    Decode(#[from] DecodeError),
}

/// The body of a [`TAO_UIOP`](ProfileTag::TAO_UIOP) profile, with the path of a socket instead of host and
/// port.
///
/// The profile does not name the host. On another host, the path refers to no socket, or to a wrong one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UiopProfile {
    /// The highest GIOP version that the server supports. A higher minor number on the wire is read as 1.2.
    pub version: Version,
    /// The path of the socket, which TAO calls the rendezvous point.
    pub path: String,
    /// The key of the object within its server.
    pub object_key: ObjectKey,
    /// Further properties; empty in version 1.0.
    pub components: Vec<TaggedComponent>,
}

impl UiopProfile {
    /// Creates a profile of version 1.2 without components.
    pub fn new(path: impl Into<String>, object_key: ObjectKey) -> Self {
        Self { version: Version::V1_2, path: path.into(), object_key, components: Vec::new() }
    }

    /// Adds a component.
    #[must_use]
    pub fn with_component(mut self, component: TaggedComponent) -> Self {
        self.components.push(component);
        self
    }

    /// Reads the body of a profile. Data after the known fields is ignored.
    ///
    /// # Errors
    /// Another tag, another major version, or data that does not decode.
    pub fn from_tagged(profile: &TaggedProfile) -> Result<Self, ProfileError> {
        if profile.tag != ProfileTag::TAO_UIOP {
            return Err(ProfileError::Tag(profile.tag));
        }
        let mut d = open_encapsulation(&profile.data)?;
        let version = read_version(&mut d)?;
        let path = String::from(d.read_unconverted_str()?);
        let (object_key, components) = read_key_and_components(&mut d, version)?;
        Ok(Self { version, path, object_key, components })
    }

    /// Encodes the profile.
    ///
    /// # Errors
    /// A path that has no encoding because it contains a NUL.
    pub fn to_tagged(&self) -> Result<TaggedProfile, EncodeError> {
        let data = encapsulation(|e| {
            put_version(e, self.version);
            e.put_unconverted_str(&self.path)?;
            put_key_and_components(e, &self.object_key, &self.components, self.version)
        })?;
        Ok(TaggedProfile { tag: ProfileTag::TAO_UIOP, data })
    }
}

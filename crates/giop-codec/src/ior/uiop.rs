//! The profile of objects that are reached over a Unix socket, as defined by TAO.

use super::component::{TaggedComponent, put_components, read_components};
use super::encapsulation::{encapsulation, open_encapsulation, put_octets, read_octets_shared};
use super::object_key::ObjectKey;
use super::profile::{ProfileError, read_version};
use super::{ProfileTag, TaggedProfile};
use crate::{EncodeError, Version};

/// The body of a [`TAO_UIOP`](ProfileTag::TAO_UIOP) profile: like an IIOP profile, with a path in the file
/// system instead of host and port.
///
/// The profile does not name the host. A client on another host finds no such socket, or the socket of
/// another server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UiopProfile {
    /// The highest GIOP version that the server supports. A higher minor number on the wire is read as 1.2.
    pub version: Version,
    /// Path of the socket, which TAO calls the rendezvous point.
    pub path: String,
    /// The key of the object within its server.
    pub object_key: ObjectKey,
    /// Further properties; not in version 1.0.
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
        let path = String::from(d.read_str_ascii()?);
        let object_key = ObjectKey::from(read_octets_shared(&mut d)?);
        let components = match version {
            Version::V1_0 => Vec::new(),
            _ => read_components(&mut d)?,
        };
        Ok(Self { version, path, object_key, components })
    }

    /// Encodes the profile.
    ///
    /// # Errors
    /// A path that has no encoding because it contains a NUL.
    pub fn to_tagged(&self) -> Result<TaggedProfile, EncodeError> {
        let data = encapsulation(|e| {
            e.put_u8(1);
            e.put_u8(self.version.minor());
            e.put_ascii(&self.path)?;
            put_octets(e, self.object_key.as_slice())?;
            if self.version > Version::V1_0 {
                put_components(e, &self.components)?;
            }
            Ok(())
        })?;
        Ok(TaggedProfile { tag: ProfileTag::TAO_UIOP, data })
    }
}

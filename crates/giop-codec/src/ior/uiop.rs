//! The profile of objects behind a Unix socket, as TAO made it.

use super::component::{TaggedComponent, put_components, read_components};
use super::encapsulation::{encapsulation, open_encapsulation, put_octets, read_octets_shared};
use super::profile::{ProfileError, read_version};
use super::{ProfileTag, TaggedProfile};
use crate::giop::ObjectKey;
use crate::{EncodeError, Version};

/// The body of a [`TAO_UIOP`](ProfileTag::TAO_UIOP) profile: a path in the file system in place of host and port, else as an IIOP
/// profile.
///
/// It does not say on which host: a client on another one finds no such socket, or that of another server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UiopProfile {
    /// Highest GIOP version that the server takes. A higher minor number on the wire reads as 1.2.
    pub version: Version,
    /// Path of the socket, which TAO calls the rendezvous point.
    pub path: String,
    /// What names the object within its server.
    pub object_key: ObjectKey,
    /// Further properties; not in version 1.0.
    pub components: Vec<TaggedComponent>,
}

impl UiopProfile {
    /// A profile of version 1.2 without components.
    pub fn new(path: impl Into<String>, object_key: ObjectKey) -> Self {
        Self { version: Version::V1_2, path: path.into(), object_key, components: Vec::new() }
    }

    /// The same with one component more.
    #[must_use]
    pub fn with_component(mut self, component: TaggedComponent) -> Self {
        self.components.push(component);
        self
    }

    /// Reads the body of a profile. Octets behind the known fields are ignored.
    ///
    /// # Errors
    /// Another tag, another major version, or octets that do not decode.
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

    /// The profile's octets.
    ///
    /// # Errors
    /// A path that has no encoding (it contains a NUL).
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

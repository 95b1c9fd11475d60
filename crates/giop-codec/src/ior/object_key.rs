//! [`ObjectKey`]: the part of a reference that identifies an object within its server.

use std::fmt;

use bytes::Bytes;

use crate::Printable;

/// The key by which a server finds an object. Clients do not interpret it.
///
/// Clones share the bytes. `Display` escapes them as [`u8::escape_ascii`] does. Of a key longer than 256
/// bytes, it shows the first 256 bytes and the number of the remaining ones.
/// Source clause: "Object Adapter / Object Key" in "Object Keys".
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ObjectKey(Bytes);

impl ObjectKey {
    /// Creates a key of constant bytes, without an allocation.
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Self(Bytes::from_static(bytes))
    }

    /// Returns the bytes of the key.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes as a shared buffer.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<Bytes> for ObjectKey {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<Vec<u8>> for ObjectKey {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for ObjectKey {
    /// Copies the bytes.
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl AsRef<[u8]> for ObjectKey {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl std::borrow::Borrow<[u8]> for ObjectKey {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..Printable::MAX_BYTES).unwrap_or(&self.0);
        shown.escape_ascii().fmt(f)?;
        match self.0.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, "… and {more} more bytes"),
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({self})")
    }
}

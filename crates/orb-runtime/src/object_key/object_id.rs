//! Object ids, which identify the objects of one POA.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use giop_codec::exception::{SystemException, minor};

const MAX_INLINE_BYTES: usize = 22;

/// The id of an object within its POA: bytes that the program (`USER_ID`) or the POA (`SYSTEM_ID`) chose.
///
/// An `ObjectId` has a size of 24 bytes. It stores an id of up to 22 bytes inline, and its clones share a
/// longer id. No memory is allocated for ids that POAs choose, or for clones. Ids compare and sort like their
/// bytes. `Display` shows printable ASCII characters as they are, except quotes and backslashes, and escapes
/// all other bytes, for example as `\xHH`.
///
/// Source clause: "The Object Adapter / Abstract Model Description / Object ID" (`PortableServer::ObjectId`).
///
/// ```
/// # use orb_runtime::poa::ObjectId;
/// let id = ObjectId::from("account/7");
/// assert_eq!(id.as_slice(), b"account/7");
/// assert_eq!(id.to_text().unwrap(), "account/7");
/// assert_eq!(id.to_string(), "account/7");
/// assert_eq!(ObjectId::from([0, 0x41]).to_string(), r"\x00A");
/// ```
#[doc(alias = "PortableServer::ObjectId")]
#[doc(alias = "string_to_ObjectId")]
#[derive(Clone)]
pub struct ObjectId(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; MAX_INLINE_BYTES] },
    Shared(Arc<[u8]>),
}

impl ObjectId {
    /// Returns the id as bytes.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or(bytes),
            Repr::Shared(bytes) => bytes,
        }
    }

    /// Returns the id as text: the inverse of `From<&str>`.
    ///
    /// # Errors
    /// `BAD_PARAM` minor OMG 14, `COMPLETED_NO`, if the bytes are not UTF-8 or contain NUL, which strings of
    /// IDL cannot contain.
    #[doc(alias = "ObjectId_to_string")]
    pub fn to_text(&self) -> Result<&str, SystemException> {
        match std::str::from_utf8(self.as_slice()) {
            Ok(text) if !text.contains('\0') => Ok(text),
            _ => Err(SystemException::bad_param()
                .with_minor(minor::BAD_PARAM_OBJECT_ID)
                .with_reason(format!("the object id {self} is not a text"))),
        }
    }
}

impl From<&[u8]> for ObjectId {
    fn from(bytes: &[u8]) -> Self {
        let mut inline = [0; MAX_INLINE_BYTES];
        match (inline.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(target), Ok(len)) => {
                target.copy_from_slice(bytes);
                Self(Repr::Inline { len, bytes: inline })
            }
            _ => Self(Repr::Shared(bytes.into())),
        }
    }
}

macro_rules! from_bytes {
    ($([$($generics:tt)*] $bytes:ty,)+) => {$(
        impl $($generics)* From<$bytes> for ObjectId {
            fn from(bytes: $bytes) -> Self {
                Self::from(AsRef::<[u8]>::as_ref(&bytes))
            }
        }
    )+};
}

from_bytes! { [] &str, [] String, [] Vec<u8>, [<const N: usize>] [u8; N], [<const N: usize>] &[u8; N], }

impl From<&ObjectId> for ObjectId {
    fn from(id: &ObjectId) -> Self {
        id.clone()
    }
}

impl AsRef<[u8]> for ObjectId {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Borrow<[u8]> for ObjectId {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Default for ObjectId {
    fn default() -> Self {
        Self(Repr::Inline { len: 0, bytes: [0; MAX_INLINE_BYTES] })
    }
}

impl PartialEq for ObjectId {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for ObjectId {}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl Hash for ObjectId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // `Borrow<[u8]>` requires the hash of a slice.
        self.as_slice().hash(state);
    }
}

impl PartialEq<[u8]> for ObjectId {
    fn eq(&self, other: &[u8]) -> bool {
        self.as_slice() == other
    }
}

impl PartialEq<str> for ObjectId {
    fn eq(&self, other: &str) -> bool {
        self.as_slice() == other.as_bytes()
    }
}

impl PartialEq<&str> for ObjectId {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().escape_ascii().fmt(f)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({self})")
    }
}

const _: () = assert!(size_of::<ObjectId>() == 24);

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use giop_codec::exception::{CompletionStatus, SystemExceptionKind};

    use super::*;

    #[test]
    fn ids_of_all_lengths_compare_and_hash_like_their_bytes() {
        for len in [0, 1, 8, 21, 22, 23, 24, 255, 256, 65_000] {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let id = ObjectId::from(bytes.clone());
            assert_eq!(id.as_slice(), bytes, "{len} bytes");
            assert_eq!(id, ObjectId::from(bytes.as_slice()));
            assert_eq!(id.clone(), id);
            let longer = ObjectId::from([bytes.as_slice(), &[0]].concat());
            assert_ne!(id, longer);
            assert!(id < longer, "a prefix sorts first");
            let map = HashMap::from([(id, len)]);
            assert_eq!(map.get(bytes.as_slice()), Some(&len), "found by its bytes");
        }
        assert_eq!(ObjectId::default(), ObjectId::from(""));
    }

    // clause: poa.id.string
    #[test]
    fn texts_convert_to_ids_and_back() {
        for text in ["", "account/7", "Zürich", "a text of more than twenty-two bytes"] {
            let id = ObjectId::from(text);
            assert_eq!(id.to_text().unwrap(), text);
            assert_eq!(id, text);
            assert_eq!(ObjectId::from(text.to_owned()), id);
        }
        for bytes in [&b"with\0NUL"[..], b"\xff\xfe", b"cut \xc3"] {
            let error = ObjectId::from(bytes).to_text().unwrap_err();
            assert_eq!(error.kind, SystemExceptionKind::BadParam);
            assert_eq!(error.minor, minor::BAD_PARAM_OBJECT_ID);
            assert_eq!(error.completed, CompletionStatus::No);
        }
    }

    #[test]
    fn unprintable_bytes_are_displayed_as_numbers() {
        let id = ObjectId::from(b"a\0\xff\n");
        assert_eq!(id.to_string(), r"a\x00\xff\n");
        assert_eq!(format!("{id:?}"), r"ObjectId(a\x00\xff\n)");
    }
}

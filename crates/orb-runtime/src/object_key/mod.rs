//! Object keys: bytes that identify an object, its POA and the run of the ORB.
//!
//! There are four forms, and one more with the feature `experiments`. Keys that the ORB creates start with
//! three bytes that no UTF-8 text starts with. The fourth byte selects the form:
//!
//! | form | bytes after `FB 7A 6F` | used for |
//! |---|---|---|
//! | active | `01` boot(8) index(4) generation(4) | POAs with TRANSIENT, SYSTEM_ID, RETAIN and USE_ACTIVE_OBJECT_MAP_ONLY: one array access finds the object, independent of the depth of its POA |
//! | transient | `02` boot(8) POA index(4) POA generation(4) id | all other TRANSIENT POAs |
//! | persistent | `03` length of the names(2) {length(1) name} id | PERSISTENT POAs: the key stays the same after a restart or a new build of the program |
//! | layered | `04` boot(8) POA number(4) length of the names(2) {length(1) name} id | TRANSIENT POAs that are looked up name by name (`experiments`); the number distinguishes successive POAs with the same name |
//! | plain | (no prefix) | objects of `Orb::activate_named`, whose keys are the texts in `corbaloc:` URLs |
//!
//! The words in capitals are policies of the POA. The numbers in parentheses are sizes in bytes, and the part
//! in braces is repeated for each name. Numbers are big-endian. "boot" identifies the run of the ORB.
//!
//! Because clients can send any bytes as a key, [`Key::parse`] parses or rejects them in time and memory that
//! do not depend on their content. A parsed key encodes to the same bytes.
//!
//! Source clause: "Object Keys", which leaves the form of keys to the ORB.

mod object_id;

use std::{fmt, str};

pub use object_id::ObjectId;

/// The first bytes of keys that the ORB creates, with which no UTF-8 text begins.
pub const MAGIC: [u8; 3] = [0xfb, b'z', b'o'];

/// The maximum length of a key in bytes: 64 KiB.
pub const MAX_KEY_BYTES: usize = 1 << 16;

/// The maximum length of a POA's name in bytes.
pub const MAX_POA_NAME_BYTES: usize = 255;

/// The maximum depth of a POA. The children of the RootPOA have depth 1.
pub const MAX_POA_DEPTH: usize = 255;

const ACTIVE: u8 = 1;
const TRANSIENT: u8 = 2;
const PERSISTENT: u8 = 3;
#[cfg(feature = "experiments")]
const LAYERED: u8 = 4;

/// Identifies a run of an ORB.
pub type BootId = [u8; 8];

/// An object key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'a> {
    /// An object that is identified by its slot in the table of all objects.
    Active {
        /// The run that created the key.
        boot: BootId,
        /// The slot of the object.
        slot: SlotId,
    },
    /// An object that is identified by the slot of its POA and by its id in the POA.
    Transient {
        /// The run that created the key.
        boot: BootId,
        /// The slot of the POA.
        poa: SlotId,
        /// The id of the object.
        id: &'a [u8],
    },
    /// An object that is identified in all runs by the path of its POA and by its id in the POA.
    Persistent {
        /// The path of the POA.
        path: PoaPath<'a>,
        /// The id of the object.
        id: &'a [u8],
    },
    /// An object that is identified in one run by the path of its POA and by its id in the POA.
    #[cfg(feature = "experiments")]
    Layered {
        /// The run that created the key.
        boot: BootId,
        /// The number of the POA within the run.
        number: u32,
        /// The path of the POA.
        path: PoaPath<'a>,
        /// The id of the object.
        id: &'a [u8],
    },
    /// A key that the program chose. The whole key is the object's id.
    Plain(&'a [u8]),
}

/// A slot in a table that reuses its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SlotId {
    /// The index of the slot.
    pub index: u32,
    /// Distinguishes the successive occupants of the slot.
    pub generation: u32,
}

/// The names of a POA and of its ancestors below the RootPOA, in the encoding of keys: each name is preceded
/// by its length.
///
/// A received path may contain any bytes. Only [`names`](Self::names) validates it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoaPath<'a>(&'a [u8]);

/// An owned [`PoaPath`], whose names are valid.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct PoaPathBuf(Box<[u8]>);

/// The bytes are not a valid key or path. Requests with them get `OBJECT_NOT_EXIST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the object key does not have a form that this ORB creates")]
pub struct MalformedKey;

/// An error of [`Key::encode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key would be longer than [`MAX_KEY_BYTES`] bytes.
    #[error("an object key of {0} bytes is too long: the limit is {MAX_KEY_BYTES}")]
    TooLong(usize),
    /// A plain key starts like one that the ORB creates.
    #[error("keys that start with FB 7A 6F (hexadecimal) are reserved for the ORB")]
    Reserved,
}

/// An error of [`PoaPathBuf::child`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("the name of a POA is empty")]
    Empty,
    /// The name is longer than [`MAX_POA_NAME_BYTES`] bytes.
    #[error("the name of a POA has {0} bytes: the limit is {MAX_POA_NAME_BYTES}")]
    TooLong(usize),
    /// The POA would be more than [`MAX_POA_DEPTH`] levels deep.
    #[error("the POA would be more than {MAX_POA_DEPTH} levels below the root POA")]
    TooDeep,
}

impl<'a> Key<'a> {
    /// Parses a key. Reads at most the first 20 bytes and the length.
    ///
    /// # Errors
    /// The bytes start with [`MAGIC`] but have no valid form, or there are more than [`MAX_KEY_BYTES`].
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, MalformedKey> {
        if bytes.len() > MAX_KEY_BYTES {
            return Err(MalformedKey);
        }
        let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Ok(Self::Plain(bytes)) };
        let (form, rest) = rest.split_first().ok_or(MalformedKey)?;
        match *form {
            PERSISTENT => {
                let (path, id) = PoaPath::split(rest)?;
                Ok(Self::Persistent { path, id })
            }
            form => {
                let (boot, rest) = rest.split_first_chunk().ok_or(MalformedKey)?;
                let boot = *boot;
                match form {
                    ACTIVE => {
                        let slot = rest.try_into().map_err(|_| MalformedKey)?;
                        Ok(Self::Active { boot, slot: SlotId::from_bytes(slot) })
                    }
                    TRANSIENT => {
                        let (poa, id) = rest.split_first_chunk().ok_or(MalformedKey)?;
                        Ok(Self::Transient { boot, poa: SlotId::from_bytes(*poa), id })
                    }
                    #[cfg(feature = "experiments")]
                    LAYERED => {
                        let (number, rest) = rest.split_first_chunk().ok_or(MalformedKey)?;
                        let (path, id) = PoaPath::split(rest)?;
                        Ok(Self::Layered { boot, number: u32::from_be_bytes(*number), path, id })
                    }
                    _ => Err(MalformedKey),
                }
            }
        }
    }

    /// Encodes the key. [`parse`](Self::parse) is the inverse.
    ///
    /// # Errors
    /// The key would be too long, or a plain key starts with [`MAGIC`].
    pub fn encode(&self) -> Result<Vec<u8>, KeyError> {
        let mut bytes = Vec::new();
        let mut put = |parts: &[&[u8]]| {
            bytes.reserve_exact(parts.iter().map(|part| part.len()).sum());
            parts.iter().for_each(|part| bytes.extend_from_slice(part));
        };
        match self {
            Self::Active { boot, slot } => put(&[&MAGIC, &[ACTIVE], boot, &slot.to_bytes()]),
            Self::Transient { boot, poa, id } => put(&[&MAGIC, &[TRANSIENT], boot, &poa.to_bytes(), id]),
            Self::Persistent { path, id } => put(&[&MAGIC, &[PERSISTENT], &path.len_bytes(), path.0, id]),
            #[cfg(feature = "experiments")]
            Self::Layered { boot, number, path, id } => {
                let number = &number.to_be_bytes();
                put(&[&MAGIC, &[LAYERED], boot, number, &path.len_bytes(), path.0, id]);
            }
            Self::Plain(id) if is_reserved(id) => return Err(KeyError::Reserved),
            Self::Plain(id) => put(&[id]),
        }
        if bytes.len() > MAX_KEY_BYTES { Err(KeyError::TooLong(bytes.len())) } else { Ok(bytes) }
    }

    /// Returns the offset of the object's id. The bytes before it are the same for all objects of a POA.
    #[inline]
    #[must_use]
    pub fn id_offset(&self) -> usize {
        match self {
            Self::Active { .. } => MAGIC.len() + 1 + 8,
            Self::Transient { .. } => MAGIC.len() + 1 + 8 + 8,
            Self::Persistent { path, .. } => MAGIC.len() + 1 + 2 + path.0.len(),
            #[cfg(feature = "experiments")]
            Self::Layered { path, .. } => MAGIC.len() + 1 + 8 + 4 + 2 + path.0.len(),
            Self::Plain(_) => 0,
        }
    }

    /// Returns the path of the object's POA, or `None` for the forms that do not contain it.
    #[must_use]
    pub fn path(&self) -> Option<PoaPath<'a>> {
        match *self {
            Self::Persistent { path, .. } => Some(path),
            #[cfg(feature = "experiments")]
            Self::Layered { path, .. } => Some(path),
            Self::Active { .. } | Self::Transient { .. } | Self::Plain(_) => None,
        }
    }

    /// Returns the object's id in its POA. In an active key, the bytes of the slot are the id.
    #[must_use]
    pub fn object_id(&self) -> ObjectId {
        match self {
            Self::Active { slot, .. } => slot.to_bytes().into(),
            Self::Transient { id, .. } | Self::Persistent { id, .. } | Self::Plain(id) => (*id).into(),
            #[cfg(feature = "experiments")]
            Self::Layered { id, .. } => (*id).into(),
        }
    }
}

/// Returns whether a key starts with [`MAGIC`].
#[must_use]
pub fn is_reserved(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

impl SlotId {
    /// Decodes index and generation, each big-endian.
    #[inline]
    #[must_use]
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        let both = u64::from_be_bytes(bytes);
        Self { index: (both >> 32) as u32, generation: both as u32 }
    }

    /// Encodes index and generation, each big-endian.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.index) << 32 | u64::from(self.generation)).to_be_bytes()
    }
}

impl<'a> PoaPath<'a> {
    /// Returns the names, the child of the RootPOA first. All names are validated before this returns.
    ///
    /// # Errors
    /// A name is truncated, empty or not UTF-8, or there are more than [`MAX_POA_DEPTH`] names.
    pub fn names(self) -> Result<impl Iterator<Item = &'a str> + Clone, MalformedKey> {
        let mut rest = self.0;
        let mut names = 0;
        while !rest.is_empty() {
            (_, rest) = first_name(rest).ok_or(MalformedKey)?;
            names += 1;
        }
        if names > MAX_POA_DEPTH {
            return Err(MalformedKey);
        }
        let mut rest = self.0;
        Ok(std::iter::from_fn(move || {
            let name;
            (name, rest) = first_name(rest)?;
            Some(name)
        }))
    }

    /// Returns the encoded names.
    #[must_use]
    pub fn as_slice(self) -> &'a [u8] {
        self.0
    }

    /// Splits the path from the bytes that follow it.
    #[inline]
    fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), MalformedKey> {
        let (len, rest) = bytes.split_first_chunk().ok_or(MalformedKey)?;
        let (path, id) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len))).ok_or(MalformedKey)?;
        Ok((Self(path), id))
    }

    fn len_bytes(self) -> [u8; 2] {
        // The length fits: 255 names of at most 256 encoded bytes have less than 65,536 bytes. A parsed path
        // has a length of two bytes, too.
        u16::try_from(self.0.len()).unwrap_or(u16::MAX).to_be_bytes()
    }
}

fn first_name(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(len))?;
    if name.is_empty() { None } else { Some((str::from_utf8(name).ok()?, rest)) }
}

impl PoaPathBuf {
    /// Returns the path of the child with this name.
    ///
    /// # Errors
    /// The name is empty or too long, or the POA would be too deep.
    pub fn child(&self, name: &str) -> Result<Self, NameError> {
        let len = match u8::try_from(name.len()) {
            Ok(0) => return Err(NameError::Empty),
            Ok(len) => len,
            Err(_) => return Err(NameError::TooLong(name.len())),
        };
        if self.as_path().names().map_or(MAX_POA_DEPTH, Iterator::count) >= MAX_POA_DEPTH {
            return Err(NameError::TooDeep);
        }
        Ok(Self([&*self.0, &[len], name.as_bytes()].concat().into_boxed_slice()))
    }

    /// Returns the path as encoded in a key.
    #[must_use]
    pub fn as_path(&self) -> PoaPath<'_> {
        PoaPath(&self.0)
    }
}

impl fmt::Debug for PoaPathBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().fmt(f)
    }
}

impl fmt::Debug for PoaPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names() {
            Ok(names) => f.debug_list().entries(names).finish(),
            Err(MalformedKey) => write!(f, "PoaPath({})", self.0.escape_ascii()),
        }
    }
}

/// An id that a POA with SYSTEM_ID generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemId {
    /// An id of a TRANSIENT POA, which counts its objects.
    Counted(u64),
    /// An id of a PERSISTENT POA, which no other run of the program generates.
    Stamped {
        /// The run that generated the id.
        boot: BootId,
        /// The count within the run.
        count: u32,
    },
}

impl SystemId {
    /// Returns the id as bytes.
    #[must_use]
    pub fn object_id(self) -> ObjectId {
        match self {
            Self::Counted(count) => count.to_be_bytes().into(),
            Self::Stamped { boot, count } => {
                let mut bytes = [0; 12];
                let (stamp, number) = bytes.split_at_mut(boot.len());
                stamp.copy_from_slice(&boot);
                number.copy_from_slice(&count.to_be_bytes());
                bytes.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOOT: BootId = [1, 2, 3, 4, 5, 6, 7, 8];

    fn path(names: &[&str]) -> PoaPathBuf {
        names.iter().fold(PoaPathBuf::default(), |path, name| path.child(name).unwrap())
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// References outlive the program that created them, so these bytes must never change.
    // clause: poa.id.persistent_key, ior.key.stable
    #[test]
    fn encoding_of_persistent_keys_never_changes() {
        let bank = path(&["bank", "Zürich"]);
        let golden = "fb7a6f03 000d 04 62616e6b 07 5ac3bc72696368 6163636f756e742f37";
        let key = Key::Persistent { path: bank.as_path(), id: b"account/7" };
        assert_eq!(key.encode().unwrap(), hex(golden));
        assert_eq!(Key::parse(&hex(golden)), Ok(key));

        let id = SystemId::Stamped { boot: BOOT, count: 9 }.object_id();
        let one = path(&["a"]);
        let key = Key::Persistent { path: one.as_path(), id: id.as_slice() };
        assert_eq!(key.encode().unwrap(), hex("fb7a6f03 0002 01 61 0102030405060708 00000009"));
    }

    #[test]
    fn other_forms_have_the_documented_encoding() {
        let slot = SlotId { index: 0x0a0b_0c0d, generation: 7 };
        #[cfg(feature = "experiments")]
        let two = path(&["a", "bc"]);
        for (key, bytes, id_offset) in [
            (Key::Active { boot: BOOT, slot }, "fb7a6f01 0102030405060708 0a0b0c0d 00000007", 12),
            (
                Key::Transient { boot: BOOT, poa: slot, id: b"x" },
                "fb7a6f02 0102030405060708 0a0b0c0d 00000007 78",
                20,
            ),
            #[cfg(feature = "experiments")]
            (
                Key::Layered { boot: BOOT, number: 0x0a0b_0c0d, path: two.as_path(), id: b"x" },
                "fb7a6f04 0102030405060708 0a0b0c0d 0005 0161 026263 78",
                23,
            ),
            (Key::Plain(b"Account"), "4163636f756e74", 0),
            (Key::Plain(b""), "", 0),
        ] {
            let bytes = hex(bytes);
            assert_eq!(key.encode().unwrap(), bytes);
            assert_eq!(Key::parse(&bytes), Ok(key));
            assert_eq!(key.id_offset(), id_offset, "{key:?}");
            assert_eq!(key.object_id().as_slice(), &bytes[id_offset..]);
        }
    }

    #[test]
    fn truncated_keys_and_unknown_forms_are_malformed() {
        let all = [
            ("fb7a6f01 0102030405060708 0a0b0c0d 00000007", 0),
            ("fb7a6f02 0102030405060708 0a0b0c0d 00000007", 0),
            ("fb7a6f03 0005 0161 026263", 0),
            #[cfg(feature = "experiments")]
            ("fb7a6f04 0102030405060708 0a0b0c0d 0005 0161 026263", 0),
            ("fb7a6f03 0000 6964", 2),
        ];
        for (bytes, id) in all {
            let bytes = hex(bytes);
            for len in MAGIC.len()..bytes.len() - id {
                assert_eq!(Key::parse(&bytes[..len]), Err(MalformedKey), "{len} bytes of {bytes:02x?}");
            }
            assert!(Key::parse(&bytes).is_ok());
        }
        assert_eq!(Key::parse(&hex("fb7a6f01 0102030405060708 0a0b0c0d 00000007 00")), Err(MalformedKey));
        let last = if cfg!(feature = "experiments") { 4 } else { 3 };
        for form in (0..=u8::MAX).filter(|form| !(1..=last).contains(form)) {
            let bytes = [&MAGIC[..], &[form], &[0; 16]].concat();
            assert_eq!(Key::parse(&bytes), Err(MalformedKey), "form {form}");
        }
    }

    #[test]
    fn plain_key_with_the_reserved_prefix_is_an_error() {
        for bytes in [&MAGIC[..], b"\xfbzo\x01", b"\xfbzo\x01 and more", b"\xfbzo\x7f"] {
            assert!(is_reserved(bytes));
            assert_eq!(Key::Plain(bytes).encode(), Err(KeyError::Reserved));
        }
        for bytes in [&MAGIC[..2], b"zo", b"\xfbz\xff"] {
            assert_eq!(Key::Plain(bytes).encode().unwrap(), bytes);
        }
    }

    #[test]
    fn keys_have_at_most_64_kib() {
        let most = vec![b'k'; MAX_KEY_BYTES];
        assert_eq!(Key::Plain(&most).encode().as_deref(), Ok(&most[..]));
        assert_eq!(Key::parse(&most), Ok(Key::Plain(&most)));
        let more = vec![b'k'; MAX_KEY_BYTES + 1];
        assert_eq!(Key::Plain(&more).encode(), Err(KeyError::TooLong(MAX_KEY_BYTES + 1)));
        assert_eq!(Key::parse(&more), Err(MalformedKey));
    }

    #[test]
    fn length_and_number_of_names_are_bounded() {
        let root = PoaPathBuf::default();
        assert_eq!(root.as_path().names().unwrap().count(), 0);
        assert_eq!(root.child(""), Err(NameError::Empty));
        assert_eq!(root.child(&"x".repeat(256)), Err(NameError::TooLong(256)));
        let longest = "x".repeat(255);
        let mut deep = root;
        for depth in 1..=MAX_POA_DEPTH {
            deep = deep.child(&longest).unwrap();
            assert_eq!(deep.as_path().names().unwrap().count(), depth);
        }
        assert_eq!(deep.child("one more"), Err(NameError::TooDeep));
        let key = Key::Persistent { path: deep.as_path(), id: b"an id" };
        let bytes = key.encode().unwrap();
        assert!(bytes.len() <= MAX_KEY_BYTES);
        assert_eq!(Key::parse(&bytes), Ok(key));
    }

    #[test]
    fn malformed_path_is_an_error_before_the_first_name_is_returned() {
        for names in ["00", "0161 00", "0261", "0161 05 6262", "01ff", "02c3", &"0161".repeat(256)] {
            let names = hex(names);
            assert!(PoaPath(&names).names().is_err(), "{names:02x?}");
        }
        let names = hex("0161 026263");
        assert_eq!(PoaPath(&names).names().unwrap().collect::<Vec<_>>(), ["a", "bc"]);
    }

    fn names() -> impl Strategy<Value = PoaPathBuf> {
        prop::collection::vec("[a-zA-Z0-9 /ä€𝄞]{1,20}", 0..8).prop_map(|names| {
            names.iter().fold(PoaPathBuf::default(), |path, name| path.child(name).unwrap_or(path))
        })
    }

    /// Bytes that often resemble a key.
    fn key_bytes() -> impl Strategy<Value = Vec<u8>> {
        let body = prop::collection::vec(prop_oneof![Just(0), 0..8u8, any::<u8>()], 0..40);
        prop_oneof![
            body.clone(),
            (0..6u8, body.clone()).prop_map(|(form, body)| [&MAGIC[..], &[form], &body].concat()),
            (0..3usize, body).prop_map(|(len, body)| [&MAGIC[..len], &body].concat()),
        ]
    }

    proptest! {
        #[test]
        fn parsed_keys_encode_to_the_same_bytes(bytes in key_bytes()) {
            if let Ok(key) = Key::parse(&bytes) {
                prop_assert_eq!(key.encode().unwrap(), bytes.clone());
                let id = key.object_id();
                prop_assert_eq!(id.as_slice(), &bytes[key.id_offset()..]);
                let path = match key {
                    Key::Persistent { path, .. } => Some(path),
                    #[cfg(feature = "experiments")]
                    Key::Layered { path, .. } => Some(path),
                    _ => None,
                };
                if let Some(path) = path
                    && let Ok(names) = path.names()
                {
                    let again = names.fold(PoaPathBuf::default(), |path, name| path.child(name).unwrap());
                    prop_assert_eq!(again.as_path(), path);
                }
            }
        }

        #[test]
        fn encoded_keys_parse_to_the_same_key(
            form in 0..5u8,
            boot: BootId,
            index: u32,
            generation: u32,
            path in names(),
            id in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let slot = SlotId { index, generation };
            let key = match form {
                0 => Key::Active { boot, slot },
                1 => Key::Transient { boot, poa: slot, id: &id },
                2 => Key::Persistent { path: path.as_path(), id: &id },
                #[cfg(feature = "experiments")]
                3 => Key::Layered { boot, number: index, path: path.as_path(), id: &id },
                _ => Key::Plain(&id),
            };
            if let Ok(bytes) = key.encode() {
                prop_assert_eq!(Key::parse(&bytes), Ok(key));
            }
        }
    }
}

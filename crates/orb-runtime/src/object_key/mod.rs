//! Object keys: bytes that identify an object, its POA and the run of the ORB.
//!
//! There are four forms, and one more with the feature `experiments`. Keys that the ORB creates start with
//! three bytes that cannot start a text, and a fourth that selects the form:
//!
//! | form | bytes after `FB 7A 6F` | of |
//! |---|---|---|
//! | active | `01` boot(8) index(4) generation(4) | POAs with TRANSIENT, SYSTEM_ID, RETAIN and USE_ACTIVE_OBJECT_MAP_ONLY: one array access finds the object, whatever the depth of its POA |
//! | transient | `02` boot(8) POA index(4) POA generation(4) id | all other TRANSIENT POAs |
//! | persistent | `03` length of the names(2) {length(1) name} id | PERSISTENT POAs: a restart or a new build of the program changes nothing in it |
//! | layered | `04` boot(8) POA number(4) length of the names(2) {length(1) name} id | TRANSIENT POAs that are looked up name by name (`experiments`); the number distinguishes POAs that had the same name |
//! | plain | any others | objects under keys that are texts of `corbaloc:` |
//!
//! Numbers are big-endian. Any holder of a reference can forge all of it. [`Key::parse`] therefore accepts
//! any bytes, in time and memory that do not depend on their content. A parsed key encodes to the bytes that
//! it was parsed from.
//!
//! Source clause: "Object Keys" leaves them to the ORB.

mod object_id;

use std::{fmt, str};

pub use object_id::ObjectId;

/// The first bytes of keys that the ORB creates. The first byte is invalid in UTF-8, so that they never
/// collide with a plain key.
pub const MAGIC: [u8; 3] = [0xfb, b'z', b'o'];

/// The maximum length of a key in bytes: 64 KiB.
pub const MAX_KEY: usize = 1 << 16;

/// The maximum length of a POA's name in bytes.
pub const MAX_NAME: usize = 255;

/// The maximum number of POAs on the path from below the RootPOA to another POA, including that one.
pub const MAX_DEPTH: usize = 255;

const ACTIVE: u8 = 1;
const TRANSIENT: u8 = 2;
const PERSISTENT: u8 = 3;
#[cfg(feature = "experiments")]
const LAYERED: u8 = 4;

/// Identifies a run of an ORB.
pub type Boot = [u8; 8];

/// An object key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'a> {
    /// An object by its slot in the table of all objects.
    Active {
        /// The run that created the key.
        boot: Boot,
        /// The slot of the object.
        place: Place,
    },
    /// An object by the slot of its POA and its id there.
    Transient {
        /// The run that created the key.
        boot: Boot,
        /// The slot of the POA.
        poa: Place,
        /// The id of the object.
        id: &'a [u8],
    },
    /// An object by the names of its POAs and its id there, in any run.
    Persistent {
        /// The path of the POA.
        path: Path<'a>,
        /// The id of the object.
        id: &'a [u8],
    },
    /// An object by the names of its POAs and its id there, in one run only.
    #[cfg(feature = "experiments")]
    Layered {
        /// The run that created the key.
        boot: Boot,
        /// The number of the POA within the run.
        number: u32,
        /// The path of the POA.
        path: Path<'a>,
        /// The id of the object.
        id: &'a [u8],
    },
    /// Bytes that the ORB did not create: they are the object's id.
    Plain(&'a [u8]),
}

/// A slot of a table that reuses its slots: index and generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The index of the slot.
    pub index: u32,
    /// Distinguishes the successive occupants of the slot.
    pub generation: u32,
}

/// The names of the POAs on the path from below the RootPOA, as encoded in a key: each preceded by its
/// length.
///
/// The names are validated when they are read, because a received path may hold any bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path<'a>(&'a [u8]);

/// An owned path, whose names are valid.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct PathBuf(Box<[u8]>);

/// The bytes are not a valid key or path. The object cannot exist: `OBJECT_NOT_EXIST`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a form of object key that this ORB makes")]
pub struct Malformed;

/// An error of [`Key::encode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// It would be longer than [`MAX_KEY`] bytes.
    #[error("an object key of {0} octets is too long: the limit is {MAX_KEY}")]
    TooLong(usize),
    /// A plain key starts like one that the ORB creates.
    #[error("a key that starts with FB 7A 6F (hexadecimal) is reserved for the ORB")]
    Reserved,
}

/// An error of a POA's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoName {
    /// It is empty.
    #[error("the name of a POA is empty")]
    Empty,
    /// It is longer than [`MAX_NAME`] bytes.
    #[error("the name of a POA has {0} octets: the limit is {MAX_NAME}")]
    TooLong(usize),
    /// The POA would be more than [`MAX_DEPTH`] levels deep.
    #[error("more than {MAX_DEPTH} POAs are above each other")]
    TooDeep,
}

impl<'a> Key<'a> {
    /// Parses a key. Reads at most the first 20 bytes and the length.
    ///
    /// # Errors
    /// The bytes start like a key of the ORB but have no valid form, or are longer than [`MAX_KEY`].
    #[inline]
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        if octets.len() > MAX_KEY {
            return Err(Malformed);
        }
        let Some((form, rest)) = made_here(octets) else { return Ok(Self::Plain(octets)) };
        match *form.first().ok_or(Malformed)? {
            PERSISTENT => {
                let (path, id) = Path::split(rest)?;
                Ok(Self::Persistent { path, id })
            }
            form => {
                let (boot, rest) = rest.split_first_chunk().ok_or(Malformed)?;
                let boot = *boot;
                match form {
                    ACTIVE => {
                        let place = rest.try_into().map_err(|_| Malformed)?;
                        Ok(Self::Active { boot, place: Place::from_octets(place) })
                    }
                    TRANSIENT => {
                        let (poa, id) = rest.split_first_chunk().ok_or(Malformed)?;
                        Ok(Self::Transient { boot, poa: Place::from_octets(*poa), id })
                    }
                    #[cfg(feature = "experiments")]
                    LAYERED => {
                        let (number, rest) = rest.split_first_chunk().ok_or(Malformed)?;
                        let (path, id) = Path::split(rest)?;
                        Ok(Self::Layered { boot, number: u32::from_be_bytes(*number), path, id })
                    }
                    _ => Err(Malformed),
                }
            }
        }
    }

    /// Encodes the key to the bytes that [`parse`](Self::parse) accepts.
    ///
    /// # Errors
    /// The key would be too long, or a plain key starts like one of the ORB's.
    pub fn encode(&self) -> Result<Vec<u8>, NoKey> {
        let mut octets = Vec::new();
        let mut put = |parts: &[&[u8]]| {
            octets.reserve_exact(parts.iter().map(|part| part.len()).sum());
            parts.iter().for_each(|part| octets.extend_from_slice(part));
        };
        match self {
            Self::Active { boot, place } => put(&[&MAGIC, &[ACTIVE], boot, &place.octets()]),
            Self::Transient { boot, poa, id } => put(&[&MAGIC, &[TRANSIENT], boot, &poa.octets(), id]),
            Self::Persistent { path, id } => put(&[&MAGIC, &[PERSISTENT], &path.len_octets(), path.0, id]),
            #[cfg(feature = "experiments")]
            Self::Layered { boot, number, path, id } => {
                let number = &number.to_be_bytes();
                put(&[&MAGIC, &[LAYERED], boot, number, &path.len_octets(), path.0, id]);
            }
            Self::Plain(id) if is_reserved(id) => return Err(NoKey::Reserved),
            Self::Plain(id) => put(&[id]),
        }
        if octets.len() > MAX_KEY { Err(NoKey::TooLong(octets.len())) } else { Ok(octets) }
    }

    /// Returns the offset of the object's id, which extends to the end of the key. The objects of a POA share
    /// the bytes before it.
    #[inline]
    #[must_use]
    pub fn id_at(&self) -> usize {
        match self {
            Self::Active { .. } => MAGIC.len() + 1 + 8,
            Self::Transient { .. } => MAGIC.len() + 1 + 8 + 8,
            Self::Persistent { path, .. } => MAGIC.len() + 1 + 2 + path.0.len(),
            #[cfg(feature = "experiments")]
            Self::Layered { path, .. } => MAGIC.len() + 1 + 8 + 4 + 2 + path.0.len(),
            Self::Plain(_) => 0,
        }
    }

    /// Returns the path of the object's POA. An active or transient key has the slot of the object or POA in its place.
    #[must_use]
    pub fn path(&self) -> Option<Path<'a>> {
        match *self {
            Self::Persistent { path, .. } => Some(path),
            #[cfg(feature = "experiments")]
            Self::Layered { path, .. } => Some(path),
            Self::Active { .. } | Self::Transient { .. } | Self::Plain(_) => None,
        }
    }

    /// Returns the object's id in its POA. The id in an active key is the bytes of the slot.
    #[must_use]
    pub fn object_id(&self) -> ObjectId {
        match self {
            Self::Active { place, .. } => place.octets().into(),
            Self::Transient { id, .. } | Self::Persistent { id, .. } | Self::Plain(id) => (*id).into(),
            #[cfg(feature = "experiments")]
            Self::Layered { id, .. } => (*id).into(),
        }
    }
}

/// Returns whether a key starts like one that the ORB creates.
#[must_use]
pub fn is_reserved(octets: &[u8]) -> bool {
    octets.starts_with(&MAGIC)
}

/// Splits a key that the ORB created into the form, empty if missing, and the rest.
#[inline]
fn made_here(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = octets.strip_prefix(&MAGIC)?;
    Some(rest.split_at_checked(1).unwrap_or((rest, &[])))
}

impl Place {
    /// Decodes index and generation, each big-endian.
    #[inline]
    #[must_use]
    pub fn from_octets(octets: [u8; 8]) -> Self {
        let both = u64::from_be_bytes(octets);
        Self { index: (both >> 32) as u32, generation: both as u32 }
    }

    /// Encodes index and generation, each big-endian.
    #[inline]
    #[must_use]
    pub fn octets(self) -> [u8; 8] {
        (u64::from(self.index) << 32 | u64::from(self.generation)).to_be_bytes()
    }
}

impl<'a> Path<'a> {
    /// Returns the names, the child of the RootPOA first. All names are validated before this returns.
    ///
    /// # Errors
    /// A name is truncated, empty or invalid UTF-8, or there are more than [`MAX_DEPTH`].
    pub fn names(self) -> Result<impl Iterator<Item = &'a str> + Clone, Malformed> {
        let mut rest = self.0;
        let mut names = 0;
        while !rest.is_empty() {
            (_, rest) = first_name(rest).ok_or(Malformed)?;
            names += 1;
        }
        if names > MAX_DEPTH {
            return Err(Malformed);
        }
        let mut rest = self.0;
        Ok(std::iter::from_fn(move || {
            let (name, behind) = first_name(rest)?;
            rest = behind;
            Some(name)
        }))
    }

    /// Returns the encoded names, which identify the path.
    #[must_use]
    pub fn as_slice(self) -> &'a [u8] {
        self.0
    }

    /// Splits the path from the bytes that follow it.
    #[inline]
    fn split(octets: &'a [u8]) -> Result<(Self, &'a [u8]), Malformed> {
        let (len, rest) = octets.split_first_chunk().ok_or(Malformed)?;
        let (path, id) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len))).ok_or(Malformed)?;
        Ok((Self(path), id))
    }

    fn len_octets(self) -> [u8; 2] {
        // The length fits: 255 names of 256 bytes, or a path from a key, are less than 65,536 bytes.
        u16::try_from(self.0.len()).unwrap_or(u16::MAX).to_be_bytes()
    }
}

fn first_name(octets: &[u8]) -> Option<(&str, &[u8])> {
    let (&len, rest) = octets.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(len))?;
    if name.is_empty() { None } else { Some((str::from_utf8(name).ok()?, rest)) }
}

impl PathBuf {
    /// Returns the path of a POA of that name below the POA of this path.
    ///
    /// # Errors
    /// The name is empty or too long, or the POA would be too deep.
    pub fn child(&self, name: &str) -> Result<Self, NoName> {
        let len = match u8::try_from(name.len()) {
            Ok(0) => return Err(NoName::Empty),
            Ok(len) => len,
            Err(_) => return Err(NoName::TooLong(name.len())),
        };
        if self.as_path().names().map_or(MAX_DEPTH, Iterator::count) >= MAX_DEPTH {
            return Err(NoName::TooDeep);
        }
        Ok(Self([&*self.0, &[len], name.as_bytes()].concat().into_boxed_slice()))
    }

    /// Returns the path as encoded in a key.
    #[must_use]
    pub fn as_path(&self) -> Path<'_> {
        Path(&self.0)
    }
}

impl fmt::Debug for PathBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().fmt(f)
    }
}

impl fmt::Debug for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names() {
            Ok(names) => f.debug_list().entries(names).finish(),
            Err(Malformed) => write!(f, "Path({})", self.0.escape_ascii()),
        }
    }
}

/// An id that a POA with SYSTEM_ID chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemId {
    /// Chosen by a TRANSIENT POA: a number that counts up.
    Counted(u64),
    /// Chosen by a PERSISTENT POA. No other run of the program chooses it again.
    Stamped {
        /// The run that chose it.
        boot: Boot,
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
                let mut octets = [0; 12];
                let (stamp, number) = octets.split_at_mut(boot.len());
                stamp.copy_from_slice(&boot);
                number.copy_from_slice(&count.to_be_bytes());
                octets.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOOT: Boot = [1, 2, 3, 4, 5, 6, 7, 8];

    fn path(names: &[&str]) -> PathBuf {
        names.iter().fold(PathBuf::default(), |path, name| path.child(name).unwrap())
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// References outlive the program that created them, so these bytes must never change.
    // clause: poa.id.persistent_key, ior.key.stable
    #[test]
    fn a_persistent_key_has_the_octets_that_it_always_had() {
        let bank = path(&["bank", "Zürich"]);
        let golden = "fb7a6f03 000d 04 62616e6b 07 5ac3bc72696368 6163636f756e742f37";
        let key = Key::Persistent { path: bank.as_path(), id: b"account/7" };
        assert_eq!(key.encode().unwrap(), hex(golden));
        assert_eq!(Key::parse(&hex(golden)), Ok(key));

        let chosen = SystemId::Stamped { boot: BOOT, count: 9 }.object_id();
        let one = path(&["a"]);
        let key = Key::Persistent { path: one.as_path(), id: chosen.as_slice() };
        assert_eq!(key.encode().unwrap(), hex("fb7a6f03 0002 01 61 0102030405060708 00000009"));
    }

    #[test]
    fn the_other_forms_are_as_they_are_described() {
        let place = Place { index: 0x0a0b_0c0d, generation: 7 };
        let two = path(&["a", "bc"]);
        for (key, octets, id_at) in [
            (Key::Active { boot: BOOT, place }, "fb7a6f01 0102030405060708 0a0b0c0d 00000007", 12),
            (
                Key::Transient { boot: BOOT, poa: place, id: b"x" },
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
            let octets = hex(octets);
            assert_eq!(key.encode().unwrap(), octets);
            assert_eq!(Key::parse(&octets), Ok(key));
            assert_eq!(key.id_at(), id_at, "{key:?}");
            assert_eq!(key.object_id().as_slice(), &octets[id_at..]);
        }
    }

    #[test]
    fn keys_of_the_orb_that_are_cut_or_of_no_form_are_malformed() {
        let all = [
            ("fb7a6f01 0102030405060708 0a0b0c0d 00000007", 0),
            ("fb7a6f02 0102030405060708 0a0b0c0d 00000007", 0),
            ("fb7a6f03 0005 0161 026263", 0),
            #[cfg(feature = "experiments")]
            ("fb7a6f04 0102030405060708 0a0b0c0d 0005 0161 026263", 0),
            ("fb7a6f03 0000 6964", 2),
        ];
        for (octets, id) in all {
            let octets = hex(octets);
            for len in MAGIC.len()..octets.len() - id {
                assert_eq!(Key::parse(&octets[..len]), Err(Malformed), "{len} octets of {octets:02x?}");
            }
            assert!(Key::parse(&octets).is_ok());
        }
        assert_eq!(Key::parse(&hex("fb7a6f01 0102030405060708 0a0b0c0d 00000007 00")), Err(Malformed));
        let last = if cfg!(feature = "experiments") { 4 } else { 3 };
        for form in (0..=u8::MAX).filter(|form| !(1..=last).contains(form)) {
            let octets = [&MAGIC[..], &[form], &[0; 16]].concat();
            assert_eq!(Key::parse(&octets), Err(Malformed), "form {form}");
        }
    }

    #[test]
    fn a_plain_key_never_looks_like_one_of_the_orb() {
        for octets in [&MAGIC[..], b"\xfbzo\x01", b"\xfbzo\x01 and more", b"\xfbzo\x7f"] {
            assert!(is_reserved(octets));
            assert_eq!(Key::Plain(octets).encode(), Err(NoKey::Reserved));
        }
        for octets in [&MAGIC[..2], b"zo", b"\xfbz\xff"] {
            assert_eq!(Key::Plain(octets).encode().unwrap(), octets);
        }
    }

    #[test]
    fn keys_have_at_most_64_kib() {
        let most = vec![b'k'; MAX_KEY];
        assert_eq!(Key::Plain(&most).encode().as_deref(), Ok(&most[..]));
        assert_eq!(Key::parse(&most), Ok(Key::Plain(&most)));
        let more = vec![b'k'; MAX_KEY + 1];
        assert_eq!(Key::Plain(&more).encode(), Err(NoKey::TooLong(MAX_KEY + 1)));
        assert_eq!(Key::parse(&more), Err(Malformed));
    }

    #[test]
    fn names_have_bounds() {
        let root = PathBuf::default();
        assert_eq!(root.as_path().names().unwrap().count(), 0);
        assert_eq!(root.child(""), Err(NoName::Empty));
        assert_eq!(root.child(&"x".repeat(256)), Err(NoName::TooLong(256)));
        let longest = "x".repeat(255);
        let mut deep = root;
        for depth in 1..=MAX_DEPTH {
            deep = deep.child(&longest).unwrap();
            assert_eq!(deep.as_path().names().unwrap().count(), depth);
        }
        assert_eq!(deep.child("one more"), Err(NoName::TooDeep));
        let key = Key::Persistent { path: deep.as_path(), id: b"an id" };
        let octets = key.encode().unwrap();
        assert!(octets.len() <= MAX_KEY);
        assert_eq!(Key::parse(&octets), Ok(key));
    }

    #[test]
    fn paths_of_strangers_are_looked_at_whole_before_a_name_is_given() {
        for names in ["00", "0161 00", "0261", "0161 05 6262", "01ff", "02c3", &"0161".repeat(256)] {
            let names = hex(names);
            assert!(Path(&names).names().is_err(), "{names:02x?}");
        }
        let names = hex("0161 026263");
        assert_eq!(Path(&names).names().unwrap().collect::<Vec<_>>(), ["a", "bc"]);
    }

    fn names() -> impl Strategy<Value = PathBuf> {
        prop::collection::vec("[a-zA-Z0-9 /ä€𝄞]{1,20}", 0..8).prop_map(|names| {
            names.iter().fold(PathBuf::default(), |path, name| path.child(name).unwrap_or(path))
        })
    }

    /// Bytes that often resemble a key.
    fn octets() -> impl Strategy<Value = Vec<u8>> {
        let body = prop::collection::vec(prop_oneof![Just(0), 0..8u8, any::<u8>()], 0..40);
        prop_oneof![
            body.clone(),
            (0..6u8, body.clone()).prop_map(|(form, body)| [&MAGIC[..], &[form], &body].concat()),
            (0..3usize, body).prop_map(|(len, body)| [&MAGIC[..len], &body].concat()),
        ]
    }

    proptest! {
        #[test]
        fn octets_that_parse_encode_to_themselves(octets in octets()) {
            if let Ok(key) = Key::parse(&octets) {
                prop_assert_eq!(key.encode().unwrap(), octets.clone());
                let id = key.object_id();
                prop_assert_eq!(id.as_slice(), &octets[key.id_at()..]);
                let path = match key {
                    Key::Persistent { path, .. } => Some(path),
                    #[cfg(feature = "experiments")]
                    Key::Layered { path, .. } => Some(path),
                    _ => None,
                };
                if let Some(path) = path
                    && let Ok(names) = path.names()
                {
                    let again = names.fold(PathBuf::default(), |path, name| path.child(name).unwrap());
                    prop_assert_eq!(again.as_path(), path);
                }
            }
        }

        #[test]
        fn keys_that_encode_parse_to_themselves(
            form in 0..5u8,
            boot: Boot,
            index: u32,
            generation: u32,
            path in names(),
            id in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let place = Place { index, generation };
            let key = match form {
                0 => Key::Active { boot, place },
                1 => Key::Transient { boot, poa: place, id: &id },
                2 => Key::Persistent { path: path.as_path(), id: &id },
                #[cfg(feature = "experiments")]
                3 => Key::Layered { boot, number: index, path: path.as_path(), id: &id },
                _ => Key::Plain(&id),
            };
            if let Ok(octets) = key.encode() {
                prop_assert_eq!(Key::parse(&octets), Ok(key));
            }
        }
    }
}

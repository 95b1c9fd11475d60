//! Characters, [`Char`] and [`WChar`], and the transmission code sets of text.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::code_set_id::CodeSetId;
use super::converted::ConvertedSet;
use crate::Version;

/// Transmission code set of `char` and `string` (TCS-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CharSet {
    /// ISO 8859-1, the default without negotiation.
    #[default]
    Latin1,
    /// UTF-8.
    Utf8,
    /// Another one, converted by a table.
    Converted(ConvertedSet),
}

/// Transmission code set of `wchar` and `wstring` (TCS-W).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WCharSet {
    /// UTF-16.
    Utf16,
    /// UCS-2: UTF-16 without surrogates.
    Ucs2,
    /// UCS-4.
    Ucs4,
}

/// The treatment of a `string` or `wstring` that is not valid in its transmission code set.
///
/// A lone half of a surrogate pair is valid: [`WString`](crate::cdr::WString) keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidText {
    /// The text is rejected: `DATA_CONVERSION` minor OMG 1.
    #[default]
    Refuse,
    /// Each invalid sequence is replaced by U+FFFD.
    Replace,
    /// All bytes of such a `string` are taken as characters of ISO 8859-1. In a `wstring` (of UCS-4) invalid
    /// characters are replaced by U+FFFD.
    Latin1,
}

/// The transmission code sets of a connection ("Code Set Negotiation").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeSets {
    /// For `char` and `string`.
    pub char: CharSet,
    /// For `wchar` and `wstring`; `None` if the peers agreed on none.
    pub wchar: Option<WCharSet>,
}

impl CodeSets {
    /// Returns the initial code sets of encoders and decoders: ISO 8859-1, and UTF-16 for wide text. GIOP 1.0
    /// has no wide text.
    #[inline]
    pub const fn default_for(version: Version) -> CodeSets {
        let wchar = match version {
            Version::V1_0 => None,
            Version::V1_1 | Version::V1_2 => Some(WCharSet::Utf16),
        };
        CodeSets { char: CharSet::Latin1, wchar }
    }

    /// Returns the code sets inside an encapsulation, which may be forwarded to places without negotiation.
    #[inline]
    pub(crate) const fn in_encapsulation(self) -> CodeSets {
        CodeSets { char: self.char, wchar: Some(WCharSet::Utf16) }
    }
}

impl CharSet {
    /// The result of negotiation when client and server have no code set in common: all text is
    /// `CODESET_INCOMPATIBLE` minor OMG 1.
    pub const NOTHING: Self = Self::Converted(ConvertedSet::NOTHING);

    /// Returns the set with that number in the registry, if this build has it. The feature `encoding_rs` adds
    /// further sets.
    pub fn from_id(id: CodeSetId) -> Option<Self> {
        match id {
            CodeSetId::ISO_8859_1 => Some(Self::Latin1),
            CodeSetId::UTF_8 => Some(Self::Utf8),
            id => ConvertedSet::from_id(id).map(Self::Converted),
        }
    }

    /// Returns its number in the registry; if it has several, the usual one.
    pub fn id(self) -> CodeSetId {
        match self {
            Self::Latin1 => CodeSetId::ISO_8859_1,
            Self::Utf8 => CodeSetId::UTF_8,
            Self::Converted(set) => set.id(),
        }
    }

    /// Returns whether ASCII text has the same bytes as in UTF-8.
    pub(crate) fn has_ascii(self) -> bool {
        match self {
            Self::Latin1 | Self::Utf8 => true,
            Self::Converted(set) => set.has_ascii(),
        }
    }
}

impl WCharSet {
    /// Returns the set with that number in the registry, if it is one of these.
    pub fn from_id(id: CodeSetId) -> Option<Self> {
        match id.0 {
            0x0001_0109 => Some(Self::Utf16),
            0x0001_0100..=0x0001_0102 => Some(Self::Ucs2),
            0x0001_0104..=0x0001_0106 => Some(Self::Ucs4),
            _ => None,
        }
    }

    /// Returns its number in the registry; if it has several, the one that ORBs use.
    pub fn id(self) -> CodeSetId {
        match self {
            Self::Utf16 => CodeSetId::UTF_16,
            Self::Ucs2 => CodeSetId::UCS_2,
            Self::Ucs4 => CodeSetId::UCS_4_LEVEL_3,
        }
    }
}

/// An IDL `char`: one byte of the transmission code set, which is sent and received unconverted.
///
/// Conversions from and to Rust's `char` interpret it as ISO 8859-1. If UTF-8 was negotiated, bytes above
/// 0x7F are not characters by themselves, and a receiver may reject them. If the set is an EBCDIC one, the
/// byte is of that set, too.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct Char(pub u8);

/// An IDL `wchar`: one UTF-16 unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct WChar(pub u16);

/// The error of a Rust `char` that the IDL type cannot hold, or of the reverse conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CharConversionError(&'static str);

impl fmt::Display for CharConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for CharConversionError {}

impl TryFrom<char> for Char {
    type Error = CharConversionError;

    fn try_from(value: char) -> Result<Char, CharConversionError> {
        u8::try_from(value).map(Char).map_err(|_| CharConversionError("character is above U+00FF"))
    }
}

impl From<u8> for Char {
    fn from(octet: u8) -> Char {
        Char(octet)
    }
}

impl From<Char> for u8 {
    fn from(value: Char) -> u8 {
        value.0
    }
}

impl From<Char> for char {
    fn from(value: Char) -> char {
        char::from(value.0)
    }
}

impl fmt::Display for Char {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        char::from(self.0).fmt(f)
    }
}

impl TryFrom<char> for WChar {
    type Error = CharConversionError;

    fn try_from(value: char) -> Result<WChar, CharConversionError> {
        u16::try_from(u32::from(value))
            .map(WChar)
            .map_err(|_| CharConversionError("character is above U+FFFF"))
    }
}

impl From<u16> for WChar {
    fn from(unit: u16) -> WChar {
        WChar(unit)
    }
}

impl From<WChar> for u16 {
    fn from(value: WChar) -> u16 {
        value.0
    }
}

impl From<WChar> for char {
    /// Returns the character, or U+FFFD for half of a surrogate pair.
    fn from(value: WChar) -> char {
        char::from_u32(u32::from(value.0)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

impl fmt::Display for WChar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        char::from(*self).fmt(f)
    }
}

//! Characters, [`Char`] and [`WChar`], and the code sets that text travels in.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::converted::ConvertedSet;
use crate::Version;

/// Transmission code set of `char` and `string` (TCS-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CharSet {
    /// ISO 8859-1, what holds without negotiation.
    #[default]
    Latin1,
    /// UTF-8.
    Utf8,
    /// Another one, by a table.
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

/// What is done about a `string` or `wstring` that is not valid in its transmission code set.
///
/// Half of a surrogate pair is none of that: [`WString`](crate::cdr::WString) keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidText {
    /// The text is refused: `DATA_CONVERSION` minor OMG 1.
    #[default]
    Refuse,
    /// What is not valid is replaced by U+FFFD.
    Replace,
    /// All bytes of such a `string` are characters of ISO 8859-1; in a `wstring` (of UCS-4) what is not valid is replaced by U+FFFD.
    Latin1,
}

/// The transmission code sets of a connection ("Code Set Negotiation").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeSets {
    /// For `char` and `string`.
    pub char: CharSet,
    /// For `wchar` and `wstring`; `None` when the peers agreed on none.
    pub wchar: Option<WCharSet>,
}

impl CodeSets {
    /// What encoders and decoders assume until told otherwise: ISO 8859-1; no wide text in GIOP 1.0, UTF-16
    /// above.
    #[inline]
    pub const fn default_for(version: Version) -> CodeSets {
        let wchar = match version {
            Version::V1_0 => None,
            Version::V1_1 | Version::V1_2 => Some(WCharSet::Utf16),
        };
        CodeSets { char: CharSet::Latin1, wchar }
    }

    /// The code sets inside an encapsulation, which may travel where no negotiation took place.
    #[inline]
    pub(crate) const fn in_encapsulation(self) -> CodeSets {
        CodeSets { char: self.char, wchar: Some(WCharSet::Utf16) }
    }
}

/// An IDL `char`: one octet of the transmission code set, which is sent and received unconverted.
///
/// Conversions from and to Rust's `char` take it as ISO 8859-1. Where UTF-8 was negotiated, octets above 0x7F
/// are no characters by themselves, and a receiver may refuse them. Where the set is an EBCDIC one, the octet is of that set, too.
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

/// A Rust `char` that the IDL type cannot hold, or the other way round.
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
    /// The character, or U+FFFD for half a surrogate pair.
    fn from(value: WChar) -> char {
        char::from_u32(u32::from(value.0)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

impl fmt::Display for WChar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        char::from(*self).fmt(f)
    }
}

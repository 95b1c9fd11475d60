//! Characters, [`Char`] and [`WChar`], and the transmission code sets of text.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::code_set_id::CodeSetId;
use super::converted::ConvertedSet;
use crate::Version;

/// The transmission code set of `char` and `string` (TCS-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CharSet {
    /// ISO 8859-1, which is the default if no code set is negotiated.
    #[default]
    Latin1,
    /// UTF-8.
    Utf8,
    /// Another code set, or none (see [`CharSet::NOTHING`]).
    Converted(ConvertedSet),
}

/// The transmission code set of `wchar` and `wstring` (TCS-W).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WCharSet {
    /// UTF-16.
    Utf16,
    /// UCS-2: UTF-16 without surrogates.
    Ucs2,
    /// UCS-4.
    Ucs4,
}

/// What to do with a `string` or `wstring` that is not valid in its transmission code set. A lone half of a
/// surrogate pair is valid: [`WString`](crate::cdr::WString) preserves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvalidText {
    /// The text is rejected with `DATA_CONVERSION`, minor code OMG 1.
    #[default]
    Refuse,
    /// Each invalid sequence is replaced by U+FFFD.
    Replace,
    /// All bytes of an invalid `string` are read as characters of ISO 8859-1. Invalid characters of a
    /// `wstring` in UCS-4 are replaced by U+FFFD.
    Latin1,
}

/// The transmission code sets of a connection ("Code Set Negotiation").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeSets {
    /// The code set of `char` and `string`.
    pub char: CharSet,
    /// The code set of `wchar` and `wstring`, or `None` if wide text cannot be sent on the connection.
    pub wchar: Option<WCharSet>,
}

impl CodeSets {
    /// Returns the code sets without negotiation: ISO 8859-1 and, except in GIOP 1.0, UTF-16 for wide text.
    #[inline]
    pub const fn default_for(version: Version) -> CodeSets {
        let wchar = match version {
            Version::V1_0 => None,
            Version::V1_1 | Version::V1_2 => Some(WCharSet::Utf16),
        };
        CodeSets { char: CharSet::Latin1, wchar }
    }

    /// Returns the code sets inside an encapsulation. Wide text is UTF-16 whatever the connection uses,
    /// because the encapsulation may be forwarded on another connection.
    #[inline]
    pub(crate) const fn in_encapsulation(self) -> CodeSets {
        CodeSets { char: self.char, wchar: Some(WCharSet::Utf16) }
    }
}

impl CharSet {
    /// The result of a negotiation in which client and server have no code set in common. Sending or
    /// receiving text then fails with `CODESET_INCOMPATIBLE`, minor code OMG 1.
    pub const NOTHING: Self = Self::Converted(ConvertedSet::NOTHING);

    /// Returns the set with this number in the OSF registry, if this build supports it. The feature
    /// `encoding_rs` adds further sets.
    pub fn from_id(id: CodeSetId) -> Option<Self> {
        match id {
            CodeSetId::ISO_8859_1 => Some(Self::Latin1),
            CodeSetId::UTF_8 => Some(Self::Utf8),
            id => ConvertedSet::from_id(id).map(Self::Converted),
        }
    }

    /// Returns the number in the OSF registry. If the set has several numbers, returns the usual one.
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
    /// Returns the set with this number in the OSF registry, if it is supported.
    pub fn from_id(id: CodeSetId) -> Option<Self> {
        match id.0 {
            0x0001_0109 => Some(Self::Utf16),
            0x0001_0100..=0x0001_0102 => Some(Self::Ucs2),
            0x0001_0104..=0x0001_0106 => Some(Self::Ucs4),
            _ => None,
        }
    }

    /// Returns the number in the OSF registry. If the set has several numbers, returns the one that ORBs use.
    pub fn id(self) -> CodeSetId {
        match self {
            Self::Utf16 => CodeSetId::UTF_16,
            Self::Ucs2 => CodeSetId::UCS_2,
            Self::Ucs4 => CodeSetId::UCS_4_LEVEL_3,
        }
    }
}

/// An IDL `char`: one byte of the transmission code set. It is sent and received without conversion.
///
/// Conversions from and to Rust's `char` interpret the byte as ISO 8859-1, whatever the transmission code
/// set. If that is UTF-8, bytes above 0x7F are not characters by themselves, and a receiver may reject them.
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

/// The error of a Rust `char` that [`Char`] or [`WChar`] cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{0}")]
pub struct CharConversionError(&'static str);

/// Implements the conversions of `$ty`, which wraps a `$unit`, from and to integers and characters. Half of a
/// surrogate pair becomes U+FFFD as a character.
macro_rules! conversions {
    ($($ty:ident, $unit:ty, $error:literal;)*) => {$(
        impl TryFrom<char> for $ty {
            type Error = CharConversionError;

            fn try_from(value: char) -> Result<$ty, CharConversionError> {
                <$unit>::try_from(value).map($ty).map_err(|_| CharConversionError($error))
            }
        }

        impl From<$unit> for $ty {
            fn from(unit: $unit) -> $ty {
                $ty(unit)
            }
        }

        impl From<$ty> for $unit {
            fn from(value: $ty) -> $unit {
                value.0
            }
        }

        impl From<$ty> for char {
            fn from(value: $ty) -> char {
                char::from_u32(u32::from(value.0)).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
        }

        impl fmt::Display for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                char::from(*self).fmt(f)
            }
        }
    )*};
}

conversions! {
    Char, u8, "character is above U+00FF";
    WChar, u16, "character is above U+FFFF";
}

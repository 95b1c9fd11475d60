//! Code set negotiation: what a server offers, what a client picks, and how it tells the server.
//!
//! zorb servers offer ISO 8859-1 as native with conversion to UTF-8, so that every peer finds something, and UTF-16 for wide
//! text. zorb clients prefer UTF-8 wherever the server offers it, because that is what their strings are.

use std::error::Error;
use std::fmt;

use crate::cdr::{CdrDecode, CdrEncode, CharSet, CodeSets, Decoder, Encoder, WCharSet};
use crate::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use crate::giop::{ContextId, ServiceContext};
use crate::{DecodeError, EncodeError, Version};

/// Number of a code set in the OSF code set registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeSetId(pub u32);

impl CodeSetId {
    /// None: a server that has no wide text offers it, a client that sends none announces it.
    pub const NONE: Self = Self(0);
    /// ISO 8859-1, Latin alphabet No. 1.
    pub const ISO_8859_1: Self = Self(0x0001_0001);
    /// ISO 8859-15, the last of its family.
    pub const ISO_8859_15: Self = Self(0x0001_000f);
    /// ISO 646 IRV: ASCII.
    pub const ISO_646: Self = Self(0x0001_0020);
    /// UCS-2, level 1.
    pub const UCS_2: Self = Self(0x0001_0100);
    /// UCS-4, level 1.
    pub const UCS_4: Self = Self(0x0001_0104);
    /// UTF-16.
    pub const UTF_16: Self = Self(0x0001_0109);
    /// UTF-8.
    pub const UTF_8: Self = Self(0x0501_0001);
    /// IBM-037, EBCDIC with the characters of ISO 8859-1.
    pub const IBM_037: Self = Self(0x1002_0025);
    /// IBM-500, EBCDIC with the characters of ISO 8859-1.
    pub const IBM_500: Self = Self(0x1002_01f4);

    /// Its name where it is a known one.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "none",
            0x0001_0001 => "ISO 8859-1",
            0x0001_0002..=0x0001_000f => "ISO 8859-2 to -15",
            0x0001_0020 => "ISO 646",
            0x0001_0100..=0x0001_0102 => "UCS-2",
            0x0001_0104..=0x0001_0106 => "UCS-4",
            0x0001_0109 => "UTF-16",
            0x0501_0001 => "UTF-8",
            0x1002_0025 => "IBM-037",
            0x1002_01f4 => "IBM-500",
            _ => return None,
        })
    }

    /// Whether its characters are among those of Unicode, as far as this table knows: only then is a fallback to UTF-8 or
    /// UTF-16 compatible with it.
    const fn is_within_unicode(self) -> bool {
        self.0 != 0 && self.name().is_some()
    }
}

impl fmt::Display for CodeSetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#010x})", self.0),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

/// What one side has for one kind of text: its native set and those it converts from and to.
///
/// Source clause: "Code Set Negotiation" (`CONV_FRAME::CodeSetComponent`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeSetComponent {
    /// The set it works in; [`CodeSetId::NONE`] for none.
    pub native: CodeSetId,
    /// Further sets, best first.
    pub conversion: Vec<CodeSetId>,
}

impl CodeSetComponent {
    /// Whether the set is native or among the conversions.
    pub fn offers(&self, id: CodeSetId) -> bool {
        self.native == id || self.conversion.contains(&id)
    }
}

impl CdrEncode for CodeSetComponent {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.native.0);
        e.put_len(self.conversion.len())?;
        self.conversion.iter().for_each(|id| e.put_u32(id.0));
        Ok(())
    }
}

impl CdrDecode for CodeSetComponent {
    /// Native set and count.
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let native = CodeSetId(d.read_u32()?);
        let count = d.read_len(4)?;
        let mut conversion = d.new_vec(count)?;
        for _ in 0..count {
            conversion.push(CodeSetId(d.read_u32()?));
        }
        Ok(Self { native, conversion })
    }
}

/// What a server publishes in the `TAG_CODE_SETS` component of its profiles.
///
/// Source clause: "Code Set Negotiation" (`CONV_FRAME::CodeSetComponentInfo`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeSetComponentInfo {
    /// For `char` and `string`.
    pub for_char: CodeSetComponent,
    /// For `wchar` and `wstring`.
    pub for_wchar: CodeSetComponent,
}

impl CodeSetComponentInfo {
    /// What zorb servers publish: UTF-8 with conversion to ISO 8859-1, and UTF-16.
    ///
    /// UTF-8 is the native one because omniORB's clients take a server's native set where they can do it, even if
    /// both sides could do better by conversion.
    pub fn zorb() -> Self {
        Self {
            for_char: CodeSetComponent { native: CodeSetId::UTF_8, conversion: vec![CodeSetId::ISO_8859_1] },
            for_wchar: CodeSetComponent { native: CodeSetId::UTF_16, conversion: Vec::new() },
        }
    }
}

impl CdrEncode for CodeSetComponentInfo {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.for_char.encode(e)?;
        self.for_wchar.encode(e)
    }
}

impl CdrDecode for CodeSetComponentInfo {
    const MIN_SIZE: usize = 2 * CodeSetComponent::MIN_SIZE;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { for_char: CodeSetComponent::decode(d)?, for_wchar: CodeSetComponent::decode(d)? })
    }
}

/// The transmission code sets that a zorb client uses towards a server, picked once a connection.
///
/// For `char`: UTF-8 where the server offers it, else ISO 8859-1 where it offers that, else the fallback UTF-8 if the server's native
/// set holds only characters of Unicode. For `wchar`: UTF-16 where offered or by the same fallback, else none; wide text
/// then fails when it is used, not the calls without it. A server that publishes nothing, and every server in GIOP 1.0, takes
/// ISO 8859-1 and no wide text.
///
/// Tell the server by a [`CodeSetContext`] in the first requests on the connection.
/// Source clause: "Code Set Negotiation / Code Set Determination".
///
/// # Errors
/// [`CodeSetError::NothingInCommon`]: `CODESET_INCOMPATIBLE` minor 1.
pub fn negotiate(server: Option<&CodeSetComponentInfo>, version: Version) -> Result<CodeSets, CodeSetError> {
    let server = match server {
        Some(server) if version > Version::V1_0 => server,
        _ => return Ok(CodeSets { char: CharSet::Latin1, wchar: None }),
    };
    let (narrow, wide) = (&server.for_char, &server.for_wchar);
    let char = if narrow.offers(CodeSetId::UTF_8) {
        CharSet::Utf8
    } else if narrow.offers(CodeSetId::ISO_8859_1) {
        CharSet::Latin1
    } else if narrow.native.is_within_unicode() {
        CharSet::Utf8
    } else {
        return Err(CodeSetError::NothingInCommon(narrow.native));
    };
    let utf_16 = wide.offers(CodeSetId::UTF_16) || wide.native.is_within_unicode();
    Ok(CodeSets { char, wchar: utf_16.then_some(WCharSet::Utf16) })
}

/// What a client announces to the server in the `CodeSets` service context.
///
/// Source clause: "Code Set Negotiation" (`CONV_FRAME::CodeSetContext`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeSetContext {
    /// Transmission code set of `char` and `string`.
    pub char_data: CodeSetId,
    /// Transmission code set of `wchar` and `wstring`; [`CodeSetId::NONE`] if the client will send none.
    pub wchar_data: CodeSetId,
}

impl CodeSetContext {
    /// The service context to send.
    ///
    /// # Errors
    /// None today.
    pub fn to_service_context(self) -> Result<ServiceContext, EncodeError> {
        ServiceContext::encapsulate(ContextId::CODE_SETS, &self)
    }

    /// The server's side: the code sets to use on the connection that this context came on.
    ///
    /// `previous` is what an earlier context on the connection set up.
    ///
    /// # Errors
    /// [`CodeSetError::Unsupported`]: `CODESET_INCOMPATIBLE` minor 2; [`CodeSetError::Changed`]: `MARSHAL` minor 9.
    pub fn accept(self, previous: Option<CodeSets>) -> Result<CodeSets, CodeSetError> {
        let char = match self.char_data {
            CodeSetId::ISO_8859_1 | CodeSetId::NONE => CharSet::Latin1,
            CodeSetId::UTF_8 => CharSet::Utf8,
            other => return Err(CodeSetError::Unsupported(other)),
        };
        let wchar = match self.wchar_data {
            CodeSetId::NONE => None,
            CodeSetId::UTF_16 => Some(WCharSet::Utf16),
            other => return Err(CodeSetError::Unsupported(other)),
        };
        let accepted = CodeSets { char, wchar };
        if previous.is_some_and(|previous| previous != accepted) {
            Err(CodeSetError::Changed)
        } else {
            Ok(accepted)
        }
    }
}

impl From<CodeSets> for CodeSetContext {
    fn from(sets: CodeSets) -> Self {
        let char_data = match sets.char {
            CharSet::Latin1 => CodeSetId::ISO_8859_1,
            CharSet::Utf8 => CodeSetId::UTF_8,
        };
        let wchar_data = match sets.wchar {
            None => CodeSetId::NONE,
            Some(WCharSet::Utf16) => CodeSetId::UTF_16,
        };
        Self { char_data, wchar_data }
    }
}

impl CdrEncode for CodeSetContext {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.char_data.0);
        e.put_u32(self.wchar_data.0);
        Ok(())
    }
}

impl CdrDecode for CodeSetContext {
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self { char_data: CodeSetId(d.read_u32()?), wchar_data: CodeSetId(d.read_u32()?) })
    }
}

/// Why two sides cannot exchange text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeSetError {
    /// The server's native set is this one, and no set serves both sides.
    NothingInCommon(CodeSetId),
    /// The client announced this set, which the server does not have.
    Unsupported(CodeSetId),
    /// The client announced other sets before on the same connection.
    Changed,
}

impl fmt::Display for CodeSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingInCommon(native) => {
                write!(f, "server's native code set is {native}; it takes neither UTF-8 nor ISO 8859-1")
            }
            Self::Unsupported(id) => {
                write!(f, "client uses code set {id}; ISO 8859-1, UTF-8 and (wide) UTF-16 are supported")
            }
            Self::Changed => f.write_str("client announced other code sets earlier on this connection"),
        }
    }
}

impl Error for CodeSetError {}

/// `COMPLETED_NO`: negotiation comes before the operation.
impl From<CodeSetError> for SystemException {
    #[cold]
    fn from(error: CodeSetError) -> Self {
        let (kind, minor) = match error {
            CodeSetError::NothingInCommon(_) => {
                (SystemExceptionKind::CodesetIncompatible, minor::CODESET_INCOMPATIBLE_NEGOTIATION)
            }
            CodeSetError::Unsupported(_) => {
                (SystemExceptionKind::CodesetIncompatible, minor::CODESET_INCOMPATIBLE_DELIVERED)
            }
            CodeSetError::Changed => (SystemExceptionKind::Marshal, minor::MARSHAL_CODE_SETS_CHANGED),
        };
        Self::new(kind, minor, CompletionStatus::No).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(native: u32, conversion: &[u32], wide: u32, wide_conversion: &[u32]) -> CodeSetComponentInfo {
        let component = |native, conversion: &[u32]| CodeSetComponent {
            native: CodeSetId(native),
            conversion: conversion.iter().copied().map(CodeSetId).collect(),
        };
        CodeSetComponentInfo {
            for_char: component(native, conversion),
            for_wchar: component(wide, wide_conversion),
        }
    }

    #[test]
    fn client_prefers_utf_8_then_latin_1_then_falls_back() {
        let utf16 = Some(WCharSet::Utf16);
        let table = [
            // omniORB, glassfish, Latin-1 only, UTF-8 native, Latin-2 only, EBCDIC, no wide text
            (info(0x10001, &[0x0501_0001], 0x10109, &[0x10109]), CharSet::Utf8, utf16),
            (info(0x10001, &[0x0501_0001, 0x10020], 0x10109, &[0x10100]), CharSet::Utf8, utf16),
            (info(0x10001, &[], 0x10109, &[]), CharSet::Latin1, utf16),
            (info(0x0501_0001, &[], 0x10100, &[0x10109]), CharSet::Utf8, utf16),
            (info(0x10002, &[], 0x10100, &[]), CharSet::Utf8, utf16),
            (info(0x1002_0025, &[0x10001], 0x10104, &[]), CharSet::Latin1, utf16),
            (info(0x10001, &[], 0, &[]), CharSet::Latin1, None),
            (info(0x10001, &[], 0x7777_7777, &[]), CharSet::Latin1, None),
        ];
        for (server, char, wchar) in table {
            assert_eq!(negotiate(Some(&server), Version::V1_2), Ok(CodeSets { char, wchar }), "{server:?}");
        }
    }

    #[test]
    fn without_component_or_in_giop_1_0_there_is_latin_1_and_no_wide_text() {
        let plain = CodeSets { char: CharSet::Latin1, wchar: None };
        assert_eq!(negotiate(None, Version::V1_2), Ok(plain));
        assert_eq!(negotiate(Some(&CodeSetComponentInfo::zorb()), Version::V1_0), Ok(plain));
    }

    #[test]
    fn nothing_in_common_is_codeset_incompatible_1() {
        let server = info(0x7777_0001, &[0x7777_0002], 0x10109, &[]);
        let error = negotiate(Some(&server), Version::V1_2).map_err(SystemException::from);
        let expected = SystemException::new(
            SystemExceptionKind::CodesetIncompatible,
            minor::CODESET_INCOMPATIBLE_NEGOTIATION,
            CompletionStatus::No,
        );
        assert_eq!(error, Err(expected));
    }

    #[test]
    fn server_accepts_what_it_offers_and_refuses_the_rest() {
        for sets in [
            CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) },
            CodeSets { char: CharSet::Latin1, wchar: None },
        ] {
            assert_eq!(CodeSetContext::from(sets).accept(None), Ok(sets));
            assert_eq!(CodeSetContext::from(sets).accept(Some(sets)), Ok(sets));
        }
        let context =
            |char, wchar| CodeSetContext { char_data: CodeSetId(char), wchar_data: CodeSetId(wchar) };
        let minor_of =
            |c: CodeSetContext, previous| c.accept(previous).map_err(|e| SystemException::from(e).minor);
        assert_eq!(minor_of(context(0x10002, 0), None), Err(minor::CODESET_INCOMPATIBLE_DELIVERED));
        assert_eq!(minor_of(context(0x10001, 0x10100), None), Err(minor::CODESET_INCOMPATIBLE_DELIVERED));
        let latin = CodeSets { char: CharSet::Latin1, wchar: None };
        assert_eq!(minor_of(context(0x0501_0001, 0), Some(latin)), Err(minor::MARSHAL_CODE_SETS_CHANGED));
    }
}

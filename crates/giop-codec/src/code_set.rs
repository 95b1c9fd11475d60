//! Code set negotiation: the offer of a server, the choice of a client, and the announcement of that choice
//! to the server.
//!
//! By default, zorb's native set is UTF-8, as in Rust, with conversion to ISO 8859-1. The default for wide
//! text is UTF-16. All sets that [`CharSet::from_id`] and [`WCharSet::from_id`] support can be configured.

pub use crate::cdr::CodeSetId;
use crate::cdr::{CdrDecode, CdrEncode, CharSet, CodeSets, Decoder, Encoder, WCharSet};
use crate::exception::{SystemException, minor};
use crate::{DecodeError, EncodeError, Version};

/// The code sets of one side for one kind of text: its native set and its conversion sets.
///
/// Source clause: "Code Set Negotiation" (`CONV_FRAME::CodeSetComponent`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeSetComponent {
    /// The native set, or [`CodeSetId::NONE`] if there is none.
    pub native: CodeSetId,
    /// The conversion sets, with the preferred one first.
    pub conversion: Vec<CodeSetId>,
}

impl CodeSetComponent {
    /// Creates a component from a native set and conversion sets, of which the preferred one is first.
    pub fn new(native: CodeSetId, conversion: &[CodeSetId]) -> Self {
        Self { native, conversion: conversion.to_vec() }
    }

    /// Returns whether the set is the native set or a conversion set.
    pub fn offers(&self, id: CodeSetId) -> bool {
        self.native == id || self.conversion.contains(&id)
    }

    /// Returns all sets, the native one first.
    pub fn all(&self) -> impl Iterator<Item = CodeSetId> + '_ {
        std::iter::once(self.native).chain(self.conversion.iter().copied())
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
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let native = CodeSetId(d.read_u32()?);
        let conversion = Vec::decode(d)?.into_iter().map(CodeSetId).collect();
        Ok(Self { native, conversion })
    }
}

/// The code sets of one side. A server publishes its code sets in the `TAG_CODE_SETS` component of its
/// profiles, and a client compares its own with them.
///
/// Source clause: "Code Set Negotiation" (`CONV_FRAME::CodeSetComponentInfo`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodeSetComponentInfo {
    /// The code sets for `char` and `string`.
    pub for_char: CodeSetComponent,
    /// The code sets for `wchar` and `wstring`.
    pub for_wchar: CodeSetComponent,
}

impl CodeSetComponentInfo {
    /// Returns the default: UTF-8 with conversion to ISO 8859-1, and UTF-16 for wide text.
    ///
    /// UTF-8 is the native set because omniORB's clients use a server's native set if they support it.
    pub fn zorb_default() -> Self {
        Self {
            for_char: CodeSetComponent::new(CodeSetId::UTF_8, &[CodeSetId::ISO_8859_1]),
            for_wchar: CodeSetComponent::new(CodeSetId::UTF_16, &[]),
        }
    }

    /// Returns the first of the sets that this build does not support. Such a set must not be offered,
    /// because the peer could choose it.
    pub fn first_unsupported(&self) -> Option<CodeSetId> {
        let has_wide = self.for_wchar.native != CodeSetId::NONE || !self.for_wchar.conversion.is_empty();
        let mut wide = self.for_wchar.all().filter(|_| has_wide);
        let narrow = self.for_char.all().find(|id| CharSet::from_id(*id).is_none());
        narrow.or_else(|| wide.find(|id| WCharSet::from_id(*id).is_none()))
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

/// The result of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiatedCodeSets {
    /// The transmission code sets of text.
    pub sets: CodeSets,
    /// The announcement to the server, with the numbers that the server used in its offer.
    pub context: CodeSetContext,
}

/// Selects the transmission code sets of a client for a connection to a server.
///
/// For each kind of text, the first of these sets that exists is selected:
/// 1. the client's native set, if the server offers it;
/// 2. the server's native set, if the client can convert to it;
/// 3. the first conversion set of the server that the client also has;
/// 4. UTF-8, or UTF-16 for wide text, if both native sets contain only characters of Unicode.
///
/// The specification prefers the server's native set to the client's. A client with UTF-8 strings would then
/// lose characters if the server's native set is ISO 8859-1, although the server also accepts UTF-8.
///
/// If no set can be selected for one kind of text, sending or reading text of that kind fails. For `char`,
/// the set is [`CharSet::NOTHING`], and the client announces the server's native set.
///
/// If the server publishes no sets, or in GIOP 1.0, the result is ISO 8859-1 without wide text.
///
/// The client must send the announcement with the first requests on the connection.
/// Source clause: "Code Set Negotiation / Code Set Determination".
pub fn negotiate(
    client: &CodeSetComponentInfo,
    server: Option<&CodeSetComponentInfo>,
    version: Version,
) -> NegotiatedCodeSets {
    let Some(server) = server.filter(|_| version > Version::V1_0) else {
        let sets = CodeSets { char: CharSet::Latin1, wchar: None };
        return NegotiatedCodeSets { sets, context: sets.into() };
    };
    let narrow = choose_set(&client.for_char, &server.for_char, CharSet::from_id, CodeSetId::UTF_8);
    let (char_data, char) = narrow.unwrap_or((server.for_char.native, CharSet::NOTHING));
    let wide = choose_set(&client.for_wchar, &server.for_wchar, WCharSet::from_id, CodeSetId::UTF_16);
    let wchar_data = wide.map_or(CodeSetId::NONE, |(id, _)| id);
    let sets = CodeSets { char, wchar: wide.map(|(_, set)| set) };
    NegotiatedCodeSets { sets, context: CodeSetContext { char_data, wchar_data } }
}

/// Returns the set for one kind of text, and the number by which the server identifies it. Sets are compared
/// instead of their numbers, because some sets have several numbers.
fn choose_set<T: PartialEq>(
    client: &CodeSetComponent,
    server: &CodeSetComponent,
    from_id: impl Fn(CodeSetId) -> Option<T>,
    fallback: CodeSetId,
) -> Option<(CodeSetId, T)> {
    let client_has = |set: &T| client.all().any(|id| from_id(id).as_ref() == Some(set));
    let common = |id: CodeSetId| from_id(id).filter(client_has).map(|set| (id, set));
    let native = from_id(client.native);
    let by_native = server.all().find_map(|id| common(id).filter(|(_, set)| Some(set) == native.as_ref()));
    by_native.or_else(|| server.all().find_map(common)).or_else(|| {
        let compatible = client.native.is_within_unicode() && server.native.is_within_unicode();
        from_id(fallback).filter(|_| compatible).map(|set| (fallback, set))
    })
}

/// The announcement of a client to the server, in the `CodeSets` service context.
///
/// Source clause: "Code Set Negotiation" (`CONV_FRAME::CodeSetContext`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeSetContext {
    /// The transmission code set of `char` and `string`.
    pub char_data: CodeSetId,
    /// The transmission code set of `wchar` and `wstring`. [`CodeSetId::NONE`] announces no wide text.
    pub wchar_data: CodeSetId,
}

impl CodeSetContext {
    /// Returns the code sets for the connection on which the server received this context. Every set that
    /// this build supports is accepted, even if the server did not offer it. `previous` is the result for an
    /// earlier context on the connection, if there was one.
    ///
    /// # Errors
    /// [`CodeSetError::Unsupported`] (`CODESET_INCOMPATIBLE`, minor code 2) if this build does not support a
    /// set. [`CodeSetError::Changed`] (`MARSHAL`, minor code 9) if the sets differ from `previous`.
    pub fn accept(self, previous: Option<CodeSets>) -> Result<CodeSets, CodeSetError> {
        let char = match self.char_data {
            CodeSetId::NONE => CharSet::Latin1,
            id => CharSet::from_id(id).ok_or(CodeSetError::Unsupported(id))?,
        };
        let wchar = match self.wchar_data {
            CodeSetId::NONE => None,
            id => Some(WCharSet::from_id(id).ok_or(CodeSetError::Unsupported(id))?),
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
        let wchar_data = sets.wchar.map_or(CodeSetId::NONE, WCharSet::id);
        Self { char_data: sets.char.id(), wchar_data }
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

/// The reason why a server rejects the code sets that a client announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeSetError {
    /// The client announced this set, which this build does not support.
    #[error(
        "the client announced code set {0}, which this build does not support (the feature encoding_rs adds code sets)"
    )]
    Unsupported(CodeSetId),
    /// The client announced other sets earlier on the same connection.
    #[error("the client announced other code sets earlier on this connection")]
    Changed,
}

/// Converts to an exception with `COMPLETED_NO`, because negotiation precedes the operation.
impl From<CodeSetError> for SystemException {
    #[cold]
    fn from(error: CodeSetError) -> Self {
        match error {
            CodeSetError::Unsupported(_) => {
                Self::codeset_incompatible().with_minor(minor::CODESET_INCOMPATIBLE_DELIVERED)
            }
            CodeSetError::Changed => Self::marshal().with_minor(minor::MARSHAL_CODE_SETS_CHANGED),
        }
        .with_source(error)
    }
}

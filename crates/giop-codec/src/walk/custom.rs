//! Copies of custom values. Only the program that defines their type knows the structure of their state.
//! Therefore it is copied unchanged, except for references to the positions of other values.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::copy::{Copier, CopyResult};
use super::graph::VALUE_CHARGE_BYTES;
use super::run::StepActions;
use crate::cdr::{CharSet, CodeSets, Decoder, Encoder, WCharSet};
use crate::value::{Class, Piece, ValueHeader, custom, untyped};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeErrorKind, Version};

pub(crate) const UNICODE_CODE_SETS: CodeSets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) };

/// The properties of a stream on which the encoding of a value depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamProperties {
    pub(crate) order: ByteOrder,
    pub(crate) version: Version,
    pub(crate) code_sets: CodeSets,
}

impl Default for StreamProperties {
    fn default() -> StreamProperties {
        StreamProperties { order: ByteOrder::NATIVE, version: Version::V1_2, code_sets: UNICODE_CODE_SETS }
    }
}

impl StreamProperties {
    pub(crate) fn of(d: &Decoder<'_>) -> StreamProperties {
        StreamProperties { order: d.order(), version: d.version(), code_sets: d.code_sets() }
    }

    pub(crate) fn encoder(self) -> Encoder {
        let mut e = Encoder::new(self.order, self.version);
        e.set_code_sets(self.code_sets);
        e
    }

    pub(crate) fn decoder(self, bytes: &Bytes) -> Decoder<'_> {
        let mut d = Decoder::from_bytes(bytes, self.order, self.version);
        d.set_code_sets(self.code_sets);
        d
    }
}

/// Returns an encoder with the properties of the streams that store locally created values in anys.
pub(crate) fn canonical_encoder() -> Encoder {
    StreamProperties::default().encoder()
}

impl Copier<'_> {
    fn is_output_discarded(&self) -> bool {
        self.discards_output || self.graph.discards_result
    }

    #[inline(never)]
    pub(super) fn copy_custom(
        &mut self,
        d: &mut Decoder<'_>,
        class: Arc<Class>,
        value: ValueHeader,
        ids: &[&str],
        implied_id: Option<&Arc<str>>,
    ) -> CopyResult {
        let has_same_properties = self.e.order() == d.order()
            && self.e.version() == d.version()
            && self.e.code_sets() == d.code_sets();
        if !has_same_properties && !self.is_output_discarded() {
            return self.put(d, |_| Err(EncodeErrorKind::UnconvertibleCustomState.into()));
        }
        // The copy has the type that the header names, even if the program knows only a base of that type.
        let missing_id = implied_id.or(class.ids.first()).filter(|_| ids.is_empty()).cloned();
        let known: Vec<&str> = match &missing_id {
            _ if self.graph.writes_all_ids && ids.len() < 2 => class.ids.iter().map(|id| &**id).collect(),
            missing_id => missing_id.as_deref().into_iter().collect(),
        };
        let ids = if known.is_empty() { ids } else { &known };
        d.charge(VALUE_CHARGE_BYTES)?;
        let phase = (!self.is_output_discarded()).then(|| custom::tag_phase(d));
        untyped::enter_value(d, value, missing_id.as_ref())?;
        let position = self.put(d, |e| custom::begin_custom_value(e, ids, phase))?;
        self.graph.copied_values.insert(value.at, position, Some(&class));
        // The state may contain a reference.
        self.findings.has_references = true;
        custom::read_custom_pieces(d, value, &mut |d, piece| self.copy_piece(d, &piece))?;
        untyped::leave_value(d, value, true)?;
        self.put(d, |e| untyped::close_value(e, true))?;
        self.after_step(d)
    }

    fn copy_piece(&mut self, d: &mut Decoder<'_>, piece: &Piece<'_>) -> CopyResult {
        match piece {
            Piece::Null => untyped::put_null(self.e),
            Piece::End { depth } => custom::put_custom_end(self.e, *depth),
            Piece::Header { at, ids, phase } => {
                d.charge(VALUE_CHARGE_BYTES)?;
                let phase = (!self.is_output_discarded()).then_some(*phase);
                let position = self.put(d, |e| custom::put_custom_header(e, ids, phase))?;
                self.graph.copied_values.insert(*at, position, None);
            }
            Piece::Chunk { at, phase, bytes } => {
                self.put(d, |e| e.put_len(bytes.len()))?;
                if !self.is_output_discarded() && self.e.position() % 8 != *phase {
                    return self.put(d, |_| Err(EncodeErrorKind::UnconvertibleCustomState.into()));
                }
                let bytes = self.adjust_indirections(d, *at, bytes)?;
                self.e.put_raw(&bytes);
            }
        }
        self.after_step(d)
    }

    /// Returns the data of a chunk that begins at `at`, with its indirections adjusted to the output. A word
    /// counts as an offset only if it follows the tag of an indirection and points exactly to a value.
    fn adjust_indirections<'o>(
        &self,
        d: &Decoder<'_>,
        at: usize,
        bytes: &'o [u8],
    ) -> Result<Cow<'o, [u8]>, DecodeError> {
        let mut adjusted = Cow::Borrowed(bytes);
        if self.is_output_discarded() {
            return Ok(adjusted);
        }
        let new_at = self.e.position();
        let mut index = at.next_multiple_of(4) - at;
        while let Some([tag, word]) = two_words(bytes, index) {
            let offset = match d.order() {
                ByteOrder::Big => i32::from_be_bytes(word),
                ByteOrder::Little => i32::from_le_bytes(word),
            };
            index += 4;
            if tag != [0xFF; 4] || offset >= -4 {
                continue;
            }
            let Some(target) = (at + index).checked_sub(offset.unsigned_abs() as usize) else { continue };
            let Some(new_target) = self.graph.copied_values.get(target).map(|value| value.counterpart) else {
                if custom::has_value_at(d, target) {
                    // The value is outside of this any, and it cannot be inserted into a custom state.
                    return Err(DecodeError::new(DecodeErrorKind::NotInAny, at + index - 4));
                }
                continue;
            };
            let distance = i32::try_from(new_at + index - new_target)
                .map_err(|_| d.error(DecodeErrorKind::LimitExceeded))?;
            if -distance != offset {
                let word = match d.order() {
                    ByteOrder::Big => (-distance).to_be_bytes(),
                    ByteOrder::Little => (-distance).to_le_bytes(),
                };
                if let Some(word_bytes) = adjusted.to_mut().get_mut(index..index + 4) {
                    word_bytes.copy_from_slice(&word);
                }
            }
        }
        Ok(adjusted)
    }
}

fn two_words(bytes: &[u8], index: usize) -> Option<[[u8; 4]; 2]> {
    let (tag, rest) = bytes.get(index..)?.split_first_chunk()?;
    Some([*tag, *rest.first_chunk()?])
}

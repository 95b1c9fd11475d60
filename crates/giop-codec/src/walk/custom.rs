//! Custom values in anys: kept whole, in their received byte order, version and code sets.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::copy::{CopyResult, Walker};
use super::graph::VALUE;
use super::run::StepActions;
use crate::cdr::{CharSet, CodeSets, Decoder, Encoder, WCharSet};
use crate::value::{Class, Piece, ValueHeader, custom, untyped};
use crate::{ByteOrder, DecodeError, DecodeErrorKind, EncodeErrorKind, Version};

/// Code sets that hold every text.
pub(crate) const CODE_SETS: CodeSets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) };

/// The stream properties in which a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
}

impl Default for Stream {
    /// Returns native byte order, GIOP 1.2, and code sets that hold every text.
    fn default() -> Stream {
        Stream { order: ByteOrder::NATIVE, version: Version::V1_2, code_sets: CODE_SETS }
    }
}

impl Stream {
    /// Returns the properties of the received stream.
    pub(crate) fn of(d: &Decoder<'_>) -> Stream {
        Stream { order: d.order(), version: d.version(), code_sets: d.code_sets() }
    }

    pub(crate) fn encoder(self) -> Encoder {
        let mut e = Encoder::new(self.order, self.version);
        e.set_code_sets(self.code_sets);
        e
    }

    pub(crate) fn decoder(self, octets: &Bytes) -> Decoder<'_> {
        let mut d = Decoder::from_bytes(octets, self.order, self.version);
        d.set_code_sets(self.code_sets);
        d
    }
}

/// Returns an encoder with the properties in which locally created values are kept.
pub(crate) fn canonical() -> Encoder {
    Stream::default().encoder()
}

impl Walker<'_> {
    /// Returns whether the output is discarded.
    fn writes_nothing(&self) -> bool {
        self.discards || self.graph.skips
    }

    /// Copies a custom value whose header was read.
    #[inline(never)]
    pub(super) fn custom(
        &mut self,
        d: &mut Decoder<'_>,
        class: Arc<Class>,
        value: ValueHeader,
        ids: &[&str],
        implied: Option<&Arc<str>>,
    ) -> CopyResult {
        let alike = self.e.order() == d.order()
            && self.e.version() == d.version()
            && self.e.code_sets() == d.code_sets();
        if !alike && !self.writes_nothing() {
            return self.put(d, |_| Err(EncodeErrorKind::CustomState.into()));
        }
        // The value has the type of its header, also if the program knows only a base of it.
        let own = implied.or(class.ids.first()).filter(|_| ids.is_empty()).cloned();
        let known: Vec<&str> = match &own {
            _ if self.graph.spells && ids.len() < 2 => class.ids.iter().map(|id| &**id).collect(),
            own => own.as_deref().into_iter().collect(),
        };
        let ids = if known.is_empty() { ids } else { &known };
        d.charge(VALUE)?;
        let phase = (!self.writes_nothing()).then(|| custom::tag_phase(d));
        untyped::enter(d, value, own.as_ref())?;
        let mut position = 0;
        self.put(d, |e| {
            position = custom::open_custom(e, ids, phase)?;
            Ok(())
        })?;
        self.graph.places.insert(value.at, position, Some(&class));
        // The state may contain a reference.
        self.seen.references = true;
        custom::pass_custom(d, value, &mut |d, piece| self.piece(d, &piece))?;
        untyped::leave(d, value, true)?;
        self.put(d, |e| untyped::close(e, true))?;
        self.settle(d)
    }

    fn piece(&mut self, d: &mut Decoder<'_>, piece: &Piece<'_>) -> CopyResult {
        match piece {
            Piece::Null => untyped::put_null(self.e),
            Piece::End(deeper) => custom::put_custom_end(self.e, *deeper),
            Piece::Header(at, ids, phase) => {
                d.charge(VALUE)?;
                let phase = (!self.writes_nothing()).then_some(*phase);
                let mut position = 0;
                self.put(d, |e| {
                    position = custom::put_custom_header(e, ids, phase)?;
                    Ok(())
                })?;
                self.graph.places.insert(*at, position, None);
            }
            Piece::Chunk(at, phase, octets) => {
                self.put(d, |e| e.put_len(octets.len()))?;
                let moved = !self.writes_nothing() && self.e.position() % 8 != *phase;
                if moved {
                    return self.put(d, |_| Err(EncodeErrorKind::CustomState.into()));
                }
                let octets = self.with_indirections(d, *at, octets)?;
                self.e.put_raw(&octets);
            }
        }
        self.settle(d)
    }

    /// Returns the data of a chunk with its indirections adjusted to the target. Only a word that points
    /// exactly to a value counts as an indirection.
    fn with_indirections<'o>(
        &self,
        d: &Decoder<'_>,
        at: usize,
        octets: &'o [u8],
    ) -> Result<Cow<'o, [u8]>, DecodeError> {
        let mut moved = Cow::Borrowed(octets);
        if self.writes_nothing() {
            return Ok(moved);
        }
        let to = self.e.position();
        let mut index = at.next_multiple_of(4) - at;
        while let Some([tag, word]) = two_words(octets, index) {
            let offset = match d.order() {
                ByteOrder::Big => i32::from_be_bytes(word),
                ByteOrder::Little => i32::from_le_bytes(word),
            };
            index += 4;
            if tag != [0xFF; 4] || offset >= -4 {
                continue;
            }
            let Some(target) = (at + index).checked_sub(offset.unsigned_abs() as usize) else { continue };
            let Some(place) = self.graph.places.get(target).map(|known| known.to) else {
                if custom::has_value_at(d, target) {
                    // The value is outside of this any, and nothing can be inserted into a custom state.
                    return Err(DecodeError::new(DecodeErrorKind::NotInAny, at + index - 4));
                }
                continue;
            };
            let back =
                i32::try_from(to + index - place).map_err(|_| d.error(DecodeErrorKind::LimitExceeded))?;
            if -back != offset {
                let word = match d.order() {
                    ByteOrder::Big => (-back).to_be_bytes(),
                    ByteOrder::Little => (-back).to_le_bytes(),
                };
                if let Some(place) = moved.to_mut().get_mut(index..index + 4) {
                    place.copy_from_slice(&word);
                }
            }
        }
        Ok(moved)
    }
}

fn two_words(octets: &[u8], index: usize) -> Option<[[u8; 4]; 2]> {
    let (tag, rest) = octets.get(index..)?.split_first_chunk()?;
    Some([*tag, *rest.first_chunk()?])
}

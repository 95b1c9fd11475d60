//! Opaque states of custom values, which are forwarded piece by piece as received.

use std::collections::HashSet;

use super::ValueHeader;
use super::header::{CHUNKED, ID_LIST, NULL, ONE_ID, VALUE, is_chunk, is_end, is_explicit, is_header};
use super::read::{self, DecodedValues};
use super::untyped::{self, UntypedValue};
use super::write::{self, EncodedValues};
use crate::cdr::{Decoder, Encoder, Nesting, chunked};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// A part of a custom value's state.
pub(crate) enum Piece<'a> {
    /// The position of a chunk's data, its phase (this position modulo 8 in its message), and the data.
    Chunk(usize, usize, &'a [u8]),
    /// Null between two chunks.
    Null,
    /// The position of a header, its repository ids, and the phase after it.
    Header(usize, Vec<&'a str>, usize),
    /// An end tag: its level minus that of the custom value.
    End(u32),
}

pub(crate) fn nesting<'a>(d: &Decoder<'a>) -> Option<Nesting<'a>> {
    d.values.as_ref().map(|values| values.nesting.clone())
}

/// Restores the nesting in chunked values. Ids that were read since then remain known.
pub(crate) fn restore_nesting<'a>(d: &mut Decoder<'a>, nesting: Option<Nesting<'a>>) {
    read::value_state(d).nesting = nesting.unwrap_or_default();
}

pub(crate) fn has_value_at(d: &Decoder<'_>, position: usize) -> bool {
    DecodedValues::find(d).is_some_and(|decoded| {
        decoded.untyped.contains_key(&position) || decoded.level_and_id(position).is_some()
    })
}

pub(crate) fn tag_phase(d: &Decoder<'_>) -> usize {
    d.phase().next_multiple_of(4) % 8
}

/// Reads the state of a custom value, after `enter`, up to its end tag, and passes its pieces to `f`. Returns
/// all bytes of the state.
pub(crate) fn read_custom_pieces<'a>(
    d: &mut Decoder<'a>,
    value: ValueHeader,
    f: &mut dyn FnMut(&mut Decoder<'a>, Piece<'a>) -> Result<(), DecodeError>,
) -> Result<&'a [u8], DecodeError> {
    // Only TAO begins a value within an open chunk, and TAO does not support custom values.
    if !value.chunked || value.outer_chunk_end.is_some() {
        return Err(DecodeError::new(DecodeErrorKind::NotInAny, value.at));
    }
    let level = read::value_state(d).nesting.level;
    chunked::leave_chunk(d);
    let (mut start, mut inner_level) = (None, level);
    loop {
        let tag = d.read_u32()?;
        let at = d.position() - 4;
        let start = *start.get_or_insert(at);
        let end = tag.wrapping_neg();
        let piece = if is_end(tag) && end <= level {
            read::value_state(d).nesting.ended = Some(end);
            return Ok(chunked::bytes_between(d, start, at));
        } else if is_end(tag) {
            inner_level = inner_level.min(end - 1);
            Piece::End(end - level)
        } else if is_chunk(tag) {
            let (at, phase) = (d.position(), d.phase());
            Piece::Chunk(at, phase, d.take(tag as usize)?)
        } else if tag == NULL {
            Piece::Null
        } else if is_header(tag) && tag & CHUNKED != 0 {
            let ids = read::read_type_info(d, tag)?;
            d.charge(2 * size_of::<(usize, UntypedValue)>())?;
            let phase = tag_phase(d);
            // Later indirections may refer to it.
            DecodedValues::of(d).untyped.insert(at, UntypedValue { level: inner_level, implied: None });
            inner_level += 1;
            Piece::Header(at, untyped::names(d, ids).to_vec(), phase)
        } else {
            return Err(read::malformed(at));
        };
        f(d, piece)?;
    }
}

/// Begins a custom value and returns the position of its tag. If `phase` is given, the state has it.
pub(crate) fn begin_custom_value(
    e: &mut Encoder,
    ids: &[&str],
    phase: Option<usize>,
) -> Result<usize, EncodeError> {
    if write::is_in_chunked(e) {
        write::close_chunk(e)?;
    }
    let at = put_custom_header(e, ids, phase)?;
    write::begin_chunked(e);
    Ok(at)
}

/// Writes an end tag inside of the state of a custom value, for a value `deeper` levels below it.
pub(crate) fn put_custom_end(e: &mut Encoder, deeper: u32) {
    let level = write::value_state(e).level.wrapping_add(deeper);
    e.put_u32(level.wrapping_neg());
}

/// Writes the header of a custom value, or of a value in its state. The state must keep its phase, because
/// 8-byte items in it are aligned. To move the state by 4 bytes, the header gets a list in place of a single
/// id, or repeats an id of a list.
pub(crate) fn put_custom_header(
    e: &mut Encoder,
    ids: &[&str],
    phase: Option<usize>,
) -> Result<usize, EncodeError> {
    e.align(4);
    let at = e.position();
    let breaks_phase = |end: usize| phase.is_some_and(|phase| end.next_multiple_of(4) % 8 != phase);
    match ids {
        [] => {
            e.put_u32(VALUE | CHUNKED);
            if breaks_phase(e.position()) {
                return Err(EncodeErrorKind::CustomState.into());
            }
        }
        [id] if breaks_phase(at + 4 + id_len(e, id)) => {
            e.put_u32(VALUE | CHUNKED | ID_LIST);
            e.put_len(1)?;
            untyped::put_id(e, id)?;
        }
        [id] => {
            e.put_u32(VALUE | CHUNKED | ONE_ID);
            untyped::put_id(e, id)?;
        }
        _ => {
            // A received list repeats an id only if its writer had to move the state.
            let mut seen = HashSet::new();
            let ids: Vec<&str> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
            e.put_u32(VALUE | CHUNKED | ID_LIST);
            let count_at = e.head().len();
            e.put_len(ids.len())?;
            for id in &ids {
                untyped::put_id(e, id)?;
            }
            // Some ids may be indirections, so the length is known only now.
            if breaks_phase(e.position()) {
                let Some(id) = ids.iter().find(|id| explicit_id_len(id) % 8 == 4) else {
                    return Err(EncodeErrorKind::CustomState.into());
                };
                e.put_ascii(id)?;
                e.patch_u32(count_at, ids.len() as u32 + 1);
            }
        }
    }
    Ok(at)
}

/// Returns the number of bytes of an id or of an indirection to it, with the padding after it.
fn id_len(e: &mut Encoder, id: &str) -> usize {
    if !is_explicit(id) && EncodedValues::of(e).ids.contains_key(id) { 8 } else { explicit_id_len(id) }
}

/// Returns the number of bytes of an id that is written out, with the padding after it.
fn explicit_id_len(id: &str) -> usize {
    4 + (id.len() + 1).next_multiple_of(4)
}

//! The states of custom values, whose structure is unknown. They are forwarded as they were received.

use std::collections::HashSet;

use super::ValueHeader;
use super::header::{
    CHUNKED, ID_LIST, NULL, ONE_ID, VALUE, is_always_in_full, is_chunk, is_end_tag, is_header,
};
use super::read::{self, DecodedValues};
use super::untyped::{self, UntypedValue};
use super::write::{self, EncodedValues};
use crate::cdr::{Decoder, Encoder, Nesting, chunked};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// A piece of a custom value's state. Positions count from the alignment origin. A phase is a position mod 8.
pub(crate) enum Piece<'a> {
    /// A chunk, with the position and the phase of its data.
    Chunk { at: usize, phase: usize, bytes: &'a [u8] },
    /// A null value between two chunks.
    Null,
    /// The header of a value inside the state: its position, its repository ids, and the phase after it.
    Header { at: usize, ids: Vec<&'a str>, phase: usize },
    /// An end tag. `depth` is its level minus the level of the custom value.
    End { depth: u32 },
}

pub(crate) fn nesting<'a>(d: &Decoder<'a>) -> Option<Nesting<'a>> {
    d.values.as_ref().map(|values| values.nesting.clone())
}

/// Restores the nesting that [`nesting`] returned. Ids that were read since then remain known.
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

/// Reads the state of a custom value up to its end tag, and passes its pieces to `f`. Returns all bytes of
/// the state. Must be called after [`enter_value`](untyped::enter_value).
pub(crate) fn read_custom_pieces<'a>(
    d: &mut Decoder<'a>,
    value: ValueHeader,
    f: &mut dyn FnMut(&mut Decoder<'a>, Piece<'a>) -> Result<(), DecodeError>,
) -> Result<&'a [u8], DecodeError> {
    // Only TAO begins a value inside an open chunk, and TAO does not support custom values.
    if !value.is_chunked || value.outer_chunk_end.is_some() {
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
        let piece = if is_end_tag(tag) && end <= level {
            read::value_state(d).nesting.ended_from_level = Some(end);
            return Ok(chunked::bytes_between(d, start, at));
        } else if is_end_tag(tag) {
            inner_level = inner_level.min(end - 1);
            Piece::End { depth: end - level }
        } else if is_chunk(tag) {
            let (at, phase) = (d.position(), d.phase());
            Piece::Chunk { at, phase, bytes: d.take(tag as usize)? }
        } else if tag == NULL {
            Piece::Null
        } else if is_header(tag) && tag & CHUNKED != 0 {
            let ids = read::read_type_info(d, tag)?;
            d.charge(2 * size_of::<(usize, UntypedValue)>())?;
            let phase = tag_phase(d);
            // Later indirections may refer to this value.
            DecodedValues::of(d).untyped.insert(at, UntypedValue { level: inner_level, implied_id: None });
            inner_level += 1;
            Piece::Header { at, ids: untyped::repository_ids(d, ids).to_vec(), phase }
        } else {
            return Err(read::malformed(at));
        };
        f(d, piece)?;
    }
}

/// Begins a custom value, whose state must start at `phase`, if given. Returns the position of its tag.
pub(crate) fn begin_custom_value(
    e: &mut Encoder,
    ids: &[&str],
    phase: Option<usize>,
) -> Result<usize, EncodeError> {
    if write::is_in_chunked_value(e) {
        write::close_chunk(e)?;
    }
    let at = put_custom_header(e, ids, phase)?;
    write::begin_chunked_value(e);
    Ok(at)
}

/// Writes an end tag inside the state of a custom value, for a value that is `depth` levels deeper.
pub(crate) fn put_custom_end(e: &mut Encoder, depth: u32) {
    let level = write::value_state(e).level.wrapping_add(depth);
    e.put_u32(level.wrapping_neg());
}

/// Writes the header of a custom value, or of a value in its state, and returns the position of the header.
///
/// The data that follows must keep its `phase`, because 8-byte items in it are aligned. To move the data by 4
/// bytes, a single id is written as a list of one id, or an id of a list is repeated.
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
                return Err(EncodeErrorKind::UnconvertibleCustomState.into());
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
            // Repeated ids are dropped: a writer repeats an id only to move the state.
            let mut seen = HashSet::new();
            let ids: Vec<&str> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
            e.put_u32(VALUE | CHUNKED | ID_LIST);
            let count_at = e.head().len();
            e.put_len(ids.len())?;
            for id in &ids {
                untyped::put_id(e, id)?;
            }
            // The phase is known only now, because some ids may be indirections.
            if breaks_phase(e.position()) {
                let Some(id) = ids.iter().find(|id| explicit_id_len(id) % 8 == 4) else {
                    return Err(EncodeErrorKind::UnconvertibleCustomState.into());
                };
                e.put_unconverted_str(id)?;
                e.patch_u32(count_at, ids.len() as u32 + 1);
            }
        }
    }
    Ok(at)
}

/// Returns the number of bytes of an id or of an indirection to it, with the padding after it.
fn id_len(e: &mut Encoder, id: &str) -> usize {
    if !is_always_in_full(id) && EncodedValues::of(e).ids.contains_key(id) { 8 } else { explicit_id_len(id) }
}

/// Returns the number of bytes of an id that is written out, with the padding after it.
fn explicit_id_len(id: &str) -> usize {
    4 + (id.len() + 1).next_multiple_of(4)
}

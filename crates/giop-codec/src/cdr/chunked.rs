//! Decoding of values whose state is divided into chunks ("Chunking"). Inside a chunk, only the bytes up to
//! the end of the chunk are visible to a decoder.
//!
//! A chunk ends between two primitives. A primitive that does not fit before the end of the chunk is
//! therefore in the next chunk, after the chunk's length. A read that reaches the end of the visible bytes
//! takes a slow path, which enters the next chunk.

use super::decoder::Decoder;
use super::fixed::FixedReader;
use super::layout::{FixedLayout, padding};
use super::value_state::{ChunkedData, Nesting};
use crate::{DecodeError, DecodeErrorKind};

/// The smallest value tag. Chunk lengths are smaller.
const MIN_VALUE_TAG: u32 = 0x7FFF_FF00;

pub(crate) const fn is_end_tag(tag: u32) -> bool {
    tag >= 0x8000_0000
}

impl Nesting<'_> {
    /// Returns whether a tag is one of the additional end tags with which TAO ends the state of each base of
    /// a value. Their level is deeper than that of the current value. In a value that began inside a chunk of
    /// its parent, TAO counts levels from 1 again. There, every end tag is one of them.
    fn is_end_of_base(&self, tag: u32) -> bool {
        is_end_tag(tag)
            && (tag.wrapping_neg() > self.level || self.levels_in_parent_chunk.last() == Some(&self.level))
    }
}

/// The position, visible bytes and nesting of a decoder, saved by [`move_view_to`].
#[derive(Debug)]
pub(crate) struct View<'a> {
    data: &'a [u8],
    position: usize,
    visible_end: usize,
    hidden_bytes: usize,
    nesting: Nesting<'a>,
}

/// Returns whether the visible bytes are limited: to the current chunk, or to none between chunks.
pub(crate) fn is_view_limited(d: &Decoder<'_>) -> bool {
    d.values.as_ref().is_some_and(|values| values.nesting.chunked_data.is_limited)
}

/// Begins the outermost chunked value. The decoder is before its first chunk.
pub(crate) fn begin_chunks(d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    d.join()?;
    if let Some(values) = &mut d.values {
        values.nesting.chunked_data = ChunkedData { all_data: d.data, is_limited: false };
    }
    Ok(())
}

/// Ends the outermost chunked value.
pub(crate) fn end_chunks(d: &mut Decoder<'_>) {
    leave_chunk(d);
    if let Some(values) = &mut d.values {
        values.nesting.chunked_data = ChunkedData::default();
    }
}

/// Hides all bytes from the current position on. The next read then enters the next chunk.
pub(crate) fn hide_until_next_chunk(d: &mut Decoder<'_>) {
    hide_from(d, d.position);
}

fn hide_from(d: &mut Decoder<'_>, end: usize) {
    let Some(values) = &mut d.values else { return };
    values.nesting.chunked_data.is_limited = true;
    let all_data = values.nesting.chunked_data.all_data;
    d.data = all_data.get(..end).unwrap_or(all_data);
    d.remaining_segments.bytes = all_data.len() - d.data.len();
    d.visible_end = d.next_boundary().max(d.position);
}

/// Moves to the end of the chunk and makes the data after it visible.
pub(crate) fn leave_chunk(d: &mut Decoder<'_>) {
    if is_view_limited(d) {
        d.position = d.data.len();
        interrupt_chunk(d);
    }
}

/// Makes all bytes from the current position on visible. Returns the chunk's end for [`resume_chunk`].
pub(crate) fn interrupt_chunk(d: &mut Decoder<'_>) -> usize {
    let end = d.data.len();
    let Some(values) = &mut d.values else { return end };
    values.nesting.chunked_data.is_limited = false;
    d.data = values.nesting.chunked_data.all_data;
    d.remaining_segments.bytes = 0;
    if d.has_fragment_boundaries() {
        d.pass_boundaries();
    }
    d.visible_end = d.next_boundary().max(d.position);
    end
}

/// Makes only the rest of an interrupted chunk visible. The chunk ends at index `end`.
pub(crate) fn resume_chunk(d: &mut Decoder<'_>, end: usize) -> Result<(), DecodeError> {
    if end < d.position {
        return Err(d.error(DecodeErrorKind::Malformed));
    }
    hide_from(d, end);
    Ok(())
}

/// Returns whether there is an `end` of a chunk, and fewer than four bytes are left before that index.
pub(crate) fn is_at_chunk_end(d: &Decoder<'_>, end: Option<usize>) -> bool {
    end.is_some_and(|end| end.saturating_sub(d.position) < 4)
}

pub(crate) fn enter_chunk(d: &mut Decoder<'_>, len: usize) -> Result<(), DecodeError> {
    if len > d.data.len() - d.position {
        return Err(d.error(DecodeErrorKind::EndOfData));
    }
    hide_from(d, d.position + len);
    Ok(())
}

/// Returns the bytes between two offsets from the alignment origin, or none if they are not visible.
pub(crate) fn bytes_between<'a>(d: &Decoder<'a>, from: usize, to: usize) -> &'a [u8] {
    d.data.get(from.wrapping_sub(d.base)..to.wrapping_sub(d.base)).unwrap_or_default()
}

/// Moves to `position`, an offset from the alignment origin, and makes everything from there on visible.
/// `level` is the number of chunked values that contain this position. Returns the previous view, for
/// [`restore_view`]. In a message in GIOP 1.1 fragments, offsets do not determine the alignment. In that
/// case, returns `None` and changes nothing.
pub(crate) fn move_view_to<'a>(
    d: &mut Decoder<'a>,
    position: usize,
    level: u32,
) -> Result<Option<View<'a>>, DecodeError> {
    d.join()?;
    if d.has_fragment_boundaries() {
        return Ok(None);
    }
    let nesting = d.values.as_mut().map(|values| core::mem::take(&mut values.nesting)).unwrap_or_default();
    let (data, hidden_bytes) = (d.data, d.remaining_segments.bytes);
    let view = View { data, position: d.position, visible_end: d.visible_end, hidden_bytes, nesting };
    if !view.nesting.chunked_data.all_data.is_empty() {
        d.data = view.nesting.chunked_data.all_data;
    }
    let all_data = if level > 0 { d.data } else { &[] };
    if let Some(values) = &mut d.values {
        let chunked_data = ChunkedData { all_data, is_limited: false };
        values.nesting = Nesting { chunked_data, level, ..Nesting::default() };
    }
    d.position = position.saturating_sub(d.base).min(d.data.len());
    (d.remaining_segments.bytes, d.visible_end) = (0, d.data.len());
    Ok(Some(view))
}

/// Restores a view saved by [`move_view_to`].
pub(crate) fn restore_view<'a>(d: &mut Decoder<'a>, view: View<'a>) {
    (d.data, d.position, d.visible_end) = (view.data, view.position, view.visible_end);
    d.remaining_segments.bytes = view.hidden_bytes;
    if let Some(values) = &mut d.values {
        values.nesting = view.nesting;
    }
}

/// Returns whether the rest of the chunk has data after the padding to a multiple of `n`.
pub(crate) fn has_aligned_data_in_chunk(d: &Decoder<'_>, n: usize) -> bool {
    d.position + padding(d.position + d.fragments.phase_offset, n) < d.data.len()
}

/// Moves to the next chunk that has data after the padding to a multiple of `n`. Returns `false`, and does
/// nothing, if the current chunk has such data or if the visible bytes are not limited to a chunk.
#[cold]
pub(super) fn next_chunk(d: &mut Decoder<'_>, n: usize) -> Result<bool, DecodeError> {
    if !is_view_limited(d) || has_aligned_data_in_chunk(d, n) {
        return Ok(false);
    }
    if d.values.as_ref().is_some_and(|values| values.nesting.ended_from_level.is_some()) {
        return Err(d.error(DecodeErrorKind::EndOfData));
    }
    // A chunk may be shorter than the padding.
    while !has_aligned_data_in_chunk(d, n) {
        leave_chunk(d);
        let len = read_tag_between_chunks(d)?;
        if len == 0 || len >= MIN_VALUE_TAG {
            return Err(DecodeError::new(DecodeErrorKind::EndOfData, d.position() - 4));
        }
        enter_chunk(d, len as usize)?;
    }
    Ok(true)
}

/// Reads the tag after a chunk. Skips the end tags with which TAO ends the states of bases.
pub(crate) fn read_tag_between_chunks(d: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    loop {
        let tag = d.read_u32()?;
        if !d.values.as_ref().is_some_and(|values| values.nesting.is_end_of_base(tag)) {
            return Ok(tag);
        }
    }
}

/// Reads a value of fixed layout that is longer than the rest of the chunk.
#[cold]
pub(super) fn read_fixed_across_chunks<T: FixedLayout>(d: &mut Decoder<'_>) -> Result<T, DecodeError> {
    if next_chunk(d, 1)? {
        return d.read_fixed();
    }
    // Some members are in this chunk, the others in the next one.
    let start = d.position();
    let before = d.rest();
    let phase = d.phase();
    d.position = d.data.len();
    if !next_chunk(d, 1)? {
        return Err(d.error(DecodeErrorKind::EndOfData));
    }
    let mut r = FixedReader::new(before, phase, d.is_foreign_order());
    r.continue_in(d.rest(), d.phase());
    let value = T::get(&mut r);
    if r.is_in_next_region() && !r.is_invalid() {
        d.take(r.position()).map(|_| value)
    } else {
        Err(DecodeError::new(DecodeErrorKind::EndOfData, start))
    }
}

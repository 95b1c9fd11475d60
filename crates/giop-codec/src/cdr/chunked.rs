//! Decoding of values whose state is divided into chunks ("Chunking"). Inside a chunk, only the bytes up to
//! the end of the chunk are visible to a decoder.
//!
//! A chunk ends between two primitives. A primitive that does not fit before the end of the chunk is
//! therefore in the next chunk, after the chunk's length. Reads that meet the end of the visible bytes take
//! the slow path, which enters the next chunk.

use super::decoder::Decoder;
use super::fixed::FixedReader;
use super::layout::{FixedLayout, padding};
use super::value_state::{Chunks, Nesting};
use crate::{DecodeError, DecodeErrorKind};

/// The smallest value tag. Chunk lengths are smaller.
const MIN_VALUE_TAG: u32 = 0x7FFF_FF00;

pub(crate) const fn is_end(tag: u32) -> bool {
    tag >= 0x8000_0000
}

impl Nesting<'_> {
    /// Returns whether a tag is an end tag that ends no value: its level is too deep, or it ends a base of a
    /// value inside an open chunk. TAO ends the state of each base with such a tag, and restarts levels in an
    /// open chunk.
    fn is_end_of_base(&self, tag: u32) -> bool {
        is_end(tag) && (tag.wrapping_neg() > self.level || self.open.last() == Some(&self.level))
    }
}

/// The position, visible bytes and nesting of a decoder.
#[derive(Debug)]
pub(crate) struct View<'a> {
    data: &'a [u8],
    position: usize,
    visible_end: usize,
    hidden_bytes: usize,
    nesting: Nesting<'a>,
}

/// Returns whether the visible bytes are limited: to the current chunk, or to none between chunks.
pub(crate) fn in_chunks(d: &Decoder<'_>) -> bool {
    d.values.as_ref().is_some_and(|values| values.nesting.chunks.is_limited)
}

/// Begins the outermost chunked value, before its first chunk.
pub(crate) fn begin_chunks(d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    d.join()?;
    if let Some(values) = &mut d.values {
        values.nesting.chunks = Chunks { all_data: d.data, is_limited: false };
    }
    Ok(())
}

/// Ends the outermost chunked value.
pub(crate) fn end_chunks(d: &mut Decoder<'_>) {
    leave_chunk(d);
    if let Some(values) = &mut d.values {
        values.nesting.chunks = Chunks::default();
    }
}

/// Hides all bytes from the current position on. The next read then enters the next chunk.
pub(crate) fn await_chunk(d: &mut Decoder<'_>) {
    hide_from(d, d.position);
}

fn hide_from(d: &mut Decoder<'_>, end: usize) {
    let Some(values) = &mut d.values else { return };
    values.nesting.chunks.is_limited = true;
    let all_data = values.nesting.chunks.all_data;
    d.data = all_data.get(..end).unwrap_or(all_data);
    d.remaining_segments.bytes = all_data.len() - d.data.len();
    d.visible_end = d.next_boundary().max(d.position);
}

/// Moves to the end of the chunk and makes the data after it visible.
pub(crate) fn leave_chunk(d: &mut Decoder<'_>) {
    if in_chunks(d) {
        d.position = d.data.len();
        interrupt_chunk(d);
    }
}

/// Makes everything from the current position on visible. Returns the end of the chunk, an index into the
/// data, for [`resume_chunk`].
pub(crate) fn interrupt_chunk(d: &mut Decoder<'_>) -> usize {
    let end = d.data.len();
    let Some(values) = &mut d.values else { return end };
    values.nesting.chunks.is_limited = false;
    d.data = values.nesting.chunks.all_data;
    d.remaining_segments.bytes = 0;
    if d.has_fragment_boundaries() {
        d.pass_boundaries();
    }
    d.visible_end = d.next_boundary().max(d.position);
    end
}

/// Makes only the rest of an interrupted chunk visible, which ends at index `end`.
pub(crate) fn resume_chunk(d: &mut Decoder<'_>, end: usize) -> Result<(), DecodeError> {
    if end < d.position {
        return Err(d.error(DecodeErrorKind::Malformed));
    }
    hide_from(d, end);
    Ok(())
}

/// Returns whether fewer than four bytes are left before the end of a chunk, an index into the data.
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

/// `from` and `to` are offsets from the alignment origin.
pub(crate) fn bytes_between<'a>(d: &Decoder<'a>, from: usize, to: usize) -> &'a [u8] {
    d.data.get(from.wrapping_sub(d.base)..to.wrapping_sub(d.base)).unwrap_or_default()
}

/// Moves to an offset from the alignment origin, inside of `level` chunked values, and makes everything from
/// that offset on visible. Returns the previous view, for [`restore_view`]. In a fragmented message, whose
/// offsets do not determine the alignment, returns `None` and changes nothing.
pub(crate) fn view_from<'a>(
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
    if !view.nesting.chunks.all_data.is_empty() {
        d.data = view.nesting.chunks.all_data;
    }
    let all_data = if level > 0 { d.data } else { &[] };
    if let Some(values) = &mut d.values {
        let chunks = Chunks { all_data, is_limited: false };
        values.nesting = Nesting { chunks, level, ..Nesting::default() };
    }
    d.position = position.saturating_sub(d.base).min(d.data.len());
    (d.remaining_segments.bytes, d.visible_end) = (0, d.data.len());
    Ok(Some(view))
}

/// Restores a view saved by [`view_from`].
pub(crate) fn restore_view<'a>(d: &mut Decoder<'a>, view: View<'a>) {
    (d.data, d.position, d.visible_end) = (view.data, view.position, view.visible_end);
    d.remaining_segments.bytes = view.hidden_bytes;
    if let Some(values) = &mut d.values {
        values.nesting = view.nesting;
    }
}

/// Returns whether the rest of the chunk has data after the padding for an alignment to `n`.
pub(crate) fn has_in_chunk(d: &Decoder<'_>, n: usize) -> bool {
    d.position + padding(d.position + d.fragments.shift, n) < d.data.len()
}

/// Advances to the next chunk that has data aligned to `n`. Returns `false`, and does nothing, outside of
/// chunks or if the current chunk has such data.
#[cold]
pub(super) fn next_chunk(d: &mut Decoder<'_>, n: usize) -> Result<bool, DecodeError> {
    if !in_chunks(d) || has_in_chunk(d, n) {
        return Ok(false);
    }
    if d.values.as_ref().is_some_and(|values| values.nesting.ended.is_some()) {
        return Err(d.error(DecodeErrorKind::EndOfData));
    }
    // A chunk may be shorter than the padding.
    while !has_in_chunk(d, n) {
        leave_chunk(d);
        let len = read_tag_between_chunks(d)?;
        if len == 0 || len >= MIN_VALUE_TAG {
            return Err(DecodeError::new(DecodeErrorKind::EndOfData, d.position() - 4));
        }
        enter_chunk(d, len as usize)?;
    }
    Ok(true)
}

/// Reads the tag after a chunk. Skips end tags that end no value.
pub(crate) fn read_tag_between_chunks(d: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    loop {
        let tag = d.read_u32()?;
        if !d.values.as_ref().is_some_and(|values| values.nesting.is_end_of_base(tag)) {
            return Ok(tag);
        }
    }
}

/// Reads a value of fixed layout that exceeds the rest of the chunk.
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
    let mut r = FixedReader::new(before, phase, d.is_foreign());
    r.continue_in(d.rest(), d.phase());
    let value = T::get(&mut r);
    match r.reached() {
        (true, read) if !r.is_invalid() => d.take(read).map(|_| value),
        _ => Err(DecodeError::new(DecodeErrorKind::EndOfData, start)),
    }
}

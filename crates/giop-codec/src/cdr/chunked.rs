//! States of values in chunks ("Chunking"): inside a chunk, a decoder sees only the bytes up to the end of
//! the chunk.
//!
//! A chunk ends between two primitives. A value that does not fit before the end of the chunk is therefore
//! read from the next chunk, after its length, off the fast path. Boundaries of GIOP 1.1 fragments are
//! treated in the same way.

use super::decoder::Decoder;
use super::fixed::FixedReader;
use super::layout::{FixedLayout, padding};
use super::value_state::{Chunks, Nesting};
use crate::{DecodeError, DecodeErrorKind};

/// Longs from this one on are value tags.
const VALUE: u32 = 0x7FFF_FF00;

/// Returns whether the tag is an end tag.
pub(crate) const fn is_end(tag: u32) -> bool {
    tag >= 0x8000_0000
}

impl Nesting<'_> {
    /// Returns whether a tag is the end tag of a level that no value has, or of a base of a value inside of
    /// an open chunk. TAO ends the state of each base with such a tag, and restarts levels in an open chunk.
    fn ends_nothing(&self, tag: u32) -> bool {
        is_end(tag) && (tag.wrapping_neg() > self.level || self.open.last() == Some(&self.level))
    }
}

/// The saved view of a decoder.
#[derive(Debug)]
pub(crate) struct View<'a> {
    data: &'a [u8],
    position: usize,
    seen: usize,
    left: usize,
    nesting: Nesting<'a>,
}

/// Returns whether only the current chunk, or nothing before the next chunk, is visible.
pub(crate) fn in_chunks(d: &Decoder<'_>) -> bool {
    d.values.as_ref().is_some_and(|values| values.nesting.chunks.cut)
}

/// Sets the state in chunks. There is one only if a value was begun.
fn set_chunks<'a>(d: &mut Decoder<'a>, chunks: Chunks<'a>) {
    if let Some(values) = &mut d.values {
        values.nesting.chunks = chunks;
    }
}

/// Begins the state of a chunked value, before its first chunk.
pub(crate) fn begin_chunks(d: &mut Decoder<'_>) -> Result<(), DecodeError> {
    if d.is_segmented() {
        d.join()?;
    }
    let full = d.data;
    set_chunks(d, Chunks { full, cut: false });
    Ok(())
}

/// Ends the outermost chunked value.
pub(crate) fn end_chunks(d: &mut Decoder<'_>) {
    leave_chunk(d);
    set_chunks(d, Chunks::default());
}

/// Hides everything until the next chunk.
pub(crate) fn await_chunk(d: &mut Decoder<'_>) {
    cut(d, d.position);
}

/// Hides everything from this index on.
fn cut(d: &mut Decoder<'_>, end: usize) {
    let Some(values) = &mut d.values else { return };
    values.nesting.chunks.cut = true;
    let full = values.nesting.chunks.full;
    d.data = full.get(..end).unwrap_or(full);
    d.split.left = full.len() - d.data.len();
    d.seen = d.next_joint().max(d.position);
}

/// Moves to the end of the chunk and makes the data after it visible.
pub(crate) fn leave_chunk(d: &mut Decoder<'_>) {
    if in_chunks(d) {
        d.position = d.data.len();
        interrupt_chunk(d);
    }
}

/// Makes everything from the current position on visible. Returns the index at which the chunk ends, for
/// [`resume_chunk`].
pub(crate) fn interrupt_chunk(d: &mut Decoder<'_>) -> usize {
    let end = d.data.len();
    let Some(values) = &mut d.values else { return end };
    values.nesting.chunks.cut = false;
    d.data = values.nesting.chunks.full;
    d.split.left = 0;
    if d.is_piecewise() {
        d.cross_joints();
    }
    d.seen = d.next_joint().max(d.position);
    end
}

/// Makes only the rest of a chunk visible, which ends at this index.
pub(crate) fn resume_chunk(d: &mut Decoder<'_>, end: usize) -> Result<(), DecodeError> {
    if end < d.position {
        return Err(d.error(DecodeErrorKind::Malformed));
    }
    cut(d, end);
    Ok(())
}

/// Returns whether less than four bytes are left before this index, at which a chunk ends.
pub(crate) fn is_at_chunk_end(d: &Decoder<'_>, end: Option<usize>) -> bool {
    end.is_some_and(|end| end.saturating_sub(d.position) < 4)
}

/// Enters a chunk of the next `len` bytes.
pub(crate) fn enter_chunk(d: &mut Decoder<'_>, len: usize) -> Result<(), DecodeError> {
    if len > d.data.len() - d.position {
        return Err(d.error(DecodeErrorKind::EndOfData));
    }
    cut(d, d.position + len);
    Ok(())
}

/// Returns the bytes between two positions of the visible data.
pub(crate) fn bytes_between<'a>(d: &Decoder<'a>, from: usize, to: usize) -> &'a [u8] {
    d.data.get(from.wrapping_sub(d.base)..to.wrapping_sub(d.base)).unwrap_or_default()
}

/// Moves to an offset from the alignment origin, inside of `level` chunked values, and makes everything from
/// there on visible. Returns the current view, for [`look_back`]. Returns `None`, and changes nothing, where
/// offsets are not indexes.
pub(crate) fn look_at<'a>(
    d: &mut Decoder<'a>,
    position: usize,
    level: u32,
) -> Result<Option<View<'a>>, DecodeError> {
    if d.is_segmented() {
        d.join()?;
    }
    if d.is_piecewise() {
        return Ok(None);
    }
    let nesting = d.values.as_mut().map(|values| core::mem::take(&mut values.nesting)).unwrap_or_default();
    let view = View { data: d.data, position: d.position, seen: d.seen, left: d.split.left, nesting };
    if !view.nesting.chunks.full.is_empty() {
        d.data = view.nesting.chunks.full;
    }
    let full = if level > 0 { d.data } else { &[] };
    if let Some(values) = &mut d.values {
        values.nesting = Nesting { chunks: Chunks { full, cut: false }, level, ..Nesting::default() };
    }
    d.position = position.saturating_sub(d.base).min(d.data.len());
    (d.split.left, d.seen) = (0, d.data.len());
    Ok(Some(view))
}

/// Restores a view saved by [`look_at`].
pub(crate) fn look_back<'a>(d: &mut Decoder<'a>, view: View<'a>) {
    (d.data, d.position, d.seen, d.split.left) = (view.data, view.position, view.seen, view.left);
    if let Some(values) = &mut d.values {
        values.nesting = view.nesting;
    }
}

/// Returns whether something aligned to `n` may be in the rest of the chunk.
pub(crate) fn has_in_chunk(d: &Decoder<'_>, n: usize) -> bool {
    d.position + padding(d.position + d.pieces.shift, n) < d.data.len()
}

/// Advances to the next chunk that has something aligned to `n`, unless the current one does. Returns
/// `false` if there are no chunks, or if the current one has it.
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
        if len == 0 || len >= VALUE {
            return Err(DecodeError::new(DecodeErrorKind::EndOfData, d.position() - 4));
        }
        enter_chunk(d, len as usize)?;
    }
    Ok(true)
}

/// Reads the tag after a chunk. Skips end tags of nesting levels that no open value has.
pub(crate) fn read_tag_between_chunks(d: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    loop {
        let tag = d.read_u32()?;
        if !d.values.as_ref().is_some_and(|values| values.nesting.ends_nothing(tag)) {
            return Ok(tag);
        }
    }
}

/// Reads a value of fixed layout that is not all in the rest of the chunk.
#[cold]
pub(super) fn read_one_over_chunk<T: FixedLayout>(d: &mut Decoder<'_>) -> Result<T, DecodeError> {
    if next_chunk(d, 1)? {
        return d.read_fixed();
    }
    // Some members are in this chunk, the others in the next one.
    let start = d.position();
    let before = d.rest();
    let phase = (d.position + d.pieces.shift) % 8;
    d.position = d.data.len();
    if !next_chunk(d, 1)? {
        return Err(d.error(DecodeErrorKind::EndOfData));
    }
    let mut r = FixedReader::new(before, phase, d.is_foreign());
    r.continue_in(d.rest(), (d.position + d.pieces.shift) % 8);
    let value = T::get(&mut r);
    match r.reached() {
        (true, read) if !r.failed() => d.take(read).map(|_| value),
        _ => Err(DecodeError::new(DecodeErrorKind::EndOfData, start)),
    }
}

//! States of values in chunks ("Chunking"): inside a chunk, a decoder sees only the bytes up to the end of
//! the chunk.
//!
//! A chunk ends between two primitives. A value that does not fit before the end of the chunk is therefore
//! read from the next chunk, after its length, off the fast path. Boundaries of GIOP 1.1 fragments are
//! treated in the same way.

use super::decoder::Decoder;
use super::fixed::FixedReader;
use super::layout::{FixedLayout, padding};
use super::value_state::{Chunks, ReadState};
use crate::{DecodeError, DecodeErrorKind};

/// Longs from this one on are value tags.
const VALUE: u32 = 0x7FFF_FF00;

/// Returns whether the tag is an end tag.
pub(crate) const fn is_end(tag: u32) -> bool {
    tag >= 0x8000_0000
}

impl<T: ?Sized> ReadState<'_, T> {
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
    chunks: Chunks<'a>,
}

impl<'a> Decoder<'a> {
    /// Returns whether only the current chunk, or nothing before the next chunk, is visible.
    pub(crate) fn in_chunks(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.chunks.cut)
    }

    /// Sets the state in chunks. There is one only if a value was begun.
    fn set_chunks(&mut self, chunks: Chunks<'a>) {
        if let Some(values) = &mut self.values {
            values.chunks = chunks;
        }
    }

    /// Begins the state of a chunked value, before its first chunk.
    pub(crate) fn begin_chunks(&mut self) -> Result<(), DecodeError> {
        if self.is_segmented() {
            self.join()?;
        }
        let full = self.data;
        self.set_chunks(Chunks { full, cut: false });
        Ok(())
    }

    /// Ends the outermost chunked value.
    pub(crate) fn end_chunks(&mut self) {
        self.leave_chunk();
        self.set_chunks(Chunks::default());
    }

    /// Hides everything until the next chunk.
    pub(crate) fn await_chunk(&mut self) {
        self.cut(self.position);
    }

    /// Hides everything from this index on.
    fn cut(&mut self, end: usize) {
        let Some(values) = &mut self.values else { return };
        values.chunks.cut = true;
        let full = values.chunks.full;
        self.data = full.get(..end).unwrap_or(full);
        self.split.left = full.len() - self.data.len();
        self.seen = self.next_joint().max(self.position);
    }

    /// Moves to the end of the chunk and makes the data after it visible.
    pub(crate) fn leave_chunk(&mut self) {
        if self.in_chunks() {
            self.position = self.data.len();
            self.interrupt_chunk();
        }
    }

    /// Makes everything from the current position on visible. Returns the index at which the chunk ends, for
    /// [`resume_chunk`](Self::resume_chunk).
    pub(crate) fn interrupt_chunk(&mut self) -> usize {
        let end = self.data.len();
        let Some(values) = &mut self.values else { return end };
        values.chunks.cut = false;
        self.data = values.chunks.full;
        self.split.left = 0;
        if self.is_piecewise() {
            self.cross_joints();
        }
        self.seen = self.next_joint().max(self.position);
        end
    }

    /// Makes only the rest of a chunk visible, which ends at this index.
    pub(crate) fn resume_chunk(&mut self, end: usize) -> Result<(), DecodeError> {
        if end < self.position {
            return Err(self.error(DecodeErrorKind::Malformed));
        }
        self.cut(end);
        Ok(())
    }

    /// Returns whether less than four bytes are left before this index, at which a chunk ends.
    pub(crate) fn is_at_chunk_end(&self, end: Option<usize>) -> bool {
        end.is_some_and(|end| end.saturating_sub(self.position) < 4)
    }

    /// Enters a chunk of the next `len` bytes.
    pub(crate) fn enter_chunk(&mut self, len: usize) -> Result<(), DecodeError> {
        if len > self.data.len() - self.position {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        self.cut(self.position + len);
        Ok(())
    }

    /// Returns the bytes between two positions of the visible data.
    pub(crate) fn bytes_between(&self, from: usize, to: usize) -> &'a [u8] {
        self.data.get(from.wrapping_sub(self.base)..to.wrapping_sub(self.base)).unwrap_or_default()
    }

    /// Moves to an offset from the alignment origin and makes everything from there on visible. `inside` says
    /// whether the offset is inside of a chunked value. Returns the current view, for
    /// [`look_back`](Self::look_back). Returns `None`, and changes nothing, where offsets are not indexes.
    pub(crate) fn look_at(&mut self, position: usize, inside: bool) -> Result<Option<View<'a>>, DecodeError> {
        if self.is_segmented() {
            self.join()?;
        }
        if self.is_piecewise() {
            return Ok(None);
        }
        let chunks =
            self.values.as_mut().map(|values| core::mem::take(&mut values.chunks)).unwrap_or_default();
        let view =
            View { data: self.data, position: self.position, seen: self.seen, left: self.split.left, chunks };
        if !view.chunks.full.is_empty() {
            self.data = view.chunks.full;
        }
        let full = if inside { self.data } else { &[] };
        self.set_chunks(Chunks { full, cut: false });
        self.position = position.saturating_sub(self.base).min(self.data.len());
        (self.split.left, self.seen) = (0, self.data.len());
        Ok(Some(view))
    }

    /// Restores a view saved by [`look_at`](Self::look_at).
    pub(crate) fn look_back(&mut self, view: View<'a>) {
        (self.data, self.position, self.seen, self.split.left) =
            (view.data, view.position, view.seen, view.left);
        self.set_chunks(view.chunks);
    }

    /// Returns whether something aligned to `n` may be in the rest of the chunk.
    pub(crate) fn has_in_chunk(&self, n: usize) -> bool {
        self.position + padding(self.position + self.pieces.shift, n) < self.data.len()
    }

    /// Advances to the next chunk that has something aligned to `n`, unless the current one does. Returns
    /// `false` if there are no chunks, or if the current one has it.
    #[cold]
    pub(super) fn next_chunk(&mut self, n: usize) -> Result<bool, DecodeError> {
        if !self.in_chunks() || self.has_in_chunk(n) {
            return Ok(false);
        }
        if self.values.as_ref().is_some_and(|values| values.ended.is_some()) {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        // A chunk may be shorter than the padding.
        while !self.has_in_chunk(n) {
            self.leave_chunk();
            let len = self.read_tag_between_chunks()?;
            if len == 0 || len >= VALUE {
                return Err(DecodeError::new(DecodeErrorKind::EndOfData, self.position() - 4));
            }
            self.enter_chunk(len as usize)?;
        }
        Ok(true)
    }

    /// Reads the tag after a chunk. Skips end tags of nesting levels that no open value has.
    pub(crate) fn read_tag_between_chunks(&mut self) -> Result<u32, DecodeError> {
        loop {
            let tag = self.read_u32()?;
            if !self.values.as_ref().is_some_and(|values| values.ends_nothing(tag)) {
                return Ok(tag);
            }
        }
    }

    /// Reads a value of fixed layout that is not all in the rest of the chunk.
    #[cold]
    pub(super) fn read_one_over_chunk<T: FixedLayout>(&mut self) -> Result<T, DecodeError> {
        if self.next_chunk(1)? {
            return self.read_fixed();
        }
        // Some members are in this chunk, the others in the next one.
        let start = self.position();
        let before = self.rest();
        let phase = (self.position + self.pieces.shift) % 8;
        self.position = self.data.len();
        if !self.next_chunk(1)? {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        let mut r = FixedReader::new(before, phase, self.is_foreign());
        r.continue_in(self.rest(), (self.position + self.pieces.shift) % 8);
        let value = T::get(&mut r);
        match r.reached() {
            (true, read) if !r.failed() => self.take(read).map(|_| value),
            _ => Err(DecodeError::new(DecodeErrorKind::EndOfData, start)),
        }
    }
}

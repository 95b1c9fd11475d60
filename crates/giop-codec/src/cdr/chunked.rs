//! States of values in chunks ("Chunking"): a decoder inside of one sees the octets up to the end of the chunk.
//!
//! A chunk ends between two primitives. So, like at the joint of two fragments, what does not fit before the end of the chunk is
//! looked for behind the length of the next one, off the fast path.

use super::decoder::Decoder;
use super::fixed::FixedReader;
use super::layout::{FixedLayout, padding};
use crate::{DecodeError, DecodeErrorKind};

/// From here on a long is the tag of a value.
const VALUE: u32 = 0x7FFF_FF00;

/// The data that chunks are cut from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunks<'a> {
    full: &'a [u8],
    /// What is seen is cut: it ends where the chunk does.
    cut: bool,
}

/// What a decoder sees.
#[derive(Debug)]
pub(crate) struct View<'a> {
    data: &'a [u8],
    position: usize,
    seen: usize,
    left: usize,
    chunks: Chunks<'a>,
}

impl<'a> Decoder<'a> {
    /// Whether what is seen ends with a chunk, or where one begins.
    pub(crate) fn in_chunks(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.chunks.cut)
    }

    /// The state of a chunked value begins, in none.
    pub(crate) fn begin_chunks(&mut self) -> Result<(), DecodeError> {
        if self.is_segmented() {
            self.join()?;
        }
        let full = self.data;
        self.values.get_or_insert_default().chunks = Chunks { full, cut: false };
        Ok(())
    }

    /// The outermost chunked value has ended.
    pub(crate) fn end_chunks(&mut self) {
        self.leave_chunk();
        self.values.get_or_insert_default().chunks = Chunks::default();
    }

    /// Nothing is seen before the next chunk.
    pub(crate) fn await_chunk(&mut self) {
        self.cut(self.position);
    }

    /// Sees nothing behind this index.
    fn cut(&mut self, end: usize) {
        let Some(values) = &mut self.values else { return };
        values.chunks.cut = true;
        let full = values.chunks.full;
        self.data = full.get(..end).unwrap_or(full);
        self.split.left = full.len() - self.data.len();
        self.seen = self.next_joint().max(self.position);
    }

    /// Sees everything, from the end of the chunk on.
    pub(crate) fn leave_chunk(&mut self) {
        if self.in_chunks() {
            self.position = self.data.len();
            self.interrupt_chunk();
        }
    }

    /// Sees everything, from here on. The index at which the chunk ends, to go on to it by [`resume_chunk`](Self::resume_chunk).
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

    /// Sees the rest of a chunk that ends at this index.
    pub(crate) fn resume_chunk(&mut self, end: usize) -> Result<(), DecodeError> {
        if end < self.position {
            return Err(self.error(DecodeErrorKind::Malformed));
        }
        self.cut(end);
        Ok(())
    }

    /// Whether nothing of fixed size is left before this index, at which a chunk ends.
    pub(crate) fn is_at_chunk_end(&self, end: Option<usize>) -> bool {
        end.is_some_and(|end| end.saturating_sub(self.position) < 4)
    }

    /// Sees the `len` octets that come next.
    pub(crate) fn enter_chunk(&mut self, len: usize) -> Result<(), DecodeError> {
        if len > self.data.len() - self.position {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        self.cut(self.position + len);
        Ok(())
    }

    /// The bytes between two positions of what is seen.
    pub(crate) fn bytes_between(&self, from: usize, to: usize) -> &'a [u8] {
        self.data.get(from.wrapping_sub(self.base)..to.wrapping_sub(self.base)).unwrap_or_default()
    }

    /// Sees everything from an offset from the alignment origin on, as inside of chunked values or not. What was seen, to come
    /// [back](Self::look_back) to; `None`, and nothing is changed, where offsets are no indexes.
    pub(crate) fn look_at(&mut self, position: usize, inside: bool) -> Result<Option<View<'a>>, DecodeError> {
        if self.is_segmented() {
            self.join()?;
        }
        if self.is_piecewise() {
            return Ok(None);
        }
        let chunks = core::mem::take(&mut self.values.get_or_insert_default().chunks);
        let view =
            View { data: self.data, position: self.position, seen: self.seen, left: self.split.left, chunks };
        if !view.chunks.full.is_empty() {
            self.data = view.chunks.full;
        }
        let full = if inside { self.data } else { &[] };
        self.values.get_or_insert_default().chunks = Chunks { full, cut: false };
        self.position = position.saturating_sub(self.base).min(self.data.len());
        (self.split.left, self.seen) = (0, self.data.len());
        Ok(Some(view))
    }

    /// Sees again what was seen before.
    pub(crate) fn look_back(&mut self, view: View<'a>) {
        (self.data, self.position, self.seen, self.split.left) =
            (view.data, view.position, view.seen, view.left);
        self.values.get_or_insert_default().chunks = view.chunks;
    }

    /// Whether something aligned to `n` may be in what is left of the chunk.
    pub(crate) fn has_in_chunk(&self, n: usize) -> bool {
        self.position + padding(self.position + self.pieces.shift, n) < self.data.len()
    }

    /// Goes on to the chunk that has something aligned to `n`, if it can not be in this one; `false` where there are no chunks, or
    /// where it is in this one.
    #[cold]
    pub(super) fn next_chunk(&mut self, n: usize) -> Result<bool, DecodeError> {
        if !self.in_chunks() || self.has_in_chunk(n) {
            return Ok(false);
        }
        if self.values.as_ref().is_some_and(|values| values.has_ended()) {
            return Err(self.error(DecodeErrorKind::EndOfData));
        }
        // A chunk may be too short for the padding.
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

    /// Reads the tag that follows a chunk: the first one that is not the end tag of a level that no value has.
    pub(crate) fn read_tag_between_chunks(&mut self) -> Result<u32, DecodeError> {
        loop {
            let tag = self.read_u32()?;
            if !self.values.as_ref().is_some_and(|values| values.ends_nothing(tag)) {
                return Ok(tag);
            }
        }
    }

    /// A value of fixed layout that is not all in what is left of the chunk.
    #[cold]
    pub(super) fn read_one_over_chunk<T: FixedLayout>(&mut self) -> Result<T, DecodeError> {
        if self.next_chunk(1)? {
            return self.read_fixed();
        }
        // Some members are in this chunk, the others in the next.
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

//! Saved decoder positions.

use bytes::Bytes;

use super::decoder::{DecodeLimits, Decoder, RemainingFragments};
use super::segments::RemainingSegments;
use crate::DecodeError;

/// A saved decoder position: the whole state of the decoder, except for the value types that it has read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bookmark<'a> {
    data: &'a [u8],
    position: usize,
    base: usize,
    remaining_segments: RemainingSegments<'a>,
    visible_end: usize,
    fragments: RemainingFragments<'a>,
    owner: Option<(&'a Bytes, usize)>,
    limits: DecodeLimits,
}

impl Bookmark<'_> {
    /// Returns the offset of the saved position, modulo 8.
    pub(crate) fn phase(&self) -> usize {
        (self.position + self.fragments.phase_offset) % 8
    }

    pub(crate) fn limits(&self) -> DecodeLimits {
        self.limits
    }
}

impl<'a> Decoder<'a> {
    #[inline]
    pub(crate) fn bookmark(&self) -> Bookmark<'a> {
        Bookmark {
            data: self.data,
            position: self.position,
            base: self.base,
            remaining_segments: self.remaining_segments,
            visible_end: self.visible_end,
            fragments: self.fragments,
            owner: self.owner,
            limits: self.limits(),
        }
    }

    /// Returns the bytes between a saved position and the current one, if they are contiguous.
    pub(crate) fn bytes_since(&self, bookmark: Bookmark<'a>) -> Option<&'a [u8]> {
        let is_contiguous = std::ptr::eq(self.data, bookmark.data)
            && self.base == bookmark.base
            && self.fragments.phase_offset == bookmark.fragments.phase_offset
            && self.visible_end == bookmark.visible_end;
        if is_contiguous { self.data.get(bookmark.position..self.position) } else { None }
    }

    /// Returns the bytes between a saved position and the current one. If a segment boundary is between them,
    /// all segments of the message are first joined into one buffer. If a fragment or chunk boundary is
    /// between them, the decoder returns to the saved position, and the result is `None`.
    pub(crate) fn join_bytes_since(
        &mut self,
        bookmark: Bookmark<'a>,
    ) -> Result<Option<&'a [u8]>, DecodeError> {
        if let Some(bytes) = self.bytes_since(bookmark) {
            return Ok(Some(bytes));
        }
        let len = self.position() - (bookmark.position + bookmark.base);
        self.return_to(bookmark);
        if self.is_segmented() { self.take(len).map(Some) } else { Ok(None) }
    }

    /// Returns `bytes`, which must end at the current position, as a view of the shared buffer, if any.
    pub(crate) fn share_just_read(&mut self, bytes: &'a [u8]) -> Result<Bytes, DecodeError> {
        self.share(self.position - bytes.len(), bytes)
    }

    /// Returns this decoder with `phase` as the offset, modulo 8, of its first byte.
    pub(crate) fn with_phase(mut self, phase: usize) -> Decoder<'a> {
        self.fragments.phase_offset = phase;
        self
    }

    /// Returns to a saved position, and restores the limits that remained there.
    pub(crate) fn return_to(&mut self, bookmark: Bookmark<'a>) {
        (self.data, self.position, self.base) = (bookmark.data, bookmark.position, bookmark.base);
        (self.visible_end, self.owner) = (bookmark.visible_end, bookmark.owner);
        (self.remaining_segments, self.fragments) = (bookmark.remaining_segments, bookmark.fragments);
        self.set_limits(bookmark.limits);
    }
}

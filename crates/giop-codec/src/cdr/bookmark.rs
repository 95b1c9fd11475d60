//! Saved decoder positions.

use bytes::Bytes;

use super::decoder::{DecodeLimits, Decoder, RemainingFragments};
use super::segments::RemainingSegments;
use crate::DecodeError;

/// A saved decoder position: the state of a clone, without the table of values that were read.
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
    /// Returns the offset modulo 8, for alignment.
    pub(crate) fn phase(&self) -> usize {
        (self.position + self.fragments.shift) % 8
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
    pub(crate) fn since(&self, bookmark: Bookmark<'a>) -> Option<&'a [u8]> {
        let is_contiguous = std::ptr::eq(self.data, bookmark.data)
            && self.base == bookmark.base
            && self.fragments.shift == bookmark.fragments.shift
            && self.visible_end == bookmark.visible_end;
        if is_contiguous { self.data.get(bookmark.position..self.position) } else { None }
    }

    /// Returns the bytes between a saved position and the current one. If a segment boundary is between them,
    /// the message is joined, once. `None` if a boundary that changes the alignment is between them; the
    /// decoder has then returned to the saved position.
    pub(crate) fn joined_since(&mut self, bookmark: Bookmark<'a>) -> Result<Option<&'a [u8]>, DecodeError> {
        if let Some(bytes) = self.since(bookmark) {
            return Ok(Some(bytes));
        }
        let len = self.position() - (bookmark.position + bookmark.base);
        self.return_to(bookmark);
        if self.is_segmented() { self.take(len).map(Some) } else { Ok(None) }
    }

    /// Returns `bytes`, which end at the current position, as a view of the shared buffer, or as a copy if
    /// there is none.
    pub(crate) fn share_before(&mut self, bytes: &'a [u8]) -> Result<Bytes, DecodeError> {
        self.share(self.position - bytes.len(), bytes)
    }

    /// Returns this decoder with `phase` as the offset modulo 8 of its first byte.
    pub(crate) fn shifted(mut self, phase: usize) -> Decoder<'a> {
        self.fragments.shift = phase;
        self
    }

    /// Returns to a saved position and to the limits that remained there.
    pub(crate) fn return_to(&mut self, bookmark: Bookmark<'a>) {
        (self.data, self.position, self.base) = (bookmark.data, bookmark.position, bookmark.base);
        (self.visible_end, self.owner) = (bookmark.visible_end, bookmark.owner);
        (self.remaining_segments, self.fragments) = (bookmark.remaining_segments, bookmark.fragments);
        self.set_limits(bookmark.limits);
    }
}

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
    split: RemainingSegments<'a>,
    seen: usize,
    pieces: RemainingFragments<'a>,
    owner: Option<(&'a Bytes, usize)>,
    limits: DecodeLimits,
}

impl Bookmark<'_> {
    /// Returns the offset modulo 8, for alignment.
    pub(crate) fn phase(&self) -> usize {
        (self.position + self.pieces.shift) % 8
    }

    /// Returns the limits that were left at that position.
    pub(crate) fn limits(&self) -> DecodeLimits {
        self.limits
    }
}

impl<'a> Decoder<'a> {
    /// Saves the current position.
    #[inline]
    pub(crate) fn bookmark(&self) -> Bookmark<'a> {
        Bookmark {
            data: self.data,
            position: self.position,
            base: self.base,
            split: self.split,
            seen: self.seen,
            pieces: self.pieces,
            owner: self.owner,
            limits: self.limits(),
        }
    }

    /// Returns the bytes between a saved position and the current one, if they are contiguous.
    pub(crate) fn since(&self, bookmark: Bookmark<'a>) -> Option<&'a [u8]> {
        let same = std::ptr::eq(self.data, bookmark.data)
            && self.base == bookmark.base
            && self.pieces.shift == bookmark.pieces.shift
            && self.seen == bookmark.seen;
        if same { self.data.get(bookmark.position..self.position) } else { None }
    }

    /// Returns the bytes between a saved position and the current one, also across segment boundaries: the
    /// message is then joined, once. Returns `None` across other boundaries, which change the alignment. The
    /// decoder is at the saved position then.
    pub(crate) fn joined_since(&mut self, bookmark: Bookmark<'a>) -> Result<Option<&'a [u8]>, DecodeError> {
        if let Some(octets) = self.since(bookmark) {
            return Ok(Some(octets));
        }
        let len = self.position() - (bookmark.position + bookmark.base);
        self.return_to(bookmark);
        if self.is_segmented() { self.take(len).map(Some) } else { Ok(None) }
    }

    /// Returns `octets`, which end at the current position, as a view of the shared buffer, or a copy if
    /// there is none.
    pub(crate) fn share_before(&mut self, octets: &'a [u8]) -> Result<Bytes, DecodeError> {
        self.share(self.position - octets.len(), octets)
    }

    /// Returns this decoder with `phase` as the phase of its first byte.
    pub(crate) fn shifted(mut self, phase: usize) -> Decoder<'a> {
        self.pieces.shift = phase;
        self
    }

    /// Returns to a saved position, with the limits that were left there.
    pub(crate) fn return_to(&mut self, bookmark: Bookmark<'a>) {
        let Bookmark { data, position, base, split, seen, pieces, owner, limits } = bookmark;
        (self.data, self.position, self.base, self.split) = (data, position, base, split);
        (self.seen, self.pieces, self.owner) = (seen, pieces, owner);
        self.set_limits(limits);
    }
}

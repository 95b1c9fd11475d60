//! Saved decoder positions.

use bytes::Bytes;

use super::decoder::{DecodeLimits, Decoder, Pieces};

use super::segments::Split;
use crate::DecodeError;

/// A saved decoder position: the state of a clone, without the table of values that were read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'a> {
    data: &'a [u8],
    position: usize,
    base: usize,
    split: Split<'a>,
    seen: usize,
    pieces: Pieces<'a>,
    owner: Option<(&'a Bytes, usize)>,
    limits: DecodeLimits,
}

impl Spot<'_> {
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
    pub(crate) fn spot(&self) -> Spot<'a> {
        Spot {
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
    pub(crate) fn since(&self, spot: Spot<'a>) -> Option<&'a [u8]> {
        let same = std::ptr::eq(self.data, spot.data)
            && self.base == spot.base
            && self.pieces.shift == spot.pieces.shift
            && self.seen == spot.seen;
        if same { self.data.get(spot.position..self.position) } else { None }
    }

    /// Returns the bytes between a saved position and the current one, also across segment boundaries: the
    /// message is then joined, once. Returns `None` across other boundaries, which change the alignment. The
    /// decoder is at the saved position then.
    pub(crate) fn joined_since(&mut self, spot: Spot<'a>) -> Result<Option<&'a [u8]>, DecodeError> {
        if let Some(octets) = self.since(spot) {
            return Ok(Some(octets));
        }
        let len = self.position() - (spot.position + spot.base);
        self.return_to(spot);
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
    pub(crate) fn return_to(&mut self, spot: Spot<'a>) {
        let Spot { data, position, base, split, seen, pieces, owner, limits } = spot;
        (self.data, self.position, self.base, self.split) = (data, position, base, split);
        (self.seen, self.pieces, self.owner) = (seen, pieces, owner);
        self.set_limits(limits);
    }
}

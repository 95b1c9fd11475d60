//! Places in a stream to come back to.

use bytes::Bytes;

use super::decoder::{DecodeLimits, Decoder};
use super::pieces::Pieces;
use super::segments::Split;
use crate::DecodeError;

/// Where a decoder stands: what a clone of it would have, but for the values that were read.
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
    /// The place modulo 8, for alignment.
    pub(crate) fn phase(&self) -> usize {
        (self.position + self.pieces.shift) % 8
    }

    /// The limits that were left there.
    pub(crate) fn limits(&self) -> DecodeLimits {
        self.limits
    }
}

impl<'a> Decoder<'a> {
    /// The place reached.
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

    /// The octets between a place that this decoder was at and where it is, where nothing lies between them.
    pub(crate) fn since(&self, spot: Spot<'a>) -> Option<&'a [u8]> {
        let same = std::ptr::eq(self.data, spot.data)
            && self.base == spot.base
            && self.pieces.shift == spot.pieces.shift
            && self.seen == spot.seen;
        if same { self.data.get(spot.position..self.position) } else { None }
    }

    /// The same where joints of segments may lie between them: the message is joined then, once. `None` where other joints do, behind which
    /// the alignment is another one; the decoder is at that place then.
    pub(crate) fn joined_since(&mut self, spot: Spot<'a>) -> Result<Option<&'a [u8]>, DecodeError> {
        if let Some(octets) = self.since(spot) {
            return Ok(Some(octets));
        }
        let len = self.position() - (spot.position + spot.base);
        self.return_to(spot);
        if self.is_segmented() { self.take(len).map(Some) } else { Ok(None) }
    }

    /// Octets that end where the decoder is, as a view of the shared buffer; a copy where there is none.
    pub(crate) fn share_before(&mut self, octets: &'a [u8]) -> Result<Bytes, DecodeError> {
        self.share(self.position - octets.len(), octets)
    }

    /// The same decoder of octets of which the first one has this phase.
    pub(crate) fn shifted(mut self, phase: usize) -> Decoder<'a> {
        self.pieces.shift = phase;
        self
    }

    /// Goes back to a place that this decoder was at, with the limits that it had there.
    pub(crate) fn return_to(&mut self, spot: Spot<'a>) {
        let Spot { data, position, base, split, seen, pieces, owner, limits } = spot;
        (self.data, self.position, self.base, self.split) = (data, position, base, split);
        (self.seen, self.pieces, self.owner) = (seen, pieces, owner);
        self.set_limits(limits);
    }
}

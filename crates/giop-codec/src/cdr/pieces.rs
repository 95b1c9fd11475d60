//! Messages joined from GIOP 1.1 fragments, whose values are aligned in each fragment separately.
//!
//! The bytes of such a message are contiguous, but alignment restarts at each fragment boundary: the first
//! byte of a fragment follows its own message header and has phase 4 modulo 8. A sender (omniORB) splits
//! between values, never inside one, except for runs of bytes.
//!
//! Therefore a decoder sees only the bytes up to the next boundary, and reads a value that does not fit there
//! from the next fragment. Unfragmented messages have no overhead: for them the next boundary is the end.

use super::chunked;
use super::decoder::{Decoder, RemainingFragments};
use super::fixed::FixedReader;
use super::layout::{FixedLayout, padding};
use crate::{DecodeError, DecodeErrorKind};

/// The phase at which the payload of a fragment starts, after twelve bytes of message header.
pub(super) const FRAGMENT_PHASE: usize = 4;

impl<'a> Decoder<'a> {
    /// Returns this decoder for a message joined from GIOP 1.1 fragments. `starts` holds the offsets of the
    /// second and later fragments, in ascending order. Values are aligned in each fragment separately. See
    /// `giop-proto`'s `pieces`.
    #[must_use]
    pub fn with_pieces(mut self, starts: &'a [u32]) -> Decoder<'a> {
        if starts.is_empty() {
            return self;
        }
        self.pieces = RemainingFragments { starts, shift: 0 };
        self.seen = self.next_joint();
        self.cross_joints();
        self
    }

    /// Returns whether more fragments may follow.
    #[inline(always)]
    pub(crate) fn is_piecewise(&self) -> bool {
        !self.pieces.starts.is_empty()
    }

    /// Returns `count` if so many elements can follow although they need more bytes (`octets`) than remain.
    /// Each fragment boundary may save up to 7 bytes of padding.
    #[cold]
    pub(super) fn len_over_joints(&self, count: usize, octets: Option<usize>) -> Result<usize, DecodeError> {
        match octets {
            Some(octets) if octets <= self.remaining() + 7 * self.pieces.starts.len() => Ok(count),
            _ => Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, self.position() - 4)),
        }
    }

    /// Returns whether the next `n` bytes are contiguous and have one alignment.
    #[inline(always)]
    pub(crate) fn in_piece(&self, n: usize) -> bool {
        self.seen - self.position >= n
            || !(self.is_piecewise() || self.is_segmented() || chunked::in_chunks(self))
    }

    /// Advances to the next fragment, because the next value does not fit before the boundary. Returns
    /// `false` if there is none.
    #[cold]
    pub(super) fn next_piece(&mut self) -> bool {
        let Some((start, rest)) = self.pieces.starts.split_first() else { return false };
        let start = *start as usize;
        if start > self.data.len() {
            return false;
        }
        self.pieces.starts = rest;
        self.pieces.shift = FRAGMENT_PHASE.wrapping_sub(start) % 8;
        self.position = self.position.max(start).min(self.data.len());
        self.seen = self.next_joint().max(self.position);
        true
    }

    /// Skips the padding before a run of numbers aligned to `n`: 1, 2, 4 or 8. Returns how many bytes of it
    /// are missing because the data ends there.
    pub fn begin_run(&mut self, n: usize) -> usize {
        let mut pad = padding(self.phase(), n);
        // omniORB aligns a run once, before the fragment boundary, and does not realign after it, even if the
        // whole run follows the boundary. If the boundary comes before the padding, the run is aligned after
        // the boundary.
        while !self.is_segmented() && self.position + pad > self.seen && self.next_piece() {
            pad = padding(self.phase(), n);
        }
        if self.take(pad).is_ok() {
            return 0;
        }
        let there = self.remaining();
        // Cannot fail: exactly the remaining bytes are taken.
        let _ = self.take(there);
        pad.saturating_sub(there)
    }

    /// Updates the fragment state after a run of bytes that may have crossed boundaries.
    #[cold]
    pub(super) fn cross_joints(&mut self) {
        while self.pieces.starts.first().is_some_and(|start| *start as usize <= self.position) {
            self.next_piece();
        }
    }

    pub(super) fn next_joint(&self) -> usize {
        self.pieces.starts.first().map_or(self.data.len(), |start| (*start as usize).min(self.data.len()))
    }

    /// Reads a value of fixed layout whose members are on both sides of a boundary.
    #[cold]
    pub(super) fn read_fixed_across<T: FixedLayout>(&mut self) -> Result<T, DecodeError> {
        if self.is_segmented() {
            return self.read_one_over_joint();
        }
        if chunked::in_chunks(self) && self.seen == self.data.len() {
            return chunked::read_one_over_chunk(self);
        }
        let start = self.position;
        let phase = (start + self.pieces.shift) % 8;
        if T::NUMBERS && start + padding(start + self.pieces.shift, T::LAYOUT.align()) < self.seen {
            // An array is one run of bytes: its elements are not realigned after the boundary.
            let octets = self.take(T::LAYOUT.size(phase))?;
            return Ok(T::get(&mut FixedReader::new(octets, phase, self.is_foreign())));
        }
        let joint = self.seen;
        let before = self.data.get(start..joint).unwrap_or_default();
        let behind = self.data.get(joint..).unwrap_or_default();
        let mut r = FixedReader::new(before, phase, self.is_foreign());
        r.continue_in(behind, FRAGMENT_PHASE);
        let value = T::get(&mut r);
        let (crossed, read) = r.reached();
        if r.failed() {
            return Err(DecodeError::new(DecodeErrorKind::EndOfData, start));
        }
        self.position = if crossed { joint + read } else { start + read };
        self.cross_joints();
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use crate::cdr::{CdrDecode, Decoder, Seq};
    use crate::{ByteOrder, Version};

    /// Returns a message of a long at 4 and a double, followed by a fragment that begins with a double. The
    /// fragment starts at phase 4, so 4 bytes of padding precede that double.
    fn message() -> Vec<u8> {
        let mut octets = vec![0; 4];
        octets.extend(7u32.to_le_bytes());
        octets.extend(1.5f64.to_le_bytes());
        octets.extend([0; 4]);
        octets.extend(2.5f64.to_le_bytes());
        octets.extend(9u32.to_le_bytes());
        octets
    }

    #[test]
    fn values_behind_a_joint_are_aligned_in_their_fragment() {
        let octets = message();
        let mut d = Decoder::new(&octets, ByteOrder::Little, Version::V1_1).at(4).with_pieces(&[16]);
        assert_eq!(d.read_u32().unwrap(), 7);
        assert_eq!(d.read_f64().unwrap(), 1.5);
        assert_eq!(d.read_f64().unwrap(), 2.5);
        assert_eq!(d.read_u32().unwrap(), 9);
        assert!(d.read_u8().is_err());
    }

    #[test]
    fn runs_of_octets_and_of_numbers_go_over_joints_without_padding() {
        let mut octets = vec![0; 4];
        octets.extend(2u32.to_le_bytes());
        octets.extend(1.5f64.to_le_bytes());
        octets.extend(2.5f64.to_le_bytes());
        octets.extend(9u32.to_le_bytes());
        let bytes = bytes::Bytes::from(octets.clone());
        let new = || Decoder::from_bytes(&bytes, ByteOrder::Little, Version::V1_1).at(4).with_pieces(&[16]);
        let mut d = new();
        assert_eq!(Vec::<f64>::decode(&mut d).unwrap(), [1.5, 2.5]);
        assert_eq!(d.read_u32().unwrap(), 9);
        let mut d = new();
        assert_eq!(*Seq::<f64>::decode(&mut d).unwrap(), [1.5, 2.5]);
        assert_eq!(d.read_u32().unwrap(), 9);
        let mut d = new();
        d.read_u32().unwrap();
        assert_eq!(<[f64; 2]>::decode(&mut d).unwrap(), [1.5, 2.5]);
        assert_eq!(d.read_u32().unwrap(), 9);
        let mut d = new();
        assert_eq!(d.take(14).unwrap(), &octets[4..18]);
        assert_eq!(d.remaining(), 10);
    }

    #[test]
    fn a_run_begins_where_it_is_aligned_or_behind_the_joint() {
        let octets = message();
        // A run at offset 8 begins before the boundary, or after it at phase 4.
        for (from, joint, n, at) in [
            (8, 16, 8, 8),
            (8, 8, 8, 12),
            (8, 8, 4, 8),
            (8, 9, 8, 8),
            (8, 12, 8, 8),
            (16, 16, 8, 20),
            (9, 12, 8, 16),
        ] {
            let joints = [joint];
            let d = Decoder::new(&octets, ByteOrder::Little, Version::V1_1).at(from).with_pieces(&joints);
            let mut d = d;
            assert_eq!((d.begin_run(n), d.position()), (0, at), "{from} {joint} {n}");
        }
        // Missing padding is counted.
        for (len, missing) in [(9, 7), (12, 4), (15, 1), (16, 0), (8, 0)] {
            let mut d = Decoder::new(&octets[..len], ByteOrder::Little, Version::V1_2).at(len.min(9));
            assert_eq!((d.begin_run(8), d.remaining()), (missing, 0), "{len}");
        }
    }

    #[test]
    fn a_run_that_begins_at_a_joint_is_not_aligned_behind_it() {
        let mut octets = vec![0; 4];
        octets.extend(2u32.to_le_bytes());
        octets.extend(1.5f64.to_le_bytes());
        octets.extend(2.5f64.to_le_bytes());
        let bytes = bytes::Bytes::from(octets);
        let new = || Decoder::from_bytes(&bytes, ByteOrder::Little, Version::V1_1).at(4).with_pieces(&[8]);
        let mut d = new();
        assert_eq!(Vec::<f64>::decode(&mut d).unwrap(), [1.5, 2.5]);
        assert_eq!(d.remaining(), 0);
        assert_eq!(*Seq::<f64>::decode(&mut new()).unwrap(), [1.5, 2.5]);
        // The padding omitted at a boundary does not make a count invalid.
        let octets = [1, 0, 0, 0, 1, 0, 0, 0, 7, 9, 0];
        let mut d = Decoder::new(&octets, ByteOrder::Little, Version::V1_1).with_pieces(&[9]);
        assert_eq!(d.read_len(8).unwrap(), 1);
    }

    #[test]
    fn a_refused_view_is_read_again_from_its_start() {
        let mut octets = vec![0; 8];
        octets.extend(1u32.to_le_bytes());
        octets.extend(2.5f64.to_le_bytes());
        octets.extend(9u32.to_le_bytes());
        let bytes = bytes::Bytes::from(octets);
        let mut d = Decoder::from_bytes(&bytes, ByteOrder::Little, Version::V1_1).at(8).with_pieces(&[8, 20]);
        assert_eq!(*Seq::<f64>::decode(&mut d).unwrap(), [2.5]);
        assert_eq!(d.read_u32().unwrap(), 9);
    }

    #[test]
    fn no_joint_anywhere_makes_a_decoder_fail_otherwise_than_by_an_error() {
        let octets = message();
        for a in 0..=octets.len() as u32 + 2 {
            for b in a..=octets.len() as u32 + 2 {
                let joints = [a, b];
                let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_1).with_pieces(&joints);
                while let Ok(value) = d.read_u64() {
                    let _ = value;
                }
                let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_1).with_pieces(&joints);
                let _ = d.read_fixed_vec::<u64>(3);
                let _ = d.take(5);
                let _ = d.read_u16();
            }
        }
    }
}

//! Decoding of messages joined from GIOP 1.1 fragments, each of which is aligned separately.
//!
//! The bytes of such a message are contiguous, but alignment restarts at each fragment boundary: the first
//! byte of a fragment follows a message header of twelve bytes and has phase 4. Senders such as omniORB split
//! between values or inside a run of bytes.
//!
//! Therefore a decoder sees only the bytes up to the next boundary. A value that does not fit before it is
//! read from the next fragment. In an unfragmented message, the end of the data is the boundary.

use super::chunked;
use super::decoder::{Decoder, RemainingFragments};
use super::fixed::FixedReader;
use super::layout::{FixedLayout, padding};
use crate::{DecodeError, DecodeErrorKind};

/// The phase (offset modulo 8) of the first byte of a fragment.
pub(super) const FRAGMENT_PHASE: usize = 4;

impl<'a> Decoder<'a> {
    /// Returns this decoder for a message joined from GIOP 1.1 fragments, each of which is aligned
    /// separately. `starts` has the offsets at which all fragments but the first begin, in ascending order.
    #[must_use]
    pub fn with_fragments(mut self, starts: &'a [u32]) -> Decoder<'a> {
        if starts.is_empty() {
            return self;
        }
        self.fragments = RemainingFragments { starts, phase_offset: 0 };
        self.visible_end = self.next_boundary();
        self.pass_boundaries();
        self
    }

    /// Returns whether fragment boundaries follow.
    #[inline(always)]
    pub(crate) fn has_fragment_boundaries(&self) -> bool {
        !self.fragments.starts.is_empty()
    }

    /// Returns `count` if that many elements may still be in the rest of the message. `min_bytes`, their
    /// minimum size, includes padding. Each fragment boundary may make up to 7 bytes of padding unnecessary.
    #[cold]
    pub(super) fn len_across_fragments(
        &self,
        count: usize,
        min_bytes: Option<usize>,
    ) -> Result<usize, DecodeError> {
        match min_bytes {
            Some(bytes) if bytes <= self.remaining() + 7 * self.fragments.starts.len() => Ok(count),
            _ => Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, self.position() - 4)),
        }
    }

    /// Returns whether the next `n` bytes are contiguous, with no restart of the alignment between them. If
    /// the data has no boundaries of any kind, also returns true for a greater `n` than the rest of the data.
    #[inline(always)]
    pub(crate) fn has_contiguous(&self, n: usize) -> bool {
        self.visible_end - self.position >= n
            || !(self.has_fragment_boundaries() || self.is_segmented() || chunked::is_view_limited(self))
    }

    /// Advances to the next fragment. Returns `false` if there is none.
    #[cold]
    pub(super) fn next_fragment(&mut self) -> bool {
        let Some((start, rest)) = self.fragments.starts.split_first() else { return false };
        let start = *start as usize;
        if start > self.data.len() {
            return false;
        }
        self.fragments.starts = rest;
        self.fragments.phase_offset = FRAGMENT_PHASE.wrapping_sub(start) % 8;
        self.position = self.position.max(start).min(self.data.len());
        self.visible_end = self.next_boundary().max(self.position);
        true
    }

    /// Skips the padding before a run of numbers aligned to `n`, which must be 1, 2, 4 or 8. If the data ends
    /// first, returns the number of missing padding bytes, otherwise 0.
    pub fn begin_run(&mut self, n: usize) -> usize {
        let mut pad = padding(self.phase(), n);
        // omniORB aligns a run before the fragment boundary, even if all numbers follow the boundary. It
        // aligns the run after the boundary only if the padding does not fit before the boundary.
        while !self.is_segmented() && self.position + pad > self.visible_end && self.next_fragment() {
            pad = padding(self.phase(), n);
        }
        if self.take(pad).is_ok() {
            return 0;
        }
        let remaining = self.remaining();
        // Cannot fail: exactly the remaining bytes are taken.
        let _ = self.take(remaining);
        pad.saturating_sub(remaining)
    }

    /// Enters the fragment that contains the current position.
    #[cold]
    pub(super) fn pass_boundaries(&mut self) {
        while self.fragments.starts.first().is_some_and(|start| *start as usize <= self.position) {
            self.next_fragment();
        }
    }

    pub(super) fn next_boundary(&self) -> usize {
        self.fragments.starts.first().map_or(self.data.len(), |start| (*start as usize).min(self.data.len()))
    }

    /// Reads a value of fixed layout that is longer than the rest of the visible bytes.
    #[cold]
    pub(super) fn read_fixed_across_boundary<T: FixedLayout>(&mut self) -> Result<T, DecodeError> {
        if self.is_segmented() {
            return self.read_fixed_across_segments();
        }
        if chunked::is_view_limited(self) && self.visible_end == self.data.len() {
            return chunked::read_fixed_across_chunks(self);
        }
        let start = self.position;
        let phase = self.phase();
        if T::ARE_NUMBERS && start + padding(phase, T::LAYOUT.align()) < self.visible_end {
            // An array of numbers is one run: it is aligned at its start, and not again after the boundary.
            let bytes = self.take(T::LAYOUT.size(phase))?;
            return Ok(T::get(&mut FixedReader::new(bytes, phase, self.is_foreign_order())));
        }
        let boundary = self.visible_end;
        let mut r = FixedReader::new(
            self.data.get(start..boundary).unwrap_or_default(),
            phase,
            self.is_foreign_order(),
        );
        r.continue_in(self.data.get(boundary..).unwrap_or_default(), FRAGMENT_PHASE);
        let value = T::get(&mut r);
        if r.is_invalid() {
            return Err(DecodeError::new(DecodeErrorKind::EndOfData, start));
        }
        self.position = if r.is_in_next_region() { boundary } else { start } + r.position();
        self.pass_boundaries();
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use crate::cdr::{CdrDecode, Decoder, Seq};
    use crate::{ByteOrder, Version};

    /// Returns a message in two fragments. The first has a long at offset 4 and a double. The second starts
    /// at phase 4, so it has 4 bytes of padding before a double and a long.
    fn message() -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(7u32.to_le_bytes());
        bytes.extend(1.5f64.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(2.5f64.to_le_bytes());
        bytes.extend(9u32.to_le_bytes());
        bytes
    }

    #[test]
    fn values_after_a_boundary_are_aligned_in_their_fragment() {
        let bytes = message();
        let mut d = Decoder::new(&bytes, ByteOrder::Little, Version::V1_1).at(4).with_fragments(&[16]);
        assert_eq!(d.read_u32().unwrap(), 7);
        assert_eq!(d.read_f64().unwrap(), 1.5);
        assert_eq!(d.read_f64().unwrap(), 2.5);
        assert_eq!(d.read_u32().unwrap(), 9);
        assert!(d.read_u8().is_err());
    }

    #[test]
    fn runs_of_bytes_and_of_numbers_cross_boundaries_without_padding() {
        let mut bytes = vec![0; 4];
        bytes.extend(2u32.to_le_bytes());
        bytes.extend(1.5f64.to_le_bytes());
        bytes.extend(2.5f64.to_le_bytes());
        bytes.extend(9u32.to_le_bytes());
        let shared = bytes::Bytes::from(bytes.clone());
        let new =
            || Decoder::from_bytes(&shared, ByteOrder::Little, Version::V1_1).at(4).with_fragments(&[16]);
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
        assert_eq!(d.take(14).unwrap(), &bytes[4..18]);
        assert_eq!(d.remaining(), 10);
    }

    #[test]
    fn a_run_begins_where_it_is_aligned_or_after_the_boundary() {
        let bytes = message();
        // Each case: start offset, offset of the boundary, alignment of the run, and where the run begins.
        for (from, boundary, n, at) in [
            (8, 16, 8, 8),
            (8, 8, 8, 12),
            (8, 8, 4, 8),
            (8, 9, 8, 8),
            (8, 12, 8, 8),
            (16, 16, 8, 20),
            (9, 12, 8, 16),
        ] {
            let boundaries = [boundary];
            let d =
                Decoder::new(&bytes, ByteOrder::Little, Version::V1_1).at(from).with_fragments(&boundaries);
            let mut d = d;
            assert_eq!((d.begin_run(n), d.position()), (0, at), "{from} {boundary} {n}");
        }
        // Missing padding is counted.
        for (len, missing) in [(9, 7), (12, 4), (15, 1), (16, 0), (8, 0)] {
            let mut d = Decoder::new(&bytes[..len], ByteOrder::Little, Version::V1_2).at(len.min(9));
            assert_eq!((d.begin_run(8), d.remaining()), (missing, 0), "{len}");
        }
    }

    #[test]
    fn a_run_that_begins_at_a_boundary_is_not_aligned_after_it() {
        let mut bytes = vec![0; 4];
        bytes.extend(2u32.to_le_bytes());
        bytes.extend(1.5f64.to_le_bytes());
        bytes.extend(2.5f64.to_le_bytes());
        let shared = bytes::Bytes::from(bytes);
        let new =
            || Decoder::from_bytes(&shared, ByteOrder::Little, Version::V1_1).at(4).with_fragments(&[8]);
        let mut d = new();
        assert_eq!(Vec::<f64>::decode(&mut d).unwrap(), [1.5, 2.5]);
        assert_eq!(d.remaining(), 0);
        assert_eq!(*Seq::<f64>::decode(&mut new()).unwrap(), [1.5, 2.5]);
        // The padding omitted at a boundary does not make a count invalid.
        let bytes = [1, 0, 0, 0, 1, 0, 0, 0, 7, 9, 0];
        let mut d = Decoder::new(&bytes, ByteOrder::Little, Version::V1_1).with_fragments(&[9]);
        assert_eq!(d.read_len(8).unwrap(), 1);
    }

    #[test]
    fn a_refused_view_is_read_again_from_its_start() {
        let mut bytes = vec![0; 8];
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(2.5f64.to_le_bytes());
        bytes.extend(9u32.to_le_bytes());
        let shared = bytes::Bytes::from(bytes);
        let mut d =
            Decoder::from_bytes(&shared, ByteOrder::Little, Version::V1_1).at(8).with_fragments(&[8, 20]);
        assert_eq!(*Seq::<f64>::decode(&mut d).unwrap(), [2.5]);
        assert_eq!(d.read_u32().unwrap(), 9);
    }

    #[test]
    fn a_boundary_at_any_offset_makes_decoding_fail_only_by_an_error() {
        let bytes = message();
        for a in 0..=bytes.len() as u32 + 2 {
            for b in a..=bytes.len() as u32 + 2 {
                let boundaries = [a, b];
                let mut d = Decoder::new(&bytes, ByteOrder::Big, Version::V1_1).with_fragments(&boundaries);
                while let Ok(value) = d.read_u64() {
                    let _ = value;
                }
                let mut d = Decoder::new(&bytes, ByteOrder::Big, Version::V1_1).with_fragments(&boundaries);
                let _ = d.read_fixed_vec::<u64>(3);
                let _ = d.take(5);
                let _ = d.read_u16();
            }
        }
    }
}

//! Writes and reads values of fixed layout and runs of them. Each value or run needs one bounds check, one
//! reservation of memory and one pass.

use super::allocation::MIN_MAPPED_BYTES;
use super::chunked;
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::fixed::{FixedReader, FixedWriter, read_strided, write_strided};
use super::layout::FixedLayout;
use crate::{DecodeError, DecodeErrorKind};

/// Number of bytes that are zeroed at a time and then overwritten, while they are still in the first-level
/// cache. Building each element on the stack and appending it was slower for short runs.
const ZEROED_BYTES: usize = 8192;

impl Encoder {
    /// Writes one value of fixed layout.
    #[inline]
    pub fn put_fixed<T: FixedLayout>(&mut self, value: &T) {
        match self.position() % 8 {
            0 => self.put_fixed_at(value, 0, const { T::LAYOUT.size(0) }),
            4 => self.put_fixed_at(value, 4, const { T::LAYOUT.size(4) }),
            phase => self.put_fixed_at(value, phase, T::LAYOUT.size(phase)),
        }
    }

    #[inline(always)]
    fn put_fixed_at<T: FixedLayout>(&mut self, value: &T, phase: usize, size: usize) {
        let mut scratch = [0; 64];
        let is_foreign_order = self.is_foreign_order;
        if let Some(region) = scratch.get_mut(..size) {
            FixedWriter::write(region, phase, is_foreign_order, value);
            self.head.extend_from_slice(region);
        } else {
            FixedWriter::write(self.append_zeros(size), phase, is_foreign_order, value);
        }
    }

    /// Writes the elements of a sequence or array of fixed layout, without a count. Elements whose memory is
    /// their encoding are copied at once. Large runs of others can become chunks of the encoder.
    pub fn put_fixed_slice<T: FixedLayout>(&mut self, items: &[T]) {
        let Some((first, rest)) = items.split_first() else { return };
        let phase = self.position() % 8;
        let (items, is_whole_run) = match T::LAYOUT.run_padding(phase) {
            Some(_) => {
                self.align(T::LAYOUT.align());
                (items, true)
            }
            None => {
                self.put_fixed(first);
                (rest, false)
            }
        };
        let stride = const { T::LAYOUT.stride() };
        if stride == 0 {
            return;
        }
        if !self.is_foreign_order
            && const { T::LAYOUT.end_phase(0) == 0 }
            && let Some(bytes) = T::run_as_bytes(items)
        {
            if bytes.len() >= MIN_MAPPED_BYTES {
                self.reserve(bytes.len());
            }
            self.head.extend_from_slice(bytes);
            return;
        }
        let len = stride.saturating_mul(items.len());
        if self.is_large_run(len) {
            if self.put_long_run(items, stride, len) {
                return;
            }
            if let Some(block) = self.take_free_block(len) {
                return self.put_block(items, block, len, is_whole_run);
            }
        }
        self.reserve(len);
        for step in items.chunks(ZEROED_BYTES.div_ceil(stride)) {
            let is_foreign_order = self.is_foreign_order;
            write_strided(self.append_zeros(stride * step.len()), step, is_foreign_order);
        }
    }
}

impl Decoder<'_> {
    /// Reads one value of fixed layout.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`InvalidEnum`](DecodeErrorKind::InvalidEnum).
    #[inline]
    pub fn read_fixed<T: FixedLayout>(&mut self) -> Result<T, DecodeError> {
        match self.phase() {
            0 => self.read_fixed_at(0, const { T::LAYOUT.size(0) }),
            4 => self.read_fixed_at(4, const { T::LAYOUT.size(4) }),
            phase => self.read_fixed_at(phase, T::LAYOUT.size(phase)),
        }
    }

    #[inline(always)]
    fn read_fixed_at<T: FixedLayout>(&mut self, phase: usize, size: usize) -> Result<T, DecodeError> {
        let start = self.position();
        if !self.has_contiguous(size) {
            return self.read_fixed_across_boundary();
        }
        let mut r = FixedReader::new(self.take(size)?, phase, self.is_foreign_order);
        let value = T::get(&mut r);
        if r.is_invalid() { Err(DecodeError::new(DecodeErrorKind::InvalidEnum, start)) } else { Ok(value) }
    }

    /// Reads `n` elements of fixed layout, without a count.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`InvalidEnum`](DecodeErrorKind::InvalidEnum),
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit).
    pub fn read_fixed_vec<T: FixedLayout>(&mut self, n: usize) -> Result<Vec<T>, DecodeError> {
        let mut out = Vec::new();
        self.read_fixed_into(n, &mut out)?;
        Ok(out)
    }

    /// Appends elements to `out`. Reads and fails like [`read_fixed_vec`](Decoder::read_fixed_vec).
    pub fn read_fixed_into<T: FixedLayout>(&mut self, n: usize, out: &mut Vec<T>) -> Result<(), DecodeError> {
        if n == 0 {
            return Ok(());
        }
        let start = self.position();
        let phase = self.phase();
        let before = out.len();
        if !self.has_contiguous(T::LAYOUT.run_size(phase, n)) {
            return self.read_run_across_boundary(n, out);
        }
        let bytes = self.take(T::LAYOUT.run_size(phase, n))?;
        self.charge(n.saturating_mul(size_of::<T>()))?;
        if out.try_reserve_exact(n).is_err() {
            return Err(self.error(DecodeErrorKind::AllocLimit));
        }
        let mut is_valid = true;
        let run_start = match T::LAYOUT.run_padding(phase) {
            Some(pad) => pad,
            None => {
                let mut r = FixedReader::new(bytes, phase, self.is_foreign_order);
                out.push(T::get(&mut r));
                is_valid = !r.is_invalid();
                T::LAYOUT.size(phase)
            }
        };
        if const { T::LAYOUT.stride() == 0 } {
            let mut r = FixedReader::new(&[], 0, self.is_foreign_order);
            out.extend((0..n).map(|_| T::get(&mut r)));
        } else {
            is_valid &= read_strided(bytes.get(run_start..).unwrap_or_default(), out, self.is_foreign_order);
        }
        if !is_valid {
            out.truncate(before);
            return Err(DecodeError::new(DecodeErrorKind::InvalidEnum, start));
        }
        Ok(())
    }

    /// Reads a run that crosses the boundary of a segment, chunk or fragment, or that exceeds the data.
    #[cold]
    pub(super) fn read_run_across_boundary<T: FixedLayout>(
        &mut self,
        n: usize,
        out: &mut Vec<T>,
    ) -> Result<(), DecodeError> {
        if self.is_segmented() {
            return self.read_run_across_segments(n, out);
        }
        self.charge(n.saturating_mul(size_of::<T>()))?;
        if out.try_reserve_exact(n).is_err() {
            return Err(self.error(DecodeErrorKind::AllocLimit));
        }
        let before = out.len();
        if T::ARE_NUMBERS && !chunked::is_view_limited(self) {
            // A run of numbers is aligned only at its start, not again after a fragment boundary.
            if self.begin_run(T::LAYOUT.align()) > 0 {
                return Err(self.error(DecodeErrorKind::EndOfData));
            }
            let bytes = self.take(T::LAYOUT.stride().saturating_mul(n))?;
            read_strided(bytes, out, self.is_foreign_order);
            return Ok(());
        }
        let result = (0..n).try_for_each(|_| self.read_fixed().map(|value| out.push(value)));
        result.inspect_err(|_| out.truncate(before))
    }
}

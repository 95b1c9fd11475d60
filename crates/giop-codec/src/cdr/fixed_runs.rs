//! Values of fixed layout and runs of them, with one bounds check, one reservation and one pass.

use super::chunked;
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::fixed::{FixedReader, FixedWriter, read_strided, write_strided};
use super::layout::FixedLayout;
use super::mapped::LARGE;
use crate::{DecodeError, DecodeErrorKind};

/// Number of bytes that are zeroed before fixed-layout elements are written into them. They are still in the
/// first-level cache at the second write. Assembling blocks on the stack and appending them was no faster,
/// and slower for few elements.
const BLOCK: usize = 8192;

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
        if let Some(region) = scratch.get_mut(..size) {
            FixedWriter::write(region, phase, self.swap, value);
            self.head.extend_from_slice(region);
        } else {
            let swap = self.swap;
            FixedWriter::write(self.grow(size), phase, swap, value);
        }
    }

    /// Writes the elements of a sequence or array of fixed layout, without a count, in one reservation and
    /// one pass. Native-order primitives are copied whole. Long runs of structs become a chunk.
    pub fn put_fixed_slice<T: FixedLayout>(&mut self, items: &[T]) {
        let Some((first, rest)) = items.split_first() else { return };
        let phase = self.position() % 8;
        let (items, whole) = match T::LAYOUT.lead(phase) {
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
        if !self.swap
            && const { T::LAYOUT.end(0) == 0 }
            && let Some(octets) = T::as_octets(items)
        {
            if octets.len() >= LARGE {
                self.reserve(octets.len());
            }
            self.head.extend_from_slice(octets);
            return;
        }
        let len = stride.saturating_mul(items.len());
        if self.is_large(len) {
            if self.put_long(items, stride, len) {
                return;
            }
            if let Some(block) = self.free_block(len) {
                return self.put_block(items, block, len, whole);
            }
        }
        self.reserve(len);
        for block in items.chunks(BLOCK.div_ceil(stride)) {
            let swap = self.swap;
            write_strided(self.grow(stride * block.len()), block, swap);
        }
    }
}

impl Decoder<'_> {
    /// Reads one value of fixed layout, with one bounds check.
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
        if !self.in_piece(size) {
            return self.read_fixed_across();
        }
        let mut r = FixedReader::new(self.take(size)?, phase, self.swap);
        let value = T::get(&mut r);
        if r.failed() { Err(DecodeError::new(DecodeErrorKind::InvalidEnum, start)) } else { Ok(value) }
    }

    /// Reads `n` elements of fixed layout, without a count, with one bounds check, one allocation and one
    /// pass.
    ///
    /// # Errors
    /// [`EndOfData`](DecodeErrorKind::EndOfData), [`InvalidEnum`](DecodeErrorKind::InvalidEnum),
    /// [`AllocLimit`](DecodeErrorKind::AllocLimit).
    pub fn read_fixed_vec<T: FixedLayout>(&mut self, n: usize) -> Result<Vec<T>, DecodeError> {
        let mut out = Vec::new();
        self.read_fixed_into(n, &mut out)?;
        Ok(out)
    }

    /// Reads elements like [`read_fixed_vec`](Decoder::read_fixed_vec), but appends them to a vector, whose
    /// spare capacity is used.
    ///
    /// # Errors
    /// Those of [`read_fixed_vec`](Decoder::read_fixed_vec).
    pub fn read_fixed_into<T: FixedLayout>(&mut self, n: usize, out: &mut Vec<T>) -> Result<(), DecodeError> {
        if n == 0 {
            return Ok(());
        }
        let start = self.position();
        let phase = self.phase();
        let before = out.len();
        if !self.in_piece(T::LAYOUT.run(phase, n)) {
            return self.read_fixed_each(n, out);
        }
        let octets = self.take(T::LAYOUT.run(phase, n))?;
        self.charge(n.saturating_mul(size_of::<T>()))?;
        if out.try_reserve_exact(n).is_err() {
            return Err(self.error(DecodeErrorKind::AllocLimit));
        }
        let mut good = true;
        let at = match T::LAYOUT.lead(phase) {
            Some(pad) => pad,
            None => {
                let mut r = FixedReader::new(octets, phase, self.swap);
                out.push(T::get(&mut r));
                good = !r.failed();
                T::LAYOUT.size(phase)
            }
        };
        if const { T::LAYOUT.stride() == 0 } {
            let mut r = FixedReader::new(&[], 0, self.swap);
            out.extend((0..n).map(|_| T::get(&mut r)));
        } else {
            good &= read_strided(octets.get(at..).unwrap_or_default(), out, self.swap);
        }
        if !good {
            out.truncate(before);
            return Err(DecodeError::new(DecodeErrorKind::InvalidEnum, start));
        }
        Ok(())
    }

    /// Reads elements like [`read_fixed_into`](Self::read_fixed_into), but one by one, because the run
    /// crosses a boundary.
    #[cold]
    pub(super) fn read_fixed_each<T: FixedLayout>(
        &mut self,
        n: usize,
        out: &mut Vec<T>,
    ) -> Result<(), DecodeError> {
        if self.is_segmented() {
            return self.read_fixed_over_joint(n, out);
        }
        self.charge(n.saturating_mul(size_of::<T>()))?;
        if out.try_reserve_exact(n).is_err() {
            return Err(self.error(DecodeErrorKind::AllocLimit));
        }
        let before = out.len();
        if T::NUMBERS && !chunked::in_chunks(self) {
            // Numbers are one run of bytes, which is not realigned after a boundary. The run may begin after
            // the boundary.
            if self.begin_run(T::LAYOUT.align()) > 0 {
                return Err(self.error(DecodeErrorKind::EndOfData));
            }
            let octets = self.take(T::LAYOUT.stride().saturating_mul(n))?;
            read_strided(octets, out, self.swap);
            return Ok(());
        }
        for _ in 0..n {
            match self.read_fixed() {
                Ok(value) => out.push(value),
                Err(error) => {
                    out.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

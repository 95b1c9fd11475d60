//! Transfer of runs between streams, and between a stream and memory.
//!
//! A run consists of consecutive values of one type of fixed layout, a stride apart. The phase of a value is
//! its position modulo 8 from the alignment origin, which determines its padding.

use bytes::Bytes;

use super::StepResult;
use super::plan::{FieldKind, Plan};
use crate::cdr::{Decoder, Encoder};
use crate::{DecodeError, DecodeErrorKind};

#[derive(Clone, Copy)]
struct Run<'a> {
    /// The first element and its phase, if its layout differs from the layout of the others.
    first: Option<(&'a [u8], usize)>,
    /// All other elements, each a stride after the one before.
    others: &'a [u8],
}

/// Writes numbers of `1 << size_log2` bytes each. Shares `bytes` if no byte swap is needed.
#[inline(never)]
pub(crate) fn put_numbers(e: &mut Encoder, size_log2: u8, bytes: &Bytes) {
    if bytes.is_empty() {
        return;
    }
    e.align((1 << size_log2).min(8));
    if size_log2 == 0 || !e.is_foreign_order() {
        e.put_shared_ref(bytes);
    } else {
        e.put_swapped(size_log2, bytes);
    }
}

impl Plan {
    /// Returns an error at `start` if an ordinal is invalid, in elements that start at `phase`.
    #[inline(never)]
    fn check_ordinals(
        &self,
        bytes: &[u8],
        phase: usize,
        stride: usize,
        swap: bool,
        start: usize,
    ) -> StepResult {
        match self.has_valid_ordinals(bytes, phase, stride, swap) {
            true => Ok(()),
            false => Err(DecodeError::new(DecodeErrorKind::InvalidEnum, start)),
        }
    }

    #[inline(never)]
    fn check_run_ordinals(&self, run: Run<'_>, swap: bool, start: usize) -> StepResult {
        if let Some((first, phase)) = run.first {
            self.check_ordinals(first, phase, first.len(), swap, start)?;
        }
        self.check_ordinals(run.others, self.end_phase, self.stride, swap, start)
    }

    /// Takes the next `count` elements if their bytes are contiguous in memory. If not, takes nothing.
    fn take_contiguous<'a>(&self, d: &mut Decoder<'a>, count: usize) -> StepResult<Option<Run<'a>>> {
        let phase = d.phase();
        let lead_padding = self.lead_padding(phase);
        let len = match lead_padding {
            Some(pad) => self.stride.saturating_mul(count).saturating_add(pad),
            None => self.run_size(phase, count),
        };
        if !d.has_contiguous(len) {
            return Ok(None);
        }
        let bytes = d.take(len)?;
        let (before, others) = bytes.split_at(lead_padding.unwrap_or(self.size(phase)).min(bytes.len()));
        Ok(Some(Run { first: lead_padding.is_none().then_some((before, phase)), others }))
    }

    /// Returns the `size_log2` and the count of the numbers in an element, if elements can be read as one
    /// array. After a fragment boundary, GIOP 1.1 aligns the members of a struct individually.
    fn as_numbers(&self, d: &Decoder<'_>) -> Option<(u8, usize)> {
        self.uniform_values().filter(|_| self.is_number_array || !d.has_fragment_boundaries())
    }

    /// Reads an element whose bytes are not contiguous: in native order, laid out as an element at phase 0.
    #[cold]
    fn read_scattered(&self, d: &mut Decoder<'_>, to: &mut [u8]) -> StepResult {
        let start = d.position();
        for (field, mut at) in self.fields_at(0) {
            // After a fragment boundary, each member is aligned individually.
            let one_by_one = field.size_log2 > 2 && !field.is_array && d.has_fragment_boundaries();
            let (reads, count) = if one_by_one { (field.count, 1) } else { (1, field.count) };
            for _ in 0..reads {
                let from = d.read_numbers(field.size_log2, count as usize)?;
                let target = to.get_mut(at..at + from.len()).unwrap_or_default();
                let is_bool = field.kind == FieldKind::Bool;
                let bytes = target.iter_mut().zip(&from);
                bytes.for_each(|(to, from)| *to = if is_bool { (*from != 0).into() } else { *from });
                at += from.len();
            }
        }
        self.check_ordinals(to, 0, to.len().max(1), false, start)
    }

    /// Skips `count` values. `checks_ordinals` enables checks of ordinals in values that are contiguous in
    /// memory. In other values, ordinals are always checked.
    pub(crate) fn skip(&self, d: &mut Decoder<'_>, count: usize, checks_ordinals: bool) -> StepResult {
        let mut left = count;
        while left > 0 {
            let start = d.position();
            match self.take_contiguous(d, left)? {
                Some(run) if checks_ordinals => {
                    return self.check_run_ordinals(run, d.is_foreign_order(), start);
                }
                Some(_) => return Ok(()),
                None => {
                    if let Some((size_log2, each)) = self.as_numbers(d) {
                        let bytes = d.read_numbers(size_log2, left.saturating_mul(each))?;
                        return self.check_ordinals(&bytes, 0, self.stride, false, start);
                    }
                    self.read_scattered(d, &mut vec![0; self.size(0)])?;
                }
            }
            left -= 1;
        }
        Ok(())
    }

    /// Copies `count` values to another stream. The bytes of numbers are shared if the streams allow it.
    pub(crate) fn copy(&self, d: &mut Decoder<'_>, e: &mut Encoder, count: usize) -> StepResult {
        if let Some((size_log2, each)) = self.as_numbers(d) {
            let start = d.position();
            let bytes = d.read_numbers(size_log2, count.saturating_mul(each))?;
            self.check_ordinals(&bytes, 0, self.stride, false, start)?;
            put_numbers(e, size_log2, &bytes);
            return Ok(());
        }
        let mut left = count;
        while left > 0 {
            let start = d.position();
            if let Some(run) = self.take_contiguous(d, left)? {
                self.check_run_ordinals(run, d.is_foreign_order(), start)?;
                self.put(run, d.is_foreign_order(), e);
                return Ok(());
            }
            let mut element = vec![0; self.size(0)];
            self.read_scattered(d, &mut element)?;
            self.put_element(&element, 0, e.is_foreign_order(), e);
            left -= 1;
        }
        Ok(())
    }

    /// Reads `count` values into memory, in native order and a stride apart. Each is laid out like an element
    /// at `end_phase`, with zeros as padding. Numbers are shared with the stream if it allows that.
    pub(crate) fn read_flat(&self, d: &mut Decoder<'_>, count: usize) -> StepResult<Bytes> {
        let start = d.position();
        if let Some((size_log2, each)) = self.as_numbers(d) {
            let bytes = d.read_numbers(size_log2, count.saturating_mul(each))?;
            self.check_ordinals(&bytes, 0, self.stride, false, start)?;
            return Ok(bytes);
        }
        let mut flat = d.new_vec::<u8>(0)?;
        let mut left = count;
        while left > 0 {
            if let Some(run) = self.take_contiguous(d, left)? {
                let swap = d.is_foreign_order();
                self.check_run_ordinals(run, swap, start)?;
                d.charge(self.stride.saturating_mul(left))?;
                flat.reserve_exact(self.stride.saturating_mul(left));
                if let Some((first, phase)) = run.first {
                    self.convert_element(first, phase, grow(&mut flat, self.stride), self.end_phase, swap);
                }
                for tile in run.others.chunks(self.tile_size) {
                    self.convert_run(tile, grow(&mut flat, tile.len()), swap);
                }
                break;
            }
            let mut element = vec![0; self.size(0)];
            self.read_scattered(d, &mut element)?;
            d.charge(self.stride)?;
            self.convert_element(&element, 0, grow(&mut flat, self.stride), self.end_phase, false);
            left -= 1;
        }
        Ok(flat.into())
    }

    pub(crate) fn put_flat(&self, flat: &Bytes, e: &mut Encoder) {
        match self.uniform_values() {
            Some((size_log2, _)) => put_numbers(e, size_log2, flat),
            None => self.put(Run { first: None, others: flat }, false, e),
        }
    }

    fn put(&self, run: Run<'_>, foreign: bool, e: &mut Encoder) {
        let swap = foreign != e.is_foreign_order();
        if let Some((first, phase)) = run.first {
            self.put_element(first, phase, swap, e);
        }
        let mut others = run.others;
        if others.is_empty() {
            return;
        }
        match self.lead_padding(e.position()) {
            Some(0) => {}
            Some(_) => e.align(self.align),
            None => {
                let (first, rest) = others.split_at(self.stride.min(others.len()));
                self.put_element(first, self.end_phase, swap, e);
                others = rest;
            }
        }
        e.reserve(others.len());
        for tile in others.chunks(self.tile_size) {
            self.convert_run(tile, e.append_zeros(tile.len()), swap);
        }
    }

    #[inline(never)]
    fn put_element(&self, element: &[u8], phase: usize, swap: bool, e: &mut Encoder) {
        let to = e.position();
        self.convert_element(element, phase, e.append_zeros(self.size(to)), to, swap);
    }
}

#[inline(never)]
fn grow(bytes: &mut Vec<u8>, len: usize) -> &mut [u8] {
    let start = bytes.len();
    bytes.resize(start + len, 0);
    bytes.get_mut(start..).unwrap_or_default()
}

/// Reads a decimal number. It ends at the byte with the sign, because some peers omit leading zeros.
///
/// Returns an array that ends with the number in the width that `digits` requires, and that width in bytes.
pub(crate) fn read_decimal(d: &mut Decoder<'_>, digits: u16) -> StepResult<([u8; 16], usize)> {
    let start = d.position();
    let invalid = || DecodeError::new(DecodeErrorKind::InvalidFixed, start);
    let width = (usize::from(digits) / 2 + 1).min(16);
    let mut bytes = [0; 16];
    for read in 1..=width {
        let byte = d.read_u8()?;
        bytes.rotate_left(1);
        let [.., last] = &mut bytes;
        *last = byte;
        match (byte >> 4, byte & 0xF) {
            (0..=9, 0..=9) => continue,
            (0..=9, 0xC | 0xD) => {}
            // 0xF means unsigned, which counts as positive.
            (0..=9, 0xF) => *last = byte & 0xF0 | 0xC,
            _ => return Err(invalid()),
        }
        // Normalize a negative zero.
        if bytes.iter().all(|byte| byte & !0xF == 0 && (*byte == 0 || *byte > 9)) {
            bytes[15] = 0xC;
        }
        // If the type has an even number of digits, the first digit is padding and must be 0.
        let padded = digits.is_multiple_of(2) && read == width;
        return match bytes.get(16 - width) {
            Some(first) if padded && *first >= 0x10 => Err(invalid()),
            _ => Ok((bytes, width)),
        };
    }
    Err(invalid())
}

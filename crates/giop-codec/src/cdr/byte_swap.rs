//! Conversion of runs of numbers from one byte order to the other.
//!
//! Numbers of four or eight bytes are swapped in pairs, as one integer of twice the size. The compiler would
//! vectorise a loop over single numbers, which takes twice the time on 64-bit x86 without extensions.

use bytes::Bytes;

use super::decoder::Decoder;
use super::layout::padding;
use super::long_double::LongDouble;
use super::seq::{Element, Seq};
use crate::DecodeError;

/// Number of bytes that are zeroed at a time and overwritten while they are in the first-level cache.
pub(crate) const TILE_BYTES: usize = 4096;

/// Copies numbers of `1 << log2_size` bytes, each reversed. Both slices must have the same length.
#[inline]
pub(crate) fn swap(log2_size: u8, from: &[u8], to: &mut [u8]) {
    match log2_size {
        0 => copy(from, to),
        1 => swap_shorts(from, to),
        2 => swap_longs(from, to),
        3 => swap_doubles(from, to),
        _ => drop(copy_each(from, to, swap_quad)),
    }
}

/// Copies as many bytes as the shorter slice has.
#[inline]
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    let len = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..len), to.get_mut(..len)) {
        to.copy_from_slice(from);
    }
}

impl Decoder<'_> {
    /// Reads `n` numbers of `1 << log2_size` bytes. Returns them aligned and in native byte order: as a view
    /// of the message if possible, and as a copy otherwise.
    pub(crate) fn read_numbers(&mut self, log2_size: u8, n: usize) -> Result<Bytes, DecodeError> {
        let view = match log2_size {
            0 => return self.take_shared(n),
            1 => self.view::<u16>(n)?,
            2 => self.view::<u32>(n)?,
            3 => self.view::<u64>(n)?,
            _ => self.view::<LongDouble>(n)?,
        };
        if let Some(bytes) = view {
            return Ok(bytes);
        }
        let pad = padding(self.phase(), (1 << log2_size).min(8));
        let len = n.saturating_mul(1 << log2_size);
        let padded_len = len.saturating_add(pad);
        let mut out: Vec<u8> = Vec::new();
        // If data is missing, no memory is reserved, and `take` fails below.
        if !self.has_contiguous(padded_len)
            || padded_len <= self.remaining() && !reserve_aligned(&mut out, len)
        {
            return match log2_size {
                1 => self.read_numbers_as::<u16>(n),
                2 => self.read_numbers_as::<u32>(n),
                3 => self.read_numbers_as::<u64>(n),
                _ => self.read_numbers_as::<LongDouble>(n),
            };
        }
        let numbers = self.take(padded_len)?.get(pad..).unwrap_or_default();
        self.charge(len)?;
        for tile in numbers.chunks(TILE_BYTES) {
            let start = out.len();
            out.resize(start + tile.len(), 0);
            let place = out.get_mut(start..).unwrap_or_default();
            if self.is_foreign_order() { swap(log2_size, tile, place) } else { copy(tile, place) }
        }
        Ok(out.into())
    }

    #[cold]
    fn read_numbers_as<T: Element>(&mut self, n: usize) -> Result<Bytes, DecodeError> {
        // A single number that does not fit before a fragment boundary is realigned after it; a run is not.
        let out = if n == 1 { vec![self.read_fixed()?] } else { self.read_fixed_vec::<T>(n)? };
        Ok(Seq::from(out).into_bytes())
    }
}

/// Reserves `len` bytes and returns whether they are aligned for all numbers, as memory of most allocators
/// is. Unlike a vector of numbers, a `Vec<u8>` becomes [`Bytes`] without a second allocation.
fn reserve_aligned(out: &mut Vec<u8>, len: usize) -> bool {
    out.try_reserve_exact(len).is_ok()
        && out.as_ptr().align_offset(align_of::<LongDouble>().max(align_of::<u64>())) == 0
}

/// Reverses the bytes of each number of `1 << log2_size` bytes in place.
#[inline(never)]
pub(crate) fn swap_in_place(log2_size: u8, numbers: &mut [u8]) {
    match log2_size {
        0 => {}
        1 => drop(replace_each(numbers, swap_short)),
        2 => drop(replace_each(replace_each(numbers, swap_two_longs), swap_long)),
        3 => drop(replace_each(replace_each(numbers, swap_two_doubles), swap_double)),
        _ => drop(replace_each(numbers, swap_quad)),
    }
}

#[inline(never)]
fn swap_shorts(from: &[u8], to: &mut [u8]) {
    copy_each(from, to, swap_short);
}

#[inline(never)]
fn swap_longs(from: &[u8], to: &mut [u8]) {
    let (from, to) = copy_each(from, to, swap_two_longs);
    copy_each(from, to, swap_long);
}

#[inline(never)]
fn swap_doubles(from: &[u8], to: &mut [u8]) {
    let ((pairs, from), (to_pairs, to)) = (from.as_chunks(), to.as_chunks_mut());
    // Pairs of 16-byte values avoid slow unaligned stores.
    let ((fours, pair), (to_fours, to_pair)) = (pairs.as_chunks::<2>(), to_pairs.as_chunks_mut::<2>());
    fours.iter().zip(to_fours).for_each(|(four, to)| *to = four.map(swap_two_doubles));
    pair.iter().zip(to_pair).for_each(|(pair, to)| *to = swap_two_doubles(*pair));
    copy_each(from, to, swap_double);
}

/// Copies and converts all whole groups of `N` bytes, and returns the remainders of both slices.
#[inline(always)]
fn copy_each<'a, 'b, const N: usize>(
    from: &'a [u8],
    to: &'b mut [u8],
    convert: impl Fn([u8; N]) -> [u8; N],
) -> (&'a [u8], &'b mut [u8]) {
    let ((from, rest), (to, rest_to)) = (from.as_chunks(), to.as_chunks_mut());
    from.iter().zip(to).for_each(|(from, to)| *to = convert(*from));
    (rest, rest_to)
}

/// Converts all whole groups of `N` bytes in place, and returns the remainder.
#[inline(always)]
fn replace_each<const N: usize>(bytes: &mut [u8], convert: impl Fn([u8; N]) -> [u8; N]) -> &mut [u8] {
    let (chunks, rest) = bytes.as_chunks_mut();
    chunks.iter_mut().for_each(|chunk| *chunk = convert(*chunk));
    rest
}

/// Defines functions that reverse the bytes of a number, or of each of two numbers. Reversing two numbers as
/// one integer also exchanges them. The rotation returns each to its place.
macro_rules! swap_functions {
    ($($name:ident $integer:ty, $size:literal, $rotation:literal;)*) => {$(
        #[inline(always)]
        fn $name(bytes: [u8; $size]) -> [u8; $size] {
            <$integer>::from_ne_bytes(bytes).swap_bytes().rotate_left($rotation).to_ne_bytes()
        }
    )*};
}

swap_functions! {
    swap_short u16, 2, 0;
    swap_long u32, 4, 0;
    swap_two_longs u64, 8, 32;
    swap_double u64, 8, 0;
    swap_two_doubles u128, 16, 64;
    swap_quad u128, 16, 0;
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_of_all_widths_are_reversed_one_by_one() {
        let bytes: Vec<u8> = (0..=255).collect();
        for log2_size in 0..=4_u8 {
            for count in 0..12 {
                let len = count << log2_size;
                let from = &bytes[..len];
                let wanted: Vec<u8> =
                    from.chunks(1 << log2_size).flat_map(|number| number.iter().rev().copied()).collect();
                let mut to = vec![0; len];
                super::swap(log2_size, from, &mut to);
                assert_eq!(to, wanted);
                super::swap_in_place(log2_size, &mut to);
                assert_eq!(to, from);
            }
        }
    }
}

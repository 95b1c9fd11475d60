//! Conversion of runs of numbers to the other byte order.
//!
//! Numbers of four and eight bytes are swapped in pairs, as one integer of twice the size. Otherwise the
//! compiler vectorizes the loop. On 64-bit x86 without its later extensions, that byte shuffle takes twice
//! the time of swapping the numbers one by one.

use bytes::Bytes;

use super::decoder::Decoder;
use super::layout::padding;
use super::long_double::LongDouble;
use super::seq::{Element, Seq};
use crate::DecodeError;

/// Tile size in bytes for memory that is zeroed first and then overwritten. A tile is still in the
/// first-level cache at the second write.
pub(crate) const TILE: usize = 4096;

/// Copies numbers of `1 << width` bytes from `from` to `to`, which has the same length, in the other byte
/// order.
#[inline]
pub(crate) fn swap(width: u8, from: &[u8], to: &mut [u8]) {
    match width {
        0 => copy(from, to),
        1 => swap_shorts(from, to),
        2 => swap_longs(from, to),
        3 => swap_doubles(from, to),
        _ => drop(each(from, to, quadruple)),
    }
}

/// Copies as many bytes as both slices have.
#[inline]
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    let len = from.len().min(to.len());
    if let (Some(from), Some(to)) = (from.get(..len), to.get_mut(..len)) {
        to.copy_from_slice(from);
    }
}

impl Decoder<'_> {
    /// Reads `n` numbers of `1 << width` bytes, in native order, in memory that is aligned for them. Returns
    /// a view of the message where byte order and alignment allow that, else a copy.
    ///
    /// # Errors
    /// Those of [`read_seq`](Decoder::read_seq).
    pub(crate) fn read_numbers(&mut self, width: u8, n: usize) -> Result<Bytes, DecodeError> {
        let view = match width {
            0 => return self.take_shared(n),
            1 => self.view::<u16>(n)?,
            2 => self.view::<u32>(n)?,
            3 => self.view::<u64>(n)?,
            _ => self.view::<LongDouble>(n)?,
        };
        if let Some(octets) = view {
            return Ok(octets);
        }
        let pad = padding(self.phase(), (1 << width).min(8));
        let len = n.saturating_mul(1 << width);
        let whole = len.saturating_add(pad);
        let mut out: Vec<u8> = Vec::new();
        // Do not reserve memory for data that is missing: `take` fails below.
        if !self.in_piece(whole) || whole <= self.remaining() && !reserved(&mut out, len) {
            return match width {
                1 => self.read_numbers_apart::<u16>(n),
                2 => self.read_numbers_apart::<u32>(n),
                3 => self.read_numbers_apart::<u64>(n),
                _ => self.read_numbers_apart::<LongDouble>(n),
            };
        }
        let octets = self.take(whole)?.get(pad..).unwrap_or_default();
        self.charge(len)?;
        for some in octets.chunks(TILE) {
            let start = out.len();
            out.resize(start + some.len(), 0);
            let place = out.get_mut(start..).unwrap_or_default();
            if self.is_foreign() { swap(width, some, place) } else { copy(some, place) }
        }
        Ok(out.into())
    }

    #[cold]
    fn read_numbers_apart<T: Element>(&mut self, n: usize) -> Result<Bytes, DecodeError> {
        // A single number that does not fit before a fragment boundary is aligned after it. A run is never
        // realigned.
        let out = if n == 1 { vec![self.read_fixed()?] } else { self.read_fixed_vec::<T>(n)? };
        Ok(Seq::from(out).into_bytes())
    }
}

/// Reserves `len` bytes and returns whether the memory is aligned for all numbers. Allocators usually align
/// it so, although a `Vec<u8>` does not demand it. Bytes then take one allocation. A `Vec` of numbers takes a
/// second one to be shared as [`Bytes`].
fn reserved(out: &mut Vec<u8>, len: usize) -> bool {
    out.try_reserve_exact(len).is_ok()
        && out.as_ptr().align_offset(align_of::<LongDouble>().max(align_of::<u64>())) == 0
}

/// Swaps numbers of `1 << width` bytes in place.
#[inline(never)]
pub(crate) fn swap_here(width: u8, octets: &mut [u8]) {
    match width {
        0 => {}
        1 => drop(each_here(octets, short)),
        2 => drop(each_here(each_here(octets, longs), long)),
        3 => drop(each_here(each_here(octets, doubles), double)),
        _ => drop(each_here(octets, quadruple)),
    }
}

#[inline(never)]
fn swap_shorts(from: &[u8], to: &mut [u8]) {
    each(from, to, short);
}

#[inline(never)]
fn swap_longs(from: &[u8], to: &mut [u8]) {
    let (from, to) = each(from, to, longs);
    each(from, to, long);
}

#[inline(never)]
fn swap_doubles(from: &[u8], to: &mut [u8]) {
    let ((pairs, from), (places, to)) = (from.as_chunks(), to.as_chunks_mut());
    // Pairs of 16-byte values avoid slow unaligned stores.
    let ((fours, pair), (four_places, place)) = (pairs.as_chunks::<2>(), places.as_chunks_mut::<2>());
    fours.iter().zip(four_places).for_each(|(four, place)| *place = four.map(doubles));
    pair.iter().zip(place).for_each(|(pair, place)| *place = doubles(*pair));
    each(from, to, double);
}

/// Applies `turn` to all whole chunks and returns the remainders of both slices.
#[inline(always)]
fn each<'a, 'b, const N: usize>(
    from: &'a [u8],
    to: &'b mut [u8],
    turn: impl Fn([u8; N]) -> [u8; N],
) -> (&'a [u8], &'b mut [u8]) {
    let ((from, rest), (to, rest_to)) = (from.as_chunks(), to.as_chunks_mut());
    from.iter().zip(to).for_each(|(from, to)| *to = turn(*from));
    (rest, rest_to)
}

#[inline(always)]
fn each_here<const N: usize>(octets: &mut [u8], turn: impl Fn([u8; N]) -> [u8; N]) -> &mut [u8] {
    let (octets, rest) = octets.as_chunks_mut();
    octets.iter_mut().for_each(|octets| *octets = turn(*octets));
    rest
}

#[inline(always)]
fn short(octets: [u8; 2]) -> [u8; 2] {
    u16::from_ne_bytes(octets).swap_bytes().to_ne_bytes()
}

#[inline(always)]
fn long(octets: [u8; 4]) -> [u8; 4] {
    u32::from_ne_bytes(octets).swap_bytes().to_ne_bytes()
}

#[inline(always)]
fn longs(pair: [u8; 8]) -> [u8; 8] {
    u64::from_ne_bytes(pair).swap_bytes().rotate_left(32).to_ne_bytes()
}

#[inline(always)]
fn double(octets: [u8; 8]) -> [u8; 8] {
    u64::from_ne_bytes(octets).swap_bytes().to_ne_bytes()
}

#[inline(always)]
fn doubles(pair: [u8; 16]) -> [u8; 16] {
    u128::from_ne_bytes(pair).swap_bytes().rotate_left(64).to_ne_bytes()
}

#[inline(always)]
fn quadruple(octets: [u8; 16]) -> [u8; 16] {
    u128::from_ne_bytes(octets).swap_bytes().to_ne_bytes()
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_of_all_widths_are_reversed_one_by_one() {
        let octets: Vec<u8> = (0..=255).collect();
        for width in 0..=4_u8 {
            for count in 0..12 {
                let len = count << width;
                let from = &octets[..len];
                let wanted: Vec<u8> =
                    from.chunks(1 << width).flat_map(|number| number.iter().rev().copied()).collect();
                let mut to = vec![0; len];
                super::swap(width, from, &mut to);
                assert_eq!(to, wanted);
                super::swap_here(width, &mut to);
                assert_eq!(to, from);
            }
        }
    }
}

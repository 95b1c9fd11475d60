//! Consecutive numbers, by a routine for each width: one bounds check, then a loop.

use super::kind::*;
use super::{Cdr, Fault, Routine, Status, Tally, rare};

/// Reads consecutive numbers.
///
/// # Errors
/// The data ends too early.
#[inline(always)]
pub fn decode_scalars<T: Tally>(
    kind: u32,
    count: usize,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
) -> Status {
    match kind {
        NULL | VOID => Ok(()),
        BOOLEAN | CHAR | OCTET => decode_run::<T, 1>(count, value, stream),
        SHORT | USHORT => decode_run::<T, 2>(count, value, stream),
        LONG | ULONG | FLOAT | ENUM => decode_run::<T, 4>(count, value, stream),
        LONGLONG | ULONGLONG | DOUBLE => decode_run::<T, 8>(count, value, stream),
        kind => Err(rare(Fault::Kind(kind))),
    }
}

/// Writes consecutive numbers.
///
/// # Errors
/// There are fewer elements than expected.
#[inline(always)]
pub fn encode_scalars<T: Tally>(
    kind: u32,
    count: usize,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
) -> Status {
    match kind {
        NULL | VOID => Ok(()),
        BOOLEAN | CHAR | OCTET => encode_run::<T, 1>(count, value, stream),
        SHORT | USHORT => encode_run::<T, 2>(count, value, stream),
        LONG | ULONG | FLOAT | ENUM => encode_run::<T, 4>(count, value, stream),
        LONGLONG | ULONGLONG | DOUBLE => encode_run::<T, 8>(count, value, stream),
        kind => Err(rare(Fault::Kind(kind))),
    }
}

#[inline(never)]
fn decode_run<T: Tally, const N: usize>(count: usize, value: &mut [u8], stream: &mut Cdr<'_, T>) -> Status {
    T::call(Routine::Decoder);
    let octets = stream.get_run(count, N)?;
    match value.get_mut(..octets.len()) {
        Some(value) => moved::<N>(octets, value, stream.swaps()),
        None => return Err(rare(Fault::Memory)),
    }
    Ok(())
}

#[inline(never)]
fn encode_run<T: Tally, const N: usize>(count: usize, value: &mut [u8], stream: &mut Cdr<'_, T>) -> Status {
    T::call(Routine::Encoder);
    let swaps = stream.swaps();
    let Some(value) = value.get(..count.saturating_mul(N)) else { return Err(rare(Fault::Memory)) };
    moved::<N>(value, stream.put_run(count, N)?, swaps);
    Ok(())
}

#[inline(always)]
fn moved<const N: usize>(from: &[u8], to: &mut [u8], swap: bool) {
    if !swap || N == 1 {
        to.copy_from_slice(from);
        return;
    }
    for (from, to) in from.as_chunks::<N>().0.iter().zip(to.as_chunks_mut::<N>().0) {
        let mut octets = *from;
        octets.reverse();
        *to = octets;
    }
}

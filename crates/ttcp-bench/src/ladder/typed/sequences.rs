//! The routines for consecutive numbers: one for each size, with a single bounds check and a loop.

use super::kind::*;
use super::{CallCounter, Cdr, Fault, Routine, Status, raise};

#[inline(always)]
pub(crate) fn decode_scalars<T: CallCounter>(
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
        kind => Err(raise(Fault::Kind(kind))),
    }
}

#[inline(always)]
pub(crate) fn encode_scalars<T: CallCounter>(
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
        kind => Err(raise(Fault::Kind(kind))),
    }
}

#[inline(never)]
fn decode_run<T: CallCounter, const N: usize>(
    count: usize,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
) -> Status {
    T::count(Routine::Decoder);
    let bytes = stream.get_run(count, N)?;
    match value.get_mut(..bytes.len()) {
        Some(value) => copy_swapped::<N>(bytes, value, stream.swaps_bytes()),
        None => return Err(raise(Fault::Memory)),
    }
    Ok(())
}

#[inline(never)]
fn encode_run<T: CallCounter, const N: usize>(
    count: usize,
    value: &mut [u8],
    stream: &mut Cdr<'_, T>,
) -> Status {
    T::count(Routine::Encoder);
    let swaps_bytes = stream.swaps_bytes();
    let Some(value) = value.get(..count.saturating_mul(N)) else { return Err(raise(Fault::Memory)) };
    copy_swapped::<N>(value, stream.put_run(count, N)?, swaps_bytes);
    Ok(())
}

#[inline(always)]
fn copy_swapped<const N: usize>(source: &[u8], target: &mut [u8], swaps_bytes: bool) {
    if !swaps_bytes || N == 1 {
        target.copy_from_slice(source);
        return;
    }
    for (source, target) in source.as_chunks::<N>().0.iter().zip(target.as_chunks_mut::<N>().0) {
        let mut bytes = *source;
        bytes.reverse();
        *target = bytes;
    }
}

//! [`Elements`]: a received sequence of plain structs, read in place if possible.

use core::ops::Deref;

use bytes::Bytes;
use zerocopy::FromBytes;

use super::decoder::Decoder;
use super::layout::{AnyBitPattern, FixedLayout};
use super::rewrite;
use super::traits::CdrDecode;
use crate::DecodeError;

/// A received `sequence<T>` that a servant borrows as a slice. It is a view of the message if byte order,
/// alignment and the memory layout of `T` permit that, and a vector otherwise.
#[derive(Debug)]
pub struct Elements<T>(Storage<T>);

#[derive(Debug)]
enum Storage<T> {
    /// The elements. Unless empty, they are aligned for `T`, and their length is a multiple of its size.
    View(Bytes),
    Owned(Vec<T>),
}

impl<T: AnyBitPattern> Elements<T> {
    /// Whether a slice of `T` has the layout of an encoded sequence. `T::IS_VIEWABLE` tells this of a single
    /// element. In a slice, elements must also have the same size in memory as in the encoding.
    const IS_VIEWABLE: bool = {
        let layout = <T as FixedLayout>::LAYOUT;
        T::IS_VIEWABLE && size_of::<T>() == layout.size(0) && layout.end_phase(0) == 0 && size_of::<T>() != 0
    };
}

impl<T: AnyBitPattern> Deref for Elements<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            // Cannot fail: alignment and size are invariants of the value.
            Storage::View(bytes) if !bytes.is_empty() => <[T]>::ref_from_bytes(bytes).unwrap_or_default(),
            Storage::View(_) => &[],
            Storage::Owned(items) => items,
        }
    }
}

impl<T: AnyBitPattern + CdrDecode> CdrDecode for Elements<T> {
    const MIN_SIZE: usize = 4;

    /// Returns a view where possible. [`Rewrites`](super::Rewrites) make a view possible in further cases.
    fn decode(d: &mut Decoder<'_>) -> Result<Elements<T>, DecodeError> {
        if !Self::IS_VIEWABLE {
            return Vec::decode(d).map(|items| Elements(Storage::Owned(items)));
        }
        if let Some(bytes) = rewrite::read_rewritten::<T>(d) {
            return Ok(Elements(Storage::View(bytes)));
        }
        let n = d.read_len(T::MIN_SIZE)?;
        if rewrite::record_rewrite::<T>(d, n)? {
            return Ok(Elements(Storage::View(Bytes::new())));
        }
        Ok(Elements(match d.view::<T>(n)? {
            Some(bytes) => Storage::View(bytes),
            None => Storage::Owned(d.read_fixed_vec(n)?),
        }))
    }
}

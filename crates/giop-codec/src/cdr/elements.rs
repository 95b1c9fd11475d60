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
/// alignment and the memory layout of `T` allow, else a vector.
#[derive(Debug)]
pub struct Elements<T>(Form<T>);

#[derive(Debug)]
enum Form<T> {
    /// Aligned for `T` and a multiple of its size, unless empty.
    View(Bytes),
    Own(Vec<T>),
}

impl<T: AnyBitPattern> Elements<T> {
    /// Whether the memory layout is that of CDR, as far as sizes can tell. `T::VIEWED` covers the members.
    const VIEWED: bool = {
        let layout = <T as FixedLayout>::LAYOUT;
        T::VIEWED && size_of::<T>() == layout.size(0) && layout.end(0) == 0 && size_of::<T>() != 0
    };
}

impl<T: AnyBitPattern> Deref for Elements<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            // Cannot fail: alignment and size are invariants of the value.
            Form::View(octets) if !octets.is_empty() => <[T]>::ref_from_bytes(octets).unwrap_or_default(),
            Form::View(_) => &[],
            Form::Own(items) => items,
        }
    }
}

impl<T: AnyBitPattern + CdrDecode> CdrDecode for Elements<T> {
    const MIN_SIZE: usize = 4;

    /// Returns a view where possible, also of a rewritten message: see [`Rewrites`](super::Rewrites).
    fn decode(d: &mut Decoder<'_>) -> Result<Elements<T>, DecodeError> {
        if !Self::VIEWED {
            return Vec::decode(d).map(|items| Elements(Form::Own(items)));
        }
        if let Some(octets) = rewrite::rewritten::<T>(d) {
            return Ok(Elements(Form::View(octets)));
        }
        let n = d.read_len(T::MIN_SIZE)?;
        if rewrite::note_rewrite::<T>(d, n)? {
            return Ok(Elements(Form::View(Bytes::new())));
        }
        Ok(Elements(match d.view::<T>(n)? {
            Some(octets) => Form::View(octets),
            None => Form::Own(d.read_fixed_vec(n)?),
        }))
    }
}

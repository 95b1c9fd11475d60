//! Implementations for types that are not generated: numbers, text, references, anys, and containers.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::read::{Blank, ReflectRead, ReflectReader};
use super::write::{ReflectWrite, ReflectWriter};
use crate::any::Any;
use crate::cdr::{
    Bounded, BoundedContent, CdrDecode, CdrEncode, Char, Element, Fixed, FixedSeq, LongDouble, Nilable,
    Ranged, Seq, WChar, WString, decode_optional, encode_optional,
};
use crate::typecode::TypeCode;
use crate::{DecodeError, DecodeErrorKind, EncodeError};

type WriteResult = Result<(), EncodeError>;
type ReadResult<T = ()> = Result<T, DecodeError>;

/// Implements the traits for types that [`CdrEncode`] and [`CdrDecode`] encode and decode.
macro_rules! self_coding_types {
    ($([$($generic:tt)*] $type:ty;)*) => {$(
        impl<$($generic)*> ReflectWrite for $type
        where
            $type: CdrEncode,
        {
            fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
                self.encode(w.e)
            }

            fn write_slice(items: &[Self], w: &mut ReflectWriter<'_>) -> WriteResult {
                <$type>::encode_slice(items, w.e)
            }
        }

        impl<$($generic)*> ReflectRead for $type
        where
            $type: CdrDecode,
        {
            fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
                *self = CdrDecode::decode(r.d)?;
                Ok(())
            }
        }

        impl<$($generic)*> Blank for $type
        where
            $type: CdrDecode + Default,
        {
            fn blank() -> Self {
                Self::default()
            }

            fn read_slice(items: &mut [Self], r: &mut ReflectReader<'_, '_>) -> ReadResult {
                read_array(items, r)
            }

            fn read_vec(items: &mut Vec<Self>, r: &mut ReflectReader<'_, '_>) -> ReadResult {
                let n = r.count()?;
                *items = CdrDecode::decode_vec(r.d, n)?;
                Ok(())
            }
        }
    )*};
}

fn read_array<T: CdrDecode>(items: &mut [T], r: &mut ReflectReader<'_, '_>) -> ReadResult {
    if !r.d.has_contiguous(size_of_val(items).saturating_add(8)) {
        // An array that crosses a fragment boundary must be decoded as a whole, because its elements are not
        // aligned again after the boundary.
        let read = T::decode_vec(r.d, items.len())?;
        items.iter_mut().zip(read).for_each(|(item, read)| *item = read);
        return Ok(());
    }
    for item in items {
        *item = T::decode(r.d)?;
    }
    Ok(())
}

self_coding_types! {
    [] bool;
    [] u8;
    [] i8;
    [] i16;
    [] u16;
    [] i32;
    [] u32;
    [] i64;
    [] u64;
    [] f32;
    [] f64;
    [] LongDouble;
    [] Char;
    [] WChar;
    [] String;
    [] WString;
    [] Bytes;
    [] Any;
    [] TypeCode;
    [T: Element] Seq<T>;
    [T: Element, const N: usize] FixedSeq<T, N>;
    [K, V] BTreeMap<K, V>;
    [T, const MIN: i128, const MAX: i128] Ranged<T, MIN, MAX>;
    [const D: u32, const S: u32] Fixed<D, S>;
    [T: Nilable] Option<T>;
}

impl<T: ReflectWrite> ReflectWrite for Vec<T> {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        self.as_slice().write(w)
    }
}

impl<T: ReflectWrite> ReflectWrite for [T] {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        w.count(self.len())?;
        T::write_slice(self, w)
    }
}

impl<T: Blank> ReflectRead for Vec<T> {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        T::read_vec(self, r)
    }
}

impl<T: Blank> Blank for Vec<T> {
    fn blank() -> Self {
        Vec::new()
    }
}

impl<T: ReflectWrite, const N: usize> ReflectWrite for [T; N] {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        w.enter_elements();
        T::write_slice(self, w)
    }

    fn write_slice(items: &[Self], w: &mut ReflectWriter<'_>) -> WriteResult {
        w.enter_elements();
        T::write_slice(items.as_flattened(), w)
    }
}

impl<T: Blank, const N: usize> ReflectRead for [T; N] {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.enter_elements();
        T::read_slice(self, r)
    }
}

impl<T: Blank, const N: usize> Blank for [T; N] {
    fn blank() -> Self {
        std::array::from_fn(|_| T::blank())
    }

    fn read_slice(items: &mut [Self], r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.enter_elements();
        T::read_slice(items.as_flattened_mut(), r)
    }
}

impl<T: ReflectWrite + ?Sized> ReflectWrite for Box<T> {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        (**self).write(w)
    }
}

impl<T: ReflectRead> ReflectRead for Box<T> {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.d.charge(size_of::<T>())?;
        (**self).read(r)
    }
}

impl<T: Blank, const N: usize> Blank for Box<[T; N]> {
    /// Allocates directly on the heap, because the array may be too large for the stack.
    fn blank() -> Self {
        let items: Vec<T> = std::iter::repeat_with(T::blank).take(N).collect();
        match items.into_boxed_slice().try_into() {
            Ok(items) => items,
            Err(_) => unreachable!("there are N of them"),
        }
    }
}

impl<T: ReflectWrite + ?Sized> ReflectWrite for &T {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        (**self).write(w)
    }
}

impl<S: ReflectWrite, const N: usize> ReflectWrite for Bounded<S, N> {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        (**self).write(w)
    }
}

impl<S: Blank + BoundedContent, const N: usize> ReflectRead for Bounded<S, N> {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        r.d.align(4)?;
        let start = r.d.position();
        let mut content = S::blank();
        content.read(r)?;
        let bounded = Bounded::new(content);
        *self = bounded.map_err(|_| DecodeError::new(DecodeErrorKind::BoundExceeded, start))?;
        Ok(())
    }
}

impl<S: Blank + BoundedContent + Default, const N: usize> Blank for Bounded<S, N> {
    fn blank() -> Self {
        Self::default()
    }
}

/// A reference to a member whose type has compiled code, for writing.
#[derive(Debug)]
pub struct CompiledRef<'a, T>(pub &'a T);

impl<T: CdrEncode> ReflectWrite for CompiledRef<'_, T> {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        self.0.encode(w.e)
    }
}

/// A reference to a member whose type has compiled code, for reading.
#[derive(Debug)]
pub struct CompiledMut<'a, T>(pub &'a mut T);

impl<T: CdrDecode> ReflectRead for CompiledMut<'_, T> {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        *self.0 = T::decode(r.d)?;
        Ok(())
    }
}

/// A reference to an `@optional` member, for writing.
#[derive(Debug)]
pub struct Optional<'a, T>(pub &'a Option<T>);

impl<T: CdrEncode> ReflectWrite for Optional<'_, T> {
    fn write(&self, w: &mut ReflectWriter<'_>) -> WriteResult {
        encode_optional(self.0, w.e)
    }
}

/// A reference to an `@optional` member, for reading.
#[derive(Debug)]
pub struct OptionalMut<'a, T>(pub &'a mut Option<T>);

impl<T: CdrDecode> ReflectRead for OptionalMut<'_, T> {
    fn read(&mut self, r: &mut ReflectReader<'_, '_>) -> ReadResult {
        *self.0 = decode_optional(r.d)?;
        Ok(())
    }
}

//! The layouts of primitives and arrays, and the macro that implements [`CdrEncode`](super::CdrEncode) and
//! [`CdrDecode`](super::CdrDecode) for types of fixed layout.

use zerocopy::IntoBytes;

use super::byte_swap::{TILE_BYTES, swap};
use super::fixed::{FixedReader, FixedWriter};
use super::layout::{FixedLayout, Layout};
use super::long_double::LongDouble;
use super::seq::Element;
use super::text::Char;

/// Implements [`CdrEncode`](crate::cdr::CdrEncode) and [`CdrDecode`](crate::cdr::CdrDecode) for types of
/// [`FixedLayout`](crate::cdr::FixedLayout).
#[macro_export]
macro_rules! fixed_cdr {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::cdr::CdrEncode for $type {
            #[inline]
            fn encode(&self, e: &mut $crate::cdr::Encoder) -> ::core::result::Result<(), $crate::EncodeError> {
                e.put_fixed(self);
                ::core::result::Result::Ok(())
            }

            #[inline]
            fn encode_slice(
                items: &[Self],
                e: &mut $crate::cdr::Encoder,
            ) -> ::core::result::Result<(), $crate::EncodeError> {
                e.put_fixed_slice(items);
                ::core::result::Result::Ok(())
            }
        }

        impl $crate::cdr::CdrDecode for $type {
            const MIN_SIZE: usize = <$type as $crate::cdr::FixedLayout>::LAYOUT.min_size();

            #[inline]
            fn decode(
                d: &mut $crate::cdr::Decoder<'_>,
            ) -> ::core::result::Result<Self, $crate::DecodeError> {
                d.read_fixed()
            }

            #[inline]
            fn decode_vec(
                d: &mut $crate::cdr::Decoder<'_>,
                n: usize,
            ) -> ::core::result::Result<::std::vec::Vec<Self>, $crate::DecodeError> {
                d.read_fixed_vec(n)
            }

            #[inline]
            fn decode_array<const N: usize>(
                d: &mut $crate::cdr::Decoder<'_>,
            ) -> ::core::result::Result<[Self; N], $crate::DecodeError> {
                d.read_fixed()
            }
        }
    )*};
}

macro_rules! primitives {
    ($($type:ty, $size:literal, $put:ident, $read:ident;)*) => {$(
        impl FixedLayout for $type {
            const LAYOUT: Layout = Layout::primitive($size, $size);
            const ARE_NUMBERS: bool = true;

            #[inline(always)]
            fn put(&self, w: &mut FixedWriter<'_>) {
                w.$put(*self);
            }

            #[inline(always)]
            fn get(r: &mut FixedReader<'_>) -> $type {
                r.$read()
            }

            #[inline(always)]
            fn put_swapped(items: &[$type], region: &mut [u8]) -> bool {
                swap(const { usize::ilog2($size) as u8 }, items.as_bytes(), region);
                true
            }

            #[inline(always)]
            fn extend_swapped(out: &mut Vec<$type>, region: &[u8]) -> bool {
                for tile in region.chunks(TILE_BYTES) {
                    let start = out.len();
                    out.resize(start + tile.len() / $size, <$type>::default());
                    let place = out.get_mut(start..).unwrap_or_default();
                    swap(const { usize::ilog2($size) as u8 }, tile, place.as_mut_bytes());
                }
                true
            }

            crate::element_bytes!();
        }

        impl Element for $type {}

        crate::fixed_cdr!($type);
    )*};
}

primitives! {
    u8, 1, put_u8, read_u8;
    u16, 2, put_u16, read_u16;
    u32, 4, put_u32, read_u32;
    u64, 8, put_u64, read_u64;
    i8, 1, put_i8, read_i8;
    i16, 2, put_i16, read_i16;
    i32, 4, put_i32, read_i32;
    i64, 8, put_i64, read_i64;
    f32, 4, put_f32, read_f32;
    f64, 8, put_f64, read_f64;
}

impl FixedLayout for bool {
    const LAYOUT: Layout = Layout::primitive(1, 1);
    const ARE_NUMBERS: bool = true;

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put_bool(*self);
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> bool {
        r.read_bool()
    }
}

crate::fixed_cdr!(bool);

impl FixedLayout for Char {
    const LAYOUT: Layout = Layout::primitive(1, 1);
    const ARE_NUMBERS: bool = true;

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put_u8(self.0);
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> Char {
        Char(r.read_u8())
    }

    crate::element_bytes!();
}

impl Element for Char {}

crate::fixed_cdr!(Char);

impl FixedLayout for LongDouble {
    /// The number has 16 bytes, but CDR aligns it to 8 like a `double`.
    const LAYOUT: Layout = Layout::primitive(16, 8);
    const ARE_NUMBERS: bool = true;

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put_u128(self.to_bits());
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> LongDouble {
        LongDouble::from_bits(r.read_u128())
    }

    crate::element_bytes!();
}

impl Element for LongDouble {}

crate::fixed_cdr!(LongDouble);

impl<T: FixedLayout, const N: usize> FixedLayout for [T; N] {
    const LAYOUT: Layout = T::LAYOUT.repeat(N);
    const ARE_NUMBERS: bool = T::ARE_NUMBERS;

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put_run(self);
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> [T; N] {
        r.read_array()
    }

    #[inline(always)]
    fn run_as_bytes(items: &[[T; N]]) -> Option<&[u8]> {
        T::run_as_bytes(items.as_flattened())
    }

    #[inline(always)]
    fn put_swapped(items: &[[T; N]], region: &mut [u8]) -> bool {
        T::put_swapped(items.as_flattened(), region)
    }
}

impl<T: Element, const N: usize> Element for [T; N] {}

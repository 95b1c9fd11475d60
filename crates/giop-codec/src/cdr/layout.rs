//! Types of fixed layout, whose encoded size depends only on the phase (offset modulo 8) of a value's start.
//!
//! Everything here is `const`, or is inlined into a loop whose phase is a constant. The compiler can
//! therefore compute all offsets, remove all bounds checks but one for each run, and vectorise loops.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::fixed::{FixedReader, FixedWriter};

/// The alignment of a fixed-layout type, and its size at each of the eight phases.
///
/// Let `A` be the greatest alignment among the primitives of a type. A primitive with that alignment starts
/// at a multiple of `A`. Therefore the offset at which a value ends, modulo `A`, is a constant
/// ([`Layout::end_phase`]). All elements of a sequence but the first start at the same phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    align: usize,
    /// The alignment of the first primitive, or 0 if there is none.
    first_align: usize,
    size_at: [usize; 8],
}

impl Layout {
    /// The layout of a struct without members, which takes no bytes.
    pub const EMPTY: Layout = Layout { align: 1, first_align: 0, size_at: [0; 8] };

    /// Returns the layout of a primitive of `size` bytes aligned to `align`, which is 1, 2, 4 or 8.
    pub const fn primitive(size: usize, align: usize) -> Layout {
        let mut size_at = [0; 8];
        let mut phase = 0;
        while phase < 8 {
            size_at[phase] = padding(phase, align) + size;
            phase += 1;
        }
        Layout { align, first_align: align, size_at }
    }

    /// Returns the layout of a value of this layout followed by one of `next`, as in a struct.
    pub const fn then(self, next: Layout) -> Layout {
        let mut size_at = [0; 8];
        let mut phase = 0;
        while phase < 8 {
            let size = self.size_at[phase];
            size_at[phase] = size + next.size_at[(phase + size) % 8];
            phase += 1;
        }
        let align = if next.align > self.align { next.align } else { self.align };
        let first_align = if self.first_align == 0 { next.first_align } else { self.first_align };
        Layout { align, first_align, size_at }
    }

    /// Returns the layout of an array of `count` elements.
    pub const fn repeat(self, count: usize) -> Layout {
        if count == 0 {
            return Layout::EMPTY;
        }
        let mut size_at = [0; 8];
        let mut phase = 0;
        while phase < 8 {
            size_at[phase] = self.run_size(phase, count);
            phase += 1;
        }
        Layout { align: self.align, first_align: self.first_align, size_at }
    }

    /// Returns the greatest alignment of the primitives: 1, 2, 4 or 8 bytes.
    #[inline]
    pub const fn align(&self) -> usize {
        self.align
    }

    /// Returns the size in bytes, with leading padding, of a value that starts at `phase` (modulo 8).
    #[inline(always)]
    pub const fn size(&self, phase: usize) -> usize {
        self.size_at[phase % 8]
    }

    /// Returns the minimum of [`size`](Layout::size) over all phases.
    pub const fn min_size(&self) -> usize {
        let mut min_size = self.size_at[0];
        let mut phase = 1;
        while phase < 8 {
            if self.size_at[phase] < min_size {
                min_size = self.size_at[phase];
            }
            phase += 1;
        }
        min_size
    }

    /// Returns the offset modulo [`align`](Layout::align) at which a value ends. It is the same for every
    /// `phase` at which the value starts.
    #[inline(always)]
    pub const fn end_phase(&self, phase: usize) -> usize {
        (phase + self.size_at[phase % 8]) % self.align
    }

    /// Returns the number of bytes from one element of a sequence to the next, from the second element on.
    #[inline(always)]
    pub const fn stride(&self) -> usize {
        self.size_at[self.end_phase(0)]
    }

    /// Returns the size in bytes of `count` elements, the first of which starts at `phase`. Saturates.
    #[inline]
    pub const fn run_size(&self, phase: usize, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        self.size(phase).saturating_add(self.stride().saturating_mul(count - 1))
    }

    /// Returns the number of padding bytes at `phase` after which elements are encoded as from phase 0 on.
    /// All elements are then one [`stride`](Layout::stride) apart. `None` if there is no such padding.
    ///
    /// The padding exists at every phase for primitives, and for types that end at a multiple of their
    /// alignment and begin with a primitive of that alignment.
    #[inline(always)]
    pub const fn run_padding(&self, phase: usize) -> Option<usize> {
        if self.end_phase(0) != 0 {
            None
        } else if self.first_align == self.align {
            Some(padding(phase, self.align))
        } else if phase & (self.align - 1) == 0 {
            Some(0)
        } else {
            None
        }
    }
}

/// Returns the number of bytes from `offset` to the next multiple of `align`, which must be a power of two.
#[inline(always)]
pub(crate) const fn padding(offset: usize, align: usize) -> usize {
    offset.wrapping_neg() & (align - 1)
}

/// A type whose encoding has a [`Layout`] and cannot fail.
///
/// Implementations must write and read exactly the members from which `LAYOUT` was composed, in the same
/// order. If `put` writes more than that, the surplus is dropped. If `get` reads more than that, it gets
/// zeros, and decoding fails. Both methods should be `#[inline(always)]`, so that sequences of the type
/// compile to straight-line code.
pub trait FixedLayout: Sized + 'static {
    /// The layout, composed by [`Layout::then`] in the order of the members.
    const LAYOUT: Layout;

    /// Whether values are numbers, or arrays of them. Booleans and characters count as numbers. In GIOP 1.1,
    /// peers align a run of numbers once, at its start, and not again after a fragment boundary.
    const ARE_NUMBERS: bool = false;

    /// Whether values in memory have the layout of their encoding, except for the content of padding.
    /// [`Elements`](super::Elements) can then be views of the receive buffer.
    const IS_VIEWABLE: bool = false;

    /// Writes the members in order.
    fn put(&self, w: &mut FixedWriter<'_>);

    /// Reads the members in order.
    fn get(r: &mut FixedReader<'_>) -> Self;

    /// Returns the memory of `items` if it is their encoding in native byte order from phase 0 on, otherwise
    /// `None`. [`element_bytes!`](crate::element_bytes) overrides this method,
    /// [`extend_from_bytes`](FixedLayout::extend_from_bytes) and
    /// [`array_from_bytes`](FixedLayout::array_from_bytes).
    #[inline(always)]
    fn run_as_bytes(_items: &[Self]) -> Option<&[u8]> {
        None
    }

    /// Appends the values with this memory and returns `true`. If the type does not support that, does
    /// nothing and returns `false`. The inverse of [`run_as_bytes`](FixedLayout::run_as_bytes).
    #[inline(always)]
    fn extend_from_bytes(_out: &mut Vec<Self>, _bytes: &[u8]) -> bool {
        false
    }

    /// Writes `items` into `region` in the foreign byte order and returns `true`. If the type does not
    /// support that, does nothing and returns `false`.
    #[inline(always)]
    fn put_swapped(_items: &[Self], _region: &mut [u8]) -> bool {
        false
    }

    /// Appends the values in `region`, which are in the foreign byte order, and returns `true`. If the type
    /// does not support that, does nothing and returns `false`. The inverse of
    /// [`put_swapped`](FixedLayout::put_swapped).
    #[inline(always)]
    fn extend_swapped(_out: &mut Vec<Self>, _region: &[u8]) -> bool {
        false
    }

    /// Returns the array with this memory, or `None` if the type does not support that.
    #[inline(always)]
    fn array_from_bytes<const N: usize>(_bytes: &[u8]) -> Option<[Self; N]> {
        None
    }
}

/// Overrides methods in an `impl FixedLayout`, so that sequences in native byte order are copied at once.
///
/// Use it only for types whose memory, including padding, is their encoding at phase 0. They must implement
/// zerocopy's `FromBytes`, `IntoBytes` and `Immutable`, and their size must be the layout's stride.
#[macro_export]
macro_rules! element_bytes {
    () => {
        #[inline(always)]
        fn run_as_bytes(items: &[Self]) -> ::core::option::Option<&[u8]> {
            ::core::option::Option::Some($crate::__zerocopy::IntoBytes::as_bytes(items))
        }

        #[inline(always)]
        fn extend_from_bytes(out: &mut ::std::vec::Vec<Self>, bytes: &[u8]) -> bool {
            <[Self] as $crate::__zerocopy::FromBytes>::ref_from_bytes(bytes)
                .map(|items| out.extend_from_slice(items))
                .is_ok()
        }

        #[inline(always)]
        fn array_from_bytes<const N: usize>(bytes: &[u8]) -> ::core::option::Option<[Self; N]> {
            <[Self; N] as $crate::__zerocopy::FromBytes>::read_from_bytes(bytes).ok()
        }
    };
}

/// A type of fixed layout for which bytes of any content are a valid value.
pub trait AnyBitPattern: FixedLayout + FromBytes + Immutable + KnownLayout {}

impl<T: FixedLayout + FromBytes + Immutable + KnownLayout> AnyBitPattern for T {}

//! Types of fixed layout: their encoded size depends only on the phase (offset mod 8) at which they start.
//!
//! Everything here is `const` or inlined into a loop whose phase is a constant. The compiler therefore
//! resolves each member's offset, removes every bounds check except the one around the run, and vectorises
//! where it can. Sequences of structs are written at memory speed without unsafe code.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::fixed::{FixedReader, FixedWriter};

/// Size and alignment of a fixed-layout type at each of the eight phases.
///
/// Let `A` be the greatest alignment among the primitives of a type. The offset of a value's end, modulo `A`,
/// does not depend on that of its start, because its `A`-aligned member resets the phase. That constant is
/// [`Layout::end`]. In a sequence, the first element may therefore have any phase, and all others have the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    align: usize,
    first_align: usize,
    size_at: [usize; 8],
}

impl Layout {
    /// The layout of a struct without members: no bytes.
    pub const EMPTY: Layout = Layout { align: 1, first_align: 0, size_at: [0; 8] };

    /// Returns the layout of a primitive of `size` bytes aligned to `align`, which is 1, 2, 4 or 8.
    pub const fn prim(size: usize, align: usize) -> Layout {
        let mut size_at = [0; 8];
        let mut phase = 0;
        while phase < 8 {
            size_at[phase] = padding(phase, align) + size;
            phase += 1;
        }
        Layout { align, first_align: align, size_at }
    }

    /// Returns the layout of this followed by `next`, like consecutive members of a struct.
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

    /// Returns the layout of an array of `count` elements of this layout.
    pub const fn repeat(self, count: usize) -> Layout {
        if count == 0 {
            return Layout::EMPTY;
        }
        let mut size_at = [0; 8];
        let mut phase = 0;
        while phase < 8 {
            size_at[phase] = self.run(phase, count);
            phase += 1;
        }
        Layout { align: self.align, first_align: self.first_align, size_at }
    }

    /// Returns the greatest alignment of any primitive inside: 1, 2, 4 or 8 bytes.
    #[inline]
    pub const fn align(&self) -> usize {
        self.align
    }

    /// Returns the bytes of a value that starts at `phase` (taken mod 8), its leading padding included.
    #[inline(always)]
    pub const fn size(&self, phase: usize) -> usize {
        self.size_at[phase % 8]
    }

    /// Returns the minimum of [`size`](Layout::size) over all phases.
    pub const fn min_size(&self) -> usize {
        let mut least = self.size_at[0];
        let mut phase = 1;
        while phase < 8 {
            if self.size_at[phase] < least {
                least = self.size_at[phase];
            }
            phase += 1;
        }
        least
    }

    /// Returns the offset modulo [`align`](Layout::align) at which a value that starts at `phase` ends. It is
    /// the same for every `phase`.
    #[inline(always)]
    pub const fn end(&self, phase: usize) -> usize {
        (phase + self.size_at[phase % 8]) % self.align
    }

    /// Returns the bytes from one element of a sequence to the next, from the second element on.
    #[inline(always)]
    pub const fn stride(&self) -> usize {
        self.size_at[self.end(0)]
    }

    /// Returns the bytes of `count` elements, the first of which starts at `phase`. Saturates.
    #[inline]
    pub const fn run(&self, phase: usize, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        self.size(phase).saturating_add(self.stride().saturating_mul(count - 1))
    }

    /// Returns the padding in bytes after which a sequence that starts at `phase` has the same bytes as one
    /// that starts at phase 0. All elements are then one [`stride`](Layout::stride) apart. `None` if there is
    /// no such padding.
    ///
    /// Types that end where they are aligned and whose first primitive has the greatest alignment have one at
    /// every phase. Every primitive is such a type. Other types have one only at certain phases.
    #[inline(always)]
    pub const fn lead(&self, phase: usize) -> Option<usize> {
        if self.end(0) != 0 {
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

/// Returns the bytes from `offset` to the next multiple of `align`, a power of two.
#[inline(always)]
pub(crate) const fn padding(offset: usize, align: usize) -> usize {
    offset.wrapping_neg() & (align - 1)
}

/// A type whose encoding has a [`Layout`] and cannot fail.
///
/// Implementations write and read exactly the members from which `LAYOUT` was composed, in the same order.
/// They mark `put` and `get` `#[inline(always)]`, so that sequences of the type compile to straight-line
/// code.
///
/// If a writer writes more than its `LAYOUT`, the surplus is dropped. A reader that reads more gets zeros,
/// and the decode fails.
pub trait FixedLayout: Sized + 'static {
    /// Size at each phase, composed by [`Layout::then`] in the order of the members.
    const LAYOUT: Layout;

    /// Whether values are numbers, or arrays of numbers. Senders of GIOP 1.1 fragments write a run of them as
    /// bytes, aligned once at its start and not realigned after a fragment boundary.
    const NUMBERS: bool = false;

    /// Whether values can be read in the receive buffer, because memory has the layout of CDR except for the
    /// content of padding. Only [`Elements`](super::Elements) uses it, whose elements are zerocopy's
    /// `FromBytes`.
    const VIEWED: bool = false;

    /// Writes the members in order.
    fn put(&self, w: &mut FixedWriter<'_>);

    /// Reads the members in order.
    fn get(r: &mut FixedReader<'_>) -> Self;

    /// Returns the bytes of `items` if their memory is their native-order encoding from phase 0 on. One copy
    /// then replaces element-wise writing. [`element_octets!`](crate::element_octets) overrides this method,
    /// [`extend_from_octets`](FixedLayout::extend_from_octets) and
    /// [`array_from_octets`](FixedLayout::array_from_octets).
    #[inline(always)]
    fn as_octets(items: &[Self]) -> Option<&[u8]> {
        let _ = items;
        None
    }

    /// Appends the values whose memory is `octets` and returns `true`, or does nothing and returns `false`.
    /// The inverse of [`as_octets`](FixedLayout::as_octets).
    #[inline(always)]
    fn extend_from_octets(out: &mut Vec<Self>, octets: &[u8]) -> bool {
        let _ = (out, octets);
        false
    }

    /// Writes `items` into `region` in the foreign byte order and returns `true`, or does nothing and returns
    /// `false`. Numbers have a separate loop, which the compiler can unroll or vectorise.
    #[inline(always)]
    fn put_swapped(items: &[Self], region: &mut [u8]) -> bool {
        let _ = (items, region);
        false
    }

    /// Appends the values of `region`, which are in the foreign byte order, and returns `true`, or does
    /// nothing and returns `false`. The inverse of [`put_swapped`](FixedLayout::put_swapped).
    #[inline(always)]
    fn extend_swapped(out: &mut Vec<Self>, region: &[u8]) -> bool {
        let _ = (out, region);
        false
    }

    /// Returns the array whose memory is `octets`, if the type allows that.
    #[inline(always)]
    fn array_from_octets<const N: usize>(octets: &[u8]) -> Option<[Self; N]> {
        let _ = octets;
        None
    }
}

/// Lets sequences of `T` be copied whole in native byte order. For use inside an `impl FixedLayout for T`.
///
/// Valid only for types whose memory is their encoding at phase 0, padding included (zerocopy's `FromBytes`,
/// `IntoBytes` and `Immutable`, size equal to the layout's stride).
#[macro_export]
macro_rules! element_octets {
    () => {
        #[inline(always)]
        fn as_octets(items: &[Self]) -> ::core::option::Option<&[u8]> {
            ::core::option::Option::Some($crate::__zerocopy::IntoBytes::as_bytes(items))
        }

        #[inline(always)]
        fn extend_from_octets(out: &mut ::std::vec::Vec<Self>, octets: &[u8]) -> bool {
            match <[Self] as $crate::__zerocopy::FromBytes>::ref_from_bytes(octets) {
                ::core::result::Result::Ok(items) => {
                    out.extend_from_slice(items);
                    true
                }
                ::core::result::Result::Err(_) => false,
            }
        }

        #[inline(always)]
        fn array_from_octets<const N: usize>(octets: &[u8]) -> ::core::option::Option<[Self; N]> {
            <[Self; N] as $crate::__zerocopy::FromBytes>::read_from_bytes(octets).ok()
        }
    };
}

/// A type of fixed layout for which any bytes of the right number are a valid value.
pub trait AnyBitPattern: FixedLayout + FromBytes + Immutable + KnownLayout {}

impl<T: FixedLayout + FromBytes + Immutable + KnownLayout> AnyBitPattern for T {}

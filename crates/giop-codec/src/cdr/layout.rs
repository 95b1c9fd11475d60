//! Types of fixed layout: their encoded size depends on nothing but the phase (offset mod 8) they start at.
//!
//! Everything here is `const` or inlined into a loop whose phase is a constant, so the compiler resolves each
//! member's offset, drops every bounds check but the one around the run, and vectorises what it can. That is
//! why no unsafe code is needed to write a sequence of structs at the speed of memory.

use super::fixed::{FixedReader, FixedWriter};

/// Size and alignment of a fixed-layout type at each of the eight phases.
///
/// Let `A` be the greatest alignment among the primitives of a type. Where a value ends, modulo `A`, does
/// not depend on where it began, because its `A`-aligned member resets the phase: that constant is
/// [`Layout::end`]. So in a sequence the first element may have any phase, and all others have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    align: usize,
    first_align: usize,
    size_at: [usize; 8],
}

impl Layout {
    /// Layout of a struct without members: no octets.
    pub const EMPTY: Layout = Layout { align: 1, first_align: 0, size_at: [0; 8] };

    /// Layout of a primitive of `size` octets aligned to `align`, which is 1, 2, 4 or 8.
    pub const fn prim(size: usize, align: usize) -> Layout {
        let mut size_at = [0; 8];
        let mut phase = 0;
        while phase < 8 {
            size_at[phase] = padding(phase, align) + size;
            phase += 1;
        }
        Layout { align, first_align: align, size_at }
    }

    /// Layout of this followed by `next`, as members of a struct follow each other.
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

    /// Layout of an array of `count` of this.
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

    /// Greatest alignment of any primitive inside: 1, 2, 4 or 8 octets.
    #[inline]
    pub const fn align(&self) -> usize {
        self.align
    }

    /// Octets that a value takes when it starts at `phase` (taken mod 8), its leading padding included.
    #[inline(always)]
    pub const fn size(&self, phase: usize) -> usize {
        self.size_at[phase % 8]
    }

    /// The least of [`size`](Layout::size) over all phases.
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

    /// Offset modulo [`align`](Layout::align) at which a value that starts at `phase` ends: the same for
    /// every `phase`.
    #[inline(always)]
    pub const fn end(&self, phase: usize) -> usize {
        (phase + self.size_at[phase % 8]) % self.align
    }

    /// Octets from one element of a sequence to the next, from the second element on.
    #[inline(always)]
    pub const fn stride(&self) -> usize {
        self.size_at[self.end(0)]
    }

    /// Octets that `count` elements take when the first starts at `phase`. Saturates.
    #[inline]
    pub const fn run(&self, phase: usize, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        self.size(phase).saturating_add(self.stride().saturating_mul(count - 1))
    }

    /// Octets of padding after which a sequence that starts at `phase` has the very same octets as one that
    /// starts at phase 0, all its elements one [`stride`](Layout::stride) apart; `None` when there is no such
    /// padding.
    ///
    /// Types that end where they are aligned and whose first primitive has the greatest alignment (all
    /// primitives, to begin with) have one at every phase; other types only where `phase` suits them.
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

/// Octets from `offset` to the next multiple of `align`, a power of two.
#[inline(always)]
pub(crate) const fn padding(offset: usize, align: usize) -> usize {
    offset.wrapping_neg() & (align - 1)
}

/// A type whose encoding has a [`Layout`] and cannot fail.
///
/// Implementations write and read exactly the members that `LAYOUT` was composed from, in the same order,
/// and mark `put` and `get` `#[inline(always)]`: then sequences of the type compile to straight-line code.
/// A writer whose type is longer than its `LAYOUT` says has its surplus dropped; a reader gets zeros and the
/// decode fails.
pub trait FixedLayout: Sized + 'static {
    /// Size at each phase, composed by [`Layout::then`] in the order of the members.
    const LAYOUT: Layout;

    /// Whether values of it are numbers, or arrays of numbers: senders of GIOP 1.1 fragments write a run of them as
    /// octets, aligned once at its start and not again behind a joint.
    const NUMBERS: bool = false;

    /// Whether values of it can be read where they were received: memory has the layout of CDR, up to what lies in
    /// padding. Only [`Elements`](super::Elements) looks at it, whose elements are zerocopy's `FromBytes`.
    const VIEWED: bool = false;

    /// Writes the members in order.
    fn put(&self, w: &mut FixedWriter<'_>);

    /// Reads the members in order.
    fn get(r: &mut FixedReader<'_>) -> Self;

    /// The octets of `items`, where their memory is their native-order encoding from phase 0 on: one copy then
    /// takes the place of element-wise writing. [`element_octets!`](crate::element_octets) overrides these three.
    #[inline(always)]
    fn as_octets(items: &[Self]) -> Option<&[u8]> {
        let _ = items;
        None
    }

    /// The inverse of [`as_octets`](FixedLayout::as_octets): appends the values whose memory is `octets` and
    /// returns true, or does nothing and returns false.
    #[inline(always)]
    fn extend_from_octets(out: &mut Vec<Self>, octets: &[u8]) -> bool {
        let _ = (out, octets);
        false
    }

    /// Writes `items` into `region` in the foreign byte order and returns true, or does nothing and returns false: numbers
    /// have a loop of their own, which the compiler can unroll or vectorise.
    #[inline(always)]
    fn put_swapped(items: &[Self], region: &mut [u8]) -> bool {
        let _ = (items, region);
        false
    }

    /// The inverse of [`put_swapped`](FixedLayout::put_swapped): appends what `region` holds in the foreign byte order.
    #[inline(always)]
    fn extend_swapped(out: &mut Vec<Self>, region: &[u8]) -> bool {
        let _ = (out, region);
        false
    }

    /// The array whose memory is `octets`, where the type allows it.
    #[inline(always)]
    fn array_from_octets<const N: usize>(octets: &[u8]) -> Option<[Self; N]> {
        let _ = octets;
        None
    }
}

/// Inside an `impl FixedLayout for T`: lets sequences of `T` be copied whole in native byte order.
///
/// Only for types whose memory is their encoding, padding included, when they start at phase 0 (zerocopy's
/// `FromBytes`, `IntoBytes` and `Immutable`, size equal to the layout's stride).
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

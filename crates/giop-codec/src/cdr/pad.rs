//! [`Pad`]: padding between the members of a struct that has the same bytes in memory and in CDR.

use core::fmt;
use core::hash::{Hash, Hasher};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::fixed::{FixedReader, FixedWriter};
use super::layout::{FixedLayout, Layout};

/// `N` bytes of padding before a member of a `@zero_copy` struct, whose bytes in memory are its encoding.
///
/// All values are equal and have the same hash, whatever bytes were received. Clones are zeros. In CDR, the
/// padding is not a member, but results from the alignment of the following member.
///
/// ```
/// use giop_codec::cdr::Pad;
/// assert_eq!(Pad::<3>::ZERO, Pad::default());
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Pad<const N: usize>([u8; N]);

impl<const N: usize> Pad<N> {
    /// Padding of zeros.
    pub const ZERO: Pad<N> = Pad([0; N]);
}

impl<const N: usize> Clone for Pad<N> {
    /// Returns zeros, so that padding bytes received from a peer are not passed on.
    #[inline(always)]
    fn clone(&self) -> Pad<N> {
        Pad::ZERO
    }
}

impl<const N: usize> Default for Pad<N> {
    #[inline(always)]
    fn default() -> Pad<N> {
        Pad::ZERO
    }
}

impl<const N: usize> PartialEq for Pad<N> {
    #[inline(always)]
    fn eq(&self, _: &Pad<N>) -> bool {
        true
    }
}

impl<const N: usize> Eq for Pad<N> {}

impl<const N: usize> Hash for Pad<N> {
    #[inline(always)]
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<const N: usize> fmt::Debug for Pad<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pad")
    }
}

impl<const N: usize> FixedLayout for Pad<N> {
    /// The empty layout, because the amount of padding depends on where the struct starts.
    const LAYOUT: Layout = Layout::EMPTY;

    #[inline(always)]
    fn put(&self, _: &mut FixedWriter<'_>) {}

    #[inline(always)]
    fn get(_: &mut FixedReader<'_>) -> Pad<N> {
        Pad::ZERO
    }
}

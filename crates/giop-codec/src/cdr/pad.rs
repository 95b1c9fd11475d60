//! [`Pad`]: padding between the members of a struct whose memory is its encoding.

use core::fmt;
use core::hash::{Hash, Hasher};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::fixed::{FixedReader, FixedWriter};
use super::layout::{FixedLayout, Layout};

/// `N` octets of padding before a member of a `@zero_copy` struct.
///
/// It has one value: all are equal and hash alike, whatever the octets of a received one are, and every one that is
/// made here, clones of received ones included, is zero. In CDR it is no member: the alignment of what follows makes the padding.
///
/// ```
/// use giop_codec::cdr::Pad;
/// assert_eq!(Pad::<3>::ZERO, Pad::default());
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Pad<const N: usize>([u8; N]);

impl<const N: usize> Pad<N> {
    /// The padding, all zero.
    pub const ZERO: Pad<N> = Pad([0; N]);
}

impl<const N: usize> Clone for Pad<N> {
    /// Zero: what a peer has put there goes nowhere else.
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
    /// Nothing: how much padding there is depends on where the struct starts.
    const LAYOUT: Layout = Layout::EMPTY;

    #[inline(always)]
    fn put(&self, _: &mut FixedWriter<'_>) {}

    #[inline(always)]
    fn get(_: &mut FixedReader<'_>) -> Pad<N> {
        Pad::ZERO
    }
}

//! [`Pad`]: padding between the members of a struct whose memory is its encoding.

use core::fmt;
use core::hash::{Hash, Hasher};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::fixed::{FixedReader, FixedWriter};
use super::layout::{FixedLayout, Layout};

/// `N` bytes of padding before a member of a `@zero_copy` struct.
///
/// All values are equal and hash alike, whatever the received bytes are. Clones are zero. In CDR the padding
/// is not a member: the alignment of the following member creates it.
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
    /// Returns zeros, so that no bytes of a peer are passed on.
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
    /// Empty, because the amount of padding depends on the start of the struct.
    const LAYOUT: Layout = Layout::EMPTY;

    #[inline(always)]
    fn put(&self, _: &mut FixedWriter<'_>) {}

    #[inline(always)]
    fn get(_: &mut FixedReader<'_>) -> Pad<N> {
        Pad::ZERO
    }
}

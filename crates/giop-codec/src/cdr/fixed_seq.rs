//! [`FixedSeq`]: large arrays of fixed-layout elements, which are stored like a [`Seq`].

use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Deref;

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::layout::FixedLayout;
use super::seq::{Element, Seq};
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, EncodeError};

/// An immutable array of `N` fixed-layout elements that is too large for the stack. It derefs to `[T]`.
///
/// Cloning increments a reference count. A decoded array can be a view of the receive buffer, like a [`Seq`].
///
/// ```
/// use giop_codec::cdr::FixedSeq;
/// let grid: FixedSeq<[f64; 100], 100> = vec![[1.5; 100]; 100].try_into().unwrap();
/// assert_eq!(grid[99][99], 1.5);
/// ```
pub struct FixedSeq<T, const N: usize>(Seq<T>);

impl<T: Element, const N: usize> FixedSeq<T, N> {
    /// Returns the `N` elements.
    pub fn as_slice(&self) -> &[T] {
        self.0.as_slice()
    }

    /// Converts the array to a sequence without copying the elements.
    pub fn into_seq(self) -> Seq<T> {
        self.0
    }
}

/// The error of a conversion from a wrong number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("an array of {expected} elements cannot be created from {length} elements")]
pub struct FixedLengthError {
    /// Number of elements from which an array was to be created.
    pub length: usize,
    /// Number of elements of the array.
    pub expected: usize,
}

impl<T: Element, const N: usize> TryFrom<Seq<T>> for FixedSeq<T, N> {
    type Error = FixedLengthError;

    fn try_from(items: Seq<T>) -> Result<FixedSeq<T, N>, FixedLengthError> {
        let length = items.len();
        if length == N { Ok(FixedSeq(items)) } else { Err(FixedLengthError { length, expected: N }) }
    }
}

impl<T: Element, const N: usize> TryFrom<Vec<T>> for FixedSeq<T, N> {
    type Error = FixedLengthError;

    /// Copies no element.
    fn try_from(items: Vec<T>) -> Result<FixedSeq<T, N>, FixedLengthError> {
        FixedSeq::try_from(Seq::from(items))
    }
}

impl<T: Element, const N: usize> From<Box<[T; N]>> for FixedSeq<T, N> {
    /// Copies no element.
    fn from(items: Box<[T; N]>) -> FixedSeq<T, N> {
        let items: Box<[T]> = items;
        FixedSeq(Seq::from(items.into_vec()))
    }
}

impl<T: Element, const N: usize> From<[T; N]> for FixedSeq<T, N> {
    fn from(items: [T; N]) -> FixedSeq<T, N> {
        FixedSeq(Seq::from(items))
    }
}

impl<T: Element, const N: usize> Deref for FixedSeq<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T, const N: usize> Clone for FixedSeq<T, N> {
    fn clone(&self) -> FixedSeq<T, N> {
        FixedSeq(self.0.clone())
    }
}

impl<T: Element, const N: usize> Default for FixedSeq<T, N> {
    /// Returns an array of zeros.
    fn default() -> FixedSeq<T, N> {
        FixedSeq(Seq::from(vec![T::new_zeroed(); N]))
    }
}

impl<T: Element + fmt::Debug, const N: usize> fmt::Debug for FixedSeq<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Element + PartialEq, const N: usize> PartialEq for FixedSeq<T, N> {
    fn eq(&self, other: &FixedSeq<T, N>) -> bool {
        self.0 == other.0
    }
}

impl<T: Element + Eq, const N: usize> Eq for FixedSeq<T, N> {}

impl<T: Element + Hash, const N: usize> Hash for FixedSeq<T, N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T: Element, const N: usize> CdrEncode for FixedSeq<T, N> {
    /// Writes the elements without a count ("Array"), by [`Encoder::put_seq`].
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_seq(&self.0);
        Ok(())
    }
}

impl<T: Element, const N: usize> CdrDecode for FixedSeq<T, N> {
    const MIN_SIZE: usize = <T as FixedLayout>::LAYOUT.repeat(N).min_size();

    fn decode(d: &mut Decoder<'_>) -> Result<FixedSeq<T, N>, DecodeError> {
        d.read_seq(N).map(FixedSeq)
    }
}

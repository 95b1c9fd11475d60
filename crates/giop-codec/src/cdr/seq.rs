//! [`Seq`]: owned, reference-counted sequences of fixed-layout elements, which are views of a buffer where
//! possible.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::ops::Deref;

use bytes::Bytes;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::layout::{FixedLayout, Layout};
use super::rewrite;
use super::traits::{CdrDecode, CdrEncode};
use crate::{DecodeError, EncodeError};

/// A type whose memory is its native-order encoding from phase 0 on. A sequence of such values can be sent
/// from memory and used in the receive buffer.
pub trait Element:
    FixedLayout + FromBytes + IntoBytes + Immutable + KnownLayout + Clone + Send + Sync + 'static
{
}

/// An immutable `sequence<T>` of fixed-layout elements; derefs to `[T]`.
///
/// Cloning increments a reference count. Conversion from a vector takes it over without a copy. When decoded
/// in native byte order, it is a view of the receive buffer, which it keeps alive.
///
/// ```
/// use giop_codec::cdr::Seq;
/// let samples: Seq<f64> = vec![1.0, 2.5].into();
/// assert_eq!(samples[1], 2.5);
/// assert_eq!(samples.iter().sum::<f64>(), 3.5);
/// ```
pub struct Seq<T> {
    /// Aligned for `T` and a multiple of its size, unless empty.
    octets: Bytes,
    marker: PhantomData<T>,
}

impl<T: Element> Seq<T> {
    const LAYOUT: Layout = <T as FixedLayout>::LAYOUT;

    /// Checks that memory layout and CDR layout of an element are the same, as far as sizes can tell.
    const SAME_LAYOUT: () = assert!(
        size_of::<T>() == Self::LAYOUT.size(0) && Self::LAYOUT.end(0) == 0 && size_of::<T>() != 0,
        "the memory layout of an element of Seq differs from its CDR layout"
    );

    /// Returns the elements.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        if self.octets.is_empty() {
            return &[];
        }
        // Cannot fail: alignment and size are invariants of the value.
        <[T]>::ref_from_bytes(&self.octets).unwrap_or_default()
    }

    /// Returns the memory of the elements, in native byte order.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.octets
    }

    /// Returns the memory of the elements, shared, in native byte order.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.octets.clone()
    }

    /// Returns the memory of the elements without incrementing the reference count.
    pub(crate) fn shared(&self) -> &Bytes {
        &self.octets
    }

    /// Converts the sequence to the memory of its elements, in native byte order.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.octets
    }

    /// Returns a view of `octets` as elements in native byte order, or `None` if their address is not aligned
    /// or their number is not a multiple of the element's size.
    pub fn from_view(octets: Bytes) -> Option<Seq<T>> {
        Seq::<T>::accepts(&octets).then(|| Seq::from_checked(octets))
    }

    /// Returns whether `octets` can be viewed as elements.
    #[inline]
    fn accepts(octets: &[u8]) -> bool {
        octets.is_empty() || <[T]>::ref_from_bytes(octets).is_ok()
    }

    /// Returns a view of `octets`, which the caller has checked.
    #[inline]
    pub(crate) fn from_checked(octets: Bytes) -> Seq<T> {
        const { Self::SAME_LAYOUT };
        Seq { octets, marker: PhantomData }
    }

    /// Returns the elements as a vector. Copies them once.
    pub fn into_vec(self) -> Vec<T> {
        self.as_slice().to_vec()
    }
}

/// A vector whose memory [`Bytes`] shares.
struct Owner<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Owner<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<T: Element> From<Vec<T>> for Seq<T> {
    /// Takes the vector over. Copies no element.
    fn from(items: Vec<T>) -> Seq<T> {
        const { Self::SAME_LAYOUT };
        if items.is_empty() {
            return Seq::default();
        }
        Seq { octets: Bytes::from_owner(Owner(items)), marker: PhantomData }
    }
}

impl<T: Element> From<&[T]> for Seq<T> {
    /// Copies the elements once.
    fn from(items: &[T]) -> Seq<T> {
        Seq::from(items.to_vec())
    }
}

impl<T: Element, const N: usize> From<[T; N]> for Seq<T> {
    fn from(items: [T; N]) -> Seq<T> {
        Seq::from(Vec::from(items))
    }
}

impl<T: Element, const N: usize> From<&[T; N]> for Seq<T> {
    fn from(items: &[T; N]) -> Seq<T> {
        Seq::from(items.as_slice())
    }
}

impl<T: Element> From<&Seq<T>> for Seq<T> {
    fn from(items: &Seq<T>) -> Seq<T> {
        items.clone()
    }
}

impl<T: Element> From<Seq<T>> for Vec<T> {
    fn from(items: Seq<T>) -> Vec<T> {
        items.into_vec()
    }
}

impl<T: Element> FromIterator<T> for Seq<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Seq<T> {
        Seq::from(items.into_iter().collect::<Vec<T>>())
    }
}

impl From<Bytes> for Seq<u8> {
    /// Shares the bytes.
    fn from(octets: Bytes) -> Seq<u8> {
        Seq::from_checked(octets)
    }
}

impl<T> From<Seq<T>> for Bytes {
    /// Shares the memory of the elements, in native byte order.
    fn from(items: Seq<T>) -> Bytes {
        items.octets
    }
}

impl<'a, T: Element> IntoIterator for &'a Seq<T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.as_slice().iter()
    }
}

impl<T: Element> Deref for Seq<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Element> AsRef<[T]> for Seq<T> {
    fn as_ref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T> Clone for Seq<T> {
    fn clone(&self) -> Seq<T> {
        Seq { octets: self.octets.clone(), marker: PhantomData }
    }
}

impl<T> Default for Seq<T> {
    fn default() -> Seq<T> {
        Seq { octets: Bytes::new(), marker: PhantomData }
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for Seq<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<T: Element + PartialEq> PartialEq for Seq<T> {
    fn eq(&self, other: &Seq<T>) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Element + Eq> Eq for Seq<T> {}

impl<T: Element + PartialEq> PartialEq<[T]> for Seq<T> {
    fn eq(&self, other: &[T]) -> bool {
        self.as_slice() == other
    }
}

impl<T: Element + PartialEq, const N: usize> PartialEq<[T; N]> for Seq<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        self.as_slice() == other
    }
}

impl<T: Element + PartialEq> PartialEq<Vec<T>> for Seq<T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Element + Hash> Hash for Seq<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl Encoder {
    /// Writes the elements of a sequence or array, without a count. In native byte order and from the chunk
    /// threshold on, only the first element is copied, and only if its phase differs from that of the others.
    pub fn put_seq<T: Element>(&mut self, items: &Seq<T>) {
        let layout = Seq::<T>::LAYOUT;
        if items.octets.is_empty() {
            return;
        }
        // Single bytes are the same in both orders.
        if self.is_foreign() && size_of::<T>() > 1 {
            self.put_fixed_slice(items.as_slice());
        } else if layout.lead(self.position()).is_some() {
            self.align(layout.align());
            self.put_shared_ref(&items.octets);
        } else {
            self.put_fixed_slice(items.as_slice().get(..1).unwrap_or_default());
            self.put_shared_part(items.octets.slice(size_of::<T>()..));
        }
    }
}

impl Decoder<'_> {
    /// Reads `n` elements as a [`Seq`], without a count. The result is a view where byte order and memory
    /// alignment allow, else a new vector that is filled in one pass.
    ///
    /// # Errors
    /// [`EndOfData`](crate::DecodeErrorKind::EndOfData), [`AllocLimit`](crate::DecodeErrorKind::AllocLimit).
    pub fn read_seq<T: Element>(&mut self, n: usize) -> Result<Seq<T>, DecodeError> {
        match self.view::<T>(n)? {
            Some(octets) => Ok(Seq::from_checked(octets)),
            None => self.read_fixed_vec(n).map(Seq::from),
        }
    }
}

impl<T: Element> CdrEncode for Seq<T> {
    /// Writes the count, then the elements ("Sequence") by [`Encoder::put_seq`].
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(self.as_slice().len())?;
        e.put_seq(self);
        Ok(())
    }
}

impl<T: Element> CdrDecode for Seq<T> {
    const MIN_SIZE: usize = 4;

    /// Returns a view where byte order and alignment allow, also of a rewritten message: see
    /// [`Rewrites`](super::Rewrites).
    fn decode(d: &mut Decoder<'_>) -> Result<Seq<T>, DecodeError> {
        if const { Self::LAYOUT.lead(4).is_none() }
            && let Some(octets) = rewrite::rewritten::<T>(d)
        {
            return Ok(Seq::from_checked(octets));
        }
        let n = d.read_len(const { Self::LAYOUT.min_size() })?;
        if const { Self::LAYOUT.lead(4).is_none() } && rewrite::note_rewrite::<T>(d, n)? {
            return Ok(Seq::default());
        }
        d.read_seq(n)
    }
}

//! [`Seq`]: reference-counted sequences of fixed-layout elements.

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

/// A type whose bytes in memory are its encoding in native byte order at an offset that is a multiple of 8.
/// A sequence of such values can be sent from memory, and used in the receive buffer, without a copy.
pub trait Element:
    FixedLayout + FromBytes + IntoBytes + Immutable + KnownLayout + Clone + Send + Sync + 'static
{
}

/// An immutable `sequence<T>` of fixed-layout elements. It derefs to `[T]`.
///
/// Cloning increments a reference count. Conversion from a vector takes over its memory. A sequence that is
/// decoded in native byte order is a view of the receive buffer if alignment permits, and keeps it alive.
///
/// ```
/// use giop_codec::cdr::Seq;
/// let samples: Seq<f64> = vec![1.0, 2.5].into();
/// assert_eq!(samples[1], 2.5);
/// assert_eq!(samples.iter().sum::<f64>(), 3.5);
/// ```
pub struct Seq<T> {
    /// The elements. Unless empty, they are aligned for `T`, and their length is a multiple of its size.
    bytes: Bytes,
    marker: PhantomData<T>,
}

impl<T: Element> Seq<T> {
    const LAYOUT: Layout = <T as FixedLayout>::LAYOUT;

    /// A check that fails to compile if the sizes of an element in memory and in CDR differ.
    const ASSERT_SAME_LAYOUT: () = assert!(
        size_of::<T>() == Self::LAYOUT.size(0) && Self::LAYOUT.end_phase(0) == 0 && size_of::<T>() != 0,
        "the memory layout of an element of Seq must be its CDR layout"
    );

    /// Returns the elements.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        if self.bytes.is_empty() {
            return &[];
        }
        // Cannot fail: alignment and size are invariants of the value.
        <[T]>::ref_from_bytes(&self.bytes).unwrap_or_default()
    }

    /// Returns the memory of the elements, in native byte order.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the memory of the elements, in native byte order, as a shared buffer.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    pub(crate) fn bytes_ref(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Returns `bytes` as elements in native byte order, without a copy. Returns `None` if the address is not
    /// aligned for `T`, or if the length is not a multiple of the size of `T`.
    pub fn from_view(bytes: Bytes) -> Option<Seq<T>> {
        let is_view = bytes.is_empty() || <[T]>::ref_from_bytes(&bytes).is_ok();
        is_view.then(|| Seq::from_checked(bytes))
    }

    /// Returns a view of `bytes`, for which [`from_view`](Self::from_view) must not return `None`.
    #[inline]
    pub(crate) fn from_checked(bytes: Bytes) -> Seq<T> {
        const { Self::ASSERT_SAME_LAYOUT };
        Seq { bytes, marker: PhantomData }
    }

    /// Copies the elements into a vector.
    pub fn into_vec(self) -> Vec<T> {
        self.as_slice().to_vec()
    }
}

/// A vector whose memory is shared by [`Bytes`].
struct SharedVec<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for SharedVec<T> {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<T: Element> From<Vec<T>> for Seq<T> {
    /// Copies no element.
    fn from(items: Vec<T>) -> Seq<T> {
        const { Self::ASSERT_SAME_LAYOUT };
        if items.is_empty() {
            return Seq::default();
        }
        Seq { bytes: Bytes::from_owner(SharedVec(items)), marker: PhantomData }
    }
}

macro_rules! conversions {
    ($($source:ty => $target:ty $(, $n:ident)?, |$items:ident| $result:expr;)*) => {$(
        impl<T: Element $(, const $n: usize)?> From<$source> for $target {
            fn from($items: $source) -> Self {
                $result
            }
        }
    )*};
}

conversions! {
    &[T] => Seq<T>, |items| Seq::from(items.to_vec());
    [T; N] => Seq<T>, N, |items| Seq::from(Vec::from(items));
    &[T; N] => Seq<T>, N, |items| Seq::from(items.to_vec());
    &Seq<T> => Seq<T>, |items| items.clone();
    Seq<T> => Vec<T>, |items| items.into_vec();
}

impl<T: Element> FromIterator<T> for Seq<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Seq<T> {
        Seq::from(items.into_iter().collect::<Vec<T>>())
    }
}

impl From<Bytes> for Seq<u8> {
    fn from(bytes: Bytes) -> Seq<u8> {
        Seq::from_checked(bytes)
    }
}

impl<T> From<Seq<T>> for Bytes {
    /// Returns the memory of the elements, in native byte order.
    fn from(items: Seq<T>) -> Bytes {
        items.bytes
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
        Seq { bytes: self.bytes.clone(), marker: PhantomData }
    }
}

impl<T> Default for Seq<T> {
    fn default() -> Seq<T> {
        Seq { bytes: Bytes::new(), marker: PhantomData }
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for Seq<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<T: Element + Eq> Eq for Seq<T> {}

macro_rules! comparisons {
    ($($other:ty $(, $n:ident)?;)*) => {$(
        impl<T: Element + PartialEq $(, const $n: usize)?> PartialEq<$other> for Seq<T> {
            fn eq(&self, other: &$other) -> bool {
                let other: &[T] = other;
                self.as_slice() == other
            }
        }
    )*};
}

comparisons! {
    Seq<T>;
    Vec<T>;
    [T];
    [T; N], N;
}

impl<T: Element + Hash> Hash for Seq<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl Encoder {
    /// Writes the elements of a sequence or array, without a count. In native byte order, the elements are
    /// shared if they have at least as many bytes as the [chunk threshold](Self::set_chunk_threshold). The
    /// first one is copied if it starts at another phase than the others.
    pub fn put_seq<T: Element>(&mut self, items: &Seq<T>) {
        let layout = Seq::<T>::LAYOUT;
        if items.bytes.is_empty() {
            return;
        }
        // Single bytes are the same in both orders.
        if self.is_foreign_order() && size_of::<T>() > 1 {
            self.put_fixed_slice(items.as_slice());
        } else if layout.run_padding(self.position()).is_some() {
            self.align(layout.align());
            self.put_shared_ref(&items.bytes);
        } else {
            self.put_fixed_slice(items.as_slice().get(..1).unwrap_or_default());
            self.put_shared_part(items.bytes.slice(size_of::<T>()..));
        }
    }
}

impl Decoder<'_> {
    /// Reads `n` elements as a [`Seq`], without a count. The result is a view of the receive buffer if byte
    /// order and alignment permit, and a copy otherwise.
    ///
    /// # Errors
    /// [`EndOfData`](crate::DecodeErrorKind::EndOfData), [`AllocLimit`](crate::DecodeErrorKind::AllocLimit).
    pub fn read_seq<T: Element>(&mut self, n: usize) -> Result<Seq<T>, DecodeError> {
        match self.view::<T>(n)? {
            Some(bytes) => Ok(Seq::from_checked(bytes)),
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

    /// Returns a view if byte order and alignment, or [`Rewrites`](super::Rewrites), permit it.
    fn decode(d: &mut Decoder<'_>) -> Result<Seq<T>, DecodeError> {
        if const { Self::LAYOUT.run_padding(4).is_none() }
            && let Some(bytes) = rewrite::read_rewritten::<T>(d)
        {
            return Ok(Seq::from_checked(bytes));
        }
        let n = d.read_len(const { Self::LAYOUT.min_size() })?;
        if const { Self::LAYOUT.run_padding(4).is_none() } && rewrite::record_rewrite::<T>(d, n)? {
            return Ok(Seq::default());
        }
        d.read_seq(n)
    }
}

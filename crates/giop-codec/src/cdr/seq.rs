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
    bytes: Bytes,
    marker: PhantomData<T>,
}

impl<T: Element> Seq<T> {
    const LAYOUT: Layout = <T as FixedLayout>::LAYOUT;

    /// Fails to compile if the sizes of an element in memory and in CDR differ.
    const HAS_SAME_LAYOUT: () = assert!(
        size_of::<T>() == Self::LAYOUT.size(0) && Self::LAYOUT.end(0) == 0 && size_of::<T>() != 0,
        "the memory layout of an element of Seq differs from its CDR layout"
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

    /// Returns the memory of the elements, shared, in native byte order.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    pub(crate) fn shared(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Returns a view of `bytes` as elements in native byte order, or `None` if their address is not aligned
    /// or their number is not a multiple of the element's size.
    pub fn from_view(bytes: Bytes) -> Option<Seq<T>> {
        let is_view = bytes.is_empty() || <[T]>::ref_from_bytes(&bytes).is_ok();
        is_view.then(|| Seq::from_checked(bytes))
    }

    /// Returns a view of `bytes`, for which [`from_view`](Self::from_view) does not fail.
    #[inline]
    pub(crate) fn from_checked(bytes: Bytes) -> Seq<T> {
        const { Self::HAS_SAME_LAYOUT };
        Seq { bytes, marker: PhantomData }
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
    /// Copies no element.
    fn from(items: Vec<T>) -> Seq<T> {
        const { Self::HAS_SAME_LAYOUT };
        if items.is_empty() {
            return Seq::default();
        }
        Seq { bytes: Bytes::from_owner(Owner(items)), marker: PhantomData }
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
    /// Writes the elements of a sequence or array, without a count. In native byte order, those from the
    /// chunk threshold on are shared, except the first if it starts at another phase than the others.
    pub fn put_seq<T: Element>(&mut self, items: &Seq<T>) {
        let layout = Seq::<T>::LAYOUT;
        if items.bytes.is_empty() {
            return;
        }
        // Single bytes are the same in both orders.
        if self.is_foreign() && size_of::<T>() > 1 {
            self.put_fixed_slice(items.as_slice());
        } else if layout.lead(self.position()).is_some() {
            self.align(layout.align());
            self.put_shared_ref(&items.bytes);
        } else {
            self.put_fixed_slice(items.as_slice().get(..1).unwrap_or_default());
            self.put_shared_part(items.bytes.slice(size_of::<T>()..));
        }
    }
}

impl Decoder<'_> {
    /// Reads `n` elements as a [`Seq`], without a count. The result is a view where byte order and memory
    /// alignment allow, else a copy.
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

    /// Returns a view where byte order and alignment allow, also of a rewritten message: see
    /// [`Rewrites`](super::Rewrites).
    fn decode(d: &mut Decoder<'_>) -> Result<Seq<T>, DecodeError> {
        if const { Self::LAYOUT.lead(4).is_none() }
            && let Some(bytes) = rewrite::rewritten::<T>(d)
        {
            return Ok(Seq::from_checked(bytes));
        }
        let n = d.read_len(const { Self::LAYOUT.min_size() })?;
        if const { Self::LAYOUT.lead(4).is_none() } && rewrite::record_rewrite::<T>(d, n)? {
            return Ok(Seq::default());
        }
        d.read_seq(n)
    }
}

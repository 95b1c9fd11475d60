//! [`Bounded`]: strings and sequences with an upper bound on their length.

use core::fmt;
use core::ops::Deref;

use bytes::Bytes;

use super::decoder::Decoder;
use super::encoder::Encoder;
use super::seq::{Element, Seq};
use super::traits::{CdrDecode, CdrEncode};
use super::wide::{WStr, WString};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// A type whose length can be bounded in IDL.
pub trait BoundedContent {
    /// The unit in which the length is counted, for error messages.
    const UNIT: &'static str = "elements";

    /// Returns the length that the bound limits, in units of [`UNIT`](Self::UNIT).
    fn bounded_len(&self) -> usize;
}

macro_rules! bounded_content {
    ($($content:ty $(, $t:ident: $bound:path)?, $unit:literal, |$value:ident| $length:expr;)*) => {$(
        impl $(<$t: $bound>)? BoundedContent for $content {
            const UNIT: &'static str = $unit;

            fn bounded_len(&self) -> usize {
                let $value = self;
                $length
            }
        }
    )*};
}

bounded_content! {
    str, "characters", |text| text.chars().count();
    String, "characters", |text| text.chars().count();
    WStr<'_>, "UTF-16 units", |text| text.units().count();
    WString, "UTF-16 units", |text| text.units().count();
    Bytes, "bytes", |bytes| bytes.len();
    [T], T: Sized, "elements", |items| items.len();
    Vec<T>, T: Sized, "elements", |items| items.len();
    Seq<T>, T: Element, "elements", |items| items.len();
}

/// Checks the length of a value before it is sent as a bounded type.
///
/// # Errors
/// [`BoundExceeded`](EncodeErrorKind::BoundExceeded) (`BAD_PARAM`) if it is longer than `bound`.
pub fn check_bound<S: BoundedContent + ?Sized>(content: &S, bound: usize) -> Result<(), EncodeError> {
    if content.bounded_len() > bound { Err(EncodeErrorKind::BoundExceeded.into()) } else { Ok(()) }
}

/// An `S` of at most `N` characters, UTF-16 units or elements: `string<N>`, `wstring<N>`, `sequence<T, N>`.
///
/// ```
/// use giop_codec::cdr::Bounded;
/// let name: Bounded<String, 4> = "abcd".to_string().try_into().unwrap();
/// assert_eq!(&**name, "abcd");
/// assert!(Bounded::<_, 4>::new("abcde".to_string()).is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bounded<S, const N: usize>(S);

impl<S: BoundedContent, const N: usize> Bounded<S, N> {
    /// The maximum length.
    pub const BOUND: usize = N;

    /// Creates a bounded value.
    ///
    /// # Errors
    /// [`BoundError`] if its length exceeds `N`.
    pub fn new(content: S) -> Result<Bounded<S, N>, BoundError> {
        let length = content.bounded_len();
        if length > N { Err(BoundError { length, bound: N }) } else { Ok(Bounded(content)) }
    }
}

impl<S, const N: usize> Bounded<S, N> {
    /// Returns the content without its bound.
    pub fn into_inner(self) -> S {
        self.0
    }
}

macro_rules! try_from {
    ($($source:ty => $content:ty $(, $t:ident: $bound:path)?;)*) => {$(
        impl<$($t: $bound,)? const N: usize> TryFrom<$source> for Bounded<$content, N> {
            type Error = BoundError;

            fn try_from(content: $source) -> Result<Self, BoundError> {
                Bounded::new(content.into())
            }
        }
    )*};
}

try_from! {
    String => String;
    &str => String;
    WString => WString;
    &str => WString;
    WStr<'_> => WString;
    Bytes => Bytes;
    Vec<T> => Vec<T>, T: Sized;
    Seq<T> => Seq<T>, T: Element;
}

impl<'a, const N: usize> From<&'a Bounded<WString, N>> for WStr<'a> {
    fn from(text: &'a Bounded<WString, N>) -> Self {
        text.as_wstr()
    }
}

impl<S, const N: usize> Deref for Bounded<S, N> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: fmt::Display, const N: usize> fmt::Display for Bounded<S, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S: CdrEncode, const N: usize> CdrEncode for Bounded<S, N> {
    /// Writes the content like a value of the unbounded type.
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.0.encode(e)
    }
}

impl<S: CdrDecode + BoundedContent, const N: usize> CdrDecode for Bounded<S, N> {
    const MIN_SIZE: usize = S::MIN_SIZE;

    fn decode(d: &mut Decoder<'_>) -> Result<Bounded<S, N>, DecodeError> {
        d.align(4)?;
        let start = d.position();
        let content = S::decode(d)?;
        Bounded::new(content).map_err(|_| DecodeError::new(DecodeErrorKind::BoundExceeded, start))
    }
}

/// The error of a value that is longer than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("length {length} exceeds the bound of {bound}")]
pub struct BoundError {
    /// Length of the value.
    pub length: usize,
    /// Maximum length of its type.
    pub bound: usize,
}

impl From<BoundError> for EncodeError {
    fn from(_: BoundError) -> EncodeError {
        EncodeErrorKind::BoundExceeded.into()
    }
}

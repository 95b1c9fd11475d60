//! Arguments for `@stream` parameters that are not sequences of bytes: elements in memory, or from a stream.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use giop_codec::EncodeError;
use giop_codec::cdr::{Element, Encoder, FixedLayout, Seq};

use crate::stream::payload::Payload;
use crate::stream::{ByteSource, Given};

/// The elements of a `@stream` argument: all of them in memory, or a stream of chunks with a total number.
///
/// This is a [`ByteSource`] of numbers or characters. Its rules for connections, repeated attempts, errors
/// and limits apply here, in bytes. Values in memory (`Seq<T>`, `Vec<T>`) convert to a `SeqSource` and are
/// sent without a copy. A [stream](Self::stream) is polled for chunks only as the socket accepts data, so
/// calls of any length need the same memory. All data is sent in native byte order.
///
/// ```
/// # use orb_runtime::SeqSource;
/// # use orb_runtime::types::Seq;
/// # use std::io;
/// let whole = SeqSource::from(vec![0.5, 1.5]);
/// let chunks = futures_util::stream::iter((0..100).map(|_| Ok::<_, io::Error>(vec![0.5; 1000])));
/// let streamed = SeqSource::<f64>::stream(100_000, chunks);
/// assert_eq!((whole.len(), streamed.len()), (2, 100_000));
/// ```
pub struct SeqSource<T> {
    octets: ByteSource,
    marker: PhantomData<fn() -> T>,
}

impl<T: Element> SeqSource<T> {
    /// Creates a source of the items of a stream (`Seq<T>`, `Vec<T>`), which must have `len` elements in all.
    /// Items of 4 KiB and more are sent without a copy. After the last element the stream is not polled
    /// again.
    pub fn stream<S, I, E>(len: u64, stream: S) -> Self
    where
        S: Stream<Item = Result<I, E>> + Send + 'static,
        I: Into<Seq<T>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let octets = len.saturating_mul(size_of::<T>() as u64);
        Self::of(ByteSource::stream(octets, stream.map_ok(|items| Bytes::from(items.into()))))
    }

    /// Creates a source of elements that are read as bytes in native byte order, for example from a file.
    /// `None` if the length is not a multiple of the element size.
    #[must_use]
    pub fn octets(octets: ByteSource) -> Option<Self> {
        octets.len().is_multiple_of(size_of::<T>() as u64).then(|| Self::of(octets))
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.octets.len() / size_of::<T>() as u64
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    pub(crate) fn of(octets: ByteSource) -> Self {
        Self { octets, marker: PhantomData }
    }
}

impl<T: Element> From<Seq<T>> for SeqSource<T> {
    /// Elements in memory, sent without a copy.
    fn from(items: Seq<T>) -> Self {
        Self::of(Bytes::from(items).into())
    }
}

impl<T: Element> From<&Seq<T>> for SeqSource<T> {
    /// Elements in memory, sent without a copy.
    fn from(items: &Seq<T>) -> Self {
        Self::from(items.clone())
    }
}

impl<T: Element> From<Vec<T>> for SeqSource<T> {
    /// Elements in memory, sent without a copy.
    fn from(items: Vec<T>) -> Self {
        Self::from(Seq::from(items))
    }
}

impl<T: Element> From<&[T]> for SeqSource<T> {
    /// Copies the elements once.
    fn from(items: &[T]) -> Self {
        Self::from(Seq::from(items))
    }
}

impl<T: Element, const N: usize> From<[T; N]> for SeqSource<T> {
    fn from(items: [T; N]) -> Self {
        Self::from(Seq::from(items))
    }
}

/// The elements as bytes, in native byte order.
impl<T> From<SeqSource<T>> for ByteSource {
    fn from(source: SeqSource<T>) -> Self {
        source.octets
    }
}

/// An empty source.
impl<T: Element> Default for SeqSource<T> {
    fn default() -> Self {
        Self::of(ByteSource::default())
    }
}

impl<T: Element> fmt::Debug for SeqSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeqSource").field("len", &self.len()).field("octets", &self.octets).finish()
    }
}

/// The type of elements that bytes represent, by size and alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    size: usize,
    align: usize,
}

impl Unit {
    pub(crate) const OCTET: Self = Self { size: 1, align: 1 };

    pub(crate) const fn of<T: Element>() -> Self {
        Self { size: size_of::<T>(), align: <T as FixedLayout>::LAYOUT.align() }
    }

    /// Encodes the start of a sequence of `octets` bytes: the element count, and the padding before the first
    /// element.
    pub(crate) fn encode_start(self, octets: usize, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(octets / self.size)?;
        if octets > 0 {
            e.align(self.align);
        }
        Ok(())
    }
}

/// A `@stream` argument, to be passed to the call.
#[derive(Debug)]
pub struct LastArgument {
    octets: ByteSource,
    unit: Unit,
}

impl LastArgument {
    /// Returns the contents.
    pub(crate) fn given(self) -> LastGiven {
        match self.octets.given() {
            Given::Octets(octets) => LastGiven::Octets(octets, self.unit),
            Given::Payload(payload) => LastGiven::Payload(payload.of(self.unit)),
        }
    }
}

/// The contents of a `@stream` argument.
pub(crate) enum LastGiven {
    Octets(Bytes, Unit),
    Payload(Payload),
}

impl From<ByteSource> for LastArgument {
    fn from(octets: ByteSource) -> Self {
        Self { octets, unit: Unit::OCTET }
    }
}

impl<T: Element> From<SeqSource<T>> for LastArgument {
    fn from(source: SeqSource<T>) -> Self {
        Self { octets: source.octets, unit: Unit::of::<T>() }
    }
}

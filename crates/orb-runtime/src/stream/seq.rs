//! The sources of arguments and results with the annotation `@stream` that contain numbers or characters.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use giop_codec::EncodeError;
use giop_codec::cdr::{Element, Encoder, FixedLayout, Seq};

use crate::stream::payload::Payload;
use crate::stream::{ByteSource, SourceContent};

/// The numbers or characters of a `@stream` argument or result, in memory or from a stream of chunks.
///
/// The rules of [`ByteSource`] for connections, repetition, errors and limits apply. Values in memory convert
/// to a `SeqSource` and are sent without a copy. A [stream](Self::stream) is polled as fast as the socket
/// accepts data. Elements are sent in native byte order.
///
/// ```
/// # use orb_runtime::SeqSource;
/// # use orb_runtime::types::Seq;
/// # use std::io;
/// let in_memory = SeqSource::from(vec![0.5, 1.5]);
/// let chunks = futures_util::stream::iter((0..100).map(|_| Ok::<_, io::Error>(vec![0.5; 1000])));
/// let streamed = SeqSource::<f64>::stream(100_000, chunks);
/// assert_eq!((in_memory.len(), streamed.len()), (2, 100_000));
/// ```
pub struct SeqSource<T> {
    bytes: ByteSource,
    marker: PhantomData<fn() -> T>,
}

impl<T: Element> SeqSource<T> {
    /// Creates a source of the items of a stream (`Seq<T>`, `Vec<T>`), which must have `len` elements in
    /// total. Items of at least 4 KiB are sent without a copy.
    pub fn stream<S, I, E>(len: u64, stream: S) -> Self
    where
        S: Stream<Item = Result<I, E>> + Send + 'static,
        I: Into<Seq<T>>,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let bytes = len.saturating_mul(size_of::<T>() as u64);
        Self::of(ByteSource::stream(bytes, stream.map_ok(|items| Bytes::from(items.into()))))
    }

    /// Creates a source from bytes in native byte order, or returns `None` if they end inside an element.
    #[must_use]
    pub fn from_bytes(bytes: ByteSource) -> Option<Self> {
        bytes.len().is_multiple_of(size_of::<T>() as u64).then(|| Self::of(bytes))
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() / size_of::<T>() as u64
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn of(bytes: ByteSource) -> Self {
        Self { bytes, marker: PhantomData }
    }
}

impl<T: Element> From<Seq<T>> for SeqSource<T> {
    fn from(items: Seq<T>) -> Self {
        Self::of(Bytes::from(items).into())
    }
}

impl<T: Element> From<&Seq<T>> for SeqSource<T> {
    fn from(items: &Seq<T>) -> Self {
        Self::from(items.clone())
    }
}

impl<T: Element> From<Vec<T>> for SeqSource<T> {
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

impl<T> From<SeqSource<T>> for ByteSource {
    fn from(source: SeqSource<T>) -> Self {
        source.bytes
    }
}

impl<T: Element> Default for SeqSource<T> {
    fn default() -> Self {
        Self::of(ByteSource::default())
    }
}

impl<T: Element> fmt::Debug for SeqSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeqSource").field("len", &self.len()).field("bytes", &self.bytes).finish()
    }
}

/// The size and alignment of the elements that the bytes of a source represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElementLayout {
    size: usize,
    align: usize,
}

impl ElementLayout {
    pub(crate) const BYTE: Self = Self { size: 1, align: 1 };

    pub(crate) const fn of<T: Element>() -> Self {
        Self { size: size_of::<T>(), align: <T as FixedLayout>::LAYOUT.align() }
    }

    /// Encodes the element count of a sequence of `len` bytes, and the padding before the first element.
    pub(crate) fn encode_start(self, len: usize, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(len / self.size)?;
        if len > 0 {
            e.align(self.align);
        }
        Ok(())
    }
}

/// The `@stream` argument of a call: a source of any type.
#[derive(Debug)]
pub struct StreamedArgument {
    bytes: ByteSource,
    layout: ElementLayout,
}

impl StreamedArgument {
    pub(crate) fn into_content(self) -> ArgumentContent {
        match self.bytes.into_content() {
            SourceContent::Bytes(bytes) => ArgumentContent::Bytes(bytes, self.layout),
            SourceContent::Payload(payload) => ArgumentContent::Payload(payload.with_layout(self.layout)),
        }
    }
}

pub(crate) enum ArgumentContent {
    Bytes(Bytes, ElementLayout),
    Payload(Payload),
}

impl From<ByteSource> for StreamedArgument {
    fn from(bytes: ByteSource) -> Self {
        Self { bytes, layout: ElementLayout::BYTE }
    }
}

impl<T: Element> From<SeqSource<T>> for StreamedArgument {
    fn from(source: SeqSource<T>) -> Self {
        Self { bytes: source.bytes, layout: ElementLayout::of::<T>() }
    }
}

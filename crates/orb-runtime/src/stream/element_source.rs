//! Sources of `@stream` results: bytes that are read, or values that are encoded, while the reply is sent.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use giop_codec::cdr::{CdrEncode, Element, Encoder};
use giop_codec::exception::{CompletionStatus, SystemException};

use crate::stream::payload::{Payload, SourceError};
use crate::stream::reader::BoxError;
use crate::stream::seq::{SeqSource, Unit};
use crate::stream::{ByteSource, Given};

/// Number of stream items that are encoded before the task yields.
const BURST: u32 = 16 * 1024;

/// The elements of a `@stream` result that are not bytes, numbers or characters: their number and their
/// source.
///
/// Elements are taken and encoded one by one while the reply is sent, and only as its connection accepts
/// data. Memory use does not grow with their number. In CDR the count precedes the elements, so it must be
/// known in advance. The number of bytes need not be known. If the count is unknown too, collect the elements
/// first: a `Vec` converts into a source.
///
/// * A GIOP 1.2 client receives the reply in fragments of 64 KiB, between which other requests of the
///   connection are answered. Up to 64 KiB it is one message. For older clients the reply is encoded whole
///   first, so memory use grows with it.
/// * If the stream fails, ends early, or ends because the servant panicked, and nothing was sent, the client
///   receives an exception. It is the stream's error if that is a [`SystemException`], else UNKNOWN,
///   COMPLETED_MAYBE, with the error as its cause. After the first fragment no exception can be sent: the
///   connection is closed, and the client receives COMM_FAILURE, COMPLETED_MAYBE.
/// * If the client cancels the call, or its connection is lost, the stream is dropped.
/// * While the client accepts nothing, the stream is not polled. The connection is closed after
///   `Limits::write_timeout`.
/// * A caller in the same process takes the elements directly from the stream, one by one.
///
/// ```
/// # use orb_runtime::ItemSource;
/// # use std::io;
/// let there = ItemSource::from(vec!["one".to_owned(), "two".to_owned()]);
/// let made = ItemSource::iter((0..1000).map(|n| format!("number {n}")));
/// let rows = futures_util::stream::iter((0..10).map(|n| Ok::<_, io::Error>(n.to_string())));
/// let read = ItemSource::stream(10, rows);
/// assert_eq!((there.len(), made.len(), read.len()), (2, 1000, 10));
/// ```
pub struct ItemSource<T> {
    len: u64,
    came: u64,
    items: Pin<Box<dyn Stream<Item = Result<T, BoxError>> + Send>>,
}

impl<T: Send + 'static> ItemSource<T> {
    /// Creates a source of the items of a stream, which must have at least `len`. After these it is not
    /// polled again.
    pub fn stream<S, E>(len: u64, stream: S) -> Self
    where
        S: Stream<Item = Result<T, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        Self { len, came: 0, items: Box::pin(stream.map_err(Into::into)) }
    }

    /// Creates a source of an iterator that knows its length. It is advanced only as the connection accepts
    /// data.
    pub fn iter<I>(items: I) -> Self
    where
        I: IntoIterator<Item = T>,
        I::IntoIter: ExactSizeIterator + Send + 'static,
    {
        let items = items.into_iter();
        let len = items.len() as u64;
        Self { len, came: 0, items: Box::pin(futures_util::stream::iter(items.map(Ok))) }
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the next element, or `None` after the last.
    pub(crate) fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, SystemException>>> {
        if self.came >= self.len {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(match ready!(self.items.as_mut().poll_next(cx)) {
            Some(Ok(item)) => {
                self.came += 1;
                Ok(item)
            }
            Some(Err(error)) => Err(raised(error)),
            None => {
                Err(unknown(format!("the source ended after {} of its {} elements", self.came, self.len)))
            }
        }))
    }
}

/// Elements in memory.
impl<T: Send + 'static> From<Vec<T>> for ItemSource<T> {
    fn from(items: Vec<T>) -> Self {
        Self::iter(items)
    }
}

/// An empty source.
impl<T: Send + 'static> Default for ItemSource<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T> fmt::Debug for ItemSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemSource").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Converts the error of a servant's source to an exception.
#[cold]
fn raised(error: BoxError) -> SystemException {
    match error.downcast::<SystemException>() {
        Ok(exception) => *exception,
        Err(error) => unknown_bare().with_source(error),
    }
}

#[cold]
fn unknown(text: String) -> SystemException {
    unknown_bare().with_reason(text)
}

fn unknown_bare() -> SystemException {
    SystemException::unknown().completed(CompletionStatus::Maybe)
}

/// Converts the error of a servant's byte source to an exception.
#[cold]
fn broken(error: SourceError) -> SystemException {
    match error {
        SourceError::Failed(error) => raised(error),
        other => unknown(other.to_string()),
    }
}

/// An encoder of a `@stream` result in parts.
pub(crate) trait Produce: Send {
    /// Encodes the count and padding before the elements.
    fn begin(&self, e: &mut Encoder) -> Result<(), SystemException>;

    /// Encodes elements. Returns `false` when the encoder has reached position `until`, or `true` after the
    /// last element.
    fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        e: &mut Encoder,
        until: usize,
    ) -> Poll<Result<bool, SystemException>>;
}

impl<T: CdrEncode + Send + 'static> Produce for ItemSource<T> {
    fn begin(&self, e: &mut Encoder) -> Result<(), SystemException> {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        e.put_len(len).map_err(|error| error.system(CompletionStatus::Yes))
    }

    fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        e: &mut Encoder,
        until: usize,
    ) -> Poll<Result<bool, SystemException>> {
        for _ in 0..BURST {
            if e.position() >= until {
                return Poll::Ready(Ok(false));
            }
            match ready!(self.poll_item(cx)?) {
                Some(item) => item.encode(e).map_err(|error| error.system(CompletionStatus::Yes))?,
                None => return Poll::Ready(Ok(true)),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Payload {
    /// Returns the next chunk of a result.
    pub(crate) fn poll_result(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, SystemException>>> {
        self.poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map_err(broken)))
    }
}

impl Produce for Payload {
    fn begin(&self, e: &mut Encoder) -> Result<(), SystemException> {
        let len = usize::try_from(self.len()).unwrap_or(usize::MAX);
        self.unit().encode_start(len, e).map_err(|error| error.system(CompletionStatus::Yes))
    }

    fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        e: &mut Encoder,
        until: usize,
    ) -> Poll<Result<bool, SystemException>> {
        for _ in 0..BURST {
            if e.position() >= until {
                return Poll::Ready(Ok(false));
            }
            match ready!(self.poll_chunk(cx)) {
                Some(Ok(chunk)) => e.put_shared(chunk),
                Some(Err(error)) => return Poll::Ready(Err(broken(error))),
                None => return Poll::Ready(Ok(true)),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A `@stream` result, to be passed to the reply.
pub struct LastResult(pub(crate) Produced);

/// The contents of a `@stream` result.
pub(crate) enum Produced {
    /// All bytes, in memory.
    Octets(Bytes, Unit),
    /// A source that is encoded while the reply is sent.
    Source(Box<dyn Produce>),
}

impl LastResult {
    fn of(octets: ByteSource, unit: Unit) -> Self {
        Self(match octets.given() {
            Given::Octets(octets) => Produced::Octets(octets, unit),
            Given::Payload(mut payload) => {
                payload.keep_nothing();
                Produced::Source(Box::new(payload.of(unit)))
            }
        })
    }
}

impl From<ByteSource> for LastResult {
    fn from(octets: ByteSource) -> Self {
        Self::of(octets, Unit::OCTET)
    }
}

impl<T: Element> From<SeqSource<T>> for LastResult {
    fn from(source: SeqSource<T>) -> Self {
        Self::of(source.into(), Unit::of::<T>())
    }
}

impl<T: CdrEncode + Send + 'static> From<ItemSource<T>> for LastResult {
    fn from(source: ItemSource<T>) -> Self {
        Self(Produced::Source(Box::new(source)))
    }
}

impl fmt::Debug for LastResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastResult").finish_non_exhaustive()
    }
}

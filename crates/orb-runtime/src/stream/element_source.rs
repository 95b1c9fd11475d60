//! The sources of results with the annotation `@stream`. They are read or encoded while the reply is sent.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use giop_codec::cdr::{CdrEncode, Element, Encoder};
use giop_codec::exception::{CompletionStatus, SystemException};

use crate::stream::payload::{Payload, SourceError};
use crate::stream::reader::BoxError;
use crate::stream::seq::{ElementLayout, SeqSource};
use crate::stream::{ByteSource, SourceContent};

/// The number of items that are encoded before the task yields.
const MAX_ITEMS_PER_POLL: u32 = 16 * 1024;

/// The source of a `@stream` result whose elements are not bytes, numbers or characters.
///
/// Elements are taken and encoded one by one while the reply is sent, as fast as the connection accepts data.
/// The number of elements must be known in advance, because it precedes them in the message. If it is
/// unknown, the servant can collect the elements first: a `Vec` converts into a source.
///
/// * A GIOP 1.2 client receives a reply of more than 64 KiB in fragments, between which other replies may be
///   sent. Memory use does not depend on the number of elements. Older clients receive whole replies.
/// * If the stream fails, panics or ends early before the first fragment is sent, the client receives an
///   exception: the stream's error if it is a [`SystemException`], else UNKNOWN, COMPLETED_MAYBE.
/// * If the stream fails later, the connection is closed. The client gets COMM_FAILURE, COMPLETED_MAYBE.
/// * If the client cancels the call, or its connection ends, the stream is dropped.
/// * While the client does not read, the stream is not polled. `Limits::write_timeout` ends the connection.
/// * A caller in the same process takes the elements directly from the stream.
///
/// ```
/// # use orb_runtime::ItemSource;
/// # use std::io;
/// let in_memory = ItemSource::from(vec!["one".to_owned(), "two".to_owned()]);
/// let computed = ItemSource::iter((0..1000).map(|n| format!("number {n}")));
/// let rows = futures_util::stream::iter((0..10).map(|n| Ok::<_, io::Error>(n.to_string())));
/// let streamed = ItemSource::stream(10, rows);
/// assert_eq!((in_memory.len(), computed.len(), streamed.len()), (2, 1000, 10));
/// ```
pub struct ItemSource<T> {
    len: u64,
    returned_items: u64,
    items: Pin<Box<dyn Stream<Item = Result<T, BoxError>> + Send>>,
}

impl<T: Send + 'static> ItemSource<T> {
    /// Creates a source of the first `len` items of a stream. The stream must yield at least `len` items.
    pub fn stream<S, E>(len: u64, stream: S) -> Self
    where
        S: Stream<Item = Result<T, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        Self { len, returned_items: 0, items: Box::pin(stream.map_err(Into::into)) }
    }

    /// Creates a source of the items of an iterator. They are taken as fast as the connection accepts data.
    pub fn iter<I>(items: I) -> Self
    where
        I: IntoIterator<Item = T>,
        I::IntoIter: ExactSizeIterator + Send + 'static,
    {
        let items = items.into_iter();
        let len = items.len() as u64;
        Self { len, returned_items: 0, items: Box::pin(futures_util::stream::iter(items.map(Ok))) }
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
        if self.returned_items >= self.len {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(match ready!(self.items.as_mut().poll_next(cx)) {
            Some(Ok(item)) => {
                self.returned_items += 1;
                Ok(item)
            }
            Some(Err(error)) => Err(exception_of(error)),
            None => Err(unknown_with_text(format!(
                "the source ended after {} of its {} elements",
                self.returned_items, self.len
            ))),
        }))
    }
}

impl<T: Send + 'static> From<Vec<T>> for ItemSource<T> {
    fn from(items: Vec<T>) -> Self {
        Self::iter(items)
    }
}

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

#[cold]
fn exception_of(error: BoxError) -> SystemException {
    match error.downcast::<SystemException>() {
        Ok(exception) => *exception,
        Err(error) => unknown_exception().with_source(error),
    }
}

#[cold]
fn unknown_with_text(text: String) -> SystemException {
    unknown_exception().with_reason(text)
}

fn unknown_exception() -> SystemException {
    SystemException::unknown().completed(CompletionStatus::Maybe)
}

#[cold]
fn payload_exception(error: SourceError) -> SystemException {
    match error {
        SourceError::Failed(error) => exception_of(error),
        other => unknown_with_text(other.to_string()),
    }
}

/// A source of a `@stream` result that is encoded part by part.
pub(crate) trait EncodeParts: Send {
    /// Encodes the element count and the padding before the elements.
    fn begin(&self, e: &mut Encoder) -> Result<(), SystemException>;

    /// Encodes the next element or chunk. Returns `false` after the last one.
    fn poll_part(&mut self, cx: &mut Context<'_>, e: &mut Encoder) -> Poll<Result<bool, SystemException>>;

    /// Encodes parts until the encoder's position is at least `until`. Returns `true` after the last part.
    fn poll_encode(
        &mut self,
        cx: &mut Context<'_>,
        e: &mut Encoder,
        until: usize,
    ) -> Poll<Result<bool, SystemException>> {
        for _ in 0..MAX_ITEMS_PER_POLL {
            if e.position() >= until {
                return Poll::Ready(Ok(false));
            }
            if !ready!(self.poll_part(cx, e)?) {
                return Poll::Ready(Ok(true));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T: CdrEncode + Send + 'static> EncodeParts for ItemSource<T> {
    fn begin(&self, e: &mut Encoder) -> Result<(), SystemException> {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        e.put_len(len).map_err(|error| error.to_system_exception(CompletionStatus::Yes))
    }

    #[inline]
    fn poll_part(&mut self, cx: &mut Context<'_>, e: &mut Encoder) -> Poll<Result<bool, SystemException>> {
        let Some(item) = ready!(self.poll_item(cx)?) else { return Poll::Ready(Ok(false)) };
        item.encode(e).map_err(|error| error.to_system_exception(CompletionStatus::Yes))?;
        Poll::Ready(Ok(true))
    }
}

impl Payload {
    pub(crate) fn poll_result_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, SystemException>>> {
        self.poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map_err(payload_exception)))
    }
}

impl EncodeParts for Payload {
    fn begin(&self, e: &mut Encoder) -> Result<(), SystemException> {
        let len = usize::try_from(self.len()).unwrap_or(usize::MAX);
        self.layout().encode_start(len, e).map_err(|error| error.to_system_exception(CompletionStatus::Yes))
    }

    #[inline]
    fn poll_part(&mut self, cx: &mut Context<'_>, e: &mut Encoder) -> Poll<Result<bool, SystemException>> {
        let Some(chunk) = ready!(self.poll_result_chunk(cx)?) else { return Poll::Ready(Ok(false)) };
        e.put_shared(chunk);
        Poll::Ready(Ok(true))
    }
}

/// The `@stream` result of an operation: a source of any type.
pub struct StreamedResult(pub(crate) ResultContent);

pub(crate) enum ResultContent {
    Bytes(Bytes, ElementLayout),
    Source(Box<dyn EncodeParts>),
}

impl StreamedResult {
    fn of(bytes: ByteSource, layout: ElementLayout) -> Self {
        Self(match bytes.into_content() {
            SourceContent::Bytes(bytes) => ResultContent::Bytes(bytes, layout),
            SourceContent::Payload(mut payload) => {
                payload.drop_kept_chunks();
                ResultContent::Source(Box::new(payload.with_layout(layout)))
            }
        })
    }
}

impl From<ByteSource> for StreamedResult {
    fn from(bytes: ByteSource) -> Self {
        Self::of(bytes, ElementLayout::BYTE)
    }
}

impl<T: Element> From<SeqSource<T>> for StreamedResult {
    fn from(source: SeqSource<T>) -> Self {
        Self::of(source.into(), ElementLayout::of::<T>())
    }
}

impl<T: CdrEncode + Send + 'static> From<ItemSource<T>> for StreamedResult {
    fn from(source: ItemSource<T>) -> Self {
        Self(ResultContent::Source(Box::new(source)))
    }
}

impl fmt::Debug for StreamedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedResult").finish_non_exhaustive()
    }
}

//! `@stream` results whose items are received one by one, because they are not bytes, numbers or characters.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use giop_codec::cdr::{CdrDecode, CodeSets, DecodeLimits, Decoder};
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, Version};
use giop_proto::Limit;

use crate::runtime::Shared;
use crate::servant::collocated_request::CollocatedRequest;
use crate::servant::results::{BadResults, ResultStream, Results};
use crate::servant::stream::{ByteStream, ResultStart, stream_too_large};
use crate::stream::ItemSource;

/// The maximum alignment of a value, in bytes.
const MAX_ALIGN_BYTES: usize = 8;

/// The items of a `@stream` result, which a client takes one by one.
///
/// The rules of [`ByteStream`] for connections, flow control, deadlines and dropping apply. Memory use does
/// not depend on the number of items: the memory contains the current item, of at most
/// `Limits::max_message_size` bytes, and up to four chunks of 256 KiB.
///
/// A mock or test can create an `ItemStream` from a `Vec<T>` or an [`ItemSource`].
///
/// ```
/// # use orb_runtime::{ItemStream, SystemException};
/// async fn longest(mut names: ItemStream<String>) -> Result<usize, SystemException> {
///     let mut longest = 0;
///     while let Some(name) = names.next().await {
///         longest = longest.max(name?.len());
///     }
///     Ok(longest)
/// }
/// ```
pub struct ItemStream<T> {
    items_left: u64,
    origin: Origin<T>,
}

enum Origin<T> {
    Reply(Box<Incoming<T>>),
    /// The items come from a source in this process. The mutex is never locked, but makes the stream `Sync`.
    Source(Mutex<ItemSource<T>>, Option<Box<CollocatedRequest>>),
    Ended,
}

struct Incoming<T> {
    bytes: ByteStream,
    /// A part of the message body. It starts at a multiple of eight in the message.
    buffer: Bytes,
    /// The position of the next item in `buffer`.
    at: usize,
    /// Chunks that follow the buffer and are not joined to it yet.
    chunks: Vec<Bytes>,
    chunk_bytes: usize,
    is_complete: bool,
    /// The number of bytes that were too few to decode the next item.
    tried_bytes: usize,
    received_bytes: u64,
    params: DecodeParams,
    decode: fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
}

struct DecodeParams {
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    limits: DecodeLimits,
    max_item_bytes: usize,
    max_stream_bytes: u64,
    orb: Arc<Shared>,
}

impl<T: Send + 'static> ItemStream<T> {
    /// Returns the number of items that have not been returned yet.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.items_left
    }

    /// Returns the next item, or `None` after the last.
    ///
    /// # Errors
    /// After an error, the stream ends.
    /// * The errors of [`ByteStream::next`] at a client.
    /// * MARSHAL, COMPLETED_MAYBE, if an item cannot be decoded.
    /// * IMP_LIMIT, COMPLETED_MAYBE, if an item exceeds `Limits::max_message_size`, or if the items of a
    ///   fragmented result together exceed `Limits::max_stream_size`.
    ///
    /// # Cancel safety
    /// Dropping the future loses no items.
    pub async fn next(&mut self) -> Option<Result<T, SystemException>> {
        std::future::poll_fn(|cx| self.poll_item(cx)).await
    }

    /// Returns all remaining items.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next), and IMP_LIMIT, COMPLETED_NO, if more than `limit` items remain.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the stream.
    pub async fn collect(mut self, limit: usize) -> Result<Vec<T>, SystemException> {
        if self.items_left > limit as u64 {
            let text = format!("{} items of the stream exceed the limit of {limit}", self.items_left);
            return Err(SystemException::imp_limit().with_reason(text));
        }
        // Memory is allocated for received items, not for the announced number.
        let mut items = Vec::new();
        while let Some(item) = self.next().await {
            items.push(item?);
        }
        Ok(items)
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, SystemException>>> {
        let polled = match &mut self.origin {
            Origin::Reply(incoming) if self.items_left > 0 => incoming.poll_item(cx).map(Some),
            Origin::Reply(incoming) => incoming.bytes.poll_finish_argument(cx).map(|end| end.err().map(Err)),
            Origin::Source(source, request) => {
                let source = source.get_mut().unwrap_or_else(PoisonError::into_inner);
                match request {
                    Some(request) => request.poll(cx, |cx| source.poll_item(cx)),
                    None => source.poll_item(cx),
                }
            }
            Origin::Ended => Poll::Ready(None),
        };
        match ready!(polled) {
            Some(Ok(item)) => {
                self.items_left = self.items_left.saturating_sub(1);
                if let (0, Origin::Reply(incoming)) = (self.items_left, &mut self.origin)
                    && let Poll::Ready(Ok(())) = incoming.bytes.poll_finish_argument(cx)
                {
                    // Releases the connection.
                    self.origin = Origin::Ended;
                }
                Poll::Ready(Some(Ok(item)))
            }
            other => {
                (self.items_left, self.origin) = (0, Origin::Ended);
                Poll::Ready(other)
            }
        }
    }

    /// Creates the stream of a source in this process, which is polled in the context of `request`.
    pub(crate) fn of_source(source: ItemSource<T>, request: Option<CollocatedRequest>) -> Self {
        let items_left = source.len();
        Self { items_left, origin: Origin::Source(Mutex::new(source), request.map(Box::new)) }
    }
}

impl<T> Incoming<T> {
    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, SystemException>> {
        loop {
            let available = self.buffer.len() - self.at;
            if available > self.tried_bytes || self.is_complete {
                match self.decode() {
                    Ok(item) => return Poll::Ready(Ok(item)),
                    Err(error) if self.is_complete || !is_incomplete(&error) => {
                        self.params.orb.counters.hit_decoding_limit(&error);
                        return Poll::Ready(Err(malformed(&error)));
                    }
                    Err(_) if available > self.params.max_item_bytes => {
                        return Poll::Ready(Err(self.too_large_item()));
                    }
                    Err(_) => self.tried_bytes = available,
                }
            }
            // An item is decoded again from its start after its bytes have doubled, or when no more bytes are
            // available now and they have grown by at least a sixteenth. Without this minimum, a peer that
            // sends a large item byte by byte could cause a copy and a decoding attempt for each byte.
            while self.chunk_bytes < self.tried_bytes.max(1) && !self.is_complete {
                match self.bytes.poll_chunk(cx) {
                    Poll::Pending if self.chunk_bytes < (self.tried_bytes / 16).max(1) => {
                        return Poll::Pending;
                    }
                    Poll::Pending => break,
                    Poll::Ready(chunk) => self.add_chunk(chunk.transpose()?)?,
                }
            }
            self.join_chunks();
        }
    }

    fn decode(&mut self) -> Result<T, DecodeError> {
        let DecodeParams { order, version, code_sets, limits, orb, .. } = &self.params;
        let d = Decoder::from_bytes(&self.buffer, *order, *version);
        #[cfg(feature = "experiments")]
        let d = match orb.config.connection.deposits_enabled {
            true => d,
            false => Decoder::new(&self.buffer, *order, *version),
        };
        let mut d = d.at(self.at).with_context(orb);
        d.set_code_sets(*code_sets);
        d.set_limits(*limits);
        let item = (self.decode)(&mut d)?;
        (self.at, self.tried_bytes) = (d.position(), 0);
        Ok(item)
    }

    fn add_chunk(&mut self, chunk: Option<Bytes>) -> Result<(), SystemException> {
        let Some(chunk) = chunk else {
            self.is_complete = true;
            return Ok(());
        };
        self.received_bytes += chunk.len() as u64;
        if self.received_bytes > self.params.max_stream_bytes {
            self.params.orb.counters.hit(Limit::StreamSize);
            let limit = self.params.max_stream_bytes;
            return Err(stream_too_large(self.received_bytes, limit, CompletionStatus::Maybe));
        }
        self.chunk_bytes += chunk.len();
        self.chunks.push(chunk);
        Ok(())
    }

    /// Joins the chunks to the undecoded bytes of the buffer. The buffer still starts at a multiple of eight.
    fn join_chunks(&mut self) {
        let start = self.at - self.at % MAX_ALIGN_BYTES;
        if start == self.buffer.len()
            && let [_] = self.chunks.as_slice()
            && let Some(chunk) = self.chunks.pop()
        {
            self.buffer = chunk;
        } else if !self.chunks.is_empty() {
            let mut joined = Vec::with_capacity(self.buffer.len() - start + self.chunk_bytes);
            joined.extend_from_slice(self.buffer.get(start..).unwrap_or_default());
            self.chunks.drain(..).for_each(|chunk| joined.extend_from_slice(&chunk));
            self.buffer = joined.into();
        } else {
            return;
        }
        (self.at, self.chunk_bytes) = (self.at - start, 0);
    }

    #[cold]
    fn too_large_item(&self) -> SystemException {
        self.params.orb.counters.hit(Limit::MessageSize);
        let text = format!(
            "an item of the stream exceeds the limit of {} bytes: increase `Limits::max_message_size`",
            self.params.max_item_bytes
        );
        SystemException::imp_limit().completed(CompletionStatus::Maybe).with_reason(text)
    }
}

fn is_incomplete(error: &DecodeError) -> bool {
    matches!(error.kind, DecodeErrorKind::EndOfData | DecodeErrorKind::LengthBeyondData)
}

#[cold]
fn malformed(error: &DecodeError) -> SystemException {
    let exception = error.to_system_exception(CompletionStatus::Maybe);
    SystemException::new(exception.kind, exception.minor, exception.completed)
        .with_reason(format!("cannot decode an item of the stream: {}", error.kind.message()))
}

impl<T: CdrDecode + Send + 'static> ResultStream for ItemStream<T> {
    const ACCEPTS_UNALIGNED_FRAGMENTS: bool = false;

    fn from_results(results: Results) -> Result<Self, BadResults> {
        let orb = Arc::clone(&results.orb);
        if !results.reply.is_in_one_piece() {
            // In GIOP 1.1 fragments, the alignment of items is known only after all fragments are received.
            return Ok(Vec::<T>::decode(&mut results.body().with_context(&orb))?.into());
        }
        let mut d = results.body();
        let items_left = u64::from(d.read_u32()?);
        let at = d.position();
        let start = at - at % MAX_ALIGN_BYTES;
        let buffer = results.reply.message().slice(start..);
        let at = at - start;
        let received = buffer.len() - at;
        let is_open_ended = results.bytes_to_come() == usize::MAX;
        let size = if is_open_ended { u64::MAX } else { received as u64 + results.bytes_to_come() as u64 };
        let count_at = start + at - 4;
        if items_left.saturating_mul(T::MIN_SIZE.max(1) as u64) > size {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, count_at).into());
        }
        let limits = Arc::clone(&orb.config.limits);
        let params = DecodeParams {
            order: d.order(),
            version: d.version(),
            code_sets: d.code_sets(),
            limits: d.limits(),
            max_item_bytes: limits.max_message_size,
            max_stream_bytes: limits.max_stream_size,
            orb,
        };
        let first = buffer.slice(at..);
        let mut bytes =
            results.stream(ResultStart { size, is_open_ended, first, element_offset: None }, count_at)?;
        bytes.skip_first();
        let incoming = Incoming {
            bytes,
            buffer,
            at,
            chunks: Vec::new(),
            chunk_bytes: 0,
            is_complete: false,
            tried_bytes: 0,
            received_bytes: received as u64,
            params,
            decode: T::decode,
        };
        Ok(Self { items_left, origin: Origin::Reply(Box::new(incoming)) })
    }
}

impl<T: Send + 'static> Stream for ItemStream<T> {
    type Item = Result<T, SystemException>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_item(cx)
    }
}

impl<T: Send + 'static> From<ItemSource<T>> for ItemStream<T> {
    fn from(source: ItemSource<T>) -> Self {
        Self::of_source(source, None)
    }
}

impl<T: Send + 'static> From<Vec<T>> for ItemStream<T> {
    fn from(items: Vec<T>) -> Self {
        ItemSource::from(items).into()
    }
}

impl<T> fmt::Debug for ItemStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemStream").field("items_left", &self.items_left).finish_non_exhaustive()
    }
}

//! Items that are received one by one: `@stream` results that are not sequences of bytes, numbers or
//! characters.

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
use crate::servant::results::{BadResults, ResultStream, Results};
use crate::servant::served::Served;
use crate::servant::stream::{ByteStream, Start, too_large};
use crate::stream::ItemSource;

/// The largest alignment of a value, in bytes.
const ALIGN: usize = 8;

/// The items of a `@stream` result, which a client takes one by one. Memory use does not grow with their
/// number.
///
/// Connections, flow control, deadlines and dropping are as for [`ByteStream`]. Memory holds the current
/// item, of at most `Limits::max_message_size` bytes, and up to four chunks of 256 KiB.
///
/// A mock or test can create one from a `Vec<T>` or an [`ItemSource`].
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
    /// Number of items that were not handed out.
    left: u64,
    from: Origin<T>,
}

enum Origin<T> {
    /// Items decoded as they are received.
    Reply(Box<Incoming<T>>),
    /// Items of a servant in this process, taken from its source. The mutex is never locked: only the stream
    /// owns it.
    Source(Mutex<ItemSource<T>>, Option<Box<Served>>),
    Nowhere,
}

/// The state of items that are being received.
struct Incoming<T> {
    octets: ByteStream,
    /// Bytes of the body. The first one is at a multiple of eight in the message.
    buffer: Bytes,
    /// Position of the next item in `buffer`.
    at: usize,
    /// Chunks that follow the buffer and are not joined to it yet.
    more: Vec<Bytes>,
    /// Number of bytes in `more`.
    waiting: usize,
    /// Whether all bytes have been received.
    is_whole: bool,
    /// Number of bytes that did not suffice to decode the next item.
    tried: usize,
    /// Number of bytes received.
    came: u64,
    terms: Terms,
    decode: fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
}

/// The parameters for decoding all items.
struct Terms {
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
    limits: DecodeLimits,
    max_item: usize,
    max_stream: u64,
    orb: Arc<Shared>,
}

impl<T: Send + 'static> ItemStream<T> {
    /// Returns the number of items that were not handed out yet.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.left
    }

    /// Returns the next item, or `None` after the last.
    ///
    /// # Errors
    /// Returned once. At a client, those of [`ByteStream::next`]. MARSHAL, COMPLETED_MAYBE, for an item that
    /// cannot be decoded. IMP_LIMIT, COMPLETED_MAYBE, for an item larger than `Limits::max_message_size`.
    /// IMP_LIMIT, COMPLETED_MAYBE, if the items of a fragmented result together exceed
    /// `Limits::max_stream_size`.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<T, SystemException>> {
        std::future::poll_fn(|cx| self.poll_item(cx)).await
    }

    /// Returns all remaining items.
    ///
    /// # Errors
    /// Those of [`next`](Self::next). IMP_LIMIT, COMPLETED_NO, if there are more than `limit`.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the stream.
    pub async fn collect(mut self, limit: usize) -> Result<Vec<T>, SystemException> {
        if self.left > limit as u64 {
            let text = format!("{} items are more than the limit of {limit}", self.left);
            return Err(refusal(CompletionStatus::No, text));
        }
        // Memory is allocated for received items, not for the announced number.
        let mut items = Vec::new();
        while let Some(item) = self.next().await {
            items.push(item?);
        }
        Ok(items)
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, SystemException>>> {
        let polled = match &mut self.from {
            Origin::Reply(incoming) if self.left > 0 => incoming.poll_item(cx).map(Some),
            Origin::Reply(incoming) => incoming.poll_end(cx).map(|end| end.err().map(Err)),
            Origin::Source(source, served) => {
                let source = source.get_mut().unwrap_or_else(PoisonError::into_inner);
                match served {
                    Some(served) => served.poll(cx, |cx| source.poll_item(cx)),
                    None => source.poll_item(cx),
                }
            }
            Origin::Nowhere => Poll::Ready(None),
        };
        match ready!(polled) {
            Some(Ok(item)) => {
                self.left = self.left.saturating_sub(1);
                if let (0, Origin::Reply(incoming)) = (self.left, &mut self.from)
                    && let Poll::Ready(Ok(())) = incoming.poll_end(cx)
                {
                    // Releases the connection.
                    self.from = Origin::Nowhere;
                }
                Poll::Ready(Some(Ok(item)))
            }
            other => {
                (self.left, self.from) = (0, Origin::Nowhere);
                Poll::Ready(other)
            }
        }
    }

    /// Wraps the result of a servant in this process.
    pub(crate) fn served(source: ItemSource<T>, served: Option<Served>) -> Self {
        let left = source.len();
        Self { left, from: Origin::Source(Mutex::new(source), served.map(Box::new)) }
    }
}

impl<T> Incoming<T> {
    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, SystemException>> {
        loop {
            let here = self.buffer.len() - self.at;
            if here > self.tried || self.is_whole {
                match self.decode() {
                    Ok(item) => return Poll::Ready(Ok(item)),
                    Err(error) if self.is_whole || !is_short(&error) => {
                        self.terms.orb.counters.hit_by(&error);
                        return Poll::Ready(Err(malformed(&error)));
                    }
                    Err(_) if here > self.terms.max_item => return Poll::Ready(Err(self.too_large_item())),
                    Err(_) => self.tried = here,
                }
            }
            // An item is decoded again from its start after its bytes have doubled, or when no more are
            // available now.
            while self.waiting < self.tried.max(1) && !self.is_whole {
                match self.octets.poll_chunk(cx) {
                    Poll::Pending if self.waiting < least_more(self.tried) => return Poll::Pending,
                    Poll::Pending => break,
                    Poll::Ready(chunk) => self.take(chunk.transpose()?)?,
                }
            }
            self.join();
        }
    }

    /// Waits until an argument that is being sent beside the items is complete.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SystemException>> {
        self.octets.poll_end(cx)
    }

    fn decode(&mut self) -> Result<T, DecodeError> {
        let Terms { order, version, code_sets, limits, orb, .. } = &self.terms;
        let d = Decoder::from_bytes(&self.buffer, *order, *version);
        #[cfg(feature = "experiments")]
        let d = match orb.config.connection.deposit {
            true => d,
            false => Decoder::new(&self.buffer, *order, *version),
        };
        let mut d = d.at(self.at).with_context(orb);
        d.set_code_sets(*code_sets);
        d.set_limits(*limits);
        let item = (self.decode)(&mut d)?;
        (self.at, self.tried) = (d.position(), 0);
        Ok(item)
    }

    fn take(&mut self, chunk: Option<Bytes>) -> Result<(), SystemException> {
        let Some(chunk) = chunk else {
            self.is_whole = true;
            return Ok(());
        };
        self.came += chunk.len() as u64;
        if self.came > self.terms.max_stream {
            self.terms.orb.counters.hit(Limit::StreamSize);
            return Err(too_large(self.came, self.terms.max_stream, CompletionStatus::Maybe));
        }
        self.waiting += chunk.len();
        self.more.push(chunk);
        Ok(())
    }

    /// Joins the chunks to the rest of the buffer.
    fn join(&mut self) {
        let kept = self.at - self.at % ALIGN;
        if kept == self.buffer.len()
            && let [_] = self.more.as_slice()
            && let Some(chunk) = self.more.pop()
        {
            self.buffer = chunk;
        } else if !self.more.is_empty() {
            let mut joined = Vec::with_capacity(self.buffer.len() - kept + self.waiting);
            joined.extend_from_slice(self.buffer.get(kept..).unwrap_or_default());
            self.more.drain(..).for_each(|chunk| joined.extend_from_slice(&chunk));
            self.buffer = joined.into();
        } else {
            return;
        }
        (self.at, self.waiting) = (self.at - kept, 0);
    }

    #[cold]
    fn too_large_item(&self) -> SystemException {
        self.terms.orb.counters.hit(Limit::MessageSize);
        let text = format!(
            "an item of the stream is over the limit of {} bytes of this side: raise it by `Limits::max_message_size`",
            self.terms.max_item
        );
        refusal(CompletionStatus::Maybe, text)
    }
}

/// Returns how many bytes must be added to an item before it is decoded again, if `tried` bytes did not
/// suffice.
///
/// Otherwise a peer that sends a large item byte by byte could cause a copy and a decoding attempt of the
/// whole item for each byte.
fn least_more(tried: usize) -> usize {
    (tried / 16).max(1)
}

/// Returns whether the error may be due to bytes that have not been received.
fn is_short(error: &DecodeError) -> bool {
    matches!(error.kind, DecodeErrorKind::EndOfData | DecodeErrorKind::LengthBeyondData)
}

#[cold]
fn malformed(error: &DecodeError) -> SystemException {
    let exception = error.system(CompletionStatus::Maybe);
    SystemException::new(exception.kind, exception.minor, exception.completed)
        .with_reason(format!("an item of the stream does not decode: {}", error.kind.message()))
}

fn refusal(completed: CompletionStatus, text: String) -> SystemException {
    SystemException::imp_limit().completed(completed).with_reason(text)
}

impl<T: CdrDecode + Send + 'static> ResultStream for ItemStream<T> {
    const NAMELESS: bool = false;

    fn of(results: Results) -> Result<Self, BadResults> {
        let orb = Arc::clone(results.orb());
        if !results.reply.is_in_one_piece() {
            // The alignment of its values is known only for the whole result.
            return Ok(Vec::<T>::decode(&mut results.body().with_context(&orb))?.into());
        }
        let mut d = results.body();
        let left = u64::from(d.read_u32()?);
        let at = d.position();
        let kept = at - at % ALIGN;
        let buffer = results.reply.message().slice(kept..);
        let here = buffer.len() - (at - kept);
        let is_open_ended = results.coming() == usize::MAX;
        let octets = if is_open_ended { u64::MAX } else { here as u64 + results.coming() as u64 };
        if left.saturating_mul(T::MIN_SIZE.max(1) as u64) > octets {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, at - 4).into());
        }
        let limits = Arc::clone(&orb.config.limits);
        let terms = Terms {
            order: d.order(),
            version: d.version(),
            code_sets: d.code_sets(),
            limits: d.limits(),
            max_item: limits.max_message_size,
            max_stream: limits.max_stream_size,
            orb,
        };
        let first = buffer.slice(at - kept..);
        let start = Start { octets, is_open_ended, first, phase: None };
        let mut octets = results.stream(start, at - 4)?;
        octets.skip_first();
        let incoming = Incoming {
            octets,
            buffer,
            at: at - kept,
            more: Vec::new(),
            waiting: 0,
            is_whole: false,
            tried: 0,
            came: here as u64,
            terms,
            decode: T::decode,
        };
        Ok(Self { left, from: Origin::Reply(Box::new(incoming)) })
    }
}

impl<T: Send + 'static> Stream for ItemStream<T> {
    type Item = Result<T, SystemException>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_item(cx)
    }
}

/// A stream of items that are taken from their source on demand.
impl<T: Send + 'static> From<ItemSource<T>> for ItemStream<T> {
    fn from(source: ItemSource<T>) -> Self {
        Self::served(source, None)
    }
}

/// A stream of items that are all available.
impl<T: Send + 'static> From<Vec<T>> for ItemStream<T> {
    fn from(items: Vec<T>) -> Self {
        ItemSource::from(items).into()
    }
}

impl<T> fmt::Debug for ItemStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemStream").field("left", &self.left).finish_non_exhaustive()
    }
}

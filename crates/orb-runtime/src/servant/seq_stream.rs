//! `@stream` parameters and results whose elements are numbers or characters, received in chunks.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::Stream;
use giop_codec::cdr::{CdrDecode, Decoder, Element, FixedLayout, Seq};
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, Version};

use crate::servant::request::ServerRequest;
use crate::servant::results::{BadResults, ResultStream, Results};
use crate::servant::stream::{ByteStream, ResultStart};
use crate::stream::{ByteSource, SeqSource};

/// The maximum size in bytes of a chunk that is copied together with an element from the previous chunk.
const MAX_COPIED_CHUNK_BYTES: usize = 4 * 1024;

/// The elements of a `@stream` parameter at a servant, or of a `@stream` result at a client, which are taken
/// in chunks. Memory use does not depend on their number.
///
/// The rules of [`ByteStream`] for sizes, flow control and connections apply. A chunk contains whole elements
/// in native byte order, up to 256 KiB. If the received byte order is native, chunks are views of the
/// received data. Otherwise they are converted copies. An element that is received in two parts is copied,
/// alone or together with a small chunk.
///
/// ```
/// # use orb_runtime::{SeqStream, SystemException};
/// async fn sum(mut samples: SeqStream<f64>) -> Result<f64, SystemException> {
///     let mut sum = 0.0;
///     while let Some(chunk) = samples.next().await {
///         sum += chunk?.iter().sum::<f64>();
///     }
///     Ok(sum)
/// }
/// ```
pub struct SeqStream<T> {
    bytes: ByteStream,
    /// The number of padding bytes before the first element that are not received yet.
    padding: usize,
    /// Received bytes that have not been returned: a part of an element, or a chunk.
    buffered: Bytes,
    order: ByteOrder,
    marker: PhantomData<fn() -> T>,
}

impl<T: Element> SeqStream<T> {
    const ELEMENT_SIZE: usize = size_of::<T>();

    fn new(bytes: ByteStream, padding: usize, order: ByteOrder) -> Self {
        Self { bytes, padding, buffered: Bytes::new(), order, marker: PhantomData }
    }

    /// Creates a stream of elements in native byte order.
    pub(crate) fn of_bytes(bytes: ByteStream) -> Self {
        Self::new(bytes, 0, ByteOrder::NATIVE)
    }

    /// Returns the number of elements that have not been returned yet.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        let bytes = self.bytes.remaining() + self.buffered.len() as u64;
        bytes.saturating_sub(self.padding as u64) / Self::ELEMENT_SIZE as u64
    }

    /// Returns the next chunk, or `None` after the last. Chunks are never empty.
    ///
    /// # Errors
    /// The errors of [`ByteStream::next`].
    ///
    /// # Cancel safety
    /// Dropping the future loses no elements.
    pub async fn next(&mut self) -> Option<Result<Seq<T>, SystemException>> {
        std::future::poll_fn(|cx| self.poll_elements(cx)).await
    }

    /// Returns all remaining elements in one buffer. They are read directly into the buffer if possible, like
    /// [`ByteStream::into_aligned`]. If the byte order is not native, they are then converted.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next), and IMP_LIMIT, COMPLETED_NO, if more than `limit` elements remain.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the stream: remaining elements are skipped.
    pub async fn collect(mut self, limit: usize) -> Result<Seq<T>, SystemException> {
        let bytes = limit.saturating_mul(Self::ELEMENT_SIZE).saturating_add(self.padding);
        self.bytes.len_within(bytes.saturating_sub(self.buffered.len()))?;
        if self.padding == 0 && self.buffered.is_empty() {
            // The conversion of the byte order accepts any alignment.
            let align = if self.order.is_foreign() { 1 } else { align_of::<T>() };
            return elements(self.bytes.into_aligned(align, bytes).await?, self.order);
        }
        // Memory is allocated for received elements, not for the announced number.
        let mut items = Vec::new();
        while let Some(chunk) = self.next().await {
            items.extend_from_slice(&chunk?);
        }
        Ok(items.into())
    }

    fn poll_elements(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Seq<T>, SystemException>>> {
        loop {
            let whole = self.buffered.len() - self.buffered.len() % Self::ELEMENT_SIZE;
            if whole > 0 {
                return Poll::Ready(Some(elements(self.buffered.split_to(whole), self.order)));
            }
            match ready!(self.bytes.poll_chunk(cx)) {
                Some(Ok(chunk)) => {
                    if let Some(joined) = self.handle_chunk(chunk) {
                        return Poll::Ready(Some(joined));
                    }
                }
                Some(Err(exception)) => {
                    self.buffered = Bytes::new();
                    return Poll::Ready(Some(Err(exception)));
                }
                None => return Poll::Ready(None),
            }
        }
    }

    /// Handles a received chunk. Returns elements if the first of them began in an earlier chunk. Otherwise,
    /// the bytes are in `buffered` afterwards.
    fn handle_chunk(&mut self, mut chunk: Bytes) -> Option<Result<Seq<T>, SystemException>> {
        let padding = self.padding.min(chunk.len());
        chunk.advance(padding);
        self.padding -= padding;
        if self.buffered.is_empty() {
            self.buffered = chunk;
            return None;
        }
        let missing = Self::ELEMENT_SIZE - self.buffered.len();
        if chunk.len() < missing {
            self.buffered = [self.buffered.as_ref(), chunk.as_ref()].concat().into();
            return None;
        }
        let cut = [self.buffered.as_ref(), chunk.split_to(missing).as_ref()].concat();
        let mut items = Vec::new();
        let mut read = read_into(&cut, self.order, &mut items);
        let whole = chunk.len() - chunk.len() % Self::ELEMENT_SIZE;
        let must_copy = whole <= MAX_COPIED_CHUNK_BYTES || self.order.is_foreign();
        if must_copy || Seq::<T>::from_view(chunk.slice(..whole)).is_none() {
            read = read.and_then(|()| read_into(&chunk.split_to(whole), self.order, &mut items));
        }
        self.buffered = chunk;
        Some(read.map(|()| items.into()))
    }
}

/// Returns whole elements, as a view or as a converted copy.
fn elements<T: Element>(bytes: Bytes, order: ByteOrder) -> Result<Seq<T>, SystemException> {
    let mut d = Decoder::from_bytes(&bytes, order, Version::V1_2);
    d.read_seq(bytes.len() / size_of::<T>()).map_err(decoding_exception)
}

fn read_into<T: Element>(bytes: &[u8], order: ByteOrder, to: &mut Vec<T>) -> Result<(), SystemException> {
    let mut d = Decoder::new(bytes, order, Version::V1_2);
    d.read_fixed_into(bytes.len() / size_of::<T>(), to).map_err(decoding_exception)
}

#[cold]
fn decoding_exception(error: DecodeError) -> SystemException {
    error.to_system_exception(CompletionStatus::Maybe)
}

impl<T: Element> Stream for SeqStream<T> {
    type Item = Result<Seq<T>, SystemException>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_elements(cx)
    }
}

impl<T: Element> From<SeqSource<T>> for SeqStream<T> {
    fn from(source: SeqSource<T>) -> Self {
        Self::of_bytes(ByteSource::from(source).into())
    }
}

impl<T: Element> fmt::Debug for SeqStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeqStream").field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}

/// The start of a stream of elements, decoded from the arguments or results.
#[derive(Debug)]
pub struct SeqStart<T> {
    /// The number of bytes of all elements, and of the padding before them that is not received yet.
    size: u64,
    /// The number of padding bytes before the first element that are not received yet.
    padding: usize,
    first: Bytes,
    count_at: usize,
    order: ByteOrder,
    version: Version,
    marker: PhantomData<fn() -> T>,
}

impl<T: Element> CdrDecode for SeqStart<T> {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let count = d.read_u32()?;
        let count_at = d.position() - 4;
        let size = u64::from(count) * size_of::<T>() as u64;
        // The start of the request may end within the padding.
        let padding = if count > 0 { d.begin_run(<T as FixedLayout>::LAYOUT.align()) } else { 0 };
        let here = usize::try_from(size).unwrap_or(usize::MAX).min(d.remaining());
        Ok(Self {
            size: size + padding as u64,
            padding,
            first: d.take_shared(here)?,
            count_at,
            order: d.order(),
            version: d.version(),
            marker: PhantomData,
        })
    }
}

impl<T> SeqStart<T> {
    /// Checks that the padding after the count has been received if the rest comes in GIOP 1.1 fragments,
    /// because the length of the padding in the next fragment would be unknown.
    fn check_padding(&self, bytes_to_come: usize) -> Result<(), DecodeError> {
        let is_length_unknown = self.version == Version::V1_1 && bytes_to_come == usize::MAX;
        if self.first.is_empty() && self.size > 0 && is_length_unknown {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, self.count_at));
        }
        Ok(())
    }

    /// Returns the distance from the start of the first element to the next byte. It wraps around if padding
    /// is missing.
    fn element_offset(&self) -> usize {
        self.first.len().wrapping_sub(self.padding)
    }
}

impl ServerRequest {
    /// Returns the last argument as a stream of elements.
    pub fn seq_stream<T: Element>(&self, start: SeqStart<T>) -> Result<SeqStream<T>, DecodeError> {
        start.check_padding(self.current.bytes_to_come())?;
        let element_offset = start.element_offset();
        let SeqStart { size, padding, first, count_at, order, .. } = start;
        let stream = self.stream_of(size, first, count_at, Some(element_offset))?;
        Ok(SeqStream::new(stream, padding, order))
    }
}

impl<T: Element> ResultStream for SeqStream<T> {
    const ACCEPTS_UNALIGNED_FRAGMENTS: bool = true;

    fn from_results(results: Results) -> Result<Self, BadResults> {
        let start = SeqStart::<T>::decode(&mut results.body())?;
        start.check_padding(results.bytes_to_come())?;
        let element_offset = Some(start.element_offset());
        let SeqStart { size, padding, first, count_at, order, .. } = start;
        let start = ResultStart { size, is_open_ended: false, first, element_offset };
        Ok(Self::new(results.stream(start, count_at)?, padding, order))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::Waker;

    use giop_codec::cdr::{CdrEncode, Encoder, LongDouble};

    use super::*;

    fn encoded<T: Element>(items: &Seq<T>, order: ByteOrder) -> Vec<u8> {
        let mut e = Encoder::new(order, Version::V1_2);
        items.encode(&mut e).unwrap();
        e.into_bytes()[4 + padding_of::<T>()..].to_vec()
    }

    fn padding_of<T: Element>() -> usize {
        4_usize.wrapping_neg() % <T as FixedLayout>::LAYOUT.align()
    }

    /// Returns the chunks of a stream that is received in these pieces.
    fn chunks_of<T: Element>(pieces: Vec<Vec<u8>>, padding: usize, order: ByteOrder) -> Vec<Seq<T>> {
        let len = pieces.iter().map(|piece| piece.len() as u64).sum();
        let pieces = pieces.into_iter().map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
        let bytes = ByteSource::stream(len, futures_util::stream::iter(pieces));
        let mut stream = SeqStream::<T>::new(bytes.into(), padding, order);
        let mut chunks = Vec::new();
        loop {
            match stream.poll_elements(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(chunk)) => chunks.push(chunk.unwrap()),
                Poll::Ready(None) => break,
                Poll::Pending => panic!("a stream in memory is never pending"),
            }
        }
        assert_eq!((stream.remaining(), stream.buffered.len()), (0, 0));
        chunks
    }

    fn check_all_divisions<T: Element>() {
        let bytes: Vec<u8> = (0..4 * size_of::<T>()).map(|i| (i * 37 + 11) as u8).collect();
        let mut items = Vec::new();
        read_into::<T>(&bytes, ByteOrder::NATIVE, &mut items).unwrap();
        let items = Seq::from(items);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = encoded(&items, order);
            assert_eq!(bytes.len(), items.as_bytes().len());
            for padding in 0..<T as FixedLayout>::LAYOUT.align() {
                let whole = [&vec![0xee; padding], bytes.as_slice()].concat();
                for a in 0..=whole.len() {
                    for b in a..=whole.len() {
                        let pieces = [&whole[..a], &whole[a..b], &whole[b..]].map(<[u8]>::to_vec).to_vec();
                        let chunks = chunks_of::<T>(pieces, padding, order);
                        assert!(chunks.iter().all(|chunk| !chunk.is_empty()));
                        let all: Vec<u8> =
                            chunks.iter().flat_map(|chunk| chunk.as_bytes().to_vec()).collect();
                        assert_eq!(all, items.as_bytes(), "{order:?} {padding} {a} {b}");
                    }
                }
                let single_bytes = whole.iter().map(|byte| vec![*byte]).collect();
                let all: Vec<u8> = chunks_of::<T>(single_bytes, padding, order)
                    .iter()
                    .flat_map(|chunk| chunk.as_bytes().to_vec())
                    .collect();
                assert_eq!(all, items.as_bytes(), "{order:?} {padding}");
            }
        }
    }

    #[test]
    fn elements_are_returned_whole_regardless_of_the_division_into_pieces() {
        check_all_divisions::<i8>();
        check_all_divisions::<i16>();
        check_all_divisions::<f32>();
        check_all_divisions::<u64>();
        check_all_divisions::<LongDouble>();
    }

    #[test]
    fn large_chunks_after_a_divided_element_are_not_copied() {
        let items: Seq<u64> = (0..5_000).collect();
        let bytes = items.bytes();
        // The second piece starts at an address that is aligned for its elements.
        let (a, b) = (bytes.slice(..16_004), bytes.slice(16_004..));
        let pieces = [a.clone(), b.clone()].map(Ok::<_, Infallible>);
        let source = ByteSource::stream(40_000, futures_util::stream::iter(pieces));
        let mut stream = SeqStream::<u64>::new(source.into(), 0, ByteOrder::NATIVE);
        let mut next = || match stream.poll_elements(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(chunk) => chunk.map(Result::unwrap),
            Poll::Pending => panic!("a stream in memory is never pending"),
        };
        let chunks = [next().unwrap(), next().unwrap(), next().unwrap()];
        assert_eq!(chunks.each_ref().map(|chunk| chunk.len()), [2_000, 1, 2_999]);
        assert_eq!(chunks[0].as_bytes().as_ptr(), a.as_ptr());
        assert_eq!(chunks[1][0], 2_000);
        assert_eq!(chunks[2].as_bytes().as_ptr(), b[4..].as_ptr());
        assert!(next().is_none());
    }
}

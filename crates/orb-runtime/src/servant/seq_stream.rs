//! Elements that are received in chunks: `@stream` parameters at a servant, and `@stream` results at a
//! client, that are not sequences of bytes.

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
use crate::servant::stream::{ByteStream, Start};
use crate::stream::{ByteSource, SeqSource};

/// Maximum size of a chunk that is copied together with a divided element, in bytes.
const SMALL: usize = 4 * 1024;

/// The elements of a `@stream` parameter at a servant, or of a `@stream` result at a client, taken in chunks.
/// Memory use does not grow with their number.
///
/// This is a [`ByteStream`] whose bytes are numbers or characters. Its rules for sizes, flow control and
/// connections apply here. Chunks contain only whole elements, up to 256 KiB of them, in native byte order.
/// They are views of the received data if its byte order is native. Otherwise each chunk is converted in one
/// pass. An element divided by a read is copied, alone or together with a small chunk.
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
    octets: ByteStream,
    /// Padding before the first element, in bytes, that is not received yet.
    padding: usize,
    /// Bytes taken and not handed out: part of an element, or a chunk.
    taken: Bytes,
    order: ByteOrder,
    marker: PhantomData<fn() -> T>,
}

impl<T: Element> SeqStream<T> {
    /// The size of an element in bytes.
    const SIZE: usize = size_of::<T>();

    fn new(octets: ByteStream, padding: usize, order: ByteOrder) -> Self {
        Self { octets, padding, taken: Bytes::new(), order, marker: PhantomData }
    }

    /// Creates a stream of elements in native byte order.
    pub(crate) fn of_octets(octets: ByteStream) -> Self {
        Self::new(octets, 0, ByteOrder::NATIVE)
    }

    /// Returns the number of elements that were not handed out yet.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        let octets = self.octets.remaining() + self.taken.len() as u64;
        octets.saturating_sub(self.padding as u64) / Self::SIZE as u64
    }

    /// Returns the next chunk, or `None` after the last. Chunks are never empty.
    ///
    /// # Errors
    /// Those of [`ByteStream::next`].
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Seq<T>, SystemException>> {
        std::future::poll_fn(|cx| self.poll_elements(cx)).await
    }

    /// Returns all remaining elements in one buffer. If nothing was taken before, they are read directly to
    /// their destination, as by [`ByteStream::into_aligned`]. Foreign byte order takes one more pass.
    ///
    /// # Errors
    /// Those of [`next`](Self::next). IMP_LIMIT, COMPLETED_NO, if there are more elements than `limit`.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the stream: its rest is skipped.
    pub async fn collect(mut self, limit: usize) -> Result<Seq<T>, SystemException> {
        let octets = limit.saturating_mul(Self::SIZE).saturating_add(self.padding);
        self.octets.len_within(octets.saturating_sub(self.taken.len()))?;
        if self.padding == 0 && self.taken.is_empty() {
            // The pass that swaps byte order works at any alignment.
            let align = if self.order.is_foreign() { 1 } else { align_of::<T>() };
            return elements(self.octets.into_aligned(align, octets).await?, self.order);
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
            let whole = self.taken.len() - self.taken.len() % Self::SIZE;
            if whole > 0 {
                return Poll::Ready(Some(elements(self.taken.split_to(whole), self.order)));
            }
            match ready!(self.octets.poll_chunk(cx)) {
                Some(Ok(chunk)) => {
                    if let Some(joined) = self.took(chunk) {
                        return Poll::Ready(Some(joined));
                    }
                }
                Some(Err(exception)) => {
                    self.taken = Bytes::new();
                    return Poll::Ready(Some(Err(exception)));
                }
                None => return Poll::Ready(None),
            }
        }
    }

    /// Handles a received chunk. Returns elements if the first of them began in an earlier chunk.
    fn took(&mut self, mut chunk: Bytes) -> Option<Result<Seq<T>, SystemException>> {
        let padding = self.padding.min(chunk.len());
        chunk.advance(padding);
        self.padding -= padding;
        if self.taken.is_empty() {
            self.taken = chunk;
            return None;
        }
        let missing = Self::SIZE - self.taken.len();
        if chunk.len() < missing {
            self.taken = [self.taken.as_ref(), chunk.as_ref()].concat().into();
            return None;
        }
        let cut = [self.taken.as_ref(), chunk.split_to(missing).as_ref()].concat();
        let mut items = Vec::new();
        let mut read = read_into(&cut, self.order, &mut items);
        let whole = chunk.len() - chunk.len() % Self::SIZE;
        let copies = whole <= SMALL || self.order.is_foreign();
        if copies || Seq::<T>::from_view(chunk.slice(..whole)).is_none() {
            read = read.and_then(|()| read_into(&chunk.split_to(whole), self.order, &mut items));
        }
        self.taken = chunk;
        Some(read.map(|()| items.into()))
    }
}

/// Returns whole elements, as a view or converted in one pass.
fn elements<T: Element>(octets: Bytes, order: ByteOrder) -> Result<Seq<T>, SystemException> {
    let mut d = Decoder::from_bytes(&octets, order, Version::V1_2);
    d.read_seq(octets.len() / size_of::<T>()).map_err(no_memory)
}

/// Appends whole elements to `to`.
fn read_into<T: Element>(octets: &[u8], order: ByteOrder, to: &mut Vec<T>) -> Result<(), SystemException> {
    let mut d = Decoder::new(octets, order, Version::V1_2);
    d.read_fixed_into(octets.len() / size_of::<T>(), to).map_err(no_memory)
}

#[cold]
fn no_memory(error: DecodeError) -> SystemException {
    error.system(CompletionStatus::Maybe)
}

impl<T: Element> Stream for SeqStream<T> {
    type Item = Result<Seq<T>, SystemException>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_elements(cx)
    }
}

/// A stream of elements that are available already, or are read from their source on demand.
impl<T: Element> From<SeqSource<T>> for SeqStream<T> {
    fn from(source: SeqSource<T>) -> Self {
        Self::of_octets(ByteSource::from(source).into())
    }
}

impl<T: Element> fmt::Debug for SeqStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeqStream").field("left", &self.remaining()).finish_non_exhaustive()
    }
}

/// The start of a stream of elements, decoded from the arguments.
#[derive(Debug)]
pub struct SeqStart<T> {
    /// Number of bytes of all elements, and of the padding before them that is not received yet.
    octets: u64,
    padding: usize,
    /// The bytes received with the request.
    first: Bytes,
    at: usize,
    order: ByteOrder,
    version: Version,
    marker: PhantomData<fn() -> T>,
}

impl<T: Element> CdrDecode for SeqStart<T> {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let count = d.read_u32()?;
        let at = d.position() - 4;
        let octets = u64::from(count) * size_of::<T>() as u64;
        // The start of the request may end within the padding.
        let padding = if count > 0 { d.begin_run(<T as FixedLayout>::LAYOUT.align()) } else { 0 };
        let here = usize::try_from(octets).unwrap_or(usize::MAX).min(d.remaining());
        Ok(Self {
            octets: octets + padding as u64,
            padding,
            first: d.take_shared(here)?,
            at,
            order: d.order(),
            version: d.version(),
            marker: PhantomData,
        })
    }
}

impl<T> SeqStart<T> {
    /// Checks that the padding after the count has been received. It is not known how much of it the next
    /// GIOP 1.1 fragment would contain.
    fn check_padding(&self, coming: usize) -> Result<(), DecodeError> {
        let unknown = self.version == Version::V1_1 && coming == usize::MAX;
        if self.first.is_empty() && self.octets > 0 && unknown {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, self.at));
        }
        Ok(())
    }

    /// Returns the offset of the next byte in an element.
    fn phase(&self) -> usize {
        self.first.len().wrapping_sub(self.padding)
    }
}

impl ServerRequest {
    /// Returns the last argument as a stream of elements.
    ///
    /// # Errors
    /// The count exceeds the elements in the message.
    pub fn seq_stream<T: Element>(&self, start: SeqStart<T>) -> Result<SeqStream<T>, DecodeError> {
        start.check_padding(self.current.coming())?;
        let phase = start.phase();
        let SeqStart { octets, padding, first, at, order, .. } = start;
        let stream = self.stream_of(octets, first, at, Some(phase))?;
        Ok(SeqStream::new(stream, padding, order))
    }
}

impl<T: Element> ResultStream for SeqStream<T> {
    const NAMELESS: bool = true;

    fn of(results: Results) -> Result<Self, BadResults> {
        let start = SeqStart::<T>::decode(&mut results.body())?;
        start.check_padding(results.coming())?;
        let phase = Some(start.phase());
        let SeqStart { octets, padding, first, at, order, .. } = start;
        let start = Start { octets, is_open_ended: false, first, phase };
        Ok(Self::new(results.stream(start, at)?, padding, order))
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

    /// The padding after a count at offset 0.
    fn padding_of<T: Element>() -> usize {
        4_usize.wrapping_neg() % <T as FixedLayout>::LAYOUT.align()
    }

    /// Returns the chunks of a stream that is received in these pieces.
    fn taken<T: Element>(pieces: Vec<Vec<u8>>, padding: usize, order: ByteOrder) -> Vec<Seq<T>> {
        let len = pieces.iter().map(|piece| piece.len() as u64).sum();
        let pieces = pieces.into_iter().map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
        let octets = ByteSource::stream(len, futures_util::stream::iter(pieces));
        let mut stream = SeqStream::<T>::new(octets.into(), padding, order);
        let mut chunks = Vec::new();
        loop {
            match stream.poll_elements(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(chunk)) => chunks.push(chunk.unwrap()),
                Poll::Ready(None) => break,
                Poll::Pending => panic!("all of it is there"),
            }
        }
        assert_eq!((stream.remaining(), stream.taken.len()), (0, 0));
        chunks
    }

    fn at_every_cut<T: Element>() {
        let octets: Vec<u8> = (0..4 * size_of::<T>()).map(|i| (i * 37 + 11) as u8).collect();
        let mut items = Vec::new();
        read_into::<T>(&octets, ByteOrder::NATIVE, &mut items).unwrap();
        let items = Seq::from(items);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let octets = encoded(&items, order);
            assert_eq!(octets.len(), items.as_bytes().len());
            for padding in 0..<T as FixedLayout>::LAYOUT.align() {
                let whole = [&vec![0xee; padding], octets.as_slice()].concat();
                for a in 0..=whole.len() {
                    for b in a..=whole.len() {
                        let pieces = [&whole[..a], &whole[a..b], &whole[b..]].map(<[u8]>::to_vec).to_vec();
                        let chunks = taken::<T>(pieces, padding, order);
                        assert!(chunks.iter().all(|chunk| !chunk.is_empty()));
                        let all: Vec<u8> =
                            chunks.iter().flat_map(|chunk| chunk.as_bytes().to_vec()).collect();
                        assert_eq!(all, items.as_bytes(), "{order:?} {padding} {a} {b}");
                    }
                }
                let single = whole.iter().map(|octet| vec![*octet]).collect();
                let all: Vec<u8> = taken::<T>(single, padding, order)
                    .iter()
                    .flat_map(|chunk| chunk.as_bytes().to_vec())
                    .collect();
                assert_eq!(all, items.as_bytes(), "{order:?} {padding}");
            }
        }
    }

    #[test]
    fn elements_come_whole_and_right_wherever_their_octets_are_cut() {
        at_every_cut::<i8>();
        at_every_cut::<i16>();
        at_every_cut::<f32>();
        at_every_cut::<u64>();
        at_every_cut::<LongDouble>();
    }

    #[test]
    fn large_chunks_behind_a_cut_element_are_not_copied() {
        let items: Seq<u64> = (0..5_000).collect();
        let octets = items.bytes();
        // The second piece starts at an address that is aligned for its elements.
        let (a, b) = (octets.slice(..16_004), octets.slice(16_004..));
        let pieces = [a.clone(), b.clone()].map(Ok::<_, Infallible>);
        let source = ByteSource::stream(40_000, futures_util::stream::iter(pieces));
        let mut stream = SeqStream::<u64>::new(source.into(), 0, ByteOrder::NATIVE);
        let mut next = || match stream.poll_elements(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(chunk) => chunk.map(Result::unwrap),
            Poll::Pending => panic!("all of it is there"),
        };
        let chunks = [next().unwrap(), next().unwrap(), next().unwrap()];
        assert_eq!(chunks.each_ref().map(|chunk| chunk.len()), [2_000, 1, 2_999]);
        assert_eq!(chunks[0].as_bytes().as_ptr(), a.as_ptr());
        assert_eq!(chunks[1][0], 2_000);
        assert_eq!(chunks[2].as_bytes().as_ptr(), b[4..].as_ptr());
        assert!(next().is_none());
    }
}

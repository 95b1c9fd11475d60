//! The inputs from which sources read bytes.

use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncSeek};
use tokio::task::JoinHandle;
use tokio_util::io::poll_read_buf;

use crate::stream::CHUNK;

/// An error of a source.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Maximum number of reads that are combined in one chunk.
const READS: usize = 64;

/// Minimum free memory of a buffer, in bytes, for further reads into it, unless fewer bytes are left.
const LEAST: usize = 8 * 1024;

/// A source of chunks.
pub(crate) trait Feed: Send {
    /// Returns the next bytes, or `None` at the end. `left` is the number of bytes to come. Returns at most
    /// `left` and [`CHUNK`] bytes, except for a stream, whose items are returned unchanged.
    fn poll_chunk(&mut self, cx: &mut Context<'_>, left: u64) -> Poll<Option<Result<Bytes, BoxError>>>;
}

/// Returns how many bytes to request.
fn wanted(left: u64) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK)
}

/// Feed that reads from a reader.
pub(crate) struct ReaderFeed<R> {
    reader: Pin<Box<R>>,
    octets: BytesMut,
    /// The previous buffer, reused after its bytes are written.
    other: BytesMut,
    /// The end or an error, received while bytes before it were not handed out.
    end: Option<Option<io::Error>>,
}

impl<R> ReaderFeed<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: Box::pin(reader), octets: BytesMut::new(), other: BytesMut::new(), end: None }
    }

    /// Provides memory for the next bytes.
    fn make_room(&mut self, want: usize) {
        let room = self.octets.capacity() - self.octets.len();
        if !self.octets.is_empty() || room >= want.min(LEAST) {
            return;
        }
        if !self.octets.try_reclaim(want) {
            std::mem::swap(&mut self.octets, &mut self.other);
            // The bytes of this buffer are usually written by now. Otherwise `reserve` allocates.
            self.octets.reserve(want);
        }
    }
}

impl<R: AsyncRead + Send> Feed for ReaderFeed<R> {
    fn poll_chunk(&mut self, cx: &mut Context<'_>, left: u64) -> Poll<Option<Result<Bytes, BoxError>>> {
        let want = wanted(left);
        self.make_room(want);
        let want = want.min(self.octets.capacity());
        for _ in 0..READS {
            if self.end.is_some() || self.octets.len() >= want {
                break;
            }
            let room = want - self.octets.len();
            match poll_read_buf(self.reader.as_mut(), cx, &mut (&mut self.octets).limit(room)) {
                Poll::Ready(Ok(0)) => self.end = Some(None),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => self.end = Some(Some(error)),
                Poll::Pending if self.octets.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if !self.octets.is_empty() {
            return Poll::Ready(Some(Ok(self.octets.split().freeze())));
        }
        Poll::Ready(self.end.as_mut().and_then(Option::take).map(|error| Err(error.into())))
    }
}

/// Feed that takes the items of a stream.
pub(crate) struct ItemFeed<S> {
    stream: Pin<Box<S>>,
}

impl<S> ItemFeed<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: Box::pin(stream) }
    }
}

impl<S, E> Feed for ItemFeed<S>
where
    S: Stream<Item = Result<Bytes, E>> + Send,
    E: Into<BoxError>,
{
    fn poll_chunk(&mut self, cx: &mut Context<'_>, _left: u64) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.stream.as_mut().poll_next(cx).map(|item| item.map(|item| item.map_err(Into::into)))
    }
}

/// Feed that reads a file on tokio's blocking threads, one chunk ahead.
pub(crate) struct FileFeed {
    file: Option<std::fs::File>,
    reading: Option<JoinHandle<(std::fs::File, io::Result<Vec<u8>>)>>,
}

impl FileFeed {
    pub(crate) fn new(file: std::fs::File) -> Self {
        Self { file: Some(file), reading: None }
    }

    /// Starts a read, unless one is running.
    fn start(&mut self, want: usize) {
        if let Some(mut file) = self.file.take() {
            self.reading = Some(tokio::task::spawn_blocking(move || {
                let mut octets = Vec::with_capacity(want);
                let read = (&mut file).take(want as u64).read_to_end(&mut octets);
                (file, read.map(|_| octets))
            }));
        }
    }
}

impl Feed for FileFeed {
    fn poll_chunk(&mut self, cx: &mut Context<'_>, left: u64) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.start(wanted(left));
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let done = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        let octets = match done {
            Ok((file, Ok(octets))) => {
                self.file = Some(file);
                octets
            }
            Ok((_, Err(error))) => return Poll::Ready(Some(Err(error.into()))),
            // The runtime is shutting down.
            Err(error) => return Poll::Ready(Some(Err(error.into()))),
        };
        let left = left.saturating_sub(octets.len() as u64);
        if octets.is_empty() {
            return Poll::Ready(None);
        }
        if left > 0 {
            self.start(wanted(left));
        }
        Poll::Ready(Some(Ok(octets.into())))
    }
}

/// Returns the position of an open file.
pub(crate) async fn position(file: &mut tokio::fs::File) -> io::Result<u64> {
    std::future::poll_fn(|cx| Pin::new(&mut *file).poll_complete(cx)).await?;
    Pin::new(&mut *file).start_seek(io::SeekFrom::Current(0))?;
    std::future::poll_fn(|cx| Pin::new(&mut *file).poll_complete(cx)).await
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn next(feed: &mut impl Feed, left: u64) -> Poll<Option<Result<Bytes, BoxError>>> {
        feed.poll_chunk(&mut Context::from_waker(Waker::noop()), left)
    }

    fn octets(polled: Poll<Option<Result<Bytes, BoxError>>>) -> Bytes {
        match polled {
            Poll::Ready(Some(Ok(octets))) => octets,
            other => panic!("no octets: {other:?}"),
        }
    }

    #[test]
    fn two_buffers_take_turns_where_the_last_chunk_is_still_held() {
        let mut feed = ReaderFeed::new(tokio::io::repeat(7));
        let mut places = Vec::new();
        let mut held = Bytes::new();
        for _ in 0..20 {
            held = octets(next(&mut feed, 1 << 30));
            assert_eq!(held.len(), CHUNK);
            if !places.contains(&held.as_ptr()) {
                places.push(held.as_ptr());
            }
        }
        drop(held);
        assert_eq!(places.len(), 2);
    }

    #[test]
    fn octets_come_when_they_are_there_and_before_an_error() {
        let (mut near, far) = tokio::io::duplex(100);
        let mut feed = ReaderFeed::new(far);
        assert!(next(&mut feed, 1000).is_pending());
        let write = std::pin::pin!(tokio::io::AsyncWriteExt::write_all(&mut near, b"some"));
        assert!(write.poll(&mut Context::from_waker(Waker::noop())).is_ready());
        assert_eq!(octets(next(&mut feed, 1000)), "some");
        assert!(next(&mut feed, 1000).is_pending());

        let broken = tokio_util::io::StreamReader::new(futures_util::stream::iter([
            Ok(Bytes::from_static(b"good")),
            Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        ]));
        let mut feed = ReaderFeed::new(broken);
        assert_eq!(octets(next(&mut feed, 1000)), "good");
        assert!(matches!(next(&mut feed, 996), Poll::Ready(Some(Err(_)))));
        assert!(matches!(next(&mut feed, 996), Poll::Ready(None)));
    }

    #[test]
    fn a_reader_is_asked_for_no_more_than_is_wanted() {
        let mut feed = ReaderFeed::new(tokio::io::repeat(7).take(1000));
        assert_eq!(octets(next(&mut feed, 10)).len(), 10);
        assert_eq!(octets(next(&mut feed, 900)).len(), 900);
        assert_eq!(octets(next(&mut feed, 1_000_000)).len(), 90);
        assert!(matches!(next(&mut feed, 1_000_000), Poll::Ready(None)));
    }
}

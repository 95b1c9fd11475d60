//! The inputs from which sources of `@stream` arguments and results read bytes.

use std::future::Future;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncSeek};
use tokio::task::JoinHandle;
use tokio_util::io::poll_read_buf;

use crate::stream::MAX_CHUNK_BYTES;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

const MAX_READS_PER_CHUNK: usize = 64;
/// The minimum free memory of the buffer before a read, unless fewer bytes are left to be read.
const MIN_FREE_BYTES: usize = 8 * 1024;

pub(crate) trait Input: Send {
    /// Returns the next bytes, or `None` at the end. The source still needs `left` bytes. The result has at
    /// most `left` and at most [`MAX_CHUNK_BYTES`] bytes, unless it is an item of a stream.
    fn poll_chunk(&mut self, cx: &mut Context<'_>, left: u64) -> Poll<Option<Result<Bytes, BoxError>>>;
}

fn chunk_len(left: u64) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(MAX_CHUNK_BYTES)
}

pub(crate) struct ReaderInput<R> {
    reader: Pin<Box<R>>,
    buffer: BytesMut,
    /// The previous buffer. It can be reused when its bytes have been sent.
    spare_buffer: BytesMut,
    /// `Some(None)` after the reader has ended. After it has failed, the error until it has been returned.
    end: Option<Option<io::Error>>,
}

impl<R> ReaderInput<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: Box::pin(reader), buffer: BytesMut::new(), spare_buffer: BytesMut::new(), end: None }
    }

    fn reserve_memory(&mut self, want: usize) {
        let free_bytes = self.buffer.capacity() - self.buffer.len();
        if !self.buffer.is_empty() || free_bytes >= want.min(MIN_FREE_BYTES) {
            return;
        }
        if !self.buffer.try_reclaim(want) {
            std::mem::swap(&mut self.buffer, &mut self.spare_buffer);
            // The bytes of this buffer have usually been sent. If so, `reserve` does not allocate.
            self.buffer.reserve(want);
        }
    }
}

impl<R: AsyncRead + Send> Input for ReaderInput<R> {
    fn poll_chunk(&mut self, cx: &mut Context<'_>, left: u64) -> Poll<Option<Result<Bytes, BoxError>>> {
        let want = chunk_len(left);
        self.reserve_memory(want);
        let want = want.min(self.buffer.capacity());
        for _ in 0..MAX_READS_PER_CHUNK {
            if self.end.is_some() || self.buffer.len() >= want {
                break;
            }
            let free_bytes = want - self.buffer.len();
            match poll_read_buf(self.reader.as_mut(), cx, &mut (&mut self.buffer).limit(free_bytes)) {
                Poll::Ready(Ok(0)) => self.end = Some(None),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => self.end = Some(Some(error)),
                Poll::Pending if self.buffer.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if !self.buffer.is_empty() {
            return Poll::Ready(Some(Ok(self.buffer.split().freeze())));
        }
        Poll::Ready(self.end.as_mut().and_then(Option::take).map(|error| Err(error.into())))
    }
}

pub(crate) struct StreamInput<S> {
    stream: Pin<Box<S>>,
}

impl<S> StreamInput<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: Box::pin(stream) }
    }
}

impl<S, E> Input for StreamInput<S>
where
    S: Stream<Item = Result<Bytes, E>> + Send,
    E: Into<BoxError>,
{
    fn poll_chunk(&mut self, cx: &mut Context<'_>, _left: u64) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.stream.as_mut().poll_next(cx).map(|item| item.map(|item| item.map_err(Into::into)))
    }
}

/// A file, which is read on tokio's blocking threads, one chunk in advance.
pub(crate) struct FileInput {
    file: Option<std::fs::File>,
    reading: Option<JoinHandle<(std::fs::File, io::Result<Vec<u8>>)>>,
}

impl FileInput {
    pub(crate) fn new(file: std::fs::File) -> Self {
        Self { file: Some(file), reading: None }
    }

    /// Starts a read, unless one is running.
    fn start(&mut self, want: usize) {
        if let Some(mut file) = self.file.take() {
            self.reading = Some(tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::with_capacity(want);
                let read = (&mut file).take(want as u64).read_to_end(&mut bytes);
                (file, read.map(|_| bytes))
            }));
        }
    }
}

impl Input for FileInput {
    fn poll_chunk(&mut self, cx: &mut Context<'_>, left: u64) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.start(chunk_len(left));
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let done = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        let bytes = match done {
            Ok((file, Ok(bytes))) => {
                self.file = Some(file);
                bytes
            }
            Ok((_, Err(error))) => return Poll::Ready(Some(Err(error.into()))),
            // The runtime was shut down before the read started.
            Err(error) => return Poll::Ready(Some(Err(error.into()))),
        };
        let left = left.saturating_sub(bytes.len() as u64);
        if bytes.is_empty() {
            return Poll::Ready(None);
        }
        if left > 0 {
            self.start(chunk_len(left));
        }
        Poll::Ready(Some(Ok(bytes.into())))
    }
}

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

    fn next(input: &mut impl Input, left: u64) -> Poll<Option<Result<Bytes, BoxError>>> {
        input.poll_chunk(&mut Context::from_waker(Waker::noop()), left)
    }

    fn bytes(polled: Poll<Option<Result<Bytes, BoxError>>>) -> Bytes {
        match polled {
            Poll::Ready(Some(Ok(bytes))) => bytes,
            other => panic!("expected bytes, not {other:?}"),
        }
    }

    #[test]
    fn two_buffers_alternate_while_the_last_chunk_is_held() {
        let mut input = ReaderInput::new(tokio::io::repeat(7));
        let mut addresses = Vec::new();
        let mut held = Bytes::new();
        for _ in 0..20 {
            held = bytes(next(&mut input, 1 << 30));
            assert_eq!(held.len(), MAX_CHUNK_BYTES);
            if !addresses.contains(&held.as_ptr()) {
                addresses.push(held.as_ptr());
            }
        }
        drop(held);
        assert_eq!(addresses.len(), 2);
    }

    #[test]
    fn available_bytes_are_returned_before_an_error() {
        let (mut near, far) = tokio::io::duplex(100);
        let mut input = ReaderInput::new(far);
        assert!(next(&mut input, 1000).is_pending());
        let write = std::pin::pin!(tokio::io::AsyncWriteExt::write_all(&mut near, b"some"));
        assert!(write.poll(&mut Context::from_waker(Waker::noop())).is_ready());
        assert_eq!(bytes(next(&mut input, 1000)), "some");
        assert!(next(&mut input, 1000).is_pending());

        let failing = tokio_util::io::StreamReader::new(futures_util::stream::iter([
            Ok(Bytes::from_static(b"good")),
            Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        ]));
        let mut input = ReaderInput::new(failing);
        assert_eq!(bytes(next(&mut input, 1000)), "good");
        assert!(matches!(next(&mut input, 996), Poll::Ready(Some(Err(_)))));
        assert!(matches!(next(&mut input, 996), Poll::Ready(None)));
    }

    #[test]
    fn reader_input_reads_at_most_the_bytes_that_are_left() {
        let mut input = ReaderInput::new(tokio::io::repeat(7).take(1000));
        assert_eq!(bytes(next(&mut input, 10)).len(), 10);
        assert_eq!(bytes(next(&mut input, 900)).len(), 900);
        assert_eq!(bytes(next(&mut input, 1_000_000)).len(), 90);
        assert!(matches!(next(&mut input, 1_000_000), Poll::Ready(None)));
    }
}

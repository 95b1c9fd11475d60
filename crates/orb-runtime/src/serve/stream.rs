//! Octets that come in chunks: what a servant gets for a `@stream` parameter.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use giop_codec::{DecodeError, DecodeErrorKind};
use giop_proto::ServeToken;

use super::request::ServerRequest;
use crate::link::Link;
use crate::source::{ByteSource, Given, Payload};

/// The octets of a `@stream` parameter as a servant takes them: chunk by chunk, in memory that does not grow with them.
///
/// A sequence of more than 64 KiB is handed to the servant while it still comes. Chunks have up to 256 KiB; when four of
/// them wait, the connection is not read until one is taken, so the sender waits as well. Nothing else comes through the
/// connection until all octets are taken or the stream is dropped, which skips the rest. Smaller sequences, those that came
/// in GIOP fragments and those in the memory of callers in this process are one chunk.
///
/// It may outlive the request: what is not taken when the reply is sent can still be taken.
///
/// ```
/// # use orb_runtime::{ByteStream, SystemException};
/// async fn count(mut octets: ByteStream) -> Result<usize, SystemException> {
///     let mut count = 0;
///     while let Some(chunk) = octets.next().await {
///         count += chunk?.len();
///     }
///     Ok(count)
/// }
/// ```
pub struct ByteStream {
    first: Bytes,
    /// Octets that were not handed out, those in `first` included.
    left: u64,
    rest: Option<Rest>,
    /// The source of a caller in this process. Nobody else has it: the mutex is never locked.
    source: Option<Mutex<Payload>>,
}

/// Where the octets behind the first ones come from.
struct Rest {
    link: Arc<Link>,
    token: ServeToken,
}

impl ByteStream {
    /// Octets that were not handed out yet.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.left
    }

    /// The next chunk; `None` behind the last. There are no empty ones.
    ///
    /// # Errors
    /// COMM_FAILURE, COMPLETED_MAYBE, once, when the connection ended before the octets did. From a caller in this process BAD_PARAM,
    /// COMPLETED_MAYBE, once, when its source failed.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Bytes, SystemException>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// All octets that are left, copied together unless they are one chunk.
    ///
    /// # Errors
    /// As [`next`](Self::next); IMP_LIMIT, COMPLETED_NO, if there are more than `limit`.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, SystemException> {
        let Some(len) = usize::try_from(self.left).ok().filter(|len| *len <= limit) else {
            let text = format!("{} octets are more than the limit of {limit}", self.left);
            return Err(SystemException::new(
                SystemExceptionKind::ImpLimit,
                MinorCode::NONE,
                CompletionStatus::No,
            )
            .because(text));
        };
        let first = self.next().await.transpose()?.unwrap_or_default();
        if first.len() == len {
            return Ok(first);
        }
        // Memory is taken for what has come, not for what is announced.
        let mut octets = first.to_vec();
        while let Some(chunk) = self.next().await {
            octets.extend_from_slice(&chunk?);
        }
        Ok(octets.into())
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, SystemException>>> {
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            self.left -= first.len() as u64;
            return Poll::Ready(Some(Ok(first)));
        }
        if self.source.is_some() {
            return self.poll_source(cx);
        }
        let Some(rest) = self.rest.as_ref().filter(|_| self.left > 0) else {
            self.rest = None;
            return Poll::Ready(None);
        };
        let mut octets = match rest.link.poll_chunk(rest.token, cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(octets)) => octets,
            Poll::Ready(None) => {
                let missing = std::mem::take(&mut self.left);
                self.rest = None;
                let text = format!("the connection ended with {missing} octets of the stream still to come");
                let exception = SystemException::new(
                    SystemExceptionKind::CommFailure,
                    MinorCode::NONE,
                    CompletionStatus::Maybe,
                );
                return Poll::Ready(Some(Err(exception.because(text))));
            }
        };
        octets.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= octets.len() as u64;
        if self.left == 0 {
            self.rest = None;
        }
        Poll::Ready(Some(Ok(octets)))
    }

    /// The next chunk of a source of this process.
    #[cold]
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, SystemException>>> {
        let Some(source) = &mut self.source else { return Poll::Ready(None) };
        let polled = source.get_mut().unwrap_or_else(PoisonError::into_inner).poll_chunk(cx);
        match std::task::ready!(polled) {
            Some(Ok(octets)) => {
                self.left -= octets.len() as u64;
                Poll::Ready(Some(Ok(octets)))
            }
            Some(Err(error)) => {
                (self.source, self.left) = (None, 0);
                Poll::Ready(Some(Err(error.into_exception(CompletionStatus::Maybe))))
            }
            None => {
                self.source = None;
                Poll::Ready(None)
            }
        }
    }
}

impl Stream for ByteStream {
    type Item = Result<Bytes, SystemException>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_chunk(cx)
    }
}

/// A stream of octets that are all there, or that are read from their source as they are taken.
impl From<ByteSource> for ByteStream {
    fn from(source: ByteSource) -> Self {
        let left = source.len();
        match source.given() {
            Given::Octets(first) => Self { left, first, rest: None, source: None },
            Given::Payload(mut source) => {
                source.keep_nothing();
                Self { left, first: Bytes::new(), rest: None, source: Some(Mutex::new(source)) }
            }
        }
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream").field("left", &self.left).finish_non_exhaustive()
    }
}

/// What is still to come is skipped, and the connection goes on.
impl Drop for Rest {
    fn drop(&mut self) {
        self.link.abandon_stream(self.token);
    }
}

/// The start of a stream, as it stands among the arguments.
#[derive(Debug)]
pub struct StreamStart {
    /// Octets of the whole sequence.
    count: usize,
    /// Those that came with the request.
    first: Bytes,
    at: usize,
}

impl CdrDecode for StreamStart {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let count = d.read_u32()? as usize;
        let at = d.position() - 4;
        Ok(Self { count, first: d.take_shared(count.min(d.remaining()))?, at })
    }
}

impl ServerRequest {
    /// The last argument as a stream.
    ///
    /// # Errors
    /// The count is of more octets than the message has.
    pub fn byte_stream(&self, start: StreamStart) -> Result<ByteStream, DecodeError> {
        let StreamStart { count, first, at } = start;
        let coming = self.link.as_ref().map_or(0, |_| self.current.coming());
        if count > first.len().saturating_add(coming) {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, at));
        }
        let rest = match &self.link {
            Some(link) if count > first.len() => {
                link.open_stream(self.to.token);
                Some(Rest { link: Arc::clone(link), token: self.to.token })
            }
            _ => None,
        };
        Ok(ByteStream { first, left: count as u64, rest, source: None })
    }
}

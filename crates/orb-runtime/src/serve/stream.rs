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
use giop_proto::pool::BufferPool;
use giop_proto::{Chunk, ServeToken};

use super::request::ServerRequest;
use crate::link::Link;
use crate::source::{ByteSource, Given, Payload};

/// The octets of a `@stream` parameter as a servant takes them: chunk by chunk, in memory that does not grow with them.
///
/// A sequence of more than 64 KiB is handed to the servant while it still comes. Nothing more is read until chunks are asked for;
/// they have up to 256 KiB, and when four of them wait, the connection is not read until one is taken, so the sender waits as
/// well. Nothing else comes through the connection until all octets are taken or the stream is dropped, which skips the rest; only
/// between the fragments of one that comes in fragments there may be other messages. Smaller sequences and those in the memory of
/// callers in this process are one chunk.
///
/// Beside chunks and [`collect`](Self::collect), the octets may be read straight to their place:
/// [`into_aligned`](Self::into_aligned) memory of the ORB's, or the servant's own by [`deposit_into`](Self::deposit_into).
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
    pub(super) first: Bytes,
    /// Octets that were not handed out, those in `first` included.
    pub(super) left: u64,
    pub(super) rest: Option<Rest>,
    /// Where memory for all of it may come from.
    pub(super) pool: Option<Arc<BufferPool>>,
    /// It is too large to be taken.
    refused: Option<Box<SystemException>>,
    /// The source of a caller in this process. Nobody else has it: the mutex is never locked.
    source: Option<Mutex<Payload>>,
}

/// Where the octets behind the first ones come from.
pub(super) struct Rest {
    pub(super) link: Arc<Link>,
    pub(super) token: ServeToken,
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
    /// Once: COMM_FAILURE, COMPLETED_MAYBE, when the connection ended before the octets did, or the caller gave the request up;
    /// MARSHAL, COMPLETED_MAYBE, when the message did; IMP_LIMIT, COMPLETED_NO, if a sequence in fragments has more octets than
    /// `Limits::max_stream_size`. From a caller in this process
    /// BAD_PARAM, COMPLETED_MAYBE, when its source failed.
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
        let len = self.len_within(limit)?;
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

    pub(super) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, SystemException>>> {
        if !self.first.is_empty() || self.refused.is_some() {
            return Poll::Ready(self.ready_chunk().transpose());
        }
        if self.source.is_some() {
            return self.poll_source(cx);
        }
        let Some(rest) = self.rest.as_ref().filter(|_| self.left > 0) else {
            self.rest = None;
            return Poll::Ready(None);
        };
        match rest.link.poll_chunk(rest.token, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(chunk) => Poll::Ready(self.took(chunk).transpose()),
        }
    }

    /// The next octets if they are there already: nothing is read for it.
    pub(super) fn ready_chunk(&mut self) -> Result<Option<Bytes>, SystemException> {
        if let Some(refused) = self.refused.take() {
            self.left = 0;
            return Err(*refused);
        }
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            self.left -= first.len() as u64;
            return Ok(Some(first));
        }
        match self.rest.as_ref().filter(|_| self.left > 0) {
            Some(rest) => {
                let chunk = rest.link.ready_chunk(rest.token);
                self.took(chunk)
            }
            None => Ok(None),
        }
    }

    /// What the connection gave.
    fn took(&mut self, chunk: Chunk) -> Result<Option<Bytes>, SystemException> {
        match chunk {
            Chunk::Octets(mut octets) => {
                octets.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.advance(octets.len());
                Ok(Some(octets))
            }
            Chunk::Pending => Ok(None),
            Chunk::End => Err(self.breaks_off(SystemExceptionKind::Marshal, "the message")),
            Chunk::Lost => {
                Err(self.breaks_off(SystemExceptionKind::CommFailure, "the connection or the call"))
            }
        }
    }

    /// So many octets were handed out.
    pub(super) fn advance(&mut self, octets: usize) {
        self.left = self.left.saturating_sub(octets as u64);
        if self.left == 0 {
            self.rest = None;
        }
    }

    #[cold]
    pub(super) fn breaks_off(&mut self, kind: SystemExceptionKind, what: &str) -> SystemException {
        let missing = std::mem::take(&mut self.left);
        self.rest = None;
        let text = format!("{what} ended with {missing} octets of the stream still to come");
        SystemException::new(kind, MinorCode::NONE, CompletionStatus::Maybe).because(text)
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
        let (first, source) = match source.given() {
            Given::Octets(first) => (first, None),
            Given::Payload(mut source) => {
                source.keep_nothing();
                (Bytes::new(), Some(Mutex::new(source)))
            }
        };
        Self { left, first, rest: None, pool: None, refused: None, source }
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
        self.stream_of(count as u64, first, at, None)
    }

    /// So many octets, of which the first are there; the next one lies at `phase` within an element, where they are elements.
    pub(super) fn stream_of(
        &self,
        octets: u64,
        first: Bytes,
        at: usize,
        phase: Option<usize>,
    ) -> Result<ByteStream, DecodeError> {
        let coming = self.link.as_ref().map_or(0, |_| self.current.coming());
        if octets > first.len().saturating_add(coming) as u64 {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, at));
        }
        let mut stream = ByteStream {
            left: octets,
            first,
            rest: None,
            pool: Some(Arc::clone(self.current.core().pool())),
            refused: None,
            source: None,
        };
        if let Some(link) = self.link.as_ref().filter(|_| octets > stream.first.len() as u64) {
            let limit = link.max_stream_size();
            if stream.left > limit {
                self.current.core().hit(giop_proto::Limit::StreamSize);
                let exception = SystemException::new(
                    SystemExceptionKind::ImpLimit,
                    MinorCode::NONE,
                    CompletionStatus::No,
                );
                let text = format!(
                    "a stream of {octets} octets is over the limit of {limit}: raise it by `Limits::max_stream_size`"
                );
                (stream.first, stream.refused) = (Bytes::new(), Some(Box::new(exception.because(text))));
                return Ok(stream);
            }
            link.open_stream(self.to.token, octets - stream.first.len() as u64, phase);
            stream.rest = Some(Rest { link: Arc::clone(link), token: self.to.token });
        }
        Ok(stream)
    }
}

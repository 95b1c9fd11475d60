//! Bytes that are received in chunks: `@stream` parameters at a servant, and `@stream` results at a client.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use futures_util::Stream;
use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::{DecodeError, DecodeErrorKind};
use giop_proto::pool::BufferPool;
use giop_proto::{Chunk, CloseReason, StreamOf};

use crate::connection::exclusive::Lease;
use crate::connection::{Fed, SharedConnection, now};
use crate::servant::request::ServerRequest;
use crate::servant::results::{BadResults, ResultStream, Results};
use crate::servant::served::Served;
use crate::stream::{ByteSource, Given, Payload};

/// Maximum number of bytes of a result that are skipped when its stream is dropped. If more are left, the
/// connection is closed.
const SHORT_REST: u64 = 64 * 1024;

/// The bytes of a `@stream` parameter at a servant, or of a `@stream` result at a client, taken in chunks.
/// Memory use does not grow with their number.
///
/// A sequence of more than 64 KiB is handed out while it is received. Reading continues only on demand. A
/// chunk has up to 256 KiB. While four chunks are queued, the connection is not read, which applies
/// back-pressure to the sender. The connection carries nothing else until all bytes are taken or the stream
/// is dropped. The exception is a sequence in fragments: other messages may arrive between them. Smaller
/// sequences, and those in the memory of this process, are one chunk.
///
/// Instead of taking chunks or calling [`collect`](Self::collect), the bytes can be read directly to their
/// destination: memory of the ORB with [`into_aligned`](Self::into_aligned), or of the caller with
/// [`deposit_into`](Self::deposit_into).
///
/// At a servant the stream may outlive the request: bytes that are left when the reply is sent can still be
/// taken. Dropping the stream skips the rest.
///
/// At a client the stream has an exclusive connection. The deadline of the call covers the whole stream. If
/// it passes before all bytes are received, the stream fails with TIMEOUT. Dropping the stream closes the
/// connection, unless at most 64 KiB are left, which are skipped.
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
    pub(crate) first: Bytes,
    /// Number of bytes that were not handed out, including those in `first`.
    pub(crate) left: u64,
    pub(crate) rest: Option<Rest>,
    /// The pool for buffers that hold the whole sequence.
    pub(crate) pool: Option<Arc<BufferPool>>,
    /// The exception that the stream returns next: it is too large, or an argument failed.
    refused: Option<Box<SystemException>>,
    /// The stream ends with its message. `left` is only an upper bound.
    pub(crate) is_open_ended: bool,
    /// The source in this process. The mutex is never locked: only the stream owns it.
    source: Option<Mutex<Payload>>,
    /// The request, if the source in this process is that of a result.
    served: Option<Box<Served>>,
}

/// The connection on which the bytes after `first` are received.
pub(crate) struct Rest {
    pub(crate) link: Arc<SharedConnection>,
    pub(crate) of: StreamOf,
    results: Option<Box<Remains>>,
}

/// The state of a stream of results.
struct Remains {
    deadline: Option<Instant>,
    /// An argument that is still being sent. The mutex is never locked: only the stream owns it.
    argument: Option<Mutex<Payload>>,
    /// Closes or keeps the connection when it is dropped.
    _lease: Lease,
}

/// The start of a stream.
pub(crate) struct Start {
    /// The number of its bytes, or an upper bound if it [is open-ended](Self::is_open_ended).
    pub(crate) octets: u64,
    pub(crate) is_open_ended: bool,
    /// The bytes that have been received.
    pub(crate) first: Bytes,
    /// The offset of the next byte in an element. `None` for a stream of bytes.
    pub(crate) phase: Option<usize>,
}

impl ByteStream {
    /// Returns the number of bytes that were not handed out yet.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.left
    }

    /// Returns the next chunk, or `None` after the last. Chunks are never empty.
    ///
    /// # Errors
    /// Returned once. COMM_FAILURE, COMPLETED_MAYBE, if the connection ended before the bytes did, or the
    /// caller cancelled the request. MARSHAL, COMPLETED_MAYBE, if the message ended before them.
    /// * At a servant: IMP_LIMIT, COMPLETED_NO, if a sequence in fragments has more bytes than
    ///   `Limits::max_stream_size`. From a caller in this process: BAD_PARAM, COMPLETED_MAYBE, if its source
    ///   failed.
    /// * At a client: TIMEOUT, COMPLETED_MAYBE, if the deadline of the call passed. BAD_PARAM,
    ///   COMPLETED_MAYBE, if the source of an argument that is still being sent failed. From a servant in
    ///   this process: what its source raised.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<Bytes, SystemException>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Returns all remaining bytes, copied together unless they are one chunk.
    ///
    /// # Errors
    /// Those of [`next`](Self::next). IMP_LIMIT, COMPLETED_NO, if there are more than `limit`.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, SystemException> {
        let len = self.len_within(limit)?;
        let first = self.next().await.transpose()?.unwrap_or_default();
        if first.len() == len {
            self.settle().await?;
            return Ok(first);
        }
        // Memory is allocated for received bytes, not for the announced number.
        let mut octets = first.to_vec();
        while let Some(chunk) = self.next().await {
            octets.extend_from_slice(&chunk?);
        }
        Ok(octets.into())
    }

    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, SystemException>>> {
        if !self.first.is_empty() || self.refused.is_some() {
            return Poll::Ready(self.ready_chunk().transpose());
        }
        if self.source.is_some() {
            return self.poll_source(cx);
        }
        let settled = self.poll_settled(cx);
        if self.refused.is_some() {
            return Poll::Ready(self.ready_chunk().transpose());
        }
        if self.left > 0
            && let Some(rest) = &self.rest
        {
            let chunk = ready!(rest.link.poll_chunk(rest.of, cx));
            if let Some(chunk) = self.took(chunk).transpose() {
                return Poll::Ready(Some(chunk));
            }
            // The stream ended.
        }
        ready!(settled);
        self.rest = None;
        Poll::Ready(None)
    }

    /// Continues to send an argument that is sent while the result is received. A failure is returned by the
    /// next call for a chunk.
    pub(crate) fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(Rest { link, results: Some(results), .. }) = &mut self.rest else { return Poll::Ready(()) };
        let Some(argument) = &mut results.argument else { return Poll::Ready(()) };
        let argument = argument.get_mut().unwrap_or_else(PoisonError::into_inner);
        let fed = ready!(link.poll_payload(cx, None, argument));
        results.argument = None;
        if let Fed::Failed(error, _) = fed {
            self.refused = Some(Box::new(error.into_exception(CompletionStatus::Maybe)));
        }
        Poll::Ready(())
    }

    /// Waits until the argument is sent completely.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SystemException>> {
        ready!(self.poll_settled(cx));
        Poll::Ready(self.refused.take().map_or(Ok(()), |refused| Err(*refused)))
    }

    /// Waits until the argument is sent completely, see [`poll_end`](Self::poll_end).
    pub(crate) async fn settle(&mut self) -> Result<(), SystemException> {
        std::future::poll_fn(|cx| self.poll_end(cx)).await
    }

    /// Skips the first bytes, which are taken already.
    pub(crate) fn skip_first(&mut self) {
        self.left -= std::mem::take(&mut self.first).len() as u64;
    }

    /// Returns the next bytes if they have been received. Reads nothing.
    pub(crate) fn ready_chunk(&mut self) -> Result<Option<Bytes>, SystemException> {
        if let Some(refused) = self.refused.take() {
            (self.left, self.rest) = (0, None);
            return Err(*refused);
        }
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            self.left -= first.len() as u64;
            return Ok(Some(first));
        }
        match self.rest.as_ref().filter(|_| self.left > 0) {
            Some(rest) => {
                let chunk = rest.link.ready_chunk(rest.of);
                self.took(chunk)
            }
            None => Ok(None),
        }
    }

    /// Handles a chunk from the connection.
    fn took(&mut self, chunk: Chunk) -> Result<Option<Bytes>, SystemException> {
        match chunk {
            Chunk::Octets(mut octets) => {
                octets.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.advance(octets.len());
                Ok(Some(octets))
            }
            Chunk::Pending => Ok(None),
            Chunk::End if self.is_open_ended => {
                self.advance(usize::MAX);
                Ok(None)
            }
            Chunk::End => Err(self.breaks_off(SystemExceptionKind::Marshal, "the message")),
            Chunk::Lost => match self.rest.as_ref().and_then(Rest::deadline) {
                Some(at) if at <= now() => Err(self.late()),
                _ => Err(self.breaks_off(SystemExceptionKind::CommFailure, "the connection or the call")),
            },
        }
    }

    /// Counts bytes as handed out.
    pub(crate) fn advance(&mut self, octets: usize) {
        self.left = self.left.saturating_sub(octets as u64);
        if self.left == 0 {
            self.release();
        }
    }

    /// Releases the connection, unless an argument is still being sent over it.
    fn release(&mut self) {
        if !self.rest.as_ref().is_some_and(Rest::is_feeding) {
            self.rest = None;
        }
    }

    #[cold]
    pub(crate) fn breaks_off(&mut self, kind: SystemExceptionKind, what: &str) -> SystemException {
        let text = format!("{what} ended {}", self.missing());
        (self.left, self.rest) = (0, None);
        SystemException::new(kind, MinorCode::NONE, CompletionStatus::Maybe).with_reason(text)
    }

    #[cold]
    fn late(&mut self) -> SystemException {
        let text = format!("the deadline of the call passed {}", self.missing());
        (self.left, self.rest) = (0, None);
        SystemException::timeout()
            .with_minor(minor::TIMEOUT_REPLY_END)
            .completed(CompletionStatus::Maybe)
            .with_reason(text)
    }

    fn missing(&self) -> String {
        match self.is_open_ended {
            true => "in the middle of the stream".to_owned(),
            false => format!("with {} bytes of the stream missing", self.left),
        }
    }

    /// Returns the next chunk of a source in this process.
    #[cold]
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, SystemException>>> {
        let Some(source) = &mut self.source else { return Poll::Ready(None) };
        let source = source.get_mut().unwrap_or_else(PoisonError::into_inner);
        let polled = match &mut self.served {
            None => source.poll_chunk(cx).map(|chunk| {
                chunk.map(|chunk| chunk.map_err(|error| error.into_exception(CompletionStatus::Maybe)))
            }),
            Some(served) => served.poll(cx, |cx| source.poll_result(cx)),
        };
        let polled = ready!(polled);
        match &polled {
            Some(Ok(octets)) => self.left -= octets.len() as u64,
            Some(Err(_)) => (self.source, self.left) = (None, 0),
            None => self.source = None,
        }
        Poll::Ready(polled)
    }

    /// Wraps the result of a servant in this process.
    pub(crate) fn served(source: ByteSource, served: Option<Served>) -> Self {
        Self { served: served.map(Box::new), ..Self::from(source) }
    }

    /// Creates the stream of a call's results, which owns its connection.
    pub(crate) fn of_results(
        start: Start,
        of: StreamOf,
        (lease, deadline, argument): (Lease, Option<Instant>, Option<Payload>),
        pool: Arc<BufferPool>,
    ) -> Self {
        let Start { octets, is_open_ended, first, phase } = start;
        let link = Arc::clone(lease.link());
        let here = first.len() as u64;
        link.open_stream(of, (!is_open_ended).then_some(octets - here), phase);
        if let Some(deadline) = deadline {
            link.limit_stream(of, deadline);
        }
        let results = Remains { deadline, argument: argument.map(Mutex::new), _lease: lease };
        let rest = Some(Rest { link, of, results: Some(Box::new(results)) });
        let mut stream =
            Self { left: octets, first, rest, pool: Some(pool), is_open_ended, ..Self::default() };
        if octets == here {
            // The rest of the message is not part of the stream.
            stream.release();
        }
        stream
    }
}

impl ResultStream for ByteStream {
    const NAMELESS: bool = true;

    fn of(results: Results) -> Result<Self, BadResults> {
        let StreamStart { count, first, at } = StreamStart::decode(&mut results.body())?;
        results.stream(Start { octets: count as u64, is_open_ended: false, first, phase: None }, at)
    }
}

impl Rest {
    fn deadline(&self) -> Option<Instant> {
        self.results.as_ref().and_then(|results| results.deadline)
    }

    /// Returns whether an argument is still being sent.
    fn is_feeding(&self) -> bool {
        self.results.as_ref().is_some_and(|results| results.argument.is_some())
    }
}

/// An empty stream.
impl Default for ByteStream {
    fn default() -> Self {
        Self {
            left: 0,
            first: Bytes::new(),
            rest: None,
            pool: None,
            refused: None,
            is_open_ended: false,
            source: None,
            served: None,
        }
    }
}

impl Stream for ByteStream {
    type Item = Result<Bytes, SystemException>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_chunk(cx)
    }
}

/// A stream of bytes that are available already, or are read from their source on demand.
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
        Self { left, first, source, ..Self::default() }
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream").field("left", &self.left).finish_non_exhaustive()
    }
}

/// Skips what has not been received, and keeps the connection. If too much of a result is missing, closes its
/// connection.
impl Drop for Rest {
    fn drop(&mut self) {
        if self.results.is_some() && self.link.stream_rest(self.of) > SHORT_REST {
            self.link.abort(CloseReason::Local);
        }
        self.link.abandon_stream(self.of);
    }
}

/// The start of a stream, decoded from the arguments.
#[derive(Debug)]
pub struct StreamStart {
    /// Number of bytes of the whole sequence.
    count: usize,
    /// The bytes received with the request.
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
    /// Returns the last argument as a stream.
    ///
    /// # Errors
    /// The count exceeds the bytes in the message.
    pub fn byte_stream(&self, start: StreamStart) -> Result<ByteStream, DecodeError> {
        let StreamStart { count, first, at } = start;
        self.stream_of(count as u64, first, at, None)
    }

    /// Creates a stream of `octets` bytes, of which `first` are received. `phase`: offset of the next byte in
    /// an element, or `None` for a stream of bytes.
    pub(crate) fn stream_of(
        &self,
        octets: u64,
        first: Bytes,
        at: usize,
        phase: Option<usize>,
    ) -> Result<ByteStream, DecodeError> {
        let coming = self.current.coming();
        if octets > first.len().saturating_add(coming) as u64 {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, at));
        }
        let pool = Some(Arc::clone(&self.current.core().pool));
        let mut stream = ByteStream { left: octets, first, pool, ..ByteStream::default() };
        if let Some(link) = self.encoder.link().filter(|_| octets > stream.first.len() as u64) {
            let limit = link.max_stream_size();
            if stream.left > limit {
                self.current.core().counters.hit(giop_proto::Limit::StreamSize);
                let refused = too_large(octets, limit, CompletionStatus::No);
                (stream.first, stream.refused) = (Bytes::new(), Some(Box::new(refused)));
                return Ok(stream);
            }
            let of = self.to.token.into();
            link.open_stream(of, Some(octets - stream.first.len() as u64), phase);
            stream.rest = Some(Rest { link: link.to_arc(), of, results: None });
        }
        Ok(stream)
    }
}

/// Creates the exception for a stream that exceeds the limit.
#[cold]
pub(crate) fn too_large(octets: u64, limit: u64, completed: CompletionStatus) -> SystemException {
    let text = format!(
        "a stream of {octets} bytes is over the limit of {limit} of this side: raise it by `Limits::max_stream_size`"
    );
    SystemException::imp_limit().completed(completed).with_reason(text)
}

//! `@stream` parameters and results that are sequences of bytes, received in chunks.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use futures_util::Stream;
use giop_codec::cdr::{CdrDecode, Decoder};
use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use giop_codec::{DecodeError, DecodeErrorKind};
use giop_proto::pool::BufferPool;
use giop_proto::{Chunk, CloseReason, StreamId};

use crate::connection::exclusive::Lease;
use crate::connection::{PayloadOutcome, SharedConnection, now};
use crate::servant::collocated_request::CollocatedRequest;
use crate::servant::request::{ServerRequest, reply_timeout};
use crate::servant::results::{BadResults, ResultStream, Results};
use crate::stream::{ByteSource, Payload, SourceContent};

/// The maximum number of bytes of a result that are skipped when its stream is dropped. If more bytes are
/// missing, the connection is closed.
const MAX_SKIPPED_BYTES: u64 = 64 * 1024;

/// The bytes of a `@stream` parameter at a servant, or of a `@stream` result at a client, which are taken in
/// chunks. Memory use does not depend on their number.
///
/// * A sequence of more than 64 KiB is returned in chunks of up to 256 KiB while it is received. Smaller
///   sequences, and sequences in the memory of this process, are one chunk.
/// * The connection is read until four chunks are waiting to be taken. Then back-pressure stops the sender.
/// * Until all bytes are taken or the stream is dropped, no other messages are received over the connection,
///   except between the fragments of a fragmented message.
///
/// Instead of taking chunks or calling [`collect`](Self::collect), the program can have the bytes read
/// directly to their destination: memory of the ORB with [`into_aligned`](Self::into_aligned), or of the
/// program with [`deposit_into`](Self::deposit_into).
///
/// At a servant, bytes can still be taken after the reply is sent. Dropping the stream skips the remaining
/// bytes.
///
/// At a client, the stream has an exclusive connection. If the deadline of the call passes before all bytes
/// are received, the stream fails with TIMEOUT. Dropping the stream skips up to 64 KiB of missing bytes. If
/// more are missing, it closes the connection.
///
/// ```
/// # use orb_runtime::{ByteStream, SystemException};
/// async fn count(mut bytes: ByteStream) -> Result<usize, SystemException> {
///     let mut count = 0;
///     while let Some(chunk) = bytes.next().await {
///         count += chunk?.len();
///     }
///     Ok(count)
/// }
/// ```
#[derive(Default)]
pub struct ByteStream {
    /// Received bytes that have not been returned.
    pub(crate) first: Bytes,
    /// The number of bytes that have not been returned, including those in `first`.
    pub(crate) bytes_left: u64,
    pub(crate) connection: Option<StreamConnection>,
    pub(crate) pool: Option<Arc<BufferPool>>,
    /// The exception that the stream returns next, because the stream is too large or an argument failed.
    failure: Option<Box<SystemException>>,
    /// Whether the stream ends with its message. Then `bytes_left` is only an upper bound.
    pub(crate) is_open_ended: bool,
    /// The source of a stream from this process. The mutex, which is never locked, makes the stream `Sync`.
    source: Option<Mutex<Payload>>,
    collocated_request: Option<Box<CollocatedRequest>>,
}

/// The connection on which the bytes after `first` are received.
pub(crate) struct StreamConnection {
    pub(crate) link: Arc<SharedConnection>,
    pub(crate) stream_id: StreamId,
    /// The call whose results are received. `None` at a servant.
    call: Option<Box<ClientCall>>,
}

struct ClientCall {
    deadline: Option<Instant>,
    /// A `@stream` argument that is still being sent. The mutex is never locked, but makes the stream `Sync`.
    argument: Option<Mutex<Payload>>,
    /// The exclusive use of the connection, which is kept or closed afterwards.
    _lease: Lease,
}

/// The start of a stream of results.
pub(crate) struct ResultStart {
    /// The number of bytes, or an upper bound if the stream [is open-ended](Self::is_open_ended).
    pub(crate) size: u64,
    pub(crate) is_open_ended: bool,
    pub(crate) first: Bytes,
    /// The distance in bytes from the start of the first element to the next byte, by which chunks are
    /// aligned. `None` for a sequence of bytes.
    pub(crate) element_offset: Option<usize>,
}

impl ByteStream {
    /// Returns the number of bytes that have not been returned yet.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.bytes_left
    }

    /// Returns the next chunk, or `None` after the last. Chunks are never empty.
    ///
    /// # Errors
    /// After an error, the stream ends.
    /// * COMM_FAILURE, COMPLETED_MAYBE, if the connection ended or the caller cancelled the request.
    /// * MARSHAL, COMPLETED_MAYBE, if the message ended too early.
    /// * At a servant, IMP_LIMIT, COMPLETED_NO, if a sequence in fragments exceeds `Limits::max_stream_size`.
    /// * At a servant, BAD_PARAM, COMPLETED_MAYBE, if the caller is in this process and its source failed.
    /// * At a client, TIMEOUT, COMPLETED_MAYBE, if the deadline of the call passed.
    /// * At a client, BAD_PARAM, COMPLETED_MAYBE, if the source of an argument failed.
    /// * At a client, the exception of the source, if the servant is in this process.
    ///
    /// # Cancel safety
    /// Dropping the future loses no bytes.
    pub async fn next(&mut self) -> Option<Result<Bytes, SystemException>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Returns all remaining bytes. They are copied unless they are one chunk.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next), and IMP_LIMIT, COMPLETED_NO, if more than `limit` bytes remain.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, SystemException> {
        let len = self.len_within(limit)?;
        let first = self.next().await.transpose()?.unwrap_or_default();
        if first.len() == len {
            self.finish_argument().await?;
            return Ok(first);
        }
        // Memory is allocated for received bytes, not for the announced number.
        let mut bytes = first.to_vec();
        while let Some(chunk) = self.next().await {
            bytes.extend_from_slice(&chunk?);
        }
        Ok(bytes.into())
    }

    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, SystemException>>> {
        if !self.first.is_empty() || self.failure.is_some() {
            return Poll::Ready(self.ready_chunk().transpose());
        }
        if self.source.is_some() {
            return self.poll_source(cx);
        }
        let argument_sent = self.poll_send_argument(cx);
        if self.failure.is_some() {
            return Poll::Ready(self.ready_chunk().transpose());
        }
        if self.bytes_left > 0
            && let Some(connection) = &self.connection
        {
            let chunk = ready!(connection.link.poll_chunk(connection.stream_id, cx));
            if let Some(chunk) = self.handle_chunk(chunk).transpose() {
                return Poll::Ready(Some(chunk));
            }
        }
        ready!(argument_sent);
        self.connection = None;
        Poll::Ready(None)
    }

    /// Continues to send the argument, if one is sent while the result is received. The next chunk returns a
    /// failure of the argument.
    pub(crate) fn poll_send_argument(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(StreamConnection { link, call: Some(call), .. }) = &mut self.connection else {
            return Poll::Ready(());
        };
        let Some(argument) = &mut call.argument else { return Poll::Ready(()) };
        let argument = argument.get_mut().unwrap_or_else(PoisonError::into_inner);
        let sent = ready!(link.poll_payload(cx, None, argument));
        call.argument = None;
        if let PayloadOutcome::Failed(error, _) = sent {
            self.failure = Some(Box::new(error.into_exception(CompletionStatus::Maybe)));
        }
        Poll::Ready(())
    }

    /// Waits until the argument is sent completely. Fails if the argument failed.
    pub(crate) fn poll_finish_argument(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SystemException>> {
        ready!(self.poll_send_argument(cx));
        Poll::Ready(self.failure.take().map_or(Ok(()), |failure| Err(*failure)))
    }

    pub(crate) async fn finish_argument(&mut self) -> Result<(), SystemException> {
        std::future::poll_fn(|cx| self.poll_finish_argument(cx)).await
    }

    /// Counts the first bytes as returned, because the caller has them already.
    pub(crate) fn skip_first(&mut self) {
        self.bytes_left -= std::mem::take(&mut self.first).len() as u64;
    }

    /// Returns the next bytes if they have been received. Does not read the connection.
    pub(crate) fn ready_chunk(&mut self) -> Result<Option<Bytes>, SystemException> {
        if let Some(failure) = self.failure.take() {
            (self.bytes_left, self.connection) = (0, None);
            return Err(*failure);
        }
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            self.bytes_left -= first.len() as u64;
            return Ok(Some(first));
        }
        let Some(connection) = self.connection.as_ref().filter(|_| self.bytes_left > 0) else {
            return Ok(None);
        };
        let chunk = connection.link.ready_chunk(connection.stream_id);
        self.handle_chunk(chunk)
    }

    fn handle_chunk(&mut self, chunk: Chunk) -> Result<Option<Bytes>, SystemException> {
        match chunk {
            Chunk::Bytes(mut bytes) => {
                bytes.truncate(usize::try_from(self.bytes_left).unwrap_or(usize::MAX));
                self.advance(bytes.len());
                Ok(Some(bytes))
            }
            Chunk::Pending => Ok(None),
            Chunk::End if self.is_open_ended => {
                self.advance(usize::MAX);
                Ok(None)
            }
            Chunk::End => Err(self.truncated(SystemExceptionKind::Marshal, "the message")),
            Chunk::Lost => match self.connection.as_ref().and_then(StreamConnection::deadline) {
                Some(deadline) if deadline <= now() => Err(self.deadline_passed()),
                _ => Err(self.truncated(SystemExceptionKind::CommFailure, "the connection or the call")),
            },
        }
    }

    pub(crate) fn advance(&mut self, count: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(count as u64);
        if self.bytes_left == 0 {
            self.release();
        }
    }

    /// Releases the connection, unless an argument is still being sent over it.
    fn release(&mut self) {
        if !self.connection.as_ref().is_some_and(StreamConnection::is_sending_argument) {
            self.connection = None;
        }
    }

    /// Ends the stream, and creates the exception that says that `what` ended too early.
    #[cold]
    pub(crate) fn truncated(&mut self, kind: SystemExceptionKind, what: &str) -> SystemException {
        let text = format!("{what} ended {}", self.missing());
        (self.bytes_left, self.connection) = (0, None);
        SystemException::new(kind, MinorCode::NONE, CompletionStatus::Maybe).with_reason(text)
    }

    #[cold]
    fn deadline_passed(&mut self) -> SystemException {
        let text = format!("the deadline of the call passed {}", self.missing());
        (self.bytes_left, self.connection) = (0, None);
        reply_timeout(text)
    }

    fn missing(&self) -> String {
        match self.is_open_ended {
            true => "before the end of the stream".to_owned(),
            false => format!("with {} bytes of the stream missing", self.bytes_left),
        }
    }

    #[cold]
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, SystemException>>> {
        let Some(source) = &mut self.source else { return Poll::Ready(None) };
        let source = source.get_mut().unwrap_or_else(PoisonError::into_inner);
        let polled = match &mut self.collocated_request {
            None => source.poll_chunk(cx).map(|chunk| {
                chunk.map(|chunk| chunk.map_err(|error| error.into_exception(CompletionStatus::Maybe)))
            }),
            Some(request) => request.poll(cx, |cx| source.poll_result_chunk(cx)),
        };
        let polled = ready!(polled);
        match &polled {
            Some(Ok(bytes)) => self.bytes_left -= bytes.len() as u64,
            Some(Err(_)) => (self.source, self.bytes_left) = (None, 0),
            None => self.source = None,
        }
        Poll::Ready(polled)
    }

    /// Creates the stream of a source in this process, which is polled in the context of `request`.
    pub(crate) fn of_source(source: ByteSource, request: Option<CollocatedRequest>) -> Self {
        Self { collocated_request: request.map(Box::new), ..Self::from(source) }
    }

    pub(crate) fn of_results(
        start: ResultStart,
        stream_id: StreamId,
        (lease, deadline, argument): (Lease, Option<Instant>, Option<Payload>),
        pool: Arc<BufferPool>,
    ) -> Self {
        let ResultStart { size, is_open_ended, first, element_offset } = start;
        let link = Arc::clone(lease.link());
        let received = first.len() as u64;
        link.open_stream(stream_id, (!is_open_ended).then_some(size - received), element_offset);
        if let Some(deadline) = deadline {
            link.set_stream_deadline(stream_id, deadline);
        }
        let call = ClientCall { deadline, argument: argument.map(Mutex::new), _lease: lease };
        let connection = Some(StreamConnection { link, stream_id, call: Some(Box::new(call)) });
        let mut stream =
            Self { bytes_left: size, first, connection, pool: Some(pool), is_open_ended, ..Self::default() };
        if size == received {
            stream.release();
        }
        stream
    }
}

impl ResultStream for ByteStream {
    const ACCEPTS_UNALIGNED_FRAGMENTS: bool = true;

    fn from_results(results: Results) -> Result<Self, BadResults> {
        let StreamStart { count, first, count_at } = StreamStart::decode(&mut results.body())?;
        results.stream(
            ResultStart { size: count as u64, is_open_ended: false, first, element_offset: None },
            count_at,
        )
    }
}

impl StreamConnection {
    fn deadline(&self) -> Option<Instant> {
        self.call.as_ref().and_then(|call| call.deadline)
    }

    fn is_sending_argument(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.argument.is_some())
    }
}

impl Stream for ByteStream {
    type Item = Result<Bytes, SystemException>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_chunk(cx)
    }
}

impl From<ByteSource> for ByteStream {
    fn from(source: ByteSource) -> Self {
        let bytes_left = source.len();
        let (first, source) = match source.into_content() {
            SourceContent::Bytes(first) => (first, None),
            SourceContent::Payload(mut source) => {
                source.drop_kept_chunks();
                (Bytes::new(), Some(Mutex::new(source)))
            }
        };
        Self { bytes_left, first, source, ..Self::default() }
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream").field("bytes_left", &self.bytes_left).finish_non_exhaustive()
    }
}

/// Skips the missing bytes. If too many bytes of a result are missing, closes the connection instead.
impl Drop for StreamConnection {
    fn drop(&mut self) {
        if self.call.is_some() && self.link.missing_stream_bytes(self.stream_id) > MAX_SKIPPED_BYTES {
            self.link.abort(CloseReason::Local);
        }
        self.link.abandon_stream(self.stream_id);
    }
}

/// The start of a stream, decoded from the arguments or results.
#[derive(Debug)]
pub struct StreamStart {
    /// The number of bytes of the whole sequence.
    count: usize,
    first: Bytes,
    count_at: usize,
}

impl CdrDecode for StreamStart {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let count = d.read_u32()? as usize;
        let count_at = d.position() - 4;
        Ok(Self { count, first: d.take_shared(count.min(d.remaining()))?, count_at })
    }
}

impl ServerRequest {
    /// Returns the last argument as a stream.
    pub fn byte_stream(&self, start: StreamStart) -> Result<ByteStream, DecodeError> {
        let StreamStart { count, first, count_at } = start;
        self.stream_of(count as u64, first, count_at, None)
    }

    /// Creates a stream of `size` bytes, of which `first` are received. `element_offset` is the distance from
    /// the start of the first element to the next byte, or `None` for a sequence of bytes.
    pub(crate) fn stream_of(
        &self,
        size: u64,
        first: Bytes,
        count_at: usize,
        element_offset: Option<usize>,
    ) -> Result<ByteStream, DecodeError> {
        let coming = self.current.bytes_to_come();
        if size > first.len().saturating_add(coming) as u64 {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, count_at));
        }
        let pool = Some(Arc::clone(&self.current.core().pool));
        let mut stream = ByteStream { bytes_left: size, first, pool, ..ByteStream::default() };
        if let Some(link) = self.encoder.link().filter(|_| size > stream.first.len() as u64) {
            let limit = link.max_stream_size();
            if stream.bytes_left > limit {
                self.current.core().counters.hit(giop_proto::Limit::StreamSize);
                let refused = stream_too_large(size, limit, CompletionStatus::No);
                (stream.first, stream.failure) = (Bytes::new(), Some(Box::new(refused)));
                return Ok(stream);
            }
            let stream_id = self.to.token.into();
            link.open_stream(stream_id, Some(size - stream.first.len() as u64), element_offset);
            stream.connection = Some(StreamConnection { link: link.to_arc(), stream_id, call: None });
        }
        Ok(stream)
    }
}

#[cold]
pub(crate) fn stream_too_large(size: u64, limit: u64, completed: CompletionStatus) -> SystemException {
    let text =
        format!("a stream of {size} bytes exceeds the limit of {limit}: increase `Limits::max_stream_size`");
    SystemException::imp_limit().completed(completed).with_reason(text)
}

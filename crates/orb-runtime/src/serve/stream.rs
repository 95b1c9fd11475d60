//! Bytes that come in chunks: what a servant gets for a `@stream` parameter, and a client for a `@stream` result.

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

use super::request::ServerRequest;
use super::results::{BadResults, ResultStream, Results};
use super::served::Served;
use crate::link::{Fed, Link, now};
use crate::orb::Lease;
use crate::source::{ByteSource, Given, Payload};

/// The most bytes of a result that are skipped when its stream is dropped. For more, the connection is closed.
const SHORT_REST: u64 = 64 * 1024;

/// The bytes of a `@stream` parameter as a servant takes them, or of a `@stream` result as a client takes them: chunk by chunk, in
/// memory that does not grow with them.
///
/// A sequence of more than 64 KiB is handed out while it still comes. Nothing more is read until chunks are asked for; they have up to
/// 256 KiB, and when four of them wait, the connection is not read until one is taken, so the sender waits as well. Nothing else comes
/// through the connection until all bytes are taken or the stream is dropped; only between the fragments of one that comes in fragments
/// there may be other messages. Smaller sequences and those in the memory of this process are one chunk.
///
/// Beside chunks and [`collect`](Self::collect), the bytes may be read straight to their place:
/// [`into_aligned`](Self::into_aligned) memory of the ORB's, or memory of its taker's by [`deposit_into`](Self::deposit_into).
///
/// At a servant it may outlive the request: what is not taken when the reply is sent can still be taken. Dropping it skips the rest.
///
/// At a client it has a connection for itself. The deadline of the call covers all of it: a stream of which not all has come then fails by
/// TIMEOUT. Dropping it closes that connection, unless no more than 64 KiB are left, which are skipped.
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
    /// Bytes that were not handed out, those in `first` included.
    pub(super) left: u64,
    pub(super) rest: Option<Rest>,
    /// Where memory for all of it may come from.
    pub(super) pool: Option<Arc<BufferPool>>,
    /// Why it is not taken: it is too large.
    refused: Option<Box<SystemException>>,
    /// It ends with its message: `left` is only an upper bound.
    pub(super) is_open_ended: bool,
    /// The source in this process. Only the stream has it: the mutex is never locked.
    source: Option<Mutex<Payload>>,
    /// That source is a result's.
    served: Option<Box<Served>>,
}

/// Where the bytes after the first ones are received.
pub(super) struct Rest {
    pub(super) link: Arc<Link>,
    pub(super) of: StreamOf,
    results: Option<Box<Remains>>,
}

/// What a stream of results owns.
struct Remains {
    deadline: Option<Instant>,
    /// An argument that is still being sent. Only the stream has it: the mutex is never locked.
    argument: Option<Mutex<Payload>>,
    /// Closes or keeps the connection when it is dropped.
    _lease: Lease,
}

/// The beginning of a stream.
pub(super) struct Start {
    /// The number of its bytes, or an upper bound if it [is open-ended](Self::is_open_ended).
    pub(super) octets: u64,
    pub(super) is_open_ended: bool,
    /// Those that have been received.
    pub(super) first: Bytes,
    /// The offset of the next one in an element; `None` for bytes.
    pub(super) phase: Option<usize>,
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
    /// Once: COMM_FAILURE, COMPLETED_MAYBE, when the connection ended before the bytes did, or the caller gave the request up;
    /// MARSHAL, COMPLETED_MAYBE, when the message did.
    /// * At a servant IMP_LIMIT, COMPLETED_NO, if a sequence in fragments has more bytes than `Limits::max_stream_size`; from a caller in
    ///   this process BAD_PARAM, COMPLETED_MAYBE, when its source failed.
    /// * At a client TIMEOUT, COMPLETED_MAYBE, when the deadline of the call passed; BAD_PARAM, COMPLETED_MAYBE, when the source of an
    ///   argument failed that is still being sent; from a servant in this process what its source raised.
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
            self.settle().await?;
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
            // It ended.
        }
        ready!(settled);
        self.rest = None;
        Poll::Ready(None)
    }

    /// Sends on what is left of an argument, which goes out while the result comes. What fails there is what the stream gives next.
    pub(super) fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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

    /// Sends all that is left of an argument.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SystemException>> {
        ready!(self.poll_settled(cx));
        Poll::Ready(self.refused.take().map_or(Ok(()), |refused| Err(*refused)))
    }

    /// The same.
    pub(super) async fn settle(&mut self) -> Result<(), SystemException> {
        std::future::poll_fn(|cx| self.poll_end(cx)).await
    }

    /// Skips the first bytes: they are taken already.
    pub(super) fn skip_first(&mut self) {
        self.left -= std::mem::take(&mut self.first).len() as u64;
    }

    /// The next bytes if they have been received. Reads nothing.
    pub(super) fn ready_chunk(&mut self) -> Result<Option<Bytes>, SystemException> {
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

    /// What the connection gave.
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

    /// So many octets were handed out.
    pub(super) fn advance(&mut self, octets: usize) {
        self.left = self.left.saturating_sub(octets as u64);
        if self.left == 0 {
            self.release();
        }
    }

    /// Nothing more of it comes by the connection.
    fn release(&mut self) {
        if !self.rest.as_ref().is_some_and(Rest::is_feeding) {
            self.rest = None;
        }
    }

    #[cold]
    pub(super) fn breaks_off(&mut self, kind: SystemExceptionKind, what: &str) -> SystemException {
        let text = format!("{what} ended {}", self.missing());
        (self.left, self.rest) = (0, None);
        SystemException::new(kind, MinorCode::NONE, CompletionStatus::Maybe).because(text)
    }

    #[cold]
    fn late(&mut self) -> SystemException {
        let text = format!("the deadline of the call passed {}", self.missing());
        (self.left, self.rest) = (0, None);
        SystemException::new(SystemExceptionKind::Timeout, minor::TIMEOUT_REPLY_END, CompletionStatus::Maybe)
            .because(text)
    }

    fn missing(&self) -> String {
        match self.is_open_ended {
            true => "in the middle of the stream".to_owned(),
            false => format!("with {} bytes of the stream missing", self.left),
        }
    }

    /// The next chunk of a source of this process.
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

    /// The result of a servant in this process, as it is taken.
    pub(crate) fn served(source: ByteSource, served: Option<Served>) -> Self {
        Self { served: served.map(Box::new), ..Self::from(source) }
    }

    /// The results of a call. The stream owns its connection.
    pub(super) fn of_results(
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
            // What follows in the message is not part of the stream.
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

    /// Whether an argument is still being sent.
    fn is_feeding(&self) -> bool {
        self.results.as_ref().is_some_and(|results| results.argument.is_some())
    }
}

/// No bytes.
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
        Self { left, first, source, ..Self::default() }
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream").field("left", &self.left).finish_non_exhaustive()
    }
}

/// Skips what has not been received, and the connection goes on. The connection of a result of which much is missing is closed.
impl Drop for Rest {
    fn drop(&mut self) {
        if self.results.is_some() && self.link.stream_rest(self.of) > SHORT_REST {
            self.link.abort(CloseReason::Local);
        }
        self.link.abandon_stream(self.of);
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
        let coming = self.current.coming();
        if octets > first.len().saturating_add(coming) as u64 {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, at));
        }
        let pool = Some(Arc::clone(self.current.core().pool()));
        let mut stream = ByteStream { left: octets, first, pool, ..ByteStream::default() };
        if let Some(link) = self.encoder.link().filter(|_| octets > stream.first.len() as u64) {
            let limit = link.max_stream_size();
            if stream.left > limit {
                self.current.core().hit(giop_proto::Limit::StreamSize);
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

/// A stream that this side does not take.
#[cold]
pub(super) fn too_large(octets: u64, limit: u64, completed: CompletionStatus) -> SystemException {
    let text = format!(
        "a stream of {octets} bytes is over the limit of {limit} of this side: raise it by `Limits::max_stream_size`"
    );
    SystemException::new(SystemExceptionKind::ImpLimit, MinorCode::NONE, completed).because(text)
}

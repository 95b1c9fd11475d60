//! The reading state of a source: it is read in chunks, and can be restarted while its first bytes are kept.

use std::fmt;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use giop_codec::exception::{CompletionStatus, SystemException};

use crate::stream::CHUNK;
use crate::stream::reader::{BoxError, Feed};
use crate::stream::seq::Unit;

/// Maximum number of bytes that are kept for another attempt.
pub(crate) const KEPT: u64 = CHUNK as u64;

/// Maximum number of chunks that are kept for another attempt.
const KEPT_CHUNKS: usize = 64;

/// Maximum number of empty stream items that are skipped before the task yields.
const EMPTY: usize = 64;

/// The bytes of a source.
pub(crate) struct Payload {
    len: u64,
    /// The type of elements that the bytes represent.
    unit: Unit,
    /// Number of bytes received from the feed.
    came: u64,
    feed: Box<dyn Feed>,
    /// The rest of an item that is too long for one chunk.
    rest: Bytes,
    /// The chunks handed out, while they can be handed out again.
    kept: Option<Vec<Bytes>>,
    /// Number of kept chunks that were handed out in this attempt.
    at: usize,
    /// Number of bytes handed out in this attempt.
    given: u64,
}

/// The reason why a source is incomplete.
#[derive(Debug)]
pub(crate) enum SourceError {
    /// The source failed.
    Failed(BoxError),
    /// The source ended early.
    Short { len: u64, came: u64 },
    /// The source yielded too many bytes.
    Long { len: u64, came: u64 },
}

impl Payload {
    pub(crate) fn new(len: u64, feed: Box<dyn Feed>) -> Self {
        let unit = Unit::OCTET;
        Self { len, unit, came: 0, feed, rest: Bytes::new(), kept: Some(Vec::new()), at: 0, given: 0 }
    }

    /// Interprets the bytes as elements.
    pub(crate) fn of(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// Returns the type of elements that the bytes represent.
    pub(crate) fn unit(&self) -> Unit {
        self.unit
    }

    /// Returns the total number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the number of bytes handed out in this attempt.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// Restarts from the first byte. Returns whether the first bytes are still kept.
    pub(crate) fn rewind(&mut self) -> bool {
        if self.kept.is_some() {
            (self.at, self.given) = (0, 0);
        }
        self.kept.is_some()
    }

    /// Drops the kept chunks: the source will not be restarted.
    pub(crate) fn keep_nothing(&mut self) {
        if let Some(kept) = self.kept.take() {
            // Kept chunks that were not handed out again would be lost.
            debug_assert_eq!(self.at, kept.len());
        }
    }

    /// Returns the next chunk, which is never empty, or `None` after the last.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, SourceError>>> {
        if let Some(again) = self.kept.as_ref().and_then(|kept| kept.get(self.at)) {
            self.at += 1;
            self.given += again.len() as u64;
            return Poll::Ready(Some(Ok(again.clone())));
        }
        if self.given >= self.len {
            return Poll::Ready(None);
        }
        if self.rest.is_empty() {
            match ready!(self.poll_item(cx)) {
                Ok(item) => self.rest = item,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let chunk = self.rest.split_to(self.rest.len().min(CHUNK));
        self.given += chunk.len() as u64;
        self.keep(&chunk);
        Poll::Ready(Some(Ok(chunk)))
    }

    /// Returns the next item of the feed, checked against the length.
    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, SourceError>> {
        for _ in 0..EMPTY {
            let (len, left) = (self.len, self.len - self.came);
            let item = match ready!(self.feed.poll_chunk(cx, left)) {
                Some(Ok(item)) => item,
                Some(Err(error)) => return Poll::Ready(Err(SourceError::Failed(error))),
                None => return Poll::Ready(Err(SourceError::Short { len, came: self.came })),
            };
            if item.len() as u64 > left {
                let came = self.came + item.len() as u64;
                return Poll::Ready(Err(SourceError::Long { len, came }));
            }
            if !item.is_empty() {
                self.came += item.len() as u64;
                return Poll::Ready(Ok(item));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn keep(&mut self, chunk: &Bytes) {
        let fits = self.given <= KEPT && self.at < KEPT_CHUNKS;
        if let Some(kept) = &mut self.kept {
            if fits {
                kept.push(chunk.clone());
                self.at += 1;
            } else {
                self.kept = None;
            }
        }
    }
}

impl SourceError {
    /// Converts the error to the exception for the caller. `completed`: how far the operation may have run.
    #[cold]
    pub(crate) fn into_exception(self, completed: CompletionStatus) -> SystemException {
        let exception = SystemException::bad_param().completed(completed);
        match self {
            Self::Failed(error) => exception.with_source(error),
            other => exception.with_reason(other.to_string()),
        }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Short { len, came } => write!(f, "the source ended after {came} of its {len} octets"),
            Self::Long { len, came } => write!(f, "the source gave {came} octets where {len} were announced"),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload").field("len", &self.len).field("given", &self.given).finish_non_exhaustive()
    }
}

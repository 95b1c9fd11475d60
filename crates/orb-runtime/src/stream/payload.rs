//! The payload of a `@stream` argument or result that is read from an input, chunk by chunk. As long as all
//! chunks that were read are kept, the payload can be restarted.

use std::fmt;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use giop_codec::exception::{CompletionStatus, SystemException};

use crate::stream::MAX_CHUNK_BYTES;
use crate::stream::reader::{BoxError, Input};
use crate::stream::seq::ElementLayout;

/// The maximum number of bytes that are kept for another attempt of the call.
pub(crate) const MAX_KEPT_BYTES: u64 = MAX_CHUNK_BYTES as u64;
const MAX_KEPT_CHUNKS: usize = 64;
/// The maximum number of empty stream items that are skipped before the task yields.
const MAX_EMPTY_ITEMS: usize = 64;

pub(crate) struct Payload {
    len: u64,
    layout: ElementLayout,
    /// The number of bytes received from the input.
    received: u64,
    input: Box<dyn Input>,
    /// The rest of an item that is too long for one chunk.
    rest: Bytes,
    /// All chunks that were returned, for another attempt of the call. `None` once they are no longer kept.
    kept: Option<Vec<Bytes>>,
    /// The index of the next kept chunk to be returned in this attempt.
    next_kept: usize,
    /// The number of bytes returned in this attempt.
    returned_bytes: u64,
}

/// The reason why the bytes of a source cannot be sent.
#[derive(Debug)]
pub(crate) enum SourceError {
    Failed(BoxError),
    Short { len: u64, received: u64 },
    Long { len: u64, received: u64 },
}

impl Payload {
    pub(crate) fn new(len: u64, input: Box<dyn Input>) -> Self {
        Self {
            len,
            layout: ElementLayout::BYTE,
            received: 0,
            input,
            rest: Bytes::new(),
            kept: Some(Vec::new()),
            next_kept: 0,
            returned_bytes: 0,
        }
    }

    pub(crate) fn with_layout(self, layout: ElementLayout) -> Self {
        Self { layout, ..self }
    }

    pub(crate) fn layout(&self) -> ElementLayout {
        self.layout
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn returned_bytes(&self) -> u64 {
        self.returned_bytes
    }

    /// Restarts from the first byte. Returns `false` if the first bytes are no longer kept.
    pub(crate) fn rewind(&mut self) -> bool {
        if self.kept.is_some() {
            (self.next_kept, self.returned_bytes) = (0, 0);
        }
        self.kept.is_some()
    }

    /// Drops the kept chunks, because the source will not be restarted.
    pub(crate) fn drop_kept_chunks(&mut self) {
        if let Some(kept) = self.kept.take() {
            // Kept chunks that have not been returned in this attempt would be lost.
            debug_assert_eq!(self.next_kept, kept.len());
        }
    }

    /// Returns the next chunk, or `None` after the last one. Chunks are never empty.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, SourceError>>> {
        if let Some(again) = self.kept.as_ref().and_then(|kept| kept.get(self.next_kept)) {
            self.next_kept += 1;
            self.returned_bytes += again.len() as u64;
            return Poll::Ready(Some(Ok(again.clone())));
        }
        if self.returned_bytes >= self.len {
            return Poll::Ready(None);
        }
        if self.rest.is_empty() {
            match ready!(self.poll_item(cx)) {
                Ok(item) => self.rest = item,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let chunk = self.rest.split_to(self.rest.len().min(MAX_CHUNK_BYTES));
        self.returned_bytes += chunk.len() as u64;
        self.keep(&chunk);
        Poll::Ready(Some(Ok(chunk)))
    }

    /// Returns the next non-empty item of the input. Fails if the input has more or fewer than `len` bytes.
    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, SourceError>> {
        for _ in 0..MAX_EMPTY_ITEMS {
            let (len, left) = (self.len, self.len - self.received);
            let item = match ready!(self.input.poll_chunk(cx, left)) {
                Some(Ok(item)) => item,
                Some(Err(error)) => return Poll::Ready(Err(SourceError::Failed(error))),
                None => return Poll::Ready(Err(SourceError::Short { len, received: self.received })),
            };
            if item.len() as u64 > left {
                let received = self.received + item.len() as u64;
                return Poll::Ready(Err(SourceError::Long { len, received }));
            }
            if !item.is_empty() {
                self.received += item.len() as u64;
                return Poll::Ready(Ok(item));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn keep(&mut self, chunk: &Bytes) {
        let fits = self.returned_bytes <= MAX_KEPT_BYTES && self.next_kept < MAX_KEPT_CHUNKS;
        if let Some(kept) = &mut self.kept {
            if fits {
                kept.push(chunk.clone());
                self.next_kept += 1;
            } else {
                self.kept = None;
            }
        }
    }
}

impl SourceError {
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
            Self::Short { len, received } => {
                write!(f, "the source ended after {received} of its {len} bytes")
            }
            Self::Long { len, received } => {
                write!(f, "the source yielded {received} bytes, but its length is {len}")
            }
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload")
            .field("len", &self.len)
            .field("returned", &self.returned_bytes)
            .finish_non_exhaustive()
    }
}

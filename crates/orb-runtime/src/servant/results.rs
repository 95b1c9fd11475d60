//! Results of a call that are read while the reply is still being received.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use giop_codec::cdr::Decoder;
use giop_codec::exception::{CompletionStatus, SystemException};
use giop_codec::{DecodeError, DecodeErrorKind};
use giop_proto::calls::CallId;
use giop_proto::{Limit, Reply};

use crate::connection::exclusive::Lease;
use crate::runtime::Shared;
use crate::servant::stream::{ByteStream, ResultStart, stream_too_large};
use crate::stream::Payload;

/// The return type of a stub with a `@stream` result.
pub trait ResultStream: Sized {
    /// Whether a reply in GIOP 1.1 fragments can be read before it is complete. This requires elements that
    /// have no padding between them, because the alignment in such fragments is unknown.
    const ACCEPTS_UNALIGNED_FRAGMENTS: bool;

    fn from_results(results: Results) -> Result<Self, BadResults>;
}

/// The start of a reply, and the connection on which the rest is received.
pub struct Results {
    pub(crate) reply: Reply,
    pub(crate) call: CallId,
    pub(crate) lease: Lease,
    pub(crate) deadline: Option<Instant>,
    /// A `@stream` argument that is still being sent.
    pub(crate) argument: Option<Payload>,
    pub(crate) orb: Arc<Shared>,
}

/// The reason why results are not accepted.
#[derive(Debug)]
pub enum BadResults {
    Malformed(DecodeError),
    Refused(SystemException),
}

impl From<DecodeError> for BadResults {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

impl Results {
    /// Returns a decoder of the results, which begin with the element count of the streamed sequence.
    pub(crate) fn body(&self) -> Decoder<'_> {
        self.reply.body()
    }

    /// Returns the number of bytes of the reply that are not received yet, or `usize::MAX` if it is unknown.
    pub(crate) fn bytes_to_come(&self) -> usize {
        self.reply.stream_len()
    }

    /// Returns the stream that begins with `start`.
    pub(crate) fn stream(self, start: ResultStart, count_at: usize) -> Result<ByteStream, BadResults> {
        let coming = self.bytes_to_come();
        let received = start.first.len();
        if !start.is_open_ended && start.size > received.saturating_add(coming) as u64 {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, count_at).into());
        }
        let limit = self.lease.link().max_stream_size();
        if !start.is_open_ended && coming > 0 && start.size > limit {
            self.orb.counters.hit(Limit::StreamSize);
            return Err(BadResults::Refused(stream_too_large(start.size, limit, CompletionStatus::Yes)));
        }
        let pool = Arc::clone(&self.orb.pool);
        let stream_id = self.call.into();
        Ok(ByteStream::of_results(start, stream_id, (self.lease, self.deadline, self.argument), pool))
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").field("coming", &self.bytes_to_come()).finish_non_exhaustive()
    }
}

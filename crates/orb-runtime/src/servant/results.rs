//! The results of a call, taken as they are received.

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
use crate::servant::stream::{ByteStream, Start, too_large};
use crate::stream::Payload;

/// The return type of a stub with a `@stream` result.
pub trait ResultStream: Sized {
    /// Whether GIOP 1.1 fragments are taken as they are received. The alignment of values in them is not
    /// known.
    const NAMELESS: bool;

    /// Creates the stream.
    ///
    /// # Errors
    /// The results cannot be decoded, or exceed a limit of this side.
    fn of(results: Results) -> Result<Self, BadResults>;
}

/// The start of a reply, and the connection on which the rest is received.
pub struct Results {
    pub(crate) reply: Reply,
    pub(crate) call: CallId,
    pub(crate) lease: Lease,
    pub(crate) deadline: Option<Instant>,
    /// An argument that is still being sent.
    pub(crate) argument: Option<Payload>,
    pub(crate) orb: Arc<Shared>,
}

/// The reason why results are not accepted.
#[derive(Debug)]
pub enum BadResults {
    /// They cannot be decoded.
    Malformed(DecodeError),
    /// They are too large.
    Refused(SystemException),
}

impl From<DecodeError> for BadResults {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

impl Results {
    /// Returns a decoder positioned before the number of elements.
    pub(crate) fn body(&self) -> Decoder<'_> {
        self.reply.body()
    }

    /// Returns the number of bytes of the reply that follow, or `usize::MAX` if it is not known.
    pub(crate) fn coming(&self) -> usize {
        self.reply.coming()
    }

    pub(crate) fn orb(&self) -> &Arc<Shared> {
        &self.orb
    }

    /// Returns the stream that begins with `start`. `at`: position of its element count.
    pub(crate) fn stream(self, start: Start, at: usize) -> Result<ByteStream, BadResults> {
        let coming = self.coming();
        let here = start.first.len();
        if !start.is_open_ended && start.octets > here.saturating_add(coming) as u64 {
            return Err(DecodeError::new(DecodeErrorKind::LengthBeyondData, at).into());
        }
        let limit = self.lease.link().max_stream_size();
        if !start.is_open_ended && coming > 0 && start.octets > limit {
            self.orb.counters.hit(Limit::StreamSize);
            return Err(BadResults::Refused(too_large(start.octets, limit, CompletionStatus::Yes)));
        }
        let pool = Arc::clone(&self.orb.pool);
        let of = self.call.into();
        Ok(ByteStream::of_results(start, of, (self.lease, self.deadline, self.argument), pool))
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").field("coming", &self.coming()).finish_non_exhaustive()
    }
}

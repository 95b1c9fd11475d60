//! The parts of the state of a [`Receiver`](super::Receiver).

use std::collections::HashSet;
use std::sync::Arc;

use giop_codec::giop::RequestId;

use super::loan::{Loan, LoanPlace};
use super::read_buf::LentBuffer;
use super::stream::Stream;
use super::stream_start::{ReplyStream, StreamSelector};
use crate::pool::BufferPool;

/// The read window, of which the bytes `start..end` are not processed yet. An empty one is kept for reuse.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(super) buf: Option<Box<LentBuffer>>,
    pub(super) start: usize,
    pub(super) end: usize,
    /// True if this receiver has the pool's permission to keep an empty window.
    pub(crate) may_keep: bool,
}

#[derive(Debug, Default)]
pub(crate) struct FrontMessage {
    /// The number of bytes to hand out. 0 before `Receiver::peek` found the message.
    pub(super) len: usize,
    /// True if the message is handed out before its payload, which is received as a stream.
    pub(crate) is_streamed: bool,
    /// True if the stream continues in fragments.
    pub(crate) has_more_pieces: bool,
}

/// Sizes in bytes, learned from earlier messages, that the next message is expected to have.
#[derive(Debug, Default)]
pub(super) struct SizeHints {
    /// The size of the next message, or of its first piece if `expected_total` is not 0. 0 if unknown.
    pub(super) expected: usize,
    /// The size of the next message with all its pieces, if it is expected to be fragmented. Otherwise 0.
    pub(super) expected_total: usize,
    /// The size of the first piece of the current message, if it is large.
    pub(super) first_piece: usize,
    /// The size of the last message's part before its first block. 0 if the peer sent no list of blocks.
    pub(super) len_before_first_block: usize,
}

#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) selector: Option<Arc<dyn StreamSelector>>,
    pub(super) current: Option<Box<Stream>>,
    /// True after a streamed message. The next read then receives only the start of the next message.
    pub(super) follows_stream: bool,
    /// The maximum size, in bytes, of a request's payload that may be streamed.
    pub(crate) max_payload_bytes: u64,
    /// The reply whose results are streamed.
    pub(super) reply: Option<ReplyStream>,
    pub(crate) forwarded_replies: HashSet<RequestId>,
    /// The same as in the receiver. If it is false, fragmented messages are not streamed, and no memory is
    /// lent.
    pub(super) deposits_enabled: bool,
    /// True if fragments of GIOP 1.1 belong, or may belong, to a stream. The connection then decides where
    /// their payloads belong, as for those of GIOP 1.2, and no other stream starts.
    pub(crate) has_1_1_fragments: bool,
    pub(super) loan: LoanPlace,
    /// Loans that were returned after the reader of the stream had stopped waiting for them.
    #[expect(clippy::vec_box, reason = "the boxes are passed on")]
    pub(crate) orphaned_loans: Vec<Box<Loan>>,
}

/// The message or payload that is skipped now. Before a stream starts, its payload is noted here.
#[derive(Debug, Default)]
pub(crate) struct SkippedMessage {
    /// The number of its bytes that are still to be received.
    pub(super) left: usize,
    pub(super) size: usize,
    /// The number of bytes that have been received of all skipped messages.
    pub(crate) total_received: u64,
}

/// What a receiver knows of its memory: the pool, the permissions to use it, and the boxes for lent buffers.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) pool: Arc<BufferPool>,
    /// True if the pool has no memory for the current message. Reading waits for
    /// `Receiver::retry_memory`.
    pub(crate) starved: bool,
    pub(crate) largest_received: usize,
    /// True if memory must be provided because this side awaits replies.
    pub(crate) urgent: bool,
    /// True if this receiver may take more memory than the pool's limit.
    pub(crate) is_overdrawn: bool,
    /// Boxes without a buffer, for reuse. Two are enough: one for a window and one for a deposit.
    pub(super) idle_boxes: [Option<Box<LentBuffer>>; 2],
    /// The number of received bytes that have been copied.
    pub(crate) copied_bytes: u64,
}

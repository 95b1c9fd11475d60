//! The state of a receiver, in parts.

use std::collections::HashSet;
use std::sync::Arc;

use giop_codec::giop::RequestId;

use super::lent::LentBuffer;
use super::place::{Loan, LoanPlace};
use super::stream::Stream;
use super::stream_start::{ReplyStream, Streams};
use crate::pool::BufferPool;

/// The last window. Its bytes `start..end` are not processed yet. Without any, it is kept for reuse.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(super) buf: Option<Box<LentBuffer>>,
    pub(super) start: usize,
    pub(super) end: usize,
    /// True if the pool allows that an empty window is kept.
    pub(crate) may_keep: bool,
}

#[derive(Debug, Default)]
pub(crate) struct FrontMessage {
    /// The length in bytes. 0 before it was peeked.
    pub(super) len: usize,
    /// True if the message is handed out before its payload, which is received as a stream.
    pub(crate) streams: bool,
    pub(crate) has_more: bool,
}

/// The sizes in bytes of earlier messages, from which those of the next ones are guessed.
#[derive(Debug, Default)]
pub(super) struct SizeHints {
    /// The size of the next message: that of the last deposited one.
    pub(super) expected: usize,
    /// The size of the next message if its first piece has the size `expected`: that of the last message.
    pub(super) expected_total: usize,
    /// The size of the first piece of the current message, if it is large.
    pub(super) first_piece: usize,
    /// The size of the last message's part before its first block. 0 if the peer has sent no list of blocks.
    pub(super) read_ahead: usize,
}

#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) selector: Option<Arc<dyn Streams>>,
    pub(super) current: Option<Box<Stream>>,
    /// True after a streamed message. Only as much of the next one is read as shows whether it is streamed.
    pub(super) follows_stream: bool,
    /// The maximum size of a request's payload that may be streamed.
    pub(crate) max: u64,
    pub(super) reply: Option<ReplyStream>,
    pub(crate) forwarded_replies: HashSet<RequestId>,
    /// As for the receiver. If false, only messages in one piece are streamed, and nothing is lent.
    pub(super) deposits: bool,
    /// True if fragments of GIOP 1.1 are, or may become, those of a stream. They then wait for a position
    /// like those of GIOP 1.2, and no other stream starts.
    pub(crate) has_1_1_fragments: bool,
    pub(super) loan: LoanPlace,
    /// Loans that were returned after their stream was given up.
    #[expect(clippy::vec_box, reason = "the boxes are passed on")]
    pub(crate) orphaned_loans: Vec<Box<Loan>>,
}

#[derive(Debug, Default)]
pub(crate) struct SkippedMessage {
    /// Bytes that are still to be received.
    pub(super) left: usize,
    pub(super) size: usize,
    /// Bytes of all skipped messages that have been received.
    pub(crate) total: u64,
}

/// The memory of a receiver: its share of the pool, and the boxes in which buffers are lent.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) pool: Arc<BufferPool>,
    /// True if the pool has no memory for the current message. Reading waits for `Receiver::retry`.
    pub(crate) starved: bool,
    pub(crate) largest_received: usize,
    /// True if memory must be provided because this side awaits replies.
    pub(crate) urgent: bool,
    /// True if this receiver may take memory beyond the cap.
    pub(crate) is_overdrawn: bool,
    /// Empty boxes. There are at most two: that of a window and that of a deposit.
    pub(super) idle: [Option<Box<LentBuffer>>; 2],
    pub(crate) copied: u64,
}

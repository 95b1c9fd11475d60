//! The parts of a receiver's state.

use std::collections::HashSet;
use std::sync::Arc;

use giop_codec::giop::RequestId;

use super::lent::LentBuffer;
use super::place::{Loan, LoanPlace};
use super::stream::Stream;
use super::stream_start::{ReplyStream, Streams};
use crate::pool::BufferPool;

/// The last window, and how far it is processed.
#[derive(Debug)]
pub(super) struct Window {
    /// Its bytes `from..to` are not processed yet. If there are none, it is kept for the next read.
    pub(super) buf: Option<Box<LentBuffer>>,
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if an empty window may be kept.
    pub(super) keeps: bool,
}

/// The first message in the window, after it was peeked.
#[derive(Debug)]
pub(super) struct FrontMessage {
    /// Its length in bytes. 0 before it was peeked.
    pub(super) len: usize,
    /// True if it is handed out before its payload, of which [`SkippedMessage::left`] bytes are received as a
    /// stream.
    pub(super) streams: bool,
    /// True if further pieces of it follow.
    pub(super) has_more: bool,
}

/// The sizes of earlier messages, from which those of the next ones are guessed.
#[derive(Debug)]
pub(super) struct SizeHints {
    /// The size of the last deposited message. The next one is expected to have the same size.
    pub(super) expected: usize,
    /// The size of the last message received in pieces, if messages arrive so. Then `expected` is the size of
    /// its first piece.
    pub(super) expected_total: usize,
    /// The size of the first piece of the current message, if that is large.
    pub(super) first_piece: usize,
    /// The size of the largest message received whole.
    pub(super) largest: usize,
    /// The number of bytes of the last message with a list that were read before its first block. 0 if the
    /// peer has sent no list.
    pub(super) read_ahead: usize,
}

/// The payload that is received as a stream, and the messages that are selected for it.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// Selects the requests that are handed out before their payload is received.
    pub(super) selector: Option<Arc<dyn Streams>>,
    pub(super) current: Option<Box<Stream>>,
    /// True if the last message was a stream. Of the next one, only as much is read as shows whether it is a
    /// stream too.
    pub(super) follows: bool,
    /// The maximum size of a request's payload that may be streamed.
    pub(super) max: u64,
    /// The reply whose results are taken as a stream.
    pub(super) reply: Option<ReplyStream>,
    /// The calls whose replies are forwarded in encoded form.
    pub(super) passed: HashSet<RequestId>,
    /// True if large messages are read into their final position. Otherwise only messages in one piece are
    /// streamed, and nothing is lent.
    pub(super) deposits: bool,
    /// True if the fragments of a GIOP 1.1 request are, or may become, those of a stream. They then wait for
    /// a position like those of GIOP 1.2, and no other stream starts.
    pub(super) has_nameless: bool,
    /// Memory that was lent for the stream.
    pub(super) place: LoanPlace,
    /// Loans that were returned after their stream was given up.
    #[expect(clippy::vec_box, reason = "the boxes go round")]
    pub(crate) dead: Vec<Box<Loan>>,
}

/// An oversized message, whose bytes are discarded.
#[derive(Debug)]
pub(super) struct SkippedMessage {
    /// Bytes of an oversized message that are still to be received.
    pub(super) left: usize,
    /// The size of that message.
    pub(super) size: usize,
    pub(super) total: u64,
}

/// The memory of a receiver: its share of the pool, and the boxes in which buffers are lent.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(super) pool: Arc<BufferPool>,
    /// True if the pool has no memory for the current message.
    pub(super) starved: bool,
    /// True if memory must be provided because this side awaits replies.
    pub(super) urgent: bool,
    /// True if it is the receiver that may take memory beyond the cap.
    pub(super) overdraws: bool,
    /// Empty boxes. There are at most two: one with a window, one with a deposit.
    pub(super) idle: [Option<Box<LentBuffer>>; 2],
    /// The number of bytes that were copied in user space.
    pub(super) copied: u64,
}

//! The parts of a receiver's state.

use std::sync::Arc;

use super::lent::Lent;
use super::place::{Loan, Place};
use super::stream::Stream;
use super::stream_start::{ReplyStream, Streams};

/// The last window, and how far it is processed.
#[derive(Debug)]
pub(super) struct Window {
    /// Its bytes `from..to` are not processed yet. If there are none, it is kept for the next read.
    pub(super) buf: Option<Box<Lent>>,
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if an empty window may be kept.
    pub(super) keeps: bool,
}

/// The first message in the window, after it was peeked.
#[derive(Debug)]
pub(super) struct Front {
    /// Its length in bytes. 0 before it was peeked.
    pub(super) len: usize,
    /// True if it is handed out before its payload, of which [`Skipping::left`] bytes are received as a
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

/// Fragments that are read into the buffer of their whole message.
#[derive(Debug)]
pub(super) struct Placing {
    /// A partly received fragment waits for its position.
    pub(super) is_due: bool,
    /// Fragments of GIOP 1.1 wait for their position as well.
    pub(super) of_giop_1_1: bool,
}

/// Messages that are handed out before they are received.
#[derive(Debug)]
pub(super) struct Streaming {
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
    /// Memory that was lent for the stream.
    pub(super) place: Place,
    /// Loans that were returned after their stream was given up.
    #[expect(clippy::vec_box, reason = "the boxes go round")]
    pub(super) dead: Vec<Box<Loan>>,
}

/// An oversized message, whose bytes are discarded.
#[derive(Debug)]
pub(super) struct Skipping {
    /// Bytes of an oversized message that are still to be received.
    pub(super) left: usize,
    /// The size of that message.
    pub(super) size: usize,
    pub(super) total: u64,
}

/// The state of the receiver towards the pool.
#[derive(Debug)]
pub(super) struct MemoryNeeds {
    /// True if the pool has no memory for the current message.
    pub(super) starved: bool,
    /// True if memory must be provided because this side awaits replies.
    pub(super) urgent: bool,
    /// True if it is the receiver that may take memory beyond the cap.
    pub(super) overdraws: bool,
}

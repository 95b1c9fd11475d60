//! From bytes to whole messages: the read window, and direct deposit of large messages.
//!
//! Small messages are read many at a time into a pooled window of 64 KiB and handed out as views of it. A
//! message of at least [`DEPOSIT_MIN`] bytes that is incomplete is different. Its rest is read directly into
//! its final buffer, together with exactly one next header. A bulk message therefore costs one read and no
//! copy. Only its header and the part that was in the window already are moved once.
//!
//! The pieces of a GIOP 1.2 message are read in the same way into one buffer. An incomplete fragment waits
//! for its position after the pieces before it, and the sixteen bytes of its headers are read separately.
//!
//! *Memory.* Memory is granted to a message before its bytes are received. The grant is the maximum of
//! 64 KiB, four times its received size, and the size of the largest message completed on the connection. A
//! larger message gets untouched memory, which is charged to the pool as the grant grows, so that nothing is
//! moved. If the pool has no more, the receiver is *starved* until it is [retried](Receiver::retry).

mod blocks;
mod incomplete;
mod lent;
mod memory;
mod parts;
mod passing;
mod pieces;
mod place;
mod staged;
mod stream;
mod stream_pieces;
mod stream_start;

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use giop_codec::cdr::Segments;
use giop_codec::giop::MessageHeader;

use crate::error::ProtocolError;
pub use crate::frame::{DEPOSIT_MIN, Frame, HEADER_LEN, OVERSIZED_START, PIECE_HEADER_LEN};
use crate::frame::{JoinedMessage, MessageLayout};
use crate::pool::BufferPool;
use blocks::{BlockListSearch, MessageParts};
pub use lent::ReadBuf;
use lent::{Deposit, LentBuffer, NextHeader};
use parts::{FrontMessage, Memory, SizeHints, SkippedMessage, StreamState, Window};
use place::LoanPlace;
pub use place::{AlignedBuffer, DepositTarget, Loan, LoanReturn};

pub use stream::{CHUNK, Chunk};
use stream_start::Decision;
pub use stream_start::{STREAM_START, Streams};

/// Splits a stream of bytes into [`Frame`]s.
///
/// Call [`take_read_buf`](Self::take_read_buf), fill the buffer from the socket, and call
/// [`handle_read`](Self::handle_read). Then call [`peek`](Self::peek) and [`take_front`](Self::take_front)
/// until there is no message, and repeat.
#[derive(Debug)]
pub struct Receiver {
    max_message: usize,
    state: State,
    window: Window,
    front: FrontMessage,
    sizes: SizeHints,
    /// True if a partly received fragment waits for its position.
    has_unplaced: bool,
    /// True if large messages are read into their final position.
    deposits: bool,
    /// The incomplete message, while the window for its next bytes is with the reader. Used only if nothing
    /// is deposited.
    staged: Option<Box<LentBuffer>>,
    pub(crate) stream: StreamState,
    /// The message that is read part by part, without the current part.
    parted: Option<Box<MessageParts>>,
    /// The layout of the first message, if it was read part by part.
    segments: Option<Box<Segments>>,
    skip: SkippedMessage,
    /// While the buffer is lent: whether a message had started, and its size as far as it was known.
    lent: (bool, usize),
    pub(crate) memory: Memory,
}

#[derive(Debug)]
enum State {
    /// The unprocessed data is in the window.
    Window,
    /// The buffer is with the reader.
    Lent,
    /// A whole deposited message, and the part of the next header received with it.
    Whole { header: MessageHeader, octets: Bytes, next: NextHeader },
    /// A whole piece of a message, in the buffer that also receives the other pieces.
    Piece { header: MessageHeader, buf: Box<LentBuffer> },
    /// A header, or part of one, received after a deposited message or after a piece of one.
    Early { next: NextHeader, of_piece: bool },
    /// An incomplete message.
    Partial(Box<LentBuffer>),
}

impl Receiver {
    /// Creates a receiver of messages of up to `max_message` bytes, including the header. If `deposits` is
    /// false, everything is read through the window and copied into a buffer of its message.
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, max_message: usize, deposits: bool) -> Self {
        Self {
            max_message,
            state: State::Window,
            window: Window { buf: None, from: 0, to: 0, keeps: false },
            front: FrontMessage { len: 0, streams: false, has_more: false },
            sizes: SizeHints { expected: 0, expected_total: 0, first_piece: 0, largest: 0, read_ahead: 0 },
            has_unplaced: false,
            deposits,
            staged: None,
            stream: StreamState {
                selector: None,
                current: None,
                follows: false,
                max: 0,
                reply: None,
                passed: HashSet::new(),
                deposits,
                has_nameless: false,
                place: LoanPlace::Nowhere,
                dead: Vec::new(),
            },
            parted: None,
            segments: None,
            skip: SkippedMessage { left: 0, size: 0, total: 0 },
            lent: (false, 0),
            memory: Memory {
                pool,
                starved: false,
                urgent: false,
                overdraws: false,
                idle: [None, None],
                copied: 0,
            },
        }
    }

    /// Lets `streams` select requests with payloads of up to `max` bytes to be handed out before these are
    /// received.
    pub fn set_streams(&mut self, streams: Arc<dyn Streams>, max: u64) {
        (self.stream.selector, self.stream.max) = (Some(streams), max);
    }

    /// Returns whether large messages are read into their final position.
    #[inline]
    #[must_use]
    pub fn deposits(&self) -> bool {
        self.deposits
    }

    /// Returns the number of bytes that were copied in user space so far: the starts of deposited messages
    /// and the cut ends of windows. In a steady bulk stream only headers are copied.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.memory.copied
    }

    /// Returns the number of bytes of oversized messages and of unwanted fragments that were discarded.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skip.total
    }

    /// Returns whether a message is partly received.
    #[inline]
    #[must_use]
    pub fn is_mid_message(&self) -> bool {
        match &self.state {
            State::Window => {
                self.window.from < self.window.to || self.skip.left > 0 || self.stream.is_incomplete()
            }
            State::Whole { .. } | State::Piece { .. } => false,
            State::Lent => self.lent.0,
            State::Partial(_) => true,
            State::Early { next, .. } => next.len > 0 || self.skip.left > 0 || self.stream.is_incomplete(),
        }
    }

    /// Returns whether the header of a partly received message is complete.
    #[cold]
    pub(crate) fn has_header(&self) -> bool {
        match &self.state {
            State::Window => {
                self.window.to - self.window.from >= HEADER_LEN
                    || self.skip.left > 0
                    || self.stream.is_incomplete()
            }
            State::Partial(buf) => buf.deposit.is_some() || buf.from >= HEADER_LEN,
            State::Early { next, .. } => next.len >= HEADER_LEN,
            State::Lent | State::Whole { .. } | State::Piece { .. } => false,
        }
    }

    /// Returns whether a further whole message may follow. If none does, the last message should be served
    /// before the next one gets its buffer. The next one then reuses the buffer of the last one, which is
    /// still in the processor's cache.
    #[inline]
    #[must_use]
    pub fn may_hold_another(&self) -> bool {
        if !matches!(self.state, State::Window) {
            return !matches!(self.state, State::Early { .. });
        }
        let Some(window) = &self.window.buf else { return false };
        let rest = window.buffer.octets().get(self.window.from..self.window.to).unwrap_or_default();
        match rest.first_chunk().map(MessageHeader::decode) {
            None => false,
            Some(Ok(header)) => (header.size as usize).saturating_add(HEADER_LEN) <= rest.len(),
            Some(Err(_)) => true,
        }
    }

    /// Returns the size of the incomplete message, as far as it is known; 0 before that.
    #[must_use]
    pub fn announced(&self) -> usize {
        match &self.state {
            State::Partial(buf) => match &self.parted {
                Some(parted) => parted.total(),
                None => buf.deposit.map_or(0, |deposit| deposit.total),
            },
            State::Lent => self.lent.1,
            _ if self.skip.left > 0 => self.skip.size,
            _ => self.stream.size(),
        }
    }

    /// Returns the number of bytes that the current large message still needs, as far as memory for it is
    /// available. 0 if there is no such message.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> usize {
        match &self.state {
            State::Partial(buf) if buf.deposit.is_some() => buf.to - buf.from,
            State::Window => self.stream.loan_rest(),
            _ => 0,
        }
    }

    /// Returns whether an empty window is kept for the next read.
    #[inline]
    #[must_use]
    pub fn is_keeping(&self) -> bool {
        self.window.keeps
    }

    /// Returns the buffer for the next read. It must be returned by [`handle_read`](Self::handle_read).
    #[inline]
    #[must_use]
    pub fn take_read_buf(&mut self) -> ReadBuf {
        self.lent = (self.is_mid_message(), self.announced());
        if matches!(self.state, State::Window) {
            self.state = State::Lent;
            if self.stream.left() > 0 {
                self.chunk_buffer()
            } else if self.window.from == self.window.to && self.sizes.expected == 0 {
                self.empty_window()
            } else {
                self.window_with_rest()
            }
        } else {
            self.take_other_buf()
        }
    }

    /// Takes the buffer back with `n` more bytes in it.
    #[inline]
    pub fn handle_read(&mut self, buf: ReadBuf, n: usize) {
        let ReadBuf(mut buf) = buf;
        if let Some(message) = self.staged.take() {
            return self.read_staged(message, buf, n);
        }
        let filled = buf.from.saturating_add(n);
        if buf.deposit.is_some() {
            if self.stream.left() > 0 || buf.loan.is_some() {
                return self.read_chunk(buf, n);
            }
            if self.parted.is_some() {
                return self.read_part(buf, n);
            }
            self.deposited(buf, filled);
        } else if self.stream.left() > 0 {
            self.read_staged_chunk(buf, n);
        } else if buf.to == 0 {
            self.read_header(buf, n);
        } else if filled == 0 {
            if self.sizes.read_ahead > 0 && buf.to < buf.buffer.capacity() {
                self.sizes.expected = buf.to; // the expected message may still arrive
            }
            self.retire(buf);
            self.state = State::Window;
        } else {
            buf.from = filled.min(buf.to);
            self.window_filled(buf);
        }
    }

    /// Returns the header of the next message, if the message is complete, or too large and skipped. Its
    /// bytes are [`front`](Self::front) until [`take_front`](Self::take_front) takes them or
    /// [`drop_front`](Self::drop_front) drops them.
    ///
    /// # Errors
    /// [`ProtocolError`] if no message can follow: the stream is lost.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<MessageHeader>, ProtocolError> {
        if !matches!(self.state, State::Window) {
            return self.peek_deposited();
        }
        let Some(window) = &self.window.buf else { return Ok(None) };
        let rest = window.buffer.octets().get(self.window.from..self.window.to).unwrap_or_default();
        let Some(start) = rest.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let header = MessageHeader::decode(start)?;
        let total = (header.size as usize).saturating_add(HEADER_LEN);
        if total <= rest.len() && total <= self.max_message {
            self.front.len = total;
            return Ok(Some(if header.more_fragments { self.first_piece(header) } else { header }));
        }
        self.peek_incomplete(header)
    }

    /// Returns the bytes of the peeked message.
    #[inline]
    #[must_use]
    pub fn front(&self) -> &[u8] {
        match (&self.state, &self.window.buf) {
            (State::Window, Some(window)) => window
                .buffer
                .octets()
                .get(self.window.from..self.window.from + self.front.len)
                .unwrap_or_default(),
            (State::Whole { octets, .. }, _) => octets,
            (State::Piece { header, buf }, _) => {
                buf.buffer.octets().get(..HEADER_LEN + header.size as usize).unwrap_or_default()
            }
            (State::Early { next, .. }, _) => next.octets.get(..self.front.len).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Takes the peeked message with its layout.
    #[inline]
    pub(crate) fn take_joined(&mut self) -> JoinedMessage {
        let pieces = self.segments.take().map(|segments| Box::new(MessageLayout::Segments(segments)));
        JoinedMessage { octets: self.take_front(), pieces }
    }

    /// Takes the peeked message, as a view.
    #[inline]
    #[must_use]
    pub fn take_front(&mut self) -> Bytes {
        if let State::Window = self.state
            && let Some(window) = &self.window.buf
        {
            if !self.deposits {
                return self.copy_front();
            }
            let view = window.buffer.view(self.window.from..self.window.from + self.front.len);
            self.advance();
            return view;
        }
        self.take_deposited()
    }

    /// Drops the peeked message.
    #[inline]
    pub fn drop_front(&mut self) {
        (self.front.streams, self.front.has_more) = (false, false);
        if let State::Window = self.state { self.advance() } else { drop(self.take_deposited()) }
    }

    /// Advances past the first message in the window.
    #[inline]
    fn advance(&mut self) {
        let len = std::mem::take(&mut self.front.len);
        self.window.from += len;
        if len >= DEPOSIT_MIN && self.deposits {
            (self.sizes.expected, self.sizes.expected_total, self.sizes.largest) =
                (len, 0, self.sizes.largest.max(len));
        }
        if self.front.streams {
            self.begin_stream(len);
        } else if self.skip.left > 0 {
            self.skip_rest();
        }
        if self.window.from >= self.window.to {
            self.emptied();
        } else if len >= DEPOSIT_MIN && self.deposits {
            self.leave_window();
        }
    }

    fn take_deposited(&mut self) -> Bytes {
        match std::mem::replace(&mut self.state, State::Window) {
            State::Whole { octets, next, .. } => {
                self.segments = None;
                if self.window.from == self.window.to {
                    self.state = State::Early { next, of_piece: false };
                }
                if self.front.streams {
                    self.begin_stream(octets.len());
                }
                octets
            }
            State::Piece { header, mut buf } => {
                self.state = State::Early { next: buf.next, of_piece: true };
                let octets = self.memory.pool.share(std::mem::take(&mut buf.buffer));
                self.memory.keep_box(buf);
                if self.front.streams {
                    self.begin_stream(HEADER_LEN + header.size as usize);
                }
                octets.slice(..octets.len().min(HEADER_LEN + header.size as usize))
            }
            State::Early { next, .. } => {
                let len = std::mem::take(&mut self.front.len);
                self.state = State::Early { next: next.behind(len), of_piece: false };
                Bytes::copy_from_slice(next.octets.get(..len).unwrap_or_default())
            }
            other => {
                self.state = other;
                Bytes::new()
            }
        }
    }

    /// Continues to read into a window in which no message is complete, whatever the size of its message:
    /// nothing moves.
    #[inline]
    fn window_filled(&mut self, mut buf: Box<LentBuffer>) {
        if self.skip.left > 0 {
            return self.skip_window(buf);
        }
        let filled = buf.from;
        let start = buf.buffer.octets().first_chunk::<HEADER_LEN>();
        if filled < HEADER_LEN {
            self.state = State::Partial(buf);
            return;
        }
        if let Some(Ok(header)) = start.map(MessageHeader::decode) {
            let total = (header.size as usize).saturating_add(HEADER_LEN);
            let partial = filled < total && self.deposits;
            if partial && self.goes_on(&mut buf, header, total) {
                self.state = State::Partial(buf);
                return;
            }
        }
        self.cut_from(buf);
    }

    /// Returns whether the incomplete message at the start of the buffer is read on in place.
    fn goes_on(&self, buf: &mut LentBuffer, header: MessageHeader, total: usize) -> bool {
        let here = buf.buffer.octets().get(..buf.from).unwrap_or_default();
        match self.stream.decide(&header, total, here) {
            Decision::Wait => buf.from < buf.to,
            Decision::Stream => false,
            Decision::Whole if total > self.max_message => false,
            Decision::Whole if total < DEPOSIT_MIN => {
                // If only the header of a large message was read, there may still be room for a small one.
                let fits = total <= buf.buffer.capacity();
                buf.to = if fits { buf.to.max(total) } else { buf.to };
                buf.buffer.open(buf.to);
                fits
            }
            Decision::Whole if self.waits_for_place(&header) => false,
            Decision::Whole => match self.find_blocks(&header, total, here) {
                BlockListSearch::Wait => buf.from < buf.to,
                BlockListSearch::No if total <= buf.buffer.capacity() => {
                    buf.deposit = Some(Deposit { header, total });
                    buf.to = total;
                    buf.buffer.open(total);
                    true
                }
                BlockListSearch::No | BlockListSearch::List(_) => false,
            },
        }
    }

    /// Leaves a filled buffer to be split into messages.
    #[inline]
    fn cut_from(&mut self, mut buf: Box<LentBuffer>) {
        (self.window.from, self.window.to) = (0, buf.from);
        buf.buffer.freeze();
        // A window may have been kept while large messages bypassed it.
        if let Some(kept) = self.window.buf.replace(buf) {
            self.memory.give_back(kept);
        }
        self.state = State::Window;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.clear();
    }
}

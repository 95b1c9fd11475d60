//! [`Receiver`]: splits received bytes into messages.
//!
//! Small messages are read many at a time into a pooled window of 64 KiB, and are views of it. The rest of an
//! incomplete message of at least [`MIN_DEPOSIT_SIZE`] bytes is *deposited*: it is read directly into the
//! final buffer of the message, together with exactly one next header. A bulk message therefore costs one
//! read and no copy. Only its part that was in the window already is moved once.
//!
//! The pieces of a GIOP 1.2 message are read in the same way into one buffer. An incomplete fragment waits
//! for its position after the pieces before it, and the sixteen bytes of its headers are read separately.
//!
//! *Memory.* Memory is granted to a message before its bytes are received. The grant is the maximum of 64
//! KiB, four times its received size, and the size of the largest message completed on the connection. The
//! buffer of a larger message reserves address space for all of it and is charged to the pool as the grant
//! grows, so that nothing is moved. Without memory in the pool, the receiver is *starved* until a retry.

mod blocks;
mod incomplete;
mod lent;
mod memory;
mod parts;
mod pieces;
mod place;
mod staged;
mod stream;
mod stream_pieces;
mod stream_start;

use std::sync::Arc;

use bytes::Bytes;
use giop_codec::cdr::Segments;
use giop_codec::giop::MessageHeader;

use crate::error::ProtocolError;
pub use crate::frame::{HEADER_LEN, MIN_DEPOSIT_SIZE, OVERSIZED_START_LEN, PIECE_HEADER_LEN};
use crate::frame::{JoinedMessage, MessageLayout};
use crate::pool::BufferPool;
use blocks::{BlockListSearch, MessageParts};
pub use lent::ReadBuf;
use lent::{Deposit, LentBuffer, NextHeader};
use parts::{FrontMessage, Memory, SizeHints, SkippedMessage, StreamState, Window};
pub use place::{AlignedBuffer, DepositTarget, Loan, LoanReturn};

pub use stream::{Chunk, MAX_CHUNK_SIZE};
use stream_start::Decision;
pub use stream_start::{STREAM_START_LEN, Streams};

/// Splits a stream of bytes into messages.
///
/// Call [`take_read_buf`](Self::take_read_buf), fill the buffer from the socket, and call
/// [`handle_read`](Self::handle_read). Then call [`peek`](Self::peek) and [`take_front`](Self::take_front)
/// until there is no message, and repeat.
#[derive(Debug)]
pub struct Receiver {
    max_message_size: usize,
    state: State,
    pub(crate) window: Window,
    pub(crate) front: FrontMessage,
    sizes: SizeHints,
    /// True if a partly received fragment waits for its position.
    has_unplaced_fragment: bool,
    /// True if large messages are read into their final position.
    pub(crate) deposits: bool,
    /// The incomplete message, while a window for its next bytes is lent. Used only if nothing is deposited.
    staged: Option<Box<LentBuffer>>,
    pub(crate) stream: StreamState,
    /// The message that is read part by part. Its current part is in `state`.
    partial_message: Option<Box<MessageParts>>,
    /// The layout of the complete message in `state`, if it was read part by part.
    segments: Option<Box<Segments>>,
    pub(crate) skip: SkippedMessage,
    /// While the buffer is lent: whether a message is incomplete, and its size as far as it is known.
    lent_message: (bool, usize),
    pub(crate) memory: Memory,
}

#[derive(Debug)]
enum State {
    Window,
    Lent,
    /// A whole deposited message, and the part of the next header received with it.
    Whole {
        header: MessageHeader,
        bytes: Bytes,
        next: NextHeader,
    },
    /// A whole piece of a message, in the buffer that also receives the other pieces.
    Piece {
        header: MessageHeader,
        buf: Box<LentBuffer>,
    },
    /// A header, or part of one, received after a deposited message or after a piece of one.
    Early {
        next: NextHeader,
        after_piece: bool,
    },
    Partial(Box<LentBuffer>),
}

impl Receiver {
    /// Creates a receiver of messages of up to `max_message_size` bytes, including the header. If `deposits`
    /// is false, everything is read through the window and copied into the buffer of its message.
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, max_message_size: usize, deposits: bool) -> Self {
        Self {
            max_message_size,
            state: State::Window,
            window: Window::default(),
            front: FrontMessage::default(),
            sizes: SizeHints::default(),
            has_unplaced_fragment: false,
            deposits,
            staged: None,
            stream: StreamState { deposits, ..StreamState::default() },
            partial_message: None,
            segments: None,
            skip: SkippedMessage::default(),
            lent_message: (false, 0),
            memory: Memory {
                pool,
                starved: false,
                largest_received: 0,
                urgent: false,
                is_overdrawn: false,
                idle: [None, None],
                copied: 0,
            },
        }
    }

    #[inline]
    pub(crate) fn is_mid_message(&self) -> bool {
        match &self.state {
            State::Window => {
                self.window.start < self.window.end || self.skip.left > 0 || self.stream.is_incomplete()
            }
            State::Whole { .. } | State::Piece { .. } => false,
            State::Lent => self.lent_message.0,
            State::Partial(_) => true,
            State::Early { next, .. } => next.len > 0 || self.skip.left > 0 || self.stream.is_incomplete(),
        }
    }

    /// Returns whether the header of a partly received message is complete.
    #[cold]
    pub(crate) fn has_header(&self) -> bool {
        match &self.state {
            State::Window => {
                self.window.end - self.window.start >= HEADER_LEN
                    || self.skip.left > 0
                    || self.stream.is_incomplete()
            }
            State::Partial(buf) => buf.deposit.is_some() || buf.filled >= HEADER_LEN,
            State::Early { next, .. } => next.len >= HEADER_LEN,
            State::Lent | State::Whole { .. } | State::Piece { .. } => false,
        }
    }

    /// Returns whether a further whole message may have been received. If not, the last message should be
    /// served before the next read, so that the next message reuses its buffer, which is still in the
    /// processor's cache.
    #[inline]
    pub(crate) fn may_hold_another(&self) -> bool {
        if !matches!(self.state, State::Window) {
            return !matches!(self.state, State::Early { .. });
        }
        let rest = self.unprocessed();
        match rest.first_chunk().map(MessageHeader::decode) {
            None => false,
            Some(Ok(header)) => (header.size as usize).saturating_add(HEADER_LEN) <= rest.len(),
            Some(Err(_)) => true,
        }
    }

    /// Returns the size of the incomplete message. 0 if it is not known yet.
    pub fn announced(&self) -> usize {
        match &self.state {
            State::Partial(buf) => match &self.partial_message {
                Some(partial_message) => partial_message.total(),
                None => buf.deposit.map_or(0, |deposit| deposit.total),
            },
            State::Lent => self.lent_message.1,
            _ if self.skip.left > 0 => self.skip.size,
            _ => self.stream.size(),
        }
    }

    /// Returns the number of granted bytes that the current large message still lacks, or 0.
    #[inline]
    pub fn rest(&self) -> usize {
        match &self.state {
            State::Partial(buf) if buf.deposit.is_some() => buf.end - buf.filled,
            State::Window => self.stream.loan_rest(),
            _ => 0,
        }
    }

    /// Returns the buffer for the next read. It must be returned by [`handle_read`](Self::handle_read).
    #[inline]
    #[must_use]
    pub fn take_read_buf(&mut self) -> ReadBuf {
        self.lent_message = (self.is_mid_message(), self.announced());
        if matches!(self.state, State::Window) {
            self.state = State::Lent;
            if self.stream.left() > 0 {
                self.chunk_buffer()
            } else if self.window.start == self.window.end && self.sizes.expected == 0 {
                self.empty_window()
            } else {
                self.window_with_rest()
            }
        } else {
            self.take_other_buf()
        }
    }

    /// Takes the buffer back with `n` more bytes.
    #[inline]
    pub fn handle_read(&mut self, buf: ReadBuf, n: usize) {
        let ReadBuf(mut buf) = buf;
        if let Some(message) = self.staged.take() {
            return self.read_staged(message, buf, n);
        }
        let filled = buf.filled.saturating_add(n);
        if buf.deposit.is_some() {
            if self.stream.left() > 0 || buf.loan.is_some() {
                return self.read_chunk(buf, n);
            }
            if self.partial_message.is_some() {
                return self.read_part(buf, n);
            }
            self.read_deposit(buf, filled);
        } else if self.stream.left() > 0 {
            self.read_staged_chunk(buf, n);
        } else if buf.end == 0 {
            self.read_header(buf, n);
        } else if filled == 0 {
            if self.sizes.read_ahead > 0 && buf.end < buf.buffer.capacity() {
                self.sizes.expected = buf.end; // the expected message may still be received
            }
            self.keep_or_return_window(buf);
            self.state = State::Window;
        } else {
            buf.filled = filled.min(buf.end);
            self.handle_filled_window(buf);
        }
    }

    /// Returns the header of the next message, if it is complete, or too large and skipped.
    ///
    /// # Errors
    /// [`ProtocolError`] if no further message can be found in the stream.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<MessageHeader>, ProtocolError> {
        if !matches!(self.state, State::Window) {
            return self.peek_deposited();
        }
        let rest = self.unprocessed();
        let Some(start) = rest.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let header = MessageHeader::decode(start)?;
        let total = (header.size as usize).saturating_add(HEADER_LEN);
        if total <= rest.len() && total <= self.max_message_size {
            self.front.len = total;
            return Ok(Some(if header.more_fragments { self.first_piece(header) } else { header }));
        }
        self.peek_incomplete(header)
    }

    /// Returns the bytes of the peeked message.
    #[inline]
    pub(crate) fn front(&self) -> &[u8] {
        match (&self.state, &self.window.buf) {
            (State::Window, Some(window)) => window
                .buffer
                .bytes()
                .get(self.window.start..self.window.start + self.front.len)
                .unwrap_or_default(),
            (State::Whole { bytes, .. }, _) => bytes,
            (State::Piece { header, buf }, _) => {
                buf.buffer.bytes().get(..HEADER_LEN + header.size as usize).unwrap_or_default()
            }
            (State::Early { next, .. }, _) => next.bytes.get(..self.front.len).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Returns the unprocessed bytes of the window.
    #[inline]
    fn unprocessed(&self) -> &[u8] {
        let window = self.window.buf.as_ref();
        let bytes = window.and_then(|window| window.buffer.bytes().get(self.window.start..self.window.end));
        bytes.unwrap_or_default()
    }

    #[inline]
    pub(crate) fn take_joined(&mut self) -> JoinedMessage {
        let layout = self.segments.take().map(|segments| Box::new(MessageLayout::Segments(segments)));
        JoinedMessage { bytes: self.take_front(), layout }
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
            let view = window.buffer.view(self.window.start..self.window.start + self.front.len);
            self.advance();
            return view;
        }
        self.take_deposited()
    }

    #[inline]
    pub(crate) fn drop_front(&mut self) {
        (self.front.streams, self.front.has_more) = (false, false);
        if let State::Window = self.state { self.advance() } else { drop(self.take_deposited()) }
    }

    #[inline]
    fn advance(&mut self) {
        let len = std::mem::take(&mut self.front.len);
        self.window.start += len;
        if len >= MIN_DEPOSIT_SIZE && self.deposits {
            (self.sizes.expected, self.sizes.expected_total) = (len, 0);
            self.memory.record_size(len);
        }
        if self.front.streams {
            self.begin_stream(len);
        } else if self.skip.left > 0 {
            self.skip_rest();
        }
        if self.window.start >= self.window.end {
            self.release_window();
        } else if len >= MIN_DEPOSIT_SIZE && self.deposits {
            self.leave_large_buffer();
        }
    }

    fn take_deposited(&mut self) -> Bytes {
        match std::mem::replace(&mut self.state, State::Window) {
            State::Whole { bytes, next, .. } => {
                self.segments = None;
                if self.window.start == self.window.end {
                    self.state = State::Early { next, after_piece: false };
                }
                if self.front.streams {
                    self.begin_stream(bytes.len());
                }
                bytes
            }
            State::Piece { header, mut buf } => {
                self.state = State::Early { next: buf.next, after_piece: true };
                let bytes = self.memory.pool.share(std::mem::take(&mut buf.buffer));
                self.memory.keep_box(buf);
                if self.front.streams {
                    self.begin_stream(HEADER_LEN + header.size as usize);
                }
                bytes.slice(..bytes.len().min(HEADER_LEN + header.size as usize))
            }
            State::Early { next, .. } => {
                let len = std::mem::take(&mut self.front.len);
                self.state = State::Early { next: next.without_first(len), after_piece: false };
                Bytes::copy_from_slice(next.bytes.get(..len).unwrap_or_default())
            }
            other => {
                self.state = other;
                Bytes::new()
            }
        }
    }

    /// Handles a filled window. If it starts with an incomplete message, it is filled further.
    #[inline]
    fn handle_filled_window(&mut self, mut buf: Box<LentBuffer>) {
        if self.skip.left > 0 {
            return self.skip_window(buf);
        }
        let filled = buf.filled;
        let start = buf.buffer.bytes().first_chunk::<HEADER_LEN>();
        if filled < HEADER_LEN {
            self.state = State::Partial(buf);
            return;
        }
        if let Some(Ok(header)) = start.map(MessageHeader::decode) {
            let total = (header.size as usize).saturating_add(HEADER_LEN);
            let partial = filled < total && self.deposits;
            if partial && self.continue_in_place(&mut buf, header, total) {
                self.state = State::Partial(buf);
                return;
            }
        }
        self.split_buffer(buf);
    }

    /// Returns whether reading continues in the buffer that starts with an incomplete message.
    fn continue_in_place(&self, buf: &mut LentBuffer, header: MessageHeader, total: usize) -> bool {
        let here = buf.buffer.bytes().get(..buf.filled).unwrap_or_default();
        match self.stream.decision_for(&header, total, here) {
            Decision::Wait => buf.filled < buf.end,
            Decision::Stream => false,
            Decision::Whole if total > self.max_message_size => false,
            Decision::Whole if total < MIN_DEPOSIT_SIZE => {
                // The limit for the header of a large message may still leave space for all of a small one.
                let fits = total <= buf.buffer.capacity();
                buf.end = if fits { buf.end.max(total) } else { buf.end };
                buf.buffer.make_writable(buf.end);
                fits
            }
            Decision::Whole if self.waits_for_place(&header) => false,
            Decision::Whole => match self.find_blocks(&header, total, here) {
                BlockListSearch::Wait => buf.filled < buf.end,
                BlockListSearch::No if total <= buf.buffer.capacity() => {
                    buf.deposit = Some(Deposit { header, total });
                    buf.end = total;
                    buf.buffer.make_writable(total);
                    true
                }
                BlockListSearch::No | BlockListSearch::List(_) => false,
            },
        }
    }

    /// Makes a filled buffer the window, to be split into messages.
    #[inline]
    fn split_buffer(&mut self, mut buf: Box<LentBuffer>) {
        (self.window.start, self.window.end) = (0, buf.filled);
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

//! [`Receiver`]: splits received bytes into messages.
//!
//! Small messages are read many at a time into the *window*, a buffer of the pool that has 64 KiB, and are
//! views of it. The rest of an incomplete message of at least [`MIN_DEPOSIT_SIZE`] bytes is *deposited*: it
//! is read directly into the final buffer of the message, together with the header of the next message. A
//! large message therefore costs few reads. Only the bytes that were already in the window are copied.
//!
//! A fragmented message consists of *pieces*: its first message, and its fragments. The pieces of a GIOP 1.2
//! message are read in the same way, one after the other into one buffer. Because the fragments of several
//! messages may alternate, the payload of an incomplete fragment is not read until the connection has
//! placed it (`Receiver::place`). Its headers, sixteen bytes, are read separately.
//!
//! A sender may list the *blocks* of bulk data in a message. Each block of a large message is then read into
//! a buffer of its own (`blocks.rs`).
//!
//! *Memory.* A message may occupy only the memory that is granted to it. The grant is the maximum of 64 KiB,
//! four times its received size, and the size of the largest message completed on the connection. The buffer
//! of a larger message reserves address space for all of it, so that it never moves, and is charged to the
//! pool as the grant grows. If the pool has no memory, the receiver is *starved*: it does not read until
//! `Receiver::retry_memory` succeeds.

mod blocks;
mod copying;
mod incomplete;
mod loan;
mod memory;
mod pieces;
mod read_buf;
mod receiver_state;
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
pub use loan::{AlignedBuffer, DepositTarget, Loan, LoanReturn};
pub use read_buf::ReadBuf;
use read_buf::{Deposit, LentBuffer, NextHeader};
use receiver_state::{FrontMessage, Memory, SizeHints, SkippedMessage, StreamState, Window};

pub use stream::{Chunk, MAX_CHUNK_SIZE};
use stream_start::Decision;
pub use stream_start::{STREAM_START_LEN, StreamSelector};

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
    /// True if the connection must be asked where the payload of a partly received fragment belongs.
    has_unplaced_fragment: bool,
    /// True if large messages are read directly into their final buffer.
    pub(crate) deposits_enabled: bool,
    /// The incomplete message to which the bytes of the lent window will be appended. Always `None` if
    /// `deposits_enabled` is true.
    append_target: Option<Box<LentBuffer>>,
    pub(crate) stream: StreamState,
    /// The message whose parts are read into separate buffers (`blocks.rs`). Its current part is in `state`.
    message_in_parts: Option<Box<MessageParts>>,
    /// The buffers of the complete message in `state`, if its parts were read into separate buffers.
    segments: Option<Box<Segments>>,
    pub(crate) skip: SkippedMessage,
    lent_message: LentMessage,
    pub(crate) memory: Memory,
}

/// What is known of an incomplete message while its buffer is lent.
#[derive(Debug, Default)]
struct LentMessage {
    is_incomplete: bool,
    /// The result of [`Receiver::announced_size`] before the buffer was lent.
    size: usize,
}

/// Where the received bytes are that have not been handed out.
#[derive(Debug)]
enum State {
    Window,
    Lent,
    /// A complete deposited message, and the part of the next header received with it.
    CompleteMessage {
        header: MessageHeader,
        bytes: Bytes,
        next: NextHeader,
    },
    /// A complete piece of a message, in the buffer that also receives the other pieces.
    CompletePiece {
        header: MessageHeader,
        buf: Box<LentBuffer>,
    },
    /// A header, or part of one, received with the deposited message or piece before it.
    NextHeader {
        next: NextHeader,
        /// True if a fragment of the preceding message is expected next. Another message may follow all the
        /// same.
        expects_fragment: bool,
    },
    /// In the buffer of an incomplete message.
    Incomplete(Box<LentBuffer>),
}

impl Receiver {
    /// Creates a receiver of messages of up to `max_message_size` bytes, including the header. If
    /// `deposits_enabled` is false, everything is read into the window, and each message is copied out of it.
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, max_message_size: usize, deposits_enabled: bool) -> Self {
        Self {
            max_message_size,
            state: State::Window,
            window: Window::default(),
            front: FrontMessage::default(),
            sizes: SizeHints::default(),
            has_unplaced_fragment: false,
            deposits_enabled,
            append_target: None,
            stream: StreamState { deposits_enabled, ..StreamState::default() },
            message_in_parts: None,
            segments: None,
            skip: SkippedMessage::default(),
            lent_message: LentMessage::default(),
            memory: Memory {
                pool,
                starved: false,
                largest_received: 0,
                urgent: false,
                is_overdrawn: false,
                idle_boxes: [None, None],
                copied_bytes: 0,
            },
        }
    }

    #[inline]
    pub(crate) fn is_mid_message(&self) -> bool {
        match &self.state {
            State::Window => {
                self.window.start < self.window.end || self.skip.left > 0 || self.stream.is_incomplete()
            }
            State::CompleteMessage { .. } | State::CompletePiece { .. } => false,
            State::Lent => self.lent_message.is_incomplete,
            State::Incomplete(_) => true,
            State::NextHeader { next, .. } => {
                next.len > 0 || self.skip.left > 0 || self.stream.is_incomplete()
            }
        }
    }

    /// Returns whether the header of a partly received message is complete. `false` while the buffer is lent.
    #[cold]
    pub(crate) fn has_header(&self) -> bool {
        match &self.state {
            State::Window => {
                self.window.end - self.window.start >= HEADER_LEN
                    || self.skip.left > 0
                    || self.stream.is_incomplete()
            }
            State::Incomplete(buf) => buf.deposit.is_some() || buf.filled >= HEADER_LEN,
            State::NextHeader { next, .. } => next.len >= HEADER_LEN,
            State::Lent | State::CompleteMessage { .. } | State::CompletePiece { .. } => false,
        }
    }

    /// Returns whether a further complete message may have been received. If not, the last message should be
    /// processed before the next read, so that the next one reuses its buffer, which is still in the cache.
    #[inline]
    pub(crate) fn may_hold_another(&self) -> bool {
        if !matches!(self.state, State::Window) {
            return !matches!(self.state, State::NextHeader { .. });
        }
        let rest = self.unprocessed();
        match rest.first_chunk().map(MessageHeader::decode) {
            None => false,
            Some(Ok(header)) => (header.size as usize).saturating_add(HEADER_LEN) <= rest.len(),
            Some(Err(_)) => true,
        }
    }

    /// Returns the size in bytes of the incomplete message, if it is streamed, skipped, or received into
    /// buffers of its own. Otherwise 0.
    pub fn announced_size(&self) -> usize {
        match &self.state {
            State::Incomplete(buf) => match &self.message_in_parts {
                Some(message_in_parts) => message_in_parts.total(),
                None => buf.deposit.map_or(0, |deposit| deposit.total),
            },
            State::Lent => self.lent_message.size,
            _ if self.skip.left > 0 => self.skip.size,
            _ => self.stream.size(),
        }
    }

    /// Returns the number of missing bytes of the current large message for which memory is granted.
    #[inline]
    pub fn granted_missing_bytes(&self) -> usize {
        match &self.state {
            State::Incomplete(buf) if buf.deposit.is_some() => buf.end - buf.filled,
            State::Window => self.stream.loan_rest(),
            _ => 0,
        }
    }

    /// Returns the buffer for the next read. It must be given back with [`handle_read`](Self::handle_read).
    #[inline]
    #[must_use]
    pub fn take_read_buf(&mut self) -> ReadBuf {
        self.lent_message = LentMessage { is_incomplete: self.is_mid_message(), size: self.announced_size() };
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

    /// Takes the buffer back after `n` bytes have been read into it.
    #[inline]
    pub fn handle_read(&mut self, buf: ReadBuf, n: usize) {
        let ReadBuf(mut buf) = buf;
        if let Some(message) = self.append_target.take() {
            return self.append_from_window(message, buf, n);
        }
        let filled = buf.filled.saturating_add(n);
        if buf.deposit.is_some() {
            if self.stream.left() > 0 || buf.loan.is_some() {
                return self.read_chunk(buf, n);
            }
            if self.message_in_parts.is_some() {
                return self.read_part(buf, n);
            }
            self.read_deposit(buf, filled);
        } else if self.stream.left() > 0 {
            self.read_chunk_from_window(buf, n);
        } else if buf.end == 0 {
            self.read_header(buf, n);
        } else if filled == 0 {
            if self.sizes.len_before_first_block > 0 && buf.end < buf.buffer.capacity() {
                // Only the bytes before the first block were requested, because a large message is expected.
                // Nothing was read, so it is still expected.
                self.sizes.expected = buf.end;
            }
            self.keep_or_return_window(buf);
            self.state = State::Window;
        } else {
            buf.filled = filled.min(buf.end);
            self.handle_filled_window(buf);
        }
    }

    /// Returns the header of the next message, if it is complete, or if its rest is streamed or skipped.
    ///
    /// # Errors
    /// [`ProtocolError`] if no further message can be found in the stream.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<MessageHeader>, ProtocolError> {
        if !matches!(self.state, State::Window) {
            return self.peek_outside_window();
        }
        let rest = self.unprocessed();
        let Some(start) = rest.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let header = MessageHeader::decode(start)?;
        let total = (header.size as usize).saturating_add(HEADER_LEN);
        if total <= rest.len() && total <= self.max_message_size {
            self.front.len = total;
            return Ok(Some(if header.more_fragments { self.header_of_first_piece(header) } else { header }));
        }
        self.peek_incomplete(header)
    }

    /// Returns the bytes of the message that [`peek`](Self::peek) found.
    #[inline]
    pub(crate) fn front(&self) -> &[u8] {
        match (&self.state, &self.window.buf) {
            (State::Window, Some(window)) => window
                .buffer
                .bytes()
                .get(self.window.start..self.window.start + self.front.len)
                .unwrap_or_default(),
            (State::CompleteMessage { bytes, .. }, _) => bytes,
            (State::CompletePiece { header, buf }, _) => {
                buf.buffer.bytes().get(..HEADER_LEN + header.size as usize).unwrap_or_default()
            }
            (State::NextHeader { next, .. }, _) => next.bytes.get(..self.front.len).unwrap_or_default(),
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

    /// Takes the peeked message. A large message is not copied, unless `deposits_enabled` is false.
    #[inline]
    #[must_use]
    pub fn take_front(&mut self) -> Bytes {
        if let State::Window = self.state
            && let Some(window) = &self.window.buf
        {
            if !self.deposits_enabled {
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
        (self.front.is_streamed, self.front.has_more_pieces) = (false, false);
        if let State::Window = self.state { self.advance() } else { drop(self.take_deposited()) }
    }

    #[inline]
    fn advance(&mut self) {
        let len = std::mem::take(&mut self.front.len);
        self.window.start += len;
        if len >= MIN_DEPOSIT_SIZE && self.deposits_enabled {
            (self.sizes.expected, self.sizes.expected_total) = (len, 0);
            self.memory.record_size(len);
        }
        if self.front.is_streamed {
            self.begin_stream(len);
        } else if self.skip.left > 0 {
            self.skip_rest();
        }
        if self.window.start >= self.window.end {
            self.release_window();
        } else if len >= MIN_DEPOSIT_SIZE && self.deposits_enabled {
            self.leave_large_buffer();
        }
    }

    fn take_deposited(&mut self) -> Bytes {
        match std::mem::replace(&mut self.state, State::Window) {
            State::CompleteMessage { bytes, next, .. } => {
                self.segments = None;
                if self.window.start == self.window.end {
                    self.state = State::NextHeader { next, expects_fragment: false };
                }
                if self.front.is_streamed {
                    self.begin_stream(bytes.len());
                }
                bytes
            }
            State::CompletePiece { header, mut buf } => {
                self.state = State::NextHeader { next: buf.next, expects_fragment: true };
                let bytes = self.memory.pool.share(std::mem::take(&mut buf.buffer));
                self.memory.keep_box(buf);
                if self.front.is_streamed {
                    self.begin_stream(HEADER_LEN + header.size as usize);
                }
                bytes.slice(..bytes.len().min(HEADER_LEN + header.size as usize))
            }
            State::NextHeader { next, .. } => {
                let len = std::mem::take(&mut self.front.len);
                self.state = State::NextHeader { next: next.without_first(len), expects_fragment: false };
                Bytes::copy_from_slice(next.bytes.get(..len).unwrap_or_default())
            }
            other => {
                self.state = other;
                Bytes::new()
            }
        }
    }

    /// Handles a buffer into which bytes were read. If it starts with an incomplete message, the next read
    /// may continue in it. If not, it becomes the window.
    #[inline]
    fn handle_filled_window(&mut self, mut buf: Box<LentBuffer>) {
        if self.skip.left > 0 {
            return self.skip_window(buf);
        }
        let filled = buf.filled;
        let start = buf.buffer.bytes().first_chunk::<HEADER_LEN>();
        if filled < HEADER_LEN {
            self.state = State::Incomplete(buf);
            return;
        }
        if let Some(Ok(header)) = start.map(MessageHeader::decode) {
            let total = (header.size as usize).saturating_add(HEADER_LEN);
            let partial = filled < total && self.deposits_enabled;
            if partial && self.continue_in_place(&mut buf, header, total) {
                self.state = State::Incomplete(buf);
                return;
            }
        }
        self.split_buffer(buf);
    }

    /// Returns whether the next read can continue in `buf`, which starts with an incomplete message.
    fn continue_in_place(&self, buf: &mut LentBuffer, header: MessageHeader, total: usize) -> bool {
        let here = buf.buffer.bytes().get(..buf.filled).unwrap_or_default();
        match self.stream.decision_for(&header, total, here) {
            Decision::Wait => buf.filled < buf.end,
            Decision::Stream => false,
            Decision::Whole if total > self.max_message_size => false,
            Decision::Whole if total < MIN_DEPOSIT_SIZE => {
                // A small message may use the whole buffer, even if `end` was limited to a header.
                let fits = total <= buf.buffer.capacity();
                buf.end = if fits { buf.end.max(total) } else { buf.end };
                buf.buffer.make_writable(buf.end);
                fits
            }
            Decision::Whole if self.waits_for_place(&header) => false,
            Decision::Whole => match self.find_blocks(&header, total, here) {
                BlockListSearch::Incomplete => buf.filled < buf.end,
                BlockListSearch::NoList if total <= buf.buffer.capacity() => {
                    buf.deposit = Some(Deposit { header, total });
                    buf.end = total;
                    buf.buffer.make_writable(total);
                    true
                }
                BlockListSearch::NoList | BlockListSearch::List(_) => false,
            },
        }
    }

    /// Makes `buf` the window, from which messages are then taken.
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

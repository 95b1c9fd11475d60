//! From octets to whole messages: the read window, and direct deposit of large messages.
//!
//! Small messages are read many at a time into a pooled window of 64 KiB and handed out as views of it. When a
//! header announces more than [`DEPOSIT_MIN`] octets that are not there yet, the rest of the message is read
//! straight into its final buffer, together with exactly one next header, so that a bulk message costs one read
//! and no copy (what was in the window already, the header and a first part, is moved once).
//!
//! The pieces of a GIOP 1.2 message take the same way into one buffer: a fragment that is not all there waits for its
//! place behind the pieces before it, and the sixteen octets of its headers are read apart.
//!
//! *Memory.* Before its octets are there, a message is granted the greatest of 64 KiB, four times what has come of it and the
//! largest message completed on the connection. A larger one gets memory that nobody has touched yet, which is
//! charged to the pool as the grant grows: nothing moves. Where the pool has no more, the receiver is
//! [*starved*](Receiver::is_starved) until it is told to try again.

mod blocks;
mod incomplete;
mod lent;
mod memory;
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
use giop_codec::giop::{HeaderError, MessageHeader, RequestId};

use crate::pool::BufferPool;
use blocks::{Found, Parted};
pub use lent::ReadBuf;
use lent::{Deposit, Lent, Next};
use place::Place;
pub use place::{AlignedBuffer, DepositTarget, Loan, Returned};
use stream::Stream;
pub use stream::{CHUNK, Chunk};
use stream_start::{Decision, ReplyStream};
pub use stream_start::{STREAM_START, Streams};

/// The length of a GIOP message header.
pub const HEADER_LEN: usize = MessageHeader::LEN;

/// The length of the headers of a GIOP 1.2 fragment: message header and request id.
pub const PIECE_HEADER_LEN: usize = HEADER_LEN + 4;

/// A message of at least this many octets that has not arrived whole is read into a buffer of its own.
pub const DEPOSIT_MIN: usize = 16 * 1024;

/// What is kept of a message that is too large: enough to answer it (message header, request id, response flags).
pub const OVERSIZED_START: usize = HEADER_LEN + 5;

/// One whole GIOP message (or fragment), header included.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The decoded header.
    pub header: MessageHeader,
    /// The message from its first header octet; octet 0 is the CDR alignment origin. Of a message that is too large and
    /// skipped, its first [`OVERSIZED_START`] octets.
    pub octets: Bytes,
}

/// Why the stream of octets can not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The twelve octets where a header must stand are none.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The header announces more octets than the endpoint takes.
    #[error(
        "a message of {size} octets is over the limit of {limit}: raise it by `Limits::max_message_size`"
    )]
    TooLarge {
        /// The octets announced, header included.
        size: usize,
        /// The limit in force.
        limit: usize,
    },
}

/// Cuts a stream of octets into [`Frame`]s.
///
/// Call order: [`take_read_buf`](Self::take_read_buf), fill it from the socket,
/// [`handle_read`](Self::handle_read), then [`peek`](Self::peek) and [`take_front`](Self::take_front) until there is nothing, and again.
#[derive(Debug)]
pub struct Receiver {
    pool: Arc<BufferPool>,
    max_message: usize,
    state: State,
    /// The window read last. Octets `from..to` of it are not cut yet; without such, it is kept for the next read.
    window: Option<Box<Lent>>,
    from: usize,
    to: usize,
    /// The length of the message in front of the window, once it was peeked.
    front: usize,
    /// Whether an empty window may be kept at all.
    keeps: bool,
    /// The size of the last deposited message: the next one is expected to be like it.
    expect: usize,
    /// The size of the last message that came in pieces, if messages come so; then `expect` is that of its first piece.
    room: usize,
    /// The size of the first piece of the message at hand, where that is large.
    first: usize,
    /// The largest message that arrived whole.
    largest: usize,
    /// A fragment of which a part came waits for its place.
    unplaced: bool,
    /// Fragments of GIOP 1.1 do that as well.
    places_nameless: bool,
    /// Whether large messages are read to their place.
    deposits: bool,
    /// The message that is not complete, while the window for its next octets is with the reader: only where nothing is
    /// deposited.
    staged: Option<Box<Lent>>,
    /// Which requests are handed out before their payload is there.
    streams: Option<Arc<dyn Streams>>,
    /// The message in front is one of them; `skip` octets of it come as a stream.
    front_streams: bool,
    /// Further pieces of it follow.
    front_more: bool,
    stream: Option<Box<Stream>>,
    /// The message that is read part by part, but for the part at hand.
    parted: Option<Box<Parted>>,
    /// Where the octets of the message in front lie, if it came so.
    segments: Option<Box<Segments>>,
    /// How much of the last such message was read before its first block; 0 where the peer has sent none.
    head: usize,
    /// The calls whose replies are passed on as octets.
    passed: HashSet<RequestId>,
    /// The last message was a stream: of the next one no more is read than tells whether it is one as well.
    after_stream: bool,
    /// The largest payload of a request that may come as a stream.
    max_stream: u64,
    /// The reply whose results are taken as a stream.
    reply_stream: Option<ReplyStream>,
    /// Memory that was lent for the stream.
    place: Place,
    /// Loans that came back when nobody waited for them any more.
    #[expect(clippy::vec_box, reason = "the boxes go round")]
    dead: Vec<Box<Loan>>,
    /// Octets of an oversized message that are still to come.
    skip: usize,
    /// The size of that message.
    skip_size: usize,
    /// While the buffer is lent: whether a message had begun, and its size as far as that was known.
    lent: (bool, usize),
    /// The pool has no memory for the message at hand.
    starved: bool,
    /// Memory must be found: this side waits for replies.
    urgent: bool,
    /// It is the one that may take memory past the cap.
    overdraws: bool,
    /// Empty boxes. There are two at the most: one with a window, one with a deposit.
    idle: [Option<Box<Lent>>; 2],
    copied: u64,
    skipped: u64,
}

#[derive(Debug)]
enum State {
    /// What is not cut stands in the window.
    Window,
    /// The buffer is with the reader.
    Lent,
    /// A whole deposited message, and what of the next header came with it.
    Whole { header: MessageHeader, octets: Bytes, next: Next },
    /// A whole piece of a message, in the buffer that the others go to as well.
    Piece { header: MessageHeader, buf: Box<Lent> },
    /// A header, or part of one, that came behind a deposited message, or behind a piece of one.
    Early { next: Next, of_piece: bool },
    /// A message that is not complete.
    Partial(Box<Lent>),
}

impl Receiver {
    /// A receiver that takes messages of up to `max_message` octets, header included. Unless it `deposits`, everything is
    /// read through the window and copied into a buffer of its message.
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, max_message: usize, deposits: bool) -> Self {
        Self {
            pool,
            max_message,
            state: State::Window,
            window: None,
            from: 0,
            to: 0,
            front: 0,
            keeps: false,
            expect: 0,
            room: 0,
            first: 0,
            largest: 0,
            unplaced: false,
            places_nameless: false,
            deposits,
            staged: None,
            streams: None,
            front_streams: false,
            front_more: false,
            stream: None,
            parted: None,
            segments: None,
            head: 0,
            passed: HashSet::new(),
            after_stream: false,
            max_stream: 0,
            reply_stream: None,
            place: Place::Nowhere,
            dead: Vec::new(),
            skip: 0,
            skip_size: 0,
            lent: (false, 0),
            starved: false,
            urgent: false,
            overdraws: false,
            idle: [None, None],
            copied: 0,
            skipped: 0,
        }
    }

    /// Lets some requests with payloads of up to `max` octets be handed out before these are there.
    pub fn set_streams(&mut self, streams: Arc<dyn Streams>, max: u64) {
        (self.streams, self.max_stream) = (Some(streams), max);
    }

    /// Whether large messages are read to their place.
    #[inline]
    #[must_use]
    pub fn deposits(&self) -> bool {
        self.deposits
    }

    /// How many octets were copied inside user space so far: the starts of deposited messages and the cut ends of
    /// windows. In a steady bulk stream only headers are.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Counts octets that were copied into a lent buffer.
    pub(crate) fn count_copied(&mut self, octets: usize) {
        self.copied += octets as u64;
    }

    /// How many octets of oversized messages, and of fragments that nobody wants, were thrown away.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether octets of an incomplete message are waiting for the rest.
    #[inline]
    #[must_use]
    pub fn is_mid_message(&self) -> bool {
        match &self.state {
            State::Window => self.from < self.to || self.skip > 0 || self.is_mid_stream(),
            State::Whole { .. } | State::Piece { .. } => false,
            State::Lent => self.lent.0,
            State::Partial(_) => true,
            State::Early { next, .. } => next.len > 0 || self.skip > 0 || self.is_mid_stream(),
        }
    }

    /// Whether the header of a message is there whose rest is awaited.
    #[cold]
    pub(crate) fn has_header(&self) -> bool {
        match &self.state {
            State::Window => self.to - self.from >= HEADER_LEN || self.skip > 0 || self.is_mid_stream(),
            State::Partial(buf) => buf.deposit.is_some() || buf.from >= HEADER_LEN,
            State::Early { next, .. } => next.len >= HEADER_LEN,
            State::Lent | State::Whole { .. } | State::Piece { .. } => false,
        }
    }

    /// Whether a further whole message may stand in front. Where none does, whatever was taken last is served before the next
    /// message gets its buffer: that is then the buffer of the last one, which the processor's cache still has.
    #[inline]
    #[must_use]
    pub fn may_hold_another(&self) -> bool {
        if !matches!(self.state, State::Window) {
            return !matches!(self.state, State::Early { .. });
        }
        let Some(window) = &self.window else { return false };
        let rest = window.buffer.octets().get(self.from..self.to).unwrap_or_default();
        match rest.first_chunk().map(MessageHeader::decode) {
            None => false,
            Some(Ok(header)) => (header.size as usize).saturating_add(HEADER_LEN) <= rest.len(),
            Some(Err(_)) => true,
        }
    }

    /// The size of the message that is incomplete, as far as it is known; 0 before that.
    #[must_use]
    pub fn announced(&self) -> usize {
        match &self.state {
            State::Partial(_) if self.parted.is_some() => self.parted_total(),
            State::Partial(buf) => buf.deposit.map_or(0, |deposit| deposit.total),
            State::Lent => self.lent.1,
            _ if self.skip > 0 => self.skip_size,
            _ => self.stream_size(),
        }
    }

    /// How many octets the large message at hand still needs, as far as there is memory for it; 0 where there is none.
    #[inline]
    #[must_use]
    pub fn rest(&self) -> usize {
        match &self.state {
            State::Partial(buf) if buf.deposit.is_some() => buf.to - buf.from,
            State::Window => self.loan_rest(),
            _ => 0,
        }
    }

    /// Whether the pool has no memory to go on with: reading has to wait, then [`retry`](Self::retry).
    #[inline]
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// Says whether memory must be found, past the pool's cap if need be.
    #[inline]
    pub fn set_urgent(&mut self, urgent: bool) {
        self.urgent = urgent;
    }

    /// Whether an empty window is kept for the next read.
    #[inline]
    #[must_use]
    pub fn is_keeping(&self) -> bool {
        self.keeps
    }

    /// The buffer for the next read. It must come back by [`handle_read`](Self::handle_read).
    #[inline]
    #[must_use]
    pub fn take_read_buf(&mut self) -> ReadBuf {
        self.lent = (self.is_mid_message(), self.announced());
        if matches!(self.state, State::Window) {
            self.state = State::Lent;
            if self.stream_left() > 0 {
                self.chunk_buffer()
            } else if self.from == self.to && self.expect == 0 {
                self.empty_window()
            } else {
                self.window_with_rest()
            }
        } else {
            self.take_other_buf()
        }
    }

    /// Takes the buffer back with `n` more octets in it.
    #[inline]
    pub fn handle_read(&mut self, buf: ReadBuf, n: usize) {
        let ReadBuf(mut buf) = buf;
        if let Some(message) = self.staged.take() {
            return self.read_staged(message, buf, n);
        }
        let filled = buf.from.saturating_add(n);
        if buf.deposit.is_some() {
            if self.stream_left() > 0 || buf.loan.is_some() {
                return self.read_chunk(buf, n);
            }
            if self.parted.is_some() {
                return self.read_part(buf, n);
            }
            self.deposited(buf, filled);
        } else if self.stream_left() > 0 {
            self.read_staged_chunk(buf, n);
        } else if buf.to == 0 {
            self.read_header(buf, n);
        } else if filled == 0 {
            if self.head > 0 && buf.to < buf.buffer.capacity() {
                self.expect = buf.to; // what was expected may still come
            }
            self.retire(buf);
            self.state = State::Window;
        } else {
            buf.from = filled.min(buf.to);
            self.window_filled(buf);
        }
    }

    /// The header of the next message, if that is all there, or too large and skipped. Its octets are
    /// [`front`](Self::front) until [`take_front`](Self::take_front) takes them or [`drop_front`](Self::drop_front)
    /// drops them.
    ///
    /// # Errors
    /// [`FrameError`] when no message can follow: the stream is lost.
    #[inline]
    pub fn peek(&mut self) -> Result<Option<MessageHeader>, FrameError> {
        if !matches!(self.state, State::Window) {
            return self.peek_deposited();
        }
        let Some(window) = &self.window else { return Ok(None) };
        let rest = window.buffer.octets().get(self.from..self.to).unwrap_or_default();
        let Some(start) = rest.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let header = MessageHeader::decode(start)?;
        let total = (header.size as usize).saturating_add(HEADER_LEN);
        if total <= rest.len() && total <= self.max_message {
            self.front = total;
            return Ok(Some(if header.more_fragments { self.first_piece(header) } else { header }));
        }
        self.peek_incomplete(header)
    }

    /// The octets of the message that was peeked.
    #[inline]
    #[must_use]
    pub fn front(&self) -> &[u8] {
        match (&self.state, &self.window) {
            (State::Window, Some(window)) => {
                window.buffer.octets().get(self.from..self.from + self.front).unwrap_or_default()
            }
            (State::Whole { octets, .. }, _) => octets,
            (State::Piece { header, buf }, _) => {
                buf.buffer.octets().get(..HEADER_LEN + header.size as usize).unwrap_or_default()
            }
            (State::Early { next, .. }, _) => next.octets.get(..self.front).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Takes the message that was peeked, as a view.
    #[inline]
    #[must_use]
    pub fn take_front(&mut self) -> Bytes {
        if let State::Window = self.state
            && let Some(window) = &self.window
        {
            if !self.deposits {
                return self.copy_front();
            }
            let view = window.buffer.view(self.from..self.from + self.front);
            self.advance();
            return view;
        }
        self.take_deposited()
    }

    /// Drops the message that was peeked.
    #[inline]
    pub fn drop_front(&mut self) {
        (self.front_streams, self.front_more) = (false, false);
        if let State::Window = self.state { self.advance() } else { drop(self.take_deposited()) }
    }

    /// Goes behind the message in front of the window.
    #[inline]
    fn advance(&mut self) {
        let len = std::mem::take(&mut self.front);
        self.from += len;
        if len >= DEPOSIT_MIN && self.deposits {
            (self.expect, self.room, self.largest) = (len, 0, self.largest.max(len));
        }
        if self.front_streams {
            self.begin_stream(len);
        } else if self.skip > 0 {
            self.skip_rest();
        }
        if self.from >= self.to {
            self.emptied();
        } else if len >= DEPOSIT_MIN && self.deposits {
            self.leave_window();
        }
    }

    fn take_deposited(&mut self) -> Bytes {
        match std::mem::replace(&mut self.state, State::Window) {
            State::Whole { octets, next, .. } => {
                self.segments = None;
                if self.from == self.to {
                    self.state = State::Early { next, of_piece: false };
                }
                if self.front_streams {
                    self.begin_stream(octets.len());
                }
                octets
            }
            State::Piece { header, mut buf } => {
                self.state = State::Early { next: buf.next, of_piece: true };
                let octets = self.pool.share(std::mem::take(&mut buf.buffer));
                self.keep_box(buf);
                if self.front_streams {
                    self.begin_stream(HEADER_LEN + header.size as usize);
                }
                octets.slice(..octets.len().min(HEADER_LEN + header.size as usize))
            }
            State::Early { next, .. } => {
                let len = std::mem::take(&mut self.front);
                self.state = State::Early { next: next.behind(len), of_piece: false };
                Bytes::copy_from_slice(next.octets.get(..len).unwrap_or_default())
            }
            other => {
                self.state = other;
                Bytes::new()
            }
        }
    }

    /// A window in which no message is complete is read on in place, whatever its message's size: nothing moves.
    #[inline]
    fn window_filled(&mut self, mut buf: Box<Lent>) {
        if self.skip > 0 {
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

    /// Whether the message in front of the buffer, which is not all there, is read on where it is.
    fn goes_on(&self, buf: &mut Lent, header: MessageHeader, total: usize) -> bool {
        let here = buf.buffer.octets().get(..buf.from).unwrap_or_default();
        match self.decide(&header, total, here) {
            Decision::Wait => buf.from < buf.to,
            Decision::Stream => false,
            Decision::Whole if total > self.max_message => false,
            Decision::Whole if total < DEPOSIT_MIN => {
                // Where only the header of a large message was read, there may be room for a small one all the same.
                let fits = total <= buf.buffer.capacity();
                buf.to = if fits { buf.to.max(total) } else { buf.to };
                buf.buffer.open(buf.to);
                fits
            }
            Decision::Whole if self.waits_for_place(&header) => false,
            Decision::Whole => match self.find_blocks(&header, total, here) {
                Found::Wait => buf.from < buf.to,
                Found::No if total <= buf.buffer.capacity() => {
                    buf.deposit = Some(Deposit { header, total });
                    buf.to = total;
                    buf.buffer.open(total);
                    true
                }
                Found::No | Found::List(_) => false,
            },
        }
    }

    /// Leaves a filled buffer to be cut.
    #[inline]
    fn cut_from(&mut self, mut buf: Box<Lent>) {
        (self.from, self.to) = (0, buf.from);
        buf.buffer.freeze();
        // One may have been kept while large messages went past it.
        if let Some(kept) = self.window.replace(buf) {
            self.give_back(kept);
        }
        self.state = State::Window;
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.clear();
    }
}

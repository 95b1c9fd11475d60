//! From octets to whole messages: the read window, and direct deposit of large messages.
//!
//! Small messages are read many at a time into a pooled window of 64 KiB and handed out as views of it. When a
//! header announces more than [`DEPOSIT_MIN`] octets that are not there yet, the rest of the message is read
//! straight into its final buffer, together with exactly one next header, so that a bulk message costs one read
//! and no copy (what was in the window already, the header and a first part, is moved once).
//!
//! *Memory.* Before its octets are there, a message is granted the greatest of 64 KiB, four times what has come of it and the
//! largest message completed on the connection. A larger one gets memory that nobody has touched yet, which is
//! charged to the pool as the grant grows: nothing moves. Where the pool has no more, the receiver is
//! [*starved*](Receiver::is_starved) until it is told to try again.

use std::io::IoSliceMut;
use std::sync::Arc;

use bytes::Bytes;
use giop_codec::Version;
use giop_codec::giop::{HeaderError, MessageHeader, MessageType};

use crate::pool::{Buffer, BufferPool, Master, WINDOW};

/// The length of a GIOP message header.
pub const HEADER_LEN: usize = MessageHeader::LEN;

/// A message of at least this many octets that has not arrived whole is read into a buffer of its own.
pub const DEPOSIT_MIN: usize = 16 * 1024;

/// What is kept of a message that is too large: enough to answer it (message header, request id, response flags).
pub const OVERSIZED_START: usize = HEADER_LEN + 5;

/// The window of a receiver for which the pool has no memory.
const STARVED_WINDOW: usize = 4 * 1024;

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
/// [`handle_read`](Self::handle_read), then [`next_frame`](Self::next_frame) until it returns `None`, and again.
#[derive(Debug)]
pub struct Receiver {
    pool: Arc<BufferPool>,
    max_message: usize,
    state: State,
    /// The window read last. Octets `from..to` of it are not cut yet; without such, it is kept for the next read.
    window: Option<Master>,
    from: usize,
    to: usize,
    /// The length of the message in front of the window, once it was peeked.
    front: usize,
    /// Whether an empty window may be kept at all.
    keeps: bool,
    /// The size of the last deposited message: the next one is expected to be like it.
    expect: usize,
    /// The largest message that arrived whole.
    largest: usize,
    /// Octets of an oversized message that are still to come.
    skip: usize,
    /// The pool has no memory for the message at hand.
    starved: bool,
    /// Memory must be found: this side waits for replies.
    urgent: bool,
    copied: u64,
    skipped: u64,
}

/// A buffer lent to whoever reads from the socket.
#[derive(Debug)]
pub struct ReadBuf {
    buffer: Buffer,
    from: usize,
    to: usize,
    /// The message in `buffer`, where one is being deposited.
    deposit: Option<Deposit>,
    next: [u8; HEADER_LEN],
}

#[derive(Debug, Clone, Copy)]
struct Deposit {
    header: MessageHeader,
    total: usize,
}

#[derive(Debug)]
enum State {
    /// What is not cut stands in the window.
    Window,
    /// The buffer is with the reader.
    Lent,
    /// A whole deposited message, and how many octets of the next header came with it.
    Whole { header: MessageHeader, octets: Bytes, next: [u8; HEADER_LEN], next_len: usize },
    /// A header, or part of one, that came behind a deposited message.
    Early { next: [u8; HEADER_LEN], next_len: usize },
    /// A message that is not complete.
    Partial(ReadBuf),
}

/// What a header asks for.
enum Size {
    Fits(usize),
    /// Too large, but it can be answered and skipped.
    Skip(usize),
}

impl Receiver {
    /// A receiver that takes messages of up to `max_message` octets, header included.
    #[must_use]
    pub fn new(pool: Arc<BufferPool>, max_message: usize) -> Self {
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
            largest: 0,
            skip: 0,
            starved: false,
            urgent: false,
            copied: 0,
            skipped: 0,
        }
    }

    /// Where its buffers come from.
    #[must_use]
    pub fn pool(&self) -> &BufferPool {
        &self.pool
    }

    /// How many octets were copied inside user space so far: the starts of deposited messages and the cut ends of
    /// windows. In a steady bulk stream only headers are.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// How many octets of oversized messages were thrown away.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether octets of an incomplete message are waiting for the rest.
    #[inline]
    #[must_use]
    pub fn is_mid_message(&self) -> bool {
        match &self.state {
            State::Window => self.from < self.to || self.skip > 0,
            State::Whole { .. } => false,
            State::Lent | State::Partial(_) => true,
            State::Early { next_len, .. } => *next_len > 0,
        }
    }

    /// The size of the message that is incomplete, as far as it is known; 0 before that.
    #[must_use]
    pub fn announced(&self) -> usize {
        match &self.state {
            State::Partial(ReadBuf { deposit: Some(deposit), .. }) => deposit.total,
            _ => self.skip,
        }
    }

    /// Whether the pool has no memory to go on with: reading has to wait, then [`retry`](Self::retry).
    #[inline]
    #[must_use]
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// Tries again to get memory from the pool.
    #[cold]
    pub fn retry(&mut self) {
        self.starved = false;
        if let State::Partial(buf) = &mut self.state
            && buf.from == buf.to
        {
            self.starved = !grow(&self.pool, buf, grant(buf.from, self.largest), self.urgent);
        }
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

    /// Gives a kept window back to the pool.
    pub fn release(&mut self) {
        if self.keeps {
            self.keeps = false;
            self.pool.stop_keeping();
            if self.from == self.to
                && let Some(window) = self.window.take()
            {
                self.pool.park(window);
            }
        }
    }

    /// Forgets everything that was received, and gives all memory back.
    pub fn clear(&mut self) {
        self.release();
        (self.from, self.to, self.front, self.skip, self.starved) = (0, 0, 0, 0, false);
        if let Some(window) = self.window.take() {
            self.pool.park(window);
        }
        match std::mem::replace(&mut self.state, State::Window) {
            State::Partial(buf) => self.pool.give_back(buf.buffer),
            State::Lent => self.state = State::Lent,
            _ => {}
        }
    }

    /// The buffer for the next read. It must come back by [`handle_read`](Self::handle_read).
    #[inline]
    #[must_use]
    pub fn take_read_buf(&mut self) -> ReadBuf {
        if matches!(self.state, State::Window) {
            self.state = State::Lent;
            if self.from == self.to && self.expect == 0 {
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
    pub fn handle_read(&mut self, mut buf: ReadBuf, n: usize) {
        let filled = buf.from.saturating_add(n);
        if buf.deposit.is_some() {
            self.deposited(buf, filled);
        } else if filled == 0 {
            self.retire(buf.buffer.freeze());
            self.state = State::Window;
        } else {
            buf.from = filled.min(buf.to);
            self.window_filled(buf);
        }
    }

    /// The next whole message, `None` when more octets are needed.
    ///
    /// # Errors
    /// [`FrameError`] when no message can follow: the stream is lost.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        Ok(self.peek()?.map(|header| Frame { header, octets: self.take_front() }))
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
        let rest = window.octets().get(self.from..self.to).unwrap_or_default();
        let Some(start) = rest.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let header = MessageHeader::decode(start)?;
        let total = (header.size as usize).saturating_add(HEADER_LEN);
        if total <= rest.len() && total <= self.max_message {
            self.front = total;
            return Ok(Some(header));
        }
        self.peek_incomplete(header)
    }

    /// The octets of the message that was peeked.
    #[inline]
    #[must_use]
    pub fn front(&self) -> &[u8] {
        match (&self.state, &self.window) {
            (State::Window, Some(window)) => {
                window.octets().get(self.from..self.from + self.front).unwrap_or_default()
            }
            (State::Whole { octets, .. }, _) => octets,
            (State::Early { next, .. }, _) => next,
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
            let view = window.view(self.from..self.from + self.front);
            self.advance();
            return view;
        }
        self.take_deposited()
    }

    /// Drops the message that was peeked.
    #[inline]
    pub fn drop_front(&mut self) {
        if let State::Window = self.state { self.advance() } else { drop(self.take_deposited()) }
    }

    /// Goes behind the message in front of the window.
    #[inline]
    fn advance(&mut self) {
        let len = std::mem::take(&mut self.front);
        self.from += len;
        if len + HEADER_LEN > WINDOW {
            (self.expect, self.largest) = (len, self.largest.max(len));
        }
        if self.skip > 0 {
            self.skip_rest();
        }
        if self.from >= self.to {
            self.emptied();
        }
    }

    fn take_deposited(&mut self) -> Bytes {
        match std::mem::replace(&mut self.state, State::Window) {
            State::Whole { octets, next, next_len, .. } => {
                self.state = State::Early { next, next_len };
                octets
            }
            State::Early { next, .. } => Bytes::copy_from_slice(&next),
            other => {
                self.state = other;
                Bytes::new()
            }
        }
    }

    /// The message in front of the window is not all there, or too large.
    fn peek_incomplete(&mut self, header: MessageHeader) -> Result<Option<MessageHeader>, FrameError> {
        let (from, have) = (self.from, self.to - self.from);
        let Some(window) = &self.window else { return Ok(None) };
        match self.check(&header)? {
            Size::Skip(_) if have < OVERSIZED_START => Ok(None),
            Size::Skip(total) => {
                (self.front, self.skip) = (OVERSIZED_START, total - OVERSIZED_START);
                Ok(Some(header))
            }
            Size::Fits(total) if total >= DEPOSIT_MIN => {
                let start = window.view(from..from + have);
                if let Some(buf) = self.deposit(header, total, &start) {
                    drop(start);
                    self.state = State::Partial(buf);
                    self.emptied();
                }
                Ok(None)
            }
            Size::Fits(_) => Ok(None),
        }
    }

    /// The next message where it does not start in the window.
    fn peek_deposited(&mut self) -> Result<Option<MessageHeader>, FrameError> {
        match &self.state {
            State::Whole { header, .. } => Ok(Some(*header)),
            State::Early { next, next_len: HEADER_LEN } => {
                let next = *next;
                let header = MessageHeader::decode(&next)?;
                match self.check(&header)? {
                    Size::Fits(HEADER_LEN) => return Ok(Some(header)),
                    Size::Fits(total) if total >= DEPOSIT_MIN => {
                        if let Some(buf) = self.deposit(header, total, &next) {
                            self.state = State::Partial(buf);
                        }
                    }
                    Size::Fits(_) | Size::Skip(_) => {}
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Drops what the window has of the message to be skipped.
    #[cold]
    fn skip_rest(&mut self) {
        let here = self.skip.min(self.to - self.from);
        self.from += here;
        self.skip -= here;
        self.skipped += here as u64;
    }

    /// A window in which no message is complete is read on in place, whatever its message's size: nothing moves.
    #[inline]
    fn window_filled(&mut self, mut buf: ReadBuf) {
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
            if filled < total && total <= buf.buffer.capacity().min(self.max_message) {
                if total >= DEPOSIT_MIN {
                    buf.deposit = Some(Deposit { header, total });
                    buf.to = total;
                }
                self.state = State::Partial(buf);
                return;
            }
        }
        self.cut_from(buf);
    }

    /// Leaves a filled buffer to be cut.
    #[inline]
    fn cut_from(&mut self, buf: ReadBuf) {
        self.window = Some(buf.buffer.freeze());
        (self.from, self.to) = (0, buf.from);
        self.state = State::Window;
    }

    #[cold]
    fn skip_window(&mut self, buf: ReadBuf) {
        self.cut_from(buf);
        self.skip_rest();
        if self.from >= self.to {
            self.emptied();
        }
    }

    /// A buffer with a deposited message came back.
    fn deposited(&mut self, mut buf: ReadBuf, filled: usize) {
        let Some(Deposit { header, total }) = buf.deposit else { return };
        if filled >= total {
            self.expect = total;
            self.largest = self.largest.max(total);
            let octets = self.pool.share(buf.buffer).slice(..total);
            let next_len = (filled - total).min(HEADER_LEN);
            self.state = State::Whole { header, octets, next: buf.next, next_len };
            return;
        }
        buf.from = filled;
        if filled == buf.to {
            self.starved = !grow(&self.pool, &mut buf, grant(filled, self.largest), self.urgent);
        }
        self.state = State::Partial(buf);
    }

    /// All octets of the window are cut.
    #[inline]
    fn emptied(&mut self) {
        (self.from, self.to) = (0, 0);
        if let Some(window) = self.window.take() {
            self.retire(window);
        }
    }

    /// Keeps an empty window for the next read, or parks it.
    #[inline]
    fn retire(&mut self, window: Master) {
        if window.is_window() && (self.keeps || self.start_keeping()) {
            self.window = Some(window);
        } else {
            self.pool.park(window);
        }
    }

    #[cold]
    fn start_keeping(&mut self) -> bool {
        self.keeps = self.pool.start_keeping();
        self.keeps
    }

    /// A window with nothing in it: the kept one, if no message pins it.
    #[inline]
    fn empty_window(&mut self) -> ReadBuf {
        (self.from, self.to) = (0, 0);
        match self.window.take().map(Master::reclaim) {
            Some(Ok(buffer)) => {
                ReadBuf { from: 0, to: buffer.capacity(), buffer, deposit: None, next: [0; HEADER_LEN] }
            }
            Some(Err(pinned)) => {
                self.pool.park(pinned);
                self.window_with(&[])
            }
            None => self.window_with(&[]),
        }
    }

    /// A window that starts with what is left in the last one.
    fn window_with_rest(&mut self) -> ReadBuf {
        let (from, to) = (std::mem::take(&mut self.from), std::mem::take(&mut self.to));
        let Some(window) = self.window.take() else { return self.window_with(&[]) };
        if self.expect > 0 || to - from > WINDOW / 2 {
            let buf = self.window_with(window.octets().get(from..to).unwrap_or_default());
            self.pool.park(window);
            return buf;
        }
        match window.reclaim() {
            // Nobody holds a view any more: what is left moves to the front.
            Ok(mut buffer) => {
                buffer.octets_mut().copy_within(from..to, 0);
                self.copied += (to - from) as u64;
                let end = buffer.capacity();
                ReadBuf { buffer, from: to - from, to: end, deposit: None, next: [0; HEADER_LEN] }
            }
            Err(pinned) => {
                let buf = self.window_with(pinned.octets().get(from..to).unwrap_or_default());
                self.pool.park(pinned);
                buf
            }
        }
    }

    fn take_other_buf(&mut self) -> ReadBuf {
        match std::mem::replace(&mut self.state, State::Lent) {
            State::Partial(buf) => buf,
            State::Early { next, next_len } => self.window_with(next.get(..next_len).unwrap_or_default()),
            State::Window | State::Lent | State::Whole { .. } => self.window_with(&[]),
        }
    }

    /// A window that starts with the octets left over.
    fn window_with(&mut self, rest: &[u8]) -> ReadBuf {
        let size = if self.expect > 0 { self.expect.saturating_add(HEADER_LEN) } else { WINDOW };
        self.expect = 0;
        let least = rest.len() + OVERSIZED_START;
        let mut buffer = match self.pool.try_take(size.max(least)) {
            Some(buffer) => buffer,
            None if self.urgent => self.pool.take_unpooled(WINDOW.max(least)),
            None => {
                self.starved = true;
                self.pool.take_unpooled(STARVED_WINDOW.max(least))
            }
        };
        self.copied += copy(rest, buffer.octets_mut());
        let to = buffer.capacity().min(size.max(WINDOW));
        ReadBuf { buffer, from: rest.len(), to, deposit: None, next: [0; HEADER_LEN] }
    }

    /// A buffer of the message's own, with the octets that are there already.
    fn deposit(&mut self, header: MessageHeader, total: usize, start: &[u8]) -> Option<ReadBuf> {
        let granted = grant(start.len(), self.largest);
        let pooled = if !self.pool.could_hold(total) {
            None
        } else if total <= granted {
            self.pool.try_take(total)
        } else {
            self.pool.take_growing(total, granted)
        };
        let (mut buffer, to) = match pooled {
            Some(buffer) => (buffer, total.min(granted)),
            // Waiting would be forbidden, or for ever.
            None if self.urgent || !self.pool.could_hold(total) => (self.pool.take_unpooled(total), total),
            None => {
                self.starved = true;
                return None;
            }
        };
        self.copied += copy(start, buffer.octets_mut());
        Some(ReadBuf {
            buffer,
            from: start.len(),
            to,
            deposit: Some(Deposit { header, total }),
            next: [0; HEADER_LEN],
        })
    }

    fn check(&self, header: &MessageHeader) -> Result<Size, FrameError> {
        let total = (header.size as usize).saturating_add(HEADER_LEN);
        if total <= self.max_message {
            Ok(Size::Fits(total))
        } else if header.kind == MessageType::Request
            && header.version == Version::V1_2
            && total >= OVERSIZED_START
        {
            Ok(Size::Skip(total))
        } else {
            Err(FrameError::TooLarge { size: total, limit: self.max_message })
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.clear();
    }
}

impl ReadBuf {
    /// Where the octets go: the rest of the buffer, and behind a deposited message one next header.
    #[inline]
    pub fn io_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        let ends = self.ends_message();
        let into = self.buffer.octets_mut().get_mut(self.from..self.to).unwrap_or_default();
        let next: &mut [u8] = if ends { &mut self.next } else { &mut [] };
        [IoSliceMut::new(into), IoSliceMut::new(next)]
    }

    /// How many octets [`io_slices`](Self::io_slices) takes. A read that returns fewer has emptied the socket.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.to - self.from + if self.ends_message() { HEADER_LEN } else { 0 }
    }

    /// Whether it takes a deposited message to its end.
    #[inline]
    fn ends_message(&self) -> bool {
        self.deposit.is_some_and(|deposit| deposit.total == self.to)
    }
}

/// How many octets a message may occupy of which so many have come.
fn grant(received: usize, largest: usize) -> usize {
    WINDOW.max(received.saturating_mul(4)).max(largest)
}

/// Lets a deposit go on up to the grant. `false`: the pool has no memory for it.
#[cold]
fn grow(pool: &BufferPool, buf: &mut ReadBuf, granted: usize, urgent: bool) -> bool {
    let Some(Deposit { total, .. }) = buf.deposit else { return true };
    let to = total.min(granted);
    // Where it must not fail, what is charged stays as it is, and the buffer is not kept afterwards.
    let charged = pool.charge_more(&mut buf.buffer, if to == total { usize::MAX } else { to }) || urgent;
    if charged {
        buf.to = to;
    }
    charged
}

fn copy(from: &[u8], to: &mut [u8]) -> u64 {
    if let Some(to) = to.get_mut(..from.len()) {
        to.copy_from_slice(from);
    }
    from.len() as u64
}

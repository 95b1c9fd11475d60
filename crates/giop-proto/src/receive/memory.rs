//! The memory management of a receiver: windows and deposit buffers.

use giop_codec::giop::{MessageHeader, MessageType};

use super::lent::{Deposit, LentBuffer, NextHeader, ReadBuf, is_piece};
use super::parts::Memory;
use super::{HEADER_LEN, OVERSIZED_START, PIECE_HEADER_LEN, Receiver, STREAM_START, State};
use crate::pool::{Buffer, WINDOW};

/// The maximum number of bytes that are copied to leave a large message alone in its buffer.
const LEFT_BEHIND: usize = 4 * 1024;

/// The size of the window of a receiver for which the pool has no memory.
pub(super) const STARVED_WINDOW: usize = 4 * 1024;

impl Memory {
    /// Returns whether memory must be provided, beyond the cap if necessary.
    pub(super) fn is_urgent(&self) -> bool {
        self.urgent || self.overdraws
    }

    /// Returns whether received and decoded data exceeds the pool's cap.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.pool.is_over()
    }

    /// Suspends reading until [`Receiver::retry`].
    #[cold]
    pub(crate) fn starve(&mut self) {
        self.starved = true;
    }

    /// Returns whether it may take memory beyond the cap.
    #[inline]
    pub(crate) fn overdraws(&self) -> bool {
        self.overdraws
    }

    /// Takes memory beyond the cap from now on, unless another receiver does.
    #[cold]
    pub(crate) fn overdraw(&mut self) {
        self.overdraws = self.overdraws || self.pool.start_overdraft();
    }

    /// Ends the overdraft.
    #[cold]
    pub(crate) fn end_overdraft(&mut self) {
        if std::mem::take(&mut self.overdraws) {
            self.pool.end_overdraft();
        }
    }

    /// Returns a buffer to the pool and keeps its box.
    pub(super) fn give_back(&mut self, mut lent: Box<LentBuffer>) {
        self.pool.give_back(std::mem::take(&mut lent.buffer));
        self.keep_box(lent);
    }

    pub(super) fn keep_box(&mut self, empty: Box<LentBuffer>) {
        let [first, second] = &mut self.idle;
        if first.is_none() { *first = Some(empty) } else { *second = Some(empty) }
    }

    /// Puts a buffer into a box to be lent.
    #[inline]
    pub(super) fn lend(
        &mut self,
        buffer: Buffer,
        from: usize,
        to: usize,
        deposit: Option<Deposit>,
    ) -> ReadBuf {
        let [first, second] = &mut self.idle;
        let mut lent = first.take().or_else(|| second.take()).unwrap_or_default();
        lent.buffer = buffer;
        lent.buffer.open(to);
        (lent.from, lent.to, lent.deposit, lent.next.len) = (from, to, deposit, 0);
        lent.ahead = None;
        ReadBuf(lent)
    }

    /// Returns a buffer for `size` bytes of which `granted` may be written, and the number that may be
    /// written. Returns `None` if there is no memory at present.
    pub(super) fn buffer_granted(&mut self, size: usize, granted: usize) -> Option<(Buffer, usize)> {
        let pooled = if !self.pool.could_hold(size) {
            None
        } else if size <= granted {
            self.pool.try_take(size)
        } else {
            self.pool.take_growing(size, granted)
        };
        match pooled {
            Some(buffer) => Some((buffer, granted)),
            // Waiting is not permitted, or would never end.
            None if self.is_urgent() || !self.pool.could_hold(size) => {
                Some((self.pool.take_unpooled(size), usize::MAX))
            }
            None => {
                self.starved = true;
                None
            }
        }
    }

    /// Returns whether the pool has no memory to continue. Reading must then wait, before
    /// [`Receiver::retry`].
    #[inline]
    pub(crate) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Sets whether memory must be provided, beyond the pool's cap if necessary.
    #[inline]
    pub(crate) fn set_urgent(&mut self, urgent: bool) {
        self.urgent = urgent;
    }

    /// Counts bytes that were copied into a lent buffer.
    pub(crate) fn count_copied(&mut self, octets: usize) {
        self.copied += octets as u64;
    }

    /// Extends a deposit up to `granted` bytes, or suspends reading if the pool has no memory for it.
    #[cold]
    pub(super) fn grow(&mut self, buf: &mut LentBuffer, granted: usize) {
        let Some(Deposit { total, .. }) = buf.deposit else { return };
        let to = total.min(granted);
        // If it must not fail, the charge stays unchanged, and the buffer is not kept afterwards.
        let all = if to == total { usize::MAX } else { to };
        self.starved = !self.pool.charge_more(&mut buf.buffer, all) && !self.is_urgent();
        if !self.starved {
            buf.buffer.open(to);
            buf.to = to;
        }
    }
}

impl Receiver {
    /// Returns a kept window to the pool.
    pub fn release(&mut self) {
        if self.window.keeps {
            self.window.keeps = false;
            self.memory.pool.stop_keeping();
            if self.window.from == self.window.to
                && let Some(window) = self.window.buf.take()
            {
                self.memory.give_back(window);
            }
        }
    }

    /// Drops everything that was received, and returns all memory.
    pub fn clear(&mut self) {
        self.release();
        self.memory.end_overdraft();
        self.stream.end();
        self.segments = None;
        if let Some(parted) = self.parted.take() {
            parted.give_back(&self.memory.pool);
        }
        (self.front.streams, self.front.has_more, self.has_unplaced) = (false, false, false);
        (self.window.from, self.window.to, self.front.len, self.skip.left, self.memory.starved) =
            (0, 0, 0, 0, false);
        if let Some(window) = self.window.buf.take() {
            self.memory.give_back(window);
        }
        match std::mem::replace(&mut self.state, State::Window) {
            State::Partial(buf) | State::Piece { buf, .. } => self.memory.give_back(buf),
            State::Lent => self.state = State::Lent,
            _ => {}
        }
    }

    /// Handles a window whose bytes are all processed.
    #[inline]
    pub(super) fn emptied(&mut self) {
        (self.window.from, self.window.to) = (0, 0);
        if let Some(window) = self.window.buf.take() {
            self.retire(window);
        }
    }

    /// Returns the buffer of a large message that was taken to the pool, if the start of the next message
    /// follows it in that buffer. This must not wait for the next read, because the message can be [written
    /// to](crate::BufferPool::write_to) only in the pool.
    #[cold]
    pub(super) fn leave_window(&mut self) {
        let Some(window) = &self.window.buf else { return };
        let rest = window.buffer.octets().get(self.window.from..self.window.to).unwrap_or_default();
        // Small windows are kept with their contents. Streamed and skipped data continues in its buffer.
        if window.buffer.is_window()
            || rest.len() > LEFT_BEHIND
            || self.skip.left > 0
            || self.stream.left() > 0
        {
            return;
        }
        if rest.len() <= HEADER_LEN {
            let next = NextHeader::new(rest);
            self.emptied();
            self.state = State::Early { next, of_piece: false };
        } else if let Some(mut buffer) = self.memory.pool.try_take(WINDOW) {
            let copied = copy(rest, buffer.octets_mut());
            self.memory.copied += copied;
            let mut small = self.memory.lend(buffer, copied as usize, copied as usize, None).0;
            small.buffer.freeze();
            (self.window.from, self.window.to) = (0, small.to);
            if let Some(window) = self.window.buf.replace(small) {
                self.memory.give_back(window);
            }
        }
    }

    /// Keeps an empty window for the next read, or returns it to the pool.
    #[inline]
    pub(super) fn retire(&mut self, window: Box<LentBuffer>) {
        if self.window.buf.is_none()
            && window.buffer.is_window()
            && (self.window.keeps || self.start_keeping())
        {
            self.window.buf = Some(window);
        } else {
            self.memory.give_back(window);
        }
    }

    #[cold]
    pub(super) fn start_keeping(&mut self) -> bool {
        self.window.keeps = self.memory.pool.start_keeping();
        self.window.keeps
    }

    /// Returns an empty window: the kept one, if no message pins it.
    #[inline]
    pub(super) fn empty_window(&mut self) -> ReadBuf {
        (self.window.from, self.window.to) = (0, 0);
        let Some(mut window) = self.window.buf.take() else { return self.window_with(&[]) };
        if !window.buffer.reclaim() {
            self.memory.give_back(window);
            return self.window_with(&[]);
        }
        (window.from, window.to, window.deposit) = (0, window.buffer.capacity(), None);
        window.buffer.open(window.to);
        ReadBuf(window)
    }

    /// Returns a window that starts with the remaining bytes of the last one.
    pub(super) fn window_with_rest(&mut self) -> ReadBuf {
        let (from, to) = (std::mem::take(&mut self.window.from), std::mem::take(&mut self.window.to));
        let Some(mut window) = self.window.buf.take() else { return self.window_with(&[]) };
        let fits = to - from + OVERSIZED_START <= window.buffer.capacity().min(WINDOW / 2);
        if self.sizes.expected == 0 && fits && window.buffer.reclaim() {
            // No view is left: the remaining bytes move to the front.
            window.buffer.octets_mut().copy_within(from..to, 0);
            self.memory.copied += (to - from) as u64;
            (window.from, window.to, window.deposit) = (to - from, window.buffer.capacity(), None);
            window.buffer.open(window.to);
            return ReadBuf(window);
        }
        let buf = self.window_with(window.buffer.octets().get(from..to).unwrap_or_default());
        self.memory.give_back(window);
        buf
    }

    pub(super) fn take_other_buf(&mut self) -> ReadBuf {
        match std::mem::replace(&mut self.state, State::Lent) {
            State::Partial(buf) if !self.deposits && buf.deposit.is_some() => {
                self.staged = Some(buf);
                self.empty_window()
            }
            State::Partial(buf) => ReadBuf(buf),
            State::Early { next, of_piece: true } if awaits_fragment(&next) => {
                let mut buf = self.memory.lend(Buffer::default(), 0, 0, None);
                buf.0.next = next;
                buf
            }
            State::Early { next, .. } => self.window_with(next.octets()),
            State::Window | State::Lent | State::Whole { .. } | State::Piece { .. } => self.window_with(&[]),
        }
    }

    /// Returns a window that starts with the bytes `rest`.
    pub(super) fn window_with(&mut self, rest: &[u8]) -> ReadBuf {
        let least = rest.len() + OVERSIZED_START;
        // The number of bytes to read, and the size that the message may need. At most the first of several
        // pieces is read.
        let (size, room) = match std::mem::take(&mut self.sizes.expected) {
            0 if std::mem::take(&mut self.stream.follows) => (STREAM_START.max(least), WINDOW),
            0 => (WINDOW, WINDOW),
            // The peer sends lists of blocks: read at most the header of the next message that has one.
            _ if self.sizes.read_ahead > 0 => (self.sizes.read_ahead.max(least), WINDOW),
            piece if self.sizes.expected_total > 0 => {
                ((piece + PIECE_HEADER_LEN).max(least), self.sizes.expected_total.max(piece))
            }
            // As many whole messages as fit into a window, so that none is cut by its end.
            message => {
                let whole = (WINDOW / message).max(1) * message + HEADER_LEN;
                (whole.max(least), whole)
            }
        };
        let mut buffer = match self.memory.pool.try_take(room.max(size).max(least)) {
            Some(buffer) => buffer,
            None if self.memory.is_urgent() => self.memory.pool.take_unpooled(WINDOW.max(least)),
            None => {
                self.memory.starved = true;
                self.memory.pool.take_unpooled(STARVED_WINDOW.max(least))
            }
        };
        self.memory.copied += copy(rest, buffer.octets_mut());
        let to = buffer.capacity().min(size);
        self.memory.lend(buffer, rest.len(), to, None)
    }

    /// Returns a buffer for the message alone, which starts with the bytes already received.
    pub(super) fn deposit(
        &mut self,
        header: MessageHeader,
        total: usize,
        start: &[u8],
    ) -> Option<Box<LentBuffer>> {
        let room = if is_piece(&header) { self.room_for(total) } else { total };
        let (mut buffer, granted) = self.buffer_for(room, start.len())?;
        self.memory.copied += copy(start, buffer.octets_mut());
        Some(self.memory.lend(buffer, start.len(), total.min(granted), Some(Deposit { header, total })).0)
    }

    /// Returns the size of the buffer for a message whose first piece has that size: at least that of the
    /// last message, with room for a short last piece.
    fn room_for(&self, piece: usize) -> usize {
        (piece + piece / 8).min(self.max_message).max(piece).max(self.sizes.expected_total)
    }

    /// Returns a buffer for `size` bytes of a message of which `come` bytes have been received, and the
    /// number of bytes that may be written to it. Returns `None` if there is no memory at present.
    fn buffer_for(&mut self, size: usize, come: usize) -> Option<(Buffer, usize)> {
        self.memory.buffer_granted(size, grant(come, self.sizes.largest))
    }

    /// Returns a buffer with room for `size` bytes that starts with the first `len` bytes of `buffer`. That
    /// is `buffer` itself if it is large enough; otherwise it is returned to the pool. Fails with `buffer` if
    /// there is no memory at present.
    pub(super) fn larger(&mut self, buffer: Buffer, len: usize, size: usize) -> Result<Buffer, Buffer> {
        if buffer.capacity() >= size {
            return Ok(buffer);
        }
        // At most four times the received size, which limits repeated copying.
        let room = size
            .saturating_mul(2)
            .min(4 * len)
            .min(self.max_message)
            .max(size)
            .max(self.sizes.expected_total);
        // During the copy the message has both buffers.
        let fits = |size: usize| self.memory.pool.could_hold(size.saturating_add(buffer.capacity()));
        let room = if fits(room) { room } else { size };
        let mut larger = if fits(room) {
            let Some((larger, _)) = self.buffer_for(room, len) else { return Err(buffer) };
            larger
        } else {
            // It would wait for memory that it holds itself.
            self.memory.pool.take(room)
        };
        self.memory.copied += copy(buffer.octets().get(..len).unwrap_or_default(), larger.octets_mut());
        self.memory.pool.give_back(buffer);
        Ok(larger)
    }

    /// Reads the rest of a fragment into `buffer` from `at` on. `here` is the part already received.
    pub(super) fn deposit_piece(
        &mut self,
        header: MessageHeader,
        mut buffer: Buffer,
        at: usize,
        here: &[u8],
    ) {
        let total = at + (header.size as usize).saturating_sub(PIECE_HEADER_LEN - HEADER_LEN);
        let filled = at + here.len();
        if let Some(to) = buffer.room(at..filled) {
            self.memory.copied += copy(here, to);
        }
        let to = total.min(buffer.granted()).max(filled);
        let ReadBuf(mut buf) = self.memory.lend(buffer, filled, to, Some(Deposit { header, total }));
        if filled == to && to < total {
            self.memory.grow(&mut buf, grant(filled, self.sizes.largest));
        }
        self.state = State::Partial(buf);
    }
}

/// Returns whether the next bytes are the header of a fragment, or may still become one.
fn awaits_fragment(next: &NextHeader) -> bool {
    match next.header() {
        None => true,
        Some(Ok(header)) => header.kind == MessageType::Fragment && next.len < PIECE_HEADER_LEN,
        Some(Err(_)) => false,
    }
}

/// Returns the number of bytes that a message may occupy of which `received` bytes have arrived.
pub(super) fn grant(received: usize, largest: usize) -> usize {
    WINDOW.max(received.saturating_mul(4)).max(largest)
}

fn copy(from: &[u8], to: &mut [u8]) -> u64 {
    if let Some(to) = to.get_mut(..from.len()) {
        to.copy_from_slice(from);
    }
    from.len() as u64
}

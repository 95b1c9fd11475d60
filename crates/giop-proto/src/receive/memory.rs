//! The memory of a receiver: windows and deposit buffers.

use giop_codec::giop::{MessageHeader, MessageType};

use super::read_buf::{Deposit, LentBuffer, NextHeader, ReadBuf, has_more_pieces};
use super::receiver_state::Memory;
use super::{HEADER_LEN, OVERSIZED_START_LEN, PIECE_HEADER_LEN, Receiver, STREAM_START_LEN, State};
use crate::pool::{Buffer, WINDOW_SIZE};

/// The maximum number of bytes that are copied from the end of a large message's buffer to a new window.
const MAX_MOVED_REST: usize = 4 * 1024;

/// The minimum size in bytes of the window of a receiver for which the pool has no memory.
pub(super) const STARVED_WINDOW: usize = 4 * 1024;

impl Memory {
    /// Returns the number of bytes that a message may occupy after `received` bytes of it have been received.
    pub(super) fn grant(&self, received: usize) -> usize {
        grant(received, self.largest_received)
    }

    pub(super) fn record_size(&mut self, message_size: usize) {
        self.largest_received = self.largest_received.max(message_size);
    }

    /// Returns whether memory must be provided even if the pool's limit is exceeded.
    pub(super) fn must_get_memory(&self) -> bool {
        self.urgent || self.is_overdrawn
    }

    /// Permits this receiver to exceed the pool's limit, unless another receiver has this permission.
    #[cold]
    pub(crate) fn overdraw(&mut self) {
        self.is_overdrawn = self.is_overdrawn || self.pool.start_overdraft();
    }

    #[cold]
    pub(crate) fn end_overdraft(&mut self) {
        if std::mem::take(&mut self.is_overdrawn) {
            self.pool.end_overdraft();
        }
    }

    pub(super) fn give_back(&mut self, mut lent: Box<LentBuffer>) {
        self.pool.give_back(std::mem::take(&mut lent.buffer));
        self.keep_box(lent);
    }

    pub(super) fn keep_box(&mut self, empty: Box<LentBuffer>) {
        let [first, second] = &mut self.idle_boxes;
        if first.is_none() { *first = Some(empty) } else { *second = Some(empty) }
    }

    #[inline]
    pub(super) fn lend(
        &mut self,
        buffer: Buffer,
        from: usize,
        to: usize,
        deposit: Option<Deposit>,
    ) -> ReadBuf {
        let [first, second] = &mut self.idle_boxes;
        let mut lent = first.take().or_else(|| second.take()).unwrap_or_default();
        lent.buffer = buffer;
        lent.buffer.make_writable(to);
        (lent.filled, lent.end, lent.deposit, lent.next.len) = (from, to, deposit, 0);
        lent.requested_next_len = None;
        ReadBuf(lent)
    }

    /// Returns a buffer of `size` bytes and the number of them that may be written: `granted`, or all if the
    /// buffer is not the pool's. If there is no memory at present, returns `None` and starves the receiver.
    pub(super) fn buffer_granted(&mut self, size: usize, granted: usize) -> Option<(Buffer, usize)> {
        let can_hold = self.pool.can_hold(size);
        match can_hold.then(|| self.pool.try_take_granted(size, granted)).flatten() {
            Some(buffer) => Some((buffer, granted)),
            // The memory must be provided now, or the pool can never provide it.
            None if self.must_get_memory() || !can_hold => Some((self.pool.take_unpooled(size), usize::MAX)),
            None => {
                self.starved = true;
                None
            }
        }
    }

    /// Permits a deposit to fill `granted` bytes. If the pool has no memory for them, starves the receiver.
    #[cold]
    pub(super) fn grow(&mut self, buf: &mut LentBuffer, granted: usize) {
        let Some(Deposit { total, .. }) = buf.deposit else { return };
        let to = total.min(granted);
        // If memory must be provided, the charge may stay too low. The pool then does not keep the buffer.
        let all = if to == total { usize::MAX } else { to };
        self.starved = !self.pool.charge_more(&mut buf.buffer, all) && !self.must_get_memory();
        if !self.starved {
            buf.buffer.make_writable(to);
            buf.end = to;
        }
    }
}

impl Receiver {
    pub(crate) fn release_kept_window(&mut self) {
        if self.window.may_keep {
            self.window.may_keep = false;
            self.memory.pool.stop_keeping_window();
            if self.window.start == self.window.end
                && let Some(window) = self.window.buf.take()
            {
                self.memory.give_back(window);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.release_kept_window();
        self.memory.end_overdraft();
        self.stream.end();
        self.segments = None;
        if let Some(message) = self.message_in_parts.take() {
            message.give_back(&self.memory.pool);
        }
        (self.front.is_streamed, self.front.has_more_pieces, self.has_unplaced_fragment) =
            (false, false, false);
        (self.window.start, self.window.end, self.front.len, self.skip.left, self.memory.starved) =
            (0, 0, 0, 0, false);
        if let Some(window) = self.window.buf.take() {
            self.memory.give_back(window);
        }
        match std::mem::replace(&mut self.state, State::Window) {
            State::Incomplete(buf) | State::CompletePiece { buf, .. } => self.memory.give_back(buf),
            State::Lent => self.state = State::Lent,
            _ => {}
        }
    }

    #[inline]
    pub(super) fn release_window(&mut self) {
        (self.window.start, self.window.end) = (0, 0);
        if let Some(window) = self.window.buf.take() {
            self.keep_or_return_window(window);
        }
    }

    /// Moves the start of the next message out of the buffer of a large message, which has been taken, and
    /// returns that buffer to the pool. This must not wait for the next read, because only a message whose
    /// buffer has been returned can be [written to](crate::BufferPool::write_to).
    #[cold]
    pub(super) fn leave_large_buffer(&mut self) {
        let Some(window) = &self.window.buf else { return };
        let rest = window.buffer.bytes().get(self.window.start..self.window.end).unwrap_or_default();
        // A normal window is kept with its contents. Streamed and skipped bytes stay in their buffer.
        if window.buffer.is_window()
            || rest.len() > MAX_MOVED_REST
            || self.skip.left > 0
            || self.stream.left() > 0
        {
            return;
        }
        if rest.len() <= HEADER_LEN {
            let next = NextHeader::new(rest);
            self.release_window();
            self.state = State::NextHeader { next, expects_fragment: false };
        } else if let Some(mut buffer) = self.memory.pool.try_take(WINDOW_SIZE) {
            let copied = copy(rest, buffer.bytes_mut());
            self.memory.copied_bytes += copied;
            let mut small = self.memory.lend(buffer, copied as usize, copied as usize, None).0;
            small.buffer.freeze();
            (self.window.start, self.window.end) = (0, small.end);
            if let Some(window) = self.window.buf.replace(small) {
                self.memory.give_back(window);
            }
        }
    }

    #[inline]
    pub(super) fn keep_or_return_window(&mut self, window: Box<LentBuffer>) {
        if self.window.buf.is_none()
            && window.buffer.is_window()
            && (self.window.may_keep || self.start_keeping_window())
        {
            self.window.buf = Some(window);
        } else {
            self.memory.give_back(window);
        }
    }

    #[cold]
    pub(super) fn start_keeping_window(&mut self) -> bool {
        self.window.may_keep = self.memory.pool.start_keeping_window();
        self.window.may_keep
    }

    #[inline]
    pub(super) fn empty_window(&mut self) -> ReadBuf {
        (self.window.start, self.window.end) = (0, 0);
        let Some(mut window) = self.window.buf.take() else { return self.window_with(&[]) };
        if !window.buffer.reclaim() {
            self.memory.give_back(window);
            return self.window_with(&[]);
        }
        (window.filled, window.end, window.deposit) = (0, window.buffer.capacity(), None);
        window.buffer.make_writable(window.end);
        ReadBuf(window)
    }

    pub(super) fn window_with_rest(&mut self) -> ReadBuf {
        let (start, end) = (std::mem::take(&mut self.window.start), std::mem::take(&mut self.window.end));
        let Some(mut window) = self.window.buf.take() else { return self.window_with(&[]) };
        let fits = end - start + OVERSIZED_START_LEN <= window.buffer.capacity().min(WINDOW_SIZE / 2);
        if self.sizes.expected == 0 && fits && window.buffer.reclaim() {
            // No message refers to the window any more, so the unprocessed bytes can be moved to its start.
            window.buffer.bytes_mut().copy_within(start..end, 0);
            self.memory.copied_bytes += (end - start) as u64;
            (window.filled, window.end, window.deposit) = (end - start, window.buffer.capacity(), None);
            window.buffer.make_writable(window.end);
            return ReadBuf(window);
        }
        let buf = self.window_with(window.buffer.bytes().get(start..end).unwrap_or_default());
        self.memory.give_back(window);
        buf
    }

    pub(super) fn take_other_buf(&mut self) -> ReadBuf {
        match std::mem::replace(&mut self.state, State::Lent) {
            State::Incomplete(buf) if !self.deposits_enabled && buf.deposit.is_some() => {
                self.append_target = Some(buf);
                self.empty_window()
            }
            State::Incomplete(buf) => ReadBuf(buf),
            State::NextHeader { next, expects_fragment: true } if awaits_fragment(&next) => {
                let mut buf = self.memory.lend(Buffer::default(), 0, 0, None);
                buf.0.next = next;
                buf
            }
            State::NextHeader { next, .. } => self.window_with(next.bytes()),
            State::Window | State::Lent | State::CompleteMessage { .. } | State::CompletePiece { .. } => {
                self.window_with(&[])
            }
        }
    }

    /// Returns a window that starts with copies of the bytes `rest`.
    pub(super) fn window_with(&mut self, rest: &[u8]) -> ReadBuf {
        let min_size = rest.len() + OVERSIZED_START_LEN;
        // The number of bytes to read, and the size of the buffer, which may also receive the next pieces.
        let (size, buffer_size) = match std::mem::take(&mut self.sizes.expected) {
            0 if std::mem::take(&mut self.stream.follows_stream) => {
                (STREAM_START_LEN.max(min_size), WINDOW_SIZE)
            }
            0 => (WINDOW_SIZE, WINDOW_SIZE),
            // The peer sends lists of blocks: read only up to the first block, which gets its own buffer.
            _ if self.sizes.len_before_first_block > 0 => {
                (self.sizes.len_before_first_block.max(min_size), WINDOW_SIZE)
            }
            piece if self.sizes.expected_total > 0 => {
                ((piece + PIECE_HEADER_LEN).max(min_size), self.sizes.expected_total.max(piece))
            }
            // Read as many whole messages as fit into a window, so that no message is split at its end.
            message => {
                let whole = (WINDOW_SIZE / message).max(1) * message + HEADER_LEN;
                (whole.max(min_size), whole)
            }
        };
        let mut buffer = match self.memory.pool.try_take(buffer_size.max(size).max(min_size)) {
            Some(buffer) => buffer,
            None if self.memory.must_get_memory() => {
                self.memory.pool.take_unpooled(WINDOW_SIZE.max(min_size))
            }
            None => {
                self.memory.starved = true;
                self.memory.pool.take_unpooled(STARVED_WINDOW.max(min_size))
            }
        };
        self.memory.copied_bytes += copy(rest, buffer.bytes_mut());
        let to = buffer.capacity().min(size);
        self.memory.lend(buffer, rest.len(), to, None)
    }

    /// Returns a buffer for this message alone, with its received bytes `start`, if there is memory.
    pub(super) fn deposit(
        &mut self,
        header: MessageHeader,
        total: usize,
        start: &[u8],
    ) -> Option<Box<LentBuffer>> {
        let buffer_size = if has_more_pieces(&header) {
            // The next piece is usually short, so reserve space for it.
            (total + total / 8).min(self.max_message_size).max(total).max(self.sizes.expected_total)
        } else {
            total
        };
        let (mut buffer, granted) = self.buffer_for(buffer_size, start.len())?;
        self.memory.copied_bytes += copy(start, buffer.bytes_mut());
        Some(self.memory.lend(buffer, start.len(), total.min(granted), Some(Deposit { header, total })).0)
    }

    /// Returns a buffer of `size` bytes for a message of which `received` bytes have been received, and the
    /// number of bytes that may be written to it. Returns `None` if there is no memory at present.
    fn buffer_for(&mut self, size: usize, received: usize) -> Option<(Buffer, usize)> {
        self.memory.buffer_granted(size, self.memory.grant(received))
    }

    /// Returns a buffer of at least `size` bytes that starts with the first `len` bytes of `buffer`. It is
    /// `buffer` itself if that is large enough.
    ///
    /// # Errors
    /// `buffer`, if there is no memory at present.
    pub(super) fn larger_buffer(
        &mut self,
        buffer: Buffer,
        len: usize,
        size: usize,
    ) -> Result<Buffer, Buffer> {
        if buffer.capacity() >= size {
            return Ok(buffer);
        }
        // Twice the needed size avoids further copies. The excess is limited to four times the received size.
        let buffer_size = size
            .saturating_mul(2)
            .min(4 * len)
            .min(self.max_message_size)
            .max(size)
            .max(self.sizes.expected_total);
        // While it is copied, the message occupies both buffers.
        let fits = |size: usize| self.memory.pool.can_hold(size.saturating_add(buffer.capacity()));
        let buffer_size = if fits(buffer_size) { buffer_size } else { size };
        let mut larger = if fits(buffer_size) {
            let Some((larger, _)) = self.buffer_for(buffer_size, len) else { return Err(buffer) };
            larger
        } else {
            // The pool can never hold both buffers, so waiting for memory would never end.
            self.memory.pool.take(buffer_size)
        };
        self.memory.copied_bytes += copy(buffer.bytes().get(..len).unwrap_or_default(), larger.bytes_mut());
        self.memory.pool.give_back(buffer);
        Ok(larger)
    }

    /// Starts to read the payload of a fragment to position `at` of `buffer`. `start` is its received part.
    pub(super) fn deposit_piece(
        &mut self,
        header: MessageHeader,
        mut buffer: Buffer,
        at: usize,
        start: &[u8],
    ) {
        let total = at + (header.size as usize).saturating_sub(PIECE_HEADER_LEN - HEADER_LEN);
        let filled = at + start.len();
        if let Some(to) = buffer.writable_range(at..filled) {
            self.memory.copied_bytes += copy(start, to);
        }
        let to = total.min(buffer.charged_len()).max(filled);
        let ReadBuf(mut buf) = self.memory.lend(buffer, filled, to, Some(Deposit { header, total }));
        if filled == to && to < total {
            self.memory.grow(&mut buf, self.memory.grant(filled));
        }
        self.state = State::Incomplete(buf);
    }
}

/// Returns whether `next` is incomplete, and may be the headers of a GIOP 1.2 fragment.
fn awaits_fragment(next: &NextHeader) -> bool {
    match next.header() {
        None => true,
        Some(Ok(header)) => header.kind == MessageType::Fragment && next.len < PIECE_HEADER_LEN,
        Some(Err(_)) => false,
    }
}

/// Returns the number of bytes that a message may occupy after `received` bytes of it have been received.
pub(super) fn grant(received: usize, largest_received: usize) -> usize {
    WINDOW_SIZE.max(received.saturating_mul(4)).max(largest_received)
}

fn copy(from: &[u8], to: &mut [u8]) -> u64 {
    if let Some(to) = to.get_mut(..from.len()) {
        to.copy_from_slice(from);
    }
    from.len() as u64
}

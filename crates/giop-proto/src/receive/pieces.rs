//! The pieces of a GIOP 1.2 message, each read into its position after those before it, and the pieces of a
//! streamed GIOP 1.1 request.

use giop_codec::Version;
use giop_codec::giop::{MessageHeader, MessageType, RequestId};

use super::lent::{LentBuffer, NextHeader, is_piece};
use super::{DEPOSIT_MIN, HEADER_LEN, PIECE_HEADER_LEN, Receiver, State};
use crate::frame::word;
use crate::pool::Buffer;

impl Receiver {
    /// Takes the fragment that waits for its position, with its id, which GIOP 1.1 does not have. It must be
    /// [placed](Self::place) or [skipped](Self::skip_unplaced).
    #[inline]
    pub(crate) fn unplaced(&mut self) -> Option<(MessageHeader, Option<RequestId>)> {
        if std::mem::take(&mut self.has_unplaced) { self.partial_fragment() } else { None }
    }

    #[cold]
    fn partial_fragment(&self) -> Option<(MessageHeader, Option<RequestId>)> {
        let octets = self.come();
        let header = MessageHeader::decode(octets.first_chunk::<HEADER_LEN>()?).ok()?;
        match header.version {
            Version::V1_2 => Some((header, Some(word(header.order, octets)?))),
            _ => Some((header, None)),
        }
    }

    /// Sets whether the fragments of a GIOP 1.1 request are, or may become, those of a stream. They then wait
    /// for a position like those of GIOP 1.2.
    #[inline]
    pub(crate) fn set_places_nameless(&mut self, places: bool) {
        self.stream.has_nameless = places;
    }

    /// Returns whether it is a fragment whose position the connection knows.
    #[inline]
    pub(super) fn waits_for_place(&self, header: &MessageHeader) -> bool {
        is_fragment(header)
            || self.stream.has_nameless
                && header.kind == MessageType::Fragment
                && header.version == Version::V1_1
    }

    /// Returns the received part of the incomplete message, unless it is in a buffer of its own.
    pub(super) fn come(&self) -> &[u8] {
        match (&self.state, &self.window.buf) {
            (State::Window, Some(window)) => {
                window.buffer.octets().get(self.window.from..self.window.to).unwrap_or_default()
            }
            (State::Early { next, .. }, _) => next.octets(),
            _ => &[],
        }
    }

    /// Reads the payload of the waiting fragment into `buffer`, after the first `at` bytes. The buffer is
    /// returned by [`take_placed`](Self::take_placed).
    ///
    /// # Errors
    /// The buffer, if it is too small and there is no memory for a larger one at present. The receiver is
    /// then starved.
    #[cold]
    pub(crate) fn place(&mut self, header: MessageHeader, buffer: Buffer, at: usize) -> Result<(), Buffer> {
        let size = at + (header.size as usize).saturating_sub(PIECE_HEADER_LEN - HEADER_LEN);
        let buffer = self.larger(buffer, at, size)?;
        match std::mem::replace(&mut self.state, State::Window) {
            State::Early { .. } => self.deposit_piece(header, buffer, at, &[]),
            _ => {
                let Some(window) = self.window.buf.take() else { return Err(buffer) };
                let here = window.buffer.octets().get(self.window.from + PIECE_HEADER_LEN..self.window.to);
                self.deposit_piece(header, buffer, at, here.unwrap_or_default());
                self.window.buf = Some(window);
                self.emptied();
            }
        }
        Ok(())
    }

    /// Discards the payload of the waiting fragment as it is received. [`front`](Self::front) returns its
    /// headers.
    #[cold]
    pub(crate) fn skip_unplaced(&mut self, header: &MessageHeader) {
        self.front.len = headers_len(header);
        self.skip.left = (header.size as usize).saturating_sub(headers_len(header) - HEADER_LEN);
        self.skip.size = self.skip.left;
        if let State::Early { .. } = self.state {
            self.sizes.expected = 0;
        }
    }

    /// Takes the buffer with the peeked piece, if no other message is in it. The next piece can be appended
    /// to it.
    #[cold]
    pub(crate) fn take_piece(&mut self) -> Option<Buffer> {
        match std::mem::replace(&mut self.state, State::Window) {
            State::Piece { header, mut buf } => {
                let buffer = std::mem::take(&mut buf.buffer);
                self.state = State::Early { next: buf.next, of_piece: is_piece(&header) };
                self.memory.keep_box(buf);
                Some(buffer)
            }
            State::Window => self.adopt_window(),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// Takes the buffer with the peeked fragment, if it was [placed](Self::place).
    pub(crate) fn take_placed(&mut self, header: &MessageHeader) -> Option<Buffer> {
        let placed = is_fragment(header) && matches!(self.state, State::Piece { .. });
        if placed { self.take_piece() } else { None }
    }

    /// Takes the window if it holds only a large first piece, followed by at most one header.
    fn adopt_window(&mut self) -> Option<Buffer> {
        let (from, front, to) = (self.window.from, self.front.len, self.window.to);
        if front < DEPOSIT_MIN || !self.deposits {
            return None;
        }
        self.sizes.first_piece = front;
        if from != 0 || to - front > PIECE_HEADER_LEN {
            return None;
        }
        let mut window = self.window.buf.take()?;
        if !window.buffer.reclaim() {
            self.window.buf = Some(window);
            return None;
        }
        let next = NextHeader::new(window.buffer.octets().get(front..to).unwrap_or_default());
        self.state = State::Early { next, of_piece: true };
        (self.window.from, self.window.to, self.front.len) = (0, 0, 0);
        let buffer = std::mem::take(&mut window.buffer);
        self.memory.keep_box(window);
        Some(buffer)
    }

    /// Records that a message of that size, received in pieces, is complete.
    #[cold]
    pub(crate) fn joined(&mut self, size: usize) {
        self.sizes.largest = self.sizes.largest.max(size);
        if self.sizes.first_piece > 0 {
            (self.sizes.expected, self.sizes.expected_total) =
                (std::mem::take(&mut self.sizes.first_piece), size);
        }
    }

    /// Handles a header that was read separately.
    pub(super) fn read_header(&mut self, mut buf: Box<LentBuffer>, n: usize) {
        buf.next.len = (buf.next.len + n).min(PIECE_HEADER_LEN);
        self.state = State::Early { next: buf.next, of_piece: true };
        self.memory.keep_box(buf);
    }
}

/// Returns the length of the headers of such a fragment.
pub(super) fn headers_len(header: &MessageHeader) -> usize {
    if header.version >= Version::V1_2 { PIECE_HEADER_LEN } else { HEADER_LEN }
}

/// Returns whether it is a fragment that can be appended to the pieces before it.
#[inline]
pub(super) fn is_fragment(header: &MessageHeader) -> bool {
    header.kind == MessageType::Fragment && header.version >= Version::V1_2
}

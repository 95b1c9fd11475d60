//! The pieces of fragmented messages: the first message, and its fragments.
//!
//! The payload of each fragment is read into the buffer of its message, after the pieces before it. Because
//! fragments of several messages may alternate, the connection tells which buffer that is.

use giop_codec::Version;
use giop_codec::giop::{MessageHeader, MessageType, RequestId};

use super::read_buf::{LentBuffer, NextHeader, has_more_pieces};
use super::{HEADER_LEN, MIN_DEPOSIT_SIZE, PIECE_HEADER_LEN, Receiver, State};
use crate::frame::word_after_header;
use crate::pool::Buffer;

impl Receiver {
    /// Returns the header of the incomplete fragment whose position is not decided yet, and the id of its
    /// request, which fragments of GIOP 1.1 do not have. The fragment must then be [placed](Self::place),
    /// [skipped](Self::skip_unplaced_fragment), or [added to the stream](Self::begin_piece).
    #[inline]
    pub(crate) fn unplaced_fragment(&mut self) -> Option<(MessageHeader, Option<RequestId>)> {
        if std::mem::take(&mut self.has_unplaced_fragment) { self.partial_fragment() } else { None }
    }

    #[cold]
    fn partial_fragment(&self) -> Option<(MessageHeader, Option<RequestId>)> {
        let bytes = self.received_part();
        let header = MessageHeader::decode(bytes.first_chunk::<HEADER_LEN>()?).ok()?;
        match header.version {
            Version::V1_2 => Some((header, Some(word_after_header(header.order, bytes)?))),
            _ => Some((header, None)),
        }
    }

    /// Returns whether the connection must decide where the payload of the message belongs.
    #[inline]
    pub(super) fn waits_for_place(&self, header: &MessageHeader) -> bool {
        is_1_2_fragment(header)
            || self.stream.has_1_1_fragments
                && header.kind == MessageType::Fragment
                && header.version == Version::V1_1
    }

    /// Returns the received part of the next message, if it is in the window or is only a header.
    pub(super) fn received_part(&self) -> &[u8] {
        match &self.state {
            State::Window => self.unprocessed(),
            State::NextHeader { next, .. } => next.bytes(),
            _ => &[],
        }
    }

    /// Starts to read the payload of the [unplaced](Self::unplaced_fragment) fragment into `buffer`, after
    /// its first `at` bytes. When the fragment is complete, [`take_placed_buffer`](Self::take_placed_buffer)
    /// returns the buffer.
    ///
    /// # Errors
    /// `buffer`, if it is too small and there is no memory at present. The receiver is then starved.
    #[cold]
    pub(crate) fn place(&mut self, header: MessageHeader, buffer: Buffer, at: usize) -> Result<(), Buffer> {
        let size = at + (header.size as usize).saturating_sub(PIECE_HEADER_LEN - HEADER_LEN);
        let buffer = self.larger_buffer(buffer, at, size)?;
        match std::mem::replace(&mut self.state, State::Window) {
            State::NextHeader { .. } => self.deposit_piece(header, buffer, at, &[]),
            _ => {
                let Some(window) = self.window.buf.take() else { return Err(buffer) };
                let received =
                    window.buffer.bytes().get(self.window.start + PIECE_HEADER_LEN..self.window.end);
                self.deposit_piece(header, buffer, at, received.unwrap_or_default());
                self.window.buf = Some(window);
                self.release_window();
            }
        }
        Ok(())
    }

    /// Skips the payload of the [unplaced](Self::unplaced_fragment) fragment. [`front`](Self::front) has its
    /// headers.
    #[cold]
    pub(crate) fn skip_unplaced_fragment(&mut self, header: &MessageHeader) {
        self.front.len = headers_len(header);
        self.skip.left = (header.size as usize).saturating_sub(headers_len(header) - HEADER_LEN);
        self.skip.size = self.skip.left;
        if let State::NextHeader { .. } = self.state {
            self.sizes.expected = 0;
        }
    }

    /// Takes the buffer of the peeked piece, so that the next piece can be appended to it. Returns `None` if
    /// the piece is small, or if other messages use the buffer too.
    #[cold]
    pub(crate) fn take_piece(&mut self) -> Option<Buffer> {
        match std::mem::replace(&mut self.state, State::Window) {
            State::CompletePiece { header, mut buf } => {
                let buffer = std::mem::take(&mut buf.buffer);
                self.state = State::NextHeader { next: buf.next, expects_fragment: has_more_pieces(&header) };
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

    pub(crate) fn take_placed_buffer(&mut self, header: &MessageHeader) -> Option<Buffer> {
        let placed = is_1_2_fragment(header) && matches!(self.state, State::CompletePiece { .. });
        if placed { self.take_piece() } else { None }
    }

    /// Takes the window if it contains only a large first piece, followed by at most one header.
    fn adopt_window(&mut self) -> Option<Buffer> {
        let (from, front, to) = (self.window.start, self.front.len, self.window.end);
        if front < MIN_DEPOSIT_SIZE || !self.deposits_enabled {
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
        let next = NextHeader::new(window.buffer.bytes().get(front..to).unwrap_or_default());
        self.state = State::NextHeader { next, expects_fragment: true };
        (self.window.start, self.window.end, self.front.len) = (0, 0, 0);
        let buffer = std::mem::take(&mut window.buffer);
        self.memory.keep_box(window);
        Some(buffer)
    }

    #[cold]
    pub(crate) fn set_joined_size(&mut self, size: usize) {
        self.memory.record_size(size);
        if self.sizes.first_piece > 0 {
            (self.sizes.expected, self.sizes.expected_total) =
                (std::mem::take(&mut self.sizes.first_piece), size);
        }
    }

    pub(super) fn read_header(&mut self, mut buf: Box<LentBuffer>, n: usize) {
        buf.next.len = (buf.next.len + n).min(PIECE_HEADER_LEN);
        self.state = State::NextHeader { next: buf.next, expects_fragment: true };
        self.memory.keep_box(buf);
    }
}

pub(super) fn headers_len(header: &MessageHeader) -> usize {
    if header.version >= Version::V1_2 { PIECE_HEADER_LEN } else { HEADER_LEN }
}

/// Returns whether the message is a GIOP 1.2 fragment, which can be appended to the pieces before it.
#[inline]
pub(super) fn is_1_2_fragment(header: &MessageHeader) -> bool {
    header.kind == MessageType::Fragment && header.version >= Version::V1_2
}

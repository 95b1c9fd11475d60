//! Streamed messages that are received in fragments: their payload is taken piece by piece.
//!
//! The rest of a large piece is read like that of a message in one piece, with the headers of the next one
//! after it. Small pieces are taken from a window. Other messages may be received between two pieces.
//! Fragments of GIOP 1.1 do not identify their message: while there may be some of a stream, no other stream
//! starts.

use bytes::Bytes;
use giop_codec::giop::MessageHeader;

use super::pieces::headers_len;
use super::{DEPOSIT_MIN, Receiver, STREAM_START, State};

impl Receiver {
    /// Returns the header as which a completely received first fragment is handled. That of a streamed
    /// message is handled as a message that is followed by its stream.
    #[cold]
    pub(super) fn first_piece(&mut self, header: MessageHeader) -> MessageHeader {
        if self.front().len() >= STREAM_START && self.stream.may_begin_pieces(&header, self.front()) {
            (self.front.streams, self.front.has_more, self.skip.left) = (true, true, 0);
            return MessageHeader { more_fragments: false, ..header };
        }
        header
    }

    /// Returns whether the first message is the first piece of a streamed request.
    #[inline]
    pub(crate) fn front_more(&self) -> bool {
        self.front.has_more
    }

    /// Returns the received payload of the fragment that waits for its position.
    pub(crate) fn come_of_piece(&self, header: &MessageHeader) -> &[u8] {
        self.come().get(headers_len(header)..).unwrap_or_default()
    }

    /// Takes the fragment that waits for its position out of the window, and drops the received part of its
    /// payload. Returns the number of bytes that are still to be received.
    pub(crate) fn enter_piece(&mut self, header: &MessageHeader) -> usize {
        let size = (header.size as usize).saturating_sub(headers_len(header) - super::HEADER_LEN);
        let left = size.saturating_sub(self.come_of_piece(header).len());
        self.state = State::Window;
        self.window.from = self.window.to;
        self.emptied();
        (self.sizes.expected, self.sizes.expected_total) = (0, 0);
        left
    }

    /// Uses the fragment that waits for its position as the next piece of the stream.
    #[cold]
    pub(crate) fn begin_piece(&mut self, header: &MessageHeader) {
        let here = match (&self.state, &self.window.buf) {
            (State::Window, Some(window)) => {
                window.buffer.view(self.window.to.min(self.window.from + headers_len(header))..self.window.to)
            }
            // The bytes read with the header.
            _ => Bytes::copy_from_slice(self.come_of_piece(header)),
        };
        let left = self.enter_piece(header);
        self.next_piece(header, left, here);
    }

    /// Uses the first message, a whole fragment, as the next piece of the stream.
    #[cold]
    pub(crate) fn stream_front(&mut self, header: &MessageHeader) {
        let octets = self.take_front();
        let payload = octets.slice(octets.len().min(headers_len(header))..);
        drop(octets);
        self.next_piece(header, 0, payload);
    }

    fn next_piece(&mut self, header: &MessageHeader, left: usize, here: Bytes) {
        let Some(stream) = &mut self.stream.current else { return };
        (stream.left, stream.more) = (left, header.more_fragments);
        stream.after_large = left + here.len() >= DEPOSIT_MIN;
        stream.come += here.len() as u64;
        if left == 0 && !header.more_fragments {
            self.note_stream();
        }
        self.stream.push_view(here, &mut self.memory);
    }
}

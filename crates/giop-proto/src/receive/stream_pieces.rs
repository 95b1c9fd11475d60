//! Streamed messages that are received in fragments.
//!
//! A *piece* is the first message, or one of its fragments. The rest of a large piece is read as if the
//! message were in one piece, with the headers of the next piece after it. Small pieces are taken from the
//! read window. Other messages may be received between two pieces. Fragments of GIOP 1.1 do not identify
//! their message. While a stream may consist of such fragments, no other stream starts.

use bytes::Bytes;
use giop_codec::giop::MessageHeader;

use super::pieces::headers_len;
use super::{MIN_DEPOSIT_SIZE, Receiver, STREAM_START_LEN, State};

impl Receiver {
    /// Returns the header for handing out a first piece: without the flag for fragments if it is streamed.
    #[cold]
    pub(super) fn header_of_first_piece(&mut self, header: MessageHeader) -> MessageHeader {
        if self.front().len() >= STREAM_START_LEN
            && self.stream.is_first_streamed_piece(&header, self.front())
        {
            (self.front.is_streamed, self.front.has_more_pieces, self.skip.left) = (true, true, 0);
            return MessageHeader { more_fragments: false, ..header };
        }
        header
    }

    pub(crate) fn received_payload(&self, header: &MessageHeader) -> &[u8] {
        self.received_part().get(headers_len(header)..).unwrap_or_default()
    }

    /// Removes the [unplaced](Self::unplaced_fragment) fragment and the received part of its payload. Returns
    /// the number of bytes of its payload that are still to be received.
    pub(crate) fn remove_unplaced_fragment(&mut self, header: &MessageHeader) -> usize {
        let size = (header.size as usize).saturating_sub(headers_len(header) - super::HEADER_LEN);
        let left = size.saturating_sub(self.received_payload(header).len());
        self.state = State::Window;
        self.window.start = self.window.end;
        self.release_window();
        (self.sizes.expected, self.sizes.expected_total) = (0, 0);
        left
    }

    /// Makes the [unplaced](Self::unplaced_fragment) fragment the next piece of the stream.
    #[cold]
    pub(crate) fn begin_piece(&mut self, header: &MessageHeader) {
        let received = match (&self.state, &self.window.buf) {
            (State::Window, Some(window)) => window
                .buffer
                .view(self.window.end.min(self.window.start + headers_len(header))..self.window.end),
            // Only the header was read, possibly with a few bytes after it.
            _ => Bytes::copy_from_slice(self.received_payload(header)),
        };
        let left = self.remove_unplaced_fragment(header);
        self.enter_next_piece(header, left, received);
    }

    /// Makes the peeked message, which is a complete fragment, the next piece of the stream.
    #[cold]
    pub(crate) fn stream_front(&mut self, header: &MessageHeader) {
        let bytes = self.take_front();
        let payload = bytes.slice(bytes.len().min(headers_len(header))..);
        drop(bytes);
        self.enter_next_piece(header, 0, payload);
    }

    fn enter_next_piece(&mut self, header: &MessageHeader, left: usize, received: Bytes) {
        let Some(stream) = &mut self.stream.current else { return };
        (stream.left, stream.has_more_pieces) = (left, header.more_fragments);
        stream.follows_large_piece = left + received.len() >= MIN_DEPOSIT_SIZE;
        stream.received += received.len() as u64;
        if left == 0 && !header.more_fragments {
            self.record_stream();
        }
        self.stream.push_view(received, &mut self.memory);
    }
}

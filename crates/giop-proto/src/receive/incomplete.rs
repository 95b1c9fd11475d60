//! Decides how an incomplete or oversized message is received, and continues reading it.
//!
//! A *deposit* is a message, or a piece of a fragmented message, that is read directly into its final buffer.

use giop_codec::Version;
use giop_codec::giop::{MessageHeader, MessageType};

use super::blocks::BlockListSearch;
use super::pieces::{headers_len, is_1_2_fragment};
use super::read_buf::{Deposit, LentBuffer, has_more_pieces};
use super::stream_start::{Decision, MIN_RAW_SIZE};
use super::{HEADER_LEN, MIN_DEPOSIT_SIZE, OVERSIZED_START_LEN, Receiver, State};
use crate::error::ProtocolError;

/// The handling of an incomplete message, according to its type and size.
pub(super) enum Handling {
    /// Receive the message. The value is its size in bytes, with the header.
    Receive(usize),
    /// Wait until the connection tells where the payload of this fragment belongs.
    Place,
    /// Hand out the start of a request that is too large, and skip the rest. The value is its whole size.
    Skip(usize),
}

impl Receiver {
    /// Starts to receive the incomplete message at the start of the window. Returns its header if its start
    /// is handed out now, because the rest is streamed or skipped.
    pub(super) fn peek_incomplete(
        &mut self,
        header: MessageHeader,
    ) -> Result<Option<MessageHeader>, ProtocolError> {
        let (from, received_len) = (self.window.start, self.window.end - self.window.start);
        let Some(window) = &self.window.buf else { return Ok(None) };
        let received = window.buffer.bytes().get(from..from + received_len).unwrap_or_default();
        let size = (header.size as usize).saturating_add(HEADER_LEN);
        match self.stream.decision_for(&header, size, received) {
            Decision::Wait => return Ok(None),
            Decision::Stream => {
                // The window may contain the whole message, and further messages after it.
                let received_len = received_len.min(size);
                (self.front.len, self.skip.left, self.skip.size) = (received_len, size - received_len, size);
                (self.front.is_streamed, self.front.has_more_pieces) = (true, header.more_fragments);
                return Ok(Some(MessageHeader { more_fragments: false, ..header }));
            }
            Decision::Whole => {}
        }
        match self.handling_of(&header)? {
            Handling::Skip(_) if received_len < OVERSIZED_START_LEN => Ok(None),
            Handling::Skip(total) => {
                (self.front.len, self.skip.left) = (OVERSIZED_START_LEN, total - OVERSIZED_START_LEN);
                self.skip.size = total;
                Ok(Some(header))
            }
            Handling::Place => {
                self.has_unplaced_fragment = received_len >= headers_len(&header);
                Ok(None)
            }
            Handling::Receive(total) if total >= MIN_DEPOSIT_SIZE => {
                let start = window.buffer.view(from..from + received_len);
                match self.find_blocks(&header, total, &start) {
                    BlockListSearch::Incomplete => return Ok(None),
                    BlockListSearch::List(list) => {
                        if self.begin_message_parts(header, &list, &start) {
                            drop(start);
                            self.release_window();
                        }
                        return Ok(None);
                    }
                    BlockListSearch::NoList => {}
                }
                if self.stream.is_raw(&header, &start) {
                    if self.begin_raw(header, start) {
                        self.release_window();
                    }
                    return Ok(None);
                }
                if let Some(buf) = self.deposit(header, total, &start) {
                    drop(start);
                    self.state = State::Incomplete(buf);
                    self.release_window();
                }
                Ok(None)
            }
            Handling::Receive(total) => {
                if total >= MIN_RAW_SIZE && self.stream.is_raw(&header, received) {
                    let early = window.buffer.view(from..from + received_len);
                    if self.begin_raw(header, early) {
                        self.release_window();
                    }
                }
                Ok(None)
            }
        }
    }

    /// Returns the header of the next message, if it is complete and not in the window.
    pub(super) fn peek_outside_window(&mut self) -> Result<Option<MessageHeader>, ProtocolError> {
        match &self.state {
            State::CompleteMessage { header, .. } => {
                let header = *header;
                Ok(Some(if header.more_fragments { self.header_of_first_piece(header) } else { header }))
            }
            State::CompletePiece { header, .. } => {
                let header = *header;
                Ok(Some(if is_1_2_fragment(&header) { header } else { self.header_of_first_piece(header) }))
            }
            State::NextHeader { next, expects_fragment } => {
                let (next, expects_fragment) = (*next, *expects_fragment);
                let Some(header) = next.header().transpose()? else { return Ok(None) };
                let size = (header.size as usize).saturating_add(HEADER_LEN);
                if let Decision::Wait = self.stream.decision_for(&header, size, next.bytes()) {
                    return Ok(None);
                }
                match self.handling_of(&header)? {
                    Handling::Receive(total) if total <= next.len => {
                        self.front.len = total;
                        return Ok(Some(header));
                    }
                    Handling::Place => self.has_unplaced_fragment = next.len >= headers_len(&header),
                    // After a large piece, even a small fragment is read directly to its place.
                    Handling::Receive(_)
                        if expects_fragment
                            && self.waits_for_place(&header)
                            && self.stream.reads_small_piece() =>
                    {
                        self.has_unplaced_fragment = next.len >= headers_len(&header);
                    }
                    Handling::Receive(total) if total >= MIN_DEPOSIT_SIZE => {
                        if let BlockListSearch::Incomplete = self.find_blocks(&header, total, next.bytes()) {
                            return Ok(None);
                        }
                        if let Some(buf) = self.deposit(header, total, next.bytes()) {
                            self.state = State::Incomplete(buf);
                        }
                    }
                    Handling::Receive(_) | Handling::Skip(_) => {}
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    #[cold]
    pub(super) fn skip_rest(&mut self) {
        let received = self.skip.left.min(self.window.end - self.window.start);
        self.window.start += received;
        self.skip.left -= received;
        self.skip.total_received += received as u64;
    }

    #[cold]
    pub(super) fn skip_window(&mut self, buf: Box<LentBuffer>) {
        self.split_buffer(buf);
        self.skip_rest();
        if self.window.start >= self.window.end {
            self.release_window();
        }
    }

    pub(super) fn read_deposit(&mut self, mut buf: Box<LentBuffer>, filled: usize) {
        let Some(deposit @ Deposit { header, total }) = buf.deposit else { return };
        if filled >= total {
            buf.next.len = (filled - total).min(deposit.next_len());
            if is_1_2_fragment(&header) && self.deposits_enabled {
                self.state = State::CompletePiece { header, buf };
                return;
            }
            if has_more_pieces(&header) && self.deposits_enabled {
                self.sizes.first_piece = total;
                self.state = State::CompletePiece { header, buf };
                return;
            }
            (self.sizes.expected, self.sizes.expected_total) =
                (if self.deposits_enabled { total } else { 0 }, 0);
            self.memory.record_size(total);
            let bytes = self.memory.pool.share(std::mem::take(&mut buf.buffer)).slice(..total);
            self.state = State::CompleteMessage { header, bytes, next: buf.next };
            self.memory.keep_box(buf);
            return;
        }
        buf.filled = filled;
        if filled == buf.end {
            self.memory.grow(&mut buf, self.memory.grant(filled));
        }
        self.state = State::Incomplete(buf);
    }

    /// Requests memory again for the message for which the pool had none.
    #[cold]
    pub(crate) fn retry_memory(&mut self) {
        self.memory.starved = false;
        if self.message_in_parts.is_some() {
            return self.retry_part();
        }
        if let State::Incomplete(buf) = &mut self.state
            && buf.filled == buf.end
        {
            let granted = self.memory.grant(buf.filled);
            self.memory.grow(buf, granted);
        }
    }

    pub(super) fn handling_of(&self, header: &MessageHeader) -> Result<Handling, ProtocolError> {
        let total = (header.size as usize).saturating_add(HEADER_LEN);
        let large = total >= MIN_DEPOSIT_SIZE || total > self.max_message_size;
        if self.deposits_enabled && large && self.waits_for_place(header) {
            Ok(Handling::Place)
        } else if total <= self.max_message_size {
            Ok(Handling::Receive(total))
        } else if header.kind == MessageType::Request
            && header.version == Version::V1_2
            && total >= OVERSIZED_START_LEN
        {
            Ok(Handling::Skip(total))
        } else {
            Err(ProtocolError::TooLarge { size: total, limit: self.max_message_size })
        }
    }
}

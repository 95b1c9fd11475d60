//! Messages that are incomplete or too large.

use giop_codec::Version;
use giop_codec::giop::{MessageHeader, MessageType};

use super::blocks::BlockListSearch;
use super::lent::{Deposit, LentBuffer, is_piece};
use super::memory::grant;
use super::passing::PASSED_MIN;
use super::pieces::{headers_len, is_fragment};
use super::stream_start::Decision;
use super::{DEPOSIT_MIN, HEADER_LEN, OVERSIZED_START, Receiver, State};
use crate::error::ProtocolError;

/// The handling of a message of the size that its header announces.
pub(super) enum Size {
    Fits(usize),
    /// A fragment whose position the connection knows, if it has one.
    Placed,
    /// Too large, but it can be answered and skipped.
    Skip(usize),
}

impl Receiver {
    /// Peeks a message at the front of the window that is incomplete or too large.
    pub(super) fn peek_incomplete(
        &mut self,
        header: MessageHeader,
    ) -> Result<Option<MessageHeader>, ProtocolError> {
        let (from, have) = (self.window.from, self.window.to - self.window.from);
        let Some(window) = &self.window.buf else { return Ok(None) };
        let here = window.buffer.octets().get(from..from + have).unwrap_or_default();
        let size = (header.size as usize).saturating_add(HEADER_LEN);
        match self.stream.decide(&header, size, here) {
            Decision::Wait => return Ok(None),
            Decision::Stream => {
                // All of it may have been received, and other messages after it.
                let have = have.min(size);
                (self.front.len, self.skip.left, self.skip.size) = (have, size - have, size);
                (self.front.streams, self.front.has_more) = (true, header.more_fragments);
                return Ok(Some(MessageHeader { more_fragments: false, ..header }));
            }
            Decision::Whole => {}
        }
        match self.check(&header)? {
            Size::Skip(_) if have < OVERSIZED_START => Ok(None),
            Size::Skip(total) => {
                (self.front.len, self.skip.left) = (OVERSIZED_START, total - OVERSIZED_START);
                self.skip.size = total;
                Ok(Some(header))
            }
            Size::Placed => {
                self.has_unplaced = have >= headers_len(&header);
                Ok(None)
            }
            Size::Fits(total) if total >= DEPOSIT_MIN => {
                let start = window.buffer.view(from..from + have);
                match self.find_blocks(&header, total, &start) {
                    BlockListSearch::Wait => return Ok(None),
                    BlockListSearch::List(list) => {
                        if self.begin_parts(header, &list, &start) {
                            drop(start);
                            self.emptied();
                        }
                        return Ok(None);
                    }
                    BlockListSearch::No => {}
                }
                if self.stream.passes(&header, &start) {
                    if self.begin_rest(header, start) {
                        self.emptied();
                    }
                    return Ok(None);
                }
                if let Some(buf) = self.deposit(header, total, &start) {
                    drop(start);
                    self.state = State::Partial(buf);
                    self.emptied();
                }
                Ok(None)
            }
            Size::Fits(total) => {
                if total >= PASSED_MIN && self.stream.passes(&header, here) {
                    let early = window.buffer.view(from..from + have);
                    if self.begin_rest(header, early) {
                        self.emptied();
                    }
                }
                Ok(None)
            }
        }
    }

    /// Peeks the next message if it does not start in the window.
    pub(super) fn peek_deposited(&mut self) -> Result<Option<MessageHeader>, ProtocolError> {
        match &self.state {
            State::Whole { header, .. } => {
                let header = *header;
                Ok(Some(if header.more_fragments { self.first_piece(header) } else { header }))
            }
            State::Piece { header, .. } => {
                let header = *header;
                Ok(Some(if is_fragment(&header) { header } else { self.first_piece(header) }))
            }
            State::Early { next, of_piece } => {
                let (next, of_piece) = (*next, *of_piece);
                let Some(header) = next.header().transpose()? else { return Ok(None) };
                let size = (header.size as usize).saturating_add(HEADER_LEN);
                if let Decision::Wait = self.stream.decide(&header, size, next.octets()) {
                    return Ok(None);
                }
                match self.check(&header)? {
                    Size::Fits(total) if total <= next.len => {
                        self.front.len = total;
                        return Ok(Some(header));
                    }
                    Size::Placed => self.has_unplaced = next.len >= headers_len(&header),
                    // After a piece, even the smallest fragment is read into its final position.
                    Size::Fits(_)
                        if of_piece && self.waits_for_place(&header) && self.stream.reads_small_piece() =>
                    {
                        self.has_unplaced = next.len >= headers_len(&header);
                    }
                    Size::Fits(total) if total >= DEPOSIT_MIN => {
                        if let BlockListSearch::Wait = self.find_blocks(&header, total, next.octets()) {
                            return Ok(None);
                        }
                        if let Some(buf) = self.deposit(header, total, next.octets()) {
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

    /// Drops the part of the skipped message that is in the window.
    #[cold]
    pub(super) fn skip_rest(&mut self) {
        let here = self.skip.left.min(self.window.to - self.window.from);
        self.window.from += here;
        self.skip.left -= here;
        self.skip.total += here as u64;
    }

    #[cold]
    pub(super) fn skip_window(&mut self, buf: Box<LentBuffer>) {
        self.cut_from(buf);
        self.skip_rest();
        if self.window.from >= self.window.to {
            self.emptied();
        }
    }

    /// Takes back a buffer with a deposited message.
    pub(super) fn deposited(&mut self, mut buf: Box<LentBuffer>, filled: usize) {
        let Some(deposit @ Deposit { header, total }) = buf.deposit else { return };
        if filled >= total {
            buf.next.len = (filled - total).min(deposit.next_len());
            if is_fragment(&header) && self.deposits {
                self.state = State::Piece { header, buf };
                return;
            }
            if is_piece(&header) && self.deposits {
                self.sizes.first_piece = total;
                self.state = State::Piece { header, buf };
                return;
            }
            (self.sizes.expected, self.sizes.expected_total) = (if self.deposits { total } else { 0 }, 0);
            self.sizes.largest = self.sizes.largest.max(total);
            let octets = self.memory.pool.share(std::mem::take(&mut buf.buffer)).slice(..total);
            self.state = State::Whole { header, octets, next: buf.next };
            self.memory.keep_box(buf);
            return;
        }
        buf.from = filled;
        if filled == buf.to {
            self.memory.grow(&mut buf, grant(filled, self.sizes.largest));
        }
        self.state = State::Partial(buf);
    }

    /// Tries again to get memory from the pool.
    #[cold]
    pub fn retry(&mut self) {
        self.memory.starved = false;
        if self.parted.is_some() {
            return self.retry_part();
        }
        if let State::Partial(buf) = &mut self.state
            && buf.from == buf.to
        {
            let granted = grant(buf.from, self.sizes.largest);
            self.memory.grow(buf, granted);
        }
    }

    pub(super) fn check(&self, header: &MessageHeader) -> Result<Size, ProtocolError> {
        let total = (header.size as usize).saturating_add(HEADER_LEN);
        let large = total >= DEPOSIT_MIN || total > self.max_message;
        if self.deposits && large && self.waits_for_place(header) {
            Ok(Size::Placed)
        } else if total <= self.max_message {
            Ok(Size::Fits(total))
        } else if header.kind == MessageType::Request
            && header.version == Version::V1_2
            && total >= OVERSIZED_START
        {
            Ok(Size::Skip(total))
        } else {
            Err(ProtocolError::TooLarge { size: total, limit: self.max_message })
        }
    }
}

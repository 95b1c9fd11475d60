//! Streams: payloads of large requests and replies that are received after the start of their message.
//!
//! The *reader* of a stream is the code that takes the payload: a servant or a client. When it requests
//! bytes, they are received in chunks or in memory that it lends (`loan.rs`). Reading stops when a few chunks
//! are waiting, so that TCP's flow control stops the peer.
//!
//! No other message is received before the end of the payload, except between fragments (`stream_pieces.rs`).

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};

use super::loan::{Loan, LoanPlace, LoanReturn};
use super::memory::STARVED_WINDOW;
use super::read_buf::{Deposit, LentBuffer, NextHeader, ReadBuf};
use super::receiver_state::{Memory, StreamState};
use super::{MIN_DEPOSIT_SIZE, Receiver, State};
use crate::pool::WINDOW_SIZE;

/// The maximum size of a chunk in bytes.
pub const MAX_CHUNK_SIZE: usize = 256 * 1024;

/// Reading stops when so many chunks have not been taken.
const MAX_WAITING_CHUNKS: usize = 4;

/// The minimum size in bytes of a piece that becomes a chunk. Smaller ones would keep a window allocated.
const MIN_VIEW_SIZE: usize = 4 * 1024;

const ELEMENT_ALIGN: usize = 8;

/// The result of [`IncomingStream::take_chunk`](crate::IncomingStream::take_chunk).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// The next bytes.
    Bytes(Bytes),
    /// No bytes are available yet.
    Pending,
    /// The payload has been taken completely.
    End,
    /// The rest is lost: the connection ended, the request was cancelled, or the stream was abandoned.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    None,
    Chunks,
    /// The reader has lent memory. When that is full, reading stops until it lends memory again.
    Loan,
}

#[derive(Debug)]
pub(super) struct Stream {
    /// The number of bytes of the payload, or of its current piece, that are still to be received.
    pub(super) left: usize,
    pub(super) has_more_pieces: bool,
    /// The number of bytes of the message before the streamed bytes.
    pub(super) head_len: usize,
    /// True after a large piece. Then even a small piece is read separately from the bytes after it.
    pub(super) follows_large_piece: bool,
    pub(super) received: u64,
    /// The size of the payload in bytes, as far as it is known.
    size: u64,
    /// Where in an element, modulo [`ELEMENT_ALIGN`], the payload begins. Chunks are read to addresses at
    /// which their elements are aligned. `None` for a payload of bytes.
    element_offset: Option<usize>,
    chunks: VecDeque<Bytes>,
    /// Copies of small pieces. They follow `chunks`.
    gathered: BytesMut,
    demand: Demand,
    /// True if the reader takes no more bytes, so that the rest is skipped.
    abandoned: bool,
    /// True if the payload is received in pieces, and [`StreamState::set_size`] has not been called.
    is_size_unknown: bool,
}

impl Stream {
    fn is_whole(&self) -> bool {
        self.left == 0 && !self.has_more_pieces
    }

    /// Returns where in an element, modulo [`ELEMENT_ALIGN`], the next byte is.
    fn next_element_offset(&self) -> usize {
        let received = (self.received % ELEMENT_ALIGN as u64) as usize;
        self.element_offset.map_or(0, |offset| (offset + received) % ELEMENT_ALIGN)
    }

    fn is_full(&self) -> bool {
        self.chunks.len() >= MAX_WAITING_CHUNKS
    }

    fn has_bytes(&self) -> bool {
        !self.chunks.is_empty() || !self.gathered.is_empty()
    }

    fn pop(&mut self) -> Option<Bytes> {
        let gathered = || (!self.gathered.is_empty()).then(|| self.gathered.split().freeze());
        self.chunks.pop_front().or_else(gathered)
    }
}

impl StreamState {
    /// Starts a stream after `head_len` bytes of its message. `left` bytes follow in this message or piece.
    pub(crate) fn begin(&mut self, head_len: usize, left: usize, has_more_pieces: bool) {
        self.current = Some(Box::new(Stream {
            left,
            has_more_pieces,
            head_len,
            follows_large_piece: left >= MIN_DEPOSIT_SIZE,
            received: 0,
            size: left as u64,
            element_offset: None,
            chunks: VecDeque::new(),
            gathered: BytesMut::new(),
            demand: Demand::None,
            abandoned: false,
            is_size_unknown: has_more_pieces,
        }));
    }

    /// Sets the size of a payload that is received in pieces, whose headers do not contain it.
    pub(crate) fn set_size(&mut self, bytes: u64) {
        if let Some(stream) = self.current.as_mut().filter(|stream| stream.has_more_pieces) {
            stream.size = stream.size.max(bytes);
            stream.is_size_unknown = false;
        }
    }

    /// Returns the number of bytes that are still to be received, or `u64::MAX` if it is not known.
    pub(crate) fn missing_bytes(&self) -> u64 {
        match &self.current {
            Some(stream) if stream.has_more_pieces && stream.is_size_unknown => u64::MAX,
            Some(stream) if stream.has_more_pieces => stream.size.saturating_sub(stream.received),
            Some(stream) => stream.left as u64,
            None => 0,
        }
    }

    /// Declares that the stream consists of elements with an alignment of eight bytes or less, and that it
    /// begins at this offset of an element.
    pub(crate) fn align(&mut self, element_offset: usize) {
        if let Some(stream) = &mut self.current {
            stream.element_offset = Some(element_offset % ELEMENT_ALIGN);
        }
    }

    /// Returns whether there is a stream whose reader has not taken all bytes.
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.current.is_some()
    }

    #[inline]
    pub(super) fn left(&self) -> usize {
        self.current.as_ref().map_or(0, |stream| stream.left)
    }

    #[inline]
    pub(crate) fn is_incomplete(&self) -> bool {
        self.current.as_ref().is_some_and(|stream| !stream.is_whole())
    }

    pub(crate) fn size(&self) -> usize {
        let stream = self.current.as_ref().filter(|stream| !stream.is_whole());
        stream.map_or(0, |stream| usize::try_from(stream.size.max(stream.received)).unwrap_or(usize::MAX))
    }

    /// Returns whether the connection must not be read until the stream's reader takes or requests something.
    #[inline]
    pub(crate) fn awaits_reader(&self) -> bool {
        self.current.as_ref().is_some_and(|stream| match stream.demand {
            _ if stream.abandoned => false,
            _ if stream.is_whole() || stream.is_full() => true,
            Demand::None => true,
            Demand::Chunks => false,
            Demand::Loan => !matches!(self.loan, LoanPlace::Ready(_) | LoanPlace::Lent { .. }),
        })
    }

    #[inline]
    pub(crate) fn blocks_messages(&self) -> bool {
        self.current.as_ref().is_some_and(|stream| stream.is_whole() || stream.is_full())
    }

    /// Returns whether the reader of the stream can take a chunk, the end, or the memory that it lent.
    pub(crate) fn has_chunk(&self) -> bool {
        match self.loan {
            LoanPlace::Returned(_) => true,
            LoanPlace::Ready(_) | LoanPlace::Lent { is_awaited: true } => false,
            LoanPlace::None | LoanPlace::Lent { is_awaited: false } => {
                self.current.as_ref().is_none_or(|stream| stream.is_whole() || stream.has_bytes())
            }
        }
    }

    /// Returns the next chunk. If `requests_more` is true, the reader requests further bytes.
    pub(crate) fn take_chunk(&mut self, requests_more: bool) -> Chunk {
        let Some(stream) = &mut self.current else { return Chunk::Lost };
        stream.demand = if requests_more { Demand::Chunks } else { Demand::None };
        match stream.pop() {
            Some(bytes) => Chunk::Bytes(bytes),
            None if !stream.is_whole() => Chunk::Pending,
            None => {
                self.current = None;
                Chunk::End
            }
        }
    }

    /// Lends memory for the next bytes. [`take_loan`](Self::take_loan) gives it back.
    ///
    /// # Errors
    /// `loan`, if other memory is lent, chunks must be taken first, the whole payload has been received, or
    /// `deposits_enabled` is false.
    pub(crate) fn lend(&mut self, loan: Box<Loan>) -> Result<(), Box<Loan>> {
        match &mut self.current {
            Some(stream)
                if self.deposits_enabled
                    && matches!(self.loan, LoanPlace::None)
                    && !stream.has_bytes()
                    && !stream.is_whole() =>
            {
                stream.demand = Demand::Loan;
                self.loan = LoanPlace::Ready(loan);
                Ok(())
            }
            _ => Err(loan),
        }
    }

    pub(crate) fn take_loan(&mut self) -> LoanReturn {
        match std::mem::take(&mut self.loan) {
            LoanPlace::Returned(loan) => LoanReturn::Loan(loan),
            LoanPlace::None => LoanReturn::Nothing,
            lent => {
                self.loan = lent;
                LoanReturn::Pending
            }
        }
    }

    #[inline]
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self.loan, LoanPlace::Lent { .. })
    }

    /// Forgets the lent memory if the reader of the socket has it, because it will not be returned.
    #[cold]
    pub(crate) fn lose_loan(&mut self) {
        if let LoanPlace::Lent { .. } = self.loan {
            self.loan = LoanPlace::None;
        }
    }

    /// Returns the loan. If it is being read into, it becomes an [orphan](Self::orphaned_loans).
    pub(crate) fn drop_loan(&mut self) -> Option<Box<Loan>> {
        match std::mem::take(&mut self.loan) {
            LoanPlace::Ready(loan) | LoanPlace::Returned(loan) => Some(loan),
            LoanPlace::Lent { .. } => {
                self.loan = LoanPlace::Lent { is_awaited: false };
                None
            }
            LoanPlace::None => None,
        }
    }

    /// Ends an incomplete stream, because the connection has ended or the caller cancelled the request.
    pub(crate) fn end(&mut self) {
        if self.is_incomplete() {
            self.current = None;
        }
        self.recall_loan();
    }

    fn recall_loan(&mut self) {
        self.loan = match std::mem::take(&mut self.loan) {
            LoanPlace::Ready(loan) => LoanPlace::Returned(loan),
            other => other,
        };
    }

    /// Returns the number of bytes that can be read into the loan, if there is one.
    #[inline]
    pub(super) fn loan_rest(&self) -> usize {
        match &self.loan {
            LoanPlace::Ready(loan) => (loan.len - loan.filled).min(self.left()),
            _ => 0,
        }
    }

    fn return_loan(&mut self, loan: Option<Box<Loan>>, received: usize, whole: bool) {
        let Some(mut loan) = loan else { return };
        loan.filled += received;
        match std::mem::take(&mut self.loan) {
            LoanPlace::Lent { is_awaited: true } if whole || loan.is_done() => {
                self.loan = LoanPlace::Returned(loan)
            }
            LoanPlace::Lent { is_awaited: true } => self.loan = LoanPlace::Ready(loan),
            other => {
                // The reader no longer waits for the loan. Keep it, because dropping it runs the target's
                // code.
                self.loan = other;
                if let LoanPlace::Lent { is_awaited: false } = self.loan {
                    self.loan = LoanPlace::None;
                }
                self.orphaned_loans.push(loan);
            }
        }
    }

    fn push_chunk(&mut self, bytes: Bytes) {
        self.recall_loan();
        if let Some(stream) = &mut self.current
            && !bytes.is_empty()
        {
            if !stream.gathered.is_empty() {
                stream.chunks.push_back(stream.gathered.split().freeze());
            }
            stream.chunks.push_back(bytes);
        }
    }

    /// Adds bytes that are in a window together with other messages. Copies them if they are few.
    pub(super) fn push_view(&mut self, bytes: Bytes, memory: &mut Memory) {
        if bytes.len() >= MIN_VIEW_SIZE {
            return self.push_chunk(bytes);
        }
        self.recall_loan();
        if let Some(stream) = &mut self.current
            && !bytes.is_empty()
        {
            memory.copied_bytes += bytes.len() as u64;
            if stream.gathered.len() + bytes.len() > WINDOW_SIZE {
                stream.chunks.push_back(stream.gathered.split().freeze());
            }
            stream.gathered.extend_from_slice(&bytes);
        }
    }

    pub(super) fn may_stream_pieces(&self, header: &MessageHeader) -> bool {
        let may_be_1_1 =
            header.kind != MessageType::Reply || self.reply.is_some_and(|reply| reply.unaligned_fragments);
        self.deposits_enabled
            && (header.version >= Version::V1_2 || may_be_1_1 && header.version == Version::V1_1)
    }

    /// Returns whether a fragmented message is streamed. `bytes` are the first bytes of its first piece.
    pub(crate) fn is_first_streamed_piece(&self, header: &MessageHeader, bytes: &[u8]) -> bool {
        self.may_stream(header, 0) && self.is_streamed(header, bytes)
    }

    /// Returns whether even a small piece is read separately: not after a small streamed piece.
    pub(super) fn reads_small_piece(&self) -> bool {
        self.current.as_ref().is_none_or(|stream| stream.follows_large_piece)
    }
}

impl Receiver {
    /// Returns the number of bytes of the peeked message, or of its first piece, that follow as a stream.
    #[inline]
    pub(crate) fn streamed_rest(&self) -> usize {
        if self.front.is_streamed { self.skip.left } else { 0 }
    }

    #[cold]
    pub(super) fn begin_stream(&mut self, head_len: usize) {
        let has_more_pieces = std::mem::take(&mut self.front.has_more_pieces);
        self.front.is_streamed = false;
        let left = std::mem::take(&mut self.skip.left);
        self.stream.begin(head_len, left, has_more_pieces);
        (self.sizes.expected, self.sizes.expected_total) = (0, 0);
        if left > 0 {
            self.release_window();
        }
    }

    pub(crate) fn abandon_stream(&mut self) {
        match &mut self.stream.current {
            Some(stream) if matches!(self.state, State::Lent) && stream.left > 0 => {
                stream.abandoned = true;
                stream.has_more_pieces = false;
                stream.chunks.clear();
            }
            Some(_) => self.skip_stream(),
            None => {}
        }
    }

    fn skip_stream(&mut self) {
        let left = self.stream.left();
        // Between two pieces of the stream, `skip` may be in use for another message.
        if left > 0 {
            (self.skip.left, self.skip.size) = (left, self.stream.size());
        }
        self.stream.current = None;
    }

    pub(super) fn record_stream(&mut self) {
        let Some(stream) = &self.stream.current else { return };
        let size = usize::try_from(stream.received).unwrap_or(usize::MAX).saturating_add(stream.head_len);
        self.memory.record_size(size.min(self.max_message_size));
        self.stream.follows_stream = true;
    }

    /// Returns a buffer for the next bytes of the stream: the lent memory, a chunk, or a window.
    #[cold]
    pub(super) fn chunk_buffer(&mut self) -> ReadBuf {
        let Some(stream) = &self.stream.current else { return self.window_with(&[]) };
        let (left, has_more_pieces) = (stream.left, stream.has_more_pieces);
        let from = stream.next_element_offset();
        // The version and the flag for fragments determine how many bytes are read after the payload.
        let version = if self.stream.has_1_1_fragments { Version::V1_1 } else { Version::V1_2 };
        let mut header = MessageHeader::new(version, ByteOrder::NATIVE, MessageType::Request);
        header.more_fragments = has_more_pieces;
        let place = std::mem::take(&mut self.stream.loan);
        if let LoanPlace::Ready(loan) = place {
            let (from, len) = (loan.filled, loan.len);
            let total = from.saturating_add(left);
            let mut buf =
                self.memory.lend(Default::default(), from, len.min(total), Some(Deposit { header, total }));
            buf.0.loan = Some(loan);
            self.stream.loan = LoanPlace::Lent { is_awaited: true };
            return buf;
        }
        self.stream.loan = place;
        if !self.deposits_enabled {
            return self.empty_window();
        }
        let total = from.saturating_add(left);
        let buffer = (self.memory.pool.try_take(total.min(MAX_CHUNK_SIZE)))
            .or_else(|| self.memory.pool.try_take(total.min(WINDOW_SIZE)))
            .unwrap_or_else(|| self.memory.pool.take_unpooled(STARVED_WINDOW));
        let to = buffer.capacity().min(total).min(MAX_CHUNK_SIZE);
        self.memory.lend(buffer, from, to, Some(Deposit { header, total }))
    }

    #[cold]
    pub(super) fn read_chunk(&mut self, mut buf: Box<LentBuffer>, n: usize) {
        self.state = State::Window;
        let received = n.min(buf.end.saturating_sub(buf.filled));
        let loan = buf.loan.take();
        let Some(stream) = &mut self.stream.current else {
            self.stream.return_loan(loan, received, true);
            return self.memory.give_back(buf);
        };
        stream.left -= received.min(stream.left);
        stream.received += received as u64;
        if stream.left == 0 {
            buf.next.len = n - received;
            let next = NextHeader::new(buf.next.bytes());
            self.state = State::NextHeader { next, expects_fragment: stream.has_more_pieces };
        }
        let whole = stream.is_whole();
        let abandoned = stream.abandoned;
        if whole {
            self.record_stream();
        }
        if abandoned {
            self.skip_stream();
            self.skip.total_received += received as u64;
            self.stream.return_loan(loan, received, true);
            return self.memory.give_back(buf);
        }
        if let Some(loan) = loan {
            self.stream.return_loan(Some(loan), received, whole);
            return self.memory.give_back(buf);
        }
        if received == 0 {
            self.memory.give_back(buf);
        } else {
            let bytes = self.memory.pool.share(std::mem::take(&mut buf.buffer));
            self.stream.push_chunk(bytes.slice(buf.filled..buf.filled + received));
            self.memory.keep_box(buf);
        }
    }

    /// Handles `n` bytes that were read into a window during a stream, because `deposits_enabled` is false.
    #[cold]
    pub(super) fn read_chunk_from_window(&mut self, mut window: Box<LentBuffer>, n: usize) {
        window.filled = n.min(window.end);
        self.split_buffer(window);
        let received = self.stream.left().min(self.window.end);
        let Some(stream) = &mut self.stream.current else { return };
        stream.left -= received;
        stream.received += received as u64;
        if stream.abandoned {
            self.skip_stream();
            self.skip.total_received += received as u64;
        } else if received > 0 {
            self.front.len = received;
            let chunk = self.copy_front();
            self.stream.push_chunk(chunk);
            return;
        }
        self.window.start = received;
        if self.window.start >= self.window.end {
            self.release_window();
        }
    }
}

//! The payloads of large requests and replies that are handed out before they have been received whole
//! (`stream_start.rs`).
//!
//! A payload is received in chunks, or in memory that its reader lends (`place.rs`). Nothing is read until a
//! chunk is requested. Then the connection reads into chunk buffers, and stops when a few of them are full:
//! flow control makes the peer wait.
//!
//! No other message is received before the end of the payload, except between fragments (`stream_pieces.rs`).

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};

use super::lent::{Deposit, LentBuffer, NextHeader, ReadBuf};
use super::memory::STARVED_WINDOW;
use super::parts::{Memory, StreamState};
use super::place::{Loan, LoanPlace, LoanReturn};
use super::{DEPOSIT_MIN, Receiver, State};
use crate::pool::WINDOW;

/// The maximum number of bytes of one chunk.
pub const CHUNK: usize = 256 * 1024;

/// The number of untaken chunks at which reading stops.
const WAITING: usize = 4;

/// Pieces of fewer bytes are gathered into one chunk, so that they do not pin a window.
const TINY: usize = 4 * 1024;

/// The alignment of elements in chunks.
const ELEMENT_ALIGN: usize = 8;

/// The result of [`IncomingStream::take_chunk`](crate::IncomingStream::take_chunk).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// The next bytes.
    Octets(Bytes),
    /// No bytes are available yet.
    Pending,
    /// There are no more: the message is complete.
    End,
    /// The connection ended before the payload did, the caller cancelled the request, or the stream was given
    /// up here.
    Lost,
}

/// The demand of the stream's reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// None: no more is read.
    Nothing,
    Chunks,
    /// Memory is lent, which is full at present or lent again.
    Loan,
}

/// The payload that is being received.
#[derive(Debug)]
pub(super) struct Stream {
    /// Bytes still to be received from the socket, of the current piece if it is received in pieces.
    pub(super) left: usize,
    /// True if pieces follow.
    pub(super) more: bool,
    /// Bytes of the message that were handed out with the request.
    pub(super) start: usize,
    /// True if the previous piece was large. The next one is then read separately from what follows it, even
    /// if it is small.
    pub(super) after_large: bool,
    /// Bytes of the payload that have been received.
    pub(super) come: u64,
    /// The size of the payload in bytes, as far as it is known.
    all: u64,
    /// The offset of the payload's first byte within elements, modulo their alignment. Chunks are read to
    /// positions at which elements are aligned. `None` for a payload of bytes.
    phase: Option<usize>,
    chunks: VecDeque<Bytes>,
    /// Small pieces that follow the chunks.
    gathered: BytesMut,
    demand: Demand,
    /// True if the stream was given up: the rest is skipped.
    abandoned: bool,
    /// True if its number of bytes is not known.
    is_open_ended: bool,
}

impl Stream {
    /// Returns whether all of it has been received.
    fn is_whole(&self) -> bool {
        self.left == 0 && !self.more
    }

    /// Returns the offset of the next byte within elements, modulo their alignment.
    fn next_phase(&self) -> usize {
        let behind = (self.come % ELEMENT_ALIGN as u64) as usize;
        self.phase.map_or(0, |phase| (phase + behind) % ELEMENT_ALIGN)
    }

    fn is_full(&self) -> bool {
        self.chunks.len() >= WAITING
    }

    fn has_octets(&self) -> bool {
        !self.chunks.is_empty() || !self.gathered.is_empty()
    }

    fn pop(&mut self) -> Option<Bytes> {
        let gathered = || (!self.gathered.is_empty()).then(|| self.gathered.split().freeze());
        self.chunks.pop_front().or_else(gathered)
    }
}

impl StreamState {
    /// Starts a stream after the first `start` bytes of its message. `left` bytes of it, or of its piece,
    /// follow.
    pub(crate) fn begin(&mut self, start: usize, left: usize, more: bool) {
        self.current = Some(Box::new(Stream {
            left,
            more,
            start,
            after_large: left >= DEPOSIT_MIN,
            come: 0,
            all: left as u64,
            phase: None,
            chunks: VecDeque::new(),
            gathered: BytesMut::new(),
            demand: Demand::Nothing,
            abandoned: false,
            is_open_ended: more,
        }));
    }

    /// Sets the number of bytes of a stream that is received in pieces, whose size is not known otherwise.
    pub(crate) fn expect(&mut self, octets: u64) {
        if let Some(stream) = self.current.as_mut().filter(|stream| stream.more) {
            stream.all = stream.all.max(octets);
            stream.is_open_ended = false;
        }
    }

    /// Returns the number of bytes that the peer has still to send, or `u64::MAX` if it is not known.
    pub(crate) fn rest(&self) -> u64 {
        match &self.current {
            Some(stream) if stream.more && stream.is_open_ended => u64::MAX,
            Some(stream) if stream.more => stream.all.saturating_sub(stream.come),
            Some(stream) => stream.left as u64,
            None => 0,
        }
    }

    /// Sets that the stream consists of elements that are aligned to eight bytes or less, and that its first
    /// byte is at offset `phase` of an element.
    pub(crate) fn align(&mut self, phase: usize) {
        if let Some(stream) = &mut self.current {
            stream.phase = Some(phase % ELEMENT_ALIGN);
        }
    }

    /// Returns whether a stream has not ended, or is not completely taken.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.current.is_some()
    }

    /// Returns the number of bytes of the stream's message, or piece, that are still to be received from the
    /// socket.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.current.as_ref().map_or(0, |stream| stream.left)
    }

    /// Returns whether a stream is partly received.
    #[inline]
    pub(crate) fn is_incomplete(&self) -> bool {
        self.current.as_ref().is_some_and(|stream| !stream.is_whole())
    }

    /// Returns the size of the stream that is partly received, or 0 if there is none.
    pub(crate) fn size(&self) -> usize {
        let stream = self.current.as_ref().filter(|stream| !stream.is_whole());
        stream.map_or(0, |stream| usize::try_from(stream.all.max(stream.come)).unwrap_or(usize::MAX))
    }

    /// Returns whether reading must wait until chunks are taken, or memory is lent.
    #[inline]
    pub(crate) fn awaits_taker(&self) -> bool {
        self.current.as_ref().is_some_and(|stream| match stream.demand {
            _ if stream.abandoned => false,
            _ if stream.is_whole() || stream.is_full() => true,
            Demand::Nothing => true,
            Demand::Chunks => false,
            Demand::Loan => !matches!(self.place, LoanPlace::Waiting(_) | LoanPlace::Lent(_)),
        })
    }

    /// Returns whether received messages must wait.
    #[inline]
    pub(crate) fn holds_messages(&self) -> bool {
        self.current.as_ref().is_some_and(|stream| stream.is_whole() || stream.is_full())
    }

    /// Returns whether there is something to take for the reader of the stream.
    pub(crate) fn has_chunk(&self) -> bool {
        match self.place {
            LoanPlace::Back(_) => true,
            LoanPlace::Waiting(_) | LoanPlace::Lent(true) => false,
            LoanPlace::Nowhere | LoanPlace::Lent(false) => {
                self.current.as_ref().is_none_or(|stream| stream.is_whole() || stream.has_octets())
            }
        }
    }

    /// Returns the next chunk of the stream. If `asks`, the reader waits for more, so more is read.
    pub(crate) fn take_chunk(&mut self, asks: bool) -> Chunk {
        let Some(stream) = &mut self.current else { return Chunk::Lost };
        stream.demand = if asks { Demand::Chunks } else { Demand::Nothing };
        match stream.pop() {
            Some(octets) => Chunk::Octets(octets),
            None if !stream.is_whole() => Chunk::Pending,
            None => {
                self.current = None;
                Chunk::End
            }
        }
    }

    /// Lends memory for the next bytes. It is returned by [`take_loan`](Self::take_loan).
    ///
    /// # Errors
    /// The loan, if it cannot be used: there are chunks to be taken, the stream has ended, or everything is
    /// copied.
    pub(crate) fn lend(&mut self, loan: Box<Loan>) -> Result<(), Box<Loan>> {
        match &mut self.current {
            Some(stream)
                if self.deposits
                    && matches!(self.place, LoanPlace::Nowhere)
                    && !stream.has_octets()
                    && !stream.is_whole() =>
            {
                stream.demand = Demand::Loan;
                self.place = LoanPlace::Waiting(loan);
                Ok(())
            }
            _ => Err(loan),
        }
    }

    /// Takes back what was lent.
    pub(crate) fn take_loan(&mut self) -> LoanReturn {
        match std::mem::take(&mut self.place) {
            LoanPlace::Back(loan) => LoanReturn::Loan(loan),
            LoanPlace::Nowhere => LoanReturn::Nothing,
            lent => {
                self.place = lent;
                LoanReturn::Pending
            }
        }
    }

    /// Returns whether the lent memory is with the reader of the socket.
    #[inline]
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self.place, LoanPlace::Lent(_))
    }

    /// Notes that the lent memory is lost because the reader of the socket keeps it.
    #[cold]
    pub(crate) fn lose_loan(&mut self) {
        if let LoanPlace::Lent(_) = self.place {
            self.place = LoanPlace::Nowhere;
        }
    }

    /// Takes back the lent memory if possible. If it is with the reader of the socket, it is not awaited any
    /// more.
    pub(crate) fn drop_loan(&mut self) -> Option<Box<Loan>> {
        match std::mem::take(&mut self.place) {
            LoanPlace::Waiting(loan) | LoanPlace::Back(loan) => Some(loan),
            LoanPlace::Lent(_) => {
                self.place = LoanPlace::Lent(false);
                None
            }
            LoanPlace::Nowhere => None,
        }
    }

    /// Drops an incomplete stream because the connection has ended or the caller cancelled the request.
    pub(crate) fn end(&mut self) {
        if self.is_incomplete() {
            self.current = None;
        }
        self.recall_loan();
    }

    fn recall_loan(&mut self) {
        self.place = match std::mem::take(&mut self.place) {
            LoanPlace::Waiting(loan) => LoanPlace::Back(loan),
            other => other,
        };
    }

    /// Returns the size of the memory that the next bytes of the stream are read into, if some is lent.
    #[inline]
    pub(super) fn loan_rest(&self) -> usize {
        match &self.place {
            LoanPlace::Waiting(loan) => (loan.len - loan.filled).min(self.left()),
            _ => 0,
        }
    }

    /// Takes back the lent memory from the reader of the socket, with `here` more bytes.
    fn loan_back(&mut self, loan: Option<Box<Loan>>, here: usize, whole: bool) {
        let Some(mut loan) = loan else { return };
        loan.filled += here;
        match std::mem::take(&mut self.place) {
            LoanPlace::Lent(true) if whole || loan.is_over() => self.place = LoanPlace::Back(loan),
            LoanPlace::Lent(true) => self.place = LoanPlace::Waiting(loan),
            other => {
                // It is not awaited any more. It is dropped where its code may run.
                self.place = other;
                if let LoanPlace::Lent(false) = self.place {
                    self.place = LoanPlace::Nowhere;
                }
                self.dead.push(loan);
            }
        }
    }

    /// Adds bytes of the stream to be taken.
    fn push_chunk(&mut self, octets: Bytes) {
        self.recall_loan();
        if let Some(stream) = &mut self.current
            && !octets.is_empty()
        {
            if !stream.gathered.is_empty() {
                stream.chunks.push_back(stream.gathered.split().freeze());
            }
            stream.chunks.push_back(octets);
        }
    }

    /// Adds bytes of the stream in a window that other messages share. Small ones are copied.
    pub(super) fn push_view(&mut self, octets: Bytes, memory: &mut Memory) {
        if octets.len() >= TINY {
            return self.push_chunk(octets);
        }
        self.recall_loan();
        if let Some(stream) = &mut self.current
            && !octets.is_empty()
        {
            memory.copied += octets.len() as u64;
            if stream.gathered.len() + octets.len() > WINDOW {
                stream.chunks.push_back(stream.gathered.split().freeze());
            }
            stream.gathered.extend_from_slice(&octets);
        }
    }

    /// Returns whether a message that is received in pieces may be streamed.
    pub(super) fn takes_pieces(&self, header: &MessageHeader) -> bool {
        let nameless = header.kind != MessageType::Reply || self.streams_nameless_reply();
        self.deposits && (header.version >= Version::V1_2 || nameless && header.version == Version::V1_1)
    }

    /// Returns whether the message that starts with these bytes may be handed out before its other fragments
    /// have been received.
    pub(crate) fn may_begin_pieces(&self, header: &MessageHeader, octets: &[u8]) -> bool {
        self.may_stream(header, 0) && self.is_streamed(header, octets)
    }

    /// Returns whether a small piece after the previous one is read separately. This is always so, except for
    /// small pieces of a stream, which are taken from a window.
    pub(super) fn reads_small_piece(&self) -> bool {
        self.current.as_ref().is_none_or(|stream| stream.after_large)
    }
}

impl Receiver {
    /// Returns the number of bytes of the first message, or of its piece, that are received as a stream.
    #[inline]
    pub(crate) fn coming(&self) -> usize {
        if self.front.streams { self.skip.left } else { 0 }
    }

    /// Returns whether the first message is handed out before its payload is received.
    #[inline]
    pub(crate) fn front_streams(&self) -> bool {
        self.front.streams
    }

    /// Starts the stream after the start of its message was taken.
    #[cold]
    pub(super) fn begin_stream(&mut self, start: usize) {
        let more = std::mem::take(&mut self.front.has_more);
        self.front.streams = false;
        let left = std::mem::take(&mut self.skip.left);
        self.stream.begin(start, left, more);
        (self.sizes.expected, self.sizes.expected_total) = (0, 0);
        if left > 0 {
            self.emptied();
        }
    }

    /// Discards the rest of the stream as it is received, as far as the current piece has it.
    pub fn abandon_stream(&mut self) {
        match &mut self.stream.current {
            Some(stream) if matches!(self.state, State::Lent) && stream.left > 0 => {
                stream.abandoned = true;
                stream.more = false;
                stream.chunks.clear();
            }
            Some(_) => self.skip_stream(),
            None => {}
        }
    }

    fn skip_stream(&mut self) {
        let left = self.stream.left();
        // Between two pieces of the stream, a discarded piece of another message may be in progress.
        if left > 0 {
            (self.skip.left, self.skip.size) = (left, self.stream.size());
        }
        self.stream.current = None;
    }

    /// Records that all of the stream has been received.
    pub(super) fn note_stream(&mut self) {
        let Some(stream) = &self.stream.current else { return };
        let size = usize::try_from(stream.come).unwrap_or(usize::MAX).saturating_add(stream.start);
        self.sizes.largest = self.sizes.largest.max(size.min(self.max_message));
        self.stream.follows = true;
    }

    /// Returns a buffer for the next bytes of the stream: the memory lent for them, or a chunk.
    #[cold]
    pub(super) fn chunk_buffer(&mut self) -> ReadBuf {
        let Some(stream) = &self.stream.current else { return self.window_with(&[]) };
        let (left, more) = (stream.left, stream.more);
        let from = stream.next_phase();
        // After a piece, the headers of the next piece are read; otherwise those of a message.
        let version = if self.stream.has_nameless { Version::V1_1 } else { Version::V1_2 };
        let mut header = MessageHeader::new(version, ByteOrder::NATIVE, MessageType::Request);
        header.more_fragments = more;
        let place = std::mem::take(&mut self.stream.place);
        if let LoanPlace::Waiting(loan) = place {
            let (from, len) = (loan.filled, loan.len);
            let total = from.saturating_add(left);
            let mut buf =
                self.memory.lend(Default::default(), from, len.min(total), Some(Deposit { header, total }));
            buf.0.loan = Some(loan);
            self.stream.place = LoanPlace::Lent(true);
            return buf;
        }
        self.stream.place = place;
        if !self.deposits {
            return self.empty_window();
        }
        let total = from.saturating_add(left);
        let buffer = (self.memory.pool.try_take(total.min(CHUNK)))
            .or_else(|| self.memory.pool.try_take(total.min(WINDOW)))
            .unwrap_or_else(|| self.memory.pool.take_unpooled(STARVED_WINDOW));
        let to = buffer.capacity().min(total).min(CHUNK);
        self.memory.lend(buffer, from, to, Some(Deposit { header, total }))
    }

    /// Handles received bytes of the stream.
    #[cold]
    pub(super) fn read_chunk(&mut self, mut buf: Box<LentBuffer>, n: usize) {
        self.state = State::Window;
        let here = n.min(buf.to.saturating_sub(buf.from));
        let loan = buf.loan.take();
        let Some(stream) = &mut self.stream.current else {
            self.stream.loan_back(loan, here, true);
            return self.memory.give_back(buf);
        };
        stream.left -= here.min(stream.left);
        stream.come += here as u64;
        if stream.left == 0 {
            buf.next.len = n - here;
            let next = NextHeader::new(buf.next.octets());
            self.state = State::Early { next, of_piece: stream.more };
        }
        let whole = stream.is_whole();
        let abandoned = stream.abandoned;
        if whole {
            self.note_stream();
        }
        if abandoned {
            self.skip_stream();
            self.skip.total += here as u64;
            self.stream.loan_back(loan, here, true);
            return self.memory.give_back(buf);
        }
        if let Some(loan) = loan {
            self.stream.loan_back(Some(loan), here, whole);
            return self.memory.give_back(buf);
        }
        if here == 0 {
            self.memory.give_back(buf);
        } else {
            let octets = self.memory.pool.share(std::mem::take(&mut buf.buffer));
            self.stream.push_chunk(octets.slice(buf.from..buf.from + here));
            self.memory.keep_box(buf);
        }
    }

    /// Handles bytes of the stream received through the window, if everything is copied.
    #[cold]
    pub(super) fn read_staged_chunk(&mut self, mut window: Box<LentBuffer>, n: usize) {
        window.from = n.min(window.to);
        self.cut_from(window);
        let here = self.stream.left().min(self.window.to);
        let Some(stream) = &mut self.stream.current else { return };
        stream.left -= here;
        stream.come += here as u64;
        if stream.abandoned {
            self.skip_stream();
            self.skip.total += here as u64;
        } else if here > 0 {
            self.front.len = here;
            let chunk = self.copy_front();
            self.stream.push_chunk(chunk);
            return;
        }
        self.window.from = here;
        if self.window.from >= self.window.to {
            self.emptied();
        }
    }

    /// Returns the number of bytes that a message may occupy before they are received.
    #[must_use]
    pub fn granted(&self) -> usize {
        self.sizes.largest
    }
}

//! The payloads of large requests and replies that are handed out before they have been received whole (`stream_start.rs`).
//!
//! A payload is received in chunks, or in memory that its taker lends (`place.rs`). Nothing is read until a chunk is requested. Then
//! the connection reads into chunk buffers, and stops when a few of them are full: flow control makes the peer wait.
//!
//! No other message is received before the end of the payload. Only between fragments (`stream_pieces.rs`) may there be others.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};

use super::lent::{Deposit, Lent, Next, ReadBuf};
use super::memory::STARVED_WINDOW;
use super::place::{Loan, Place, Returned};
use super::{DEPOSIT_MIN, Receiver, State};
use crate::pool::WINDOW;

/// The most octets of one chunk.
pub const CHUNK: usize = 256 * 1024;

/// Chunks that wait to be taken before the peer has to wait.
const WAITING: usize = 4;

/// Pieces of fewer octets are gathered into one chunk, so that they pin no window.
const TINY: usize = 4 * 1024;

/// The alignment of elements in chunks.
const ELEMENT_ALIGN: usize = 8;

/// What [`Receiver::take_chunk`] gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// The next octets.
    Octets(Bytes),
    /// They are not there yet.
    Pending,
    /// There are no more: the message is over.
    End,
    /// The connection ended before the payload did, the caller gave the request up, or the stream was given up here.
    Lost,
}

/// What the taker of the stream is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// For nothing: no more is read.
    Nothing,
    Chunks,
    /// Memory is lent, which is full now or lent again.
    Loan,
}

/// The payload that is being received.
#[derive(Debug)]
pub(super) struct Stream {
    /// Octets still to come from the socket, of the piece under way where it comes in pieces.
    pub(super) left: usize,
    /// Pieces follow.
    pub(super) more: bool,
    /// Octets of the message that were handed out with the request.
    pub(super) start: usize,
    /// The piece before was a large one: the next one is read apart from what follows it, however small.
    pub(super) after_large: bool,
    /// Octets of it that have come.
    pub(super) come: u64,
    /// Octets of it, as far as that is known.
    all: u64,
    /// Where its first octet lies within elements, modulo their alignment: chunks are read to where these are aligned. `None`: it is
    /// of octets.
    phase: Option<usize>,
    chunks: VecDeque<Bytes>,
    /// Small pieces that follow the chunks.
    gathered: BytesMut,
    demand: Demand,
    /// The stream was given up: the rest is skipped.
    abandoned: bool,
    /// Its number of bytes is not known.
    is_open_ended: bool,
}

impl Stream {
    /// Whether all of it has come.
    fn is_whole(&self) -> bool {
        self.left == 0 && !self.more
    }

    /// Where the next octet lies within elements, modulo their alignment.
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

impl Receiver {
    /// How many octets of the message in front, or of its piece, come as a stream.
    #[inline]
    pub(crate) fn coming(&self) -> usize {
        if self.front_streams { self.skip } else { 0 }
    }

    /// Whether the message in front is handed out before its payload is there.
    #[inline]
    pub(crate) fn front_streams(&self) -> bool {
        self.front_streams
    }

    /// The start of a streamed message was taken.
    #[cold]
    pub(super) fn begin_stream(&mut self, start: usize) {
        let more = std::mem::take(&mut self.front_more);
        self.front_streams = false;
        let left = std::mem::take(&mut self.skip);
        self.enter_stream(start, left, more);
        (self.expect, self.room) = (0, 0);
        if left > 0 {
            self.emptied();
        }
    }

    /// A stream begins behind the first octets of its message, with so many of it, or of its piece, to come.
    pub(crate) fn enter_stream(&mut self, start: usize, left: usize, more: bool) {
        self.stream = Some(Box::new(Stream {
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

    /// Says how many octets the stream has, where that is not known: of one that comes in pieces.
    pub(crate) fn expect_stream(&mut self, octets: u64) {
        if let Some(stream) = self.stream.as_mut().filter(|stream| stream.more) {
            stream.all = stream.all.max(octets);
            stream.is_open_ended = false;
        }
    }

    /// The number of bytes that the peer has still to send, or `u64::MAX` if it is not known.
    pub(crate) fn stream_rest(&self) -> u64 {
        match &self.stream {
            Some(stream) if stream.more && stream.is_open_ended => u64::MAX,
            Some(stream) if stream.more => stream.all.saturating_sub(stream.come),
            Some(stream) => stream.left as u64,
            None => 0,
        }
    }

    /// Says that the stream is of elements that are aligned to eight octets or less, and that its first octet is that far behind
    /// the start of one.
    pub(crate) fn align_stream(&mut self, phase: usize) {
        if let Some(stream) = &mut self.stream {
            stream.phase = Some(phase % ELEMENT_ALIGN);
        }
    }

    /// Whether a stream is not at its end, or not all taken.
    #[inline]
    pub(crate) fn has_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Octets of the stream's message, or piece, that are still to come from the socket.
    #[inline]
    pub(super) fn stream_left(&self) -> usize {
        self.stream.as_ref().map_or(0, |stream| stream.left)
    }

    /// Whether not all of a stream has come.
    #[inline]
    pub(crate) fn is_mid_stream(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| !stream.is_whole())
    }

    /// The size of the stream under way, of which not all has come; else 0.
    pub(crate) fn stream_size(&self) -> usize {
        let stream = self.stream.as_ref().filter(|stream| !stream.is_whole());
        stream.map_or(0, |stream| usize::try_from(stream.all.max(stream.come)).unwrap_or(usize::MAX))
    }

    /// Whether reading has to wait until chunks are taken, or memory is lent.
    #[inline]
    #[must_use]
    pub fn awaits_taker(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| match stream.demand {
            _ if stream.abandoned => false,
            _ if stream.is_whole() || stream.is_full() => true,
            Demand::Nothing => true,
            Demand::Chunks => false,
            Demand::Loan => !matches!(self.place, Place::Waiting(_) | Place::Lent(_)),
        })
    }

    /// Whether what has come already has to wait.
    #[inline]
    pub(crate) fn holds_messages(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_whole() || stream.is_full())
    }

    /// Whether whoever takes the stream has something to take.
    #[must_use]
    pub fn has_chunk(&self) -> bool {
        match self.place {
            Place::Back(_) => true,
            Place::Waiting(_) | Place::Lent(true) => false,
            Place::Nowhere | Place::Lent(false) => {
                self.stream.as_ref().is_none_or(|stream| stream.is_whole() || stream.has_octets())
            }
        }
    }

    /// The next chunk of the stream. `asks`: they are waited for, so more are read.
    pub fn take_chunk(&mut self, asks: bool) -> Chunk {
        let Some(stream) = &mut self.stream else { return Chunk::Lost };
        stream.demand = if asks { Demand::Chunks } else { Demand::Nothing };
        match stream.pop() {
            Some(octets) => Chunk::Octets(octets),
            None if !stream.is_whole() => Chunk::Pending,
            None => {
                self.stream = None;
                Chunk::End
            }
        }
    }

    /// Lends memory for what comes next. It comes back by [`take_loan`](Self::take_loan).
    ///
    /// # Errors
    /// The loan, where it is of no use: there are chunks to be taken, the stream is over, or everything is copied anyway.
    pub fn lend_place(&mut self, loan: Box<Loan>) -> Result<(), Box<Loan>> {
        match &mut self.stream {
            Some(stream)
                if self.deposits
                    && matches!(self.place, Place::Nowhere)
                    && !stream.has_octets()
                    && !stream.is_whole() =>
            {
                stream.demand = Demand::Loan;
                self.place = Place::Waiting(loan);
                Ok(())
            }
            _ => Err(loan),
        }
    }

    /// Takes back what was lent.
    pub fn take_loan(&mut self) -> Returned {
        match std::mem::take(&mut self.place) {
            Place::Back(loan) => Returned::Loan(loan),
            Place::Nowhere => Returned::Nothing,
            lent => {
                self.place = lent;
                Returned::Pending
            }
        }
    }

    /// Whether what was lent is with the reader.
    #[inline]
    pub(crate) fn is_place_lent(&self) -> bool {
        matches!(self.place, Place::Lent(_))
    }

    /// What was lent is lost: whoever reads keeps it.
    #[cold]
    pub(crate) fn lose_place(&mut self) {
        if let Place::Lent(_) = self.place {
            self.place = Place::Nowhere;
        }
    }

    /// What was lent is not waited for any more.
    pub(crate) fn drop_place(&mut self) -> Option<Box<Loan>> {
        match std::mem::take(&mut self.place) {
            Place::Waiting(loan) | Place::Back(loan) => Some(loan),
            Place::Lent(_) => {
                self.place = Place::Lent(false);
                None
            }
            Place::Nowhere => None,
        }
    }

    /// Throws what is still to come of the stream away as it comes: what the piece under way has of it.
    pub fn abandon_stream(&mut self) {
        match &mut self.stream {
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
        let left = self.stream_left();
        // Between two of its pieces, one of another message may be under way that is thrown away too.
        if left > 0 {
            (self.skip, self.skip_size) = (left, self.stream_size());
        }
        self.stream = None;
    }

    /// All of the stream has come.
    pub(super) fn note_stream(&mut self) {
        let Some(stream) = &self.stream else { return };
        let size = usize::try_from(stream.come).unwrap_or(usize::MAX).saturating_add(stream.start);
        self.largest = self.largest.max(size.min(self.max_message));
        self.after_stream = true;
    }

    /// The connection is at its end, or the caller gave the request up: a stream that is not whole is lost.
    pub(crate) fn end_stream(&mut self) {
        if self.is_mid_stream() {
            self.stream = None;
        }
        self.recall_place();
    }

    fn recall_place(&mut self) {
        self.place = match std::mem::take(&mut self.place) {
            Place::Waiting(loan) => Place::Back(loan),
            other => other,
        };
    }

    /// The memory that the next octets of the stream are read into, where there is some.
    #[inline]
    pub(super) fn loan_rest(&self) -> usize {
        match &self.place {
            Place::Waiting(loan) => (loan.len - loan.filled).min(self.stream_left()),
            _ => 0,
        }
    }

    /// A buffer for what is next of the stream: the memory that was lent for it, or a chunk's.
    #[cold]
    pub(super) fn chunk_buffer(&mut self) -> ReadBuf {
        let Some(stream) = &self.stream else { return self.window_with(&[]) };
        let (left, more) = (stream.left, stream.more);
        let from = stream.next_phase();
        // Behind a piece the headers of the next one are read, else those of a message.
        let version = if self.places_nameless { Version::V1_1 } else { Version::V1_2 };
        let mut header = MessageHeader::new(version, ByteOrder::NATIVE, MessageType::Request);
        header.more_fragments = more;
        let place = std::mem::take(&mut self.place);
        if let Place::Waiting(loan) = place {
            let (from, len) = (loan.filled, loan.len);
            let total = from.saturating_add(left);
            let mut buf =
                self.lend(Default::default(), from, len.min(total), Some(Deposit { header, total }));
            buf.0.loan = Some(loan);
            self.place = Place::Lent(true);
            return buf;
        }
        self.place = place;
        if !self.deposits {
            return self.empty_window();
        }
        let total = from.saturating_add(left);
        let buffer = (self.pool.try_take(total.min(CHUNK)))
            .or_else(|| self.pool.try_take(total.min(WINDOW)))
            .unwrap_or_else(|| self.pool.take_unpooled(STARVED_WINDOW));
        let to = buffer.capacity().min(total).min(CHUNK);
        self.lend(buffer, from, to, Some(Deposit { header, total }))
    }

    /// Octets of the stream came, or none.
    #[cold]
    pub(super) fn read_chunk(&mut self, mut buf: Box<Lent>, n: usize) {
        self.state = State::Window;
        let here = n.min(buf.to.saturating_sub(buf.from));
        let loan = buf.loan.take();
        let Some(stream) = &mut self.stream else {
            self.loan_back(loan, here, true);
            return self.give_back(buf);
        };
        stream.left -= here.min(stream.left);
        stream.come += here as u64;
        if stream.left == 0 {
            buf.next.len = n - here;
            let next = Next::new(buf.next.octets());
            self.state = State::Early { next, of_piece: stream.more };
        }
        let whole = stream.is_whole();
        let abandoned = stream.abandoned;
        if whole {
            self.note_stream();
        }
        if abandoned {
            self.skip_stream();
            self.skipped += here as u64;
            self.loan_back(loan, here, true);
            return self.give_back(buf);
        }
        if let Some(loan) = loan {
            self.loan_back(Some(loan), here, whole);
            return self.give_back(buf);
        }
        if here == 0 {
            self.give_back(buf);
        } else {
            let octets = self.pool.share(std::mem::take(&mut buf.buffer));
            self.push_chunk(octets.slice(buf.from..buf.from + here));
            self.keep_box(buf);
        }
    }

    /// Octets of the stream came by the window of an ORB that copies everything.
    #[cold]
    pub(super) fn read_staged_chunk(&mut self, mut window: Box<Lent>, n: usize) {
        window.from = n.min(window.to);
        self.cut_from(window);
        let here = self.stream_left().min(self.to);
        let Some(stream) = &mut self.stream else { return };
        stream.left -= here;
        stream.come += here as u64;
        if stream.abandoned {
            self.skip_stream();
            self.skipped += here as u64;
        } else if here > 0 {
            self.front = here;
            let chunk = self.copy_front();
            self.push_chunk(chunk);
            return;
        }
        self.from = here;
        if self.from >= self.to {
            self.emptied();
        }
    }

    /// What was lent comes back from the reader, with `here` octets more.
    fn loan_back(&mut self, loan: Option<Box<Loan>>, here: usize, whole: bool) {
        let Some(mut loan) = loan else { return };
        loan.filled += here;
        match std::mem::take(&mut self.place) {
            Place::Lent(true) if whole || loan.is_over() => self.place = Place::Back(loan),
            Place::Lent(true) => self.place = Place::Waiting(loan),
            other => {
                // Nobody waits for it. It is dropped where its code may run.
                self.place = other;
                if let Place::Lent(false) = self.place {
                    self.place = Place::Nowhere;
                }
                self.dead.push(loan);
            }
        }
    }

    /// Octets of the stream are there to be taken.
    fn push_chunk(&mut self, octets: Bytes) {
        self.recall_place();
        if let Some(stream) = &mut self.stream
            && !octets.is_empty()
        {
            if !stream.gathered.is_empty() {
                stream.chunks.push_back(stream.gathered.split().freeze());
            }
            stream.chunks.push_back(octets);
        }
    }

    /// The same for octets in a window that others share. Small ones are copied.
    pub(super) fn push_view(&mut self, octets: Bytes) {
        if octets.len() >= TINY {
            return self.push_chunk(octets);
        }
        self.recall_place();
        if let Some(stream) = &mut self.stream
            && !octets.is_empty()
        {
            self.copied += octets.len() as u64;
            if stream.gathered.len() + octets.len() > WINDOW {
                stream.chunks.push_back(stream.gathered.split().freeze());
            }
            stream.gathered.extend_from_slice(&octets);
        }
    }

    /// Takes loans for which nobody waits. To drop them runs code of their owners.
    #[inline]
    pub fn take_dead(&mut self) -> Vec<Box<Loan>> {
        if self.dead.is_empty() { Vec::new() } else { std::mem::take(&mut self.dead) }
    }

    /// The octets that a message may occupy before they come.
    #[must_use]
    pub fn granted(&self) -> usize {
        self.largest
    }
}

//! What waits to be written: small messages gathered in batches, large ones as chunks of their own.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// Octets that a batch gathers before it is sealed.
pub const BATCH: usize = 64 * 1024;

/// Pieces up to this size are copied into the batch; larger ones stay chunks of the vectored write.
pub const GATHER_MAX: usize = 4 * 1024;

/// The most slices that one write takes.
pub const MAX_SLICES: usize = 64;

const SPARE_BATCHES: usize = 4;

/// The queue of octets of one connection. Messages leave in the order in which they were queued.
#[derive(Debug, Default)]
pub struct Outbox {
    batch: BytesMut,
    sealed: VecDeque<Piece>,
    spare: Vec<BytesMut>,
    /// The emptied lists of the last transmit, for their memory.
    idle: Transmit,
    /// Octets queued since the connection began.
    queued: u64,
    /// Octets that the socket took since the connection began.
    written: u64,
    /// Octets lent to writers so far: the socket may have taken all of them.
    lent: u64,
}

#[derive(Debug)]
enum Piece {
    Batch(BytesMut),
    Chunk(Bytes),
}

/// Octets on their way to the socket, owned by whoever writes. They must come back by [`Outbox::commit`].
#[derive(Debug, Default)]
pub struct Transmit {
    pieces: VecDeque<Piece>,
    done: Vec<BytesMut>,
    written: usize,
}

impl Outbox {
    /// Where the next octet queued will stand in the stream.
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// How many octets of the stream the socket has taken.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How many octets of the stream the socket may have taken, those lent to a writer included.
    #[inline]
    #[must_use]
    pub fn reached(&self) -> u64 {
        self.lent.max(self.written)
    }

    /// Octets that the socket has not taken, those lent to a writer included.
    #[must_use]
    pub fn backlog(&self) -> usize {
        usize::try_from(self.queued.saturating_sub(self.written)).unwrap_or(usize::MAX)
    }

    /// Whether there is nothing to lend.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.sealed.is_empty()
    }

    /// Queues octets by one copy into the batch.
    pub fn push(&mut self, octets: &[u8]) {
        if self.batch.capacity() - self.batch.len() < octets.len() {
            self.new_batch(octets.len());
        }
        self.batch.extend_from_slice(octets);
        self.queued += octets.len() as u64;
    }

    /// Queues a chunk; a small one is copied, a large one is not.
    pub fn push_chunk(&mut self, chunk: Bytes) {
        if chunk.len() <= GATHER_MAX {
            return self.push(&chunk);
        }
        self.seal();
        self.queued += chunk.len() as u64;
        self.sealed.push_back(Piece::Chunk(chunk));
    }

    /// Takes back the octets `start..end` of the stream, if they are the last that were queued, none of them is lent and
    /// all of them are gathered.
    pub fn unqueue(&mut self, start: u64, end: u64) -> bool {
        let Some(len) = end.checked_sub(start).and_then(|len| usize::try_from(len).ok()) else { return false };
        if end != self.queued || len > self.batch.len() {
            return false;
        }
        self.batch.truncate(self.batch.len() - len);
        self.queued = start;
        true
    }

    /// Drops everything that is not lent.
    pub fn clear(&mut self) {
        self.batch.clear();
        self.sealed.clear();
        self.queued = self.written.max(self.lent);
    }

    /// Lends everything queued to a writer.
    #[must_use]
    pub fn take(&mut self) -> Transmit {
        self.seal();
        self.lent = self.queued;
        let mut transmit = std::mem::take(&mut self.idle);
        std::mem::swap(&mut transmit.pieces, &mut self.sealed);
        transmit
    }

    /// Takes back what a writer was lent; what the socket did not take stays in front of the queue.
    pub fn commit(&mut self, mut transmit: Transmit) {
        self.written += std::mem::take(&mut transmit.written) as u64;
        self.lent = self.written;
        while let Some(piece) = transmit.pieces.pop_back() {
            self.sealed.push_front(piece);
        }
        for mut batch in transmit.done.drain(..) {
            if self.spare.len() < SPARE_BATCHES {
                batch.clear();
                batch.reserve(BATCH); // a batch that left in parts finds its start again, without an allocation
                self.spare.push(batch);
            }
        }
        self.idle = transmit;
    }

    fn seal(&mut self) {
        if !self.batch.is_empty() {
            let next = self.spare.pop().unwrap_or_default();
            self.sealed.push_back(Piece::Batch(std::mem::replace(&mut self.batch, next)));
        }
    }

    #[cold]
    fn new_batch(&mut self, least: usize) {
        self.seal();
        if self.batch.capacity() < least {
            self.batch = BytesMut::with_capacity(least.max(BATCH));
        }
    }
}

impl Transmit {
    /// Whether everything lent is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Fills `slices` with what is to be written next and returns how many it used.
    pub fn io_slices<'a>(&'a self, slices: &mut [IoSlice<'a>; MAX_SLICES]) -> usize {
        let mut used = 0;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(piece.octets());
            used += 1;
        }
        used
    }

    /// Counts `n` octets as written.
    pub fn advance(&mut self, mut n: usize) {
        self.written += n;
        while let Some(piece) = self.pieces.front_mut() {
            let len = piece.octets().len();
            if n < len {
                match piece {
                    Piece::Batch(batch) => batch.advance(n),
                    Piece::Chunk(chunk) => chunk.advance(n),
                }
                return;
            }
            n -= len;
            if let Some(Piece::Batch(batch)) = self.pieces.pop_front() {
                self.done.push(batch);
            }
        }
    }
}

impl Piece {
    fn octets(&self) -> &[u8] {
        match self {
            Self::Batch(batch) => batch,
            Self::Chunk(chunk) => chunk,
        }
    }
}

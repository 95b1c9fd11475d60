//! What waits to be written: small messages gathered in batches, large ones as chunks of their own.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Octets that a batch gathers before it is sealed.
pub const BATCH: usize = 64 * 1024;

/// Pieces up to this size are copied into the batch; larger ones stay chunks of the vectored write.
pub const GATHER_MAX: usize = 4 * 1024;

/// The most slices that one write takes.
pub const MAX_SLICES: usize = 64;

/// Batches kept for use again: as many as wait in a full queue of messages that are a batch with a chunk each.
const SPARE_BATCHES: usize = 256;

/// Octets that they may hold together.
const SPARE_OCTETS: usize = 2 << 20;

/// The first batch of a connection: most never need more.
const FIRST_BATCH: usize = 4 * 1024;

/// The queue of octets of one connection. Messages leave in the order in which they were queued.
///
/// In steady state nothing is allocated: two batches take turns, one being filled while the other is written.
#[derive(Debug, Default)]
pub struct Outbox {
    /// What was queued last.
    batch: Vec<u8>,
    /// What stands before it.
    sealed: VecDeque<Piece>,
    spare: Vec<Vec<u8>>,
    /// How large the next batch is: batches grow where they are filled.
    next_batch: usize,
    /// The emptied transmit, for its memory.
    idle: Option<Box<Lent>>,
    /// Octets queued since the connection began.
    queued: u64,
    /// Octets that the socket took since the connection began.
    written: u64,
    /// Octets lent to writers so far: the socket may have taken all of them.
    lent: u64,
}

#[derive(Debug)]
enum Piece {
    /// Gathered octets, of which so many are written.
    Batch(Vec<u8>, usize),
    Chunk(Bytes),
}

/// Octets on their way to the socket, owned by whoever writes. They must come back by [`Outbox::commit`].
#[derive(Debug)]
pub struct Transmit(Box<Lent>);

/// What is lent. The box is used again, so that lending moves a pointer and allocates nothing.
#[derive(Debug, Default)]
struct Lent {
    pieces: VecDeque<Piece>,
    /// What stands behind the pieces, and how much of it is written.
    batch: Vec<u8>,
    at: usize,
    /// Batches that are written whole.
    done: Vec<Vec<u8>>,
    written: usize,
}

impl Outbox {
    /// Where the next octet queued will stand in the stream.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// How many octets of the stream the socket has taken.
    #[inline]
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
    #[inline]
    #[must_use]
    pub fn backlog(&self) -> usize {
        usize::try_from(self.queued.saturating_sub(self.written)).unwrap_or(usize::MAX)
    }

    /// Whether there is nothing to lend.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.sealed.is_empty()
    }

    /// Queues octets by one copy into the batch.
    #[inline]
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
        let Some(len) = end.checked_sub(start).and_then(|len| usize::try_from(len).ok()) else {
            return false;
        };
        if end != self.queued {
            return false;
        }
        if let Some(left) = self.batch.len().checked_sub(len) {
            self.batch.truncate(left);
        } else if self.batch.is_empty()
            && let Some(Piece::Batch(octets, at)) = self.sealed.back_mut()
            && octets.len() >= *at + len
        {
            // It was lent, and came back because the socket was full.
            octets.truncate(octets.len() - len);
            if octets.len() == *at {
                self.sealed.pop_back();
            }
        } else {
            return false;
        }
        self.queued = start;
        true
    }

    /// Drops everything that is not lent.
    pub fn clear(&mut self) {
        self.batch.clear();
        self.sealed.clear();
        self.queued = self.reached();
    }

    /// Lends everything queued to a writer.
    #[inline]
    #[must_use]
    pub fn take(&mut self) -> Transmit {
        self.lent = self.queued;
        let mut lent = self.idle.take().unwrap_or_default();
        std::mem::swap(&mut lent.batch, &mut self.batch);
        if !self.sealed.is_empty() {
            std::mem::swap(&mut lent.pieces, &mut self.sealed);
        }
        Transmit(lent)
    }

    /// Takes back what a writer was lent; what the socket did not take stays in front of the queue.
    #[inline]
    pub fn commit(&mut self, transmit: Transmit) {
        let Transmit(mut lent) = transmit;
        self.written += std::mem::take(&mut lent.written) as u64;
        self.lent = self.written;
        if !lent.is_empty() {
            self.put_back(&mut lent);
        }
        lent.batch.clear();
        lent.at = 0;
        if !lent.done.is_empty() {
            self.reuse(&mut lent.done);
        }
        self.idle = Some(lent);
    }

    fn put_back(&mut self, lent: &mut Lent) {
        if lent.at < lent.batch.len() {
            let rest = std::mem::take(&mut lent.batch);
            self.sealed.push_front(Piece::Batch(rest, lent.at));
        }
        while let Some(piece) = lent.pieces.pop_back() {
            self.sealed.push_front(piece);
        }
    }

    /// Whether there is memory to [`release`](Self::release).
    #[inline]
    #[must_use]
    pub fn holds_memory(&self) -> bool {
        self.idle.is_some()
    }

    /// Frees the memory of empty batches.
    pub fn release(&mut self) {
        if self.is_empty() {
            self.batch = Vec::new();
        }
        (self.spare, self.idle, self.next_batch) = (Vec::new(), None, 0);
    }

    fn reuse(&mut self, done: &mut Vec<Vec<u8>>) {
        for mut batch in done.drain(..) {
            let held: usize = self.spare.iter().map(Vec::capacity).sum();
            if self.spare.len() < SPARE_BATCHES && held + batch.capacity() <= SPARE_OCTETS {
                batch.clear();
                self.spare.push(batch);
            }
        }
    }

    fn seal(&mut self) {
        if !self.batch.is_empty() {
            let next = self.spare.pop().unwrap_or_default();
            self.sealed.push_back(Piece::Batch(std::mem::replace(&mut self.batch, next), 0));
        }
    }

    #[cold]
    fn new_batch(&mut self, least: usize) {
        if !self.batch.is_empty() {
            self.next_batch = (4 * self.next_batch).min(BATCH); // it was filled
            self.seal();
        }
        if self.batch.capacity() < least.max(self.next_batch) {
            self.next_batch = self.next_batch.max(FIRST_BATCH);
            self.batch = Vec::with_capacity(least.max(self.next_batch));
        }
    }
}

impl Transmit {
    /// Whether everything lent is written.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All there is to write, if it is one piece: then no list of slices is needed.
    #[inline]
    #[must_use]
    pub fn single(&self) -> Option<&[u8]> {
        if self.0.pieces.is_empty() { self.0.batch.get(self.0.at..) } else { None }
    }

    /// Fills `slices` with what is to be written next and returns how many it used.
    pub fn io_slices<'a>(&'a self, slices: &mut [IoSlice<'a>; MAX_SLICES]) -> usize {
        let Lent { pieces, batch, at, .. } = &*self.0;
        let last = batch.get(*at..).filter(|last| !last.is_empty());
        let mut used = 0;
        for (slice, octets) in slices.iter_mut().zip(pieces.iter().map(Piece::octets).chain(last)) {
            *slice = IoSlice::new(octets);
            used += 1;
        }
        used
    }

    /// Counts `n` octets as written.
    #[inline]
    pub fn advance(&mut self, n: usize) {
        self.0.written += n;
        if self.0.pieces.is_empty() { self.0.at += n } else { self.0.advance_pieces(n) }
    }
}

impl Lent {
    #[inline]
    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.at >= self.batch.len()
    }

    fn advance_pieces(&mut self, mut n: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            let len = piece.octets().len();
            if n < len {
                match piece {
                    Piece::Batch(_, at) => *at += n,
                    Piece::Chunk(chunk) => chunk.advance(n),
                }
                return;
            }
            n -= len;
            if let Some(Piece::Batch(batch, _)) = self.pieces.pop_front() {
                self.done.push(batch);
            }
        }
        self.at += n;
    }
}

impl Piece {
    fn octets(&self) -> &[u8] {
        match self {
            Self::Batch(batch, at) => batch.get(*at..).unwrap_or_default(),
            Self::Chunk(chunk) => chunk,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a socket would get that takes `step` octets a write.
    fn write(outbox: &mut Outbox, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !outbox.is_empty() {
            let mut transmit = outbox.take();
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = transmit.io_slices(&mut slices);
            let octets: Vec<u8> = slices[..used].iter().flat_map(|s| s.iter().copied()).take(step).collect();
            out.extend_from_slice(&octets);
            transmit.advance(octets.len());
            outbox.commit(transmit);
        }
        out
    }

    #[test]
    fn octets_leave_in_the_order_they_were_queued_however_little_is_written() {
        for step in [1, 7, 4097, 1 << 20] {
            let mut outbox = Outbox::default();
            let mut expected = Vec::new();
            for i in 0..40u8 {
                let piece = vec![i; usize::from(i) * 150];
                outbox.push_chunk(Bytes::from(piece.clone()));
                expected.extend_from_slice(&piece);
            }
            outbox.push(b"end");
            expected.extend_from_slice(b"end");
            assert_eq!(outbox.backlog(), expected.len());
            assert!(write(&mut outbox, step) == expected, "step {step}");
            assert_eq!((outbox.backlog(), outbox.queued()), (0, outbox.written()));
        }
    }

    #[test]
    fn what_is_queued_during_a_write_comes_behind_what_it_left() {
        let mut outbox = Outbox::default();
        outbox.push(b"first");
        let mut transmit = outbox.take();
        outbox.push(b"second");
        transmit.advance(2);
        outbox.commit(transmit);
        assert_eq!(write(&mut outbox, 100), b"rstsecond");
    }

    #[test]
    fn only_the_end_of_the_queue_can_be_taken_back() {
        let mut outbox = Outbox::default();
        outbox.push(b"lent");
        let transmit = outbox.take();
        assert!(!outbox.unqueue(0, 4), "it is with the writer");
        outbox.push(b"one");
        outbox.push(b"two");
        assert!(!outbox.unqueue(4, 7));
        assert!(outbox.unqueue(7, 10));
        assert!(outbox.unqueue(4, 7));
        assert_eq!((outbox.queued(), outbox.reached()), (4, 4));
        outbox.commit(transmit);
        assert_eq!(write(&mut outbox, 100), b"lent");
    }

    #[test]
    fn batches_are_used_again() {
        let mut outbox = Outbox::default();
        let mut seen = Vec::new();
        for _ in 0..100 {
            outbox.push(&[1; 100]);
            outbox.push_chunk(Bytes::from_static(&[2; GATHER_MAX + 1]));
            outbox.push(&[3; 100]);
            let mut transmit = outbox.take();
            let len = 200 + GATHER_MAX + 1;
            transmit.advance(len);
            assert!(transmit.is_empty());
            for batch in transmit.0.done.iter().chain([&transmit.0.batch]) {
                if !seen.contains(&batch.as_ptr()) {
                    seen.push(batch.as_ptr());
                }
            }
            outbox.commit(transmit);
        }
        assert!(seen.len() <= SPARE_BATCHES, "{}", seen.len());
    }
}

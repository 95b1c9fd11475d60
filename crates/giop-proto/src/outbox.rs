//! The write queue. Small messages are copied into batches; large ones stay chunks of their own.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// The number of gathered bytes from which a write is not delayed.
pub const BATCH_SIZE: usize = 64 * 1024;

/// The number of queued bytes, including chunks, from which a write is not delayed. One write of four
/// messages of 64 KiB takes about a third less time than four writes.
pub const BULK_BATCH_SIZE: usize = 256 * 1024;

/// The maximum size in bytes of pieces that are copied into a batch.
pub const MAX_GATHERED_PIECE: usize = 4 * 1024;

/// The maximum number of slices in one write.
pub const MAX_SLICES: usize = 64;

/// The size of a full batch in bytes. The message that makes it worth a write still fits.
const FULL_BATCH_SIZE: usize = BATCH_SIZE + MAX_GATHERED_PIECE;

/// The maximum number of empty batches kept for reuse: those queued at a time, and the one being written.
const MAX_SPARE_BATCHES: usize = 17;

/// The initial capacity of a batch in bytes. Most connections never need more.
const INITIAL_BATCH_SIZE: usize = 4 * 1024;

/// The queue of outgoing bytes of one connection, in the order in which they are sent.
///
/// In steady state nothing is allocated: while one batch is filled, others are queued or written.
#[derive(Debug, Default)]
pub struct Outbox {
    open: Option<Box<Batch>>,
    sealed: VecDeque<Box<Batch>>,
    /// Empty batches, kept for their memory.
    #[expect(clippy::vec_box, reason = "boxes go from here to the queue and to writers")]
    spare: Vec<Box<Batch>>,
    batch_capacity: usize,
    /// Bytes queued since the connection was opened.
    queued: u64,
    /// Bytes that the socket accepted since the connection was opened.
    written: u64,
    writes: u64,
    /// The stream position before which all bytes were lent to a writer. The socket may have accepted them.
    lent_until: u64,
    /// Bytes copied into batches since the connection was opened.
    copied: u64,
    gap: Option<Gap>,
}

/// A part of the stream whose bytes are supplied later. Data that is queued in the meantime follows it.
#[derive(Debug, Clone, Copy)]
struct Gap {
    sealed_before: usize,
    missing: u64,
    end: u64,
}

/// Gathered bytes with chunks between them. The control parts of many bulk messages share one batch.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    /// The number of gathered bytes that are written.
    gathered_written: usize,
    /// The chunks, each with the index of the gathered byte that it precedes.
    chunks: VecDeque<(usize, Bytes)>,
    unwritten: usize,
    /// Bytes written since the batch was lent.
    written: usize,
    writes: u32,
}

/// Bytes to be written to the socket. They must be returned to [`Outbox::commit`].
///
/// The box is reused, so that lending moves a pointer and allocates nothing.
#[derive(Debug)]
pub struct Transmit(Box<Batch>);

impl Outbox {
    /// Returns the stream position of the next byte that is queued.
    #[inline]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Returns the number of bytes of the stream that the socket has accepted.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the stream position before which all bytes are written or lent to a writer.
    #[inline]
    pub(crate) fn lent_or_written(&self) -> u64 {
        self.lent_until.max(self.written)
    }

    #[inline]
    pub(crate) fn writes(&self) -> u64 {
        self.writes
    }

    /// Returns the number of bytes that the socket has not accepted, including those lent to a writer.
    #[inline]
    pub fn backlog(&self) -> usize {
        usize::try_from(self.queued.saturating_sub(self.written)).unwrap_or(usize::MAX)
    }

    /// Returns the number of bytes that are neither accepted by the socket nor lent to a writer.
    pub(crate) fn unlent_len(&self) -> usize {
        usize::try_from(self.queued.saturating_sub(self.lent_or_written())).unwrap_or(usize::MAX)
    }

    /// Returns the number of bytes that were copied into batches.
    pub(crate) fn copied(&self) -> u64 {
        self.copied
    }

    /// Returns whether there is nothing to lend.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self.gap {
            Some(gap) => gap.sealed_before == 0,
            None => self.sealed.is_empty() && self.open.as_ref().is_none_or(|open| open.unwritten == 0),
        }
    }

    /// Returns whether enough is queued that a later write would not be more efficient.
    #[inline]
    pub(crate) fn is_worth_a_write(&self) -> bool {
        let gathered = self.open.as_ref().is_some_and(|open| open.bytes.len() >= BATCH_SIZE);
        gathered || !self.sealed.is_empty() || self.backlog() >= BULK_BATCH_SIZE
    }

    /// Queues bytes by copying them into the batch.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let free = self.open.as_ref().map(|open| open.bytes.capacity() - open.bytes.len());
        if free.is_none_or(|free| free < bytes.len()) {
            self.reserve(bytes.len());
        }
        if let Some(open) = &mut self.open {
            open.bytes.extend_from_slice(bytes);
            open.unwritten += bytes.len();
            self.queued += bytes.len() as u64;
            self.copied += bytes.len() as u64;
        }
    }

    /// Queues a chunk. A small one is copied, a large one is not.
    pub fn push_chunk(&mut self, chunk: Bytes) {
        if chunk.len() <= MAX_GATHERED_PIECE {
            return self.push(&chunk);
        }
        if self.open.is_none() {
            self.reserve(0);
        }
        if let Some(open) = &mut self.open {
            open.unwritten += chunk.len();
            self.queued += chunk.len() as u64;
            open.chunks.push_back((open.bytes.len(), chunk));
        }
    }

    /// Queues a gap of `len` bytes to be filled later. Returns the stream position of its end, which
    /// identifies the gap for [`fill`](Self::fill), or `None` if there is a gap already.
    pub fn leave_gap(&mut self, len: u64) -> Option<u64> {
        if self.gap.is_some() {
            return None;
        }
        if let Some(open) = self.open.take_if(|open| open.unwritten > 0) {
            self.sealed.push_back(open);
        }
        self.queued += len;
        let gap = Gap { sealed_before: self.sealed.len(), missing: len, end: self.queued };
        self.gap = (len > 0).then_some(gap);
        Some(gap.end)
    }

    /// Returns whether there is a gap.
    pub(crate) fn is_gapped(&self) -> bool {
        self.gap.is_some()
    }

    /// Returns whether there is an unfilled gap that ends at this stream position.
    pub fn has_gap(&self, end: u64) -> bool {
        self.gap.is_some_and(|gap| gap.end == end)
    }

    /// Queues the next bytes of the gap that ends at `end`. A small piece is copied, a large one is not.
    /// Returns `false`, and queues nothing, if they do not fit or there is no such gap.
    pub fn fill(&mut self, end: u64, piece: Bytes) -> bool {
        let len = piece.len() as u64;
        let Some(gap) = self.gap.as_mut().filter(|gap| gap.end == end && gap.missing >= len) else {
            return false;
        };
        if len == 0 {
            return true;
        }
        if gap.sealed_before == 0 {
            self.sealed.push_front(self.spare.pop().unwrap_or_default());
            gap.sealed_before = 1;
        }
        let Some(last) = self.sealed.get_mut(gap.sealed_before - 1) else { return false };
        last.unwritten += piece.len();
        if piece.len() > MAX_GATHERED_PIECE {
            last.chunks.push_back((last.bytes.len(), piece));
        } else {
            last.bytes.extend_from_slice(&piece);
            self.copied += len;
        }
        gap.missing -= len;
        if gap.missing == 0 {
            self.gap = None;
        }
        true
    }

    /// Removes the bytes `start..end` of the stream from the queue. This succeeds only if they were queued
    /// last, none of them is lent or written, and all are in one batch.
    pub fn unqueue(&mut self, start: u64, end: u64) -> bool {
        let Some(len) = end.checked_sub(start).and_then(|len| usize::try_from(len).ok()) else {
            return false;
        };
        if end != self.queued || start < self.lent_or_written() || self.gap.is_some_and(|gap| start < gap.end)
        {
            return false;
        }
        let open = self.open.as_mut().filter(|open| open.unwritten > 0);
        let Some(last) = open.or_else(|| self.sealed.back_mut()) else { return false };
        if !last.cut_back(len) {
            return false;
        }
        self.queued = start;
        if self.sealed.back().is_some_and(|last| last.unwritten == 0)
            && let Some(last) = self.sealed.pop_back()
        {
            self.reuse(last);
        }
        true
    }

    /// Drops all bytes that are not lent.
    pub(crate) fn clear(&mut self) {
        (self.open, self.sealed, self.gap) = (None, VecDeque::new(), None);
        self.queued = self.lent_or_written();
    }

    /// Lends the first batch to a writer.
    #[inline]
    #[must_use]
    pub fn take(&mut self) -> Transmit {
        let batch = match &mut self.gap {
            None => self.sealed.pop_front().or_else(|| self.open.take()),
            Some(Gap { sealed_before: 0, .. }) => None,
            Some(gap) => {
                gap.sealed_before -= 1;
                self.sealed.pop_front()
            }
        };
        let batch = batch.unwrap_or_default();
        self.lent_until = self.written + batch.unwritten as u64;
        Transmit(batch)
    }

    /// Takes back what was lent to a writer. Bytes that the socket did not accept return to the queue's head.
    #[inline]
    pub fn commit(&mut self, transmit: Transmit) {
        let Transmit(mut batch) = transmit;
        self.written += std::mem::take(&mut batch.written) as u64;
        self.writes += u64::from(std::mem::take(&mut batch.writes));
        self.lent_until = self.written;
        if batch.unwritten == 0 {
            return self.reuse(batch);
        }
        self.sealed.push_front(batch);
        if let Some(gap) = &mut self.gap {
            gap.sealed_before += 1;
        }
    }

    /// Returns whether there is memory to [`release`](Self::release).
    #[inline]
    pub(crate) fn holds_memory(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Frees the memory of empty batches.
    pub(crate) fn release(&mut self) {
        // A batch after a gap cannot be lent, but is not empty.
        self.open.take_if(|open| open.unwritten == 0);
        (self.spare, self.batch_capacity) = (Vec::new(), 0);
    }

    #[inline]
    fn reuse(&mut self, mut batch: Box<Batch>) {
        if self.spare.len() < MAX_SPARE_BATCHES && batch.bytes.capacity() >= self.batch_capacity {
            batch.bytes.clear();
            batch.chunks.clear();
            batch.gathered_written = 0;
            self.spare.push(batch);
        }
    }

    /// Reserves space for `additional` bytes in the open batch, or starts the next one.
    #[cold]
    fn reserve(&mut self, bytes: usize) {
        if let Some(full) =
            self.open.take_if(|open| open.unwritten > 0 && open.bytes.len() + bytes > FULL_BATCH_SIZE)
        {
            self.sealed.push_back(full);
        }
        let open = self.open.get_or_insert_with(|| self.spare.pop().unwrap_or_default());
        // The batches of most connections stay small. After one had to grow, all are allocated at full size.
        let used = open.bytes.len() + bytes;
        self.batch_capacity = if used.max(self.batch_capacity) <= INITIAL_BATCH_SIZE {
            INITIAL_BATCH_SIZE
        } else {
            FULL_BATCH_SIZE
        };
        open.bytes.reserve_exact(self.batch_capacity.max(used) - open.bytes.len());
    }
}

impl Transmit {
    /// Returns whether all lent bytes are written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.unwritten == 0
    }

    /// Returns all bytes to be written if they are one piece. The writer then needs no list of slices.
    #[inline]
    pub fn single(&self) -> Option<&[u8]> {
        if self.0.chunks.is_empty() { self.0.bytes.get(self.0.gathered_written..) } else { None }
    }

    /// Fills `slices` with what is to be written next. Returns the number of slices used.
    pub fn io_slices<'a>(&'a self, slices: &mut [IoSlice<'a>; MAX_SLICES]) -> usize {
        let mut used = 0;
        for (slice, piece) in slices.iter_mut().zip(self.pieces()) {
            *slice = IoSlice::new(piece);
            used += 1;
        }
        used
    }

    /// Returns all pieces to be written. None of them is empty.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let Batch { bytes, chunks, gathered_written, .. } = &*self.0;
        let mut from = *gathered_written;
        let mut gathered = move |to: usize| bytes.get(std::mem::replace(&mut from, to)..to);
        let pieces = chunks.iter().flat_map(move |(position, chunk)| [gathered(*position), Some(&**chunk)]);
        let last = chunks.back().map_or(*gathered_written, |(position, _)| *position);
        pieces.chain([bytes.get(last..)]).flatten().filter(|piece| !piece.is_empty())
    }

    /// Counts `n` bytes as written.
    #[inline]
    pub fn advance(&mut self, n: usize) {
        let n = n.min(self.0.unwritten);
        self.0.written += n;
        self.0.writes += 1;
        self.0.unwritten -= n;
        if self.0.chunks.is_empty() { self.0.gathered_written += n } else { self.0.advance_chunks(n) }
    }
}

impl Batch {
    fn advance_chunks(&mut self, mut n: usize) {
        while let Some((position, chunk)) = self.chunks.front_mut() {
            let gathered = position.saturating_sub(self.gathered_written).min(n);
            self.gathered_written += gathered;
            n -= gathered;
            if self.gathered_written < *position {
                return;
            }
            if n < chunk.len() {
                return chunk.advance(n);
            }
            n -= chunk.len();
            self.chunks.pop_front();
        }
        self.gathered_written += n;
    }

    /// Drops the last `len` bytes, unless a chunk would have to be cut.
    fn cut_back(&mut self, len: usize) -> bool {
        let (mut end, mut rest, mut kept_chunks) = (self.bytes.len(), len, self.chunks.len());
        for (position, chunk) in self.chunks.iter().rev() {
            if rest <= end - position {
                break;
            }
            rest -= end - position;
            let Some(more) = rest.checked_sub(chunk.len()) else { return false };
            (end, rest, kept_chunks) = (*position, more, kept_chunks - 1);
        }
        if rest > end.saturating_sub(self.gathered_written) {
            return false;
        }
        self.bytes.truncate(end - rest);
        self.chunks.truncate(kept_chunks);
        self.unwritten -= len;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes that a socket receives which accepts `step` bytes per write.
    fn write(outbox: &mut Outbox, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !outbox.is_empty() {
            let mut transmit = outbox.take();
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = transmit.io_slices(&mut slices);
            let bytes: Vec<u8> = slices[..used].iter().flat_map(|s| s.iter().copied()).take(step).collect();
            out.extend_from_slice(&bytes);
            transmit.advance(bytes.len());
            outbox.commit(transmit);
        }
        out
    }

    #[test]
    fn bytes_leave_in_the_order_they_were_queued_however_little_is_written() {
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
    fn what_is_queued_during_a_write_follows_what_it_left() {
        let mut outbox = Outbox::default();
        outbox.push(b"first");
        let mut transmit = outbox.take();
        outbox.push(b"second");
        transmit.advance(2);
        outbox.commit(transmit);
        assert_eq!(write(&mut outbox, 100), b"rstsecond");
    }

    #[test]
    fn what_stands_behind_a_gap_stays_when_memory_is_released() {
        let mut outbox = Outbox::default();
        outbox.push(b"before ");
        let gap = outbox.leave_gap(4).unwrap();
        outbox.push(b"behind");
        assert_eq!(write(&mut outbox, 100), b"before ");
        assert!(outbox.is_empty() && outbox.holds_memory());
        outbox.release();
        assert!(outbox.fill(gap, Bytes::from_static(b"gap ")));
        assert_eq!(write(&mut outbox, 100), b"gap behind");
        assert_eq!(outbox.backlog(), 0);
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
        assert_eq!((outbox.queued(), outbox.lent_or_written()), (4, 4));
        outbox.commit(transmit);
        assert_eq!(write(&mut outbox, 100), b"lent");
    }

    #[test]
    fn a_write_is_worth_it_at_64_kib_of_gathered_bytes_or_256_of_chunks() {
        let mut outbox = Outbox::default();
        for _ in 0..BATCH_SIZE / 1024 {
            assert!(!outbox.is_worth_a_write());
            outbox.push(&[0; 1024]);
        }
        assert!(outbox.is_worth_a_write());
        outbox.clear();
        for _ in 0..BULK_BATCH_SIZE / BATCH_SIZE {
            assert!(!outbox.is_worth_a_write());
            outbox.push_chunk(Bytes::from_static(&[0; BATCH_SIZE]));
        }
        assert!(outbox.is_worth_a_write());
    }

    #[test]
    fn batches_are_used_again() {
        let mut outbox = Outbox::default();
        let mut seen = Vec::new();
        for _ in 0..100 {
            outbox.push(&[1; 100]);
            outbox.push_chunk(Bytes::from_static(&[2; MAX_GATHERED_PIECE + 1]));
            outbox.push(&[3; 100]);
            let mut transmit = outbox.take();
            let len = 200 + MAX_GATHERED_PIECE + 1;
            transmit.advance(len);
            assert!(transmit.is_empty());
            if !seen.contains(&transmit.0.bytes.as_ptr()) {
                seen.push(transmit.0.bytes.as_ptr());
            }
            outbox.commit(transmit);
        }
        assert!(seen.len() <= 2, "{}", seen.len());
    }

    #[test]
    fn the_control_parts_of_bulk_messages_share_a_batch() {
        let mut outbox = Outbox::default();
        for _ in 0..20 {
            outbox.push(&[1; 100]);
            outbox.push_chunk(Bytes::from_static(&[2; MAX_GATHERED_PIECE + 1]));
        }
        let transmit = outbox.take();
        assert!(outbox.is_empty());
        assert_eq!(transmit.0.unwritten, 20 * (100 + MAX_GATHERED_PIECE + 1));
        outbox.commit(transmit);
        assert_eq!(write(&mut outbox, 5000).len(), 20 * (100 + MAX_GATHERED_PIECE + 1));
    }

    #[test]
    fn a_message_with_chunks_can_be_taken_back_even_behind_a_write_that_did_not_finish() {
        let mut outbox = Outbox::default();
        outbox.push(&[1; 100]);
        let mut first = outbox.queued();
        let message = |outbox: &mut Outbox| {
            outbox.push(b"head");
            outbox.push_chunk(Bytes::from_static(&[2; MAX_GATHERED_PIECE + 1]));
            outbox.push_chunk(Bytes::from_static(&[3; MAX_GATHERED_PIECE + 1]));
            outbox.push(b"tail");
            outbox.queued()
        };
        let second = message(&mut outbox);
        let third = message(&mut outbox);
        let mut transmit = outbox.take();
        assert!(!outbox.unqueue(second, third), "it is lent");
        transmit.advance(50);
        outbox.commit(transmit);
        assert!(!outbox.unqueue(second + 6, third), "a chunk would be cut");
        assert!(outbox.unqueue(second, third));
        assert!(outbox.unqueue(first, second));
        first -= 50;
        assert_eq!(outbox.backlog() as u64, first);
        assert!(!outbox.unqueue(0, 100), "half of it is written");
        assert_eq!(write(&mut outbox, 1000), [1; 50]);
    }
}

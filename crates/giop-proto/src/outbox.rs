//! The write queue of a connection. Small messages are copied into batches. Large pieces are not copied.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// If at least this number of bytes has been copied into a batch, a write should not be delayed.
pub const BATCH_SIZE: usize = 64 * 1024;

/// If at least this number of bytes is queued, including chunks, a write should not be delayed. One write of
/// four messages of 64 KiB takes about a third less time than four writes.
pub const BULK_BATCH_SIZE: usize = 256 * 1024;

/// The maximum size in bytes of a piece that is copied into a batch instead of being queued as a chunk.
pub const MAX_COPIED_PIECE_SIZE: usize = 4 * 1024;

/// The maximum number of slices in one write.
pub const MAX_SLICES: usize = 64;

/// The capacity in bytes of a full-size batch, in which the piece that reaches `BATCH_SIZE` fits.
const FULL_BATCH_SIZE: usize = BATCH_SIZE + MAX_COPIED_PIECE_SIZE;

const MAX_SPARE_BATCHES: usize = 17;

/// The initial capacity of a batch in bytes, which suffices for most connections.
const INITIAL_BATCH_SIZE: usize = 4 * 1024;

/// The queue of outgoing bytes of one connection, in the order in which they are sent.
///
/// Batches are reused, so that nothing is allocated after the first messages.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The batch that is being filled. It follows the sealed ones.
    open: Option<Box<Batch>>,
    /// Batches to which nothing is appended any more, except in the gap.
    sealed: VecDeque<Box<Batch>>,
    #[expect(clippy::vec_box, reason = "the boxes move to the queue and to writers")]
    spare: Vec<Box<Batch>>,
    batch_capacity: usize,
    /// The number of bytes queued since the connection was opened.
    queued: u64,
    /// The number of bytes that the socket has accepted since the connection was opened.
    written: u64,
    writes: u64,
    /// The stream position before which all bytes have been lent to a writer and may be written.
    lent_until: u64,
    /// The number of bytes copied into batches since the connection was opened.
    copied: u64,
    gap: Option<Gap>,
}

/// A part of the stream whose bytes are supplied later. Data that is queued in the meantime is sent after it.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// The number of sealed batches before the gap, including the batch into which the gap is filled.
    sealed_before: usize,
    missing: u64,
    end: u64,
}

/// Bytes that are copied from small pieces, with chunks between them.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    /// The number of copied bytes that have been written.
    copied_written: usize,
    /// The chunks, each with the index of the copied byte that follows it.
    chunks: VecDeque<(usize, Bytes)>,
    /// The number of copied bytes and bytes of chunks that have not been written.
    unwritten: usize,
    /// The number of bytes written since the batch was lent.
    written: usize,
    writes: u32,
}

/// A batch that is lent to a writer. It must be returned to [`Outbox::commit`].
///
/// It is a box, so that lending moves only a pointer. The box is reused.
#[derive(Debug)]
pub struct Transmit(Box<Batch>);

impl Outbox {
    /// Returns the number of bytes queued so far, which is the stream position of the next byte to be queued.
    #[inline]
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Returns the number of bytes of the stream that the socket has accepted.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the stream position before which all bytes have been written or lent to a writer.
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

    pub(crate) fn copied(&self) -> u64 {
        self.copied
    }

    /// Returns whether there is nothing to lend at present. There may be bytes after a gap.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self.gap {
            Some(gap) => gap.sealed_before == 0,
            None => self.sealed.is_empty() && self.open.as_ref().is_none_or(|open| open.unwritten == 0),
        }
    }

    /// Returns whether so much is queued that waiting for more would not make the write more efficient.
    #[inline]
    pub(crate) fn is_worth_a_write(&self) -> bool {
        let is_batch_full = self.open.as_ref().is_some_and(|open| open.bytes.len() >= BATCH_SIZE);
        is_batch_full || !self.sealed.is_empty() || self.backlog() >= BULK_BATCH_SIZE
    }

    /// Queues bytes by copying them into a batch.
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

    /// Queues a chunk. It is copied into a batch only if it is small.
    pub fn push_chunk(&mut self, chunk: Bytes) {
        if chunk.len() <= MAX_COPIED_PIECE_SIZE {
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

    /// Queues a gap of `len` bytes, which must be filled later. Returns the stream position of its end, which
    /// identifies the gap for [`fill`](Self::fill). Returns `None` if there is a gap already.
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

    pub(crate) fn is_gapped(&self) -> bool {
        self.gap.is_some()
    }

    /// Returns whether there is a gap that ends at this stream position and is not filled.
    pub fn has_gap(&self, end: u64) -> bool {
        self.gap.is_some_and(|gap| gap.end == end)
    }

    /// Queues the next bytes of the gap that ends at `end`. They are copied only if they are few. If they do
    /// not fit, or there is no such gap, queues nothing and returns `false`.
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
        if piece.len() > MAX_COPIED_PIECE_SIZE {
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

    /// Removes the bytes `start..end` of the stream from the queue, and returns whether that was possible. It
    /// is possible only if they were queued last, none of them is lent or written, and all are in one batch.
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

    /// Takes back a batch that was lent to a writer. Its unwritten bytes are the next ones to be lent.
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

    #[inline]
    pub(crate) fn holds_memory(&self) -> bool {
        !self.spare.is_empty()
    }

    pub(crate) fn release(&mut self) {
        // The open batch may not be empty even if nothing can be lent, because it may follow a gap.
        self.open.take_if(|open| open.unwritten == 0);
        (self.spare, self.batch_capacity) = (Vec::new(), 0);
    }

    #[inline]
    fn reuse(&mut self, mut batch: Box<Batch>) {
        if self.spare.len() < MAX_SPARE_BATCHES && batch.bytes.capacity() >= self.batch_capacity {
            batch.bytes.clear();
            batch.chunks.clear();
            batch.copied_written = 0;
            self.spare.push(batch);
        }
    }

    /// Reserves space for `additional` bytes in the open batch. If the batch is full, starts the next one.
    #[cold]
    fn reserve(&mut self, additional: usize) {
        if let Some(full) =
            self.open.take_if(|open| open.unwritten > 0 && open.bytes.len() + additional > FULL_BATCH_SIZE)
        {
            self.sealed.push_back(full);
        }
        let open = self.open.get_or_insert_with(|| self.spare.pop().unwrap_or_default());
        // Batches are small at first. After one of them had to grow, all further ones have the full size.
        let used = open.bytes.len() + additional;
        self.batch_capacity = if used.max(self.batch_capacity) <= INITIAL_BATCH_SIZE {
            INITIAL_BATCH_SIZE
        } else {
            FULL_BATCH_SIZE
        };
        open.bytes.reserve_exact(self.batch_capacity.max(used) - open.bytes.len());
    }
}

impl Transmit {
    /// Returns whether all lent bytes have been written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.unwritten == 0
    }

    /// Returns the bytes to be written if they are contiguous. The writer then needs no list of slices.
    #[inline]
    pub fn contiguous_bytes(&self) -> Option<&[u8]> {
        if self.0.chunks.is_empty() { self.0.bytes.get(self.0.copied_written..) } else { None }
    }

    /// Fills `slices` with the bytes to be written next. Returns the number of slices that are filled.
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
        let Batch { bytes, chunks, copied_written, .. } = &*self.0;
        let mut from = *copied_written;
        let mut copied = move |to: usize| bytes.get(std::mem::replace(&mut from, to)..to);
        let pieces = chunks.iter().flat_map(move |(position, chunk)| [copied(*position), Some(&**chunk)]);
        let last = chunks.back().map_or(*copied_written, |(position, _)| *position);
        pieces.chain([bytes.get(last..)]).flatten().filter(|piece| !piece.is_empty())
    }

    /// Counts `n` bytes as written.
    #[inline]
    pub fn advance(&mut self, n: usize) {
        let n = n.min(self.0.unwritten);
        self.0.written += n;
        self.0.writes += 1;
        self.0.unwritten -= n;
        if self.0.chunks.is_empty() { self.0.copied_written += n } else { self.0.advance_chunks(n) }
    }
}

impl Batch {
    /// Counts `n` bytes of a batch with chunks as written, and drops the chunks among them.
    fn advance_chunks(&mut self, mut n: usize) {
        while let Some((position, chunk)) = self.chunks.front_mut() {
            let copied = position.saturating_sub(self.copied_written).min(n);
            self.copied_written += copied;
            n -= copied;
            if self.copied_written < *position {
                return;
            }
            if n < chunk.len() {
                return chunk.advance(n);
            }
            n -= chunk.len();
            self.chunks.pop_front();
        }
        self.copied_written += n;
    }

    /// Drops the last `len` bytes. Returns `false` if a chunk would be cut, or some bytes are written.
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
        if rest > end.saturating_sub(self.copied_written) {
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

    /// Writes to a socket that accepts `step` bytes per write, and returns the bytes that it receives.
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
    fn bytes_after_a_gap_stay_when_memory_is_released() {
        let mut outbox = Outbox::default();
        outbox.push(b"before ");
        let gap = outbox.leave_gap(4).unwrap();
        outbox.push(b"after");
        assert_eq!(write(&mut outbox, 100), b"before ");
        assert!(outbox.is_empty() && outbox.holds_memory());
        outbox.release();
        assert!(outbox.fill(gap, Bytes::from_static(b"gap ")));
        assert_eq!(write(&mut outbox, 100), b"gap after");
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
            outbox.push_chunk(Bytes::from_static(&[2; MAX_COPIED_PIECE_SIZE + 1]));
            outbox.push(&[3; 100]);
            let mut transmit = outbox.take();
            let len = 200 + MAX_COPIED_PIECE_SIZE + 1;
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
            outbox.push_chunk(Bytes::from_static(&[2; MAX_COPIED_PIECE_SIZE + 1]));
        }
        let transmit = outbox.take();
        assert!(outbox.is_empty());
        assert_eq!(transmit.0.unwritten, 20 * (100 + MAX_COPIED_PIECE_SIZE + 1));
        outbox.commit(transmit);
        assert_eq!(write(&mut outbox, 5000).len(), 20 * (100 + MAX_COPIED_PIECE_SIZE + 1));
    }

    #[test]
    fn a_message_with_chunks_can_be_taken_back_even_after_an_incomplete_write() {
        let mut outbox = Outbox::default();
        outbox.push(&[1; 100]);
        let mut first = outbox.queued();
        let message = |outbox: &mut Outbox| {
            outbox.push(b"head");
            outbox.push_chunk(Bytes::from_static(&[2; MAX_COPIED_PIECE_SIZE + 1]));
            outbox.push_chunk(Bytes::from_static(&[3; MAX_COPIED_PIECE_SIZE + 1]));
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

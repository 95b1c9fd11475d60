//! [`ReadBuf`]: the buffer lent to a reader.

use std::io::IoSliceMut;

use giop_codec::Version;
use giop_codec::giop::{HeaderError, MessageHeader};

use super::place::Loan;
use super::{HEADER_LEN, PIECE_HEADER_LEN};
use crate::pool::{Buffer, BufferPool};

/// A buffer lent to the reader of the socket.
#[derive(Debug)]
pub struct ReadBuf(pub(super) Box<LentBuffer>);

/// The contents of a [`ReadBuf`]. The box is reused, so that lending moves a pointer and allocates nothing.
#[derive(Debug, Default)]
pub(super) struct LentBuffer {
    pub(super) buffer: Buffer,
    pub(super) from: usize,
    pub(super) to: usize,
    /// The message in `buffer`, if one is being deposited.
    pub(super) deposit: Option<Deposit>,
    /// The number of bytes of `next` that are read after the deposit, if its header does not determine it.
    pub(super) ahead: Option<usize>,
    pub(super) next: NextHeader,
    /// Memory that receives the bytes instead of `buffer`.
    pub(super) loan: Option<Box<Loan>>,
}

/// A header that is read separately from the data before it: twelve bytes, or sixteen if a fragment may
/// follow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NextHeader {
    pub(super) octets: [u8; PIECE_HEADER_LEN],
    /// The number of bytes received.
    pub(super) len: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Deposit {
    /// The header of the message or fragment.
    pub(super) header: MessageHeader,
    /// The position in the buffer of its end.
    pub(super) total: usize,
}

impl ReadBuf {
    /// Returns the destinations of the next read: the rest of the buffer and, after a deposited message, one
    /// next header. Both are empty if a [`DepositTarget`](super::DepositTarget) has no room. Then nothing
    /// must be read, and the buffer must be returned.
    #[inline]
    pub fn io_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        if self.0.loan.is_some() {
            return self.target_slices();
        }
        let room = self.0.next_room();
        let LentBuffer { buffer, from, to, next, .. } = &mut *self.0;
        let into = buffer.octets_mut().get_mut(*from..*to).unwrap_or_default();
        let next = next.octets.get_mut(next.len..next.len + room).unwrap_or_default();
        let pieces = if into.is_empty() { [next, into] } else { [into, next] };
        pieces.map(IoSliceMut::new)
    }

    #[cold]
    fn target_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        let room = self.0.next_room();
        let LentBuffer { from, to, next, loan, .. } = &mut *self.0;
        let into = loan.as_mut().map(|loan| loan.octets(*from, *to)).unwrap_or_default();
        let next = next.octets.get_mut(next.len..next.len + room).unwrap_or_default();
        // Without a destination for the payload, the bytes after it must not be read.
        let next = if into.is_empty() { &mut [] } else { next };
        [into, next].map(IoSliceMut::new)
    }

    /// Returns the total size of [`io_slices`](Self::io_slices). A read that returns fewer bytes has emptied
    /// the socket.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.to - self.0.from + self.0.next_room()
    }

    /// Returns whether the rest of a large message is received into it, so that a reader may wait until it is
    /// full. Data that is handed out in chunks starts near the front, without a header, and is not waited
    /// for.
    #[inline]
    #[must_use]
    pub fn is_deposit(&self) -> bool {
        let LentBuffer { from, ahead, loan, .. } = &*self.0;
        self.0.deposit.is_some() && (*from >= HEADER_LEN || ahead.is_some() || loan.is_some())
    }

    /// Copies bytes that were received elsewhere into it, and returns their number. It is for readers that
    /// receive a header first.
    pub fn fill(&mut self, octets: &[u8]) -> usize {
        let [mut into, mut next] = self.io_slices();
        let mut filled = 0;
        for (to, from) in into.iter_mut().chain(next.iter_mut()).zip(octets) {
            *to = *from;
            filled += 1;
        }
        filled
    }

    /// Returns the memory to its pool after its connection is gone. The returned loan was lent by a servant:
    /// dropping it runs the servant's code.
    #[must_use]
    pub fn give_back(self, pool: &BufferPool) -> Option<Box<Loan>> {
        let LentBuffer { buffer, loan, .. } = *self.0;
        pool.give_back(buffer);
        loan
    }
}

impl LentBuffer {
    /// Returns the number of bytes of a next header that it accepts. They follow the end of a deposited
    /// message. Without a buffer, they are all missing bytes of the header.
    #[inline]
    fn next_room(&self) -> usize {
        match &self.deposit {
            Some(deposit) if deposit.total != self.to => 0,
            Some(deposit) => self.ahead.unwrap_or(deposit.next_len()),
            None if self.to == 0 => PIECE_HEADER_LEN - self.next.len,
            None => 0,
        }
    }
}

impl Deposit {
    /// Returns the length of the header after it.
    #[inline]
    pub(super) fn next_len(&self) -> usize {
        if is_piece(&self.header) { PIECE_HEADER_LEN } else { HEADER_LEN }
    }
}

impl NextHeader {
    /// Creates it from the bytes that have been received, at most sixteen.
    pub(super) fn new(octets: &[u8]) -> Self {
        let mut next = Self { octets: [0; PIECE_HEADER_LEN], len: octets.len() };
        for (to, from) in next.octets.iter_mut().zip(octets) {
            *to = *from;
        }
        next
    }

    pub(super) fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }

    /// Returns what remains after the first `len` bytes.
    pub(super) fn behind(&self, len: usize) -> Self {
        Self::new(self.octets().get(len..).unwrap_or_default())
    }

    /// Returns the message header, if it is complete.
    pub(super) fn header(&self) -> Option<Result<MessageHeader, HeaderError>> {
        self.octets().first_chunk().map(MessageHeader::decode)
    }
}

/// Returns whether more of the message follows in GIOP 1.2 fragments, which are joined to it.
#[inline]
pub(super) fn is_piece(header: &MessageHeader) -> bool {
    header.more_fragments && header.version >= Version::V1_2
}

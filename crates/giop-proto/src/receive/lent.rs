//! [`ReadBuf`]: what a reader is lent.

use std::io::IoSliceMut;

use giop_codec::Version;
use giop_codec::giop::{HeaderError, MessageHeader};

use super::place::Loan;
use super::{HEADER_LEN, PIECE_HEADER_LEN};
use crate::pool::{Buffer, BufferPool};

/// A buffer lent to whoever reads from the socket.
#[derive(Debug)]
pub struct ReadBuf(pub(super) Box<Lent>);

/// What is lent. The box is used again, so that lending moves a pointer and allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Lent {
    pub(super) buffer: Buffer,
    pub(super) from: usize,
    pub(super) to: usize,
    /// The message in `buffer`, where one is being deposited.
    pub(super) deposit: Option<Deposit>,
    /// How many octets of `next` are read behind the deposit, where that is not told by its header.
    pub(super) ahead: Option<usize>,
    pub(super) next: Next,
    /// Memory that the octets go to in place of `buffer`.
    pub(super) loan: Option<Box<Loan>>,
}

/// A header that is read apart from what stands before it: twelve octets, or sixteen where a fragment may follow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Next {
    pub(super) octets: [u8; PIECE_HEADER_LEN],
    /// How many of them are there.
    pub(super) len: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Deposit {
    /// Of the message, or of the piece of one.
    pub(super) header: MessageHeader,
    /// Where it ends in the buffer.
    pub(super) total: usize,
}

impl ReadBuf {
    /// Where the octets go: the rest of the buffer, and behind a deposited message one next header. Both are empty where a
    /// [`DepositTarget`](super::DepositTarget) has no room: then nothing is to be read, and the buffer goes back.
    #[inline]
    pub fn io_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        if self.0.loan.is_some() {
            return self.target_slices();
        }
        let room = self.0.next_room();
        let Lent { buffer, from, to, next, .. } = &mut *self.0;
        let into = buffer.octets_mut().get_mut(*from..*to).unwrap_or_default();
        let next = next.octets.get_mut(next.len..next.len + room).unwrap_or_default();
        let pieces = if into.is_empty() { [next, into] } else { [into, next] };
        pieces.map(IoSliceMut::new)
    }

    #[cold]
    fn target_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        let room = self.0.next_room();
        let Lent { from, to, next, loan, .. } = &mut *self.0;
        let into = loan.as_mut().map(|loan| loan.octets(*from, *to)).unwrap_or_default();
        let next = next.octets.get_mut(next.len..next.len + room).unwrap_or_default();
        // The octets behind what has no place can not be read before it.
        let next = if into.is_empty() { &mut [] } else { next };
        [into, next].map(IoSliceMut::new)
    }

    /// How many octets [`io_slices`](Self::io_slices) takes. A read that returns fewer has emptied the socket.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.to - self.0.from + self.0.next_room()
    }

    /// Whether the rest of a large message is received into it: waiting until it is full is right then. What is handed out in
    /// chunks starts near the front, without a header, and is not waited for.
    #[inline]
    #[must_use]
    pub fn is_deposit(&self) -> bool {
        let Lent { from, ahead, loan, .. } = &*self.0;
        self.0.deposit.is_some() && (*from >= HEADER_LEN || ahead.is_some() || loan.is_some())
    }

    /// Copies octets that were received elsewhere into it, and says how many: for whoever receives a header first.
    pub fn fill(&mut self, octets: &[u8]) -> usize {
        let [mut into, mut next] = self.io_slices();
        let mut filled = 0;
        for (to, from) in into.iter_mut().chain(next.iter_mut()).zip(octets) {
            *to = *from;
            filled += 1;
        }
        filled
    }

    /// Gives the memory to the pool it came from, when its connection is gone. What is returned was lent by a servant: to drop it
    /// runs its code.
    #[must_use]
    pub fn give_back(self, pool: &BufferPool) -> Option<Box<Loan>> {
        let Lent { buffer, loan, .. } = *self.0;
        pool.give_back(buffer);
        loan
    }
}

impl Lent {
    /// How many octets of a next header it takes: those behind the end of a deposited message, or, where it has no buffer,
    /// all that is missing.
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
    /// How many octets the header behind it has.
    #[inline]
    pub(super) fn next_len(&self) -> usize {
        if is_piece(&self.header) { PIECE_HEADER_LEN } else { HEADER_LEN }
    }
}

impl Next {
    /// The octets that are there; there are never more than sixteen of them.
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

    /// What is left behind the first `len` octets.
    pub(super) fn behind(&self, len: usize) -> Self {
        Self::new(self.octets().get(len..).unwrap_or_default())
    }

    /// The message header, if it is all there.
    pub(super) fn header(&self) -> Option<Result<MessageHeader, HeaderError>> {
        self.octets().first_chunk().map(MessageHeader::decode)
    }
}

/// Whether more of the message comes in GIOP 1.2 fragments, which go behind it.
#[inline]
pub(super) fn is_piece(header: &MessageHeader) -> bool {
    header.more_fragments && header.version >= Version::V1_2
}

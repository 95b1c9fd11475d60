//! [`ReadBuf`]: the buffer that the receiver lends to the code that reads the socket.

use std::io::IoSliceMut;

use giop_codec::Version;
use giop_codec::giop::{HeaderError, MessageHeader};

use super::loan::Loan;
use super::{HEADER_LEN, PIECE_HEADER_LEN};
use crate::pool::{Buffer, BufferPool};

/// A buffer that the receiver lends to the code that reads the socket.
#[derive(Debug)]
pub struct ReadBuf(pub(super) Box<LentBuffer>);

/// The contents of a [`ReadBuf`]. The box is reused, so that lending moves a pointer and allocates nothing.
#[derive(Debug, Default)]
pub(super) struct LentBuffer {
    pub(super) buffer: Buffer,
    pub(super) filled: usize,
    /// The position in `buffer` up to which bytes may be read.
    pub(super) end: usize,
    pub(super) deposit: Option<Deposit>,
    /// The number of bytes of `next` to read after the deposit. `None`: the deposit's header determines it.
    pub(super) requested_next_len: Option<usize>,
    pub(super) next: NextHeader,
    /// Memory of the payload's reader that receives the bytes instead of `buffer`.
    pub(super) loan: Option<Box<Loan>>,
}

/// The first bytes of a message that are read separately: its header of twelve bytes. If the message may be a
/// GIOP 1.2 fragment, the request id, four more bytes, is read with them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NextHeader {
    pub(super) bytes: [u8; PIECE_HEADER_LEN],
    pub(super) len: usize,
}

/// A message, or a piece of a fragmented message, that is read directly into its final buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deposit {
    pub(super) header: MessageHeader,
    /// The number of bytes in the buffer when the message or piece is complete.
    pub(super) total: usize,
}

impl ReadBuf {
    /// Returns the destinations of the next read: the rest of the buffer, then the header of the next
    /// message, if it is read separately. If both slices are empty, because a
    /// [`DepositTarget`](super::DepositTarget) has no memory for more bytes, nothing must be read.
    #[inline]
    pub fn io_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        if self.0.loan.is_some() {
            return self.target_slices();
        }
        let next_len = self.0.missing_next_len();
        let LentBuffer { buffer, filled, end, next, .. } = &mut *self.0;
        let rest = buffer.bytes_mut().get_mut(*filled..*end).unwrap_or_default();
        let next = next.bytes.get_mut(next.len..next.len + next_len).unwrap_or_default();
        let slices = if rest.is_empty() { [next, rest] } else { [rest, next] };
        slices.map(IoSliceMut::new)
    }

    #[cold]
    fn target_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        let next_len = self.0.missing_next_len();
        let LentBuffer { filled, end, next, loan, .. } = &mut *self.0;
        let rest = loan.as_mut().map(|loan| loan.bytes(*filled, *end)).unwrap_or_default();
        let next = next.bytes.get_mut(next.len..next.len + next_len).unwrap_or_default();
        // Without a destination for the payload, the bytes after it must not be read.
        let next = if rest.is_empty() { &mut [] } else { next };
        [rest, next].map(IoSliceMut::new)
    }

    /// Returns the total size of [`io_slices`](Self::io_slices) in bytes. A shorter read empties the socket.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.0.end - self.0.filled + self.0.missing_next_len()
    }

    /// Returns whether the buffer receives the rest of a large message, so that a reader may wait until it is
    /// full. Returns `false` for a chunk of a stream in the pool's memory, which is handed out at any length.
    #[inline]
    pub fn is_deposit(&self) -> bool {
        let LentBuffer { filled, requested_next_len, loan, .. } = &*self.0;
        self.0.deposit.is_some() && (*filled >= HEADER_LEN || requested_next_len.is_some() || loan.is_some())
    }

    /// Copies as many of `bytes` as fit into the buffer, and returns their number.
    pub fn fill(&mut self, bytes: &[u8]) -> usize {
        let [mut into, mut next] = self.io_slices();
        let mut filled = 0;
        for (to, from) in into.iter_mut().chain(next.iter_mut()).zip(bytes) {
            *to = *from;
            filled += 1;
        }
        filled
    }

    /// Gives the memory of the buffer back to the pool. Dropping the returned loan runs its owner's code.
    #[must_use]
    pub fn give_back(self, pool: &BufferPool) -> Option<Box<Loan>> {
        let LentBuffer { buffer, loan, .. } = *self.0;
        pool.give_back(buffer);
        loan
    }
}

impl LentBuffer {
    /// Returns the number of bytes of the next header that the next read may receive. It is 0 while more
    /// memory must be granted to the deposit first.
    #[inline]
    fn missing_next_len(&self) -> usize {
        match &self.deposit {
            Some(deposit) if deposit.total != self.end => 0,
            Some(deposit) => self.requested_next_len.unwrap_or(deposit.next_len()),
            None if self.end == 0 => PIECE_HEADER_LEN - self.next.len,
            None => 0,
        }
    }
}

impl Deposit {
    #[inline]
    pub(super) fn next_len(&self) -> usize {
        if has_more_pieces(&self.header) { PIECE_HEADER_LEN } else { HEADER_LEN }
    }
}

impl NextHeader {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut next = Self { bytes: [0; PIECE_HEADER_LEN], len: bytes.len() };
        for (to, from) in next.bytes.iter_mut().zip(bytes) {
            *to = *from;
        }
        next
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    pub(super) fn without_first(&self, len: usize) -> Self {
        Self::new(self.bytes().get(len..).unwrap_or_default())
    }

    pub(super) fn header(&self) -> Option<Result<MessageHeader, HeaderError>> {
        self.bytes().first_chunk().map(MessageHeader::decode)
    }
}

/// Returns whether further pieces of the message follow in GIOP 1.2 fragments, which are joined to it.
#[inline]
pub(super) fn has_more_pieces(header: &MessageHeader) -> bool {
    header.more_fragments && header.version >= Version::V1_2
}

//! [`ReadBuf`]: what a reader is lent.

use std::io::IoSliceMut;

use giop_codec::giop::MessageHeader;

use super::HEADER_LEN;
use crate::pool::Buffer;

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
    pub(super) next: [u8; HEADER_LEN],
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Deposit {
    pub(super) header: MessageHeader,
    pub(super) total: usize,
}

impl ReadBuf {
    /// Where the octets go: the rest of the buffer, and behind a deposited message one next header.
    #[inline]
    pub fn io_slices(&mut self) -> [IoSliceMut<'_>; 2] {
        let ends = self.0.ends_message();
        let Lent { buffer, from, to, next, .. } = &mut *self.0;
        let into = buffer.octets_mut().get_mut(*from..*to).unwrap_or_default();
        let next: &mut [u8] = if ends { next } else { &mut [] };
        [IoSliceMut::new(into), IoSliceMut::new(next)]
    }

    /// How many octets [`io_slices`](Self::io_slices) takes. A read that returns fewer has emptied the socket.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.to - self.0.from + if self.0.ends_message() { HEADER_LEN } else { 0 }
    }
}

impl Lent {
    /// Whether it takes a deposited message to its end.
    #[inline]
    fn ends_message(&self) -> bool {
        self.deposit.is_some_and(|deposit| deposit.total == self.to)
    }
}

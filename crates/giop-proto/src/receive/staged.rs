//! The classical implementation, for comparison: everything is read through the window, and each message is
//! copied out of it.

use bytes::Bytes;

use super::Receiver;
use super::lent::{Deposit, LentBuffer};

impl Receiver {
    /// Takes the first message in the window as a copy of its own.
    #[cold]
    pub(super) fn copy_front(&mut self) -> Bytes {
        let front = self.front();
        let (len, mut buffer) = (front.len(), self.memory.pool.take(front.len()));
        if let Some(to) = buffer.octets_mut().get_mut(..len) {
            to.copy_from_slice(front);
        }
        self.memory.copied += len as u64;
        self.advance();
        self.memory.pool.share(buffer).slice(..len)
    }

    /// Appends the part of a message in the window to the part received before. Data after it stays in the
    /// window.
    #[cold]
    pub(super) fn read_staged(
        &mut self,
        mut message: Box<LentBuffer>,
        mut window: Box<LentBuffer>,
        n: usize,
    ) {
        let Some(Deposit { total, .. }) = message.deposit else { return };
        let (at, here) = (message.from, n.min(total.saturating_sub(message.from)));
        if let Some(to) = message.buffer.room(at..at + here)
            && let Some(from) = window.buffer.octets().get(..here)
        {
            to.copy_from_slice(from);
            self.memory.copied += here as u64;
        }
        window.from = n.min(window.to);
        self.cut_from(window);
        self.window.from = here;
        if self.window.from >= self.window.to {
            self.emptied();
        }
        // The received part may exceed the grant by up to the size of the window.
        message.to = message.to.max(at + here);
        self.deposited(message, at + here);
    }
}

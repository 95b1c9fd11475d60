//! The classical implementation, for comparison with direct reads: everything is read into the window, and
//! each message is copied out of it. It is used if `Config::deposits_enabled` is false.

use bytes::Bytes;

use super::Receiver;
use super::read_buf::{Deposit, LentBuffer};

impl Receiver {
    #[cold]
    pub(super) fn copy_front(&mut self) -> Bytes {
        let front = self.front();
        let (len, mut buffer) = (front.len(), self.memory.pool.take(front.len()));
        if let Some(to) = buffer.bytes_mut().get_mut(..len) {
            to.copy_from_slice(front);
        }
        self.memory.copied_bytes += len as u64;
        self.advance();
        self.memory.pool.share(buffer).slice(..len)
    }

    /// Appends those of the `n` bytes in `window` that belong to the incomplete `message` to it.
    #[cold]
    pub(super) fn append_from_window(
        &mut self,
        mut message: Box<LentBuffer>,
        mut window: Box<LentBuffer>,
        n: usize,
    ) {
        let Some(Deposit { total, .. }) = message.deposit else { return };
        let (before, part_len) = (message.filled, n.min(total.saturating_sub(message.filled)));
        if let Some(target) = message.buffer.writable_range(before..before + part_len)
            && let Some(source) = window.buffer.bytes().get(..part_len)
        {
            target.copy_from_slice(source);
            self.memory.copied_bytes += part_len as u64;
        }
        window.filled = n.min(window.end);
        self.split_buffer(window);
        self.window.start = part_len;
        if self.window.start >= self.window.end {
            self.release_window();
        }
        // The received part may exceed the grant by up to the size of the window.
        message.end = message.end.max(before + part_len);
        self.read_deposit(message, before + part_len);
    }
}

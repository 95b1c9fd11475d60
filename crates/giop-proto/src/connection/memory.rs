//! Waiting for memory of the shared pool, and exceeding the pool's cap to prevent deadlocks.

use super::{Input, MemoryAttempts};

/// After this number of failed attempts to obtain memory, 5 ms apart, a connection may exceed the cap.
const MAX_ATTEMPTS: u32 = 20;

impl Input {
    /// Called when all received messages are processed. Stops reading while received data exceeds the pool's
    /// cap and `may_wait` is set; it is not set if this side awaits replies. A stream that a servant reads
    /// continues even then, because requests that occupy memory may depend on it.
    #[inline]
    pub(super) fn limit_memory(&mut self, messages: u64, may_wait: bool) {
        if self.rx.memory.is_overdrawn {
            self.end_overdraft(messages);
        } else if self.rx.memory.pool.exceeds_cap() && may_wait && !self.rx.stream.is_active() {
            self.rx.memory.starved = true;
        }
    }

    /// Checks whether memory is available again. Returns whether this is the first check after a message.
    ///
    /// All memory may be occupied by messages that wait for memory, or by requests that wait for others. To
    /// prevent a deadlock, one connection at a time may exceed the cap, for one message.
    #[cold]
    pub(super) fn retry_memory(&mut self, messages: u64) -> bool {
        let before = self.memory_attempts;
        let attempts = if before.messages == messages { before.attempts.saturating_add(1) } else { 1 };
        self.memory_attempts = MemoryAttempts { messages, attempts };
        if attempts > MAX_ATTEMPTS {
            self.rx.memory.overdraw();
        }
        self.rx.retry_memory();
        attempts == 1
    }

    #[cold]
    fn end_overdraft(&mut self, messages: u64) {
        if self.memory_attempts.messages != messages && self.fragments.is_empty() {
            self.rx.memory.end_overdraft();
            self.memory_attempts = MemoryAttempts { messages, attempts: 0 };
        }
    }
}

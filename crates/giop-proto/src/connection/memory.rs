//! Connections that wait for memory of the shared pool, and connections that continue in any case.

use super::Input;

/// The number of failed attempts to obtain memory, 5 ms apart, after which a connection may exceed the cap.
const MAX_ATTEMPTS: u32 = 20;

impl Input {
    /// Called when all received messages are processed. Stops reading while received data exceeds the pool's
    /// cap, unless this side awaits replies (`may_wait` is false). A stream that a servant reads continues as
    /// well, because requests that occupy memory may depend on it.
    #[inline]
    pub(super) fn limit_memory(&mut self, messages: u64, may_wait: bool) {
        if self.rx.memory.is_overdrawn {
            self.end_overdraft(messages);
        } else if self.rx.memory.pool.exceeds_cap() && may_wait && !self.rx.stream.is_active() {
            self.rx.memory.starved = true;
        }
    }

    /// Checks whether memory is available again. Returns whether this is the first check in this state.
    ///
    /// All memory may be occupied by messages that wait for more memory, or by requests that wait for other
    /// requests. To prevent a deadlock, one connection at a time may exceed the cap, for one message.
    #[cold]
    pub(super) fn retry_memory(&mut self, messages: u64) -> bool {
        let (messages_before, attempts) = self.starved;
        let attempts = if messages_before == messages { attempts.saturating_add(1) } else { 1 };
        self.starved = (messages, attempts);
        if attempts > MAX_ATTEMPTS {
            self.rx.memory.overdraw();
        }
        self.rx.retry();
        attempts == 1
    }

    /// Ends the overdraft when the message for which it was granted has been received.
    #[cold]
    fn end_overdraft(&mut self, messages: u64) {
        if self.starved.0 != messages && self.fragments.is_empty() {
            self.rx.memory.end_overdraft();
            self.starved = (messages, 0);
        }
    }
}

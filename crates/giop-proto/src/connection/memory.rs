//! Memory that all connections share: which connections wait for it, and which continue in any case.

use super::Input;

/// The number of failed attempts to obtain memory, 5 ms apart, after which a connection asks to exceed the
/// cap.
const PATIENCE: u32 = 20;

impl Input {
    /// Called when all received messages are processed, `count` in total. Stops reading while received data
    /// exceeds the pool's cap, if it `may_wait`: a side that awaits replies may not. A stream that a servant
    /// reads continues as well, because the held memory may depend on it.
    #[inline]
    pub(super) fn mind_memory(&mut self, count: u64, may_wait: bool) {
        if self.rx.memory.overdraws() {
            self.end_overdraft(count);
        } else if self.rx.memory.is_over() && may_wait && !self.rx.stream.is_some() {
            self.rx.memory.starve();
        }
    }

    /// Checks whether memory is available again. Returns whether this is the first check since the last of
    /// the `messages` so far.
    ///
    /// All memory may be held by messages that wait for more memory, or by requests that wait for other
    /// requests. To prevent a deadlock, one connection at a time may exceed the cap, for one message.
    #[cold]
    pub(super) fn look_for_memory(&mut self, messages: u64) -> bool {
        let (count, looks) = self.starved;
        let looks = if count == messages { looks.saturating_add(1) } else { 1 };
        self.starved = (messages, looks);
        if looks > PATIENCE {
            self.rx.memory.overdraw();
        }
        self.rx.retry();
        looks == 1
    }

    /// Ends the overdraft after the message for which it was granted has been received.
    #[cold]
    fn end_overdraft(&mut self, count: u64) {
        if self.starved.0 != count && self.fragments.is_empty() {
            self.rx.memory.end_overdraft();
            self.starved = (count, 0);
        }
    }
}

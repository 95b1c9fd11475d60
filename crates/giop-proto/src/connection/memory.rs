//! Memory that all connections share: which connections wait for it, and which continue in any case.

use super::Connection;
use crate::hits::Limit;

/// The number of failed attempts to obtain memory, 5 ms apart, after which a connection asks to exceed the
/// cap.
const PATIENCE: u32 = 20;

impl Connection {
    /// Called when all received messages are processed. Stops reading while received data exceeds the pool's
    /// cap. A side that awaits replies continues to read, and so does a stream that a servant reads, because
    /// the held memory may depend on them.
    #[inline]
    pub(super) fn mind_memory(&mut self) {
        if self.rx.overdraws() {
            self.end_overdraft();
        } else if self.rx.is_over()
            && self.calls.waiting() == 0
            && !self.rx.has_stream()
            && self.clock.read_end.is_none()
        {
            self.rx.starve();
        }
    }

    /// Checks whether memory is available again.
    ///
    /// All memory may be held by messages that wait for more memory, or by requests that wait for other
    /// requests. To prevent a deadlock, one connection at a time may exceed the cap, for one message.
    #[cold]
    pub(super) fn look_for_memory(&mut self) {
        let (count, looks) = self.requests.starved;
        let looks = if count == self.stats.messages_in { looks.saturating_add(1) } else { 1 };
        self.requests.starved = (self.stats.messages_in, looks);
        if looks == 1 {
            self.stats.limits.hit(Limit::Pool);
        }
        if looks > PATIENCE {
            self.rx.overdraw();
        }
        self.rx.retry();
        self.clock.hold();
    }

    /// Ends the overdraft after the message for which it was granted has been received.
    #[cold]
    fn end_overdraft(&mut self) {
        if self.requests.starved.0 != self.stats.messages_in && self.fragments.is_empty() {
            self.rx.end_overdraft();
            self.requests.starved = (self.stats.messages_in, 0);
        }
    }
}

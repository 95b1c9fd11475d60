//! Memory that all connections share: who waits for it, and who goes on all the same.

use super::Connection;
use crate::hits::Limit;

/// How often a connection looks for memory in vain, 5 ms apart, before it asks to go on without.
const PATIENCE: u32 = 20;

impl Connection {
    /// All that came is cut: reading waits while what was received takes more than the pool may hold. Who awaits replies, and a
    /// stream that a servant takes, go on: what is held may wait for them.
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

    /// Looks whether there is memory again.
    ///
    /// Where all memory is held by messages that wait for more of it, or by requests that wait for others, nobody would ever go on: one
    /// connection at a time may take memory past the cap, for one message.
    #[cold]
    pub(super) fn look_for_memory(&mut self) {
        let (count, looks) = self.starved;
        let looks = if count == self.stats.messages_in { looks.saturating_add(1) } else { 1 };
        self.starved = (self.stats.messages_in, looks);
        if looks == 1 {
            self.stats.limits.hit(Limit::Pool);
        }
        if looks > PATIENCE {
            self.rx.overdraw();
        }
        self.rx.retry();
        self.clock.hold();
    }

    /// Lets others take memory past the cap, once the message has come for which that was.
    #[cold]
    fn end_overdraft(&mut self) {
        if self.starved.0 != self.stats.messages_in && self.fragments.is_empty() {
            self.rx.end_overdraft();
            self.starved = (self.stats.messages_in, 0);
        }
    }
}

//! What is queued for the peer: how much of it there may be before its requests wait.
//!
//! Each connection has a limit of its own. All connections together have one as well, the pool's cap: where more is queued, those wait
//! that have much queued themselves, until their peers took it. Nobody else waits for a peer that does not read, and nothing is dropped.
//!
//! Only answers count against a peer: requests of this side's own do not hold up its requests, or two peers that have much to say to each
//! other would both stop reading.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Connection;
use super::pace::Pace;
use crate::error::SlowPeer;
use crate::hits::Limit;
use crate::pool::BufferPool;

/// Connections with less are neither counted nor held for what others have: they go on whatever happens.
const STEP: usize = 64 * 1024;

/// A connection's part of what all have queued.
#[derive(Debug)]
pub(super) struct Queued {
    pool: Arc<BufferPool>,
    counted: usize,
    /// Those of them that are replies.
    owed: usize,
    /// How fast the peer takes them.
    pace: Option<Pace>,
}

impl Queued {
    pub(super) fn new(pool: Arc<BufferPool>) -> Self {
        Self { pool, counted: 0, owed: 0, pace: None }
    }

    fn count(&mut self, octets: usize, owed: usize) {
        let counted = |octets: usize| if octets > STEP { octets } else { 0 };
        let (octets, owed) = (counted(octets), counted(owed));
        self.pool.count_queued(self.counted, octets);
        self.pool.count_owed(self.owed, owed);
        (self.counted, self.owed) = (octets, owed);
    }
}

/// Octets of answers among those that are queued. What is written is found out late: some of those still count.
#[derive(Debug, Default)]
pub(super) struct Owed {
    octets: usize,
    /// Those of them that stand before the mark, a place in the outgoing stream.
    before: usize,
    mark: u64,
}

impl Owed {
    #[inline]
    pub(super) fn add(&mut self, octets: usize) {
        self.octets = self.octets.saturating_add(octets);
    }

    /// The socket has taken so much of what is queued.
    #[inline]
    pub(super) fn written(&mut self, written: u64, queued: u64) {
        if written == queued {
            *self = Self::default();
        } else if written >= self.mark {
            self.octets = self.octets.saturating_sub(self.before);
            (self.before, self.mark) = (self.octets, queued);
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.count(0, 0);
    }
}

impl Connection {
    /// Octets queued that the socket has not taken, those lent to a writer included.
    #[inline]
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.tx.backlog() + self.fragmenting.octets()
    }

    /// Whether a message that nobody waits for may be queued: the backlog is below `Limits::max_backlog`, and below 64 KiB where all
    /// connections have more queued than the pool's cap.
    #[inline]
    #[must_use]
    pub fn has_room(&self) -> bool {
        let backlog = self.backlog();
        backlog < self.limits.max_backlog && (backlog < STEP || !self.queued.pool.is_overqueued())
    }

    /// Whether so many answers are queued that requests have to wait: more than `Limits::max_backlog`, or 64 KiB where all connections have
    /// more queued than the pool's cap. What this side asks itself does not count.
    #[inline]
    #[must_use]
    pub fn is_backed_up(&self) -> bool {
        let backlog = self.backlog();
        backlog > STEP.min(self.limits.max_backlog) && self.backs_up(backlog).is_some()
    }

    /// The limit that so many octets, of those that are queued, are over.
    #[cold]
    pub(super) fn backs_up(&self, octets: usize) -> Option<Limit> {
        let answers = octets.min(self.owed.octets.saturating_add(self.fragmenting.owed()));
        if answers > self.limits.max_backlog {
            Some(Limit::Backlog)
        } else if answers > STEP && self.queued.pool.is_overqueued() {
            Some(Limit::Pool)
        } else {
            None
        }
    }

    /// Whether a request has to be refused, since it can not wait. What a writer has may all be written.
    #[cold]
    pub(super) fn has_no_room(&self) -> bool {
        self.serving.len() >= self.granted
            || self.backs_up(self.tx.unlent() + self.fragmenting.octets()).is_some()
    }

    /// Counts that requests which were handed out wait for room, once for each time that they do. The connection is not read meanwhile.
    #[cold]
    pub fn waits_for_room(&mut self) {
        self.clock.hold();
        if self.waited_at != Some(self.stats.messages_in) {
            self.waited_at = Some(self.stats.messages_in);
            // Without much of its own, it waits for what all have queued.
            self.stats.limits.hit(self.backs_up(self.backlog()).unwrap_or(Limit::Pool));
        }
    }

    /// Whether the replies of all connections take more than half of the pool's cap.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.queued.pool.is_crowded()
    }

    /// Bytes of replies that are queued.
    fn owed(&self) -> usize {
        self.backlog().min(self.owed.octets.saturating_add(self.fragmenting.owed()))
    }

    /// The connection is not read for the time being, for a reason that is not the peer's: what it can not send is not late.
    #[cold]
    pub fn hold_reading(&mut self) {
        self.clock.hold();
    }

    /// What a connection with more than 64 KiB of replies in its queue has there: how many bytes, and how long the peer needs for them at
    /// the rate at which it has taken them so far; `Duration::MAX` where it takes none. `None`: there are fewer, or it was measured for less
    /// than a second. `None` also where the connection is closed: its memory is about to come back.
    #[must_use]
    pub fn reply_queue(&self, now: Instant) -> Option<(usize, Option<Duration>)> {
        let owed = self.queued.owed;
        (owed > 0 && !self.is_closed()).then(|| {
            let pace = self.queued.pace.as_ref();
            (owed, pace.and_then(|pace| pace.time_for(owed, self.tx.written(), now)))
        })
    }

    /// Closes the connection, because its peer takes replies so slowly that others wait for the memory.
    pub fn give_up_slow_reader(&mut self) {
        self.end_slow(SlowPeer::Crowded);
    }

    /// Tells the others how much is queued, if it is or was much.
    #[inline]
    pub(super) fn count_queued(&mut self) {
        let backlog = self.backlog();
        if backlog > STEP || self.queued.counted > 0 {
            self.count_much(backlog);
        }
    }

    #[cold]
    fn count_much(&mut self, backlog: usize) {
        let owed = self.owed();
        self.queued.count(backlog, owed);
        let (written, now) = (self.tx.written(), self.clock.now);
        match &mut self.queued.pace {
            _ if self.queued.owed == 0 => self.queued.pace = None,
            Some(pace) => pace.wrote(written, now),
            pace => *pace = Some(Pace::new(written, now)),
        }
    }
}

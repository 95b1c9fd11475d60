//! Limits of the data queued for the peer, beyond which its requests are not read.
//!
//! Each connection has a limit of its own. All connections together have one as well, the pool's cap. While
//! more is queued, connections with large queues are held until their peers have accepted the data. Other
//! connections are not affected by a peer that does not read, and nothing is dropped.
//!
//! Only answers count against a peer. This side's own requests do not delay the peer's requests, because two
//! busy peers could otherwise both stop reading and deadlock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pace::Pace;
use super::{Connection, Output};
use crate::error::SlowPeer;
use crate::hits::Limit;
use crate::pool::BufferPool;

/// Connections with less queued are neither counted nor held because of other connections, so they always
/// proceed.
const STEP: usize = 64 * 1024;

/// The part of one connection in what all connections have queued.
#[derive(Debug)]
pub(super) struct PoolShare {
    pool: Arc<BufferPool>,
    counted: usize,
    /// The part of `counted` that is replies.
    owed: usize,
    /// The rate at which the peer accepts data.
    pace: Option<Pace>,
}

impl PoolShare {
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

/// Bytes of answers in the queue. The number of written bytes is learned late, so some written bytes still
/// count.
#[derive(Debug, Default)]
pub(super) struct ReplyBacklog {
    octets: usize,
    /// The part of `octets` before `mark`, a position in the outgoing stream.
    before: usize,
    mark: u64,
}

impl ReplyBacklog {
    #[inline]
    pub(super) fn add(&mut self, octets: usize) {
        self.octets = self.octets.saturating_add(octets);
    }

    /// Updates the count after the socket has accepted `written` of the `queued` bytes of the stream.
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

impl Drop for PoolShare {
    fn drop(&mut self) {
        self.count(0, 0);
    }
}

impl Connection {
    /// Counts that requests which were handed out wait for room, once for each time. The connection is not
    /// read meanwhile.
    #[cold]
    pub fn waits_for_room(&mut self) {
        self.clock.hold();
        if self.requests.waited_at != Some(self.stats.messages_in) {
            self.requests.waited_at = Some(self.stats.messages_in);
            // Without much queued itself, it waits because of what all connections have queued.
            self.stats.limits.hit(self.output.backs_up(self.output.backlog()).unwrap_or(Limit::Pool));
        }
    }

    /// Notes that the connection is not read at present, for a reason outside of the peer. Data that the peer
    /// cannot send meanwhile does not count as late.
    #[cold]
    pub fn hold_reading(&mut self) {
        self.clock.hold();
    }

    /// Closes the connection because its peer accepts replies so slowly that other connections need the
    /// memory.
    pub fn give_up_slow_reader(&mut self) {
        self.end_slow(SlowPeer::Crowded);
    }

    /// Returns the number of reply bytes in the queue, and the time that the peer needs for them at its rate
    /// so far. The time is `Duration::MAX` if the peer accepts nothing, and `None` if the rate was measured
    /// for less than a second.
    ///
    /// Returns `None` if there are at most 64 KiB of replies, or if the connection is closed and its memory
    /// is about to be returned.
    #[must_use]
    pub fn reply_queue(&self, now: Instant) -> Option<(usize, Option<Duration>)> {
        if self.lifecycle.is_closed() { None } else { self.output.reply_queue(now) }
    }
}

impl Output {
    /// Returns the number of counted reply bytes, if any, and the time that the peer needs for them.
    fn reply_queue(&self, now: Instant) -> Option<(usize, Option<Duration>)> {
        let owed = self.pool_share.owed;
        (owed > 0).then(|| {
            let pace = self.pool_share.pace.as_ref();
            (owed, pace.and_then(|pace| pace.time_for(owed, self.tx.written(), now)))
        })
    }

    /// Returns the number of queued bytes that the socket has not accepted, including those lent to a writer.
    #[inline]
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.tx.backlog() + self.fragment_queue.octets()
    }

    /// Returns whether a message without a reply may be queued. The backlog must be below
    /// `Limits::max_backlog`, and below 64 KiB while all connections together have more queued than the
    /// pool's cap.
    #[inline]
    #[must_use]
    pub fn has_room(&self) -> bool {
        let backlog = self.backlog();
        backlog < self.max_backlog && (backlog < STEP || !self.pool_share.pool.is_overqueued())
    }

    /// Returns whether enough answers are queued that requests have to wait. The limit is
    /// `Limits::max_backlog`, or 64 KiB while all connections together have more queued than the pool's cap.
    /// This side's own requests do not count.
    #[inline]
    #[must_use]
    pub fn is_backed_up(&self) -> bool {
        let backlog = self.backlog();
        backlog > STEP.min(self.max_backlog) && self.backs_up(backlog).is_some()
    }

    /// Returns the limit that the queued answers exceed, if only `octets` of the queued bytes count.
    #[cold]
    pub(super) fn backs_up(&self, octets: usize) -> Option<Limit> {
        let answers = octets.min(self.reply_backlog.octets.saturating_add(self.fragment_queue.owed()));
        if answers > self.max_backlog {
            Some(Limit::Backlog)
        } else if answers > STEP && self.pool_share.pool.is_overqueued() {
            Some(Limit::Pool)
        } else {
            None
        }
    }

    /// Returns whether the replies of all connections take more than half of the pool's cap.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.pool_share.pool.is_crowded()
    }

    /// Returns the number of queued reply bytes.
    fn owed(&self) -> usize {
        self.backlog().min(self.reply_backlog.octets.saturating_add(self.fragment_queue.owed()))
    }

    /// Reports the size of the queue to the pool, if it is or was large.
    #[inline]
    pub(super) fn report(&mut self, now: Instant) {
        let backlog = self.backlog();
        if backlog > STEP || self.pool_share.counted > 0 {
            self.report_much(backlog, now);
        }
    }

    #[cold]
    fn report_much(&mut self, backlog: usize, now: Instant) {
        let owed = self.owed();
        self.pool_share.count(backlog, owed);
        let written = self.tx.written();
        match &mut self.pool_share.pace {
            _ if self.pool_share.owed == 0 => self.pool_share.pace = None,
            Some(pace) => pace.wrote(written, now),
            pace => *pace = Some(Pace::new(written, now)),
        }
    }

    /// Returns the limit that the queued answers exceed, without the bytes lent to a writer.
    #[cold]
    pub(super) fn backs_up_unlent(&self) -> Option<Limit> {
        self.backs_up(self.tx.unlent() + self.fragment_queue.octets())
    }
}

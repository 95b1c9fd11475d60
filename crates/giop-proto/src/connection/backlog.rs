//! What is queued for the peer: how much of it there may be before its requests wait.
//!
//! Each connection has a limit of its own. All connections together have one as well, the pool's cap: where more is queued, those wait
//! that have much queued themselves, until their peers took it. Nobody else waits for a peer that does not read, and nothing is dropped.

use std::sync::Arc;

use super::Connection;
use crate::hits::Limit;
use crate::pool::BufferPool;

/// Connections with less are neither counted nor held for what others have: they go on whatever happens.
const STEP: usize = 64 * 1024;

/// A connection's part of what all have queued.
#[derive(Debug)]
pub(super) struct Queued {
    pool: Arc<BufferPool>,
    counted: usize,
}

impl Queued {
    pub(super) fn new(pool: Arc<BufferPool>) -> Self {
        Self { pool, counted: 0 }
    }

    #[cold]
    fn count(&mut self, octets: usize) {
        let octets = if octets > STEP { octets } else { 0 };
        self.pool.count_queued(self.counted, octets);
        self.counted = octets;
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.pool.count_queued(self.counted, 0);
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

    /// Whether so much is queued that requests have to wait.
    #[inline]
    pub(super) fn is_backed_up(&self) -> bool {
        let backlog = self.backlog();
        backlog > self.limits.max_backlog || backlog > STEP && self.queued.pool.is_overqueued()
    }

    /// Counts that requests which were handed out wait for room, once for each time that they do.
    #[cold]
    pub fn waits_for_room(&mut self) {
        if self.waited_at != Some(self.stats.messages_in) {
            self.waited_at = Some(self.stats.messages_in);
            let own = self.backlog() >= self.limits.max_backlog;
            self.stats.limits.hit(if own { Limit::Backlog } else { Limit::Pool });
        }
    }

    /// Tells the others how much is queued, if it is or was much.
    #[inline]
    pub(super) fn count_queued(&mut self) {
        let backlog = self.backlog();
        if backlog > STEP || self.queued.counted > 0 {
            self.queued.count(backlog);
        }
    }
}

//! Back-pressure: while too much data is queued for the peer, its requests are not read.
//!
//! Each connection has a limit of its own. All connections together may queue as much as the cap of the
//! buffer pool. If they exceed it, connections with large queues are not read until their peers accept data.
//! Therefore a peer that does not read affects no connections with small queues.
//!
//! Only its own queued answers can stop the reading of a connection. If its queued requests could do so, two
//! busy peers could both stop reading and deadlock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pace::Pace;
use super::{Connection, Output};
use crate::error::SlowPeer;
use crate::hits::Limit;
use crate::pool::BufferPool;

/// The number of queued bytes up to which a connection is not affected by the queues of other connections.
const MIN_COUNTED_BYTES: usize = 64 * 1024;

/// The queued bytes of one connection, as far as they have been reported to the pool.
#[derive(Debug)]
pub(super) struct PoolShare {
    pool: Arc<BufferPool>,
    counted_bytes: usize,
    /// The queued bytes of replies at the last report, or 0 if they were at most `MIN_COUNTED_BYTES`.
    reply_bytes: usize,
    pace: Option<Pace>,
}

impl PoolShare {
    pub(super) fn new(pool: Arc<BufferPool>) -> Self {
        Self { pool, counted_bytes: 0, reply_bytes: 0, pace: None }
    }

    fn count(&mut self, bytes: usize, reply_bytes: usize) {
        let counted = |bytes: usize| if bytes > MIN_COUNTED_BYTES { bytes } else { 0 };
        let (bytes, reply_bytes) = (counted(bytes), counted(reply_bytes));
        self.pool.replace_queued(self.counted_bytes, bytes);
        self.pool.replace_queued_replies(self.reply_bytes, reply_bytes);
        (self.counted_bytes, self.reply_bytes) = (bytes, reply_bytes);
    }
}

/// The number of queued bytes of answers. The number may be too high, because written answers are subtracted
/// only when the socket has accepted everything up to a checkpoint.
#[derive(Debug, Default)]
pub(super) struct ReplyBacklog {
    bytes: usize,
    before_checkpoint: usize,
    checkpoint: u64,
}

impl ReplyBacklog {
    #[inline]
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Updates the number after the socket has accepted `written` of the `queued` bytes of the stream.
    #[inline]
    pub(super) fn set_written(&mut self, written: u64, queued: u64) {
        if written == queued {
            *self = Self::default();
        } else if written >= self.checkpoint {
            self.bytes = self.bytes.saturating_sub(self.before_checkpoint);
            (self.before_checkpoint, self.checkpoint) = (self.bytes, queued);
        }
    }
}

impl Drop for PoolShare {
    fn drop(&mut self) {
        self.count(0, 0);
    }
}

impl Connection {
    /// Called when requests must wait until queued answers are written or memory is available. Counts at most
    /// one wait for each received message.
    #[cold]
    pub fn count_backlog_wait(&mut self) {
        self.clock.stop_message_timeout();
        if self.admission.last_wait != Some(self.output.stats.messages_in) {
            self.admission.last_wait = Some(self.output.stats.messages_in);
            // If this connection exceeds no limit itself, it waits because of all connections together.
            self.output
                .stats
                .limit_hits
                .hit(self.output.exceeded_limit(self.output.backlog()).unwrap_or(Limit::Pool));
        }
    }

    /// Must be called when the driver does not read although [`wants_read`](Self::wants_read) is true. Stops
    /// the timeout of the incomplete message, because the peer is not responsible for the delay.
    #[cold]
    pub fn hold_reading(&mut self) {
        self.clock.stop_message_timeout();
    }

    /// Closes the connection, because its peer accepts replies too slowly while memory is scarce.
    pub fn close_slow_reader(&mut self) {
        self.close_slow_peer(SlowPeer::QueuedReplies);
    }

    /// Returns the number of queued reply bytes, and the time in which the peer will accept them at its rate.
    /// It is `Duration::MAX` if the peer accepts nothing, and `None` after less than a second of measurement.
    ///
    /// Returns `None` if no more than 64 KiB of replies are queued, or if the connection is closed.
    pub fn reply_queue(&self, now: Instant) -> Option<(usize, Option<Duration>)> {
        if self.lifecycle.is_closed() { None } else { self.output.reply_queue(now) }
    }
}

impl Output {
    fn reply_queue(&self, now: Instant) -> Option<(usize, Option<Duration>)> {
        let PoolShare { reply_bytes, pace, .. } = &self.pool_share;
        let time = |pace: &Pace| pace.time_for(*reply_bytes, self.tx.written(), now);
        (*reply_bytes > 0).then(|| (*reply_bytes, pace.as_ref().and_then(time)))
    }

    /// Returns the number of queued bytes that the socket has not accepted, including those lent to a writer.
    #[inline]
    pub fn backlog(&self) -> usize {
        self.tx.backlog() + self.fragment_queue.bytes
    }

    /// Returns whether a oneway may be queued: the backlog is below `Limits::max_backlog`. While all
    /// connections together have more queued than the pool's cap, it must also be below 64 KiB.
    #[inline]
    pub fn has_room_for_oneway(&self) -> bool {
        let backlog = self.backlog();
        backlog < self.max_backlog
            && (backlog < MIN_COUNTED_BYTES || !self.pool_share.pool.exceeds_queue_cap())
    }

    /// Returns whether requests must wait because too many bytes of answers are queued: more than
    /// `Limits::max_backlog`, or more than 64 KiB while all connections exceed the pool's cap together.
    #[inline]
    pub fn is_backed_up(&self) -> bool {
        let backlog = self.backlog();
        backlog > MIN_COUNTED_BYTES.min(self.max_backlog) && self.exceeded_limit(backlog).is_some()
    }

    /// Returns the limit that the queued answers exceed. Counts at most `bytes` bytes of them.
    #[cold]
    pub(super) fn exceeded_limit(&self, bytes: usize) -> Option<Limit> {
        let answers = self.reply_bytes_among(bytes);
        if answers > self.max_backlog {
            Some(Limit::Backlog)
        } else if answers > MIN_COUNTED_BYTES && self.pool_share.pool.exceeds_queue_cap() {
            Some(Limit::Pool)
        } else {
            None
        }
    }

    /// Returns whether the large reply queues of all connections together exceed half of the pool's cap.
    pub fn is_pool_half_full_of_replies(&self) -> bool {
        self.pool_share.pool.is_half_full_of_replies()
    }

    /// Returns the number of queued bytes of answers, but at most `bytes`.
    fn reply_bytes_among(&self, bytes: usize) -> usize {
        bytes.min(self.reply_backlog.bytes.saturating_add(self.fragment_queue.reply_bytes))
    }

    /// Reports the size of the queue to the pool, if the queue is large or was large at the last report.
    #[inline]
    pub(super) fn report(&mut self, now: Instant) {
        let backlog = self.backlog();
        if backlog > MIN_COUNTED_BYTES || self.pool_share.counted_bytes > 0 {
            self.report_large(backlog, now);
        }
    }

    #[cold]
    fn report_large(&mut self, backlog: usize, now: Instant) {
        self.pool_share.count(backlog, self.reply_bytes_among(backlog));
        let written = self.tx.written();
        match &mut self.pool_share.pace {
            _ if self.pool_share.reply_bytes == 0 => self.pool_share.pace = None,
            Some(pace) => pace.record(written, now),
            pace => *pace = Some(Pace::new(written, now)),
        }
    }

    /// Returns the limit that the queued answers exceed, not counting the bytes lent to a writer.
    #[cold]
    pub(super) fn limit_exceeded_without_lent_bytes(&self) -> Option<Limit> {
        self.exceeded_limit(self.tx.unlent_len() + self.fragment_queue.bytes)
    }
}

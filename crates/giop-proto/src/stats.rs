//! Counters of connections.

use std::ops::AddAssign;

use crate::hits::LimitHits;

/// The counters of one connection since its start, or the sum over several connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Messages received. Each fragment counts as one.
    pub messages_in: u64,
    /// Messages queued.
    pub messages_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes that the socket accepted.
    pub bytes_out: u64,
    /// Buffers that were lent to a reader and returned: with epoll, one for each system call.
    pub reads: u64,
    /// Writes of which the socket accepted at least a part, each by one system call.
    pub writes: u64,
    /// Received bytes that were copied: starts of large messages, cut ends of windows, and small fragments.
    pub copied: u64,
    /// Sent bytes that were copied in user space, into their message or into a batch of small messages.
    pub copied_out: u64,
    /// CancelRequests received.
    pub cancels_in: u64,
    /// CancelRequests queued.
    pub cancels_out: u64,
    /// Requests removed from the queue before any of their bytes was written.
    pub unqueued: u64,
    /// Replies, CancelRequests and fragments that belong to no known message.
    pub strays: u64,
    /// Requests that the connection itself answered with a system exception.
    pub refused: u64,
    /// Requests that were not executed because the connection was closing.
    pub dropped: u64,
    /// Bytes of oversized messages and of discarded fragments.
    pub skipped: u64,
    /// The number of times that each limit was hit.
    pub limits: LimitHits,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        let Self {
            messages_in,
            messages_out,
            bytes_in,
            bytes_out,
            reads,
            writes,
            copied,
            copied_out,
            cancels_in,
            cancels_out,
            unqueued,
            strays,
            refused,
            dropped,
            skipped,
            limits,
        } = other;
        self.messages_in += messages_in;
        self.messages_out += messages_out;
        self.bytes_in += bytes_in;
        self.bytes_out += bytes_out;
        self.reads += reads;
        self.writes += writes;
        self.copied += copied;
        self.copied_out += copied_out;
        self.cancels_in += cancels_in;
        self.cancels_out += cancels_out;
        self.unqueued += unqueued;
        self.strays += strays;
        self.refused += refused;
        self.dropped += dropped;
        self.skipped += skipped;
        self.limits += limits;
    }
}

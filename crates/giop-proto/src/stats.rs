//! Counters of connections.

use std::ops::AddAssign;

use crate::hits::LimitHits;

/// The counters of one connection since it was established, or their sums over several connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Messages received. Each fragment counts as one.
    pub messages_in: u64,
    /// Messages queued for sending.
    pub messages_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes that the socket accepted.
    pub bytes_out: u64,
    /// Reads from the socket. With epoll and without TLS, each read is one system call.
    pub reads: u64,
    /// Writes of which the socket accepted at least a part. With epoll and without TLS, each write is one
    /// system call.
    pub writes: u64,
    /// Received bytes that were copied in user space, such as starts of large messages and small fragments.
    pub bytes_copied_in: u64,
    /// Sent bytes that were copied in user space, into their message or into a batch of small messages.
    pub bytes_copied_out: u64,
    /// CancelRequests received.
    pub cancels_in: u64,
    /// CancelRequests queued for sending.
    pub cancels_out: u64,
    /// Requests removed from the queue before any of their bytes was written.
    pub requests_unqueued: u64,
    /// Replies, CancelRequests and fragments that belong to no known message.
    pub stray_messages: u64,
    /// Requests that the connection itself answered with a system exception.
    pub requests_refused: u64,
    /// Requests that were not executed because the connection was closing.
    pub requests_dropped: u64,
    /// Bytes of oversized messages, of discarded fragments and of abandoned streams.
    pub bytes_skipped: u64,
    /// The number of times that each limit was hit.
    pub limit_hits: LimitHits,
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
            bytes_copied_in,
            bytes_copied_out,
            cancels_in,
            cancels_out,
            requests_unqueued,
            stray_messages,
            requests_refused,
            requests_dropped,
            bytes_skipped,
            limit_hits,
        } = other;
        self.messages_in += messages_in;
        self.messages_out += messages_out;
        self.bytes_in += bytes_in;
        self.bytes_out += bytes_out;
        self.reads += reads;
        self.writes += writes;
        self.bytes_copied_in += bytes_copied_in;
        self.bytes_copied_out += bytes_copied_out;
        self.cancels_in += cancels_in;
        self.cancels_out += cancels_out;
        self.requests_unqueued += requests_unqueued;
        self.stray_messages += stray_messages;
        self.requests_refused += requests_refused;
        self.requests_dropped += requests_dropped;
        self.bytes_skipped += bytes_skipped;
        self.limit_hits += limit_hits;
    }
}

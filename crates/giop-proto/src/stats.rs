//! What a connection counts.

use std::ops::AddAssign;

use crate::hits::LimitHits;

/// Counters of one connection, from its start, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Messages received; each fragment is one.
    pub messages_in: u64,
    /// Messages queued.
    pub messages_out: u64,
    /// Octets received.
    pub octets_in: u64,
    /// Octets that the socket took.
    pub octets_out: u64,
    /// Buffers that were lent to a reader and came back: with epoll each was one system call.
    pub reads: u64,
    /// Writes of which the socket took something: each one system call.
    pub writes: u64,
    /// Received octets that were moved inside user space: the starts of deposited messages, the cut ends of windows, and
    /// fragments that were too small to be read to their place.
    pub copied: u64,
    /// Octets to be sent that were moved inside user space: arguments that could have been shared and were copied into
    /// their message, and messages and parts of them that were copied into a batch.
    pub copied_out: u64,
    /// CancelRequests received.
    pub cancels_in: u64,
    /// CancelRequests queued.
    pub cancels_out: u64,
    /// Requests taken back before any of them was written.
    pub unqueued: u64,
    /// Replies, cancels and fragments that belonged to nothing.
    pub strays: u64,
    /// Requests that the connection answered itself, by a system exception.
    pub refused: u64,
    /// Requests dropped because the connection was closing: the peer is told so by CloseConnection.
    pub dropped: u64,
    /// Octets of oversized messages, and of fragments that nobody wants, that were read and thrown away.
    pub skipped: u64,
    /// How often each limit was hit.
    pub limits: LimitHits,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        let Self {
            messages_in,
            messages_out,
            octets_in,
            octets_out,
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
        self.octets_in += octets_in;
        self.octets_out += octets_out;
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

//! What a connection counts.

/// Counters of one connection, from its start.
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
    /// Received octets that were moved inside user space: the starts of deposited messages, the cut ends of windows, and
    /// fragments that were too small to be read to their place.
    pub copied: u64,
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
}

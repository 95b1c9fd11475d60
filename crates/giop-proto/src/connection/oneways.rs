//! Detection of lost oneways. Without replies, only the end of a connection shows whether some may be lost.

use std::time::Instant;

use giop_codec::giop::MessageHeader;

use super::Connection;
use super::closing::Lifecycle;
use crate::error::CloseReason;
use crate::message::RequestHead;

#[derive(Debug, Default)]
pub(super) struct Oneways {
    /// The position in the outgoing stream after the last oneway.
    end: u64,
    lost: bool,
    /// While this side is closing: the number of received bytes up to which oneways are accepted, or 0.
    accepted_until: u64,
}

/// The maximum number of bytes that are read for oneways that arrived before this side closed. It exceeds the
/// socket's buffer, and ensures that a peer that continues to send does not delay the end.
const MAX_LAST_BYTES: u64 = 8 << 20;

impl Oneways {
    fn is_open(&self, lifecycle: &Lifecycle) -> bool {
        self.accepted_until > 0 && lifecycle.is_draining()
    }

    /// Returns whether a request, or its first piece, is a oneway that is accepted while closing.
    #[cold]
    pub(super) fn accepts(&self, lifecycle: &Lifecycle, header: &MessageHeader, bytes: &[u8]) -> bool {
        let is_oneway =
            || RequestHead::decode(header, bytes).is_ok_and(|head| !head.response.expects_reply());
        self.is_open(lifecycle) && is_oneway()
    }

    /// Records that a oneway was queued, whose last byte is before `end`.
    #[inline]
    pub(super) fn record_queued(&mut self, end: u64) {
        self.end = end;
    }

    /// Records that the last oneway, whose first byte is at `start`, was removed from the queue.
    #[cold]
    pub(super) fn record_removal(&mut self, start: u64) {
        self.end = self.end.min(start);
    }

    /// Called when the connection ends or can no longer be written to. The first `written` bytes of the
    /// stream were written, and the peer has certainly received the first `confirmed` bytes.
    #[cold]
    pub(super) fn detect_lost(&mut self, reason: &CloseReason, written: u64, confirmed: u64) {
        let arrived = match reason {
            // The peer reads what the operating system has accepted, unless the peer itself has stopped.
            CloseReason::PeerClosed | CloseReason::Local | CloseReason::Idle => written,
            // Sent data may have been in buffers that are lost.
            _ => confirmed,
        };
        self.lost |= self.end > arrived;
    }
}

impl Connection {
    /// Closes like [`close`](Self::close), but still hands out oneways that have arrived, including those in
    /// the socket's buffer, because their senders would not notice that they were not executed.
    ///
    /// The driver must read all, and then call [`handle_all_read`](Self::handle_all_read), so that
    /// CloseConnection is sent.
    pub fn close_after_oneways(&mut self, now: Instant) {
        if self.lifecycle.accepts_requests() && self.accept_requests && self.lifecycle.end_reason().is_none()
        {
            self.oneways.accepted_until = self.output.stats.bytes_in.saturating_add(MAX_LAST_BYTES);
        }
        self.close(now);
    }

    /// Returns whether oneways are accepted while the connection closes, until
    /// [`handle_all_read`](Self::handle_all_read).
    pub fn accepts_last_oneways(&self) -> bool {
        self.oneways.is_open(&self.lifecycle)
    }

    /// Called when there is nothing to read in the socket.
    pub fn handle_all_read(&mut self) {
        if self.accepts_last_oneways() {
            self.oneways.accepted_until = 0;
            self.continue_closing();
        }
    }

    #[inline]
    pub(super) fn close_after_last_bytes(&mut self) {
        if self.oneways.accepted_until > 0 && self.output.stats.bytes_in >= self.oneways.accepted_until {
            self.handle_all_read();
        }
    }

    /// Returns whether the connection ended and oneways may be lost:
    ///
    /// * It was closed in good order by either side, and some were not written.
    /// * It failed, and no later request of this side was answered.
    pub fn lost_oneways(&self) -> bool {
        self.oneways.lost
    }
}

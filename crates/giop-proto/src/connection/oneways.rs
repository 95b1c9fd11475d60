//! Detection of lost oneways. Nothing answers them, so only the end of the connection shows whether any may
//! be lost.

use std::time::Instant;

use giop_codec::giop::MessageHeader;

use super::Connection;
use super::closing::Lifecycle;
use crate::error::CloseReason;
use crate::message::RequestHead;

/// The state of the oneways of one connection.
#[derive(Debug, Default)]
pub(super) struct Oneways {
    /// The position in the outgoing stream after the last oneway.
    end: u64,
    /// True if a failure may have lost some of them.
    lost: bool,
    /// While this side closes: the total number of received bytes up to which oneways of the peer are
    /// accepted. 0 if none is accepted.
    taken_until: u64,
}

/// The maximum number of bytes that are read for oneways that arrived before this side closed. It exceeds
/// what the system buffers for a socket. A peer that continues to send does not delay the end.
const LAST_BYTES: u64 = 8 << 20;

impl Oneways {
    /// Returns whether oneways are accepted while the connection closes.
    fn is_open(&self, lifecycle: &Lifecycle) -> bool {
        self.taken_until > 0 && lifecycle.is_draining()
    }

    /// Returns whether a request is a oneway that is accepted although this side closes. The first piece of a
    /// fragmented one is sufficient.
    #[cold]
    pub(super) fn accepts(&self, lifecycle: &Lifecycle, header: &MessageHeader, octets: &[u8]) -> bool {
        let is_oneway =
            || RequestHead::decode(header, octets).is_ok_and(|head| !head.response.expects_reply());
        self.is_open(lifecycle) && is_oneway()
    }

    /// Notes that a oneway was queued, whose last byte is before `end`.
    #[inline]
    pub(super) fn queued(&mut self, end: u64) {
        self.end = end;
    }

    /// Notes that the last oneway, whose first byte is at `start`, was removed from the queue.
    #[cold]
    pub(super) fn took_back(&mut self, start: u64) {
        self.end = self.end.min(start);
    }

    /// Notes that the connection ends or can no longer be written to. Of the bytes of the stream, `written`
    /// were written, and the peer has certainly received `confirmed`.
    #[cold]
    pub(super) fn note_lost(&mut self, reason: &CloseReason, written: u64, confirmed: u64) {
        let arrived = match reason {
            // The peer reads what the operating system has, if it has not stopped by itself.
            CloseReason::PeerClosed | CloseReason::Local | CloseReason::Idle => written,
            // Sent data may be in buffers that are lost.
            _ => confirmed,
        };
        self.lost |= self.end > arrived;
    }
}

impl Connection {
    /// Closes like [`close`](Self::close), but oneways that have arrived are still handed out, including
    /// those in the socket's buffer. Nothing would tell their senders that they were not executed.
    ///
    /// The driver must read on until there is nothing to read, and then call [`all_read`](Self::all_read).
    /// CloseConnection is sent after that.
    pub fn close_after_oneways(&mut self, now: Instant) {
        if self.lifecycle.takes_requests() && self.accept_requests && self.lifecycle.ended().is_none() {
            self.oneways.taken_until = self.stats.octets_in.saturating_add(LAST_BYTES);
        }
        self.close(now);
    }

    /// Returns whether oneways are accepted while the connection closes, until [`all_read`](Self::all_read).
    #[must_use]
    pub fn takes_last_oneways(&self) -> bool {
        self.oneways.is_open(&self.lifecycle)
    }

    /// Notes that there is nothing to read in the socket.
    pub fn all_read(&mut self) {
        if self.takes_last_oneways() {
            self.oneways.taken_until = 0;
            self.proceed_closing();
        }
    }

    /// Notes that all received data is handled.
    #[inline]
    pub(super) fn handled_all(&mut self) {
        if self.oneways.taken_until > 0 && self.stats.octets_in >= self.oneways.taken_until {
            self.all_read();
        }
    }

    /// Returns whether the connection ended and oneways may be lost:
    ///
    /// * It was closed in order by either side, and some were not written.
    /// * It broke, and no later request of this side was answered.
    #[must_use]
    pub fn lost_oneways(&self) -> bool {
        self.oneways.lost
    }
}

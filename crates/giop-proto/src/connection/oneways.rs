//! Oneways: whether any that were queued may be lost. Nothing answers them, so only the end of the connection can tell.

use std::time::Instant;

use giop_codec::giop::MessageHeader;

use super::Connection;
use super::closing::Phase;
use crate::error::CloseReason;
use crate::message::RequestHead;

/// What is known of the oneways of one connection.
#[derive(Debug, Default)]
pub(super) struct Oneways {
    /// The place in the outgoing stream after the last oneway.
    end: u64,
    /// A failure may have lost some of them.
    lost: bool,
    /// This side closes, and takes oneways of the peer until so many bytes have been received in all. 0: it takes none.
    taken_until: u64,
}

/// The most bytes that are received for oneways that came before this side closed: more than the system keeps for a socket. A peer that goes on
/// sending does not hold up the end.
const LAST_BYTES: u64 = 8 << 20;

impl Connection {
    /// A oneway was queued. `coming` bytes of it follow.
    #[inline]
    pub(super) fn queued_oneway(&mut self, coming: u64) {
        self.oneways.end = self.tx.queued() + coming;
    }

    /// The last oneway was taken back, whose first byte stood at `start`.
    #[cold]
    pub(super) fn took_back_oneway(&mut self, start: u64) {
        self.oneways.end = self.oneways.end.min(start);
    }

    /// The connection ends, or can no longer be written to. Call it before the queue is cleared.
    #[cold]
    pub(super) fn note_lost_oneways(&mut self, reason: &CloseReason) {
        let arrived = match reason {
            // The peer reads what the operating system has, if it has not stopped by itself.
            CloseReason::PeerClosed | CloseReason::Local | CloseReason::Idle => self.tx.written(),
            // What was sent may be in buffers that are gone.
            _ => self.calls.confirmed(),
        };
        self.oneways.lost |= self.oneways.end > arrived;
    }

    /// As [`close`](Self::close), but oneways that have come are still handed out, those included that wait in the socket. Nothing tells their
    /// senders that they were not executed.
    ///
    /// Read on until there is nothing to read, then call [`all_read`](Self::all_read): CloseConnection is sent after that.
    pub fn close_after_oneways(&mut self, now: Instant) {
        if self.takes_requests() && self.accept_requests && self.clock.ended().is_none() {
            self.oneways.taken_until = self.stats.octets_in.saturating_add(LAST_BYTES);
        }
        self.close(now);
    }

    /// Whether oneways are taken while the connection closes, until [`all_read`](Self::all_read).
    #[must_use]
    pub fn takes_last_oneways(&self) -> bool {
        self.oneways.taken_until > 0 && matches!(self.phase, Phase::Draining { .. })
    }

    /// There is nothing to read in the socket.
    pub fn all_read(&mut self) {
        if self.takes_last_oneways() {
            self.oneways.taken_until = 0;
            self.proceed_closing();
        }
    }

    /// All that was received is handled.
    #[inline]
    pub(super) fn handled_all(&mut self) {
        if self.oneways.taken_until > 0 && self.stats.octets_in >= self.oneways.taken_until {
            self.all_read();
        }
    }

    /// Whether a request is a oneway that is taken although this side closes. Of a fragmented one the first piece is enough.
    #[cold]
    pub(super) fn is_last_oneway(&self, header: &MessageHeader, octets: &[u8]) -> bool {
        let is_oneway =
            || RequestHead::decode(header, octets).is_ok_and(|head| !head.response.expects_reply());
        self.takes_last_oneways() && is_oneway()
    }

    /// Whether the connection ended and oneways may be lost:
    ///
    /// * It was closed in order by either side, and some were not written.
    /// * It broke, and no later request of this side was answered.
    #[must_use]
    pub fn lost_oneways(&self) -> bool {
        self.oneways.lost
    }
}

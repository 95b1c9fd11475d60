//! Detection of oneways that may be lost, when their connection ends. They have no replies.

use std::time::Instant;

use giop_codec::giop::MessageHeader;

use super::Connection;
use super::closing::Lifecycle;
use crate::error::CloseReason;
use crate::message::RequestHead;

#[derive(Debug, Default)]
pub(super) struct Oneways {
    last_end: u64,
    may_be_lost: bool,
    /// The position in the incoming stream up to which oneways are accepted in spite of closing, or 0.
    accepted_until: u64,
}

/// The maximum number of bytes that are read after this side began to close, to find oneways that had
/// arrived. It exceeds the size of the socket's buffer, and limits the delay by a busy peer.
const MAX_LAST_BYTES: u64 = 8 << 20;

impl Oneways {
    fn accepts_last(&self, lifecycle: &Lifecycle) -> bool {
        self.accepted_until > 0 && lifecycle.is_draining()
    }

    /// Returns whether this is a oneway, or the first piece of one, that is accepted in spite of closing.
    #[cold]
    pub(super) fn accepts(&self, lifecycle: &Lifecycle, header: &MessageHeader, bytes: &[u8]) -> bool {
        let is_oneway =
            || RequestHead::decode(header, bytes).is_ok_and(|head| !head.response.expects_reply());
        self.accepts_last(lifecycle) && is_oneway()
    }

    /// Records that a oneway was queued. `end` is the position after its last byte.
    #[inline]
    pub(super) fn record_queued(&mut self, end: u64) {
        self.last_end = end;
    }

    /// Records that the last oneway was removed from the queue. `start` is the position of its first byte.
    #[cold]
    pub(super) fn record_removal(&mut self, start: u64) {
        self.last_end = self.last_end.min(start);
    }

    /// Called when the connection ends or can no longer be written to. The first `written` bytes of the
    /// stream were written, and the peer has certainly received the first `confirmed` bytes.
    #[cold]
    pub(super) fn detect_lost(&mut self, reason: &CloseReason, written: u64, confirmed: u64) {
        let arrived = match reason {
            // After an orderly end, the peer receives what the operating system has accepted.
            CloseReason::PeerClosed | CloseReason::Local | CloseReason::Idle => written,
            // After a failure, written data may have been lost in buffers.
            _ => confirmed,
        };
        self.may_be_lost |= self.last_end > arrived;
    }
}

impl Connection {
    /// Closes like [`close`](Self::close), but still hands out oneways that have arrived, including those in
    /// the socket's buffer. Their senders would not notice that they were not executed.
    ///
    /// The driver must read the socket until nothing is left, and then call
    /// [`handle_all_read`](Self::handle_all_read). CloseConnection is sent only after that.
    pub fn close_after_oneways(&mut self, now: Instant) {
        if self.lifecycle.hands_out_requests()
            && self.accepts_requests
            && self.lifecycle.end_reason().is_none()
        {
            self.oneways.accepted_until = self.output.stats.bytes_in.saturating_add(MAX_LAST_BYTES);
        }
        self.close(now);
    }

    /// Returns whether [`close_after_oneways`](Self::close_after_oneways) still accepts oneways.
    pub fn accepts_last_oneways(&self) -> bool {
        self.oneways.accepts_last(&self.lifecycle)
    }

    /// Must be called when a closing connection has been read until nothing is left in the socket.
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

    /// Returns whether the connection has ended and oneways of this side may be lost:
    ///
    /// * Either side closed the connection in an orderly way, and some oneways had not been written.
    /// * The connection failed, and no request after the last oneway had been answered.
    pub fn may_have_lost_oneways(&self) -> bool {
        self.oneways.may_be_lost
    }
}

//! Requests in both directions of one connection ("Bidirectional GIOP").
//!
//! Both sides have the tables of calls and of requests being served, and the parity of request ids
//! distinguishes the directions. This module handles what is special: the objects that the peer offers to
//! serve, and two sides that close at the same time.

use giop_codec::Version;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{RequestId, ResponseFlags};

use super::Connection;

impl Connection {
    /// Drops a request that was received while this side closes. CloseConnection tells the peer that it was
    /// not executed, but is sent only after this side has its own replies. If both sides waited for that,
    /// neither would end, so in this case the request is refused immediately.
    #[cold]
    pub(super) fn turn_away(&mut self, id: RequestId, response: ResponseFlags, version: Version) {
        self.stats.dropped += 1;
        if self.awaits_replies() && response.expects_reply() {
            self.output.refuse(id, version, &closing(), self.clock.now);
            self.bound_refusals();
        }
    }

    /// Drops a LocateRequest that was received while this side closes. It is refused only since GIOP 1.2:
    /// earlier versions have no suitable answer.
    #[cold]
    pub(super) fn turn_locate_away(&mut self, id: RequestId, version: Version) {
        self.stats.dropped += 1;
        if self.awaits_replies() && version >= Version::V1_2 {
            self.output.refuse_locate(id, version, &closing(), self.clock.now);
            self.bound_refusals();
        }
    }

    /// Returns whether this side closes and still awaits replies.
    pub(super) fn awaits_replies(&self) -> bool {
        self.lifecycle.may_queue() && self.calls.waiting() > 0
    }
}

fn closing() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, minor::TRANSIENT_DISCARDED, CompletionStatus::No)
        .because("the connection is being closed")
}

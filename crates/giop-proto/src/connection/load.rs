//! How many requests may be in flight: a connection takes its part of what all of an endpoint may have, and gives it back.

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{MessageHeader, MessageType};

use super::Connection;
use crate::hits::Limit;
use crate::message::RequestHead;

impl Connection {
    /// All requests that were granted are in flight, or too much is queued. Where the endpoint has more requests to give, takes some; else
    /// those that come are refused, as long as this connection has less than its own limit.
    #[cold]
    pub(super) fn ask_for_more(&mut self) {
        let most = self.limits.max_requests;
        self.shedding = false;
        if self.serving.len() >= self.granted {
            if self.serving.len() >= most {
                return self.count_wait(Limit::Requests);
            }
            if !self.share.grow(most) {
                // What is refused must not be queued without end either.
                self.shedding = !self.is_backed_up();
                return;
            }
            self.granted = self.share.granted();
        }
        if let Some(limit) = self.backs_up(self.backlog()) {
            self.count_wait(limit);
        }
    }

    /// Counts that what comes has to wait: once for each time that it does.
    fn count_wait(&mut self, limit: Limit) {
        if self.is_held() && self.waited_at != Some(self.stats.messages_in) {
            self.waited_at = Some(self.stats.messages_in);
            self.stats.limits.hit(limit);
        }
    }

    /// Whether the message in front has to wait because its sender can not be told that it is refused: a oneway. It waits for a request
    /// of this very connection; who awaits replies never stops reading.
    #[cold]
    pub(super) fn must_wait(&mut self, header: &MessageHeader) -> bool {
        let waits = header.kind == MessageType::Request
            && self.serving.len() >= self.granted
            && self.calls.waiting() == 0
            && !self.rx.has_stream()
            && RequestHead::decode(header, self.rx.front()).is_ok_and(|head| !head.response.expects_reply());
        if waits {
            self.shedding = false;
            self.count_wait(Limit::TotalRequests);
            self.uncut = true;
            self.clock.hold();
        }
        waits
    }

    /// What a request is told for which there is no room.
    #[cold]
    pub(super) fn overload(&mut self) -> SystemException {
        let (limit, minor, text) = if self.serving.len() >= self.limits.max_requests {
            let text = "too many requests on this connection: raise it by `Limits::max_requests`";
            (Limit::Requests, minor::TRANSIENT_DISCARDED, text)
        } else if self.serving.len() >= self.granted {
            let text = "too many requests on all connections: raise it by `Limits::max_total_requests`";
            (Limit::TotalRequests, minor::TRANSIENT_OVERLOADED, text)
        } else {
            let text = "too much is queued for the peer: raise it by `Limits::max_backlog`";
            (Limit::Backlog, minor::TRANSIENT_DISCARDED, text)
        };
        self.stats.limits.hit(limit);
        SystemException::new(SystemExceptionKind::Transient, minor, CompletionStatus::No).because(text)
    }

    /// Gives back what the requests in flight do not need.
    #[cold]
    pub(super) fn give_back(&mut self) {
        // With room for the next one, so that nobody has to ask before the connection is read.
        self.share.shrink(self.serving.len() + 1);
        self.granted = self.share.granted().min(self.limits.max_requests);
    }

    /// Whether it keeps something for requests that may come.
    pub(super) fn keeps_requests(&self) -> bool {
        self.granted > 1 && self.serving.len() == 0
    }
}

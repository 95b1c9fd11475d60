//! The number of requests that may be in flight. A connection takes its share of an endpoint's budget and
//! returns it.

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{MessageHeader, MessageType};

use super::Connection;
use crate::hits::Limit;
use crate::message::RequestHead;

impl Connection {
    /// Called when all granted requests are in flight, or too much is queued. Takes more from the endpoint's
    /// budget if possible. Otherwise further requests are refused while this connection is below its own
    /// limit.
    #[cold]
    pub(super) fn ask_for_more(&mut self) {
        let most = self.limits.max_requests;
        self.requests.sheds = false;
        if self.serving.len() >= self.requests.granted {
            if self.serving.len() >= most {
                return self.count_wait(Limit::Requests);
            }
            if !self.requests.share.grow(most) {
                // The refusals must not be queued without limit either.
                self.requests.sheds = !self.is_backed_up();
                return;
            }
            self.requests.granted = self.requests.share.granted();
        }
        if let Some(limit) = self.backs_up(self.backlog()) {
            self.count_wait(limit);
        }
    }

    /// Counts that input has to wait, once for each time.
    fn count_wait(&mut self, limit: Limit) {
        if self.is_held() && self.requests.waited_at != Some(self.stats.messages_in) {
            self.requests.waited_at = Some(self.stats.messages_in);
            self.stats.limits.hit(limit);
        }
    }

    /// Returns whether the first message must wait because it is a oneway, whose sender cannot be notified of
    /// a refusal. It waits for a request of the same connection. A side that awaits replies never stops
    /// reading.
    #[cold]
    pub(super) fn must_wait(&mut self, header: &MessageHeader) -> bool {
        let waits = header.kind == MessageType::Request
            && self.serving.len() >= self.requests.granted
            && self.calls.waiting() == 0
            && !self.rx.has_stream()
            && RequestHead::decode(header, self.rx.front()).is_ok_and(|head| !head.response.expects_reply());
        if waits {
            self.requests.sheds = false;
            self.count_wait(Limit::TotalRequests);
            self.uncut = true;
            self.clock.hold();
        }
        waits
    }

    /// Returns the exception for a request that exceeds a limit.
    #[cold]
    pub(super) fn overload(&mut self) -> SystemException {
        let (limit, minor, text) = if self.serving.len() >= self.limits.max_requests {
            let text = "too many requests on this connection: raise it by `Limits::max_requests`";
            (Limit::Requests, minor::TRANSIENT_DISCARDED, text)
        } else if self.serving.len() >= self.requests.granted {
            let text = "too many requests on all connections: raise it by `Limits::max_total_requests`";
            (Limit::TotalRequests, minor::TRANSIENT_OVERLOADED, text)
        } else {
            let text = "too much is queued for the peer: raise it by `Limits::max_backlog`";
            (Limit::Backlog, minor::TRANSIENT_DISCARDED, text)
        };
        self.stats.limits.hit(limit);
        SystemException::new(SystemExceptionKind::Transient, minor, CompletionStatus::No).because(text)
    }

    /// Returns the part of the budget that the requests in flight do not need.
    #[cold]
    pub(super) fn give_back(&mut self) {
        // Room for one more is kept, so that the next request needs no access to the shared budget.
        self.requests.share.shrink(self.serving.len() + 1);
        self.requests.granted = self.requests.share.granted().min(self.limits.max_requests);
    }

    /// Returns whether it keeps a part of the budget for future requests.
    pub(super) fn keeps_requests(&self) -> bool {
        self.requests.granted > 1 && self.serving.len() == 0
    }
}

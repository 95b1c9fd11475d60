//! The number of requests that may be in flight. A connection takes its share of an endpoint's budget and
//! returns it.

use giop_codec::exception::{SystemException, minor};
use giop_codec::giop::{MessageHeader, MessageType};

use super::{Connection, Output, RequestAdmission};
use crate::hits::Limit;
use crate::limits::Limits;
use crate::message::RequestHead;

impl Connection {
    /// Counts that input has to wait, once for each time.
    #[cold]
    pub(super) fn count_wait(&mut self, limit: Limit) {
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
            && !self.input.rx.stream.is_some()
            && RequestHead::decode(header, self.input.rx.front())
                .is_ok_and(|head| !head.response.expects_reply());
        if waits {
            self.requests.sheds = false;
            self.count_wait(Limit::TotalRequests);
            self.input.uncut = true;
            self.clock.hold();
        }
        waits
    }
}

impl RequestAdmission {
    /// Called when all granted requests are in flight, or too much is queued. Takes more from the endpoint's
    /// budget if possible. Otherwise further requests are refused while this connection is below its own
    /// limit. Returns the limit because of which requests have to wait.
    #[cold]
    pub(super) fn ask_for_more(
        &mut self,
        in_flight: usize,
        limits: &Limits,
        output: &Output,
    ) -> Option<Limit> {
        let most = limits.max_requests;
        self.sheds = false;
        if in_flight >= self.granted {
            if in_flight >= most {
                return Some(Limit::Requests);
            }
            if !self.share.grow(most) {
                // The refusals must not be queued without limit either.
                self.sheds = !output.is_backed_up();
                return None;
            }
            self.granted = self.share.granted();
        }
        output.backs_up(output.backlog())
    }

    /// Returns the part of the budget that the requests in flight do not need.
    #[cold]
    pub(super) fn give_back(&mut self, in_flight: usize, limits: &Limits) {
        // Room for one more is kept, so that the next request needs no access to the shared budget.
        self.share.shrink(in_flight + 1);
        self.granted = self.share.granted().min(limits.max_requests);
    }

    /// Returns whether it keeps a part of the budget for future requests.
    pub(super) fn keeps_requests(&self, in_flight: usize) -> bool {
        self.granted > 1 && in_flight == 0
    }

    /// Returns the limit that a request exceeds, and the exception for it.
    #[cold]
    pub(super) fn overload(&self, in_flight: usize, limits: &Limits) -> (Limit, SystemException) {
        let (limit, minor, text) = if in_flight >= limits.max_requests {
            let text = "too many requests on this connection: raise it by `Limits::max_requests`";
            (Limit::Requests, minor::TRANSIENT_DISCARDED, text)
        } else if in_flight >= self.granted {
            let text = "too many requests on all connections: raise it by `Limits::max_total_requests`";
            (Limit::TotalRequests, minor::TRANSIENT_OVERLOADED, text)
        } else {
            let text = "too much is queued for the peer: raise it by `Limits::max_backlog`";
            (Limit::Backlog, minor::TRANSIENT_DISCARDED, text)
        };
        let exception = SystemException::transient().with_minor(minor);
        (limit, exception.with_reason(text))
    }
}

//! The number of requests in flight: connections take shares of the endpoint's budget and return them.

use giop_codec::exception::{SystemException, minor};
use giop_codec::giop::{MessageHeader, MessageType};

use super::{Connection, Output, RequestAdmission};
use crate::hits::Limit;
use crate::limits::Limits;
use crate::message::RequestHead;

impl Connection {
    /// Counts that requests have to wait because of a limit, once for each time.
    #[cold]
    pub(super) fn count_limit_wait(&mut self, limit: Limit) {
        if self.is_held() && self.requests.last_wait != Some(self.output.stats.messages_in) {
            self.requests.last_wait = Some(self.output.stats.messages_in);
            self.output.stats.limits.hit(limit);
        }
    }

    /// Suspends the peeked message if it is a oneway beyond the budget, because its sender would not notice a
    /// refusal. It waits for a request of the same connection. A side that awaits replies never stops
    /// reading.
    #[cold]
    pub(super) fn suspend_oneway(&mut self, header: &MessageHeader) -> bool {
        let waits = header.kind == MessageType::Request
            && self.serving.len() >= self.requests.granted
            && self.calls.pending() == 0
            && !self.input.rx.stream.is_active()
            && RequestHead::decode(header, self.input.rx.front())
                .is_ok_and(|head| !head.response.expects_reply());
        if waits {
            self.requests.refuses_excess = false;
            self.count_limit_wait(Limit::TotalRequests);
            self.input.has_unprocessed = true;
            self.clock.stop_message_timeout();
        }
        waits
    }
}

impl RequestAdmission {
    /// Called when all granted requests are in flight, or too much is queued. Takes more from the endpoint's
    /// budget if possible. Otherwise further requests are refused while this connection is below its own
    /// limit. Returns the limit because of which requests have to wait.
    #[cold]
    pub(super) fn grow(&mut self, in_flight: usize, limits: &Limits, output: &Output) -> Option<Limit> {
        let max_requests = limits.max_requests;
        self.refuses_excess = false;
        if in_flight >= self.granted {
            if in_flight >= max_requests {
                return Some(Limit::Requests);
            }
            if !self.share.grow(max_requests) {
                // The queue of refusals must be limited too.
                self.refuses_excess = !output.is_backed_up();
                return None;
            }
            self.granted = self.share.granted();
        }
        output.exceeded_limit(output.backlog())
    }

    /// Returns what the requests in flight do not need to the budget.
    #[cold]
    pub(super) fn give_back(&mut self, in_flight: usize, limits: &Limits) {
        // One more is kept, so that the next request needs no access to the shared budget.
        self.share.shrink(in_flight + 1);
        self.granted = self.share.granted().min(limits.max_requests);
    }

    pub(super) fn keeps_budget(&self, in_flight: usize) -> bool {
        self.granted > 1 && in_flight == 0
    }

    /// Returns the limit that a request exceeds, and the exception that refuses it.
    #[cold]
    pub(super) fn overload(&self, in_flight: usize, limits: &Limits) -> (Limit, SystemException) {
        let (limit, minor, text) = if in_flight >= limits.max_requests {
            let text = "too many requests on this connection: raise the limit by `Limits::max_requests`";
            (Limit::Requests, minor::TRANSIENT_DISCARDED, text)
        } else if in_flight >= self.granted {
            let text =
                "too many requests on all connections: raise the limit by `Limits::max_total_requests`";
            (Limit::TotalRequests, minor::TRANSIENT_OVERLOADED, text)
        } else {
            let text = "too much data is queued for the peer: raise the limit by `Limits::max_backlog`";
            (Limit::Backlog, minor::TRANSIENT_DISCARDED, text)
        };
        let exception = SystemException::transient().with_minor(minor);
        (limit, exception.with_reason(text))
    }
}

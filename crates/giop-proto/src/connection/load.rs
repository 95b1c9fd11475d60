//! The limits on requests in flight. Connections take shares of a common budget, and return them.

use giop_codec::exception::{SystemException, minor};
use giop_codec::giop::{MessageHeader, MessageType};

use super::{Connection, Output, RequestAdmission};
use crate::hits::Limit;
use crate::limits::Limits;
use crate::message::RequestHead;

impl Connection {
    /// Counts that requests must wait because of a limit, but only once until more messages are received.
    #[cold]
    pub(super) fn count_limit_wait(&mut self, limit: Limit) {
        if self.requests_must_wait() && self.admission.last_wait != Some(self.output.stats.messages_in) {
            self.admission.last_wait = Some(self.output.stats.messages_in);
            self.output.stats.limit_hits.hit(limit);
        }
    }

    /// Leaves the next message unread if it is a oneway that exceeds the budget, because its sender would not
    /// notice a refusal. A side that awaits replies must not stop reading, so it does not do that.
    #[cold]
    pub(super) fn suspend_oneway(&mut self, header: &MessageHeader) -> bool {
        let must_wait = header.kind == MessageType::Request
            && self.serving.len() >= self.admission.granted
            && self.calls.pending() == 0
            && !self.input.rx.stream.is_active()
            && RequestHead::decode(header, self.input.rx.front())
                .is_ok_and(|head| !head.response.expects_reply());
        if must_wait {
            self.admission.refuses_excess = false;
            self.count_limit_wait(Limit::TotalRequests);
            self.input.has_unprocessed = true;
            self.clock.stop_message_timeout();
        }
        must_wait
    }
}

impl RequestAdmission {
    /// Called when all granted requests are in flight, or too much data is queued. Takes more from the
    /// budget, or refuses requests if it is exhausted. Returns the limit because of which requests must wait.
    #[cold]
    pub(super) fn extend_grant(
        &mut self,
        in_flight: usize,
        limits: &Limits,
        output: &Output,
    ) -> Option<Limit> {
        let max_requests = limits.max_requests;
        self.refuses_excess = false;
        if in_flight >= self.granted {
            if in_flight >= max_requests {
                return Some(Limit::Requests);
            }
            if !self.share.grow(max_requests) {
                // The queue of refusals must be limited too, so requests wait if too much is queued.
                self.refuses_excess = !output.is_backed_up();
                return None;
            }
            self.granted = self.share.granted();
        }
        output.exceeded_limit(output.backlog())
    }

    #[cold]
    pub(super) fn return_surplus(&mut self, in_flight: usize, limits: &Limits) {
        // One more is kept, so that the next request needs no access to the shared budget.
        self.share.shrink(in_flight + 1);
        self.granted = self.share.granted().min(limits.max_requests);
    }

    /// Returns whether an idle connection keeps more of the budget than it needs for its next request.
    pub(super) fn keeps_budget(&self, in_flight: usize) -> bool {
        self.granted > 1 && in_flight == 0
    }

    /// Returns the limit that a request exceeds, and the exception that refuses it.
    #[cold]
    pub(super) fn overload_exception(&self, in_flight: usize, limits: &Limits) -> (Limit, SystemException) {
        let (limit, minor, text) = if in_flight >= limits.max_requests {
            let text = "too many requests are in flight on this connection: raise `Limits::max_requests`";
            (Limit::Requests, minor::TRANSIENT_DISCARDED, text)
        } else if in_flight >= self.granted {
            let text =
                "too many requests are in flight on all connections: raise `Limits::max_total_requests`";
            (Limit::TotalRequests, minor::TRANSIENT_OVERLOADED, text)
        } else {
            let text = "too much data is queued for the client: raise `Limits::max_backlog`";
            (Limit::Backlog, minor::TRANSIENT_DISCARDED, text)
        };
        let exception = SystemException::transient().with_minor(minor);
        (limit, exception.with_reason(text))
    }
}

//! Queueing of replies.

use giop_proto::ServeToken;

use crate::connection::{LockedState, SharedConnection};
use crate::runtime::backpressure::MIN_LARGE_REPLY_BYTES;
use crate::servant::Outcome;
use crate::servant::reply::ReplyBuffer;
use crate::server::driver::Driver;
use crate::trace::{self, Direction};

impl Driver {
    /// Queues the reply of a request. If the request has no reply, marks the request as finished. The reply
    /// is written when all messages of the last read have been processed, or when enough bytes are queued.
    pub(crate) fn queue_reply<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: LockedState<'a>,
        outcome: Outcome,
    ) -> LockedState<'a> {
        let Outcome { token, mut encoder, oneway_failure } = outcome;
        if let Some(exception) = oneway_failure {
            self.orb.counters.record_failed_oneway(&exception);
        }
        if encoder.is_empty() {
            state.machine.request(token).finish();
        } else {
            if trace::is_wire_log_enabled() {
                trace::log_message(Direction::Out, link.peer(), "", encoder.head(), encoder.len());
            }
            if encoder.len() >= MIN_LARGE_REPLY_BYTES {
                return self.queue_large_reply(link, state, token, encoder);
            }
            state.machine.request(token).send_reply(&mut encoder);
            if state.machine.output().is_worth_a_write() {
                (state, _) = link.flush(state);
            }
        }
        self.active.recycle_encoder(encoder);
        state
    }

    /// Queues a large reply. If the queued replies of all connections fill the ORB's memory pool, frees
    /// memory first. If this fails, queues an exception instead.
    fn queue_large_reply<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: LockedState<'a>,
        token: ServeToken,
        mut encoder: Box<ReplyBuffer>,
    ) -> LockedState<'a> {
        let mut freed = Ok(());
        if self.orb.pool.is_full_of_replies() {
            drop(state);
            freed = self.orb.free_memory_for_reply();
            state = link.lock();
        }
        match freed {
            Ok(()) => state.machine.request(token).send_reply(&mut encoder),
            Err(exception) => state.machine.request(token).refuse(encoder.version(), &exception),
        }
        if state.machine.output().is_worth_a_write() {
            (state, _) = link.flush(state);
        }
        if self.orb.pool.is_half_full_of_replies() {
            // The pool does not count the memory of encoders that are kept for reuse. Free this large one.
            drop(encoder);
            self.orb.hold_requests_if_crowded();
        } else {
            let (order, version) = (encoder.order(), encoder.version());
            encoder.reset(order, version);
            self.active.recycle_encoder(encoder);
        }
        state
    }

    /// Marks the requests in `finished_without_reply` as finished, and queues the replies in `outcomes`.
    pub(crate) fn queue_replies<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: LockedState<'a>,
    ) -> LockedState<'a> {
        for token in self.finished_without_reply.drain(..) {
            state.machine.request(token).finish();
        }
        let mut outcomes = std::mem::take(&mut self.outcomes);
        for outcome in outcomes.drain(..) {
            state = self.queue_reply(link, state, outcome);
        }
        self.outcomes = outcomes;
        state
    }
}

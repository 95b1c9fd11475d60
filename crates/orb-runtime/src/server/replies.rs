//! Queueing of replies.

use giop_proto::ServeToken;

use crate::connection::SharedConnection;
use crate::runtime::backpressure::LARGE_REPLY;
use crate::servant::Outcome;
use crate::servant::reply::ReplyBuffer;
use crate::server::driver::{Driver, Locked};
use crate::trace::{self, Way};

impl Driver {
    /// Queues a reply. It is written after the read that caused it has been processed, or when the batch is
    /// full.
    pub(crate) fn answer<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: Locked<'a>,
        outcome: Outcome,
    ) -> Locked<'a> {
        let Outcome { token, mut encoder, failed } = outcome;
        if let Some(exception) = failed {
            self.orb.counters.note_failed_oneway(&exception);
        }
        if encoder.is_empty() {
            state.machine.request(token).finish();
        } else {
            if trace::wire_enabled() {
                trace::wire(Way::Out, link.peer(), "", encoder.head(), encoder.len());
            }
            if encoder.len() >= LARGE_REPLY {
                return self.queue_large_reply(link, state, token, encoder);
            }
            state.machine.request(token).send_reply(&mut encoder);
            if state.machine.output().is_worth_a_write() {
                (state, _) = link.flush(state);
            }
        }
        self.active.keep_encoder(encoder);
        state
    }

    /// Queues a large reply, which counts against the reply memory of all connections.
    fn queue_large_reply<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: Locked<'a>,
        token: ServeToken,
        mut encoder: Box<ReplyBuffer>,
    ) -> Locked<'a> {
        let mut room = Ok(());
        if self.orb.pool.is_full_of_replies() {
            drop(state);
            room = self.orb.make_room_for_reply();
            state = link.lock();
        }
        match room {
            Ok(()) => state.machine.request(token).send_reply(&mut encoder),
            Err(exception) => state.machine.request(token).refuse(encoder.version(), &exception),
        }
        if state.machine.output().is_worth_a_write() {
            (state, _) = link.flush(state);
        }
        if self.orb.pool.is_crowded() {
            // Memory kept by an encoder is not accounted for, so the encoder is freed.
            drop(encoder);
            self.orb.queued_large_reply();
        } else {
            let (order, version) = (encoder.order(), encoder.version());
            encoder.reset(order, version);
            self.active.keep_encoder(encoder);
        }
        state
    }

    /// Queues the replies of the batch.
    pub(crate) fn queue_replies<'a>(
        &mut self,
        link: &'a SharedConnection,
        mut state: Locked<'a>,
    ) -> Locked<'a> {
        for token in self.finished.drain(..) {
            state.machine.request(token).finish();
        }
        let mut outcomes = std::mem::take(&mut self.outcomes);
        for outcome in outcomes.drain(..) {
            state = self.answer(link, state, outcome);
        }
        self.outcomes = outcomes;
        state
    }
}

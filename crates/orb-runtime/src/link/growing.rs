//! Replies that leave before they are whole: the way from a servant that makes them to the machine.

use std::task::{Context, Poll};

use giop_codec::cdr::Encoder;
use giop_proto::{ReplyRoom, ServeToken};

use super::{Link, State, now};

impl Link {
    /// The octets from which a reply may leave before it is whole.
    pub(crate) fn reply_piece(&self) -> usize {
        self.lock().machine.reply_piece()
    }

    /// Queues the start of a reply that is not whole, whose body begins at `body`, when it may leave. `false`: nobody wants it any more.
    pub(crate) fn poll_begin_reply(
        &self,
        cx: &mut Context<'_>,
        token: ServeToken,
        encoder: &mut Encoder,
        body: usize,
    ) -> Poll<bool> {
        let mut state = self.lock();
        state.clock = now();
        match state.machine.begin_reply(token, encoder, body) {
            ReplyRoom::Room => {
                let _ = self.flush(state);
                Poll::Ready(true)
            }
            ReplyRoom::Full => {
                state.await_room(cx);
                Poll::Pending
            }
            ReplyRoom::Gone => Poll::Ready(false),
        }
    }

    /// Waits until more of a reply may be queued. `false`: nobody wants it any more.
    pub(crate) fn poll_reply_room(&self, cx: &mut Context<'_>, token: ServeToken) -> Poll<bool> {
        let mut state = self.lock();
        if state.machine.reply_room(token) == ReplyRoom::Full {
            (state, _) = self.flush(state);
        }
        match state.machine.reply_room(token) {
            ReplyRoom::Room => Poll::Ready(true),
            ReplyRoom::Full => {
                state.await_room(cx);
                Poll::Pending
            }
            ReplyRoom::Gone => Poll::Ready(false),
        }
    }

    /// Queues more of a reply, or the rest of it.
    pub(crate) fn continue_reply(&self, token: ServeToken, encoder: &mut Encoder, last: bool) {
        let mut state = self.lock();
        state.clock = now();
        state.machine.continue_reply(token, encoder, last);
        let _ = self.flush(state);
    }

    /// Gives up a reply that is begun, if it is not whole. Says whether another one may be sent; else the connection is closed.
    pub(crate) fn break_reply(&self, token: ServeToken) -> bool {
        let mut state = self.lock();
        let taken_back = state.machine.break_reply(token);
        if !taken_back {
            self.drain_events(&mut state, None);
            state.wake_driver();
        }
        // Another one may begin now.
        state.wake_room();
        taken_back
    }
}

impl State {
    /// Leaves the waker of whoever waits for room in the queue.
    pub(super) fn await_room(&mut self, cx: &Context<'_>) {
        if !self.room.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.room.push(cx.waker().clone());
        }
    }
}

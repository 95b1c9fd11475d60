//! Replies that are sent before they are complete, passed from their servant to the machine.

use std::task::{Context, Poll};

use giop_codec::cdr::Encoder;
use giop_proto::{ReplyRoom, ServeToken};

use crate::connection::{SharedConnection, State, now};

impl SharedConnection {
    /// Returns the size in bytes from which a reply may be sent before it is complete.
    pub(crate) fn reply_piece(&self) -> usize {
        self.lock().machine.output().reply_piece()
    }

    /// Queues the start of an incomplete reply as soon as the queue has capacity. The body starts at `body`.
    /// `false`: the reply is not needed any more.
    pub(crate) fn poll_begin_reply(
        &self,
        cx: &mut Context<'_>,
        token: ServeToken,
        encoder: &mut Encoder,
        body: usize,
    ) -> Poll<bool> {
        let mut state = self.lock();
        state.clock = now();
        match state.machine.request(token).begin_reply(encoder, body) {
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

    /// Waits for capacity for the next part of a reply. `false`: the reply is not needed any more.
    pub(crate) fn poll_reply_room(&self, cx: &mut Context<'_>, token: ServeToken) -> Poll<bool> {
        let mut state = self.lock();
        if state.machine.output().reply_room(token) == ReplyRoom::Full {
            (state, _) = self.flush(state);
        }
        match state.machine.output().reply_room(token) {
            ReplyRoom::Room => Poll::Ready(true),
            ReplyRoom::Full => {
                state.await_room(cx);
                Poll::Pending
            }
            ReplyRoom::Gone => Poll::Ready(false),
        }
    }

    /// Queues the next part of a reply. `last`: it is the final one.
    pub(crate) fn continue_reply(&self, token: ServeToken, encoder: &mut Encoder, last: bool) {
        let mut state = self.lock();
        state.clock = now();
        state.machine.request(token).continue_reply(encoder, last);
        let _ = self.flush(state);
    }

    /// Abandons a reply that was begun, if it is incomplete. Returns whether another reply may be sent. If
    /// not, the connection is closed.
    pub(crate) fn break_reply(&self, token: ServeToken) -> bool {
        let mut state = self.lock();
        let taken_back = state.machine.request(token).break_reply();
        if !taken_back {
            self.drain_events(&mut state, None);
            state.wake_driver();
        }
        // Another reply may begin now.
        state.wake_room();
        taken_back
    }
}

impl State {
    /// Registers a waker to be woken when the queue has capacity.
    pub(crate) fn await_room(&mut self, cx: &Context<'_>) {
        if !self.capacity_waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.capacity_waiters.push(cx.waker().clone());
        }
    }
}

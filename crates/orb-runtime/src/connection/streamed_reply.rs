//! Replies of which the first parts are sent before the servant has produced the rest.

use std::task::{Context, Poll};

use giop_codec::cdr::Encoder;
use giop_proto::{ReplyRoom, ServeToken};

use crate::connection::{SharedConnection, State, now};

impl SharedConnection {
    /// Returns the size in bytes from which a reply may be sent before it is complete.
    pub(crate) fn reply_piece(&self) -> usize {
        self.lock().machine.output().reply_piece()
    }

    /// Queues the start of an incomplete reply as soon as the queue has capacity. The body begins at the
    /// position `body` of the encoder. Returns `false` if the reply is no longer needed.
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
                state.await_capacity(cx);
                Poll::Pending
            }
            ReplyRoom::Gone => Poll::Ready(false),
        }
    }

    /// Waits until the queue has capacity for the next part of a reply. Returns `false` if the reply is no
    /// longer needed.
    pub(crate) fn poll_reply_room(&self, cx: &mut Context<'_>, token: ServeToken) -> Poll<bool> {
        let mut state = self.lock();
        if state.machine.output().reply_room(token) == ReplyRoom::Full {
            (state, _) = self.flush(state);
        }
        match state.machine.output().reply_room(token) {
            ReplyRoom::Room => Poll::Ready(true),
            ReplyRoom::Full => {
                state.await_capacity(cx);
                Poll::Pending
            }
            ReplyRoom::Gone => Poll::Ready(false),
        }
    }

    /// Queues the next part of a reply. `last` tells whether it is the last part.
    pub(crate) fn continue_reply(&self, token: ServeToken, encoder: &mut Encoder, last: bool) {
        let mut state = self.lock();
        state.clock = now();
        state.machine.request(token).continue_reply(encoder, last);
        let _ = self.flush(state);
    }

    /// Abandons a reply that was begun, if it is incomplete. Returns whether another reply can be sent in its
    /// place. Otherwise the connection is closed.
    pub(crate) fn break_reply(&self, token: ServeToken) -> bool {
        let mut state = self.lock();
        let replaceable = state.machine.request(token).break_reply();
        if !replaceable {
            self.drain_events(&mut state, None);
            state.wake_driver();
        }
        // Other tasks wait to begin their replies.
        state.wake_waiters();
        replaceable
    }
}

impl State {
    /// Registers a waker to be woken when the queue has capacity.
    pub(crate) fn await_capacity(&mut self, cx: &Context<'_>) {
        if !self.capacity_waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.capacity_waiters.push(cx.waker().clone());
        }
    }
}

//! Sends replies in parts, before the servant has produced all of their contents.

use std::task::{Context, Poll};

use giop_codec::cdr::Encoder;
use giop_proto::{ReplyRoom, ServeToken};

use crate::connection::{SharedConnection, State, now};

impl SharedConnection {
    /// Returns the size in bytes that a reply must exceed to be sent before it is complete.
    pub(crate) fn reply_piece_size(&self) -> usize {
        self.lock().machine.output().reply_piece_size()
    }

    /// Queues the start of a reply, whose body begins at offset `body`. Returns `false` if the reply is no
    /// longer needed.
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

    /// Waits for capacity for the next part of a reply. Returns `false` if the reply is no longer needed.
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

    pub(crate) fn continue_reply(&self, token: ServeToken, encoder: &mut Encoder, is_last: bool) {
        let mut state = self.lock();
        state.clock = now();
        state.machine.request(token).continue_reply(encoder, is_last);
        let _ = self.flush(state);
    }

    /// Abandons an incomplete reply. If no other can replace it, closes the connection and returns `false`.
    pub(crate) fn break_reply(&self, token: ServeToken) -> bool {
        let mut state = self.lock();
        let replaceable = state.machine.request(token).break_reply();
        if !replaceable {
            self.drain_events(&mut state, None);
            state.wake_driver();
        }
        // Other tasks may be waiting to begin their replies.
        state.wake_waiters();
        replaceable
    }
}

impl State {
    pub(crate) fn await_capacity(&mut self, cx: &Context<'_>) {
        if !self.capacity_waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.capacity_waiters.push(cx.waker().clone());
        }
    }
}

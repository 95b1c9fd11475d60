//! The payload of a request that is served while it comes.

use std::task::{Context, Poll};

use bytes::Bytes;
use giop_proto::{Chunk, ServeToken};

use super::Link;

impl Link {
    /// Says that somebody will take the payload of that request.
    pub(crate) fn open_stream(&self, token: ServeToken) {
        self.lock().machine.open_stream(token);
    }

    /// The next octets of the payload; `None`: no more come.
    pub(crate) fn poll_chunk(&self, token: ServeToken, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.lock();
        match state.machine.take_chunk(token) {
            Chunk::Octets(octets) => {
                // There is room for the next one.
                state.wake_driver();
                Poll::Ready(Some(octets))
            }
            Chunk::Pending => {
                state.stream = Some(cx.waker().clone());
                Poll::Pending
            }
            Chunk::End | Chunk::Lost => {
                state.wake_driver();
                Poll::Ready(None)
            }
        }
    }

    /// The rest of the payload is not wanted.
    pub(crate) fn abandon_stream(&self, token: ServeToken) {
        let mut state = self.lock();
        state.machine.abandon_stream(token);
        state.wake_driver();
    }
}

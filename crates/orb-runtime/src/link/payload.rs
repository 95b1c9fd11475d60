//! Requests whose last argument is read from a source while it is written.
//!
//! The connection belongs to the call: what its caller's task does not write at once, the driver writes, which also reads the reply. The
//! source is only asked for octets while few of them wait for the socket.

use std::task::{Context, Poll};

use giop_codec::cdr::Encoder;
use giop_proto::calls::CallId;
use giop_proto::{CallError, Sent};

use super::call::Pending;
use super::{Link, State};
use crate::source::{CHUNK, Payload, SourceError};

/// Octets that may wait for the socket when the source is asked for more.
const AHEAD: usize = CHUNK;

/// Octets, and chunks, that are sent before other tasks get their turn.
const BURST: usize = 8 * CHUNK;
const BURST_CHUNKS: usize = 256;

/// How the sending of a payload ended.
#[derive(Debug)]
pub(crate) enum Fed {
    /// All of it is queued.
    Whole,
    /// The outcome of the call was there before.
    Answered,
    /// The source failed when that much of the request was sent. What was sent of it can not be completed.
    Failed(SourceError, Sent),
    /// The connection takes no more, and there is no call that would say why.
    Lost,
}

impl Link {
    /// How many octets the request that is being sent still lacks.
    pub(crate) fn owes(&self) -> u64 {
        self.lock().machine.owes()
    }

    /// Why the connection takes no more.
    #[cold]
    pub(crate) fn lost(&self) -> CallError {
        self.lock().machine.lost()
    }

    /// Queues the start of a oneway; its payload follows.
    pub(crate) fn begin_payload(&self, mut encoder: Box<Encoder>, coming: u64) -> Result<(), CallError> {
        let mut state = self.lock();
        let begun = state.machine.begin_request(None, &mut encoder, coming);
        state.keep_encoder(encoder);
        begun
    }

    /// Queues and writes octets of the payload until all are queued, or until `call` is over.
    ///
    /// The first ones leave together with the start of the request. Cancel safe; but a request that is given up in the middle
    /// leaves a connection that can only be closed.
    pub(crate) fn poll_payload(
        &self,
        cx: &mut Context<'_>,
        call: Option<CallId>,
        payload: &mut Payload,
    ) -> Poll<Fed> {
        let mut sent = 0;
        for _ in 0..BURST_CHUNKS {
            let mut state = self.lock();
            if call.is_some_and(|call| state.machine.is_over(call)) {
                return Poll::Ready(Fed::Answered);
            }
            if state.machine.owes() == 0 {
                let _ = self.flush(state);
                return Poll::Ready(Fed::Whole);
            }
            if let Some(call) = call {
                state.await_by_driver(call, cx);
            }
            if !state.machine.wants_part() {
                // The connection ends: so does the call.
                return if call.is_some() { Poll::Pending } else { Poll::Ready(Fed::Lost) };
            }
            if state.machine.backlog() >= AHEAD {
                (state, _) = self.flush(state);
                if state.machine.backlog() >= AHEAD {
                    state.await_room(cx);
                    return Poll::Pending;
                }
            }
            drop(state);
            match payload.poll_chunk(cx) {
                Poll::Ready(Some(Ok(chunk))) => {
                    sent += chunk.len();
                    self.lock().machine.send_part(chunk);
                }
                // It gives as much as the request announced, or an error.
                Poll::Ready(None) => {}
                Poll::Ready(Some(Err(error))) => {
                    let mut state = self.lock();
                    let sent = state.machine.give_up_request();
                    if sent != Sent::Nothing {
                        self.drain_events(&mut state, None);
                        state.wake_driver();
                    }
                    return Poll::Ready(Fed::Failed(error, sent));
                }
                Poll::Pending => {
                    let _ = self.flush(self.lock());
                    return Poll::Pending;
                }
            }
            if sent >= BURST {
                break;
            }
        }
        let _ = self.flush(self.lock());
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl State {
    /// Leaves the caller's waker with the call, and the reading to the driver.
    pub(super) fn await_by_driver(&mut self, call: CallId, cx: &Context<'_>) {
        let index = call.index();
        if self.callers.len() <= index {
            self.callers.resize(index + 1, None);
        }
        if let Some(slot) = self.callers.get_mut(index)
            && !slot.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            *slot = Some(cx.waker().clone());
        }
        if !self.driver_reads {
            self.driver_reads = true;
            self.wake_driver();
        }
    }
}

impl Pending<'_> {
    /// Queues the start of the request; its payload follows.
    pub(crate) fn begin_payload(&self, mut encoder: Box<Encoder>, coming: u64) -> Result<(), CallError> {
        let mut state = self.link.lock();
        let begun = state.machine.begin_request(Some(self.call), &mut encoder, coming);
        state.keep_encoder(encoder);
        self.arm(state);
        begun
    }

    /// The reply is wanted as octets.
    pub(crate) fn pass_reply(&self) {
        self.link.lock().machine.pass_reply(self.call);
    }

    /// The results are wanted before all of them are there: see [`Connection::stream_reply`](giop_proto::Connection::stream_reply).
    pub(crate) fn stream_reply(&self, nameless: bool) {
        self.link.lock().machine.stream_reply(self.call, nameless);
    }

    /// The call that waits.
    pub(crate) fn call(&self) -> CallId {
        self.call
    }
}

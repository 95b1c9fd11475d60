//! Requests whose last argument is read from a source while the request is written.
//!
//! The call uses an exclusive connection. The driver writes the bytes that the socket did not accept
//! immediately, and reads the reply. The source is polled only while few bytes are queued.

use std::task::{Context, Poll};

use giop_codec::cdr::Encoder;
use giop_proto::calls::CallId;
use giop_proto::{CallError, SentPart};

use crate::connection::call::PendingCall;
use crate::connection::{SharedConnection, State};
use crate::stream::{MAX_CHUNK_BYTES, Payload, SourceError};

/// The source is not polled while at least this number of bytes are queued.
const MAX_QUEUED_BYTES: usize = MAX_CHUNK_BYTES;
/// The number of bytes after which the sending task yields to other tasks.
const MAX_BURST_BYTES: usize = 8 * MAX_CHUNK_BYTES;
const MAX_BURST_CHUNKS: usize = 256;

#[derive(Debug)]
pub(crate) enum PayloadOutcome {
    Complete,
    CallEnded,
    /// The source failed after this part of the request was sent. The request cannot be completed.
    Failed(SourceError, SentPart),
    /// The connection has ended, and the request has no call that could report the reason.
    ConnectionLost,
}

impl SharedConnection {
    /// Returns the number of bytes of the current request that are not queued yet.
    pub(crate) fn unsent_payload_bytes(&self) -> u64 {
        self.lock().machine.output().missing_request_bytes()
    }

    #[cold]
    pub(crate) fn loss_error(&self) -> CallError {
        self.lock().machine.lifecycle().partly_sent_error()
    }

    pub(crate) fn begin_payload(
        &self,
        mut encoder: Box<Encoder>,
        payload_size: u64,
    ) -> Result<(), CallError> {
        let mut state = self.lock();
        let begun = state.machine.begin_request(None, &mut encoder, payload_size);
        state.keep_encoder(encoder);
        begun
    }

    /// Queues and writes the payload, until it is queued completely or `call` has ended. Writes the first
    /// bytes together with the start of the request. If the request is abandoned before it is complete, the
    /// connection must be closed.
    pub(crate) fn poll_payload(
        &self,
        cx: &mut Context<'_>,
        call: Option<CallId>,
        payload: &mut Payload,
    ) -> Poll<PayloadOutcome> {
        let mut sent = 0;
        for _ in 0..MAX_BURST_CHUNKS {
            let mut state = self.lock();
            if call.is_some_and(|call| state.machine.call(call).has_ended()) {
                return Poll::Ready(PayloadOutcome::CallEnded);
            }
            if state.machine.output().missing_request_bytes() == 0 {
                let _ = self.flush(state);
                return Poll::Ready(PayloadOutcome::Complete);
            }
            if let Some(call) = call {
                state.await_by_driver(call, cx);
            }
            if !state.machine.unfinished_request().wants_part() {
                // The connection is ending, which also ends the call.
                return if call.is_some() {
                    Poll::Pending
                } else {
                    Poll::Ready(PayloadOutcome::ConnectionLost)
                };
            }
            if state.machine.output().backlog() >= MAX_QUEUED_BYTES {
                (state, _) = self.flush(state);
                if state.machine.output().backlog() >= MAX_QUEUED_BYTES {
                    state.await_capacity(cx);
                    return Poll::Pending;
                }
            }
            drop(state);
            match payload.poll_chunk(cx) {
                Poll::Ready(Some(Ok(chunk))) => {
                    sent += chunk.len();
                    self.lock().machine.unfinished_request().send_part(chunk);
                }
                // The payload is complete. If it has fewer bytes than announced, it yields an error.
                Poll::Ready(None) => {}
                Poll::Ready(Some(Err(error))) => {
                    let mut state = self.lock();
                    let sent = state.machine.unfinished_request().give_up();
                    if sent != SentPart::Nothing {
                        self.drain_events(&mut state, None);
                        state.wake_driver();
                    }
                    return Poll::Ready(PayloadOutcome::Failed(error, sent));
                }
                Poll::Pending => {
                    let _ = self.flush(self.lock());
                    return Poll::Pending;
                }
            }
            if sent >= MAX_BURST_BYTES {
                break;
            }
        }
        let _ = self.flush(self.lock());
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl State {
    /// Registers the caller's waker with the call, and lets the driver read the socket.
    pub(crate) fn await_by_driver(&mut self, call: CallId, cx: &Context<'_>) {
        self.register_caller(call, cx);
        if !self.roles.driver_reads {
            self.roles.driver_reads = true;
            self.wake_driver();
        }
    }
}

impl PendingCall<'_> {
    pub(crate) fn begin_payload(
        &self,
        mut encoder: Box<Encoder>,
        payload_size: u64,
    ) -> Result<(), CallError> {
        let mut state = self.link.lock();
        let begun = state.machine.begin_request(Some(self.call), &mut encoder, payload_size);
        state.keep_encoder(encoder);
        self.arm(state);
        begun
    }

    /// Declares that the reply will be forwarded in encoded form.
    pub(crate) fn forward_reply_encoded(&self) {
        self.link.lock().machine.call(self.call).forward_reply_encoded();
    }

    /// See [`PendingCall::stream_reply`](giop_proto::PendingCall::stream_reply).
    pub(crate) fn stream_reply(&self, unaligned_fragments: bool) {
        self.link.lock().machine.call(self.call).stream_reply(unaligned_fragments);
    }

    pub(crate) fn call(&self) -> CallId {
        self.call
    }
}

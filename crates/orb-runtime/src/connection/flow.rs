//! Flows: requests and replies with a long sequence of structs, which are written while they are encoded.
//!
//! A part of the sequence is encoded, queued and written, and then its memory is reused, so that the kernel
//! copies from the second-level cache. The lock is held only for queueing. Messages of other tasks are sent
//! after the flow. If the socket blocks or another task is writing, the rest is encoded at once, and the
//! driver writes it.

use std::sync::Arc;

use giop_codec::EncodeError;
use giop_codec::cdr::{Encoder, Outlet};
use giop_codec::giop::{MessageHeader, finish_message};
use giop_proto::calls::CallId;
use giop_proto::{ReplyFlow, ServeToken};

use crate::connection::call::OnewayError;
use crate::connection::{SharedConnection, now};
use crate::transport::Progress;

/// The arguments of a request whose header is already encoded.
pub(crate) struct Flow<'a> {
    pub(crate) arguments: &'a (dyn Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync + 'a),
    pub(crate) size: u64,
}

/// Closes the connection on drop if the message is incomplete.
struct FlowGuard<'a> {
    link: &'a SharedConnection,
    message: u64,
}

impl SharedConnection {
    /// Returns whether messages may be written while they are encoded.
    #[inline]
    pub(crate) fn flows(&self) -> bool {
        // With an io_uring, writing begins only later, and the wire log needs complete messages.
        self.socket.ring().is_none() && !crate::trace::wire_enabled()
    }

    /// Queues a request and writes it while it is encoded. `call` waits for the reply, if there is one.
    pub(crate) fn send_flow(
        self: &Arc<Self>,
        call: Option<CallId>,
        mut encoder: Box<Encoder>,
        flow: &Flow<'_>,
    ) -> Result<(), OnewayError> {
        let (order, version, sets) = (encoder.order(), encoder.version(), encoder.code_sets());
        let offset = encoder.position();
        let mut state = self.lock();
        let message = match state.machine.begin_flow(call, &mut encoder, flow.size) {
            Ok(Some(message)) => message,
            Ok(None) => {
                // Another flow is active.
                drop(state);
                return self.send_complete(call, encoder, flow);
            }
            Err(error) => {
                state.keep_encoder(encoder);
                return Err(OnewayError::Closed(error));
            }
        };
        drop(state);
        let guard = FlowGuard { link: self, message };
        encoder.stream_to(order, version, sets, offset, Arc::<Self>::clone(self), message);
        let encoded = (flow.arguments)(&mut encoder);
        if encoded.is_ok() {
            self.take(message, &mut encoder);
        }
        encoder.reset(order, version);
        self.lock().keep_encoder(encoder);
        drop(guard);
        encoded.map_err(OnewayError::Encode)
    }

    /// Queues a reply and writes it while `results` encodes its last `results_size` bytes after those in the
    /// encoder. Returns `false` with an unchanged encoder if the reply must be encoded completely first.
    pub(crate) fn send_reply_flow(
        self: &Arc<Self>,
        token: ServeToken,
        encoder: &mut Encoder,
        results_size: u64,
        results: &dyn Fn(&mut Encoder) -> Result<(), EncodeError>,
    ) -> bool {
        let (order, version, sets) = (encoder.order(), encoder.version(), encoder.code_sets());
        let offset = encoder.position();
        let mut state = self.lock();
        if state.machine.output().is_crowded() {
            // Memory may be short, and only complete replies are checked for that.
            return false;
        }
        let flow = state.machine.request(token).begin_flow(encoder, results_size);
        drop(state);
        let message = match flow {
            ReplyFlow::Begun(message) => message,
            ReplyFlow::Busy => return false,
            ReplyFlow::Dropped => return true,
        };
        let guard = FlowGuard { link: self, message };
        encoder.stream_to(order, version, sets, offset, Arc::<Self>::clone(self), message);
        match results(encoder) {
            Ok(()) => {
                self.take(message, encoder);
            }
            // The results were encoded before to measure them, so they have changed since. The part of the
            // reply that is already queued cannot be withdrawn.
            Err(error) => {
                tracing::warn!(
                    target: "zorb",
                    %error,
                    "the results of a call changed while they were encoded; the connection is closed"
                )
            }
        }
        encoder.reset(order, version);
        drop(guard);
        true
    }

    /// Encodes the rest of a request, then queues and writes the complete request.
    #[cold]
    fn send_complete(
        &self,
        call: Option<CallId>,
        mut encoder: Box<Encoder>,
        flow: &Flow<'_>,
    ) -> Result<(), OnewayError> {
        let encoded = (flow.arguments)(&mut encoder)
            .and_then(|()| finish_message(&mut encoder, MessageHeader::SIZE_AT).map(drop));
        let mut state = self.lock();
        if let Err(error) = encoded {
            state.keep_encoder(encoder);
            return Err(OnewayError::Encode(error));
        }
        let sent = match call {
            Some(call) => {
                state.machine.call(call).send_request(&mut encoder);
                Ok(())
            }
            None => state.machine.send_oneway(&mut encoder),
        };
        state.keep_encoder(encoder);
        state.clock = now();
        let _ = self.flush(state);
        sent.map_err(OnewayError::Closed)
    }
}

impl Outlet for SharedConnection {
    fn take(&self, message: u64, encoder: &mut Encoder) -> bool {
        let mut state = self.lock();
        state.clock = now();
        state.machine.flow(message).send(encoder);
        let (state, progress) = self.flush(state);
        drop(state);
        progress == Progress::Done
    }
}

impl Drop for FlowGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.link.lock();
        state.machine.flow(self.message).end();
        if state.machine.lifecycle().is_closed() {
            if self.link.client_only {
                self.link.drain_events(&mut state, None);
            }
            state.wake_driver();
        }
    }
}

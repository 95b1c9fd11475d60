//! Flows: requests and replies with a long sequence of structs that are written while they are encoded.
//!
//! A part of the sequence is encoded, queued and written, and then its memory is reused for the next part.
//! Therefore, the kernel copies from the second-level cache. The lock is held only while a part is queued.
//! Messages of other tasks are sent after the flow. If the socket blocks or another task is writing, the
//! whole rest is encoded and queued, and the driver writes it.

use std::sync::Arc;

use giop_codec::EncodeError;
use giop_codec::cdr::{Encoder, Outlet};
use giop_codec::giop::{MessageHeader, finish_message};
use giop_proto::calls::CallId;
use giop_proto::{IncrementalReply, ServeToken};

use crate::connection::call::OnewayError;
use crate::connection::{SharedConnection, now};
use crate::transport::Progress;

/// The arguments of a request whose header is already encoded.
pub(crate) struct Flow<'a> {
    pub(crate) arguments: &'a (dyn Fn(&mut Encoder) -> Result<(), EncodeError> + Send + Sync + 'a),
    pub(crate) size: u64,
}

/// Ends a flow on drop. If its message is incomplete, this closes the connection.
struct FlowGuard<'a> {
    link: &'a SharedConnection,
    message: u64,
}

impl SharedConnection {
    /// Returns whether messages may be written while they are encoded.
    #[inline]
    pub(crate) fn supports_flows(&self) -> bool {
        // An io_uring starts to write only later, and the wire log requires complete messages.
        self.socket.ring().is_none() && !crate::trace::is_wire_log_enabled()
    }

    /// Queues a request and writes it while it is encoded. `call` is the call that awaits the reply.
    pub(crate) fn send_flow(
        self: &Arc<Self>,
        call: Option<CallId>,
        mut encoder: Box<Encoder>,
        flow: &Flow<'_>,
    ) -> Result<(), OnewayError> {
        let (order, version, sets) = (encoder.order(), encoder.version(), encoder.code_sets());
        let offset = encoder.position();
        let mut state = self.lock();
        let message = match state.machine.begin_incremental(call, &mut encoder, flow.size) {
            Ok(Some(message)) => message,
            Ok(None) => {
                // Another flow is active, so this message must wait in the queue.
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

    /// Queues a reply and writes it while it is encoded. The encoder contains its start, and `results`
    /// encodes the remaining `results_size` bytes. If the reply must first be encoded completely, returns
    /// `false` and does not change the encoder.
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
        if state.machine.output().is_pool_half_full_of_replies() {
            // There may be too little memory, which is checked only for complete replies.
            return false;
        }
        let flow = state.machine.request(token).begin_incremental(encoder, results_size);
        drop(state);
        let message = match flow {
            IncrementalReply::Begun(message) => message,
            IncrementalReply::Busy => return false,
            IncrementalReply::Dropped => return true,
        };
        let guard = FlowGuard { link: self, message };
        encoder.stream_to(order, version, sets, offset, Arc::<Self>::clone(self), message);
        match results(encoder) {
            Ok(()) => {
                self.take(message, encoder);
            }
            // The results have been encoded before without an error, to measure them, so they have changed.
            // The part of the reply that is already queued cannot be withdrawn.
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
        state.machine.incremental(message).send(encoder);
        let (state, progress) = self.flush(state);
        drop(state);
        progress == Progress::Done
    }
}

impl Drop for FlowGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.link.lock();
        state.machine.incremental(self.message).end();
        if state.machine.lifecycle().is_closed() {
            if self.link.callers_may_read {
                self.link.drain_events(&mut state, None);
            }
            state.wake_driver();
        }
    }
}

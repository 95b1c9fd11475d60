//! Requests and replies that are sent while they are encoded.
//!
//! Unlike a payload that is read from a source, the whole message is supplied without waiting. Messages that
//! are queued meanwhile follow it.

use giop_codec::cdr::Encoder;

use super::serving::ServedRequest;
use super::{Connection, Output};
use crate::calls::{CallId, RequestSpan};
use crate::error::{CallError, CloseReason};

/// The result of starting a reply that is sent while it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFlow {
    /// The start is queued. The rest is supplied by [`Connection::flow`] of this number.
    Begun(u64),
    /// Another message is sent in this way, or this one would be fragmented. The encoder is unchanged.
    Busy,
    /// The peer cancelled the request, or the connection is closed: nothing is sent. The encoder is empty.
    Dropped,
}

/// A message that is sent while it is encoded: see [`Connection::flow`].
#[derive(Debug)]
pub struct OutgoingFlow<'a> {
    connection: &'a mut Connection,
    number: u64,
}

impl Connection {
    /// Returns the message with this number, started here or by [`ServedRequest::begin_flow`].
    #[inline]
    pub fn flow(&mut self, number: u64) -> OutgoingFlow<'_> {
        OutgoingFlow { connection: self, number }
    }

    /// Queues the start of a request whose header announces `missing` more bytes. They follow by
    /// [`OutgoingFlow::send`] of the returned number; then [`OutgoingFlow::end`] must be called. Messages
    /// that are queued meanwhile follow the request. `call` is the call that awaits the reply, or `None` for
    /// a oneway. The encoder is left empty.
    ///
    /// Returns `None` if such a message is in progress, or this one would be fragmented. The encoder is kept.
    ///
    /// # Errors
    /// See [`begin_request`](Self::begin_request).
    pub fn begin_flow(
        &mut self,
        call: Option<CallId>,
        message: &mut Encoder,
        missing: u64,
    ) -> Result<Option<u64>, CallError> {
        if let Err(error) = self.check_begin(call) {
            message.reset(message.order(), message.version());
            return Err(error);
        }
        if !self.output.may_begin_flow(message, missing) {
            return Ok(None);
        }
        let span = self.output.queue(message, false, self.clock.now);
        match call {
            Some(call) => self.calls.record_span(call, RequestSpan { end: span.end + missing, ..span }),
            None => self.oneways.record_queued(self.output.tx.queued() + missing),
        }
        Ok(self.output.tx.leave_gap(missing))
    }
}

impl ServedRequest<'_> {
    /// Queues the start of a reply, as for requests. In the end [`finish`](Self::finish) must be called.
    pub fn begin_flow(&mut self, message: &mut Encoder, missing: u64) -> ReplyFlow {
        if !self.connection.output.may_begin_flow(message, missing) {
            return ReplyFlow::Busy;
        }
        if !self.connection.serving.acknowledge(self.token) || !self.connection.lifecycle.may_queue() {
            message.reset(message.order(), message.version());
            return ReplyFlow::Dropped;
        }
        self.connection.output.queue_answer(message, self.connection.clock.now);
        self.connection.output.reply_backlog.add(usize::try_from(missing).unwrap_or(usize::MAX));
        let gap = self.connection.output.tx.leave_gap(missing);
        self.connection.output.report(self.connection.clock.now);
        match gap {
            Some(end) => ReplyFlow::Begun(end),
            None => ReplyFlow::Dropped, // unreachable: there is no other gap
        }
    }
}

impl Output {
    fn may_begin_flow(&self, message: &Encoder, missing: u64) -> bool {
        let size = usize::try_from(missing).unwrap_or(usize::MAX).saturating_add(message.len());
        self.partial_request.is_none()
            && !self.tx.is_gapped()
            && !self.fragment_queue.cuts(message.version(), size)
    }
}

impl OutgoingFlow<'_> {
    /// Queues the next bytes of the message, and leaves the encoder empty. If there are more bytes than
    /// announced, the message is invalid and the connection is closed.
    pub fn send(&mut self, bytes: &mut Encoder) {
        self.connection.output.stats.copied_out += bytes.copied() as u64;
        bytes.drain_into(&mut self.connection.output.pieces);
        let mut fits = true;
        for piece in self.connection.output.pieces.drain(..) {
            fits &= self.connection.output.tx.fill(self.number, piece);
        }
        if fits {
            self.connection.output.timer.start(self.connection.clock.now);
        } else if self.connection.lifecycle.write_end.is_none() {
            self.connection.abort(CloseReason::Local);
        }
    }

    /// Ends the message. If bytes are missing, the connection is closed, because nothing can follow them.
    pub fn end(self) {
        if self.connection.output.tx.has_gap(self.number) {
            self.connection.abort(CloseReason::Local);
        }
    }
}

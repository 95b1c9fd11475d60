//! Incremental messages: requests and replies that are sent while they are encoded.
//!
//! The encoder must supply them without waiting. Messages that are queued meanwhile are sent later.

use giop_codec::cdr::Encoder;

use super::serving::ServedRequest;
use super::{Connection, Output};
use crate::calls::{CallId, RequestSpan};
use crate::error::{CallError, CloseReason};

/// The result of [`ServedRequest::begin_incremental`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncrementalReply {
    /// The start is queued. The rest must be supplied by [`Connection::incremental`] with this number.
    Begun(u64),
    /// Another message is being sent at present, or this one would be fragmented. The encoder is unchanged.
    Busy,
    /// The request was cancelled or is a oneway, or the connection is closed. The encoder is empty.
    Dropped,
}

/// A message that is sent while it is encoded: see [`Connection::begin_incremental`].
#[derive(Debug)]
pub struct IncrementalMessage<'a> {
    connection: &'a mut Connection,
    number: u64,
}

impl Connection {
    /// Returns the message with this number, returned by one of the methods `begin_incremental`.
    #[inline]
    pub fn incremental(&mut self, number: u64) -> IncrementalMessage<'_> {
        IncrementalMessage { connection: self, number }
    }

    /// Queues the start of a request whose header announces `missing` more bytes. `call` is the call that
    /// awaits the reply, or `None` for a oneway. The encoder is left empty.
    ///
    /// Returns a number for [`incremental`](Self::incremental), by which the missing bytes must be
    /// [sent](IncrementalMessage::send) and the message [ended](IncrementalMessage::end). Messages that are
    /// queued in the meantime follow it.
    ///
    /// Returns `None` if another message is being sent in parts, or if this one would be fragmented.
    ///
    /// # Errors
    /// See [`begin_request`](Self::begin_request).
    pub fn begin_incremental(
        &mut self,
        call: Option<CallId>,
        message: &mut Encoder,
        missing: u64,
    ) -> Result<Option<u64>, CallError> {
        if let Err(error) = self.check_begin(call) {
            message.reset(message.order(), message.version());
            return Err(error);
        }
        if !self.output.may_begin_incremental(message, missing) {
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
    /// Queues the start of a reply whose header announces `missing` more bytes, which must be supplied as for
    /// [`Connection::begin_incremental`]. After that, [`finish`](Self::finish) must be called.
    pub fn begin_incremental(&mut self, message: &mut Encoder, missing: u64) -> IncrementalReply {
        if !self.connection.output.may_begin_incremental(message, missing) {
            return IncrementalReply::Busy;
        }
        if !self.connection.serving.acknowledge(self.token) || !self.connection.lifecycle.may_queue() {
            message.reset(message.order(), message.version());
            return IncrementalReply::Dropped;
        }
        self.connection.output.queue_answer(message, self.connection.clock.now);
        self.connection.output.reply_backlog.add(usize::try_from(missing).unwrap_or(usize::MAX));
        let gap = self.connection.output.tx.leave_gap(missing);
        self.connection.output.report(self.connection.clock.now);
        match gap {
            Some(end) => IncrementalReply::Begun(end),
            None => IncrementalReply::Dropped, // never happens, because there is no other gap
        }
    }
}

impl Output {
    fn may_begin_incremental(&self, message: &Encoder, missing: u64) -> bool {
        let size = usize::try_from(missing).unwrap_or(usize::MAX).saturating_add(message.len());
        self.partial_request.is_none()
            && !self.tx.is_gapped()
            && !self.fragment_queue.is_fragmented(message.version(), size)
    }
}

impl IncrementalMessage<'_> {
    /// Queues the next bytes of the message, and leaves the encoder empty. If there are more bytes than
    /// announced, the message is invalid and the connection is closed.
    pub fn send(&mut self, bytes: &mut Encoder) {
        self.connection.output.stats.bytes_copied_out += bytes.copied() as u64;
        bytes.drain_into(&mut self.connection.output.outgoing_chunks);
        let mut fits = true;
        for piece in self.connection.output.outgoing_chunks.drain(..) {
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

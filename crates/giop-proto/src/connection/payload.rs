//! Requests whose sending begins before their last bytes are available.

use std::time::Instant;

use bytes::Bytes;
use giop_codec::cdr::Encoder;

use super::fragmenting::RequestPieces;
use super::{Connection, Output};
use crate::calls::{CallId, RequestSpan};
use crate::error::{CallError, CloseReason, SentPart};

/// The request that is partly queued. Until it is complete, nothing else may be queued.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartialRequest {
    call: Option<CallId>,
    pub(super) start: u64,
    missing: u64,
    /// `None` if the request is not fragmented.
    pieces: Option<RequestPieces>,
}

/// Access to the request that is partly queued, if there is one: see [`Connection::unfinished_request`].
#[derive(Debug)]
pub struct UnfinishedRequest<'a> {
    connection: &'a mut Connection,
}

impl Connection {
    /// Returns the incomplete request that [`begin_request`](Self::begin_request) started.
    pub fn unfinished_request(&mut self) -> UnfinishedRequest<'_> {
        UnfinishedRequest { connection: self }
    }

    /// Queues the start of a request whose header announces `missing` more bytes. `call` is the call that
    /// awaits the reply, or `None` for a oneway. The encoder is left empty.
    ///
    /// The missing bytes must be supplied by [`UnfinishedRequest::send_part`], before anything else is sent.
    ///
    /// # Errors
    /// The message is dropped if the call is no longer pending; its outcome is then available. It is also
    /// dropped if there is no call, and the connection no longer [accepts calls](Self::accepts_calls).
    pub fn begin_request(
        &mut self,
        call: Option<CallId>,
        message: &mut Encoder,
        missing: u64,
    ) -> Result<(), CallError> {
        if let Err(error) = self.check_begin(call) {
            message.reset(message.order(), message.version());
            return Err(error);
        }
        let mut pieces = self.output.begin_pieces(message, missing);
        let span = match &mut pieces {
            Some(pieces) => self.output.queue_start(message, pieces, self.clock.now),
            None => self.output.queue(message, false, self.clock.now),
        };
        let missing_with_headers = missing + pieces.map_or(0, |pieces| pieces.later_headers_len());
        match call {
            Some(call) => {
                self.calls.record_span(call, RequestSpan { end: span.end + missing_with_headers, ..span })
            }
            None => self.oneways.record_queued(self.output.tx.queued() + missing_with_headers),
        }
        let partial = PartialRequest { call, start: span.start, missing, pieces };
        self.output.partial_request = (missing > 0).then_some(partial);
        Ok(())
    }

    /// Checks whether a request may be started for this call, or for a oneway.
    pub(super) fn check_begin(&self, call: Option<CallId>) -> Result<(), CallError> {
        match call {
            Some(call) if self.calls.is_pending(call) => Ok(()),
            Some(_) => Err(self.lifecycle.closed_error()),
            None => self.check_open(),
        }
    }
}

impl UnfinishedRequest<'_> {
    /// Returns whether the request is incomplete, and the connection can still send it.
    pub fn wants_part(&self) -> bool {
        self.connection.output.partial_request.is_some() && self.connection.lifecycle.may_queue()
    }

    /// Queues the next bytes of the request. If they are more than 4 KiB, they are not copied. Bytes beyond
    /// the announced size are dropped. If [`wants_part`](Self::wants_part) is false, all bytes are dropped.
    pub fn send_part(&mut self, mut bytes: Bytes) {
        if !self.wants_part() {
            return;
        }
        let Some(partial) = &mut self.connection.output.partial_request else { return };
        bytes.truncate(usize::try_from(partial.missing).unwrap_or(usize::MAX));
        partial.missing -= bytes.len() as u64;
        match &mut partial.pieces {
            Some(pieces) => pieces.push(&mut self.connection.output.tx, bytes),
            None => self.connection.output.tx.push_chunk(bytes),
        }
        if partial.missing == 0 {
            self.connection.output.partial_request = None;
        }
        self.connection.output.timer.start(self.connection.clock.now);
        if !self.connection.output.fragment_queue.is_empty() {
            self.connection.queue_pieces();
        }
        if !self.connection.lifecycle.hands_out_requests() {
            self.connection.continue_closing();
        }
    }

    /// Gives up the incomplete request, and returns the part of it that was sent. If any of it was sent, the
    /// connection is closed, because nothing can follow an incomplete message.
    pub fn give_up(&mut self) -> SentPart {
        let Some(PartialRequest { call, start, .. }) = self.connection.output.partial_request else {
            return SentPart::Whole;
        };
        let sent = if self.connection.output.tx.lent_or_written() <= start {
            SentPart::Nothing
        } else {
            SentPart::Partly
        };
        if sent == SentPart::Nothing
            && self.connection.lifecycle.may_queue()
            && self.connection.output.unqueue(start, self.connection.output.tx.queued())
        {
            self.connection.output.partial_request = None;
            match call {
                Some(call) => self.connection.calls.record_span(call, RequestSpan::UNQUEUED),
                None => self.connection.oneways.record_removal(start),
            }
            if !self.connection.output.fragment_queue.is_empty() {
                self.connection.queue_pieces();
            }
            self.connection.continue_closing();
        } else {
            self.connection.abort(CloseReason::Local);
        }
        sent
    }
}

impl Output {
    #[cold]
    fn queue_start(
        &mut self,
        message: &mut Encoder,
        pieces: &mut RequestPieces,
        now: Instant,
    ) -> RequestSpan {
        let start = self.tx.queued();
        self.stats.bytes_copied_out += message.copied() as u64;
        self.version = message.version();
        message.drain_into(&mut self.outgoing_chunks);
        message.reset(message.order(), message.version());
        for bytes in self.outgoing_chunks.drain(..) {
            pieces.push(&mut self.tx, bytes);
        }
        self.count_message(now);
        RequestSpan { start, end: self.tx.queued(), is_locate: false, is_interleaved: false }
    }

    /// Returns the number of missing bytes of the incomplete request; 0 if there is none.
    pub fn missing_request_bytes(&self) -> u64 {
        self.partial_request.map_or(0, |partial| partial.missing)
    }
}

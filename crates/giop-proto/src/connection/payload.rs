//! Requests that are partly sent before their last bytes are available.

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
    /// The position of its first byte in the outgoing stream.
    start: u64,
    /// Bytes that are still to be queued.
    left: u64,
    /// `None` if it is sent whole.
    pieces: Option<RequestPieces>,
}

/// The request that is partly queued, if there is one, by [`Connection::unfinished_request`].
#[derive(Debug)]
pub struct UnfinishedRequest<'a> {
    connection: &'a mut Connection,
}

impl Connection {
    /// Returns the request that was started last by [`begin_request`](Self::begin_request).
    pub fn unfinished_request(&mut self) -> UnfinishedRequest<'_> {
        UnfinishedRequest { connection: self }
    }

    /// Queues the start of a request whose header announces `coming` more bytes. They follow by
    /// [`UnfinishedRequest::send_part`], and nothing else may be sent before the last of them. `call` is the
    /// call that awaits the reply, or `None` for a oneway. The encoder is left empty.
    ///
    /// # Errors
    /// The call is no longer pending, and its outcome is available; or there is no call, and the connection
    /// is closed or closing. The message is dropped.
    pub fn begin_request(
        &mut self,
        call: Option<CallId>,
        message: &mut Encoder,
        coming: u64,
    ) -> Result<(), CallError> {
        if let Err(error) = self.check_begin(call) {
            message.reset(message.order(), message.version());
            return Err(error);
        }
        let mut pieces = self.output.begin_pieces(message, coming);
        let place = match &mut pieces {
            Some(pieces) => self.output.queue_start(message, pieces, self.clock.now),
            None => self.output.queue(message, false, self.clock.now),
        };
        let coming_with_headers = coming + pieces.map_or(0, |pieces| pieces.headers());
        match call {
            Some(call) => {
                self.calls.queued(call, RequestSpan { end: place.end + coming_with_headers, ..place })
            }
            None => self.oneways.queued(self.output.tx.queued() + coming_with_headers),
        }
        let unfinished = PartialRequest { call, start: place.start, left: coming, pieces };
        self.output.partial_request = (coming > 0).then_some(unfinished);
        Ok(())
    }

    /// Checks whether the start of a request may be queued. The caller of a call that has ended has already
    /// received the error that nothing of it was sent.
    pub(super) fn check_begin(&self, call: Option<CallId>) -> Result<(), CallError> {
        match call {
            Some(call) if self.calls.is_waiting(call) => Ok(()),
            Some(_) => Err(self.lifecycle.closed_error()),
            None => self.check_open(),
        }
    }
}

impl UnfinishedRequest<'_> {
    /// Returns whether the next bytes of the last started request can be queued. `false` if it is complete,
    /// or if the connection accepts no more.
    #[must_use]
    pub fn wants_part(&self) -> bool {
        self.connection.output.partial_request.is_some() && self.connection.lifecycle.may_queue()
    }

    /// Queues the next bytes of the last started request. They are not copied if there are more than 4 KiB.
    /// Bytes beyond the announced size are dropped, and so are all bytes when no part is
    /// [expected](Self::wants_part).
    pub fn send_part(&mut self, mut octets: Bytes) {
        if !self.wants_part() {
            return;
        }
        let Some(unfinished) = &mut self.connection.output.partial_request else { return };
        octets.truncate(usize::try_from(unfinished.left).unwrap_or(usize::MAX));
        unfinished.left -= octets.len() as u64;
        match &mut unfinished.pieces {
            Some(pieces) => pieces.push(&mut self.connection.output.tx, octets),
            None => self.connection.output.tx.push_chunk(octets),
        }
        if unfinished.left == 0 {
            self.connection.output.partial_request = None;
        }
        self.connection.output.timer.queued(self.connection.clock.now);
        if !self.connection.output.fragment_queue.is_empty() {
            self.connection.feed();
        }
        if !self.connection.lifecycle.takes_requests() {
            self.connection.proceed_closing();
        }
    }

    /// Gives up the incomplete request. It is removed from the queue if nothing of it was sent. Otherwise the
    /// connection is closed, because nothing can follow an incomplete message. Returns how much of it was
    /// sent.
    pub fn give_up(&mut self) -> SentPart {
        let Some(PartialRequest { call, start, .. }) = self.connection.output.partial_request else {
            return SentPart::Whole;
        };
        let sent =
            if self.connection.output.tx.reached() <= start { SentPart::Nothing } else { SentPart::Partly };
        if sent == SentPart::Nothing
            && self.connection.lifecycle.may_queue()
            && self.connection.output.unqueue(start, self.connection.output.tx.queued())
        {
            self.connection.output.partial_request = None;
            match call {
                Some(call) => self.connection.calls.queued(call, RequestSpan::NOWHERE),
                None => self.connection.oneways.took_back(start),
            }
            if !self.connection.output.fragment_queue.is_empty() {
                self.connection.feed();
            }
            self.connection.proceed_closing();
        } else {
            self.connection.abort(CloseReason::Local);
        }
        sent
    }
}

impl Output {
    /// Queues the start of a request that is sent in pieces.
    #[cold]
    fn queue_start(
        &mut self,
        message: &mut Encoder,
        pieces: &mut RequestPieces,
        now: Instant,
    ) -> RequestSpan {
        let start = self.tx.queued();
        self.copied += message.copied() as u64;
        self.version = message.version();
        message.drain_into(&mut self.pieces);
        message.reset(message.order(), message.version());
        for bytes in self.pieces.drain(..) {
            pieces.push(&mut self.tx, bytes);
        }
        self.count_message(now);
        RequestSpan { start, end: self.tx.queued(), locate: false, apart: false }
    }

    /// Returns whether the request at that position is the incomplete one.
    pub(super) fn is_unfinished(&self, place: RequestSpan) -> bool {
        self.partial_request.is_some_and(|unfinished| unfinished.start == place.start)
    }

    /// Returns the number of bytes that the last started request still lacks.
    #[must_use]
    pub fn owes(&self) -> u64 {
        self.partial_request.map_or(0, |unfinished| unfinished.left)
    }
}

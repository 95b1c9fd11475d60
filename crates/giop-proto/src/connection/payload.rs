//! Requests whose last octets are not there yet when the first ones leave.

use bytes::Bytes;
use giop_codec::cdr::Encoder;

use super::Connection;
use super::fragmenting::Pieces;
use crate::calls::{CallId, Place};
use crate::error::{CallError, CloseReason, Sent};

/// The request of which a part is still to be queued. Until then nothing else may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unfinished {
    call: Option<CallId>,
    /// Where its first octet stands in the outgoing stream.
    start: u64,
    /// Octets that are still to be queued.
    left: u64,
    /// `None`: it leaves whole.
    pieces: Option<Pieces>,
}

impl Connection {
    /// Queues the start of a request, whose header announces `coming` octets more: they follow by
    /// [`send_part`](Self::send_part), and nothing else may be sent before the last of them. `call`: the one that waits for the
    /// reply; `None`: a oneway. The encoder is left empty.
    ///
    /// # Errors
    /// The call waits no more, and its outcome is there; or there is none, and the connection is closed or closing. The message is
    /// dropped.
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
        let mut pieces = self.begin_pieces(message, coming);
        let place = match &mut pieces {
            Some(pieces) => self.queue_start(message, pieces),
            None => self.queue(message, false),
        };
        let coming_with_headers = coming + pieces.map_or(0, |pieces| pieces.headers());
        match call {
            Some(call) => self.calls.queued(call, Place { end: place.end + coming_with_headers, ..place }),
            None => self.queued_oneway(coming_with_headers),
        }
        let unfinished = Unfinished { call, start: place.start, left: coming, pieces };
        self.unfinished = (coming > 0).then_some(unfinished);
        Ok(())
    }

    /// Queues the start of a request that leaves in pieces.
    #[cold]
    fn queue_start(&mut self, message: &mut Encoder, pieces: &mut Pieces) -> Place {
        let start = self.tx.queued();
        self.stats.copied_out += message.copied() as u64;
        self.version = message.version();
        message.drain_into(&mut self.pieces);
        message.reset(message.order(), message.version());
        for bytes in self.pieces.drain(..) {
            pieces.push(&mut self.tx, bytes);
        }
        self.queued();
        Place { start, end: self.tx.queued(), locate: false, apart: false }
    }

    /// Whether the start of a request may be queued: a call that is over has told its caller that nothing of it was sent.
    pub(super) fn check_begin(&self, call: Option<CallId>) -> Result<(), CallError> {
        match call {
            Some(call) if self.calls.is_waiting(call) => Ok(()),
            Some(_) => Err(self.closed_error()),
            None => self.check_open(),
        }
    }

    /// Whether the next octets of the request begun last can be queued. `false`: it has all of them, or the connection takes no
    /// more.
    #[must_use]
    pub fn wants_part(&self) -> bool {
        self.unfinished.is_some() && self.is_serving_phase()
    }

    /// How many octets the request begun last still lacks.
    #[must_use]
    pub fn owes(&self) -> u64 {
        self.unfinished.map_or(0, |unfinished| unfinished.left)
    }

    /// Queues the next octets of the request begun last; they are not copied if there are more than 4 KiB. What is more than
    /// it announced is dropped, and so is all that comes when no part is [wanted](Self::wants_part).
    pub fn send_part(&mut self, mut octets: Bytes) {
        if !self.wants_part() {
            return;
        }
        let Some(unfinished) = &mut self.unfinished else { return };
        octets.truncate(usize::try_from(unfinished.left).unwrap_or(usize::MAX));
        unfinished.left -= octets.len() as u64;
        match &mut unfinished.pieces {
            Some(pieces) => pieces.push(&mut self.tx, octets),
            None => self.tx.push_chunk(octets),
        }
        if unfinished.left == 0 {
            self.unfinished = None;
        }
        self.clock.queued();
        if !self.fragmenting.is_empty() {
            self.feed();
        }
        if !self.takes_requests() {
            self.proceed_closing();
        }
    }

    /// Gives the request up that was begun and is not whole: it is taken back if nothing of it has left, else the connection is
    /// closed, since nothing can follow half a message. Says how much of it was sent.
    pub fn give_up_request(&mut self) -> Sent {
        let Some(Unfinished { call, start, .. }) = self.unfinished else { return Sent::Whole };
        let sent = if self.tx.reached() <= start { Sent::Nothing } else { Sent::Partly };
        if sent == Sent::Nothing && self.is_serving_phase() && self.tx.unqueue(start, self.tx.queued()) {
            self.unfinished = None;
            match call {
                Some(call) => self.calls.queued(call, Place::NOWHERE),
                None => self.took_back_oneway(start),
            }
            self.stats.unqueued += 1;
            if !self.fragmenting.is_empty() {
                self.feed();
            }
            self.clock.unqueued(self.tx.backlog() > 0);
            self.proceed_closing();
        } else {
            self.end(CloseReason::Local);
        }
        sent
    }

    /// Whether it is the request at that place that is not queued whole.
    pub(super) fn is_unfinished(&self, place: Place) -> bool {
        self.unfinished.is_some_and(|unfinished| unfinished.start == place.start)
    }

    /// The error of a call that was under way when the connection failed, if it is closing or closed.
    #[cold]
    #[must_use]
    pub fn lost(&self) -> CallError {
        CallError { sent: Sent::Partly, ..self.closed_error() }
    }

    /// Whether the outcome of that call is there, or the call is over.
    #[must_use]
    pub fn is_over(&self, call: CallId) -> bool {
        !self.calls.is_waiting(call)
    }
}

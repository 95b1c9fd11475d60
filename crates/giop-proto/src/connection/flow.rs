//! Requests and replies that leave while they are encoded.
//!
//! Unlike a payload that is read from a source, all of it comes at once: other messages may be queued meanwhile, and stand behind it.

use giop_codec::cdr::Encoder;

use super::Connection;
use crate::calls::{CallId, Place};
use crate::error::{CallError, CloseReason};
use crate::serving::ServeToken;

/// What became of a reply that was to leave while it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFlow {
    /// Its start is queued; what follows is to be given this number.
    Begun(u64),
    /// Another message does so already, or this one would leave in fragments: it is to be sent whole. The encoder is as it was.
    Busy,
    /// The peer gave the request up, or the connection is closed: nothing is sent. The encoder is empty.
    Dropped,
}

impl Connection {
    /// Queues the start of a request, whose header announces `coming` octets more. They follow by [`flow`](Self::flow), which is to
    /// be given the number that is returned; [`end_flow`](Self::end_flow) must be called when they are all there. Other messages that are queued
    /// meanwhile stand behind it. `call`: the one that waits for the reply; `None`: a oneway. The encoder is left empty.
    ///
    /// `None`: another request does so already, or this one would leave in fragments; the encoder is left as it is.
    ///
    /// # Errors
    /// The call waits no more, and its outcome is there; or there is none, and the connection is closed or closing. The message is
    /// dropped.
    pub fn begin_flow(
        &mut self,
        call: Option<CallId>,
        message: &mut Encoder,
        coming: u64,
    ) -> Result<Option<u64>, CallError> {
        if let Err(error) = self.check_begin(call) {
            message.reset(message.order(), message.version());
            return Err(error);
        }
        let octets = usize::try_from(coming).unwrap_or(usize::MAX).saturating_add(message.len());
        if self.unfinished.is_some()
            || self.tx.is_gapped()
            || self.fragmenting.cuts(message.version(), octets)
        {
            return Ok(None);
        }
        let place = self.queue(message, false);
        match call {
            Some(call) => self.calls.queued(call, Place { end: place.end + coming, ..place }),
            None => self.queued_oneway(coming),
        }
        Ok(self.tx.leave_gap(coming))
    }

    /// Queues the start of a reply, as [`begin_flow`](Self::begin_flow) does for requests. The request goes on: it ends by
    /// [`finish_request`](Self::finish_request).
    pub fn begin_reply_flow(&mut self, token: ServeToken, message: &mut Encoder, coming: u64) -> ReplyFlow {
        let octets = usize::try_from(coming).unwrap_or(usize::MAX).saturating_add(message.len());
        if self.unfinished.is_some()
            || self.tx.is_gapped()
            || self.fragmenting.cuts(message.version(), octets)
        {
            return ReplyFlow::Busy;
        }
        if !self.serving.acknowledge(token) || !self.is_serving_phase() {
            message.reset(message.order(), message.version());
            return ReplyFlow::Dropped;
        }
        self.queue_answer(message);
        self.owed.add(usize::try_from(coming).unwrap_or(usize::MAX));
        let gap = self.tx.leave_gap(coming);
        self.count_queued();
        match gap {
            Some(end) => ReplyFlow::Begun(end),
            None => ReplyFlow::Dropped, // there is no other gap
        }
    }

    /// Queues the next octets of such a message, and leaves the encoder empty. If there are more than it announced, the connection is
    /// closed, since the message is not what it should be.
    pub fn flow(&mut self, message: u64, octets: &mut Encoder) {
        self.stats.copied_out += octets.copied() as u64;
        octets.drain_into(&mut self.pieces);
        let mut fits = true;
        for piece in self.pieces.drain(..) {
            fits &= self.tx.fill(message, piece);
        }
        if fits {
            self.clock.queued();
        } else if self.clock.write_end.is_none() {
            self.end(CloseReason::Local);
        }
    }

    /// Ends such a message: if it lacks octets, the connection is closed, since nothing can follow half a message.
    pub fn end_flow(&mut self, message: u64) {
        if self.tx.has_gap(message) {
            self.end(CloseReason::Local);
        }
    }
}

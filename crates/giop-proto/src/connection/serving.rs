//! Replies to the peer's requests.

use giop_codec::Version;
use giop_codec::cdr::Encoder;
use giop_codec::exception::SystemException;

use super::Connection;
use crate::hits::Limit;
use crate::serving::ServeToken;

/// A request of the peer that is being served: see [`Connection::request`].
#[derive(Debug)]
pub struct ServedRequest<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) token: ServeToken,
}

impl Connection {
    /// Returns the request with this token, which may have been cancelled.
    #[inline]
    pub fn request(&mut self, token: ServeToken) -> ServedRequest<'_> {
        ServedRequest { connection: self, token }
    }

    /// Queues the reply to a LocateRequest: a whole message. The encoder is left empty.
    pub fn send_locate_reply(&mut self, message: &mut Encoder) {
        if self.lifecycle.may_queue() {
            self.output.queue_answer(message, self.clock.now);
        } else {
            message.reset(message.order(), message.version());
        }
    }

    /// Returns the number of requests that are being served.
    #[inline]
    pub fn serving_count(&self) -> usize {
        self.serving.len()
    }
}

impl ServedRequest<'_> {
    /// Ends the request with its reply: a whole message with its header. The reply is dropped if the request
    /// was cancelled or the connection is closed. The encoder is left empty, in the same byte order and
    /// version.
    #[inline]
    pub fn send_reply(&mut self, message: &mut Encoder) {
        if self.connection.serving.finish(self.token) && self.connection.lifecycle.may_queue() {
            let is_fragmented =
                self.connection.output.fragment_queue.is_fragmented(message.version(), message.len());
            if is_fragmented && self.connection.output.queue_in_pieces(None, message) {
                self.connection.queue_pieces();
            } else {
                self.connection.output.queue_answer(message, self.connection.clock.now);
            }
        } else {
            message.reset(message.order(), message.version());
        }
        self.release();
    }

    /// Ends the request with a system exception, because there is no memory for its reply.
    #[cold]
    pub fn refuse(&mut self, version: Version, exception: &SystemException) {
        let id = self.connection.serving.id(self.token);
        self.connection.output.stats.limit_hits.hit(Limit::Pool);
        if self.connection.serving.finish(self.token)
            && self.connection.lifecycle.may_queue()
            && let Some(id) = id
        {
            self.connection.output.refuse(id, version, exception, self.connection.clock.now);
        }
        self.release();
    }

    /// Acknowledges a oneway by a reply, as by [`send_reply`](Self::send_reply). The request does not end.
    pub fn acknowledge(&mut self, message: &mut Encoder) {
        if self.connection.serving.acknowledge(self.token) && self.connection.lifecycle.may_queue() {
            self.connection.output.queue_answer(message, self.connection.clock.now);
        } else {
            message.reset(message.order(), message.version());
        }
    }

    /// Ends the request without a reply.
    #[inline]
    pub fn finish(&mut self) {
        self.connection.serving.finish(self.token);
        self.release();
    }

    #[inline]
    fn release(&mut self) {
        if self.connection.input.incoming_payload.is_some_and(|streamed| !streamed.is_opened) {
            let loan = self.connection.stream(self.token).abandon();
            debug_assert!(loan.is_none(), "nothing is lent before the stream is opened");
        }
        self.connection.clock.is_last_active_outdated = true;
        if self.connection.admission.share.has_surplus(self.connection.serving.len()) {
            self.connection.admission.return_surplus(self.connection.serving.len(), &self.connection.limits);
        }
        if !self.connection.lifecycle.hands_out_requests() {
            self.connection.continue_closing();
        }
    }
}

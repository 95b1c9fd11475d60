//! Serving: replies to the peer's requests.

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

    /// Answers a LocateRequest.
    pub fn send_locate_reply(&mut self, message: &mut Encoder) {
        if self.lifecycle.may_queue() {
            self.output.queue_answer(message, self.clock.now);
        } else {
            message.reset(message.order(), message.version());
        }
    }

    /// Returns the number of requests being served.
    #[inline]
    pub fn serving(&self) -> usize {
        self.serving.len()
    }
}

impl ServedRequest<'_> {
    /// Ends the request with its reply: a whole message from its message header on. It is dropped if the
    /// request was cancelled or the connection is closed. The encoder is left empty, in the same byte order
    /// and version.
    #[inline]
    pub fn send_reply(&mut self, message: &mut Encoder) {
        if self.connection.serving.finish(self.token) && self.connection.lifecycle.may_queue() {
            let cut = self.connection.output.fragment_queue.cuts(message.version(), message.len());
            if cut && self.connection.output.queue_in_pieces(None, message) {
                self.connection.feed();
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
        self.connection.output.stats.limits.hit(Limit::Pool);
        if self.connection.serving.finish(self.token)
            && self.connection.lifecycle.may_queue()
            && let Some(id) = id
        {
            self.connection.output.refuse(id, version, exception, self.connection.clock.now);
        }
        self.release();
    }

    /// Acknowledges the receipt of a oneway, by a reply as for [`send_reply`](Self::send_reply). The request
    /// and its payload continue, and must be ended by [`finish`](Self::finish).
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
        if self.connection.input.streamed.is_some_and(|streamed| !streamed.is_opened) {
            let loan = self.connection.stream(self.token).abandon();
            debug_assert!(loan.is_none(), "nothing was lent");
        }
        self.connection.clock.is_active_outdated = true;
        if self.connection.requests.share.has_surplus(self.connection.serving.len()) {
            self.connection.requests.give_back(self.connection.serving.len(), &self.connection.limits);
        }
        if !self.connection.lifecycle.accepts_requests() {
            self.connection.continue_closing();
        }
    }
}

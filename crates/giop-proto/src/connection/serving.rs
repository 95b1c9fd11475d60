//! Serving: replies to the peer's requests.

use giop_codec::Version;
use giop_codec::cdr::Encoder;
use giop_codec::exception::SystemException;

use super::Connection;
use crate::hits::Limit;
use crate::serving::ServeToken;

impl Connection {
    /// Ends a request with its reply: a whole message in one piece, from its message header on. The encoder
    /// is left empty, in the same byte order and version.
    ///
    /// The reply is dropped if the peer cancelled the request or the connection is closed.
    #[inline]
    pub fn send_reply(&mut self, token: ServeToken, message: &mut Encoder) {
        if self.serving.finish(token) && self.lifecycle.may_queue() {
            let cut = self.output.fragment_queue.cuts(message.version(), message.len());
            if cut && self.output.queue_in_pieces(None, message) {
                self.feed();
            } else {
                self.output.queue_answer(message, self.clock.now);
            }
        } else {
            message.reset(message.order(), message.version());
        }
        self.request_finished(token);
    }

    /// Ends a request with a system exception instead of its reply, for which there is no memory.
    #[cold]
    pub fn refuse_reply(&mut self, token: ServeToken, version: Version, exception: &SystemException) {
        let id = self.serving.id(token);
        self.stats.limits.hit(Limit::Pool);
        if self.serving.finish(token)
            && self.lifecycle.may_queue()
            && let Some(id) = id
        {
            self.output.refuse(id, version, exception, self.clock.now);
        }
        self.request_finished(token);
    }

    /// Acknowledges the receipt of a oneway to its sender, by a reply as for
    /// [`send_reply`](Self::send_reply). The request and its payload continue, and must be ended by
    /// [`finish_request`](Self::finish_request).
    pub fn acknowledge(&mut self, token: ServeToken, message: &mut Encoder) {
        if self.serving.acknowledge(token) && self.lifecycle.may_queue() {
            self.output.queue_answer(message, self.clock.now);
        } else {
            message.reset(message.order(), message.version());
        }
    }

    /// Ends a request without a reply.
    #[inline]
    pub fn finish_request(&mut self, token: ServeToken) {
        self.serving.finish(token);
        self.request_finished(token);
    }

    /// Answers a LocateRequest.
    pub fn send_locate_reply(&mut self, message: &mut Encoder) {
        if self.lifecycle.may_queue() {
            self.output.queue_answer(message, self.clock.now);
        } else {
            message.reset(message.order(), message.version());
        }
    }

    /// Returns the number of requests that were handed out and not ended.
    #[inline]
    #[must_use]
    pub fn serving(&self) -> usize {
        self.serving.len()
    }

    #[inline]
    fn request_finished(&mut self, token: ServeToken) {
        if self.input.has_untaken() {
            let loan = self.abandon_stream(token);
            debug_assert!(loan.is_none(), "nobody lent anything");
        }
        self.clock.touch();
        if self.requests.share.is_ample(self.serving.len()) {
            self.requests.give_back(self.serving.len(), &self.limits);
        }
        if !self.lifecycle.takes_requests() {
            self.proceed_closing();
        }
    }
}

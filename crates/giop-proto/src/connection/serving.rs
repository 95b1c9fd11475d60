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
        if self.serving.finish(token) && self.is_serving_phase() {
            let cut = self.output.fragmenting.cuts(message.version(), message.len());
            if !cut || self.queue_reply_in_pieces(message).is_none() {
                self.queue_answer(message);
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
            && self.is_serving_phase()
            && let Some(id) = id
        {
            self.refuse(id, version, exception);
        }
        self.request_finished(token);
    }

    /// Acknowledges the receipt of a oneway to its sender, by a reply as for
    /// [`send_reply`](Self::send_reply). The request and its payload continue, and must be ended by
    /// [`finish_request`](Self::finish_request).
    pub fn acknowledge(&mut self, token: ServeToken, message: &mut Encoder) {
        if self.serving.acknowledge(token) && self.is_serving_phase() {
            self.queue_answer(message);
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
        if self.is_serving_phase() {
            self.queue_answer(message);
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
        if self.streamed.is_some() {
            self.drop_untaken(token);
        }
        self.clock.touch();
        if self.requests.share.is_ample(self.serving.len()) {
            self.give_back();
        }
        if !self.takes_requests() {
            self.proceed_closing();
        }
    }
}

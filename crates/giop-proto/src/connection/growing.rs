//! Replies that leave in GIOP 1.2 fragments before they are whole ("Fragment Message"): nobody knows how many octets will follow.
//!
//! They take turns with other messages in pieces, and are given more only while few octets of theirs wait.

use giop_codec::Version;
use giop_codec::cdr::Encoder;

use super::Connection;
use crate::error::CloseReason;
use crate::serving::ServeToken;

/// What may be queued of a reply that is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyRoom {
    /// More of it.
    Room,
    /// Nothing now: the peer has to take something first, or four other replies are not whole either.
    Full,
    /// Nothing any more: the peer gave the request up, or the connection is closing or closed.
    Gone,
}

impl Connection {
    /// The octets from which a reply may leave before it is whole.
    #[must_use]
    pub fn reply_piece(&self) -> usize {
        self.fragmenting.piece_of_growing()
    }

    /// Queues the start of a reply of GIOP 1.2 that is not whole: its header up to the octet `body`, and more octets behind that, more than
    /// [`reply_piece`](Self::reply_piece) in all. Its message header need not say how long it is. More follows by [`continue_reply`](Self::continue_reply), while there is
    /// [room](Self::reply_room), up to the last of it; or it is [given up](Self::break_reply). The request goes on: it ends by
    /// [`finish_request`](Self::finish_request) behind that.
    ///
    /// `Room`: it is begun, and the encoder goes on with the same message. `Full`: it is to be tried again, and the encoder is as it was. `Gone`: the reply
    /// is dropped, and the encoder is empty.
    pub fn begin_reply(&mut self, token: ServeToken, message: &mut Encoder, body: usize) -> ReplyRoom {
        if !self.serving.is_awaited(token) || !self.is_serving_phase() || message.version() != Version::V1_2 {
            message.reset(message.order(), message.version());
            return ReplyRoom::Gone;
        }
        if self.unfinished.is_some() || !self.fragmenting.may_grow() {
            return ReplyRoom::Full;
        }
        match self.cut_first(message, self.fragmenting.piece_of_growing(), Some(body)) {
            Some(partial) => {
                self.fragmenting.enter(partial.growing(token));
                self.feed();
                ReplyRoom::Room
            }
            None => ReplyRoom::Full, // its id is that of another message under way
        }
    }

    /// Whether more of a reply that is begun can be queued: less than a piece of it waits for its turn.
    #[must_use]
    pub fn reply_room(&self, token: ServeToken) -> ReplyRoom {
        match self.fragmenting.growing(token) {
            Some(partial) if partial.left <= self.fragmenting.piece_of_growing() => ReplyRoom::Room,
            Some(_) => ReplyRoom::Full,
            None => ReplyRoom::Gone,
        }
    }

    /// Whether there are replies that are not whole yet.
    #[inline]
    #[must_use]
    pub fn has_growing_replies(&self) -> bool {
        self.fragmenting.is_growing()
    }

    /// Queues more of a reply that is begun; `last`: the rest of it. The encoder is left empty, to go on with the same message. What comes
    /// when it is gone is dropped.
    pub fn continue_reply(&mut self, token: ServeToken, octets: &mut Encoder, last: bool) {
        self.stats.copied_out += octets.copied() as u64;
        if self.fragmenting.grow(token, octets, last) {
            self.feed();
        } else {
            octets.reset(octets.order(), octets.version());
        }
    }

    /// Gives up a reply that is begun and can not be ended. `true`: nothing of it has left, so the request may be answered by another one.
    /// Else the connection is closed as soon as the messages before it are written, without a word, since half a reply can not be taken back; and
    /// CloseConnection would say that the requests under way were not executed.
    pub fn break_reply(&mut self, token: ServeToken) -> bool {
        let Some(partial) = self.fragmenting.remove_growing(token) else { return true };
        if !partial.is_begun() || self.take_back(&partial) {
            self.feed();
            return true;
        }
        self.break_off(CloseReason::Local);
        false
    }

    /// Stops a reply that is begun, as the peer gave its request up: it is ended by an empty piece, so that the peer does not wait for the rest.
    #[cold]
    pub(super) fn stop_growing(&mut self, token: ServeToken) {
        let Some(mut partial) = self.fragmenting.remove_growing(token) else { return };
        if partial.is_begun() && !self.take_back(&partial) {
            if self.unfinished.is_some() {
                // Nothing can be said in the middle of a request.
                partial.rest.clear();
                (partial.left, partial.grows) = (0, false);
                return self.fragmenting.enter(partial);
            }
            self.queue_empty_end(&partial);
        }
        self.feed();
    }
}

//! Replies that are sent in GIOP 1.2 fragments before they are complete, with an unknown number of bytes to
//! follow ("Fragment Message").
//!
//! Their pieces alternate with those of other messages. More of a reply is accepted only while few of its
//! bytes are queued.

use std::time::Instant;

use giop_codec::Version;
use giop_codec::cdr::Encoder;

use super::Output;
use super::serving::ServedRequest;
use crate::error::CloseReason;
use crate::serving::ServeToken;

/// The room for more of an incomplete reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyRoom {
    /// More of it may be queued.
    Room,
    /// Nothing may be queued at present: the peer must accept data first, or four other replies are
    /// incomplete too.
    Full,
    /// Nothing may be queued any more: the peer cancelled the request, or the connection is closing or
    /// closed.
    Gone,
}

impl ServedRequest<'_> {
    /// Queues the start of an incomplete GIOP 1.2 reply. It consists of the header up to the offset `body`,
    /// and of the following bytes, more than [`Output::reply_piece`] in total. Its message header
    /// need not contain the size.
    ///
    /// The rest follows by [`continue_reply`](Self::continue_reply) while there is
    /// [room](Output::reply_room), or the reply is [given up](Self::break_reply). The request continues and
    /// must be ended by [`finish`](Self::finish) after that.
    ///
    /// * `Room`: the reply is started, and the encoder continues the same message.
    /// * `Full`: the call must be repeated later, and the encoder is unchanged.
    /// * `Gone`: the reply is dropped, and the encoder is empty.
    pub fn begin_reply(&mut self, message: &mut Encoder, body: usize) -> ReplyRoom {
        if !self.connection.serving.is_awaited(self.token)
            || !self.connection.lifecycle.may_queue()
            || message.version() != Version::V1_2
        {
            message.reset(message.order(), message.version());
            return ReplyRoom::Gone;
        }
        if self.connection.output.partial_request.is_some()
            || !self.connection.output.fragment_queue.may_grow()
        {
            return ReplyRoom::Full;
        }
        match self.connection.output.cut_first(
            message,
            self.connection.output.fragment_queue.piece_of_growing(),
            Some(body),
        ) {
            Some(partial) => {
                self.connection.output.fragment_queue.enter(partial.growing(self.token));
                self.connection.feed();
                ReplyRoom::Room
            }
            None => ReplyRoom::Full, // another message in progress has the same id
        }
    }

    /// Queues more of a started reply. `last` marks the end of it. The encoder is left empty, to continue the
    /// same message. If the reply is gone, the bytes are dropped.
    pub fn continue_reply(&mut self, octets: &mut Encoder, last: bool) {
        self.connection.output.copied += octets.copied() as u64;
        if self.connection.output.fragment_queue.grow(self.token, octets, last) {
            self.connection.feed();
        } else {
            octets.reset(octets.order(), octets.version());
        }
    }

    /// Gives up a started reply that cannot be ended. Returns `true` if nothing of it was sent, so that the
    /// request may be answered with another reply.
    ///
    /// Otherwise the connection is closed when the messages before it are written, because half a reply
    /// cannot be taken back. CloseConnection is not sent, because it would say that the requests in progress
    /// were not executed.
    pub fn break_reply(&mut self) -> bool {
        let Some(partial) = self.connection.output.fragment_queue.remove_growing(self.token) else {
            return true;
        };
        if !partial.is_begun() || self.connection.output.take_back(&partial) {
            self.connection.feed();
            return true;
        }
        self.connection.finish(CloseReason::Local, None);
        false
    }
}

impl Output {
    /// Stops a started reply whose request the peer cancelled. An empty piece ends the reply, so that the
    /// peer does not wait for the rest.
    #[cold]
    pub(super) fn stop_growing(&mut self, token: ServeToken, now: Instant) {
        let Some(mut partial) = self.fragment_queue.remove_growing(token) else { return };
        if partial.is_begun() && !self.take_back(&partial) {
            if self.partial_request.is_some() {
                // Nothing can be sent in the middle of a request.
                partial.rest.clear();
                (partial.left, partial.grows) = (0, false);
                return self.fragment_queue.enter(partial);
            }
            self.queue_empty_end(&partial, now);
        }
    }

    /// Returns the size in bytes above which a reply may be sent before it is complete.
    #[must_use]
    pub fn reply_piece(&self) -> usize {
        self.fragment_queue.piece_of_growing()
    }

    /// Returns whether more of a started reply can be queued: at most one piece of it is not queued yet.
    #[must_use]
    pub fn reply_room(&self, token: ServeToken) -> ReplyRoom {
        match self.fragment_queue.growing(token) {
            Some(partial) if partial.left <= self.fragment_queue.piece_of_growing() => ReplyRoom::Room,
            Some(_) => ReplyRoom::Full,
            None => ReplyRoom::Gone,
        }
    }

    /// Returns whether there are incomplete replies.
    #[inline]
    #[must_use]
    pub fn has_growing_replies(&self) -> bool {
        self.fragment_queue.is_growing()
    }
}

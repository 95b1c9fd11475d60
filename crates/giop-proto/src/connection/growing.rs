//! Growing replies, which are sent in GIOP 1.2 fragments before their size is known ("Fragment Message").
//!
//! Their pieces alternate with those of other messages. Only a few bytes of a reply are queued at a time.

use std::time::Instant;

use giop_codec::Version;
use giop_codec::cdr::Encoder;

use super::Output;
use super::serving::ServedRequest;
use crate::error::CloseReason;
use crate::serving::ServeToken;

/// Whether more of a growing reply may be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyRoom {
    /// More may be queued.
    Room,
    /// Nothing may be queued at present: the peer must accept data first, or four other replies are growing.
    Full,
    /// Nothing may be queued any more: the request was cancelled, or the connection is closing.
    Gone,
}

impl ServedRequest<'_> {
    /// Queues the start of a GIOP 1.2 reply of unknown size: its header up to the offset `body`, and the
    /// following bytes, in total more than [`Output::reply_piece`]. The message header need not contain the
    /// size.
    ///
    /// The rest follows by [`continue_reply`](Self::continue_reply) while there is
    /// [room](Output::reply_room), or the reply is [given up](Self::break_reply). Then the request must be
    /// ended by [`finish`](Self::finish).
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
            self.connection.output.fragment_queue.growing_piece_size(),
            Some(body),
        ) {
            Some(partial) => {
                self.connection.output.fragment_queue.add(partial.growing(self.token));
                self.connection.feed();
                ReplyRoom::Room
            }
            None => ReplyRoom::Full, // another message in progress has the same id
        }
    }

    /// Queues more of a started reply, unless it is gone. `last` ends it. The encoder is left empty.
    pub fn continue_reply(&mut self, bytes: &mut Encoder, last: bool) {
        self.connection.output.stats.copied_out += bytes.copied() as u64;
        if self.connection.output.fragment_queue.grow(self.token, bytes, last) {
            self.connection.feed();
        } else {
            bytes.reset(bytes.order(), bytes.version());
        }
    }

    /// Gives up a started reply. Returns `true` if nothing of it was sent, so that another reply may be sent.
    ///
    /// Otherwise the connection is closed when the messages before the reply are written. CloseConnection is
    /// not sent, because it would mean that the requests in progress were not executed.
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
    /// Stops a growing reply to a cancelled request. An empty piece ends it for the peer.
    #[cold]
    pub(super) fn stop_growing(&mut self, token: ServeToken, now: Instant) {
        let Some(mut partial) = self.fragment_queue.remove_growing(token) else { return };
        if partial.is_begun() && !self.take_back(&partial) {
            if self.partial_request.is_some() {
                // Nothing can be sent in the middle of a request.
                partial.rest.clear();
                (partial.unqueued, partial.grows) = (0, false);
                return self.fragment_queue.add(partial);
            }
            self.queue_empty_end(&partial, now);
        }
    }

    /// Returns the size in bytes above which a reply may be sent before it is complete.
    pub fn reply_piece(&self) -> usize {
        self.fragment_queue.growing_piece_size()
    }

    /// Returns whether more of a started reply can be queued. At most one piece of it may be waiting.
    pub fn reply_room(&self, token: ServeToken) -> ReplyRoom {
        match self.fragment_queue.growing(token) {
            Some(partial) if partial.unqueued <= self.fragment_queue.growing_piece_size() => ReplyRoom::Room,
            Some(_) => ReplyRoom::Full,
            None => ReplyRoom::Gone,
        }
    }

    /// Returns whether there are growing replies.
    #[inline]
    pub fn has_growing_replies(&self) -> bool {
        self.fragment_queue.has_growing()
    }
}

//! Growing replies, which are sent in GIOP 1.2 fragments before their size is known ("Fragment Message").
//!
//! Their pieces alternate with those of other messages. About one piece of a reply is queued at a time.

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
    /// Nothing may be queued at present: the peer must accept data, or other messages are being sent.
    Full,
    /// Nothing can be queued any more: the request was cancelled, or the connection cannot send the reply.
    Gone,
}

impl ServedRequest<'_> {
    /// Queues the start of a GIOP 1.2 reply of unknown size, which must be longer than
    /// [`Output::reply_piece_size`]. Its header ends at the offset `body_at`, and need not contain the size.
    ///
    /// Then [`continue_reply`](Self::continue_reply) must supply the rest while there is
    /// [room](Output::reply_room), or [`break_reply`](Self::break_reply) must be called.
    /// [`finish`](Self::finish) must end the request.
    ///
    /// * `Room`: the reply is started, and the encoder continues the same message.
    /// * `Full`: the call must be repeated later, and the encoder is unchanged.
    /// * `Gone`: the reply is dropped, and the encoder is empty.
    pub fn begin_reply(&mut self, message: &mut Encoder, body_at: usize) -> ReplyRoom {
        if !self.connection.serving.is_awaited(self.token)
            || !self.connection.lifecycle.may_queue()
            || message.version() != Version::V1_2
        {
            message.reset(message.order(), message.version());
            return ReplyRoom::Gone;
        }
        if self.connection.output.partial_request.is_some()
            || !self.connection.output.fragment_queue.may_start_growing()
        {
            return ReplyRoom::Full;
        }
        match self.connection.output.take_fragmented_message(
            message,
            self.connection.output.fragment_queue.growing_piece_size(),
            Some(body_at),
        ) {
            Some(fragmented) => {
                self.connection.output.fragment_queue.add(fragmented.into_growing_reply(self.token));
                self.connection.queue_pieces();
                ReplyRoom::Room
            }
            None => ReplyRoom::Full, // a message with the same id is being sent, or this one is too short
        }
    }

    /// Queues more of a started reply, unless it is gone. `is_last` ends it. The encoder is left empty.
    pub fn continue_reply(&mut self, bytes: &mut Encoder, is_last: bool) {
        self.connection.output.stats.bytes_copied_out += bytes.copied() as u64;
        if self.connection.output.fragment_queue.append(self.token, bytes, is_last) {
            self.connection.queue_pieces();
        } else {
            bytes.reset(bytes.order(), bytes.version());
        }
    }

    /// Gives up a started reply. Returns `true` if nothing of it was sent, so that another reply may be sent.
    ///
    /// If a part of it was sent, the connection is closed when all queued data is written. CloseConnection is
    /// not sent, because it would mean that the requests being served were not executed.
    pub fn break_reply(&mut self) -> bool {
        let Some(fragmented) = self.connection.output.fragment_queue.remove_growing(self.token) else {
            return true;
        };
        if !fragmented.is_begun() || self.connection.output.take_back(&fragmented) {
            self.connection.queue_pieces();
            return true;
        }
        self.connection.finish(CloseReason::Local, None);
        false
    }
}

impl Output {
    /// Stops the growing reply to a cancelled request. If a part of it was sent, an empty piece ends it.
    #[cold]
    pub(super) fn stop_growing(&mut self, token: ServeToken, now: Instant) {
        let Some(mut fragmented) = self.fragment_queue.remove_growing(token) else { return };
        if fragmented.is_begun() && !self.take_back(&fragmented) {
            if self.partial_request.is_some() {
                // Nothing can be sent in the middle of a request.
                fragmented.unqueued_chunks.clear();
                (fragmented.unqueued_len, fragmented.is_growing) = (0, false);
                return self.fragment_queue.add(fragmented);
            }
            self.queue_empty_end(&fragmented, now);
        }
    }

    /// Returns the size in bytes that a reply must exceed to be sent before it is complete.
    pub fn reply_piece_size(&self) -> usize {
        self.fragment_queue.growing_piece_size()
    }

    /// Returns whether more of a started reply can be queued: at most one piece of it is waiting.
    pub fn reply_room(&self, token: ServeToken) -> ReplyRoom {
        match self.fragment_queue.growing_reply(token) {
            Some(fragmented) if fragmented.unqueued_len <= self.fragment_queue.growing_piece_size() => {
                ReplyRoom::Room
            }
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

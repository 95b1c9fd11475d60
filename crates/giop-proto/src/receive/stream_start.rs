//! Selection of large requests and replies that are streamed, or handed out as encoded bytes (*raw*).
//!
//! The first bytes of a streamed message, 16 KiB or more, are handed out like a whole message.
//!
//! A gateway forwards raw messages. A large one is not copied for this: the bytes that were received with its
//! header stay where they were read, and the rest is read into a separate buffer.

use std::fmt;

use giop_codec::giop::{MessageHeader, MessageType, RequestId};

use super::MIN_DEPOSIT_SIZE;
use super::receiver_state::StreamState;
use crate::message::{ReplyHead, RequestHead};
use crate::pool::WINDOW_SIZE;

/// The number of bytes of a message that must have been received before it is handed out. They must contain
/// the header and all values before the payload.
pub const STREAM_START_LEN: usize = MIN_DEPOSIT_SIZE;

/// Selects the requests that are handed out before their payload is received, and those that stay encoded.
pub trait StreamSelector: fmt::Debug + Send + Sync {
    /// Returns whether there may be requests that are streamed. If not, no request is inspected for it.
    fn any_streamed(&self) -> bool;

    /// Returns whether the operation of the object with this key receives its last argument as a stream.
    fn is_streamed(&self, key: &[u8], operation: &[u8]) -> bool;

    /// Returns whether there may be objects whose servants take requests as encoded bytes.
    fn any_raw(&self) -> bool {
        false
    }

    /// Returns whether the servant of the object with this key takes requests as encoded bytes.
    fn is_raw(&self, key: &[u8]) -> bool {
        let _ = key;
        false
    }
}

/// The minimum size in bytes of an incomplete raw message that is not moved. A smaller one is moved into a
/// contiguous buffer, because its arguments are copied in any case when they are sent.
pub(super) const MIN_RAW_SIZE: usize = 4 * 1024;

#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyStream {
    id: RequestId,
    /// True if results in GIOP 1.1 fragments are streamed too, although their values may be unaligned.
    pub(super) unaligned_fragments: bool,
}

pub(super) enum Decision {
    /// More bytes are needed to decide.
    Wait,
    Stream,
    Whole,
}

impl StreamState {
    #[inline]
    pub(super) fn decision_for(&self, header: &MessageHeader, total: usize, bytes: &[u8]) -> Decision {
        if total <= WINDOW_SIZE || !self.may_stream(header, total) {
            Decision::Whole
        } else if bytes.len() < STREAM_START_LEN {
            Decision::Wait
        } else if self.is_streamed(header, bytes) {
            Decision::Stream
        } else {
            Decision::Whole
        }
    }

    #[inline]
    pub(super) fn may_stream(&self, header: &MessageHeader, total: usize) -> bool {
        let may_be_selected = match header.kind {
            MessageType::Request => {
                total as u64 <= self.max_payload_bytes.saturating_add(MIN_DEPOSIT_SIZE as u64)
                    && self.selector.as_ref().is_some_and(|streams| streams.any_streamed())
            }
            // The caller that selected the reply checks the size of its payload.
            MessageType::Reply => self.reply.is_some(),
            _ => false,
        };
        may_be_selected
            && self.current.is_none()
            && !self.has_1_1_fragments
            && (!header.more_fragments || self.may_stream_pieces(header))
    }

    /// Returns whether the message is selected for streaming. `bytes` must contain its whole header.
    pub(super) fn is_streamed(&self, header: &MessageHeader, bytes: &[u8]) -> bool {
        if header.kind == MessageType::Reply {
            return self.reply.is_some_and(|wanted| {
                ReplyHead::decode(header, bytes).is_ok_and(|head| head.is_result() && head.id == wanted.id)
            });
        }
        let Some(streams) = &self.selector else { return false };
        match RequestHead::decode(header, bytes) {
            Ok(head) => streams.is_streamed(head.key(bytes), head.operation(bytes)),
            Err(_) => false,
        }
    }

    pub(crate) fn select_reply(&mut self, id: RequestId, unaligned_fragments: bool) {
        self.reply = Some(ReplyStream { id, unaligned_fragments });
    }

    #[inline]
    pub(crate) fn forget_reply(&mut self, id: RequestId) {
        if self.reply.is_some_and(|wanted| wanted.id == id) {
            self.reply = None;
        }
        if !self.forwarded_replies.is_empty() {
            self.forwarded_replies.remove(&id);
        }
    }

    /// Returns whether the message is raw, if `bytes` contain its header and a part of its body.
    pub(super) fn is_raw(&self, header: &MessageHeader, bytes: &[u8]) -> bool {
        if header.more_fragments || !self.deposits_enabled {
            return false;
        }
        match (header.kind, &self.selector) {
            (MessageType::Request, Some(streams)) if streams.any_raw() => RequestHead::decode(header, bytes)
                .is_ok_and(|head| (head.body_at as usize) < bytes.len() && streams.is_raw(head.key(bytes))),
            (MessageType::Reply, _) if !self.forwarded_replies.is_empty() => ReplyHead::decode(header, bytes)
                .is_ok_and(|head| {
                    (head.body_at as usize) < bytes.len() && self.forwarded_replies.contains(&head.id)
                }),
            _ => false,
        }
    }
}

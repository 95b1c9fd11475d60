//! Selection of large requests and replies that are handed out before their payload has been received.
//!
//! The start of such a message, 16 to 64 KiB, is handed out like a whole message. The rest is its stream
//! (`stream.rs`).

use std::fmt;

use giop_codec::giop::{MessageHeader, MessageType, RequestId};

use super::DEPOSIT_MIN;
use super::parts::StreamState;
use crate::message::{ReplyHead, RequestHead};
use crate::pool::WINDOW;

/// The number of bytes of a message that must have been received before it is handed out: its header and all
/// values before the payload.
pub const STREAM_START: usize = DEPOSIT_MIN;

/// Selects requests that are handed out before their payload has been received, and requests that are
/// forwarded without being decoded.
pub trait Streams: fmt::Debug + Send + Sync {
    /// Returns whether there may be any. If not, no request is inspected before it has been received whole.
    fn any(&self) -> bool;

    /// Returns whether the operation of the object with that key takes its last argument as a stream.
    fn streams(&self, key: &[u8], operation: &[u8]) -> bool;

    /// Returns whether there may be objects whose requests are forwarded in encoded form.
    fn any_passed(&self) -> bool {
        false
    }

    /// Returns whether the requests of the object with that key are forwarded in encoded form. The bytes of a
    /// large one that are received with its header then stay where they were read, and the rest gets a buffer
    /// of its own.
    fn passes(&self, key: &[u8]) -> bool {
        let _ = key;
        false
    }
}

/// The reply whose results are taken as a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyStream {
    id: RequestId,
    /// True if results in GIOP 1.1 fragments are streamed too. Each of these may align its values separately.
    nameless: bool,
}

/// The way in which a large request or reply is received, as far as its first bytes show.
pub(super) enum Decision {
    /// More bytes are needed to decide.
    Wait,
    Stream,
    Whole,
}

impl StreamState {
    /// Decides how the message that starts with `bytes` is received.
    #[inline]
    pub(super) fn decide(&self, header: &MessageHeader, total: usize, bytes: &[u8]) -> Decision {
        if total <= WINDOW || !self.may_stream(header, total) {
            Decision::Whole
        } else if bytes.len() < STREAM_START {
            Decision::Wait
        } else if self.is_streamed(header, bytes) {
            Decision::Stream
        } else {
            Decision::Whole
        }
    }

    /// Returns whether a message of that size may be handed out before it has been received whole.
    #[inline]
    pub(super) fn may_stream(&self, header: &MessageHeader, total: usize) -> bool {
        let wanted = match header.kind {
            MessageType::Request => {
                total as u64 <= self.max.saturating_add(DEPOSIT_MIN as u64)
                    && self.selector.as_ref().is_some_and(|streams| streams.any())
            }
            // The caller rejects a payload that is too large for it.
            MessageType::Reply => self.reply.is_some(),
            _ => false,
        };
        wanted
            && self.current.is_none()
            && !self.has_nameless
            && (!header.more_fragments || self.takes_pieces(header))
    }

    /// Returns whether a message that starts with these bytes has a payload that is taken as a stream.
    pub(super) fn is_streamed(&self, header: &MessageHeader, octets: &[u8]) -> bool {
        if header.kind == MessageType::Reply {
            return self.reply.is_some_and(|wanted| {
                ReplyHead::decode(header, octets).is_ok_and(|head| head.is_result() && head.id == wanted.id)
            });
        }
        let Some(streams) = &self.selector else { return false };
        match RequestHead::decode(header, octets) {
            Ok(head) => streams.streams(head.key(octets), head.operation(octets)),
            Err(_) => false,
        }
    }

    /// Streams the results of the reply with that id. `nameless` includes GIOP 1.1 fragments.
    pub(crate) fn select_reply(&mut self, id: RequestId, nameless: bool) {
        self.reply = Some(ReplyStream { id, nameless });
    }

    /// Returns whether a reply in GIOP 1.1 fragments is streamed.
    pub(super) fn streams_nameless_reply(&self) -> bool {
        self.reply.is_some_and(|wanted| wanted.nameless)
    }

    /// Forgets the settings for the reply with that id, because its call has ended.
    #[inline]
    pub(crate) fn forget_reply(&mut self, id: RequestId) {
        if self.reply.is_some_and(|wanted| wanted.id == id) {
            self.reply = None;
        }
        if !self.passed.is_empty() {
            self.passed.remove(&id);
        }
    }
}

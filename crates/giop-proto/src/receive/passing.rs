//! Messages that a gateway forwards in encoded form. No part of a large one is moved. The part that was
//! received with its header stays where it was read, and the rest is read into a buffer of its own. Decoding
//! such a message joins it by a copy.

use giop_codec::giop::{MessageHeader, MessageType, RequestId};

use super::parts::StreamState;
use crate::message::{ReplyHead, RequestHead};

/// The minimum size of such messages. Smaller ones are moved like all others if the end of the window cuts
/// them, because their arguments are copied when they are sent in any case.
pub(super) const PASSED_MIN: usize = 4 * 1024;

impl StreamState {
    /// Marks the reply with that id for forwarding.
    pub(crate) fn pass_reply(&mut self, id: RequestId) {
        self.passed.insert(id);
    }

    /// Returns whether the message is forwarded, and `octets`, the received bytes, are its header and a part
    /// of its body.
    pub(super) fn passes(&self, header: &MessageHeader, octets: &[u8]) -> bool {
        if header.more_fragments || !self.deposits {
            return false;
        }
        match (header.kind, &self.selector) {
            (MessageType::Request, Some(streams)) if streams.any_passed() => {
                RequestHead::decode(header, octets).is_ok_and(|head| {
                    (head.body_at as usize) < octets.len() && streams.passes(head.key(octets))
                })
            }
            (MessageType::Reply, _) if !self.passed.is_empty() => ReplyHead::decode(header, octets)
                .is_ok_and(|head| (head.at as usize) < octets.len() && self.passed.contains(&head.id)),
            _ => false,
        }
    }
}

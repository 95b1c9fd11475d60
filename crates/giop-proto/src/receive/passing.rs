//! Messages that are passed on as octets, by a gateway: what came with the header of a large one stays where it is, and the rest is read to a
//! buffer of its own. So nothing of it is moved; whoever decodes such a message all the same joins it by a copy.

use giop_codec::giop::{MessageHeader, MessageType, RequestId};

use super::Receiver;
use crate::message::{ReplyHead, RequestHead};

/// Smaller messages that are cut by the end of the window are moved, as all others are: their arguments are copied where they are sent anyway.
pub(super) const PASSED_MIN: usize = 4 * 1024;

impl Receiver {
    /// Says that the reply with that id is passed on.
    pub(crate) fn pass_reply(&mut self, id: RequestId) {
        self.passed.insert(id);
    }

    /// The call with that id is over.
    #[inline]
    pub(super) fn forget_passed_reply(&mut self, id: RequestId) {
        if !self.passed.is_empty() {
            self.passed.remove(&id);
        }
    }

    /// Whether the message, of which `octets` are there, is passed on, and these are its header and some of its body.
    pub(super) fn passes(&self, header: &MessageHeader, octets: &[u8]) -> bool {
        if header.more_fragments || !self.deposits {
            return false;
        }
        match (header.kind, &self.streams) {
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

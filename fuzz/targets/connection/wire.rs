//! A machine's output must be GIOP: complete messages, each of which decodes, and fragments that belong
//! together.

use std::collections::BTreeSet;

use giop_codec::Version;
use giop_codec::cdr::Decoder;
use giop_codec::giop::{Message, MessageHeader, MessageType, RequestId};

/// The output of a machine, without complete messages.
#[derive(Default)]
pub struct Wire {
    tail: Vec<u8>,
    /// Messages whose last fragments are missing.
    open: BTreeSet<RequestId>,
    /// The peer may have used a request id twice: a complete reply may then come between the fragments of
    /// another.
    pub asked_twice: bool,
    /// Bytes in all.
    pub written: u64,
}

impl Wire {
    pub fn wrote(&mut self, octets: &[u8]) {
        self.written += octets.len() as u64;
        self.tail.extend_from_slice(octets);
        let mut at = 0;
        while let Some(start) = self.tail[at..].first_chunk() {
            let header = MessageHeader::decode(start).expect("what it writes is GIOP");
            let Some(message) = self.tail.get(at..at + MessageHeader::LEN + header.size as usize) else {
                break;
            };
            check(&mut self.open, self.asked_twice, header, message);
            at += message.len();
        }
        self.tail.drain(..at);
    }

    /// Returns whether everything that was begun was ended.
    pub fn is_whole(&self) -> bool {
        self.tail.is_empty() && self.open.is_empty()
    }
}

fn check(open: &mut BTreeSet<RequestId>, asked_twice: bool, header: MessageHeader, octets: &[u8]) {
    let mut d = Decoder::new(octets, header.order, header.version).at(MessageHeader::LEN);
    let message = Message::decode(header.kind, &mut d);
    let message = message.unwrap_or_else(|error| panic!("{:?} that it writes: {error}", header.kind));
    assert_eq!(message.kind(), header.kind);
    let id = match &message {
        Message::Fragment(fragment) => {
            assert_eq!(header.version, Version::V1_2, "others are not cut");
            let id = fragment.request_id.expect("GIOP 1.2 has one");
            assert!(open.contains(&id), "a piece of nothing");
            id
        }
        Message::Request(request) => request.request_id,
        Message::Reply(reply) => reply.request_id,
        Message::CancelRequest(cancel) => {
            // The rest of a cancelled request does not follow.
            open.remove(&cancel.request_id);
            return;
        }
        _ => {
            assert!(!header.more_fragments, "{:?} in pieces", header.kind);
            return;
        }
    };
    if header.kind != MessageType::Fragment {
        if asked_twice && header.kind == MessageType::Reply && !header.more_fragments {
            return;
        }
        assert!(!open.contains(&id), "{id} begins again before it ends");
    }
    if header.more_fragments {
        open.insert(id);
    } else {
        open.remove(&id);
    }
}

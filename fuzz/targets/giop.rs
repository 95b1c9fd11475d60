//! GIOP messages from a hostile peer: the bytes alone, and fed to both ends of a connection.
//!
//! Any capture is a seed: there is no prefix, and all variations (splits, answers) are derived from the
//! input. The result of a stream must not depend on how it arrives. Therefore each input runs as a whole and
//! in pieces, and both runs must produce the same story.
#![no_main]

mod small_stack;

mod story;

use bytes::Bytes;
use giop_codec::cdr::{Decoder, Encoder};
use giop_codec::giop::{Message, MessageHeader, ReplyMessage, RequestMessage, finish_message};
use giop_proto::Role;
use libfuzzer_sys::fuzz_target;
use story::{Dice, converse};

fuzz_target!(|data: &[u8]| small_stack::run(256, || fuzz(data)));

fn fuzz(data: &[u8]) {
    decode_alone(data);
    for role in [Role::Client, Role::Server] {
        let whole = converse(role, data, None);
        let pieces = converse(role, data, Some(Dice::new(data)));
        assert_eq!(whole.0, pieces.0, "{role:?}: the story depends on how the octets arrive");
        // Data that is unsent when the peer closes is dropped, and in pieces more is sent before that.
        assert!(pieces.1.starts_with(&whole.1), "{role:?}: the answers depend on how the octets arrive");
    }
}

/// Decodes the first message without a connection. What decodes must survive being encoded again.
fn decode_alone(data: &[u8]) {
    let Some(start) = data.first_chunk() else { return };
    let Ok(header) = MessageHeader::decode(start) else { return };
    assert_eq!(MessageHeader::decode(&header.encode()), Ok(header));
    let octets = Bytes::copy_from_slice(data);
    let mut d = Decoder::from_bytes(&octets, header.order, header.version).at(MessageHeader::LEN);
    if let Ok(message) = Message::decode(header.kind, &mut d) {
        assert_eq!(message.kind(), header.kind);
        for context in &message.contexts() {
            let _ = context.open();
        }
        let mut e = Encoder::new(header.order, header.version);
        if let Ok(size_at) = message.encode(&mut e) {
            finish_message(&mut e, size_at).expect("as long as the input");
            let again = e.into_bytes();
            let mut d = Decoder::from_bytes(&again, header.order, header.version).at(MessageHeader::LEN);
            assert_eq!(Message::decode(header.kind, &mut d).as_ref(), Ok(&message));
        }
    }
    if let Ok(request) = RequestMessage::decode(&header, octets.clone()) {
        let _ =
            (request.object_key(), request.operation(), request.contexts().len(), request.body().remaining());
    }
    if let Ok(reply) = ReplyMessage::decode(&header, octets) {
        let _ = (reply.contexts().len(), reply.body().remaining());
    }
}

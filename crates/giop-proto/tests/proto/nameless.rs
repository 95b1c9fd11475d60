//! Streamed requests in fragments of GIOP 1.1, which do not identify their message.

use crate::util::Cut;
use crate::util::messages::{Ask, cancel, fragmented};
use crate::util::streamed::{ask, body, next, pair, placed};
use giop_codec::Version;
use giop_codec::giop::RequestId;
use giop_proto::{Chunk, CloseReason, ProtocolError};

// clause: giop.fragment.join_1_1, giop.cancel.fragments, giop.fragment.stray
#[test]
fn fragments_without_a_name_end_with_their_request() {
    let old = |id, len| Ask { version: Version::V1_1, ..ask(id, len) };
    let pieces = fragmented(&old(2, 100_000).octets(), 20_000, 20_000);
    for (first, step) in [(20_000, 20_000), (1_024, 1_016), (72, 50_000)] {
        let later = old(6, 100_000);
        let whole = fragmented(&later.octets(), first, step);
        let mut pair = pair(Cut::Whole);
        // A request that is cancelled in its middle, while it is being taken and after it was given up.
        for given_up in [false, true] {
            pair.server.inject(&pieces[..2].concat());
            pair.drive();
            let request = pair.request();
            assert_eq!(request.stream_len(), usize::MAX);
            let token = request.token();
            pair.server.conn.input_mut().open_stream(token, 85_000);
            if given_up {
                assert!(pair.server.conn.stream(token).abandon().is_none());
                pair.server.conn.request(token).finish();
            } else {
                while let Chunk::Bytes(_) = pair.server.conn.stream(token).take_chunk(pair.now) {}
            }
            pair.drive();
            pair.server.inject(&cancel(Version::V1_1, 2));
            pair.drive();
            if !given_up {
                assert_eq!(std::mem::take(&mut pair.server.cancelled), [token]);
                while let Chunk::Bytes(_) = pair.server.conn.stream(token).take_chunk(pair.now) {}
                pair.server.conn.request(token).finish();
            }
            // Another request is received and taken.
            whole.iter().for_each(|piece| pair.server.inject(piece));
            pair.drive();
            let request = pair.request();
            assert_eq!((request.id(), request.stream_len()), (RequestId(6), usize::MAX));
            assert!(placed(&mut pair, &request, 30_000, 100_000) == later.body);
            pair.server.conn.request(request.token()).finish();
            next(&mut pair, 8);
        }
        // A request that is given up is discarded to its end.
        pair.server.inject(&pieces[0]);
        pair.drive();
        let request = pair.request();
        pair.server.conn.request(request.token()).finish();
        pieces[1..].iter().for_each(|piece| pair.server.inject(piece));
        whole.iter().for_each(|piece| pair.server.inject(piece));
        pair.drive();
        let request = pair.request();
        assert!(placed(&mut pair, &request, 30_000, 100_000) == later.body);
        pair.server.conn.request(request.token()).finish();
        next(&mut pair, 10);
        // A fragment of nothing is a protocol violation.
        pair.server.inject(&pieces[1]);
        pair.drive();
        let reason = CloseReason::Protocol(ProtocolError::FragmentOrder);
        assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&reason));
    }
}

#[test]
fn a_second_request_between_fragments_without_a_name_is_no_stream() {
    let old = |id, len| Ask { version: Version::V1_1, ..ask(id, len) };
    let pieces = fragmented(&old(2, 40_000).octets(), 1_024, 20_000);
    let mut pair = pair(Cut::Whole);
    pair.server.inject(&pieces[0]);
    // It could stream, but another request has started.
    pair.server.inject(&ask(4, 100_000).octets());
    pair.drive();
    let request = pair.request();
    assert_eq!((request.stream_len(), request.arguments().rest().len()), (0, 100_000));
    pair.server.conn.request(request.token()).finish();
    pieces[1..].iter().for_each(|piece| pair.server.inject(piece));
    pair.drive();
    let request = pair.request();
    assert_eq!(request.stream_len(), usize::MAX);
    assert!(placed(&mut pair, &request, 9_000, 40_000) == body(40_000));
}

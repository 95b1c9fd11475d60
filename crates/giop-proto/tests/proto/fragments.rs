//! Messages in pieces: both versions that have them, all ways to cut them, and all violations.

use crate::util::messages::{Ask, bare, cancel, fragmented, locate, locate_reply, reply};
use crate::util::{Cut, Pair, every_cut, every_cut_with};
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use giop_codec::giop::{LocateStatus, MessageType, ReplyStatus, RequestId, ResponseFlags};
use giop_codec::{ByteOrder, Version};
use giop_proto::{CallErrorKind, CloseReason, Limits, ProtocolError};

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31) as u8).collect()
}

/// Injects the pieces of a request, as another implementation would send them.
fn inject(pair: &mut Pair, pieces: &[Vec<u8>]) {
    for piece in pieces {
        pair.server.inject(piece);
    }
}

// clause: giop.fragment.join_1_1, giop.fragment.join_1_2, giop.fragment.cut_header, giop.msg.fragment
#[test]
fn a_fragmented_request_is_joined_wherever_it_was_cut() {
    for version in [Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let ask = Ask { version, order, body: body(100), ..Ask::default() };
            let whole = ask.octets();
            for at in 16..whole.len() {
                for step in [1, 8, 24, 1000] {
                    let mut pair = Pair::new(Cut::Whole);
                    inject(&mut pair, &fragmented(&whole, at, step));
                    pair.drive();
                    let request = pair.request();
                    assert!(request.message() == &whole, "{version} cut at {at}, steps of {step}");
                    assert_eq!(request.arguments().rest(), ask.body);
                    assert_eq!((request.id(), request.operation()), (RequestId(ask.id), "ping"));
                }
            }
        }
    }
}

#[test]
fn fragments_arrive_in_any_portions() {
    for version in [Version::V1_1, Version::V1_2] {
        every_cut(|pair| {
            let whole = Ask { version, body: body(80), ..Ask::default() }.octets();
            inject(pair, &fragmented(&whole, 64, 16));
            pair.drive();
            let request = pair.request();
            assert_eq!(request.message(), &whole);
            pair.answer(&request, b"ok");
            pair.drive();
            assert_eq!(pair.server.conn.serving_count(), 0);
        });
    }
}

// clause: giop.fragment.empty_last
#[test]
fn an_empty_last_fragment_ends_the_message() {
    for version in [Version::V1_1, Version::V1_2] {
        let whole = Ask { version, body: body(40), ..Ask::default() }.octets();
        let mut pieces = fragmented(&whole, whole.len() - 8, 8);
        let mut last = pieces.pop().unwrap();
        last[6] |= 2;
        pieces.push(last);
        let mut empty = pieces[1][..if version == Version::V1_2 { 16 } else { 12 }].to_vec();
        empty[6] &= 1;
        let size = empty.len() as u32 - 12;
        empty[8..12].copy_from_slice(&size.to_ne_bytes());
        pieces.push(empty);
        let mut pair = Pair::new(Cut::Whole);
        inject(&mut pair, &pieces);
        pair.drive();
        assert_eq!(pair.request().message(), &whole);
    }
}

// clause: giop.fragment.interleave
#[test]
fn fragments_of_different_requests_may_interleave() {
    every_cut(|pair| {
        let wholes: Vec<_> = (0..3)
            .map(|i| Ask { id: 2 * i, body: body(30 + 8 * i as usize), ..Ask::default() }.octets())
            .collect();
        let mut pieces: Vec<_> = wholes.iter().map(|whole| fragmented(whole, 56, 8).into_iter()).collect();
        let plain = Ask { id: 100, ..Ask::default() }.octets();
        let mut left = true;
        while left {
            left = false;
            for piece in pieces.iter_mut().rev().filter_map(Iterator::next) {
                pair.server.inject(&piece);
                left = true;
            }
            pair.server.inject(&plain);
        }
        pair.drive();
        for (id, whole) in [0, 2, 4].into_iter().zip(&wholes) {
            let found = pair.server.requests.iter().find(|request| request.id() == RequestId(id)).unwrap();
            assert_eq!(found.message(), whole);
        }
        assert!(pair.server.requests.len() > 3);
    });
}

// clause: giop.fragment.join_1_2
#[test]
fn replies_and_locates_may_be_fragmented() {
    every_cut(|pair| {
        let call = pair.call(&Ask::default());
        let located = pair.client.conn.start_call(None, pair.now).unwrap();
        let (id, locate_id) =
            (pair.client.conn.call(call).request_id(), pair.client.conn.call(located).request_id());
        let question = locate(Version::V1_2, locate_id, b"a key that fills more than one piece").into_bytes();
        pair.client.conn.call(located).send_locate(&mut locate(
            Version::V1_2,
            locate_id,
            b"nobody reads this",
        ));
        inject(pair, &fragmented(&question, 32, 8));
        pair.drive();
        pair.server.requests.clear();
        assert_eq!(pair.server.locates[0].key(), b"a key that fills more than one piece");
        let answer = reply(Version::V1_2, id, ReplyStatus::NoException, &body(64)).into_bytes();
        let located_here = locate_reply(Version::V1_2, locate_id, LocateStatus::ObjectHere).into_bytes();
        for piece in fragmented(&answer, 24, 8).iter().chain(&fragmented(&located_here, 16, 8)) {
            pair.client.inject(piece);
        }
        pair.drive();
        assert_eq!(pair.client.outcome(call).unwrap().message(), &answer);
        assert_eq!(pair.client.outcome(located).unwrap().locate_status(), Some(LocateStatus::ObjectHere));
    });
}

#[test]
fn a_stream_of_many_small_fragments_becomes_one_large_message() {
    for version in [Version::V1_1, Version::V1_2] {
        let ask = Ask { version, body: body(300_000), ..Ask::default() };
        let whole = ask.octets();
        for cut in [Cut::Whole, Cut::At(4099), Cut::At(70_001)] {
            let mut pair = Pair::new(cut);
            inject(&mut pair, &fragmented(&whole, 4096, 4080));
            pair.drive();
            let request = pair.request();
            assert!(request.message() == &whole);
            // Decoded values are views of the joined message.
            assert!(request.arguments().rest() == ask.body);
        }
    }
}

#[test]
fn pieces_of_giop_1_1_are_told_where_they_matter() {
    let whole = Ask { version: Version::V1_1, body: body(100), ..Ask::default() }.octets();
    for at in 60..76 {
        let mut pair = Pair::new(Cut::Whole);
        inject(&mut pair, &fragmented(&whole, at, 32));
        pair.drive();
        let request = pair.request();
        let starts: Vec<u32> = (at..whole.len()).step_by(32).map(|start| start as u32).collect();
        assert_eq!(request.fragment_offsets(), if at % 8 == 4 { &[][..] } else { &starts });
    }
    let whole = Ask { body: body(100), ..Ask::default() }.octets();
    let mut pair = Pair::new(Cut::Whole);
    inject(&mut pair, &fragmented(&whole, 64, 32));
    pair.drive();
    assert!(pair.request().fragment_offsets().is_empty(), "in GIOP 1.2 all agree");
}

// clause: giop.fragment.alignment_1_1
#[test]
fn values_in_giop_1_1_fragments_are_aligned_as_omniorb_aligns_them() {
    // Three bytes, padded to a first piece of a multiple of 8. Then values that omniORB aligns from the
    // header of their own fragment: a double after 4 bytes, a short and a long long after 2.
    let mut first = Ask { version: Version::V1_1, order: ByteOrder::Big, ..Ask::default() }.octets();
    first.extend_from_slice(&[7; 3]);
    while !first.len().is_multiple_of(8) {
        first.push(9);
    }
    let filled = first.len();
    let fragment = |payload: &[&[u8]], more: u8| {
        let payload = payload.concat();
        let mut octets = b"GIOP\x01\x01\x00\x07".to_vec();
        octets[6] |= more;
        octets.extend_from_slice(&(payload.len() as u32).to_be_bytes());
        octets.extend_from_slice(&payload);
        octets
    };
    first[6] |= 2;
    let size = filled as u32 - 12;
    first[8..12].copy_from_slice(&size.to_be_bytes());
    let stream = [
        first,
        fragment(&[&[0; 4], &2.5f64.to_be_bytes()], 2),
        fragment(&[&5u16.to_be_bytes(), &[0; 2], &6u64.to_be_bytes()], 0),
    ]
    .concat();
    every_cut(|pair| {
        pair.server.inject(&stream);
        pair.drive();
        let request = pair.request();
        assert_eq!(request.fragment_offsets(), [filled as u32, filled as u32 + 12]);
        let mut arguments = request.arguments();
        assert_eq!(arguments.take(3).unwrap(), [7; 3]);
        let fill = filled - arguments.position();
        arguments.take(fill).unwrap();
        assert_eq!(arguments.read_f64().unwrap(), 2.5);
        assert_eq!(arguments.read_u16().unwrap(), 5);
        assert_eq!(arguments.read_u64().unwrap(), 6);
        assert!(arguments.read_u8().is_err());
    });
}

// clause: giop.fragment.limits
#[test]
fn too_many_open_messages_end_the_connection() {
    let mut limits = Limits::default();
    limits.max_fragmented = 3;
    every_cut_with(Limits::default(), limits, |pair| {
        for i in 0..4 {
            let whole = Ask { id: i, body: body(20), ..Ask::default() }.octets();
            pair.server.inject(&fragmented(&whole, 56, 8)[0]);
        }
        pair.drive();
        let expected = CloseReason::Protocol(ProtocolError::TooManyFragmented { limit: 3 });
        assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&expected));
        assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::PeerMessageError));
    });
}

// clause: giop.fragment.limits
#[test]
fn too_many_octets_in_open_messages_end_the_connection() {
    let mut limits = Limits::default();
    limits.max_fragment_memory = 1000;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    for i in 0..6 {
        let whole = Ask { id: i, body: body(300), ..Ask::default() }.octets();
        pair.server.inject(&fragmented(&whole, 200, 8)[0]);
    }
    pair.drive();
    let expected = CloseReason::Protocol(ProtocolError::FragmentMemory { limit: 1000 });
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&expected));
}

#[test]
fn a_request_whose_fragments_are_too_much_is_refused_and_the_connection_goes_on() {
    let mut limits = Limits::default();
    limits.max_message_size = 200;
    every_cut_with(Limits::default(), limits, |pair| {
        let large = pair.client.conn.start_call(None, pair.now).unwrap();
        let id = pair.client.conn.call(large).request_id().0;
        pair.client.conn.call(large).send_request(&mut Ask::default().encoder()); // stands for the fragments
        pair.client.awake = false;
        let whole = Ask { id, body: body(300), ..Ask::default() }.octets();
        inject(pair, &fragmented(&whole, 56, 24));
        let next = Ask { id: 1000, ..Ask::default() }.octets();
        pair.server.inject(&next);
        pair.drive();
        assert_eq!(pair.request().id(), RequestId(1000));
        assert!(!pair.server.conn.lifecycle().is_closing());
        pair.client.awake = true;
        pair.drive();
        let refused = pair.client.outcome(large).unwrap();
        assert_eq!(refused.status(), ReplyStatus::SystemException);
        let exception: SystemException = giop_codec::cdr::CdrDecode::decode(&mut refused.body()).unwrap();
        assert_eq!(
            (exception.kind, exception.completed),
            (SystemExceptionKind::ImpLimit, CompletionStatus::No)
        );
    });
}

#[test]
fn other_messages_whose_fragments_are_too_much_end_the_connection() {
    let mut limits = Limits::default();
    limits.max_message_size = 200;
    let mut pair = Pair::with_limits(Cut::Whole, limits.clone(), limits);
    let whole = Ask { version: Version::V1_1, body: body(300), ..Ask::default() }.octets();
    inject(&mut pair, &fragmented(&whole, 56, 24));
    pair.drive();
    assert!(matches!(
        pair.server.conn.lifecycle().close_reason(),
        Some(CloseReason::Protocol(ProtocolError::TooLarge { limit: 200, .. }))
    ));
}

// clause: giop.cancel.fragments
#[test]
fn a_half_sent_request_is_thrown_away_when_it_is_cancelled() {
    for version in [Version::V1_1, Version::V1_2] {
        every_cut(|pair| {
            let whole = Ask { version, id: 6, body: body(50), ..Ask::default() }.octets();
            let pieces = fragmented(&whole, 64, 8);
            inject(pair, &pieces[..2]);
            pair.server.inject(&cancel(version, 6));
            // The id is free again.
            inject(pair, &pieces);
            pair.drive();
            assert_eq!(pair.request().message(), &whole);
            assert!(pair.server.requests.is_empty() && pair.server.cancelled.is_empty());
        });
    }
}

// clause: giop.fragment.stray
#[test]
fn fragments_of_nothing_are_ignored_in_giop_1_2_and_fatal_in_1_1() {
    let pieces = |version| fragmented(&Ask { version, body: body(50), ..Ask::default() }.octets(), 64, 16);
    let mut pair = Pair::new(Cut::Whole);
    inject(&mut pair, &pieces(Version::V1_2)[1..]);
    pair.drive();
    assert!(!pair.server.conn.lifecycle().is_closing());
    assert_eq!(pair.server.conn.stats().stray_messages as usize, pieces(Version::V1_2).len() - 1);
    inject(&mut pair, &pieces(Version::V1_1)[1..]);
    pair.drive();
    assert_eq!(
        pair.server.conn.lifecycle().close_reason(),
        Some(&CloseReason::Protocol(ProtocolError::FragmentOrder))
    );
}

// clause: giop.fragment.same
#[test]
fn fragments_must_be_like_their_message() {
    for (octet, value) in [(5, 1), (6, 2)] {
        let mut pieces =
            fragmented(&Ask { order: ByteOrder::Little, body: body(50), ..Ask::default() }.octets(), 64, 8);
        pieces[1][octet] = value;
        if octet == 6 {
            pieces[1][8..12].reverse(); // the size in the other order
            pieces[1][12..16].reverse(); // and the id
        }
        let mut pair = Pair::new(Cut::Whole);
        inject(&mut pair, &pieces);
        pair.drive();
        let expected =
            if octet == 5 { ProtocolError::FragmentOrder } else { ProtocolError::FragmentMismatch };
        assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::Protocol(expected)));
    }
}

// clause: giop.fragment.not_fragmentable
#[test]
fn messages_that_can_not_be_fragmented_end_the_connection() {
    for (version, kind) in
        [(Version::V1_2, MessageType::CancelRequest), (Version::V1_1, MessageType::LocateRequest)]
    {
        let mut octets = bare(version, kind);
        octets[6] |= 2;
        octets.extend_from_slice(&[0; 4]);
        octets[8..12].copy_from_slice(&4u32.to_ne_bytes());
        let mut pair = Pair::new(Cut::Whole);
        pair.server.inject(&octets);
        pair.drive();
        let expected = CloseReason::Protocol(ProtocolError::NotFragmentable(kind));
        assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&expected));
    }
}

#[test]
fn fragments_of_a_cancelled_reply_take_no_memory() {
    let mut limits = Limits::default();
    limits.max_fragment_memory = 100;
    every_cut_with(limits, Limits::default(), |pair| {
        let call = pair.call(&Ask::default());
        let id = pair.client.conn.call(call).request_id();
        pair.drive();
        pair.client.conn.call(call).cancel();
        let answer = reply(Version::V1_2, id, ReplyStatus::NoException, &body(500)).into_bytes();
        for piece in fragmented(&answer, 24, 24) {
            pair.client.inject(&piece);
        }
        pair.drive();
        assert!(!pair.client.conn.lifecycle().is_closing());
        assert_eq!(pair.client.conn.pending_call_count(), 0);
    });
}

#[test]
fn a_fragmented_oneway_over_the_limit_gets_no_answer() {
    let mut limits = Limits::default();
    limits.max_message_size = 200;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    let whole = Ask { response: ResponseFlags::None, body: body(300), ..Ask::default() }.octets();
    inject(&mut pair, &fragmented(&whole, 56, 24));
    pair.drive();
    assert_eq!((pair.server.conn.stats().messages_out, pair.server.conn.stats().requests_refused), (0, 1));
    assert!(!pair.server.conn.lifecycle().is_closing());
}

#[test]
fn a_lost_reply_of_fragments_fails_its_call() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    pair.drive();
    let answer =
        reply(Version::V1_2, pair.client.conn.call(call).request_id(), ReplyStatus::NoException, &body(50))
            .into_bytes();
    pair.client.inject(&fragmented(&answer, 24, 8)[0]);
    pair.drive();
    pair.client.eof = true;
    pair.drive();
    assert!(matches!(pair.client.outcome(call).unwrap_err().kind, CallErrorKind::Lost(_)));
}

//! Messages that this side sends in pieces: the data on the wire, messages between pieces, and cancellation.

use std::time::Duration;

use crate::util::cutting::{messages, pair_cutting, read, write_all, write_some};
use crate::util::messages::{Ask, cancel, reply};
use crate::util::streamed::body;
use crate::util::{Cut, Pair};
use giop_codec::exception::CompletionStatus;
use giop_codec::giop::{MessageHeader, MessageType, ReplyStatus, RequestId, ResponseFlags};
use giop_codec::{ByteOrder, Version};
use giop_proto::{CallErrorKind, CallId, CloseReason, SentPart};
use proptest::prelude::*;

const KIB: usize = 1024;

fn header(message: &[u8]) -> MessageHeader {
    MessageHeader::decode(message.first_chunk().unwrap()).unwrap()
}

/// Returns the client's request as it must be after its pieces are joined.
fn whole(pair: &mut Pair, call: CallId, ask: &Ask) -> Vec<u8> {
    Ask { id: pair.client.conn.call(call).request_id().0, ..ask.clone() }.octets()
}

// clause: giop.fragment.send, giop.fragment.send_header_whole, giop.fragment.send_multiple_of_8
#[test]
fn pieces_are_multiples_of_8_and_the_first_has_the_whole_header() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for size in [0, 24, 31, 32, 48, 100, 1000] {
            for len in [0, 1, 7, 8, 9, 100, 1001] {
                let mut pair = pair_cutting(Cut::Whole, size);
                let ask = Ask { order, body: body(len), ..Ask::default() };
                let call = pair.call(&ask);
                let expected = whole(&mut pair, call, &ask);
                let pieces = write_all(&mut pair.client, pair.now);
                let (last, others) = pieces.split_last().unwrap();
                let mut joined = Vec::new();
                for (at, piece) in pieces.iter().enumerate() {
                    let is = header(piece);
                    assert_eq!((is.version, is.order), (Version::V1_2, order));
                    assert_eq!(is.kind, if at == 0 { MessageType::Request } else { MessageType::Fragment });
                    assert_eq!(is.more_fragments, at + 1 < pieces.len());
                    assert_eq!(piece[12..16], expected[12..16], "all of them carry the id");
                    joined.extend_from_slice(&piece[if at == 0 { 0 } else { 16 }..]);
                }
                assert_eq!(joined[12..], expected[12..]);
                let most = (size & !7).max(24);
                assert!(others.iter().all(|piece| piece.len() % 8 == 0), "{size} {len}");
                assert!(pieces.iter().skip(1).all(|piece| piece.len() <= most));
                assert!(last.len() > 16 || pieces.len() == 1, "no piece is empty");
                // The header of this request ends at byte 48.
                assert!(pieces[0].len() <= most.max(48));
                assert_eq!(pieces.len() == 1, expected.len() <= most.max(48), "{size} {len}");
            }
        }
    }
}

// clause: giop.fragment.send_never_old
#[test]
fn only_large_messages_of_giop_1_2_are_cut() {
    for (version, len, count) in
        [(Version::V1_0, 500, 1), (Version::V1_1, 500, 1), (Version::V1_2, 10, 1), (Version::V1_2, 500, 5)]
    {
        let mut pair = pair_cutting(Cut::Whole, 128);
        pair.call(&Ask { version, body: body(len), ..Ask::default() });
        assert_eq!(write_all(&mut pair.client, pair.now).len(), count, "{version} {len}");
    }
    let mut pair = Pair::new(Cut::Whole);
    pair.call(&Ask { body: body(500 * KIB), ..Ask::default() });
    assert_eq!(write_all(&mut pair.client, pair.now).len(), 1, "it is an option");
}

// clause: giop.msg.fragment, giop.fragment.join_1_2
#[test]
fn requests_oneways_and_replies_are_joined_at_every_size() {
    for size in (24..400).step_by(8).chain([1000, 4096, 70_000]) {
        let mut pair = pair_cutting(Cut::Whole, size);
        for len in [0, 100, 333, 5000, 250 * size.min(1000)] {
            let ask = Ask { body: body(len), ..Ask::default() };
            let call = pair.call(&ask);
            let oneway = Ask { id: 9999, response: ResponseFlags::None, ..ask.clone() };
            pair.client.conn.send_oneway(&mut oneway.encoder()).unwrap();
            pair.drive();
            let (mut first, mut second) = (pair.request(), pair.request());
            if first.id() == RequestId(9999) {
                std::mem::swap(&mut first, &mut second); // nothing overtakes a oneway, but it may overtake
            }
            assert!(first.message() == &whole(&mut pair, call, &ask), "size {size}, {len} octets");
            assert!(second.message() == &oneway.octets(), "size {size}, {len} octets");
            pair.answer(&first, &ask.body);
            pair.server.conn.request(second.token()).finish();
            pair.drive();
            let answer = pair.client.outcome(call).unwrap();
            assert!(answer.body().rest() == ask.body, "size {size}, {len} octets");
        }
        assert_eq!(
            (pair.client.conn.stats().stray_messages, pair.server.conn.stats().stray_messages),
            (0, 0)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_cut_is_joined(
        size in 0usize..5000,
        lens in prop::collection::vec(0usize..20_000, 1..7),
        cut in 1usize..40_000,
        takes in prop::collection::vec(1usize..9000, 1..20),
        big in any::<bool>(),
    ) {
        let mut pair = pair_cutting(Cut::At(cut), size);
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let asks: Vec<Ask> = lens.iter().map(|len| Ask { order, body: body(*len), ..Ask::default() }).collect();
        let mut calls = Vec::new();
        // The socket accepts this many bytes between two requests.
        for (ask, take) in asks.iter().zip(takes.iter().cycle()) {
            calls.push(pair.call(ask));
            let octets = write_some(&mut pair.client.conn, *take, pair.now);
            pair.server.inject(&octets);
        }
        pair.drive();
        let mut requests = std::mem::take(&mut pair.server.requests);
        prop_assert_eq!(requests.len(), asks.len());
        for (ask, call) in asks.iter().zip(&calls) {
            let id = pair.client.conn.call(*call).request_id();
            let request = requests.iter().find(|request| request.id() == id).unwrap();
            prop_assert!(request.message() == &whole(&mut pair, *call, ask));
        }
        for (request, take) in requests.drain(..).zip(takes.iter().cycle()) {
            let content = request.arguments().rest().to_vec();
            pair.answer(&request, &content);
            let octets = write_some(&mut pair.server.conn, *take, pair.now);
            pair.client.inject(&octets);
        }
        pair.drive();
        for (ask, call) in asks.iter().zip(&calls) {
            prop_assert!(pair.client.outcome(*call).unwrap().body().rest() == ask.body);
        }
        prop_assert_eq!(pair.client.conn.output().backlog() + pair.server.conn.output().backlog(), 0);
    }
}

#[test]
fn bulk_data_is_cut_and_not_copied() {
    let mut pair = pair_cutting(Cut::Whole, 64 * KIB);
    let call = pair.call(&Ask { body: body(10 * KIB * KIB), ..Ask::default() });
    assert_eq!(
        pair.client.conn.output().backlog(),
        10 * KIB * KIB + 48 + 3 * 16,
        "its pieces count before they are queued"
    );
    while pair.client.conn.has_output() {
        let octets = write_some(&mut pair.client.conn, 300 * KIB, pair.now);
        pair.server.inject(&octets);
    }
    assert!(pair.client.conn.stats().writes <= 80, "{}", pair.client.conn.stats().writes);
    let copied = pair.client.conn.stats().bytes_copied_out;
    assert!(copied < 8 * KIB as u64, "{copied} octets for headers");
    pair.drive();
    let request = pair.request();
    assert!(request.arguments().rest() == body(10 * KIB * KIB));
    assert!(pair.client.conn.call(call).take_outcome().is_none());
}

// clause: giop.fragment.interleave
#[test]
fn small_messages_leave_between_the_pieces_of_large_ones() {
    let mut pair = pair_cutting(Cut::Whole, 64 * KIB);
    let large = pair.call(&Ask { body: body(2000 * KIB), ..Ask::default() });
    let small = pair.call(&Ask::default());
    let late = write_some(&mut pair.client.conn, 300 * KIB, pair.now);
    pair.server.inject(&late);
    pair.client.awake = false;
    pair.drive();
    let request = pair.request();
    assert_eq!(request.id(), pair.client.conn.call(small).request_id());
    pair.answer(&request, b"ok");
    pair.client.awake = true;
    pair.drive();
    assert!(pair.client.outcome(small).is_ok());
    assert_eq!(pair.request().id(), pair.client.conn.call(large).request_id());
}

// clause: giop.fragment.interleave
#[test]
fn many_large_messages_take_turns_and_never_more_at_a_time_than_receivers_take() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    let asks: Vec<Ask> = (0..40).map(|i| Ask { body: body(600 * KIB + i), ..Ask::default() }).collect();
    let calls: Vec<_> = asks.iter().map(|ask| pair.call(ask)).collect();
    let (mut open, mut most, mut turns) = (Vec::new(), 0, 0);
    let pieces = write_all(&mut pair.client, pair.now);
    for piece in &pieces {
        let id = piece[12..16].to_vec();
        turns += usize::from(open.last() != Some(&id));
        open.retain(|other| *other != id);
        if header(piece).more_fragments {
            open.push(id);
        }
        most = most.max(open.len());
        pair.server.inject(piece);
    }
    assert!(most > 1 && most <= 4, "{most}");
    assert!(turns > 3000, "{turns}");
    pair.drive();
    assert!(!pair.server.conn.lifecycle().is_closing());
    for (ask, call) in asks.iter().zip(&calls) {
        assert!(
            pair.request().message() == &whole(&mut pair, *call, ask),
            "they come in the order of their ends"
        );
    }
}

#[test]
fn nothing_overtakes_a_oneway() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    let oneway = Ask { id: 77, response: ResponseFlags::None, body: body(900 * KIB), ..Ask::default() };
    pair.client.conn.send_oneway(&mut oneway.encoder()).unwrap();
    let call = pair.call(&Ask::default());
    pair.drive();
    assert!(pair.request().message() == &oneway.octets());
    assert_eq!(pair.request().id(), pair.client.conn.call(call).request_id());
}

#[test]
fn a_request_of_which_nothing_left_is_taken_back() {
    for (first, len) in [(false, 100), (true, 100), (false, 1000), (true, 1000)] {
        let mut pair = pair_cutting(Cut::Whole, 64 * KIB);
        let large = Ask { body: body(len * KIB), ..Ask::default() };
        let before = first.then(|| pair.call(&Ask::default()));
        let call = pair.call(&large);
        pair.client.conn.call(call).cancel();
        let sent = write_all(&mut pair.client, pair.now);
        assert_eq!(sent.len(), usize::from(before.is_some()));
        assert_eq!(pair.client.conn.output().backlog(), 0);
        assert_eq!(pair.client.conn.stats().cancels_out, 0);
    }
}

// clause: giop.msg.cancel_request, giop.cancel.fragments, giop.fragment.send_cancelled
#[test]
fn a_cancel_stops_the_rest_of_a_request_and_the_peer_throws_its_start_away() {
    for taken in [1, 100, 5000, 200_000, 700_000] {
        let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
        let call = pair.call(&Ask { body: body(1000 * KIB), ..Ask::default() });
        let id = pair.client.conn.call(call).request_id();
        let mut stream = write_some(&mut pair.client.conn, taken, pair.now);
        pair.client.conn.call(call).cancel();
        let next = pair.call(&Ask::default());
        stream.extend(write_some(&mut pair.client.conn, usize::MAX, pair.now));
        assert!(stream.len() < taken + 300 * KIB, "the rest does not leave");
        let sent = messages(&stream);
        let (last, others) = sent.split_last().unwrap();
        assert_eq!(header(last).kind, MessageType::Request);
        let (cancelled, pieces) = others.split_last().unwrap();
        assert_eq!(cancelled, &cancel(Version::V1_2, id.0));
        assert!(pieces.iter().all(|piece| header(piece).more_fragments));
        pair.server.inject(&stream);
        pair.drive();
        assert_eq!(pair.request().id(), pair.client.conn.call(next).request_id());
        assert!(pair.server.requests.is_empty() && pair.server.cancelled.is_empty());
        assert_eq!(pair.server.conn.stats().stray_messages, 0);
        // Nothing with a timeout is left.
        pair.wait(Duration::from_secs(100));
        assert!(!pair.server.conn.lifecycle().is_closing());
    }
}

#[test]
fn what_was_queued_between_pieces_is_not_taken_back_with_them() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    let large = pair.call(&Ask { body: body(5 * KIB), ..Ask::default() });
    let other = pair.call(&Ask { body: body(5 * KIB), ..Ask::default() });
    pair.client.conn.call(large).cancel();
    pair.drive();
    let ids: Vec<_> = pair.server.requests.iter().map(|request| request.id()).collect();
    assert!(ids.contains(&pair.client.conn.call(other).request_id()), "{ids:?}");
}

#[test]
fn a_cancelled_request_whose_pieces_stand_apart_does_not_take_others_with_it() {
    let mut pair = pair_cutting(Cut::Whole, 128 * KIB);
    let large = pair.call(&Ask { body: body(400 * KIB), ..Ask::default() });
    let small = pair.call(&Ask::default());
    // The last pieces are queued after the small request, and nothing of them is written.
    let start = write_some(&mut pair.client.conn, 200 * KIB, pair.now);
    pair.client.conn.call(large).cancel();
    pair.server.inject(&start);
    pair.drive();
    let ids: Vec<_> = pair.server.requests.iter().map(|request| request.id()).collect();
    assert!(ids.contains(&pair.client.conn.call(small).request_id()), "{ids:?}");
    assert!(!pair.server.conn.lifecycle().is_closing());
}

// clause: giop.msg.cancel_request
#[test]
fn a_cancelled_reply_ends_at_once() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    let call = pair.call(&Ask::default());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, &body(1000 * KIB));
    let start = write_some(&mut pair.server.conn, 10 * KIB, pair.now);
    pair.client.inject(&start);
    pair.client.conn.call(call).cancel();
    pair.drive();
    assert_eq!(pair.server.conn.stats().stray_messages, 0, "the cancel is for the reply that is under way");
    assert!(pair.client.read < 700 * KIB, "{}", pair.client.read);
    assert!(pair.client.read > 200 * KIB, "what is queued leaves");
    assert_eq!(pair.server.conn.output().backlog(), 0);
    pair.wait(Duration::from_secs(100));
    assert!(!pair.client.conn.lifecycle().is_closing(), "no piece is awaited");
    let next = pair.call(&Ask::default());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, b"ok");
    pair.drive();
    assert!(pair.client.outcome(next).is_ok());
}

// clause: giop.fragment.empty_last
#[test]
fn the_last_piece_of_a_cancelled_reply_is_empty() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    pair.server.inject(&Ask { id: 6, ..Ask::default() }.octets());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, &body(1000 * KIB));
    let mut stream = write_some(&mut pair.server.conn, 100, pair.now);
    read(&mut pair.server, &cancel(Version::V1_2, 6), pair.now);
    stream.extend(write_some(&mut pair.server.conn, usize::MAX, pair.now));
    let sent = messages(&stream);
    let (last, others) = sent.split_last().unwrap();
    assert_eq!(
        (last.len(), header(last).kind, header(last).more_fragments),
        (16, MessageType::Fragment, false)
    );
    assert!(others.iter().all(|piece| header(piece).more_fragments));
}

#[test]
fn a_reply_of_which_nothing_left_is_taken_back_when_it_is_cancelled() {
    let mut pair = pair_cutting(Cut::Whole, 64 * KIB);
    pair.server.inject(&Ask { id: 6, ..Ask::default() }.octets());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, &body(1000 * KIB));
    read(&mut pair.server, &cancel(Version::V1_2, 6), pair.now);
    assert_eq!(write_all(&mut pair.server, pair.now), Vec::<Vec<u8>>::new());
    assert_eq!((pair.server.conn.stats().requests_unqueued, pair.server.conn.output().backlog()), (1, 0));
}

// clause: exc.completed.nothing_sent
#[test]
fn a_call_that_expires_while_its_request_leaves_was_not_executed() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    let deadline = pair.now + Duration::from_secs(1);
    let call = pair.client.conn.start_call(Some(deadline), pair.now).unwrap();
    let id = pair.client.conn.call(call).request_id().0;
    pair.client
        .conn
        .call(call)
        .send_request(&mut Ask { id, body: body(1000 * KIB), ..Ask::default() }.encoder());
    let start = write_some(&mut pair.client.conn, 100 * KIB, pair.now);
    pair.server.inject(&start);
    pair.wait(Duration::from_secs(2));
    let error = pair.client.outcome(call).unwrap_err();
    assert_eq!((error.kind, error.sent), (CallErrorKind::Timeout, SentPart::Partly));
    assert_eq!(error.completed(), CompletionStatus::No);
    assert!(pair.server.requests.is_empty());
    assert!(!pair.client.conn.lifecycle().is_closing());
}

#[test]
fn a_connection_is_closed_in_good_order_behind_the_last_piece() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    let call = pair.call(&Ask { body: body(700 * KIB), ..Ask::default() });
    pair.drive();
    let request = pair.request();
    pair.answer(&request, &body(1000 * KIB));
    let now = pair.now;
    pair.server.conn.close(now);
    pair.drive();
    assert!(pair.client.outcome(call).unwrap().body().rest() == body(1000 * KIB));
    assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::PeerClosed));
}

#[test]
fn a_connection_that_is_lost_fails_the_calls_whose_pieces_wait() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    let calls: Vec<_> =
        (0..9).map(|_| pair.call(&Ask { body: body(1000 * KIB), ..Ask::default() })).collect();
    let _ = write_some(&mut pair.client.conn, 10 * KIB, pair.now);
    let now = pair.now;
    pair.client.conn.handle_eof(now);
    pair.client.poll();
    let sent: Vec<_> = calls.iter().map(|call| pair.client.outcome(*call).unwrap_err().sent).collect();
    assert_eq!(sent[0], SentPart::Partly);
    assert!(sent[1..].iter().all(|sent| *sent == SentPart::Nothing), "{sent:?}");
    assert_eq!(pair.client.conn.output().backlog(), 0);
}

#[test]
fn a_message_with_the_id_of_one_under_way_leaves_whole() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    for _ in 0..2 {
        pair.server.inject(&Ask { id: 6, ..Ask::default() }.octets());
    }
    pair.drive();
    for _ in 0..2 {
        let request = pair.request();
        pair.server.conn.request(request.token()).send_reply(&mut reply(
            Version::V1_2,
            RequestId(6),
            ReplyStatus::NoException,
            &body(500 * KIB),
        ));
    }
    let sent = write_all(&mut pair.server, pair.now);
    let whole = sent
        .iter()
        .filter(|message| header(message).kind == MessageType::Reply && !header(message).more_fragments);
    assert_eq!(whole.count(), 1, "fragments of both could not be told apart");
}

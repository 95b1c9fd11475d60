//! Replies that are sent before they are complete: the data on the wire, messages between pieces,
//! back-pressure and cancellation.

use std::sync::Arc;
use std::time::Duration;

use crate::util::cutting::{messages, pair_cutting, read, write_all, write_some};
use crate::util::messages::{Ask, cancel};
use crate::util::streamed::body;
use crate::util::{Cut, Pair};
use bytes::Bytes;
use giop_codec::cdr::Encoder;
use giop_codec::exception::CompletionStatus;
use giop_codec::giop::{
    MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestId, begin_body, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use giop_proto::{
    BufferPool, CallErrorKind, CallId, CloseReason, Config, IncomingRequest, Limits, ReplyRoom, Role,
    ServeToken,
};
use proptest::prelude::*;

const KIB: usize = 1024;

/// The number of bytes of a reply before its body.
const HEAD: usize = 24;

fn header(message: &[u8]) -> MessageHeader {
    MessageHeader::decode(message.first_chunk().unwrap()).unwrap()
}

/// Returns the start of a reply, without its length.
fn start(id: RequestId, order: ByteOrder, octets: &[u8]) -> Encoder {
    let mut e = Encoder::new(order, Version::V1_2);
    put_message_header(&mut e, MessageType::Reply);
    ReplyHeader::new(id, ReplyStatus::NoException).encode(&mut e).unwrap();
    begin_body(&mut e);
    e.put_raw(octets);
    e
}

/// A reply in progress.
struct Growing {
    token: ServeToken,
    encoder: Encoder,
    rest: Bytes,
}

impl Growing {
    /// Starts a reply whose body is `octets`.
    fn begin(pair: &mut Pair, request: &IncomingRequest, octets: &[u8]) -> Self {
        let first = pair.server.conn.output().reply_piece_size() + 1;
        let mut encoder = start(request.id(), ByteOrder::NATIVE, &octets[..first]);
        assert_eq!(
            pair.server.conn.request(request.token()).begin_reply(&mut encoder, HEAD),
            ReplyRoom::Room
        );
        assert!(encoder.head().is_empty());
        assert_eq!(encoder.position(), HEAD + first, "it goes on with the message");
        Self { token: request.token(), encoder, rest: Bytes::copy_from_slice(&octets[first..]) }
    }

    /// Supplies the next bytes, or all of them if there are fewer. Returns whether these were the last.
    fn give(&mut self, pair: &mut Pair, octets: usize, shared: bool) -> bool {
        let piece = self.rest.split_to(octets.min(self.rest.len()));
        if shared {
            self.encoder.put_shared(piece)
        } else {
            self.encoder.put_raw(&piece)
        }
        let last = self.rest.is_empty();
        pair.server.conn.request(self.token).continue_reply(&mut self.encoder, last);
        if last {
            pair.server.conn.request(self.token).finish();
        }
        last
    }
}

/// Starts a call of the client, and takes its request at the server.
fn called(pair: &mut Pair) -> (CallId, IncomingRequest) {
    let call = pair.call(&Ask::default());
    pair.drive();
    (call, pair.request())
}

/// Returns the joined body of fragments.
fn joined(pieces: &[Vec<u8>]) -> Vec<u8> {
    pieces
        .iter()
        .enumerate()
        .flat_map(|(at, piece)| piece[if at == 0 { HEAD } else { 16 }..].to_vec())
        .collect()
}

// clause: giop.fragment.send_growing, giop.fragment.send_multiple_of_8, giop.fragment.send_header_whole
#[test]
fn growing_reply_is_sent_before_its_length_is_known() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for (size, len) in
            [(64, 200), (100, 97), (1000, 5000), (usize::MAX, 64 * KIB + 1), (usize::MAX, 300 * KIB)]
        {
            let mut pair = pair_cutting(Cut::Whole, size);
            let (_, request) = called(&mut pair);
            let octets = body(len);
            let first = pair.server.conn.output().reply_piece_size();
            assert_eq!(first, (size & !7).min(64 * KIB));
            let mut e = start(request.id(), order, &octets[..first + 1]);
            assert_eq!(pair.server.conn.request(request.token()).begin_reply(&mut e, HEAD), ReplyRoom::Room);
            let begun = write_all(&mut pair.server, pair.now);
            assert_eq!(begun.len(), 1, "the first piece leaves");
            assert_eq!((begun[0].len(), header(&begun[0]).more_fragments), (first, true));
            e.put_raw(&octets[first + 1..]);
            pair.server.conn.request(request.token()).continue_reply(&mut e, true);
            let mut pieces = begun;
            pieces.extend(write_all(&mut pair.server, pair.now));
            let (last, others) = pieces.split_last().unwrap();
            assert!(others.iter().all(|piece| piece.len() == first && header(piece).more_fragments));
            assert!(!header(last).more_fragments && last.len() > 16, "no piece is empty");
            for (at, piece) in pieces.iter().enumerate() {
                let is = header(piece);
                assert_eq!(
                    (is.version, is.order, is.size as usize),
                    (Version::V1_2, order, piece.len() - 12)
                );
                assert_eq!(is.kind, if at == 0 { MessageType::Reply } else { MessageType::Fragment });
                assert_eq!(piece[12..16], pieces[0][12..16]);
            }
            assert!(joined(&pieces) == octets, "{size} {len}");
            assert_eq!(pair.server.conn.serving_count(), 1, "the request ends apart");
            pair.server.conn.request(request.token()).finish();
            assert_eq!((pair.server.conn.serving_count(), pair.server.conn.output().backlog()), (0, 0));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_it_is_given_in_it_is_the_same_message(
        size in 24usize..3000,
        lens in prop::collection::vec(3001usize..20_000, 1..5),
        gives in prop::collection::vec(0usize..9000, 1..20),
        shared in any::<bool>(),
        cut in 1usize..40_000,
        takes in prop::collection::vec(1usize..9000, 1..20),
    ) {
        let mut pair = pair_cutting(Cut::At(cut), size);
        let calls: Vec<_> = lens.iter().map(|_| pair.call(&Ask::default())).collect();
        pair.drive();
        let mut growing: Vec<_> = lens
            .iter()
            .map(|len| {
                let request = pair.request();
                Growing::begin(&mut pair, &request, &body(*len))
            })
            .collect();
        let mut next = gives.iter().cycle().zip(takes.iter().cycle());
        while !growing.is_empty() {
            growing.retain_mut(|growing| {
                let (give, take) = next.next().unwrap();
                let given = growing.give(&mut pair, give + 1, shared);
                let octets = write_some(&mut pair.server.conn, *take, pair.now);
                pair.client.inject(&octets);
                !given
            });
        }
        pair.drive();
        for (call, len) in calls.iter().zip(&lens) {
            prop_assert!(pair.client.outcome(*call).unwrap().body().rest() == body(*len));
        }
        prop_assert_eq!((pair.server.conn.output().backlog(), pair.server.conn.serving_count()), (0, 0));
        prop_assert_eq!((pair.client.conn.stats().stray_messages, pair.server.conn.stats().stray_messages), (0, 0));
    }
}

#[test]
fn it_gets_more_only_while_less_than_a_piece_of_it_waits() {
    let mut pair = Pair::new(Cut::Whole);
    let (call, request) = called(&mut pair);
    let octets = body(4000 * KIB);
    let mut growing = Growing::begin(&mut pair, &request, &octets);
    let (mut most, mut rounds) = (0, 0);
    loop {
        while pair.server.conn.output().reply_room(growing.token) == ReplyRoom::Room {
            if growing.give(&mut pair, 10 * KIB, rounds % 2 == 0) {
                break;
            }
        }
        most = most.max(pair.server.conn.output().backlog());
        let taken = write_some(&mut pair.server.conn, 50 * KIB, pair.now);
        if taken.is_empty() {
            break;
        }
        pair.client.inject(&taken);
        rounds += 1;
    }
    assert!((300 * KIB..450 * KIB).contains(&most), "{most} octets waited");
    assert_eq!(pair.server.conn.output().reply_room(growing.token), ReplyRoom::Gone, "it has its end");
    pair.drive();
    assert!(pair.client.outcome(call).unwrap().body().rest() == octets);
}

// clause: giop.fragment.interleave
#[test]
fn others_are_answered_while_it_waits_for_its_servant() {
    let mut pair = Pair::new(Cut::Whole);
    let (call, request) = called(&mut pair);
    let octets = body(200 * KIB);
    let mut growing = Growing::begin(&mut pair, &request, &octets);
    for len in [10, 300 * KIB] {
        let (other, request) = called(&mut pair);
        pair.answer(&request, &body(len));
        pair.drive();
        assert!(pair.client.outcome(other).unwrap().body().rest() == body(len));
    }
    assert!(pair.client.conn.call(call).take_outcome().is_none());
    while !growing.give(&mut pair, 70 * KIB, true) {}
    pair.drive();
    assert!(pair.client.outcome(call).unwrap().body().rest() == octets);
}

// clause: giop.fragment.limits
#[test]
fn four_grow_at_a_time_and_four_others_take_turns_beside_them() {
    let mut pair = pair_cutting(Cut::Whole, 4 * KIB);
    let octets = body(20 * KIB);
    let calls: Vec<_> = (0..5).map(|_| called(&mut pair)).collect();
    let mut growing: Vec<_> =
        calls[..4].iter().map(|(_, request)| Growing::begin(&mut pair, request, &octets)).collect();
    let (_, fifth) = &calls[4];
    let mut e = start(fifth.id(), ByteOrder::NATIVE, &octets[..5 * KIB]);
    let len = e.len();
    assert_eq!(pair.server.conn.request(fifth.token()).begin_reply(&mut e, HEAD), ReplyRoom::Full);
    assert_eq!(e.len(), len, "the encoder is as it was");
    // Large complete replies do not wait for them.
    let large: Vec<_> = (0..6).map(|_| called(&mut pair)).collect();
    for (_, request) in &large {
        pair.answer(request, &body(500 * KIB));
    }
    pair.drive();
    assert!(!pair.client.conn.lifecycle().is_closing());
    for (call, _) in &large {
        assert!(pair.client.outcome(*call).unwrap().body().rest() == body(500 * KIB));
    }
    while !growing[2].give(&mut pair, KIB, false) {}
    assert_eq!(pair.server.conn.request(fifth.token()).begin_reply(&mut e, HEAD), ReplyRoom::Room);
    e.put_raw(&octets[5 * KIB..]);
    pair.server.conn.request(fifth.token()).continue_reply(&mut e, true);
    pair.server.conn.request(fifth.token()).finish();
    for at in [0, 1, 3] {
        while !growing[at].give(&mut pair, KIB, false) {}
    }
    pair.drive();
    for (call, _) in &calls {
        assert!(pair.client.outcome(*call).unwrap().body().rest() == octets);
    }
}

// clause: giop.msg.cancel_request, giop.fragment.empty_last
#[test]
fn a_cancelled_one_ends_by_an_empty_piece_and_takes_nothing_more() {
    let mut pair = Pair::new(Cut::Whole);
    pair.server.inject(&Ask { id: 6, ..Ask::default() }.octets());
    pair.drive();
    let request = pair.request();
    let mut growing = Growing::begin(&mut pair, &request, &body(900 * KIB));
    let mut stream = write_some(&mut pair.server.conn, 100, pair.now);
    read(&mut pair.server, &cancel(Version::V1_2, 6), pair.now);
    assert_eq!(pair.server.cancelled, [request.token()], "the servant is told");
    assert_eq!(pair.server.conn.output().reply_room(growing.token), ReplyRoom::Gone);
    assert!(!growing.give(&mut pair, 500 * KIB, true));
    pair.server.conn.request(request.token()).finish();
    stream.extend(write_some(&mut pair.server.conn, usize::MAX, pair.now));
    let sent = messages(&stream);
    assert_eq!(sent.len(), 2);
    let last = header(&sent[1]);
    assert_eq!((sent[1].len(), last.kind, last.more_fragments), (16, MessageType::Fragment, false));
    assert_eq!((pair.server.conn.output().backlog(), pair.server.conn.serving_count()), (0, 0));
    assert_eq!(pair.server.conn.stats().stray_messages, 0);
}

// clause: giop.msg.cancel_request
#[test]
fn one_of_which_nothing_left_is_taken_back_when_it_is_cancelled() {
    for ended in [false, true] {
        let mut pair = Pair::new(Cut::Whole);
        pair.server.inject(&Ask { id: 6, ..Ask::default() }.octets());
        pair.drive();
        let request = pair.request();
        let mut growing = Growing::begin(&mut pair, &request, &body(900 * KIB));
        assert_eq!(growing.give(&mut pair, if ended { 900 * KIB } else { 100 * KIB }, true), ended);
        read(&mut pair.server, &cancel(Version::V1_2, 6), pair.now);
        assert_eq!(pair.server.cancelled.len(), usize::from(!ended));
        assert_eq!(write_all(&mut pair.server, pair.now), Vec::<Vec<u8>>::new());
        assert_eq!((pair.server.conn.stats().requests_unqueued, pair.server.conn.output().backlog()), (1, 0));
        let mut late = start(request.id(), ByteOrder::NATIVE, &body(70 * KIB));
        assert_eq!(pair.server.conn.request(request.token()).begin_reply(&mut late, HEAD), ReplyRoom::Gone);
        assert!(late.is_empty());
    }
}

// clause: exc.when.lost
#[test]
fn one_that_breaks_off_closes_the_connection_behind_what_was_queued_before() {
    let mut pair = Pair::new(Cut::Whole);
    let (small, first) = called(&mut pair);
    let (large, second) = called(&mut pair);
    let (third, _) = called(&mut pair);
    let growing = Growing::begin(&mut pair, &second, &body(900 * KIB));
    let begun = write_some(&mut pair.server.conn, 1000, pair.now);
    pair.client.inject(&begun);
    pair.answer(&first, &body(10 * KIB));
    assert!(!pair.server.conn.request(growing.token).break_reply());
    assert!(pair.server.conn.lifecycle().is_closing());
    pair.answer(&second, b"too late");
    pair.drive();
    assert!(pair.client.outcome(small).unwrap().body().rest() == body(10 * KIB));
    for call in [large, third] {
        let error = pair.client.outcome(call).unwrap_err();
        assert!(matches!(error.kind, CallErrorKind::Lost(_)), "{error:?}");
        assert_eq!(error.completed(), CompletionStatus::Maybe, "it may have been executed");
    }
    assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::Eof));
    assert!(pair.server.closed);
}

#[test]
fn one_of_which_nothing_left_is_replaced_when_it_breaks_off() {
    let mut pair = Pair::new(Cut::Whole);
    let (call, request) = called(&mut pair);
    let mut growing = Growing::begin(&mut pair, &request, &body(900 * KIB));
    assert!(!growing.give(&mut pair, 90 * KIB, true));
    assert!(pair.server.conn.request(growing.token).break_reply());
    pair.answer(&request, b"an exception");
    pair.drive();
    assert_eq!(pair.client.outcome(call).unwrap().body().rest(), b"an exception");
    assert!(!pair.server.conn.lifecycle().is_closing());
}

// clause: giop.msg.close_connection
#[test]
fn a_connection_closes_in_good_order_behind_its_end() {
    let mut pair = Pair::new(Cut::Whole);
    let (call, request) = called(&mut pair);
    let octets = body(900 * KIB);
    let mut growing = Growing::begin(&mut pair, &request, &octets);
    pair.drive();
    pair.server.conn.close(pair.now);
    pair.drive();
    assert!(!pair.server.closed);
    while !growing.give(&mut pair, 100 * KIB, true) {}
    pair.drive();
    assert!(pair.client.outcome(call).unwrap().body().rest() == octets);
    assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::PeerClosed));
}

#[test]
fn it_is_timed_only_while_its_octets_wait_for_the_peer() {
    let mut limits = Limits::default();
    limits.write_timeout = Duration::from_secs(30);
    let mut pair = Pair::with_limits(Cut::Whole, limits.clone(), limits);
    let (_, request) = called(&mut pair);
    let mut growing = Growing::begin(&mut pair, &request, &body(900 * KIB));
    write_all(&mut pair.server, pair.now);
    pair.now += Duration::from_secs(1000);
    pair.server.conn.handle_timeout(pair.now);
    assert!(!pair.server.conn.lifecycle().is_closed(), "its servant is slow, not the peer");
    assert!(!growing.give(&mut pair, 100 * KIB, true));
    write_some(&mut pair.server.conn, 10, pair.now);
    pair.now += Duration::from_secs(31);
    pair.server.conn.handle_timeout(pair.now);
    assert!(matches!(pair.server.conn.lifecycle().close_reason(), Some(CloseReason::SlowPeer(_))));
    assert_eq!(pair.server.conn.output().reply_room(growing.token), ReplyRoom::Gone);
    assert_eq!(pair.server.conn.output().backlog(), 0);
}

// clause: giop.fragment.send_never_old
#[test]
fn none_grows_before_giop_1_2() {
    for version in [Version::V1_0, Version::V1_1] {
        let pool = Arc::new(BufferPool::new(64 << 20));
        let config = |role| Config::new(role, Arc::new(Limits::default()), Arc::clone(&pool));
        let mut pair = Pair::with_configs(Cut::Whole, config(Role::Client), config(Role::Server));
        pair.call(&Ask { version, ..Ask::default() });
        pair.drive();
        let request = pair.request();
        let mut e = Encoder::new(ByteOrder::NATIVE, version);
        e.put_raw(&body(70 * KIB));
        assert_eq!(pair.server.conn.request(request.token()).begin_reply(&mut e, HEAD), ReplyRoom::Gone);
        assert!(write_all(&mut pair.server, pair.now).is_empty());
    }
}

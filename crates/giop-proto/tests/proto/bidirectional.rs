//! Requests from the side that accepted the connection: announcements of the other side, and closing of both.

use crate::util::cutting::pair_cutting;
use crate::util::messages::{Ask, reply};
use crate::util::streamed::body;
use crate::util::{Cut, Pair, every_cut};
use giop_codec::Version;
use giop_codec::cdr::{CdrDecode as _, CodeSets};
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use giop_codec::giop::{
    BiDirIiopServiceContext, ContextId, ListenPoint, MAX_LISTEN_POINTS, ReplyStatus, ServiceContext,
};
use giop_proto::{CallErrorKind, CallId, CloseReason, SentPart};

fn announcing(points: &[ListenPoint]) -> Ask {
    let context = BiDirIiopServiceContext { listen_points: points.to_vec() };
    Ask { contexts: vec![context.to_service_context().unwrap()], ..Ask::default() }
}

fn points(count: u16) -> Vec<ListenPoint> {
    (0..count).map(|i| ListenPoint::new(format!("host-{i}"), 4000 + i)).collect()
}

/// Starts a call of the server.
fn call_back(pair: &mut Pair, len: usize) -> CallId {
    let call = pair.server.conn.start_call(None, pair.now).unwrap();
    let id = pair.server.conn.call(call).request_id().0;
    assert_eq!(id & 1, 1, "the ids of who accepted the connection are odd");
    let ask = Ask { id, body: body(len), ..Ask::default() };
    pair.server.conn.call(call).send_request(&mut ask.encoder());
    call
}

// clause: giop.bidir.context
#[test]
fn a_server_learns_where_its_client_would_listen() {
    every_cut(|pair| {
        pair.call(&announcing(&points(2)));
        pair.drive();
        assert!(pair.request().has_new_listen_points());
        assert_eq!(pair.server.conn.peer().listen_points(), points(2));
        // A later context adds to it; known addresses are not repeated.
        pair.call(&announcing(&points(3)));
        pair.drive();
        assert_eq!(pair.server.conn.peer().listen_points(), points(3));
        assert!(pair.request().has_new_listen_points());
        // An equal header is recognised by its bytes.
        pair.call(&announcing(&points(3)));
        pair.drive();
        assert!(!pair.request().has_new_listen_points());
        assert_eq!(pair.server.conn.peer().listen_points(), points(3));
        assert!(pair.client.conn.peer().listen_points().is_empty());
    });
}

#[test]
fn listen_points_are_accepted_only_from_the_opener_and_in_giop_1_2() {
    for version in [Version::V1_0, Version::V1_1] {
        let mut pair = Pair::new(Cut::Whole);
        pair.call(&Ask { version, ..announcing(&points(2)) });
        pair.drive();
        assert_eq!(pair.server.requests.len(), 1);
        assert!(pair.server.conn.peer().listen_points().is_empty());
    }
    let mut pair = Pair::new(Cut::Whole);
    pair.client.conn.set_accepts_requests(true);
    pair.client.inject(&Ask { id: 3, ..announcing(&points(2)) }.octets());
    pair.drive();
    assert_eq!(pair.client.requests.len(), 1);
    assert!(pair.client.conn.peer().listen_points().is_empty());
}

#[test]
fn what_a_peer_announces_is_bounded() {
    let mut pair = Pair::new(Cut::Whole);
    for chunk in points(200).chunks(30) {
        pair.call(&announcing(chunk));
        pair.drive();
    }
    assert_eq!(pair.server.conn.peer().listen_points(), points(MAX_LISTEN_POINTS as u16));
    let mut pair = Pair::new(Cut::Whole);
    pair.call(&announcing(&[
        ListenPoint::new("h".repeat(256), 1),
        ListenPoint::new("", 2),
        points(1).remove(0),
    ]));
    pair.drive();
    assert_eq!(pair.server.conn.peer().listen_points(), points(1));
}

#[test]
fn an_announcement_that_does_not_decode_is_marshal_each_time() {
    let mut octets = announcing(&points(2)).contexts.remove(0).data.to_vec();
    octets.truncate(12);
    let context = ServiceContext { id: ContextId::BI_DIR_IIOP, data: octets.into() };
    let mut pair = Pair::new(Cut::Whole);
    for _ in 0..2 {
        let call = pair.call(&Ask { contexts: vec![context.clone()], ..Ask::default() });
        pair.drive();
        let answer = pair.client.outcome(call).unwrap();
        assert_eq!(answer.status(), ReplyStatus::SystemException);
        let exception = SystemException::decode(&mut answer.body()).unwrap();
        assert_eq!(
            (exception.kind, exception.completed),
            (SystemExceptionKind::Marshal, CompletionStatus::No)
        );
    }
    assert!(pair.server.requests.is_empty() && !pair.server.conn.lifecycle().is_closing());
}

// clause: giop.bidir.requests, giop.bidir.parity, giop.sender.requests
#[test]
fn both_sides_call_and_are_called_at_the_same_time() {
    every_cut(|pair| {
        pair.client.conn.set_accepts_requests(true);
        let there = pair.call(&announcing(&points(1)));
        pair.drive();
        let request = pair.request();
        // A callback while the call is pending, and a nested call inside of it.
        let back = call_back(pair, 30);
        pair.drive();
        let callback = pair.client.requests.pop_front().unwrap();
        let inner = pair.call(&Ask::default());
        pair.drive();
        let nested = pair.request();
        pair.answer(&nested, b"inner");
        pair.drive();
        assert_eq!(pair.client.outcome(inner).unwrap().body().rest(), b"inner");
        let mut answer = reply(callback.version(), callback.id(), ReplyStatus::NoException, b"back");
        pair.client.conn.request(callback.token()).send_reply(&mut answer);
        pair.drive();
        assert_eq!(pair.server.outcome(back).unwrap().body().rest(), b"back");
        pair.answer(&request, b"there");
        pair.drive();
        assert_eq!(pair.client.outcome(there).unwrap().body().rest(), b"there");
    });
}

#[test]
fn a_callback_is_cancelled_as_any_call() {
    every_cut(|pair| {
        pair.client.conn.set_accepts_requests(true);
        let back = call_back(pair, 0);
        pair.drive();
        let callback = pair.client.requests.pop_front().unwrap();
        pair.server.conn.call(back).cancel();
        pair.drive();
        assert_eq!(pair.client.cancelled, [callback.token()]);
        pair.client.conn.request(callback.token()).finish();
        assert_eq!((pair.client.conn.serving_count(), pair.server.conn.pending_call_count()), (0, 0));
    });
}

// clause: giop.bidir.requests, giop.fragment.interleave
#[test]
fn pieces_of_calls_in_both_directions_are_kept_apart() {
    let mut pair = pair_cutting(Cut::At(5001), 64);
    pair.client.conn.set_accepts_requests(true);
    let there = pair.call(&Ask { body: body(9000), ..Ask::default() });
    let back = call_back(&mut pair, 9001);
    pair.drive();
    let (request, callback) = (pair.request(), pair.client.requests.pop_front().unwrap());
    assert!(request.arguments().rest() == body(9000) && callback.arguments().rest() == body(9001));
    pair.answer(&request, &body(8000));
    let mut answer = reply(Version::V1_2, callback.id(), ReplyStatus::NoException, &body(8001));
    pair.client.conn.request(callback.token()).send_reply(&mut answer);
    pair.drive();
    assert!(pair.client.outcome(there).unwrap().body().rest() == body(8000));
    assert!(pair.server.outcome(back).unwrap().body().rest() == body(8001));
}

// clause: giop.bidir.code_sets
#[test]
fn requests_the_other_way_use_the_code_sets_that_were_negotiated() {
    let sets = CodeSets { char: giop_codec::cdr::CharSet::Utf8, wchar: None };
    let context: giop_codec::code_set::CodeSetContext = sets.into();
    let context = ServiceContext::encapsulate(ContextId::CODE_SETS, &context).unwrap();
    let mut pair = Pair::new(Cut::Whole);
    pair.client.conn.set_accepts_requests(true);
    pair.client.conn.set_code_sets(sets);
    pair.call(&Ask { contexts: vec![context], ..Ask::default() });
    pair.drive();
    assert_eq!(pair.server.conn.peer().code_sets(), Some(sets));
    call_back(&mut pair, 4);
    pair.drive();
    assert_eq!(pair.client.requests[0].code_sets(), sets);
}

// clause: giop.bidir.refused
#[test]
fn a_callback_to_a_client_that_serves_none_ends_the_connection() {
    let mut pair = Pair::new(Cut::Whole);
    let back = call_back(&mut pair, 0);
    pair.drive();
    assert_eq!(pair.server.outcome(back).unwrap_err().kind, CallErrorKind::PeerError);
    assert!(pair.client.requests.is_empty());
}

#[test]
fn either_side_may_close_in_good_order() {
    for client_closes in [true, false] {
        every_cut(|pair| {
            pair.client.conn.set_accepts_requests(true);
            // Each side has handed out a request of the other, and another one is on the way.
            let there = pair.call(&Ask::default());
            let back = call_back(pair, 0);
            pair.drive();
            let (request, callback) = (pair.request(), pair.client.requests.pop_front().unwrap());
            let now = pair.now;
            if client_closes {
                pair.client.conn.close(now);
            } else {
                pair.server.conn.close(now);
            }
            pair.drive();
            assert!(!pair.client.closed && !pair.server.closed, "what was begun is finished");
            pair.answer(&request, b"there");
            let mut answer = reply(Version::V1_2, callback.id(), ReplyStatus::NoException, b"back");
            pair.client.conn.request(callback.token()).send_reply(&mut answer);
            pair.drive();
            assert_eq!(pair.client.outcome(there).unwrap().body().rest(), b"there");
            assert_eq!(pair.server.outcome(back).unwrap().body().rest(), b"back");
            let (closer, other) =
                if client_closes { (&pair.client, &pair.server) } else { (&pair.server, &pair.client) };
            assert_eq!(closer.conn.lifecycle().close_reason(), Some(&CloseReason::Local));
            assert_eq!(other.conn.lifecycle().close_reason(), Some(&CloseReason::PeerClosed));
        });
    }
}

#[test]
fn a_side_that_closes_and_waits_turns_requests_away() {
    for (len, size) in [(0, None), (9000, Some(64))] {
        let mut pair = size.map_or_else(|| Pair::new(Cut::Whole), |size| pair_cutting(Cut::Whole, size));
        pair.client.conn.set_accepts_requests(true);
        let there = pair.call(&Ask::default());
        pair.drive();
        let request = pair.request();
        let now = pair.now;
        pair.client.conn.close(now);
        let back = call_back(&mut pair, len);
        pair.drive();
        let answer = pair.server.outcome(back).unwrap();
        let exception = SystemException::decode(&mut answer.body()).unwrap();
        assert_eq!(exception.kind, SystemExceptionKind::Transient);
        assert_eq!(exception.completed, CompletionStatus::No);
        assert_eq!(pair.client.conn.stats().requests_dropped, 1);
        pair.answer(&request, b"there");
        pair.drive();
        assert_eq!(pair.client.outcome(there).unwrap().body().rest(), b"there");
        assert!(pair.server.closed && pair.client.conn.lifecycle().is_closing());
    }
}

#[test]
fn a_callback_that_meets_a_close_was_not_executed() {
    let mut pair = Pair::new(Cut::Whole);
    pair.client.conn.set_accepts_requests(true);
    pair.call(&Ask::default());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, b"");
    pair.drive();
    let now = pair.now;
    pair.client.conn.close(now);
    let back = call_back(&mut pair, 0);
    pair.drive();
    let error = pair.server.outcome(back).unwrap_err();
    assert_eq!((error.kind, error.completed()), (CallErrorKind::Closed, CompletionStatus::No));
    assert!(error.sent != SentPart::Nothing && error.is_retryable());
    assert!(pair.client.requests.is_empty());
}

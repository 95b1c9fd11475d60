//! Cancelled calls: before, while and after their requests were written.

use crate::util::messages::{Ask, cancel, reply};
use crate::util::{Cut, Pair, every_cut, every_cut_with};
use giop_codec::Version;
use giop_codec::giop::{ReplyStatus, RequestId};
use giop_proto::{CloseReason, Limits};

#[test]
fn a_request_that_was_not_written_is_taken_back() {
    let mut pair = Pair::new(Cut::Whole);
    let first = pair.call(&Ask::default());
    let second = pair.call(&Ask::default());
    pair.client.conn.call(second).cancel();
    pair.drive();
    assert_eq!(pair.server.requests.len(), 1);
    assert_eq!(pair.client.conn.stats().requests_unqueued, 1);
    // A request followed by another one cannot be removed from the queue. It is cancelled.
    let third = pair.call(&Ask::default());
    pair.call(&Ask::default());
    pair.client.conn.call(third).cancel();
    pair.drive();
    assert_eq!((pair.server.requests.len(), pair.server.cancelled.len()), (3, 1));
    assert_eq!(pair.server.cancelled[0], pair.server.requests[1].token());
    assert!(pair.client.conn.call(first).take_outcome().is_none());
}

#[test]
fn a_connection_from_which_everything_was_taken_back_is_as_before() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    pair.client.conn.call(call).cancel();
    assert!(!pair.client.conn.has_output());
    assert_eq!((pair.client.conn.output().backlog(), pair.client.conn.pending_call_count()), (0, 0));
    assert_eq!(pair.client.conn.stats().cancels_out, 0);
}

// clause: giop.cancel.server, giop.msg.cancel_request
#[test]
fn a_written_request_is_cancelled_and_its_reply_not_sent() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        every_cut(|pair| {
            let call = pair.call(&Ask { version, ..Ask::default() });
            pair.drive();
            let request = pair.request();
            pair.client.conn.call(call).cancel();
            pair.drive();
            assert_eq!(pair.server.cancelled, [request.token()]);
            assert_eq!(pair.server.conn.serving_count(), 1, "it still has to be ended");
            pair.answer(&request, b"late");
            assert!(!pair.server.conn.has_output());
            assert_eq!((pair.server.conn.serving_count(), pair.client.conn.pending_call_count()), (0, 0));
        });
    }
}

// clause: giop.cancel.reply_dropped, giop.reply.unknown_id
#[test]
fn late_reply_of_a_cancelled_call_is_dropped() {
    every_cut(|pair| {
        let given_up = pair.call(&Ask::default());
        pair.drive();
        let request = pair.request();
        pair.answer(&request, b"late"); // crosses the CancelRequest
        pair.client.conn.call(given_up).cancel();
        let other = pair.call(&Ask::default());
        pair.drive();
        assert_eq!(pair.client.conn.call(given_up).take_outcome().map(|_| ()), None);
        assert_eq!(
            (pair.client.conn.stats().stray_messages, pair.server.conn.stats().stray_messages),
            (1, 1)
        );
        let request = pair.request();
        pair.answer(&request, b"right");
        pair.drive();
        assert_eq!(pair.client.outcome(other).unwrap().body().rest(), b"right");
    });
}

#[test]
fn cancelled_call_with_an_untaken_reply_frees_its_slot() {
    let mut pair = Pair::new(Cut::Whole);
    for _ in 0..10 {
        let call = pair.call(&Ask::default());
        pair.drive();
        let request = pair.request();
        pair.answer(&request, b"x");
        pair.drive();
        assert_eq!(call.index(), 0);
        pair.client.conn.call(call).cancel();
        assert!(pair.client.conn.call(call).take_outcome().is_none());
    }
    assert_eq!(pair.client.conn.stats().cancels_out, 0);
}

#[test]
fn a_partly_written_request_is_finished_and_then_cancelled() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask { body: vec![1; 1000], ..Ask::default() });
    let mut transmit = pair.client.conn.take_transmit().unwrap();
    let mut start = vec![0; 100];
    start.copy_from_slice(&transmit.contiguous_bytes().unwrap()[..100]);
    transmit.advance(100);
    pair.client.conn.handle_written(transmit, pair.now);
    pair.server.inject(&start);
    pair.client.conn.call(call).cancel();
    pair.drive();
    let request = pair.request();
    assert_eq!(request.arguments().rest(), [1; 1000]);
    assert_eq!(pair.server.cancelled, [request.token()]);
}

#[test]
fn requests_lent_to_a_writer_are_cancelled_behind_it() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    let mut transmit = pair.client.conn.take_transmit().unwrap();
    pair.client.conn.call(call).cancel();
    let octets = transmit.contiguous_bytes().unwrap().to_vec();
    transmit.advance(octets.len());
    pair.client.conn.handle_written(transmit, pair.now);
    pair.server.inject(&octets);
    pair.drive();
    assert_eq!(pair.server.cancelled.len(), 1);
}

// clause: giop.cancel.unknown
#[test]
fn cancels_of_nothing_are_ignored() {
    every_cut(|pair| {
        pair.server.inject(&cancel(Version::V1_0, 77));
        pair.server.inject(&Ask { id: 5, ..Ask::default() }.octets());
        pair.server.inject(&cancel(Version::V1_2, 6));
        pair.drive();
        assert_eq!(pair.request().id(), RequestId(5));
        assert!(pair.server.cancelled.is_empty() && !pair.server.conn.lifecycle().is_closing());
    });
}

// clause: giop.cancel.flood
#[test]
fn a_flood_of_messages_that_belong_to_nothing_ends_the_connection() {
    let mut limits = Limits::default();
    limits.max_control_rate = 20;
    let floods = [
        cancel(Version::V1_2, 9),
        reply(Version::V1_2, RequestId(1), ReplyStatus::NoException, b"").into_bytes().to_vec(),
    ];
    for flood in floods {
        every_cut_with(Limits::default(), limits.clone(), |pair| {
            for _ in 0..21 {
                pair.server.inject(&flood);
            }
            pair.drive();
            assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::Flood(20)));
            assert!(pair.server.closed);
        });
    }
}

#[test]
fn as_many_cancels_as_requests_are_no_flood() {
    let mut limits = Limits::default();
    limits.max_control_rate = 5;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    for _ in 0..100 {
        let call = pair.call(&Ask::default());
        pair.drive();
        pair.client.conn.call(call).cancel();
        pair.drive();
        let request = pair.request();
        pair.server.conn.request(request.token()).finish();
    }
    assert_eq!(pair.server.cancelled.len(), 100);
    assert!(!pair.server.conn.lifecycle().is_closing());
}

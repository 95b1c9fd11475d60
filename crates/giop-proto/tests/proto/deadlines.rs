//! Time: deadlines of calls, and peers that are too slow.

use std::time::Duration;

use crate::util::messages::{Ask, fragmented, start_of_put};
use crate::util::{Cut, Pair};
use giop_codec::Version;
use giop_codec::exception::CompletionStatus;
use giop_codec::giop::ResponseFlags;
use giop_proto::calls::CallId;
use giop_proto::{CallErrorKind, CloseReason, Limit, Limits, SentPart, SlowPeer};

const SECOND: Duration = Duration::from_secs(1);

fn quiet(message_timeout: u32) -> Limits {
    let mut limits = Limits::default();
    limits.message_timeout = message_timeout * SECOND;
    limits.idle_timeout = Some(3600 * SECOND);
    limits
}

// clause: exc.when.request_timeout
#[test]
fn a_call_that_is_not_answered_in_time_fails_and_is_cancelled() {
    let mut pair = Pair::new(Cut::Whole);
    let now = pair.now;
    let call = pair.client.conn.start_call(Some(now + 2 * SECOND), now).unwrap();
    let id = pair.client.conn.call(call).request_id().0;
    pair.client.conn.call(call).send_request(&mut Ask { id, ..Ask::default() }.encoder());
    let patient = pair.call(&Ask::default());
    pair.drive();
    assert_eq!(pair.client.conn.poll_timeout().map(|at| at <= now + 2 * SECOND), Some(true));
    pair.wait(2 * SECOND - Duration::from_nanos(1));
    assert!(pair.client.answered.is_empty());
    pair.wait(Duration::from_nanos(1));
    let error = pair.client.outcome(call).unwrap_err();
    assert_eq!((error.kind, error.sent), (CallErrorKind::Timeout, SentPart::Whole));
    assert_eq!(error.completed(), CompletionStatus::Maybe);
    let request = pair.request();
    assert_eq!(pair.server.cancelled, [request.token()]);
    assert!(!pair.client.answered.contains(&patient));
    assert_eq!(pair.client.conn.pending_call_count(), 1);
}

#[test]
fn a_call_that_expires_before_it_was_written_leaves_no_trace() {
    let mut pair = Pair::new(Cut::Whole);
    let now = pair.now;
    let mut calls = Vec::new();
    for _ in 0..3 {
        let call = pair.client.conn.start_call(Some(now + SECOND), now).unwrap();
        let id = pair.client.conn.call(call).request_id().0;
        pair.client.conn.call(call).send_request(&mut Ask { id, ..Ask::default() }.encoder());
        calls.push(call);
    }
    pair.client.conn.handle_timeout(now + SECOND);
    pair.client.poll();
    for call in calls {
        let error = pair.client.outcome(call).unwrap_err();
        assert_eq!((error.kind, error.sent), (CallErrorKind::Timeout, SentPart::Nothing));
        assert_eq!((error.completed(), error.is_retryable()), (CompletionStatus::No, false));
    }
    assert_eq!((pair.client.conn.output().backlog(), pair.client.conn.stats().requests_unqueued), (0, 3));
}

/// Starts a call with a deadline in one second, whose request is sent.
fn timed(pair: &mut Pair) -> CallId {
    let call = pair.client.conn.start_call(Some(pair.now + SECOND), pair.now).unwrap();
    let id = pair.client.conn.call(call).request_id().0;
    pair.client.conn.call(call).send_request(&mut Ask { id, ..Ask::default() }.encoder());
    pair.drive();
    call
}

#[test]
fn a_peer_that_answers_none_of_three_calls_gets_no_more() {
    let mut pair = Pair::new(Cut::Whole);
    let patient = pair.call(&Ask::default());
    for calls in 1..=3 {
        assert!(!pair.client.conn.lifecycle().is_closing(), "after {} calls", calls - 1);
        let call = timed(&mut pair);
        pair.wait(SECOND);
        assert_eq!(pair.client.outcome(call).unwrap_err().kind, CallErrorKind::Timeout);
    }
    assert!(pair.client.conn.lifecycle().is_closing());
    assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::Unanswered(3)));
    assert_eq!(pair.client.conn.stats().limit_hits.of(Limit::Unanswered), 1);
    assert!(pair.client.conn.start_call(None, pair.now).is_err());
    // A pending call without a deadline still gets its reply. Then the connection is closed in good order.
    let request = pair.server.requests.pop_front().unwrap();
    pair.answer(&request, b"late");
    pair.drive();
    assert_eq!(pair.client.outcome(patient).unwrap().body().rest(), b"late");
    for request in std::mem::take(&mut pair.server.requests) {
        pair.server.conn.request(request.token()).finish();
    }
    pair.drive();
    pair.wait(2 * SECOND);
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::PeerClosed));
}

#[test]
fn a_byte_between_timeouts_keeps_the_connection() {
    let mut pair = Pair::new(Cut::Whole);
    for _ in 0..5 {
        for _ in 0..2 {
            let call = timed(&mut pair);
            pair.wait(SECOND);
            pair.client.outcome(call).unwrap_err();
        }
        let call = pair.call(&Ask::default());
        pair.drive();
        let request = pair.server.requests.pop_back().unwrap();
        pair.answer(&request, b"");
        pair.drive();
        pair.client.outcome(call).unwrap();
    }
    assert!(!pair.client.conn.lifecycle().is_closing());
}

#[test]
fn a_call_that_starts_late_is_not_started() {
    let mut pair = Pair::new(Cut::Whole);
    let error = pair.client.conn.start_call(Some(pair.now), pair.now).unwrap_err();
    assert_eq!((error.kind, error.sent), (CallErrorKind::Timeout, SentPart::Nothing));
    assert_eq!(pair.client.conn.pending_call_count(), 0);
}

#[test]
fn a_request_of_an_expired_call_is_not_sent() {
    let mut pair = Pair::new(Cut::Whole);
    let now = pair.now;
    let call = pair.client.conn.start_call(Some(now + SECOND), now).unwrap();
    pair.client.conn.handle_timeout(now + SECOND);
    let mut encoder = Ask::default().encoder();
    pair.client.conn.call(call).send_request(&mut encoder);
    assert!(encoder.is_empty() && !pair.client.conn.has_output());
}

#[test]
fn nothing_is_sent_of_a_call_that_expires_before_its_request_begins() {
    for flows in [false, true] {
        let mut pair = Pair::new(Cut::Whole);
        let now = pair.now;
        let client = &mut pair.client.conn;
        let call = client.start_call(Some(now + SECOND), now).unwrap();
        let id = client.call(call).request_id();
        let mut start = start_of_put(id, Version::V1_2, true, 4, |e| e.put_u32(4));
        client.handle_timeout(now + SECOND);
        let begun = match flows {
            false => client.begin_request(Some(call), &mut start, 4),
            true => client.begin_incremental(Some(call), &mut start, 4).map(drop),
        };
        assert_eq!(begun.unwrap_err().completed(), CompletionStatus::No);
        assert!(start.is_empty() && !client.has_output() && client.output().missing_request_bytes() == 0);
        // The error of the caller is then correct.
        let error = client.call(call).take_outcome().unwrap().unwrap_err();
        assert_eq!((error.kind, error.completed()), (CallErrorKind::Timeout, CompletionStatus::No));
    }
}

#[test]
fn the_time_to_wait_is_never_too_late() {
    let mut pair = Pair::new(Cut::Whole);
    let now = pair.now;
    for seconds in [9, 3, 5, 7] {
        let call = pair.client.conn.start_call(Some(now + seconds * SECOND), now).unwrap();
        let id = pair.client.conn.call(call).request_id().0;
        pair.client.conn.call(call).send_request(&mut Ask { id, ..Ask::default() }.encoder());
    }
    pair.drive();
    let mut expired = 0;
    for _ in 0..100 {
        let Some(at) = pair.client.conn.poll_timeout().filter(|at| *at < now + 60 * SECOND) else { break };
        pair.client.conn.handle_timeout(at);
        pair.client.poll();
        while pair.client.answered.len() > expired {
            expired += 1;
            assert_eq!(at, now + [3, 5, 7, 9][expired - 1] * SECOND);
        }
    }
    assert_eq!(expired, 4);
}

// clause: giop.limit.first_header
#[test]
fn a_client_that_says_nothing_is_shut_out() {
    for (sent, wait) in [(0, 10), (11, 10)] {
        let mut pair = Pair::new(Cut::Whole);
        pair.server.inject(&Ask::default().octets()[..sent]);
        pair.drive();
        pair.wait(wait * SECOND - Duration::from_millis(1));
        assert!(!pair.server.closed);
        pair.wait(Duration::from_millis(1));
        assert_eq!(
            pair.server.conn.lifecycle().close_reason(),
            Some(&CloseReason::SlowPeer(SlowPeer::FirstHeader))
        );
        assert!(pair.server.closed);
    }
    let mut pair = Pair::new(Cut::Whole);
    pair.server.awake = false;
    pair.wait(100 * SECOND);
    assert!(!pair.client.conn.lifecycle().is_closing(), "who opened the connection owes nothing");
}

// clause: giop.limit.read_timeout
#[test]
fn a_message_must_keep_coming() {
    for len in [100, 20_000, 200_000] {
        let mut limits = quiet(5);
        limits.min_message_rate = 10_000;
        let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
        pair.server.inject(&Ask::default().octets());
        pair.drive();
        let octets = Ask { body: vec![1; len], ..Ask::default() }.octets();
        pair.wait(50 * SECOND);
        pair.server.inject(&octets[..50]);
        pair.drive();
        // Small messages get no additional time for their size, because the size is unknown until they are
        // large.
        let allowed = 5 + if len > 16 << 10 { octets.len() as u32 / 10_000 } else { 0 };
        for _ in 1..allowed {
            pair.wait(SECOND);
            pair.server.inject(&octets[50..51]);
            pair.drive();
            assert!(!pair.server.closed, "{len}");
        }
        pair.wait(SECOND);
        assert_eq!(
            pair.server.conn.lifecycle().close_reason(),
            Some(&CloseReason::SlowPeer(SlowPeer::Message)),
            "{len}"
        );
    }
}

#[test]
fn each_message_has_its_own_time() {
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), quiet(5));
    let octets = Ask { response: ResponseFlags::None, ..Ask::default() }.octets();
    let (start, end) = octets.split_at(20);
    pair.server.inject(start);
    for _ in 0..10 {
        pair.drive();
        pair.wait(4 * SECOND);
        assert!(!pair.server.closed);
        pair.server.inject(end);
        pair.server.inject(start);
        pair.drive();
        let request = pair.request();
        pair.server.conn.request(request.token()).finish();
    }
    pair.drive();
    pair.wait(5 * SECOND);
    assert!(pair.server.closed);
}

// clause: giop.fragment.limits
#[test]
fn fragments_must_keep_coming() {
    for version in [Version::V1_1, Version::V1_2] {
        let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), quiet(5));
        let pieces = fragmented(&Ask { version, body: vec![1; 200], ..Ask::default() }.octets(), 64, 8);
        for piece in &pieces[..4] {
            pair.server.inject(piece);
            pair.drive();
            pair.wait(SECOND);
            assert!(!pair.server.closed);
        }
        pair.wait(SECOND);
        assert_eq!(
            pair.server.conn.lifecycle().close_reason(),
            Some(&CloseReason::SlowPeer(SlowPeer::Message))
        );
    }
}

#[test]
fn a_peer_that_has_to_wait_is_not_slow() {
    let mut limits = quiet(5);
    limits.max_requests = 1;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    pair.client.awake = false;
    let octets = Ask { id: 2, ..Ask::default() }.octets();
    pair.server.inject(&octets);
    pair.server.inject(&octets[..20]); // the rest cannot be read
    pair.drive();
    pair.wait(600 * SECOND);
    assert!(!pair.server.closed);
    let request = pair.request();
    pair.server.conn.request(request.token()).finish();
    pair.drive();
    pair.wait(Duration::ZERO);
    assert!(!pair.server.closed, "its time begins when it is read again");
    pair.wait(5 * SECOND);
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::SlowPeer(SlowPeer::Message)));
}

// clause: giop.limit.write_timeout
#[test]
fn a_peer_that_takes_nothing_is_given_up() {
    let mut limits = Limits::default();
    limits.write_timeout = 5 * SECOND;
    let mut pair = Pair::with_limits(Cut::Whole, limits, Limits::default());
    pair.wait(SECOND);
    let call = pair.call(&Ask { body: vec![1; 10_000], ..Ask::default() });
    let stuck = |pair: &mut Pair, n: usize| {
        let mut transmit = pair.client.conn.take_transmit().unwrap();
        transmit.advance(n);
        pair.client.conn.handle_written(transmit, pair.now);
    };
    pair.client.awake = false;
    stuck(&mut pair, 100);
    for _ in 0..3 {
        pair.wait(4 * SECOND);
        stuck(&mut pair, 1); // some progress
    }
    pair.wait(4 * SECOND);
    stuck(&mut pair, 0);
    assert!(!pair.client.conn.lifecycle().is_closed());
    pair.wait(SECOND);
    assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::SlowPeer(SlowPeer::Write)));
    pair.client.poll();
    let error = pair.client.outcome(call).unwrap_err();
    assert_eq!((error.sent, error.completed()), (SentPart::Partly, CompletionStatus::No));
}

#[test]
fn what_was_queued_long_after_the_last_sign_of_life_is_not_stalled() {
    let mut pair = Pair::new(Cut::Whole);
    pair.call(&Ask::default());
    pair.drive();
    let request = pair.request();
    pair.now += 1000 * SECOND; // the machine does not know the time
    pair.answer(&request, b"x");
    pair.server.conn.handle_timeout(pair.now);
    assert!(!pair.server.conn.lifecycle().is_closing());
    pair.server.awake = false;
    pair.wait(Limits::default().write_timeout);
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::SlowPeer(SlowPeer::Write)));
}

#[test]
fn a_first_message_that_takes_long_has_said_its_header() {
    let mut pair = Pair::new(Cut::Whole);
    let octets = Ask { body: vec![1; 1 << 20], ..Ask::default() }.octets();
    let mut sent = 0;
    // 64 KiB per second: the minimum rate.
    while sent < octets.len() {
        let to = octets.len().min(sent + (64 << 10));
        pair.server.inject(&octets[sent..to]);
        pair.drive();
        pair.wait(SECOND);
        assert!(!pair.server.closed, "{sent}");
        sent = to;
    }
    assert!(pair.request().message() == &octets);
}

#[test]
fn an_octet_now_and_then_gains_no_time() {
    let octets = Ask { body: vec![1; 1 << 20], ..Ask::default() }.octets();
    // After nothing, part of a header, a header, and the start of a large message; and after a whole message.
    for (first, start, reason, limit) in [
        (0, 1, SlowPeer::FirstHeader, Limit::FirstHeader),
        (0, 10, SlowPeer::Message, Limit::MessageTime),
        (0, 12, SlowPeer::Message, Limit::MessageTime),
        (0, 70_000, SlowPeer::Message, Limit::MessageTime),
        (1, 1, SlowPeer::Message, Limit::MessageTime),
    ] {
        let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), quiet(30));
        for _ in 0..first {
            pair.server.inject(&Ask::default().octets());
        }
        pair.server.inject(&octets[..start]);
        pair.drive();
        for second in 0.. {
            pair.wait(SECOND);
            if pair.server.closed {
                break;
            }
            assert!(second <= 30 + 16, "{start}");
            pair.server.inject(&octets[start + second..=start + second]);
            pair.drive();
        }
        assert_eq!(
            pair.server.conn.lifecycle().close_reason(),
            Some(&CloseReason::SlowPeer(reason)),
            "{start}"
        );
        assert_eq!(pair.server.conn.stats().limit_hits.of(limit), 1);
    }
}

#[test]
fn a_client_that_takes_an_octet_now_and_then_is_given_up() {
    let mut limits = Limits::default();
    (limits.write_timeout, limits.min_write_rate) = (10 * SECOND, 1000);
    // The number of bytes that it accepts per second, and whether that is sufficient.
    for (octets, enough) in [(1, false), (900, false), (1000, true), (5000, true)] {
        let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits.clone());
        pair.call(&Ask::default());
        pair.drive();
        let request = pair.request();
        pair.answer(&request, &[7; 400_000]);
        pair.server.awake = false;
        let mut seconds = 0;
        while seconds < 200 && !pair.server.conn.lifecycle().is_closed() {
            if let Some(mut transmit) = pair.server.conn.take_transmit() {
                transmit.advance(octets);
                pair.server.conn.handle_written(transmit, pair.now);
            }
            pair.wait(SECOND);
            seconds += 1;
        }
        assert_eq!(pair.server.conn.lifecycle().is_closed(), !enough, "{octets}");
        if !enough {
            assert_eq!(
                pair.server.conn.lifecycle().close_reason(),
                Some(&CloseReason::SlowPeer(SlowPeer::Write))
            );
            assert_eq!(pair.server.conn.stats().limit_hits.of(Limit::WriteTime), 1);
        }
    }
}

/// Returns limits with the maximum value of all times.
fn endless() -> Limits {
    let mut limits = Limits::default();
    limits.first_header_timeout = Duration::MAX;
    limits.message_timeout = Duration::MAX;
    limits.write_timeout = Duration::MAX;
    limits.idle_timeout = Some(Duration::MAX);
    limits.linger_timeout = Duration::MAX;
    limits
}

#[test]
fn limits_of_any_length_can_be_waited_for() {
    const MONTH: Duration = Duration::from_secs(30 * 86_400);
    let mut pair = Pair::with_limits(Cut::Whole, endless(), endless());
    // First nothing was received; then only a part of a message, also of a fragmented one; then there is
    // nothing to do.
    pair.wait(MONTH);
    let ask = Ask { body: vec![1; 200], ..Ask::default() };
    for message in [vec![ask.octets()], fragmented(&ask.octets(), 64, 8)] {
        for piece in message {
            let (start, end) = piece.split_at(20);
            for part in [start, end] {
                pair.server.inject(part);
                pair.drive();
                pair.wait(MONTH);
            }
        }
        let request = pair.request();
        pair.server.conn.request(request.token()).finish();
        pair.wait(MONTH);
    }
    // The peer accepts a part of what is queued.
    pair.client.awake = false;
    pair.call(&ask);
    let mut transmit = pair.client.conn.take_transmit().unwrap();
    transmit.advance(1);
    pair.client.conn.handle_written(transmit, pair.now);
    pair.wait(MONTH);
    assert!(!pair.client.conn.lifecycle().is_closing() && !pair.server.conn.lifecycle().is_closing());
    // The connection is closed, and the peer does not close its side.
    pair.server.conn.close(pair.now);
    pair.drive();
    pair.wait(MONTH);
    assert!(pair.server.conn.lifecycle().is_closing() && !pair.server.closed);
}

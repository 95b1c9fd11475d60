//! Requests and replies that are sent while they are encoded, and messages that are queued meanwhile.

use std::io;
use std::io::IoSlice;
use std::time::{Duration, Instant};

use crate::util::messages::{Ask, start_of_put};
use crate::util::{Cut, Pair, every_cut};
use bytes::Bytes;
use giop_codec::cdr::Encoder;
use giop_codec::giop::{
    MessageType, ReplyHeader, ReplyStatus, RequestId, announce_message_size, begin_body, put_message_header,
};
use giop_codec::{ByteOrder, Version};
use giop_proto::outbox::{MAX_COPIED_PIECE_SIZE, MAX_SLICES, Outbox, Transmit};
use giop_proto::{CallErrorKind, CallId, CloseReason, IncomingRequest, IncrementalReply, SentPart};
use proptest::prelude::*;

fn octets(len: usize) -> Bytes {
    (0..len).map(|i| (i * 7 + i / 253) as u8).collect()
}

/// Returns the start of a request with a body of `len` bytes.
fn start(id: RequestId, answered: bool, len: usize) -> Encoder {
    start_of_put(id, Version::V1_2, answered, len, |_| ())
}

/// Starts a request. Returns the call and the number of the message.
fn begin(pair: &mut Pair, len: usize, deadline: Option<Instant>) -> (CallId, u64) {
    let now = pair.now;
    let client = &mut pair.client.conn;
    let call = client.start_call(deadline, now).unwrap();
    let mut e = start(client.call(call).request_id(), true, len);
    let message = client.begin_incremental(Some(call), &mut e, len as u64).unwrap().unwrap();
    assert!(e.is_empty());
    (call, message)
}

/// Queues the next bytes of the message.
fn flow(pair: &mut Pair, message: u64, octets: Bytes) {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    e.put_shared(octets);
    pair.client.conn.incremental(message).send(&mut e);
    assert!(e.is_empty());
}

/// Takes the next request of the server and returns its body.
fn arrived(pair: &mut Pair) -> Vec<u8> {
    let request = pair.server.requests.pop_front().unwrap();
    let body = request.arguments().clone().take(request.arguments().remaining()).unwrap().to_vec();
    pair.answer(&request, b"");
    body
}

#[test]
fn it_may_leave_in_any_portions() {
    let data = octets(900);
    every_cut(|pair| {
        let (call, message) = begin(pair, 900, None);
        for start in (0..900).step_by(90) {
            pair.drive();
            flow(pair, message, data.slice(start..start + 90));
        }
        pair.client.conn.incremental(message).end();
        pair.drive();
        assert!(arrived(pair) == data);
        pair.drive();
        assert!(pair.client.outcome(call).is_ok());
    });
}

#[test]
fn what_is_queued_meanwhile_arrives_behind_it() {
    for drive in [false, true] {
        let mut pair = Pair::new(Cut::Whole);
        let before = pair.call(&Ask::default());
        let (call, message) = begin(&mut pair, 30_000, None);
        let between = pair.call(&Ask::default());
        if drive {
            pair.drive();
            assert_eq!(pair.server.requests.len(), 1, "nothing passes it");
            assert!(!pair.client.conn.has_output() && pair.client.conn.output().backlog() > 30_000);
        }
        flow(&mut pair, message, octets(20_000));
        let behind = pair.call(&Ask::default());
        if drive {
            pair.drive();
        }
        flow(&mut pair, message, octets(10_000));
        pair.client.conn.incremental(message).end();
        pair.drive();
        assert_eq!(pair.server.requests.len(), 4);
        assert_eq!(pair.server.requests[1].arguments().remaining(), 30_000);
        while let Some(request) = pair.server.requests.pop_front() {
            pair.answer(&request, b"");
        }
        pair.drive();
        for call in [before, call, between, behind] {
            assert!(pair.client.outcome(call).is_ok());
        }
    }
}

#[test]
fn only_one_does_so_at_a_time() {
    let mut pair = Pair::new(Cut::Whole);
    let (_, message) = begin(&mut pair, 10, None);
    let id = pair.client.conn.next_oneway_id();
    let mut e = start(id, false, 10);
    let len = e.len();
    assert_eq!(pair.client.conn.begin_incremental(None, &mut e, 10).unwrap(), None);
    assert_eq!(e.len(), len, "it can be sent whole");
    flow(&mut pair, message, octets(10));
    assert!(pair.client.conn.begin_incremental(None, &mut e, 10).unwrap().is_some());
}

/// Starts the reply to a request, with results of `len` bytes.
fn begin_reply(pair: &mut Pair, request: &IncomingRequest, len: usize) -> IncrementalReply {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    let size_at = put_message_header(&mut e, MessageType::Reply);
    ReplyHeader::new(request.id(), ReplyStatus::NoException).encode(&mut e).unwrap();
    begin_body(&mut e);
    announce_message_size(&mut e, size_at, len as u64).unwrap();
    let before = e.len();
    let flow = pair.server.conn.request(request.token()).begin_incremental(&mut e, len as u64);
    assert_eq!(e.len(), if flow == IncrementalReply::Busy { before } else { 0 });
    flow
}

/// Queues the next bytes of the reply.
fn flow_reply(pair: &mut Pair, message: u64, octets: Bytes) {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    e.put_shared(octets);
    pair.server.conn.incremental(message).send(&mut e);
}

#[test]
fn a_reply_may_leave_in_any_portions() {
    let data = octets(900);
    every_cut(|pair| {
        let call = pair.call(&Ask::default());
        pair.drive();
        let request = pair.server.requests.pop_front().unwrap();
        let IncrementalReply::Begun(message) = begin_reply(pair, &request, 900) else { panic!() };
        assert_eq!(pair.server.conn.serving_count(), 1, "it goes on");
        for start in (0..900).step_by(90) {
            pair.drive();
            flow_reply(pair, message, data.slice(start..start + 90));
        }
        pair.server.conn.incremental(message).end();
        pair.server.conn.request(request.token()).finish();
        pair.drive();
        let reply = pair.client.outcome(call).unwrap();
        assert!(reply.body().rest() == data);
        assert_eq!(pair.server.conn.serving_count(), 0);
        // The next reply works too.
        let call = pair.call(&Ask::default());
        pair.drive();
        arrived(pair);
        pair.drive();
        assert!(pair.client.outcome(call).is_ok());
    });
}

#[test]
fn other_replies_stand_behind_one_that_leaves_while_it_is_encoded() {
    let mut pair = Pair::new(Cut::Whole);
    let calls = [(); 3].map(|()| pair.call(&Ask::default()));
    pair.drive();
    let requests: Vec<_> = pair.server.requests.drain(..).collect();
    let IncrementalReply::Begun(message) = begin_reply(&mut pair, &requests[0], 30_000) else { panic!() };
    assert_eq!(begin_reply(&mut pair, &requests[1], 10), IncrementalReply::Busy, "it is sent whole");
    pair.answer(&requests[1], b"1");
    flow_reply(&mut pair, message, octets(20_000));
    pair.answer(&requests[2], b"2");
    pair.drive();
    assert!(pair.client.answered.is_empty(), "nothing passes it");
    flow_reply(&mut pair, message, octets(10_000));
    pair.server.conn.incremental(message).end();
    pair.server.conn.request(requests[0].token()).finish();
    pair.drive();
    let lens = calls.map(|call| pair.client.outcome(call).unwrap().body().remaining());
    assert_eq!(lens, [30_000, 1, 1]);
}

#[test]
fn cancelled_reply_is_sent_only_if_it_has_begun() {
    let mut pair = Pair::new(Cut::Whole);
    let given_up = pair.call(&Ask::default());
    let kept = pair.call(&Ask::default());
    pair.drive();
    let requests: Vec<_> = pair.server.requests.drain(..).collect();
    pair.client.conn.call(given_up).cancel();
    pair.drive();
    assert_eq!(pair.server.cancelled, [requests[0].token()]);
    assert_eq!(begin_reply(&mut pair, &requests[0], 100), IncrementalReply::Dropped);
    pair.server.conn.request(requests[0].token()).finish();
    let IncrementalReply::Begun(message) = begin_reply(&mut pair, &requests[1], 100) else { panic!() };
    flow_reply(&mut pair, message, octets(50));
    pair.drive();
    // Half of it is sent: the rest follows, although it is no longer awaited.
    pair.client.conn.call(kept).cancel();
    pair.drive();
    assert_eq!(pair.server.cancelled.len(), 1);
    flow_reply(&mut pair, message, octets(50));
    pair.server.conn.incremental(message).end();
    pair.server.conn.request(requests[1].token()).finish();
    let call = pair.call(&Ask::default());
    pair.drive();
    arrived(&mut pair);
    pair.drive();
    assert!(pair.client.outcome(call).is_ok());
    assert!(!pair.server.conn.lifecycle().is_closing());
}

#[test]
fn a_reply_that_becomes_longer_or_shorter_than_it_said_closes_the_connection() {
    for len in [0, 99, 101, 200] {
        let mut pair = Pair::new(Cut::Whole);
        let call = pair.call(&Ask::default());
        pair.drive();
        let request = pair.server.requests.pop_front().unwrap();
        let IncrementalReply::Begun(message) = begin_reply(&mut pair, &request, 100) else { panic!() };
        pair.drive();
        flow_reply(&mut pair, message, octets(len));
        pair.server.conn.incremental(message).end();
        pair.server.conn.request(request.token()).finish();
        pair.drive();
        assert!(pair.client.outcome(call).is_err(), "{len}");
        assert!(pair.server.closed && pair.client.closed, "{len}");
    }
}

#[test]
fn a_request_that_becomes_longer_or_shorter_than_it_said_closes_the_connection() {
    for len in [0, 99, 101, 200] {
        let mut pair = Pair::new(Cut::Whole);
        let (call, message) = begin(&mut pair, 100, None);
        pair.drive();
        flow(&mut pair, message, octets(len));
        pair.client.conn.incremental(message).end();
        pair.drive();
        let error = pair.client.outcome(call).unwrap_err();
        assert_eq!((error.kind, error.sent), (CallErrorKind::LocalClose, SentPart::Partly), "{len}");
        assert!(pair.client.closed && pair.server.closed && pair.server.requests.is_empty(), "{len}");
    }
    // Bytes after the end of a complete message belong to nothing.
    let mut pair = Pair::new(Cut::Whole);
    let (_, message) = begin(&mut pair, 100, None);
    flow(&mut pair, message, octets(100));
    let (_, other) = begin(&mut pair, 100, None);
    flow(&mut pair, message, octets(1));
    pair.client.conn.incremental(other).end();
    assert!(pair.client.conn.lifecycle().is_closed());
}

#[test]
fn calls_cancelled_or_late_meanwhile_are_cancelled_behind_it() {
    for by_deadline in [false, true] {
        let mut pair = Pair::new(Cut::Whole);
        let other = pair.call(&Ask::default());
        let deadline = pair.now + Duration::from_secs(1);
        let (call, message) = begin(&mut pair, 10_000, by_deadline.then_some(deadline));
        pair.drive();
        flow(&mut pair, message, octets(5_000));
        if by_deadline {
            pair.now = deadline;
            pair.client.conn.handle_timeout(deadline);
            let error = pair.client.conn.call(call).take_outcome().unwrap().unwrap_err();
            assert_eq!((error.kind, error.sent), (CallErrorKind::Timeout, SentPart::Whole));
        } else {
            pair.client.conn.call(call).cancel();
        }
        pair.client.conn.call(other).cancel();
        flow(&mut pair, message, octets(5_000));
        pair.client.conn.incremental(message).end();
        pair.drive();
        assert!(!pair.client.conn.lifecycle().is_closing());
        assert_eq!((pair.server.requests.len(), pair.server.cancelled.len()), (2, 2));
        assert_eq!(pair.client.conn.stats().cancels_out, 2);
    }
}

#[test]
fn a_call_queued_behind_it_can_be_taken_back() {
    let mut pair = Pair::new(Cut::Whole);
    let (_, message) = begin(&mut pair, 10_000, None);
    let other = pair.call(&Ask::default());
    pair.client.conn.call(other).cancel();
    assert_eq!(pair.client.conn.stats().requests_unqueued, 1);
    flow(&mut pair, message, octets(10_000));
    pair.drive();
    assert_eq!((pair.server.requests.len(), pair.server.cancelled.len()), (1, 0));
}

#[test]
fn closing_in_good_order_waits_for_the_rest() {
    let mut pair = Pair::new(Cut::Whole);
    let id = pair.client.conn.next_oneway_id();
    let mut e = start(id, false, 9_000);
    let message = pair.client.conn.begin_incremental(None, &mut e, 9_000).unwrap().unwrap();
    pair.drive();
    let now = pair.now;
    pair.client.conn.close(now);
    pair.drive();
    assert!(!pair.client.closed);
    flow(&mut pair, message, octets(9_000));
    pair.client.conn.incremental(message).end();
    pair.drive();
    assert_eq!(pair.server.requests.len(), 1);
    assert!(pair.client.closed && pair.server.closed);
}

#[test]
fn a_connection_that_is_closed_takes_nothing() {
    let mut pair = Pair::new(Cut::Whole);
    let (_, message) = begin(&mut pair, 100_000, None);
    pair.drive();
    pair.client.conn.abort(CloseReason::Local);
    flow(&mut pair, message, octets(100_000));
    pair.client.conn.incremental(message).end();
    assert_eq!(pair.client.conn.output().backlog(), 0);
    let mut e = start(RequestId(7), false, 1);
    assert!(pair.client.conn.begin_incremental(None, &mut e, 1).is_err());
    assert!(e.is_empty());
}

#[test]
fn a_socket_that_fails_says_so_to_the_call() {
    let mut pair = Pair::new(Cut::Whole);
    let (call, message) = begin(&mut pair, 100_000, None);
    flow(&mut pair, message, octets(50_000));
    let (transmit, now) = (pair.client.conn.take_transmit().unwrap(), pair.now);
    pair.client.conn.handle_written(transmit, now);
    pair.client.conn.handle_write_error(&io::ErrorKind::ConnectionReset.into(), now);
    flow(&mut pair, message, octets(50_000));
    pair.client.conn.incremental(message).end();
    assert!(!pair.client.conn.lifecycle().is_closed(), "a reply may have come before");
    pair.client.conn.handle_eof(now);
    pair.now += Duration::from_secs(100);
    let now = pair.now;
    pair.client.conn.handle_timeout(now);
    let error = pair.client.conn.call(call).take_outcome().unwrap().unwrap_err();
    assert!(matches!(error.kind, CallErrorKind::Lost(_)), "{error:?}");
}

/// Writes up to `most` bytes of the lent data to the wire.
fn write(transmit: &mut Transmit, most: usize, wire: &mut Vec<u8>) {
    let mut slices = [IoSlice::new(&[]); MAX_SLICES];
    let used = transmit.io_slices(&mut slices);
    let octets: Vec<u8> = slices[..used].iter().flat_map(|s| s.iter().copied()).take(most).collect();
    wire.extend_from_slice(&octets);
    transmit.advance(octets.len());
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Chunk(usize),
    Gap(usize),
    Fill(usize),
    Take,
    Write(usize),
    Commit,
    Unqueue,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = || prop_oneof![0..10usize, 4_000..10_000usize];
    let step = prop_oneof![
        len().prop_map(Step::Push),
        len().prop_map(Step::Chunk),
        len().prop_map(Step::Gap),
        len().prop_map(Step::Fill),
        Just(Step::Take),
        len().prop_map(Step::Write),
        Just(Step::Commit),
        Just(Step::Unqueue),
    ];
    prop::collection::vec(step, 0..80)
}

proptest! {
    /// The stream equals what was queued, in order, wherever a gap was filled and however little was written
    /// at a time.
    #[test]
    fn the_outbox_keeps_the_order(steps in steps()) {
        let mut outbox = Outbox::default();
        // The expected data before the gap and after it.
        let (mut stream, mut behind, mut wire) = (Vec::new(), Vec::new(), Vec::new());
        let mut gap: Option<(u64, usize)> = None;
        let mut lent: Option<Transmit> = None;
        let mut next = 0u8;
        let mut last = None;
        let mut new = |len: usize| {
            next = next.wrapping_add(1);
            vec![next; len]
        };
        for step in steps {
            match step {
                Step::Push(len) | Step::Chunk(len) => {
                    let octets = new(len);
                    last = Some((outbox.queued(), len));
                    if matches!(step, Step::Push(_)) && len <= MAX_COPIED_PIECE_SIZE {
                        outbox.push(&octets);
                    } else {
                        outbox.push_chunk(Bytes::from(octets.clone()));
                    }
                    if gap.is_some() { &mut behind } else { &mut stream }.extend(octets);
                }
                Step::Gap(len) => {
                    last = None;
                    match outbox.leave_gap(len as u64) {
                        Some(end) if len > 0 => {
                            prop_assert!(gap.is_none());
                            gap = Some((end, len));
                        }
                        Some(end) => prop_assert!(!outbox.has_gap(end)),
                        None => prop_assert!(gap.is_some()),
                    }
                }
                Step::Fill(len) => {
                    let octets = new(len);
                    let (end, left) = gap.unwrap_or((0, 0));
                    prop_assert!(!outbox.fill(end + 1, Bytes::from(octets.clone())));
                    let fits = outbox.fill(end, Bytes::from(octets.clone()));
                    prop_assert_eq!(fits, gap.is_some() && len <= left);
                    if fits {
                        stream.extend(octets);
                        gap = Some((end, left - len));
                        if left == len {
                            prop_assert!(!outbox.has_gap(end));
                            stream.append(&mut behind);
                            gap = None;
                        }
                    }
                }
                Step::Take if lent.is_none() => {
                    let any = !outbox.is_empty();
                    let transmit = outbox.take();
                    prop_assert_eq!(any, !transmit.is_empty());
                    lent = Some(transmit);
                }
                Step::Write(most) => {
                    if let Some(transmit) = &mut lent {
                        write(transmit, most, &mut wire);
                    }
                }
                Step::Commit => lent.take().into_iter().for_each(|transmit| outbox.commit(transmit)),
                Step::Unqueue => {
                    if let Some((start, len)) = last.take()
                        && outbox.unqueue(start, start + len as u64)
                    {
                        let to = if gap.is_some() { &mut behind } else { &mut stream };
                        to.truncate(to.len() - len);
                    }
                }
                Step::Take => {}
            }
            let missing = gap.map_or(0, |(_, left)| left);
            prop_assert_eq!(outbox.queued() as usize, stream.len() + behind.len() + missing);
        }
        lent.take().into_iter().for_each(|transmit| outbox.commit(transmit));
        for _ in 0..2 {
            while !outbox.is_empty() {
                let mut transmit = outbox.take();
                write(&mut transmit, 5_000, &mut wire);
                outbox.commit(transmit);
            }
            prop_assert!(wire == stream);
            if let Some((end, left)) = gap.take() {
                prop_assert!(outbox.fill(end, Bytes::from(vec![0; left])));
                stream.resize(stream.len() + left, 0);
                stream.append(&mut behind);
            }
        }
        prop_assert_eq!(outbox.backlog(), 0);
    }
}

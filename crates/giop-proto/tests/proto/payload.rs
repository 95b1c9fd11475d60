//! Requests that are queued in parts while they are sent.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::util;
use crate::util::cutting::{messages, write_some};
use crate::util::messages::start_of_put;
use crate::util::{Cut, Pair, every_cut};
use bytes::Bytes;
use giop_codec::cdr::Encoder;
use giop_codec::exception::CompletionStatus;
use giop_codec::giop::{MessageHeader, MessageType, RequestId};
use giop_codec::{ByteOrder, Version};
use giop_proto::outbox::MAX_SLICES;
use giop_proto::{BufferPool, CallErrorKind, CallId, Config, Connection, Limits, Role, SentPart};
use proptest::prelude::*;

fn octets(len: usize) -> Bytes {
    (0..len).map(|i| (i * 7 + i / 253) as u8).collect()
}

/// Returns the start of a request, up to the length of its sequence.
fn start(id: RequestId, version: Version, answered: bool, len: usize) -> Encoder {
    start_of_put(id, version, answered, len, |e| e.put_u32(len as u32))
}

/// Starts a request with a sequence of `len` bytes, which follow later.
fn begin(pair: &mut Pair, version: Version, len: usize, deadline: Option<Instant>) -> CallId {
    let now = pair.now;
    let client = &mut pair.client.conn;
    let call = client.start_call(deadline, now).unwrap();
    let mut e = start(client.call(call).request_id(), version, true, len);
    client.begin_request(Some(call), &mut e, len as u64).unwrap();
    assert!(e.is_empty());
    call
}

#[test]
fn a_request_in_parts_arrives_as_one_message_in_every_version() {
    let data = octets(300_000);
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for (len, part) in [(0, 1), (1, 1), (300, 1), (5_000, 7), (20_000, 4_097), (300_000, 100_000)] {
            let mut pair = Pair::new(Cut::Whole);
            let call = begin(&mut pair, version, len, None);
            let mut given = 0;
            while pair.client.conn.unfinished_request().wants_part() {
                assert_eq!(pair.client.conn.output().missing_request_bytes(), (len - given) as u64);
                pair.drive();
                assert!(pair.server.requests.is_empty(), "it is not whole");
                let next = len.min(given + part);
                pair.client.conn.unfinished_request().send_part(data.slice(given..next));
                given = next;
            }
            assert_eq!((given, pair.client.conn.output().missing_request_bytes()), (len, 0));
            pair.drive();
            let request = pair.server.requests.pop_front().unwrap();
            assert_eq!(request.arguments().read_u32().unwrap() as usize, len);
            let mut arguments = request.arguments();
            arguments.read_u32().unwrap();
            assert!(arguments.take(len).unwrap() == &data[..len], "{version:?} {len}");
            assert_eq!(arguments.remaining(), 0);
            pair.answer(&request, b"");
            pair.drive();
            assert!(pair.client.outcome(call).is_ok());
        }
    }
}

#[test]
fn a_request_in_parts_leaves_in_pieces_where_the_peer_takes_no_more() {
    let data = octets(20_000);
    for size in [64, 100, 1_024, 4_096, 20_000] {
        for (len, part) in [(0, 1), (1, 1), (300, 1), (5_000, 7), (20_000, 4_097), (20_000, 20_000)] {
            let mut pair = Pair::new(Cut::Whole);
            pair.client.conn.limit_fragment_size(size);
            let call = begin(&mut pair, Version::V1_2, len, None);
            let (mut given, mut sent) = (0, Vec::new());
            loop {
                sent.extend(write_some(&mut pair.client.conn, usize::MAX, pair.now));
                if !pair.client.conn.unfinished_request().wants_part() {
                    break;
                }
                let next = len.min(given + part);
                pair.client.conn.unfinished_request().send_part(data.slice(given..next));
                given = next;
            }
            let pieces = messages(&sent);
            // The first piece contains the whole header, whatever its size.
            assert!(pieces.iter().skip(1).all(|piece| piece.len() <= size), "{size} {len} {part}");
            assert!(pieces.iter().rev().skip(1).all(|piece| piece.len().is_multiple_of(8)));
            assert_eq!(
                pieces.len() > 1,
                sent.len() > (size & !7).max(pieces[0].len()),
                "{size} {len} {part}"
            );
            util::cutting::read(&mut pair.server, &sent, pair.now);
            pair.drive();
            let request = pair.server.requests.pop_front().unwrap();
            assert!(request.message().ends_with(&data[..len]), "{size} {len} {part}");
            pair.answer(&request, b"");
            pair.drive();
            assert!(pair.client.outcome(call).is_ok());
        }
    }
}

#[test]
fn a_request_in_pieces_that_is_given_up_before_anything_left_is_taken_back() {
    let mut pair = Pair::new(Cut::Whole);
    pair.client.conn.limit_fragment_size(1_024);
    let call = begin(&mut pair, Version::V1_2, 100_000, None);
    pair.client.conn.unfinished_request().send_part(octets(50_000));
    pair.client.conn.call(call).cancel();
    assert_eq!((pair.client.conn.output().backlog(), pair.client.conn.lifecycle().is_closing()), (0, false));
    let call = begin(&mut pair, Version::V1_2, 5_000, None);
    pair.client.conn.unfinished_request().send_part(octets(5_000));
    pair.drive();
    let request = pair.server.requests.pop_front().unwrap();
    pair.answer(&request, b"");
    pair.drive();
    assert!(pair.client.outcome(call).is_ok());
}

#[test]
fn it_may_come_in_any_portions() {
    let data = octets(900);
    every_cut(|pair| {
        let call = begin(pair, Version::V1_2, 900, None);
        for start in (0..900).step_by(90) {
            pair.drive();
            pair.client.conn.unfinished_request().send_part(data.slice(start..start + 90));
        }
        pair.drive();
        let request = pair.server.requests.pop_front().unwrap();
        assert!(request.message().ends_with(&data));
        pair.answer(&request, b"");
        pair.drive();
        assert!(pair.client.outcome(call).is_ok());
    });
}

#[test]
fn more_than_was_announced_is_dropped() {
    let mut pair = Pair::new(Cut::Whole);
    begin(&mut pair, Version::V1_2, 10, None);
    pair.client.conn.unfinished_request().send_part(octets(30));
    assert!(!pair.client.conn.unfinished_request().wants_part());
    pair.client.conn.unfinished_request().send_part(octets(30));
    pair.drive();
    let request = pair.server.requests.pop_front().unwrap();
    assert_eq!(request.arguments().remaining(), 14);
    assert!(pair.server.wire.is_empty());
}

#[test]
fn a_call_given_up_before_anything_left_is_taken_back() {
    let mut pair = Pair::new(Cut::Whole);
    let call = begin(&mut pair, Version::V1_2, 100_000, None);
    pair.client.conn.unfinished_request().send_part(octets(50_000));
    pair.client.conn.call(call).cancel();
    assert_eq!(pair.client.conn.output().backlog(), 0);
    assert!(!pair.client.conn.lifecycle().is_closing());
    assert_eq!(pair.client.conn.stats().requests_unqueued, 1);
    // The connection is usable as before.
    let call = begin(&mut pair, Version::V1_2, 3, None);
    assert_eq!(pair.client.conn.unfinished_request().give_up(), SentPart::Nothing);
    pair.client.conn.call(call).cancel();
    assert_eq!((pair.client.conn.output().backlog(), pair.client.conn.stats().cancels_out), (0, 0));
    begin(&mut pair, Version::V1_2, 3, None);
    pair.client.conn.unfinished_request().send_part(octets(3));
    pair.drive();
    assert_eq!(pair.server.requests.len(), 1);
}

#[test]
fn a_call_given_up_in_the_middle_ends_the_connection_without_a_word() {
    for by_deadline in [false, true] {
        let mut pair = Pair::new(Cut::Whole);
        let deadline = pair.now + Duration::from_secs(1);
        let call = begin(&mut pair, Version::V1_2, 100_000, by_deadline.then_some(deadline));
        pair.client.conn.unfinished_request().send_part(octets(50_000));
        pair.drive();
        let sent = pair.client.conn.stats().bytes_out;
        if by_deadline {
            assert_eq!(pair.client.conn.poll_timeout(), Some(deadline));
            pair.now = deadline;
            pair.client.conn.handle_timeout(deadline);
            let error = pair.client.conn.call(call).take_outcome().unwrap().unwrap_err();
            assert_eq!((error.kind, error.sent), (CallErrorKind::Timeout, SentPart::Partly));
        } else {
            pair.client.conn.call(call).cancel();
        }
        assert!(pair.client.conn.lifecycle().is_closed());
        assert!(!pair.client.conn.unfinished_request().wants_part());
        pair.client.conn.unfinished_request().send_part(octets(50_000));
        pair.drive();
        assert_eq!(pair.client.conn.stats().bytes_out, sent, "nothing follows half a message");
        assert!(pair.server.closed && pair.server.requests.is_empty());
    }
}

#[test]
fn another_call_given_up_meanwhile_leaves_the_request_alone() {
    let mut pair = Pair::new(Cut::Whole);
    let other = pair.call(&util::messages::Ask::default());
    let deadline = pair.now + Duration::from_secs(1);
    let late = pair.client.conn.start_call(Some(deadline), pair.now).unwrap();
    let call = begin(&mut pair, Version::V1_2, 10_000, None);
    pair.drive();
    pair.client.conn.call(other).cancel();
    pair.now = deadline;
    pair.client.conn.handle_timeout(deadline);
    assert!(pair.client.conn.call(late).take_outcome().unwrap().is_err());
    pair.client.conn.unfinished_request().send_part(octets(10_000));
    pair.drive();
    assert_eq!(pair.server.requests.len(), 2);
    let request = pair.server.requests.pop_back().unwrap();
    pair.answer(&request, b"");
    pair.drive();
    assert!(pair.client.outcome(call).is_ok());
    assert_eq!(pair.client.conn.stats().cancels_out, 0, "it is too late for it");
}

#[test]
fn what_is_queued_whole_and_not_sent_is_taken_back() {
    let mut pair = Pair::new(Cut::Whole);
    let call = begin(&mut pair, Version::V1_2, 10_000, None);
    pair.client.conn.unfinished_request().send_part(octets(10_000));
    pair.client.conn.call(call).cancel();
    assert_eq!((pair.client.conn.output().backlog(), pair.client.conn.lifecycle().is_closing()), (0, false));
}

#[test]
fn closing_in_good_order_waits_for_the_rest_of_a_oneway() {
    let mut pair = Pair::new(Cut::Whole);
    let id = pair.client.conn.next_oneway_id();
    let mut e = start(id, Version::V1_2, false, 9_000);
    pair.client.conn.begin_request(None, &mut e, 9_000).unwrap();
    pair.drive();
    // A connection with half a oneway is not idle, however long its source takes.
    let later = pair.now + Duration::from_secs(100_000);
    assert!(pair.client.conn.poll_timeout().is_none_or(|at| at < later));
    pair.now = later;
    pair.client.conn.handle_timeout(later);
    assert!(!pair.client.conn.lifecycle().is_closing());
    pair.client.conn.close(later);
    assert!(pair.client.conn.unfinished_request().wants_part());
    pair.client.conn.unfinished_request().send_part(octets(9_000));
    assert!(!pair.client.conn.unfinished_request().wants_part());
    pair.drive();
    assert_eq!(pair.server.requests.len(), 1);
    assert!(pair.client.closed && pair.server.closed);
}

#[test]
fn a_peer_that_breaks_the_protocol_meanwhile_gets_no_message_error() {
    let mut pair = Pair::new(Cut::Whole);
    let call = begin(&mut pair, Version::V1_2, 100, None);
    pair.drive();
    let sent = pair.client.conn.stats().bytes_out;
    pair.client.inject(b"this is no message header");
    pair.drive();
    let error = pair.client.outcome(call).unwrap_err();
    assert_eq!((error.sent, error.completed()), (SentPart::Partly, CompletionStatus::No));
    assert!(pair.client.closed);
    assert_eq!(pair.client.conn.stats().bytes_out, sent);
}

#[test]
fn a_peer_that_closes_in_good_order_meanwhile_has_executed_nothing() {
    let mut pair = Pair::new(Cut::Whole);
    let call = begin(&mut pair, Version::V1_2, 100, None);
    pair.drive();
    pair.client
        .inject(&MessageHeader::new(Version::V1_2, ByteOrder::NATIVE, MessageType::CloseConnection).encode());
    pair.drive();
    let error = pair.client.outcome(call).unwrap_err();
    assert_eq!((error.kind, error.completed()), (CallErrorKind::Closed, CompletionStatus::No));
    assert!(!pair.client.conn.unfinished_request().wants_part());
}

#[test]
fn a_socket_that_fails_takes_no_more_parts() {
    let mut pair = Pair::new(Cut::Whole);
    let call = begin(&mut pair, Version::V1_2, 100_000, None);
    pair.drive();
    let now = pair.now;
    pair.client.conn.handle_write_error(&std::io::ErrorKind::BrokenPipe.into(), now);
    assert!(!pair.client.conn.unfinished_request().wants_part());
    pair.client.conn.unfinished_request().send_part(octets(10));
    assert_eq!(pair.client.conn.output().backlog(), 0);
    assert!(!pair.client.conn.call(call).has_ended(), "the answer may have come before");
}

#[test]
fn a_slow_source_is_not_blamed_on_the_peer() {
    let mut pair = Pair::new(Cut::Whole);
    let call = begin(&mut pair, Version::V1_2, 100_000, None);
    pair.drive();
    let later = pair.now + Limits::default().write_timeout * 10;
    pair.now = later;
    pair.client.conn.handle_timeout(later);
    assert!(!pair.client.conn.lifecycle().is_closing());
    // A peer that does not accept available data is responsible.
    pair.client.conn.unfinished_request().send_part(octets(50_000));
    let stalled = later + Limits::default().write_timeout;
    pair.client.conn.handle_timeout(later);
    pair.now = stalled;
    pair.client.conn.handle_timeout(stalled);
    assert!(pair.client.conn.lifecycle().is_closed());
    assert!(pair.client.conn.call(call).take_outcome().unwrap().is_err());
}

/// A random action on a connection.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Starts a request with this many bytes.
    Begin {
        len: usize,
        oneway: bool,
    },
    /// Supplies this many of them.
    Part(usize),
    /// The socket accepts this many bytes.
    Write(usize),
    /// Gives up the last started request.
    GiveUp,
    Close,
}

fn act() -> impl Strategy<Value = Act> {
    let size = || prop_oneof![0usize..10, 100usize..5_000, 4_096usize..100_000];
    prop_oneof![
        4 => (size(), any::<bool>()).prop_map(|(len, oneway)| Act::Begin { len, oneway }),
        8 => size().prop_map(Act::Part),
        8 => size().prop_map(Act::Write),
        1 => Just(Act::GiveUp),
        1 => Just(Act::Close),
    ]
}

/// Writes up to `most` bytes to the socket.
fn write(conn: &mut Connection, written: &mut Vec<u8>, most: usize, now: Instant) {
    let Some(mut transmit) = conn.take_transmit() else { return };
    let mut slices = [IoSlice::new(&[]); MAX_SLICES];
    let used = transmit.io_slices(&mut slices);
    let octets: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter().copied()).take(most).collect();
    transmit.advance(octets.len());
    written.extend(octets);
    conn.handle_written(transmit, now);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_are_whole_messages_unless_the_connection_is_closed(acts in prop::collection::vec(act(), 1..60)) {
        let now = Instant::now();
        let pool = Arc::new(BufferPool::new(1 << 20));
        let mut conn = Connection::new(Config::new(Role::Client, Arc::new(Limits::default()), pool), now);
        let (mut written, mut last, mut given) = (Vec::new(), None, 0);
        let data = octets(1 << 17);
        for act in acts {
            match act {
                Act::Begin { .. } if conn.output().missing_request_bytes() > 0 || conn.lifecycle().is_closing() => {}
                Act::Begin { len, oneway } => {
                    last = (!oneway).then(|| conn.start_call(None, now).unwrap());
                    let id = match last {
                        Some(call) => conn.call(call).request_id(),
                        None => conn.next_oneway_id(),
                    };
                    let mut e = start(id, Version::V1_2, last.is_some(), len);
                    conn.begin_request(last, &mut e, len as u64).unwrap();
                    given = 0;
                }
                Act::Part(n) => {
                    let n = n.min(usize::try_from(conn.output().missing_request_bytes()).unwrap()).min(data.len() - given);
                    conn.unfinished_request().send_part(data.slice(given..given + n));
                    given += n;
                }
                Act::Write(n) => write(&mut conn, &mut written, n, now),
                Act::GiveUp => match last.take() {
                    Some(call) => conn.call(call).cancel(),
                    None => drop(conn.unfinished_request().give_up()),
                },
                Act::Close => conn.close(now),
            }
            while conn.poll_event().is_some() {}
        }
        while conn.unfinished_request().wants_part() {
            let len = 1_000.min(usize::try_from(conn.output().missing_request_bytes()).unwrap());
            conn.unfinished_request().send_part(data.slice(given..given + len));
            given += 1_000;
        }
        while conn.has_output() {
            write(&mut conn, &mut written, 10_000, now);
        }
        let mut rest = &*written;
        while let Some((header, behind)) = rest.split_first_chunk() {
            let header = MessageHeader::decode(header).unwrap();
            let Some((message, behind)) = behind.split_at_checked(header.size as usize) else { break };
            if header.kind == MessageType::Request {
                // The sequence is the end of its message.
                let at = message.len().saturating_sub(1 << 17);
                let end = (at..message.len()).find(|at| {
                    let count = message.get(*at..at + 4).map(|count| u32::from_ne_bytes(count.try_into().unwrap()));
                    count == Some((message.len() - at - 4) as u32) && message[at + 4..] == data[..message.len() - at - 4]
                });
                prop_assert!(end.is_some(), "a request without its octets");
            }
            rest = behind;
        }
        prop_assert!(rest.is_empty() || conn.lifecycle().is_closed(), "{} octets of half a message", rest.len());
    }
}

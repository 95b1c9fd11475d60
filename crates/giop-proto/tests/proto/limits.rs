//! Back-pressure, oversized messages and memory: what a peer can make this side hold.

use std::sync::Arc;
use std::time::Duration;

use crate::util;
use crate::util::cutting::read;
use crate::util::messages::{Ask, reply};
use crate::util::{Cut, Pair, every_cut_with};
use giop_codec::Version;
use giop_codec::cdr::CdrDecode;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{ReplyStatus, RequestId, ResponseFlags};
use giop_proto::pool::WINDOW_SIZE;
use giop_proto::{BufferPool, CloseReason, Config, Limit, Limits, ProtocolError, Reply, Role};

fn exception(reply: &Reply) -> SystemException {
    assert_eq!(reply.status(), ReplyStatus::SystemException);
    SystemException::decode(&mut reply.body()).unwrap()
}

fn at_most(requests: usize) -> Limits {
    let mut limits = Limits::default();
    limits.max_requests = requests;
    limits
}

// clause: giop.limit.requests
#[test]
fn no_more_requests_are_read_than_may_be_in_flight() {
    every_cut_with(Limits::default(), at_most(2), |pair| {
        let calls: Vec<_> = (0..5).map(|_| pair.call(&Ask::default())).collect();
        pair.drive();
        assert_eq!((pair.server.requests.len(), pair.server.conn.serving_count()), (2, 2));
        assert!(!pair.server.conn.wants_read());
        for call in calls {
            let request = pair.request();
            pair.answer(&request, b"");
            pair.drive();
            assert!(pair.client.outcome(call).is_ok());
            assert!(pair.server.conn.serving_count() <= 2);
        }
        assert!(pair.server.conn.wants_read());
    });
}

// clause: giop.bidir.parity, exc.minor.transient.1
#[test]
fn a_side_that_awaits_replies_reads_on_and_refuses_what_is_too_much() {
    every_cut_with(Limits::default(), at_most(1), |pair| {
        pair.client.conn.set_accepts_requests(true);
        // The server calls back over the same connection (Bidirectional GIOP).
        let back = pair.server.conn.start_call(None, pair.now).unwrap();
        let id = pair.server.conn.call(back).request_id();
        assert_eq!(id.0 % 2, 1);
        pair.server.conn.call(back).send_request(&mut Ask { id: id.0, ..Ask::default() }.encoder());
        let calls: Vec<_> = (0..3).map(|_| pair.call(&Ask::default())).collect();
        pair.drive();
        assert_eq!(pair.server.requests.len(), 1);
        for call in &calls[1..] {
            let refused = exception(&pair.client.outcome(*call).unwrap());
            assert_eq!(
                (refused.kind, refused.minor),
                (SystemExceptionKind::Transient, minor::TRANSIENT_DISCARDED)
            );
            assert_eq!(refused.completed, CompletionStatus::No);
        }
        let inner = pair.client.requests.pop_front().unwrap();
        pair.client.conn.request(inner.token()).send_reply(&mut reply(
            Version::V1_2,
            inner.id(),
            ReplyStatus::NoException,
            b"inner",
        ));
        pair.drive();
        assert_eq!(pair.server.outcome(back).unwrap().body().rest(), b"inner");
        let request = pair.request();
        pair.answer(&request, b"outer");
        pair.drive();
        assert_eq!(pair.client.outcome(calls[0]).unwrap().body().rest(), b"outer");
    });
}

// clause: giop.limit.unread
#[test]
fn unread_replies_pause_further_requests() {
    let mut limits = Limits::default();
    limits.max_backlog = 1000;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    for _ in 0..10 {
        pair.call(&Ask::default());
    }
    pair.drive();
    pair.client.awake = false;
    let mut answered = 0;
    while let Some(request) = pair.server.requests.pop_front() {
        pair.answer(&request, &[0; 600]);
        answered += 1;
    }
    assert_eq!(answered, 10, "they were there already");
    assert!(!pair.server.conn.wants_read() && !pair.server.conn.output().has_room_for_oneway());
    pair.server.inject(&Ask { id: 99, ..Ask::default() }.octets());
    pair.drive(); // the client's wire accepts everything
    assert!(pair.server.conn.wants_read() && pair.server.conn.output().has_room_for_oneway());
    assert_eq!(pair.request().id(), RequestId(99));
}

/// Otherwise two busy peers could both stop reading.
#[test]
fn what_this_side_asks_does_not_hold_up_what_it_is_asked() {
    let mut limits = Limits::default();
    limits.max_backlog = 1000;
    for size in [None, Some(104)] {
        let pool = Arc::new(BufferPool::new(64 << 20));
        let config = |role| {
            let mut config = Config::new(role, Arc::new(limits.clone()), Arc::clone(&pool));
            config.fragment_size = size;
            config
        };
        let mut pair = Pair::with_configs(Cut::Whole, config(Role::Client), config(Role::Server));
        pair.client.conn.set_accepts_requests(true);
        for (waits, id) in [(false, 1), (true, 3)] {
            pair.client.awake = false;
            let large = Ask { response: ResponseFlags::None, body: vec![1; 5000], ..Ask::default() };
            pair.client.conn.send_oneway(&mut large.encoder()).unwrap();
            if waits {
                pair.call(&Ask { body: vec![2; 5000], ..Ask::default() });
            }
            assert!(pair.client.conn.output().backlog() > 4000 && !pair.client.conn.output().is_backed_up());
            read(&mut pair.client, &Ask { id, ..Ask::default() }.octets(), pair.now);
            let request = pair.client.requests.pop_front().expect("it is neither held nor refused");
            let body = vec![3; 900];
            let mut answer = reply(Version::V1_2, request.id(), ReplyStatus::NoException, &body);
            pair.client.conn.request(request.token()).send_reply(&mut answer);
            pair.client.awake = true;
            pair.drive();
        }
        // Each answer was written after a request, and no longer counts.
        assert_eq!(
            (
                pair.client.conn.stats().requests_refused,
                pair.client.conn.stats().limit_hits.of(Limit::Backlog)
            ),
            (0, 0)
        );
    }
}

// clause: giop.limit.unread
#[test]
fn full_backlog_while_awaiting_replies_refuses_requests() {
    let mut limits = Limits::default();
    limits.max_backlog = 1000;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    pair.client.awake = false;
    // A request of the server itself precedes them.
    let back = pair.server.conn.start_call(None, pair.now).unwrap();
    let id = pair.server.conn.call(back).request_id().0;
    pair.server
        .conn
        .call(back)
        .send_request(&mut Ask { id, body: vec![1; 5000], ..Ask::default() }.encoder());
    for id in [2, 4] {
        read(&mut pair.server, &Ask { id, ..Ask::default() }.octets(), pair.now);
        let request = pair.request();
        pair.answer(&request, &[0; 600]);
    }
    assert!(pair.server.conn.output().is_backed_up());
    // All bytes lent to a writer may be sent already.
    let transmit = pair.server.conn.take_transmit().unwrap();
    read(&mut pair.server, &Ask { id: 6, ..Ask::default() }.octets(), pair.now);
    assert_eq!((pair.request().id(), pair.server.conn.stats().requests_refused), (RequestId(6), 0));
    pair.server.conn.handle_written(transmit, pair.now);
    read(&mut pair.server, &Ask { id: 8, ..Ask::default() }.octets(), pair.now);
    let stats = pair.server.conn.stats();
    assert_eq!(
        (pair.server.requests.len(), stats.requests_refused, stats.limit_hits.of(Limit::Backlog)),
        (0, 1, 1)
    );
}

#[test]
fn a_peer_that_only_makes_this_side_refuse_is_cut_off() {
    let mut limits = at_most(1);
    limits.max_backlog = 2000;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    let back = pair.server.conn.start_call(None, pair.now).unwrap();
    pair.client.awake = false;
    for id in 0..100 {
        pair.server.inject(&Ask { id, ..Ask::default() }.octets());
    }
    // The refusals are never written: the server may only queue a limited number.
    let mut buf = pair.server.conn.take_read_buf();
    let octets: Vec<u8> = pair.server.wire.drain(..).collect();
    buf.io_slices()[0][..octets.len()].copy_from_slice(&octets);
    pair.server.conn.handle_read(buf, octets.len(), pair.now);
    pair.server.poll();
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::Unread(2000)));
    assert!(pair.server.outcome(back).is_err());
}

// clause: giop.limit.message
#[test]
fn an_oversized_request_is_skipped_and_refused() {
    let mut limits = Limits::default();
    limits.max_message_size = 300;
    for order in [giop_codec::ByteOrder::Big, giop_codec::ByteOrder::Little] {
        every_cut_with(Limits::default(), limits.clone(), |pair| {
            let large = pair.call(&Ask { order, body: vec![3; 400], ..Ask::default() });
            let oneway = Ask { id: 8, response: ResponseFlags::None, body: vec![3; 400], ..Ask::default() };
            pair.client.conn.send_oneway(&mut oneway.encoder()).unwrap();
            let small = pair.call(&Ask { body: vec![4; 100], ..Ask::default() });
            pair.drive();
            let refused = exception(&pair.client.outcome(large).unwrap());
            assert_eq!(
                (refused.kind, refused.completed),
                (SystemExceptionKind::ImpLimit, CompletionStatus::No)
            );
            let request = pair.request();
            assert_eq!(request.arguments().rest(), [4; 100]);
            pair.answer(&request, b"fits");
            pair.drive();
            assert!(pair.client.outcome(small).is_ok());
            let stats = pair.server.conn.stats();
            assert_eq!((stats.requests_refused, stats.messages_in), (2, 3));
            assert!(stats.bytes_skipped > 800);
        });
    }
}

#[test]
fn the_refusal_names_the_limit() {
    let error = ProtocolError::TooLarge { size: 17, limit: 16 };
    assert!(error.to_string().contains("`Limits::max_message_size`"), "{error}");
}

// clause: giop.limit.message
#[test]
fn a_very_large_oversized_request_is_not_stored() {
    let mut pair = Pair::new(Cut::Whole);
    let mut start = Ask { id: 4, ..Ask::default() }.octets();
    start[8..12].copy_from_slice(&(3u32 << 30).to_ne_bytes());
    pair.server.inject(&start);
    pair.drive();
    assert_eq!(pair.server.conn.stats().requests_refused, 1);
    for _ in 0..100 {
        pair.server.inject(&[0xee; 200_000]);
        pair.drive();
    }
    assert!(pair.pool.stats().held <= 4 * WINDOW_SIZE);
    assert!(!pair.server.conn.lifecycle().is_closing());
}

#[test]
fn other_oversized_messages_end_the_connection() {
    let mut limits = Limits::default();
    limits.max_message_size = 300;
    let locate = util::messages::locate(Version::V1_2, RequestId(1), &[1; 400]).into_bytes().to_vec();
    for octets in [
        Ask { version: Version::V1_0, body: vec![0; 400], ..Ask::default() }.octets(),
        Ask { version: Version::V1_1, body: vec![0; 400], ..Ask::default() }.octets(),
        locate,
    ] {
        every_cut_with(Limits::default(), limits.clone(), |pair| {
            pair.server.inject(&octets);
            pair.drive();
            let expected = ProtocolError::TooLarge { size: octets.len(), limit: 300 };
            assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::Protocol(expected)));
            assert_eq!(pair.client.conn.lifecycle().close_reason(), Some(&CloseReason::PeerMessageError));
        });
    }
}

#[test]
fn a_reply_that_is_too_large_fails_the_calls() {
    let mut limits = Limits::default();
    limits.max_message_size = 300;
    let mut pair = Pair::with_limits(Cut::Whole, limits, Limits::default());
    let call = pair.call(&Ask::default());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, &[1; 500]);
    pair.drive();
    let error = pair.client.outcome(call).unwrap_err();
    assert_eq!(error.into_system_exception().kind, SystemExceptionKind::ImpLimit);
}

// clause: giop.limit.key, giop.limit.operation, giop.limit.contexts
#[test]
fn keys_operations_and_contexts_over_their_limits_are_refused() {
    let cases = [
        (Ask { key: vec![1; 64 * 1024 + 1], ..Ask::default() }, SystemExceptionKind::ObjectNotExist),
        (Ask { operation: "o".repeat(1025), ..Ask::default() }, SystemExceptionKind::Marshal),
        (
            Ask {
                contexts: vec![
                    giop_codec::giop::ServiceContext {
                        id: giop_codec::giop::ContextId(77),
                        data: bytes::Bytes::new()
                    };
                    65
                ],
                ..Ask::default()
            },
            SystemExceptionKind::Marshal,
        ),
    ];
    for (ask, kind) in cases {
        let mut pair = Pair::new(Cut::Whole);
        let call = pair.call(&ask);
        pair.drive();
        let refused = exception(&pair.client.outcome(call).unwrap());
        assert_eq!((refused.kind, refused.completed), (kind, CompletionStatus::No));
        assert!(!pair.server.conn.lifecycle().is_closing() && pair.server.conn.serving_count() == 0);
        assert_eq!(pair.server.conn.stats().limit_hits.of(Limit::Fixed), 1, "{kind:?}");
    }
}

// clause: giop.limit.message
#[test]
fn memory_is_granted_as_octets_come() {
    let mut pair = Pair::new(Cut::Whole);
    let octets = Ask { body: vec![9; 8 << 20], ..Ask::default() }.octets();
    let charged = |pair: &Pair| pair.pool.stats().held;
    pair.server.inject(&octets[..100]);
    pair.drive();
    assert!(charged(&pair) <= 2 * WINDOW_SIZE + 64, "{}", charged(&pair));
    let mut sent = 100;
    while sent < octets.len() {
        let to = octets.len().min(sent + 50_000);
        pair.server.inject(&octets[sent..to]);
        pair.drive();
        sent = to;
        assert!(charged(&pair) <= 6 * sent + 3 * WINDOW_SIZE, "{} after {sent}", charged(&pair));
    }
    assert!(pair.request().message() == &octets);
    assert!(
        pair.server.conn.stats().bytes_copied_in <= 64 << 10,
        "{}",
        pair.server.conn.stats().bytes_copied_in
    );
    // The next message of this size is granted immediately, and only its start is copied.
    let before = pair.server.conn.stats().bytes_copied_in;
    pair.server.inject(&octets);
    pair.drive();
    assert!(pair.request().message() == &octets);
    assert!(pair.server.conn.stats().bytes_copied_in - before <= 64 << 10);
}

#[test]
fn a_steady_bulk_stream_is_not_copied() {
    let mut pair = Pair::new(Cut::Whole);
    let octets = Ask { response: ResponseFlags::None, body: vec![9; 1 << 20], ..Ask::default() }.octets();
    let mut copied = 0;
    for round in 0..20 {
        pair.server.inject(&octets);
        pair.drive();
        let request = pair.request();
        assert!(request.message() == &octets);
        pair.server.conn.request(request.token()).finish();
        if round == 0 {
            copied = pair.server.conn.stats().bytes_copied_in;
        }
    }
    let later = pair.server.conn.stats().bytes_copied_in - copied;
    assert!(later <= 20 * 64, "{later} octets were copied after the first message");
}

#[test]
fn half_messages_give_their_memory_back() {
    let whole = Ask { body: vec![1; 300_000], ..Ask::default() }.octets();
    let pieces = util::messages::fragmented(&whole, 4096, 4080);
    let ends: [fn(&mut Pair); 3] = [
        |pair| pair.server.conn.abort(CloseReason::Local),
        |pair| pair.server.eof = true,
        |pair| pair.server.inject(&vec![0; 250_000]),
    ];
    for (i, end) in ends.into_iter().enumerate() {
        let mut pair = starving_pair((1 << 20) + 64);
        for piece in &pieces[..60] {
            pair.server.inject(piece);
        }
        pair.server.inject(&whole[..100_000]);
        pair.drive();
        assert!(pair.pool.stats().held > 300_000);
        end(&mut pair);
        pair.drive();
        let pool = pair.pool;
        drop((pair.client, pair.server));
        // The pool has room for one buffer of its whole size only if nothing is charged any more.
        let all = pool.take(1 << 20);
        assert_eq!(pool.stats().held, (1 << 20) + 64, "end {i}");
        drop(all);
    }
}

fn starving_pair(cap: usize) -> Pair {
    let pool = Arc::new(BufferPool::new(cap));
    let config = |role| Config::new(role, Arc::new(Limits::default()), Arc::clone(&pool));
    Pair::with_configs(Cut::Whole, config(Role::Client), config(Role::Server))
}

#[test]
fn requests_wait_for_memory_and_replies_do_not() {
    let mut pair = starving_pair(10 * WINDOW_SIZE);
    let large = Ask { id: 2, body: vec![7; 400_000], ..Ask::default() };
    let call = pair.call(&large);
    pair.drive();
    let first = pair.request();
    // The first message pins the pool: the second is not read.
    pair.server.inject(&Ask { id: 4, ..large.clone() }.octets());
    pair.drive();
    assert!(pair.server.requests.is_empty() && !pair.server.conn.wants_read());
    for _ in 0..3 {
        pair.wait(Duration::from_millis(5));
        assert!(pair.server.requests.is_empty());
    }
    // The reply is equally large, and is received in any case.
    pair.answer(&first, &[8; 400_000]);
    pair.drive();
    assert!(pair.client.outcome(call).unwrap().body().rest() == [8; 400_000]);
    drop(first);
    pair.wait(Duration::from_millis(5));
    assert!(pair.request().arguments().rest() == [7; 400_000]);
}

#[test]
fn a_waiting_message_is_not_slow() {
    let mut pair = starving_pair(10 * WINDOW_SIZE);
    pair.client.awake = false;
    let large = Ask { id: 2, body: vec![7; 400_000], ..Ask::default() };
    pair.server.inject(&large.octets());
    pair.server.inject(&large.octets());
    pair.drive();
    let first = pair.request();
    for _ in 0..20_000 {
        pair.wait(Duration::from_millis(5));
    }
    assert!(!pair.server.conn.lifecycle().is_closing());
    drop(first);
    pair.wait(Duration::from_millis(5));
    assert_eq!(pair.server.requests.len(), 1);
}

#[test]
fn a_message_larger_than_the_pool_needs_no_pool() {
    let mut pair = starving_pair(3 * WINDOW_SIZE);
    let call = pair.call(&Ask { body: vec![7; 1 << 20], ..Ask::default() });
    pair.drive();
    let request = pair.request();
    assert!(request.arguments().rest() == vec![7; 1 << 20]);
    pair.answer(&request, b"");
    pair.drive();
    assert!(pair.client.outcome(call).is_ok());
}

#[test]
fn small_messages_get_through_without_a_pool() {
    let mut pair = starving_pair(0);
    for i in 0..50 {
        let call = pair.call(&Ask { body: vec![i; 100], ..Ask::default() });
        for _ in 0..3 {
            pair.drive();
            pair.wait(Duration::from_millis(5));
        }
        let request = pair.request();
        pair.answer(&request, b"");
        pair.drive();
        assert!(pair.client.outcome(call).is_ok());
    }
    assert_eq!(pair.pool.stats().held, 0);
}

#[test]
fn an_idle_connection_keeps_no_memory() {
    let mut pair = Pair::new(Cut::Whole);
    let call = pair.call(&Ask::default());
    pair.drive();
    let request = pair.request();
    pair.answer(&request, b"");
    drop(request);
    pair.drive();
    drop(pair.client.outcome(call));
    let held = pair.pool.stats().held;
    assert!(pair.server.conn.poll_timeout().unwrap() <= pair.now + Duration::from_secs(1));
    pair.wait(Duration::from_secs(1));
    assert!(
        pair.server.conn.poll_timeout().unwrap() > pair.now + Duration::from_secs(100),
        "only idleness is left"
    );
    // Every buffer of the pool is free: all of them can be taken without an allocation.
    let misses = pair.pool.stats().misses;
    let taken: Vec<_> = (0..held / WINDOW_SIZE).map(|_| pair.pool.take(WINDOW_SIZE)).collect();
    assert_eq!(pair.pool.stats().misses, misses);
    assert!(!taken.is_empty());
}

// clause: giop.limit.depth
#[test]
fn decoders_get_the_limits_of_the_connection() {
    let mut limits = Limits::default();
    limits.max_depth = 3;
    limits.max_decoded = 100;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    pair.call(&Ask { body: vec![0; 4], ..Ask::default() });
    pair.drive();
    let request = pair.request();
    let given = request.arguments().limits();
    assert_eq!(given.depth, 3);
    assert_eq!(given.alloc, 8 * request.message().len(), "eight times the message is more here");
}

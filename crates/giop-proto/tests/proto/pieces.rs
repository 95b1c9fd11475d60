//! Large messages in GIOP 1.2 fragments: read into their final position without a copy, whatever the cuts and
//! the errors.

use std::sync::Arc;
use std::time::Duration;

use crate::util::messages::{Ask, cancel, fragmented, reply};
use crate::util::{Cut, Pair, every_cut_with};
use giop_codec::exception::{SystemException, SystemExceptionKind};
use giop_codec::giop::{MessageHeader, MessageType, ReplyStatus, RequestId, ResponseFlags};
use giop_codec::{ByteOrder, Version};
use giop_proto::pool::WINDOW_SIZE;
use giop_proto::{BufferPool, CloseReason, Config, Limits, ProtocolError, Role, SlowPeer};

const MIB: usize = 1 << 20;

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

fn large(id: u32, len: usize) -> Vec<u8> {
    Ask { id, response: ResponseFlags::None, body: body(len), ..Ask::default() }.octets()
}

/// Returns the header of a GIOP 1.2 fragment with that much payload.
fn fragment_header(id: u32, payload: u32, more: bool) -> Vec<u8> {
    let header = MessageHeader::new(Version::V1_2, ByteOrder::NATIVE, MessageType::Fragment);
    let header = MessageHeader { more_fragments: more, size: payload + 4, ..header };
    [&header.encode()[..], &id.to_ne_bytes()].concat()
}

/// Sends the same message repeatedly. Returns the number of copied bytes and of reads per message in the
/// steady state.
fn steady(first: usize, step: usize, len: usize, cut: Cut) -> (u64, usize) {
    let mut pair = Pair::new(cut);
    let whole = large(8, len);
    let pieces: Vec<u8> = fragmented(&whole, first, step).concat();
    let mut last = (0, 0);
    let mut steady = (0, 0);
    for _ in 0..6 {
        pair.server.inject(&pieces);
        pair.drive();
        let request = pair.request();
        assert!(request.message() == &whole);
        assert_eq!(request.message().as_ptr().addr() % 64, 0, "views are aligned as offsets are");
        pair.server.conn.request(request.token()).finish();
        let now = (pair.server.conn.stats().bytes_copied_in, pair.server.reads);
        steady = (now.0 - last.0, now.1 - last.1);
        last = now;
    }
    steady
}

#[test]
fn a_large_first_piece_with_a_short_end_is_not_copied() {
    // As sent by omniORB: nearly all in the first piece, the last bytes in a fragment of their own.
    let (copied, reads) = steady(MIB + 48, 16, MIB + 10, Cut::Whole);
    assert!(copied <= 28, "{copied} octets: a header of twelve and one of sixteen");
    assert!(reads <= 3, "{reads}");
}

#[test]
fn large_fragments_are_not_copied() {
    for step in [16 * 1024, 64 * 1024 - 16, 256 * 1024] {
        let (copied, reads) = steady(step, step, MIB, Cut::Whole);
        let pieces = MIB / step + 2;
        assert!(copied <= 16 * pieces as u64, "{copied} octets, {step} each");
        assert!(reads <= pieces + 2, "{reads} reads, {step} each");
    }
}

#[test]
fn small_fragments_are_copied_once() {
    let (copied, _) = steady(4096, 4080, MIB, Cut::Whole);
    assert!(copied >= MIB as u64, "the count tells the truth");
    assert!(copied <= (MIB + MIB / 8) as u64, "{copied}");
}

#[test]
fn fragments_of_giop_1_1_are_copied() {
    let mut pair = Pair::new(Cut::Whole);
    let ask = Ask { version: Version::V1_1, body: body(MIB), ..Ask::default() };
    pair.server.inject(&fragmented(&ask.octets(), MIB / 2, MIB / 4).concat());
    pair.drive();
    assert!(pair.request().arguments().rest() == ask.body);
    assert!(pair.server.conn.stats().bytes_copied_in >= MIB as u64);
}

#[test]
fn the_first_message_is_moved_little() {
    let mut pair = Pair::new(Cut::Whole);
    let whole = large(8, 4 * MIB);
    pair.server.inject(&fragmented(&whole, 4 * MIB, 16).concat());
    pair.drive();
    assert!(pair.request().message() == &whole);
    let copied = pair.server.conn.stats().bytes_copied_in;
    assert!(copied <= (WINDOW_SIZE + 100) as u64, "{copied}");
}

#[test]
fn every_cut_joins_the_same_messages() {
    let wholes = [large(2, 20_000), large(4, 50_000)];
    let small = Ask { id: 6, ..Ask::default() }.octets();
    let mut stream = Vec::new();
    for whole in wholes.iter().chain(&wholes) {
        stream.extend(fragmented(whole, 16_400, 17_000).concat());
        stream.extend_from_slice(&small);
    }
    // A fragment of eight bytes and an empty one after large ones.
    let mut tail = fragmented(&wholes[0], wholes[0].len() / 8 * 8, 8);
    if tail.len() == 1 {
        tail.push(fragment_header(2, 0, false));
    }
    stream.extend(tail.concat());
    every_cut_with(Limits::default(), Limits::default(), |pair| {
        pair.server.inject(&stream);
        pair.drive();
        for whole in wholes.iter().chain(&wholes) {
            assert!(pair.request().message() == whole);
            assert_eq!(pair.request().id(), RequestId(6));
        }
        assert!(pair.request().message() == &wholes[0]);
        assert!(!pair.server.conn.lifecycle().is_closing());
    });
}

#[test]
fn large_requests_may_interleave_with_each_other_and_with_small_messages() {
    let wholes: Vec<_> = (0..3).map(|i| large(2 * i, 300_000 + 8 * i as usize)).collect();
    let small = Ask { id: 100, ..Ask::default() }.octets();
    for cut in [Cut::Whole, Cut::At(70_003), Cut::At(131_072), Cut::At(400_009)] {
        for step in [17_000, 40_000, 90_000] {
            let mut pair = Pair::new(cut);
            let mut pieces: Vec<_> =
                wholes.iter().map(|whole| fragmented(whole, step, step).into_iter()).collect();
            let mut asked = 0;
            let mut left = true;
            while left {
                left = false;
                for piece in pieces.iter_mut().filter_map(Iterator::next) {
                    pair.server.inject(&piece);
                    pair.server.inject(&small);
                    asked += 1;
                    left = true;
                }
            }
            pair.drive();
            assert_eq!(pair.server.requests.len(), asked + 3);
            for (id, whole) in [0, 2, 4].into_iter().zip(&wholes) {
                let found = |request: &&giop_proto::IncomingRequest| request.id() == RequestId(id);
                assert!(pair.server.requests.iter().find(found).unwrap().message() == whole);
            }
        }
    }
}

#[test]
fn replies_take_the_same_way() {
    let mut pair = Pair::new(Cut::Whole);
    for round in 0..4 {
        let before = pair.client.conn.stats().bytes_copied_in;
        let call = pair.call(&Ask::default());
        pair.drive();
        let request = pair.request();
        let id = pair.client.conn.call(call).request_id();
        let answer = reply(Version::V1_2, id, ReplyStatus::NoException, &body(MIB)).into_bytes();
        pair.server.conn.request(request.token()).finish();
        for piece in fragmented(&answer, 400_000, 400_000) {
            pair.client.inject(&piece);
        }
        pair.drive();
        assert!(pair.client.outcome(call).unwrap().message() == &answer);
        let copied = pair.client.conn.stats().bytes_copied_in - before;
        assert!(round < 2 || copied <= 64, "{copied} octets in round {round}");
    }
}

#[test]
fn a_cancelled_request_gives_its_buffer_back() {
    let mut pair = Pair::new(Cut::Whole);
    let pieces = fragmented(&large(2, MIB), 200_000, 200_000);
    pair.server.inject(&pieces[..3].concat());
    pair.server.inject(&cancel(Version::V1_2, 2));
    pair.server.inject(&pieces[3..].concat());
    pair.drive();
    assert!(pair.server.requests.is_empty() && !pair.server.conn.lifecycle().is_closing());
    let stats = pair.server.conn.stats();
    assert_eq!(stats.stray_messages as usize, pieces.len() - 3);
    assert!(stats.bytes_skipped >= 400_000, "nobody wants them: {}", stats.bytes_skipped);
    pair.server.inject(&pieces.concat());
    pair.drive();
    assert_eq!(pair.request().id(), RequestId(2));
    assert!(pair.pool.stats().hits > 0);
}

#[test]
fn a_fragment_that_lies_about_its_length_gets_little_memory() {
    let mut pair = Pair::new(Cut::Whole);
    let whole = large(2, 40_000);
    pair.server.inject(&fragmented(&whole, 20_000, 8)[0]);
    pair.server.inject(&fragment_header(2, 15 << 20, true));
    pair.server.inject(&[1; 1000]);
    pair.drive();
    let held = pair.pool.stats().held;
    assert!(held <= 5 * WINDOW_SIZE, "{held} octets for 21,000");
    // Its timeout depends on its size, and its memory is returned.
    pair.wait(Duration::from_secs(30 + 15 * 16 + 2));
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::SlowPeer(SlowPeer::Message)));
    drop(pair.server);
    assert!(pair.pool.stats().held <= 2 * (WINDOW_SIZE + 64), "{}", pair.pool.stats().held);
}

#[test]
fn a_fragment_without_room_for_its_id_ends_the_connection() {
    for size in 0..4u32 {
        let mut pair = Pair::new(Cut::Whole);
        pair.server.inject(&fragmented(&large(2, 40_000), 20_000, 8)[0]);
        let mut octets = fragment_header(2, 0, false);
        octets[8..12].copy_from_slice(&size.to_ne_bytes());
        pair.server.inject(&octets);
        pair.drive();
        let reason = pair.server.conn.lifecycle().close_reason();
        assert!(
            matches!(reason, Some(CloseReason::Protocol(ProtocolError::Malformed { .. }))),
            "{size}: {reason:?}"
        );
    }
}

#[test]
fn fragments_past_the_limit_are_skipped_and_the_request_is_refused() {
    let mut limits = Limits::default();
    limits.max_message_size = 100_000;
    limits.max_fragment_memory = 300_000;
    // In one fragment that is too large by itself, and in several that are too large together.
    for (first, step) in [(20_000, 500_000), (60_000, 60_000), (20_000, 30_000)] {
        for cut in [Cut::Whole, Cut::At(20_010), Cut::At(90_001), Cut::Octets] {
            let mut pair = Pair::with_limits(cut, Limits::default(), limits.clone());
            let call = pair.client.conn.start_call(None, pair.now).unwrap();
            let id = pair.client.conn.call(call).request_id().0;
            // It stands for the fragments.
            pair.client.conn.call(call).send_request(&mut Ask::default().encoder());
            pair.client.awake = false;
            let whole = Ask { id, body: body(200_000), ..Ask::default() }.octets();
            pair.server.inject(&fragmented(&whole, first, step).concat());
            pair.server.inject(&large(1000, 50_000));
            pair.drive();
            assert_eq!(pair.request().id(), RequestId(1000));
            assert!(pair.server.requests.is_empty());
            pair.client.awake = true;
            pair.drive();
            let refused = pair.client.outcome(call).unwrap();
            let exception: SystemException = giop_codec::cdr::CdrDecode::decode(&mut refused.body()).unwrap();
            assert_eq!(exception.kind, SystemExceptionKind::ImpLimit);
            assert!(pair.pool.stats().held < 600_000);
        }
    }
}

#[test]
fn fragments_past_the_budget_of_the_connection_end_it() {
    let mut limits = Limits::default();
    limits.max_fragment_memory = 100_000;
    let mut pair = Pair::with_limits(Cut::Whole, Limits::default(), limits);
    pair.server.inject(&fragmented(&large(2, 200_000), 60_000, 60_000).concat());
    pair.drive();
    let expected = CloseReason::Protocol(ProtocolError::FragmentMemory { limit: 100_000 });
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&expected));
}

#[test]
fn a_fragment_waits_for_the_pool_and_goes_on() {
    let pool = Arc::new(BufferPool::new(7 * MIB / 2));
    let config = |role| Config::new(role, Arc::new(Limits::default()), Arc::clone(&pool));
    let mut pair = Pair::with_configs(Cut::Whole, config(Role::Client), config(Role::Server));
    let hog = pool.share(pool.take(5 * MIB / 2));
    let whole = large(2, 2 * MIB);
    pair.server.inject(&fragmented(&whole, 200_000, 200_000).concat());
    pair.drive();
    assert!(pair.server.requests.is_empty() && !pair.server.conn.wants_read());
    drop(hog);
    for _ in 0..10 {
        pair.wait(Duration::from_millis(10));
    }
    assert!(pair.request().message() == &whole);
    assert!(pool.stats().held <= pool.stats().cap);
}

#[test]
fn one_that_ends_in_the_middle_gives_everything_back() {
    let pieces = fragmented(&large(2, 400_000), 100_000, 100_000);
    let stream = pieces.concat();
    for end in (99_990..100_030).chain([150_000, 200_016, 399_999, stream.len() - 1]) {
        let mut pair = Pair::new(Cut::Whole);
        pair.server.inject(&stream[..end]);
        pair.drive();
        pair.server.eof = true;
        pair.drive();
        assert!(pair.server.closed, "{end}");
        let misses = pair.pool.stats().misses;
        let taken = pair.pool.take(120_000);
        assert!(pair.pool.stats().misses <= misses + 1);
        pair.pool.give_back(taken);
    }
}

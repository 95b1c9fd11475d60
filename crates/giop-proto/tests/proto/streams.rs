//! Requests that are handed out before their payload is received.

use std::sync::Arc;
use std::time::Duration;

use crate::util::messages::{Ask, fragmented};
use crate::util::streamed::{Table, body, pair, pair_of};
use crate::util::{Cut, Pair};
use giop_codec::giop::{ReplyStatus, RequestId};
use giop_proto::pool::WINDOW_SIZE;
use giop_proto::receive::{MAX_CHUNK_SIZE, STREAM_START_LEN};
use giop_proto::{
    BufferPool, Chunk, CloseReason, Config, IncomingRequest, Limits, Role, ServeToken, SlowPeer,
};

const MIB: usize = 1 << 20;

fn ask(key: &[u8], id: u32, len: usize) -> Ask {
    Ask { id, key: key.to_vec(), body: body(len), ..Ask::default() }
}

/// Takes all chunks, and checks how much is queued at a time.
fn take_all(pair: &mut Pair, token: ServeToken) -> (Vec<u8>, Chunk) {
    let mut octets = Vec::new();
    loop {
        match pair.server.conn.stream(token).take_chunk(pair.now) {
            Chunk::Bytes(chunk) => {
                assert!(!chunk.is_empty() && chunk.len() <= MAX_CHUNK_SIZE);
                octets.extend_from_slice(&chunk);
            }
            Chunk::Pending => {
                let before = pair.server.read;
                pair.wait(Duration::from_millis(10));
                if pair.server.read == before && !pair.server.conn.input().has_chunk() {
                    return (octets, Chunk::Pending);
                }
            }
            end => return (octets, end),
        }
    }
}

/// Requests chunks, and lets them be received.
fn ask_for_chunks(pair: &mut Pair, token: ServeToken) {
    assert_eq!(pair.server.conn.stream(token).take_chunk(pair.now), Chunk::Pending);
    pair.drive();
}

fn whole(pair: &mut Pair, request: &IncomingRequest) -> Vec<u8> {
    let mut octets = request.arguments().rest().to_vec();
    pair.server.conn.input_mut().open_stream(request.token(), u64::MAX);
    let (rest, end) = take_all(pair, request.token());
    assert_eq!(end, Chunk::End);
    assert_eq!(rest.len(), request.stream_len());
    octets.extend(rest);
    octets
}

#[test]
fn a_streamed_request_comes_before_its_payload_wherever_it_is_cut() {
    let len = 150_000;
    for cut in [1, 11, 12, 13, 60, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 100_000, 149_999, 150_100]
    {
        let mut pair = pair(Cut::At(cut));
        let ask = ask(b"streamed", 2, len);
        pair.server.inject(&ask.octets());
        pair.server.inject(&Ask { id: 4, ..Ask::default() }.octets());
        pair.drive();
        let request = pair.request();
        assert!(request.stream_len() > 0 && request.message().len() >= STREAM_START_LEN, "{cut}");
        assert!(pair.server.requests.is_empty(), "nothing overtakes it");
        assert!(whole(&mut pair, &request) == ask.body, "{cut}");
        pair.drive();
        assert_eq!(pair.request().id(), RequestId(4), "{cut}");
    }
}

#[test]
fn octets_one_at_a_time_make_the_same_stream() {
    let mut pair = pair(Cut::Octets);
    let ask = ask(b"streamed", 2, 70_000);
    pair.server.inject(&ask.octets());
    pair.server.inject(&ask.octets());
    pair.drive();
    for _ in 0..2 {
        let request = pair.request();
        assert!(whole(&mut pair, &request) == ask.body);
        pair.drive();
    }
}

#[test]
fn others_and_small_ones_are_handed_out_whole() {
    let mut pair = pair(Cut::Whole);
    for (key, len) in [(&b"other"[..], MIB), (b"streamed", 40_000), (b"streamed", 100), (b"other", MIB)] {
        for _ in 0..3 {
            let before = pair.server.conn.stats().bytes_copied_in;
            let ask = ask(key, 2, len);
            pair.server.inject(&ask.octets());
            pair.drive();
            let request = pair.request();
            assert_eq!((request.stream_len(), request.arguments().rest() == ask.body), (0, true));
            pair.server.conn.request(request.token()).finish();
            let copied = pair.server.conn.stats().bytes_copied_in - before;
            assert!(copied <= WINDOW_SIZE as u64 + 64 + 12, "{copied} of {len}");
        }
    }
    // Although there may be streams, a steady flood of other messages is not copied.
    let flood: Vec<u8> = (0..20).flat_map(|_| ask(b"other", 2, MIB).octets()).collect();
    let before = pair.server.conn.stats().bytes_copied_in;
    pair.server.inject(&flood);
    pair.drive();
    assert_eq!(pair.server.requests.len(), 20);
    assert!(pair.server.conn.stats().bytes_copied_in - before <= 21 * 12);
}

#[test]
fn a_stream_takes_constant_memory_and_the_peer_waits_for_its_taker() {
    let mut limits = Limits::default();
    limits.max_message_size = 64 << 20;
    let mut pair = pair_of(Cut::Whole, limits);
    let ask = ask(b"streamed", 2, 40 * MIB);
    pair.server.inject(&ask.octets());
    pair.drive();
    let request = pair.request();
    assert!(!pair.server.conn.wants_read(), "nobody takes anything");
    assert!(pair.server.read <= WINDOW_SIZE, "nothing is read that nobody asked for");
    pair.server.conn.input_mut().open_stream(request.token(), u64::MAX);
    ask_for_chunks(&mut pair, request.token());
    assert!(!pair.server.conn.wants_read());
    let read = pair.server.read;
    assert!(read <= 5 * MAX_CHUNK_SIZE + 2 * WINDOW_SIZE, "{read}");
    // The peer is not responsible for a wait for its own servant.
    pair.wait(Duration::from_secs(3600));
    assert!(!pair.server.conn.lifecycle().is_closing());
    assert!(whole(&mut pair, &request) == ask.body);
    let held = pair.pool.stats().held;
    assert!(held <= 8 * (MAX_CHUNK_SIZE + 64) + 4 * WINDOW_SIZE, "{held}");
    assert_eq!(pair.server.conn.stats().bytes_copied_in, 0);
}

#[test]
fn a_stream_that_is_given_up_is_skipped() {
    // Never opened, and the request is finished; opened and given up; given up in the middle of a read.
    for way in 0..3 {
        for cut in [Cut::Whole, Cut::At(100_001)] {
            let mut pair = pair(cut);
            let ask = ask(b"streamed", 2, 3 * MIB);
            pair.server.inject(&ask.octets());
            pair.drive();
            let request = pair.request();
            let token = request.token();
            match way {
                0 => pair.answer(&request, b"no"),
                1 => {
                    pair.server.conn.input_mut().open_stream(token, u64::MAX);
                    pair.answer(&request, b"soon");
                    ask_for_chunks(&mut pair, token);
                    assert!(matches!(pair.server.conn.stream(token).take_chunk(pair.now), Chunk::Bytes(_)));
                    pair.server.conn.stream(token).abandon();
                }
                _ => {
                    pair.server.conn.input_mut().open_stream(token, u64::MAX);
                    ask_for_chunks(&mut pair, token);
                    assert!(matches!(pair.server.conn.stream(token).take_chunk(pair.now), Chunk::Bytes(_)));
                    let buf = pair.server.conn.take_read_buf();
                    pair.server.conn.stream(token).abandon();
                    pair.server.conn.handle_read(buf, 0, pair.now);
                    pair.server.conn.request(token).finish();
                }
            }
            assert_eq!(pair.server.conn.stream(token).take_chunk(pair.now), Chunk::Lost);
            pair.server.inject(&Ask { id: 4, ..Ask::default() }.octets());
            pair.drive();
            assert_eq!(pair.request().id(), RequestId(4), "way {way}");
            assert!(pair.server.conn.stats().bytes_skipped > MIB as u64);
            // A late call does not affect the next stream.
            pair.server.inject(&Ask { id: 6, ..ask.clone() }.octets());
            pair.drive();
            let request = pair.request();
            pair.server.conn.stream(token).abandon();
            assert!(whole(&mut pair, &request) == ask.body);
        }
    }
}

#[test]
fn a_stream_that_breaks_off_is_lost() {
    for end in [STREAM_START_LEN, 70_000, 500_000, MIB] {
        let mut pair = pair(Cut::Whole);
        let octets = ask(b"streamed", 2, MIB).octets();
        pair.server.inject(&octets[..end]);
        pair.drive();
        let request = pair.request();
        pair.server.conn.input_mut().open_stream(request.token(), u64::MAX);
        let (_, pending) = take_all(&mut pair, request.token());
        assert_eq!(pending, Chunk::Pending);
        pair.server.eof = true;
        pair.drive();
        assert_eq!(take_all(&mut pair, request.token()).1, Chunk::Lost, "{end}");
    }
}

#[test]
fn a_stream_that_was_whole_outlives_its_connection() {
    let mut pair = pair(Cut::Whole);
    let ask = ask(b"streamed", 2, 200_000);
    pair.server.inject(&ask.octets());
    pair.drive();
    let request = pair.request();
    pair.server.conn.input_mut().open_stream(request.token(), u64::MAX);
    ask_for_chunks(&mut pair, request.token());
    pair.server.conn.abort(CloseReason::Local);
    let (rest, end) = take_all(&mut pair, request.token());
    assert_eq!(end, Chunk::End);
    assert_eq!(rest.len(), request.stream_len());
}

#[test]
fn a_peer_that_stops_in_the_middle_is_timed() {
    let mut pair = pair(Cut::Whole);
    let octets = ask(b"streamed", 2, MIB).octets();
    pair.server.inject(&octets[..200_000]);
    pair.drive();
    let request = pair.request();
    pair.server.conn.input_mut().open_stream(request.token(), u64::MAX);
    assert_eq!(take_all(&mut pair, request.token()).1, Chunk::Pending);
    pair.wait(Duration::from_secs(30 + 17));
    pair.wait(Duration::from_secs(30 + 17));
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::SlowPeer(SlowPeer::Message)));
    assert_eq!(take_all(&mut pair, request.token()).1, Chunk::Lost);
}

#[test]
fn one_over_the_budget_is_refused_and_skipped() {
    let mut limits = Limits::default();
    limits.max_requests = 1;
    let mut pair = pair_of(Cut::Whole, limits);
    // The server awaits a reply itself, so it must continue to read.
    pair.server.inject(&Ask { id: 2, ..Ask::default() }.octets());
    pair.drive();
    let first = pair.request();
    let call = pair.server.conn.start_call(None, pair.now).unwrap();
    pair.server.conn.call(call).send_request(&mut Ask::default().encoder());
    pair.server.inject(&ask(b"streamed", 4, MIB).octets());
    pair.client.awake = false;
    pair.drive();
    assert!(pair.server.requests.is_empty());
    assert_eq!(pair.server.conn.stats().requests_refused, 1);
    assert!(pair.server.conn.stats().bytes_skipped > (MIB / 2) as u64);
    pair.server.conn.request(first.token()).finish();
    pair.server.inject(&Ask { id: 6, ..Ask::default() }.octets());
    pair.drive();
    assert_eq!(pair.request().id(), RequestId(6));
}

/// A fragmented request that is handed out before all of its fragments arrive leaves no charge in the pool,
/// however it ends.
#[test]
fn a_streamed_request_in_fragments_leaves_no_charge() {
    let octets = ask(b"streamed", 2, 150_000).octets();
    let pieces = fragmented(&octets, 4096, 4096);
    for come in [5, 6, 7, 20, pieces.len()] {
        let mut pair = pair(Cut::Whole);
        for piece in &pieces[..come] {
            pair.server.inject(piece);
            pair.drive();
        }
        let request = pair.request();
        assert_eq!(pair.pool.stats().outside, 0, "{come} pieces");
        if come == pieces.len() {
            pair.server.conn.input_mut().open_stream(request.token(), u64::MAX);
            assert_eq!(take_all(&mut pair, request.token()).1, Chunk::End);
        }
        let pool = Arc::clone(&pair.pool);
        drop((request, pair));
        let stats = pool.stats();
        assert_eq!((stats.outside, stats.held), (0, stats.free), "{come} pieces");
    }
}

#[test]
fn without_memory_a_stream_goes_on_in_small_steps() {
    let pool = Arc::new(BufferPool::new(WINDOW_SIZE));
    let config = |role| Config::new(role, Arc::new(Limits::default()), Arc::clone(&pool));
    let mut server = config(Role::Server);
    server.streams = Some(Arc::new(Table));
    let mut pair = Pair::with_configs(Cut::Whole, config(Role::Client), server);
    let ask = ask(b"streamed", 2, 300_000);
    pair.server.inject(&ask.octets());
    for _ in 0..10_000 {
        pair.wait(Duration::from_millis(10));
        if !pair.server.requests.is_empty() {
            break;
        }
    }
    let request = pair.request();
    assert!(whole(&mut pair, &request) == ask.body);
}

/// The streams alternate. When one is given up, a piece of another that is already discarded may be in
/// progress.
#[test]
fn pieces_of_untaken_streams_are_discarded() {
    for size in [8_024, 16_408, 19_504, 40_024, 70_024] {
        let pool = Arc::new(BufferPool::new(64 << 20));
        let config = |role| Config::new(role, Arc::new(Limits::default()), Arc::clone(&pool));
        let (mut client, mut server) = (config(Role::Client), config(Role::Server));
        client.fragment_size = Some(size);
        server.streams = Some(Arc::new(Table));
        let mut pair = Pair::with_configs(Cut::Whole, client, server);
        let calls: Vec<_> = (0..4).map(|_| pair.call(&ask(b"streamed", 0, 131_077))).collect();
        for _ in &calls {
            pair.drive();
            let request = pair.request();
            pair.answer(&request, b"untaken");
        }
        pair.drive();
        assert_eq!(pair.server.conn.lifecycle().close_reason(), None, "{size}");
        for call in calls {
            assert_eq!(pair.client.outcome(call).unwrap().body().rest(), b"untaken", "{size}");
        }
    }
}

/// It exceeds the maximum size of a message, but the window that it is read into holds all of it.
#[test]
fn a_streamed_request_may_be_whole_when_it_is_handed_out() {
    let mut limits = Limits::default();
    limits.max_message_size = 20_000;
    let head = ask(b"streamed", 0, 0).octets().len();
    for len in (WINDOW_SIZE - head + 1..).take(100) {
        let mut pair = pair_of(Cut::Whole, limits.clone());
        let refused = pair.call(&ask(b"other", 0, 30_000));
        pair.drive();
        assert_eq!(pair.client.outcome(refused).unwrap().status(), ReplyStatus::SystemException);
        for call in [(); 3].map(|()| pair.call(&ask(b"streamed", 0, len))) {
            pair.drive();
            let request = pair.request();
            let mut octets = request.arguments().rest().to_vec();
            let coming = request.stream_len();
            pair.server.conn.input_mut().open_stream(request.token(), coming as u64);
            let (rest, end) = take_all(&mut pair, request.token());
            assert_eq!((rest.len(), end), (coming, Chunk::End));
            octets.extend(rest);
            assert!(octets == body(len));
            pair.answer(&request, b"taken");
            pair.drive();
            assert_eq!(pair.client.outcome(call).unwrap().body().rest(), b"taken");
        }
    }
}

/// A reader may keep the buffer until more bytes arrive. The fragments in it would have to wait for these.
#[test]
fn fragments_that_waited_for_chunks_to_be_taken_are_cut_before_more_is_read() {
    let mut pair = pair(Cut::Whole);
    let ask = ask(b"streamed", 2, 60_000);
    for piece in fragmented(&ask.octets(), 20_000, 5_000) {
        pair.server.inject(&piece);
    }
    pair.drive();
    let request = pair.request();
    let mut octets = request.arguments().rest().to_vec();
    pair.server.conn.input_mut().open_stream(request.token(), u64::MAX);
    let mut taken = 0;
    loop {
        match pair.server.conn.stream(request.token()).take_chunk(pair.now) {
            Chunk::Bytes(chunk) => {
                octets.extend_from_slice(&chunk);
                taken += 1;
            }
            end => {
                assert_eq!(end, Chunk::End);
                break;
            }
        }
        assert!(!pair.server.conn.wants_read(), "after {taken} chunks");
        assert!(pair.server.conn.poll_event().is_none());
    }
    assert!(octets == ask.body && taken > 5, "{taken} chunks");
    assert!(pair.server.conn.poll_event().is_none());
    assert!(pair.server.conn.wants_read());
}

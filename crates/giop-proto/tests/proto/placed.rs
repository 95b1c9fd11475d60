//! Streams that are read into lent memory, and streams that are received in fragments.

use std::sync::Arc;
use std::time::Duration;

use crate::util::messages::{Ask, cancel, fragmented};
use crate::util::streamed::{ask, body, loan, next, pair, pair_of, place, placed};
use crate::util::{Cut, Pair};
use giop_codec::giop::RequestId;
use giop_codec::{ByteOrder, Version};
use giop_proto::receive::STREAM_START_LEN;
use giop_proto::{
    AlignedBuffer, BufferPool, Chunk, CloseReason, Limits, Loan, LoanReturn, ProtocolError, SlowPeer,
};

const MIB: usize = 1 << 20;

/// The versions that have fragments.
const FRAGMENTED: [Version; 2] = [Version::V1_1, Version::V1_2];

/// Runs one request, and another one after it.
fn run(cut: Cut, pieces: &[Vec<u8>], ask: &Ask, block: usize) -> Pair {
    let mut pair = pair(cut);
    for piece in pieces {
        pair.server.inject(piece);
    }
    pair.server.inject(&Ask { id: 90, ..Ask::default() }.octets());
    pair.drive();
    let request = pair.request();
    assert!(request.stream_len() > 0, "{cut:?}");
    assert!(request.message().len() >= STREAM_START_LEN);
    assert!(placed(&mut pair, &request, block, ask.body.len()) == ask.body, "{cut:?}");
    pair.server.conn.request(request.token()).finish();
    pair.drive();
    assert_eq!(pair.request().id(), RequestId(90), "{cut:?}");
    pair
}

#[test]
fn lent_memory_is_filled_wherever_the_stream_is_cut() {
    for version in FRAGMENTED {
        let ask = Ask { version, ..ask(2, 20_000) };
        let octets = ask.octets();
        // A large first piece and a short end; small pieces of which several form the start; a large piece
        // after a tiny one.
        for (first, step, block) in [(18_000, 1_000, 700), (1_024, 1_016, 5_000), (72, 18_000, 20_000)] {
            let pieces = fragmented(&octets, first, step);
            let ends: Vec<usize> = pieces
                .iter()
                .scan(0, |end, piece| {
                    *end += piece.len();
                    Some(*end)
                })
                .collect();
            run(Cut::Octets, &pieces, &ask, block);
            // Everywhere around headers and the start of the stream, and at intervals in between.
            let is_near = |at: usize| {
                at < 200
                    || at.abs_diff(STREAM_START_LEN) < 100
                    || ends.iter().any(|end| at + 20 > *end && at < end + 40)
            };
            for at in (1..*ends.last().unwrap()).filter(|at| at % 11 == 0 || is_near(*at)) {
                run(Cut::At(at), &pieces, &ask, block);
            }
        }
    }
}

#[test]
fn a_message_in_one_piece_is_placed_wherever_it_is_cut() {
    let ask = ask(2, 70_000);
    let octets = ask.octets();
    let near = [STREAM_START_LEN, 65_536, octets.len()];
    let cuts =
        (1..octets.len()).filter(|at| at % 211 == 0 || near.iter().any(|near| at.abs_diff(*near) < 40));
    for at in cuts {
        run(Cut::At(at), std::slice::from_ref(&octets), &ask, 3_000);
    }
    run(Cut::Octets, &[octets], &ask, 3_000);
}

#[test]
fn pieces_of_any_size_make_the_same_stream() {
    for version in FRAGMENTED {
        let ask = Ask { version, ..ask(2, 300_000) };
        let octets = ask.octets();
        // If the first piece does not even contain the operation, the pieces are joined.
        let mut joined = pair(Cut::Whole);
        fragmented(&octets, 16, 20_000).iter().for_each(|piece| joined.server.inject(piece));
        joined.drive();
        let request = joined.request();
        assert_eq!((request.stream_len(), request.arguments().rest() == ask.body), (0, true));
        for first in [72, 1_024, 16_384, 16_392, 70_000, 200_000] {
            for step in [1_016, 15_000, 16_384, 65_536, 100_000, 262_144] {
                for block in [1_000, 100_000, 300_000] {
                    let pair = run(Cut::Whole, &fragmented(&octets, first, step), &ask, block);
                    let copied = pair.server.conn.stats().bytes_copied_in;
                    assert!(step < 15_000 || copied <= 200_000, "{version:?} {first} {step}: {copied}");
                }
            }
        }
    }
}

#[test]
fn fragments_take_constant_memory_whatever_the_size() {
    let mut limits = Limits::default();
    limits.max_message_size = MIB;
    let len = 24 * MIB;
    let kinds = FRAGMENTED
        .map(|version| [(1_024, 1_016), (8_192, 100_000), (200, 16 * MIB)].map(|kind| (version, kind)));
    for (version, (first, step)) in kinds.into_iter().flatten() {
        let ask = Ask { version, ..ask(2, len) };
        let octets = ask.octets();
        let mut pair = pair_of(Cut::Whole, limits.clone());
        for piece in fragmented(&octets, first, step) {
            pair.server.inject(&piece);
        }
        pair.drive();
        let request = pair.request();
        assert!(pair.server.read <= 3 << 16, "nothing is read that nobody asked for: {}", pair.server.read);
        // With chunks, the sender waits for the reader of the stream.
        pair.server
            .conn
            .input_mut()
            .open_stream(request.token(), (len - request.arguments().rest().len()) as u64);
        let mut come = request.arguments().rest().to_vec();
        loop {
            match pair.server.conn.stream(request.token()).take_chunk(pair.now) {
                Chunk::Bytes(octets) => come.extend_from_slice(&octets),
                Chunk::Pending => pair.drive(),
                end => break assert_eq!(end, Chunk::End),
            }
            let held = pair.pool.stats().held;
            assert!(held <= 3 * MIB, "{held}");
        }
        assert!(come == ask.body);
        pair.server.conn.request(request.token()).finish();
        next(&mut pair, 4);
    }
}

#[test]
fn between_pieces_other_messages_come_and_a_cancel_ends_the_stream() {
    let pieces = fragmented(&ask(2, 100_000).octets(), 20_000, 20_000);
    let mut pair = pair(Cut::Whole);
    pair.server.inject(&pieces[0]);
    pair.drive();
    let request = pair.request();
    assert_eq!(request.stream_len(), usize::MAX, "nobody knows how much comes");
    pair.server.conn.input_mut().open_stream(request.token(), 90_000);
    // Requested, so that reading continues.
    assert_eq!(pair.server.conn.stream(request.token()).take_chunk(pair.now), Chunk::Pending);
    next(&mut pair, 4);
    // Another message in pieces is joined.
    let other = fragmented(&ask(6, 40_000).octets(), 17_000, 10_000);
    pair.server.inject(&other[0]);
    pair.server.inject(&pieces[1]);
    other[1..].iter().for_each(|piece| pair.server.inject(piece));
    pair.drive();
    let joined = pair.request();
    assert_eq!((joined.stream_len(), joined.arguments().rest() == body(40_000)), (0, true));
    let Chunk::Bytes(octets) = pair.server.conn.stream(request.token()).take_chunk(pair.now) else {
        panic!()
    };
    assert_eq!(octets.len(), 20_000);
    let loan = loan(50_000);
    pair.server.conn.stream(request.token()).lend(loan, pair.now).unwrap();
    pair.server.inject(&cancel(Version::V1_2, 2));
    pair.drive();
    assert_eq!(pair.server.cancelled, [request.token()]);
    let LoanReturn::Loan(loan) = pair.server.conn.input_mut().take_loan() else { panic!() };
    assert_eq!(loan.end::<Vec<u8>>().unwrap().1, 0);
    assert_eq!(pair.server.conn.stream(request.token()).take_chunk(pair.now), Chunk::Lost);
    next(&mut pair, 8);
    // Later pieces of it belong to nothing.
    pair.server.inject(&pieces[2]);
    next(&mut pair, 10);
    assert_eq!(pair.server.conn.stats().stray_messages, 1);
}

#[test]
fn a_second_stream_begins_when_the_end_of_the_first_was_taken() {
    let first = fragmented(&ask(2, 100_000).octets(), 20_000, 20_000);
    let second = fragmented(&ask(6, 100_000).octets(), 20_000, 20_000);
    let mut pair = pair(Cut::Whole);
    pair.server.inject(&first[0]);
    pair.drive();
    let request = pair.request();
    pair.server.conn.input_mut().open_stream(request.token(), 90_000);
    pair.server.conn.stream(request.token()).lend(loan(50_000), pair.now).unwrap();
    pair.drive();
    // In one read.
    pair.server.inject(&[cancel(Version::V1_2, 2), second[0].clone()].concat());
    pair.drive();
    assert_eq!(pair.server.cancelled, [request.token()]);
    assert!(pair.server.conn.input().has_chunk(), "whoever takes the first one is told");
    assert!(pair.server.requests.is_empty() && !pair.server.conn.wants_read());
    let LoanReturn::Loan(_) = pair.server.conn.input_mut().take_loan() else { panic!() };
    assert_eq!(pair.server.conn.stream(request.token()).take_chunk(pair.now), Chunk::Lost);
    pair.drive();
    let later = pair.request();
    pair.server.conn.input_mut().open_stream(later.token(), 90_000);
    assert!(!pair.server.conn.input().has_chunk());
    assert_eq!(pair.server.conn.stream(later.token()).take_chunk(pair.now), Chunk::Pending);
    pair.server.inject(&second[1]);
    pair.drive();
    let Chunk::Bytes(octets) = pair.server.conn.stream(later.token()).take_chunk(pair.now) else { panic!() };
    assert_eq!(octets.len(), 20_000);
}

#[test]
fn a_stream_goes_on_among_more_requests_than_may_be_served() {
    let mut limits = Limits::default();
    limits.max_requests = 2;
    let pieces = fragmented(&ask(2, 100_000).octets(), 20_000, 20_000);
    let mut pair = pair_of(Cut::Whole, limits);
    pair.server.inject(&pieces[0]);
    pair.drive();
    let request = pair.request();
    pair.server.conn.input_mut().open_stream(request.token(), 90_000);
    assert_eq!(pair.server.conn.stream(request.token()).take_chunk(pair.now), Chunk::Pending);
    for id in [4, 6, 8] {
        pair.server.inject(&ask(id, 10).octets());
    }
    pair.server.inject(&pieces[1]);
    pair.drive();
    assert_eq!(pair.server.conn.serving_count(), 2);
    let Chunk::Bytes(octets) = pair.server.conn.stream(request.token()).take_chunk(pair.now) else {
        panic!()
    };
    assert_eq!(octets.len(), 20_000);
}

#[test]
fn fragments_that_lie_end_the_connection_or_the_stream() {
    let ask = ask(2, 100_000);
    let pieces = fragmented(&ask.octets(), 20_000, 20_000);
    let begun = |later: &[&[u8]]| {
        let mut pair = pair(Cut::Whole);
        pair.server.inject(&pieces[0]);
        pair.drive();
        let request = pair.request();
        pair.server.conn.input_mut().open_stream(request.token(), 85_000);
        assert_eq!(pair.server.conn.stream(request.token()).take_chunk(pair.now), Chunk::Pending);
        later.iter().for_each(|octets| pair.server.inject(octets));
        pair.drive();
        (pair, request)
    };
    // Another byte order, another version, the same id again.
    let swap = Ask {
        order: if ByteOrder::NATIVE == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big },
        ..ask.clone()
    };
    let mut swapped = fragmented(&swap.octets(), 20_000, 20_000).swap_remove(1);
    swapped[12..16].copy_from_slice(&2u32.to_ne_bytes());
    swapped[12..16].reverse();
    let lies: [(&[u8], ProtocolError); 2] =
        [(&swapped, ProtocolError::FragmentMismatch), (&pieces[0], ProtocolError::FragmentOrder)];
    for (lie, error) in lies {
        let (mut pair, request) = begun(&[lie]);
        assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::Protocol(error)));
        assert_eq!(pair.server.conn.stream(request.token()).take_chunk(pair.now), Chunk::Lost);
    }
    // It ends early: the reader of the stream sees the end.
    let mut last = pieces[1].clone();
    last[6] &= !2;
    let (mut pair, request) = begun(&[&last]);
    let Chunk::Bytes(octets) = pair.server.conn.stream(request.token()).take_chunk(pair.now) else {
        panic!()
    };
    assert_eq!(octets.len(), 20_000);
    assert_eq!(pair.server.conn.stream(request.token()).take_chunk(pair.now), Chunk::End);
    next(&mut pair, 4);
    // It never ends: the reader gives it up, and the rest is discarded.
    let (mut pair, request) = begun(&[&pieces[1]]);
    assert!(matches!(pair.server.conn.stream(request.token()).take_chunk(pair.now), Chunk::Bytes(_)));
    assert!(pair.server.conn.stream(request.token()).abandon().is_none());
    pair.client.awake = false; // it would close an idle connection
    for _ in 0..1_000 {
        pair.server.inject(&pieces[1]);
        pair.wait(Duration::from_secs(1));
        assert_eq!(pair.server.conn.lifecycle().close_reason(), None);
    }
    next(&mut pair, 4);
    assert!(!pair.server.conn.lifecycle().is_closing());
    pair.wait(Duration::from_secs(40));
    assert_eq!(pair.server.conn.lifecycle().close_reason(), Some(&CloseReason::SlowPeer(SlowPeer::Message)));
}

#[test]
fn a_refused_request_in_pieces_is_thrown_away_in_silence() {
    let kinds = [(20_000, 1_000), (20_000, 20_000), (100, 1_000), (100, 50_000)];
    let kinds = FRAGMENTED.map(|version| kinds.map(|kind| (version, kind)));
    for (version, (first, step)) in kinds.into_iter().flatten() {
        let mut limits = Limits::default();
        (limits.max_requests, limits.max_control_rate) = (1, 10);
        let mut pair = pair_of(Cut::Whole, limits);
        // The server awaits a reply itself, so it must continue to read.
        pair.server.inject(&Ask { id: 2, ..Ask::default() }.octets());
        pair.drive();
        let first_request = pair.request();
        let call = pair.server.conn.start_call(None, pair.now).unwrap();
        pair.server.conn.call(call).send_request(&mut Ask::default().encoder());
        pair.client.awake = false;
        let refused = Ask { version, ..ask(4, 200_000) };
        for piece in fragmented(&refused.octets(), first, step) {
            pair.server.inject(&piece);
        }
        pair.drive();
        assert!(pair.server.requests.is_empty());
        let stats = pair.server.conn.stats();
        assert_eq!((stats.requests_refused, stats.stray_messages), (1, 0), "{first} and {step}");
        pair.server.conn.request(first_request.token()).finish();
        next(&mut pair, 6);
    }
}

#[test]
fn what_is_lent_comes_back_whatever_becomes_of_the_connection() {
    let octets = ask(2, MIB).octets();
    let begun = || {
        let mut pair = pair(Cut::Whole);
        pair.server.inject(&octets[..200_000]);
        pair.drive();
        let request = pair.request();
        pair.server.conn.input_mut().open_stream(request.token(), 0);
        let loan = loan(500_000);
        pair.server.conn.stream(request.token()).lend(loan, pair.now).unwrap();
        (pair, request.token())
    };
    let filled = |returned| match returned {
        LoanReturn::Loan(loan) => loan.end::<Vec<u8>>().unwrap().1,
        other => panic!("{other:?}"),
    };
    // The peer closes its side.
    let (mut pair, token) = begun();
    pair.server.eof = true;
    pair.drive();
    assert_eq!(filled(pair.server.conn.input_mut().take_loan()), 200_000 - 65_536);
    assert_eq!(pair.server.conn.stream(token).take_ready_chunk(), Chunk::Lost);
    // The connection ends while a reader has the memory.
    let (mut pair, token) = begun();
    let mut buf = pair.server.conn.take_read_buf();
    buf.io_slices()[0][..5].fill(1);
    pair.server.conn.abort(CloseReason::Local);
    assert!(matches!(pair.server.conn.input_mut().take_loan(), LoanReturn::Pending));
    assert!(pair.server.conn.input().is_loan_in_use());
    assert!(pair.server.conn.input_mut().take_orphaned_loans().is_empty());
    pair.server.conn.handle_read(buf, 5, pair.now);
    assert_eq!(filled(pair.server.conn.input_mut().take_loan()), 5);
    assert_eq!(pair.server.conn.stream(token).take_ready_chunk(), Chunk::Lost);
    // It is given up while a reader has the memory.
    for end in [false, true] {
        let (mut pair, token) = begun();
        let buf = pair.server.conn.take_read_buf();
        assert!(pair.server.conn.stream(token).abandon().is_none());
        assert!(pair.server.conn.input_mut().take_orphaned_loans().is_empty());
        if end {
            pair.server.conn.abort(CloseReason::Local);
        }
        pair.server.conn.handle_read(buf, 100, pair.now);
        assert_eq!(pair.server.conn.input_mut().take_orphaned_loans().len(), 1);
        assert!(matches!(pair.server.conn.input_mut().take_loan(), LoanReturn::Nothing));
        if !end {
            pair.server.wire.drain(..100);
            pair.server.inject(&octets[200_000..]);
            next(&mut pair, 4);
        }
    }
    // It is given up, and the receiver has the memory.
    let (mut pair, token) = begun();
    assert!(pair.server.conn.stream(token).abandon().is_some());
    // The reader keeps it.
    let (mut pair, _) = begun();
    let buf = pair.server.conn.take_read_buf();
    pair.server.conn.input_mut().lose_loan();
    assert!(matches!(pair.server.conn.input_mut().take_loan(), LoanReturn::Nothing));
    assert!(buf.give_back(&pair.pool).is_some());
}

/// Sends the last piece of the message slowly, at `rate` bytes per second.
fn trickle(pair: &mut Pair, octets: &[u8], rate: usize) {
    for part in octets.chunks(rate) {
        pair.wait(Duration::from_secs(1));
        pair.server.inject(part);
        pair.drive();
    }
}

#[test]
fn the_least_rate_holds_for_what_is_placed() {
    let len = 8 * MIB;
    let octets = ask(2, len).octets();
    // Fast enough, although it takes longer than the fixed timeout.
    for block in [100_000, len] {
        let mut pair = pair(Cut::Whole);
        pair.server.inject(&octets[..100_000]);
        pair.drive();
        let request = pair.request();
        let mut left = len - request.arguments().rest().len();
        pair.server.conn.input_mut().open_stream(request.token(), left as u64);
        let mut at = 100_000;
        while left > 0 {
            let (come, end) = place(&mut pair, &request, block.min(left), left);
            left -= come.len();
            if end == Chunk::Pending {
                let LoanReturn::Pending = pair.server.conn.input_mut().take_loan() else { panic!() };
                let to = octets.len().min(at + 100_000);
                trickle(&mut pair, &octets[at..to], 100_000);
                at = to;
            }
            while let LoanReturn::Loan(loan) = pair.server.conn.input_mut().take_loan() {
                left -= loan.end::<Vec<u8>>().unwrap().1;
            }
            if matches!(pair.server.conn.input_mut().take_loan(), LoanReturn::Pending) {
                // Still lent: it continues.
                while matches!(pair.server.conn.input_mut().take_loan(), LoanReturn::Pending) {
                    let to = octets.len().min(at + 100_000);
                    trickle(&mut pair, &octets[at..to], 100_000);
                    at = to;
                    assert!(!pair.server.conn.lifecycle().is_closing(), "at {at} by {block}");
                    if pair.server.conn.input().has_chunk() {
                        break;
                    }
                }
                if let LoanReturn::Loan(loan) = pair.server.conn.input_mut().take_loan() {
                    left -= loan.end::<Vec<u8>>().unwrap().1;
                }
            }
            assert!(!pair.server.conn.lifecycle().is_closing(), "at {at} by {block}");
        }
    }
    // Too slow, in any portions: in one piece and in pieces.
    for pieces in [vec![octets.clone()], fragmented(&octets, 20_000, 1_000)] {
        let mut pair = pair(Cut::Whole);
        let octets = pieces.concat();
        pair.server.inject(&octets[..100_000]);
        pair.drive();
        let request = pair.request();
        let left = len - request.arguments().rest().len();
        pair.server.conn.input_mut().open_stream(request.token(), left as u64);
        let mut seconds = 0;
        pair.client.awake = false; // it would close an idle connection
        for part in octets[100_000..].chunks(10_000) {
            while matches!(pair.server.conn.stream(request.token()).take_chunk(pair.now), Chunk::Bytes(_)) {}
            pair.wait(Duration::from_secs(1));
            pair.server.inject(part);
            pair.drive();
            seconds += 1;
            if pair.server.conn.lifecycle().is_closing() {
                break;
            }
        }
        assert_eq!(
            pair.server.conn.lifecycle().close_reason(),
            Some(&CloseReason::SlowPeer(SlowPeer::Message))
        );
        assert!((157..=160).contains(&seconds), "{seconds} s, not 30 s and 128 s for 8 MiB");
    }
}

#[test]
fn message_timeout_is_paused_without_a_lent_buffer() {
    let octets = ask(2, MIB).octets();
    let mut pair = pair(Cut::Whole);
    pair.server.inject(&octets[..100_000]);
    pair.drive();
    let request = pair.request();
    pair.server.conn.input_mut().open_stream(request.token(), 0);
    for _ in 0..5 {
        pair.wait(Duration::from_secs(3600));
        let loan = loan(1_000);
        pair.server.conn.stream(request.token()).lend(loan, pair.now).unwrap();
        pair.drive();
        assert!(!pair.server.conn.lifecycle().is_closing());
        let LoanReturn::Loan(_) = pair.server.conn.input_mut().take_loan() else { panic!() };
    }
}

#[test]
fn aligned_buffers_grow_with_what_has_come_and_come_back_to_the_pool() {
    let pool = Arc::new(BufferPool::new(16 << 20));
    for align in [1, 64, 4_096, 65_536] {
        let before = pool.stats().held;
        let len = 4 * MIB;
        let mut left = len;
        let mut buffer = Box::new(AlignedBuffer::take(&pool, len, align, 0).unwrap());
        assert!(pool.stats().held - before <= (64 << 10) + align, "{}", pool.stats().held);
        while left > 0 {
            let at = len - left;
            let loan = Loan::new(buffer, at as u64, left as u64).unwrap();
            let held = pool.stats().held - before;
            assert!(held <= (64 << 10).max(at * 4) + 2 * align + (5 * MIB) / 4, "{held} at {at}");
            let room = format!("{loan:?}");
            assert!(room.contains("filled: 0"), "{room}");
            let (back, _, failed) = loan.end::<AlignedBuffer>().unwrap();
            assert!(failed.is_none());
            buffer = back;
            let step = (64 << 10).max(at * 4).min(len) - at;
            left -= step;
        }
        let octets = buffer.into_bytes();
        assert_eq!((octets.len(), octets.as_ptr().addr() % align), (len, 0));
        drop(octets);
        let misses = pool.stats().misses;
        let again = AlignedBuffer::take(&pool, len, align, len).unwrap().into_bytes();
        assert_eq!((again.len(), pool.stats().misses), (len, misses), "it is used again");
    }
    // A buffer that is given up early leaves no charge.
    let held = pool.stats().held;
    drop(AlignedBuffer::take(&pool, 8 * MIB, 4_096, 0));
    assert_eq!(pool.stats().held, held);
    // A buffer that the pool could never hold is not charged. While others use the whole pool, there is none.
    assert!(AlignedBuffer::take(&pool, 64 * MIB, 4_096, 0).is_some());
    let small = Arc::new(BufferPool::new(300 << 10));
    let all = AlignedBuffer::take(&small, 100_000, 64, 100_000).unwrap();
    let more = AlignedBuffer::take(&small, 100_000, 64, 100_000).unwrap();
    assert!(AlignedBuffer::take(&small, 100_000, 64, 100_000).is_none());
    drop((all, more));
    assert!(AlignedBuffer::take(&small, 100_000, 64, 100_000).is_some());
}

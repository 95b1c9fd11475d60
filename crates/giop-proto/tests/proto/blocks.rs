//! Messages with a list of their blocks. Each block is read into a buffer of its own, and the list may be
//! wrong.

use std::sync::Arc;

use crate::util::messages::Ask;
use crate::util::{Cut, Pair};
use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, Seq};
use giop_codec::giop::{
    BlockList, ContextId, MIN_BLOCK_BYTES, MessageHeader, MessageType, ReplyHeader, ReplyStatus,
    RequestHeader, RequestId, ResponseFlags, ServiceContext, ServiceContexts, TargetAddress, begin_body,
    finish_message, insert_block_list, put_message_header,
};
use giop_codec::{ByteOrder, DecodeError, Version};
use giop_proto::{BufferPool, Config, Connection, Event, Limits, Role};
use proptest::prelude::*;

const PAGE_SIZE: usize = 4096;

/// The transferred values: bulk data between small values.
type Values = (Bytes, String, Seq<f64>, Bytes, u16);

fn values(scale: usize) -> Values {
    let octets = |len: usize| (0..len).map(|i| (i % 251) as u8).collect::<Bytes>();
    let doubles = (0..scale / 8 + 1).map(|i| i as f64).collect();
    (octets(scale + 3), "between".into(), doubles, octets(scale + 1), 77)
}

fn put(values: &Values, e: &mut Encoder) {
    values.0.encode(e).unwrap();
    values.1.encode(e).unwrap();
    values.2.encode(e).unwrap();
    values.3.encode(e).unwrap();
    values.4.encode(e).unwrap();
}

fn get(d: &mut Decoder<'_>) -> Result<Values, DecodeError> {
    Ok((Bytes::decode(d)?, String::decode(d)?, Seq::decode(d)?, Bytes::decode(d)?, d.read_u16()?))
}

fn request(
    id: RequestId,
    contexts: &[ServiceContext],
    announce: bool,
    body: impl Fn(&mut Encoder),
) -> Encoder {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    put_message_header(&mut e, MessageType::Request);
    RequestHeader {
        request_id: id,
        response: ResponseFlags::Target,
        target: TargetAddress::Key(b"key"),
        operation: "take",
        contexts: ServiceContexts::from(contexts),
    }
    .encode(&mut e)
    .unwrap();
    begin_body(&mut e);
    body(&mut e);
    assert_eq!(announce && insert_block_list(&mut e), announce);
    finish_message(&mut e, MessageHeader::SIZE_AT).unwrap();
    e
}

fn reply(id: RequestId, values: &Values) -> Encoder {
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    put_message_header(&mut e, MessageType::Reply);
    ReplyHeader::new(id, ReplyStatus::NoException).encode(&mut e).unwrap();
    begin_body(&mut e);
    put(values, &mut e);
    assert!(insert_block_list(&mut e));
    finish_message(&mut e, MessageHeader::SIZE_AT).unwrap();
    e
}

#[track_caller]
fn assert_in_blocks(values: &Values) {
    for block in [&values.0, &values.2.bytes(), &values.3] {
        assert_eq!(block.as_ptr().addr() % PAGE_SIZE, 0);
    }
}

/// Exchanges a request and its reply, both with three blocks.
fn exchange(pair: &mut Pair, values: &Values, apart: bool) {
    let call = pair.client.conn.start_call(None, pair.now).unwrap();
    let id = pair.client.conn.call(call).request_id();
    pair.client.conn.call(call).send_request(&mut request(id, &[], true, |e| put(values, e)));
    pair.drive();
    let mut request = pair.request();
    assert!(request.reads_blocks(), "whoever lists blocks reads such lists");
    let arguments = request.take_arguments(&mut bytes::BytesMut::new()).unwrap();
    let taken = arguments.decode(&pair.pool, |mut d| get(&mut d)).unwrap();
    assert!(taken == *values);
    if apart {
        assert_in_blocks(&taken);
    }
    pair.server.conn.request(request.token()).send_reply(&mut reply(request.id(), values));
    pair.drive();
    let outcome = pair.client.outcome(call).unwrap();
    let taken = outcome.decode(&pair.pool, |mut d| get(&mut d)).unwrap();
    assert!(taken == *values);
    if apart {
        assert_in_blocks(&taken);
    }
}

#[test]
fn blocks_of_requests_and_replies_have_buffers_of_their_own_wherever_the_stream_is_cut() {
    let values = values(MIN_BLOCK_BYTES);
    let octets = request(RequestId(2), &[], true, |e| put(&values, e)).into_bytes();
    let list = BlockList::read(&MessageHeader::decode(octets.first_chunk().unwrap()).unwrap(), &octets);
    let joints = list.unwrap().unwrap().blocks.into_iter().flat_map(|(at, len)| [at, at + len]);
    let near = joints.chain([octets.len()]).flat_map(|at| at - 20..at + 20);
    let cuts = (1..300).chain(near).step_by(3).map(Cut::At);
    for cut in cuts.chain([Cut::Whole]) {
        let mut pair = Pair::new(cut);
        // A first message whose header is cut is read in one piece. After it, each side knows what the other
        // sends.
        let whole_header = matches!(cut, Cut::Whole) || matches!(cut, Cut::At(at) if at > 300);
        exchange(&mut pair, &values, whole_header);
        exchange(&mut pair, &values, true);
    }
}

#[test]
fn a_body_is_passed_on_without_a_copy_and_keeps_its_blocks() {
    let values = values(MIN_BLOCK_BYTES);
    for blocks in [true, false] {
        let mut pair = Pair::new(Cut::Whole);
        let call = pair.client.conn.start_call(None, pair.now).unwrap();
        let id = pair.client.conn.call(call).request_id();
        pair.client.conn.call(call).send_request(&mut request(id, &[], blocks, |e| put(&values, e)));
        pair.drive();
        let mut incoming = pair.request();
        let arguments = incoming.take_arguments(&mut bytes::BytesMut::new()).unwrap();
        assert!(incoming.raw_body().is_empty());
        let raw = arguments.raw_body();
        assert_eq!((raw.start_modulo_8(), raw.order(), raw.is_fragmented()), (0, ByteOrder::NATIVE, false));
        assert_eq!(raw.parts().count() > 1, blocks);

        let mut passed = request(RequestId(77), &[], blocks, |e| raw.put(e));
        assert!(passed.copied() < 4096, "{}", passed.copied());
        let mut pieces = std::collections::VecDeque::new();
        passed.drain_into(&mut pieces);
        let large = |octets: &&Bytes| octets.len() >= 4096;
        let sent: Vec<_> = pieces.iter().filter(large).map(|octets| octets.as_ptr()).collect();
        let came: Vec<_> = raw.parts().filter(large).map(|octets| octets.as_ptr()).collect();
        assert_eq!(sent, came);

        let message: Vec<u8> = pieces.into_iter().flatten().collect();
        let mut reader = Reader::new(64 << 20);
        let read = reader.feed(&message, || usize::MAX, get);
        assert!(read == [Ok(values.clone())]);
    }
}

#[test]
fn a_steady_stream_costs_a_read_for_the_header_and_one_for_each_block() {
    let values = values(1 << 18);
    let mut pair = Pair::new(Cut::Whole);
    exchange(&mut pair, &values, true);
    exchange(&mut pair, &values, true);
    let before = (pair.server.conn.stats(), pair.client.conn.stats(), pair.pool.stats());
    for _ in 0..10 {
        exchange(&mut pair, &values, true);
    }
    let after = (pair.server.conn.stats(), pair.client.conn.stats(), pair.pool.stats());
    // After the first block, more bytes follow than are read together with it.
    for (before, after) in [(before.0, after.0), (before.1, after.1)] {
        assert!(after.reads - before.reads == 10 * 5, "{}", after.reads - before.reads);
        assert!(
            after.bytes_copied_in - before.bytes_copied_in <= 10 * 1024,
            "{}",
            after.bytes_copied_in - before.bytes_copied_in
        );
        assert!(after.bytes_copied_out - before.bytes_copied_out <= 10 * 1024);
    }
    assert_eq!(after.2.misses, before.2.misses, "all memory is used again");
}

#[test]
fn blocks_that_come_octet_by_octet_have_buffers_of_their_own_from_the_second_message_on() {
    let values = values(MIN_BLOCK_BYTES);
    let message = request(RequestId(2), &[], true, |e| put(&values, e)).into_bytes();
    let mut reader = Reader::new(64 << 20);
    for apart in [false, true] {
        let read = reader.feed(&message, || 1, get);
        assert!(read == [Ok(values.clone())]);
        if apart {
            read.iter().flatten().for_each(assert_in_blocks);
        }
    }
}

#[test]
fn an_array_of_sequences_takes_no_further_reads() {
    let octets = Bytes::from(vec![1; 100_001]);
    let mut reader = Reader::new(64 << 20);
    let message =
        request(RequestId(2), &[], true, |e| vec![octets.clone(); 7].encode(e).unwrap()).into_bytes();
    let stream: Vec<u8> = (0..12).flat_map(|_| message.iter().copied()).collect();
    let read = reader.feed(&stream[..2 * message.len()], || usize::MAX, Vec::<Bytes>::decode);
    assert_eq!(read.len(), 2);
    let before = reader.conn.stats().reads;
    let read = reader.feed(&stream[2 * message.len()..], || usize::MAX, Vec::<Bytes>::decode);
    assert_eq!(read.len(), 10);
    for items in read {
        let items = items.unwrap();
        assert!(
            items.len() == 7
                && items.iter().all(|item| *item == octets && item.as_ptr().addr() % PAGE_SIZE == 0)
        );
    }
    assert_eq!(reader.conn.stats().reads - before, 10 * 8);
}

#[test]
fn what_is_held_of_one_member_does_not_keep_the_others() {
    let values = values(1 << 20);
    let mut pair = Pair::new(Cut::Whole);
    let pool = Arc::clone(&pair.pool);
    exchange(&mut pair, &values, true);
    exchange(&mut pair, &values, true);
    let call = pair.client.conn.start_call(None, pair.now).unwrap();
    let id = pair.client.conn.call(call).request_id();
    pair.client.conn.call(call).send_request(&mut request(id, &[], true, |e| put(&values, e)));
    pair.drive();
    let mut request = pair.request();
    let arguments = request.take_arguments(&mut bytes::BytesMut::new()).unwrap();
    let (first, _, doubles, third, _) = arguments.decode(&pool, |mut d| get(&mut d)).unwrap();
    let held = first.slice(5..6);
    let freed = [doubles.as_bytes().as_ptr().addr(), third.as_ptr().addr()];
    drop((first, doubles, third));
    // The pool reuses the memory of the other members, but not what is held.
    let misses = pool.stats().misses;
    let mut taken = Vec::new();
    while pool.stats().misses == misses {
        taken.push(pool.take((1 << 20) + PAGE_SIZE + 8));
    }
    let inside = |address: usize| {
        taken.iter().any(|buffer| buffer.bytes().as_ptr_range().contains(&(address as *const u8)))
    };
    assert!(freed.into_iter().all(inside));
    assert!(!inside(held.as_ptr().addr()));
    assert_eq!(held[0], 5);
}

/// A server machine that only reads.
struct Reader {
    conn: Connection,
    pool: Arc<BufferPool>,
    now: std::time::Instant,
}

impl Reader {
    fn new(cap: usize) -> Self {
        let pool = Arc::new(BufferPool::new(cap));
        let config = Config::new(Role::Server, Arc::new(Limits::default()), Arc::clone(&pool));
        let now = std::time::Instant::now();
        Self { conn: Connection::new(config, now), pool, now }
    }

    /// Feeds bytes, `step` at a time, and returns the results of `f` on the arguments of each request.
    fn feed<T>(
        &mut self,
        octets: &[u8],
        mut step: impl FnMut() -> usize,
        f: impl Fn(&mut Decoder<'_>) -> T,
    ) -> Vec<T> {
        let (mut octets, mut read) = (octets, Vec::new());
        loop {
            while let Some(event) = self.conn.poll_event() {
                if let Event::Request(request) = event {
                    read.push(f(&mut request.arguments()));
                    self.conn.request(request.token()).finish();
                }
            }
            if octets.is_empty() {
                return read;
            }
            assert!(self.conn.wants_read(), "{:?}", self.conn.lifecycle().close_reason());
            let mut buf = self.conn.take_read_buf();
            let (mut n, most) = (0, step().min(octets.len()));
            assert!(buf.capacity() > 0);
            for mut slice in buf.io_slices() {
                let len = slice.len().min(most - n);
                slice.as_mut()[..len].copy_from_slice(&octets[..len]);
                octets = &octets[len..];
                n += len;
            }
            self.conn.handle_read(buf, n, self.now);
        }
    }
}

#[test]
fn a_list_gets_no_more_memory_than_the_rule_says() {
    let values = values(4 << 20);
    let message = request(RequestId(2), &[], true, |e| put(&values, e)).into_bytes();
    let mut reader = Reader::new(64 << 20);
    let mut fed = 0;
    for upto in [100, 300, 1000, 10_000, 60_000, 100_000, 1 << 20, 4 << 20, 5 << 20, 9 << 20] {
        reader.feed(&message[fed..upto], || 1500, |_| ());
        fed = upto;
        // The received part and the grant, each in classes of a quarter more, a window and the control bytes.
        let granted = (4 * upto).max(64 * 1024).min(upto + (5 << 20));
        let most = granted * 5 / 4 + 3 * 66 * 1024;
        assert!(reader.pool.stats().held <= most, "{upto}: {} > {most}", reader.pool.stats().held);
    }
    let taken = reader.feed(&message[fed..], || 1500, get);
    assert!(taken == [Ok(values)]);
}

#[test]
fn where_the_pool_is_full_the_peer_waits_until_there_is_memory() {
    let values = values(1 << 20);
    let mut limits = Limits::default();
    limits.max_message_size = 16 << 20;
    let pool = Arc::new(BufferPool::new(5 << 20));
    let config = |role| Config::new(role, Arc::new(limits.clone()), Arc::clone(&pool));
    let mut pair = Pair::with_configs(Cut::Whole, config(Role::Client), config(Role::Server));
    let hold = pool.take(3 << 20);
    let call = pair.client.conn.start_call(None, pair.now).unwrap();
    let id = pair.client.conn.call(call).request_id();
    pair.client.conn.call(call).send_request(&mut request(id, &[], true, |e| put(&values, e)));
    pair.drive();
    assert!(pair.server.requests.is_empty() && !pair.server.conn.wants_read());
    pair.wait(std::time::Duration::from_secs(1));
    assert!(pair.server.requests.is_empty() && !pair.server.conn.wants_read());
    drop(pool.share(hold));
    pair.wait(std::time::Duration::from_secs(1));
    let request = pair.request();
    assert!(get(&mut request.arguments()).unwrap() == values);
    drop(request);
    assert!(pool.stats().held <= pool.stats().cap);
}

/// Returns a request whose context lists these blocks, correctly or not.
fn claiming(version: u8, blocks: &[(u32, u32)], body: &[u8]) -> Vec<u8> {
    let mut data = vec![ByteOrder::NATIVE.flag(), version, 0, 0];
    data.extend((blocks.len() as u32).to_ne_bytes());
    for (offset, len) in blocks {
        data.extend(offset.to_ne_bytes());
        data.extend(len.to_ne_bytes());
    }
    let lie = ServiceContext { id: ContextId::ZORB_BLOCKS, data: data.into() };
    request(RequestId(2), &[lie], false, |e| e.put_raw(body)).into_bytes().to_vec()
}

/// The results of several ways to read the arguments.
type Story = (Result<Values, DecodeError>, Result<Vec<String>, DecodeError>, Vec<u8>);

fn story(d: &mut Decoder<'_>) -> Story {
    let values = get(&mut d.clone());
    let strings = Vec::<String>::decode(&mut d.clone());
    let n = d.remaining();
    (values, strings, d.take(n).unwrap().to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_list_says_the_same_is_decoded(
        mut blocks in proptest::collection::vec((0u32..300_000, 65_536u32..70_000), 0..4),
        in_order in any::<bool>(),
        steps in proptest::collection::vec(prop_oneof![1usize..100, 1000usize..200_000], 1..20),
        damage in proptest::option::of((0usize..200_000, any::<u8>())),
    ) {
        let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
        put(&values(MIN_BLOCK_BYTES), &mut e);
        let mut body = e.into_bytes().to_vec();
        if let Some((at, flip)) = damage {
            let len = body.len();
            body[at % len] ^= flip;
        }
        if in_order {
            let mut end = 200;
            for (start, len) in &mut blocks {
                *start = end + *start % 5000;
                end = *start + *len;
            }
            blocks.retain(|(start, len)| ((start + len) as usize) < body.len());
        }
        let unknown = claiming(BlockList::VERSION + 1, &blocks, &body);
        let plain = Reader::new(64 << 20).feed(&unknown, || usize::MAX, story);
        let lying = claiming(BlockList::VERSION, &blocks, &body);
        let (mut reader, mut at) = (Reader::new(64 << 20), 0);
        let mut step = || { at += 1; steps[at % steps.len()] };
        // Three times: the reader learns, and the same message is read again.
        for _ in 0..3 {
            let told = reader.feed(&lying, &mut step, story);
            prop_assert_eq!(told.len(), 1);
            prop_assert!(told == plain, "{:?}", blocks);
        }
        prop_assert!(reader.conn.lifecycle().close_reason().is_none());
    }

    #[test]
    fn messages_of_all_kinds_may_follow_each_other(
        kinds in proptest::collection::vec(0usize..5, 1..12),
        steps in proptest::collection::vec(prop_oneof![1usize..100, 1000usize..200_000], 1..20),
    ) {
        let values = values(MIN_BLOCK_BYTES);
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for kind in kinds {
            let body = match kind {
                0 => vec![1; 10],
                1 => vec![2; 20_000],
                2 => vec![3; 300_000],
                3 => vec![4; 14_000],
                _ => Vec::new(),
            };
            if kind < 4 {
                stream.extend(Ask { body: body.clone(), ..Ask::default() }.octets());
                expected.push(body);
            } else {
                stream.extend(request(RequestId(2), &[], true, |e| put(&values, e)).into_bytes());
                let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
                put(&values, &mut e);
                expected.push(e.into_bytes().to_vec());
            }
        }
        let (mut reader, mut at) = (Reader::new(64 << 20), 0);
        let read = reader.feed(&stream, || { at += 1; steps[at % steps.len()] }, |d| {
            let n = d.remaining();
            d.take(n).unwrap().to_vec()
        });
        prop_assert!(read == expected);
    }
}

//! Requests with an arbitrary list of blocks: the decoded values must depend neither on the list, nor on how
//! the bytes arrive.
//!
//! The input begins with the number of pairs in the list and whether they are sorted. Then come the pairs,
//! three bytes for an offset and three for a length. The rest is placed in the body where arguments begin. It
//! is followed by data that a block may cover.
#![no_main]

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, Decoder, Encoder, Seq};
use giop_codec::giop::{
    BlockList, ContextId, MIN_BLOCK_BYTES, MessageType, RequestHeader, RequestId, ResponseFlags,
    ServiceContext, ServiceContexts, TargetAddress, begin_body, finish_message, put_message_header,
};
use giop_codec::{ByteOrder, DecodeError, Version};
use giop_proto::{BufferPool, Config, Connection, Event, Limits, Role};
use libfuzzer_sys::fuzz_target;

/// Size of a body, bytes.
const BODY: usize = 4 * MIN_BLOCK_BYTES;

fuzz_target!(|data: &[u8]| {
    let mut dice = Dice::new(data);
    let Some((&first, mut rest)) = data.split_first() else { return };
    let (count, in_order) = (usize::from(first >> 1), first & 1 == 1);
    let (mut pairs, mut end) = (Vec::new(), 0);
    while pairs.len() < count
        && let Some((six, more)) = rest.split_first_chunk::<6>()
    {
        let [a, b, c, d, e, f] = six.map(u32::from);
        let (mut offset, mut len) = (a << 16 | b << 8 | c, d << 16 | e << 8 | f);
        if in_order {
            offset = end + offset % 1024;
            len = MIN_BLOCK_BYTES as u32 + len % 1024;
            end = offset + len;
        }
        pairs.push((offset, len));
        rest = more;
    }
    let mut body: Vec<u8> = (0..BODY).map(|i| (i % 7) as u8).collect();
    body.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);

    for order in [ByteOrder::Big, ByteOrder::Little] {
        let unknown = message(order, BlockList::VERSION + 1, &pairs, &body);
        let plain = converse(&unknown, |_| usize::MAX, 1);
        let listed = message(order, BlockList::VERSION, &pairs, &body);
        assert_eq!(converse(&listed, |_| usize::MAX, 2), [&plain[..], &plain].concat());
        assert_eq!(converse(&listed, |left| dice.length(left), 2), [&plain[..], &plain].concat());
    }
});

fn message(order: ByteOrder, version: u8, pairs: &[(u32, u32)], body: &[u8]) -> Bytes {
    let mut list = vec![ByteOrder::NATIVE.flag(), version, 0, 0];
    list.extend((pairs.len() as u32).to_ne_bytes());
    for (offset, len) in pairs {
        list.extend(offset.to_ne_bytes());
        list.extend(len.to_ne_bytes());
    }
    let contexts = [ServiceContext { id: ContextId::ZORB_BLOCKS, data: list.into() }];
    let mut e = Encoder::new(order, Version::V1_2);
    let size_at = put_message_header(&mut e, MessageType::Request);
    let header = RequestHeader {
        request_id: RequestId(2),
        response: ResponseFlags::Target,
        target: TargetAddress::Key(b"key"),
        operation: "take",
        contexts: ServiceContexts::from(&contexts),
    };
    header.encode(&mut e).expect("a header encodes");
    begin_body(&mut e);
    e.put_raw(body);
    finish_message(&mut e, size_at).expect("it is short enough");
    e.into_bytes()
}

/// Returns what a server reads of a message that is received `times` times.
fn converse(message: &[u8], mut most: impl FnMut(usize) -> usize, times: usize) -> Vec<String> {
    let now = Instant::now();
    let pool = Arc::new(BufferPool::new(16 << 20));
    let config = Config::new(Role::Server, Arc::new(Limits::default()), Arc::clone(&pool));
    let mut conn = Connection::new(config, now);
    let mut told = Vec::new();
    for _ in 0..times {
        let mut rest = message;
        loop {
            while let Some(event) = conn.poll_event() {
                let Event::Request(mut request) = event else { panic!("{event:?}") };
                told.push(story(&mut request.arguments()));
                let token = request.token();
                let arguments = request.take_arguments(&mut bytes::BytesMut::new()).expect("it is large");
                let again = arguments.decode(&pool, |mut d| Vec::<Bytes>::decode(&mut d));
                assert_eq!(
                    format!("{:?}", again.map(short)),
                    told.last().expect("pushed").lines().next().unwrap_or("")
                );
                conn.request(token).finish();
            }
            if rest.is_empty() {
                break;
            }
            assert!(conn.wants_read(), "{:?}", conn.lifecycle().close_reason());
            let mut buf = conn.take_read_buf();
            assert!(buf.capacity() > 0, "a lent buffer takes something");
            let (mut n, most) = (0, most(rest.len()).min(rest.len()));
            for slice in &mut buf.io_slices() {
                let (here, later) = rest.split_at(slice.len().min(most - n));
                slice[..here.len()].copy_from_slice(here);
                rest = later;
                n += here.len();
            }
            conn.handle_read(buf, n, now);
        }
    }
    drop(conn);
    assert!(pool.stats().held <= pool.stats().cap);
    told
}

/// Returns the arguments decoded as several types, one per line.
fn story(d: &mut Decoder<'_>) -> String {
    let values = |d: &mut Decoder<'_>| {
        let (first, second) = (Bytes::decode(d)?, Seq::<f64>::decode(d)?);
        let numbers = (d.read_u16()?, d.read_u64()?);
        Ok::<_, DecodeError>((sum(&first), sum(second.as_bytes()), numbers, Vec::<u32>::decode(d)?.len()))
    };
    let lists = Vec::<Bytes>::decode(&mut d.clone()).map(short);
    let words = Vec::<String>::decode(&mut d.clone()).map(|words| words.concat().len());
    let inner = d.clone().encapsulation().and_then(|mut d| Ok((d.read_u32()?, d.remaining())));
    let values = values(&mut d.clone());
    let all = d.take(d.remaining()).map(sum);
    format!("{lists:?}\n{words:?}\n{inner:?}\n{values:?}\n{all:?}")
}

fn short(list: Vec<Bytes>) -> (usize, u64) {
    (list.len(), list.iter().map(|octets| sum(octets)).fold(0, u64::wrapping_add))
}

fn sum(octets: &[u8]) -> u64 {
    octets.iter().fold(octets.len() as u64, |sum, octet| sum.wrapping_mul(31).wrapping_add(u64::from(*octet)))
}

/// Pseudo-random numbers that depend only on the input.
struct Dice(u64);

impl Dice {
    fn new(data: &[u8]) -> Self {
        let mix = |hash: u64, octet: &u8| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        Self(data.iter().fold(0xcbf2_9ce4_8422_2325, mix) | 1)
    }

    /// Returns the size of a read: small at the start of a message, and occasionally later.
    fn length(&mut self, left: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let length = (self.0 >> 8) as usize;
        1 + length % if left > BODY || self.0.is_multiple_of(5) { 200 } else { 40_000 }
    }
}

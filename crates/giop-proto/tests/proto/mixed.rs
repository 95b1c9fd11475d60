//! All kinds of messages in one stream, read in portions of any size: each is received unchanged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::util::messages::{Ask, fragmented};
use giop_codec::Version;
use giop_codec::giop::ResponseFlags;
use giop_proto::{BufferPool, Chunk, Config, Connection, Event, Limits, Role, StreamSelector};
use proptest::prelude::*;

#[derive(Debug)]
struct Table;

impl StreamSelector for Table {
    fn any_streamed(&self) -> bool {
        true
    }

    fn is_streamed(&self, key: &[u8], _: &[u8]) -> bool {
        key == b"streamed"
    }

    fn any_raw(&self) -> bool {
        true
    }

    fn is_raw(&self, key: &[u8]) -> bool {
        key == b"passed"
    }
}

/// The way in which a message is sent.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Streamed,
    /// To an object whose requests are forwarded.
    Passed,
    /// In pieces: the sizes of the first and the other pieces, and whether it may be streamed.
    Pieces(Version, usize, usize, bool),
}

fn kind() -> impl Strategy<Value = Kind> {
    let size = prop_oneof![8usize..64, 1000usize..5000, 16_000usize..20_000, 60_000usize..140_000];
    prop_oneof![
        Just(Kind::Plain),
        Just(Kind::Streamed),
        Just(Kind::Passed),
        (any::<bool>(), size.clone(), size, any::<bool>()).prop_map(|(old, first, step, streamed)| {
            let version = if old { Version::V1_1 } else { Version::V1_2 };
            Kind::Pieces(version, first / 8 * 8 + 64, step / 8 * 8, streamed)
        }),
    ]
}

fn messages() -> impl Strategy<Value = Vec<(Kind, usize)>> {
    let len = prop_oneof![
        4 => 0usize..200,
        2 => 10_000usize..20_000,
        2 => 60_000usize..70_000,
        2 => 100_000usize..400_000,
    ];
    prop::collection::vec((kind(), len), 1..8)
}

/// Sizes of reads, used in turn; 0 stands for as much as there is room for.
fn reads() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![Just(0usize), 1usize..40, 1000usize..20_000, 60_000usize..70_000, 1usize..300_000];
    prop::collection::vec(size, 1..6)
}

fn body(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251 + seed) as u8).collect()
}

/// Returns the bodies that a connection receives from the bytes, in order.
fn receive(stream: &[u8], reads: &[usize], mut config: Config) -> Vec<Vec<u8>> {
    let mut now = Instant::now();
    config.streams = Some(Arc::new(Table));
    let mut conn = Connection::new(config, now);
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    let mut turn = reads.iter().cycle();
    let mut at = 0;
    // The request that streams, and the index of its body.
    let mut streamed = None;
    loop {
        while let Some(event) = conn.poll_event() {
            let Event::Request(request) = event else { panic!("{event:?}") };
            bodies.push(request.raw_body().parts().flatten().copied().collect());
            if request.stream_len() > 0 {
                conn.input_mut().open_stream(request.token(), u64::MAX);
                assert!(streamed.replace((request.token(), bodies.len() - 1)).is_none(), "two at a time");
            }
            conn.request(request.token()).finish();
        }
        if let Some((token, index)) = streamed {
            match conn.stream(token).take_chunk(now) {
                Chunk::Bytes(octets) => {
                    bodies[index].extend_from_slice(&octets);
                    continue;
                }
                Chunk::Pending => {}
                Chunk::End => {
                    streamed = None;
                    continue;
                }
                Chunk::Lost => panic!("lost at {at} of {}", stream.len()),
            }
        }
        assert!(!conn.lifecycle().is_closing(), "{:?}", conn.lifecycle().close_reason());
        if at == stream.len() && streamed.is_none() {
            return bodies;
        }
        step(&mut conn, stream, &mut at, *turn.next().unwrap(), &mut now);
    }
}

/// Reads once, or advances the time until memory is requested again.
fn step(conn: &mut Connection, stream: &[u8], at: &mut usize, most: usize, now: &mut Instant) {
    if conn.wants_read() {
        return read(conn, stream, at, most, *now);
    }
    *now += Duration::from_millis(10);
    conn.handle_timeout(*now);
    assert!(conn.wants_read() || *at == stream.len(), "it waits for nothing");
}

fn read(conn: &mut Connection, stream: &[u8], at: &mut usize, most: usize, now: Instant) {
    let mut buf = conn.take_read_buf();
    assert!(buf.capacity() > 0);
    let most = if most == 0 { usize::MAX } else { most };
    let mut n = 0;
    for mut slice in buf.io_slices() {
        let len = slice.len().min(stream.len() - *at).min(most - n);
        slice[..len].copy_from_slice(&stream[*at..*at + len]);
        (*at, n) = (*at + len, n + len);
    }
    assert!(n > 0, "more is waited for than was sent");
    conn.handle_read(buf, n, now);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_of_all_kinds_come_out_as_they_went_in(messages in messages(), reads in reads(), deposit: bool, tight: bool) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (seed, (kind, len)) in messages.iter().enumerate() {
            let ask = Ask {
                id: 2 * seed as u32,
                response: ResponseFlags::None,
                version: if let Kind::Pieces(version, ..) = kind { *version } else { Version::V1_2 },
                key: match kind {
                    Kind::Streamed | Kind::Pieces(.., true) => b"streamed".to_vec(),
                    Kind::Passed => b"passed".to_vec(),
                    Kind::Plain | Kind::Pieces(.., false) => b"other".to_vec(),
                },
                body: body(*len, seed),
                ..Ask::default()
            };
            let octets = ask.octets();
            match kind {
                Kind::Pieces(_, first, step, _) if *first < octets.len() => {
                    // At most one thousand of them.
                    let step = (*step).max(octets.len() / 1000 / 8 * 8);
                    stream.extend(fragmented(&octets, *first, step).concat());
                }
                _ => stream.extend(octets),
            }
            expected.push(ask.body);
        }
        // With a small cap, messages wait for memory.
        let pool = Arc::new(BufferPool::new(if tight { 1600 << 10 } else { 64 << 20 }));
        let mut config = Config::new(Role::Server, Arc::new(Limits::default()), Arc::clone(&pool));
        config.deposits_enabled = deposit;
        let found = receive(&stream, &reads, config);
        prop_assert!(found == expected, "{:?}", found.iter().map(Vec::len).collect::<Vec<_>>());
        prop_assert!(pool.stats().held <= pool.stats().cap);
    }
}

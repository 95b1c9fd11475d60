//! `@stream` parameters of numbers and characters: servants that receive elements while they arrive, and
//! clients that send them in this way.

mod raw;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use test_support::{contents, transport};
use zorb::prelude::*;
use zorb::testing::PipeFaults;
use zorb::{ByteSource, Char, Element, Limits, LongDouble, OrbBuilder, SeqSource, SeqStream};

use contents::{checksum, octets};

zorb::idl! {
    module Bulk {
        typedef sequence<double> Doubles;
        interface Plain {
            unsigned long long doubles(in string name, in Doubles data);
        };
        interface Numbers {
            typedef sequence<char> CharsSeq;
            typedef sequence<int8> SmallSeq;
            typedef sequence<short> ShortsSeq;
            typedef sequence<unsigned short> UShortsSeq;
            typedef sequence<long> LongsSeq;
            typedef sequence<unsigned long> ULongsSeq;
            typedef sequence<long long> LongLongsSeq;
            typedef sequence<unsigned long long> ULongLongsSeq;
            typedef sequence<float> FloatsSeq;
            typedef sequence<long double> ExactSeq;
            typedef double Sample;
            typedef sequence<Sample> SamplesSeq;
            // Each returns a checksum of the elements' bytes in memory.
            unsigned long long chars(in string name, @stream in CharsSeq data);
            unsigned long long small(in string name, @stream in SmallSeq data);
            unsigned long long shorts(in string name, @stream in ShortsSeq data);
            unsigned long long u_shorts(in string name, @stream in UShortsSeq data);
            unsigned long long longs(in string name, @stream in LongsSeq data);
            unsigned long long u_longs(in string name, @stream in ULongsSeq data);
            unsigned long long long_longs(in string name, @stream in LongLongsSeq data);
            unsigned long long u_long_longs(in string name, @stream in ULongLongsSeq data);
            unsigned long long floats(in string name, @stream in FloatsSeq data);
            unsigned long long doubles(in string name, @stream in SamplesSeq data);
            unsigned long long exact(in string name, @stream in ExactSeq data);
            /// All at once, if there are no more than `most`.
            unsigned long long whole(in unsigned long most, @stream in SamplesSeq data);
            /// Takes no more than the first chunk.
            unsigned long first(@stream in SamplesSeq data);
            oneway void push(@stream in SamplesSeq data);
            void ping();
        };
    };
}

const MIB: usize = 1 << 20;

#[derive(Default)]
struct Numbers {
    largest: AtomicUsize,
    chunks: AtomicUsize,
    pushed: AtomicUsize,
}

impl Numbers {
    async fn take<T: Element>(&self, mut data: SeqStream<T>) -> Result<u64, SystemException> {
        let (mut sum, mut left) = (0, data.remaining());
        while let Some(chunk) = data.next().await {
            let chunk = chunk?;
            assert!(!chunk.is_empty());
            left -= chunk.len() as u64;
            assert_eq!(data.remaining(), left);
            self.chunks.fetch_add(1, Ordering::Relaxed);
            self.largest.fetch_max(chunk.as_bytes().len(), Ordering::Relaxed);
            sum = checksum(sum, chunk.as_bytes());
        }
        assert_eq!((left, data.next().await.is_none()), (0, true));
        Ok(sum)
    }
}

macro_rules! take {
    ($($name:ident: $item:ty;)*) => {$(
        async fn $name(&self, name: &str, data: SeqStream<$item>) -> Result<u64, SystemException> {
            assert!(name.len() < 9, "{name}");
            self.take(data).await
        }
    )*};
}

impl bulk::NumbersServant for Numbers {
    take! {
        chars: Char; small: i8; shorts: i16; u_shorts: u16; longs: i32; u_longs: u32; long_longs: i64; u_long_longs: u64;
        floats: f32; doubles: f64; exact: LongDouble;
    }
    async fn whole(&self, most: u32, data: SeqStream<f64>) -> Result<u64, SystemException> {
        let items = data.collect(most as usize).await?;
        Ok(checksum(0, items.as_bytes()))
    }
    async fn first(&self, mut data: SeqStream<f64>) -> Result<u32, SystemException> {
        Ok(data.next().await.unwrap()?.len() as u32)
    }
    async fn push(&self, data: SeqStream<f64>) -> Result<(), SystemException> {
        self.pushed.fetch_add(data.remaining() as usize, Ordering::Relaxed);
        self.take(data).await.map(drop)
    }
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Receives whole sequences.
struct Plain;

impl bulk::PlainServant for Plain {
    async fn doubles(&self, name: &str, data: Seq<f64>) -> Result<u64, SystemException> {
        assert_eq!(name, "abc");
        Ok(checksum(0, data.as_bytes()))
    }
}

fn large() -> OrbBuilder {
    let mut limits = Limits::default();
    limits.max_message_size = 128 << 20;
    transport::builder().limits(limits)
}

/// Returns numbers with varying bytes.
fn doubles(len: usize) -> Seq<f64> {
    (0..len).map(|i| f64::from_bits((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2)).collect()
}

/// Returns elements of varying bytes.
fn items<T: Element>(len: usize) -> Seq<T> {
    Seq::from_view(aligned(&octets(len * size_of::<T>()))).unwrap()
}

/// Returns the bytes at an address that is aligned for every element type.
fn aligned(octets: &[u8]) -> Bytes {
    let mut words = vec![0u64; octets.len().div_ceil(8)];
    for (word, octets) in words.iter_mut().zip(octets.chunks(8)) {
        let mut eight = [0; 8];
        eight[..octets.len()].copy_from_slice(octets);
        *word = u64::from_ne_bytes(eight);
    }
    Bytes::from(Seq::from(words)).slice(..octets.len())
}

/// Returns a stream of these elements in pieces of a few sizes.
fn streamed<T: Element>(items: &Seq<T>, step: usize) -> SeqSource<T> {
    let octets = items.bytes();
    let (len, size) = (items.len(), size_of::<T>());
    let mut at = 0;
    let pieces = std::iter::from_fn(move || {
        let to = len.min(at + 1 + (at * 7) % step);
        let piece = Seq::<T>::from_view(octets.slice(at * size..to * size)).unwrap();
        at = to;
        (!piece.is_empty()).then_some(Ok::<_, io::Error>(piece))
    });
    SeqSource::stream(len as u64, futures_util::stream::iter(pieces))
}

/// Returns client and server over TCP.
async fn over_tcp(servant: Arc<Numbers>) -> (Orb, Orb, bulk::NumbersRef) {
    let server = large().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let published: bulk::NumbersRef = server.activate_named("numbers", servant).unwrap();
    let client = large().build().await.unwrap();
    let numbers = client.resolve(&published.to_string()).await.unwrap();
    (client, server, numbers)
}

#[tokio::test]
async fn elements_of_every_type_arrive_whole_in_streams_of_all_sizes() {
    let (_client, _server, numbers) = over_tcp(Arc::default()).await;
    macro_rules! round_trips {
        ($($name:ident: $item:ty;)*) => {$(
            for octets in [0, 16, 16_000, 65_504, 65_536, 66_000, 200_000, MIB + 48] {
                let items = items::<$item>(octets / size_of::<$item>());
                let sum = checksum(0, items.as_bytes());
                // The preceding text moves the count, and therefore the padding after it.
                for name in ["", "abc", "abcdefgh"] {
                    assert_eq!(numbers.$name(name, &items).await.unwrap(), sum, "{octets} of {name:?}");
                    let source = streamed(&items, 5_000);
                    assert_eq!(source.len(), items.len() as u64);
                    assert_eq!(numbers.$name(name, source).await.unwrap(), sum, "{octets} of {name:?}");
                }
            }
            numbers.ping().await.unwrap();
        )*};
    }
    round_trips! {
        chars: Char; small: i8; shorts: i16; u_shorts: u16; longs: i32; u_longs: u32; long_longs: i64; u_long_longs: u64;
        floats: f32; doubles: f64; exact: LongDouble;
    }
}

#[tokio::test]
async fn a_stream_of_numbers_takes_constant_memory_and_no_copy() {
    let servant = Arc::new(Numbers::default());
    let (client, server, numbers) = over_tcp(Arc::clone(&servant)).await;
    let items = doubles(8 * MIB);
    let sum = checksum(0, items.as_bytes());
    for source in [SeqSource::from(&items), streamed(&items, 20_000)] {
        let before = client.stats().bytes_copied_out;
        assert_eq!(numbers.doubles("abc", source).await.unwrap(), sum);
        assert!(client.stats().bytes_copied_out - before < 64 * 1024, "headers, and the smallest pieces");
    }
    let (chunks, largest) = (servant.chunks.load(Ordering::Relaxed), servant.largest.load(Ordering::Relaxed));
    assert!(chunks >= 512 && largest <= 256 * 1024, "{chunks} chunks of up to {largest}");
    let held = server.pool_stats().held;
    assert!(held <= 4 << 20, "{held} octets held for a stream of 64 MiB");
    // The part that identifies the stream, and a ring's first header.
    assert!(
        server.stats().bytes_copied_in <= 64 * 1024,
        "{} octets of it were copied",
        server.stats().bytes_copied_in
    );
}

#[tokio::test]
async fn numbers_come_right_wherever_reads_cut_them() {
    let items = doubles(40_000);
    let exact = self::items::<LongDouble>(20_000);
    for max_read_bytes in [613, 4_099, 65_535, 100_003] {
        let pair = zorb::testing::pair_of(large(), large());
        let mut faults = PipeFaults::default();
        faults.max_read_bytes = max_read_bytes;
        pair.set_faults(faults, PipeFaults::default());
        let published: bulk::NumbersRef = pair.server.activate_named("n", Numbers::default()).unwrap();
        let numbers: bulk::NumbersRef = pair.client.resolve(&published.to_string()).await.unwrap();
        for name in ["", "abc", "abcdefgh"] {
            let sum = numbers.doubles(name, &items).await.unwrap();
            assert_eq!(sum, checksum(0, items.as_bytes()), "{max_read_bytes} {name:?}");
            let sum = numbers.exact(name, &exact).await.unwrap();
            assert_eq!(sum, checksum(0, exact.as_bytes()), "{max_read_bytes} {name:?}");
        }
        let sum = numbers.whole(40_000, &items).await.unwrap();
        assert_eq!(sum, checksum(0, items.as_bytes()), "{max_read_bytes}");
    }
}

#[tokio::test]
async fn all_of_them_can_be_had_at_once_within_a_limit() {
    let (_client, server, numbers) = over_tcp(Arc::default()).await;
    for len in [0, 1, 9_000, 100_000, MIB] {
        let items = doubles(len);
        let sum = checksum(0, items.as_bytes());
        assert_eq!(numbers.whole(len as u32, &items).await.unwrap(), sum);
        assert_eq!(numbers.whole(u32::MAX, streamed(&items, 3_000)).await.unwrap(), sum);
        if len > 0 {
            let failed = numbers.whole(len as u32 - 1, items).await.unwrap_err();
            assert_eq!(
                (failed.kind, failed.completed),
                (SystemExceptionKind::ImpLimit, CompletionStatus::No)
            );
        }
    }
    numbers.ping().await.unwrap();
    assert!(server.open_connections() >= 1);
}

#[tokio::test]
async fn a_servant_that_has_enough_answers_and_the_rest_is_skipped() {
    let (_client, server, numbers) = over_tcp(Arc::default()).await;
    let items = doubles(MIB);
    for _ in 0..3 {
        let first = numbers.first(&items).await.unwrap();
        assert!((1..=32 * 1024).contains(&first), "{first}");
        numbers.ping().await.unwrap();
    }
    assert_eq!(server.open_connections(), 1);
    assert!(server.stats().bytes_skipped > 3 * 7 * MIB as u64);
}

#[tokio::test]
async fn servers_that_know_of_no_stream_see_a_plain_request() {
    let server = large().listen("iiop://127.0.0.1:0").build().await.unwrap();
    let published: bulk::PlainRef = server.activate_named("plain", Plain).unwrap();
    let client = large().build().await.unwrap();
    let address = server.endpoints().remove(0);
    assert!(!published.to_string().is_empty());
    for version in ["1.0", "1.1", "1.2"] {
        let text = format!("corbaloc:iiop:{version}@{}/plain", address.trim_start_matches("iiop://"));
        let numbers: bulk::NumbersRef = client.resolve_unchecked(&text).await.unwrap();
        for len in [0, 1, 300, 20_000, 200_000] {
            let items = doubles(len);
            let sum = checksum(0, items.as_bytes());
            assert_eq!(numbers.doubles("abc", &items).await.unwrap(), sum, "{version} {len}");
            assert_eq!(
                numbers.doubles("abc", streamed(&items, 4_000)).await.unwrap(),
                sum,
                "{version} {len}"
            );
        }
    }
}

#[tokio::test]
async fn a_source_of_octets_is_one_of_whole_elements() {
    let (_client, _server, numbers) = over_tcp(Arc::default()).await;
    let items = doubles(50_000);
    let octets = items.bytes();
    let reader = |len| ByteSource::reader(len, io::Cursor::new(items.bytes()));
    assert!(SeqSource::<f64>::from_bytes(reader(400_001)).is_none());
    let source = SeqSource::from_bytes(reader(400_000)).unwrap();
    assert_eq!((source.len(), source.is_empty()), (50_000, false));
    assert_eq!(numbers.doubles("abc", source).await.unwrap(), checksum(0, &octets));
    // Data in memory may have any alignment.
    let shifted = Bytes::from([&[0], octets.as_ref()].concat()).slice(1..);
    let source = SeqSource::from_bytes(shifted.into()).unwrap();
    assert_eq!(numbers.doubles("abc", source).await.unwrap(), checksum(0, &octets));

    let failed = numbers.doubles("abc", SeqSource::stream(50_001, one(items))).await.unwrap_err();
    assert_eq!((failed.kind, failed.completed), (SystemExceptionKind::BadParam, CompletionStatus::Maybe));
    assert!(failed.to_string().contains("ended after 400000 of its 400008 bytes"), "{failed}");
}

fn one(items: Seq<f64>) -> impl futures_util::Stream<Item = Result<Seq<f64>, io::Error>> + Send {
    futures_util::stream::iter([Ok(items)])
}

#[tokio::test]
async fn oneways_calls_in_process_and_other_ways_to_run_take_streams() {
    let servant = Arc::new(Numbers::default());
    let (_client, server, numbers) = over_tcp(Arc::clone(&servant)).await;
    let items = doubles(60_000);
    let sum = checksum(0, items.as_bytes());
    for _ in 0..10 {
        numbers.push(&items).await.unwrap();
    }
    numbers.ping().await.unwrap();
    assert_eq!(servant.pushed.load(Ordering::Relaxed), 600_000);

    let local: bulk::NumbersRef = zorb::testing::local(Numbers::default());
    assert_eq!(local.doubles("abc", &items).await.unwrap(), sum);
    assert_eq!(local.doubles("abc", streamed(&items, 4_000)).await.unwrap(), sum);
    assert_eq!(local.doubles("abc", vec![]).await.unwrap(), 0);
    // The pieces of a source may end within an element.
    let octets = items.bytes();
    let pieces = (0..octets.len())
        .step_by(1_001)
        .map(move |at| Ok::<_, io::Error>(octets.slice(at..octets.len().min(at + 1_001))));
    let source = ByteSource::stream(480_000, futures_util::stream::iter(pieces));
    assert_eq!(local.doubles("abc", SeqSource::from_bytes(source).unwrap()).await.unwrap(), sum);

    for activation in [server.activation().blocking(), server.activation().spawned()] {
        let published: bulk::NumbersRef = activation.activate(Numbers::default()).unwrap();
        let numbers: bulk::NumbersRef = _client.resolve(&published.to_string()).await.unwrap();
        assert_eq!(numbers.doubles("abc", &items).await.unwrap(), sum);
        numbers.ping().await.unwrap();
    }
}

#[tokio::test]
async fn a_copying_orb_takes_streams_too() {
    let pair = zorb::testing::pair_of(large(), large().zero_copy(false));
    let published: bulk::NumbersRef = pair.server.activate_named("n", Numbers::default()).unwrap();
    let numbers: bulk::NumbersRef = pair.client.resolve(&published.to_string()).await.unwrap();
    let items = doubles(100_000);
    for name in ["", "abc"] {
        assert_eq!(numbers.doubles(name, &items).await.unwrap(), checksum(0, items.as_bytes()));
    }
}

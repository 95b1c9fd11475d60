//! Encoding and decoding, type by type: bytes per second, compared with a plain copy of the same number of
//! bytes.
//!
//! ```text
//! cargo bench --bench codec                  # all, in about five minutes
//! cargo bench --bench codec -- 'double'      # one type
//! cargo bench --bench codec -- --test        # each once
//! ```
//!
//! *native* is the byte order of this machine, *foreign* the other one. Sequences of `octet`s, characters and
//! numbers in native order are not copied. When they are encoded, the buffer becomes a chunk of the vectored
//! write; when they are decoded, the value is a view of the message. Their figures are the fixed cost, and
//! the copy next to them is the saving.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark; criterion's macros document nothing")]

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

use bytes::BytesMut;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use zorb::__private::v1::{CdrDecode, CdrEncode, Decoder, Elements, Encoder, Rewrites};
use zorb::prelude::*;
use zorb::wire::{ByteOrder, Version};

zorb::idl! {
    struct BinStruct { short s; char c; long l; octet o; double d; };
    /// The same, sent from memory and used where it was received.
    @zero_copy struct ZBinStruct { short s; char c; long l; octet o; double d; };

    enum Unit { METRE, SECOND, KELVIN };
    struct Position { double latitude; double longitude; float height; };
    struct Sensor { unsigned long id; Unit unit; Position at; boolean active; };
    /// Two levels of structs with a string: no fixed layout.
    struct Station { string name; Sensor first; Sensor second; sequence<short> history; };

    union Value switch (Unit) {
        case METRE: double metres;
        case SECOND: unsigned long long ticks;
        default: string text;
    };
}

/// Approximate size of user data in bytes: it fits into the second-level cache together with its copy.
const SIZE: usize = 64 << 10;

const FOREIGN: ByteOrder = match ByteOrder::NATIVE {
    ByteOrder::Big => ByteOrder::Little,
    ByteOrder::Little => ByteOrder::Big,
};

fn codec(c: &mut Criterion) {
    let n = 0..SIZE;
    both(c, "octet", n.clone().map(|i| i as u8).collect::<Bytes>());
    both(c, "char", n.map(|i| Char(i as u8)).collect::<Seq<Char>>());
    both(c, "short", (0..SIZE / 2).map(|i| i as i16).collect::<Seq<i16>>());
    both(c, "long", (0..SIZE / 4).map(|i| i as i32).collect::<Seq<i32>>());
    both(c, "double", (0..SIZE / 8).map(|i| i as f64).collect::<Seq<f64>>());
    for (name, size) in [("1 KiB", 1 << 10), ("64 KiB", SIZE), ("1 MiB", 1 << 20)] {
        both(c, &format!("struct, {name}"), (0..size / 24).map(bin_struct).collect::<Vec<_>>());
        both(c, &format!("zstruct, {name}"), (0..size / 24).map(zero_copy).collect::<Seq<_>>());
        lent(c, name, &(0..size / 24).map(bin_struct).collect::<Vec<_>>());
    }
    both(c, "string, one", "zorb ".repeat(SIZE / 5));
    both(c, "string, of 24", (0..SIZE / 32).map(|i| format!("{i:024}")).collect::<Vec<_>>());
    both(c, "nested struct", (0..SIZE / 160).map(station).collect::<Vec<_>>());
    both(c, "union", (0..SIZE / 20).map(value).collect::<Vec<_>>());
}

fn bin_struct(i: usize) -> BinStruct {
    BinStruct { s: i as i16, c: Char(b'c'), l: i as i32, o: i as u8, d: i as f64 }
}

fn zero_copy(i: usize) -> ZBinStruct {
    let BinStruct { s, c, l, o, d } = bin_struct(i);
    ZBinStruct { s, c, l, o, d, ..Default::default() }
}

fn station(i: usize) -> Station {
    let sensor = |id| Sensor {
        id,
        unit: Unit::Kelvin,
        at: Position { latitude: 1.5, longitude: i as f64, height: 12.5 },
        active: true,
    };
    let (first, second) = (sensor(i as u32), sensor(7));
    Station { name: format!("station {i:08}"), first, second, history: vec![1, 2, 3, 4].into() }
}

fn value(i: usize) -> Value {
    match i % 3 {
        0 => Value::Metres(i as f64),
        1 => Value::Ticks(i as u64),
        _ => Value::Text(Unit::Kelvin, format!("{i:08} K")),
    }
}

/// Benches the decoding of a sequence of plain structs as a servant receives it: as a view of the message.
/// Its first element is rewritten, because it starts right after the count.
fn lent(c: &mut Criterion, name: &str, items: &Vec<BinStruct>) {
    let octets = encoded(items, ByteOrder::NATIVE);
    let mut group = group(c, &format!("lend/struct, {name}"), octets.len());
    copy(&mut group, &octets);
    for (order, order_name) in [(ByteOrder::NATIVE, "native"), (FOREIGN, "foreign")] {
        let octets = encoded(items, order);
        let original = octets.get(..64).unwrap().to_vec();
        let mut message = Some(BytesMut::from(octets));
        group.bench_function(order_name, |b| {
            b.iter(|| {
                let octets = message.take().unwrap().freeze();
                let mut rewrites = Rewrites::default();
                let decode = |octets: &Bytes, rewrites: &Rewrites| {
                    let mut decoder =
                        Decoder::from_bytes(black_box(octets), order, Version::V1_2).with_rewrites(rewrites);
                    black_box(Elements::<BinStruct>::decode(&mut decoder).unwrap());
                };
                decode(&octets, &rewrites);
                let mut octets = octets.try_into_mut().unwrap();
                if !rewrites.is_empty() {
                    rewrites.apply(&mut octets);
                    let frozen = octets.freeze();
                    decode(&frozen, &rewrites);
                    octets = frozen.try_into_mut().unwrap();
                }
                // Restores the original for the next iteration.
                octets.get_mut(..64).unwrap().copy_from_slice(&original);
                message = Some(octets);
            });
        });
    }
    group.finish();
}

/// The benches of one value: encoding, decoding, and a copy of its encoding.
fn both<T: CdrEncode + CdrDecode>(c: &mut Criterion, name: &str, value: T) {
    let octets = encoded(&value, ByteOrder::NATIVE);
    let mut group = group(c, &format!("encode/{name}"), octets.len());
    copy(&mut group, &octets);
    for (order, order_name) in [(ByteOrder::NATIVE, "native"), (FOREIGN, "foreign")] {
        let mut encoder = Encoder::new(order, Version::V1_2);
        let mut pieces = VecDeque::new();
        group.bench_function(order_name, |b| {
            b.iter(|| {
                encoder.reset(order, Version::V1_2);
                black_box(&value).encode(&mut encoder).unwrap();
                // Like a connection: a message without chunks is sent from the encoder's own buffer.
                if encoder.chunk_count() == 0 {
                    black_box(encoder.head());
                } else {
                    encoder.drain_into(&mut pieces);
                    black_box(&pieces);
                    pieces.clear();
                }
            });
        });
    }
    group.finish();

    let mut group = self::group(c, &format!("decode/{name}"), octets.len());
    copy(&mut group, &octets);
    for (order, order_name) in [(ByteOrder::NATIVE, "native"), (FOREIGN, "foreign")] {
        let octets = encoded(&value, order);
        group.bench_function(order_name, |b| {
            b.iter(|| {
                let mut decoder = Decoder::from_bytes(black_box(&octets), order, Version::V1_2);
                black_box(T::decode(&mut decoder).unwrap())
            });
        });
    }
    group.finish();
}

fn group<'c>(c: &'c mut Criterion, name: &str, octets: usize) -> BenchmarkGroup<'c, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::Bytes(octets as u64));
    group
}

/// The baseline: one copy of the encoding into existing memory.
fn copy(group: &mut BenchmarkGroup<'_, WallTime>, octets: &Bytes) {
    let mut to = vec![0; octets.len()];
    group.bench_function("memcpy", |b| {
        b.iter(|| {
            to.copy_from_slice(black_box(octets));
            black_box(&mut to);
        });
    });
}

fn encoded<T: CdrEncode>(value: &T, order: ByteOrder) -> Bytes {
    let mut encoder = Encoder::new(order, Version::V1_2);
    value.encode(&mut encoder).unwrap();
    encoder.into_bytes()
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = codec
}
criterion_main!(benches);

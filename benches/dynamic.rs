//! Ways to marshal a value: with code compiled for its type, and by interpreting type codes like the first
//! IIOP engines.
//!
//! ```text
//! cargo bench --bench dynamic                          # all, in about a minute
//! cargo bench --bench dynamic -- 'struct'              # the rows that have this in their names
//! cargo bench --bench dynamic -- --rounds 31 --json FILE
//! cargo bench --bench dynamic -- --test                # each once
//! ```
//!
//! Sequences are encoded and decoded as a whole. *native* is the byte order of this machine, *foreign* the
//! other one. In native order the compiled code copies no numbers, neither when encoding nor when decoding:
//! its figures are the fixed cost. *engine* runs the type code's program between encoded bytes and C's memory
//! layout, like *naive*, the baseline: step 0 of `ttcp ladder`. *engine, tree* creates and consumes
//! [`zorb::dynamic::Value`]s. Decoding includes dropping the value; for the baseline, it includes the
//! traversal that frees (except in the last column).
//!
//! The contenders of a row take turns, with a sample each in every round. The table has medians in GB/s of
//! user data, and medians of the ratios within the rounds. Only ratios within a run are meaningful.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "a benchmark"
)]

// The files of ttcp's ladder, included by path: a dev-dependency on ttcp would require to build it with all
// its dependencies for every test.
#[allow(dead_code, reason = "what counts calls is for ttcp")]
#[path = "../crates/ttcp-bench/src/ladder/base/mod.rs"]
mod base;
#[allow(dead_code, unused_imports, reason = "what frees and copies is for ttcp")]
#[path = "../crates/ttcp-bench/src/ladder/original/mod.rs"]
mod naive;

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use base::memory::{self, SEQUENCE_SIZE_AND_ALIGNMENT};
use base::{Environment, NoCounting};
use naive::visits::{decoder, deep_free, encoder};
use naive::{Cdr, StoredTypeCode};
use zorb::__private::v1::{CdrDecode, CdrEncode, Decoder, Encoder};
use zorb::dynamic::program::Program;
use zorb::prelude::*;
use zorb::wire::{ByteOrder, Version};

zorb::idl! {
    struct BinStruct { short s; char c; long l; octet o; double d; };
}

/// Approximate duration of a sample.
const SAMPLE: Duration = Duration::from_millis(1);

/// The last columns.
const RATIOS: [(&str, &str, &str); 2] =
    [("engine / naive", "engine", "naive"), ("engine / compiled", "engine", "compiled")];

const SIZES: [(&str, usize); 4] =
    [("1 KiB", 1 << 10), ("64 KiB", 64 << 10), ("128 KiB", 128 << 10), ("1 MiB", 1 << 20)];

const FOREIGN: ByteOrder = match ByteOrder::NATIVE {
    ByteOrder::Big => ByteOrder::Little,
    ByteOrder::Little => ByteOrder::Big,
};

const ORDERS: [(&str, ByteOrder); 2] = [("native", ByteOrder::NATIVE), ("foreign", FOREIGN)];

fn main() {
    let mut bench = Bench::from_arguments();
    for decoding in [false, true] {
        bench.decoding = decoding;
        for (size, octets) in SIZES {
            bench.cells("short", size, octets, &(0..octets / 2).map(|i| i as i16).collect::<Seq<i16>>());
            bench.cells("char", size, octets, &(0..octets).map(|i| Char(i as u8)).collect::<Seq<Char>>());
            bench.cells("long", size, octets, &(0..octets / 4).map(|i| i as i32).collect::<Seq<i32>>());
            bench.cells("octet", size, octets, &(0..octets).map(|i| i as u8).collect::<Bytes>());
            bench.cells("double", size, octets, &(0..octets / 8).map(|i| i as f64).collect::<Seq<f64>>());
            let structs = (0..octets / 24).map(bin_struct).collect::<Vec<_>>();
            bench.cells("struct", size, structs.len() * 24, &structs);
        }
    }
    bench.finish();
}

fn bin_struct(i: usize) -> BinStruct {
    BinStruct { s: i as i16, c: Char(b'c'), l: i as i32, o: i as u8, d: i as f64 }
}

/// One way to perform the work of a row a given number of times.
struct Contender<'a> {
    name: &'static str,
    work: Box<dyn FnMut(u32) + 'a>,
}

impl<'a> Contender<'a> {
    fn new(name: &'static str, mut once: impl FnMut() + 'a) -> Self {
        let work = move |times| {
            for _ in 0..times {
                once();
            }
        };
        Self { name, work: Box::new(work) }
    }

    /// Returns how often the work fits into a sample.
    fn calibrated(&mut self) -> u32 {
        let mut times = 1;
        loop {
            let start = Instant::now();
            (self.work)(times);
            let taken = start.elapsed();
            if taken >= SAMPLE / 2 || times >= 1 << 20 {
                let fitting = SAMPLE.as_nanos() * u128::from(times) / taken.as_nanos().max(1);
                return u32::try_from(fitting).unwrap_or(u32::MAX).clamp(1, 1 << 21);
            }
            times *= 2;
        }
    }
}

struct Bench {
    test: bool,
    decoding: bool,
    rounds: usize,
    filter: String,
    json: Option<String>,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    octets: usize,
    /// Nanoseconds per repetition, in each round, by contender.
    samples: Vec<(&'static str, Vec<f64>)>,
}

impl Bench {
    fn from_arguments() -> Self {
        let mut bench = Self {
            test: false,
            decoding: false,
            rounds: 11,
            filter: String::new(),
            json: None,
            rows: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // An argument that cargo adds.
                "--bench" => {}
                "--test" => bench.test = true,
                "--rounds" => bench.rounds = arguments.next().and_then(|n| n.parse().ok()).expect("a number"),
                "--json" => bench.json = Some(arguments.next().expect("a file")),
                filter => filter.clone_into(&mut bench.filter),
            }
        }
        bench
    }

    fn cells<T: Typed + CdrEncode + CdrDecode>(&mut self, ty: &str, size: &str, octets: usize, value: &T) {
        let code = encoded(&T::type_code(), ByteOrder::NATIVE);
        for (order_name, order) in ORDERS {
            let case = Case { value, code: &code, order, wire: encoded(value, order) };
            if self.decoding {
                self.row(format!("decode {ty} {size} {order_name}"), octets, || case.decoding());
            } else {
                self.row(format!("encode {ty} {size} {order_name}"), octets, || case.encoding());
            }
        }
    }

    fn row<'a>(&mut self, name: String, octets: usize, contenders: impl FnOnce() -> Vec<Contender<'a>>) {
        if !name.contains(&self.filter) {
            return;
        }
        let mut contenders = contenders();
        if self.test {
            contenders.iter_mut().for_each(|contender| (contender.work)(1));
            return;
        }
        let times: Vec<_> = contenders.iter_mut().map(Contender::calibrated).collect();
        let mut samples: Vec<_> =
            contenders.iter().map(|contender| (contender.name, Vec::with_capacity(self.rounds))).collect();
        for _ in 0..self.rounds {
            for ((contender, times), (_, samples)) in contenders.iter_mut().zip(&times).zip(&mut samples) {
                let start = Instant::now();
                (contender.work)(*times);
                samples.push(start.elapsed().as_nanos() as f64 / f64::from(*times));
            }
        }
        let row = Row { name, octets, samples };
        // Encoding and decoding have separate tables.
        if self.rows.last().is_none_or(|last| last.head() != row.head()) {
            println!("\n{}", row.head());
        }
        println!("{}", row.line());
        self.rows.push(row);
    }

    fn finish(self) {
        let Some(file) = self.json else { return };
        let rows: Vec<_> = self.rows.iter().map(Row::json).collect();
        let json = format!("{{\"rounds\":{},\"rows\":[\n{}\n]}}\n", self.rounds, rows.join(",\n"));
        std::fs::write(file, json).expect("the file can be written");
    }
}

impl Row {
    fn head(&self) -> String {
        let mut head = "| GB/s |".to_owned();
        let mut rule = "|---|".to_owned();
        for name in self.samples.iter().map(|(name, _)| *name).chain(RATIOS.map(|(title, ..)| title)) {
            write!(head, " {name} |").unwrap();
            rule += "--:|";
        }
        format!("{head}\n{rule}")
    }

    fn line(&self) -> String {
        let mut line = format!("| {} |", self.name);
        for (_, samples) in &self.samples {
            write!(line, " {} |", short(self.octets as f64 / median(samples.clone()))).unwrap();
        }
        for (_, one, other) in RATIOS {
            write!(line, " {} |", short(self.ratio(one, other))).unwrap();
        }
        line
    }

    /// Returns the speed-up of one contender over another.
    fn ratio(&self, one: &str, other: &str) -> f64 {
        let of =
            |name| self.samples.iter().find(|sample| sample.0 == name).map_or(&[][..], |sample| &sample.1);
        median(of(one).iter().zip(of(other)).map(|(one, other)| other / one).collect())
    }

    fn json(&self) -> String {
        let samples: Vec<_> = self
            .samples
            .iter()
            .map(|(name, samples)| {
                let samples: Vec<_> = samples.iter().map(|ns| format!("{ns:.1}")).collect();
                format!("\"{name}\":[{}]", samples.join(","))
            })
            .collect();
        format!("{{\"row\":\"{}\",\"octets\":{},\"ns\":{{{}}}}}", self.name, self.octets, samples.join(","))
    }
}

/// A value, and its encoding in one of the orders.
struct Case<'a, T> {
    value: &'a T,
    /// The bytes of its type code.
    code: &'a [u8],
    order: ByteOrder,
    wire: Bytes,
}

impl<T: Typed + CdrEncode + CdrDecode> Case<'_, T> {
    fn encoding(&self) -> Vec<Contender<'_>> {
        let mut compiled = Outgoing::new(self.order);
        let (mut image, mut tree) = (Outgoing::new(self.order), Outgoing::new(self.order));
        let program = Program::of(&T::type_code());
        let flat = program.decode_flat(&mut self.incoming()).unwrap();
        let value = program.decode(&mut self.incoming()).unwrap();
        let again = program.clone();
        vec![
            Contender::new("compiled", move || compiled.write(|e| black_box(self.value).encode(e).unwrap())),
            Contender::new("engine", move || {
                image.write(|e| program.encode_flat(black_box(&flat), e).unwrap())
            }),
            Contender::new("engine, tree", move || {
                tree.write(|e| again.encode(black_box(&value), e).unwrap());
            }),
            self.naive_encoding(),
        ]
    }

    fn decoding(&self) -> Vec<Contender<'_>> {
        let program = Program::of(&T::type_code());
        let again = program.clone();
        vec![
            Contender::new("compiled", || {
                black_box(T::decode(&mut self.incoming()).unwrap());
            }),
            Contender::new("engine", move || {
                black_box(program.decode_flat(&mut self.incoming()).unwrap());
            }),
            Contender::new("engine, tree", move || {
                black_box(again.decode(&mut self.incoming()).unwrap());
            }),
            self.naive_decoding("naive", true),
            self.naive_decoding("naive, not freed", false),
        ]
    }

    fn incoming(&self) -> Decoder<'_> {
        Decoder::from_bytes(black_box(&self.wire), self.order, Version::V1_2)
    }

    fn naive_encoding(&self) -> Contender<'_> {
        let code = StoredTypeCode::read::<NoCounting>(self.code).unwrap();
        let swap = self.order != ByteOrder::NATIVE;
        let mut env = Environment::default();
        let mut value = [0; SEQUENCE_SIZE_AND_ALIGNMENT.0];
        let mut stream = Cdr::<NoCounting>::reader(&self.wire, swap);
        decoder(&code.code(), &mut value, &mut [], &mut stream, &mut env).unwrap();
        let mut buffer = Vec::new();
        Contender::new("naive", move || {
            let mut stream = Cdr::<NoCounting>::writer(std::mem::take(&mut buffer), swap);
            encoder(black_box(&code.code()), black_box(&mut value), &mut [], &mut stream, &mut env).unwrap();
            buffer = stream.into_buffer();
            black_box(&buffer);
        })
    }

    fn naive_decoding(&self, name: &'static str, freed: bool) -> Contender<'_> {
        let code = StoredTypeCode::read::<NoCounting>(self.code).unwrap();
        let swap = self.order != ByteOrder::NATIVE;
        let mut env = Environment::default();
        let mut value = [0; SEQUENCE_SIZE_AND_ALIGNMENT.0];
        Contender::new(name, move || {
            let mut stream = Cdr::<NoCounting>::reader(black_box(&self.wire), swap);
            decoder(black_box(&code.code()), &mut value, &mut [], &mut stream, &mut env).unwrap();
            black_box((&mut value, &mut env.heap));
            if freed {
                deep_free(&code.code(), &mut value, &mut [], &mut stream, &mut env).unwrap();
            } else {
                let (_, buffer) = memory::load_sequence(&value).unwrap();
                env.heap.release(buffer);
            }
        })
    }
}

/// The output of messages, written as a connection writes them.
struct Outgoing {
    order: ByteOrder,
    encoder: Encoder,
    pieces: VecDeque<Bytes>,
}

impl Outgoing {
    fn new(order: ByteOrder) -> Self {
        Self { order, encoder: Encoder::new(order, Version::V1_2), pieces: VecDeque::new() }
    }

    fn write(&mut self, value: impl FnOnce(&mut Encoder)) {
        self.encoder.reset(self.order, Version::V1_2);
        value(&mut self.encoder);
        // A message without chunks is sent from the encoder's own buffer.
        if self.encoder.chunk_count() == 0 {
            black_box(self.encoder.head());
        } else {
            self.encoder.drain_into(&mut self.pieces);
            black_box(&self.pieces);
            self.pieces.clear();
        }
    }
}

fn encoded<T: CdrEncode>(value: &T, order: ByteOrder) -> Bytes {
    let mut encoder = Encoder::new(order, Version::V1_2);
    value.encode(&mut encoder).unwrap();
    encoder.into_bytes()
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Formats with three significant digits.
fn short(value: f64) -> String {
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 4);
    format!("{value:.0$}", digits as usize)
}

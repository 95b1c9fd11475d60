//! What a value costs to encode and to decode, for instruction counters:
//!
//! ```text
//! cargo build --profile bench-lto -p giop-codec --example cost
//! valgrind --tool=callgrind --toggle-collect='*cost::measured*' \
//!     target/bench-lto/examples/cost encode struct native
//! ```
//!
//! It runs a hundred messages of 2,000 elements after one that is not collected.
//! The collected instructions divided by 200,000 are those of an element.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub,
    reason = "a program to be measured"
)]

#[path = "../tests/codec/cdr_types/mod.rs"]
mod cdr_types;

use std::collections::VecDeque;
use std::hint::black_box;

use cdr_types::BinStruct;
use giop_codec::cdr::{CdrDecode, CdrEncode, Char, Decoder, Encoder, Seq};
use giop_codec::{ByteOrder, Version};

const ELEMENTS: usize = 2000;
const MESSAGES: usize = 100;

fn bin(i: usize) -> BinStruct {
    BinStruct { s: i as i16, c: Char(i as u8), l: i as i32, o: i as u8, d: i as f64 }
}

#[inline(never)]
fn measured(mut work: impl FnMut()) {
    for _ in 0..MESSAGES {
        work();
    }
}

fn cost<T: CdrEncode + CdrDecode>(encodes: bool, order: ByteOrder, value: &T) {
    let mut e = Encoder::new(order, Version::V1_2);
    let mut pieces = VecDeque::new();
    let mut encode = || {
        e.reset(order, Version::V1_2);
        black_box(value).encode(&mut e).unwrap();
        // As a connection does it.
        e.drain_into(&mut pieces);
        black_box(&pieces);
        pieces.clear();
    };
    encode();
    if encodes {
        return measured(encode);
    }
    value.encode(&mut e).unwrap();
    let octets = e.into_bytes();
    let decode = || {
        drop(black_box(
            T::decode(&mut Decoder::from_bytes(black_box(&octets), order, Version::V1_2)).unwrap(),
        ))
    };
    decode();
    measured(decode);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, element, order] = arguments.as_slice() else {
        eprintln!("cost encode|decode struct|short|long|double native|foreign");
        std::process::exit(2);
    };
    let order = match (order.as_str(), ByteOrder::NATIVE) {
        ("native", order) => order,
        (_, ByteOrder::Big) => ByteOrder::Little,
        (_, ByteOrder::Little) => ByteOrder::Big,
    };
    let encodes = way == "encode";
    let n = 0..ELEMENTS;
    match element.as_str() {
        "short" => cost(encodes, order, &n.map(|i| i as i16).collect::<Seq<_>>()),
        "long" => cost(encodes, order, &n.map(|i| i as i32).collect::<Seq<_>>()),
        "double" => cost(encodes, order, &n.map(|i| i as f64).collect::<Seq<_>>()),
        _ => cost(encodes, order, &n.map(bin).collect::<Vec<_>>()),
    }
}

//! Graphs of values from hostile bytes: in both byte orders, whole and in segments.
//!
//! The segmentation makes no difference. What decodes has an encoding, which decodes to an equal graph with
//! the same shared values.
#![no_main]

mod small_stack;

#[path = "../../crates/giop-codec/tests/codec/values/mod.rs"]
mod values;

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, Segments};
use giop_codec::value::{Factories, Value, ValueBase};
use giop_codec::{ByteOrder, DecodeError, EncodeError, Version};
use libfuzzer_sys::fuzz_target;
use values::*;

fuzz_target!(|data: &[u8]| small_stack::run(256, || fuzz(data)));

fn fuzz(data: &[u8]) {
    // The first byte selects the start of types and alignment, the second the segment boundary.
    let [start, joint, octets @ ..] = data else { return };
    let octets = Bytes::copy_from_slice(octets);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for factories in [all(), Factories::default()] {
            one(&octets, usize::from(*start), usize::from(*joint), order, &factories);
        }
    }
}

/// Values of the types of a message's parameters, until the first error.
#[derive(Debug, Default)]
struct Parameters {
    base: Vec<Option<Value<Base>>>,
    list: Vec<Option<Value<LNode>>>,
    hdr: Vec<Option<Value<Hdr>>>,
    tree: Vec<Option<Value<Tree>>>,
    pair: Vec<Pair>,
    raw: Vec<Option<Value<Raw>>>,
    any: Vec<Option<Value<ValueBase>>>,
    text: Vec<Option<Value<BoxStr>>>,
}

/// Maximum number of parameters that are read.
const MOST: usize = 8;

impl Parameters {
    fn decode(&mut self, d: &mut Decoder<'_>, index: usize) -> Result<(), DecodeError> {
        fn next<T: CdrDecode>(to: &mut Vec<T>, d: &mut Decoder<'_>) -> Result<(), DecodeError> {
            to.push(T::decode(d)?);
            Ok(())
        }
        match index % 8 {
            0 => next(&mut self.hdr, d),
            1 => next(&mut self.base, d),
            2 => next(&mut self.list, d),
            3 => next(&mut self.tree, d),
            4 => next(&mut self.pair, d),
            5 => next(&mut self.any, d),
            6 => next(&mut self.raw, d),
            _ => next(&mut self.text, d),
        }
    }

    fn encode(&self, e: &mut Encoder, index: usize) -> Result<(), EncodeError> {
        fn one<T: CdrEncode>(from: &[T], e: &mut Encoder) -> Result<(), EncodeError> {
            from.first().map_or(Ok(()), |value| value.encode(e))
        }
        match index % 8 {
            0 => one(&self.hdr, e),
            1 => one(&self.base, e),
            2 => one(&self.list, e),
            3 => one(&self.tree, e),
            4 => one(&self.pair, e),
            5 => one(&self.any, e),
            6 => one(&self.raw, e),
            _ => one(&self.text, e),
        }
    }
}

/// Returns the values before the first error, their number, and the reader's position.
fn read(mut d: Decoder<'_>, start: usize) -> (Parameters, usize, Option<usize>) {
    let mut parameters = Parameters::default();
    for n in 0..MOST {
        if parameters.decode(&mut d, start + n).is_err() {
            return (parameters, n, None);
        }
    }
    (parameters, MOST, Some(d.position()))
}

fn one(octets: &Bytes, start: usize, joint: usize, order: ByteOrder, factories: &Factories) {
    let whole = Decoder::from_bytes(octets, order, Version::V1_2).with_context(factories);
    let (parameters, count, end) = read(whole.clone(), start);

    let joint = joint.min(octets.len());
    let block = octets.slice(joint..);
    let mut segments = Segments::default();
    segments.push_control(0, joint);
    segments.push_block(block);
    let control = octets.slice(..joint);
    let mut d = Decoder::from_bytes(&control, order, Version::V1_2).with_segments(&segments);
    d.set_limits(whole.limits());
    let (in_segments, same_count, same_end) = read(d.with_context(factories), start);
    assert_eq!((count, end), (same_count, same_end));
    let shown = format!("{parameters:?}");
    assert_eq!(shown, format!("{in_segments:?}"));

    let mut e = Encoder::new(order, Version::V1_2);
    for n in 0..count {
        parameters.encode(&mut e, start + n).expect("what was decoded has an encoding");
    }
    let octets = e.into_bytes();
    let mut d = Decoder::from_bytes(&octets, order, Version::V1_2).with_context(factories);
    let mut again = Parameters::default();
    for n in 0..count {
        again.decode(&mut d, start + n).expect("what was encoded decodes");
    }
    assert_eq!(d.remaining(), 0);
    assert_eq!(shown, format!("{again:?}"));
}

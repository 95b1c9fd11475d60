//! That the baseline is what it is said to be: its octets, and its calls for each element.

use bytes::Bytes;
use zorb::__private::v1::{CdrEncode, Encoder};
use zorb::prelude::*;
use zorb::wire::{ByteOrder, Version};

use super::cdr::Cdr;
use super::visits::{decoder, deep_copy, deep_free, encoder};
use super::{Environment, Fault, Routine, Tally};

zorb::idl! {
    /// As the original was measured with: 32 octets.
    struct Padded { short s; char c; long l; octet o; double d; octet pad[8]; };
    enum Colour { red, green };
    struct Inner { boolean b; unsigned long long x; };
    struct Other { char c; float f; };
    struct Outer { octet o; Inner pair[2]; sequence<Other> rest; Colour colour; sequence<sequence<short>> rows; };
}

const ELEMENTS: usize = 100;

/// Octets of a value of these types in memory, or more.
const ROOM: usize = 128;

/// Counts.
#[derive(Default, Clone, Copy)]
struct Counted([u32; 7]);

impl Tally for Counted {
    fn call(&mut self, routine: Routine) {
        self.0[routine as usize] += 1;
    }
}

impl Counted {
    /// Calls for each of the elements, without the few of the sequence itself: encoder, decoder, deep_free, traverse,
    /// struct_traverse, calc_nested_size_and_alignment, param_count.
    fn each(&self) -> [usize; 7] {
        self.0.map(|calls| calls as usize / ELEMENTS)
    }
}

/// Panics if the engine's octets are not the compiled ones, or its calls not those that the original made.
pub fn check() {
    let doubles = (0..ELEMENTS).map(|i| i as f64 / 3.0).collect::<Seq<f64>>();
    let [sent, received] = both_orders(&doubles);
    assert_eq!(sent.each(), [1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(received.each(), [0, 1, 1, 0, 0, 0, 0]);

    // The struct, its five numbers, the array, its eight octets; the type of these is decoded too. To be freed: the struct
    // and its members once more. Each walk over the members works out seven sizes.
    let structs = (0..ELEMENTS).map(padded).collect::<Vec<_>>();
    let [sent, received] = both_orders(&structs);
    assert_eq!(sent.each(), [15, 1, 0, 2, 1, 7, 2]);
    assert_eq!(received.each(), [0, 16, 7, 3, 2, 14, 2]);

    both_orders(&outer());
    refused();
}

fn padded(i: usize) -> Padded {
    Padded { s: i as i16, c: Char(b'c'), l: i as i32, o: i as u8, d: i as f64, pad: [i as u8; 8] }
}

fn outer() -> Outer {
    let inner = |x| Inner { b: x % 2 == 0, x };
    let other = |i: u8| Other { c: Char(i), f: f32::from(i) / 2.0 };
    let rows = (0..5).map(|row| (0..row).collect::<Seq<i16>>()).collect();
    Outer { o: 7, pair: [inner(1), inner(2)], rest: (3..9).map(other).collect(), colour: Colour::Green, rows }
}

/// Takes a value from octets in each order, copies it and writes the copy: the calls for writing and for receiving.
fn both_orders<T: Typed + CdrEncode>(value: &T) -> [Counted; 2] {
    let code = encoded(&T::type_code(), ByteOrder::NATIVE);
    let code = Cdr::reader(&code, false).get_type_code().expect("a type of this engine");
    let mut counts = Vec::new();
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let swap = order != ByteOrder::NATIVE;
        let octets = encoded(value, order);
        let mut env = Environment::<Counted>::default();
        let (mut memory, mut copy) = ([0; ROOM], [0; ROOM]);

        let mut stream = Cdr::reader(&octets, swap);
        decoder(&code, &mut memory, &mut [], &mut stream, &mut env).expect("a value");
        assert_eq!(stream.position(), octets.len());
        let kept = std::mem::take(&mut env.tally);
        deep_copy(&code, &mut memory, &mut copy, &mut stream, &mut env).expect("a value");
        env.tally = kept;
        deep_free(&code, &mut memory, &mut [], &mut stream, &mut env).expect("a value");
        let received = std::mem::take(&mut env.tally);

        let mut stream = Cdr::writer(Vec::new(), swap);
        encoder(&code, &mut copy, &mut [], &mut stream, &mut env).expect("a value");
        let length = stream.position();
        assert_eq!(&stream.into_buffer()[..length], &octets);
        let sent = std::mem::take(&mut env.tally);

        deep_free(&code, &mut copy, &mut [], &mut Cdr::reader(&[], false), &mut env).expect("a value");
        assert_eq!(env.heap.used(), 0);
        for length in 0..octets.len() {
            let mut stream = Cdr::reader(&octets[..length], swap);
            let cut = decoder(&code, &mut memory, &mut [], &mut stream, &mut env);
            assert_eq!(cut, Err(Fault::End), "cut at {length}");
        }
        counts.push([sent, received]);
    }
    assert_eq!(counts[0].map(|count| count.0), counts[1].map(|count| count.0));
    counts[0]
}

/// More elements than the type allows, and a type that this engine has no values for.
fn refused() {
    let code = encoded(&Bounded::<Seq<u8>, 2>::type_code(), ByteOrder::NATIVE);
    let code = Cdr::reader(&code, false).get_type_code().expect("a type of this engine");
    let octets = encoded(&Bytes::from_static(b"abc"), ByteOrder::NATIVE);
    let mut env = Environment::<Counted>::default();
    let status = decoder(&code, &mut [0; ROOM], &mut [], &mut Cdr::reader(&octets, false), &mut env);
    assert_eq!(status, Err(Fault::Bound));

    let code = encoded(&String::type_code(), ByteOrder::NATIVE);
    let code = Cdr::reader(&code, false).get_type_code().map(drop);
    assert_eq!(code, Err(Fault::Kind(18)));
}

fn encoded<T: CdrEncode>(value: &T, order: ByteOrder) -> Bytes {
    let mut encoder = Encoder::new(order, Version::V1_2);
    value.encode(&mut encoder).expect("a value");
    encoder.into_bytes()
}

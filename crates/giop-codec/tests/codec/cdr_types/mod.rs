//! Hand-written types in the form of generated code, and helpers shared by the CDR tests.
#![allow(dead_code, reason = "each test file uses its share")]

use std::fmt::Debug;

use giop_codec::cdr::{
    CdrDecode, CdrEncode, Char, CodeSets, Decoder, Encoder, FixedLayout, FixedReader, FixedWriter, Layout,
};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Version};

pub const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

/// `struct BinStruct { short s; char c; long l; octet o; double d; };`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BinStruct {
    pub s: i16,
    pub c: Char,
    pub l: i32,
    pub o: u8,
    pub d: f64,
}

impl FixedLayout for BinStruct {
    const LAYOUT: Layout = Layout::EMPTY
        .then(<i16 as FixedLayout>::LAYOUT)
        .then(<Char as FixedLayout>::LAYOUT)
        .then(<i32 as FixedLayout>::LAYOUT)
        .then(<u8 as FixedLayout>::LAYOUT)
        .then(<f64 as FixedLayout>::LAYOUT);

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put(&self.s);
        w.put(&self.c);
        w.put(&self.l);
        w.put(&self.o);
        w.put(&self.d);
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> Self {
        BinStruct { s: r.read(), c: r.read(), l: r.read(), o: r.read(), d: r.read() }
    }
}

giop_codec::fixed_cdr!(BinStruct);

/// Returns the encoding of a value, with text in these code sets.
pub fn encode_in<T: CdrEncode + ?Sized>(
    value: &T,
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
) -> Result<Vec<u8>, EncodeErrorKind> {
    let mut e = Encoder::new(order, version);
    e.set_code_sets(code_sets);
    value.encode(&mut e).map_err(|e| e.kind)?;
    Ok(e.into_bytes().to_vec())
}

/// Decodes a value that must use all of the bytes, with text in these code sets.
pub fn decode_in<T: CdrDecode>(
    octets: &[u8],
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
) -> Result<T, DecodeErrorKind> {
    let mut d = Decoder::new(octets, order, version);
    d.set_code_sets(code_sets);
    let value = T::decode(&mut d).map_err(|e| e.kind)?;
    assert_eq!(d.remaining(), 0);
    Ok(value)
}

/// Writes the members of a `BinStruct` one by one.
pub fn put_fields(b: &BinStruct, e: &mut Encoder) {
    e.put_i16(b.s);
    e.put_u8(b.c.0);
    e.put_i32(b.l);
    e.put_u8(b.o);
    e.put_f64(b.d);
}

/// `enum Colour { red, green, blue };`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Colour {
    #[default]
    Red,
    Green,
    Blue,
}

impl FixedLayout for Colour {
    const LAYOUT: Layout = Layout::primitive(4, 4);

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put_u32(*self as u32);
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> Self {
        match r.read_u32() {
            0 => Colour::Red,
            1 => Colour::Green,
            2 => Colour::Blue,
            _ => {
                r.fail();
                Colour::Red
            }
        }
    }
}

giop_codec::fixed_cdr!(Colour);

/// The special cases of a fixed layout: a struct that ends unaligned, contains an array of structs that do
/// not start aligned, an enum, and an array of arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Odd {
    pub o: u8,
    pub bins: [BinStruct; 3],
    pub colour: Colour,
    pub grid: [[i16; 3]; 2],
    pub flag: bool,
}

impl FixedLayout for Odd {
    const LAYOUT: Layout = Layout::EMPTY
        .then(<u8 as FixedLayout>::LAYOUT)
        .then(<[BinStruct; 3] as FixedLayout>::LAYOUT)
        .then(<Colour as FixedLayout>::LAYOUT)
        .then(<[[i16; 3]; 2] as FixedLayout>::LAYOUT)
        .then(<bool as FixedLayout>::LAYOUT);

    #[inline(always)]
    fn put(&self, w: &mut FixedWriter<'_>) {
        w.put(&self.o);
        w.put(&self.bins);
        w.put(&self.colour);
        w.put(&self.grid);
        w.put(&self.flag);
    }

    #[inline(always)]
    fn get(r: &mut FixedReader<'_>) -> Self {
        Odd { o: r.read(), bins: r.read(), colour: r.read(), grid: r.read(), flag: r.read() }
    }
}

giop_codec::fixed_cdr!(Odd);

/// `union U switch (long) { case 1: short a; case 2: case 3: string b; default: double c; };`
#[derive(Clone, Debug, PartialEq)]
pub enum U {
    A(i16),
    B(i32, String),
    C(i32, f64),
}

impl CdrEncode for U {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match self {
            U::A(a) => {
                e.put_i32(1);
                a.encode(e)
            }
            U::B(label @ (2 | 3), b) => {
                e.put_i32(*label);
                b.encode(e)
            }
            U::C(label, c) if !matches!(label, 1..=3) => {
                e.put_i32(*label);
                c.encode(e)
            }
            _ => Err(EncodeErrorKind::IllegalDiscriminator.into()),
        }
    }
}

impl CdrDecode for U {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<U, DecodeError> {
        Ok(match d.read_i32()? {
            1 => U::A(d.read_i16()?),
            label @ (2 | 3) => U::B(label, String::decode(d)?),
            label => U::C(label, d.read_f64()?),
        })
    }
}

/// `union V switch (boolean) { case TRUE: long x; };`
#[derive(Clone, Debug, PartialEq)]
pub enum V {
    X(i32),
    Other(bool),
}

impl CdrEncode for V {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        match self {
            V::X(x) => {
                e.put_bool(true);
                e.put_i32(*x);
                Ok(())
            }
            V::Other(false) => {
                e.put_bool(false);
                Ok(())
            }
            V::Other(true) => Err(EncodeErrorKind::IllegalDiscriminator.into()),
        }
    }
}

impl CdrDecode for V {
    const MIN_SIZE: usize = 1;

    fn decode(d: &mut Decoder<'_>) -> Result<V, DecodeError> {
        Ok(if d.read_bool()? { V::X(d.read_i32()?) } else { V::Other(false) })
    }
}

/// `exception Bad { string why; long code; };`, encoded with its repository id.
#[derive(Clone, Debug, PartialEq)]
pub struct Bad {
    pub why: String,
    pub code: i32,
}

impl CdrEncode for Bad {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_unconverted_str("IDL:T/Bad:1.0")?;
        self.why.encode(e)?;
        self.code.encode(e)
    }
}

impl CdrDecode for Bad {
    const MIN_SIZE: usize = 13;

    fn decode(d: &mut Decoder<'_>) -> Result<Bad, DecodeError> {
        let at = d.position();
        if d.read_unconverted_str()? != "IDL:T/Bad:1.0" {
            return Err(DecodeError::new(DecodeErrorKind::InvalidDiscriminator, at));
        }
        Ok(Bad { why: CdrDecode::decode(d)?, code: CdrDecode::decode(d)? })
    }
}

/// `struct Node { long v; sequence<Node> next; };`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub v: i32,
    pub next: Vec<Node>,
}

impl CdrEncode for Node {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.v.encode(e)?;
        self.next.encode(e)
    }
}

impl CdrDecode for Node {
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Node, DecodeError> {
        Ok(Node { v: CdrDecode::decode(d)?, next: CdrDecode::decode(d)? })
    }
}

pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).expect("a hex digit") as u8)
        .collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Returns the encoding of `value` in GIOP 1.2 at offset `phase`, without the preceding bytes.
pub fn encoded<T: CdrEncode + ?Sized>(value: &T, order: ByteOrder, phase: usize) -> Vec<u8> {
    let mut e = Encoder::new_at(order, Version::V1_2, phase);
    value.encode(&mut e).expect("encodes");
    e.into_bytes().to_vec()
}

/// Decodes the whole of `octets`, which begin at offset `phase`.
pub fn decoded<T: CdrDecode>(octets: &[u8], order: ByteOrder, phase: usize) -> Result<T, DecodeError> {
    let data = [&vec![0xAA; phase], octets].concat();
    let mut d = Decoder::new(&data, order, Version::V1_2).at(phase);
    let value = T::decode(&mut d)?;
    assert_eq!(d.remaining(), 0, "the whole encoding is consumed");
    Ok(value)
}

/// Checks that `value` is encoded as `expected` and decoded from it, and that every truncation is an error.
#[track_caller]
pub fn check<T: CdrEncode + CdrDecode + PartialEq + Debug>(
    value: &T,
    order: ByteOrder,
    phase: usize,
    expected: &str,
) {
    let octets = encoded(value, order, phase);
    assert_eq!(octets, hex(expected), "{value:?} {order:?} at {phase}");
    assert_eq!(decoded::<T>(&octets, order, phase).as_ref(), Ok(value), "{order:?} at {phase}");
    check_truncations::<T>(&octets, order, phase);
}

/// Checks that decoding any proper prefix of `octets` is an error.
#[track_caller]
pub fn check_truncations<T: CdrDecode + Debug>(octets: &[u8], order: ByteOrder, phase: usize) {
    for len in 0..octets.len() {
        let cut = decoded::<T>(&octets[..len], order, phase);
        assert!(cut.is_err(), "cut at {len} of {}: {cut:?}", octets.len());
    }
}

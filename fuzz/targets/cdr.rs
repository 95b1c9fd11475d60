//! CDR values from hostile bytes: each of a list of types, in both byte orders and all versions.
//!
//! What decodes has an encoding, and that encoding decodes to a value with the same encoding.
#![no_main]

mod small_stack;

use std::fmt::Debug;

use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{
    Bounded, CdrDecode, CdrEncode, Char, CharSet, CodeSets, Decoder, Encoder, Fixed, FixedSeq, LongDouble,
    Seq, WChar, WCharSet, WString,
};
use giop_codec::code_set::{CodeSetComponentInfo, CodeSetContext, CodeSetId};
use giop_codec::exception::SystemException;
use giop_codec::giop::{BiDirIiopServiceContext, ServiceContext};
use giop_codec::ior::{Ior, OperationNumbers, Policies, TaggedComponent, TaggedProfile};
use giop_codec::typecode::TypeCode;
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, Version};
use libfuzzer_sys::fuzz_target;

zorb::idl! {
    module Fuzz {
        enum Colour { red, green, blue };
        struct BinStruct { short s; char c; long l; octet o; double d; };
        struct Odd { octet o; BinStruct bins[3]; Colour colour; short grid[2][3]; boolean flag; };
        struct Node { long v; sequence<Node> next; };
        struct Text { string s; wstring w; string<8> b; sequence<string> list; char c; wchar x; };
        union U switch (long) { case 1: short a; case 2: case 3: string b; default: double c; };
        union V switch (boolean) { case TRUE: BinStruct x; };
        union W switch (Colour) { case red: sequence<octet> r; case green: Odd g; };
        union C switch (char) { case 'a': long long a; case 'b': Node b; };
        exception Bad { string why; long code; U u; };
        typedef double Grid[40][30];
        struct Large { Grid g; };
        interface Thing { Thing next(in Thing other); };
        struct Holder { Thing thing; sequence<Thing> things; Object any_thing; };
    };
}

fuzz_target!(|data: &[u8]| small_stack::run(256, || fuzz(data)));

fn fuzz(data: &[u8]) {
    let octets = Bytes::copy_from_slice(data);
    let utf = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) };
    let set = |id| CharSet::from_id(id).expect("a set that is always there");
    let ibm = CodeSets { char: set(CodeSetId::IBM_1047), wchar: Some(WCharSet::Ucs4) };
    let ascii = CodeSets { char: set(CodeSetId::ISO_646), wchar: Some(WCharSet::Ucs2) };
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for code_sets in [CodeSets::default(), utf, ibm, ascii] {
                all(&Input { octets: &octets, order, version, code_sets });
            }
        }
    }
}

struct Input<'a> {
    octets: &'a Bytes,
    order: ByteOrder,
    version: Version,
    code_sets: CodeSets,
}

fn all(input: &Input<'_>) {
    one::<bool>(input);
    one::<u8>(input);
    one::<i16>(input);
    one::<u32>(input);
    one::<i64>(input);
    one::<f32>(input);
    one::<f64>(input);
    one::<LongDouble>(input);
    one::<Fixed<1, 0>>(input);
    one::<Fixed<4, 2>>(input);
    one::<Fixed<31, 31>>(input);
    one::<Vec<Fixed<5, 2>>>(input);
    one::<Char>(input);
    one::<WChar>(input);
    one::<String>(input);
    one::<WString>(input);
    one::<Bounded<String, 8>>(input);
    one::<Bounded<WString, 8>>(input);
    one::<Bytes>(input);
    one::<Seq<u8>>(input);
    one::<Seq<i16>>(input);
    one::<Seq<u32>>(input);
    one::<Seq<f64>>(input);
    one::<Bounded<Seq<i32>, 8>>(input);
    one::<FixedSeq<f32, 20>>(input);
    one::<[u32; 3]>(input);
    one::<[String; 2]>(input);
    one::<Vec<bool>>(input);
    one::<Vec<String>>(input);
    one::<Vec<Vec<Vec<u16>>>>(input);
    one::<fuzz::Colour>(input);
    one::<Vec<fuzz::Colour>>(input);
    one::<fuzz::BinStruct>(input);
    one::<Vec<fuzz::BinStruct>>(input);
    one::<fuzz::Odd>(input);
    one::<Vec<fuzz::Odd>>(input);
    one::<fuzz::Node>(input);
    one::<fuzz::Text>(input);
    one::<fuzz::U>(input);
    one::<Vec<fuzz::U>>(input);
    one::<fuzz::V>(input);
    one::<fuzz::W>(input);
    one::<fuzz::C>(input);
    one::<fuzz::Bad>(input);
    one::<fuzz::Large>(input);
    one::<TypeCode>(input);
    one::<Sound>(input);
    one::<Vec<Sound>>(input);
    one::<Ior>(input);
    one::<TaggedProfile>(input);
    one::<TaggedComponent>(input);
    one::<ServiceContext>(input);
    one::<CodeSetComponentInfo>(input);
    one::<CodeSetContext>(input);
    one::<BiDirIiopServiceContext>(input);
    one::<Policies>(input);
    one::<OperationNumbers>(input);
    one::<SystemException>(input);
    // References need an ORB, which is missing here: only the termination of decoding is checked.
    let _ = fuzz::Holder::decode(&mut input.decoder(input.octets));
    encapsulated(input);
}

/// An any whose value was validated: others may have no encoding.
#[derive(Debug)]
struct Sound(Any);

impl CdrEncode for Sound {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        self.0.encode(e)
    }
}

impl CdrDecode for Sound {
    const MIN_SIZE: usize = Any::MIN_SIZE;

    fn decode(d: &mut Decoder<'_>) -> Result<Sound, DecodeError> {
        let any = Any::decode(d)?;
        any.validate().map_err(|_| d.error(DecodeErrorKind::Malformed))?;
        Ok(Sound(any))
    }
}

impl Input<'_> {
    fn decoder<'a>(&self, octets: &'a Bytes) -> Decoder<'a> {
        let mut d = Decoder::from_bytes(octets, self.order, self.version);
        d.set_code_sets(self.code_sets);
        d
    }

    fn encoded<T: CdrEncode>(&self, value: &T) -> Bytes {
        let mut e = Encoder::new(self.order, self.version);
        e.set_code_sets(self.code_sets);
        value.encode(&mut e).expect("what was decoded has an encoding");
        e.into_bytes()
    }
}

fn one<T: CdrDecode + CdrEncode + Debug>(input: &Input<'_>) {
    let Ok(value) = T::decode(&mut input.decoder(input.octets)) else { return };
    let first = input.encoded(&value);
    let mut d = input.decoder(&first);
    let again = T::decode(&mut d).expect("what was encoded decodes");
    assert_eq!(d.remaining(), 0, "decoding takes all of an encoding: {value:?}");
    // Encodings are compared, not values: a NaN is not equal to itself.
    assert_eq!(input.encoded(&again), first, "{value:?}");
    // A borrowed slice yields the same value as the shared buffer.
    let mut d = Decoder::new(input.octets, input.order, input.version);
    d.set_code_sets(input.code_sets);
    let copied = T::decode(&mut d).expect("decodes from a shared buffer");
    assert_eq!(input.encoded(&copied), first, "{value:?}");
}

/// Decodes nested encapsulations, to the depth of the input.
fn encapsulated(input: &Input<'_>) {
    let outer = input.decoder(input.octets);
    let mut d = outer.clone();
    while let Ok(inner) = d.encapsulation() {
        assert!(inner.remaining() < outer.remaining());
        d = inner;
        let _ = String::decode(&mut d.clone());
    }
}

//! Programs of type codes, compared with compiled decoders on the same hostile bytes.
//!
//! A program accepts exactly the bytes that the compiled decoder of its type accepts, and ends at the same
//! position. What it read, copied or kept in an any has the encoding of the compiled value. Limits of depth
//! and memory are counted differently, so failures by a limit are ignored.
#![no_main]

mod small_stack;

use std::fmt::Debug;

use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{
    Bounded, CdrDecode, CdrEncode, Char, CharSet, CodeSets, Decoder, Encoder, Fixed, LongDouble, Segments,
    Seq, WChar, WCharSet, WString,
};
use giop_codec::dynamic::program::Program;
use giop_codec::dynamic::{DynError, DynErrorKind, Step};
use giop_codec::typecode::{TypeCode, Typed};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, Version};
use libfuzzer_sys::fuzz_target;

zorb::idl! {
    module Fuzz {
        enum Colour { red, green, blue };
        struct BinStruct { short s; char c; long l; octet o; double d; };
        struct Pair { octet o; unsigned long long x; };
        struct Odd { octet o; BinStruct bins[3]; Colour colour; short grid[2][3]; boolean flag; };
        struct Row { float f; sequence<Pair> pairs; octet tail[3]; sequence<Odd, 4> odds; };
        struct Node { long v; sequence<Node> next; };
        struct Text { string s; wstring w; string<8> b; sequence<string> list; char c; wchar x; };
        union U switch (long) { case 1: short a; case 2: case 3: string b; default: double c; };
        union V switch (boolean) { case TRUE: BinStruct x; };
        union W switch (Colour) { case red: sequence<octet> r; case green: Odd g; };
        union C switch (char) { case 'a': long long a; case 'b': Node b; };
        struct Mixed { U u; any a; CORBA::TypeCode t; sequence<any> list; V v; };
        typedef double Grid[40][30];
        struct Large { Grid g; };
    };
}

fuzz_target!(|data: &[u8]| small_stack::run(256, || fuzz(data)));

fn fuzz(data: &[u8]) {
    // The first byte selects the alignment at which a value begins.
    let Some((phase, octets)) = data.split_first() else { return };
    let phase = usize::from(phase % 8);
    let octets = Bytes::from([vec![0; phase], octets.to_vec()].concat());
    for version in [Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            all(&Input { octets: &octets, phase, order, version });
        }
    }
}

struct Input<'a> {
    octets: &'a Bytes,
    phase: usize,
    order: ByteOrder,
    version: Version,
}

fn all(input: &Input<'_>) {
    one::<bool>(input);
    one::<u8>(input);
    one::<i16>(input);
    one::<u64>(input);
    one::<f64>(input);
    one::<LongDouble>(input);
    one::<Vec<LongDouble>>(input);
    one::<Fixed<4, 2>>(input);
    one::<Vec<Fixed<5, 2>>>(input);
    one::<WChar>(input);
    one::<String>(input);
    one::<WString>(input);
    one::<Bounded<String, 8>>(input);
    one::<Bytes>(input);
    one::<Seq<Char>>(input);
    one::<Seq<i16>>(input);
    one::<Seq<u32>>(input);
    one::<Seq<f64>>(input);
    one::<Bounded<Seq<i32>, 8>>(input);
    one::<[u32; 3]>(input);
    one::<[String; 2]>(input);
    one::<Vec<bool>>(input);
    one::<Vec<String>>(input);
    one::<Vec<Vec<Vec<u16>>>>(input);
    one::<Vec<fuzz::Colour>>(input);
    one::<fuzz::BinStruct>(input);
    one::<Vec<fuzz::BinStruct>>(input);
    one::<Vec<fuzz::Odd>>(input);
    one::<fuzz::Row>(input);
    one::<Vec<fuzz::Row>>(input);
    one::<fuzz::Node>(input);
    one::<fuzz::Text>(input);
    one::<fuzz::U>(input);
    one::<Vec<fuzz::U>>(input);
    one::<Vec<fuzz::V>>(input);
    one::<fuzz::W>(input);
    one::<fuzz::C>(input);
    one::<fuzz::Mixed>(input);
    one::<fuzz::Large>(input);
    one::<TypeCode>(input);
    one::<Any>(input);
}

/// Text that UTF-16 and UTF-8 can represent has an encoding everywhere.
fn code_sets() -> CodeSets {
    CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) }
}

impl Input<'_> {
    fn decoder(&self) -> Decoder<'_> {
        let mut d = Decoder::from_bytes(self.octets, self.order, self.version);
        d.set_code_sets(code_sets());
        d.at(self.phase)
    }

    /// Returns an encoder with the other byte order and another alignment.
    fn encoder(&self) -> Encoder {
        let order = if self.order == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
        let mut e = Encoder::new_at(order, Version::V1_2, 4);
        e.set_code_sets(code_sets());
        e
    }
}

fn one<T: Typed + CdrDecode + CdrEncode + Debug>(input: &Input<'_>) {
    let mut d = input.decoder();
    let compiled = T::decode(&mut d);
    if compiled.as_ref().is_err_and(limited) {
        return;
    }
    let program = Program::of(&T::type_code());

    // Validates all of it before using any of it.
    let mut over = input.decoder();
    let valid = program.validate(&mut over);
    if let Some((value, _)) = same(&compiled, &valid, "validate") {
        assert_eq!(over.position(), d.position(), "{value:?}");
    }
    if let Err(error) = program.skip(&mut input.decoder()) {
        assert!(valid.is_err() || excused(&error), "skip: {error}");
    }

    let mut read = input.decoder();
    let tree = program.decode(&mut read);
    if let Some((value, tree)) = same(&compiled, &tree, "decode") {
        assert_eq!(read.position(), d.position(), "{value:?}");
        let encoding = encoding(input, value);
        let mut e = input.encoder();
        match program.encode(tree, &mut e) {
            Ok(()) => assert_eq!(Some(e.into_bytes()), encoding, "{tree:?}"),
            // A value that is too deeply nested for a receiver has no encoding.
            Err(error) => assert!(encoding.is_none(), "{error}: {tree:?}"),
        }
    }

    let mut e = input.encoder();
    let copied = program.copy(&mut input.decoder(), &mut e);
    // Anys reject sequences of zero-size elements, which no type here has.
    if let Some((value, _)) = same(&compiled, &copied, "copy")
        && let Some(encoding) = encoding(input, value)
    {
        assert_eq!(e.into_bytes(), encoding, "{value:?}");
    }

    // As the argument of a dynamic call: kept in an any, and extracted from it by its type. It is validated
    // completely on request.
    let kept = Any::decode_value(&T::type_code(), &mut input.decoder()).map_err(DynError::from);
    let kept = kept.and_then(|any| any.validate().map(|()| any));
    if let Some((value, any)) = same(&compiled, &kept, "decode_value")
        && let Ok(out) = any.get::<T>()
    {
        assert_eq!(encoding(input, &out), encoding(input, value), "{value:?}");
    }
    in_segments(input, &program, valid.is_ok(), d.position());
}

/// Checks that splitting the bytes in two makes no difference.
fn in_segments(input: &Input<'_>, program: &Program, valid: bool, end: usize) {
    let joint = input.octets.len() / 2;
    if joint < input.phase || input.version != Version::V1_2 {
        return;
    }
    let mut segments = Segments::default();
    segments.push_control(0, joint);
    segments.push_block(input.octets.slice(joint..));
    let control = input.octets.slice(..joint);
    let mut d = Decoder::from_bytes(&control, input.order, input.version).with_segments(&segments);
    d.set_limits(input.decoder().limits());
    d.set_code_sets(code_sets());
    let mut d = d.at(input.phase);
    match program.validate(&mut d) {
        Ok(_) => assert!(valid && d.position() == end),
        Err(error) => assert!(!valid || excused(&error), "{error}"),
    }
}

/// Returns both results if both are values. Panics if only one of them is.
fn same<'a, T: Debug, U>(
    compiled: &'a Result<T, DecodeError>,
    program: &'a Result<U, DynError>,
    act: &str,
) -> Option<(&'a T, &'a U)> {
    match (compiled, program) {
        (Ok(value), Ok(other)) => Some((value, other)),
        (Err(_), Err(_)) => None,
        // A compiled decoder does not validate the contents of anys.
        (Ok(_), Err(error)) if excused(error) || error.path().steps().contains(&Step::Content) => None,
        (Ok(value), Err(error)) => panic!("{act} refuses {value:?}: {error:?}"),
        (Err(error), Ok(_)) => panic!("{act} takes what is no value: {error:?}"),
    }
}

fn encoding<T: CdrEncode>(input: &Input<'_>, value: &T) -> Option<Bytes> {
    let mut e = input.encoder();
    value.encode(&mut e).ok()?;
    Some(e.into_bytes())
}

fn limited(error: &DecodeError) -> bool {
    matches!(error.kind, DecodeErrorKind::DepthLimit | DecodeErrorKind::AllocLimit)
}

fn excused(error: &DynError) -> bool {
    matches!(error.kind(), DynErrorKind::Decode(error) if limited(error))
}

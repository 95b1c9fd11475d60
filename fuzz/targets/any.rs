//! Type codes and anys from hostile bytes.
//!
//! * What decodes encodes to the same bytes, in both byte orders.
//! * Every query about it returns a result or an error.
//! * A value that is extracted from an any by its type is equal to the original after it is inserted again.
//! * Values in anys may be shared with each other and with surrounding values.
//! * The segmentation of the bytes makes no difference.
#![no_main]

mod small_stack;

#[path = "../../crates/giop-codec/tests/codec/values/mod.rs"]
mod values;

use std::fmt::Debug;

use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{
    CdrDecode, CdrEncode, Char, CharSet, CodeSets, Decoder, Encoder, Fixed, LongDouble, MAX_DEPTH, Segments,
    Seq, WChar, WCharSet, WString,
};
use giop_codec::dynamic::program::Program;
use giop_codec::typecode::{TypeCode, Typed};
use giop_codec::value::{Factories, Value, ValueBase};
use giop_codec::{ByteOrder, DecodeErrorKind, EncodeErrorKind, Version};
use libfuzzer_sys::fuzz_target;
use values::{Base, BoxStr, LNode, Pair, Tree, Wrap, all};

/// Text that UTF-16 and UTF-8 can represent can be sent in every any.
const SETS: CodeSets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) };

fuzz_target!(|data: &[u8]| small_stack::run(256, || fuzz(data)));

fn fuzz(data: &[u8]) {
    let octets = Bytes::copy_from_slice(data);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
            let mut d = Decoder::from_bytes(&octets, order, version);
            d.set_code_sets(SETS);
            if let Ok(code) = TypeCode::decode(&mut d.clone()) {
                type_code(&code, 3);
            }
            located(&d);
            if let Ok(any) = Any::decode(&mut d)
                && any.validate().is_ok()
            {
                value(&any, (order, version, SETS), &Factories::default());
            }
        }
        for factories in [all(), Factories::default()] {
            several(&octets, order, &factories);
        }
    }
}

/// Checks that the location of a fault, in an any or in a value of the type at the start of the bytes, is
/// found within the limits of decoding.
fn located(d: &Decoder<'_>) {
    let taken = Any::decode(&mut d.clone()).map_err(|error| error.kind);
    let found = Any::decode_value_with_path(&TypeCode::ANY, &mut d.clone());
    if let (Err(kind), Err(found)) = (taken, found) {
        assert!(
            found.path().steps().len() <= 4 * usize::from(MAX_DEPTH) || kind != DecodeErrorKind::DepthLimit
        );
    }
    let mut d = d.clone();
    let Ok(code) = TypeCode::decode(&mut d) else { return };
    let program = Program::of(&code);
    let _ = (program.skip(&mut d.clone()), program.validate(&mut d.clone()), program.decode(&mut d.clone()));
    let _ = Any::decode_value_with_path(&code, &mut d);
}

/// The anys and values of a message, until the first error.
#[derive(Debug, Default)]
struct Several {
    anys: Vec<Any>,
    base: Vec<Option<Value<Base>>>,
    list: Vec<Option<Value<LNode>>>,
    whatever: Vec<Option<Value<ValueBase>>>,
}

impl Several {
    fn read(mut d: Decoder<'_>) -> (Several, Result<usize, DecodeErrorKind>) {
        let mut several = Several::default();
        for n in 0..8 {
            let read = match n {
                2 => CdrDecode::decode(&mut d).map(|value| several.list.push(value)),
                4 => CdrDecode::decode(&mut d).map(|value| several.base.push(value)),
                6 => CdrDecode::decode(&mut d).map(|value| several.whatever.push(value)),
                _ => CdrDecode::decode(&mut d).map(|any| several.anys.push(any)),
            };
            if let Err(error) = read {
                return (several, Err(error.kind));
            }
        }
        (several, Ok(d.position()))
    }
}

fn several(octets: &Bytes, order: ByteOrder, factories: &Factories) {
    let whole = Decoder::from_bytes(octets, order, Version::V1_2).with_context(factories);
    let (several, end) = Several::read(whole.clone());
    for joint in [octets.len() / 3, octets.len() / 2] {
        let mut segments = Segments::default();
        segments.push_control(0, joint);
        segments.push_block(octets.slice(joint..));
        let control = octets.slice(..joint);
        let mut d = Decoder::from_bytes(&control, order, Version::V1_2).with_segments(&segments);
        d.set_limits(whole.limits());
        let (same, same_end) = Several::read(d.with_context(factories));
        // Data on both sides of a segment boundary is joined, which takes memory. An any there is validated
        // immediately, instead of on extraction.
        if [end, same_end].contains(&Err(DecodeErrorKind::AllocLimit))
            || several.anys.iter().any(|any| any.validate().is_err())
        {
            continue;
        }
        assert_eq!(end.ok(), same_end.ok());
        assert_eq!(format!("{several:?}"), format!("{same:?}"));
        assert_eq!(several.anys, same.anys);
    }
    // Received anys are validated when they are extracted.
    let received = (order, Version::V1_2, whole.code_sets());
    several.anys.iter().filter(|any| any.validate().is_ok()).for_each(|any| value(any, received, factories));
}

/// Checks that the value is unchanged after encoding and decoding, in each byte order and at another
/// alignment.
fn again<T: CdrDecode + CdrEncode + PartialEq + Debug>(value: &T, factories: &Factories) {
    for (order, offset) in [(ByteOrder::Big, 0), (ByteOrder::Little, 3)] {
        let mut e = Encoder::new_at(order, Version::V1_2, offset);
        e.set_code_sets(SETS);
        if value.encode(&mut e).is_err() {
            // A type that was extracted from another one may exceed the nesting limit.
            continue;
        }
        let octets = Bytes::from([vec![0; offset], e.into_bytes().to_vec()].concat());
        let mut d = Decoder::from_bytes(&octets, order, Version::V1_2).at(offset).with_context(factories);
        d.set_code_sets(SETS);
        let decoded = T::decode(&mut d).expect("what was encoded decodes");
        assert_eq!(&decoded, value);
        assert_eq!(d.remaining(), 0);
    }
}

fn type_code(code: &TypeCode, depth: usize) {
    assert!(code.equal(code) && code.equivalent(code) && code.unaliased().equivalent(code));
    let compact = code.compact();
    assert!(compact.equal(&compact.compact()));
    let _ = (compact.equivalent(code), code.to_string(), code.id(), code.name());
    let _ = (code.length(), code.fixed_digits(), code.fixed_scale(), code.default_index());
    let _ = (code.discriminator_type(), code.type_modifier(), code.concrete_base_type());
    again(code, &Factories::default());
    let Some(depth) = depth.checked_sub(1) else { return };
    if let Ok(content) = code.content_type() {
        type_code(&content, depth);
    }
    for index in 0..code.member_count().unwrap_or(0).min(4) {
        let _ = (code.member_name(index), code.member_label(index), code.member_visibility(index));
        if let Ok(member) = code.member_type(index) {
            let _ = (member.equal(code), member.equivalent(code));
            type_code(&member, depth);
        }
    }
}

/// Checks an any that was received in this form.
fn value(any: &Any, received: (ByteOrder, Version, CodeSets), factories: &Factories) {
    let encode = |(order, version, sets)| {
        let mut e = Encoder::new(order, version);
        e.set_code_sets(sets);
        any.encode(&mut e)
    };
    if let Err(error) = encode((ByteOrder::Big, Version::V1_2, SETS)) {
        // The state of a custom value is sent only in the form in which it was received.
        assert_eq!(error.kind, EncodeErrorKind::UnconvertibleCustomState, "what was decoded has an encoding");
        encode(received).expect("what was received is sent in the same form");
    }
    again(any, factories);
    // Over connections with fewer features, it is sent or rejected.
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        let _ = any.encode(&mut Encoder::new(ByteOrder::Little, version));
    }
    take::<bool>(any);
    take::<u8>(any);
    take::<i32>(any);
    take::<u64>(any);
    take::<LongDouble>(any);
    take::<Char>(any);
    take::<WChar>(any);
    take::<String>(any);
    take::<WString>(any);
    take::<TypeCode>(any);
    take::<Any>(any);
    take::<Fixed<5, 2>>(any);
    take::<Bytes>(any);
    take::<Seq<i16>>(any);
    take::<Vec<String>>(any);
    take::<[[i32; 3]; 2]>(any);
    take_values::<Option<Value<Base>>>(any);
    take_values::<Option<Value<LNode>>>(any);
    take_values::<Option<Value<Tree>>>(any);
    take_values::<Option<Value<Wrap>>>(any);
    take_values::<Option<Value<BoxStr>>>(any);
    take_values::<Option<Value<ValueBase>>>(any);
    take_values::<Vec<Pair>>(any);
    take_values::<Vec<Any>>(any);
}

/// A different value may have the type's name. Anys that shared a value have separate values afterwards.
fn take_values<T: Typed + CdrDecode + CdrEncode + PartialEq + Debug>(any: &Any) {
    let Ok(value) = any.get::<T>() else { return };
    let Ok(put) = Any::new(&value) else { return };
    if any.type_code() == &T::type_code() {
        assert_eq!(put.get::<T>().as_ref(), Ok(&value));
    }
}

fn take<T: Typed + CdrDecode + CdrEncode>(any: &Any) {
    let Ok(value) = any.get::<T>() else {
        // Bounds are part of the type, so an any of the type has a valid value.
        assert!(!any.is::<T>(), "{any:?} has no value");
        return;
    };
    let put = Any::with_type(any.type_code(), value).expect("what came out goes in");
    if !any.is::<Fixed<5, 2>>() {
        // A decimal number has two zeros.
        assert_eq!(&put, any);
    }
}

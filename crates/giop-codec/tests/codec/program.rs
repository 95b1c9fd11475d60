//! Programs of type codes read, write, skip and copy the same as encoders and decoders of the types.

mod hostile;
mod joints;

use crate::{cdr_types, shapes};

use crate::shapes::*;
use bytes::Bytes;
use giop_codec::any::Any;
use giop_codec::cdr::{CdrEncode, DecodeLimits, Decoder, Encoder, Segments};
use giop_codec::dynamic::program::Program;
use giop_codec::dynamic::{DynErrorKind, Dynamic, Items, Value};
use giop_codec::typecode::{TcKind, TypeCode};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};
use proptest::prelude::*;

const ORDERS: [ByteOrder; 2] = [ByteOrder::NATIVE, FOREIGN];

/// Prepends bytes so that the value begins at a phase of the decoder.
fn padded(phase: usize, octets: &[u8]) -> Bytes {
    [vec![0xAA; phase], octets.to_vec()].concat().into()
}

fn decoder(octets: &Bytes, order: ByteOrder, version: Version, phase: usize) -> Decoder<'_> {
    let mut d = Decoder::from_bytes(octets, order, version);
    d.set_code_sets(SETS);
    d.at(phase)
}

fn written(shape: &Shape, value: &Value, order: ByteOrder, version: Version, phase: usize) -> Bytes {
    let mut e = encoder(order, version, phase);
    shape.put(value, &mut e);
    e.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_read_and_write_what_is_written_member_by_member(
        shape in shapes(), seed: u64, phase in 0..8_usize, to_phase in 0..8_usize,
        foreign: bool, to_foreign: bool, version in prop::sample::select(&[Version::V1_1, Version::V1_2][..]),
    ) {
        let value = shape.value(&mut Dice(seed));
        let (order, to) = (ORDERS[usize::from(foreign)], ORDERS[usize::from(to_foreign)]);
        let expected = written(&shape, &value, order, version, phase);
        let octets = padded(phase, &expected);
        let program = Program::of(&shape.type_code());

        let mut d = decoder(&octets, order, version, phase);
        let read = program.decode(&mut d).unwrap();
        prop_assert_eq!(&read.value, &value);
        prop_assert_eq!(d.remaining(), 0);

        let mut e = encoder(order, version, phase);
        program.encode(&read, &mut e).unwrap();
        prop_assert_eq!(e.into_bytes(), &expected);

        for checks in [false, true] {
            let mut d = decoder(&octets, order, version, phase);
            let seen = if checks { program.validate(&mut d) } else { program.skip(&mut d) }.unwrap();
            prop_assert_eq!(d.remaining(), 0);
            prop_assert!(!seen.has_wide_text || shape.is_wide() || shape.is_opaque());
        }

        let mut d = decoder(&octets, order, version, phase);
        let mut e = encoder(to, Version::V1_2, to_phase);
        program.copy(&mut d, &mut e).unwrap();
        prop_assert_eq!(d.remaining(), 0);
        prop_assert_eq!(e.into_bytes(), written(&shape, &value, to, Version::V1_2, to_phase));
    }

    #[test]
    fn anys_are_trees_and_trees_are_anys(shape in shapes(), seed: u64) {
        let value = dynamic(&shape, shape.value(&mut Dice(seed)));
        let any = Any::from_dynamic(&value).unwrap();
        prop_assert_eq!(any.to_dynamic().unwrap(), value.clone());
        let mut e = encoder(FOREIGN, Version::V1_2, 4);
        any.encode_value(&mut e).unwrap();
        prop_assert_eq!(e.into_bytes(), written(&shape, &value.value, FOREIGN, Version::V1_2, 4));
    }

    #[test]
    fn a_value_turned_in_place_is_the_same_in_the_other_order(
        shape in shapes(), seed: u64, phase in 0..8_usize, foreign: bool,
        version in prop::sample::select(&[Version::V1_1, Version::V1_2][..]),
    ) {
        let value = shape.value(&mut Dice(seed));
        let (order, other) = (ORDERS[usize::from(foreign)], ORDERS[usize::from(!foreign)]);
        let mut octets = written(&shape, &value, order, version, phase).to_vec();
        let before = octets.clone();
        octets.extend([7; 3]);
        let program = Program::of(&shape.type_code());
        let limits = DecodeLimits::for_data(octets.len());
        let len = program.swap(&mut octets, phase, order, version, limits).unwrap();
        prop_assert_eq!(len, before.len());
        prop_assert_eq!(&octets[len..], &[7; 3]);
        octets.truncate(len);
        let turned = padded(phase, &octets);
        prop_assert_eq!(&program.decode(&mut decoder(&turned, other, version, phase)).unwrap().value, &value);
        if !shape.is_opaque() {
            prop_assert_eq!(&octets, &written(&shape, &value, other, version, phase));
        }
        program.swap(&mut octets, phase, other, version, limits).unwrap();
        prop_assert_eq!(&octets, &before);
        if let Some(cut) = before.len().checked_sub(1) {
            let mut cut = before[..cut].to_vec();
            let whole = cut.clone();
            prop_assert!(program.swap(&mut cut, phase, order, version, limits).is_err());
            prop_assert_eq!(cut, whole);
        }
    }

    #[test]
    fn a_value_that_is_cut_is_none(shape in shapes(), seed: u64, foreign: bool) {
        let value = shape.value(&mut Dice(seed));
        let order = ORDERS[usize::from(foreign)];
        let octets = written(&shape, &value, order, Version::V1_2, 0);
        let program = Program::of(&shape.type_code());
        for len in 0..octets.len() {
            let cut = octets.slice(..len);
            prop_assert!(program.decode(&mut decoder(&cut, order, Version::V1_2, 0)).is_err());
            prop_assert!(program.skip(&mut decoder(&cut, order, Version::V1_2, 0)).is_err());
            prop_assert!(program.validate(&mut decoder(&cut, order, Version::V1_2, 0)).is_err());
        }
    }

    #[test]
    fn octets_that_are_no_value_are_refused_by_all_alike(
        shape in shapes(), seed: u64, foreign: bool, at: prop::sample::Index, with: u8,
    ) {
        let value = shape.value(&mut Dice(seed));
        let order = ORDERS[usize::from(foreign)];
        let mut octets = written(&shape, &value, order, Version::V1_2, 0).to_vec();
        // Invalid text in anys is detected only when it is taken out.
        prop_assume!(!octets.is_empty() && !shape.is_opaque());
        let at = at.index(octets.len());
        octets[at] = with;
        let octets = Bytes::from(octets);
        let program = Program::of(&shape.type_code());
        let mut d = decoder(&octets, order, Version::V1_2, 0);
        let read = program.decode(&mut d);
        let mut over = decoder(&octets, order, Version::V1_2, 0);
        let seen = program.validate(&mut over);
        let mut e = encoder(FOREIGN, Version::V1_2, 0);
        let copied = program.copy(&mut decoder(&octets, order, Version::V1_2, 0), &mut e);
        match (&read, &seen, &copied) {
            (Ok(read), Ok(_), Ok(_)) => {
                prop_assert_eq!(d.position(), over.position());
                let mut again = encoder(FOREIGN, Version::V1_2, 0);
                program.encode(read, &mut again).unwrap();
                prop_assert_eq!(e.into_bytes(), again.into_bytes());
            }
            (Err(read), Err(seen), Err(_)) => prop_assert_eq!(read.path(), seen.path()),
            _ => prop_assert!(false, "{:?} {:?} {:?}", read, seen, copied),
        }
    }

    #[test]
    fn the_segments_of_a_message_do_not_matter(shape in shapes(), seed: u64, foreign: bool, at: prop::sample::Index) {
        let value = shape.value(&mut Dice(seed));
        let order = ORDERS[usize::from(foreign)];
        let octets = written(&shape, &value, order, Version::V1_2, 0);
        prop_assume!(!octets.is_empty());
        let joint = at.index(octets.len());
        let mut segments = Segments::default();
        segments.push_control(0, joint);
        segments.push_block(octets.slice(joint..));
        let program = Program::of(&shape.type_code());
        let fresh = || decoder(&octets, order, Version::V1_2, 0).with_segments(&segments);
        let mut d = fresh();
        prop_assert_eq!(program.decode(&mut d).unwrap().value, value.clone());
        prop_assert_eq!(d.remaining(), 0);
        let mut d = fresh();
        program.validate(&mut d).unwrap();
        prop_assert_eq!(d.remaining(), 0);
        let mut e = encoder(FOREIGN, Version::V1_2, 3);
        program.copy(&mut fresh(), &mut e).unwrap();
        prop_assert_eq!(e.into_bytes(), written(&shape, &value, FOREIGN, Version::V1_2, 3));
    }

    #[test]
    fn a_flat_image_is_the_elements_whatever_they_came_in(
        shape in fixed_shapes(), seed: u64, phase in 0..8_usize, foreign: bool,
    ) {
        let shape = Shape::Seq(Box::new(shape), 0);
        let program = Program::of(&shape.type_code());
        let value = shape.value(&mut Dice(seed));
        let order = ORDERS[usize::from(foreign)];
        let octets = padded(phase, &written(&shape, &value, order, Version::V1_2, phase));
        let mut d = decoder(&octets, order, Version::V1_2, phase);
        if program.flat_stride().is_none() {
            prop_assert!(shape.has(&|part| matches!(part, Shape::Array(..)) && fields(part) > MAX_UNROLLED));
            prop_assert!(matches!(program.decode_flat(&mut d).unwrap_err().kind(), DynErrorKind::Inconsistent(_)));
            return Ok(());
        }
        let flat = program.decode_flat(&mut d).unwrap();
        prop_assert_eq!(d.remaining(), 0);
        let Value::Items(items) = &value else { panic!("{value:?}") };
        prop_assert_eq!(flat.len(), program.flat_stride().unwrap() * items.len());
        for to in ORDERS {
            let mut e = encoder(to, Version::V1_2, phase);
            program.encode_flat(&flat, &mut e).unwrap();
            prop_assert_eq!(e.into_bytes(), written(&shape, &value, to, Version::V1_2, phase));
        }
    }
}

/// The maximum number of fields of an array within a larger type; longer arrays are processed element by
/// element.
const MAX_UNROLLED: usize = 64;

/// The number of members of a type of fixed layout, including those of its parts; an array of numbers is one
/// member.
fn fields(shape: &Shape) -> usize {
    match shape {
        Shape::Array(of, len) => match fields(of) {
            1 if !matches!(**of, Shape::Struct(_)) => 1,
            each => each * *len as usize,
        },
        Shape::Struct(of) => of.iter().map(fields).sum(),
        _ => 1,
    }
}

/// Such types are rare among the random ones.
#[test]
fn sequences_of_arrays_of_many_fields_have_no_flat_image() {
    let members =
        [TcKind::Octet, TcKind::Short, TcKind::Octet, TcKind::Short, TcKind::Octet].map(Shape::Basic);
    let of = |len| Shape::Array(Box::new(Shape::Array(Box::new(Shape::Struct(members.to_vec())), 4)), len);
    for (len, flat) in [(3, true), (4, false)] {
        assert_eq!(fields(&of(len)) <= MAX_UNROLLED, flat);
        let shape = Shape::Seq(Box::new(of(len)), 0);
        let program = Program::of(&shape.type_code());
        let octets = written(&shape, &shape.value(&mut Dice(1)), ORDERS[0], Version::V1_2, 0);
        let read = program.decode_flat(&mut decoder(&octets, ORDERS[0], Version::V1_2, 0));
        assert_eq!((program.flat_stride().is_some(), read.is_ok()), (flat, flat), "{read:?}");
    }
}

fn frames() -> TypeCode {
    let colour = TypeCode::create_enum("IDL:Colour:1.0", "Colour", &["red", "green"]).unwrap();
    let frame = TypeCode::create_struct(
        "IDL:Frame:1.0",
        "Frame",
        &[("width", &TypeCode::LONG), ("colour", &colour), ("name", &TypeCode::STRING)],
    )
    .unwrap();
    let frames = TypeCode::sequence(&frame, 0);
    let payload = TypeCode::create_struct("IDL:P:1.0", "P", &[("frames", &frames)]).unwrap();
    TypeCode::create_struct("IDL:M:1.0", "M", &[("n", &TypeCode::OCTET), ("payload", &payload)]).unwrap()
}

#[test]
fn an_error_says_where() {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u8(1);
    e.put_u32(4);
    for frame in 0..4 {
        e.put_u32(7);
        e.put_u32(if frame == 3 { 2 } else { 1 });
        e.put_str("x").unwrap();
    }
    let octets = e.into_bytes();
    let program = Program::of(&frames());
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    let error = program.validate(&mut d).unwrap_err();
    assert_eq!(error.path().to_string(), "payload.frames[3].colour");
    assert!(
        matches!(error.kind(), DynErrorKind::Decode(error) if error.kind == DecodeErrorKind::InvalidEnum)
    );
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    assert_eq!(program.decode(&mut d).unwrap_err().path().to_string(), "payload.frames[3].colour");
    // `skip` does not check ordinals.
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    program.skip(&mut d).unwrap();
    let cut = octets.slice(..octets.len() - 1);
    let mut d = Decoder::from_bytes(&cut, ByteOrder::Big, Version::V1_2);
    assert_eq!(program.skip(&mut d).unwrap_err().path().to_string(), "payload.frames[3].name");
}

#[test]
fn an_error_in_an_any_says_where_in_it() {
    let octets = {
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        TypeCode::array(&frames(), 1).encode(&mut e).unwrap();
        e.put_u8(1);
        e.put_u32(1);
        e.put_u32(7);
        e.put_u32(9);
        e.put_str("x").unwrap();
        e.into_bytes()
    };
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    let program = Program::of(&TypeCode::ANY);
    let error = program.validate(&mut d.clone()).unwrap_err();
    assert_eq!(error.path().to_string(), "value[0].payload.frames[0].colour");
    // An any as received is not checked.
    let value = program.decode(&mut d).unwrap();
    let Value::Any(any) = &value.value else { panic!("{value:?}") };
    assert_eq!(any.to_dynamic().unwrap_err().path().to_string(), "[0].payload.frames[0].colour");
    let cut = octets.slice(..octets.len() - 2);
    let mut d = Decoder::from_bytes(&cut, ByteOrder::Big, Version::V1_2);
    let error = program.decode(&mut d).unwrap_err();
    assert_eq!(error.path().to_string(), "value[0].payload.frames[0].name");
}

#[test]
fn a_tree_of_another_type_is_refused_with_its_place() {
    let program = Program::of(&frames());
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    for value in [0_u32, 1, 0, 1] {
        e.put_u32(value);
    }
    e.put_str("x").unwrap();
    let octets = e.into_bytes();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    let mut value = program.decode(&mut d).unwrap();
    let Value::Struct(members) = &mut value.value else { panic!() };
    let Value::Struct(payload) = &mut members[1] else { panic!() };
    let Value::Items(items) = payload[0].clone() else { panic!() };
    let mut frames = items.into_values();
    let Value::Struct(frame) = &mut frames[0] else { panic!() };
    frame[0] = Value::Double(1.0);
    payload[0] = Value::Items(Box::new(giop_codec::dynamic::Items::Values(frames)));
    let error = program.encode(&value, &mut Encoder::new(ByteOrder::Big, Version::V1_2)).unwrap_err();
    assert_eq!(error.path().to_string(), "payload.frames[0].width");
    assert!(
        matches!(error.kind(), DynErrorKind::TypeMismatch { wanted, found } if wanted.kind() == TcKind::Long && &**found == "a double")
    );
}

#[test]
fn a_value_is_shown_with_its_names() {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    for value in [0x0500_0000_u32, 1, 7, 1] {
        e.put_u32(value);
    }
    e.put_str("x\"y").unwrap();
    let octets = e.into_bytes();
    let mut text = String::new();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    Program::of(&frames()).print(&mut d, &mut text).unwrap();
    assert_eq!(text, r#"{ n: 5, payload: { frames: [{ width: 7, colour: green, name: "x\"y" }] } }"#);
    let any = |any: Result<Any, _>| any.unwrap().to_string();
    assert_eq!(any(Any::new(Any::new(1.5_f64).unwrap())), "1.5");
    assert_eq!(any(Any::new(vec![true, false])), "[true, false]");
    assert_eq!(any(Any::new(vec![0_u8; 300])), format!("[{}and 44 more]", "0, ".repeat(256)));
    assert_eq!(
        any(Any::new("\u{e4}".repeat(600))),
        format!("\"{}\"… and 176 more bytes", "\u{e4}".repeat(512))
    );
    assert_eq!(any(Ok(Any::default())), "null");
    let names = TypeCode::sequence(&TypeCode::STRING, 0);
    let broken = Bytes::from_static(b"\0\0\0\x01\0\0\0\x02\xff\0");
    let mut d = Decoder::from_bytes(&broken, ByteOrder::Big, Version::V1_2);
    d.set_code_sets(SETS);
    let broken = Any::decode_value(&names, &mut d).unwrap().to_string();
    assert!(broken.starts_with("<[0]: "), "{broken}");
}

/// Decoders reject the count of such a sequence.
#[test]
fn an_any_has_no_elements_that_take_no_octets() {
    for element in [TypeCode::VOID, TypeCode::NULL] {
        let of = |n| Dynamic {
            code: TypeCode::sequence(&element, 0),
            value: Value::Items(Box::new(Items::Values(vec![Value::Void; n]))),
            graph: Default::default(),
        };
        assert!(Any::from_dynamic(&of(0)).is_ok());
        let error = Any::from_dynamic(&of(3)).unwrap_err();
        assert!(matches!(error.kind(), DynErrorKind::Decode(_)), "{error}");
    }
}

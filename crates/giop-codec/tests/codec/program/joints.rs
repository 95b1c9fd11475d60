//! Values in messages that are split: into GIOP 1.1 fragments, which are aligned individually, and into
//! segments. Also tests wide text in each version.

use giop_codec::DecodeErrorKind;
use giop_codec::cdr::CodeSets;
use giop_codec::dynamic::{DynError, Items};

use super::*;

/// A unit of writing.
#[derive(Clone, Debug)]
enum Leaf {
    Value(Value),
    /// The first number of a sequence or array. Senders align it before a fragment ends, so no fragment
    /// begins between it and its padding.
    First(Value),
    /// A later number of a sequence or array, which is not realigned after a fragment boundary.
    InRun(Value),
}

fn is_number(shape: &Shape) -> bool {
    match shape {
        Shape::Basic(kind) => !matches!(kind, TcKind::WChar | TcKind::Any | TcKind::TypeCode),
        Shape::Alias(of) | Shape::Array(of, _) => is_number(of),
        _ => false,
    }
}

/// Appends the units of a value in the order of its encoding: primitives and texts.
fn leaves(shape: &Shape, value: &Value, out: &mut Vec<Leaf>) {
    match (shape, value) {
        (Shape::Fixed(..), _) => {
            let mut e = encoder(ByteOrder::Big, Version::V1_1, 0);
            shape.put(value, &mut e);
            out.extend(e.into_bytes().iter().map(|octet| Leaf::Value(Value::Octet(*octet))));
        }
        (Shape::Seq(of, _) | Shape::Array(of, _), Value::Items(items)) => {
            if matches!(shape, Shape::Seq(..)) {
                out.push(Leaf::Value(Value::ULong(items.len() as u32)));
            }
            let first = out.len();
            (0..items.len()).for_each(|at| leaves(of, &items.get(at).unwrap(), out));
            for (at, leaf) in out.iter_mut().skip(first).enumerate().filter(|_| is_number(of)) {
                if let Leaf::Value(value) | Leaf::First(value) = leaf {
                    let value = value.clone();
                    *leaf = if at == 0 { Leaf::First(value) } else { Leaf::InRun(value) };
                }
            }
        }
        (Shape::Struct(of), Value::Struct(members)) => {
            of.iter().zip(members).for_each(|(of, member)| leaves(of, member, out));
        }
        (Shape::Union(of, _), Value::Union(union)) => {
            out.push(Leaf::Value(Value::Short(union.discriminator as i16)));
            if let Some(value) = &union.value {
                let at = (union.discriminator as usize).min(of.len() - 1);
                leaves(&of[at], value, out);
            }
        }
        (Shape::Alias(of), value) => leaves(of, value, out),
        (_, value) => out.push(Leaf::Value(value.clone())),
    }
}

/// Returns a message whose later fragments begin before the leaves at `joints`, and the offsets of these
/// fragments.
fn in_pieces(leaves: &[Leaf], joints: &[usize], order: ByteOrder, phase: usize) -> (Bytes, Vec<u32>) {
    let mut octets = vec![0xAA; phase];
    let mut starts = Vec::new();
    let mut e = encoder(order, Version::V1_1, phase);
    for (at, leaf) in leaves.iter().enumerate() {
        if joints.contains(&at) && !matches!(leaf, Leaf::First(_)) {
            let before = std::mem::replace(&mut e, encoder(order, Version::V1_1, 4));
            octets.extend(before.into_bytes());
            starts.push(octets.len() as u32);
        }
        match leaf {
            Leaf::Value(value) | Leaf::First(value) => shapes::leaf(value, &mut e),
            Leaf::InRun(value) => {
                let mut run = encoder(order, Version::V1_1, 0);
                shapes::leaf(value, &mut run);
                e.put_raw(&run.into_bytes());
            }
        }
    }
    octets.extend(e.into_bytes());
    (octets.into(), starts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fragments_are_aligned_by_themselves(
        shape in shapes(), seed: u64, foreign: bool, phase in 0..8_usize, second: prop::sample::Index,
    ) {
        let value = shape.value(&mut Dice(seed));
        let order = ORDERS[usize::from(foreign)];
        let mut all = Vec::new();
        leaves(&shape, &value, &mut all);
        let program = Program::of(&shape.type_code());
        let expected = written(&shape, &value, FOREIGN, Version::V1_2, 3);
        for first in 0..all.len() {
            let joints = [first, second.index(all.len())];
            let (octets, starts) = in_pieces(&all, &joints, order, phase);
            let fresh = || decoder(&octets, order, Version::V1_1, phase).with_fragments(&starts);
            let mut d = fresh();
            prop_assert_eq!(&program.decode(&mut d).unwrap().value, &value, "{:?}", starts);
            prop_assert_eq!(d.remaining(), 0);
            for checks in [false, true] {
                let mut d = fresh();
                if checks { program.validate(&mut d) } else { program.skip(&mut d) }.unwrap();
                prop_assert_eq!(d.remaining(), 0);
            }
            let mut e = encoder(FOREIGN, Version::V1_2, 3);
            let mut d = fresh();
            program.copy(&mut d, &mut e).unwrap();
            prop_assert_eq!(d.remaining(), 0);
            prop_assert_eq!(e.into_bytes(), &expected);
            // As an argument that is kept as received.
            let any = Any::decode_value(&shape.type_code(), &mut fresh()).unwrap();
            let mut e = encoder(FOREIGN, Version::V1_2, 3);
            any.encode_value(&mut e).unwrap();
            prop_assert_eq!(e.into_bytes(), &expected);
        }
    }

    #[test]
    fn a_joint_may_be_anywhere_in_a_message_of_segments(shape in shapes(), seed: u64, foreign: bool) {
        let value = shape.value(&mut Dice(seed));
        let order = ORDERS[usize::from(foreign)];
        let octets = written(&shape, &value, order, Version::V1_2, 0);
        let program = Program::of(&shape.type_code());
        let expected = written(&shape, &value, FOREIGN, Version::V1_2, 3);
        for joint in 0..=octets.len() {
            let mut segments = Segments::default();
            segments.push_control(0, joint);
            segments.push_block(octets.slice(joint..));
            let fresh = || decoder(&octets, order, Version::V1_2, 0).with_segments(&segments);
            let mut d = fresh();
            prop_assert_eq!(&program.decode(&mut d).unwrap().value, &value);
            prop_assert_eq!(d.remaining(), 0);
            let mut d = fresh();
            program.skip(&mut d).unwrap();
            prop_assert_eq!(d.remaining(), 0);
            let mut e = encoder(FOREIGN, Version::V1_2, 3);
            program.copy(&mut fresh(), &mut e).unwrap();
            prop_assert_eq!(e.into_bytes(), &expected);
            let any = Any::decode_value(&shape.type_code(), &mut fresh()).unwrap();
            let mut e = encoder(FOREIGN, Version::V1_2, 3);
            any.encode_value(&mut e).unwrap();
            prop_assert_eq!(e.into_bytes(), &expected);
        }
    }

    #[test]
    fn fragments_that_are_cut_are_no_value(shape in shapes(), seed: u64, joint: prop::sample::Index, cut: prop::sample::Index) {
        let value = shape.value(&mut Dice(seed));
        let mut all = Vec::new();
        leaves(&shape, &value, &mut all);
        prop_assume!(!all.is_empty());
        let (octets, starts) = in_pieces(&all, &[joint.index(all.len())], ByteOrder::Big, 0);
        prop_assume!(!octets.is_empty());
        let cut = octets.slice(..cut.index(octets.len()));
        let program = Program::of(&shape.type_code());
        let fresh = || decoder(&cut, ByteOrder::Big, Version::V1_1, 0).with_fragments(&starts);
        prop_assert!(program.decode(&mut fresh()).is_err());
        prop_assert!(program.skip(&mut fresh()).is_err());
        prop_assert!(program.validate(&mut fresh()).is_err());
        prop_assert!(Any::decode_value(&shape.type_code(), &mut fresh()).is_err());
    }
}

fn kind(error: &DynError) -> Option<DecodeErrorKind> {
    match error.kind() {
        DynErrorKind::Decode(error) => Some(error.kind),
        _ => None,
    }
}

#[test]
fn wide_text_is_as_the_version_has_it() {
    let of =
        |code: &TypeCode| TypeCode::create_struct("", "", &[("n", &TypeCode::OCTET), ("w", code)]).unwrap();
    let (wchar, wstring) = (of(&TypeCode::WCHAR), of(&TypeCode::WSTRING));
    let read = |code: &TypeCode, octets: &'static [u8], order, version, sets: CodeSets| {
        let octets = Bytes::from_static(octets);
        let program = Program::of(code);
        let fresh = || {
            let mut d = Decoder::from_bytes(&octets, order, version);
            d.set_code_sets(sets);
            d
        };
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        e.set_code_sets(SETS);
        let copied = program.copy(&mut fresh(), &mut e).map(|_| e.into_bytes().to_vec());
        let mut d = fresh();
        let value = program.decode(&mut d);
        let mut over = fresh();
        match (program.validate(&mut over), &value) {
            (Ok(_), Ok(_)) => assert_eq!((over.position(), over.remaining()), (d.position(), 0)),
            (Err(seen), Err(error)) => assert_eq!(seen.path(), error.path()),
            other => panic!("{other:?}"),
        }
        match (value, copied) {
            (Ok(value), Ok(copied)) => {
                let Value::Struct(members) = value.value else { panic!("{value:?}") };
                Ok((members[1].clone(), copied))
            }
            (Err(error), Err(copied)) => {
                assert_eq!((kind(&error), error.path()), (kind(&copied), copied.path()));
                assert_eq!(error.path().to_string(), "w");
                Err(kind(&error).unwrap())
            }
            other => panic!("{other:?}"),
        }
    };
    let euro = Value::WChar(giop_codec::cdr::WChar(0x20AC));
    // In 1.1 it is two bytes in the order of the message; in 1.2 a length and the bytes, big-endian.
    let in_1_2 = vec![0, 2, 0x20, 0xAC];
    for (octets, order, version) in [
        (&[0, 0, 0x20, 0xAC][..], ByteOrder::Big, Version::V1_1),
        (&[0, 0, 0xAC, 0x20], ByteOrder::Little, Version::V1_1),
        (&[0, 2, 0x20, 0xAC], ByteOrder::Big, Version::V1_2),
        (&[0, 2, 0x20, 0xAC], ByteOrder::Little, Version::V1_2),
    ] {
        assert_eq!(read(&wchar, octets, order, version, SETS), Ok((euro.clone(), in_1_2.clone())));
    }
    // The length of a `wstring` counts characters and a terminator in 1.1, and bytes in 1.2.
    let text = Value::WString("\u{20AC}".into());
    let in_1_2 = vec![0, 0, 0, 0, 0, 0, 0, 2, 0x20, 0xAC];
    for (octets, order, version) in [
        (&[0, 0, 0, 0, 0, 0, 0, 2, 0x20, 0xAC, 0, 0][..], ByteOrder::Big, Version::V1_1),
        (&[0, 0, 0, 0, 2, 0, 0, 0, 0xAC, 0x20, 0, 0], ByteOrder::Little, Version::V1_1),
        (&[0, 0, 0, 0, 0, 0, 0, 2, 0x20, 0xAC], ByteOrder::Big, Version::V1_2),
    ] {
        assert_eq!(read(&wstring, octets, order, version, SETS), Ok((text.clone(), in_1_2.clone())));
    }
    // GIOP 1.0 has no wide text, and other versions require a wide code set.
    let none = CodeSets { wchar: None, ..SETS };
    for (code, octets) in
        [(&wchar, &[0, 2, 0x20, 0xAC, 0, 0, 0, 0][..]), (&wstring, &[0, 0, 0, 0, 0, 0, 0, 0])]
    {
        assert_eq!(
            read(code, octets, ByteOrder::Big, Version::V1_0, SETS),
            Err(DecodeErrorKind::WideInGiop10)
        );
        assert_eq!(
            read(code, octets, ByteOrder::Big, Version::V1_1, none),
            Err(DecodeErrorKind::NoWideCodeSet)
        );
        assert_eq!(
            read(code, octets, ByteOrder::Big, Version::V1_2, none),
            Err(DecodeErrorKind::NoWideCodeSet)
        );
    }
    // Encoding has the same restrictions.
    for (version, sets) in [(Version::V1_0, SETS), (Version::V1_1, none), (Version::V1_2, none)] {
        let mut e = Encoder::new(ByteOrder::Big, version);
        e.set_code_sets(sets);
        let tree = giop_codec::dynamic::Dynamic {
            code: wchar.clone(),
            value: Value::Struct([Value::Octet(0), euro.clone()].into()),
            graph: Default::default(),
        };
        let error = Program::of(&wchar).encode(&tree, &mut e).unwrap_err();
        assert_eq!(error.path().to_string(), "w");
        assert!(matches!(error.kind(), DynErrorKind::Encode(_)), "{error}");
    }
}

#[test]
fn bulk_in_fragments_is_read_as_it_lies() {
    // A sequence of doubles whose elements begin after the fragment boundary, at another phase than before
    // it.
    let code = TypeCode::sequence(&TypeCode::DOUBLE, 0);
    for order in ORDERS {
        let shape = Shape::Seq(Box::new(Shape::Basic(TcKind::Double)), 0);
        let items = Items::Doubles((0..100).map(f64::from).collect());
        let mut leaves = Vec::new();
        self::leaves(&shape, &Value::Items(Box::new(items)), &mut leaves);
        for joint in [1, 2, 50, 100] {
            let (octets, starts) = in_pieces(&leaves, &[joint], order, 0);
            let mut d = decoder(&octets, order, Version::V1_1, 0).with_fragments(&starts);
            let value = Program::of(&code).decode(&mut d).unwrap().value;
            let Value::Items(items) = &value else { panic!("{value:?}") };
            let Items::Doubles(items) = &**items else { panic!("{items:?}") };
            assert!(items.iter().enumerate().all(|(at, item)| *item == at as f64));
            let mut d = decoder(&octets, order, Version::V1_1, 0).with_fragments(&starts);
            let flat = Program::of(&code).decode_flat(&mut d).unwrap();
            assert_eq!((flat.len(), d.remaining()), (800, 0));
            assert_eq!(flat[8..16], 1_f64.to_ne_bytes());
        }
    }
}

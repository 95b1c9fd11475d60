//! Invalid data for a program's type: it is rejected as by compiled decoders, the error contains the path,
//! and memory use stays within the limit.

use allocation_counter::measure;
use giop_codec::cdr::{Bounded, CdrDecode, Char, Fixed, LongDouble, Seq, WChar, WString};
use giop_codec::dynamic::{DynError, Dynamic};
use giop_codec::typecode::{Definition, Shape as Described, TypeDesc, TypeSet, Typed, UnionLabel};

use super::cdr_types::{BinStruct, Colour, Node, Odd, U, V};
use super::*;

macro_rules! typed {
    ($($name:ident $short:literal = $shape:expr;)*) => {$(
        impl Typed for $name {
            const DESC: &'static TypeDesc = &TypeDesc::Defined(|| {
                static DEFINITION: Definition =
                    Definition::new(concat!("IDL:T/", $short, ":1.0"), $short, $shape);
                &DEFINITION
            });
        }
    )*};
}

typed! {
    BinStruct "BinStruct" = Described::Struct(&[
        ("s", i16::DESC), ("c", Char::DESC), ("l", i32::DESC), ("o", u8::DESC), ("d", f64::DESC),
    ]);
    Colour "Colour" = Described::Enum(&["red", "green", "blue"]);
    Odd "Odd" = Described::Struct(&[
        ("o", u8::DESC), ("bins", <[BinStruct; 3]>::DESC), ("colour", Colour::DESC), ("grid", <[[i16; 3]; 2]>::DESC),
        ("flag", bool::DESC),
    ]);
    U "U" = Described::Union {
        discriminator: i32::DESC,
        default: Some(3),
        members: &[(1, "a", i16::DESC), (2, "b", String::DESC), (3, "b", String::DESC), (0, "c", f64::DESC)],
    };
    V "V" = Described::Union { discriminator: bool::DESC, default: None, members: &[(1, "x", i32::DESC)] };
    Node "Node" = Described::Struct(&[("v", i32::DESC), ("next", <Vec<Node>>::DESC)]);
}

fn bin() -> BinStruct {
    BinStruct { s: -1, c: Char(b'c'), l: 70_000, o: 9, d: 0.5 }
}

fn odd() -> Odd {
    Odd { o: 3, bins: [bin(), bin(), bin()], colour: Colour::Blue, flag: true, ..Odd::default() }
}

fn kind(error: &DynError) -> DecodeErrorKind {
    match error.kind() {
        DynErrorKind::Decode(error) => error.kind,
        other => panic!("{other:?}"),
    }
}

fn is_limit(kind: DecodeErrorKind) -> bool {
    matches!(kind, DecodeErrorKind::DepthLimit | DecodeErrorKind::AllocLimit)
}

/// Checks that all operations of the program have the same result as the decoder of the type.
fn judged<T: Typed + CdrEncode + CdrDecode>(
    program: &Program,
    octets: &Bytes,
    order: ByteOrder,
    version: Version,
) -> Result<(), DecodeErrorKind> {
    let fresh = || decoder(octets, order, version, 0);
    let mut d = fresh();
    let value = T::decode(&mut d);
    let mut tree = fresh();
    let read = program.decode(&mut tree);
    let mut over = fresh();
    let seen = program.validate(&mut over);
    let mut from = fresh();
    let mut e = encoder(FOREIGN, Version::V1_2, 0);
    let copied = program.copy(&mut from, &mut e);
    let skipped = program.skip(&mut fresh());
    match value {
        Ok(value) => {
            let ends = [tree.position(), over.position(), from.position()];
            assert_eq!(ends, [d.position(); 3], "{octets:02x?}");
            skipped.unwrap();
            seen.unwrap();
            copied.unwrap();
            let mut expected = encoder(FOREIGN, Version::V1_2, 0);
            value.encode(&mut expected).unwrap();
            let expected = expected.into_bytes();
            assert_eq!(e.into_bytes(), expected, "{octets:02x?}");
            let mut e = encoder(FOREIGN, Version::V1_2, 0);
            program.encode(&read.unwrap(), &mut e).unwrap();
            assert_eq!(e.into_bytes(), expected, "{octets:02x?}");
            Ok(())
        }
        Err(error) => {
            let (read, seen, copied) = (read.unwrap_err(), seen.unwrap_err(), copied.unwrap_err());
            assert_eq!((kind(&read), read.path()), (kind(&seen), seen.path()), "{error} {octets:02x?}");
            assert_eq!((kind(&copied), copied.path()), (kind(&seen), seen.path()), "{error} {octets:02x?}");
            assert!(!is_limit(error.kind) && !is_limit(kind(&read)), "{error} {read}");
            Err(error.kind)
        }
    }
}

/// Tests every truncation, each byte changed, and a random count or label at each position.
fn hostile<T: Typed + CdrEncode + CdrDecode>(value: T) {
    let program = Program::of(&T::type_code());
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for order in ORDERS {
            let mut e = encoder(order, version, 0);
            if value.encode(&mut e).is_err() {
                // Wide text is rejected in GIOP 1.0, even if the data would be valid in other versions.
                assert_eq!(version, Version::V1_0);
                let mut e = encoder(order, version, 0);
                [1, 0, 0, 0].into_iter().for_each(|word| e.put_u32(word));
                let octets = e.into_bytes();
                let verdict = judged::<T>(&program, &octets, order, version);
                assert_eq!(verdict, Err(DecodeErrorKind::WideInGiop10));
                continue;
            }
            let octets = e.into_bytes();
            let both = |octets: Vec<u8>| judged::<T>(&program, &octets.into(), order, version);
            both(octets.to_vec()).unwrap();
            let mut refused = 0;
            for at in 0..octets.len() {
                refused += usize::from(both(octets[..at].to_vec()).is_err());
                for with in [octets[at] ^ 1, octets[at] ^ 0x80, 2, 0xFF] {
                    let mut changed = octets.to_vec();
                    changed[at] = with;
                    refused += usize::from(both(changed).is_err());
                }
                for with in [u32::MAX, 0x7FFF_FFFF, 1 << 31, 4, 0] {
                    let mut changed = octets.to_vec();
                    let place = &mut changed[at..octets.len().min(at + 4)];
                    let len = place.len();
                    place.copy_from_slice(&with.to_be_bytes()[..len]);
                    refused += usize::from(both(changed).is_err());
                }
            }
            assert!(refused >= octets.len(), "what is cut is none");
        }
    }
}

#[test]
fn the_verdict_on_structs_unions_and_enums_is_that_of_compiled_decoders() {
    hostile(bin());
    hostile(odd());
    hostile(vec![bin(), bin()]);
    hostile(vec![Colour::Blue, Colour::Red]);
    hostile(vec![U::A(1), U::B(3, "x".into()), U::C(9, 0.5)]);
    hostile(vec![V::X(5), V::Other(false)]);
    hostile(Node {
        v: 1,
        next: vec![Node { v: 2, next: vec![] }, Node { v: 3, next: vec![Node::default()] }],
    });
}

#[test]
fn the_verdict_on_numbers_texts_and_sequences_is_that_of_compiled_decoders() {
    hostile(vec![true, false]);
    hostile(vec!["abc".to_owned(), "h\u{e4}".to_owned()]);
    hostile(Bounded::<String, 4>::try_from("abcd".to_owned()).unwrap());
    hostile(Bounded::<Vec<Colour>, 2>::try_from(vec![Colour::Green; 2]).unwrap());
    hostile(Bounded::<Bytes, 3>::try_from(Bytes::from_static(&[1, 2, 3])).unwrap());
    hostile(vec![Seq::from(vec![1_i16, 2, 3]), Seq::from(vec![])]);
    hostile([[1_u64, 2], [3, 4]]);
    hostile(vec![LongDouble::from(0.5)]);
    hostile(vec![WChar(0x20AC), WChar(b'x'.into())]);
    hostile(vec![WString::from("h\u{e4}\u{1F600}"), WString::from("")]);
    hostile(vec!["12.50".parse::<Fixed<5, 2>>().unwrap(), "-0.07".parse().unwrap()]);
    hostile("-1.234".parse::<Fixed<4, 3>>().unwrap());
}

type Act<'a> = &'a mut dyn FnMut() -> Result<(), DynError>;

/// Checks that all operations reject the data with this error and path, within a memory limit.
#[track_caller]
fn refused<'p>(code: &TypeCode, octets: Vec<u8>, what: DecodeErrorKind, path: impl Into<Option<&'p str>>) {
    let path = path.into();
    let octets = Bytes::from(octets);
    let program = Program::of(code);
    let fresh = || decoder(&octets, ByteOrder::Big, Version::V1_2, 0);
    let most = 16 << 20;
    let mut acts: [(&str, Act<'_>); 4] = [
        ("decode", &mut || program.decode(&mut fresh()).map(drop)),
        ("validate", &mut || program.validate(&mut fresh()).map(drop)),
        ("skip", &mut || program.skip(&mut fresh()).map(drop)),
        ("copy", &mut || program.copy(&mut fresh(), &mut encoder(FOREIGN, Version::V1_2, 0)).map(drop)),
    ];
    for (name, act) in &mut acts {
        let mut error = None;
        let taken = measure(|| error = act().err());
        let error = error.unwrap_or_else(|| panic!("{name} takes it"));
        assert_eq!(kind(&error), what, "{name}: {error}");
        assert!(path.is_none_or(|path| error.path().to_string() == path), "{name}: {error}");
        assert!(taken.bytes_max < most + (1 << 20), "{name}: {} octets", taken.bytes_max);
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// `struct M { octet n; struct P { sequence<Frame> frames; } payload; }`, whose frames have that member.
fn message(name: &str, member: &TypeCode) -> TypeCode {
    let frame = TypeCode::create_struct("IDL:Frame:1.0", "Frame", &[("n", &TypeCode::ULONG), (name, member)]);
    let payload = TypeCode::sequence(&frame.unwrap(), 0);
    let payload = TypeCode::create_struct("IDL:P:1.0", "P", &[("frames", &payload)]).unwrap();
    TypeCode::create_struct("IDL:M:1.0", "M", &[("n", &TypeCode::OCTET), ("payload", &payload)]).unwrap()
}

#[test]
fn lengths_that_lie_cost_nothing() {
    for element in [
        TypeCode::OCTET,
        TypeCode::DOUBLE,
        TypeCode::STRING,
        TypeCode::ANY,
        TypeCode::sequence(&TypeCode::OCTET, 0),
        Odd::type_code(),
        U::type_code(),
        Node::type_code(),
    ] {
        let code = TypeCode::sequence(&element, 0);
        for count in [5_000_000, u32::MAX / 8, i32::MAX.cast_unsigned(), u32::MAX] {
            let program = Program::of(&code);
            let octets = Bytes::from(words(&[count, 0, 0, 0, 0]));
            let fresh = || decoder(&octets, ByteOrder::Big, Version::V1_2, 0);
            let taken = measure(|| {
                assert!(program.decode(&mut fresh()).is_err());
                assert!(program.validate(&mut fresh()).is_err());
                assert!(program.skip(&mut fresh()).is_err());
                let mut octets = octets.to_vec();
                let limits = DecodeLimits::for_data(octets.len());
                assert!(program.swap(&mut octets, 0, ByteOrder::Big, Version::V1_2, limits).is_err());
            });
            assert!(taken.bytes_max < 8_192, "{element}: {}", taken.bytes_max);
        }
    }
    let code = message("name", &TypeCode::STRING);
    refused(
        &code,
        words(&[0, 2, 1, 2, 0x6100_0000, 2, 0xFFFF]),
        DecodeErrorKind::LengthBeyondData,
        "payload.frames[1].name",
    );
    refused(&code, words(&[0, 0xFFFF]), DecodeErrorKind::LengthBeyondData, "payload.frames");
}

#[test]
fn errors_name_the_path() {
    let of = |name, code: &TypeCode, frames: &[u32], what, path: &str| {
        let all = [&[0, frames.len() as u32 / 2], frames].concat();
        refused(&message(name, code), words(&all), what, path);
    };
    let colours = Program::of(&message("width", &TypeCode::array(&Colour::type_code(), 2)));
    let octets = Bytes::from(words(&[0, 4, 1, 0, 2, 2, 1, 1, 3, 0, 2, 4, 0, 7]));
    for act in [Program::validate, |program: &Program, d: &mut Decoder<'_>| {
        program.decode(d).map(|_| Default::default())
    }] {
        let error = act(&colours, &mut decoder(&octets, ByteOrder::Big, Version::V1_2, 0)).unwrap_err();
        assert_eq!(
            (kind(&error), &*error.path().to_string()),
            (DecodeErrorKind::InvalidEnum, "payload.frames[3].width[1]")
        );
    }
    // Ordinals are checked only by `decode`.
    let colour = Program::of(&message("width", &Colour::type_code()));
    let octets = Bytes::from(words(&[0, 2, 1, 2, 2, 3]));
    let error = colour.decode(&mut decoder(&octets, ByteOrder::Big, Version::V1_2, 0)).unwrap_err();
    assert_eq!(
        (kind(&error), &*error.path().to_string()),
        (DecodeErrorKind::InvalidEnum, "payload.frames[1].width")
    );
    colour.skip(&mut decoder(&octets, ByteOrder::Big, Version::V1_2, 0)).unwrap();
    // A label determines the member that follows it.
    let on = TypeCode::create_union(
        "IDL:On:1.0",
        "On",
        &TypeCode::BOOLEAN,
        &[(UnionLabel::Case(1), "x", &TypeCode::STRING)],
    );
    of("on", &on.unwrap(), &[1, 0, 2, 0x0700_0000], DecodeErrorKind::EndOfData, "payload.frames[1].on.x");
    let hue = TypeCode::create_union(
        "IDL:H:1.0",
        "H",
        &Colour::type_code(),
        &[(UnionLabel::Case(1), "text", &TypeCode::STRING)],
    );
    let hue = hue.unwrap();
    of("hue", &hue, &[1, 0, 2, 3], DecodeErrorKind::InvalidEnum, "payload.frames[1].hue");
    of("hue", &hue, &[1, 0, 2, 1], DecodeErrorKind::EndOfData, "payload.frames[1].hue.text");
}

#[test]
fn depth_has_an_end() {
    let program = Program::of(&Node::type_code());
    let deep = |levels: usize| Bytes::from(words(&[[7, 1].repeat(levels), vec![7, 0]].concat()));
    let fits = deep(30);
    let mut d = decoder(&fits, ByteOrder::Big, Version::V1_2, 0);
    assert!(Node::decode(&mut d.clone()).is_ok() && program.validate(&mut d.clone()).is_ok());
    let value = program.decode(&mut d).unwrap();
    let way = ["next[0]"; 30].join(".") + ".v";
    assert_eq!(value.at(&way).unwrap().1, 7.into());
    let too_deep = deep(100_000);
    let fresh = || decoder(&too_deep, ByteOrder::Big, Version::V1_2, 0);
    assert_eq!(Node::decode(&mut fresh()).unwrap_err().kind, DecodeErrorKind::DepthLimit);
    let error = program.decode(&mut fresh()).unwrap_err();
    assert_eq!(kind(&error), DecodeErrorKind::DepthLimit);
    assert!(error.path().to_string().starts_with("next[0].next[0].next[0]"), "{error}");
    for error in [
        program.skip(&mut fresh()).unwrap_err(),
        program.validate(&mut fresh()).unwrap_err(),
        program.copy(&mut fresh(), &mut encoder(FOREIGN, Version::V1_2, 0)).unwrap_err(),
    ] {
        assert_eq!(kind(&error), DecodeErrorKind::DepthLimit);
    }
    // Nested anys: each is a level.
    let mut anys = [11_u32.to_be_bytes()].repeat(100).concat();
    anys.extend(words(&[0, 0]));
    let program = Program::of(&TypeCode::ANY);
    let octets = Bytes::from(anys);
    let error = program.skip(&mut decoder(&octets, ByteOrder::Big, Version::V1_2, 0)).unwrap_err();
    assert_eq!(kind(&error), DecodeErrorKind::DepthLimit);
    assert!(error.path().to_string().starts_with("value"), "{error}");
    assert!(program.decode(&mut decoder(&octets, ByteOrder::Big, Version::V1_2, 0)).is_err());
}

#[test]
fn type_codes_that_lead_nowhere_are_refused_in_their_place() {
    let code = message("shape", &TypeCode::TYPE_CODE);
    for offset in [i32::MIN, -5_000, -8, -4, 0, 4, i32::MAX] {
        let frames = [0, 2, 1, 3, 2, u32::MAX, offset.cast_unsigned()];
        refused(&code, words(&frames), DecodeErrorKind::InvalidTypeCode, "payload.frames[1].shape");
        refused(
            &message("shape", &TypeCode::ANY),
            words(&[0, 2, 1, 3, 5, 2, u32::MAX, offset.cast_unsigned()]),
            DecodeErrorKind::InvalidTypeCode,
            "payload.frames[1].shape",
        );
    }
    refused(&code, words(&[0, 2, 1, 3, 2, 99]), DecodeErrorKind::InvalidTypeCode, "payload.frames[1].shape");
    // A sequence of itself.
    let endless = [0, 1, 1, 19, 16, 0, u32::MAX, (-12_i32).cast_unsigned(), 0];
    refused(&code, words(&endless), DecodeErrorKind::InvalidTypeCode, "payload.frames[0].shape");
}

/// `struct { T a; T b; }`, where `T` is such a struct in turn, for `levels` levels.
fn doubling(first: &TypeCode, levels: usize) -> TypeCode {
    let mut types = TypeSet::new();
    let mut part = types.add(first);
    for _ in 0..levels {
        let whole = types.declare();
        types.define_struct(whole, "", "", &[("a", part), ("b", part)]).unwrap();
        part = whole;
    }
    types.type_code(part).unwrap()
}

fn empty() -> TypeCode {
    TypeCode::create_struct("IDL:Empty:1.0", "Empty", &[]).unwrap()
}

fn arrays(of: &TypeCode, lengths: &[u32]) -> TypeCode {
    lengths.iter().fold(of.clone(), |of, length| TypeCode::array(&of, *length))
}

#[test]
fn types_of_much_out_of_little_make_small_programs() {
    let most = 1 << 20;
    let large = [
        arrays(&TypeCode::OCTET, &[u32::MAX, u32::MAX]),
        arrays(&TypeCode::DOUBLE, &[1 << 16, 1 << 16, 1 << 16]),
        arrays(&Odd::type_code(), &[1 << 20, 1 << 20]),
        arrays(&TypeCode::STRING, &[u32::MAX]),
        doubling(&TypeCode::LONG, 28),
        doubling(&arrays(&TypeCode::LONG, &[u32::MAX]), 28),
        doubling(&TypeCode::STRING, 28),
    ];
    for code in large {
        let mut program = None;
        let taken = measure(|| program = Some(Program::of(&code)));
        assert!(taken.bytes_total < most, "{} octets", taken.bytes_total);
        let program = program.unwrap();
        let octets = Bytes::from(vec![0; 4_096]);
        let fresh = || decoder(&octets, ByteOrder::Big, Version::V1_2, 0);
        let taken = measure(|| {
            let errors = [
                program.decode(&mut fresh()).map(drop).unwrap_err(),
                program.skip(&mut fresh()).map(drop).unwrap_err(),
                program.validate(&mut fresh()).map(drop).unwrap_err(),
                program.copy(&mut fresh(), &mut encoder(FOREIGN, Version::V1_2, 0)).map(drop).unwrap_err(),
            ];
            assert!(errors.iter().all(|error| matches!(error.kind(), DynErrorKind::Decode(_))));
        });
        assert!(taken.bytes_max < 20 << 20, "{} octets", taken.bytes_max);
    }
    // Such a type has no default value.
    for code in
        [arrays(&TypeCode::OCTET, &[u32::MAX, u32::MAX]), doubling(&arrays(&TypeCode::LONG, &[u32::MAX]), 28)]
    {
        let taken = measure(|| {
            assert!(matches!(Dynamic::default_of(&code).unwrap_err().kind(), DynErrorKind::Limit(_)))
        });
        assert!(taken.bytes_max < 1 << 20, "{} octets", taken.bytes_max);
    }
}

#[test]
fn values_that_take_no_octets_are_paid_for() {
    for code in [
        TypeCode::sequence(&empty(), 0),
        TypeCode::sequence(&arrays(&empty(), &[u32::MAX]), 0),
        TypeCode::sequence(&doubling(&empty(), 24), 0),
    ] {
        let octets = Bytes::from(words(&[4, 0]));
        let program = Program::of(&code);
        let fresh = |count: u32| {
            let octets: &'static Bytes = Box::leak(Box::new(Bytes::from(words(&[count, 0]))));
            decoder(octets, ByteOrder::Big, Version::V1_2, 0)
        };
        for count in [8, u32::MAX] {
            for error in [
                program.skip(&mut fresh(count)).map(drop).err(),
                program.validate(&mut fresh(count)).map(drop).err(),
                program.decode(&mut fresh(count)).map(drop).err(),
            ]
            .into_iter()
            .flatten()
            {
                let expected = [DecodeErrorKind::AllocLimit, DecodeErrorKind::LengthBeyondData];
                assert!(expected.contains(&kind(&error)), "{error}");
            }
        }
        // In an any such values are rejected.
        let any = Any::decode_value(&code, &mut decoder(&octets, ByteOrder::Big, Version::V1_2, 0));
        assert!(matches!(any.unwrap_err().kind, DecodeErrorKind::NotInAny | DecodeErrorKind::AllocLimit));
    }
    // More elements than any data could have.
    for code in [arrays(&empty(), &[u32::MAX, u32::MAX]), doubling(&arrays(&empty(), &[u32::MAX]), 20)] {
        refused(&code, words(&[0, 0]), DecodeErrorKind::AllocLimit, None);
    }
}

//! Anys: the encoding of other ORBs, and values of every kind in every order, phase, version and code set.

use std::sync::Arc;

use crate::typecode_types::*;
use bytes::Bytes;
use giop_codec::any::{Any, AnyError, MAX_NESTED_ANYS};
use giop_codec::cdr::{
    Bounded, CdrDecode, CdrEncode, Char, CharSet, CodeSets, Decoder, Encoder, Fixed, LongDouble, Seq, WChar,
    WCharSet, WString,
};
use giop_codec::dynamic::DynErrorKind;
use giop_codec::exception::{SystemException, SystemExceptionKind};
use giop_codec::ior::Ior;
use giop_codec::typecode::{TcKind, TypeCode, TypeDesc, Typed};
use giop_codec::value::DecodeContext;
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Version};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn encode(any: &Any, order: ByteOrder) -> Vec<u8> {
    let mut e = Encoder::new(order, Version::V1_2);
    any.encode(&mut e).unwrap();
    e.into_bytes().to_vec()
}

fn decode(octets: &[u8], order: ByteOrder) -> Result<Any, DecodeErrorKind> {
    let mut d = Decoder::new(octets, order, Version::V1_2);
    let any = validated(Any::decode(&mut d).map_err(|e| e.kind)?)?;
    assert_eq!(d.remaining(), 0);
    Ok(any)
}

/// Returns the any if its value is valid.
fn validated(any: Any) -> Result<Any, DecodeErrorKind> {
    match any.validate() {
        Ok(()) => Ok(any),
        Err(error) => match error.kind() {
            DynErrorKind::Decode(error) => Err(error.kind),
            kind => panic!("{kind}"),
        },
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Bin {
    s: i16,
    c: Char,
    l: i32,
    o: u8,
    d: f64,
}

macro_rules! members {
    ($type:ident $desc:expr, $($member:ident)*) => {
        impl Typed for $type {
            const DESC: &'static TypeDesc = $desc;
        }

        impl CdrEncode for $type {
            fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
                $(self.$member.encode(e)?;)*
                Ok(())
            }
        }

        impl CdrDecode for $type {
            const MIN_SIZE: usize = 1;

            fn decode(d: &mut Decoder<'_>) -> Result<$type, DecodeError> {
                Ok($type { $($member: CdrDecode::decode(d)?,)* })
            }
        }
    };
}

#[derive(Debug, Clone, PartialEq)]
struct Bad {
    why: String,
    code: i32,
}

members!(Bin BIN_STRUCT, s c l o d);
members!(Bad BAD, why code);

fn bin() -> Bin {
    Bin { s: 1, c: Char(b'c'), l: 2, o: 3, d: 1.5 }
}

#[test]
fn octets_of_omniorb() {
    // Type code encapsulations are in the byte order of the captured machine, little-endian.
    let examples = [
        (Any::default(), "00000000"),
        (Any::new(5_i32).unwrap(), "0000000300000005"),
        (Any::new("hi").unwrap(), "000000120000000000000003686900"),
        (Any::new(Any::new(7_i16).unwrap()).unwrap(), "0000000b000000020007"),
    ];
    for (any, octets) in examples {
        assert_eq!(decode(&hex(octets), ByteOrder::Big).as_ref(), Ok(&any));
        assert_eq!(encode(&any, ByteOrder::Big), hex(octets));
    }
}

#[test]
fn a_struct_of_omniorb_in_another_phase() {
    let octets = hex(
        "0000000f0000006c010000001400000049444c3a542f42696e5374727563743a312e30000a00000042696e53747275637400000005000000020000007300000002000000020000006300000009000000020000006c00000003000000020000006f0000000a0000000200000064000000070000000001630000000002030000003ff8000000000000",
    );
    let any = decode(&octets, ByteOrder::Big).unwrap();
    assert_eq!(any, Any::new(bin()).unwrap());
    assert_eq!(any.get::<Bin>().unwrap(), bin());
    assert_eq!(any.type_code(), &Bin::type_code());
}

/// A value of every kind that an any can contain.
fn all() -> Vec<Any> {
    fn new<T: Typed + CdrEncode>(value: T) -> Any {
        Any::new(value).unwrap()
    }
    let of = TypeCode::of_desc;
    let (long, node) = (7_i32, vec![1_u8, 2, 3]);
    let fixed: Fixed<5, 2> = "-1.5".parse().unwrap();
    let reference = Ior { type_id: "IDL:T/I:1.0".into(), profiles: Vec::new() };
    let union_b = raw(&of(U), |e| {
        e.put_i32(3);
        "x€".encode(e)
    });
    let mut all = vec![
        Any::default(),
        new(()),
        new(-2_i16),
        new(0xFFFF_u16),
        new(long),
        new(u32::MAX),
        new(i64::MIN),
        new(u64::MAX),
        new(1.5_f32),
        new(f64::NAN),
        new(LongDouble::from(1.5)),
        new(true),
        new(Char(0xE9)),
        new(WChar(0x20AC)),
        new(9_u8),
        new(fixed),
        new("caf\u{e9}"),
        new(WString::from("zwölf €")),
        new(Bounded::<String, 4>::new("abcd".into()).unwrap()),
        new(Bytes::from(node)),
        new(Seq::from([1.5_f64, 2.5])),
        new(vec![true, false]),
        new(vec![LongDouble::from(2.5)]),
        new([[1_i16, 2], [3, 4]]),
        new(vec!["a".to_owned(), "bcd".to_owned()]),
        new(bin()),
        new(vec![bin(), bin()]),
        new(Bad { why: "nö".into(), code: 7 }),
        new(TypeCode::of_desc(NODE)),
        new(vec![new(5_i32), new("five"), new(vec![new(TypeCode::of_desc(U))])]),
        Any::with_type(&of(ARR), [[1_i32, 2, 3], [4, 5, 6]]).unwrap(),
        Any::with_type(&of(F52), fixed).unwrap(),
        union_b,
        raw(&of(U), |e| {
            e.put_i32(9);
            1.5_f64.encode(e)
        }),
        raw(&of(UB), |e| false.encode(e)),
        raw(&of(UC), |e| (Char(b'a'), 5_i32).0.encode(e).and_then(|()| 5_i32.encode(e))),
        raw(&of(WIDE), |e| WChar(0x20AC).encode(e).and_then(|()| 5_i32.encode(e))),
        raw(&of(BITS), |e| u64::MAX.encode(e).and_then(|()| 5_i32.encode(e))),
        raw(&of(COLOURED), |e| 1_u32.encode(e).and_then(|()| new("green").encode(e))),
        raw(&of(COLOR), |e| 2_u32.encode(e)),
        raw(&of(I), |e| reference.encode(e)),
        raw(&TypeCode::OBJECT, |e| Ior::nil().encode(e)),
        raw(&of(ABS), |e| true.encode(e).and_then(|()| reference.encode(e))),
        raw(&of(LNODE), |e| 0_u32.encode(e)),
        raw(&of(BOX_STR), |e| 0_u32.encode(e)),
        raw(&TypeCode::PRINCIPAL, |e| Bytes::from_static(b"me").encode(e)),
        // A node with two children, of which one has a child.
        raw(&of(NODE), |e| [1_u32, 2, 2, 0, 3, 1, 4, 0].iter().try_for_each(|word| word.encode(e))),
    ];
    all.push(new(all.clone()));
    all
}

/// An any as received from a peer, with the output of `f` as its value.
fn raw(code: &TypeCode, f: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>) -> Any {
    try_raw(code, f).unwrap()
}

fn try_raw(
    code: &TypeCode,
    f: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>,
) -> Result<Any, DecodeErrorKind> {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.set_code_sets(utf());
    code.encode(&mut e).unwrap();
    f(&mut e).unwrap();
    let octets = e.into_bytes();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    d.set_code_sets(utf());
    let any = validated(Any::decode(&mut d).map_err(|e| e.kind)?)?;
    assert_eq!(d.remaining(), 0);
    Ok(any)
}

fn utf() -> CodeSets {
    CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) }
}

#[test]
fn every_value_survives_every_order_phase_version_and_code_set() {
    for (index, any) in all().iter().enumerate() {
        for version in [Version::V1_1, Version::V1_2] {
            for order in ORDERS {
                for sets in [CodeSets::default_for(version), utf()] {
                    for offset in 0..8 {
                        let mut e = Encoder::new_at(order, version, offset);
                        e.set_code_sets(sets);
                        e.set_chunk_threshold(4);
                        match any.encode(&mut e) {
                            Ok(()) => {}
                            // The euro sign is not in ISO 8859-1.
                            Err(error) => {
                                assert_eq!(error.kind, EncodeErrorKind::CharNotInCodeSet);
                                assert_eq!(sets.char, CharSet::Latin1);
                                continue;
                            }
                        }
                        let octets = Bytes::from([vec![0xEE; offset], e.into_bytes().to_vec()].concat());
                        let mut d = Decoder::from_bytes(&octets, order, version).at(offset);
                        d.set_code_sets(sets);
                        assert_eq!(&Any::decode(&mut d).unwrap(), any, "{index}: {any:?}");
                        assert_eq!(d.remaining(), 0, "{index}: {any:?}");
                    }
                }
            }
        }
    }
}

// clause: exc.user.any
#[test]
fn what_went_in_comes_out_by_its_type() {
    let any = Any::with_type(&TypeCode::of_desc(ARR), [[1_i32, 2, 3], [4, 5, 6]]).unwrap();
    assert_eq!(any.type_code().name(), Ok("Arr"));
    assert!(any.is::<[[i32; 3]; 2]>() && !any.is::<[[i32; 2]; 3]>());
    assert_eq!(any.get::<[[i32; 3]; 2]>().unwrap()[1], [4, 5, 6]);
    let error = any.get::<Vec<i32>>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the type of the value is `typedef long[2][3] T::Arr`, not `sequence<long>`"
    );
    assert_eq!(SystemException::from(error).kind, SystemExceptionKind::BadOperation);
    assert!(matches!(
        Any::with_type(&TypeCode::of_desc(ARR), 5_i32),
        Err(AnyError::TypeMismatch { wanted, found }) if found == TypeCode::LONG && wanted.kind() == TcKind::Alias
    ));
    // An exception is encoded with its id before its members.
    let bad = Bad { why: "no".into(), code: 7 };
    let any = Any::new(&bad).unwrap();
    assert_eq!(any.get::<Bad>().unwrap(), bad);
    assert_eq!(
        hex("0000000e49444c3a542f4261643a312e30000000000000036e6f000000000007"),
        encode(&any, ByteOrder::Big)[76..]
    );
    // omniORB omits the id.
    let without = raw(&Bad::type_code(), |e| bad.encode(e));
    assert_eq!(without, any);
    assert_eq!(Any::new("a\0b").unwrap_err().kind, EncodeErrorKind::EmbeddedNul);
    assert!(Any::default().get::<i32>().is_err());
    assert_eq!(format!("{:?}", Any::new(5_i32).unwrap()), "Any(long, 4 bytes)");
}

/// The content of a context.
#[derive(Clone, Debug, PartialEq)]
struct Orb(Arc<str>);

impl DecodeContext for Orb {}

/// A reference that keeps the context in which it was decoded.
#[derive(Debug, PartialEq)]
struct Reference(Ior, Orb);

impl Typed for Reference {
    const DESC: &'static TypeDesc = I;
}

impl CdrEncode for Reference {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.keep_context(&self.1);
        self.0.encode(e)
    }
}

impl CdrDecode for Reference {
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Reference, DecodeError> {
        let ior = Ior::decode(d)?;
        let context = d.context::<Orb>().ok_or_else(|| d.error(DecodeErrorKind::NoOrb))?;
        Ok(Reference(ior, context.clone()))
    }
}

#[test]
fn references_find_the_context_of_their_message_or_their_maker() {
    let context = Orb("orb".into());
    let reference =
        || Reference(Ior { type_id: "IDL:T/I:1.0".into(), profiles: Vec::new() }, context.clone());
    let made = Any::new(vec![Any::new(reference()).unwrap()]).unwrap();
    assert_eq!(made.get::<Vec<Any>>().unwrap()[0].get::<Reference>().unwrap(), reference());
    let octets = encode(&made, ByteOrder::Big);
    let of_message = Orb("other".into());
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&of_message);
    let any = Any::decode(&mut d).unwrap();
    assert_eq!(Arc::strong_count(&of_message.0), 2);
    let inner = any.get::<Vec<Any>>().unwrap().remove(0);
    assert_eq!(inner.get::<Reference>().unwrap().1, of_message);
    let without = Any::decode(&mut Decoder::new(&octets, ByteOrder::Big, Version::V1_2)).unwrap();
    let error = without.get::<Vec<Any>>().unwrap().remove(0).get::<Reference>().unwrap_err();
    assert!(matches!(error, AnyError::Decode(DecodeError { kind: DecodeErrorKind::NoOrb, .. })));
    // An any without a reference does not keep the context.
    let octets = encode(&Any::new("text").unwrap(), ByteOrder::Big);
    drop((any, inner));
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&of_message);
    let _any = Any::decode(&mut d).unwrap();
    assert_eq!(Arc::strong_count(&of_message.0), 1);
}

#[test]
fn labels_are_values_of_the_discriminator() {
    let label = |desc, index| TypeCode::of_desc(desc).member_label(index).unwrap();
    assert_eq!(label(U, 1), Any::new(2_i32).unwrap());
    assert_eq!(label(U, 3), Any::new(0_u8).unwrap());
    assert_eq!(label(UC, 0), Any::new(Char(b'a')).unwrap());
    assert_eq!(label(BITS, 0), Any::new(u64::MAX).unwrap());
    assert_eq!(label(WIDE, 0), Any::new(WChar(0x20AC)).unwrap());
    assert_eq!(label(COLOURED, 0).type_code(), &TypeCode::of_desc(COLOR));
    assert!(TypeCode::LONG.member_label(0).is_err() && TypeCode::of_desc(U).member_label(4).is_err());
}

#[test]
fn values_that_break_their_type_are_refused() {
    let of = TypeCode::of_desc;
    let words =
        |words: &'static [u32]| move |e: &mut Encoder| words.iter().try_for_each(|word| word.encode(e));
    for (code, octets, kind) in [
        (of(COLOR), words(&[3]), DecodeErrorKind::InvalidEnum),
        (of(COLOURED), words(&[3]), DecodeErrorKind::InvalidEnum),
        (TypeCode::string(1), words(&[3, 0x6162_0000]), DecodeErrorKind::BoundExceeded),
        (TypeCode::wstring(1), words(&[4, 0x0061_0062]), DecodeErrorKind::BoundExceeded),
        (TypeCode::sequence(&TypeCode::LONG, 1), words(&[2, 1, 1]), DecodeErrorKind::BoundExceeded),
        (TypeCode::sequence(&TypeCode::DOUBLE, 0), words(&[2, 1, 1]), DecodeErrorKind::LengthBeyondData),
        (TypeCode::array(&TypeCode::DOUBLE, u32::MAX), words(&[2, 1, 1]), DecodeErrorKind::EndOfData),
        (TypeCode::sequence(&TypeCode::NULL, 0), words(&[1, 0, 0]), DecodeErrorKind::NotInAny),
        (of(LNODE), words(&[0x7FFF_FF04]), DecodeErrorKind::Malformed),
        (of(LNODE), words(&[u32::MAX, -12_i32 as u32]), DecodeErrorKind::Malformed),
        (of(BOX_STR), words(&[0x7FFF_FF00, 9]), DecodeErrorKind::LengthBeyondData),
        (of(LOCAL), words(&[0]), DecodeErrorKind::NotInAny),
        (of(NATIVE), words(&[0]), DecodeErrorKind::NotInAny),
        (of(F52).unaliased(), words(&[0x123A_5C00]), DecodeErrorKind::InvalidFixed),
        (of(F52).unaliased(), words(&[0x1234_5678]), DecodeErrorKind::InvalidFixed),
        (
            TypeCode::of_desc(<Fixed<4, 2> as Typed>::DESC),
            words(&[0x1123_4C00]),
            DecodeErrorKind::InvalidFixed,
        ),
    ] {
        assert_eq!(try_raw(&code, octets).unwrap_err(), kind, "{code}");
    }
    // JacORB sends only the significant digits; packed decimals of others have no sign.
    let short = raw(&of(F52), |e| {
        e.put_raw(&[0x5F]);
        Ok(())
    });
    assert_eq!(short.get::<Fixed<5, 2>>().unwrap().to_string(), "0.05");
    // A peer announces one type and sends another one with the same id.
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u32(TcKind::Struct.number());
    e.encapsulate(|e| {
        e.put_unconverted_str("IDL:T/BinStruct:1.0")?;
        e.put_unconverted_str("")?;
        e.put_len(0)
    })
    .unwrap();
    let any = decode(&e.into_bytes(), ByteOrder::Big).unwrap();
    assert!(matches!(any.get::<Bin>(), Err(AnyError::Decode(_))));
}

#[test]
fn anys_in_each_other_and_values_in_values_are_limited() {
    let nested = |n: usize| {
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        (0..n).for_each(|_| e.put_u32(TcKind::Any.number()));
        TypeCode::OCTET.encode(&mut e).unwrap();
        e.put_u8(1);
        decode(&e.into_bytes(), ByteOrder::Big)
    };
    assert!(nested(MAX_NESTED_ANYS).is_ok());
    assert_eq!(nested(MAX_NESTED_ANYS + 1), Err(DecodeErrorKind::DepthLimit));
    // Values of the local program are rejected when they are encoded.
    let any = Any::new(nested(MAX_NESTED_ANYS).unwrap()).unwrap();
    let error = any.encode(&mut Encoder::new(ByteOrder::Big, Version::V1_2)).unwrap_err();
    assert_eq!(error.kind, EncodeErrorKind::Unrepresentable);
    // A chain of nodes with one child each.
    let chain = |n: u32| {
        try_raw(&TypeCode::of_desc(NODE), |e| {
            (0..n).try_for_each(|v| v.encode(e).and_then(|()| 1_u32.encode(e)))?;
            [0_u32, 0].iter().try_for_each(|word| word.encode(e))
        })
    };
    assert!(chain(20).is_ok());
    for n in [64, 100_000] {
        assert_eq!(chain(n).unwrap_err(), DecodeErrorKind::DepthLimit);
    }
}

#[test]
fn values_without_octets_end() {
    // A sequence of four billion empty structs, and nested pairs of structs.
    let empty = |e: &mut Encoder| {
        e.put_u32(TcKind::Struct.number());
        e.encapsulate(|e| {
            e.put_unconverted_str("")?;
            e.put_unconverted_str("")?;
            e.put_len(0)
        })
    };
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u32(TcKind::Array.number());
    e.encapsulate(|e| {
        empty(e)?;
        e.put_u32(u32::MAX);
        Ok(())
    })
    .unwrap();
    assert_eq!(decode(&e.into_bytes(), ByteOrder::Big), Err(DecodeErrorKind::AllocLimit));
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_u32(TcKind::Struct.number());
    e.encapsulate(|e| {
        e.put_unconverted_str("")?;
        e.put_unconverted_str("")?;
        e.put_len(40)?;
        let mut before = 0;
        for level in 0..40 {
            e.put_unconverted_str("")?;
            e.align(4);
            let at = e.len();
            if level == 0 {
                empty(e)?;
            } else {
                e.put_u32(TcKind::Struct.number());
                e.encapsulate(|e| {
                    e.put_unconverted_str("")?;
                    e.put_unconverted_str("")?;
                    e.put_len(2)?;
                    for _ in 0..2 {
                        e.put_unconverted_str("")?;
                        e.put_u32(u32::MAX);
                        e.put_i32(-((e.len() - before) as i32));
                    }
                    Ok(())
                })?;
            }
            before = at;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(decode(&e.into_bytes(), ByteOrder::Big), Err(DecodeErrorKind::AllocLimit));
}

#[test]
fn cut_or_changed_anywhere_it_is_an_error_or_an_any() {
    for any in all() {
        for order in ORDERS {
            let octets = {
                let mut e = Encoder::new(order, Version::V1_2);
                e.set_code_sets(utf());
                any.encode(&mut e).unwrap();
                e.into_bytes()
            };
            let new = |octets: &[u8]| {
                let mut d = Decoder::new(octets, order, Version::V1_2);
                d.set_code_sets(utf());
                Any::decode(&mut d)
            };
            for end in 0..octets.len() {
                assert!(new(&octets[..end]).is_err(), "{any:?} {end}");
            }
            for at in 0..octets.len().min(600) {
                let mut changed = octets.to_vec();
                changed[at] ^= 1 << (at % 8);
                if let Ok(any) = new(&changed)
                    && validated(any.clone()).is_ok()
                {
                    let mut e = Encoder::new(order, Version::V1_2);
                    e.set_code_sets(utf());
                    any.encode(&mut e).unwrap();
                    assert_eq!(new(&e.into_bytes()).unwrap(), any);
                }
            }
        }
    }
}

#[test]
fn memory_for_an_any_is_charged() {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    Any::new(vec![0_u8; 100_000]).unwrap().encode(&mut e).unwrap();
    let octets = e.into_bytes();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Big, Version::V1_2);
    let mut limits = d.limits();
    limits.alloc = 90_000;
    d.set_limits(limits);
    // The limit applies to copies, not to views.
    assert!(Any::decode(&mut d.clone()).is_ok());
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    d.set_limits(limits);
    assert_eq!(Any::decode(&mut d).unwrap_err().kind, DecodeErrorKind::AllocLimit);
}

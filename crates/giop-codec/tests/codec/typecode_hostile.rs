//! Hostile encodings of type codes: each is rejected or yields a usable type code, in bounded time.

use crate::typecode_types::*;
use giop_codec::cdr::{CdrDecode, CdrEncode, DecodeLimits, Decoder, Encoder};
use giop_codec::typecode::{MAX_LEVELS, MAX_NODES, TcKind, TypeCode};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, EncodeErrorKind, Version};

const INDIRECTION: u32 = 0xFFFF_FFFF;

fn new() -> Encoder {
    Encoder::new(ByteOrder::Little, Version::V1_2)
}

fn decode(e: Encoder) -> Result<TypeCode, DecodeErrorKind> {
    let octets = e.into_bytes();
    TypeCode::decode(&mut Decoder::new(&octets, ByteOrder::Little, Version::V1_2)).map_err(|e| e.kind)
}

/// Writes a type of this kind with an encapsulation of the output of `f`.
fn complex(e: &mut Encoder, kind: TcKind, f: impl FnOnce(&mut Encoder)) {
    e.put_u32(kind.number());
    e.encapsulate(|e| {
        f(e);
        Ok(())
    })
    .unwrap();
}

fn named(e: &mut Encoder, kind: TcKind, f: impl FnOnce(&mut Encoder)) {
    complex(e, kind, |e| {
        e.put_unconverted_str("IDL:X:1.0").unwrap();
        e.put_unconverted_str("X").unwrap();
        f(e);
    });
}

/// Writes an indirection to the type whose kind is at `place`, as returned by [`place`].
fn refer(e: &mut Encoder, place: usize) {
    e.put_u32(INDIRECTION);
    e.put_i32(-((e.len() - place) as i32));
}

fn place(e: &mut Encoder) -> usize {
    e.align(4);
    e.len()
}

fn invalid(e: Encoder) {
    assert_eq!(decode(e), Err(DecodeErrorKind::InvalidTypeCode));
}

#[test]
fn cut_anywhere_it_is_an_error() {
    for desc in [U, NODE, LNODE, DERIVED, UC, WIDE, TWICE, ODD, BAD, COLOR, ARR] {
        let mut e = new();
        TypeCode::of_desc(desc).encode(&mut e).unwrap();
        let octets = e.into_bytes();
        for end in 0..octets.len() {
            let mut d = Decoder::new(&octets[..end], ByteOrder::Little, Version::V1_2);
            assert!(TypeCode::decode(&mut d).is_err(), "{end}");
        }
        for at in 0..octets.len() {
            for bit in 0..8 {
                let mut changed = octets.to_vec();
                changed[at] ^= 1 << bit;
                for order in [ByteOrder::Little, ByteOrder::Big] {
                    if let Ok(code) = TypeCode::decode(&mut Decoder::new(&changed, order, Version::V1_2)) {
                        use_it(&code);
                    }
                }
            }
        }
    }
}

/// Uses all functions of a type code; none of them may run without end.
fn use_it(code: &TypeCode) {
    let _ = code.to_string();
    assert!(code.equal(code) && code.equivalent(code));
    // A copy in another arena, so that types are not equal by identity.
    let copy = TypeCode::sequence(code, 0).content_type().unwrap();
    let _ = (copy.equal(code), copy.equivalent(code), code.compact().equivalent(code), code.unaliased());
    let mut e = new();
    if code.encode(&mut e).is_ok() {
        let octets = e.into_bytes();
        let again = TypeCode::decode(&mut Decoder::new(&octets, ByteOrder::Little, Version::V1_2)).unwrap();
        let mut e = new();
        again.encode(&mut e).unwrap();
        assert_eq!(e.into_bytes(), octets);
    }
}

#[test]
fn unknown_kinds_are_refused() {
    for kind in [37, 38, 1000, 0x7FFF_FFFF, 0xFFFF_FFFE] {
        let mut e = new();
        e.put_u32(kind);
        invalid(e);
    }
}

#[test]
fn an_indirection_goes_back_to_a_kind_or_nowhere() {
    // As the first item, without a preceding type: to itself, to its offset, forwards, out of the message.
    for offset in [-8, -4, 0, 4, 8, -12, i32::MIN, i32::MAX] {
        let mut e = new();
        e.put_u32(INDIRECTION);
        e.put_i32(offset);
        invalid(e);
        let mut e = new();
        named(&mut e, TcKind::Struct, |e| {
            e.put_u32(1);
            e.put_unconverted_str("m").unwrap();
            e.align(4);
            e.put_u32(INDIRECTION);
            e.put_i32(offset);
        });
        invalid(e);
    }
    // To positions within a type: every offset is invalid except that of the enclosing struct.
    let struct_with = |offset: i32| {
        let mut e = new();
        named(&mut e, TcKind::Struct, |e| {
            e.put_u32(1);
            e.put_unconverted_str("m").unwrap();
            complex(e, TcKind::Sequence, |e| {
                e.put_u32(INDIRECTION);
                e.put_i32(offset);
                e.put_u32(0);
            });
        });
        decode(e)
    };
    let good: Vec<i32> = (-100..100).filter(|offset| struct_with(*offset).is_ok()).collect();
    assert_eq!(good.len(), 1);
    // To a preceding type code in the same message.
    let mut e = new();
    TypeCode::string(3).encode(&mut e).unwrap();
    e.put_u32(INDIRECTION);
    e.put_i32(-12);
    let octets = e.into_bytes();
    let mut d = Decoder::new(&octets, ByteOrder::Little, Version::V1_2);
    TypeCode::decode(&mut d).unwrap();
    assert_eq!(TypeCode::decode(&mut d), Err(DecodeError::new(DecodeErrorKind::InvalidTypeCode, 12)));
}

#[test]
fn earlier_types_may_be_referred_to() {
    let mut e = new();
    named(&mut e, TcKind::Struct, |e| {
        e.put_u32(3);
        e.put_unconverted_str("a").unwrap();
        let at = place(e);
        named(e, TcKind::Alias, |e| e.put_u32(TcKind::Long.number()));
        e.put_unconverted_str("b").unwrap();
        refer_aligned(e, at);
        e.put_unconverted_str("c").unwrap();
        complex(e, TcKind::Sequence, |e| {
            refer(e, at);
            e.put_u32(0);
        });
    });
    let code = decode(e).unwrap();
    assert_eq!(code.member_type(0), code.member_type(1));
    assert_eq!(code.member_type(2).unwrap().content_type(), code.member_type(0));
}

fn refer_aligned(e: &mut Encoder, place: usize) {
    e.align(4);
    refer(e, place);
}

#[test]
fn a_type_that_is_nothing_but_itself_is_refused() {
    for kind in [TcKind::Sequence, TcKind::Array] {
        let mut e = new();
        let at = place(&mut e);
        complex(&mut e, kind, |e| {
            refer(e, at);
            e.put_u32(3);
        });
        invalid(e);
    }
    let mut e = new();
    let at = place(&mut e);
    named(&mut e, TcKind::Alias, |e| {
        named(e, TcKind::Alias, |e| refer_aligned(e, at));
    });
    invalid(e);
    // In a struct, the alias may refer only to the enclosing struct, not to itself.
    let mut e = new();
    named(&mut e, TcKind::Struct, |e| {
        e.put_u32(1);
        e.put_unconverted_str("m").unwrap();
        let at = place(e);
        named(e, TcKind::Alias, |e| refer_aligned(e, at));
    });
    invalid(e);
    // A discriminator and a base that refer to the enclosing type.
    let mut e = new();
    let at = place(&mut e);
    named(&mut e, TcKind::Union, |e| {
        refer_aligned(e, at);
        e.put_i32(-1);
        e.put_u32(0);
    });
    invalid(e);
    let mut e = new();
    let at = place(&mut e);
    named(&mut e, TcKind::Value, |e| {
        e.put_i16(0);
        refer_aligned(e, at);
        e.put_u32(0);
    });
    invalid(e);
    // The same through an alias.
    let mut e = new();
    let at = place(&mut e);
    named(&mut e, TcKind::Union, |e| {
        named(e, TcKind::Alias, |e| refer_aligned(e, at));
        e.put_i32(-1);
        e.put_u32(0);
    });
    invalid(e);
}

#[test]
fn parameters_that_can_not_be_are_refused() {
    let union = |discriminator: TcKind, default: i32| {
        let mut e = new();
        named(&mut e, TcKind::Union, |e| {
            e.put_u32(discriminator.number());
            e.put_i32(default);
            e.put_u32(0);
        });
        decode(e)
    };
    assert!(union(TcKind::Long, -1).is_ok());
    for (discriminator, default) in
        [(TcKind::Double, -1), (TcKind::Any, -1), (TcKind::Null, -1), (TcKind::Long, 0), (TcKind::Long, -2)]
    {
        assert_eq!(union(discriminator, default), Err(DecodeErrorKind::InvalidTypeCode));
    }
    for (digits, scale) in [(0, 0), (32, 0), (0xFFFF, 0), (5, 32), (5, i16::MAX), (5, -32), (5, i16::MIN)] {
        let mut e = new();
        e.put_u32(TcKind::Fixed.number());
        e.put_u16(digits);
        e.put_i16(scale);
        invalid(e);
        assert!(TypeCode::create_fixed(digits, scale).is_err());
    }
    for (modifier, base) in [(4, TcKind::Null), (-1, TcKind::Null), (0, TcKind::Long), (0, TcKind::Void)] {
        let mut e = new();
        named(&mut e, TcKind::Value, |e| {
            e.put_i16(modifier);
            e.put_u32(base.number());
            e.put_u32(0);
        });
        invalid(e);
    }
    let mut e = new();
    complex(&mut e, TcKind::ObjRef, |e| {
        e.put_unconverted_str(&"x".repeat(1025)).unwrap();
        e.put_unconverted_str("").unwrap();
    });
    assert_eq!(decode(e), Err(DecodeErrorKind::LimitExceeded));
    // More members than bytes.
    for kind in [TcKind::Struct, TcKind::Enum] {
        let mut e = new();
        named(&mut e, kind, |e| e.put_u32(0x1000_0000));
        assert_eq!(decode(e), Err(DecodeErrorKind::LengthBeyondData));
    }
}

fn nested(e: &mut Encoder, levels: usize) {
    match levels.checked_sub(1) {
        None => e.put_u32(TcKind::Octet.number()),
        Some(levels) => complex(e, TcKind::Sequence, |e| {
            nested(e, levels);
            e.put_u32(0);
        }),
    }
}

#[test]
fn levels_and_nodes_are_limited() {
    let mut e = new();
    nested(&mut e, MAX_LEVELS);
    use_it(&decode(e).unwrap());
    let mut e = new();
    nested(&mut e, MAX_LEVELS + 1);
    assert_eq!(decode(e), Err(DecodeErrorKind::DepthLimit));
    // A type code of the local program with too many levels is rejected when it is encoded.
    let mut code = TypeCode::OCTET;
    for level in 0..=MAX_LEVELS {
        let result = code.encode(&mut new());
        assert!(result.is_ok(), "{level}");
        code = TypeCode::sequence(&code, 0);
    }
    assert_eq!(code.encode(&mut new()).unwrap_err().kind, EncodeErrorKind::Unrepresentable);
    let members = |n: usize| {
        let mut e = new();
        named(&mut e, TcKind::Struct, |e| {
            e.put_u32(n as u32);
            for bound in 0..n {
                e.put_unconverted_str("").unwrap();
                TypeCode::string(bound as u32 + 1).encode(e).unwrap();
            }
        });
        decode(e)
    };
    use_it(&members(MAX_NODES - 1).unwrap());
    assert_eq!(members(MAX_NODES), Err(DecodeErrorKind::LimitExceeded));
}

/// A struct whose members are each a struct with two members of the previous type: written out, it has 2^n of
/// them.
fn doubling(n: usize) -> TypeCode {
    let mut e = new();
    named(&mut e, TcKind::Struct, |e| {
        e.put_u32(n as u32);
        let mut before = None;
        for _ in 0..n {
            e.put_unconverted_str("m").unwrap();
            let at = place(e);
            complex(e, TcKind::Struct, |e| {
                e.put_unconverted_str("").unwrap();
                e.put_unconverted_str("").unwrap();
                e.put_u32(2);
                for _ in 0..2 {
                    e.put_unconverted_str("m").unwrap();
                    match before {
                        Some(before) => refer_aligned(e, before),
                        None => e.put_u32(TcKind::Long.number()),
                    }
                }
            });
            before = Some(at);
        }
    });
    decode(e).unwrap()
}

#[test]
fn types_that_would_be_endless_if_spelled_out_are_not() {
    for n in [10, 60, 1000] {
        let code = doubling(n);
        use_it(&code);
        // From its last type, all other types are nested increasingly deep.
        let last = code.member_type(n - 1).unwrap();
        use_it(&last);
        let mut e = new();
        assert_eq!(last.encode(&mut e).is_ok(), n <= MAX_LEVELS);
    }
    assert!(doubling(60).equal(&doubling(60)));
    assert!(!doubling(60).equal(&doubling(61)));
}

#[test]
fn memory_for_a_type_code_is_granted_by_its_octets() {
    let mut e = new();
    named(&mut e, TcKind::Enum, |e| {
        e.put_u32(100_000);
        (0..100_000).for_each(|_| e.put_unconverted_str("").unwrap());
    });
    let octets = e.into_bytes();
    let mut d = Decoder::new(&octets, ByteOrder::Little, Version::V1_2);
    assert_eq!(TypeCode::decode(&mut d.clone()).unwrap().member_count(), Ok(100_000));
    let mut limits = d.limits();
    limits.alloc = 1_000_000;
    d.set_limits(limits);
    assert_eq!(TypeCode::decode(&mut d).map_err(|e| e.kind), Err(DecodeErrorKind::AllocLimit));
}

#[test]
fn what_a_type_code_did_not_use_the_next_may() {
    let mut e = new();
    (0..1000).for_each(|_| TypeCode::of_desc(COLOR).encode(&mut e).unwrap());
    let octets = e.into_bytes();
    let decoder = |alloc: usize| {
        let mut d = Decoder::new(&octets, ByteOrder::Little, Version::V1_2);
        d.set_limits(DecodeLimits { alloc, ..d.limits() });
        d
    };
    let mut d = decoder(octets.len() * 6);
    (0..1000).for_each(|_| assert_eq!(TypeCode::decode(&mut d).unwrap(), TypeCode::of_desc(COLOR)));
    // The limit applies to all together, not to each.
    let mut d = decoder(octets.len());
    assert!((0..1000).any(|_| TypeCode::decode(&mut d).is_err()));
}

//! Type codes: encodings of other ORBs in both directions, queries, and comparison.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::typecode_types::*;
use bytes::Bytes;
use giop_codec::cdr::{
    Bounded, CdrDecode, CdrEncode, Char, Decoder, Encoder, FixedSeq, LongDouble, Seq, WChar, WString,
};
use giop_codec::typecode::{
    TcKind, TypeCode, TypeCodeCache, TypeCodeError, TypeDesc, Typed, ValueModifier, Visibility,
};
use giop_codec::value::DecodeContext;
use giop_codec::{ByteOrder, Version};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn decode(octets: &[u8], order: ByteOrder) -> TypeCode {
    let mut d = Decoder::new(octets, order, Version::V1_2);
    let code = TypeCode::decode(&mut d).unwrap();
    assert_eq!(d.remaining(), 0);
    code
}

fn encode(code: &TypeCode, order: ByteOrder, offset: usize) -> Vec<u8> {
    let mut e = Encoder::new_at(order, Version::V1_2, offset);
    code.encode(&mut e).unwrap();
    e.into_bytes().to_vec()
}

/// Converts an example to a little-endian stream; its encapsulations are little-endian already.
fn little(big: &str) -> Vec<u8> {
    let mut octets = hex(big);
    let kind = u32::from_be_bytes(octets[..4].try_into().unwrap());
    octets[..4].reverse();
    match TcKind::from_number(kind).unwrap() {
        TcKind::Fixed => octets[4..].chunks_mut(2).for_each(<[u8]>::reverse),
        _ if octets.len() > 4 => octets[4..8].reverse(),
        _ => {}
    }
    octets
}

/// The encodings by omniORB of these types in a big-endian stream, with encapsulations in the order of its
/// machine.
fn captured() -> Vec<(TypeCode, &'static str)> {
    let of = TypeCode::of_desc;
    vec![
        (TypeCode::LONG, "00000003"),
        (TypeCode::STRING, "0000001200000000"),
        (TypeCode::string(10), "000000120000000a"),
        (TypeCode::WSTRING, "0000001b00000000"),
        (of(&TypeDesc::Fixed { digits: 5, scale: 2 }), "0000001c00050002"),
        (Bytes::type_code(), "000000130000000c010000000a00000000000000"),
        (<[i32; 3]>::type_code(), "000000140000000c010000000300000003000000"),
        (of(I), "0000000e0000001a010000000c00000049444c3a542f493a312e3000020000004900"),
        (of(ABS), "0000002000000020010000000e00000049444c3a542f4162733a312e300000000400000041627300"),
        (
            TypeCode::OBJECT,
            "0000000e00000033010000001d00000049444c3a6f6d672e6f72672f434f5242412f4f626a6563743a312e3000000000070000004f626a65637400",
        ),
        (
            of(COLOR),
            "0000001100000045010000001000000049444c3a542f436f6c6f723a312e300006000000436f6c6f7200000003000000040000007265640006000000677265656e00000005000000626c756500",
        ),
        (
            of(F52),
            "0000001500000028010000000e00000049444c3a542f4635323a312e3000000004000000463532001c00000005000200",
        ),
        (
            of(UC),
            "000000100000004c010000000d00000049444c3a542f55433a312e30000000000300000055430000090000000100000002000000610000000200000078000000030000000000000002000000790000000a000000",
        ),
        (
            of(UB),
            "000000100000003c010000000d00000049444c3a542f55423a312e3000000000030000005542000008000000ffffffff0100000001000000020000007800000003000000",
        ),
        (
            of(BOX_STR),
            "0000001e00000030010000001100000049444c3a542f426f785374723a312e300000000007000000426f7853747200001200000000000000",
        ),
        (
            of(ARR),
            "0000001500000044010000000e00000049444c3a542f4172723a312e300000000400000041727200140000001c00000001000000140000000c00000001000000030000000300000002000000",
        ),
        (
            of(BIN_STRUCT),
            "0000000f0000006c010000001400000049444c3a542f42696e5374727563743a312e30000a00000042696e53747275637400000005000000020000007300000002000000020000006300000009000000020000006c00000003000000020000006f0000000a000000020000006400000007000000",
        ),
        (
            of(BAD),
            "0000001600000044010000000e00000049444c3a542f4261643a312e300000000400000042616400020000000400000077687900120000000000000005000000636f64650000000003000000",
        ),
        (
            of(U),
            "0000001000000070010000000c00000049444c3a542f553a312e30000200000055000000030000000300000004000000010000000200000061000000020000000200000002000000620000001200000000000000030000000200000062000000120000000000000000000000020000006300000007000000",
        ),
        (
            of(BASE),
            "0000001d0000003a010000000f00000049444c3a542f426173653a312e30000005000000426173650000000000000000010000000200000062000000020000000100",
        ),
    ]
}

const NODE_LE: &str = "0f00000088000000010000000f00000049444c3a542f4e6f64653a312e300000050000004e6f64650000000002000000020000007600000003000000050000006b696473000000001500000040000000010000001200000049444c3a542f4e6f64655365713a312e30000000080000004e6f646553657100130000001000000001000000ffffffff78ffffff00000000";
const LNODE_LE: &str = "1d00000052000000010000001000000049444c3a542f4c4e6f64653a312e3000060000004c4e6f6465000000000000000200000002000000760000000300000001000000050000006e65787400000000ffffffffacffffff0100";

#[test]
fn octets_of_omniorb_are_what_the_descriptions_say() {
    for (code, octets) in captured() {
        assert_eq!(decode(&hex(octets), ByteOrder::Big), code, "{code}");
        assert_eq!(decode(&little(octets), ByteOrder::Little), code, "{code}");
        assert_eq!(encode(&code, ByteOrder::Little, 0), little(octets), "{code}");
    }
    for (desc, octets) in [(NODE, NODE_LE), (LNODE, LNODE_LE)] {
        let code = TypeCode::of_desc(desc);
        assert_eq!(decode(&hex(octets), ByteOrder::Little), code, "{code}");
        assert_eq!(encode(&code, ByteOrder::Little, 0), hex(octets), "{code}");
    }
}

/// Type codes of every kind, and recursive types.
fn all() -> Vec<TypeCode> {
    let mut all: Vec<_> = captured().into_iter().map(|(code, _)| code).collect();
    all.extend(TcKind::ALL.iter().filter_map(|kind| TypeCode::basic(*kind)));
    all.extend(
        [NODE, LNODE, EVEN, ODD, DERIVED, LOCAL, NATIVE, COMPONENT, HOME, EVENT, TWICE, BITS, COLOURED, WIDE]
            .map(TypeCode::of_desc),
    );
    all.extend([TypeCode::wstring(3), TypeCode::sequence(&TypeCode::of_desc(ODD), 7)]);
    all
}

#[test]
fn every_kind_survives_both_orders_and_every_phase() {
    let mut kinds: Vec<_> = all().iter().map(|code| code.kind()).collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, TcKind::ALL);
    for code in all() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for offset in 0..8 {
                let octets = encode(&code, order, offset);
                let padded = [vec![0xEE; offset], octets.clone()].concat();
                let again =
                    TypeCode::decode(&mut Decoder::new(&padded, order, Version::V1_2).at(offset)).unwrap();
                assert_eq!(again, code, "{code}");
                assert!(again.equivalent(&code));
                assert_eq!(encode(&again, order, offset), octets, "{code}");
                assert_eq!(again.to_string(), code.to_string());
            }
        }
    }
}

#[test]
fn no_two_of_them_are_equal_and_aliases_are_equivalent() {
    let all = all();
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate() {
            // The constants occur twice in the list.
            let same = i == j || (a.kind().is_basic() && a.kind() == b.kind());
            assert_eq!(a == b, same, "{a} {b}");
        }
    }
    let (arr, plain) = (TypeCode::of_desc(ARR), <[[i32; 3]; 2]>::type_code());
    assert!(arr != plain && arr.equivalent(&plain) && plain.equivalent(&arr));
    assert_eq!(arr.unaliased(), plain);
    // Aliases within types are resolved as well: the member `kids` of a node is an alias of a sequence of
    // nodes.
    let node = TypeCode::of_desc(NODE);
    assert!(TypeCode::sequence(&node, 0).equivalent(&node.member_type(1).unwrap()));
}

#[test]
fn a_recursive_type_is_one_however_far_it_is_spelled_out() {
    let node = TypeCode::of_desc(NODE);
    let inner = node.member_type(1).unwrap().unaliased().content_type().unwrap();
    assert_eq!(inner, node);
    // An inner type is written with its enclosing type inside of it.
    let list = node.member_type(1).unwrap();
    let again = decode(&encode(&list, ByteOrder::Little, 0), ByteOrder::Little);
    assert_eq!(again, list);
    assert_eq!(again.unaliased().content_type().unwrap(), node);
    let (even, odd) = (TypeCode::of_desc(EVEN), TypeCode::of_desc(ODD));
    assert_eq!(even.member_type(0).unwrap().content_type().unwrap(), odd);
    assert!(even.compact().equivalent(&even) && even.compact() != even);
    assert!(!even.equivalent(&odd));
}

/// The kinds of the types that an encoded type code refers to by indirections.
fn referred_to(octets: &[u8]) -> Vec<u32> {
    let word = |at: usize| u32::from_le_bytes(octets[at..at + 4].try_into().unwrap());
    let references = (0..octets.len() / 4).map(|at| at * 4).filter(|at| word(*at) == u32::MAX);
    references.map(|at| word((at as i64 + 4 + i64::from(word(at + 4) as i32)) as usize)).collect()
}

#[test]
fn sequences_and_aliases_are_not_referred_to_from_within() {
    let list = TypeCode::of_desc(NODE).member_type(1).unwrap();
    assert_eq!((list.kind(), list.unaliased().kind()), (TcKind::Alias, TcKind::Sequence));
    for list in [&list, &list.unaliased()] {
        let octets = encode(list, ByteOrder::Little, 0);
        assert_eq!(referred_to(&octets), [TcKind::Struct.number()]);
        assert_eq!(decode(&octets, ByteOrder::Little), *list);
    }
    // A complete type may be referred to.
    let pair = TypeCode::create_struct("IDL:P:1.0", "P", &[("a", &list), ("b", &list)]).unwrap();
    let octets = encode(&pair, ByteOrder::Little, 0);
    assert_eq!(decode(&octets, ByteOrder::Little), pair);
}

#[test]
fn names_do_not_matter_where_an_id_decides_and_ids_where_one_is_missing() {
    let (u, compact) = (TypeCode::of_desc(U), TypeCode::of_desc(U).compact());
    assert_eq!(compact.name(), Ok(""));
    assert_eq!(compact.member_name(0), Ok(""));
    assert_eq!(compact.id(), u.id());
    assert!(u.equivalent(&compact) && u != compact);
    assert_eq!(decode(&encode(&compact, ByteOrder::Big, 0), ByteOrder::Big), compact);
    assert!(compact.compact() == compact);
    // Types with the same members and different ids differ; without an id they are equivalent.
    let (bin, other, without) =
        (TypeCode::of_desc(BIN_STRUCT), TypeCode::of_desc(BIN_OTHER), TypeCode::of_desc(BIN_WITHOUT));
    assert!(!bin.equivalent(&other));
    assert!(bin.equivalent(&without) && without.equivalent(&other));
    assert!(!without.equivalent(&TypeCode::of_desc(BAD)));
}

#[test]
fn every_property_answers_for_its_kinds_alone() {
    let of = TypeCode::of_desc;
    let u = of(U);
    assert_eq!((u.kind(), u.id(), u.name()), (TcKind::Union, Ok("IDL:T/U:1.0"), Ok("U")));
    assert_eq!(u.member_count(), Ok(4));
    assert_eq!(u.discriminator_type(), Ok(TypeCode::LONG));
    assert_eq!(u.default_index(), Ok(Some(3)));
    assert_eq!(
        (0..5).map(|i| u.member_discriminator(i)).collect::<Vec<_>>(),
        [Ok(Some(1)), Ok(Some(2)), Ok(Some(3)), Ok(None), Err(TypeCodeError::Bounds)]
    );
    assert_eq!(u.member_name(4), Err(TypeCodeError::Bounds));
    assert_eq!(u.member_type(1), Ok(TypeCode::STRING));
    assert_eq!(of(UB).default_index(), Ok(None));
    let color = of(COLOR);
    assert_eq!((color.member_count(), color.member_name(2)), (Ok(3), Ok("blue")));
    assert_eq!(color.member_type(0), Err(TypeCodeError::BadKind));
    let derived = of(DERIVED);
    assert_eq!(derived.type_modifier(), Ok(ValueModifier::Truncatable));
    assert_eq!(derived.concrete_base_type(), Ok(Some(of(BASE))));
    assert_eq!(of(BASE).concrete_base_type(), Ok(None));
    assert_eq!(
        (derived.member_visibility(0), of(BASE).member_visibility(0)),
        (Ok(Visibility::Private), Ok(Visibility::Public))
    );
    assert_eq!(derived.member_visibility(1), Err(TypeCodeError::Bounds));
    let fixed = of(F52).content_type().unwrap();
    assert_eq!((fixed.fixed_digits(), fixed.fixed_scale()), (Ok(5), Ok(2)));
    assert_eq!(TypeCode::string(4).length(), Ok(4));
    assert_eq!(of(ARR).unaliased().length(), Ok(2));
    for code in all() {
        let kind = code.kind();
        assert_eq!(code.id().is_ok(), kind.is_named(), "{kind}");
        assert_eq!(code.name().is_ok(), kind.is_named(), "{kind}");
        assert_eq!(code.fixed_digits().is_ok(), kind == TcKind::Fixed);
        assert_eq!(code.fixed_scale().is_ok(), kind == TcKind::Fixed);
        assert_eq!(code.type_modifier().is_ok(), matches!(kind, TcKind::Value | TcKind::Event));
        assert_eq!(code.concrete_base_type().is_ok(), matches!(kind, TcKind::Value | TcKind::Event));
        assert_eq!(code.discriminator_type().is_ok(), kind == TcKind::Union);
        assert_eq!(code.default_index().is_ok(), kind == TcKind::Union);
        let contains = matches!(kind, TcKind::Sequence | TcKind::Array | TcKind::Alias | TcKind::ValueBox);
        assert_eq!(code.content_type().is_ok(), contains, "{kind}");
        let long = matches!(kind, TcKind::Sequence | TcKind::Array | TcKind::String | TcKind::WString);
        assert_eq!(code.length().is_ok(), long, "{kind}");
    }
}

#[test]
fn a_type_code_reads_as_idl() {
    let of = |desc| TypeCode::of_desc(desc).to_string();
    for (desc, text) in [
        (NODE, "struct T::Node { long v; T::NodeSeq kids; }"),
        (
            U,
            "union T::U switch (long) { case 1: short a; case 2: string b; case 3: string b; default: double c; }",
        ),
        (UB, "union T::UB switch (boolean) { case TRUE: long x; }"),
        (UC, "union T::UC switch (char) { case 'a': long x; default: octet y; }"),
        (COLOURED, "union T::Coloured switch (T::Color) { case green: any x; }"),
        (COLOR, "enum T::Color { red, green, blue }"),
        (ARR, "typedef long[2][3] T::Arr"),
        (F52, "typedef fixed<5, 2> T::F52"),
        (DERIVED, "valuetype T::Derived : truncatable T::Base { private long d; }"),
        (LNODE, "valuetype T::LNode { public long v; public T::LNode next; }"),
        (BOX_STR, "valuetype T::BoxStr string"),
        (BAD, "exception T::Bad { string why; long code; }"),
        (I, "interface T::I"),
        (ABS, "abstract interface T::Abs"),
    ] {
        assert_eq!(of(desc), text);
    }
    assert_eq!(Vec::<Bounded<String, 4>>::type_code().to_string(), "sequence<string<4>>");
    assert_eq!(TypeCode::OBJECT.to_string(), "interface CORBA::Object");
    assert_eq!(format!("{:?}", TypeCode::ULONGLONG), "TypeCode(unsigned long long)");
}

#[test]
fn rust_types_have_the_codes_of_their_idl_types() {
    for (code, text) in [
        (<()>::type_code(), "void"),
        (bool::type_code(), "boolean"),
        (i8::type_code(), "octet"),
        (u16::type_code(), "unsigned short"),
        (i64::type_code(), "long long"),
        (f32::type_code(), "float"),
        (LongDouble::type_code(), "long double"),
        (Char::type_code(), "char"),
        (WChar::type_code(), "wchar"),
        (<&str>::type_code(), "string"),
        (WString::type_code(), "wstring"),
        (Bounded::<WString, 3>::type_code(), "wstring<3>"),
        (Bytes::type_code(), "sequence<octet>"),
        (Seq::<f64>::type_code(), "sequence<double>"),
        (Bounded::<Seq<f64>, 5>::type_code(), "sequence<double, 5>"),
        (Bounded::<Vec<String>, 5>::type_code(), "sequence<string, 5>"),
        (FixedSeq::<f32, 9>::type_code(), "float[9]"),
        (Box::<[[bool; 2]; 3]>::type_code(), "boolean[3][2]"),
        (TypeCode::type_code(), "CORBA::TypeCode"),
    ] {
        assert_eq!(code.to_string(), text);
    }
}

#[test]
fn a_description_becomes_a_code_once() {
    let (a, b) = (TypeCode::of_desc(NODE), TypeCode::of_desc(NODE));
    // Shared names are not allocated again.
    assert!(std::ptr::eq(a.name().unwrap(), b.name().unwrap()));
    let count = allocation_counter::measure(|| drop(TypeCode::of_desc(NODE))).count_total;
    assert_eq!(count, 0);
}

/// A context with a type code cache that knows one encapsulation, and counts the types that it is given.
#[derive(Default)]
struct Cached(AtomicUsize);

impl TypeCodeCache for Cached {
    fn find(&self, _: u32, encapsulation: &[u8]) -> Option<TypeCode> {
        (encapsulation == b"known").then_some(TypeCode::LONG)
    }

    fn keep(&self, _: u32, _: &[u8], _: &TypeCode) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl DecodeContext for Cached {
    fn type_codes(&self) -> Option<&dyn TypeCodeCache> {
        Some(self)
    }
}

#[test]
fn type_code_cache_of_the_context_is_asked_before_decoding() {
    let context = Arc::new(Cached::default());
    let known = [&TcKind::Sequence.number().to_be_bytes()[..], &[0, 0, 0, 5], b"known"].concat();
    let mut d = Decoder::new(&known, ByteOrder::Big, Version::V1_2).with_context(&context);
    assert_eq!(TypeCode::decode(&mut d).unwrap(), TypeCode::LONG);
    assert_eq!(d.remaining(), 0);

    let other = TypeCode::sequence(&TypeCode::LONG, 0);
    let octets = encode(&other, ByteOrder::Big, 0);
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2).with_context(&context);
    assert_eq!(TypeCode::decode(&mut d).unwrap(), other);
    assert_eq!(context.0.load(Ordering::Relaxed), 1);
}

//! What IDL 4 adds: bitsets, bitmasks, maps, derived and empty structs, and values of them over the wire.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use crate::octets::{decoded, encoded, round_trip};
use crate::orbs::{activate, collocated, run};
use giop_codec::any::AnyError;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, FixedLayout};
use giop_codec::typecode::{TcKind, TypeCode};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};
use idl_macros::idl;
use zorb::{Any, BitsError, Bounded, SystemException, Typed};

idl! {
    module Net {
        /// Access rights.
        bitmask Rights { read, write, @position(7) execute, @position(4) /** Change owner. */ chown };
        @bit_bound(8) bitmask Small { a, b };
        @bit_bound(33) bitmask Big { @position(32) top, @position(0) bottom };

        bitset Header {
            bitfield<3> version;
            bitfield<1> urgent;
            bitfield<4>;
            bitfield<12, short> offset;
            bitfield<8, octet> kind;
            bitfield<4, uint64> type;
        };
        bitset Long : Header { bitfield<16, short> delta; bitfield<1> last; };
        bitset Whole { bitfield<64> all; };
        bitset Two { bitfield<7, int8> low; bitfield<8, int8> high; };

        enum Colour { red, green };
        typedef map<string, long> Counts;
        typedef map<Colour, Counts, 2> ByColour;
        typedef map<Rights, fixed<4, 2>> Prices;
        struct Tree { long value; map<string, Tree> children; };
        struct Maps {
            Counts counts; ByColour colours; map<long long, boolean, 3> few; Prices prices; map<wchar, sequence<octet>> bytes;
            map<string<3>, wstring> names[2];
        };

        struct Base { long id; string name; };
        typedef Base Named;
        struct Derived : Named { double weight; Rights rights; };
        struct Last : Derived { sequence<Last> more; };
        struct Flat { short s; Rights r; Two t; };
        struct Flatter : Flat { octet o; };
        struct Nothing { };
        struct More : Nothing { Nothing inner; octet o; };
        @zero_copy struct Cell { long long stamp; long a; long b; };
        @zero_copy struct Wide : Cell { double d; octet tag; octet pad[7]; };

        union Choice switch (octet) { case 1: Header header; case 2: Counts counts; default: Nothing nothing; };
        exception Failed { Rights missing; Counts tried; };

        struct Node;
        typedef sequence<Node> Nodes;
        struct Node { long v; Nodes kids; };
        union Expr;
        typedef sequence<Expr, 3> Exprs;
        union Expr switch (wchar) { case '+': Exprs sum; case 'n': case 'm': long number; default: string name; };
        union Signed switch (int8) { case -128: uint8 low; case 127: uint64 high; };

        const long WIDTH = 5;
        typedef sequence<Header> Headers;
        interface Filter {
            Rights check(in Rights wanted, inout Header header, out Long all) raises (Failed);
            Counts count(in Counts counts, inout ByColour colours, in Derived who, in Headers headers, in Nothing none);
            @oneway void note(in Rights what);
            attribute Rights rights;
        };
    };
}

use net::*;

#[test]
fn a_bitmask_is_a_set_of_flags() {
    let mut rights = Rights::READ | Rights::EXECUTE;
    assert_eq!(rights.bits(), 0x81_u32);
    assert!(rights.contains(Rights::READ) && !rights.contains(Rights::READ | Rights::WRITE));
    assert!(rights.intersects(Rights::READ | Rights::WRITE) && !rights.is_empty());
    rights.insert(Rights::CHOWN);
    rights.remove(Rights::READ);
    rights |= Rights::WRITE;
    rights ^= Rights::EXECUTE;
    assert_eq!(rights, [Rights::WRITE, Rights::CHOWN].into_iter().collect());
    assert_eq!(!rights, Rights::READ | Rights::EXECUTE);
    assert_eq!(rights & Rights::WRITE, Rights::WRITE);
    assert_eq!(rights.difference(Rights::WRITE).union(Rights::READ).bits(), 0x11);
    assert_eq!(Rights::all().bits(), 0x93);
    assert_eq!(Rights::default(), Rights::empty());
    assert_eq!(format!("{rights:?}"), "WRITE | CHOWN");
    assert_eq!(format!("{:?} {:?}", Rights::empty(), Rights::from_bits(0x101)), "0 READ | 100");
    const { assert!(Big::TOP.bits() == 1_u64 << 32 && Small::B.bits() == 2_u8) };
}

#[test]
fn a_bitmask_travels_as_its_integer_and_keeps_unknown_bits() {
    assert_eq!(encoded(&(Rights::READ | Rights::EXECUTE)), [0, 0, 0, 0x81]);
    assert_eq!(encoded(&Small::B), [2]);
    assert_eq!(encoded(&Big::TOP), [0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(decoded::<Rights>(&[0x80, 0, 0, 1]).unwrap().bits(), 0x8000_0001);
    round_trip(&Rights::all());
    round_trip(&vec![Rights::READ, Rights::empty(), Rights::from_bits(u32::MAX)]);
    round_trip(&[Small::A, Small::B, Small::all()]);
    round_trip(&Big::all());
}

#[test]
fn fields_of_a_bitset_are_numbers_with_bounds() {
    let mut header = Header::default().with_version(5).unwrap().with_urgent(true).with_kind(0xab);
    header.set_offset(-2048).unwrap();
    header.set_type(9).unwrap();
    assert_eq!((header.version(), header.urgent(), header.offset()), (5, true, -2048));
    assert_eq!((header.kind(), header.r#type()), (0xab, 9));
    // The first field has the lowest bits; those without a name are 0.
    assert_eq!(header.bits(), 5 | 1 << 3 | 0x800 << 8 | 0xab << 20 | 9_u32 << 28);
    assert_eq!(header.with_version(8), Err(BitsError { width: 3 }));
    assert_eq!(header.set_offset(2048), Err(BitsError { width: 12 }));
    assert_eq!(header.with_offset(-2049), Err(BitsError { width: 12 }));
    assert_eq!(header.with_offset(2047).unwrap().with_urgent(false).offset(), 2047);
    assert_eq!(header.offset(), -2048, "what was refused changed nothing");
    assert_eq!(Header::from_bits(0xf0).bits(), 0, "bits without a name are left out");
    assert_eq!(
        format!("{header:?}"),
        "Header { version: 5, urgent: true, offset: -2048, kind: 171, type: 9 }"
    );
    let two = Two::default().with_low(-64).unwrap().with_high(-128);
    assert_eq!((two.low(), two.high()), (-64, -128));
    assert_eq!(Whole::default().with_all(u64::MAX).all(), u64::MAX);
    const HEADER: Header = Header::from_bits(3).with_urgent(true);
    assert_eq!(HEADER.bits(), 11);
}

#[test]
fn a_derived_bitset_has_the_fields_of_its_base_first() {
    let long = Long::from_bits(0b101).with_delta(-2).with_last(true);
    assert_eq!((long.version(), long.delta(), long.last()), (5, -2, true));
    assert_eq!(long.bits(), 5 | 0xfffe_u64 << 32 | 1 << 48);
    assert_eq!(Header::from(long), Header::from_bits(5));
}

#[test]
fn a_bitset_travels_as_its_integer() {
    assert_eq!(encoded(&Header::from_bits(0x0102_0304)), [1, 2, 3, 4]);
    assert_eq!(decoded::<Header>(&[0, 0, 0, 0xff]).unwrap().bits(), 0x0f);
    round_trip(&Header::from_bits(u32::MAX));
    round_trip(&Long::from_bits(u64::MAX));
    round_trip(&vec![Two::from_bits(0x1234), Two::default()]);
    round_trip(&Flatter { s: 1, r: Rights::WRITE, t: Two::from_bits(77), o: 3 });
    assert_eq!(Flatter::LAYOUT.size(0), 11);
}

fn counts(entries: &[(&str, i32)]) -> Counts {
    entries.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
}

#[test]
fn a_map_travels_as_the_sequence_of_its_entries() {
    assert_eq!(
        encoded(&counts(&[("b", 2), ("a", 1)])),
        [0, 0, 0, 2, 0, 0, 0, 2, b'a', 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, b'b', 0, 0, 0, 0, 0, 0, 2]
    );
    let mut maps = Maps {
        counts: counts(&[("x", 1), ("", -1)]),
        colours: Bounded::new(BTreeMap::from([
            (Colour::Green, counts(&[("y", 2)])),
            (Colour::Red, counts(&[])),
        ]))
        .unwrap(),
        few: Bounded::new(BTreeMap::from([(i64::MIN, true)])).unwrap(),
        prices: BTreeMap::from([(Rights::READ, "19.90".parse().unwrap())]),
        bytes: BTreeMap::from([('ü'.try_into().unwrap(), vec![1, 2].into())]),
        names: Default::default(),
    };
    maps.names[1].insert("abc".try_into().unwrap(), "wide".into());
    round_trip(&maps);
    round_trip(&Maps::default());
    let leaf = Tree { value: 1, children: BTreeMap::new() };
    round_trip(&Tree {
        value: 2,
        children: BTreeMap::from([("l".to_owned(), leaf.clone()), ("r".to_owned(), leaf)]),
    });
}

#[test]
fn hostile_maps_are_refused() {
    let twice = [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 6];
    assert_eq!(decoded::<Counts>(&twice), Err(DecodeErrorKind::DuplicateKey));
    assert_eq!(
        decoded::<Counts>(&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1]),
        Err(DecodeErrorKind::LengthBeyondData)
    );
    let three = encoded(&(0..4_i64).map(|key| (key, true)).collect::<BTreeMap<_, _>>());
    assert_eq!(decoded::<Bounded<BTreeMap<i64, bool>, 3>>(&three), Err(DecodeErrorKind::BoundExceeded));
    let deep = (0..300).fold(Tree::default(), |tree, _| Tree {
        value: 0,
        children: BTreeMap::from([(String::new(), tree)]),
    });
    assert_eq!(decoded::<Tree>(&encoded(&deep)), Err(DecodeErrorKind::DepthLimit));
}

#[test]
fn a_derived_struct_has_the_members_of_its_bases_first() {
    let derived = Derived { id: 7, name: "n".into(), weight: 1.5, rights: Rights::READ };
    assert_eq!(Base::from(derived.clone()), Base { id: 7, name: "n".into() });
    let last =
        Last { id: 1, name: "l".into(), weight: 0.5, rights: Rights::empty(), more: vec![Last::default()] };
    assert_eq!(Derived::from(last.clone()).weight, 0.5);
    assert_eq!(Base::from(last.clone()).id, 1);
    round_trip(&derived);
    round_trip(&last);
    assert_eq!(encoded(&derived)[..10], encoded(&Base::from(derived.clone())));
    let wide = Wide { stamp: 1, a: 2, b: 3, d: 0.5, tag: 1, pad: [0; 7] };
    assert_eq!(Cell::from(wide.clone()), Cell { stamp: 1, a: 2, b: 3 });
    round_trip(&vec![wide.clone(), wide]);
}

#[test]
fn an_empty_struct_takes_no_octets() {
    assert_eq!(encoded(&Nothing), [0; 0]);
    assert_eq!(decoded(&[]), Ok(Nothing {}));
    assert_eq!(encoded(&More { inner: Nothing, o: 5 }), [5]);
    assert_eq!(Nothing::from(More::default()), Nothing);
    round_trip(&More { inner: Nothing, o: 5 });
    // Counts are checked against the remaining bytes, and each element counts as one byte.
    assert_eq!(decoded::<Vec<Nothing>>(&[0, 0, 0, 9]), Err(DecodeErrorKind::LengthBeyondData));
    assert_eq!(decoded(&[0, 0, 0, 1, 7]), Ok(vec![Nothing]));
    // Sequences of them in a sequence count together: else this would take the square of its length.
    let count = 1_u32 << 16;
    let counts = (0..count).flat_map(|index| (4 * (count - index - 1)).to_be_bytes());
    let octets: Vec<u8> = count.to_be_bytes().into_iter().chain(counts).collect();
    assert_eq!(decoded::<Vec<Vec<Nothing>>>(&octets), Err(DecodeErrorKind::AllocLimit));
}

#[test]
fn unions_and_exceptions_hold_them() {
    round_trip(&Choice::Header(Header::from_bits(5)));
    round_trip(&Choice::Counts(counts(&[("k", 1)])));
    round_trip(&Choice::Nothing(9, Nothing));
    round_trip(&Failed { missing: Rights::WRITE, tried: counts(&[("t", 3)]) });
    fn hashable<T: Eq + std::hash::Hash>() {}
    hashable::<Maps>();
    hashable::<Failed>();
    hashable::<More>();
}

#[test]
fn types_declared_ahead_hold_themselves() {
    let leaf = |v| Node { v, kids: Nodes::new() };
    round_trip(&Node { v: 1, kids: vec![leaf(2), Node { v: 3, kids: vec![leaf(4)] }] });
    let wide = |c: char| c.try_into().unwrap();
    let sum =
        vec![Expr::Number(wide('m'), 5), Expr::Name(wide('€'), "x".into()), Expr::Sum(Bounded::default())];
    round_trip(&Expr::Sum(Bounded::new(sum).unwrap()));
    assert_eq!(Expr::Number(wide('n'), 1).discriminator(), wide('n'));
    // A discriminator that selects another member is not sent.
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    assert!(Expr::Number(wide('+'), 1).encode(&mut e).is_err());
    round_trip(&[Signed::Low(7), Signed::High(u64::MAX), Signed::Other(0)]);
    assert_eq!(encoded(&Signed::Low(7)), [0x80, 7]);
    let deep = (0..300).fold(leaf(0), |node, _| Node { v: 0, kids: vec![node] });
    assert_eq!(decoded::<Node>(&encoded(&deep)), Err(DecodeErrorKind::DepthLimit));
}

#[derive(Default)]
struct MyFilter {
    noted: Mutex<Vec<Rights>>,
}

impl FilterServant for MyFilter {
    async fn check(
        &self,
        wanted: Rights,
        header: Header,
    ) -> Result<(Rights, Header, Long), filter::CheckError> {
        if wanted.contains(Rights::EXECUTE) {
            return Err(Failed { missing: Rights::EXECUTE, tried: counts(&[("once", 1)]) }.into());
        }
        Ok((!wanted, header.with_urgent(true), Long::from_bits(header.bits().into())))
    }

    async fn count(
        &self,
        counts: &Counts,
        colours: ByColour,
        who: &Derived,
        headers: &[Header],
        _: &Nothing,
    ) -> Result<(Counts, ByColour), SystemException> {
        let mut counts = counts.clone();
        counts.insert(who.name.clone(), headers.len() as i32);
        Ok((counts, colours))
    }

    async fn note(&self, what: Rights) -> Result<(), SystemException> {
        self.noted.lock().unwrap().push(what);
        Ok(())
    }

    async fn rights(&self) -> Result<Rights, SystemException> {
        Ok(Rights::all())
    }

    async fn set_rights(&self, value: Rights) -> Result<(), SystemException> {
        assert_eq!(value, Rights::READ);
        Ok(())
    }
}

#[test]
fn calls_pass_them() {
    let servant = Arc::new(MyFilter::default());
    let remote: FilterRef = activate(Arc::clone(&servant));
    for filter in [collocated(&remote), remote] {
        run(async {
            let header = Header::from_bits(2);
            let (rights, header, all) = filter.check(Rights::READ, header).await.unwrap();
            assert_eq!((rights, header.urgent(), all.version()), (!Rights::READ, true, 2));
            let error = filter.check(Rights::EXECUTE, header).await.unwrap_err();
            assert!(matches!(error, filter::CheckError::Failed(failed) if failed.tried["once"] == 1));
            let colours = ByColour::default();
            let who = Derived { name: "me".into(), ..Derived::default() };
            let (found, _) =
                filter.count(&counts(&[("a", 1)]), colours, &who, &[header; 3], &Nothing).await.unwrap();
            assert_eq!(found, counts(&[("a", 1), ("me", 3)]));
            filter.note(Rights::CHOWN).await.unwrap();
            filter.set_rights(Rights::READ).await.unwrap();
            assert_eq!(filter.rights().await.unwrap(), Rights::all());
            // The server serves the requests of a connection in order.
            assert_eq!(std::mem::take(&mut *servant.noted.lock().unwrap()), [Rights::CHOWN]);
        });
    }
}

#[test]
fn anys_hold_them_as_what_type_codes_know() {
    fn there_and_back<T: Typed + CdrEncode + CdrDecode + PartialEq + Debug>(value: T) -> String {
        let any = Any::new(&value).unwrap();
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut e = Encoder::new(order, Version::V1_2);
            any.encode(&mut e).unwrap();
            let octets = e.into_bytes();
            let received = Any::decode(&mut Decoder::from_bytes(&octets, order, Version::V1_2)).unwrap();
            assert_eq!(received.get::<T>().unwrap(), value);
            assert_eq!(received.type_code(), any.type_code());
        }
        any.type_code().to_string()
    }
    assert_eq!(there_and_back(Rights::READ), "typedef unsigned long Net::Rights");
    assert_eq!(there_and_back(Long::from_bits(7)), "typedef unsigned long long Net::Long");
    assert_eq!(there_and_back(Nothing), "struct Net::Nothing { }");
    let who = Derived { name: "n".into(), ..Derived::default() };
    assert_eq!(
        there_and_back(who),
        "struct Net::Derived { long id; string name; double weight; Net::Rights rights; }"
    );
    let map = counts(&[("a", 1), ("b", 2)]);
    there_and_back(map.clone());
    let entry = <Counts as Typed>::type_code().content_type().unwrap();
    assert_eq!((entry.member_name(0).unwrap(), entry.member_name(1).unwrap()), ("key", "value"));
    assert_eq!(Any::with_type(&counts_type_code(), map.clone()).unwrap().get::<Counts>().unwrap(), map);
    let leaf = Tree { value: 1, children: BTreeMap::new() };
    there_and_back(Tree { value: 2, children: BTreeMap::from([("l".to_owned(), leaf)]) });
    there_and_back(Maps { counts: map, ..Maps::default() });
}

#[test]
fn type_codes_are_those_of_equivalent_idl_3() {
    // Bitmasks and bitsets: aliases of their integers.
    for (code, id, content) in [
        (Rights::type_code(), "IDL:Net/Rights:1.0", TypeCode::ULONG),
        (Small::type_code(), "IDL:Net/Small:1.0", TypeCode::OCTET),
        (Big::type_code(), "IDL:Net/Big:1.0", TypeCode::ULONGLONG),
        (Header::type_code(), "IDL:Net/Header:1.0", TypeCode::ULONG),
        (Long::type_code(), "IDL:Net/Long:1.0", TypeCode::ULONGLONG),
        (Two::type_code(), "IDL:Net/Two:1.0", TypeCode::USHORT),
    ] {
        assert_eq!(
            (code.kind(), code.id(), code.content_type()),
            (TcKind::Alias, Ok(id), Ok(content.clone()))
        );
        assert!(code.equivalent(&content) && !code.equal(&content) && code.equal(&code));
        assert!(code.member_count().is_err() && code.length().is_err());
    }
    assert!(
        Rights::type_code().equivalent(&Header::type_code()) && Rights::type_code() != Header::type_code()
    );
    assert!(!Rights::type_code().equivalent(&Big::type_code()));
    let any = Any::new(Rights::READ).unwrap();
    assert_eq!(any.get::<u32>().unwrap(), Rights::READ.bits());
    assert!(matches!(any.get::<Small>(), Err(AnyError::TypeMismatch { .. })));

    // Maps: sequences of pairs, bounds included.
    let map = Counts::type_code();
    assert_eq!((map.kind(), map.length()), (TcKind::Sequence, Ok(0)));
    let pair = map.content_type().unwrap();
    assert_eq!((pair.kind(), pair.member_count(), pair.id()), (TcKind::Struct, Ok(2), Ok("")));
    assert_eq!((pair.member_type(0), pair.member_type(1)), (Ok(TypeCode::STRING), Ok(TypeCode::LONG)));
    assert_eq!(by_colour_type_code().unaliased().length(), Ok(2));
    assert_eq!(
        (counts_type_code().kind(), counts_type_code().id()),
        (TcKind::Alias, Ok("IDL:Net/Counts:1.0"))
    );
    assert!(map.equivalent(&counts_type_code()) && !map.equivalent(&prices_type_code()));
    let by_number = <BTreeMap<String, u32>>::type_code();
    assert!(!map.equivalent(&by_number) && map.equal(&<BTreeMap<String, i32>>::type_code()));
    let any = Any::new(counts(&[("a", 1)])).unwrap();
    assert!(matches!(any.get::<BTreeMap<String, u32>>(), Err(AnyError::TypeMismatch { .. })));

    // Derived structs: all members, those of the bases first, and no word of the base.
    let derived = Derived::type_code();
    let names: Vec<_> = (0..4).map(|index| derived.member_name(index).unwrap().to_owned()).collect();
    assert_eq!((derived.member_count(), derived.id()), (Ok(4), Ok("IDL:Net/Derived:1.0")));
    assert_eq!(names, ["id", "name", "weight", "rights"]);
    assert_eq!(derived.member_type(3), Ok(Rights::type_code()));
    assert!(!derived.equivalent(&Base::type_code()) && derived.concrete_base_type().is_err());
    let any = Any::new(Derived::default()).unwrap();
    assert!(matches!(any.get::<Base>(), Err(AnyError::TypeMismatch { .. })));

    // Empty structs: no members.
    assert_eq!((Nothing::type_code().kind(), Nothing::type_code().member_count()), (TcKind::Struct, Ok(0)));
    assert!(!Nothing::type_code().equivalent(&More::type_code()));
    assert_eq!(Any::new(Nothing).unwrap().get::<Nothing>().unwrap(), Nothing);
}

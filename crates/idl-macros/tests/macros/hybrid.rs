//! Types that the interpreter marshals: the same bytes and errors as compiled code, counted uses, and calls.

use std::fmt::Debug;

use crate::orbs::{activate, run};
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::{ByteOrder, DecodeErrorKind, EncodeErrorKind, Version};
use idl_macros::idl;
use zorb::SystemException;
use zorb::{Adaptive, TcKind, TypeCode, Typed};

/// The same types compiled, interpreted, and interpreted only the first time.
mod compiled {
    super::idl!("../../tests/interop/idl/types.idl", define = ["TYPES_ONLY"], no_warnings);
}
mod interpreted {
    super::idl!("../../tests/interop/idl/types.idl", define = ["TYPES_ONLY"], no_warnings, interpretive);
}
mod adaptive {
    super::idl!(
        "../../tests/interop/idl/types.idl",
        define = ["TYPES_ONLY"],
        no_warnings,
        adaptive("Interop::*", uses = 1),
        uses = "all_uses"
    );
}

/// What types.idl has none of.
macro_rules! more {
    ($($option:tt)*) => {
        super::idl! {
            $($option)*
            module More {
                interface Thing { };
                bitset Bits { bitfield<3> low; bitfield<5> high; };
                bitmask Flags { one, two };
                @zero_copy struct Sample { double value; long id; short flags; char c; octet o; };
                valuetype Node { public long number; public Node next; };
                valuetype Names sequence<string>;
                enum Color { red, green, blue };
                struct Empty { };
                struct Base { octet a; long long b; };
                struct Derived : Base { Color c; @optional string<3> d; };
                @range(min = 1, max = 9) typedef octet Digit;
                typedef long Far[40][2];
                typedef Color Colors[3];
                typedef sequence<Colors> ColorRows;
                typedef sequence<Far, 2> Fars;
                typedef string Words[300];
                typedef Derived Pairs[2][2];
                typedef sequence<boolean, 3> Truths;
                typedef sequence<Bits> ManyBits;
                union Choice switch (octet) {
                    case 1: Sample sample;
                    case 2: case 3: Pairs pairs;
                    case 4: Bits bits;
                    case 200: Far far;
                };
                union Wide switch (wchar) { case 'a': any thing; default: wstring text; };
                union Full switch (boolean) { case TRUE: Thing yes; case FALSE: Node no; };
                union Long switch (unsigned long long) { case 18446744073709551615: octet most; };
                struct All {
                    any free;
                    CORBA::TypeCode code;
                    Object object;
                    Thing thing;
                    Node node;
                    Names names;
                    map<string, Color, 5> by_name;
                    map<short, Derived> others;
                    Bits bits;
                    Flags flags;
                    ManyBits many;
                    Sample sample;
                    sequence<Sample> samples;
                    Digit digit;
                    long double precise;
                    @optional Derived maybe;
                    @optional Thing maybe_thing;
                    Fars fars;
                    ColorRows rows;
                    Words words;
                    Truths truths;
                    int8 tiny;
                    wstring<4> wide;
                };
                exception Odd { Choice choice; Derived derived; };
            };
        }
    };
}
mod more_compiled {
    more!();
}
mod more_interpreted {
    more!(interpretive;);
}

/// Generates the bytes of pseudo-random values of a type.
struct Source {
    state: u64,
    /// Elements that sequences have at most.
    most: u64,
}

impl Source {
    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn text(&mut self, bound: u32) -> String {
        let most = if bound == 0 { 9 } else { u64::from(bound) + 1 };
        let len = self.next() % most;
        (0..len).map(|_| char::from(b'a' + (self.next() % 26) as u8)).collect()
    }

    fn value(&mut self, code: &TypeCode, e: &mut Encoder, depth: usize) {
        match code.kind() {
            TcKind::Alias => self.value(&code.content_type().unwrap(), e, depth),
            TcKind::Boolean => e.put_bool(self.next() & 1 == 1),
            TcKind::Char => e.put_u8(b'a' + (self.next() % 26) as u8),
            TcKind::Octet => e.put_u8(1 + (self.next() % 9) as u8),
            TcKind::Short | TcKind::UShort => e.put_u16(self.next() as u16),
            TcKind::Long | TcKind::ULong => e.put_u32(self.next() as u32),
            TcKind::LongLong | TcKind::ULongLong => e.put_u64(self.next()),
            // No NaN: it is not equal to itself.
            TcKind::Float => e.put_f32((self.next() % 1000) as f32),
            TcKind::Double => e.put_f64((self.next() % 1000) as f64),
            TcKind::LongDouble => {
                let zero = zorb::LongDouble::from_bits(0);
                zero.encode(e).unwrap();
            }
            TcKind::WChar => zorb::WChar(u16::from(b'a')).encode(e).unwrap(),
            TcKind::String => {
                let text = self.text(code.length().unwrap());
                text.encode(e).unwrap();
            }
            TcKind::WString => {
                let text = self.text(code.length().unwrap());
                zorb::WString::from(&*text).encode(e).unwrap();
            }
            TcKind::Enum => {
                let count = code.member_count().unwrap() as u64;
                e.put_u32((self.next() % count) as u32);
            }
            TcKind::Fixed => {
                let width = usize::from(code.fixed_digits().unwrap()) / 2 + 1;
                let octets = vec![0; width - 1];
                e.put_raw(&octets);
                e.put_u8(0x5C);
            }
            TcKind::Struct | TcKind::Except => {
                for index in 0..code.member_count().unwrap() {
                    self.value(&code.member_type(index).unwrap(), e, depth);
                }
            }
            TcKind::Union => {
                let row = self.next() as usize % code.member_count().unwrap();
                let label = code.member_discriminator(row).unwrap();
                let bits = label.unwrap_or(77);
                let mut disc = code.discriminator_type().unwrap();
                while disc.kind() == TcKind::Alias {
                    disc = disc.content_type().unwrap();
                }
                match disc.kind() {
                    TcKind::Boolean | TcKind::Char | TcKind::Octet => e.put_u8(bits as u8),
                    TcKind::Short | TcKind::UShort => e.put_u16(bits as u16),
                    TcKind::LongLong | TcKind::ULongLong => e.put_u64(bits as u64),
                    TcKind::WChar => zorb::WChar(bits as u16).encode(e).unwrap(),
                    _ => e.put_u32(bits as u32),
                }
                self.value(&code.member_type(row).unwrap(), e, depth);
            }
            TcKind::Sequence => {
                let bound = u64::from(code.length().unwrap());
                let most = if bound == 0 { self.most } else { self.most.min(bound) };
                let count = if depth > 3 { 0 } else { self.next() % (most + 1) };
                e.put_u32(count as u32);
                let element = code.content_type().unwrap();
                (0..count).for_each(|_| self.value(&element, e, depth + 1));
            }
            TcKind::Array => {
                let element = code.content_type().unwrap();
                (0..code.length().unwrap()).for_each(|_| self.value(&element, e, depth));
            }
            TcKind::Any => zorb::Any::new(7_i32).unwrap().encode(e).unwrap(),
            TcKind::TypeCode => <i32 as Typed>::type_code().encode(e).unwrap(),
            TcKind::ObjRef => giop_codec::ior::Ior::nil().encode(e).unwrap(),
            TcKind::Value | TcKind::ValueBox => e.put_u32(0),
            kind => panic!("no values of {kind:?}"),
        }
    }
}

/// Checks that compiled code and the interpreter give the same bytes for a value, and the same results for
/// bytes that are cut or changed.
fn same<C, I>(name: &str)
where
    C: CdrEncode + CdrDecode + Typed + Debug,
    I: CdrEncode + CdrDecode + Typed + Debug,
{
    assert_eq!(C::type_code(), I::type_code());
    assert_eq!(C::MIN_SIZE, I::MIN_SIZE, "{name}");
    let mut source = Source { state: 0x2545_F491_4F6C_DD1D, most: 3 };
    for round in 0..6 {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let phase = 5 * round % 8;
            let mut e = Encoder::new(order, Version::V1_2);
            e.put_raw(&[9; 8][..phase]);
            source.value(&C::type_code(), &mut e, 0);
            let octets = e.into_bytes();
            fn at(octets: &bytes::Bytes, order: ByteOrder, phase: usize) -> Decoder<'_> {
                Decoder::from_bytes(octets, order, Version::V1_2).at(phase)
            }
            let mut d = at(&octets, order, phase);
            let compiled = C::decode(&mut d).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(d.remaining(), 0);
            let mut d = at(&octets, order, phase);
            let interpreted = I::decode(&mut d).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(d.remaining(), 0);
            assert_eq!(format!("{compiled:?}"), format!("{interpreted:?}"), "{name}");
            let encoded = |value: &dyn Fn(&mut Encoder)| {
                let mut e = Encoder::new(order, Version::V1_2);
                e.put_raw(&[9; 8][..phase]);
                value(&mut e);
                e.into_bytes()
            };
            let expected = encoded(&|e| compiled.encode(e).unwrap());
            assert_eq!(expected, encoded(&|e| interpreted.encode(e).unwrap()), "{name}");
            let two = (0..2).map(|_| C::decode(&mut at(&octets, order, phase)).unwrap()).collect::<Vec<_>>();
            let others =
                (0..2).map(|_| I::decode(&mut at(&octets, order, phase)).unwrap()).collect::<Vec<_>>();
            let row = encoded(&|e| C::encode_slice(&two, e).unwrap());
            assert_eq!(row, encoded(&|e| I::encode_slice(&others, e).unwrap()), "{name}");
            let (mut c, mut i) = (at(&row, order, phase), at(&row, order, phase));
            let (c, i) = (C::decode_array::<2>(&mut c).unwrap(), I::decode_array::<2>(&mut i).unwrap());
            assert_eq!(format!("{c:?}"), format!("{i:?}"), "{name}");

            let verdict = |octets: &bytes::Bytes, what: &str| {
                let mut c = at(octets, order, phase);
                let mut i = at(octets, order, phase);
                let (one, other) = (C::decode(&mut c), I::decode(&mut i));
                match (one, other) {
                    (Ok(one), Ok(other)) => {
                        assert_eq!(format!("{one:?}"), format!("{other:?}"), "{name}: {what}");
                        assert_eq!(c.remaining(), i.remaining(), "{name}: {what}");
                    }
                    (Err(one), Err(other)) => {
                        // The interpreter first checks that a value of fixed layout is complete, and then its
                        // contents. The type code may also know that an element takes more bytes than the
                        // Rust type says.
                        let missing = [DecodeErrorKind::EndOfData, DecodeErrorKind::LengthBeyondData];
                        let alike = one.kind == other.kind || missing.contains(&one.kind);
                        assert!(alike, "{name}: {what}: {one} {other}");
                    }
                    (one, other) => panic!("{name}: {what}: {one:?} {other:?}"),
                }
            };
            let step = 1 + octets.len() / 60;
            for cut in (phase..octets.len()).step_by(step) {
                verdict(&octets.slice(..cut), "cut");
                for change in [0xFF, 0x01, 0x80] {
                    let mut changed = octets.to_vec();
                    changed[cut] ^= change;
                    verdict(&changed.into(), "changed");
                }
            }
        }
    }
}

macro_rules! both {
    ($compiled:path, $interpreted:path: $($name:ident)*) => {{
        use $compiled as c;
        use $interpreted as i;
        $(same::<c::$name, i::$name>(stringify!($name));)*
    }};
}

macro_rules! all_types {
    ($other:path) => {
        both!(compiled::interop, $other:
            Color Small Tiny Stamp Paint Text Code Money Part Huge ShortSeq UShortSeq LongSeq ULongSeq
            LongLongSeq ULongLongSeq OctetSeq BooleanSeq CharSeq WCharSeq FloatSeq DoubleSeq StringSeq WStringSeq
            ColorSeq LongSeqSeq FewLongs FewOctets FewCodes MoneySeq Point Mixed Bill Person PointSeq MixedSeq
            PersonSeq Team Caption Tree TreeSeq Place Squad LongArray OctetArray Matrix PointArray StringArray
            PersonGrid SeqArray MatrixSeq BigArray Triple PartArray ByLong ByColor AllColors ByBoolean Maybe ByChar
            ByShort ByUShort ByULong ByLongLong ByULongLong WideChoice ByLongSeq Variant Wrapped Plain Detailed
            Nested NodeSeq NodePair NodeOrText)
    };
}

#[test]
fn every_type_is_interpreted_to_the_octets_of_compiled_code() {
    all_types!(interpreted::interop);
    both!(compiled::interop::names, interpreted::interop::names: Result Option Words);
}

#[test]
fn adaptive_types_have_the_same_octets_before_and_after_they_are_compiled() {
    all_types!(adaptive::interop);
}

#[test]
fn what_is_no_plain_struct_is_interpreted_as_well() {
    both!(more_compiled::more, more_interpreted::more:
        Color Empty Base Derived Far Colors ColorRows Fars Words Pairs Truths ManyBits Choice Wide
        Full Long All Odd);
}

idl! {
    uses = "shop_uses";

    module Shop {
        @adaptive(uses = 5) struct Item { string name; long price; };
        @adaptive(3) enum Colour { red, green };
        @interpretive struct Kept { Item first; Colour colour; };
        @adaptive(uses = 2) union Either switch (long) { case 1: Item item; case 2: case 3: string text; };
        typedef sequence<Item> Items;
    };
}

fn encoded(value: &impl CdrEncode) -> Vec<u8> {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    value.encode(&mut e).unwrap();
    e.into_bytes().to_vec()
}

fn decoded<T: CdrDecode>(octets: &[u8]) -> T {
    T::decode(&mut Decoder::new(octets, ByteOrder::Big, Version::V1_2)).unwrap()
}

#[test]
fn an_adaptive_type_counts_its_uses_until_it_is_compiled() {
    let uses = shop::Item::uses();
    assert_eq!((uses.name(), uses.count(), uses.limit()), ("Shop::Item", 0, 5));
    let item = shop::Item { name: "tea".to_owned(), price: 3 };
    let octets = encoded(&item);
    assert_eq!(decoded::<shop::Item>(&octets), item);
    assert_eq!(uses.count(), 2);
    // As a member, and each as an element.
    let kept = shop::Kept { first: item.clone(), colour: shop::Colour::Green };
    let whole = encoded(&kept);
    assert_eq!((uses.count(), shop::Colour::uses().count()), (3, 1));
    assert!(!uses.is_compiled());
    let items = vec![item.clone(), item.clone()];
    let many = encoded(&items);
    assert_eq!(uses.count(), 5);
    assert!(uses.is_compiled());
    // The same from now on, by the other code, and nothing is counted.
    assert_eq!(encoded(&item), octets);
    assert_eq!(encoded(&items), many);
    assert_eq!(encoded(&kept), whole);
    assert_eq!(decoded::<shop::Kept>(&whole), kept);
    assert_eq!(decoded::<shop::Items>(&many), items);
    assert_eq!(uses.count(), 5);
    let all: Vec<&str> = shop_uses().into_iter().map(|uses| uses.name()).collect();
    assert_eq!(all, ["Shop::Item", "Shop::Colour", "Shop::Either"]);
}

#[test]
fn a_label_of_another_case_is_refused_before_and_after() {
    for _ in 0..4 {
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        let error = shop::Either::Text(1, "no".to_owned()).encode(&mut e).unwrap_err();
        assert_eq!(error.kind, EncodeErrorKind::IllegalDiscriminator);
        assert_eq!(encoded(&shop::Either::Text(3, "x".to_owned())), [0, 0, 0, 3, 0, 0, 0, 2, b'x', 0]);
    }
    assert!(shop::Either::uses().is_compiled());
}

#[test]
fn all_adaptive_types_are_listed_in_the_order_of_the_idl() {
    let all = adaptive::all_uses();
    assert_eq!(all.first().map(|uses| uses.name()), Some("Interop::Color"));
    assert_eq!(all.last().map(|uses| uses.name()), Some("Interop::Names::Words"));
    assert!(all.iter().all(|uses| uses.limit() == 1));
}

mod calls {
    super::idl! {
        struct Part { string name; double weight; };
        typedef sequence<Part> Parts;
        typedef sequence<Part, 2> FewParts;
        typedef Part Pair[2];
        struct Whole { Parts parts; Pair pair; };
        exception Broken { Part what; };

        @interpretive
        interface Shelf {
            Whole put(in Part one, in Parts some, in FewParts few, in Pair pair, inout Whole whole, out Parts all)
                raises (Broken);
            long plain(in string text, in long number);
        };
        interface Rack : Shelf { Part last(); };
    }
}

struct Shelf;

impl calls::ShelfServant for Shelf {
    async fn put(
        &self,
        one: &calls::Part,
        some: &[calls::Part],
        few: &[calls::Part],
        pair: &[calls::Part; 2],
        whole: calls::Whole,
    ) -> Result<(calls::Whole, calls::Whole, calls::Parts), calls::shelf::PutError> {
        if one.weight < 0.0 {
            return Err(calls::Broken { what: one.clone() }.into());
        }
        let parts = some.iter().chain(few).cloned().collect();
        Ok((calls::Whole { parts, pair: pair.clone() }, whole, vec![one.clone()]))
    }

    async fn plain(&self, text: &str, number: i32) -> Result<i32, SystemException> {
        Ok(number + text.len() as i32)
    }
}

impl calls::RackServant for Shelf {
    async fn last(&self) -> Result<calls::Part, SystemException> {
        Ok(calls::Part::default())
    }
}

#[test]
fn calls_of_an_interpretive_interface_bring_what_others_do() {
    let part = |name: &str, weight| calls::Part { name: name.to_owned(), weight };
    let pair = [part("c", 1.0), part("d", 2.0)];
    let whole = calls::Whole { parts: vec![part("e", 0.5)], pair: pair.clone() };
    let shelf: calls::ShelfRef = activate(Shelf);
    let rack: calls::RackRef = activate(Shelf);
    for negative in [false, true] {
        let one = part("a", if negative { -1.0 } else { 1.0 });
        let (some, few) = ([part("x", 3.0)], [part("y", 4.0), part("z", 5.0)]);
        let answers = [
            run(shelf.put(&one, &some, &few, &pair, whole.clone())),
            run(rack.put(&one, &some, &few, &pair, whole.clone())),
        ];
        for answer in answers {
            match answer {
                Ok((found, same, all)) => {
                    assert_eq!(found.parts, [some.as_slice(), few.as_slice()].concat());
                    assert_eq!((found.pair, same, all), (pair.clone(), whole.clone(), vec![one.clone()]));
                    assert!(!negative);
                }
                Err(calls::shelf::PutError::Broken(broken)) => assert_eq!(broken.what, one),
                Err(other) => panic!("{other}"),
            }
        }
    }
    let few = [part("1", 1.0), part("2", 2.0), part("3", 3.0)];
    assert!(run(shelf.put(&part("a", 1.0), &[], &few, &pair, whole)).is_err());
    assert_eq!(run(shelf.plain("four", 3)).unwrap(), 7);
    assert_eq!(run(rack.last()).unwrap(), calls::Part::default());
}

#[test]
fn a_value_may_be_in_fragments_that_are_aligned_by_themselves() {
    let members: [fn(&mut Encoder); 11] = [
        |e| e.put_u8(1),
        |e| e.put_f64(2.0),
        |e| e.put_i16(3),
        |e| e.put_i64(4),
        |e| e.put_u8(b'c'),
        |e| e.put_bool(true),
        |e| e.put_f32(5.0),
        |e| e.put_u16(6),
        |e| e.put_u32(7),
        |e| e.put_u64(8),
        |e| e.put_u8(9),
    ];
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for joint in 1..members.len() {
            // Values after a joint are aligned as after a header of twelve bytes.
            let mut first = Encoder::new(order, Version::V1_1);
            let mut second = Encoder::new_at(order, Version::V1_1, 4);
            members[..joint].iter().for_each(|put| put(&mut first));
            members[joint..].iter().for_each(|put| put(&mut second));
            let first = first.into_bytes();
            let (starts, octets) = ([first.len() as u32], [first, second.into_bytes()].concat());
            let decoder = || Decoder::new(&octets, order, Version::V1_1).with_fragments(&starts);
            let compiled = compiled::interop::Mixed::decode(&mut decoder()).unwrap();
            let interpreted = interpreted::interop::Mixed::decode(&mut decoder()).unwrap();
            assert_eq!(format!("{compiled:?}"), format!("{interpreted:?}"), "joint {joint}");
            assert_eq!((interpreted.total, interpreted.stamp, interpreted.tail), (4, 8, 9));
        }
    }
}

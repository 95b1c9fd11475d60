//! What IDL types become, and that their values survive the wire in both byte orders.

use std::fmt::Debug;

use crate::raw;
use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder, FixedLayout};
use giop_codec::{ByteOrder, DecodeErrorKind, EncodeErrorKind, Version};
use idl_macros::idl;
use zorb::{Bounded, Char, FixedSeq, LongDouble, Seq, SystemException, WChar, WString};

idl! {
    module Types {
        /** Colours.
         *
         * ```
         * this is no Rust
         * ```
         */
        enum Color { RED, GREEN, brightBlue };

        struct BinStruct { short s; char c; long l; octet o; double d; };
        typedef sequence<BinStruct> BinStructs;

        struct Scalars {
            boolean b; octet o; int8 i8; uint8 u8; short i16; unsigned short u16; long i32; unsigned long u32;
            long long i64; unsigned long long u64; float f32; double f64; long double f128; char c; wchar w;
        };

        typedef long Row[3];
        typedef Row Matrix[2];
        typedef string<4> Code;

        struct Text { string s; wstring w; Code code; wstring<2> wide; };
        struct Sequences {
            sequence<octet> octets; sequence<octet, 3> few_octets;
            sequence<long> longs; sequence<double, 2> doubles; sequence<char> chars; sequence<long double> wides;
            sequence<boolean> flags; sequence<wchar> letters; sequence<Color> colors; sequence<string, 2> names;
            sequence<Row> rows; sequence<sequence<short> > nested;
        };
        struct Arrays {
            Matrix m; boolean flags[2]; string names[2][2]; Color colors[2]; long small[1024]; long large[1025];
            double grid[100][100]; string many[200]; boolean bits[5000];
        };
        struct _Fixed { BinStruct one; Color c; BinStruct pair[2]; boolean flag; Matrix m; };
        struct Outer { struct Inner { long x; } first; sequence<Inner> more; };

        struct Node { long value; sequence<Node> children; };
        union Tree switch (long) { case 0: long leaf; case 1: sequence<Tree> branches; };

        union ByLong switch (long) { case 1: short a; case 2: case -3: string b; default: double c; };
        union ByBool switch (boolean) { case TRUE: long x; };
        union ByColor switch (Color) { case RED: long red; case GREEN: case brightBlue: string rest; };
        union ByChar switch (char) { case 'a': long a; case 'b': octet other; };
        union ByWChar switch (wchar) { case 'x': long x; };
        union ByOctet switch (octet) { case 255: long last; };
        union ByBig switch (unsigned long long) { case 18446744073709551615: long top; };
        union BySigned switch (long long) { case -9223372036854775808: long bottom; default: Color other; };
        union DefaultAndLabel switch (short) { case 1: long one; case 2: default: string many; };

        typedef Object Anything;
        interface Thing;
        struct Holder { Thing thing; Object _object; Anything anything; sequence<Thing> things; Thing pair[2]; };
        struct Sure { @non_nil Thing thing; @non_nil sequence<Thing> things; @non_nil Thing pair[2]; };
        interface Thing { };
        interface Echo { Holder hold(in Holder h); Sure sure(in Sure s); };

        const boolean YES = TRUE;
        const octet BYTE = 255;
        const short NEGATIVE = -32768;
        const long long LOWEST = -9223372036854775808;
        const unsigned long long HIGHEST = 18446744073709551615;
        const float THIRD = 0.333333343;
        const double PI = 3.14159265358979323;
        const double TINY = -1.5e-300;
        const double HUGE = 1e308;
        const long double LD = 1.5;
        const char LETTER = 'A';
        const wchar WIDE = 'x';
        const string GREETING = "hello \"world\"";
        const wstring WGREETING = "w";
        const Color FAVOURITE = GREEN;
        typedef unsigned short Port;
        const Port MINE = (1 << 15) + 7;

        @zero_copy struct Sample { double value; long id; short flags; char c; octet o; };
        @zero_copy struct Frame { Sample samples[2]; double scale[3]; };
        typedef sequence<Frame> Frames;

        exception Empty { };
        exception Full { string why; long code; sequence<octet> data; };
    };
}

use types::*;

/// Encodes and decodes in both byte orders, at each possible phase.
fn round_trip<T: CdrEncode + CdrDecode + PartialEq + Debug>(value: &T) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for phase in 0..8 {
            let mut e = Encoder::new(order, Version::V1_2);
            for octet in 0..phase {
                e.put_u8(octet);
            }
            value.encode(&mut e).unwrap();
            let start = phase.into();
            let octets = e.into_bytes();
            assert!(octets.len() - usize::from(phase) >= T::MIN_SIZE);
            let mut d = Decoder::from_bytes(&octets, order, Version::V1_2).at(start);
            assert_eq!(&T::decode(&mut d).unwrap(), value);
            assert_eq!(d.remaining(), 0);
            for cut in start..octets.len() {
                let cut = octets.slice(..cut);
                assert!(T::decode(&mut Decoder::from_bytes(&cut, order, Version::V1_2).at(start)).is_err());
            }
        }
    }
}

fn encoded(value: &impl CdrEncode) -> Result<Bytes, EncodeErrorKind> {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    value.encode(&mut e).map_err(|error| error.kind)?;
    Ok(e.into_bytes())
}

fn decoded<T: CdrDecode>(octets: &[u8]) -> Result<T, DecodeErrorKind> {
    T::decode(&mut Decoder::new(octets, ByteOrder::Big, Version::V1_2)).map_err(|error| error.kind)
}

fn bin(n: i16) -> BinStruct {
    BinStruct { s: n, c: Char(b'c'), l: 70_000, o: 9, d: 1.5 }
}

#[test]
fn basic_types_are_rusts_own() {
    let scalars = Scalars {
        b: true,
        o: 1_u8,
        i8: -1_i8,
        u8: 2_u8,
        i16: -3_i16,
        u16: 4_u16,
        i32: -5_i32,
        u32: 6_u32,
        i64: -7_i64,
        u64: 8_u64,
        f32: 9.5_f32,
        f64: -10.5_f64,
        f128: LongDouble::from(11.5),
        c: Char::try_from('é').unwrap(),
        w: WChar::try_from('€').unwrap(),
    };
    round_trip(&scalars);
    assert_eq!(Scalars::default().w, WChar(0));
}

#[test]
fn text_is_string_wstring_and_bounded() {
    let text = Text {
        s: String::from("hi"),
        w: WString::from("wide €"),
        code: Bounded::<String, 4>::try_from("abcd").unwrap(),
        wide: Bounded::<WString, 2>::try_from("ab").unwrap(),
    };
    round_trip(&text);
    assert!(Code::try_from("abcde").is_err());
    let long = encoded(&String::from("abcde")).unwrap();
    assert_eq!(decoded::<Code>(&long), Err(DecodeErrorKind::BoundExceeded));
}

#[test]
fn sequences_are_bytes_seq_or_vec() {
    let value = Sequences {
        octets: Bytes::from_static(b"abc"),
        few_octets: Bounded::<Bytes, 3>::try_from(Bytes::from_static(b"xyz")).unwrap(),
        longs: Seq::<i32>::from([1, -2]),
        doubles: Bounded::<Seq<f64>, 2>::try_from(Seq::from([0.5])).unwrap(),
        chars: Seq::<Char>::from([Char(b'a')]),
        wides: Seq::<LongDouble>::from([LongDouble::from(2.0)]),
        flags: Vec::<bool>::from([true, false]),
        letters: Vec::<WChar>::from([WChar(65)]),
        colors: Vec::<Color>::from([Color::Green]),
        names: Bounded::<Vec<String>, 2>::try_from(vec![String::from("n")]).unwrap(),
        rows: Vec::<[i32; 3]>::from([[1, 2, 3]]),
        nested: Vec::<Seq<i16>>::from([Seq::from([1_i16]), Seq::default()]),
    };
    round_trip(&value);
    assert_eq!(Sequences::default().longs.len(), 0);
}

#[test]
fn arrays_lie_in_place_up_to_4_kib_and_beyond_that_in_a_box_or_shared() {
    let mut value = Arrays {
        m: [[1, 2, 3], [4, 5, 6]],
        names: Default::default(),
        small: [7; 1024],
        large: FixedSeq::<i32, 1025>::from([8; 1025]),
        grid: FixedSeq::<[f64; 100], 100>::from(Box::new([[0.5; 100]; 100])),
        ..Arrays::default()
    };
    let many: &mut Box<[String; 200]> = &mut value.many;
    many[199] = String::from("last");
    let bits: &mut Box<[bool; 5000]> = &mut value.bits;
    bits[4999] = true;
    let mut e = Encoder::new(ByteOrder::Little, Version::V1_2);
    value.encode(&mut e).unwrap();
    let octets = e.into_bytes();
    let mut d = Decoder::from_bytes(&octets, ByteOrder::Little, Version::V1_2);
    assert_eq!(Arrays::decode(&mut d).unwrap(), value);
    assert_eq!(d.remaining(), 0);
}

#[test]
fn structs_of_fixed_layout_are_encoded_in_one_pass_and_have_the_octets_of_their_members() {
    fn is_fixed<T: FixedLayout>(_: &T) {}
    let value =
        Fixed { one: bin(1), c: Color::BrightBlue, pair: [bin(2), bin(3)], flag: true, m: [[1; 3]; 2] };
    is_fixed(&value);
    round_trip(&value);
    // The capture of omniORB in the protocol notes: two elements, the first at phase 4.
    let item = BinStruct { s: 0x0102, c: Char(b'c'), l: 0x0304_0506, o: 7, d: 0.0 };
    let octets = encoded(&BinStructs::from([item.clone(), item])).unwrap();
    let mut expected = vec![0, 0, 0, 2, 1, 2, b'c', 0, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    expected.extend_from_slice(&[1, 2, b'c', 0, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(octets, expected);
    round_trip(&BinStructs::from([bin(1), bin(2), bin(3)]));
}

#[test]
fn zero_copy_structs_are_sent_from_memory_and_used_where_they_were_received() {
    let sample = |id| Sample { value: 0.5, id, flags: -1, c: Char(b'c'), o: 9 };
    let frames = Frames::from(vec![Frame { samples: [sample(1), sample(2)], scale: [1.0, 2.0, 3.0] }; 3]);
    let seq: &Seq<Frame> = &frames;
    assert_eq!((size_of::<Sample>(), size_of::<Frame>(), seq.as_bytes().len()), (16, 56, 168));
    round_trip(&frames);
    round_trip(&frames[0]);
    // Native order, first element at an aligned address: the value is a view of the message.
    let mut e = Encoder::new(ByteOrder::NATIVE, Version::V1_2);
    e.put_u32(0);
    frames.encode(&mut e).unwrap();
    let octets = Bytes::from_owner(Seq::<u64>::from_iter(as_words(&e.into_bytes())).bytes());
    let mut d = Decoder::from_bytes(&octets, ByteOrder::NATIVE, Version::V1_2).at(4);
    let view = Frames::decode(&mut d).unwrap();
    assert_eq!(view, frames);
    assert_eq!(view.as_bytes().as_ptr(), octets[8..].as_ptr());
}

/// Copies the bytes into words, so that they have an aligned address.
fn as_words(octets: &[u8]) -> Vec<u64> {
    octets.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn nested_types_live_in_the_module_of_their_struct() {
    round_trip(&Outer { first: outer::Inner { x: 1 }, more: vec![outer::Inner { x: 2 }] });
}

#[test]
fn enums_are_copy_and_ordered_and_reject_ordinals_that_do_not_exist() {
    round_trip(&Color::BrightBlue);
    round_trip(&vec![Color::Red, Color::Green]);
    let copied = Color::Green;
    assert!(copied > Color::Red && copied as u32 == 1 && Color::default() == Color::Red);
    assert_eq!(decoded::<Color>(&[0, 0, 0, 3]), Err(DecodeErrorKind::InvalidEnum));
    assert_eq!(size_of::<Color>(), 4);
}

#[test]
fn unions_are_enums_by_their_labels() {
    round_trip(&ByLong::A(5));
    round_trip(&ByLong::B(-3, String::from("x")));
    round_trip(&ByLong::C(9, 1.5));
    round_trip(&ByBool::X(5));
    round_trip(&ByBool::Other(false));
    round_trip(&ByColor::Red(1));
    round_trip(&ByColor::Rest(Color::BrightBlue, String::from("r")));
    round_trip(&ByChar::A(1));
    round_trip(&ByWChar::Other(WChar(0x20ac)));
    round_trip(&ByOctet::Last(3));
    round_trip(&ByBig::Top(3));
    round_trip(&BySigned::Bottom(3));
    round_trip(&BySigned::Other(7, Color::Green));
    round_trip(&DefaultAndLabel::Many(2, String::from("two")));
    round_trip(&DefaultAndLabel::Many(3, String::from("three")));
    assert_eq!(encoded(&ByLong::B(3 - 6, String::from("x"))).unwrap()[..4], (-3_i32).to_be_bytes());
    assert_eq!(ByLong::A(0).discriminator(), 1);
    assert_eq!(ByLong::C(9, 0.0).discriminator(), 9);
    assert_eq!(ByChar::Other(98_u8).discriminator(), Char(b'b'));
}

#[test]
fn an_idl_member_named_other_keeps_its_name_and_the_implicit_default_gives_way() {
    round_trip(&ByChar::Other(9));
    round_trip(&ByChar::Other_(Char(b'z')));
}

#[test]
fn the_default_of_a_union_is_its_first_case() {
    assert_eq!(ByLong::default(), ByLong::A(0));
    assert_eq!(ByColor::default(), ByColor::Red(0));
    assert_eq!(DefaultAndLabel::default(), DefaultAndLabel::One(0));
}

#[test]
fn a_discriminator_that_belongs_to_another_member_is_refused() {
    let illegal = Err(EncodeErrorKind::IllegalDiscriminator);
    assert_eq!(encoded(&ByLong::B(1, String::new())), illegal);
    assert_eq!(encoded(&ByLong::C(2, 0.0)), illegal);
    assert_eq!(encoded(&ByBool::Other(true)), illegal);
    assert_eq!(encoded(&ByColor::Rest(Color::Red, String::new())), illegal);
    assert_eq!(encoded(&DefaultAndLabel::Many(1, String::new())), illegal);
}

#[test]
fn recursion_goes_through_vectors_and_is_refused_beyond_the_limit() {
    let chain =
        |depth: usize| (0..depth).fold(Node::default(), |node, _| Node { value: 1, children: vec![node] });
    round_trip(&chain(10));
    let deep = encoded(&chain(300)).unwrap();
    assert_eq!(decoded::<Node>(&deep), Err(DecodeErrorKind::DepthLimit));
    let tree = |depth: usize| (0..depth).fold(Tree::Leaf(1), |tree, _| Tree::Branches(vec![tree]));
    round_trip(&tree(5));
    let deep = encoded(&tree(300)).unwrap();
    assert_eq!(decoded::<Tree>(&deep), Err(DecodeErrorKind::DepthLimit));
}

#[test]
fn references_are_optional_unless_they_are_never_nil() {
    let nil = Holder::default();
    assert!(
        nil.thing.is_none() && nil.object.is_none() && nil.anything.is_none() && nil.pair == [None, None]
    );
    round_trip(&nil);
    let thing: ThingRef = crate::orbs::activate(Servant);
    let echo: EchoRef = crate::orbs::activate(Servant);
    let holder = Holder {
        thing: Some(thing.clone()),
        object: Some(thing.clone().into()),
        anything: Some((&thing).into()),
        things: vec![None, Some(thing.clone())],
        pair: [None, Some(thing.clone())],
    };
    raw::round_trip(&echo, "hold", &holder);
    let sure = Sure { thing: thing.clone(), things: vec![thing.clone()], pair: [thing.clone(), thing] };
    raw::round_trip(&echo, "sure", &sure);
    assert_eq!(decoded::<Sure>(&[0; 12]), Err(DecodeErrorKind::NilReference));
}

struct Servant;

impl ThingServant for Servant {}

impl EchoServant for Servant {
    async fn hold(&self, h: &Holder) -> Result<Holder, SystemException> {
        Ok(h.clone())
    }

    async fn sure(&self, s: &Sure) -> Result<Sure, SystemException> {
        Ok(s.clone())
    }
}

#[test]
fn what_holds_no_float_can_be_hashed() {
    fn hashable<T: Eq + std::hash::Hash>() {}
    hashable::<Text>();
    hashable::<Holder>();
    hashable::<Node>();
    hashable::<ByColor>();
    hashable::<Full>();
    hashable::<ThingRef>();
}

#[test]
fn constants_keep_their_values_and_types() {
    const { assert!(YES && BYTE == 255_u8 && NEGATIVE == i16::MIN && MINE == 32_775_u16) };
    assert_eq!((LOWEST, HIGHEST), (i64::MIN, u64::MAX));
    assert_eq!((THIRD, TINY, HUGE, PI), (1.0 / 3.0, -1.5e-300, 1e308, std::f64::consts::PI));
    assert_eq!(LD, LongDouble::from(1.5));
    assert_eq!((LETTER, WIDE), (Char(b'A'), WChar(0x78)));
    let texts: (&'static str, &'static str) = (GREETING, WGREETING);
    assert_eq!(texts, ("hello \"world\"", "w"));
    assert_eq!(FAVOURITE, Color::Green);
}

#[test]
fn exceptions_are_errors_and_an_empty_one_is_a_unit() {
    let error: Box<dyn std::error::Error + Send + Sync> = Box::new(Empty);
    assert_eq!(error.to_string(), "Types::Empty");
    let full = Full { why: String::from("w"), code: 1, data: Bytes::new() };
    assert_eq!(full.to_string(), "Types::Full: why \"w\", code 1, data b\"\"");
    round_trip(&full);
    assert_eq!(encoded(&Empty).unwrap().len(), 0);
    assert_eq!(decoded(&[]), Ok(Empty {}));
}

//! Encodings captured from omniORB: encoded, decoded, and truncated at every length.

use crate::cdr_types::{
    Bad, BinStruct, Colour, ORDERS, U, V, check, check_truncations, decoded, encoded, hex,
};
use bytes::Bytes;
use giop_codec::ByteOrder::{self, Big, Little};
use giop_codec::cdr::{CdrDecode, CdrEncode, Char, Decoder, Encoder, Seq, WChar, WString};
use giop_codec::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// One value of every primitive type.
#[derive(Debug, PartialEq)]
struct Prims {
    a: u8,
    b: i16,
    c: u8,
    d: i32,
    e: u8,
    f: i64,
    g: u8,
    h: f64,
    i: f32,
    j: bool,
    k: Char,
}

impl CdrEncode for Prims {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u8(self.a);
        e.put_i16(self.b);
        e.put_u8(self.c);
        e.put_i32(self.d);
        e.put_u8(self.e);
        e.put_i64(self.f);
        e.put_u8(self.g);
        e.put_f64(self.h);
        e.put_f32(self.i);
        e.put_bool(self.j);
        self.k.encode(e)
    }
}

impl CdrDecode for Prims {
    const MIN_SIZE: usize = 33;

    fn decode(d: &mut Decoder<'_>) -> Result<Prims, DecodeError> {
        Ok(Prims {
            a: d.read_u8()?,
            b: d.read_i16()?,
            c: d.read_u8()?,
            d: d.read_i32()?,
            e: d.read_u8()?,
            f: d.read_i64()?,
            g: d.read_u8()?,
            h: d.read_f64()?,
            i: d.read_f32()?,
            j: d.read_bool()?,
            k: Char::decode(d)?,
        })
    }
}

#[test]
fn primitives_are_aligned_to_their_size() {
    let prims = Prims {
        a: 1,
        b: 0x0203,
        c: 4,
        d: 0x0506_0708,
        e: 9,
        f: 0x0a0b_0c0d_0e0f_1011,
        g: 7,
        h: 1.5,
        i: 1.5,
        j: true,
        k: Char(b'A'),
    };
    check(
        &prims,
        Big,
        0,
        "010002030400000005060708090000000a0b0c0d0e0f101107000000000000003ff80000000000003fc000000141",
    );
    check(
        &prims,
        Little,
        0,
        "0100030204000000080706050900000011100f0e0d0c0b0a0700000000000000000000000000f83f0000c03f0141",
    );
}

#[test]
fn strings_count_their_nul() {
    check(&String::new(), Big, 0, "0000000100");
    check(&String::new(), Little, 0, "0100000000");
    check(&"hi".to_string(), Big, 0, "00000003686900");
    check(&"hi".to_string(), Little, 0, "03000000686900");
}

#[test]
fn a_string_of_length_zero_is_empty() {
    for order in ORDERS {
        assert_eq!(decoded(&[0; 4], order, 0), Ok(String::new()));
    }
}

#[test]
fn a_string_without_nul_is_refused() {
    let error = decoded::<String>(&hex("00000003686921"), Big, 0);
    assert_eq!(error, Err(DecodeError::new(DecodeErrorKind::StringNotTerminated, 4)));
    let error = decoded::<String>(&hex("00000003680000"), Big, 0);
    assert_eq!(error, Err(DecodeError::new(DecodeErrorKind::EmbeddedNul, 4)));
}

#[test]
fn sequences_count_their_elements() {
    let strings = vec!["a".to_string(), "bcd".to_string()];
    check(&strings, Big, 0, "0000000200000002610000000000000462636400");
    check(&strings, Little, 0, "0200000002000000610000000400000062636400");
    let doubles = Seq::from([1.5]);
    check(&doubles, Big, 0, "00000001000000003ff8000000000000");
    check(&doubles, Little, 0, "0100000000000000000000000000f83f");
    check(&vec![1.5], Big, 4, "000000013ff8000000000000");
    check(&Bytes::from_static(b"\x01\x02"), Big, 0, "000000020102");
    check(&Bytes::from_static(b"\x01\x02"), Little, 0, "020000000102");
}

#[test]
fn an_empty_sequence_of_doubles_takes_no_padding() {
    for order in ORDERS {
        let mut e = Encoder::new(order, giop_codec::Version::V1_2);
        Seq::<f64>::default().encode(&mut e).unwrap();
        Vec::<f64>::new().encode(&mut e).unwrap();
        Vec::<BinStruct>::new().encode(&mut e).unwrap();
        e.put_u8(0xEE);
        let octets = e.into_bytes();
        assert_eq!(octets, hex("000000000000000000000000ee"));
        let mut d = Decoder::from_bytes(&octets, order, giop_codec::Version::V1_2);
        assert!(Seq::<f64>::decode(&mut d).unwrap().is_empty());
        assert!(Vec::<f64>::decode(&mut d).unwrap().is_empty());
        assert!(Vec::<BinStruct>::decode(&mut d).unwrap().is_empty());
        assert_eq!(d.read_u8(), Ok(0xEE));
    }
}

#[test]
fn an_enum_is_its_ordinal() {
    check(&Colour::Blue, Big, 0, "00000002");
    check(&Colour::Blue, Little, 0, "02000000");
    let error = decoded::<Colour>(&hex("00000003"), Big, 0).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::InvalidEnum);
    let error = decoded::<Vec<Colour>>(&hex("00000002 00000001 00000003"), Big, 0).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::InvalidEnum);
}

#[test]
fn an_exception_is_its_id_and_members() {
    let bad = Bad { why: "no".into(), code: 7 };
    check(&bad, Big, 0, "0000000e49444c3a542f4261643a312e30000000000000036e6f000000000007");
    check(&bad, Little, 0, "0e00000049444c3a542f4261643a312e30000000030000006e6f000007000000");
}

#[test]
fn the_first_struct_of_a_sequence_has_its_own_phase() {
    let bins = vec![BinStruct { s: 0x0102, c: Char(b'c'), l: 0x0304_0506, o: 7, d: 1.5 }; 2];
    check(
        &bins,
        Big,
        0,
        "000000020102630003040506070000003ff8000000000000010263000304050607000000000000003ff8000000000000",
    );
    check(
        &bins,
        Big,
        4,
        "00000002010263000304050607000000000000003ff8000000000000010263000304050607000000000000003ff8000000000000",
    );
    check(
        &bins,
        Little,
        0,
        "02000000020163000605040307000000000000000000f83f02016300060504030700000000000000000000000000f83f",
    );
    check(
        &bins,
        Little,
        4,
        "0200000002016300060504030700000000000000000000000000f83f02016300060504030700000000000000000000000000f83f",
    );
}

#[test]
fn a_union_is_its_discriminator_and_at_most_one_member() {
    check(&U::A(0x0102), Big, 0, "000000010102");
    check(&U::A(0x0102), Little, 0, "010000000201");
    check(&U::B(3, "x".into()), Big, 0, "00000003000000027800");
    check(&U::B(3, "x".into()), Little, 0, "03000000020000007800");
    check(&U::C(9, 1.5), Big, 0, "00000009000000003ff8000000000000");
    check(&U::C(9, 1.5), Little, 0, "0900000000000000000000000000f83f");
    check(&V::X(5), Big, 0, "0100000000000005");
    check(&V::X(5), Little, 0, "0100000005000000");
    check(&V::Other(false), Big, 0, "00");
}

#[test]
fn a_discriminator_of_another_member_is_not_sent() {
    for (union, order) in [(U::B(1, String::new()), Big), (U::C(2, 0.0), Little)] {
        let mut e = Encoder::new(order, giop_codec::Version::V1_2);
        assert_eq!(union.encode(&mut e), Err(EncodeErrorKind::IllegalDiscriminator.into()));
    }
}

#[test]
fn wide_text_as_omniorb_sends_it_is_understood() {
    let wide: [(ByteOrder, &str, &str); 4] = [
        (Little, "06000000fffe41004200", "AB"),
        (Big, "00000006fffe41004200", "AB"),
        (Little, "04000000fffeac20", "\u{20ac}"),
        (Little, "00000000", ""),
    ];
    for (order, octets, text) in wide {
        assert_eq!(decoded::<WString>(&hex(octets), order, 0).unwrap(), text);
        check_truncations::<WString>(&hex(octets), order, 0);
    }
    for order in ORDERS {
        check(&WChar(0x41), order, 0, "020041");
        check(&WChar(0x20ac), order, 1, "0220ac");
    }
}

#[test]
fn nil_is_an_empty_type_id_without_profiles() {
    let mut e = Encoder::new(Big, giop_codec::Version::V1_2);
    e.put_unconverted_str("").unwrap();
    e.put_len(0).unwrap();
    assert_eq!(e.into_bytes(), hex("000000010000000000000000"));
    assert_eq!(encoded(&giop_codec::ior::Ior::nil(), Big, 0), hex("000000010000000000000000"));
}

//! Strings and wide strings: code sets, the three GIOP versions, byte order marks, and text that is refused.

use crate::cdr_types::{ORDERS, decode_in as decode, encode_in as encode, hex};
use bytes::Bytes;
use giop_codec::ByteOrder::{Big, Little};
use giop_codec::Version::{V1_0, V1_1, V1_2};
use giop_codec::any::Any;
use giop_codec::cdr::{
    Bounded, CdrEncode, Char, CharSet, CodeSets, Decoder, Encoder, InvalidText, WChar, WCharSet, WString,
    check_bound,
};
use giop_codec::code_set::CodeSetId;
use giop_codec::exception::{CompletionStatus, MinorCode, SystemExceptionKind, minor};
use giop_codec::typecode::TypeCode;
use giop_codec::value::DecodeContext;
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Version};
use proptest::prelude::*;

const UTF8: CodeSets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Utf16) };
const LATIN1: CodeSets = CodeSets { char: CharSet::Latin1, wchar: None };

// clause: giop.code_set.iso_8859_1, giop.code_set.utf_8
#[test]
fn a_string_travels_in_its_code_set() {
    let table = [
        ("plain", LATIN1, "00000006 706c61696e 00"),
        ("plain", UTF8, "00000006 706c61696e 00"),
        ("na\u{ef}ve", LATIN1, "00000006 6e61ef7665 00"),
        ("na\u{ef}ve", UTF8, "00000007 6e61c3af7665 00"),
        ("\u{ff}", LATIN1, "00000002 ff 00"),
        ("\u{20ac}", UTF8, "00000004 e282ac 00"),
        ("\u{1f600}", UTF8, "00000005 f09f9880 00"),
    ];
    for (text, code_sets, octets) in table {
        assert_eq!(encode(text, Big, V1_2, code_sets), Ok(hex(octets)), "{text}");
        assert_eq!(decode::<String>(&hex(octets), Big, V1_2, code_sets).as_deref(), Ok(text));
        for len in 0..hex(octets).len() {
            assert!(decode::<String>(&hex(octets)[..len], Big, V1_2, code_sets).is_err());
        }
    }
}

// clause: giop.code_sets.conversion
#[test]
fn what_a_code_set_lacks_is_not_sent() {
    for text in ["\u{100}", "ab\u{20ac}", "\u{1f600}"] {
        assert_eq!(encode(text, Big, V1_2, LATIN1), Err(EncodeErrorKind::CharNotInCodeSet));
    }
    for code_sets in [LATIN1, UTF8] {
        for text in ["\0", "a\0b", "\u{ef}\0"] {
            assert_eq!(encode(text, Big, V1_2, code_sets), Err(EncodeErrorKind::EmbeddedNul));
        }
    }
    assert_eq!(encode(&WString::from("a\0"), Big, V1_2, UTF8), Err(EncodeErrorKind::EmbeddedNul));
}

#[test]
fn octets_that_are_not_utf8_are_refused_at_their_offset() {
    let octets = hex("00000004 41c328 00");
    let mut d = Decoder::new(&octets, Big, V1_2);
    d.set_code_sets(UTF8);
    assert_eq!(d.clone().read_string(), Err(DecodeError::new(DecodeErrorKind::InvalidText, 5)));
    assert_eq!(d.read_unconverted_str(), Err(DecodeError::new(DecodeErrorKind::InvalidIdentifier, 5)));
    assert_eq!(decode::<String>(&octets, Big, V1_2, LATIN1).as_deref(), Ok("A\u{c3}("));
}

/// A context with a rule for invalid text.
#[derive(Clone)]
struct Says(InvalidText);

impl DecodeContext for Says {
    fn invalid_text(&self) -> InvalidText {
        self.0
    }
}

#[test]
fn text_that_is_not_valid_is_what_the_context_says() {
    let narrow = |id| CodeSets { char: CharSet::from_id(id).unwrap(), wchar: None };
    let (ebcdic, ascii) = (narrow(CodeSetId(0x1002_0025)), narrow(CodeSetId::ISO_646));
    for (octets, sets, replaced, latin1) in [
        ("00000004 41c328 00", UTF8, "A\u{fffd}(", "A\u{c3}("),
        ("00000004 41c328 00", ascii, "A\u{fffd}(", "A\u{c3}("),
        ("00000004 41c328 00", LATIN1, "A\u{c3}(", "A\u{c3}("),
        ("00000002 c1 00", ebcdic, "A", "A"),
        ("00000003 c3a9 00", UTF8, "\u{e9}", "\u{e9}"),
    ] {
        let octets = Bytes::from(hex(octets));
        let valid = replaced == latin1;
        for (says, text) in [
            (InvalidText::Refuse, valid.then_some(replaced)),
            (InvalidText::Replace, Some(replaced)),
            (InvalidText::Latin1, Some(latin1)),
        ] {
            let context = Says(says);
            let decoder = || {
                let mut d = Decoder::from_bytes(&octets, Big, V1_2).with_context(&context);
                d.set_code_sets(sets);
                d
            };
            assert_eq!(decoder().read_string().ok().as_deref(), text, "{says:?}");
            // The same in anys, and when skipped.
            let any = Any::decode_value(&TypeCode::STRING, &mut decoder()).unwrap();
            assert_eq!(any.get::<String>().ok().as_deref(), text, "{says:?}");
            assert_eq!(any.validate().is_ok(), text.is_some());
            let mut e = Encoder::new(Little, V1_2);
            e.set_code_sets(UTF8);
            match text {
                Some(text) => {
                    assert_eq!(any, Any::new(text).unwrap());
                    any.encode_value(&mut e).unwrap();
                    assert_eq!(Ok(e.into_bytes().to_vec()), encode(text, Little, V1_2, UTF8));
                }
                None => {
                    let error = any.encode_value(&mut e).unwrap_err();
                    assert_eq!(error.kind, EncodeErrorKind::CharNotInCodeSet);
                }
            }
            assert!(
                Decoder::new(&hex("00000004 41c328 00"), Big, V1_2)
                    .with_context(&context)
                    .read_unconverted_str()
                    .is_err()
            );
        }
    }
}

#[test]
fn half_a_surrogate_pair_is_kept() {
    let ucs_2 = CodeSets { wchar: Some(WCharSet::Ucs2), ..UTF8 };
    let ucs_4 = CodeSets { wchar: Some(WCharSet::Ucs4), ..UTF8 };
    for (octets, version, sets, units) in [
        ("00000006 0041 d83d 0042", V1_2, UTF8, &[0x41, 0xD83D, 0x42][..]),
        ("00000006 0041 d83d 0042", V1_2, ucs_2, &[0x41, 0xD83D, 0x42]),
        ("00000004 0041 de00 0042 0000", V1_1, UTF8, &[0x41, 0xDE00, 0x42]),
        ("0000000a d83d d83d de00 de00 d83d", V1_2, UTF8, &[0xD83D, 0xD83D, 0xDE00, 0xDE00, 0xD83D]),
        // Text that begins like a byte order mark is encoded after a real one.
        ("00000006 feff fffe dc00", V1_2, UTF8, &[0xFFFE, 0xDC00]),
        ("0000000c 00000041 0000d83d 00000042", V1_2, ucs_4, &[0x41, 0xD83D, 0x42]),
        ("00000003 0001f600 0000d83d 00000000", V1_1, ucs_4, &[0xD83D, 0xDE00, 0xD83D]),
    ] {
        let octets = Bytes::from(hex(octets));
        for says in [InvalidText::Refuse, InvalidText::Replace, InvalidText::Latin1] {
            let context = Says(says);
            let mut d = Decoder::from_bytes(&octets, Big, version).with_context(&context);
            d.set_code_sets(sets);
            let text = d.clone().read_wstring().unwrap();
            assert!(text.units().eq(units.iter().copied()), "{text:?}");
            assert!(text.as_str().is_err());
            let any = Any::decode_value(&TypeCode::WSTRING, &mut d).unwrap();
            assert_eq!(any.get::<WString>().unwrap(), text);
            let mut e = Encoder::new(Big, version);
            e.set_code_sets(sets);
            e.put_wstr(&text).unwrap();
            assert_eq!(e.into_bytes(), octets);
        }
    }
    // In 1.1, the units are in the byte order of the stream.
    let mut e = Encoder::new(Little, V1_1);
    e.put_wstr(&WString::from_units([0xD83D])).unwrap();
    assert_eq!(e.into_bytes(), hex("02000000 3dd8 0000"));
}

#[test]
fn wide_text_that_is_cut_is_no_worse_checked() {
    let ucs_2 = CodeSets { wchar: Some(WCharSet::Ucs2), ..UTF8 };
    for (octets, sets, kind) in [
        ("00000006 d83d 0000 0042", UTF8, DecodeErrorKind::EmbeddedNul),
        ("00000005 d83d 0041 42", UTF8, DecodeErrorKind::InvalidWideText),
        ("00000006 d83d d83d de00", ucs_2, DecodeErrorKind::CharNotInCodeSet),
    ] {
        let octets = hex(octets);
        let mut d = Decoder::new(&octets, Big, V1_2);
        d.set_code_sets(sets);
        assert_eq!(d.read_wstring(), Err(DecodeError::new(kind, 4)));
    }
    let mut e = Encoder::new(Big, V1_2);
    e.set_code_sets(ucs_2);
    let pair_and_half = WString::from_units([0xD83D, 0xD83D, 0xDE00]);
    assert_eq!(e.put_wstr(&pair_and_half), Err(EncodeErrorKind::CharNotInCodeSet.into()));
    assert_eq!(e.put_wstr(&WString::from_units([0xD83D, 0])), Err(EncodeErrorKind::EmbeddedNul.into()));
    assert!(Bounded::<_, 2>::new(WString::from_units([0xD83D, 0xD83D])).is_ok());
    assert!(Bounded::<_, 1>::new(WString::from_units([0xD83D, 0xD83D])).is_err());
}

#[test]
fn a_number_that_is_no_character_of_ucs_4_is_what_the_context_says() {
    let ucs_4 = CodeSets { wchar: Some(WCharSet::Ucs4), ..UTF8 };
    let octets = hex("0000000c 00000041 00110000 00000042");
    for (says, text) in [
        (InvalidText::Refuse, Err(DecodeError::new(DecodeErrorKind::InvalidWideText, 4))),
        (InvalidText::Replace, Ok("A\u{fffd}B".into())),
        (InvalidText::Latin1, Ok("A\u{fffd}B".into())),
    ] {
        let context = Says(says);
        let mut d = Decoder::new(&octets, Big, V1_2).with_context(&context);
        d.set_code_sets(ucs_4);
        assert_eq!(d.read_wstring(), text);
    }
}

// clause: giop.code_set.utf_16
#[test]
fn wide_text_in_giop_1_2_is_big_endian_without_mark() {
    for order in ORDERS {
        let length = |len: u32| match order {
            Big => len.to_be_bytes(),
            Little => len.to_le_bytes(),
        };
        for (text, units) in [
            ("", ""),
            ("AB", "00410042"),
            ("\u{20ac}", "20ac"),
            ("\u{1f600}", "d83dde00"),
            // Text that begins like a byte order mark is encoded after a real one, because its first
            // character would otherwise be lost.
            ("\u{feff}A", "feff feff 0041"),
            ("\u{fffe}A", "feff fffe 0041"),
        ] {
            let expected = [&length(hex(units).len() as u32)[..], &hex(units)].concat();
            assert_eq!(encode(&WString::from(text), order, V1_2, UTF8), Ok(expected.clone()), "{text:?}");
            assert_eq!(decode::<WString>(&expected, order, V1_2, UTF8).unwrap(), text);
        }
        for (octets, text) in [("fffe41004200", "AB"), ("feff00410042", "AB"), ("fffe3dd800de", "\u{1f600}")]
        {
            let octets = [&length(hex(octets).len() as u32)[..], &hex(octets)].concat();
            assert_eq!(decode::<WString>(&octets, order, V1_2, UTF8).unwrap(), text);
        }
        for octets in ["00", "004100", "d83d00", "fffe00"] {
            let octets = [&length(hex(octets).len() as u32)[..], &hex(octets)].concat();
            assert_eq!(
                decode::<WString>(&octets, order, V1_2, UTF8),
                Err(DecodeErrorKind::InvalidWideText),
                "{octets:02x?}"
            );
        }
    }
}

#[test]
fn wide_text_in_giop_1_1_counts_units_in_stream_order() {
    let table = [
        ("", Big, "00000001 0000"),
        ("AB", Big, "00000003 0041 0042 0000"),
        ("AB", Little, "03000000 4100 4200 0000"),
        ("\u{1f600}", Little, "03000000 3dd8 00de 0000"),
    ];
    for (text, order, octets) in table {
        assert_eq!(encode(&WString::from(text), order, V1_1, UTF8), Ok(hex(octets)));
        assert_eq!(decode::<WString>(&hex(octets), order, V1_1, UTF8).unwrap(), text);
        for len in 0..hex(octets).len() {
            assert!(decode::<WString>(&hex(octets)[..len], order, V1_1, UTF8).is_err());
        }
    }
    assert_eq!(decode::<WString>(&hex("00000000"), Big, V1_1, UTF8).unwrap(), "");
    let open = hex("00000002 0041 0042");
    assert_eq!(decode::<WString>(&open, Big, V1_1, UTF8), Err(DecodeErrorKind::StringNotTerminated));
}

#[test]
fn a_wide_character_has_a_form_for_each_version() {
    for (unit, order, version, octets) in [
        (0x41, Big, V1_1, "0041"),
        (0x41, Little, V1_1, "4100"),
        (0x41, Big, V1_2, "020041"),
        (0x41, Little, V1_2, "020041"),
        (0xd83d, Little, V1_2, "02d83d"),
    ] {
        assert_eq!(encode(&WChar(unit), order, version, UTF8), Ok(hex(octets)));
        assert_eq!(decode(&hex(octets), order, version, UTF8), Ok(WChar(unit)));
    }
    for (octets, expected) in [
        ("04fffe4100", Ok(WChar(0x41))),
        ("04feff0041", Ok(WChar(0x41))),
        ("04d83dde00", Err(DecodeErrorKind::CharNotInCodeSet)),
        ("0400410042", Err(DecodeErrorKind::InvalidWideText)),
        ("00", Err(DecodeErrorKind::InvalidWideText)),
        ("0141", Err(DecodeErrorKind::InvalidWideText)),
        ("03004100", Err(DecodeErrorKind::InvalidWideText)),
        ("0200", Err(DecodeErrorKind::EndOfData)),
    ] {
        assert_eq!(decode(&hex(octets), Little, V1_2, UTF8), expected, "{octets}");
    }
    let mut e = Encoder::new(Big, V1_1);
    e.put_u8(1);
    WChar(0x41).encode(&mut e).unwrap();
    assert_eq!(e.head(), hex("01000041"), "aligned to 2 in GIOP 1.1");
}

// clause: exc.minor.marshal.4, exc.minor.marshal.5, exc.minor.marshal.6, exc.minor.inv_objref.1
// clause: exc.minor.bad_param.20, exc.minor.bad_param.23, exc.minor.data_conversion.1
// clause: exc.when.wide_without_sets
#[test]
fn wide_text_without_the_means_is_refused() {
    let text = WString::from("A");
    assert_eq!(encode(&text, Big, V1_0, UTF8), Err(EncodeErrorKind::WideInGiop10));
    assert_eq!(encode(&WChar(65), Big, V1_0, UTF8), Err(EncodeErrorKind::WideInGiop10));
    assert_eq!(encode(&text, Big, V1_2, LATIN1), Err(EncodeErrorKind::NoWideCodeSet));
    assert_eq!(encode(&WChar(65), Big, V1_1, LATIN1), Err(EncodeErrorKind::NoWideCodeSet));
    assert_eq!(decode::<WString>(&[0; 4], Big, V1_0, UTF8), Err(DecodeErrorKind::WideInGiop10));
    assert_eq!(decode::<WChar>(&[2, 0, 65], Big, V1_2, LATIN1), Err(DecodeErrorKind::NoWideCodeSet));

    let (no, yes) = (CompletionStatus::No, CompletionStatus::Yes);
    let raised = |kind, completed| {
        let e = EncodeError::new(kind).to_system_exception(completed);
        (e.kind, e.minor, e.completed)
    };
    let received = |kind, completed| {
        let e = DecodeError::new(kind, 0).to_system_exception(completed);
        (e.kind, e.minor, e.completed)
    };
    let (marshal, bad_param) = (SystemExceptionKind::Marshal, SystemExceptionKind::BadParam);
    let inv_objref = SystemExceptionKind::InvObjref;
    for (actual, expected) in [
        (raised(EncodeErrorKind::WideInGiop10, no), (marshal, minor::MARSHAL_WCHAR_SENT_1_0, no)),
        (raised(EncodeErrorKind::WideInGiop10, yes), (marshal, minor::MARSHAL_WCHAR_RETURNED_1_0, yes)),
        (received(DecodeErrorKind::WideInGiop10, no), (marshal, minor::MARSHAL_WCHAR_SENT_1_0, no)),
        (received(DecodeErrorKind::WideInGiop10, yes), (marshal, minor::MARSHAL_WCHAR_RETURNED_1_0, yes)),
        (raised(EncodeErrorKind::NoWideCodeSet, no), (inv_objref, minor::INV_OBJREF_NO_WCHAR, no)),
        (raised(EncodeErrorKind::NoWideCodeSet, yes), (bad_param, minor::BAD_PARAM_NO_WCHAR_CODE_SET, yes)),
        (received(DecodeErrorKind::NoWideCodeSet, no), (bad_param, minor::BAD_PARAM_NO_WCHAR_CODE_SET, no)),
        (received(DecodeErrorKind::NoWideCodeSet, yes), (inv_objref, minor::INV_OBJREF_NO_WCHAR, yes)),
        (
            raised(EncodeErrorKind::CharNotInCodeSet, no),
            (SystemExceptionKind::DataConversion, minor::DATA_CONVERSION_CHARACTER, no),
        ),
        (
            received(DecodeErrorKind::CharNotInCodeSet, yes),
            (SystemExceptionKind::DataConversion, minor::DATA_CONVERSION_CHARACTER, yes),
        ),
        (
            received(DecodeErrorKind::InvalidText, no),
            (SystemExceptionKind::DataConversion, minor::DATA_CONVERSION_CHARACTER, no),
        ),
        (
            received(DecodeErrorKind::InvalidWideText, yes),
            (SystemExceptionKind::DataConversion, minor::DATA_CONVERSION_CHARACTER, yes),
        ),
        (received(DecodeErrorKind::InvalidIdentifier, no), (marshal, MinorCode::NONE, no)),
        (raised(EncodeErrorKind::IllegalDiscriminator, no), (bad_param, minor::BAD_PARAM_DISCRIMINATOR, no)),
        (raised(EncodeErrorKind::LocalObject, no), (marshal, minor::MARSHAL_LOCAL_OBJECT, no)),
    ] {
        assert_eq!(actual, expected);
    }
}

#[test]
fn an_encapsulation_has_wide_text_whatever_surrounds_it() {
    let mut e = Encoder::new(Little, V1_0);
    e.encapsulate(|e| e.put_wstr("A")).unwrap();
    assert_eq!(e.version(), V1_0);
    let octets = e.into_bytes();
    assert_eq!(octets, hex("0a000000 01 000000 02000000 0041"));
    let mut d = Decoder::from_bytes(&octets, Little, V1_0);
    assert_eq!(d.encapsulation().unwrap().read_wstring().unwrap(), "A");
}

#[test]
fn characters_convert_where_they_fit() {
    assert_eq!(Char::try_from('\u{e9}'), Ok(Char(0xe9)));
    assert_eq!(char::from(Char(0xe9)), '\u{e9}');
    assert!(Char::try_from('\u{100}').is_err());
    assert_eq!(WChar::try_from('\u{20ac}'), Ok(WChar(0x20ac)));
    assert!(WChar::try_from('\u{1f600}').is_err());
    assert_eq!(char::from(WChar(0xd83d)), char::REPLACEMENT_CHARACTER);
}

#[test]
fn bounds_count_characters_units_and_elements() {
    assert!(Bounded::<String, 2>::try_from("\u{20ac}\u{20ac}").is_ok());
    assert!(Bounded::<String, 1>::try_from("ab").is_err());
    assert!(Bounded::<WString, 1>::try_from("\u{1f600}").is_err());
    assert_eq!(check_bound("abc", 2), Err(EncodeErrorKind::BoundExceeded.into()));
    assert_eq!(check_bound(&[1, 2][..], 2), Ok(()));
    let long = encode("abc", Big, V1_2, UTF8).unwrap();
    assert_eq!(decode::<Bounded<String, 3>>(&long, Big, V1_2, UTF8).unwrap().as_str(), "abc");
    let error = decode::<Bounded<String, 2>>(&long, Big, V1_2, UTF8);
    assert_eq!(error, Err(DecodeErrorKind::BoundExceeded));
    let long = encode(&vec![1u16, 2, 3], Big, V1_2, UTF8).unwrap();
    assert!(decode::<Bounded<Vec<u16>, 3>>(&long, Big, V1_2, UTF8).is_ok());
    let error = decode::<Bounded<Vec<u16>, 2>>(&long, Big, V1_2, UTF8);
    assert_eq!(error, Err(DecodeErrorKind::BoundExceeded));
}

proptest! {
    #[test]
    fn any_text_returns(text in "[^\\x00]{0,40}", little: bool, wide_version in 1u8..3) {
        let order = ByteOrder::from_flag(u8::from(little));
        let version = Version::from_minor(wide_version).unwrap();
        let octets = encode(text.as_str(), order, version, UTF8).unwrap();
        prop_assert_eq!(decode::<String>(&octets, order, version, UTF8), Ok(text.clone()));
        let octets = encode(&WString::from(text.as_str()), order, version, UTF8).unwrap();
        prop_assert_eq!(decode::<WString>(&octets, order, version, UTF8), Ok(WString::from(text)));
    }

    #[test]
    fn any_latin1_text_returns(text in "[\\x01-\\u{ff}]{0,40}") {
        let octets = encode(text.as_str(), Big, V1_0, LATIN1).unwrap();
        prop_assert_eq!(octets.len(), 4 + text.chars().count() + 1);
        prop_assert_eq!(decode::<String>(&octets, Big, V1_0, LATIN1), Ok(text));
    }

    #[test]
    fn any_octets_as_text_give_text_or_an_error(octets: Vec<u8>, little: bool, version in 0u8..3, utf8: bool) {
        let order = ByteOrder::from_flag(u8::from(little));
        let version = Version::from_minor(version).unwrap();
        let mut d = Decoder::new(&octets, order, version);
        d.set_code_sets(CodeSets { char: if utf8 { CharSet::Utf8 } else { CharSet::Latin1 }, ..UTF8 });
        let mut reads = 0;
        while reads < 8 {
            let before = d.position();
            let read = match reads % 4 {
                0 => d.read_string().map(drop),
                1 => d.read_wstring().map(drop),
                2 => d.read_wchar().map(drop),
                _ => d.read_unconverted_str().map(drop),
            };
            prop_assert!(read.is_err() || d.position() > before);
            reads += 1;
        }
    }
}

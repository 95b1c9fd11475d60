//! Code sets: negotiation between client and server, and the encoding of text in each set.

use crate::cdr_types::{ORDERS, decode_in as decode, encode_in as encode, hex};
use giop_codec::any::Any;
use giop_codec::cdr::{CharSet, CodeSets, DecodeLimits, Decoder, WChar, WCharSet, WString};
use giop_codec::code_set::{
    CodeSetComponent, CodeSetComponentInfo, CodeSetContext, CodeSetId, NegotiatedCodeSets, negotiate,
};
use giop_codec::exception::{CompletionStatus, SystemException, minor};
use giop_codec::{ByteOrder, DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Version};
use proptest::prelude::*;

const UTF_16: Option<WCharSet> = Some(WCharSet::Utf16);

fn set(id: CodeSetId) -> CharSet {
    CharSet::from_id(id).unwrap()
}

fn info(native: u32, conversion: &[u32], wide: u32, wide_conversion: &[u32]) -> CodeSetComponentInfo {
    let component = |native, conversion: &[u32]| CodeSetComponent {
        native: CodeSetId(native),
        conversion: conversion.iter().copied().map(CodeSetId).collect(),
    };
    CodeSetComponentInfo {
        for_char: component(native, conversion),
        for_wchar: component(wide, wide_conversion),
    }
}

/// Negotiates the code sets of zorb's defaults with those of the server.
fn by_default(server: &CodeSetComponentInfo) -> NegotiatedCodeSets {
    negotiate(&CodeSetComponentInfo::zorb_default(), Some(server), Version::V1_2)
}

#[test]
fn by_default_a_client_prefers_utf_8_then_latin_1_then_falls_back() {
    let table = [
        // omniORB, glassfish, Latin-1 only, UTF-8 native, Latin-2 only, EBCDIC, no wide text, an unknown wide
        // set
        (info(0x10001, &[0x0501_0001], 0x10109, &[0x10109]), CharSet::Utf8, UTF_16),
        (info(0x10001, &[0x0501_0001, 0x10020], 0x10109, &[0x10100]), CharSet::Utf8, UTF_16),
        (info(0x10001, &[], 0x10109, &[]), CharSet::Latin1, UTF_16),
        (info(0x0501_0001, &[], 0x10100, &[0x10109]), CharSet::Utf8, UTF_16),
        (info(0x10002, &[], 0x10100, &[]), CharSet::Utf8, UTF_16),
        (info(0x1002_0025, &[0x10001], 0x10104, &[]), CharSet::Latin1, UTF_16),
        (info(0x10001, &[], 0, &[]), CharSet::Latin1, None),
        (info(0x10001, &[], 0x7777_7777, &[]), CharSet::Latin1, None),
    ];
    for (server, char, wchar) in table {
        let sets = CodeSets { char, wchar };
        assert_eq!(by_default(&server), NegotiatedCodeSets { sets, context: sets.into() }, "{server:?}");
    }
}

// clause: giop.code_sets.native_same, giop.code_sets.client_native, giop.code_sets.server_native
// clause: giop.code_sets.common, giop.code_sets.fallback
#[test]
fn the_sets_are_found_step_by_step() {
    const LATIN_1: u32 = 0x10001;
    const LATIN_9: u32 = 0x1000f;
    const ASCII: u32 = 0x10020;
    const UTF_8: u32 = 0x0501_0001;
    const IBM: u32 = 0x1002_0025;
    const UNKNOWN: u32 = 0x7777_0001;
    let table = [
        // Client, server, result. Both have the same native set, which is used even though conversion would
        // allow a better set.
        (info(IBM, &[UTF_8], 0x10104, &[0x10109]), info(IBM, &[UTF_8], 0x10104, &[0x10109]), IBM, 0x10104),
        // The client's native set is among the server's conversions: preferred to the server's native set.
        (
            info(UTF_8, &[LATIN_1], 0x10109, &[0x10100]),
            info(LATIN_1, &[UTF_8], 0x10100, &[0x10109]),
            UTF_8,
            0x10109,
        ),
        // The server's native set is among the client's conversions.
        (
            info(UTF_8, &[LATIN_9, IBM], 0x10109, &[0x10100]),
            info(IBM, &[LATIN_9], 0x10100, &[]),
            IBM,
            0x10100,
        ),
        // Both convert to two sets: the server's order is used.
        (
            info(UTF_8, &[ASCII, LATIN_9], 0x10109, &[0x10104]),
            info(UNKNOWN, &[LATIN_9, ASCII], 7, &[0x10104]),
            LATIN_9,
            0x10104,
        ),
        // No common set, but both native sets are within Unicode.
        (info(IBM, &[], 0x10100, &[]), info(LATIN_9, &[ASCII], 0x10104, &[]), UTF_8, 0x10109),
        // Sets with several numbers are equal; the server's number is announced.
        (
            info(0x1002_01f4, &[], 0x10104, &[]),
            info(UTF_8, &[0x1002_01f8], 0x10106, &[]),
            0x1002_01f8,
            0x10106,
        ),
    ];
    for (client, server, char, wchar) in table {
        let negotiated = negotiate(&client, Some(&server), Version::V1_2);
        let context = CodeSetContext { char_data: CodeSetId(char), wchar_data: CodeSetId(wchar) };
        assert_eq!(negotiated.context, context, "{client:?} {server:?}");
        let sets = CodeSets { char: set(CodeSetId(char)), wchar: WCharSet::from_id(CodeSetId(wchar)) };
        assert_eq!(negotiated.sets, sets);
        assert_eq!(context.accept(None), Ok(sets), "the server understands what was agreed on");
    }
}

// clause: giop.code_sets.without
#[test]
fn without_component_or_in_giop_1_0_there_is_latin_1_and_no_wide_text() {
    let plain = CodeSets { char: CharSet::Latin1, wchar: None };
    let plain = NegotiatedCodeSets { sets: plain, context: plain.into() };
    let zorb = CodeSetComponentInfo::zorb_default();
    let ibm = info(0x1002_0025, &[], 0x10104, &[]);
    for client in [&zorb, &ibm] {
        assert_eq!(negotiate(client, None, Version::V1_2), plain);
        assert_eq!(negotiate(client, Some(&zorb), Version::V1_0), plain);
    }
}

// clause: giop.code_sets.nothing, exc.minor.codeset_incompatible.1
#[test]
fn nothing_in_common_is_codeset_incompatible_1() {
    let raised = |completed| {
        SystemException::codeset_incompatible()
            .with_minor(minor::CODESET_INCOMPATIBLE_NEGOTIATION)
            .completed(completed)
    };
    let zorb = CodeSetComponentInfo::zorb_default();
    // An unknown set, no set, and a client whose only set is not within Unicode.
    for (client, server) in [
        (zorb.clone(), info(0x7777_0001, &[0x7777_0002], 0x10109, &[])),
        (zorb, info(0, &[], 0x10109, &[])),
        (info(0x7777_0001, &[], 0x10109, &[]), info(0x10002, &[], 0x10109, &[])),
    ] {
        let negotiated = negotiate(&client, Some(&server), Version::V1_2);
        let sets = CodeSets { char: CharSet::NOTHING, wchar: UTF_16 };
        let context = CodeSetContext { char_data: server.for_char.native, wchar_data: CodeSetId::UTF_16 };
        assert_eq!(negotiated, NegotiatedCodeSets { sets, context }, "the server hears of its own set");
        for order in ORDERS {
            // Values that are not text can be encoded, and so can wide text.
            assert!(encode(&7_i32, order, Version::V1_2, sets).is_ok());
            assert!(encode(&WString::from("w"), order, Version::V1_2, sets).is_ok());
            for text in ["", "plain", "\u{20ac}"] {
                let error = encode(text, order, Version::V1_2, sets).unwrap_err();
                assert_eq!(error, EncodeErrorKind::NoCodeSet);
                let error = EncodeError::new(error);
                assert_eq!(SystemException::from(error), raised(CompletionStatus::No));
                assert!(error.to_string().contains("OrbBuilder::char_code_sets"), "{error}");
            }
            let octets = encode("text", order, Version::V1_2, CodeSets::default()).unwrap();
            let error = decode::<String>(&octets, order, Version::V1_2, sets).unwrap_err();
            assert_eq!(error, DecodeErrorKind::NoCodeSet);
            let error = DecodeError::new(error, 0).to_system_exception(CompletionStatus::Yes);
            assert_eq!(error, raised(CompletionStatus::Yes));
        }
    }
    assert_eq!(CharSet::from_id(CodeSetId::NONE), None);
}

// clause: giop.code_sets.unsupported, exc.minor.codeset_incompatible.2, giop.code_sets.changed, exc.minor.marshal.9
#[test]
fn a_server_takes_what_it_has_and_refuses_the_rest() {
    for sets in [
        CodeSets { char: CharSet::Utf8, wchar: UTF_16 },
        CodeSets { char: CharSet::Latin1, wchar: None },
        CodeSets { char: set(CodeSetId::IBM_1047), wchar: Some(WCharSet::Ucs4) },
    ] {
        assert_eq!(CodeSetContext::from(sets).accept(None), Ok(sets));
        assert_eq!(CodeSetContext::from(sets).accept(Some(sets)), Ok(sets));
    }
    let context = |char, wchar| CodeSetContext { char_data: CodeSetId(char), wchar_data: CodeSetId(wchar) };
    let minor_of =
        |c: CodeSetContext, previous| c.accept(previous).map_err(|e| SystemException::from(e).minor);
    assert_eq!(minor_of(context(0x7777_0001, 0), None), Err(minor::CODESET_INCOMPATIBLE_DELIVERED));
    // A narrow set is invalid for wide text, and a wide set for narrow text.
    assert_eq!(minor_of(context(0x10001, 0x10001), None), Err(minor::CODESET_INCOMPATIBLE_DELIVERED));
    assert_eq!(minor_of(context(0x10109, 0), None), Err(minor::CODESET_INCOMPATIBLE_DELIVERED));
    let latin = CodeSets { char: CharSet::Latin1, wchar: None };
    assert_eq!(minor_of(context(0x0501_0001, 0), Some(latin)), Err(minor::MARSHAL_CODE_SETS_CHANGED));
}

#[test]
fn what_this_build_does_not_have_is_found_before_it_is_offered() {
    assert_eq!(CodeSetComponentInfo::zorb_default().first_unsupported(), None);
    assert_eq!(info(0x1002_0025, &[0x1000f], 0, &[]).first_unsupported(), None);
    assert_eq!(info(0x10001, &[0x7777_0001], 0x10109, &[]).first_unsupported(), Some(CodeSetId(0x7777_0001)));
    assert_eq!(info(0, &[], 0x10109, &[]).first_unsupported(), Some(CodeSetId::NONE));
    assert_eq!(info(0x10001, &[], 0, &[0x10109]).first_unsupported(), Some(CodeSetId::NONE));
    assert_eq!(info(0x10001, &[], 0x10001, &[]).first_unsupported(), Some(CodeSetId::ISO_8859_1));
    assert_eq!(info(0x10002, &[], 0, &[]).first_unsupported().is_none(), cfg!(feature = "encoding_rs"));
}

fn narrow(id: u32) -> CodeSets {
    CodeSets { char: set(CodeSetId(id)), wchar: UTF_16 }
}

/// Checks the encoding of text in a set, and its decoding.
fn same_text(table: &[(u32, &str, &str)]) {
    for (id, text, octets) in table {
        let octets = hex(octets);
        let wire = [&(octets.len() as u32 + 1).to_be_bytes()[..], &octets, &[0]].concat();
        let sets = narrow(*id);
        let got = encode(*text, ByteOrder::Big, Version::V1_2, sets);
        assert_eq!(got.as_ref(), Ok(&wire), "{text} in {}", CodeSetId(*id));
        let got = decode::<String>(&wire, ByteOrder::Big, Version::V1_2, sets);
        assert_eq!(got.as_deref(), Ok(*text), "{text} in {}", CodeSetId(*id));
        for cut in 0..wire.len() {
            assert!(decode::<String>(&wire[..cut], ByteOrder::Big, Version::V1_2, sets).is_err());
        }
    }
}

/// Checks text that a set cannot represent, and bytes that are not characters of the set.
fn not_in_the_set(texts: &[(u32, &str)], octets: &[(u32, &str)]) {
    for (id, text) in texts {
        let got = encode(*text, ByteOrder::Big, Version::V1_2, narrow(*id));
        assert_eq!(got, Err(EncodeErrorKind::CharNotInCodeSet), "{text} in {}", CodeSetId(*id));
    }
    for (id, octets) in octets {
        let octets = hex(octets);
        let wire = [&(octets.len() as u32 + 1).to_be_bytes()[..], &octets, &[0]].concat();
        let got = decode::<String>(&wire, ByteOrder::Big, Version::V1_2, narrow(*id));
        assert_eq!(got, Err(DecodeErrorKind::CharNotInCodeSet), "{octets:02x?} in {}", CodeSetId(*id));
    }
}

// clause: giop.code_set.ebcdic, giop.code_set.iso_646, giop.code_set.iso_8859_n
#[test]
fn text_travels_in_sets_that_are_always_there() {
    same_text(&[
        (0x10020, "plain ~", "706c61696e207e"),
        (0x1000f, "na\u{ef}ve \u{20ac}\u{160}\u{178}", "6e61ef766520a4a6be"),
        (0x10009, "\u{130}\u{131}\u{11e}\u{df}", "ddfdd0df"),
        (0x1000b, "\u{e01}\u{e3f}\u{e5b}a", "a1dffb61"),
        (0x1002_0025, "Hello [1]^!\u{ac}", "c885939396 40 baf1bb b0 5a 5f"),
        (0x1002_01f4, "Hello [1]^!\u{ac}", "c885939396 40 4af15a 5f 4f ba"),
        (0x1002_01f8, "Hello [1]^!\u{ac}", "c885939396 40 4af15a 5f 4f ba"),
        (0x1002_0417, "Hello [1]^!\u{ac}", "c885939396 40 adf1bd 5f 5a b0"),
        (0x1002_0025, "\u{ff}\u{fc}", "dfdc"),
    ]);
}

// clause: giop.code_sets.conversion, exc.minor.data_conversion.1
#[test]
fn what_a_set_does_not_have_is_a_data_conversion() {
    not_in_the_set(
        &[
            (0x10020, "\u{e4}"),
            (0x1000f, "\u{a4}"),
            (0x1000f, "\u{1f600}"),
            (0x10009, "\u{d0}"),
            (0x1000b, "\u{e3b}"),
            (0x1000b, "\u{e4}"),
            (0x1002_0025, "\u{20ac}"),
            (0x1002_0417, "\u{100}"),
        ],
        &[(0x10020, "6180"), (0x1000b, "db"), (0x1000b, "61fc")],
    );
    let error = SystemException::data_conversion().with_minor(minor::DATA_CONVERSION_CHARACTER);
    assert_eq!(
        giop_codec::EncodeError::from(EncodeErrorKind::CharNotInCodeSet)
            .to_system_exception(CompletionStatus::No),
        error
    );
    // The offset is that of the byte.
    let octets = hex("00000003 6180 00");
    let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
    d.set_code_sets(narrow(0x10020));
    assert_eq!(d.read_string().unwrap_err().offset, 5);
    for id in [0x10020, 0x1000f, 0x1002_0025] {
        assert_eq!(
            encode("a\0b", ByteOrder::Big, Version::V1_2, narrow(id)),
            Err(EncodeErrorKind::EmbeddedNul)
        );
    }
}

#[test]
fn every_octet_of_a_set_is_at_most_one_character() {
    let sets = (0..=u32::from(u16::MAX))
        .flat_map(|low| [0x0001_0000 | low, 0x1002_0000 | low])
        .filter_map(|id| CharSet::from_id(CodeSetId(id)).map(|set| (id, set)));
    let mut found = 0;
    for (id, set) in sets.filter(|(_, set)| !matches!(set, CharSet::Utf8)) {
        let sets = CodeSets { char: set, wchar: None };
        found += 1;
        for octet in 1..=255 {
            let wire = [0, 0, 0, 2, octet, 0];
            match decode::<String>(&wire, ByteOrder::Big, Version::V1_2, sets) {
                Ok(text) => {
                    assert_eq!(text.chars().count(), 1);
                    let again = encode(&*text, ByteOrder::Big, Version::V1_2, sets);
                    assert_eq!(again.as_deref(), Ok(&wire[..]), "{octet:02x} of {}", CodeSetId(id));
                    assert_eq!(set.id().name(), CodeSetId(id).name());
                }
                Err(kind) => assert_eq!(kind, DecodeErrorKind::CharNotInCodeSet),
            }
        }
    }
    assert!(found >= 9, "{found}");
}

// clause: giop.code_set.ucs_2
#[test]
fn wide_text_in_ucs_2_is_that_of_utf_16_without_surrogates() {
    let sets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Ucs2) };
    let wide = WString::from("A\u{20ac}");
    assert_eq!(encode(&wide, ByteOrder::Little, Version::V1_2, sets), Ok(hex("04000000 004120ac")));
    assert_eq!(encode(&wide, ByteOrder::Little, Version::V1_1, sets), Ok(hex("03000000 4100ac200000")));
    assert_eq!(encode(&WChar(0x20ac), ByteOrder::Little, Version::V1_2, sets), Ok(hex("0220ac")));
    for version in [Version::V1_1, Version::V1_2] {
        let octets = encode(&wide, ByteOrder::Big, version, sets).unwrap();
        assert_eq!(decode::<WString>(&octets, ByteOrder::Big, version, sets).as_ref(), Ok(&wide));
        let clef = encode(&WString::from("\u{1d11e}"), ByteOrder::Big, version, sets);
        assert_eq!(clef, Err(EncodeErrorKind::CharNotInCodeSet));
    }
    let pair = hex("00000004 d834dd1e");
    let got = decode::<WString>(&pair, ByteOrder::Big, Version::V1_2, sets);
    assert_eq!(got, Err(DecodeErrorKind::CharNotInCodeSet));
}

// clause: giop.code_set.ucs_4
#[test]
fn wide_text_in_ucs_4_has_four_octets_in_the_order_of_the_stream() {
    let sets = CodeSets { char: CharSet::Utf8, wchar: Some(WCharSet::Ucs4) };
    let wide = WString::from("A\u{1d11e}");
    for (order, version, octets) in [
        (ByteOrder::Big, Version::V1_2, "00000008 00000041 0001d11e"),
        (ByteOrder::Little, Version::V1_2, "08000000 41000000 1ed10100"),
        (ByteOrder::Big, Version::V1_1, "00000003 00000041 0001d11e 00000000"),
        (ByteOrder::Little, Version::V1_1, "03000000 41000000 1ed10100 00000000"),
    ] {
        assert_eq!(encode(&wide, order, version, sets), Ok(hex(octets)));
        assert_eq!(decode::<WString>(&hex(octets), order, version, sets).as_ref(), Ok(&wide));
        for cut in 0..hex(octets).len() {
            assert!(decode::<WString>(&hex(octets)[..cut], order, version, sets).is_err(), "cut to {cut}");
        }
    }
    let euro = WChar(0x20ac);
    for (order, version, octets) in [
        (ByteOrder::Big, Version::V1_2, "04 000020ac"),
        (ByteOrder::Little, Version::V1_2, "04 ac200000"),
        (ByteOrder::Little, Version::V1_1, "ac200000"),
    ] {
        assert_eq!(encode(&euro, order, version, sets), Ok(hex(octets)));
        assert_eq!(decode::<WChar>(&hex(octets), order, version, sets), Ok(euro));
    }
    let wrong = |octets: &str| decode::<WString>(&hex(octets), ByteOrder::Big, Version::V1_2, sets);
    assert_eq!(wrong("00000003 000041"), Err(DecodeErrorKind::InvalidWideText), "no whole characters");
    assert_eq!(wrong("00000004 00110000"), Err(DecodeErrorKind::InvalidWideText), "beyond Unicode");
    assert_eq!(wrong("00000004 00000000"), Err(DecodeErrorKind::EmbeddedNul));
    let wrong = |octets: &str| decode::<WChar>(&hex(octets), ByteOrder::Big, Version::V1_2, sets);
    assert_eq!(wrong("04 0001d11e"), Err(DecodeErrorKind::CharNotInCodeSet), "more than a wchar holds");
    assert_eq!(wrong("04 00110000"), Err(DecodeErrorKind::InvalidWideText), "beyond Unicode");
    assert_eq!(wrong("04 0000d800"), Ok(WChar(0xd800)), "half a pair");
    assert_eq!(wrong("02 0041"), Err(DecodeErrorKind::InvalidWideText));
    assert_eq!(encode(&WChar(0xd800), ByteOrder::Big, Version::V1_2, sets), Ok(hex("04 0000d800")));
}

#[test]
fn text_takes_no_more_memory_than_it_may() {
    let wire = [&[0, 0, 4, 1][..], &[0xa4; 1024], &[0]].concat();
    for (alloc, taken) in [(3 * 1024, true), (3 * 1024 - 1, false)] {
        let mut d = Decoder::new(&wire, ByteOrder::Big, Version::V1_2);
        d.set_code_sets(narrow(0x1000f));
        d.set_limits(DecodeLimits { alloc, ..d.limits() });
        let got = d.read_string().map_err(|error| error.kind);
        assert_eq!(got, if taken { Ok("\u{20ac}".repeat(1024)) } else { Err(DecodeErrorKind::AllocLimit) });
    }
}

#[test]
fn text_in_anys_is_converted_too() {
    let sets = CodeSets { char: set(CodeSetId::IBM_037), wchar: Some(WCharSet::Ucs4) };
    for (any, value) in [
        (Any::new(String::from("A1")).unwrap(), "00000003 c1f100"),
        (Any::new(WString::from("A")).unwrap(), "00000004 00000041"),
    ] {
        let octets = encode(&any, ByteOrder::Big, Version::V1_2, sets).unwrap();
        assert!(octets.ends_with(&hex(value)), "{octets:02x?}");
        assert_eq!(decode::<Any>(&octets, ByteOrder::Big, Version::V1_2, sets), Ok(any));
    }
}

#[cfg(feature = "encoding_rs")]
mod of_the_library {
    use super::*;

    #[test]
    fn text_travels_in_sets_of_other_languages() {
        same_text(&[
            (0x10002, "\u{141}\u{f3}d\u{17a}", "a3f364bc"),
            (0x10005, "\u{41f}\u{440}", "bfe0"),
            (0x10007, "\u{3b1}\u{3c9}", "e1f9"),
            (0x1002_04e3, "\u{41f}\u{440}", "cff0"),
            (0x1002_04e4, "\u{20ac}", "80"),
            (0x1002_036e, "\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}", "f0d2c9d7c5d4"),
            (0x0502_0002, "a\u{65e5}\u{672c}", "61 93fa 967b"),
            (0x0500_0011, "\u{65e5}\u{672c}", "93fa 967b"),
            (0x0003_0010, "a\u{65e5}\u{672c}", "61 c6fc cbdc"),
            (0x0502_0001, "\u{65e5}\u{672c}", "c6fc cbdc"),
            (0x0004_000a, "\u{d55c}", "c7d1"),
            (0x1002_056a, "\u{6c49}", "baba"),
            (0x1002_03b6, "\u{6f22}", "ba7e"),
        ]);
        let long = "\u{65e5}\u{672c} text ".repeat(1000);
        let sets = narrow(0x0502_0002);
        let octets = encode(&*long, ByteOrder::Little, Version::V1_2, sets).unwrap();
        assert_eq!(octets.len(), 4 + 10_000 + 1);
        assert_eq!(decode::<String>(&octets, ByteOrder::Little, Version::V1_2, sets).as_deref(), Ok(&*long));
        assert_eq!(encode("", ByteOrder::Big, Version::V1_2, sets), Ok(hex("00000001 00")));
    }

    #[test]
    fn what_they_do_not_have_is_a_data_conversion() {
        not_in_the_set(
            &[
                (0x10002, "\u{20ac}"),
                (0x10002, "a\u{65e5}"),
                (0x0502_0002, "\u{e4}"),
                (0x1002_036e, "\u{1f600}"),
            ],
            &[(0x0502_0002, "6193"), (0x0003_0010, "c6"), (0x0004_000a, "ff"), (0x10003, "a5")],
        );
    }
}

proptest! {
    #[test]
    fn text_comes_back_or_is_refused(text in "\\PC{0,20}", latin in "[ -~\u{a0}-\u{ff}]{0,20}") {
        for id in [0x10020, 0x1000f, 0x10009, 0x1000b, 0x1002_0025, 0x1002_01f4, 0x1002_0417] {
            for text in [&text, &latin] {
                for order in ORDERS {
                    if let Ok(octets) = encode(&**text, order, Version::V1_2, narrow(id)) {
                        let back = decode::<String>(&octets, order, Version::V1_2, narrow(id));
                        prop_assert_eq!(back.as_ref(), Ok(text));
                    }
                }
            }
        }
        for id in [0x1002_0025, 0x1002_01f4, 0x1002_0417] {
            prop_assert!(encode(&*latin, ByteOrder::Big, Version::V1_2, narrow(id)).is_ok());
        }
        for set in [WCharSet::Utf16, WCharSet::Ucs4] {
            let sets = CodeSets { char: CharSet::Utf8, wchar: Some(set) };
            for version in [Version::V1_1, Version::V1_2] {
                let wide = WString::from(&*text);
                let octets = encode(&wide, ByteOrder::Little, version, sets).unwrap();
                prop_assert_eq!(decode::<WString>(&octets, ByteOrder::Little, version, sets).unwrap(), wide);
            }
        }
    }

    #[test]
    fn octets_of_strangers_are_text_or_refused(octets in prop::collection::vec(1..=255_u8, 0..20), id in prop::sample::select(vec![0x10020_u32, 0x1000b, 0x1002_0025, 0x0502_0002, 0x0003_0010, 0x0004_000a, 0x1002_056a])) {
        let Some(char) = CharSet::from_id(CodeSetId(id)) else { return Ok(()) };
        let sets = CodeSets { char, wchar: Some(WCharSet::Ucs4) };
        let wire = [&(octets.len() as u32 + 1).to_be_bytes()[..], &octets, &[0]].concat();
        let _ = decode::<String>(&wire, ByteOrder::Big, Version::V1_2, sets);
        let _ = decode::<WString>(&wire, ByteOrder::Big, Version::V1_2, sets);
    }
}

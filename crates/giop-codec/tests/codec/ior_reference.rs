//! References: the captured one byte for byte, text forms, profiles, components, invalid input.

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::code_set::{CodeSetComponent, CodeSetComponentInfo, CodeSetId};
use giop_codec::exception::{SystemException, SystemExceptionKind, minor};
use giop_codec::giop::ObjectKey;
use giop_codec::ior::{
    ComponentTag, IiopProfile, Ior, MAX_PROFILES, MAX_REPOSITORY_ID_BYTES, OrbType, ParseIorErrorKind,
    ProfileError, ProfileTag, SslSecTrans, TaggedComponent, TaggedProfile,
};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};
use proptest::prelude::*;

/// A reference of an omniORB 4.2.5 server at 127.0.0.1:30904.
const CAPTURE: &str = "01000000 0c000000 49444c3a542f493a312e3000 01000000 00000000 60000000
    01 01 02 00 0a000000 3132372e302e302e3100 b878 0e000000 fe27f2006b0000545c0000000000 0000 02000000
    00000000 08000000 01 000000 00545441
    01000000 1c000000 01 000000 01000100 01000000 01000105 09010100 01000000 09010100";
/// A profile of version 1.0 of the same server: no components, no padding after the key.
const PROFILE_1_0: &str =
    "01 0100 00 0a000000 3132372e302e302e3100 0d7b 0e000000 fe27f2006b0000545c0000000000";

const KEY: &[u8] = b"\xfe\x27\xf2\x00\x6b\0\0\x54\x5c\0\0\0\0\0";

fn hex(text: &str) -> String {
    text.split_whitespace().collect()
}

fn octets(text: &str) -> Bytes {
    let digits: Vec<u32> = hex(text).chars().map(|c| c.to_digit(16).unwrap()).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn omniorb_code_sets() -> CodeSetComponentInfo {
    CodeSetComponentInfo {
        for_char: CodeSetComponent { native: CodeSetId::ISO_8859_1, conversion: vec![CodeSetId::UTF_8] },
        for_wchar: CodeSetComponent { native: CodeSetId::UTF_16, conversion: vec![CodeSetId::UTF_16] },
    }
}

// clause: ior.struct, ior.profile.internet_iop, ior.iiop.order, ior.iiop.version, ior.iiop.host
// clause: ior.iiop.port, ior.iiop.object_key, ior.iiop.components, ior.component.orb_type
// clause: ior.component.code_sets
#[test]
fn the_captured_reference_reads_and_is_rebuilt_octet_for_octet() {
    let text = format!("IOR:{}", hex(CAPTURE));
    let ior: Ior = text.parse().unwrap();
    assert_eq!(ior.type_id, "IDL:T/I:1.0");
    assert_eq!(ior.to_string(), text);
    let profile = ior.iiop_profile().unwrap();
    assert_eq!((profile.version, profile.host.as_str(), profile.port), (Version::V1_2, "127.0.0.1", 30904));
    assert_eq!(profile.object_key.as_slice(), KEY);
    assert_eq!(profile.orb_type(), Some(OrbType::OMNIORB));
    assert_eq!(profile.code_sets(), Some(omniorb_code_sets()));
    assert_eq!(profile.ssl(), None);

    let built = IiopProfile::new("127.0.0.1", 30904, ObjectKey::from_static(KEY))
        .with_component(TaggedComponent::orb_type(OrbType(0x4154_5400)))
        .with_component(TaggedComponent::code_sets(&omniorb_code_sets()).unwrap());
    assert_eq!(built, profile);
    assert_eq!(Ior::from_profiles("IDL:T/I:1.0", &[built]).unwrap(), ior);
}

// clause: ior.iiop.profile_1_0, ior.iiop.version
#[test]
fn the_captured_1_0_profile_reads_and_is_rebuilt_octet_for_octet() {
    let tagged = TaggedProfile { tag: ProfileTag::INTERNET_IOP, data: octets(PROFILE_1_0) };
    assert_eq!(tagged.data.len(), 38);
    let profile = IiopProfile::from_tagged(&tagged).unwrap();
    assert_eq!((profile.version, profile.port), (Version::V1_0, 0x7b0d));
    // Properties that 1.0 cannot express are omitted.
    let more = profile.clone().with_component(TaggedComponent::orb_type(OrbType(1)));
    assert_eq!(more.to_tagged().unwrap(), tagged);
}

#[test]
fn every_cut_of_the_reference_is_an_error() {
    let whole = octets(CAPTURE);
    for cut in 0..whole.len() {
        let text = format!("IOR:{}", &hex(CAPTURE)[..2 * cut]);
        assert!(text.parse::<Ior>().is_err(), "cut to {cut} octets");
        let mut d = Decoder::new(&whole[..cut], ByteOrder::Little, Version::V1_2).at(1);
        assert!(Ior::decode(&mut d).is_err(), "cut to {cut} octets");
    }
}

#[test]
fn every_cut_of_a_profile_is_an_error() {
    let profiles = [
        octets(PROFILE_1_0),
        format!("IOR:{}", hex(CAPTURE)).parse::<Ior>().unwrap().profiles.remove(0).data,
    ];
    for whole in profiles {
        for cut in 0..whole.len() {
            let tagged = TaggedProfile { tag: ProfileTag::INTERNET_IOP, data: whole.slice(..cut) };
            assert!(
                matches!(IiopProfile::from_tagged(&tagged), Err(ProfileError::Decode(_))),
                "cut to {cut}"
            );
        }
    }
}

// clause: ior.nil, ior.string.nil, ior.string.encapsulation
#[test]
fn nil_reads_in_both_byte_orders_and_prints_as_zeros() {
    let big: Ior = "IOR:00000000000000010000000000000000".parse().unwrap();
    assert!(big.is_nil());
    assert_eq!(big, Ior::nil());
    let text = Ior::nil().to_string();
    assert_eq!(text, "IOR:01000000010000000000000000000000");
    assert_eq!(text.parse(), Ok(Ior::nil()));
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    Ior::nil().encode(&mut e).unwrap();
    assert_eq!(e.into_bytes(), octets("000000010000000000000000"));
}

// clause: ior.string.prefix, ior.string.digits, ior.string.white_space
#[test]
fn prefix_and_digits_may_have_any_case_and_white_space_around() {
    let plain = format!("IOR:{}", hex(CAPTURE));
    let ior: Ior = plain.parse().unwrap();
    for text in [
        plain.to_lowercase(),
        plain.to_uppercase(),
        format!(" \t{plain}\r\n"),
        format!("ior:{}", hex(CAPTURE).to_uppercase()),
    ] {
        assert_eq!(text.parse(), Ok(ior.clone()), "{text:?}");
    }
}

// clause: ior.string.digits, ior.string.trailing, exc.minor.bad_param.9
#[test]
fn bad_text_is_named_with_its_character() {
    let nil = "IOR:00000000000000010000000000000000";
    let table = [
        ("", 1, ParseIorErrorKind::Prefix),
        ("  IIOP:00", 3, ParseIorErrorKind::Prefix),
        ("IOR", 1, ParseIorErrorKind::Prefix),
        ("ΙΟR:00", 1, ParseIorErrorKind::Prefix),
        ("IOR:", 5, ParseIorErrorKind::Decode(DecodeErrorKind::EndOfData)),
        ("IOR:0", 5, ParseIorErrorKind::OddDigits),
        ("IOR:00000000000000010000000000000000f", 37, ParseIorErrorKind::OddDigits),
        ("IOR:0000000g", 12, ParseIorErrorKind::Digit('g')),
        ("\n IOR:00 0x", 11, ParseIorErrorKind::Digit('x')),
        ("IOR:00é0", 7, ParseIorErrorKind::Digit('é')),
        ("IOR:0000000000000001000000000000000077", 37, ParseIorErrorKind::Trailing(1)),
        // A type id of 0x00ffffff bytes: the length is at offset 4, digit 9, character 13.
        ("IOR:0000000000ffffff00000000", 13, ParseIorErrorKind::Decode(DecodeErrorKind::LengthBeyondData)),
    ];
    assert!(nil.parse::<Ior>().is_ok());
    for (text, position, kind) in table {
        let error = text.parse::<Ior>().unwrap_err();
        assert_eq!((error.position(), error.kind()), (position, kind), "{text:?}: {error}");
    }
    let error = SystemException::from("IOR:0000000g".parse::<Ior>().unwrap_err());
    assert_eq!(
        (error.kind, error.minor),
        (SystemExceptionKind::BadParam, minor::BAD_PARAM_URL_SCHEME_SPECIFIC)
    );
    assert_eq!(
        error.to_string(),
        "BAD_PARAM (OMG minor 9: bad scheme-specific part in an object URL), COMPLETED_NO: \
         object reference, character 12: hexadecimal digit expected, found 'g'"
    );
}

fn profile_octets(major: u8, minor: u8, host: &str, behind: &[u8]) -> TaggedProfile {
    let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
    e.put_raw(&[0, major, minor]);
    e.put_unconverted_str(host).unwrap();
    e.put_u16(99);
    e.put_u32(1);
    e.put_raw(b"k");
    if minor > 0 {
        e.put_u32(0);
    }
    e.put_raw(behind);
    TaggedProfile { tag: ProfileTag::INTERNET_IOP, data: e.into_bytes() }
}

// clause: ior.iiop.higher_minor, ior.iiop.other_major, ior.kept, ior.profile.vendor
#[test]
fn versions_above_1_2_read_as_1_2_and_other_majors_are_passed_over() {
    let future = IiopProfile::from_tagged(&profile_octets(1, 7, "h", b"whatever comes behind")).unwrap();
    assert_eq!((future.version, future.host.as_str(), future.port), (Version::V1_2, "h", 99));
    assert_eq!(IiopProfile::from_tagged(&profile_octets(2, 0, "h", b"")), Err(ProfileError::MajorVersion(2)));

    let other = TaggedProfile { tag: ProfileTag(0x5441_4f00), data: Bytes::from_static(b"?") };
    let corrupt = TaggedProfile { tag: ProfileTag::INTERNET_IOP, data: Bytes::from_static(b"\x00\x01") };
    let profiles = vec![other, profile_octets(2, 0, "a", b""), corrupt, profile_octets(1, 2, "b", b"")];
    let ior = Ior { type_id: String::new(), profiles };
    assert_eq!(ior.iiop_profiles().map(|p| p.host).collect::<Vec<_>>(), ["b"]);
    let text = ior.to_string();
    assert_eq!(text.parse::<Ior>().unwrap(), ior, "what is not understood is passed on as it is");
}

// clause: ior.iiop.host
#[test]
fn brackets_of_ipv6_addresses_are_taken_off() {
    let profile = IiopProfile::from_tagged(&profile_octets(1, 2, "[fe80::1]", b"")).unwrap();
    assert_eq!(profile.host, "fe80::1");
}

// clause: ior.component.alternate_address, ior.iiop.port
#[test]
fn addresses_are_the_profile_s_own_and_the_alternate_ones_of_1_2() {
    let key = ObjectKey::from_static(b"k");
    let profile = IiopProfile::new("a", 1, key)
        .with_component(TaggedComponent::alternate_address("b", 2).unwrap())
        .with_component(TaggedComponent { tag: ComponentTag::ALTERNATE_IIOP_ADDRESS, data: Bytes::new() })
        .with_component(TaggedComponent::alternate_address("[::1]", 3).unwrap());
    let list =
        |p: &IiopProfile| p.addresses().into_iter().map(|(h, p)| format!("{h} {p}")).collect::<Vec<_>>();
    assert_eq!(list(&profile), ["a 1", "b 2", "::1 3"]);
    assert_eq!(list(&profile.clone().with_version(Version::V1_1)), ["a 1"]);
    assert_eq!(list(&IiopProfile { port: 0, ..profile }), ["b 2", "::1 3"]);
}

// clause: ior.component.corrupt
#[test]
fn a_corrupt_component_spoils_only_itself() {
    let broken = |tag| TaggedComponent { tag, data: Bytes::from_static(b"\x01\0\0\0\x01") };
    let profile = IiopProfile::new("a", 1, ObjectKey::from_static(b"k"))
        .with_component(broken(ComponentTag::CODE_SETS))
        .with_component(broken(ComponentTag::ORB_TYPE))
        .with_component(broken(ComponentTag::SSL_SEC_TRANS));
    let read = IiopProfile::from_tagged(&profile.to_tagged().unwrap()).unwrap();
    assert_eq!(read, profile);
    assert_eq!((read.code_sets(), read.orb_type(), read.ssl()), (None, None, None));
}

// clause: ior.kept, ior.component.complete_object_key, ior.component.endpoint_id, ior.component.location_policy
// clause: ior.component.association_options, ior.component.old_security, ior.component.firewall, ior.component.sccp
// clause: ior.component.java_codebase, ior.component.transaction_policy, ior.component.ft, ior.component.routers
// clause: ior.component.csi, ior.component.null_tag, ior.component.secure_transports, ior.component.activity
// clause: ior.component.rmi, ior.component.group, ior.component.dce, ior.component.inet_sec_trans
// clause: ior.component.omniorb_bidir, ior.component.omniorb_others, ior.component.vendor, ior.component.tao_endpoints
// clause: ior.profile.multiple_components, ior.profile.vendor
#[test]
fn unknown_profiles_and_components_are_kept_unchanged() {
    let vendors = [
        0x4154_5401,
        0x4154_5403,
        0x4154_5404,
        0x4e45_4f00,
        0x5355_4e00,
        0x4a41_4301,
        0x5441_4f02,
        0xffff_ffff,
    ];
    let tags = (5..=19).chain(21..=40).chain(100..=103).chain([123]).chain(vendors);
    let profile = |tag| TaggedProfile { tag: ProfileTag(tag), data: Bytes::from_static(b"\x01\0\xff") };
    for tag in tags {
        for data in [&b""[..], b"\0", b"\x01\xff\xff\xff\xff\xff\xff\xff\xff"] {
            let strange = TaggedComponent { tag: ComponentTag(tag), data: Bytes::from_static(data) };
            let known = IiopProfile::new("a", 1, ObjectKey::from_static(b"k"))
                .with_component(TaggedComponent::code_sets(&omniorb_code_sets()).unwrap())
                .with_component(strange)
                .with_component(TaggedComponent::alternate_address("b", 2).unwrap());
            let mut ior = Ior::from_profiles("IDL:T:1.0", std::slice::from_ref(&known)).unwrap();
            ior.profiles.splice(0..0, [1, 2, 3, 0x4a41_4300, 0x5441_4f02].map(profile));
            let read: Ior = ior.to_string().parse().unwrap();
            assert_eq!(read, ior, "tag {tag}");
            let found = read.iiop_profile().unwrap();
            assert_eq!(
                (found.code_sets(), found.addresses().len()),
                (Some(omniorb_code_sets()), 2),
                "tag {tag}"
            );
            assert_eq!(found, known);
        }
    }
}

// clause: ior.component.ssl
#[test]
fn ssl_is_read_in_both_forms() {
    let ssl = SslSecTrans { target_supports: 0x66, target_requires: 0x06, port: 443 };
    let component = TaggedComponent::ssl_sec_trans(ssl);
    assert_eq!(component.data.len(), 8);
    assert_eq!(component.as_ssl_sec_trans(), Some(ssl));
    let visibroker = octets("00 000000 00000066 00000006 01bb");
    let component = TaggedComponent { tag: ComponentTag::SSL_SEC_TRANS, data: visibroker };
    assert_eq!(component.as_ssl_sec_trans(), Some(ssl));
    assert_eq!(component.as_orb_type(), None);
}

#[test]
fn limits_hold() {
    let encode = |ior: &Ior| {
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        ior.encode(&mut e).unwrap();
        e.into_bytes()
    };
    let decode = |ior: &Ior| Ior::decode(&mut Decoder::new(&encode(ior), ByteOrder::Big, Version::V1_2));
    let profile = TaggedProfile { tag: ProfileTag(9), data: Bytes::new() };
    let mut ior =
        Ior { type_id: "x".repeat(MAX_REPOSITORY_ID_BYTES), profiles: vec![profile.clone(); MAX_PROFILES] };
    assert_eq!(decode(&ior).as_ref(), Ok(&ior));
    ior.profiles.push(profile);
    assert_eq!(decode(&ior).unwrap_err().kind, DecodeErrorKind::LimitExceeded);
    ior.profiles.clear();
    ior.type_id.push('x');
    assert_eq!(decode(&ior).unwrap_err().kind, DecodeErrorKind::LimitExceeded);
    assert!(
        Ior { type_id: "a\0b".into(), profiles: Vec::new() }.to_string().parse::<Ior>().unwrap().is_nil()
    );
}

#[test]
fn every_flipped_bit_is_survived() {
    let whole = octets(CAPTURE);
    let mut decoded = 0;
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let text: String = flipped.iter().map(|octet| format!("{octet:02x}")).collect();
        if let Ok(ior) = format!("IOR:{text}").parse::<Ior>() {
            decoded += 1;
            for profile in ior.iiop_profiles() {
                let _ = (profile.addresses(), profile.code_sets(), profile.orb_type(), profile.ssl());
            }
        }
    }
    assert!(decoded > 100, "{decoded}");
}

fn components() -> impl Strategy<Value = Vec<TaggedComponent>> {
    let component = (0..40_u32, prop::collection::vec(any::<u8>(), 0..20))
        .prop_map(|(tag, data)| TaggedComponent { tag: ComponentTag(tag), data: data.into() });
    prop::collection::vec(component, 0..5)
}

proptest! {
    // clause: ior.struct, ior.kept
    #[test]
    fn references_round_trip_in_messages_and_as_text(
        type_id in "[A-Za-z:/.0-9]{0,30}",
        host in "[a-z0-9.-]{0,20}",
        port in any::<u16>(),
        key in prop::collection::vec(any::<u8>(), 0..30),
        components in components(),
        before in 0..8_usize,
        version in 0..3_u8,
    ) {
        let version = Version::from_minor(version).unwrap();
        let components = if version == Version::V1_0 { Vec::new() } else { components };
        let profile = IiopProfile { version, host, port, object_key: ObjectKey::from(key), components };
        let unknown = TaggedProfile { tag: ProfileTag(4711), data: Bytes::from_static(b"octets") };
        let mut ior = Ior::from_profiles(type_id, std::slice::from_ref(&profile)).unwrap();
        ior.profiles.insert(0, unknown);
        prop_assert_eq!(ior.iiop_profile(), Some(profile));
        prop_assert_eq!(ior.to_string().parse::<Ior>(), Ok(ior.clone()));
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
                let mut e = Encoder::new(order, version);
                e.put_raw(&vec![0; before]);
                ior.encode(&mut e).unwrap();
                let octets = e.into_bytes();
                let mut d = Decoder::new(&octets, order, version).at(before);
                prop_assert_eq!(Ior::decode(&mut d), Ok(ior.clone()));
                prop_assert_eq!(d.remaining(), 0);
            }
        }
    }

    #[test]
    fn invented_text_never_panics(text in "\\PC{0,40}", digits in "[0-9a-f]{0,200}") {
        let _ = text.parse::<Ior>();
        let _ = format!("IOR:{text}").parse::<Ior>();
        let _ = format!("IOR:{digits}").parse::<Ior>();
    }
}

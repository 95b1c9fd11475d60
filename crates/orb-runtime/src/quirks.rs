//! Quirks: deviations of other ORBs from the specification, and how zorb handles them, in one table.
//!
//! A quirk is recognized by the component `TAG_ORB_TYPE` of a reference, or by other bytes that a peer sends.
//! This module tells which quirks a server has. Quirks of messages are handled where these are decoded.

use giop_codec::code_set::CodeSetComponentInfo;
use giop_codec::ior::{ComponentTag, IiopProfile, OrbType};
use giop_proto::GLASSFISH_FRAGMENT_SIZE;

/// A deviation of an ORB from the specification, and how zorb handles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirk {
    /// The name of the quirk.
    pub name: &'static str,
    /// The ORB with the quirk.
    pub peer: &'static str,
    /// How the quirk is recognized.
    pub recognized_by: Recognition,
    /// What the peer does.
    pub peer_behaviour: &'static str,
    /// What zorb does about the quirk.
    pub zorb_behaviour: &'static str,
    /// The test of the quirk, as `FILE::FUNCTION`.
    pub test: &'static str,
}

/// How a quirk is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognition {
    /// By the component `TAG_ORB_TYPE` of the server's references.
    OrbType(OrbType),
    /// By the described bytes, whichever peer sends them.
    Bytes(&'static str),
}

impl Quirk {
    /// Returns whether the quirk depends on the type of the ORB, and the server of this profile has it.
    #[must_use]
    pub fn applies_to(&self, profile: &IiopProfile) -> bool {
        match self.recognized_by {
            Recognition::OrbType(orb) => profile.orb_type() == Some(orb),
            Recognition::Bytes(_) => false,
        }
    }
}

/// JacORB reads requests in the negotiated code set, but writes replies in its native code set.
pub const REPLIES_IN_NATIVE_SET: Quirk = Quirk {
    name: "replies in the native code set",
    peer: "JacORB",
    recognized_by: Recognition::OrbType(OrbType::JACORB),
    peer_behaviour: "reads text in the negotiated code set, but writes text in its native code set",
    zorb_behaviour: "negotiates with only the native code set of the server",
    test: "crates/orb-runtime/src/quirks.rs::only_the_native_code_set_of_jacorb_and_tao_is_used",
};

/// TAO reads and writes UTF-8 characters of two bytes wrongly: `é` becomes `@`.
pub(crate) const MISREADS_UTF_8: Quirk = Quirk {
    name: "UTF-8 by conversion",
    peer: "TAO",
    recognized_by: Recognition::OrbType(OrbType::TAO),
    peer_behaviour: "offers UTF-8 in addition to its native ISO 8859-1, but reads and writes UTF-8 characters of two bytes wrongly",
    zorb_behaviour: "negotiates with only the native code set of the server",
    test: "crates/orb-runtime/src/quirks.rs::only_the_native_code_set_of_jacorb_and_tao_is_used",
};

/// TAO cannot read the standard form of a chunked value whose base has state.
pub(crate) const END_TAG_FOR_EACH_BASE: Quirk = Quirk {
    name: "chunks of derived values",
    peer: "TAO",
    recognized_by: Recognition::OrbType(OrbType::TAO),
    peer_behaviour: "reads a chunked derived value only if an end tag follows the state of each base",
    zorb_behaviour: "writes such end tags in requests to TAO, and writes a value inside of a chunk as a part of the chunk",
    test: "tests/interop/wire/tao.rs::derived_values_go_to_tao_with_an_end_for_each_base",
};

/// The first bytes of object keys of GlassFish and of the JDK's ORB.
const SUN_KEY_PREFIX: [u8; 4] = [0xaf, 0xab, 0xcb, 0x00];

/// The table of all quirks.
pub const QUIRKS: &[Quirk] = &[
    REPLIES_IN_NATIVE_SET,
    MISREADS_UTF_8,
    END_TAG_FOR_EACH_BASE,
    Quirk {
        name: "messages of at most 256,000 bytes",
        peer: "GlassFish",
        recognized_by: Recognition::Bytes(
            "an object key that begins with `af ab cb 00`, component 38 of a reference, or service context 0x4e454f00 of a request",
        ),
        peer_behaviour: "closes the connection if a message or a fragment is longer",
        zorb_behaviour: "sends GIOP 1.2 messages in fragments of 64 KiB",
        test: "tests/interop/wire/sun.rs::requests_and_replies_leave_in_pieces_that_glassfish_takes",
    },
    Quirk {
        name: "alignment in fragments of GIOP 1.1",
        peer: "omniORB",
        recognized_by: Recognition::Bytes("a message in fragments of GIOP 1.1"),
        peer_behaviour: "aligns values relative to the start of their fragment, not of the message",
        zorb_behaviour: "reads all such fragments this way, because no other ORB sends them",
        test: "crates/giop-proto/tests/proto/fragments.rs::values_in_giop_1_1_fragments_are_aligned_as_omniorb_aligns_them",
    },
    Quirk {
        name: "strings of length 0",
        peer: "old ORBs, JacORB by option",
        recognized_by: Recognition::Bytes("a string without even its NUL"),
        peer_behaviour: "sends a string of length 0 for an empty or a null string",
        zorb_behaviour: "reads it as the empty string",
        test: "crates/orb-runtime/src/quirks.rs::strings_of_length_0_are_empty",
    },
    Quirk {
        name: "booleans of any value",
        peer: "old C and C++ ORBs",
        recognized_by: Recognition::Bytes("a boolean that is neither 0 nor 1"),
        peer_behaviour: "sends the byte of memory that holds the boolean",
        zorb_behaviour: "reads every value except 0 as TRUE",
        test: "crates/orb-runtime/src/quirks.rs::all_booleans_but_0_are_true",
    },
    Quirk {
        name: "byte order marks",
        peer: "omniORB, TAO, GlassFish",
        recognized_by: Recognition::Bytes("UTF-16 in GIOP 1.2 that begins with U+FEFF"),
        peer_behaviour: "marks the byte order of wide text by U+FEFF",
        zorb_behaviour: "obeys and removes the mark; sends big-endian text without a mark",
        test: "crates/giop-codec/tests/codec/cdr_captured.rs::wide_text_as_omniorb_sends_it_is_understood",
    },
    Quirk {
        name: "UCS-4 in the byte order of the message",
        peer: "omniORB",
        recognized_by: Recognition::Bytes("UCS-4 as the negotiated code set of wide text"),
        peer_behaviour: "writes UCS-4 in the byte order of the message, and knows only the number of UCS-4 level 3",
        zorb_behaviour: "does the same; accepts the numbers of all levels",
        test: "crates/giop-codec/tests/codec/code_sets.rs::wide_text_in_ucs_4_has_four_octets_in_the_order_of_the_stream",
    },
    Quirk {
        name: "numbers of code sets",
        peer: "omniORB",
        recognized_by: Recognition::Bytes("code sets 0x100201f8, 0x10020567"),
        peer_behaviour: "uses numbers for IBM-500 and GBK that differ from the registry",
        zorb_behaviour: "knows both numbers; sends the number that the server offered",
        test: "crates/giop-codec/tests/codec/code_sets.rs::the_sets_are_found_step_by_step",
    },
    Quirk {
        name: "VisiBroker's SSL component",
        peer: "VisiBroker",
        recognized_by: Recognition::Bytes("a TAG_SSL_SEC_TRANS component that is not 8 bytes long"),
        peer_behaviour: "writes the association options as unsigned longs",
        zorb_behaviour: "reads this form too",
        test: "crates/giop-codec/tests/codec/ior_reference.rs::ssl_is_read_in_both_forms",
    },
    Quirk {
        name: "brackets around hosts",
        peer: "several",
        recognized_by: Recognition::Bytes("a host in brackets"),
        peer_behaviour: "writes IPv6 addresses in profiles and listen points with brackets, as in URLs",
        zorb_behaviour: "removes the brackets",
        test: "crates/giop-codec/tests/codec/ior_reference.rs::brackets_of_ipv6_addresses_are_taken_off",
    },
    Quirk {
        name: "profiles of later versions",
        peer: "ORBs that publish IIOP 1.3 and later",
        recognized_by: Recognition::Bytes("a minor version above 2 in a profile"),
        peer_behaviour: "publishes IIOP versions that the specification does not define",
        zorb_behaviour: "reads the profile as IIOP 1.2, and ignores bytes after the known fields",
        test: "crates/giop-codec/tests/codec/ior_reference.rs::versions_above_1_2_read_as_1_2_and_other_majors_are_passed_over",
    },
    Quirk {
        name: "fixed without leading zeros",
        peer: "JacORB",
        recognized_by: Recognition::Bytes("the sign of a fixed before its last byte"),
        peer_behaviour: "omits leading zero bytes of a fixed",
        zorb_behaviour: "ends the fixed at the sign",
        test: "crates/giop-codec/tests/codec/cdr_fixed.rs::what_jacorb_leaves_out_is_zero",
    },
    Quirk {
        name: "signs of packed decimals",
        peer: "mainframes",
        recognized_by: Recognition::Bytes("a sign of a fixed other than C and D"),
        peer_behaviour: "writes F for plus",
        zorb_behaviour: "reads F as plus",
        test: "crates/giop-codec/tests/codec/cdr_fixed.rs::signs_of_others_are_read",
    },
    Quirk {
        name: "open chunks",
        peer: "TAO",
        recognized_by: Recognition::Bytes("the header of a value inside of a chunk"),
        peer_behaviour: "does not end the chunk before a nested value",
        zorb_behaviour: "continues the chunk after the value",
        test: "crates/giop-codec/tests/codec/value_octets.rs::a_chunk_may_stay_open_around_a_value",
    },
    Quirk {
        name: "nil of abstract interfaces",
        peer: "omniORB",
        recognized_by: Recognition::Bytes("TRUE and a nil reference"),
        peer_behaviour: "sends nil as a nil reference instead of a null value",
        zorb_behaviour: "reads both as nil",
        test: "crates/orb-runtime/src/reference/abstract_value.rs::a_boolean_tells_references_from_values",
    },
    Quirk {
        name: "swapped visibilities",
        peer: "omniORB",
        recognized_by: Recognition::Bytes("the type code of a value type"),
        peer_behaviour: "marks private members as public, and public members as private",
        zorb_behaviour: "ignores visibilities when comparing types",
        test: "tests/interop/anys/mod.rs::values_as_omniorb_writes_them",
    },
    Quirk {
        name: "indirections to enclosing types",
        peer: "JacORB, Combat",
        recognized_by: Recognition::Bytes("type codes of sequences and aliases that contain themselves"),
        peer_behaviour: "resolves an indirection to an enclosing struct, union or value type, but not (JacORB) to a sequence or array, or (Combat) to an alias",
        zorb_behaviour: "for all peers, writes a recursive sequence, array or alias once more instead of an indirection to it",
        test: "crates/giop-codec/tests/codec/typecode.rs::sequences_and_aliases_are_not_referred_to_from_within",
    },
    Quirk {
        name: "bytes after the last parameter",
        peer: "old ORBs",
        recognized_by: Recognition::Bytes("a request that is longer than its parameters"),
        peer_behaviour: "sends additional bytes",
        zorb_behaviour: "ignores these bytes",
        test: "tests/interop/wire/server.rs::extra_octets_are_taken_and_missing_ones_are_marshal",
    },
    Quirk {
        name: "response flags of 2",
        peer: "several",
        recognized_by: Recognition::Bytes("response flags 0x02 in GIOP 1.2"),
        peer_behaviour: "sends a value that the specification does not define",
        zorb_behaviour: "sends no reply, like omniORB",
        test: "crates/giop-codec/tests/codec/giop_round_trip.rs::the_illegal_response_flag_means_no_reply_and_reserved_bits_are_ignored",
    },
    Quirk {
        name: "`_not_existent`",
        peer: "old servers of GIOP 1.0",
        recognized_by: Recognition::Bytes("BAD_OPERATION for `_non_existent`"),
        peer_behaviour: "knows the operation only by its old name `_not_existent`",
        zorb_behaviour: "repeats the call with the old name",
        test: "tests/interop/wire/references.rs::servers_of_old_are_asked_by_the_old_name",
    },
    Quirk {
        name: "old ids of system exceptions",
        peer: "ORBs before CORBA 2.3",
        recognized_by: Recognition::Bytes("`IDL:CORBA/...`"),
        peer_behaviour: "sends ids of system exceptions without `omg.org`",
        zorb_behaviour: "accepts any text before `CORBA/`, and any version",
        test: "crates/orb-runtime/src/quirks.rs::system_exceptions_are_known_by_their_old_ids",
    },
    Quirk {
        name: "corrupt components",
        peer: "several",
        recognized_by: Recognition::Bytes("a component that does not decode"),
        peer_behaviour: "publishes components that violate the specification",
        zorb_behaviour: "ignores only that component",
        test: "crates/giop-codec/tests/codec/ior_reference.rs::a_corrupt_component_spoils_only_itself",
    },
    Quirk {
        name: "end tags of bases",
        peer: "TAO",
        recognized_by: Recognition::Bytes("an end tag whose level no open value has"),
        peer_behaviour: "writes an end tag after the state of each base of a chunked value",
        zorb_behaviour: "ignores the end tag",
        test: "crates/giop-codec/tests/codec/value_octets.rs::end_tags_of_levels_that_no_value_has_end_nothing",
    },
    Quirk {
        name: "levels in open chunks",
        peer: "TAO",
        recognized_by: Recognition::Bytes("a chunked value inside of a chunk"),
        peer_behaviour: "counts levels from 1 again in a value inside of an open chunk",
        zorb_behaviour: "ends such a value at an end tag of level 1, or at the end of the chunk at an end tag of its own level",
        test: "crates/giop-codec/tests/codec/value_octets.rs::levels_begin_anew_inside_of_an_open_chunk",
    },
    Quirk {
        name: "values without chunks in chunks",
        peer: "TAO",
        recognized_by: Recognition::Bytes("the header of a value without chunks inside of a chunk"),
        peer_behaviour: "writes a value inside of a chunked value without its own chunks",
        zorb_behaviour: "reads its state as a part of the chunk",
        test: "crates/giop-codec/tests/codec/value_octets.rs::values_without_chunks_are_read_inside_of_a_chunk",
    },
    Quirk {
        name: "indirections to padding",
        peer: "Yoko",
        recognized_by: Recognition::Bytes("an indirection to up to 3 bytes before a repository id"),
        peer_behaviour: "refers to the padding before the id instead of to the id",
        zorb_behaviour: "also tries the next multiple of 4",
        test: "crates/giop-codec/tests/codec/value_octets.rs::an_indirection_to_an_id_may_lead_to_the_padding_before_it",
    },
    Quirk {
        name: "values without an id",
        peer: "Yoko",
        recognized_by: Recognition::Bytes("no bytes: it concerns all values of Java types"),
        peer_behaviour: "cannot read a value of a Java type without a repository id, which Java ORBs always send",
        zorb_behaviour: "always writes the ids of `RMI:` values and of `WStringValue`",
        test: "crates/giop-codec/tests/codec/value_octets.rs::ids_of_java_are_written_also_where_the_type_is_that_of_the_place",
    },
    Quirk {
        name: "type codes of Java strings",
        peer: "ORB of the JDK, GlassFish, Yoko",
        recognized_by: Recognition::Bytes(
            "the type code of a value box with the id of `WStringValue` and a string as content",
        ),
        peer_behaviour: "describes a box of a wstring as a box of a string",
        zorb_behaviour: "reads a box with this id as a box of a wstring",
        test: "crates/giop-codec/tests/codec/any_values/peers.rs::a_box_of_the_id_of_wstring_value_is_of_a_wstring",
    },
];

/// Returns the code sets that a server offers, except the ones that it handles wrongly.
pub(crate) fn usable_code_sets(profile: &IiopProfile) -> Option<CodeSetComponentInfo> {
    let mut offered = profile.code_sets()?;
    if REPLIES_IN_NATIVE_SET.applies_to(profile) || MISREADS_UTF_8.applies_to(profile) {
        offered.for_char.conversion.clear();
    }
    Some(offered)
}

/// Returns the size in bytes of the fragments for a server, if it rejects long messages.
pub(crate) fn fragment_size(profile: &IiopProfile) -> Option<usize> {
    let is_sun = profile.object_key.as_slice().starts_with(&SUN_KEY_PREFIX)
        || profile.component(ComponentTag::RMI_CUSTOM_MAX_STREAM_FORMAT).is_some();
    is_sun.then_some(GLASSFISH_FRAGMENT_SIZE)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use giop_codec::cdr::Decoder;
    use giop_codec::code_set::{CodeSetComponent, CodeSetId};
    use giop_codec::exception::SystemExceptionKind;
    use giop_codec::giop::ObjectKey;
    use giop_codec::ior::TaggedComponent;
    use giop_codec::{ByteOrder, Version};

    use super::*;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    #[test]
    fn names_of_quirks_are_unique_and_their_tests_exist() {
        for (at, quirk) in QUIRKS.iter().enumerate() {
            assert!(QUIRKS.iter().skip(at + 1).all(|other| other.name != quirk.name), "{}", quirk.name);
            let (file, function) = quirk.test.split_once("::").unwrap();
            let text = std::fs::read_to_string(root().join(file)).unwrap();
            assert!(text.contains(&format!("fn {function}() {{")), "{}: no test {}", quirk.name, quirk.test);
        }
    }

    #[test]
    fn the_document_lists_all_quirks() {
        let mut table = String::from(
            "| quirk | peer | recognized by | what the peer does | what zorb does |\n|---|---|---|---|---|\n",
        );
        for Quirk { name, peer, recognized_by, peer_behaviour, zorb_behaviour, .. } in QUIRKS {
            let recognized_by = match recognized_by {
                Recognition::OrbType(orb) => format!("`TAG_ORB_TYPE` {:#010x}", orb.0),
                Recognition::Bytes(bytes) => (*bytes).to_owned(),
            };
            writeln!(table, "| {name} | {peer} | {recognized_by} | {peer_behaviour} | {zorb_behaviour} |")
                .unwrap();
        }
        let path = root().join("docs/QUIRKS.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, _) = text.split_once("| quirk |").unwrap();
        let expected = format!("{before}{table}");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, expected).unwrap();
        } else {
            assert!(
                text == expected,
                "docs/QUIRKS.md differs: BLESS=1 cargo test -p orb-runtime --lib quirks"
            );
        }
    }

    #[test]
    fn only_the_native_code_set_of_jacorb_and_tao_is_used() {
        let sets = CodeSetComponentInfo {
            for_char: CodeSetComponent::new(CodeSetId::ISO_8859_1, &[CodeSetId::UTF_8]),
            for_wchar: CodeSetComponent::new(CodeSetId::UTF_16, &[CodeSetId::UCS_2]),
        };
        let usable = |orb: OrbType| {
            let profile = IiopProfile::new("h", 1, ObjectKey::from_static(b"k"))
                .with_component(TaggedComponent::orb_type(orb))
                .with_component(TaggedComponent::code_sets(&sets).unwrap());
            usable_code_sets(&profile).unwrap()
        };
        for orb in [OrbType::OMNIORB, OrbType::ZORB, OrbType(7)] {
            assert_eq!(usable(orb), sets);
        }
        let native = CodeSetComponent::new(CodeSetId::ISO_8859_1, &[]);
        for orb in [OrbType::JACORB, OrbType::TAO] {
            assert_eq!(usable(orb), CodeSetComponentInfo { for_char: native.clone(), ..sets.clone() });
        }
        let without_code_sets = IiopProfile::new("h", 1, ObjectKey::from_static(b"k"))
            .with_component(TaggedComponent::orb_type(OrbType::JACORB));
        assert_eq!(usable_code_sets(&without_code_sets), None);
    }

    #[test]
    fn strings_of_length_0_are_empty() {
        let mut d = Decoder::new(&[0, 0, 0, 0, 7], ByteOrder::Big, Version::V1_2);
        assert_eq!(d.read_string().as_deref(), Ok(""));
        assert_eq!(d.read_u8(), Ok(7), "only the length was read");
    }

    #[test]
    fn all_booleans_but_0_are_true() {
        let mut d = Decoder::new(&[0, 1, 2, 0xff], ByteOrder::Big, Version::V1_2);
        assert_eq!([(); 4].map(|()| d.read_bool().unwrap()), [false, true, true, true]);
    }

    // clause: exc.wire.id
    #[test]
    fn system_exceptions_are_known_by_their_old_ids() {
        let kind = Some(SystemExceptionKind::Transient);
        for id in
            ["IDL:omg.org/CORBA/TRANSIENT:1.0", "IDL:CORBA/TRANSIENT:1.0", "IDL:other/CORBA/TRANSIENT:1.1"]
        {
            assert_eq!(SystemExceptionKind::from_repository_id(id), kind, "{id}");
        }
        assert_eq!(SystemExceptionKind::from_repository_id("IDL:other/TRANSIENT:1.0"), None);
    }
}

//! Deviations of other ORBs from the specification, and how zorb handles them, in one table.
//!
//! Some quirks are recognized by the number that the peer's references carry (`TAG_ORB_TYPE`). Others are
//! recognized by bytes that no conforming peer sends. The first kind is queried here. The second kind is only
//! listed here, and is implemented where those bytes are decoded.

use giop_codec::code_set::CodeSetComponentInfo;
use giop_codec::ior::{ComponentTag, IiopProfile, OrbType};
use giop_proto::GLASSFISH_FRAGMENT;

/// A deviation of a peer, and how it is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirk {
    /// The name of the quirk in zorb.
    pub name: &'static str,
    /// The ORB with the quirk.
    pub peer: &'static str,
    /// How the quirk is recognized.
    pub by: Recognised,
    /// The behaviour of the peer.
    pub does: &'static str,
    /// The behaviour of zorb.
    pub done: &'static str,
    /// The test of the quirk: file and function.
    pub test: &'static str,
}

/// The way in which a quirk is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognised {
    /// By the ORB that the server's references name.
    OrbType(OrbType),
    /// By bytes that no other ORB sends, so that all peers may send them.
    Octets(&'static str),
}

impl Quirk {
    /// Returns whether the server of that profile has the quirk.
    #[must_use]
    pub fn is_of(&self, profile: &IiopProfile) -> bool {
        match self.by {
            Recognised::OrbType(orb) => profile.orb_type() == Some(orb),
            Recognised::Octets(_) => false,
        }
    }
}

/// JacORB reads requests in the negotiated set and writes replies in its native one.
pub const REPLIES_IN_NATIVE_SET: Quirk = Quirk {
    name: "replies in the native set",
    peer: "JacORB",
    by: Recognised::OrbType(OrbType::JACORB),
    does: "reads text in the negotiated code set, and writes it in its native one",
    done: "only the native set of the server counts in the negotiation",
    test: "crates/orb-runtime/src/quirks.rs::only_the_native_set_of_jacorb_and_tao_counts",
};

/// TAO's translator of UTF-8 reads and writes characters of two bytes wrongly: `é` becomes `@`.
pub(crate) const MISREADS_UTF_8: Quirk = Quirk {
    name: "UTF-8 by conversion",
    peer: "TAO",
    by: Recognised::OrbType(OrbType::TAO),
    does: "offers UTF-8 beside its native ISO 8859-1, and misreads and miswrites its characters of two bytes",
    done: "only the native set of the server counts in the negotiation",
    test: "crates/orb-runtime/src/quirks.rs::only_the_native_set_of_jacorb_and_tao_counts",
};

/// TAO cannot read chunks of a value whose base has state if they have the standard form.
pub(crate) const ENDS_BASES: Quirk = Quirk {
    name: "chunks of derived values",
    peer: "TAO",
    by: Recognised::OrbType(OrbType::TAO),
    does: "reads the state of a derived value in chunks only where an end tag follows that of each base",
    done: "requests to it have such end tags, and a value in a chunk is part of that chunk",
    test: "tests/interop/wire/tao.rs::derived_values_go_to_tao_with_an_end_for_each_base",
};

/// The prefix of object keys of GlassFish and of the JDK's ORB.
const SUN_KEY: [u8; 4] = [0xaf, 0xab, 0xcb, 0x00];

/// The table of all quirks.
pub const QUIRKS: &[Quirk] = &[
    REPLIES_IN_NATIVE_SET,
    MISREADS_UTF_8,
    ENDS_BASES,
    Quirk {
        name: "messages of at most 256,000 bytes",
        peer: "GlassFish",
        by: Recognised::Octets(
            "keys that begin with `af ab cb 00` or the component 38 in references, the service context 0x4e454f00 in requests",
        ),
        does: "drops the connection when one message is longer, but takes longer ones in fragments",
        done: "messages of GIOP 1.2 leave in fragments of 64 KiB",
        test: "tests/interop/wire/sun.rs::requests_and_replies_leave_in_pieces_that_glassfish_takes",
    },
    Quirk {
        name: "alignment in fragments of GIOP 1.1",
        peer: "omniORB",
        by: Recognised::Octets("a message in fragments of GIOP 1.1"),
        does: "aligns values from the start of the fragment that they are in",
        done: "they are read so: no other ORB sends such fragments",
        test: "crates/giop-proto/tests/proto/fragments.rs::values_in_giop_1_1_fragments_are_aligned_as_omniorb_aligns_them",
    },
    Quirk {
        name: "strings of length 0",
        peer: "old ORBs, JacORB by option",
        by: Recognised::Octets("a string without even its NUL"),
        does: "sends no octets for an empty string, or for none",
        done: "it is the empty string",
        test: "crates/orb-runtime/src/quirks.rs::strings_of_length_0_are_empty",
    },
    Quirk {
        name: "booleans of any value",
        peer: "old C and C++ ORBs",
        by: Recognised::Octets("a boolean that is neither 0 nor 1"),
        does: "sends its memory",
        done: "all but 0 is TRUE",
        test: "crates/orb-runtime/src/quirks.rs::all_booleans_but_0_are_true",
    },
    Quirk {
        name: "byte order marks",
        peer: "omniORB, TAO, glassfish",
        by: Recognised::Octets("UTF-16 in GIOP 1.2 that begins with U+FEFF"),
        does: "says the byte order of wide text by a mark",
        done: "the mark is obeyed and removed; zorb sends big-endian without one",
        test: "crates/giop-codec/tests/codec/cdr_captured.rs::wide_text_as_omniorb_sends_it_is_understood",
    },
    Quirk {
        name: "UCS-4 in the order of the stream",
        peer: "omniORB",
        by: Recognised::Octets("UCS-4 was negotiated"),
        does: "writes UCS-4 in the byte order of the message, and knows it as level 3 only",
        done: "likewise; any level is taken",
        test: "crates/giop-codec/tests/codec/code_sets.rs::wide_text_in_ucs_4_has_four_octets_in_the_order_of_the_stream",
    },
    Quirk {
        name: "numbers of code sets",
        peer: "omniORB",
        by: Recognised::Octets("code sets 0x100201f8, 0x10020567"),
        does: "names IBM-500 and GBK by other numbers than the registry",
        done: "both numbers are known; the one that the server offered is announced",
        test: "crates/giop-codec/tests/codec/code_sets.rs::the_sets_are_found_step_by_step",
    },
    Quirk {
        name: "VisiBroker's component of SSL",
        peer: "VisiBroker",
        by: Recognised::Octets("TAG_SSL_SEC_TRANS that is not 8 octets long"),
        does: "writes the associations as ulongs",
        done: "it is read so",
        test: "crates/giop-codec/tests/codec/ior_reference.rs::ssl_is_read_in_both_forms",
    },
    Quirk {
        name: "brackets around hosts",
        peer: "several",
        by: Recognised::Octets("a host in [ and ]"),
        does: "puts an IPv6 address into profiles and listen points as URLs have it",
        done: "the brackets are taken off",
        test: "crates/giop-codec/tests/codec/ior_reference.rs::brackets_of_ipv6_addresses_are_taken_off",
    },
    Quirk {
        name: "profiles of later versions",
        peer: "ORBs that publish IIOP 1.3 and later",
        by: Recognised::Octets("a minor version above 2 in a profile"),
        does: "publishes what does not exist in the field",
        done: "it is 1.2, and what stands behind the known fields is ignored",
        test: "crates/giop-codec/tests/codec/ior_reference.rs::versions_above_1_2_read_as_1_2_and_other_majors_are_passed_over",
    },
    Quirk {
        name: "fixed without leading zeros",
        peer: "JacORB",
        by: Recognised::Octets("the sign of a fixed before its last octet"),
        does: "leaves out octets that are zero at the start of a fixed",
        done: "the sign is the end",
        test: "crates/giop-codec/tests/codec/cdr_fixed.rs::what_jacorb_leaves_out_is_zero",
    },
    Quirk {
        name: "signs of packed decimals",
        peer: "mainframes",
        by: Recognised::Octets("a sign other than C and D"),
        does: "writes F for plus",
        done: "it is plus",
        test: "crates/giop-codec/tests/codec/cdr_fixed.rs::signs_of_others_are_read",
    },
    Quirk {
        name: "open chunks",
        peer: "TAO",
        by: Recognised::Octets("the header of a value inside of a chunk"),
        does: "leaves the chunk around a nested value open",
        done: "the chunk goes on behind the value",
        test: "crates/giop-codec/tests/codec/value_octets.rs::a_chunk_may_stay_open_around_a_value",
    },
    Quirk {
        name: "nil of abstract interfaces",
        peer: "omniORB",
        by: Recognised::Octets("TRUE and a nil reference"),
        does: "sends a nil object where the text has a null value",
        done: "both are nil",
        test: "crates/orb-runtime/src/reference/abstract_value.rs::a_boolean_tells_references_from_values",
    },
    Quirk {
        name: "visibilities the wrong way round",
        peer: "omniORB",
        by: Recognised::Octets("the type code of a value type"),
        does: "says public of private members, and private of public ones",
        done: "visibilities do not decide whether types are the same",
        test: "tests/interop/anys/mod.rs::values_as_omniorb_writes_them",
    },
    Quirk {
        name: "indirections to what is around",
        peer: "JacORB, Combat",
        by: Recognised::Octets("type codes of sequences and aliases that are part of themselves"),
        does: "finds a struct, union or value type that is around its use; JacORB no sequence or array, Combat no alias",
        done: "sequences, arrays and aliases are spelled out once more within themselves, to any peer",
        test: "crates/giop-codec/tests/codec/typecode.rs::sequences_and_aliases_are_not_referred_to_from_within",
    },
    Quirk {
        name: "octets behind the last parameter",
        peer: "old ORBs",
        by: Recognised::Octets("a request that is longer than its parameters"),
        does: "sends some more",
        done: "they are ignored",
        test: "tests/interop/wire/server.rs::extra_octets_are_taken_and_missing_ones_are_marshal",
    },
    Quirk {
        name: "response flags of 2",
        peer: "several",
        by: Recognised::Octets("response flags 0x02 in GIOP 1.2"),
        does: "sends what the text has no meaning for",
        done: "no reply is sent, as by omniORB",
        test: "crates/giop-codec/tests/codec/giop_round_trip.rs::the_illegal_response_flag_means_no_reply_and_reserved_bits_are_ignored",
    },
    Quirk {
        name: "`_not_existent`",
        peer: "servers of GIOP 1.0 times",
        by: Recognised::Octets("BAD_OPERATION for `_non_existent`"),
        does: "knows the operation by its old name only",
        done: "it is asked again by that",
        test: "tests/interop/wire/references.rs::servers_of_old_are_asked_by_the_old_name",
    },
    Quirk {
        name: "old ids of system exceptions",
        peer: "ORBs before CORBA 2.3",
        by: Recognised::Octets("`IDL:CORBA/...`"),
        does: "has no prefix in the ids of system exceptions",
        done: "the last part of the id decides",
        test: "crates/orb-runtime/src/quirks.rs::system_exceptions_are_known_by_their_old_ids",
    },
    Quirk {
        name: "corrupt components",
        peer: "several",
        by: Recognised::Octets("a component that does not decode"),
        does: "publishes components that are not as the text has them",
        done: "the component counts as missing, and spoils nothing else",
        test: "crates/giop-codec/tests/codec/ior_reference.rs::a_corrupt_component_spoils_only_itself",
    },
    Quirk {
        name: "end tags of bases",
        peer: "TAO",
        by: Recognised::Octets("an end tag of a level that no value has"),
        does: "ends the state of each base in a chunked value by an end tag",
        done: "it ends nothing",
        test: "crates/giop-codec/tests/codec/value_octets.rs::end_tags_of_levels_that_no_value_has_end_nothing",
    },
    Quirk {
        name: "levels in open chunks",
        peer: "TAO",
        by: Recognised::Octets("a chunked value inside of a chunk"),
        does: "counts levels anew from 1 in a value inside of an open chunk",
        done: "such a value ends by the end tag of level 1, or of its own level at the end of the chunk",
        test: "crates/giop-codec/tests/codec/value_octets.rs::levels_begin_anew_inside_of_an_open_chunk",
    },
    Quirk {
        name: "values without chunks in chunks",
        peer: "TAO",
        by: Recognised::Octets("the header of a value without chunks inside of a chunk"),
        does: "writes a value that is in a chunked value without chunks of its own",
        done: "its state is part of the chunk",
        test: "crates/giop-codec/tests/codec/value_octets.rs::values_without_chunks_are_read_inside_of_a_chunk",
    },
    Quirk {
        name: "indirections to padding",
        peer: "Yoko",
        by: Recognised::Octets("an indirection to up to 3 bytes before a repository id"),
        does: "refers to the padding before the id",
        done: "the next multiple of 4 is looked at, too",
        test: "crates/giop-codec/tests/codec/value_octets.rs::an_indirection_to_an_id_may_lead_to_the_padding_before_it",
    },
    Quirk {
        name: "values without an id",
        peer: "Yoko",
        by: Recognised::Octets("none: the ids of Java are known"),
        does: "cannot read a value of Java without a repository id, which no Java ORB leaves out",
        done: "the id of `RMI:` values and of `WStringValue` is always written",
        test: "crates/giop-codec/tests/codec/value_octets.rs::ids_of_java_are_written_also_where_the_type_is_that_of_the_place",
    },
    Quirk {
        name: "type codes of Java strings",
        peer: "ORB of the JDK, GlassFish, Yoko",
        by: Recognised::Octets("a value box with the id of `WStringValue` and a string in it"),
        does: "describes the box of a wstring as that of a string",
        done: "a box of this id is one of a wstring",
        test: "crates/giop-codec/tests/codec/any_values/peers.rs::a_box_of_the_id_of_wstring_value_is_of_a_wstring",
    },
];

/// Returns the code sets that a server offers for text, without those that it handles wrongly.
pub(crate) fn code_sets_of(profile: &IiopProfile) -> Option<CodeSetComponentInfo> {
    let mut offered = profile.code_sets()?;
    if REPLIES_IN_NATIVE_SET.is_of(profile) || MISREADS_UTF_8.is_of(profile) {
        offered.for_char.conversion.clear();
    }
    Some(offered)
}

/// Returns the maximum size of a message or fragment that the server accepts, in bytes, if it is known.
pub(crate) fn takes_at_most(profile: &IiopProfile) -> Option<usize> {
    let is_sun = profile.object_key.as_slice().starts_with(&SUN_KEY)
        || profile.component(ComponentTag::RMI_CUSTOM_MAX_STREAM_FORMAT).is_some();
    is_sun.then_some(GLASSFISH_FRAGMENT)
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
    fn each_has_a_name_of_its_own_and_a_test() {
        for (at, quirk) in QUIRKS.iter().enumerate() {
            assert!(QUIRKS.iter().skip(at + 1).all(|other| other.name != quirk.name), "{}", quirk.name);
            let (file, function) = quirk.test.split_once("::").unwrap();
            let text = std::fs::read_to_string(root().join(file)).unwrap();
            assert!(text.contains(&format!("fn {function}() {{")), "{}: no test {}", quirk.name, quirk.test);
        }
    }

    #[test]
    fn the_document_has_them_all() {
        let mut table = String::from(
            "| quirk | peer | recognised by | what the peer does | what zorb does |\n|---|---|---|---|---|\n",
        );
        for Quirk { name, peer, by, does, done, .. } in QUIRKS {
            let by = match by {
                Recognised::OrbType(orb) => format!("`TAG_ORB_TYPE` {:#010x}", orb.0),
                Recognised::Octets(octets) => (*octets).to_owned(),
            };
            writeln!(table, "| {name} | {peer} | {by} | {does} | {done} |").unwrap();
        }
        let path = root().join("docs/QUIRKS.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, _) = text.split_once("| quirk |").unwrap();
        let wanted = format!("{before}{table}");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, wanted).unwrap();
        } else {
            assert!(text == wanted, "docs/QUIRKS.md differs: BLESS=1 cargo test -p orb-runtime --lib quirks");
        }
    }

    #[test]
    fn only_the_native_set_of_jacorb_and_tao_counts() {
        let sets = CodeSetComponentInfo {
            for_char: CodeSetComponent::new(CodeSetId::ISO_8859_1, &[CodeSetId::UTF_8]),
            for_wchar: CodeSetComponent::new(CodeSetId::UTF_16, &[CodeSetId::UCS_2]),
        };
        let of = |orb: OrbType| {
            let profile = IiopProfile::new("h", 1, ObjectKey::from_static(b"k"))
                .with_component(TaggedComponent::orb_type(orb))
                .with_component(TaggedComponent::code_sets(&sets).unwrap());
            code_sets_of(&profile).unwrap()
        };
        for orb in [OrbType::OMNIORB, OrbType::ZORB, OrbType(7)] {
            assert_eq!(of(orb), sets);
        }
        let native = CodeSetComponent::new(CodeSetId::ISO_8859_1, &[]);
        for orb in [OrbType::JACORB, OrbType::TAO] {
            assert_eq!(of(orb), CodeSetComponentInfo { for_char: native.clone(), ..sets.clone() });
        }
        let silent = IiopProfile::new("h", 1, ObjectKey::from_static(b"k"))
            .with_component(TaggedComponent::orb_type(OrbType::JACORB));
        assert_eq!(code_sets_of(&silent), None);
    }

    #[test]
    fn strings_of_length_0_are_empty() {
        let mut d = Decoder::new(&[0, 0, 0, 0, 7], ByteOrder::Big, Version::V1_2);
        assert_eq!(d.read_string().as_deref(), Ok(""));
        assert_eq!(d.read_u8(), Ok(7), "nothing else was taken");
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

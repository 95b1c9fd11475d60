//! Components of profiles and service contexts: listen points, policies, Unix sockets, numbers of operations.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use giop_codec::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use giop_codec::giop::{
    BiDirIiopServiceContext, ContextId, ListenPoint, MAX_LISTEN_POINTS, ObjectKey, ServiceContext,
    ServiceContexts,
};
use giop_codec::ior::{
    ComponentTag, IiopProfile, InterfaceNumbers, InvocationPolicy, Ior, MAX_NUMBERED_INTERFACES,
    MAX_POLICIES, OmniUnixAddress, OperationNumbers, OrbType, OtsPolicy, Policies, Policy, PolicyType,
    ProfileError, ProfileTag, RangeOf, RebindMode, RoutingType, SyncScope, TaggedComponent, TaggedProfile,
    UiopProfile, UtcTime,
};
use giop_codec::{ByteOrder, DecodeErrorKind, Version};
use proptest::prelude::*;

/// The context data of an omniORB 4.2.5 client that listens at 127.0.0.1:39991.
const LISTEN_POINTS: &str = "01 000000 01000000 0a000000 3132372e302e302e3100 379c";

/// A reference of an omniORB 4.2.5 server on TCP and on the Unix socket /tmp/omni.sock of the host `vm`.
const WITH_UNIX_SOCKET: &str =
    "01000000 2b000000 49444c3a6f6d672e6f72672f436f734e616d696e672f4e616d696e67436f6e746578
    744578743a312e3000 00 01000000 00000000 94000000 01010200 0a000000 3132372e302e302e3100 d5b4
    0b000000 4e616d655365727669636500 04000000
    00000000 08000000 01 000000 00545441
    01000000 1c000000 01 000000 01000100 01000000 01000105 09010100 01000000 09010100
    02545441 1f000000 01 000000 03000000 766d0000 0f000000 2f746d702f6f6d6e692e736f636b00 00
    03545441 08000000 e87f026b0100503c";

fn octets(text: &str) -> Bytes {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Checks that truncated data is not read as this component.
fn cuts_are_nothing<T>(component: &TaggedComponent, read: impl Fn(&TaggedComponent) -> Option<T>) {
    for cut in 0..component.data.len() {
        let cut_off = TaggedComponent { tag: component.tag, data: component.data.slice(..cut) };
        assert!(read(&cut_off).is_none(), "{component:?} cut to {cut} octets");
    }
    let other = TaggedComponent { tag: ComponentTag::NULL_TAG, data: component.data.clone() };
    assert!(read(&other).is_none(), "{component:?} with another tag");
}

// clause: giop.bidir.context
#[test]
fn captured_listen_points_read_and_are_rebuilt_octet_for_octet() {
    let points = BiDirIiopServiceContext {
        listen_points: vec![ListenPoint { host: "127.0.0.1".into(), port: 39991 }],
    };
    let context = ServiceContext { id: ContextId::BI_DIR_IIOP, data: octets(LISTEN_POINTS) };
    assert_eq!(points.to_service_context().unwrap(), context);

    let list = [context];
    let received = ServiceContexts::from(&list).find(ContextId::BI_DIR_IIOP).unwrap();
    assert_eq!(BiDirIiopServiceContext::from_service_context(&received), Ok(Some(points)));
    for cut in 0..received.data.len() {
        let list = [ServiceContext { id: ContextId::BI_DIR_IIOP, data: list[0].data.slice(..cut) }];
        let received = ServiceContexts::from(&list).find(ContextId::BI_DIR_IIOP).unwrap();
        assert!(BiDirIiopServiceContext::from_service_context(&received).is_err(), "cut to {cut} octets");
    }
    let other = [ServiceContext { id: ContextId::CODE_SETS, data: octets(LISTEN_POINTS) }];
    let other = ServiceContexts::from(&other).find(ContextId::CODE_SETS).unwrap();
    assert_eq!(BiDirIiopServiceContext::from_service_context(&other), Ok(None));
}

// clause: giop.bidir.match
#[test]
fn listen_points_cover_addresses_to_the_letter() {
    let points = BiDirIiopServiceContext {
        listen_points: vec![ListenPoint::new("host", 1), ListenPoint::new("fe80::1", 2)],
    };
    assert!(points.covers("host", 1) && points.covers("fe80::1", 2));
    for (host, port) in [("host", 2), ("HOST", 1), ("host.", 1), ("fe80:0::1", 2), ("", 1)] {
        assert!(!points.covers(host, port), "{host} {port}");
    }
    // Brackets are removed, as in profiles.
    let bracketed = BiDirIiopServiceContext { listen_points: vec![ListenPoint::new("[fe80::1]", 2)] };
    let context = bracketed.to_service_context().unwrap();
    let read: BiDirIiopServiceContext =
        ServiceContexts::from(&[context]).find(ContextId::BI_DIR_IIOP).unwrap().value().unwrap();
    assert!(read.covers("fe80::1", 2));
}

#[test]
fn floods_of_listen_points_and_policies_are_refused() {
    let decode = |octets: &[u8]| {
        let mut d = Decoder::new(octets, ByteOrder::Big, Version::V1_2);
        let points = BiDirIiopServiceContext::decode(&mut d.clone()).map(|p| p.listen_points.len());
        let policies = Policies::decode(&mut d).map(|p| p.0.len());
        (points.map_err(|e| e.kind), policies.map_err(|e| e.kind))
    };
    let lie = decode(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    assert_eq!(lie, (Err(DecodeErrorKind::LengthBeyondData), Err(DecodeErrorKind::LengthBeyondData)));
    let encode = |value: &dyn Fn(&mut Encoder)| {
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        value(&mut e);
        e.into_bytes()
    };
    for (more, taken) in [(0, true), (1, false)] {
        let points = vec![ListenPoint::new("", 1); MAX_LISTEN_POINTS + more];
        let points =
            encode(&|e| BiDirIiopServiceContext { listen_points: points.clone() }.encode(e).unwrap());
        let policies = vec![Policy::MaxHops(1); MAX_POLICIES + more];
        let policies = encode(&|e| Policies(policies.clone()).encode(e).unwrap());
        let expected = |n: usize| if taken { Ok(n) } else { Err(DecodeErrorKind::LimitExceeded) };
        assert_eq!(decode(&points).0, expected(MAX_LISTEN_POINTS));
        assert_eq!(decode(&policies).1, expected(MAX_POLICIES));
    }
    let interfaces = vec![InterfaceNumbers::new("", &[], 0); MAX_NUMBERED_INTERFACES + 1];
    let numbers = TaggedComponent::zorb_operations(&OperationNumbers { interfaces }).unwrap();
    assert_eq!(numbers.as_zorb_operations(), None);
}

// clause: ior.component.omniorb_unix, ior.component.orb_type
#[test]
fn a_captured_reference_names_its_unix_socket() {
    let ior =
        Ior::decode(&mut Decoder::new(&octets(WITH_UNIX_SOCKET), ByteOrder::Little, Version::V1_2).at(4));
    let profile = ior.unwrap().iiop_profile().unwrap();
    assert_eq!((profile.host.as_str(), profile.port), ("127.0.0.1", 46293));
    assert_eq!(profile.orb_type(), Some(OrbType::OMNIORB));
    let address = OmniUnixAddress { host: "vm".into(), path: "/tmp/omni.sock".into() };
    assert_eq!(profile.omni_unix_addresses().collect::<Vec<_>>(), std::slice::from_ref(&address));

    let built = TaggedComponent::omni_unix(&address).unwrap();
    assert_eq!(Some(&built), profile.component(ComponentTag::OMNI_UNIX));
    cuts_are_nothing(&built, TaggedComponent::as_omni_unix);
}

// clause: ior.profile.tao_uiop
#[test]
fn profiles_of_unix_sockets_read_and_are_rebuilt() {
    let table = [
        (Version::V1_0, "01 0100 00 0c000000 2f746d702f752e736f636b00 03000000 6b6579"),
        (Version::V1_2, "01 0102 00 0c000000 2f746d702f752e736f636b00 03000000 6b6579 00 00000000"),
    ];
    for (version, data) in table {
        let tagged = TaggedProfile { tag: ProfileTag::TAO_UIOP, data: octets(data) };
        let profile = UiopProfile::from_tagged(&tagged).unwrap();
        assert_eq!((profile.version, profile.path.as_str()), (version, "/tmp/u.sock"));
        assert_eq!(profile.object_key.as_slice(), b"key");
        assert_eq!(profile.to_tagged().unwrap(), tagged);
        for cut in 0..tagged.data.len() {
            let cut_off = TaggedProfile { tag: tagged.tag, data: tagged.data.slice(..cut) };
            assert!(matches!(UiopProfile::from_tagged(&cut_off), Err(ProfileError::Decode(_))), "{cut}");
        }
    }
    let profile = UiopProfile::new("/run/x", ObjectKey::from_static(b"k"))
        .with_component(TaggedComponent::orb_type(OrbType::TAO));
    let iiop = IiopProfile::new("h", 1, ObjectKey::from_static(b"k"));
    let major = TaggedProfile { tag: ProfileTag::TAO_UIOP, data: octets("01 0200 00 01000000 00") };
    let profiles = vec![iiop.to_tagged().unwrap(), major.clone(), profile.to_tagged().unwrap()];
    let ior = Ior { type_id: String::new(), profiles };
    assert_eq!(ior.uiop_profiles().collect::<Vec<_>>(), [profile]);
    assert_eq!(ior.iiop_profiles().collect::<Vec<_>>(), [iiop]);
    assert_eq!(UiopProfile::from_tagged(&major), Err(ProfileError::MajorVersion(2)));
    let tag = ProfileTag::INTERNET_IOP;
    assert_eq!(UiopProfile::from_tagged(&ior.profiles[0]), Err(ProfileError::Tag(tag)));
}

// clause: ior.component.orb_type
#[test]
fn orbs_are_known_by_their_number() {
    let component = TaggedComponent::orb_type(OrbType::ZORB);
    assert_eq!(component.data, octets("01 000000 00524f5a"));
    assert_eq!(component.as_orb_type(), Some(OrbType::ZORB));
    cuts_are_nothing(&component, TaggedComponent::as_orb_type);
    let names =
        [OrbType::OMNIORB, OrbType::JACORB, OrbType::TAO, OrbType::ZORB, OrbType(7)].map(OrbType::name);
    assert_eq!(names, [Some("omniORB"), Some("JacORB"), Some("TAO"), Some("zorb"), None]);
    assert_eq!(OrbType::JACORB.to_string(), "JacORB (0x4a414300)");
    assert_eq!(OrbType(7).to_string(), "0x00000007");
}

fn policies() -> Policies {
    let time = UtcTime { time: 0x0102_0304_0506_0708, inaccuracy: 0x0000_a1a2_a3a4_a5a6, displacement: -60 };
    Policies(vec![
        Policy::Rebind(RebindMode::NoReconnect),
        Policy::SyncScope(SyncScope::WithServer),
        Policy::RequestPriority(RangeOf { min: -1, max: 7 }),
        Policy::ReplyPriority(RangeOf { min: 0, max: 0 }),
        Policy::RequestStartTime(time),
        Policy::RequestEndTime(time),
        Policy::ReplyStartTime(time),
        Policy::ReplyEndTime(time),
        Policy::RelativeRequestTimeout(Duration::from_nanos(100)),
        Policy::RelativeRoundtripTimeout(Duration::from_secs(1)),
        Policy::Routing(RangeOf { min: RoutingType::None, max: RoutingType::StoreAndForward }),
        Policy::MaxHops(4),
        Policy::QueueOrder(0b1010),
        Policy::Bidirectional(true),
        Policy::Other { kind: PolicyType(40), value: Bytes::from_static(b"\x01whatever") },
    ])
}

// clause: ior.component.policies
#[test]
fn policies_travel_in_references_and_in_contexts() {
    let policies = policies();
    let component = TaggedComponent::policies(&policies).unwrap();
    assert_eq!(component.as_policies().as_ref(), Some(&policies));
    cuts_are_nothing(&component, TaggedComponent::as_policies);
    let profile = IiopProfile::new("h", 1, ObjectKey::from_static(b"k")).with_component(component.clone());
    assert_eq!(profile.policies().as_ref(), Some(&policies));

    let context = policies.to_service_context().unwrap();
    assert_eq!((context.id, &context.data), (ContextId::INVOCATION_POLICIES, &component.data));
    let read = ServiceContexts::from(&[context]).find(ContextId::INVOCATION_POLICIES).unwrap().value();
    assert_eq!(read.as_ref(), Ok(&policies));

    assert_eq!(policies.find(PolicyType::MAX_HOPS), Some(&Policy::MaxHops(4)));
    assert_eq!(policies.find(PolicyType(99)), None);
    let kinds: Vec<u32> = policies.0.iter().map(|policy| policy.kind().0).collect();
    assert_eq!(kinds, [23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 37, 40]);
}

// clause: ior.component.policies
#[test]
fn policies_have_the_octets_of_the_messaging_idl() {
    let table = [
        ("00000017 00000004 00 00 0001", Policy::Rebind(RebindMode::NoRebind)),
        (
            "00000020 00000010 00 00000000000000 0000000000989680",
            Policy::RelativeRoundtripTimeout(Duration::from_secs(1)),
        ),
        (
            "0000001c 00000018 00 00000000000000 0000000000000001 00000002 0003 ffff",
            Policy::RequestEndTime(UtcTime { time: 1, inaccuracy: 3 << 32 | 2, displacement: -1 }),
        ),
        ("00000025 00000004 00 00 0001", Policy::Bidirectional(true)),
        (
            "00000021 00000006 00 00 0001 0002",
            Policy::Routing(RangeOf { min: RoutingType::Forward, max: RoutingType::StoreAndForward }),
        ),
    ];
    for (data, policy) in table {
        let octets = octets(data);
        let mut d = Decoder::new(&octets, ByteOrder::Big, Version::V1_2);
        assert_eq!(Policy::decode(&mut d).as_ref(), Ok(&policy));
        assert_eq!(d.remaining(), 0);
        // Values are separate encapsulations, which are written little-endian; everything else is equal.
        let mut e = Encoder::new(ByteOrder::Big, Version::V1_2);
        policy.encode(&mut e).unwrap();
        let written = e.into_bytes();
        assert_eq!((&written[..8], written.len()), (&octets[..8], octets.len()));
        let mut d = Decoder::new(&written, ByteOrder::Big, Version::V1_2);
        assert_eq!(Policy::decode(&mut d), Ok(policy));
    }
}

#[test]
fn a_policy_that_can_not_be_read_spoils_only_itself() {
    let strange = [
        (PolicyType::REBIND, "00 00 0003"),
        (PolicyType::SYNC_SCOPE, "00 00 ffff"),
        (PolicyType::ROUTING, "00 00 0000 0003"),
        (PolicyType::BIDIRECTIONAL, "00 00 0002"),
        (PolicyType::MAX_HOPS, "00"),
        (PolicyType::REPLY_END_TIME, ""),
    ];
    for (kind, value) in strange {
        let value = octets(value);
        let policy = Policy::from_value(kind, value.clone());
        assert_eq!(policy, Policy::Other { kind, value });
        let both = Policies(vec![policy, Policy::MaxHops(1)]);
        assert_eq!(TaggedComponent::policies(&both).unwrap().as_policies(), Some(both));
    }
}

#[test]
fn ranges_meet_where_both_take_a_value() {
    let range = |min: i16, max| RangeOf { min, max };
    assert_eq!(range(0, 5).intersection(range(3, 9)), Some(range(3, 5)));
    assert_eq!(range(0, 5).intersection(range(5, 9)), Some(range(5, 5)));
    assert_eq!(range(0, 5).intersection(range(6, 9)), None);
    assert_eq!(range(5, 0).intersection(range(0, 9)), None, "an empty range meets nothing");
}

#[test]
fn moments_are_counted_from_the_gregorian_reform() {
    let epoch = UtcTime::from_system_time(SystemTime::UNIX_EPOCH);
    // 141,427 days.
    assert_eq!(epoch.time, 141_427 * 86_400 * 10_000_000);
    for moment in [
        SystemTime::UNIX_EPOCH,
        SystemTime::UNIX_EPOCH + Duration::new(1_900_000_000, 700),
        SystemTime::UNIX_EPOCH - Duration::from_secs(86_400 * 141_427),
    ] {
        assert_eq!(UtcTime::from_system_time(moment).to_system_time(), Some(moment));
    }
    let long_ago = SystemTime::UNIX_EPOCH - Duration::from_secs(86_400 * 150_000);
    assert_eq!(UtcTime::from_system_time(long_ago).time, 0);
    // Whether the last time that can be encoded can be represented as system time depends on the system; it
    // must not panic.
    let _ = UtcTime { time: u64::MAX, inaccuracy: 0, displacement: 0 }.to_system_time();
}

#[test]
fn policies_of_transactions_are_numbers() {
    for policy in [OtsPolicy::Requires, OtsPolicy::Forbids, OtsPolicy::Adapts] {
        assert_eq!(TaggedComponent::ots_policy(policy).as_ots_policy(), Some(policy));
    }
    for policy in [InvocationPolicy::Either, InvocationPolicy::Shared, InvocationPolicy::Unshared] {
        assert_eq!(TaggedComponent::invocation_policy(policy).as_invocation_policy(), Some(policy));
    }
    assert_eq!(TaggedComponent::ots_policy(OtsPolicy::Forbids).data, octets("01 00 0200"));
    assert_eq!(TaggedComponent::invocation_policy(InvocationPolicy::Shared).data, octets("01 00 0100"));
    for tag in [ComponentTag::OTS_POLICY, ComponentTag::INV_POLICY] {
        let strange = TaggedComponent { tag, data: octets("01 00 0900") };
        assert_eq!((strange.as_ots_policy(), strange.as_invocation_policy()), (None, None));
    }
    cuts_are_nothing(&TaggedComponent::ots_policy(OtsPolicy::Forbids), TaggedComponent::as_ots_policy);
}

#[test]
fn operations_have_numbers_where_both_sides_know_the_same_interface() {
    const BASE: InterfaceNumbers = InterfaceNumbers::new("IDL:Base:1.0", &["a", "b"], 0);
    let derived = InterfaceNumbers::new("IDL:Derived:1.0", &["c"], 2);
    let numbers = OperationNumbers { interfaces: vec![BASE, derived] };
    let component = TaggedComponent::zorb_operations(&numbers).unwrap();
    assert_eq!(component.as_zorb_operations().as_ref(), Some(&numbers));
    cuts_are_nothing(&component, TaggedComponent::as_zorb_operations);

    assert_eq!(numbers.first_of(derived.id_hash, derived.digest), Some(2));
    assert_eq!(numbers.first_of(InterfaceNumbers::id_hash_of("IDL:Other:1.0"), derived.digest), None);
    for other in [&["c", "d"][..], &["d"], &[], &["b", "a"], &["ab"]] {
        let digest = InterfaceNumbers::digest_of(other);
        assert_eq!(numbers.first_of(BASE.id_hash, digest), None, "{other:?}");
    }
    // The published values of FNV-1a, which must be the same for all versions of peers.
    assert_eq!(InterfaceNumbers::id_hash_of("a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(InterfaceNumbers::digest_of(&[]), 0xcbf2_9ce4_8422_2325);

    let mut later = component.data.to_vec();
    later[1] = OperationNumbers::VERSION + 1;
    let later = TaggedComponent { tag: ComponentTag::ZORB_OPERATIONS, data: later.into() };
    assert_eq!(later.as_zorb_operations(), None, "of another version nothing is known");
}

proptest! {
    #[test]
    fn components_and_contexts_round_trip(
        points in prop::collection::vec(("[a-z0-9.:-]{0,12}", any::<u16>()), 0..6),
        values in prop::collection::vec((20..42_u32, prop::collection::vec(any::<u8>(), 0..30)), 0..6),
        numbers in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u32>()), 0..6),
        path in "[ -~]{0,30}",
        before in 0..8_usize,
    ) {
        let points: Vec<_> = points.into_iter().map(|(host, port)| ListenPoint { host, port }).collect();
        let points = BiDirIiopServiceContext { listen_points: points };
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut e = Encoder::new(order, Version::V1_2);
            e.put_raw(&vec![0; before]);
            points.encode(&mut e).unwrap();
            let octets = e.into_bytes();
            let mut d = Decoder::new(&octets, order, Version::V1_2).at(before);
            prop_assert_eq!(BiDirIiopServiceContext::decode(&mut d), Ok(points.clone()));
            prop_assert_eq!(d.remaining(), 0);
        }
        // Unknown values must be passed on with the same meaning.
        let policies = values.into_iter().map(|(kind, value)| Policy::from_value(PolicyType(kind), value.into()));
        let policies = Policies(policies.collect());
        prop_assert_eq!(TaggedComponent::policies(&policies).unwrap().as_policies(), Some(policies));
        let interfaces = numbers.into_iter().map(|(id_hash, digest, first)| InterfaceNumbers { id_hash, digest, first });
        let numbers = OperationNumbers { interfaces: interfaces.collect() };
        prop_assert_eq!(TaggedComponent::zorb_operations(&numbers).unwrap().as_zorb_operations(), Some(numbers));
        let profile = UiopProfile::new(path, ObjectKey::from_static(b"k"));
        prop_assert_eq!(UiopProfile::from_tagged(&profile.to_tagged().unwrap()), Ok(profile));
    }
}

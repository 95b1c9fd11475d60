//! Equivalence of references: whether two references certainly refer to the same object.

use std::collections::HashSet;
use std::sync::Arc;

use giop_codec::ior::IiopProfile;

use crate::reference::object::ObjectRef;

impl ObjectRef {
    /// Returns whether both references certainly refer to the same object. For objects of this ORB, their
    /// keys must be equal. Otherwise the object keys of the first profiles must be equal, and the references
    /// must share an address for this key.
    pub(crate) fn is_same_object(&self, other: &Self) -> bool {
        if std::ptr::eq(self.ior(), other.ior()) {
            return true;
        }
        if let (Some(a), Some(b)) = (self.own_key(), other.own_key()) {
            return a == b && Arc::ptr_eq(self.orb(), other.orb());
        }
        let (Some(key), Some(other_key)) = (self.first_key(), other.first_key()) else { return false };
        if key != other_key {
            return false;
        }
        // Use a hash set, because a reference may have thousands of addresses.
        let other_addresses: HashSet<ServerAddress> = other.server_addresses(key).collect();
        self.server_addresses(key).any(|address| other_addresses.contains(&address))
    }

    /// Returns a hash of the object key. It is equal for equivalent references, in every process. It does not
    /// depend on addresses, because equivalent references may differ in these.
    pub(crate) fn key_hash(&self) -> u64 {
        let key = self.own_key().or_else(|| self.first_key()).unwrap_or_default();
        // The hash function is FNV-1a.
        key.iter().fold(0xcbf2_9ce4_8422_2325, |state, byte| {
            (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    fn first_key(&self) -> Option<&[u8]> {
        self.ior_profiles().first().map(|profile| profile.object_key.as_slice())
    }

    fn server_addresses(&self, key: &[u8]) -> impl Iterator<Item = ServerAddress> {
        let profiles = self.ior_profiles().iter().filter(move |profile| profile.object_key.as_slice() == key);
        profiles.flat_map(server_addresses)
    }
}

/// The address of a server: a TCP address with or without TLS, whose host name is in lower case, or a Unix
/// socket.
#[derive(PartialEq, Eq, Hash)]
enum ServerAddress {
    Tcp { host: String, port: u16 },
    Unix { host: String, path: String },
}

fn server_addresses(profile: &IiopProfile) -> impl Iterator<Item = ServerAddress> + '_ {
    let tcp = profile.addresses().into_iter().chain(profile.secure_address());
    let tcp = tcp.map(|(host, port)| ServerAddress::Tcp { host: host.to_ascii_lowercase(), port });
    let unix = profile.omni_unix_addresses();
    tcp.chain(unix.map(|address| ServerAddress::Unix { host: address.host, path: address.path }))
}

#[cfg(test)]
mod tests {
    use giop_codec::giop::ObjectKey;
    use giop_codec::ior::{Ior, OmniUnixAddress, SslSecTrans, TaggedComponent, UiopProfile};
    use proptest::prelude::*;

    use super::*;
    use crate::Orb;
    use crate::reference::Reference;

    fn reference(orb: &Orb, profiles: &[IiopProfile]) -> ObjectRef {
        ObjectRef::new(orb.core(), Ior::from_profiles("IDL:T:1.0", profiles).unwrap())
    }

    fn profile(host: &str, port: u16, key: &'static [u8]) -> IiopProfile {
        IiopProfile::new(host, port, ObjectKey::from_static(key))
    }

    fn orb() -> Orb {
        Orb::builder().core.build_core(Vec::new()).into_orb()
    }

    // clause: ior.object.is_equivalent, ior.object.hash
    #[test]
    fn references_with_the_same_key_and_a_common_address_are_equivalent() {
        let orb = orb();
        let alternate = |host, port| TaggedComponent::alternate_address(host, port).unwrap();
        let a = reference(&orb, &[profile("a", 1, b"k")]);
        let table = [
            (vec![profile("a", 1, b"k")], true),
            (vec![profile("A", 1, b"k")], true),
            (vec![profile("a", 1, b"k").with_version(giop_codec::Version::V1_0)], true),
            (vec![profile("b", 1, b"k").with_component(alternate("a", 1))], true),
            (vec![profile("b", 1, b"k"), profile("a", 1, b"k")], true),
            (vec![profile("a", 2, b"k")], false),
            (vec![profile("b", 1, b"k")], false),
            (vec![profile("a", 1, b"other")], false),
            // The first profile has another object's key.
            (vec![profile("a", 1, b"other"), profile("a", 1, b"k")], false),
            // The common address belongs to another key.
            (vec![profile("b", 1, b"k"), profile("a", 1, b"other")], false),
            (Vec::new(), false),
        ];
        for (profiles, expected) in table {
            let b = reference(&orb, &profiles);
            assert_eq!((a.is_equivalent(&b), b.is_equivalent(&a)), (expected, expected), "{profiles:?}");
            if expected {
                assert_eq!(a.equivalence_hash(u32::MAX), b.equivalence_hash(u32::MAX), "{profiles:?}");
            }
        }
    }

    // clause: ior.object.is_equivalent
    #[test]
    fn tls_ports_are_compared() {
        let orb = orb();
        let tls = |host, plaintext, port| {
            let ssl = SslSecTrans { target_supports: 6, target_requires: 6, port };
            let profile = profile(host, plaintext, b"k");
            reference(&orb, &[profile.with_component(TaggedComponent::ssl_sec_trans(ssl))])
        };
        let table = [
            (tls("a", 0, 1), tls("A", 0, 1), true),
            (tls("::1", 0, 1), tls("[::1]", 0, 1), true),
            (tls("a", 0, 1), tls("a", 7, 1), true),
            (tls("a", 0, 1), tls("a", 0, 2), false),
            (tls("a", 0, 1), tls("b", 0, 1), false),
            (tls("a", 0, 0), tls("a", 0, 0), false),
        ];
        for (a, b, expected) in table {
            assert_eq!((a.is_equivalent(&b), b.is_equivalent(&a)), (expected, expected), "{a:?} {b:?}");
        }
    }

    #[test]
    fn unix_sockets_are_compared() {
        let orb = orb();
        let socket = OmniUnixAddress { host: "vm".to_owned(), path: "/s".to_owned() };
        let socket = TaggedComponent::omni_unix(&socket).unwrap();
        let a = reference(&orb, &[profile("", 0, b"k").with_component(socket.clone())]);
        let b = reference(&orb, &[profile("a", 1, b"k").with_component(socket)]);
        assert!(a.is_equivalent(&b));
        let tao = |path: &str| {
            let profile = UiopProfile::new(path, ObjectKey::from_static(b"k"));
            let profiles = vec![profile.to_tagged().unwrap()];
            ObjectRef::new(orb.core(), Ior { type_id: String::new(), profiles })
        };
        assert!(tao("/s").is_equivalent(&tao("/s")) && !tao("/s").is_equivalent(&tao("/t")));
    }

    proptest! {
        // clause: ior.object.hash
        #[test]
        fn hashes_are_bounded_and_the_same_for_equivalent_references(
            first in prop::collection::vec((0..3_u8, 1..3_u16, 0..2_usize), 0..4),
            second in prop::collection::vec((0..3_u8, 1..3_u16, 0..2_usize), 0..4),
            max in any::<u32>(),
        ) {
            let orb = orb();
            let make = |list: &[(u8, u16, usize)]| {
                let keys: [&[u8]; 2] = [b"one", b"two"];
                let profile = |(host, port, key): &(u8, u16, usize)| profile(&format!("h{host}"), *port, keys[*key]);
                reference(&orb, &list.iter().map(profile).collect::<Vec<_>>())
            };
            let (a, b) = (make(&first), make(&second));
            prop_assert!(a.equivalence_hash(max) <= max);
            prop_assert_eq!(a.is_equivalent(&b), b.is_equivalent(&a));
            if a.is_equivalent(&b) {
                prop_assert_eq!(a.equivalence_hash(max), b.equivalence_hash(max));
            }
        }
    }
}

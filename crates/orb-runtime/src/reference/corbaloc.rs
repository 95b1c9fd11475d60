//! The `corbaloc:` URLs of references.

use giop_codec::ior::MAX_PROFILES;
use giop_codec::url::{Corbaloc, IiopAddress};

use crate::reference::object::ObjectRef;

impl ObjectRef {
    /// Returns the URL with the object key of the first profile, and the TCP addresses of profiles with this
    /// key that a URL can represent, at most [`MAX_PROFILES`]. If there is none, the URL contains a Unix
    /// socket.
    pub(crate) fn corbaloc(&self) -> Option<Corbaloc> {
        let profiles = self.ior_profiles();
        let first = profiles.first()?;
        let of_key = || profiles.iter().filter(|profile| profile.object_key == first.object_key);
        let addresses = of_key().flat_map(|profile| {
            let at =
                |tls| move |(host, port)| IiopAddress { version: profile.version, host, port, uses_tls: tls };
            let secure = profile.secure_address();
            let plaintext = if profile.requires_tls() { Vec::new() } else { profile.addresses() };
            plaintext.into_iter().map(at(false)).chain(secure.map(at(true)))
        });
        let key = first.object_key.clone();
        let can_be_written = |address: &IiopAddress| {
            let alone = Corbaloc::Iiop { addresses: vec![address.clone()], key: key.clone() };
            !address.host.is_empty() && alone.to_string().parse() == Ok(alone)
        };
        let addresses: Vec<_> = addresses.filter(can_be_written).take(MAX_PROFILES).collect();
        if !addresses.is_empty() {
            return Some(Corbaloc::Iiop { addresses, key });
        }
        let socket = of_key().find_map(|profile| profile.omni_unix_addresses().next())?;
        Some(Corbaloc::Unix { version: first.version, path: socket.path, key })
    }
}

#[cfg(test)]
mod tests {
    use giop_codec::Version;
    use giop_codec::giop::ObjectKey;
    use giop_codec::ior::{IiopProfile, Ior, TaggedComponent, UiopProfile};
    use giop_codec::url::ObjectUrl;

    use super::*;
    use crate::Orb;
    use crate::reference::Reference;

    fn reference(orb: &Orb, profiles: &[IiopProfile]) -> ObjectRef {
        ObjectRef::new(orb.core(), Ior::from_profiles("IDL:T:1.0", profiles).unwrap())
    }

    // clause: ior.corbaloc.written
    #[test]
    fn a_reference_becomes_a_url_that_leads_to_the_same_object() {
        let orb = Orb::builder().core.build_core(Vec::new()).into_orb();
        let profile = |host: &str, key: &'static [u8]| IiopProfile::new(host, 7, ObjectKey::from_static(key));
        let alternate = |host| TaggedComponent::alternate_address(host, 8).unwrap();
        let table = [
            (vec![profile("host", b"Key")], Some("corbaloc:iiop:1.2@host:7/Key")),
            (vec![profile("host", b"Key").with_version(Version::V1_0)], Some("corbaloc:iiop:1.0@host:7/Key")),
            (vec![profile("::1", b"\xff/ ")], Some("corbaloc:iiop:1.2@[::1]:7/%FF/%20")),
            (
                vec![profile("a", b"k").with_component(alternate("b")), profile("c", b"k")],
                Some("corbaloc:iiop:1.2@a:7,iiop:1.2@b:8,iiop:1.2@c:7/k"),
            ),
            // A URL has only one key and cannot contain every host, so other profiles are omitted.
            (
                vec![profile("a", b"k"), profile("b", b"other"), profile("c d", b"k")],
                Some("corbaloc:iiop:1.2@a:7/k"),
            ),
            (vec![profile("c d", b"k")], None),
            (Vec::new(), None),
        ];
        for (profiles, expected) in table {
            let whole = reference(&orb, &profiles);
            assert_eq!(whole.to_corbaloc().as_deref(), expected, "{profiles:?}");
            let Some(text) = expected else { continue };
            let ObjectUrl::Corbaloc(url) = text.parse().unwrap() else { panic!("{text} is a corbaloc") };
            let again = ObjectRef::new(orb.core(), url.to_ior().unwrap());
            assert!(again.is_equivalent(&whole), "{text}");
            assert_eq!(again.equivalence_hash(u32::MAX), whole.equivalence_hash(u32::MAX));
        }
    }

    #[test]
    fn reference_with_only_a_unix_socket_has_a_url() {
        let orb = Orb::builder().core.build_core(Vec::new()).into_orb();
        let profile = UiopProfile::new("/run/a socket", ObjectKey::from_static(b"k"));
        let ior = Ior { type_id: String::new(), profiles: vec![profile.to_tagged().unwrap()] };
        let text = ObjectRef::new(orb.core(), ior.clone()).to_corbaloc().unwrap();
        let ObjectUrl::Corbaloc(url) = text.parse().unwrap() else { panic!("{text} is a corbaloc") };
        assert_eq!(url.to_ior().unwrap(), ior, "{text}");
    }
}

//! The addresses that an ORB publishes in references, and the addresses in references that it may call.

use giop_codec::EncodeError;
use giop_codec::giop::ObjectKey;
use giop_codec::ior::{IiopProfile, Ior, OmniUnixAddress, OrbType, TaggedComponent, UiopProfile};

use crate::endpoint::{AddressFamily, Endpoint, Route, interleaved, this_host_name, unix_paths};
use crate::runtime::Shared;

impl Shared {
    /// Returns the reference to an object of this ORB, with all addresses, or `None` if the ORB does not
    /// listen. The first profile is an IIOP profile for all TCP endpoints, and for Unix sockets in omniORB's
    /// form. If there is no TCP endpoint, its port is 0. It also has the port of a TLS endpoint with the same
    /// host, if there is one. Further IIOP profiles follow for the other TLS endpoints, and then profiles in
    /// TAO's form for Unix sockets.
    pub(crate) fn ior(&self, type_id: &str, key: &[u8]) -> Option<Ior> {
        self.try_ior(type_id, &ObjectKey::from(key)).ok().flatten()
    }

    /// Removes the last component, which announces block lists, if deposits are disabled. Adds operation
    /// numbers, if they are enabled.
    #[cfg(feature = "experiments")]
    fn experimental_components(
        &self,
        mut components: Vec<TaggedComponent>,
        key: &ObjectKey,
    ) -> Result<Vec<TaggedComponent>, EncodeError> {
        if !self.config.connection.deposits_enabled {
            components.pop();
        }
        if let Some(numbers) = self.operation_numbers(key) {
            components.push(TaggedComponent::zorb_operations(&numbers)?);
        }
        Ok(components)
    }

    fn try_ior(&self, type_id: &str, key: &ObjectKey) -> Result<Option<Ior>, EncodeError> {
        let mut tcp = self.endpoints.iter().filter_map(|endpoint| match endpoint {
            Endpoint::Iiop { host, port } => Some((host.as_str(), *port)),
            Endpoint::Ssl { .. } | Endpoint::Unix { .. } | Endpoint::ThisOrb => None,
        });
        let mut tls: Vec<(&str, u16)> = self.endpoints.iter().filter_map(Endpoint::tls_address).collect();
        if self.endpoints.is_empty() {
            return Ok(None);
        }
        let components = vec![
            TaggedComponent::orb_type(OrbType::ZORB),
            TaggedComponent::code_sets(&self.config.connection.code_sets)?,
            TaggedComponent::zorb_blocks(),
        ];
        #[cfg(feature = "experiments")]
        let components = self.experimental_components(components, key)?;
        let first = tcp.next();
        // A profile has one TLS port, which belongs to its own host.
        let (host, port) = first.or_else(|| tls.first().map(|(host, _)| (*host, 0))).unwrap_or(("", 0));
        let mut main = IiopProfile::new(host, port, key.clone());
        main.components.clone_from(&components);
        let tls_port = tls.iter().position(|(name, _)| *name == host).map(|at| tls.remove(at).1);
        main.components.extend(tls_port.and_then(|port| self.ssl_component(port, first.is_some())));
        let unix = self.endpoints.iter().any(|endpoint| endpoint.unix_path().is_some());
        // Without a TCP endpoint, calls without TLS use Unix sockets of this machine.
        let plaintext_is_unix = if first.is_some() { Some(false) } else { unix.then_some(true) };
        main.components.extend(self.csi_component(host, tls_port, plaintext_is_unix));
        for (host, port) in tcp {
            main.components.push(TaggedComponent::alternate_address(host, port)?);
        }
        let mut uiop_profiles = Vec::new();
        for unix_path in self.endpoints.iter().filter_map(Endpoint::unix_path) {
            let address = OmniUnixAddress { host: this_host_name().to_owned(), path: unix_path.to_owned() };
            main.components.push(TaggedComponent::omni_unix(&address)?);
            let mut profile = UiopProfile::new(unix_path, key.clone());
            profile.components.clone_from(&components);
            profile.components.extend(self.csi_component("", None, Some(true)));
            uiop_profiles.push(profile.to_tagged()?);
        }
        let mut iiop_profiles = vec![main];
        for (host, port) in tls {
            let mut profile = IiopProfile::new(host, 0, key.clone());
            profile.components.clone_from(&components);
            profile.components.extend(self.ssl_component(port, first.is_some()));
            profile.components.extend(self.csi_component(host, Some(port), None));
            iiop_profiles.push(profile);
        }
        let mut ior = Ior::from_profiles(type_id, &iiop_profiles)?;
        ior.profiles.extend(uiop_profiles);
        Ok(Some(ior))
    }

    fn ssl_component(&self, port: u16, offers_plaintext: bool) -> Option<TaggedComponent> {
        let tls = self.config.tls.as_ref()?;
        Some(TaggedComponent::ssl_sec_trans(tls.component(port, offers_plaintext)))
    }

    #[cfg(not(feature = "csi"))]
    fn csi_component(&self, _: &str, _: Option<u16>, _: Option<bool>) -> Option<TaggedComponent> {
        None
    }

    /// Returns whether a profile contains an address of this ORB.
    pub(crate) fn is_own(&self, profile: &IiopProfile) -> bool {
        self.endpoints.iter().any(|endpoint| match endpoint {
            Endpoint::Iiop { host, port } => *port == profile.port && *host == profile.host,
            Endpoint::Ssl { host, port } => {
                *host == profile.host && profile.ssl().is_some_and(|ssl| ssl.port == *port)
            }
            Endpoint::Unix { path } => unix_paths(profile).any(|own| own == *path),
            Endpoint::ThisOrb => false,
        })
    }

    /// Returns the profiles of a reference that may be called, in the order in which they are tried. If one
    /// profile offers TLS, the rules for TLS apply to all profiles. Otherwise an attacker on the network
    /// could make the TLS connection fail, and thereby cause a plaintext connection.
    pub(crate) fn routes(&self, profiles: Vec<IiopProfile>) -> Vec<Route> {
        let offers_tls = profiles.iter().any(|profile| profile.secure_address().is_some());
        let routes = profiles
            .into_iter()
            .map(|profile| Route { endpoints: self.endpoints_to_try(&profile, offers_tls), profile });
        let mut routes: Vec<Route> = routes.filter(|route| !route.endpoints.is_empty()).collect();
        if self.config.tls.as_ref().is_some_and(|own| own.uses_plaintext(offers_tls)) {
            // If plaintext is allowed for this reference, try it first, so that it never follows a failed
            // handshake.
            routes
                .sort_by_key(|route| route.endpoints.iter().any(|endpoint| endpoint.tls_address().is_some()));
        }
        routes
    }

    /// Returns the addresses of a profile in the order in which they are tried. Unix sockets of this machine
    /// are first, because connecting to them succeeds or fails at once. Then follow the TLS address and the
    /// plaintext addresses that the server and the configuration allow, with IPv4 and IPv6 interleaved.
    /// `offers_tls` tells whether any profile of the reference offers TLS.
    fn endpoints_to_try(&self, profile: &IiopProfile, offers_tls: bool) -> Vec<Endpoint> {
        let unix = self.config.client.uses_unix_sockets.then(|| unix_paths(profile)).into_iter().flatten();
        let secure = profile.secure_address();
        let addresses = if profile.requires_tls() { Vec::new() } else { profile.addresses() };
        let tls = self.config.tls.as_ref();
        let plaintext = !addresses.is_empty();
        let secure = secure.filter(|_| tls.is_some_and(|tls| tls.uses_tls(plaintext)));
        let secure = secure.map(|(host, port)| Endpoint::Ssl { host, port });
        let allows_plaintext = tls.is_none_or(|tls| tls.uses_plaintext(offers_tls));
        let addresses = if allows_plaintext { addresses } else { Vec::new() };
        let hosts = interleaved(addresses, |(host, _)| AddressFamily::of_host(host));
        let hosts = hosts.into_iter().map(|(host, port)| Endpoint::Iiop { host, port });
        unix.map(|path| Endpoint::Unix { path }).chain(secure).chain(hosts).collect()
    }

    /// Returns the reason why no address of the profile may be called, if TLS is the reason.
    #[cold]
    pub(crate) fn reason_to_forbid(&self, profile: &IiopProfile) -> Option<&'static str> {
        match (&self.config.tls, profile.secure_address()) {
            (None, Some(_)) if cfg!(feature = "tls") => {
                Some("the server requires TLS, which this ORB does not have: configure OrbBuilder::tls")
            }
            (None, Some(_)) => Some("the server requires TLS: enable the feature `tls`"),
            (Some(_), None) if !profile.addresses().is_empty() => {
                Some("the server offers no TLS, which this ORB requires (TlsBuilder::outgoing)")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Orb;
    use crate::endpoint::profiles;

    fn core(endpoints: &[Endpoint]) -> std::sync::Arc<Shared> {
        Orb::builder().core.build_core(endpoints.to_vec())
    }

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Iiop { host: host.to_owned(), port }
    }

    fn unix(path: &str) -> Endpoint {
        Endpoint::Unix { path: path.to_owned() }
    }

    // clause: ior.profile.tao_uiop, ior.component.omniorb_unix
    #[test]
    fn references_contain_every_endpoint_and_each_profile_is_recognized_as_own() {
        let endpoints = [unix("/a"), tcp("h", 1), tcp("::1", 2), unix("/b")];
        let server = core(&endpoints);
        let ior = server.ior("IDL:X:1.0", b"key").unwrap();
        let all: Vec<IiopProfile> = profiles(&ior).collect();
        let to_try = |profile| core(&[]).endpoints_to_try(profile, false);
        assert_eq!(to_try(&all[0]), [unix("/a"), unix("/b"), tcp("h", 1), tcp("::1", 2)]);
        assert_eq!((to_try(&all[1]), to_try(&all[2]), all.len()), (vec![unix("/a")], vec![unix("/b")], 3));
        for profile in &all {
            assert!(server.is_own(profile) && !core(&[tcp("h", 2), unix("/c")]).is_own(profile));
            assert_eq!(profile.object_key.as_slice(), b"key");
            assert!(profile.code_sets().is_some());
        }
    }

    #[test]
    fn an_orb_without_tcp_has_port_0() {
        let ior = core(&[unix("/a")]).ior("", b"key").unwrap();
        let main = ior.iiop_profile().unwrap();
        assert_eq!((main.host.as_str(), main.port), ("", 0));
        assert_eq!(core(&[]).endpoints_to_try(&main, false), [unix("/a")]);
        assert!(core(&[]).ior("", b"key").is_none());
    }

    // clause: ior.component.omniorb_unix
    #[test]
    fn unix_sockets_of_other_machines_are_ignored() {
        let address = OmniUnixAddress { host: "elsewhere".to_owned(), path: "/a".to_owned() };
        let profile = IiopProfile::new("h", 1, b"key".as_slice().into())
            .with_component(TaggedComponent::omni_unix(&address).unwrap());
        assert_eq!(core(&[]).endpoints_to_try(&profile, false), [tcp("h", 1)]);
        assert!(!core(&[unix("/a")]).is_own(&profile));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn tls_hosts_in_brackets_are_called_without_brackets() {
        use giop_codec::ior::SslSecTrans;
        let tls = crate::tls::Tls::builder().build().unwrap();
        let core = Orb::builder().tls(tls).core.build_core(Vec::new());
        let ssl = SslSecTrans { target_supports: 6, target_requires: 6, port: 1 };
        let profile = IiopProfile::new("[::1]", 0, b"key".as_slice().into())
            .with_component(TaggedComponent::ssl_sec_trans(ssl));
        let routes = core.routes(vec![profile]);
        assert_eq!(routes[0].endpoints, [Endpoint::Ssl { host: "::1".to_owned(), port: 1 }]);
    }

    #[test]
    fn unix_sockets_of_references_are_ignored_if_disabled() {
        let ior = core(&[unix("/a"), tcp("h", 1)]).ior("", b"key").unwrap();
        let careful = Orb::builder().unix_sockets(false).core.build_core(Vec::new());
        assert_eq!(careful.endpoints_to_try(&ior.iiop_profile().unwrap(), false), [tcp("h", 1)]);
        assert!(careful.routes(profiles(&ior).skip(1).collect()).is_empty());
    }
}

//! The addresses of ORBs and objects (TCP addresses and Unix sockets), and their form in references.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;

use giop_codec::Printable;
use giop_codec::ior::{IiopProfile, Ior, OmniUnixAddress, TaggedComponent, UiopProfile};

/// An address at which an ORB or an object is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Endpoint {
    /// A host name or IP address (IPv6 without brackets) and a TCP port.
    Iiop { host: String, port: u16 },
    /// Like [`Iiop`](Self::Iiop), with TLS.
    Ssl { host: String, port: u16 },
    /// The path of a Unix socket on this machine.
    Unix { path: String },
    /// This ORB itself, which is called over a pipe in memory.
    ThisOrb,
}

/// A profile of a reference that calls may use, and its endpoints, of which there is at least one.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) profile: IiopProfile,
    pub(crate) endpoints: Vec<Endpoint>,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iiop { host, port } => write!(f, "{}:{port}", Host(host)),
            Self::Ssl { host, port } => write!(f, "ssliop://{}:{port}", Host(host)),
            Self::Unix { path } => write!(f, "uiop://{}", Printable::new(path)),
            Self::ThisOrb => f.write_str("this ORB"),
        }
    }
}

/// Displays a host with brackets around IPv6 addresses, and with escapes, because it may come from a peer.
pub(crate) struct Host<'a>(pub(crate) &'a str);

impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(host) = self;
        let host = Printable::new(host);
        if self.0.contains(':') { write!(f, "[{host}]") } else { host.fmt(f) }
    }
}

/// The first 16 bits of placeholder addresses. These are IPv6 multicast addresses of the reserved scope 0, to
/// which connections fail at once on all systems. A placeholder is an address, not a host name, because TAO
/// resolves the announced host before each callback.
const PLACEHOLDER_PREFIX: u16 = 0xff10;

impl Endpoint {
    /// Returns the address in references of an ORB that is called only over its own connections.
    pub(crate) fn placeholder(boot_id: [u8; 8]) -> Self {
        let prefix = u128::from(PLACEHOLDER_PREFIX) << 112;
        let address = Ipv6Addr::from_bits(prefix | u128::from(u64::from_be_bytes(boot_id)));
        Self::Iiop { host: address.to_string(), port: 1 }
    }

    pub(crate) fn is_placeholder(&self) -> bool {
        let Self::Iiop { host, .. } = self else { return false };
        host.parse::<Ipv6Addr>().is_ok_and(|address| address.segments()[0] == PLACEHOLDER_PREFIX)
    }

    pub(crate) fn unix_path(&self) -> Option<&str> {
        match self {
            Self::Iiop { .. } | Self::Ssl { .. } | Self::ThisOrb => None,
            Self::Unix { path } => Some(path),
        }
    }

    pub(crate) fn tls_address(&self) -> Option<(&str, u16)> {
        match self {
            Self::Ssl { host, port } => Some((host, *port)),
            Self::Iiop { .. } | Self::Unix { .. } | Self::ThisOrb => None,
        }
    }
}

/// Returns the host name that the operating system reports. omniORB uses it in the addresses of Unix sockets.
pub(crate) fn this_host_name() -> &'static str {
    #[cfg(unix)]
    static NAME: LazyLock<String> =
        LazyLock::new(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
    #[cfg(not(unix))]
    static NAME: LazyLock<String> =
        LazyLock::new(|| std::env::var("COMPUTERNAME").unwrap_or_else(|_| "localhost".to_owned()));
    &NAME
}

/// Returns the IIOP profiles, and then TAO's profiles of Unix sockets (UIOP) as IIOP profiles without a host.
pub(crate) fn profiles(ior: &Ior) -> impl Iterator<Item = IiopProfile> + '_ {
    let unix = ior.uiop_profiles().map(|UiopProfile { version, path, object_key, mut components }| {
        // A UIOP profile does not name its machine.
        let address = OmniUnixAddress { host: this_host_name().to_owned(), path };
        components.extend(TaggedComponent::omni_unix(&address));
        IiopProfile { version, host: String::new(), port: 0, object_key, components }
    });
    ior.iiop_profiles().chain(unix)
}

/// Returns the paths of the profile's Unix sockets that are on this machine.
pub(crate) fn unix_paths(profile: &IiopProfile) -> impl Iterator<Item = String> + '_ {
    let here = profile.omni_unix_addresses().filter(|address| address.host == this_host_name());
    here.map(|address| address.path)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressFamily {
    V6,
    /// IPv4 addresses, and host names, which may have addresses of both families.
    Other,
}

impl AddressFamily {
    pub(crate) fn of_address(address: &SocketAddr) -> Self {
        if address.is_ipv6() { Self::V6 } else { Self::Other }
    }

    pub(crate) fn of_host(host: &str) -> Self {
        match host.parse() {
            Ok(IpAddr::V6(_)) => Self::V6,
            _ => Self::Other,
        }
    }
}

/// Returns the addresses so that the families alternate. The order within each family is unchanged.
pub(crate) fn interleaved<A>(
    addresses: impl IntoIterator<Item = A>,
    family: impl Fn(&A) -> AddressFamily,
) -> Vec<A> {
    let mut addresses = addresses.into_iter().peekable();
    let Some(first) = addresses.peek().map(&family) else { return Vec::new() };
    let (firsts, others): (Vec<A>, Vec<A>) = addresses.partition(|address| family(address) == first);
    let mut all = Vec::with_capacity(firsts.len() + others.len());
    let (mut firsts, mut others) = (firsts.into_iter(), others.into_iter());
    loop {
        let (next, other) = (firsts.next(), others.next());
        if next.is_none() && other.is_none() {
            return all;
        }
        all.extend(next);
        all.extend(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate_from_that_of_the_first_address() {
        let family = |host: &&str| AddressFamily::of_host(host);
        let hosts = ["::1", "::2", "::3", "10.0.0.1", "name"];
        assert_eq!(interleaved(hosts, family), ["::1", "10.0.0.1", "::2", "name", "::3"]);
        assert_eq!(interleaved(["a", "b", "::1"], family), ["a", "::1", "b"]);
        assert_eq!(interleaved(["a"], family), ["a"]);
        assert!(interleaved([], family).is_empty());
        assert_eq!(AddressFamily::of_address(&"[::1]:1".parse().unwrap()), AddressFamily::V6);
        assert_eq!(AddressFamily::of_address(&"127.0.0.1:1".parse().unwrap()), AddressFamily::Other);
    }
}

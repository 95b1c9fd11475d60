//! The addresses that the ORB publishes in references: where it listens, or as configured (NAT, containers).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::endpoint::{Endpoint, this_host_name};

/// The values of the placeholders in templates of addresses.
pub(crate) struct PublishContext<'a> {
    pub(crate) hostname: &'a str,
    pub(crate) env_variable: &'a dyn Fn(&str) -> Option<String>,
    /// Returns this machine's IPv6 (if true) or IPv4 (if false) address for connections to other machines.
    pub(crate) own_address: &'a dyn Fn(bool) -> Option<IpAddr>,
}

impl PublishContext<'static> {
    pub(crate) fn of_process() -> Self {
        Self {
            hostname: this_host_name(),
            env_variable: &|name| std::env::var(name).ok(),
            own_address: &|ipv6| source_address(ipv6).ok().filter(|address| !address.is_unspecified()),
        }
    }
}

/// Returns the source address that the system would use for a remote destination. Nothing is sent: to connect
/// a UDP socket only selects a route. The destinations are addresses that are reserved for documentation.
fn source_address(ipv6: bool) -> std::io::Result<IpAddr> {
    let (any, remote): (IpAddr, IpAddr) = match ipv6 {
        false => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
        true => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((remote, 9))?;
    socket.local_addr().map(|address| address.ip())
}

/// A listening TCP socket: the configured host, and the address to which the socket is bound.
#[derive(Debug, Clone)]
pub(crate) struct ListeningSocket {
    pub(crate) host: String,
    pub(crate) local: SocketAddr,
}

impl ListeningSocket {
    /// Returns the address that is published if no templates are configured. Its host is the configured host,
    /// or the host name of the machine if the configured host is empty or an unspecified address.
    pub(crate) fn published_address(&self, context: &PublishContext<'_>) -> (String, u16) {
        let any = self.host.is_empty() || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
        let host = if any { context.hostname } else { &self.host };
        (host.to_owned(), self.local.port())
    }
}

/// Returns the addresses of the templates, each once. A template without a port yields one for each socket.
/// On failure, returns the invalid template and the reason.
pub(crate) fn published_addresses(
    templates: &[String],
    listening: &[ListeningSocket],
    context: &PublishContext<'_>,
) -> Result<Vec<(String, u16)>, (String, String)> {
    let mut all = Vec::new();
    for template in templates {
        let error = |reason| (template.clone(), reason);
        let text = expand(template, context).map_err(error)?;
        let (host, port) = parse_address(&text).map_err(error)?;
        match port {
            Some(port) => all.push((host, port)),
            None => all.extend(listening.iter().map(|socket| (host.clone(), socket.local.port()))),
        }
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|address| seen.insert(address.clone()));
    Ok(all)
}

fn expand(template: &str, context: &PublishContext<'_>) -> Result<String, String> {
    // A final `:{port}` is removed, because a template without a port gets the port of each listening socket.
    let mut rest = template.strip_suffix(":{port}").unwrap_or(template);
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("a `{` has no `}`")?;
        text.push_str(before);
        text.push_str(&placeholder_value(name, context)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn placeholder_value(name: &str, context: &PublishContext<'_>) -> Result<String, String> {
    let own_address = |ipv6: bool| {
        let text = |address| match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        (context.own_address)(ipv6).map(text)
    };
    if let Some(variable) = name.strip_prefix("env:") {
        let (variable, default) = variable
            .split_once('|')
            .map_or((variable, None), |(name, default)| (name, Some(default.to_owned())));
        let value = (context.env_variable)(variable).filter(|value| !value.is_empty()).or(default);
        return value.ok_or_else(|| format!("the environment variable `{variable}` is not set, or is empty"));
    }
    let (address, kind) = match name {
        "hostname" => return Ok(context.hostname.to_owned()),
        "ip" => (own_address(false).or_else(|| own_address(true)), "address"),
        "ipv4" => (own_address(false), "IPv4 address"),
        "ipv6" => (own_address(true), "IPv6 address"),
        _ => {
            return Err(format!(
                "`{{{name}}}` is unknown here; use {{hostname}}, {{ip}}, {{ipv4}}, {{ipv6}}, {{env:NAME}}, {{env:NAME|DEFAULT}}, or \
                 {{port}} as the whole port"
            ));
        }
    };
    address.ok_or_else(|| format!("this machine has no {kind} for connections to other machines"))
}

/// Parses `HOST`, `HOST:PORT`, `IPV6`, `[IPV6]` or `[IPV6]:PORT`, after an optional `iiop://`.
fn parse_address(text: &str) -> Result<(String, Option<u16>), String> {
    let text = text.strip_prefix("iiop://").unwrap_or(text);
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("a `[` has no `]`")?;
            if host.parse::<Ipv6Addr>().is_err() {
                return Err(format!("`{host}` is not an IPv6 address"));
            }
            let port = match after.strip_prefix(':') {
                None if !after.is_empty() => return Err(format!("unexpected `{after}` after the address")),
                port => port,
            };
            (host, port)
        }
        None if text.parse::<Ipv6Addr>().is_ok() => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let is_invalid = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'));
    if let Some(c) = host.chars().find(|c| is_invalid(*c)) {
        return Err(format!("a host cannot contain {c:?}"));
    }
    let Some(digits) = port.filter(|port| !port.is_empty()) else { return Ok((host.to_owned(), None)) };
    match digits.parse() {
        Ok(port) if port != 0 => Ok((host.to_owned(), Some(port))),
        _ => Err(format!("`{digits}` is not a port from 1 to 65535")),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnroutableHost {
    pub(crate) host: String,
    reason: UnroutableReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnroutableReason {
    Unspecified,
    Loopback,
    LinkLocal,
    Multicast,
    Container,
    ThisMachine,
}

impl fmt::Display for UnroutableHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            UnroutableReason::Unspecified => {
                "it is an unspecified address, by which clients reach at most their own machine"
            }
            UnroutableReason::Loopback => {
                "it is a loopback address, by which other machines reach themselves"
            }
            UnroutableReason::LinkLocal => {
                "it is a link-local address, which is valid only on one network interface"
            }
            UnroutableReason::Multicast => "it is a multicast or broadcast address",
            UnroutableReason::Container => {
                "it looks like the name of a container, which other machines usually cannot resolve"
            }
            UnroutableReason::ThisMachine => {
                "it is the host name of this machine, published because the server listens on all addresses"
            }
        })
    }
}

/// Returns the published hosts that clients possibly cannot reach, each once. Loopback addresses are reported
/// only if the ORB also listens on or publishes other addresses.
pub(crate) fn find_unroutable(
    published: &[Endpoint],
    listening: &[ListeningSocket],
    has_templates: bool,
) -> Vec<UnroutableHost> {
    let hosts = || {
        published.iter().filter_map(|endpoint| match endpoint {
            Endpoint::Iiop { host, .. } | Endpoint::Ssl { host, .. } => Some(host),
            Endpoint::Unix { .. } | Endpoint::ThisOrb => None,
        })
    };
    let serves_other_machines = hosts().any(|host| !is_loopback(host))
        || listening.iter().any(|socket| !socket.local.ip().is_loopback());
    let listens_on_all = listening.iter().any(|socket| socket.local.ip().is_unspecified());
    let mut found: Vec<UnroutableHost> = Vec::new();
    for host in hosts() {
        let reason = match host.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() => UnroutableReason::Unspecified,
            Ok(IpAddr::V4(ip)) if ip.is_link_local() => UnroutableReason::LinkLocal,
            Ok(IpAddr::V6(ip)) if ip.is_unicast_link_local() => UnroutableReason::LinkLocal,
            Ok(IpAddr::V4(ip)) if ip.is_broadcast() => UnroutableReason::Multicast,
            Ok(ip) if ip.is_multicast() => UnroutableReason::Multicast,
            _ if serves_other_machines && is_loopback(host) => UnroutableReason::Loopback,
            Err(_) if is_container_id(host) => UnroutableReason::Container,
            Err(_) if listens_on_all && !has_templates && host == this_host_name() => {
                UnroutableReason::ThisMachine
            }
            _ => continue,
        };
        if found.iter().all(|known| known.host != *host) {
            found.push(UnroutableHost { host: host.clone(), reason });
        }
    }
    found
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns whether the host looks like a container's default name: 12 hexadecimal digits, not only letters.
fn is_container_id(host: &str) -> bool {
    host.len() == 12
        && host.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'a'..=b'f'))
        && host.bytes().any(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> PublishContext<'static> {
        PublishContext {
            hostname: "box",
            env_variable: &|name| match name {
                "HOST" => Some("public.example".to_owned()),
                "PORT" => Some("8080".to_owned()),
                "EMPTY" => Some(String::new()),
                _ => None,
            },
            own_address: &|ipv6| Some(if ipv6 { "2001:db8::7" } else { "10.0.0.7" }.parse().unwrap()),
        }
    }

    fn listening(sockets: &[(&str, &str)]) -> Vec<ListeningSocket> {
        let socket = |(host, local): &(&str, &str)| ListeningSocket {
            host: (*host).to_owned(),
            local: local.parse().unwrap(),
        };
        sockets.iter().map(socket).collect()
    }

    fn texts(templates: &[&str], sockets: &[ListeningSocket]) -> Result<Vec<String>, String> {
        let templates: Vec<String> = templates.iter().map(ToString::to_string).collect();
        let all = published_addresses(&templates, sockets, &context()).map_err(|(_, reason)| reason)?;
        Ok(all.iter().map(|(host, port)| format!("{host} {port}")).collect())
    }

    #[test]
    fn templates_become_addresses() {
        let sockets = listening(&[("0.0.0.0", "0.0.0.0:1000"), ("::", "[::]:1001")]);
        let table: &[(&str, &[&str])] = &[
            ("h", &["h 1000", "h 1001"]),
            ("h:{port}", &["h 1000", "h 1001"]),
            ("iiop://h", &["h 1000", "h 1001"]),
            ("h:7", &["h 7"]),
            ("iiop://h:7", &["h 7"]),
            ("::1", &["::1 1000", "::1 1001"]),
            ("[::1]:7", &["::1 7"]),
            ("iiop://[::1]", &["::1 1000", "::1 1001"]),
            ("iiop://{env:HOST}:8080", &["public.example 8080"]),
            ("{env:HOST}:{env:PORT}", &["public.example 8080"]),
            ("{env:NONE|other}:{env:EMPTY|9}", &["other 9"]),
            ("a.{hostname}.b:1", &["a.box.b 1"]),
            ("{ip}:1", &["10.0.0.7 1"]),
            ("{ipv4}:1", &["10.0.0.7 1"]),
            ("{ipv6}:1", &["2001:db8::7 1"]),
            ("iiop://{ipv6}", &["2001:db8::7 1000", "2001:db8::7 1001"]),
        ];
        for (template, expected) in table {
            assert_eq!(texts(&[template], &sockets).unwrap(), *expected, "{template}");
        }
        let several = ["h:1", "{hostname}:2", "h:1", "h:{port}"];
        assert_eq!(texts(&several, &sockets).unwrap(), ["h 1", "box 2", "h 1000", "h 1001"]);
        assert_eq!(texts(&["h", "g:1"], &[]).unwrap(), ["g 1"]);
    }

    #[test]
    fn invalid_templates_are_rejected_with_a_reason() {
        for (template, reason) in [
            ("", "host is missing"),
            ("iiop://:8080", "host is missing"),
            ("{env:NONE}:1", "`NONE`"),
            ("{env:EMPTY}", "`EMPTY`"),
            ("{nonsense}", "{nonsense}"),
            ("{hostname", "no `}`"),
            ("{port}:1", "{port}"),
            ("h:0", "not a port"),
            ("h:65536", "not a port"),
            ("h:80:80", "not a port"),
            ("[::1", "no `]`"),
            ("[h]:1", "not an IPv6"),
            ("[::1]1", "after"),
            ("a b", "' '"),
            ("iiop://h/x", "'/'"),
        ] {
            let found = texts(&[template], &listening(&[("h", "127.0.0.1:1")])).unwrap_err();
            assert!(found.contains(reason), "{template}: {found}");
        }
        let without_address = PublishContext { own_address: &|_| None, ..context() };
        for template in ["{ip}", "{ipv4}", "{ipv6}"] {
            let (invalid, reason) =
                published_addresses(&[template.to_owned()], &[], &without_address).unwrap_err();
            assert!(invalid == template && reason.contains("this machine"), "{reason}");
        }
        let only_ipv6 =
            PublishContext { own_address: &|ipv6| ipv6.then(|| "2001:db8::7".parse().unwrap()), ..context() };
        assert_eq!(
            published_addresses(&["{ip}:1".to_owned()], &[], &only_ipv6),
            Ok(vec![("2001:db8::7".to_owned(), 1)])
        );
    }

    #[test]
    fn without_templates_the_configured_host_is_published() {
        for (host, local, expected) in [
            ("localhost", "127.0.0.1:7", "localhost"),
            ("::1", "[::1]:7", "::1"),
            ("", "0.0.0.0:7", "box"),
            ("0.0.0.0", "0.0.0.0:7", "box"),
            ("::", "[::]:7", "box"),
        ] {
            let socket = &listening(&[(host, local)])[0];
            assert_eq!(socket.published_address(&context()), (expected.to_owned(), 7));
        }
    }

    #[test]
    fn unroutable_addresses_are_found() {
        let endpoint = |host: &str| Endpoint::Iiop { host: host.to_owned(), port: 1 };
        let loopback = listening(&[("127.0.0.1", "127.0.0.1:1")]);
        let any = listening(&[("0.0.0.0", "0.0.0.0:1")]);
        let why = |hosts: &[&str], sockets: &[ListeningSocket]| -> Vec<UnroutableReason> {
            let published: Vec<_> = hosts.iter().map(|host| endpoint(host)).collect();
            find_unroutable(&published, sockets, true).into_iter().map(|found| found.reason).collect()
        };
        assert_eq!(why(&["127.0.0.1", "localhost", "::1"], &loopback), []);
        assert_eq!(why(&["127.0.0.1"], &any), [UnroutableReason::Loopback]);
        assert_eq!(why(&["10.0.0.1", "LOCALHOST", "::1"], &loopback), [UnroutableReason::Loopback; 2]);
        assert_eq!(why(&["0.0.0.0", "::"], &any), [UnroutableReason::Unspecified; 2]);
        assert_eq!(why(&["169.254.1.1", "fe80::1"], &any), [UnroutableReason::LinkLocal; 2]);
        assert_eq!(why(&["224.0.0.1", "ff02::1", "255.255.255.255"], &any), [UnroutableReason::Multicast; 3]);
        assert_eq!(why(&["4f8c21d09ab3", "deadbeefcafe", "h"], &any), [UnroutableReason::Container]);
        assert_eq!(why(&["10.0.0.1", "host.example", "2001:db8::7"], &any), []);
        assert_eq!(why(&["0.0.0.0", "0.0.0.0"], &any).len(), 1, "once for each host");
        let own = [endpoint(this_host_name())];
        let is_container = |found: UnroutableHost| found.reason == UnroutableReason::Container;
        assert!(find_unroutable(&own, &any, true).into_iter().all(is_container));
        assert_eq!(find_unroutable(&own, &any, false).len(), 1);
        let expected = usize::from(is_container_id(this_host_name()));
        assert_eq!(find_unroutable(&own, &loopback, false).len(), expected);
        let wildcard = &find_unroutable(&[endpoint("::")], &any, true)[0];
        assert!(wildcard.to_string().contains("unspecified address"));
    }

    #[test]
    fn address_of_this_machine_is_not_unspecified() {
        let context = PublishContext::of_process();
        for ipv6 in [false, true] {
            if let Some(address) = (context.own_address)(ipv6) {
                assert!(!address.is_unspecified() && address.is_ipv6() == ipv6);
            }
        }
    }
}

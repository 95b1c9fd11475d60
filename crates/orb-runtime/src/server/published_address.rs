//! The addresses that references carry: those that the ORB listens on, or others through which clients reach
//! it (NAT, containers).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::endpoint::{Endpoint, this_machine};

/// The values that templates can refer to.
pub(crate) struct Surroundings<'a> {
    /// The name of this machine.
    pub(crate) hostname: &'a str,
    /// Variables of the environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// Returns the address from which this machine calls others, of IPv6 if `true`.
    pub(crate) address: &'a dyn Fn(bool) -> Option<IpAddr>,
}

impl Surroundings<'static> {
    /// Returns the values of this process.
    pub(crate) fn here() -> Self {
        Self {
            hostname: this_machine(),
            variable: &|name| std::env::var(name).ok(),
            address: &|ipv6| outgoing(ipv6).ok().filter(|address| !address.is_unspecified()),
        }
    }
}

/// Returns the source address that the system would use for a remote destination. Nothing is sent, and the
/// destinations are documentation addresses.
fn outgoing(ipv6: bool) -> std::io::Result<IpAddr> {
    let (any, there): (IpAddr, IpAddr) = match ipv6 {
        false => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
        true => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((there, 9))?;
    socket.local_addr().map(|address| address.ip())
}

/// A listening TCP socket: the host as written, and the address from the system.
#[derive(Debug, Clone)]
pub(crate) struct Listening {
    pub(crate) host: String,
    pub(crate) local: SocketAddr,
}

impl Listening {
    /// Returns the address without templates: the host as written, but the host name in place of an
    /// unspecified address.
    pub(crate) fn published(&self, around: &Surroundings<'_>) -> (String, u16) {
        let any = self.host.is_empty() || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
        let host = if any { around.hostname } else { &self.host };
        (host.to_owned(), self.local.port())
    }
}

/// Returns the addresses of the templates without duplicates. A template without a port gives one for each
/// listening socket.
///
/// # Errors
/// The template, and what is wrong with it.
pub(crate) fn published(
    templates: &[String],
    listening: &[Listening],
    around: &Surroundings<'_>,
) -> Result<Vec<(String, u16)>, (String, String)> {
    let mut all = Vec::new();
    for template in templates {
        let wrong = |reason| (template.clone(), reason);
        let text = expand(template, around).map_err(wrong)?;
        let (host, port) = address(&text).map_err(wrong)?;
        match port {
            Some(port) => all.push((host, port)),
            None => all.extend(listening.iter().map(|socket| (host.clone(), socket.local.port()))),
        }
    }
    let mut seen = std::collections::HashSet::new();
    all.retain(|address| seen.insert(address.clone()));
    Ok(all)
}

/// Replaces the placeholders in braces.
fn expand(template: &str, around: &Surroundings<'_>) -> Result<String, String> {
    // Without a port the one of each listening socket is used, so `{port}` is the default.
    let mut rest = template.strip_suffix(":{port}").unwrap_or(template);
    let mut text = String::new();
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}').ok_or("a `{` has no `}`")?;
        text.push_str(before);
        text.push_str(&value(name, around)?);
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}

fn value(name: &str, around: &Surroundings<'_>) -> Result<String, String> {
    let of = |ipv6: bool| {
        let shown = |address| match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        (around.address)(ipv6).map(shown)
    };
    if let Some(variable) = name.strip_prefix("env:") {
        let (variable, default) = match variable.split_once('|') {
            Some((variable, default)) => (variable, Some(default.to_owned())),
            None => (variable, None),
        };
        let value = (around.variable)(variable).filter(|value| !value.is_empty()).or(default);
        return value.ok_or_else(|| format!("the environment has no `{variable}`"));
    }
    match name {
        "hostname" => Ok(around.hostname.to_owned()),
        "ip" => of(false).or_else(|| of(true)).ok_or_else(|| "this machine has no address".to_owned()),
        "ipv4" => of(false).ok_or_else(|| "this machine has no IPv4 address".to_owned()),
        "ipv6" => of(true).ok_or_else(|| "this machine has no IPv6 address".to_owned()),
        _ => Err(format!(
            "`{{{name}}}` is not known: {{hostname}}, {{ip}}, {{ipv4}}, {{ipv6}}, {{env:NAME}}, {{env:NAME|DEFAULT}} and, as the \
             port, {{port}} are"
        )),
    }
}

/// Parses `HOST`, `HOST:PORT` or `[IPV6]:PORT`, each with or without the prefix `iiop://`.
fn address(text: &str) -> Result<(String, Option<u16>), String> {
    let text = text.strip_prefix("iiop://").unwrap_or(text);
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or("a `[` has no `]`")?;
            if host.parse::<Ipv6Addr>().is_err() {
                return Err(format!("`{host}` is no IPv6 address"));
            }
            let port = match behind.strip_prefix(':') {
                None if !behind.is_empty() => return Err(format!("`{behind}` stands behind the address")),
                port => port,
            };
            (host, port)
        }
        None if text.parse::<Ipv6Addr>().is_ok() => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err("it has no host".to_owned());
    }
    let strange = |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'));
    if let Some(c) = host.chars().find(|c| strange(*c)) {
        return Err(format!("a host has no {c:?}"));
    }
    let port = match port.filter(|port| !port.is_empty()) {
        None => None,
        Some(digits) => match digits.parse() {
            Ok(port) if port != 0 => Some(port),
            _ => return Err(format!("`{digits}` is no port from 1 to 65535")),
        },
    };
    Ok((host.to_owned(), port))
}

/// A published host that clients may not reach, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unroutable {
    pub(crate) host: String,
    why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Unspecified,
    Loopback,
    LinkLocal,
    Group,
    Container,
    ThisMachine,
}

impl fmt::Display for Unroutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            Why::Unspecified => "it stands for any address of the machine that reads it",
            Why::Loopback => "clients on other machines would call themselves",
            Why::LinkLocal => "it means something on one link only, and nothing without its interface",
            Why::Group => "it is the address of a group",
            Why::Container => "it looks like the name of a container, which is unknown outside",
            Why::ThisMachine => "it is what this machine calls itself, because every address is listened on",
        })
    }
}

/// Returns the published addresses that clients may not reach, each host once. Loopback addresses are not
/// reported if the ORB listens and publishes on nothing else, because that is intended.
pub(crate) fn unroutable(
    published: &[Endpoint],
    listening: &[Listening],
    templates: bool,
) -> Vec<Unroutable> {
    let hosts = || {
        published.iter().filter_map(|endpoint| match endpoint {
            Endpoint::Iiop { host, .. } | Endpoint::Ssl { host, .. } => Some(host),
            Endpoint::Unix { .. } | Endpoint::Itself => None,
        })
    };
    let beyond = hosts().any(|host| !is_loopback(host))
        || listening.iter().any(|socket| !socket.local.ip().is_loopback());
    let any = listening.iter().any(|socket| socket.local.ip().is_unspecified());
    let mut found: Vec<Unroutable> = Vec::new();
    for host in hosts() {
        let why = match host.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() => Why::Unspecified,
            Ok(IpAddr::V4(ip)) if ip.is_link_local() => Why::LinkLocal,
            Ok(IpAddr::V6(ip)) if ip.is_unicast_link_local() => Why::LinkLocal,
            Ok(IpAddr::V4(ip)) if ip.is_broadcast() => Why::Group,
            Ok(ip) if ip.is_multicast() => Why::Group,
            _ if beyond && is_loopback(host) => Why::Loopback,
            Err(_) if is_container(host) => Why::Container,
            Err(_) if any && !templates && host == this_machine() => Why::ThisMachine,
            _ => continue,
        };
        if found.iter().all(|known| known.host != *host) {
            found.push(Unroutable { host: host.clone(), why });
        }
    }
    found
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns whether the host has twelve hexadecimal digits, like the default host name of a container, at
/// least one of them decimal.
fn is_container(host: &str) -> bool {
    host.len() == 12
        && host.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'a'..=b'f'))
        && host.bytes().any(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> Surroundings<'static> {
        Surroundings {
            hostname: "box",
            variable: &|name| match name {
                "HOST" => Some("public.example".to_owned()),
                "PORT" => Some("8080".to_owned()),
                "EMPTY" => Some(String::new()),
                _ => None,
            },
            address: &|ipv6| Some(if ipv6 { "2001:db8::7" } else { "10.0.0.7" }.parse().unwrap()),
        }
    }

    fn listening(sockets: &[(&str, &str)]) -> Vec<Listening> {
        let socket = |(host, local): &(&str, &str)| Listening {
            host: (*host).to_owned(),
            local: local.parse().unwrap(),
        };
        sockets.iter().map(socket).collect()
    }

    fn texts(templates: &[&str], sockets: &[Listening]) -> Result<Vec<String>, String> {
        let templates: Vec<String> = templates.iter().map(ToString::to_string).collect();
        let all = published(&templates, sockets, &around()).map_err(|(_, reason)| reason)?;
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
    fn what_is_wrong_with_a_template_is_said() {
        for (template, reason) in [
            ("", "no host"),
            ("iiop://:8080", "no host"),
            ("{env:NONE}:1", "`NONE`"),
            ("{env:EMPTY}", "`EMPTY`"),
            ("{nonsense}", "{nonsense}"),
            ("{hostname", "no `}`"),
            ("{port}:1", "{port}"),
            ("h:0", "no port"),
            ("h:65536", "no port"),
            ("h:80:80", "no port"),
            ("[::1", "no `]`"),
            ("[h]:1", "no IPv6"),
            ("[::1]1", "behind"),
            ("a b", "' '"),
            ("iiop://h/x", "'/'"),
        ] {
            let found = texts(&[template], &listening(&[("h", "127.0.0.1:1")])).unwrap_err();
            assert!(found.contains(reason), "{template}: {found}");
        }
        let nowhere = Surroundings { address: &|_| None, ..around() };
        for template in ["{ip}", "{ipv4}", "{ipv6}"] {
            let (of, reason) = published(&[template.to_owned()], &[], &nowhere).unwrap_err();
            assert!(of == template && reason.contains("this machine"), "{reason}");
        }
        let six = Surroundings { address: &|ipv6| ipv6.then(|| "2001:db8::7".parse().unwrap()), ..around() };
        assert_eq!(published(&["{ip}:1".to_owned()], &[], &six), Ok(vec![("2001:db8::7".to_owned(), 1)]));
    }

    #[test]
    fn without_templates_the_host_is_published_as_it_was_written() {
        for (host, local, expected) in [
            ("localhost", "127.0.0.1:7", "localhost"),
            ("::1", "[::1]:7", "::1"),
            ("", "0.0.0.0:7", "box"),
            ("0.0.0.0", "0.0.0.0:7", "box"),
            ("::", "[::]:7", "box"),
        ] {
            let socket = &listening(&[(host, local)])[0];
            assert_eq!(socket.published(&around()), (expected.to_owned(), 7));
        }
    }

    #[test]
    fn addresses_that_lead_nowhere_are_found() {
        let endpoint = |host: &str| Endpoint::Iiop { host: host.to_owned(), port: 1 };
        let here = listening(&[("127.0.0.1", "127.0.0.1:1")]);
        let any = listening(&[("0.0.0.0", "0.0.0.0:1")]);
        let why = |hosts: &[&str], sockets: &[Listening]| -> Vec<Why> {
            let published: Vec<_> = hosts.iter().map(|host| endpoint(host)).collect();
            unroutable(&published, sockets, true).into_iter().map(|found| found.why).collect()
        };
        assert_eq!(why(&["127.0.0.1", "localhost", "::1"], &here), []);
        assert_eq!(why(&["127.0.0.1"], &any), [Why::Loopback]);
        assert_eq!(why(&["10.0.0.1", "LOCALHOST", "::1"], &here), [Why::Loopback, Why::Loopback]);
        assert_eq!(why(&["0.0.0.0", "::"], &any), [Why::Unspecified, Why::Unspecified]);
        assert_eq!(why(&["169.254.1.1", "fe80::1"], &any), [Why::LinkLocal, Why::LinkLocal]);
        assert_eq!(why(&["224.0.0.1", "ff02::1", "255.255.255.255"], &any), [Why::Group; 3]);
        assert_eq!(why(&["4f8c21d09ab3", "deadbeefcafe", "h"], &any), [Why::Container]);
        assert_eq!(why(&["10.0.0.1", "host.example", "2001:db8::7"], &any), []);
        assert_eq!(why(&["0.0.0.0", "0.0.0.0"], &any).len(), 1, "once for each host");
        let own = [endpoint(this_machine())];
        assert!(unroutable(&own, &any, true).iter().all(|found| found.why == Why::Container));
        assert_eq!(unroutable(&own, &any, false).len(), 1);
        assert_eq!(unroutable(&own, &here, false).len(), usize::from(is_container(this_machine())));
        assert!(unroutable(&[endpoint("::")], &any, true)[0].to_string().contains("any address"));
    }

    #[test]
    fn this_machine_has_an_address_or_none_but_never_any() {
        let around = Surroundings::here();
        for ipv6 in [false, true] {
            if let Some(address) = (around.address)(ipv6) {
                assert!(!address.is_unspecified() && address.is_ipv6() == ipv6);
            }
        }
    }
}

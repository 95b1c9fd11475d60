//! `corbaloc:` and `corbaname:`: addresses and an object key, or the name of an initial reference.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use super::error::{UrlError, UrlErrorKind};
use super::escape::{unescape, unescape_text, write_escaped};
use crate::ior::{IiopProfile, Ior, MAX_PROFILES, ObjectKey, SslSecTrans, TaggedComponent, UiopProfile};
use crate::{EncodeError, Version};

/// The default initial reference and object key of `corbaname:` and `rir:`.
const NAME_SERVICE: &str = "NameService";

/// One `iiop:` or `ssliop:` address of a `corbaloc:` URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IiopAddress {
    /// GIOP version to use. The default is 1.0, and 1.2 for TLS. For TLS it is at least 1.1, because profiles
    /// of version 1.0 have no components and so cannot give the TLS port.
    pub version: Version,
    /// DNS name, IPv4 or IPv6 address without brackets; empty means this host.
    pub host: String,
    /// TCP port; by default 2809, and 684 for TLS.
    pub port: u16,
    /// Whether the address uses TLS (`ssliop:`).
    pub tls: bool,
}

impl IiopAddress {
    /// Default port of an `iiop:` address.
    pub const DEFAULT_PORT: u16 = 2809;

    /// Default port of an `ssliop:` address, registered with IANA as `corba-iiop-ssl`.
    pub const DEFAULT_TLS_PORT: u16 = 684;

    /// Returns the host to connect to: `localhost` if the address leaves it empty.
    pub fn host_or_local(&self) -> &str {
        if self.host.is_empty() { "localhost" } else { &self.host }
    }
}

/// Formats as `iiop:1.2@host:2809` or `ssliop:1.2@host:684`, with IPv6 addresses in brackets.
impl fmt::Display for IiopAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        let protocol = if self.tls { "ssliop" } else { "iiop" };
        write!(f, "{protocol}:{}@{open}{}{close}:{}", self.version, self.host, self.port)
    }
}

/// A `corbaloc:` URL: the location of an object, without its type.
///
/// Source clause: "Object URLs / corbaloc URL".
///
/// ```
/// use giop_codec::url::Corbaloc;
///
/// let url: Corbaloc = "corbaloc::1.2@example.org/NameService".parse()?;
/// assert_eq!(url.to_string(), "corbaloc:iiop:1.2@example.org:2809/NameService");
/// # Ok::<(), giop_codec::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Corbaloc {
    /// `rir:`: the initial reference of that name.
    Rir {
        /// Argument of `resolve_initial_references`, by default `NameService`.
        name: String,
    },
    /// Addresses to try in this order, all with one object key.
    Iiop {
        /// The addresses: at least one, at most [`MAX_PROFILES`].
        addresses: Vec<IiopAddress>,
        /// The unescaped key string.
        key: ObjectKey,
    },
    /// A Unix socket of this machine: `uiop:[V@]PATH|KEY` in TAO's form, or `omniunix:[V@]PATH:/KEY`.
    Unix {
        /// GIOP version to use; 1.0 by default.
        version: Version,
        /// Unescaped path of the socket, not empty.
        path: String,
        /// The unescaped key string.
        key: ObjectKey,
    },
}

impl Corbaloc {
    /// Returns a reference to the same object, without a type id.
    ///
    /// Its version is the lowest of all addresses. In IIOP 1.2 the further addresses become alternate address
    /// components of one profile. Earlier versions have none, so each address becomes a profile of its own.
    /// An address with TLS always becomes a profile of its own, which has port 0 and requires TLS by its
    /// component. A Unix socket becomes a profile of TAO's kind.
    ///
    /// # Errors
    /// [`UrlErrorKind::NoAddress`] for `rir:`. For values that were not parsed also
    /// [`UrlErrorKind::HostCharacter`], a host name that contains a NUL, and
    /// [`UrlErrorKind::TooManyAddresses`].
    pub fn to_ior(&self) -> Result<Ior, UrlError> {
        let bad_host = |_: EncodeError| UrlError::new("", 0, UrlErrorKind::HostCharacter('\0'));
        let no_address = || UrlError::new("", 0, UrlErrorKind::NoAddress);
        let (addresses, key) = match self {
            Self::Iiop { addresses, key } => (addresses, key),
            Self::Unix { version, path, key } => {
                let profile = UiopProfile { version: *version, ..UiopProfile::new(path, key.clone()) };
                let profiles = vec![profile.to_tagged().map_err(bad_host)?];
                return Ok(Ior { type_id: String::new(), profiles });
            }
            Self::Rir { .. } => return Err(no_address()),
        };
        let (first, others) = addresses.split_first().ok_or_else(no_address)?;
        if addresses.len() > MAX_PROFILES {
            return Err(UrlError::new("", 0, UrlErrorKind::TooManyAddresses));
        }
        let version = addresses.iter().map(|a| a.version).min().unwrap_or(first.version);
        let profile = |address: &IiopAddress| {
            let port = if address.tls { 0 } else { address.port };
            let profile = IiopProfile::new(address.host_or_local(), port, key.clone());
            if !address.tls {
                return profile.with_version(version);
            }
            let ssl = SslSecTrans {
                target_supports: SslSecTrans::PROTECTED | SslSecTrans::TRUST_IN_TARGET,
                target_requires: SslSecTrans::PROTECTED,
                port: address.port,
            };
            let version = version.max(Version::V1_1);
            profile.with_version(version).with_component(TaggedComponent::ssl_sec_trans(ssl))
        };
        let mut profiles = vec![profile(first)];
        for other in others {
            match profiles.first_mut() {
                Some(main) if version >= Version::V1_2 && !first.tls && !other.tls => {
                    let component = TaggedComponent::alternate_address(other.host_or_local(), other.port);
                    main.components.push(component.map_err(bad_host)?);
                }
                _ => profiles.push(profile(other)),
            }
        }
        Ior::from_profiles("", &profiles).map_err(bad_host)
    }

    /// Parses the part after `corbaloc:`: the bytes `start..end` of `text`.
    pub(super) fn parse(text: &str, start: usize, end: usize) -> Result<Self, UrlError> {
        if let Some(unix) = parse_unix(text, start, end, None)? {
            return Ok(unix);
        }
        let list_end = list_end(text, start, end);
        let key = (list_end < end).then_some((list_end + 1, end)).filter(|(from, to)| from < to);
        Self::parse_parts(text, (start, list_end), key, None)
    }

    /// Parses an address list and a key string, each given as a range of `text`.
    fn parse_parts(
        text: &str,
        list: (usize, usize),
        key: Option<(usize, usize)>,
        default_key: Option<&str>,
    ) -> Result<Self, UrlError> {
        let (start, end) = list;
        let part = text.get(start..end).unwrap_or_default();
        if part.get(..4).is_some_and(|p| p.eq_ignore_ascii_case("rir:")) {
            if part.len() > 4 {
                return Err(UrlError::new(text, start + 4, UrlErrorKind::RirNotAlone));
            }
            let name = key.map(|(from, to)| unescape_text(text, from, to, true)).transpose()?;
            return Ok(Self::Rir { name: name.unwrap_or_else(|| NAME_SERVICE.to_owned()) });
        }
        if key.is_some() && names_no_host(part) && text.get(end..).is_some_and(|rest| rest.starts_with("//"))
        {
            return Err(UrlError::new(text, end, UrlErrorKind::Slashes));
        }
        let mut addresses = Vec::new();
        let mut at = start;
        for address in part.split(',') {
            if addresses.len() == MAX_PROFILES {
                return Err(UrlError::new(text, at, UrlErrorKind::TooManyAddresses));
            }
            addresses.push(parse_address(text, at, address)?);
            at += address.len() + 1;
        }
        let key = match (key, default_key) {
            (Some((from, to)), _) => unescape(text, from, to, true)?,
            (None, Some(key)) => key.as_bytes().to_vec(),
            (None, None) => {
                return Err(UrlError::new(text, (end + 1).min(text.len()), UrlErrorKind::MissingKey));
            }
        };
        Ok(Self::Iiop { addresses, key: ObjectKey::from(key) })
    }

    /// Writes the part after the scheme.
    fn write_location(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rir { name } => {
                f.write_str("rir:/")?;
                write_escaped(f, name.as_bytes())
            }
            Self::Iiop { addresses, key } => {
                for (i, address) in addresses.iter().enumerate() {
                    write!(f, "{}{address}", if i == 0 { "" } else { "," })?;
                }
                f.write_str("/")?;
                write_escaped(f, key.as_slice())
            }
            Self::Unix { version, path, key } => {
                write!(f, "uiop:{version}@")?;
                write_escaped(f, path.as_bytes())?;
                f.write_str("|")?;
                write_escaped(f, key.as_slice())
            }
        }
    }
}

impl FromStr for Corbaloc {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (start, end) = super::body_of(text, "corbaloc")?;
        Self::parse(text, start, end)
    }
}

/// Writes all defaults explicitly; the output parses to the same value.
impl fmt::Display for Corbaloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corbaloc:")?;
        self.write_location(f)
    }
}

/// A `corbaname:` URL: a naming context and a stringified name to resolve in it.
///
/// The name is kept as unescaped text. Its own syntax (`id.kind/id.kind`) is checked when it is resolved.
/// Source clause: "Naming Service / corbaname URLs".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Corbaname {
    /// The naming context; its key is `NameService` by default.
    pub context: Corbaloc,
    /// The name to resolve; empty means the context itself.
    pub name: String,
}

impl Corbaname {
    /// Parses the part after `corbaname:`: the bytes `start..end` of `text`.
    pub(super) fn parse(text: &str, start: usize, end: usize) -> Result<Self, UrlError> {
        let hash = text.get(start..end).unwrap_or_default().find('#').map_or(end, |at| start + at);
        let context = match parse_unix(text, start, hash, Some(NAME_SERVICE))? {
            Some(unix) => unix,
            None => {
                let list_end = list_end(text, start, hash);
                let key = (list_end < hash).then_some((list_end + 1, hash)).filter(|(from, to)| from < to);
                Corbaloc::parse_parts(text, (start, list_end), key, Some(NAME_SERVICE))?
            }
        };
        let name = if hash < end { unescape_text(text, hash + 1, end, true)? } else { String::new() };
        Ok(Self { context, name })
    }
}

impl FromStr for Corbaname {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (start, end) = super::body_of(text, "corbaname")?;
        Self::parse(text, start, end)
    }
}

/// Writes all defaults explicitly; the output parses to the same value.
impl fmt::Display for Corbaname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corbaname:")?;
        self.context.write_location(f)?;
        f.write_str("#")?;
        write_escaped(f, self.name.as_bytes())
    }
}

/// Parses a Unix socket and an object key; returns `None` if the bytes `start..end` of `text` have no prefix
/// of such an address. A path contains slashes and therefore cannot be an element of an address list.
fn parse_unix(
    text: &str,
    start: usize,
    end: usize,
    default_key: Option<&str>,
) -> Result<Option<Corbaloc>, UrlError> {
    let part = text.get(start..end).unwrap_or_default();
    let is = |name: &str| part.get(..name.len()).is_some_and(|p| p.eq_ignore_ascii_case(name));
    let (protocol, delimiter) = match part {
        _ if is("uiop:") => ("uiop:", "|"),
        _ if is("omniunix:") => ("omniunix:", ":/"),
        _ => return Ok(None),
    };
    let mut from = start + protocol.len();
    let rest = |from: usize| text.get(from..end).unwrap_or_default();
    let (path_end, key) = match rest(from).split_once(delimiter) {
        Some((path, _)) => (from + path.len(), Some(from + path.len() + delimiter.len())),
        None => (from + rest(from).strip_suffix(':').unwrap_or(rest(from)).len(), None),
    };
    let mut version = Version::V1_0;
    if let Some((number, _)) = text.get(from..path_end).unwrap_or_default().split_once('@') {
        version = parse_version(number).ok_or_else(|| UrlError::new(text, from, UrlErrorKind::Version))?;
        from += number.len() + 1;
    }
    let path = unescape_text(text, from, path_end, true)?;
    if path.is_empty() {
        return Err(UrlError::new(text, from, UrlErrorKind::NoSocketPath));
    }
    let key = match (key.filter(|key| *key < end), default_key) {
        (Some(key), _) => unescape(text, key, end, true)?,
        (None, Some(key)) => key.as_bytes().to_vec(),
        (None, None) => {
            return Err(UrlError::new(text, (end + 1).min(text.len()), UrlErrorKind::MissingKey));
        }
    };
    Ok(Some(Corbaloc::Unix { version, path, key: ObjectKey::from(key) }))
}

/// Returns whether the last address of the list has neither host nor port.
fn names_no_host(list: &str) -> bool {
    let last = list.rsplit(',').next().unwrap_or_default();
    let behind = last.split_once(':').map_or(last, |(_, behind)| behind);
    behind.rsplit('@').next().unwrap_or_default().is_empty()
}

/// Parses an IPv6 address. The zone of a link-local address may follow after `%`, or after `%25` as in URLs.
fn ipv6(text: &str) -> Option<String> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    address.parse::<Ipv6Addr>().ok()?;
    let Some(zone) = zone else { return Some(address.to_owned()) };
    let zone = zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone);
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~');
    (!zone.is_empty() && zone.chars().all(allowed)).then(|| format!("{address}%{zone}"))
}

/// Returns the end of the address list: the first `/`, or `end`.
fn list_end(text: &str, start: usize, end: usize) -> usize {
    text.get(start..end).unwrap_or_default().find('/').map_or(end, |at| start + at)
}

/// Parses one address of the list, which starts at `at` in `text`.
fn parse_address(text: &str, at: usize, address: &str) -> Result<IiopAddress, UrlError> {
    let fail = |offset: usize, kind| Err(UrlError::new(text, at + offset, kind));
    let Some((protocol, mut rest)) = address.split_once(':') else {
        return fail(0, UrlErrorKind::NoProtocol);
    };
    if protocol.eq_ignore_ascii_case("rir") {
        return fail(0, UrlErrorKind::RirNotAlone);
    }
    let tls = protocol.eq_ignore_ascii_case("ssliop");
    if !tls && !protocol.is_empty() && !protocol.eq_ignore_ascii_case("iiop") {
        return fail(0, UrlErrorKind::UnknownProtocol(protocol.to_owned()));
    }
    let mut offset = protocol.len() + 1;
    let mut version = if tls { Version::V1_2 } else { Version::V1_0 };
    if let Some((number, behind)) = rest.split_once('@') {
        version = match parse_version(number) {
            Some(version) if tls => version.max(Version::V1_1),
            Some(version) => version,
            None => return fail(offset, UrlErrorKind::Version),
        };
        offset += number.len() + 1;
        rest = behind;
    }
    let (host, port) = if let Some(bracketed) = rest.strip_prefix('[') {
        let Some((inner, behind)) = bracketed.split_once(']') else {
            return fail(offset, UrlErrorKind::Ipv6Address);
        };
        let Some(host) = ipv6(inner) else { return fail(offset, UrlErrorKind::Ipv6Address) };
        offset += inner.len() + 2;
        match behind.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if behind.is_empty() => (host, None),
            None => return fail(offset, UrlErrorKind::Port),
        }
    } else {
        if rest.parse::<Ipv6Addr>().is_ok() {
            return fail(offset, UrlErrorKind::Ipv6Brackets);
        }
        let (host, port) = rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port)));
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if let Some((i, c)) = host.char_indices().find(|(_, c)| !allowed(*c)) {
            return fail(offset + i, UrlErrorKind::HostCharacter(c));
        }
        offset += host.len();
        (host.to_owned(), port)
    };
    let port = match port {
        None if tls => IiopAddress::DEFAULT_TLS_PORT,
        None => IiopAddress::DEFAULT_PORT,
        Some(digits) => match parse_port(digits) {
            Some(port) => port,
            None => return fail(offset + 1, UrlErrorKind::Port),
        },
    };
    Ok(IiopAddress { version, host, port, tls })
}

/// Parses `1.N`; a minor number above 2 is read as 1.2, the highest supported version.
fn parse_version(number: &str) -> Option<Version> {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (major, minor) = number.split_once('.')?;
    if !digits(major) || !digits(minor) || major.trim_start_matches('0') != "1" {
        return None;
    }
    Some(minor.parse().ok().and_then(Version::from_minor).unwrap_or(Version::V1_2))
}

/// Parses a port other than 0. Accepts only digits, because `u16::from_str` would accept a sign.
fn parse_port(digits: &str) -> Option<u16> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|port| *port != 0)
}

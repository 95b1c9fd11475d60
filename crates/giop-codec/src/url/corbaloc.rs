//! `corbaloc:` and `corbaname:`: addresses and an object key, or the name of an initial reference.

use std::fmt;
use std::str::FromStr;

use super::error::{UrlError, UrlErrorKind};
use super::escape::write_escaped;
use super::grammar;
use crate::ior::{IiopProfile, Ior, MAX_PROFILES, ObjectKey, SslSecTrans, TaggedComponent, UiopProfile};
use crate::{EncodeError, Version};

/// One `iiop:` or `ssliop:` address of a `corbaloc:` URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IiopAddress {
    /// The GIOP version to use. The default is 1.0 for TCP and 1.2 for TLS. With TLS, the version is at least
    /// 1.1: the TLS port is in a component, and profiles of version 1.0 have no components.
    pub version: Version,
    /// A DNS name, an IPv4 address, or an IPv6 address without brackets. Empty means this host.
    pub host: String,
    /// The TCP port. The default is 2809, or 684 with TLS.
    pub port: u16,
    /// Whether the address uses TLS (`ssliop:`).
    pub uses_tls: bool,
}

impl IiopAddress {
    /// The default port of an `iiop:` address.
    pub const DEFAULT_PORT: u16 = 2809;

    /// The default port of an `ssliop:` address, which is registered with IANA as `corba-iiop-ssl`.
    pub const DEFAULT_TLS_PORT: u16 = 684;

    /// Returns the host to connect to: `localhost` if the address contains none.
    pub fn host_or_local(&self) -> &str {
        if self.host.is_empty() { "localhost" } else { &self.host }
    }
}

/// Formats as `iiop:1.2@host:2809` or `ssliop:1.2@host:684`, with IPv6 addresses in brackets.
impl fmt::Display for IiopAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        let protocol = if self.uses_tls { "ssliop" } else { "iiop" };
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
    /// `rir:`: the initial reference with this name.
    Rir {
        /// The argument of `resolve_initial_references`, by default `NameService`.
        name: String,
    },
    /// Addresses that are tried in this order. All have the same object key.
    Iiop {
        /// The addresses. There must be at least one and at most [`MAX_PROFILES`].
        addresses: Vec<IiopAddress>,
        /// The unescaped key string.
        key: ObjectKey,
    },
    /// A Unix socket of this machine: `uiop:[V@]PATH|KEY` in TAO's form, or `omniunix:[V@]PATH:/KEY`.
    Unix {
        /// The GIOP version to use; 1.0 by default.
        version: Version,
        /// The unescaped path of the socket, which must not be empty.
        path: String,
        /// The unescaped key string.
        key: ObjectKey,
    },
}

impl Corbaloc {
    /// Returns a reference to the same object, without a type id.
    ///
    /// The version of all profiles is the lowest version among the addresses, but at least 1.1 for those with
    /// TLS. If it is 1.2 and the first address does not use TLS, all others without TLS become alternate
    /// addresses of its profile. All other addresses become profiles of their own. With TLS, a profile has
    /// the port 0 and a component with the TLS port. A Unix socket becomes a profile of TAO's kind.
    ///
    /// # Errors
    /// - [`UrlErrorKind::NoAddress`] for `rir:`, or if there is no address.
    /// - [`UrlErrorKind::HostCharacter`] if a host name or path contains a NUL.
    /// - [`UrlErrorKind::TooManyAddresses`], but never for a parsed URL.
    pub fn to_ior(&self) -> Result<Ior, UrlError> {
        let bad_host = |_: EncodeError| UrlError::new(1, UrlErrorKind::HostCharacter('\0'));
        let no_address = || UrlError::new(1, UrlErrorKind::NoAddress);
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
            return Err(UrlError::new(1, UrlErrorKind::TooManyAddresses));
        }
        let version = addresses.iter().map(|a| a.version).min().unwrap_or(first.version);
        let profile = |address: &IiopAddress| {
            let port = if address.uses_tls { 0 } else { address.port };
            let profile = IiopProfile::new(address.host_or_local(), port, key.clone());
            if !address.uses_tls {
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
                Some(main) if version >= Version::V1_2 && !first.uses_tls && !other.uses_tls => {
                    let component = TaggedComponent::alternate_address(other.host_or_local(), other.port);
                    main.components.push(component.map_err(bad_host)?);
                }
                _ => profiles.push(profile(other)),
            }
        }
        Ior::from_profiles("", &profiles).map_err(bad_host)
    }

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
        super::parse(text, grammar::corbaloc, super::scheme)
    }
}

/// Also writes defaults that the parsed text omitted. The output parses to the same value.
impl fmt::Display for Corbaloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corbaloc:")?;
        self.write_location(f)
    }
}

/// A `corbaname:` URL: a naming context and a stringified name to resolve in it.
///
/// The name is stored unescaped. Its syntax (`id.kind/id.kind`) is checked only when it is resolved.
/// Source clause: "Naming Service / corbaname URLs".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Corbaname {
    /// The naming context; its key is `NameService` by default.
    pub context: Corbaloc,
    /// The name to resolve; empty means the context itself.
    pub name: String,
}

impl FromStr for Corbaname {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        super::parse(text, grammar::corbaname, super::scheme)
    }
}

/// Also writes defaults that the parsed text omitted. The output parses to the same value.
impl fmt::Display for Corbaname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corbaname:")?;
        self.context.write_location(f)?;
        f.write_str("#")?;
        write_escaped(f, self.name.as_bytes())
    }
}

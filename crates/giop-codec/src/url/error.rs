//! Errors of parsing an object URL.

use std::error::Error;
use std::fmt;

use crate::Printable;
use crate::exception::{MinorCode, SystemException, minor};
use crate::ior::{MAX_PROFILES, ParseIorError};

/// Error of parsing an object URL, with the position of the first invalid character.
///
/// Becomes `BAD_PARAM` with OMG minor code 7 (scheme), 8 (address), 9 (scheme-specific part) or 10 (anything
/// else), `COMPLETED_NO`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    position: usize,
    kind: UrlErrorKind,
}

impl UrlError {
    /// Creates an error at a character, starting at 1.
    #[cold]
    pub(super) fn new(position: usize, kind: UrlErrorKind) -> Self {
        Self { position, kind }
    }

    /// Returns the number of the invalid character in the original text, starting at 1.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> &UrlErrorKind {
        &self.kind
    }

    /// Returns the OMG minor code of `BAD_PARAM` for the error.
    pub fn minor(&self) -> MinorCode {
        match self.kind {
            UrlErrorKind::UnknownScheme(_) => minor::BAD_PARAM_URL_SCHEME,
            UrlErrorKind::UnknownProtocol(_)
            | UrlErrorKind::NoProtocol
            | UrlErrorKind::Version
            | UrlErrorKind::HostCharacter(_)
            | UrlErrorKind::Ipv6Address
            | UrlErrorKind::Ipv6Brackets
            | UrlErrorKind::Port
            | UrlErrorKind::NoSocketPath
            | UrlErrorKind::Slashes
            | UrlErrorKind::RirNotAlone
            | UrlErrorKind::TooManyAddresses => minor::BAD_PARAM_URL_ADDRESS,
            UrlErrorKind::Character(_)
            | UrlErrorKind::Escape
            | UrlErrorKind::NotUtf8
            | UrlErrorKind::EmptyPath
            | UrlErrorKind::Ior(_) => minor::BAD_PARAM_URL_SCHEME_SPECIFIC,
            UrlErrorKind::MissingKey | UrlErrorKind::NoAddress => minor::BAD_PARAM_URL_OTHER,
        }
    }
}

impl From<ParseIorError> for UrlError {
    fn from(error: ParseIorError) -> Self {
        Self { position: error.position(), kind: UrlErrorKind::Ior(error) }
    }
}

impl From<UrlError> for SystemException {
    #[cold]
    fn from(error: UrlError) -> Self {
        Self::bad_param().with_minor(error.minor()).with_source(error)
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            // The message of this error contains the position.
            UrlErrorKind::Ior(error) => error.fmt(f),
            kind => write!(f, "object URL, character {}: {kind}", self.position),
        }
    }
}

impl Error for UrlError {}

/// The reason why a text is not an object URL.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlErrorKind {
    /// Not `IOR:`, `corbaloc:`, `corbaname:` or `file:`; contains the text before the first colon.
    UnknownScheme(String),
    /// An address of an unsupported protocol.
    UnknownProtocol(String),
    /// An address without `protocol:` or `:` before it.
    NoProtocol,
    /// The text before `@` is not a GIOP version.
    Version,
    /// A character that is not allowed in a host name.
    HostCharacter(char),
    /// Brackets that do not enclose an IPv6 address, or are not closed.
    Ipv6Address,
    /// An IPv6 address without brackets.
    Ipv6Brackets,
    /// A port number that is not from 1 to 65535.
    Port,
    /// A Unix socket without its path.
    NoSocketPath,
    /// `//` before a host, as in URLs of the web.
    Slashes,
    /// `rir:` together with other addresses, or followed by more text.
    RirNotAlone,
    /// More addresses than the profiles that a reference may have ([`MAX_PROFILES`]).
    TooManyAddresses,
    /// A character that must be escaped at this position.
    Character(char),
    /// `%` that is not followed by two hexadecimal digits.
    Escape,
    /// Escapes that do not decode to UTF-8 where text is required.
    NotUtf8,
    /// `file:` without a path.
    EmptyPath,
    /// A stringified reference that does not decode.
    Ior(ParseIorError),
    /// `corbaloc:` without an object key.
    MissingKey,
    /// `rir:` names an initial reference and has no address for an object reference.
    NoAddress,
}

impl fmt::Display for UrlErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownScheme(scheme) => {
                write!(
                    f,
                    "unknown scheme {:?} (IOR:, corbaloc:, corbaname: and file: are known)",
                    Printable::new(scheme)
                )
            }
            Self::UnknownProtocol(protocol) => {
                write!(
                    f,
                    "protocol {:?} is not supported (iiop:, rir:, uiop: and omniunix: are)",
                    Printable::new(protocol)
                )
            }
            Self::NoProtocol => f.write_str("address expected, such as iiop:1.2@host:2809 or :host"),
            Self::Version => f.write_str("version expected before '@': 1.0, 1.1 or 1.2"),
            Self::HostCharacter(c) => write!(f, "{c:?} is not allowed in a host name"),
            Self::Ipv6Address => f.write_str("IPv6 address in brackets expected, such as [::1]"),
            Self::Ipv6Brackets => f.write_str("an IPv6 address needs brackets, such as [::1]:2809"),
            Self::Port => f.write_str("port number of 1 to 65535 expected"),
            Self::NoSocketPath => {
                f.write_str("path of a Unix socket expected, such as uiop:1.2@/tmp/socket|Key")
            }
            Self::Slashes => f.write_str("no `//` stands before the host: write iiop:1.2@host:2809/Key"),
            Self::RirNotAlone => f.write_str("rir: must be the only address and has no host"),
            Self::TooManyAddresses => write!(f, "more than {MAX_PROFILES} addresses"),
            Self::Character(c) => write!(f, "{c:?} is not allowed here unless escaped as %HH"),
            Self::Escape => f.write_str("two hexadecimal digits expected after '%'"),
            Self::NotUtf8 => f.write_str("escaped octets are not UTF-8 text"),
            Self::EmptyPath => f.write_str("path expected after file:"),
            Self::Ior(error) => error.fmt(f),
            Self::MissingKey => f.write_str("object key expected, such as /NameService"),
            Self::NoAddress => f.write_str("rir: names an initial reference, it has no address"),
        }
    }
}

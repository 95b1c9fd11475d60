//! Errors of parsing an object URL.

use std::error::Error;
use std::fmt;

use crate::Printable;
use crate::exception::{MinorCode, SystemException, minor};
use crate::ior::{MAX_PROFILES, ParseIorError};

/// The error of parsing an object URL, with the position of the first invalid character.
///
/// Becomes `BAD_PARAM` with OMG minor code 7 (scheme), 8 (address), 9 (scheme-specific part) or 10 (anything
/// else), `COMPLETED_NO`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    position: usize,
    kind: UrlErrorKind,
}

impl UrlError {
    /// Creates an error at the character with this number, counted from 1.
    #[cold]
    pub(super) fn new(position: usize, kind: UrlErrorKind) -> Self {
        Self { position, kind }
    }

    /// Returns the number of the invalid character in the original text, counted from 1.
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
            UrlErrorKind::Character(_)
            | UrlErrorKind::Escape
            | UrlErrorKind::NotUtf8
            | UrlErrorKind::EmptyPath
            | UrlErrorKind::Ior(_) => minor::BAD_PARAM_URL_SCHEME_SPECIFIC,
            UrlErrorKind::MissingKey | UrlErrorKind::NoAddress => minor::BAD_PARAM_URL_OTHER,
            _ => minor::BAD_PARAM_URL_ADDRESS,
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlErrorKind {
    /// The scheme is unknown, or is not the scheme of the URL type that is parsed. The value is the text
    /// before the first colon. Without a colon, it is empty or the beginning of the text.
    #[error(
        "unknown or unexpected scheme {:?} (object URLs begin with IOR:, corbaloc:, corbaname: or file:)",
        Printable::new(.0)
    )]
    UnknownScheme(String),
    /// An address of a list has an unsupported protocol, or a protocol that must not be in a list.
    #[error(
        "protocol {:?} is not allowed here (iiop: and ssliop: are; uiop: and omniunix: must be the only address)",
        Printable::new(.0)
    )]
    UnknownProtocol(String),
    /// An address begins with neither a protocol nor a colon.
    #[error("address expected, such as iiop:1.2@host:2809 or :host")]
    NoProtocol,
    /// The text before `@` is not a GIOP version.
    #[error("version expected before '@': 1.0, 1.1 or 1.2")]
    Version,
    /// A character that is not allowed in a host name, or a NUL in the path of a Unix socket.
    #[error("{0:?} is not allowed in this part of an address")]
    HostCharacter(char),
    /// The brackets of a host do not enclose an IPv6 address, or are not closed.
    #[error("IPv6 address in brackets expected, such as [::1]")]
    Ipv6Address,
    /// An IPv6 address without brackets.
    #[error("an IPv6 address must be in brackets, such as [::1]:2809")]
    Ipv6Brackets,
    /// A port number that is not from 1 to 65535.
    #[error("port number from 1 to 65535 expected")]
    Port,
    /// A Unix socket without its path.
    #[error("path of a Unix socket expected, such as uiop:1.2@/tmp/socket|Key")]
    NoSocketPath,
    /// `//` before a host, as in URLs of the web.
    #[error("unexpected `//` before the host: write iiop:1.2@host:2809/Key")]
    Slashes,
    /// `rir:` together with other addresses, or followed by more text.
    #[error("rir: must be the only address, followed by / and a name or by nothing")]
    RirNotAlone,
    /// More addresses than the profiles that a reference may have ([`MAX_PROFILES`]).
    #[error("a URL must not have more than {MAX_PROFILES} addresses")]
    TooManyAddresses,
    /// A character that must be escaped at this position.
    #[error("{0:?} is not allowed here unless escaped as %HH")]
    Character(char),
    /// `%` that is not followed by two hexadecimal digits.
    #[error("two hexadecimal digits expected after '%'")]
    Escape,
    /// Escapes that do not decode to UTF-8 where text is required.
    #[error("escaped bytes are not UTF-8 text")]
    NotUtf8,
    /// `file:` without a path.
    #[error("path expected after file:")]
    EmptyPath,
    /// A stringified reference that does not decode.
    #[error("{0}")]
    Ior(ParseIorError),
    /// `corbaloc:` without an object key.
    #[error("object key expected, such as /NameService")]
    MissingKey,
    /// The URL has no address to create a reference from. A `rir:` URL only names an initial reference.
    #[error("the URL has no address (a rir: URL only names an initial reference)")]
    NoAddress,
}

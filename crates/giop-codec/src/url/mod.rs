//! Object URLs: `IOR:`, `corbaloc:`, `corbaname:` and `file:`.

mod corbaloc;
mod error;
mod escape;
mod grammar;
mod name;
mod syntax;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use corbaloc::{Corbaloc, Corbaname, IiopAddress};
pub use error::{UrlError, UrlErrorKind};
pub use name::{NameText, NameTextError, NameTextErrorKind};
use nom::Parser;
use nom::branch::alt;

use self::syntax::{SyntaxError, apply};
use crate::ior::Ior;

/// A parsed object URL.
///
/// `FromStr` trims white space, accepts schemes in upper or lower case, and reports the position of an
/// invalid character. `Display` also writes defaults. Its output parses to the same value.
/// Source clause: "ORB Interface / Object URLs".
///
/// ```
/// use giop_codec::url::ObjectUrl;
///
/// let url: ObjectUrl = "corbaloc:iiop:1.2@[::1]:2809/Bank".parse()?;
/// assert!(matches!(url, ObjectUrl::Corbaloc(_)));
/// let error = "corbaloc:iiop:host:port/Bank".parse::<ObjectUrl>().unwrap_err();
/// assert_eq!(error.to_string(), "object URL, character 20: port number from 1 to 65535 expected");
/// # Ok::<(), giop_codec::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ObjectUrl {
    /// `IOR:`: a whole reference as hexadecimal digits.
    Ior(Ior),
    /// `corbaloc:`: addresses and an object key.
    Corbaloc(Corbaloc),
    /// `corbaname:`: a naming context and a name in it.
    Corbaname(Corbaname),
    /// `file:`: the path of a file with another object URL. Readers must limit how many files they follow.
    File(PathBuf),
}

impl FromStr for ObjectUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let is_ior = trimmed(text).get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("ior:"));
        if is_ior {
            return Ok(Self::Ior(text.parse()?));
        }
        let url = alt((
            grammar::corbaloc.map(Self::Corbaloc),
            grammar::corbaname.map(Self::Corbaname),
            grammar::file.map(Self::File),
        ));
        parse(text, url, |body| if body.contains(':') { scheme(body) } else { body })
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ior(ior) => ior.fmt(f),
            Self::Corbaloc(url) => url.fmt(f),
            Self::Corbaname(url) => url.fmt(f),
            Self::File(path) => {
                // No slashes precede a relative path, because its first part would then be read as a host.
                f.write_str(if path.has_root() { "file://" } else { "file:" })?;
                escape::write_escaped(f, path.to_string_lossy().as_bytes())
            }
        }
    }
}

impl From<Ior> for ObjectUrl {
    fn from(ior: Ior) -> Self {
        Self::Ior(ior)
    }
}

impl From<Corbaloc> for ObjectUrl {
    fn from(url: Corbaloc) -> Self {
        Self::Corbaloc(url)
    }
}

impl From<Corbaname> for ObjectUrl {
    fn from(url: Corbaname) -> Self {
        Self::Corbaname(url)
    }
}

/// Applies a rule to the trimmed text. `scheme` returns the part of the text that the error names.
fn parse<'a, T>(
    text: &'a str,
    rule: impl Parser<&'a str, Output = T, Error = SyntaxError<'a, UrlErrorKind>>,
    scheme: impl Fn(&str) -> &str,
) -> Result<T, UrlError> {
    // The error contains at most 32 characters, because the text may be anything, such as a whole file.
    let unknown = |body: &str| UrlErrorKind::UnknownScheme(scheme(body).chars().take(32).collect());
    apply(text, trimmed(text), rule, unknown).map_err(|(position, kind)| match kind {
        // The error is at the slash, but the key is expected after it. The slash may be missing too.
        UrlErrorKind::MissingKey => UrlError::new((position + 1).min(text.chars().count() + 1), kind),
        _ => UrlError::new(position, kind),
    })
}

fn scheme(text: &str) -> &str {
    text.split_once(':').map_or("", |(scheme, _)| scheme)
}

fn trimmed(text: &str) -> &str {
    // Windows editors write a byte order mark at the beginning of files.
    text.strip_prefix('\u{feff}').unwrap_or(text).trim()
}

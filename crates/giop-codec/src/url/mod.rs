//! Object URLs: `IOR:`, `corbaloc:`, `corbaname:` and `file:`.

mod corbaloc;
mod error;
mod escape;
mod name;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use corbaloc::{Corbaloc, Corbaname, IiopAddress};
pub use error::{UrlError, UrlErrorKind};
pub use name::{NameText, NameTextError, NameTextErrorKind};

use crate::ior::Ior;

/// A parsed object URL.
///
/// `FromStr` trims white space, accepts schemes in upper or lower case, and reports the position of an
/// invalid character. `Display` writes all defaults explicitly; its output parses to the same value.
/// Source clause: "ORB Interface / Object URLs".
///
/// ```
/// use giop_codec::url::ObjectUrl;
///
/// let url: ObjectUrl = "corbaloc:iiop:1.2@[::1]:2809/Bank".parse()?;
/// assert!(matches!(url, ObjectUrl::Corbaloc(_)));
/// let error = "corbaloc:iiop:host:port/Bank".parse::<ObjectUrl>().unwrap_err();
/// assert_eq!(error.to_string(), "object URL, character 20: port number of 1 to 65535 expected");
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
    /// `file:`: the file contains another object URL. The code that reads it must limit the nesting.
    File(PathBuf),
}

impl FromStr for ObjectUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (start, end) = trimmed(text);
        let body = text.get(start..end).unwrap_or_default();
        let (scheme, _) = body.split_once(':').unwrap_or((body, ""));
        let behind = start + scheme.len() + 1;
        match scheme.to_ascii_lowercase().as_str() {
            _ if scheme.len() == body.len() => Err(unknown_scheme(text, start, scheme)),
            "ior" => Ok(Self::Ior(text.parse()?)),
            "corbaloc" => Corbaloc::parse(text, behind, end).map(Self::Corbaloc),
            "corbaname" => Corbaname::parse(text, behind, end).map(Self::Corbaname),
            "file" => parse_file(text, behind, end).map(Self::File),
            _ => Err(unknown_scheme(text, start, scheme)),
        }
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ior(ior) => ior.fmt(f),
            Self::Corbaloc(url) => url.fmt(f),
            Self::Corbaname(url) => url.fmt(f),
            Self::File(path) => {
                // A relative path is written without the slashes, because its first part after them would be
                // read as a host.
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

/// Parses `file:///abs`, `file:/abs`, `file://localhost/abs`, and `file://relative`, which TAO and JacORB
/// accept.
///
/// Only escapes are decoded. All other characters are accepted, because users write plain paths into such
/// URLs.
fn parse_file(text: &str, start: usize, end: usize) -> Result<PathBuf, UrlError> {
    let body = text.get(start..end).unwrap_or_default();
    let from = match body.strip_prefix("//") {
        Some(behind) if behind.starts_with("localhost/") => start + "//localhost".len(),
        Some(_) => start + 2,
        None => start,
    };
    if from >= end {
        return Err(UrlError::new(text, from, UrlErrorKind::EmptyPath));
    }
    escape::unescape_text(text, from, end, false).map(PathBuf::from)
}

/// Returns the range of `text` without white space at its ends.
fn trimmed(text: &str) -> (usize, usize) {
    let end = text.trim_end().len();
    let body = text.get(..end).unwrap_or_default();
    // Windows editors write a byte order mark at the beginning of files.
    let start = end - body.strip_prefix('\u{feff}').unwrap_or(body).trim_start().len();
    (start, end)
}

/// Returns the range of the text after `scheme:`.
fn body_of(text: &str, scheme: &str) -> Result<(usize, usize), UrlError> {
    let (start, end) = trimmed(text);
    match text.get(start..end).unwrap_or_default().split_once(':') {
        Some((found, _)) if found.eq_ignore_ascii_case(scheme) => Ok((start + scheme.len() + 1, end)),
        found => Err(unknown_scheme(text, start, found.map_or("", |(found, _)| found))),
    }
}

/// Creates the error with at most 32 characters of the scheme, because the text may be anything, such as a
/// whole file.
#[cold]
fn unknown_scheme(text: &str, at: usize, scheme: &str) -> UrlError {
    UrlError::new(text, at, UrlErrorKind::UnknownScheme(scheme.chars().take(32).collect()))
}

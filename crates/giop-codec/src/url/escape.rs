//! The `%HH` escapes of key strings, names and paths.

use std::fmt;

use super::error::{UrlError, UrlErrorKind};

/// Returns whether a character may appear unescaped in a key string or a name.
///
/// Source clause: "Object URLs / corbaloc Syntax" (the escaping rule).
pub(super) const fn is_unescaped(octet: u8) -> bool {
    octet.is_ascii_alphanumeric()
        || matches!(
            octet,
            b';' | b'/'
                | b':'
                | b'?'
                | b'@'
                | b'&'
                | b'='
                | b'+'
                | b'$'
                | b','
                | b'-'
                | b'_'
                | b'.'
                | b'!'
                | b'~'
                | b'*'
                | b'\''
                | b'('
                | b')'
        )
}

/// Returns the unescaped bytes of `text[start..end]`. With `strict`, a character outside of the unescaped set
/// is an error.
pub(super) fn unescape(text: &str, start: usize, end: usize, strict: bool) -> Result<Vec<u8>, UrlError> {
    let part = text.get(start..end).unwrap_or_default();
    let mut octets = Vec::with_capacity(part.len());
    let mut rest = part.char_indices();
    while let Some((offset, c)) = rest.next() {
        if c == '%' {
            let mut digit = || rest.next().and_then(|(_, c)| c.to_digit(16));
            match (digit(), digit()) {
                (Some(high), Some(low)) => octets.push((high << 4 | low) as u8),
                _ => return Err(UrlError::new(text, start + offset, UrlErrorKind::Escape)),
            }
        } else if strict && !u8::try_from(c).is_ok_and(is_unescaped) {
            return Err(UrlError::new(text, start + offset, UrlErrorKind::Character(c)));
        } else {
            octets.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(octets)
}

/// Returns the unescaped text of `text[start..end]`, like [`unescape`]; it must be UTF-8.
pub(super) fn unescape_text(text: &str, start: usize, end: usize, strict: bool) -> Result<String, UrlError> {
    String::from_utf8(unescape(text, start, end, strict)?)
        .map_err(|_| UrlError::new(text, start, UrlErrorKind::NotUtf8))
}

/// Writes bytes, with those outside of the unescaped set as `%HH`.
pub(super) fn write_escaped(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    use fmt::Write as _;
    for &octet in octets {
        if is_unescaped(octet) {
            f.write_char(char::from(octet))?;
        } else {
            write!(f, "%{octet:02X}")?;
        }
    }
    Ok(())
}

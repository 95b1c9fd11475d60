//! The `%HH` escapes of key strings, names and paths.

use std::fmt;

use super::error::UrlErrorKind;
use super::syntax::{SyntaxError, syntax_error};

/// Returns whether a character needs no escape: an ASCII letter or digit, or one of `;/:?@&=+$,-_.!~*'()`.
///
/// Source clause: "Object URLs / corbaloc Syntax" (the escaping rule).
pub(super) const fn needs_no_escape(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '!' | '$' | '&'..='/' | ':' | ';' | '=' | '?' | '@' | '_' | '~')
}

type Unescaped<'a, T> = Result<T, nom::Err<SyntaxError<'a, UrlErrorKind>>>;

/// Returns the unescaped bytes. A character without an escape is an error unless `is_allowed` accepts it.
pub(super) fn unescape(text: &str, is_allowed: fn(char) -> bool) -> Unescaped<'_, Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    loop {
        let at = rest.as_str();
        let Some(c) = rest.next() else { return Ok(bytes) };
        if c == '%' {
            let mut digit = || rest.next().and_then(|c| c.to_digit(16));
            match (digit(), digit()) {
                (Some(high), Some(low)) => bytes.push((high << 4 | low) as u8),
                _ => return Err(syntax_error(at, UrlErrorKind::Escape)),
            }
        } else if !is_allowed(c) {
            return Err(syntax_error(at, UrlErrorKind::Character(c)));
        } else {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

/// Does the same as [`unescape`], and requires that the bytes are UTF-8.
pub(super) fn unescape_text(text: &str, is_allowed: fn(char) -> bool) -> Unescaped<'_, String> {
    String::from_utf8(unescape(text, is_allowed)?).map_err(|_| syntax_error(text, UrlErrorKind::NotUtf8))
}

pub(super) fn write_escaped(out: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|&byte| {
        let c = char::from(byte);
        if needs_no_escape(c) { out.write_char(c) } else { write!(out, "%{byte:02X}") }
    })
}

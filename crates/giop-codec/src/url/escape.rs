//! The `%HH` escapes of key strings, names and paths.

use std::fmt;

use super::error::UrlErrorKind;
use super::syntax::{SyntaxError, syntax_error};

/// Returns whether a byte may be unescaped: an ASCII letter or digit, or one of `;/:?@&=+$,-_.!~*'()`.
///
/// Source clause: "Object URLs / corbaloc Syntax" (the escaping rule).
const fn is_unescaped(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'$' | b'&'..=b'/' | b':' | b';' | b'=' | b'?' | b'@' | b'_' | b'~')
}

/// Returns the unescaped bytes. If `strict` is set, an unescaped character that must be escaped is an error.
pub(super) fn unescape(text: &str, strict: bool) -> Result<Vec<u8>, nom::Err<SyntaxError<'_, UrlErrorKind>>> {
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
        } else if strict && !u8::try_from(c).is_ok_and(is_unescaped) {
            return Err(syntax_error(at, UrlErrorKind::Character(c)));
        } else {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

/// Does the same as [`unescape`], and requires that the bytes are UTF-8.
pub(super) fn unescape_text(
    text: &str,
    strict: bool,
) -> Result<String, nom::Err<SyntaxError<'_, UrlErrorKind>>> {
    String::from_utf8(unescape(text, strict)?).map_err(|_| syntax_error(text, UrlErrorKind::NotUtf8))
}

pub(super) fn write_escaped(out: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|&byte| {
        if is_unescaped(byte) { out.write_char(char::from(byte)) } else { write!(out, "%{byte:02X}") }
    })
}

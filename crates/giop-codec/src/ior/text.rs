//! Stringified references: `IOR:` and hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use super::encapsulation::{encapsulation, open_encapsulation};
use super::{Ior, TaggedProfile};
use crate::cdr::{CdrDecode, CdrEncode};
use crate::exception::{SystemException, minor};
use crate::{DecodeError, DecodeErrorKind};

const PREFIX: &str = "IOR:";

impl Ior {
    /// Returns the reference as an encapsulation: the bytes that the text form contains as digits.
    ///
    /// A type id with a NUL has no encoding. It is replaced by an empty one, because it is only a hint.
    pub fn to_encapsulation(&self) -> Bytes {
        encapsulation(|e| self.encode(e))
            .or_else(|_| {
                encapsulation(|e| {
                    e.put_unconverted_str("")?;
                    e.put_len(self.profiles.len())?;
                    TaggedProfile::encode_slice(&self.profiles, e)
                })
            })
            .unwrap_or_default()
    }

    /// Decodes a reference from an encapsulation of either byte order.
    ///
    /// # Errors
    /// The data ends early, or is not a reference.
    pub fn from_encapsulation(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut d = open_encapsulation(bytes)?;
        Self::decode(&mut d)
    }
}

/// Writes `IOR:` and lower-case digits, in little-endian byte order.
impl fmt::Display for Ior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.to_encapsulation().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Accepts upper and lower case, both byte orders, and white space, because mail programs break long lines.
/// Accepts a byte order mark before and zero bytes after the reference, which some ORBs write.
impl FromStr for Ior {
    type Err = ParseIorError;

    fn from_str(text: &str) -> Result<Self, ParseIorError> {
        let fail = |position: usize, kind| Err(ParseIorError { position, kind });
        let body = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
        let skipped = text.chars().count() - body.chars().count();
        let body = body.trim_end();
        let digits = match body.get(..PREFIX.len()) {
            Some(prefix) if prefix.eq_ignore_ascii_case(PREFIX) => {
                body.get(PREFIX.len()..).unwrap_or_default()
            }
            _ => return fail(skipped + 1, ParseIorErrorKind::Prefix),
        };
        // The number of the first character after the prefix.
        let first = skipped + PREFIX.len() + 1;
        let mut bytes = Vec::with_capacity(digits.len() / 2);
        let mut high = None;
        let mut spaces = Vec::new();
        for (i, c) in digits.chars().enumerate() {
            if c.is_whitespace() {
                spaces.push(i);
                continue;
            }
            let Some(digit) = c.to_digit(16) else { return fail(first + i, ParseIorErrorKind::Digit(c)) };
            match high.take() {
                None => high = Some(digit),
                Some(upper) => bytes.push((upper << 4 | digit) as u8),
            }
        }
        // Converts the index of a digit to the number of its character.
        let character_of = |digit: usize| {
            first + spaces.iter().fold(digit, |index, space| if *space <= index { index + 1 } else { index })
        };
        if high.is_some() {
            return fail(character_of(2 * bytes.len()), ParseIorErrorKind::OddDigits);
        }
        let bytes = Bytes::from(bytes);
        let decoded = open_encapsulation(&bytes).and_then(|mut d| Ok((Ior::decode(&mut d)?, d.remaining())));
        match decoded {
            Ok((ior, rest)) if bytes.iter().rev().take(rest).all(|byte| *byte == 0) => Ok(ior),
            Ok((_, rest)) => fail(character_of(2 * (bytes.len() - rest)), ParseIorErrorKind::Trailing(rest)),
            Err(error) => fail(character_of(2 * error.offset), ParseIorErrorKind::Decode(error.kind)),
        }
    }
}

/// The error of parsing a stringified reference, with the position of the first invalid character.
///
/// Becomes `BAD_PARAM` with OMG minor code 9, `COMPLETED_NO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("object reference, character {position}: {kind}")]
pub struct ParseIorError {
    position: usize,
    kind: ParseIorErrorKind,
}

impl ParseIorError {
    /// Returns the number of the invalid character in the original text, counted from 1.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ParseIorErrorKind {
        self.kind
    }
}

impl From<ParseIorError> for SystemException {
    #[cold]
    fn from(error: ParseIorError) -> Self {
        Self::bad_param().with_minor(minor::BAD_PARAM_URL_SCHEME_SPECIFIC).with_source(error)
    }
}

/// The reason why a text is not a stringified reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseIorErrorKind {
    /// The text does not start with `IOR:`.
    #[error("\"IOR:\" expected")]
    Prefix,
    /// A character that is not a hexadecimal digit.
    #[error("hexadecimal digit expected, found {0:?}")]
    Digit(char),
    /// An odd number of digits.
    #[error("the last byte has only one digit")]
    OddDigits,
    /// Data follows the reference, and not all of it is zero. The value is its length in bytes.
    #[error("unexpected data after the reference, {0} bytes long")]
    Trailing(usize),
    /// The data is not a reference.
    #[error("{}", .0.message())]
    Decode(DecodeErrorKind),
}

//! Stringified references: `IOR:` and hexadecimal digits.

use std::error::Error;
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
    /// Returns the reference as an encapsulation: the bytes that the text form shows as digits.
    ///
    /// A type id that has no encoding because it contains a NUL is sent as an empty one: it is only a hint.
    pub fn to_encapsulation(&self) -> Bytes {
        encapsulation(|e| self.encode(e))
            .or_else(|_| {
                encapsulation(|e| {
                    e.put_ascii("")?;
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
    pub fn from_encapsulation(octets: &Bytes) -> Result<Self, DecodeError> {
        let mut d = open_encapsulation(octets)?;
        Self::decode(&mut d)
    }
}

/// `IOR:` and lower-case digits, little-endian.
impl fmt::Display for Ior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.to_encapsulation().iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Accepts the prefix and the digits in upper or lower case, and both byte orders. White space is accepted
/// around and between digits, because mail programs break long lines. A byte order mark before and zero bytes
/// after the reference, which some ORBs write, are accepted too.
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
        // Number of the first digit. Up to the first character that is not a digit, characters and bytes have
        // the same positions.
        let first = skipped + PREFIX.len() + 1;
        let mut octets = Vec::with_capacity(digits.len() / 2);
        let mut high = None;
        let mut blanks = Vec::new();
        for (i, c) in digits.chars().enumerate() {
            if c.is_whitespace() {
                blanks.push(i);
                continue;
            }
            let Some(digit) = c.to_digit(16) else { return fail(first + i, ParseIorErrorKind::Digit(c)) };
            match high.take() {
                None => high = Some(digit),
                Some(upper) => octets.push((upper << 4 | digit) as u8),
            }
        }
        // Converts the index of a digit to the number of its character.
        let place = |digit: usize| {
            first + blanks.iter().fold(digit, |at, blank| if *blank <= at { at + 1 } else { at })
        };
        if high.is_some() {
            return fail(place(2 * octets.len()), ParseIorErrorKind::OddDigits);
        }
        let octets = Bytes::from(octets);
        let decoded = open_encapsulation(&octets).and_then(|mut d| Ok((Ior::decode(&mut d)?, d.remaining())));
        match decoded {
            Ok((ior, left)) if octets.iter().rev().take(left).all(|octet| *octet == 0) => Ok(ior),
            Ok((_, left)) => fail(place(2 * (octets.len() - left)), ParseIorErrorKind::Trailing(left)),
            Err(error) => fail(place(2 * error.offset), ParseIorErrorKind::Decode(error.kind)),
        }
    }
}

/// Error of parsing a stringified reference, with the position of the first invalid character.
///
/// Becomes `BAD_PARAM` with OMG minor code 9, `COMPLETED_NO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseIorError {
    position: usize,
    kind: ParseIorErrorKind,
}

impl ParseIorError {
    /// Returns the number of the invalid character in the original text, starting at 1.
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

impl fmt::Display for ParseIorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object reference, character {}: ", self.position)?;
        match self.kind {
            ParseIorErrorKind::Prefix => f.write_str("\"IOR:\" expected"),
            ParseIorErrorKind::Digit(c) => write!(f, "hexadecimal digit expected, found {c:?}"),
            ParseIorErrorKind::OddDigits => f.write_str("the last octet has only one digit"),
            ParseIorErrorKind::Trailing(octets) => write!(f, "{octets} octets too many behind the reference"),
            ParseIorErrorKind::Decode(kind) => f.write_str(kind.message()),
        }
    }
}

impl Error for ParseIorError {}

/// The reason why a text is not a stringified reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseIorErrorKind {
    /// It does not start with `IOR:`.
    Prefix,
    /// A character that is not a hexadecimal digit.
    Digit(char),
    /// An odd number of digits.
    OddDigits,
    /// Data follows the reference: the number of its bytes.
    Trailing(usize),
    /// The data is not a reference.
    Decode(DecodeErrorKind),
}

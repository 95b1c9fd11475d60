//! GSSUP: a login with a user name and password in a single token.
//!
//! The token contains the password in clear text. Send it only over TLS.
//! Source clause: "Common Secure Interoperability / GSSUP" (module `GSSUP`).

use std::fmt;

use bytes::Bytes;

use super::oid::Oid;
use crate::cdr::Encoder;
use crate::ior::{encapsulation, open_encapsulation_slice, put_octets, read_octets_within};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// The maximum length of a user name, password or target name. Tokens with longer ones are refused.
pub const MAX_NAME_BYTES: usize = 4096;

/// A login: user, password and target (`GSSUP::InitialContextToken`).
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user name in UTF-8: `user` or `user@realm`.
    pub user: Bytes,
    /// The password in UTF-8.
    pub password: Bytes,
    /// The server's realm from its references, an encoded [`ExportedName`](super::ExportedName) or empty.
    pub target: Bytes,
}

/// Formats the login without the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    /// Encodes the token: an encapsulation after the header that RFC 2743, section 3.1, defines.
    ///
    /// # Errors
    /// A field is longer than [`MAX_NAME_BYTES`].
    pub fn to_token(&self) -> Result<Bytes, EncodeError> {
        let inner = encapsulation(|e| {
            for field in [&self.user, &self.password, &self.target] {
                put_field(e, field)?;
            }
            Ok(())
        })?;
        let oid = Oid::GSSUP;
        let mut token = vec![0x60];
        push_der_length(&mut token, oid.as_der().len() + inner.len());
        token.extend(oid.as_der());
        token.extend(&inner[..]);
        Ok(token.into())
    }

    /// Decodes a token that [`to_token`](Self::to_token) or another ORB encoded.
    ///
    /// JacORB writes lengths of 128 or more with seven bits in each byte. This form is accepted too.
    ///
    /// # Errors
    /// The token is of another mechanism or form ([`Malformed`](DecodeErrorKind::Malformed)), is truncated,
    /// or has a field that is longer than [`MAX_NAME_BYTES`].
    pub fn from_token(token: &[u8]) -> Result<Self, DecodeError> {
        let malformed = DecodeError::new(DecodeErrorKind::Malformed, 0);
        let rest = token.strip_prefix(&[0x60]).ok_or(malformed)?;
        let is_whole = |(length, rest): (usize, _)| Some(rest).filter(|rest: &&[u8]| length == rest.len());
        let rest = split_der_length(rest)
            .and_then(is_whole)
            .or_else(|| split_jacorb_length(rest).and_then(is_whole));
        let inner = rest.and_then(|rest| rest.strip_prefix(Oid::GSSUP.as_der())).ok_or(malformed)?;
        let mut d = open_encapsulation_slice(inner)?;
        let mut field = || read_octets_within(&mut d, MAX_NAME_BYTES);
        Ok(Self { user: field()?, password: field()?, target: field()? })
    }
}

/// The reason why a login failed (`GSSUP::ErrorToken`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoginError {
    /// The server gives no reason.
    Unspecified,
    /// The user is unknown.
    NoUser,
    /// The password is wrong.
    BadPassword,
    /// The login is for another server.
    BadTarget,
    /// A number that the specification does not define.
    Other(u32),
}

impl LoginError {
    /// Encodes the reason as an error token.
    ///
    /// # Errors
    /// It never fails at present.
    pub fn to_token(self) -> Result<Bytes, EncodeError> {
        encapsulation(|e| {
            e.put_u32(match self {
                Self::Unspecified => 1,
                Self::NoUser => 2,
                Self::BadPassword => 3,
                Self::BadTarget => 4,
                Self::Other(number) => number,
            });
            Ok(())
        })
    }

    /// Decodes an error token.
    ///
    /// # Errors
    /// The token ends early.
    pub fn from_token(token: &[u8]) -> Result<Self, DecodeError> {
        Ok(match open_encapsulation_slice(token)?.read_u32()? {
            1 => Self::Unspecified,
            2 => Self::NoUser,
            3 => Self::BadPassword,
            4 => Self::BadTarget,
            number => Self::Other(number),
        })
    }
}

fn put_field(e: &mut Encoder, field: &[u8]) -> Result<(), EncodeError> {
    if field.len() > MAX_NAME_BYTES {
        return Err(EncodeError::new(EncodeErrorKind::BoundExceeded));
    }
    put_octets(e, field)
}

fn push_der_length(token: &mut Vec<u8>, length: usize) {
    let bytes = length.to_be_bytes();
    let significant = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let significant = bytes.get(significant..).unwrap_or_default();
    if length >= 0x80 {
        token.push(0x80 | significant.len() as u8);
    }
    token.extend(significant);
}

fn split_der_length(token: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = token.split_first()?;
    if first & 0x80 == 0 {
        return Some((usize::from(*first), rest));
    }
    let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
    if bytes.is_empty() || bytes.len() > 4 {
        return None;
    }
    Some((bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest))
}

/// Splits off a length of JacORB: seven bits in each byte, and the highest bit set in all but the last.
#[cold]
fn split_jacorb_length(token: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0;
    for (index, byte) in token.iter().enumerate().take(5) {
        length = length << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((length, token.get(index + 1..)?));
        }
    }
    None
}

//! GSSUP: a user name and a password, as the token of a mechanism without a further exchange.
//!
//! The password is sent in clear text: it is secret only over TLS.
//! Source clause: "Common Secure Interoperability / GSSUP" (module `GSSUP`).

use std::fmt;

use bytes::Bytes;

use super::oid::Oid;
use crate::cdr::Encoder;
use crate::ior::{encapsulation, open_encapsulation_slice, put_octets, read_octets_within};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// The maximum length of a user name, password or target name; longer is `MARSHAL`.
pub const MAX_NAME: usize = 4096;

/// User, password and target of a login (`GSSUP::InitialContextToken`).
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// User name in UTF-8: `user`, or `user@realm`.
    pub user: Bytes,
    /// Password in UTF-8.
    pub password: Bytes,
    /// The server's realm, as its references name it: an [`ExportedName`](super::ExportedName), or empty.
    pub target: Bytes,
}

/// Omits the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    /// Encodes the token of a client's authentication: the frame of RFC 2743, section 3.1, around an
    /// encapsulation.
    ///
    /// # Errors
    /// A field is longer than [`MAX_NAME`].
    pub fn to_token(&self) -> Result<Bytes, EncodeError> {
        let inner = encapsulation(|e| {
            for field in [&self.user, &self.password, &self.target] {
                put(e, field)?;
            }
            Ok(())
        })?;
        let oid = Oid::GSSUP;
        let mut token = vec![0x60];
        push_length(&mut token, oid.as_der().len() + inner.len());
        token.extend(oid.as_der());
        token.extend(&inner[..]);
        Ok(token.into())
    }

    /// Decodes a token that [`to_token`](Self::to_token) or another ORB encoded.
    ///
    /// JacORB writes lengths of 128 and more in its own form, with seven bits in a byte. That form is
    /// accepted as well.
    ///
    /// # Errors
    /// It is of another mechanism or form (`Malformed`), its data ends too soon, or a field is longer than
    /// [`MAX_NAME`].
    pub fn from_token(token: &[u8]) -> Result<Self, DecodeError> {
        let malformed = DecodeError::new(DecodeErrorKind::Malformed, 0);
        let rest = token.strip_prefix(&[0x60]).ok_or(malformed)?;
        let whole = |(length, rest): (usize, _)| Some(rest).filter(|rest: &&[u8]| length == rest.len());
        let rest = split_length(rest).and_then(whole).or_else(|| split_jacorb_length(rest).and_then(whole));
        let inner = rest.and_then(|rest| rest.strip_prefix(Oid::GSSUP.as_der())).ok_or(malformed)?;
        let mut d = open_encapsulation_slice(inner)?;
        let mut field = || read_octets_within(&mut d, MAX_NAME);
        Ok(Self { user: field()?, password: field()?, target: field()? })
    }
}

/// The reason why a login failed (`GSSUP::ErrorToken`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoginError {
    /// The reason is not given.
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
    /// Encodes the error token of a context.
    ///
    /// # Errors
    /// None at present.
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

    /// Decodes an error token of a context.
    ///
    /// # Errors
    /// It ends too soon.
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

fn put(e: &mut Encoder, field: &[u8]) -> Result<(), EncodeError> {
    if field.len() > MAX_NAME {
        return Err(EncodeError::new(EncodeErrorKind::BoundExceeded));
    }
    put_octets(e, field)
}

/// Appends a length in DER.
fn push_length(token: &mut Vec<u8>, length: usize) {
    let octets = length.to_be_bytes();
    let significant = octets.iter().position(|octet| *octet != 0).unwrap_or(octets.len() - 1);
    let significant = octets.get(significant..).unwrap_or_default();
    if length >= 0x80 {
        token.push(0x80 | significant.len() as u8);
    }
    token.extend(significant);
}

/// Splits a length in DER from the bytes that follow it.
fn split_length(token: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = token.split_first()?;
    if first & 0x80 == 0 {
        return Some((usize::from(*first), rest));
    }
    let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
    if octets.is_empty() || octets.len() > 4 {
        return None;
    }
    Some((octets.iter().fold(0, |length, octet| length << 8 | usize::from(*octet)), rest))
}

/// Splits a length in JacORB's form, seven bits in a byte with the highest bit set in all but the last, from
/// the bytes that follow it.
#[cold]
fn split_jacorb_length(token: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0;
    for (at, octet) in token.iter().enumerate().take(5) {
        length = length << 7 | usize::from(octet & 0x7f);
        if octet & 0x80 == 0 {
            return Some((length, token.get(at + 1..)?));
        }
    }
    None
}

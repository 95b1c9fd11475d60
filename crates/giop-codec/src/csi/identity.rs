//! For whom a request is made.

use bytes::Bytes;

use super::oid::ExportedName;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::ior::{encapsulation, open_encapsulation_slice, put_octets, read_octets_within};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// Longest identity in octets; a longer one is `MARSHAL`.
const MAX_IDENTITY: usize = 64 << 10;

/// The forms of identity that a server takes (`CSI::IdentityTokenType`), as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IdentityTypes(pub u32);

impl IdentityTypes {
    /// None but absent ones.
    pub const ABSENT: Self = Self(0);
    /// Anonymous callers.
    pub const ANONYMOUS: Self = Self(1);
    /// Names of a mechanism.
    pub const PRINCIPAL_NAME: Self = Self(2);
    /// Chains of certificates.
    pub const X509_CERT_CHAIN: Self = Self(4);
    /// Distinguished names.
    pub const DISTINGUISHED_NAME: Self = Self(8);

    /// Those of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// For whom the sender of a request speaks, if not for itself.
///
/// Whoever believes it must trust the sender to say so: who that is, TLS or a user name tells.
/// Source clause: "Common Secure Interoperability / Identity Token Types" (`CSI::IdentityToken`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdentityToken {
    /// For itself.
    #[default]
    Absent,
    /// For somebody who has not said who he is.
    Anonymous,
    /// For a principal by its name.
    PrincipalName(ExportedName),
    /// For who has the first of these certificates: an ASN.1 sequence of X.509 certificates, in DER.
    X509CertChain(Bytes),
    /// For an X.501 distinguished name, in DER.
    DistinguishedName(Bytes),
    /// In a form that is not known here, by its number.
    Other(u32, Bytes),
}

impl IdentityToken {
    /// The bit of its form; that of an absent one is none.
    pub const fn form(&self) -> IdentityTypes {
        match self {
            Self::Absent => IdentityTypes::ABSENT,
            Self::Anonymous => IdentityTypes::ANONYMOUS,
            Self::PrincipalName(_) => IdentityTypes::PRINCIPAL_NAME,
            Self::X509CertChain(_) => IdentityTypes::X509_CERT_CHAIN,
            Self::DistinguishedName(_) => IdentityTypes::DISTINGUISHED_NAME,
            Self::Other(number, _) => IdentityTypes(*number),
        }
    }
}

/// Octets with an encapsulation of octets in them, as names, chains and distinguished names travel.
fn put_wrapped(e: &mut Encoder, octets: &[u8]) -> Result<(), EncodeError> {
    let inner = encapsulation(|e| put_octets(e, octets))?;
    put_octets(e, &inner)
}

/// What [`put_wrapped`] wrote. Some ORBs leave the encapsulation out: ASN.1 and exported names begin otherwise.
fn get_wrapped(d: &mut Decoder<'_>, begins: u8) -> Result<Bytes, DecodeError> {
    let octets = read_octets_within(d, MAX_IDENTITY)?;
    if octets.first() == Some(&begins) {
        return Ok(octets);
    }
    read_octets_within(&mut open_encapsulation_slice(&octets)?, MAX_IDENTITY)
}

impl CdrEncode for IdentityToken {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.form().0);
        match self {
            Self::Absent | Self::Anonymous => {
                e.put_bool(true);
                Ok(())
            }
            Self::PrincipalName(name) => {
                let octets = name.to_octets().ok_or(EncodeError::new(EncodeErrorKind::TooLong))?;
                put_wrapped(e, &octets)
            }
            Self::X509CertChain(der) | Self::DistinguishedName(der) => put_wrapped(e, der),
            Self::Other(_, octets) => put_octets(e, octets),
        }
    }
}

impl CdrDecode for IdentityToken {
    /// The form and a boolean.
    const MIN_SIZE: usize = 5;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        /// The tag of a sequence in ASN.1.
        const SEQUENCE: u8 = 0x30;
        /// The first octet of an exported name.
        const NAME: u8 = 0x04;
        Ok(match d.read_u32()? {
            0 => {
                d.read_bool()?;
                Self::Absent
            }
            1 => {
                d.read_bool()?;
                Self::Anonymous
            }
            2 => {
                let octets = get_wrapped(d, NAME)?;
                let name = ExportedName::from_octets(&octets);
                Self::PrincipalName(name.ok_or(d.error(DecodeErrorKind::Malformed))?)
            }
            4 => Self::X509CertChain(get_wrapped(d, SEQUENCE)?),
            8 => Self::DistinguishedName(get_wrapped(d, SEQUENCE)?),
            number => Self::Other(number, read_octets_within(d, MAX_IDENTITY)?),
        })
    }
}

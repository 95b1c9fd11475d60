//! The identity on whose behalf a request is made.

use bytes::Bytes;

use super::oid::ExportedName;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::ior::{encapsulation, open_encapsulation_slice, put_octets, read_octets_within};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// The maximum length of an identity in bytes; longer is `MARSHAL`.
const MAX_IDENTITY: usize = 64 << 10;

/// The forms of identity that a server accepts (`CSI::IdentityTokenType`), as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IdentityTypes(pub u32);

impl IdentityTypes {
    /// Only absent identities.
    pub const ABSENT: Self = Self(0);
    /// Anonymous callers.
    pub const ANONYMOUS: Self = Self(1);
    /// Names exported by a mechanism.
    pub const PRINCIPAL_NAME: Self = Self(2);
    /// Chains of certificates.
    pub const X509_CERT_CHAIN: Self = Self(4);
    /// Distinguished names.
    pub const DISTINGUISHED_NAME: Self = Self(8);

    /// Returns the union of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether these include all of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The identity on whose behalf the sender of a request calls, if not its own.
///
/// Accept it only from a trusted sender, whose own identity TLS or a user name authenticates.
/// Source clause: "Common Secure Interoperability / Identity Token Types" (`CSI::IdentityToken`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdentityToken {
    /// The sender calls on its own behalf.
    #[default]
    Absent,
    /// An anonymous caller.
    Anonymous,
    /// A principal by its name.
    PrincipalName(ExportedName),
    /// The subject of the first of these certificates: an ASN.1 sequence of X.509 certificates, in DER.
    X509CertChain(Bytes),
    /// An X.501 distinguished name, in DER.
    DistinguishedName(Bytes),
    /// The number and content of an unknown form.
    Other(u32, Bytes),
}

impl IdentityToken {
    /// Returns the bit of its form; an absent identity has none.
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

/// Writes bytes that contain an encapsulation of bytes, the form of names, chains and distinguished names.
fn put_wrapped(e: &mut Encoder, octets: &[u8]) -> Result<(), EncodeError> {
    let inner = encapsulation(|e| put_octets(e, octets))?;
    put_octets(e, &inner)
}

/// Reads the output of [`put_wrapped`]. Some ORBs omit the encapsulation. This is recognized by the first
/// byte, with which ASN.1 or an exported name begins.
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
        /// The first byte of an exported name.
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

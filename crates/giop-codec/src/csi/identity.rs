//! The identity on whose behalf a request is made.

use bytes::Bytes;

use super::oid::ExportedName;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::ior::{encapsulation, open_encapsulation_slice, put_octets, read_octets_within};
use crate::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};

/// The maximum length of an identity. A longer identity is rejected with `MARSHAL`.
const MAX_IDENTITY_BYTES: usize = 64 << 10;

/// The forms of identity that a server accepts (`CSI::IdentityTokenType`), as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IdentityTypes(pub u32);

impl IdentityTypes {
    /// No bits: a client can send only an absent identity.
    pub const ABSENT: Self = Self(0);
    /// Anonymous callers.
    pub const ANONYMOUS: Self = Self(1);
    /// Names exported by a mechanism.
    pub const PRINCIPAL_NAME: Self = Self(2);
    /// Chains of certificates.
    pub const X509_CERT_CHAIN: Self = Self(4);
    /// Distinguished names.
    pub const DISTINGUISHED_NAME: Self = Self(8);

    /// Returns the forms that are in `self` or `other`.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether these include all of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The identity on whose behalf the sender of a request calls.
///
/// A server must accept it only from a trusted sender that is authenticated by TLS or a login.
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
    /// An ASN.1 sequence of X.509 certificates, in DER. The identity is the subject of the first certificate.
    X509CertChain(Bytes),
    /// An X.501 distinguished name, in DER.
    DistinguishedName(Bytes),
    /// The number and content of an unknown form.
    Other(u32, Bytes),
}

impl IdentityToken {
    /// Returns the form of the identity as a bit. An absent identity has no bit.
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

/// Writes `bytes` like a name or certificate, as an encapsulated `sequence<octet>` in a `sequence<octet>`.
fn put_wrapped(e: &mut Encoder, bytes: &[u8]) -> Result<(), EncodeError> {
    put_octets(e, &encapsulation(|e| put_octets(e, bytes))?)
}

/// Reads the output of [`put_wrapped`]. Also accepts the bytes without the encapsulation, which some ORBs
/// omit, if they begin with `first`.
fn read_wrapped(d: &mut Decoder<'_>, first: u8) -> Result<Bytes, DecodeError> {
    let bytes = read_octets_within(d, MAX_IDENTITY_BYTES)?;
    if bytes.first() == Some(&first) {
        return Ok(bytes);
    }
    read_octets_within(&mut open_encapsulation_slice(&bytes)?, MAX_IDENTITY_BYTES)
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
                let bytes = name.to_octets().ok_or(EncodeError::new(EncodeErrorKind::TooLong))?;
                put_wrapped(e, &bytes)
            }
            Self::X509CertChain(der) | Self::DistinguishedName(der) => put_wrapped(e, der),
            Self::Other(_, bytes) => put_octets(e, bytes),
        }
    }
}

impl CdrDecode for IdentityToken {
    const MIN_SIZE: usize = 5;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        const ASN1_SEQUENCE: u8 = 0x30;
        const EXPORTED_NAME: u8 = 0x04;
        Ok(match d.read_u32()? {
            0 => d.read_bool().map(|_| Self::Absent)?,
            1 => d.read_bool().map(|_| Self::Anonymous)?,
            2 => {
                let name = ExportedName::from_octets(&read_wrapped(d, EXPORTED_NAME)?);
                Self::PrincipalName(name.ok_or(d.error(DecodeErrorKind::Malformed))?)
            }
            4 => Self::X509CertChain(read_wrapped(d, ASN1_SEQUENCE)?),
            8 => Self::DistinguishedName(read_wrapped(d, ASN1_SEQUENCE)?),
            number => Self::Other(number, read_octets_within(d, MAX_IDENTITY_BYTES)?),
        })
    }
}

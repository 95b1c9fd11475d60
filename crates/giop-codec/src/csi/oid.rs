//! Object identifiers of security mechanisms, and the names of users and realms that mechanisms define.

use std::fmt;

use bytes::Bytes;

/// An object identifier in DER, including tag and length.
///
/// Source clause: "Common Secure Interoperability / Types and Constants" (`CSI::OID`).
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Oid(Bytes);

impl Oid {
    /// The identifier of GSSUP, the mechanism with user name and password: 2.23.130.1.1.1.
    pub const GSSUP: Self = Self(Bytes::from_static(&[0x06, 0x06, 0x67, 0x81, 0x02, 0x01, 0x01, 0x01]));

    /// Creates an identifier from bytes, which are not checked.
    pub const fn new(der: Bytes) -> Self {
        Self(der)
    }

    /// Returns the identifier in DER.
    pub fn as_der(&self) -> &[u8] {
        &self.0
    }
}

/// Formats the identifier as `2.23.130.1.1.1`, or in hexadecimal digits if it is invalid or very long.
impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(arcs) = arcs(&self.0) else {
            return self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"));
        };
        for (index, arc) in arcs.iter().enumerate() {
            write!(f, "{}{arc}", if index == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

/// Returns the numbers of an object identifier. `None` if it is invalid or has 128 bytes or more.
fn arcs(der: &[u8]) -> Option<Vec<u64>> {
    let [0x06, length, content @ ..] = der else { return None };
    if usize::from(*length) != content.len() || *length >= 0x80 || content.last()? & 0x80 != 0 {
        return None;
    }
    let mut arcs = Vec::new();
    let mut arc = 0_u64;
    for byte in content {
        arc = arc.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            if arcs.is_empty() {
                let first = (arc / 40).min(2);
                arcs.push(first);
                arc -= first * 40;
            }
            arcs.push(arc);
            arc = 0;
        }
    }
    Some(arcs)
}

/// A name, such as a user or a realm, and the mechanism that defines its meaning.
///
/// It is encoded as RFC 2743, section 3.2, requires. The bytes 04 01 are followed by the length of the object
/// identifier in two bytes, the identifier, the length of the name in four bytes, and the name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExportedName {
    /// The mechanism.
    pub mechanism: Oid,
    /// The name. In GSSUP, it is UTF-8.
    pub name: Bytes,
}

impl ExportedName {
    /// Creates a name for GSSUP: a user (`user` or `user@realm`), or the realm of a server (`@realm`).
    pub fn gssup(name: &str) -> Self {
        Self { mechanism: Oid::GSSUP, name: Bytes::copy_from_slice(name.as_bytes()) }
    }

    /// Encodes the name. Returns `None` if the mechanism or the name is too long.
    pub fn to_octets(&self) -> Option<Bytes> {
        let (oid, name) = (self.mechanism.as_der(), &self.name);
        let mut bytes = Vec::with_capacity(8 + oid.len() + name.len());
        bytes.extend([0x04, 0x01]);
        bytes.extend(u16::try_from(oid.len()).ok()?.to_be_bytes());
        bytes.extend(oid);
        bytes.extend(u32::try_from(name.len()).ok()?.to_be_bytes());
        bytes.extend(&name[..]);
        Some(bytes.into())
    }

    /// Decodes a name. Returns `None` if the bytes are not in this form, or if more bytes follow.
    pub fn from_octets(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&[0x04, 0x01])?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (oid, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        let (length, name) = rest.split_first_chunk::<4>()?;
        if usize::try_from(u32::from_be_bytes(*length)).ok()? != name.len() {
            return None;
        }
        Some(Self { mechanism: Oid::new(Bytes::copy_from_slice(oid)), name: Bytes::copy_from_slice(name) })
    }

    /// Returns the name if its mechanism is GSSUP and the name is valid UTF-8.
    pub fn as_gssup(&self) -> Option<&str> {
        if self.mechanism != Oid::GSSUP {
            return None;
        }
        std::str::from_utf8(&self.name).ok()
    }
}

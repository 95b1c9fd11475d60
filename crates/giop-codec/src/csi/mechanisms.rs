//! The security mechanisms that a server publishes in its references.

use bytes::Bytes;

use super::identity::IdentityTypes;
use super::oid::Oid;
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::ior::{
    ComponentTag, IiopProfile, TaggedComponent, encapsulation, open_encapsulation, put_octets, read_list,
    read_octets_shared, without_brackets,
};
use crate::{DecodeError, EncodeError};

/// The maximum number of mechanisms, authorities and naming mechanisms. A list with more is malformed.
pub const MAX_MECHANISMS: usize = 64;
/// The maximum number of addresses of a mechanism. With more, it becomes [`TransportMechanism::Other`].
pub const MAX_ADDRESSES: usize = 64;

/// Security features that a server supports or requires, as bits.
///
/// Source clause: "Common Secure Interoperability / Association Options" (`CSIIOP::AssociationOptions`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AssociationOptions(pub u16);

impl AssociationOptions {
    /// No features.
    pub const NONE: Self = Self(0);
    /// Messages may be sent unprotected.
    pub const NO_PROTECTION: Self = Self(1);
    /// Messages cannot be changed in transit.
    pub const INTEGRITY: Self = Self(2);
    /// Messages cannot be read in transit.
    pub const CONFIDENTIALITY: Self = Self(4);
    /// Replayed messages are detected.
    pub const DETECT_REPLAY: Self = Self(8);
    /// Reordered messages are detected.
    pub const DETECT_MISORDERING: Self = Self(16);
    /// The server proves its identity to the client.
    pub const ESTABLISH_TRUST_IN_TARGET: Self = Self(32);
    /// The client proves its identity to the server.
    pub const ESTABLISH_TRUST_IN_CLIENT: Self = Self(64);
    /// The server does not use the client's credentials for other calls.
    pub const NO_DELEGATION: Self = Self(128);
    /// The server may use the client's credentials for other calls.
    pub const SIMPLE_DELEGATION: Self = Self(256);
    /// The server may use the client's and all intermediate servers' credentials for other calls.
    pub const COMPOSITE_DELEGATION: Self = Self(512);
    /// The client asserts an identity other than its own.
    pub const IDENTITY_ASSERTION: Self = Self(1024);
    /// The client proves that it may assert an identity.
    pub const DELEGATION_BY_CLIENT: Self = Self(2048);

    /// Returns the features that are in `self` or `other`.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether these include all of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The data of `TAG_CSI_SEC_MECH_LIST`: a list of mechanisms. A client uses the first one that it supports.
///
/// Source clause: "Common Secure Interoperability / TAG_CSI_SEC_MECH_LIST" (`CSIIOP::CompoundSecMechList`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompoundSecMechList {
    /// Whether the server stores contexts, so that later requests may refer to them.
    pub stateful: bool,
    /// The mechanisms, at most [`MAX_MECHANISMS`].
    pub mechanisms: Vec<CompoundSecMech>,
}

/// One mechanism, with three layers: transport, client authentication, and asserted identity
/// (`CSIIOP::CompoundSecMech`). By default, nothing is required.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompoundSecMech {
    /// The features that all layers together must provide.
    pub target_requires: AssociationOptions,
    /// The transport layer.
    pub transport: TransportMechanism,
    /// The authentication of the client.
    pub authentication: AsContextSec,
    /// The identity that the client asserts.
    pub attributes: SasContextSec,
}

/// The transport layer (`CSIIOP::CompoundSecMech::transport_mech`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportMechanism {
    /// No security. The address is that of the profile.
    #[default]
    None,
    /// TLS at these addresses.
    Tls(TlsSecTrans),
    /// An unknown or malformed mechanism, which clients cannot use.
    Other(TaggedComponent),
}

/// TLS and its addresses (`CSIIOP::TLS_SEC_TRANS`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSecTrans {
    /// The features that the server supports.
    pub supports: AssociationOptions,
    /// The features that the server requires.
    pub requires: AssociationOptions,
    /// At most [`MAX_ADDRESSES`] addresses, which replace the address of the profile.
    pub addresses: Vec<TransportAddress>,
}

/// A host and port (`CSIIOP::TransportAddress`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransportAddress {
    /// A name or an IP address. If empty, it stands for the host of the profile.
    pub host: String,
    /// A TCP port.
    pub port: u16,
}

/// Client authentication above the transport (`CSIIOP::AS_ContextSec`). By default, none is required.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AsContextSec {
    /// The features that the server supports:
    /// [`ESTABLISH_TRUST_IN_CLIENT`](AssociationOptions::ESTABLISH_TRUST_IN_CLIENT) or none.
    pub supports: AssociationOptions,
    /// The features that the server requires.
    pub requires: AssociationOptions,
    /// The mechanism, such as [`Oid::GSSUP`]. It is empty if none is supported.
    pub mechanism: Oid,
    /// The realm of the server, as an encoded [`ExportedName`](super::ExportedName). It may be empty.
    pub target_name: Bytes,
}

/// The identities and rights that a client may assert (`CSIIOP::SAS_ContextSec`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SasContextSec {
    /// The features that the server supports: [`IDENTITY_ASSERTION`](AssociationOptions::IDENTITY_ASSERTION),
    /// [`DELEGATION_BY_CLIENT`](AssociationOptions::DELEGATION_BY_CLIENT), both, or none.
    pub supports: AssociationOptions,
    /// The features that the server requires.
    pub requires: AssociationOptions,
    /// The authorities that may certify rights of the caller.
    pub authorities: Vec<ServiceConfiguration>,
    /// The mechanisms whose [exported names](super::ExportedName) the server accepts.
    pub naming_mechanisms: Vec<Oid>,
    /// The forms of identity that the server accepts.
    pub identity_types: IdentityTypes,
}

/// An authority that certifies rights (`CSIIOP::ServiceConfiguration`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceConfiguration {
    /// The kind of name.
    pub syntax: u32,
    /// The name.
    pub name: Bytes,
}

impl TransportMechanism {
    fn of(component: TaggedComponent) -> Self {
        match component.tag {
            ComponentTag::NULL_TAG => Self::None,
            ComponentTag::TLS_SEC_TRANS => {
                let tls = open_encapsulation(&component.data).and_then(|mut d| TlsSecTrans::decode(&mut d));
                tls.map_or(Self::Other(component), Self::Tls)
            }
            _ => Self::Other(component),
        }
    }

    fn component(&self) -> Result<TaggedComponent, EncodeError> {
        Ok(match self {
            Self::None => TaggedComponent { tag: ComponentTag::NULL_TAG, data: Bytes::new() },
            Self::Tls(tls) => {
                TaggedComponent { tag: ComponentTag::TLS_SEC_TRANS, data: encapsulation(|e| tls.encode(e))? }
            }
            Self::Other(component) => component.clone(),
        })
    }
}

impl CdrEncode for CompoundSecMechList {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_bool(self.stateful);
        e.put_len(self.mechanisms.len())?;
        for mechanism in &self.mechanisms {
            e.put_u16(mechanism.target_requires.0);
            mechanism.transport.component()?.encode(e)?;
            let AsContextSec { supports, requires, mechanism: oid, target_name } = &mechanism.authentication;
            e.put_u16(supports.0);
            e.put_u16(requires.0);
            put_octets(e, oid.as_der())?;
            put_octets(e, target_name)?;
            let SasContextSec { supports, requires, authorities, naming_mechanisms, identity_types } =
                &mechanism.attributes;
            e.put_u16(supports.0);
            e.put_u16(requires.0);
            e.put_len(authorities.len())?;
            for authority in authorities {
                e.put_u32(authority.syntax);
                put_octets(e, &authority.name)?;
            }
            e.put_len(naming_mechanisms.len())?;
            for oid in naming_mechanisms {
                put_octets(e, oid.as_der())?;
            }
            e.put_u32(identity_types.0);
        }
        Ok(())
    }
}

impl CdrDecode for CompoundSecMechList {
    const MIN_SIZE: usize = 5;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let stateful = d.read_bool()?;
        let mechanisms = read_list(d, 38, MAX_MECHANISMS, |d| {
            let target_requires = AssociationOptions(d.read_u16()?);
            let transport = TransportMechanism::of(TaggedComponent::decode(d)?);
            let authentication = AsContextSec {
                supports: AssociationOptions(d.read_u16()?),
                requires: AssociationOptions(d.read_u16()?),
                mechanism: Oid::new(read_octets_shared(d)?),
                target_name: read_octets_shared(d)?,
            };
            let attributes = SasContextSec {
                supports: AssociationOptions(d.read_u16()?),
                requires: AssociationOptions(d.read_u16()?),
                authorities: read_list(d, 8, MAX_MECHANISMS, |d| {
                    Ok(ServiceConfiguration { syntax: d.read_u32()?, name: read_octets_shared(d)? })
                })?,
                naming_mechanisms: read_list(d, 4, MAX_MECHANISMS, |d| read_octets_shared(d).map(Oid::new))?,
                identity_types: IdentityTypes(d.read_u32()?),
            };
            Ok(CompoundSecMech { target_requires, transport, authentication, attributes })
        })?;
        Ok(Self { stateful, mechanisms })
    }
}

impl CdrEncode for TlsSecTrans {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u16(self.supports.0);
        e.put_u16(self.requires.0);
        e.put_len(self.addresses.len())?;
        for address in &self.addresses {
            e.put_unconverted_str(&address.host)?;
            e.put_u16(address.port);
        }
        Ok(())
    }
}

impl CdrDecode for TlsSecTrans {
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let supports = AssociationOptions(d.read_u16()?);
        let requires = AssociationOptions(d.read_u16()?);
        let addresses = read_list(d, 6, MAX_ADDRESSES, |d| {
            Ok(TransportAddress { host: String::from(d.read_unconverted_str()?), port: d.read_u16()? })
        })?;
        Ok(Self { supports, requires, addresses })
    }
}

impl TaggedComponent {
    /// Creates the component `TAG_CSI_SEC_MECH_LIST` with this list.
    ///
    /// # Errors
    /// A host name contains a NUL, or a list has more than 2^32 - 1 elements.
    pub fn csi_mechanisms(list: &CompoundSecMechList) -> Result<Self, EncodeError> {
        Ok(Self { tag: ComponentTag::CSI_SEC_MECH_LIST, data: encapsulation(|e| list.encode(e))? })
    }

    /// Returns the list in a `TAG_CSI_SEC_MECH_LIST`. `None` for another or a malformed component.
    pub fn as_csi_mechanisms(&self) -> Option<CompoundSecMechList> {
        self.read(ComponentTag::CSI_SEC_MECH_LIST, CompoundSecMechList::decode)
    }
}

impl IiopProfile {
    /// Returns the list of mechanisms that the server publishes. `None` if it is missing or malformed.
    pub fn csi_mechanisms(&self) -> Option<CompoundSecMechList> {
        self.component(ComponentTag::CSI_SEC_MECH_LIST)?.as_csi_mechanisms()
    }

    /// Returns the host and port for TLS. They are from `TAG_SSL_SEC_TRANS` if that component exists, and
    /// otherwise the first TLS address in `TAG_CSI_SEC_MECH_LIST`, which application servers publish. `None`
    /// if there is no port. An IPv6 address has no brackets, as in [`addresses`](Self::addresses).
    pub fn secure_address(&self) -> Option<(String, u16)> {
        if let Some(ssl) = self.ssl() {
            return (ssl.port != 0).then(|| (without_brackets(self.host.clone()), ssl.port));
        }
        let list = self.csi_mechanisms()?;
        let mut addresses = list.mechanisms.into_iter().flat_map(|mechanism| match mechanism.transport {
            TransportMechanism::Tls(tls) => tls.addresses,
            _ => Vec::new(),
        });
        let TransportAddress { host, port } = addresses.find(|address| address.port != 0)?;
        let host = if host.is_empty() { self.host.clone() } else { host };
        Some((without_brackets(host), port))
    }

    /// Returns whether the server can be called only over TLS.
    pub fn requires_tls(&self) -> bool {
        match self.ssl() {
            Some(ssl) => ssl.port != 0 && ssl.is_required(),
            None => self.secure_address().is_some() && self.csi_mechanisms().is_some_and(needs_tls),
        }
    }
}

fn needs_tls(list: CompoundSecMechList) -> bool {
    list.mechanisms.iter().all(|mechanism| matches!(mechanism.transport, TransportMechanism::Tls(_)))
}

//! Tagged components: the properties of a profile in addition to its address and object key.

use std::fmt;

use bytes::Bytes;

use super::encapsulation::{encapsulation, open_encapsulation, put_octets, read_octets_shared};
use super::operations::OperationNumbers;
use super::policies::{InvocationPolicy, OtsPolicy, Policies};
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::code_set::CodeSetComponentInfo;
use crate::{DecodeError, EncodeError};

/// The kind of a component.
///
/// Source clause: "Object References / Standard IOR Components".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComponentTag(pub u32);

impl ComponentTag {
    /// `TAG_ORB_TYPE`: the ORB that created the reference, see [`OrbType`].
    pub const ORB_TYPE: Self = Self(0);
    /// `TAG_CODE_SETS`: the server's code sets.
    pub const CODE_SETS: Self = Self(1);
    /// `TAG_POLICIES`: quality of service that the server publishes, see [`Policies`].
    pub const POLICIES: Self = Self(2);
    /// `TAG_ALTERNATE_IIOP_ADDRESS`: a further host and port (IIOP 1.2).
    pub const ALTERNATE_IIOP_ADDRESS: Self = Self(3);
    /// `TAG_COMPLETE_OBJECT_KEY`: an object key outside an IIOP profile.
    pub const COMPLETE_OBJECT_KEY: Self = Self(5);
    /// `TAG_ENDPOINT_ID_POSITION`: the position of the endpoint id in the object key.
    pub const ENDPOINT_ID_POSITION: Self = Self(6);
    /// `TAG_LOCATION_POLICY`: when a client should send a LocateRequest.
    pub const LOCATION_POLICY: Self = Self(12);
    /// `TAG_SSL_SEC_TRANS`: TLS port and requirements.
    pub const SSL_SEC_TRANS: Self = Self(20);
    /// `TAG_JAVA_CODEBASE`: the location of Java classes.
    pub const JAVA_CODEBASE: Self = Self(25);
    /// `TAG_FT_GROUP`: the group of replicas that form the object.
    pub const FT_GROUP: Self = Self(27);
    /// `TAG_FT_PRIMARY`: marks the profile of the primary replica.
    pub const FT_PRIMARY: Self = Self(28);
    /// `TAG_FT_HEARTBEAT_ENABLED`: the server answers heartbeats.
    pub const FT_HEARTBEAT_ENABLED: Self = Self(29);
    /// `TAG_OTS_POLICY`: the object's requirements on transactions, see [`OtsPolicy`].
    pub const OTS_POLICY: Self = Self(31);
    /// `TAG_INV_POLICY`: how the object may be called within transactions, see [`InvocationPolicy`].
    pub const INV_POLICY: Self = Self(32);
    /// `TAG_CSI_SEC_MECH_LIST`: security mechanisms, see
    /// [`CompoundSecMechList`](crate::csi::CompoundSecMechList).
    pub const CSI_SEC_MECH_LIST: Self = Self(33);
    /// `TAG_NULL_TAG`: no security mechanism.
    pub const NULL_TAG: Self = Self(34);
    /// `TAG_TLS_SEC_TRANS`: TLS addresses within a security mechanism.
    pub const TLS_SEC_TRANS: Self = Self(36);
    /// `TAG_RMI_CUSTOM_MAX_STREAM_FORMAT`: the highest stream format of Java's custom value types.
    pub const RMI_CUSTOM_MAX_STREAM_FORMAT: Self = Self(38);
    /// omniORB: the server supports bidirectional connections.
    pub const OMNI_BIDIR: Self = Self(0x4154_5401);
    /// omniORB's Unix sockets, see [`OmniUnixAddress`].
    pub const OMNI_UNIX: Self = Self(0x4154_5402);
    /// omniORB: the identity that a server keeps across restarts.
    pub const OMNI_PERSISTENT_ID: Self = Self(0x4154_5403);
    /// omniORB: limits on connections to the server.
    pub const OMNI_RESTRICTED_CONNECTION: Self = Self(0x4154_5404);
    /// TAO's list of all addresses of a profile, with priorities.
    pub const TAO_ENDPOINTS: Self = Self(0x5441_4f02);
    /// A component that only zorb defines: the server accepts a list of the bulk data in a message, see
    /// [`BlockList`](crate::giop::BlockList). The tag is `ZOR` in ASCII and a byte 1. Other ORBs ignore it.
    pub const ZORB_BLOCKS: Self = Self(0x5A4F_5201);
    /// A zorb component: the [`OperationNumbers`] by which operations may be called. The tag is `ZOR\x02`.
    pub const ZORB_OPERATIONS: Self = Self(0x5A4F_5202);
}

/// The ORB that created a reference, as in `TAG_ORB_TYPE`.
///
/// Source clause: "Object References / Standard IOR Components / TAG_ORB_TYPE".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrbType(pub u32);

impl OrbType {
    /// omniORB.
    pub const OMNIORB: Self = Self(0x4154_5400);
    /// JacORB.
    pub const JACORB: Self = Self(0x4a41_4300);
    /// TAO.
    pub const TAO: Self = Self(0x5441_4f00);
    /// zorb: `ZOR` in ASCII and a byte 0. The number is not registered with the OMG, so it is only a hint.
    pub const ZORB: Self = Self(0x5a4f_5200);

    /// Returns the name of the ORB; `None` if it is unknown.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::OMNIORB => "omniORB",
            Self::JACORB => "JacORB",
            Self::TAO => "TAO",
            Self::ZORB => "zorb",
            _ => return None,
        })
    }
}

impl fmt::Display for OrbType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#010x})", self.0),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

/// A component as it is on the wire: its tag and its data, which zorb never changes.
///
/// Each `as_...` method decodes components of one kind. It returns `None` if the component is of another kind
/// or its data is corrupt, because one corrupt component must not invalidate the profile.
/// Source clause: "Object References / IOR" (`IOP::TaggedComponent`).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TaggedComponent {
    /// The kind of the component.
    pub tag: ComponentTag,
    /// The component data, which is an encapsulation for almost every kind.
    pub data: Bytes,
}

impl TaggedComponent {
    /// `TAG_ORB_TYPE`: the ORB that created the reference.
    pub fn orb_type(orb: OrbType) -> Self {
        Self::build(ComponentTag::ORB_TYPE, |e| e.put_u32(orb.0))
    }

    /// `TAG_CODE_SETS`: the code sets of a server.
    ///
    /// # Errors
    /// More conversion code sets than a ulong can count.
    pub fn code_sets(info: &CodeSetComponentInfo) -> Result<Self, EncodeError> {
        Ok(Self { tag: ComponentTag::CODE_SETS, data: encapsulation(|e| info.encode(e))? })
    }

    /// `TAG_ALTERNATE_IIOP_ADDRESS`: a further address of the same object.
    ///
    /// # Errors
    /// A host name that has no encoding because it contains a NUL.
    pub fn alternate_address(host: &str, port: u16) -> Result<Self, EncodeError> {
        let data = encapsulation(|e| {
            e.put_unconverted_str(host)?;
            e.put_u16(port);
            Ok(())
        })?;
        Ok(Self { tag: ComponentTag::ALTERNATE_IIOP_ADDRESS, data })
    }

    /// `TAG_SSL_SEC_TRANS` in the standard form, with association options of 16 bits.
    pub fn ssl_sec_trans(ssl: SslSecTrans) -> Self {
        Self::build(ComponentTag::SSL_SEC_TRANS, |e| {
            e.put_u16(ssl.target_supports);
            e.put_u16(ssl.target_requires);
            e.put_u16(ssl.port);
        })
    }

    /// `TAG_POLICIES`: quality of service that the server publishes.
    ///
    /// # Errors
    /// More policies than a ulong can count.
    pub fn policies(policies: &Policies) -> Result<Self, EncodeError> {
        Ok(Self { tag: ComponentTag::POLICIES, data: encapsulation(|e| policies.encode(e))? })
    }

    /// `TAG_OTS_POLICY`: the object's requirements on transactions.
    pub fn ots_policy(policy: OtsPolicy) -> Self {
        Self::build(ComponentTag::OTS_POLICY, |e| e.put_u16(policy as u16))
    }

    /// `TAG_INV_POLICY`: how the object may be called within transactions.
    pub fn invocation_policy(policy: InvocationPolicy) -> Self {
        Self::build(ComponentTag::INV_POLICY, |e| e.put_u16(policy as u16))
    }

    /// [`OMNI_UNIX`](ComponentTag::OMNI_UNIX): a Unix socket, in omniORB's form.
    ///
    /// # Errors
    /// A host name or path that has no encoding because it contains a NUL.
    pub fn omni_unix(address: &OmniUnixAddress) -> Result<Self, EncodeError> {
        let data = encapsulation(|e| {
            e.put_unconverted_str(&address.host)?;
            e.put_unconverted_str(&address.path)
        })?;
        Ok(Self { tag: ComponentTag::OMNI_UNIX, data })
    }

    /// [`ZORB_OPERATIONS`](ComponentTag::ZORB_OPERATIONS): the numbers of operations.
    ///
    /// # Errors
    /// More interfaces than a ulong can count.
    pub fn zorb_operations(numbers: &OperationNumbers) -> Result<Self, EncodeError> {
        Ok(Self { tag: ComponentTag::ZORB_OPERATIONS, data: encapsulation(|e| numbers.encode(e))? })
    }

    /// Returns the ORB that created the reference.
    pub fn as_orb_type(&self) -> Option<OrbType> {
        self.read(ComponentTag::ORB_TYPE, |d| d.read_u32().map(OrbType))
    }

    /// Returns the server's code sets.
    pub fn as_code_sets(&self) -> Option<CodeSetComponentInfo> {
        self.read(ComponentTag::CODE_SETS, CodeSetComponentInfo::decode)
    }

    /// Returns the host and the port of an alternate address.
    pub fn as_alternate_address(&self) -> Option<(String, u16)> {
        self.read(ComponentTag::ALTERNATE_IIOP_ADDRESS, |d| {
            Ok((String::from(d.read_unconverted_str()?), d.read_u16()?))
        })
    }

    /// Returns the published policies.
    pub fn as_policies(&self) -> Option<Policies> {
        self.read(ComponentTag::POLICIES, Policies::decode)
    }

    /// Returns the object's requirements on transactions; `None` also for an unknown value.
    pub fn as_ots_policy(&self) -> Option<OtsPolicy> {
        OtsPolicy::from_number(self.read(ComponentTag::OTS_POLICY, |d| d.read_u16())?)
    }

    /// Returns how the object may be called within transactions; `None` also for an unknown value.
    pub fn as_invocation_policy(&self) -> Option<InvocationPolicy> {
        InvocationPolicy::from_number(self.read(ComponentTag::INV_POLICY, |d| d.read_u16())?)
    }

    /// Returns the host and the path of a Unix socket in omniORB's form.
    pub fn as_omni_unix(&self) -> Option<OmniUnixAddress> {
        self.read(ComponentTag::OMNI_UNIX, |d| {
            Ok(OmniUnixAddress {
                host: String::from(d.read_unconverted_str()?),
                path: String::from(d.read_unconverted_str()?),
            })
        })
    }

    /// Returns the numbers of operations; `None` also for an unknown version of the component.
    pub fn as_zorb_operations(&self) -> Option<OperationNumbers> {
        self.read(ComponentTag::ZORB_OPERATIONS, OperationNumbers::decode)
    }

    /// Returns the TLS port and requirements.
    ///
    /// The standard form has eight bytes. VisiBroker's form is longer: its association options are ulongs.
    pub fn as_ssl_sec_trans(&self) -> Option<SslSecTrans> {
        self.read(ComponentTag::SSL_SEC_TRANS, |d| {
            let read_options = |d: &mut Decoder<'_>| {
                if self.data.len() == 8 { d.read_u16() } else { Ok(d.read_u32()? as u16) }
            };
            let (target_supports, target_requires) = (read_options(d)?, read_options(d)?);
            Ok(SslSecTrans { target_supports, target_requires, port: d.read_u16()? })
        })
    }

    pub(crate) fn build(tag: ComponentTag, f: impl FnOnce(&mut Encoder)) -> Self {
        let data = encapsulation(|e| {
            f(e);
            Ok(())
        });
        // This cannot fail, because `f` cannot fail.
        Self { tag, data: data.unwrap_or_default() }
    }

    pub(crate) fn read<T>(
        &self,
        tag: ComponentTag,
        f: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Option<T> {
        if self.tag != tag {
            return None;
        }
        open_encapsulation(&self.data).and_then(|mut d| f(&mut d)).ok()
    }
}

impl fmt::Debug for TaggedComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaggedComponent(tag {:#x}, {} bytes)", self.tag.0, self.data.len())
    }
}

impl CdrEncode for TaggedComponent {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.tag.0);
        put_octets(e, &self.data)
    }
}

/// Shares the buffer of the profile that contains the component.
impl CdrDecode for TaggedComponent {
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let tag = ComponentTag(d.read_u32()?);
        Ok(Self { tag, data: read_octets_shared(d)? })
    }
}

/// A Unix socket on which an omniORB server listens, for clients on the same host.
///
/// On the wire, it is two strings, which are not converted to another code set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OmniUnixAddress {
    /// The name of the host as reported by its operating system. The path is meaningless on another host.
    pub host: String,
    /// The path of the socket.
    pub path: String,
}

/// A server's settings for TLS: the association options that it supports and requires, and the port.
///
/// The options are bits. The constants of this type name those bits that zorb uses.
/// Source clause: "Security Service / TAG_SSL_SEC_TRANS".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslSecTrans {
    /// Association options that the server supports.
    pub target_supports: u16,
    /// Association options that the server requires.
    pub target_requires: u16,
    /// TCP port for TLS, at the host of the profile.
    pub port: u16,
}

impl SslSecTrans {
    /// `NoProtection`: messages may be sent unprotected.
    pub const NO_PROTECTION: u16 = 1;
    /// `Integrity` and `Confidentiality`.
    pub const PROTECTED: u16 = 2 | 4;
    /// `DetectReplay` and `DetectMisordering`.
    pub const DETECT_REPLAY_AND_MISORDERING: u16 = 8 | 16;
    /// `EstablishTrustInTarget`: the server presents a certificate.
    pub const TRUST_IN_TARGET: u16 = 32;
    /// `EstablishTrustInClient`: the client presents a certificate.
    pub const TRUST_IN_CLIENT: u16 = 64;

    /// Returns whether the server accepts calls only over TLS.
    pub const fn is_required(&self) -> bool {
        self.target_requires & !Self::NO_PROTECTION != 0
    }
}

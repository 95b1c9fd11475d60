//! Tagged components: what a profile says beside host, port and key.

use std::fmt;

use bytes::Bytes;

use super::encapsulation::{encapsulation, open_encapsulation, put_octets, read_octets_shared};
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::code_set::CodeSetComponentInfo;
use crate::giop::BlockList;
use crate::{DecodeError, EncodeError};

/// What kind of component it is.
///
/// Source clause: "Object References / Standard IOR Components".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComponentTag(pub u32);

impl ComponentTag {
    /// `TAG_ORB_TYPE`: ulong, which ORB made the reference.
    pub const ORB_TYPE: Self = Self(0);
    /// `TAG_CODE_SETS`: the server's code sets.
    pub const CODE_SETS: Self = Self(1);
    /// `TAG_POLICIES`: quality of service that the server publishes.
    pub const POLICIES: Self = Self(2);
    /// `TAG_ALTERNATE_IIOP_ADDRESS`: a further host and port (IIOP 1.2).
    pub const ALTERNATE_IIOP_ADDRESS: Self = Self(3);
    /// `TAG_COMPLETE_OBJECT_KEY`: an object key outside an IIOP profile.
    pub const COMPLETE_OBJECT_KEY: Self = Self(5);
    /// `TAG_SSL_SEC_TRANS`: TLS port and demands.
    pub const SSL_SEC_TRANS: Self = Self(20);
    /// `TAG_JAVA_CODEBASE`: where Java finds classes.
    pub const JAVA_CODEBASE: Self = Self(25);
    /// `TAG_CSI_SEC_MECH_LIST`: security mechanisms.
    pub const CSI_SEC_MECH_LIST: Self = Self(33);
    /// `TAG_NULL_TAG`: nothing.
    pub const NULL_TAG: Self = Self(34);
    /// `TAG_TLS_SEC_TRANS`: TLS addresses within a security mechanism.
    pub const TLS_SEC_TRANS: Self = Self(36);
    /// A component of zorb's own: the server reads where the bulk data of a message lies, see
    /// [`BlockList`](crate::giop::BlockList). The number is `ZOR` and a 1; who does not know it ignores it.
    pub const ZORB_BLOCKS: Self = Self(0x5A4F_5201);
}

/// A component as it stands on the wire: its tag and its octets, which are never changed.
///
/// The `as_...` methods read the component of one kind; a component of another kind or with corrupt data gives `None`,
/// because what one component says must not spoil the profile around it.
/// Source clause: "Object References / IOR" (`IOP::TaggedComponent`).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TaggedComponent {
    /// Which kind.
    pub tag: ComponentTag,
    /// The component data, for almost every kind an encapsulation.
    pub data: Bytes,
}

impl TaggedComponent {
    /// `TAG_ORB_TYPE` with a number that the OMG assigned.
    pub fn orb_type(number: u32) -> Self {
        Self::build(ComponentTag::ORB_TYPE, |e| e.put_u32(number))
    }

    /// `TAG_CODE_SETS`: the code sets of a server.
    ///
    /// # Errors
    /// More conversion code sets than a ulong counts.
    pub fn code_sets(info: &CodeSetComponentInfo) -> Result<Self, EncodeError> {
        Ok(Self { tag: ComponentTag::CODE_SETS, data: encapsulation(|e| info.encode(e))? })
    }

    /// `TAG_ALTERNATE_IIOP_ADDRESS`: a further address of the same object.
    ///
    /// # Errors
    /// A host name that has no encoding (it contains a NUL).
    pub fn alternate_address(host: &str, port: u16) -> Result<Self, EncodeError> {
        let data = encapsulation(|e| {
            e.put_ascii(host)?;
            e.put_u16(port);
            Ok(())
        })?;
        Ok(Self { tag: ComponentTag::ALTERNATE_IIOP_ADDRESS, data })
    }

    /// `TAG_SSL_SEC_TRANS` in the form of the security service.
    pub fn ssl_sec_trans(ssl: SslSecTrans) -> Self {
        Self::build(ComponentTag::SSL_SEC_TRANS, |e| {
            e.put_u16(ssl.target_supports);
            e.put_u16(ssl.target_requires);
            e.put_u16(ssl.port);
        })
    }

    /// [`ZORB_BLOCKS`](ComponentTag::ZORB_BLOCKS), of the one version that there is.
    pub fn zorb_blocks() -> Self {
        Self::build(ComponentTag::ZORB_BLOCKS, |e| e.put_u8(BlockList::VERSION))
    }

    /// Whether the server reads lists of blocks.
    pub fn is_zorb_blocks(&self) -> bool {
        self.read(ComponentTag::ZORB_BLOCKS, |d| d.read_u8()) == Some(BlockList::VERSION)
    }

    /// The ORB's number.
    pub fn as_orb_type(&self) -> Option<u32> {
        self.read(ComponentTag::ORB_TYPE, |d| d.read_u32())
    }

    /// The server's code sets.
    pub fn as_code_sets(&self) -> Option<CodeSetComponentInfo> {
        self.read(ComponentTag::CODE_SETS, CodeSetComponentInfo::decode)
    }

    /// Host and port.
    pub fn as_alternate_address(&self) -> Option<(String, u16)> {
        self.read(ComponentTag::ALTERNATE_IIOP_ADDRESS, |d| {
            Ok((String::from(d.read_str_ascii()?), d.read_u16()?))
        })
    }

    /// The TLS port and demands.
    ///
    /// Eight octets in the standard form. VisiBroker sends the associations as ulongs; the length tells the two apart.
    pub fn as_ssl_sec_trans(&self) -> Option<SslSecTrans> {
        self.read(ComponentTag::SSL_SEC_TRANS, |d| {
            let associations = |d: &mut Decoder<'_>| {
                if self.data.len() == 8 { d.read_u16() } else { Ok(d.read_u32()? as u16) }
            };
            let (target_supports, target_requires) = (associations(d)?, associations(d)?);
            Ok(SslSecTrans { target_supports, target_requires, port: d.read_u16()? })
        })
    }

    fn build(tag: ComponentTag, f: impl FnOnce(&mut Encoder)) -> Self {
        let data = encapsulation(|e| {
            f(e);
            Ok(())
        });
        // `f` cannot fail, and so neither can the whole.
        Self { tag, data: data.unwrap_or_default() }
    }

    fn read<T>(
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
        write!(f, "TaggedComponent(tag {:#x}, {} octets)", self.tag.0, self.data.len())
    }
}

impl CdrEncode for TaggedComponent {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_u32(self.tag.0);
        put_octets(e, &self.data)
    }
}

/// Shares the octets of the profile that holds the component.
impl CdrDecode for TaggedComponent {
    /// Two ulongs.
    const MIN_SIZE: usize = 8;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let tag = ComponentTag(d.read_u32()?);
        Ok(Self { tag, data: read_octets_shared(d)? })
    }
}

/// What a server says about TLS: the association options that it supports and requires, and the port.
///
/// Source clause: "Security Service / TAG_SSL_SEC_TRANS". Bits: 1 NoProtection, 2 Integrity, 4 Confidentiality,
/// 32 EstablishTrustInTarget, 64 EstablishTrustInClient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslSecTrans {
    /// Association options the server can do.
    pub target_supports: u16,
    /// Association options the server insists on.
    pub target_requires: u16,
    /// TCP port to open a TLS session on, at the host of the profile.
    pub port: u16,
}

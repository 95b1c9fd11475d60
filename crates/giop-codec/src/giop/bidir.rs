//! The service context by which a client permits the server to send requests over the client's connection.

use super::context::{ContextId, ServiceContext, ServiceContextRef};
use crate::cdr::{CdrDecode, CdrEncode, Decoder, Encoder};
use crate::ior::{read_list, without_brackets};
use crate::{DecodeError, EncodeError};

/// The maximum number of listen points in one context. A context with more is rejected with `MARSHAL`.
pub const MAX_LISTEN_POINTS: usize = 64;

/// An address whose objects can be called over the connection on which the address is announced.
///
/// Source clause: "Bi-directional GIOP / Bi-directional IIOP" (`IIOP::ListenPoint`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListenPoint {
    /// The host name or IP address as in the profiles of the references. An IPv6 address has no brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl ListenPoint {
    /// Creates a listen point from the host and port of a profile.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

impl CdrEncode for ListenPoint {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_unconverted_str(&self.host)?;
        e.put_u16(self.port);
        Ok(())
    }
}

/// Removes the brackets of an IPv6 address, as decoding a profile does, so that the hosts can be compared.
impl CdrDecode for ListenPoint {
    /// The length of an empty host, which some peers send without a NUL, and the port.
    const MIN_SIZE: usize = 6;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let host = without_brackets(String::from(d.read_unconverted_str()?));
        Ok(Self { host, port: d.read_u16()? })
    }
}

/// The data of the service context `BI_DIR_IIOP`: the addresses in the references of the sender's objects.
/// Requests to these objects may be sent over this connection.
///
/// The side that opened the connection sends the context with a request in GIOP 1.2. The addresses of all
/// these contexts apply until the connection ends. A receiver must ignore the context if it does not trust
/// the peer, because a peer can claim any address.
/// Source clause: "Bi-directional GIOP / Bi-directional IIOP" (`IIOP::BiDirIIOPServiceContext`).
#[doc(alias = "BiDirIIOPServiceContext")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BiDirIiopServiceContext {
    /// The announced addresses.
    pub listen_points: Vec<ListenPoint>,
}

impl BiDirIiopServiceContext {
    /// Returns the service context to send.
    ///
    /// # Errors
    /// A host name contains a NUL.
    pub fn to_service_context(&self) -> Result<ServiceContext, EncodeError> {
        ServiceContext::encapsulate(ContextId::BI_DIR_IIOP, self)
    }

    /// Reads a received service context. Returns `None` if it has another id.
    ///
    /// # Errors
    /// The data is malformed, or has more than [`MAX_LISTEN_POINTS`] addresses.
    pub fn from_service_context(context: &ServiceContextRef<'_>) -> Result<Option<Self>, DecodeError> {
        (context.id == ContextId::BI_DIR_IIOP).then(|| context.value()).transpose()
    }

    /// Returns whether objects at this address may be called over the connection. Host and port must match
    /// exactly.
    pub fn covers(&self, host: &str, port: u16) -> bool {
        self.listen_points.iter().any(|point| point.port == port && point.host == host)
    }
}

impl CdrEncode for BiDirIiopServiceContext {
    fn encode(&self, e: &mut Encoder) -> Result<(), EncodeError> {
        e.put_len(self.listen_points.len())?;
        ListenPoint::encode_slice(&self.listen_points, e)
    }
}

impl CdrDecode for BiDirIiopServiceContext {
    const MIN_SIZE: usize = 4;

    fn decode(d: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let listen_points = read_list(d, ListenPoint::MIN_SIZE, MAX_LISTEN_POINTS, ListenPoint::decode)?;
        Ok(Self { listen_points })
    }
}

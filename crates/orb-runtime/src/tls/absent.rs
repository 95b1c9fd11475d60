//! Replacement of TLS if it is not compiled in. No value of these types exists, so nothing here ever runs.

use std::convert::Infallible;
use std::sync::Arc;

use giop_codec::ior::SslSecTrans;
use tokio::net::TcpStream;

use crate::orb::{Endpoint, OrbCore, Seat};
use crate::transport::{Peer, Socket};

/// Cannot be created.
#[derive(Debug, Clone)]
pub(crate) struct Tls(Infallible);

/// Cannot be created.
#[derive(Debug)]
pub(crate) enum TlsSession {}

impl TlsSession {
    #[cfg(feature = "csi")]
    pub(crate) fn subject(&self) -> Option<&str> {
        match *self {}
    }
}

impl Tls {
    pub(crate) fn component(&self, _: u16, _: bool) -> SslSecTrans {
        match self.0 {}
    }

    pub(crate) fn takes_tls(&self, _: bool) -> bool {
        match self.0 {}
    }

    pub(crate) fn takes_plaintext(&self, _: bool) -> bool {
        match self.0 {}
    }

    pub(crate) fn has_identity(&self) -> bool {
        match self.0 {}
    }
}

impl OrbCore {
    /// Never called, because no listener uses TLS.
    pub(crate) fn admit_secure(self: &Arc<Self>, stream: TcpStream, _: Peer, seat: Seat) {
        drop((stream, seat));
    }

    /// Fails, because TLS is not supported.
    pub(crate) async fn secure(self: &Arc<Self>, _: TcpStream, _: &str) -> std::io::Result<Socket> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Returns `None`, because no error is one of TLS.
pub(crate) fn exception_of(
    _: &Endpoint,
    _: &std::io::Error,
) -> Option<giop_codec::exception::SystemException> {
    None
}

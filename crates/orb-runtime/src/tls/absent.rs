//! In place of TLS where it was not compiled in: nobody can have it, so nothing here ever runs.

use std::convert::Infallible;
use std::sync::Arc;

use giop_codec::ior::SslSecTrans;
use tokio::net::TcpStream;

use crate::orb::{Endpoint, OrbCore, Seat};
use crate::transport::{Peer, Socket};

/// Nobody has it.
#[derive(Debug, Clone)]
pub(crate) struct Tls(Infallible);

/// Nobody has one.
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
    /// There is no listener that would ask for it.
    pub(crate) fn admit_secure(self: &Arc<Self>, stream: TcpStream, _: Peer, seat: Seat) {
        drop((stream, seat));
    }

    /// There is no such way to a server.
    pub(crate) async fn secure(self: &Arc<Self>, _: TcpStream, _: &str) -> std::io::Result<Socket> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// No error is about it.
pub(crate) fn exception_of(
    _: &Endpoint,
    _: &std::io::Error,
) -> Option<giop_codec::exception::SystemException> {
    None
}

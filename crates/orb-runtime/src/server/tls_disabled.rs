//! Replacement of TLS for clients if it is not compiled in.

use std::sync::Arc;

use tokio::net::TcpStream;

use crate::runtime::Shared;
use crate::server::connection_limiter::ConnectionSlot;
use crate::transport::Peer;

impl Shared {
    /// Never called, because no listener uses TLS.
    pub(crate) fn admit_secure(self: &Arc<Self>, stream: TcpStream, _: Peer, seat: ConnectionSlot) {
        drop((stream, seat));
    }
}

//! TLS handshakes with servers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use giop_codec::exception::SystemException;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use tokio::net::TcpStream;

use crate::endpoint::Endpoint;
use crate::runtime::Shared;
use crate::tls::Tls;
use crate::tls::failure::Failure;
use crate::transport::Socket;
use crate::transport::tls::TlsSocket;

/// Establishes a session with the server to which a stream is connected. The source of an error is a
/// [`Failure`].
pub(crate) async fn secure(orb: &Arc<Shared>, stream: TcpStream, host: &str) -> io::Result<Socket> {
    let mut handshake = HandshakeCounter { core: orb, succeeded: false };
    let outcome = async {
        let tls = orb.config.tls.as_ref().and_then(Tls::client).ok_or(Failure::NotConfigured(
            "no CA is trusted for servers; add one with TlsBuilder::trust or TlsBuilder::pin",
        ));
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Failure::NotConfigured("the host is neither a DNS name nor an IP address"));
        let connection = ClientConnection::new(tls?, name?)?;
        let socket = TlsSocket::handshake(stream, Connection::from(connection), &|| {});
        socket.await.map_err(|(_, failure)| failure)
    };
    match outcome.await {
        Ok(socket) => {
            handshake.succeeded = true;
            Ok(Socket::Tls(Box::new(socket)))
        }
        Err(failure) => Err(io::Error::other(failure)),
    }
}

/// Counts a handshake on drop: as a session if it has succeeded, otherwise as a failure.
struct HandshakeCounter<'a> {
    core: &'a Arc<Shared>,
    succeeded: bool,
}

impl Drop for HandshakeCounter<'_> {
    fn drop(&mut self) {
        let counts = &self.core.sockets.tls;
        let count = if self.succeeded { &counts.sessions } else { &counts.failed };
        count.fetch_add(1, Ordering::Relaxed);
        if !self.succeeded {
            self.core.start_metrics_export();
        }
    }
}

/// Returns the exception for the caller, if the error is a TLS failure.
pub(crate) fn exception_of(endpoint: &Endpoint, error: &io::Error) -> Option<SystemException> {
    error.get_ref()?.downcast_ref::<Failure>().map(|failure| failure.to_exception(endpoint))
}

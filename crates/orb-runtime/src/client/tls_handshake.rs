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
use crate::tls::failure::HandshakeFailure;
use crate::transport::Socket;
use crate::transport::tls::TlsSocket;

/// Establishes a TLS session with a connected server. Errors contain a [`HandshakeFailure`].
pub(crate) async fn secure(orb: &Arc<Shared>, stream: TcpStream, host: &str) -> io::Result<Socket> {
    let mut handshake = HandshakeCounter { core: orb, succeeded: false };
    let outcome = async {
        let tls =
            orb.config.tls.as_ref().and_then(Tls::client_config).ok_or(HandshakeFailure::NotConfigured(
                "no certificates of servers are trusted; use TlsBuilder::trust or TlsBuilder::pin",
            ));
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| HandshakeFailure::NotConfigured("the host must be a DNS name or an IP address"));
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

/// Counts a handshake when it is dropped: as a session if the handshake has succeeded, or else as a failure.
struct HandshakeCounter<'a> {
    core: &'a Arc<Shared>,
    succeeded: bool,
}

impl Drop for HandshakeCounter<'_> {
    fn drop(&mut self) {
        let counts = &self.core.transport.tls;
        let count = if self.succeeded { &counts.sessions } else { &counts.failed };
        count.fetch_add(1, Ordering::Relaxed);
        if !self.succeeded {
            self.core.start_metrics_export();
        }
    }
}

/// Returns the exception for the caller if the error is a TLS failure, or `None` for other errors.
pub(crate) fn exception_of(endpoint: &Endpoint, error: &io::Error) -> Option<SystemException> {
    error.get_ref()?.downcast_ref::<HandshakeFailure>().map(|failure| failure.to_exception(endpoint))
}

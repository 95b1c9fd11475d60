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

/// Establishes a session with the server to which a stream is connected.
///
/// # Errors
/// A [`Failure`] as the source of the error.
pub(crate) async fn secure(orb: &Arc<Shared>, stream: TcpStream, host: &str) -> io::Result<Socket> {
    let attempt = Attempt { core: orb, made: false };
    let made = async {
        let tls = orb.config.tls.as_ref().and_then(Tls::client).ok_or(Failure::NotConfigured(
            "no CA is trusted to vouch for servers: TlsBuilder::trust or ::pin names one",
        ));
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Failure::NotConfigured("the host is neither a DNS name nor an IP address"));
        let connection = ClientConnection::new(tls?, name?)?;
        let handshake = TlsSocket::handshake(stream, Connection::from(connection), &|| {});
        handshake.await.map_err(|(_, failure)| failure)
    };
    match made.await {
        Ok(socket) => {
            attempt.succeeded();
            Ok(Socket::Tls(Box::new(socket)))
        }
        Err(failure) => Err(io::Error::other(failure)),
    }
}

/// A client's handshake. If it is dropped before it has succeeded or failed, it counts as cancelled.
struct Attempt<'a> {
    core: &'a Arc<Shared>,
    made: bool,
}

impl Attempt<'_> {
    fn succeeded(mut self) {
        self.made = true;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let counts = &self.core.sockets.tls;
        let count = if self.made { &counts.sessions } else { &counts.failed };
        count.fetch_add(1, Ordering::Relaxed);
        if !self.made {
            self.core.start_metrics_export();
        }
    }
}

/// Returns the exception for the caller, if the error is one of TLS.
pub(crate) fn exception_of(endpoint: &Endpoint, error: &io::Error) -> Option<SystemException> {
    error.get_ref()?.downcast_ref::<Failure>().map(|failure| failure.to_exception(endpoint))
}

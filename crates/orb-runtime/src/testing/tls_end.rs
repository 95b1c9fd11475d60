//! TLS sessions without an ORB, for fuzz targets.

use std::io;
use std::task::{Context, Poll};

use giop_proto::outbox::Transmit;
use giop_proto::receive::ReadBuf;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use tokio::net::TcpStream;

use crate::server::tls_handshake::accept;
use crate::tls::{Tls, TlsSession};
use crate::transport::tls::TlsSocket;
use crate::transport::{Progress, Socket};

/// One end of a TLS session. It runs the same code as a TLS connection of an ORB.
#[derive(Debug)]
pub struct TlsEnd(Socket);

impl TlsEnd {
    /// Performs the server's side of the handshake. On failure, returns the reason.
    pub async fn accept(tls: &Tls, stream: TcpStream) -> Result<Self, String> {
        let socket = accept(tls, stream, &|| {}).await.map_err(|(_, failure)| failure.to_string())?;
        Ok(Self(Socket::Tls(Box::new(socket))))
    }

    /// Performs the client's side with the server of this name. On failure, returns the reason.
    pub async fn connect(tls: &Tls, stream: TcpStream, server: &'static str) -> Result<Self, String> {
        let config = tls.client_config().ok_or("no CA or certificate is trusted")?;
        let name = ServerName::try_from(server).map_err(|error| error.to_string())?;
        let connection = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        let outcome = TlsSocket::handshake(stream, Connection::from(connection), &|| {}).await;
        let socket = outcome.map_err(|(_, failure)| failure.to_string())?;
        Ok(Self(Socket::Tls(Box::new(socket))))
    }

    /// Returns the results of the handshake.
    #[must_use]
    pub fn session(&self) -> Option<&TlsSession> {
        self.0.tls_session().map(AsRef::as_ref)
    }

    /// Reads once. Returns `Ok(None)` if nothing is available, and `Ok(Some(0))` at the end of the stream.
    pub fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        self.0.try_read(buf)
    }

    /// Writes until everything is written or the socket blocks. Returns whether everything is written.
    pub fn try_write(&self, transmit: &mut Transmit) -> io::Result<bool> {
        self.0.try_write(transmit).map(|progress| progress == Progress::Done)
    }

    /// Becomes ready when a read can make progress.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read_ready(cx)
    }

    /// Becomes ready when a write can make progress.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_write_ready(cx)
    }

    /// Signals the end of the stream to the peer.
    pub fn shut_down_write(&self) {
        self.0.shut_down_write();
    }
}

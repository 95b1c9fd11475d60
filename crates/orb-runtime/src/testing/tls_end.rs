//! TLS sessions without an ORB, for fuzz targets.

use std::io;
use std::task::{Context, Poll};

use giop_proto::outbox::Transmit;
use giop_proto::receive::ReadBuf;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use tokio::net::TcpStream;

use crate::server::tls_handshake::serve;
use crate::tls::{Tls, TlsSession};
use crate::transport::tls::TlsSocket;
use crate::transport::{Progress, Socket};

/// One end of a TLS session, as used by the connections of an ORB.
#[derive(Debug)]
pub struct TlsEnd(Socket);

impl TlsEnd {
    /// Creates the server's end, by the handshake of a listener.
    ///
    /// # Errors
    /// The reason why there is no session.
    pub async fn accept(tls: &Tls, stream: TcpStream) -> Result<Self, String> {
        let socket = serve(tls, stream, &|| {}).await.map_err(|(_, failure)| failure.to_string())?;
        Ok(Self(Socket::Tls(Box::new(socket))))
    }

    /// Creates the client's end, for a server of that name. The client must trust a CA or certificate.
    ///
    /// # Errors
    /// The reason why there is no session.
    pub async fn connect(tls: &Tls, stream: TcpStream, server: &'static str) -> Result<Self, String> {
        let config = tls.client().ok_or("nobody is trusted")?;
        let name = ServerName::try_from(server).map_err(|error| error.to_string())?;
        let connection = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        let made = TlsSocket::handshake(stream, Connection::from(connection), &|| {}).await;
        let socket = made.map_err(|(_, failure)| failure.to_string())?;
        Ok(Self(Socket::Tls(Box::new(socket))))
    }

    /// Returns what the handshake found out about the peer.
    #[must_use]
    pub fn session(&self) -> Option<&TlsSession> {
        self.0.session().map(AsRef::as_ref)
    }

    /// Reads once. Returns `Ok(None)` if nothing is available, and `Ok(Some(0))` at the end of the stream.
    ///
    /// # Errors
    /// Errors of the socket, and invalid records.
    pub fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        self.0.try_read(buf)
    }

    /// Writes until everything is written or the socket blocks. Returns whether everything is written.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn try_write(&self, transmit: &mut Transmit) -> io::Result<bool> {
        self.0.try_write(transmit).map(|progress| progress == Progress::Done)
    }

    /// Returns ready when a read can make progress.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read_ready(cx)
    }

    /// Returns ready when a write can make progress.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_write_ready(cx)
    }

    /// Signals the end of the stream to the peer.
    pub fn shut_down_write(&self) {
        self.0.shut_down_write();
    }
}

//! Sessions by themselves, for fuzz targets.

use std::io;
use std::task::{Context, Poll};

use giop_proto::outbox::Transmit;
use giop_proto::receive::ReadBuf;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection};
use tokio::net::TcpStream;

use super::connect::serve;
use super::{Tls, TlsSession};
use crate::transport::tls::TlsSocket;
use crate::transport::{Progress, Socket};

/// One end of a session, as the connections of an ORB have it.
#[derive(Debug)]
pub struct TlsEnd(Socket);

impl TlsEnd {
    /// The server's end, by what a listener does.
    ///
    /// # Errors
    /// Why there is no session.
    pub async fn accept(tls: &Tls, stream: TcpStream) -> Result<Self, String> {
        let socket = serve(tls, stream, &|| {}).await.map_err(|(_, failure)| failure.to_string())?;
        Ok(Self(Socket::Tls(Box::new(socket))))
    }

    /// The end of a client that trusts somebody, towards the server of that name.
    ///
    /// # Errors
    /// Why there is no session.
    pub async fn connect(tls: &Tls, stream: TcpStream, server: &'static str) -> Result<Self, String> {
        let config = tls.client().ok_or("nobody is trusted")?;
        let name = ServerName::try_from(server).map_err(|error| error.to_string())?;
        let connection = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        let made = TlsSocket::handshake(stream, Connection::from(connection), &|| {}).await;
        let socket = made.map_err(|(_, failure)| failure.to_string())?;
        Ok(Self(Socket::Tls(Box::new(socket))))
    }

    /// What it knows of its peer.
    #[must_use]
    pub fn session(&self) -> Option<&TlsSession> {
        self.0.session().map(AsRef::as_ref)
    }

    /// Reads once. `Ok(None)`: nothing there; `Ok(Some(0))`: the end of the stream.
    ///
    /// # Errors
    /// Those of the socket, and of what is no record.
    pub fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        self.0.try_read(buf)
    }

    /// Writes; says whether all of it is written.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn try_write(&self, transmit: &mut Transmit) -> io::Result<bool> {
        self.0.try_write(transmit).map(|progress| progress == Progress::Done)
    }

    /// Ready when a read gives something.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_read_ready(cx)
    }

    /// Ready when the socket takes something.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_write_ready(cx)
    }

    /// Tells the peer that nothing follows.
    pub fn shut_down_write(&self) {
        self.0.shut_down_write();
    }
}

//! TLS handshakes of clients and servers.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use giop_codec::exception::SystemException;
use giop_proto::{Limit, Role};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};
use tokio::net::TcpStream;

use super::Tls;
use super::failure::Failure;
use crate::link::{Link, now};
use crate::orb::{Endpoint, OrbCore, Seat};
use crate::transport::tls::TlsSocket;
use crate::transport::{Peer, Socket, shut_down};

/// The time for which further bytes of a rejected client are discarded, so that the alert reaches it. Closing
/// a socket with unread bytes would discard the alert.
const LINGER: Duration = Duration::from_secs(1);

/// The maximum number of discarded bytes.
const LEFTOVERS: usize = 64 * 1024;

impl OrbCore {
    /// Performs the handshake of a client, then serves it. `seat` is kept until the connection ends.
    pub(crate) fn admit_secure(self: &Arc<Self>, stream: TcpStream, peer: Peer, seat: Seat) {
        let Some(tls) = self.config.tls.clone() else { return };
        let counts = self.tls_counts();
        let Some((place, displaces)) = self.handshakes().enter(peer.address(), now()) else {
            counts.shed.fetch_add(1, Ordering::Relaxed);
            self.has_counted();
            self.hit(Limit::Handshakes);
            let limit = tls.rules().max_handshakes;
            tracing::warn!(
                target: "zorb",
                %peer,
                "connection refused: {limit} handshakes are under way (TlsBuilder::max_handshakes)"
            );
            return;
        };
        if displaces {
            self.hit(Limit::Displaced);
        }
        let core = Arc::clone(self);
        self.spawn_until_closed(async move {
            let begun = || place.begun();
            let handshake = tokio::time::timeout(tls.rules().handshake_timeout, serve(&tls, stream, &begun));
            // Completes when the slot of this handshake, which takes long, is given to a new connection.
            let gives_way = async {
                tokio::select! {
                    () = seat.given_away() => {}
                    () = place.displaced() => {}
                }
            };
            let outcome = tokio::select! {
                outcome = handshake => outcome,
                () = gives_way => {
                    core.tls_counts().failed.fetch_add(1, Ordering::Relaxed);
                    return core.has_counted();
                }
            };
            drop(place);
            let counts = core.tls_counts();
            let (stream, failure) = match outcome {
                Ok(Ok(socket)) => {
                    counts.sessions.fetch_add(1, Ordering::Relaxed);
                    let config = core.link_config(Role::Server);
                    let link = Link::new(Socket::Tls(Box::new(socket)), peer, config, &core.config);
                    seat.is_for(&link);
                    return core.drive(&link, seat);
                }
                Ok(Err((stream, failure))) => (Some(stream), failure),
                Err(_) => {
                    core.hit(Limit::HandshakeTime);
                    (None, Failure::Slow)
                }
            };
            let count =
                if matches!(failure, Failure::Plaintext) { &counts.plaintext } else { &counts.failed };
            count.fetch_add(1, Ordering::Relaxed);
            core.has_counted();
            tracing::warn!(target: "zorb", %peer, "no TLS session with a client: {failure}");
            if let Some(stream) = stream {
                shut_down(&stream, Shutdown::Write);
                let _ = tokio::time::timeout(LINGER, discard(&stream)).await;
            }
        });
    }

    /// Establishes a session with the server to which a stream is connected.
    ///
    /// # Errors
    /// A [`Failure`] as the source of the error.
    pub(crate) async fn secure(self: &Arc<Self>, stream: TcpStream, host: &str) -> io::Result<Socket> {
        let attempt = Attempt { core: self, made: false };
        let made = async {
            let tls = self.config.tls.as_ref().and_then(Tls::client).ok_or(Failure::NotConfigured(
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
}

/// A client's handshake. If it is dropped before it has succeeded or failed, it counts as cancelled.
struct Attempt<'a> {
    core: &'a Arc<OrbCore>,
    made: bool,
}

impl Attempt<'_> {
    fn succeeded(mut self) {
        self.made = true;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let counts = self.core.tls_counts();
        let count = if self.made { &counts.sessions } else { &counts.failed };
        count.fetch_add(1, Ordering::Relaxed);
        if !self.made {
            self.core.has_counted();
        }
    }
}

/// Returns the exception for the caller, if the error is one of TLS.
pub(crate) fn exception_of(endpoint: &Endpoint, error: &io::Error) -> Option<SystemException> {
    error.get_ref()?.downcast_ref::<Failure>().map(|failure| failure.to_exception(endpoint))
}

/// Performs the handshake of a server. `begun` is called when the client's first message has arrived.
pub(super) async fn serve(
    tls: &Tls,
    stream: TcpStream,
    begun: &(dyn Fn() + Sync),
) -> Result<TlsSocket, (TcpStream, Failure)> {
    let connection = match tls.server() {
        None => Err(Failure::NotConfigured("this server has no certificate")),
        Some(server) => ServerConnection::new(server).map_err(Failure::from),
    };
    match connection {
        Ok(connection) => TlsSocket::handshake(stream, Connection::from(connection), begun).await,
        Err(failure) => Err((stream, failure)),
    }
}

/// Discards received bytes until the peer closes the connection, too.
async fn discard(stream: &TcpStream) {
    let (mut octets, mut left) = ([0; 4096], LEFTOVERS);
    while left > 0 && stream.readable().await.is_ok() {
        match stream.try_read(&mut octets) {
            Ok(0) => return,
            Ok(n) => left = left.saturating_sub(n),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

//! TLS handshakes with clients.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use giop_proto::{Limit, Role};
use rustls::{Connection, ServerConnection};
use tokio::net::TcpStream;

use crate::connection::{SharedConnection, now};
use crate::runtime::Shared;
use crate::server::connection_limiter::ConnectionSlot;
use crate::tls::Tls;
use crate::tls::failure::Failure;
use crate::transport::tls::TlsSocket;
use crate::transport::{Peer, Socket, shut_down};

/// The time for which further bytes of a rejected client are discarded, so that the alert reaches it. Closing
/// a socket with unread bytes would discard the alert.
const LINGER: Duration = Duration::from_secs(1);

/// The maximum number of discarded bytes.
const LEFTOVERS: usize = 64 * 1024;

/// Performs the handshake of a client, then serves it. `seat` is kept until the connection ends.
pub(crate) fn admit(orb: &Arc<Shared>, stream: TcpStream, peer: Peer, seat: ConnectionSlot) {
    let Some(tls) = orb.config.tls.clone() else { return };
    let counts = &orb.sockets.tls;
    let Some((place, displaces)) = orb.handshakes.enter(peer.address(), now()) else {
        counts.shed.fetch_add(1, Ordering::Relaxed);
        orb.has_counted();
        orb.counters.hit(Limit::Handshakes);
        let limit = tls.rules().max_handshakes;
        tracing::warn!(
            target: "zorb",
            %peer,
            "connection refused: {limit} handshakes are under way (TlsBuilder::max_handshakes)"
        );
        return;
    };
    if displaces {
        orb.counters.hit(Limit::Displaced);
    }
    let core = Arc::clone(orb);
    orb.spawn_until_closed(async move {
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
                core.sockets.tls.failed.fetch_add(1, Ordering::Relaxed);
                return core.has_counted();
            }
        };
        drop(place);
        let counts = &core.sockets.tls;
        let (stream, failure) = match outcome {
            Ok(Ok(socket)) => {
                counts.sessions.fetch_add(1, Ordering::Relaxed);
                let config = core.link_config(Role::Server);
                let link = SharedConnection::new(
                    Socket::Tls(Box::new(socket)),
                    peer,
                    config,
                    &core.config.connection,
                );
                seat.is_for(&link);
                return core.drive(&link, seat);
            }
            Ok(Err((stream, failure))) => (Some(stream), failure),
            Err(_) => {
                core.counters.hit(Limit::HandshakeTime);
                (None, Failure::Slow)
            }
        };
        let count = if matches!(failure, Failure::Plaintext) { &counts.plaintext } else { &counts.failed };
        count.fetch_add(1, Ordering::Relaxed);
        core.has_counted();
        tracing::warn!(target: "zorb", %peer, "no TLS session with a client: {failure}");
        if let Some(stream) = stream {
            shut_down(&stream, Shutdown::Write);
            let _ = tokio::time::timeout(LINGER, discard(&stream)).await;
        }
    });
}

/// Performs the handshake of a server. `begun` is called when the client's first message has arrived.
pub(crate) async fn serve(
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

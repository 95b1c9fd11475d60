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
use crate::tls::failure::HandshakeFailure;
use crate::transport::tls::TlsSocket;
use crate::transport::{Peer, Socket, shut_down};

/// How long bytes from a client are discarded after a failed handshake. If the socket were closed with unread
/// bytes, the system would reset the connection, and the client might not receive the TLS alert.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

const MAX_DISCARDED_BYTES: usize = 64 * 1024;

/// Spawns a task that performs the handshake and then starts the connection's driver. Rejects the connection
/// if too many handshakes are in progress. `slot` counts the connection until it ends.
pub(crate) fn admit(orb: &Arc<Shared>, stream: TcpStream, peer: Peer, slot: ConnectionSlot) {
    let Some(tls) = orb.config.tls.clone() else { return };
    let counts = &orb.transport.tls;
    let Some((handshake, has_evicted)) = orb.handshakes.enter(peer.ip_address(), now()) else {
        counts.rejected_by_limit.fetch_add(1, Ordering::Relaxed);
        orb.start_metrics_export();
        orb.counters.hit(Limit::Handshakes);
        let limit = tls.rules().max_handshakes;
        tracing::warn!(
            target: "zorb",
            %peer,
            "connection rejected: {limit} handshakes are in progress (TlsBuilder::max_handshakes)"
        );
        return;
    };
    if has_evicted {
        orb.counters.hit(Limit::Evicted);
    }
    let shared = Arc::clone(orb);
    orb.spawn_until_closed(async move {
        let orb = shared;
        let on_first_message = || handshake.set_client_hello_received();
        let accepted =
            tokio::time::timeout(tls.rules().handshake_timeout, accept(&tls, stream, &on_first_message));
        // Completes when a new connection takes the place of this one, whose handshake has not ended yet.
        let evicted = async {
            tokio::select! {
                () = slot.wait_for_eviction() => {}
                () = handshake.wait_for_eviction() => {}
            }
        };
        let outcome = tokio::select! {
            outcome = accepted => outcome,
            () = evicted => {
                orb.transport.tls.failed.fetch_add(1, Ordering::Relaxed);
                return orb.start_metrics_export();
            }
        };
        drop(handshake);
        let counts = &orb.transport.tls;
        let (stream, failure) = match outcome {
            Ok(Ok(socket)) => {
                counts.sessions.fetch_add(1, Ordering::Relaxed);
                let config = orb.link_config(Role::Server);
                let socket = Socket::Tls(Box::new(socket));
                let link = SharedConnection::new(socket, peer, config, &orb.config.connection);
                slot.set_connection(&link);
                return orb.drive(&link, slot);
            }
            Ok(Err((stream, failure))) => (Some(stream), failure),
            Err(_) => {
                orb.counters.hit(Limit::HandshakeTime);
                (None, HandshakeFailure::TimedOut)
            }
        };
        let count =
            if matches!(failure, HandshakeFailure::Plaintext) { &counts.plaintext } else { &counts.failed };
        count.fetch_add(1, Ordering::Relaxed);
        orb.start_metrics_export();
        tracing::warn!(target: "zorb", %peer, "the TLS handshake with a client failed: {failure}");
        if let Some(stream) = stream {
            shut_down(&stream, Shutdown::Write);
            let _ = tokio::time::timeout(DISCARD_TIMEOUT, discard(&stream)).await;
        }
    });
}

/// Performs a handshake as the server. Calls `on_first_message` when the client's first message has arrived.
pub(crate) async fn accept(
    tls: &Tls,
    stream: TcpStream,
    on_first_message: &(dyn Fn() + Sync),
) -> Result<TlsSocket, (TcpStream, HandshakeFailure)> {
    let Some(server) = tls.server_config() else {
        return Err((stream, HandshakeFailure::NotConfigured("this server has no certificate")));
    };
    match ServerConnection::new(server) {
        Ok(connection) => TlsSocket::handshake(stream, Connection::from(connection), on_first_message).await,
        Err(error) => Err((stream, error.into())),
    }
}

/// Reads and discards bytes until the client closes the connection, or [`MAX_DISCARDED_BYTES`] were read.
async fn discard(stream: &TcpStream) {
    let (mut bytes, mut left) = ([0; 4096], MAX_DISCARDED_BYTES);
    while left > 0 && stream.readable().await.is_ok() {
        match stream.try_read(&mut bytes) {
            Ok(0) => return,
            Ok(n) => left = left.saturating_sub(n),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

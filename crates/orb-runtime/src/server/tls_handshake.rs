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

/// The time for which further bytes of a rejected client are discarded. If the socket were closed with unread
/// bytes, the system would reset the connection, and the client might not receive the TLS alert.
const ALERT_TIMEOUT: Duration = Duration::from_secs(1);

const MAX_DISCARDED_BYTES: usize = 64 * 1024;

/// Spawns a task for the handshake and then the driver. `slot` is kept until the connection ends.
pub(crate) fn admit(orb: &Arc<Shared>, stream: TcpStream, peer: Peer, slot: ConnectionSlot) {
    let Some(tls) = orb.config.tls.clone() else { return };
    let counts = &orb.sockets.tls;
    let Some((handshake, evicts)) = orb.handshakes.enter(peer.address(), now()) else {
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
    if evicts {
        orb.counters.hit(Limit::Displaced);
    }
    let core = Arc::clone(orb);
    orb.spawn_until_closed(async move {
        let on_first_message = || handshake.set_begun();
        let accepted =
            tokio::time::timeout(tls.rules().handshake_timeout, serve(&tls, stream, &on_first_message));
        // Completes when a new connection evicts this one, because the handshake takes long.
        let evicted = async {
            tokio::select! {
                () = slot.wait_for_eviction() => {}
                () = handshake.wait_for_eviction() => {}
            }
        };
        let outcome = tokio::select! {
            outcome = accepted => outcome,
            () = evicted => {
                core.sockets.tls.failed.fetch_add(1, Ordering::Relaxed);
                return core.start_metrics_export();
            }
        };
        drop(handshake);
        let counts = &core.sockets.tls;
        let (stream, failure) = match outcome {
            Ok(Ok(socket)) => {
                counts.sessions.fetch_add(1, Ordering::Relaxed);
                let config = core.link_config(Role::Server);
                let socket = Socket::Tls(Box::new(socket));
                let link = SharedConnection::new(socket, peer, config, &core.config.connection);
                slot.set_connection(&link);
                return core.drive(&link, slot);
            }
            Ok(Err((stream, failure))) => (Some(stream), failure),
            Err(_) => {
                core.counters.hit(Limit::HandshakeTime);
                (None, Failure::TimedOut)
            }
        };
        let count = if matches!(failure, Failure::Plaintext) { &counts.plaintext } else { &counts.failed };
        count.fetch_add(1, Ordering::Relaxed);
        core.start_metrics_export();
        tracing::warn!(target: "zorb", %peer, "the TLS handshake with a client failed: {failure}");
        if let Some(stream) = stream {
            shut_down(&stream, Shutdown::Write);
            let _ = tokio::time::timeout(ALERT_TIMEOUT, discard(&stream)).await;
        }
    });
}

/// Performs a handshake. Calls `on_first_message` when the first message of the client has arrived.
pub(crate) async fn serve(
    tls: &Tls,
    stream: TcpStream,
    on_first_message: &(dyn Fn() + Sync),
) -> Result<TlsSocket, (TcpStream, Failure)> {
    let Some(server) = tls.server() else {
        return Err((stream, Failure::NotConfigured("this server has no certificate")));
    };
    match ServerConnection::new(server) {
        Ok(connection) => TlsSocket::handshake(stream, Connection::from(connection), on_first_message).await,
        Err(error) => Err((stream, error.into())),
    }
}

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

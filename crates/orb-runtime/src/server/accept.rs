//! Accepting connections.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};
use giop_proto::{Config, Limit, Role, StreamSelector};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use crate::connection::SharedConnection;
use crate::runtime::Shared;
use crate::server::connection_limiter::ConnectionLimiter;
use crate::transport;
use crate::transport::threads::IoThreads;
use crate::transport::{Peer, close_listener, unix};

/// The delay before the next accept after an error that would recur at once, such as a lack of descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The interval at which a closing ORB checks whether TCP handshakes with a listener are still in progress.
const HANDSHAKE_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The maximum number of checks for pending handshakes. It limits the time for which a half-open connection,
/// whose peer may not exist any more, keeps the listener open.
const MAX_HANDSHAKE_CHECKS: u32 = 25;

/// The maximum number of connections that are accepted from the backlog at once when the ORB closes. It
/// exceeds the length of a backlog. It is finite because clients may continue to connect.
const MAX_ACCEPTED_AT_CLOSE: usize = 8192;

/// The number of accepted connections after which the task yields. Otherwise a client that continues to
/// connect could monopolize the thread.
const MAX_ACCEPTS_BEFORE_YIELD: u32 = 16;

#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    /// A TCP listener that the program provided. Other processes may listen on the same socket, now or later.
    Provided(TcpListener),
    Tls(TcpListener),
    Unix(unix::Listener),
}

impl Listener {
    async fn accept(&self) -> std::io::Result<(TcpStream, Peer)> {
        match self {
            Self::Tcp(listener) | Self::Provided(listener) | Self::Tls(listener) => {
                listener.accept().await.map(|(stream, address)| (stream, Peer::Tcp(address)))
            }
            Self::Unix(listener) => {
                listener.accept().await.map(|stream| (stream, Peer::Unix(listener.path().to_owned())))
            }
        }
    }

    /// Accepts a connection from the backlog. Unlike [`accept`](Self::accept), this always asks the system,
    /// because the runtime may have cached that no connection is waiting.
    fn accept_now(&self) -> std::io::Result<(TcpStream, Peer)> {
        let (socket, address) = match self {
            Self::Tcp(listener) | Self::Provided(listener) | Self::Tls(listener) => {
                SockRef::from(listener).accept()
            }
            Self::Unix(listener) => listener.accept_now(),
        }?;
        socket.set_nonblocking(true)?;
        let stream = TcpStream::from_std(socket.into())?;
        let peer = match (self, address.as_socket()) {
            (Self::Unix(listener), _) => Peer::Unix(listener.path().to_owned()),
            (_, Some(address)) => Peer::Tcp(address),
            (_, None) => return Err(std::io::ErrorKind::ConnectionAborted.into()),
        };
        Ok((stream, peer))
    }
}

pub(crate) struct Acceptor {
    orb: Arc<Shared>,
    listener: Listener,
    limiter: Arc<ConnectionLimiter>,
}

impl Acceptor {
    pub(crate) fn new(orb: &Arc<Shared>, listener: Listener) -> Self {
        let limiter = Arc::new(ConnectionLimiter::new(&orb.config));
        Self { orb: Arc::clone(orb), listener, limiter }
    }

    /// Spawns a task that accepts connections until the ORB closes. The task then accepts and closes the
    /// connections that are left in the backlog.
    pub(crate) fn spawn(self) {
        let orb = Arc::clone(&self.orb);
        orb.tasks.listening.spawn(async move {
            let mut closed = pin!(self.orb.closing.wait());
            let mut accepted_count = 0;
            while !self.orb.closing.has_begun() {
                let accepted = tokio::select! {
                    accepted = self.listener.accept() => accepted,
                    () = &mut closed => break,
                };
                match accepted {
                    Ok((stream, peer)) => {
                        self.admit(stream, peer);
                        accepted_count += 1;
                        if accepted_count == MAX_ACCEPTS_BEFORE_YIELD {
                            accepted_count = 0;
                            tokio::task::yield_now().await;
                        }
                    }
                    Err(error) if is_connection_error(&error) => {
                        tracing::debug!(target: "zorb", %error, "a connection ended before it was accepted");
                        // Yield, so that a client that repeatedly aborts its connections does not delay other
                        // tasks.
                        tokio::task::yield_now().await;
                    }
                    Err(error) => {
                        tracing::warn!(target: "zorb", %error, "cannot accept a connection now");
                        tokio::select! {
                            () = tokio::time::sleep(ACCEPT_RETRY_DELAY) => {}
                            () = &mut closed => break,
                        }
                    }
                }
            }
            let closing_address = match &self.listener {
                Listener::Tcp(listener) | Listener::Tls(listener)
                    if close_listener::drop_new_syns(listener) =>
                {
                    listener.local_addr().ok()
                }
                _ => None,
            };
            self.accept_backlog();
            if let Some(address) = closing_address {
                for _ in 0..MAX_HANDSHAKE_CHECKS {
                    tokio::time::sleep(HANDSHAKE_CHECK_INTERVAL).await;
                    let in_progress = close_listener::has_pending_handshakes(address.port()).await;
                    self.accept_backlog();
                    if !in_progress {
                        break;
                    }
                }
            }
        });
    }

    /// Accepts all connections in the backlog. They are closed gracefully, like all connections that are
    /// accepted while the ORB closes. If the listener were closed first, the system would reset these
    /// connections, and clients would not know whether their requests were executed.
    fn accept_backlog(&self) {
        for _ in 0..MAX_ACCEPTED_AT_CLOSE {
            match self.listener.accept_now() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if is_connection_error(&error) => {}
                // The backlog is empty, or the system cannot accept now.
                Err(_) => break,
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: Peer) {
        let Self { orb, listener, limiter } = self;
        let (max_connections, max_per_address) =
            (orb.config.server.max_connections, orb.config.server.max_connections_per_address);
        let is_tls = matches!(listener, Listener::Tls(_));
        let address = peer.ip_address();
        let slot = match ConnectionLimiter::acquire(limiter, address) {
            Ok((slot, has_evicted)) => {
                if has_evicted {
                    orb.counters.hit(Limit::Evicted);
                }
                slot
            }
            Err(limit) => {
                orb.counters.hit(limit);
                if !is_tls {
                    send_close(&stream);
                }
                if let Some(refused) = limiter.count_rejection() {
                    tracing::warn!(
                        target: "zorb",
                        %peer,
                        refused,
                        "connections rejected: the limits are {max_connections} connections, and {max_per_address} from one address (OrbBuilder::max_connections)"
                    );
                }
                return;
            }
        };
        let thread = orb.transport.threads().and_then(IoThreads::thread_for_accepted_connection);
        let ready = transport::prevent_sigpipe(&stream)
            .and_then(|()| if address.is_some() { self.set_socket_options(&stream) } else { Ok(()) });
        #[cfg(feature = "tls")]
        if is_tls && ready.is_ok() {
            return crate::server::tls_handshake::admit(orb, stream, peer, slot);
        }
        let socket = ready.and_then(|()| orb.transport.wrap(stream, &orb.pool, thread));
        let socket = match socket {
            Ok(socket) => socket,
            Err(error) => {
                tracing::debug!(target: "zorb", %peer, %error, "a connection failed before it was served");
                return;
            }
        };
        let link = SharedConnection::new(socket, peer, orb.link_config(Role::Server), &orb.config.connection);
        slot.set_connection(&link);
        orb.drive(&link, slot);
    }

    fn set_socket_options(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(stream);
        self.orb.set_user_timeout(&socket);
        if self.orb.accepts_bidirectional() { self.orb.enable_keepalive(&socket) } else { Ok(()) }
    }
}

impl Shared {
    pub(crate) fn link_config(&self, role: Role) -> Config {
        let mut config = Config::new(role, Arc::clone(&self.config.limits), Arc::clone(&self.pool));
        config.budget = Arc::clone(&self.budget);
        #[cfg(feature = "experiments")]
        {
            config.deposits_enabled = self.config.connection.deposits_enabled;
        }
        config.fragment_size = self.config.connection.fragment_size;
        config.assumed_code_sets = self.config.assumed_code_sets(Version::V1_2);
        config.streams = Some(Arc::clone(self.adapter()) as Arc<dyn StreamSelector>);
        config
    }
}

/// Sends CloseConnection, which tells a rejected client that its requests were not executed.
fn send_close(stream: &TcpStream) {
    let header = MessageHeader::new(Version::V1_0, ByteOrder::Big, MessageType::CloseConnection);
    // The send buffer of a new socket has capacity for one header. An error means that the connection has
    // ended.
    let _ = SockRef::from(stream).send(&header.encode());
}

/// Returns whether an error of accept concerns only one connection, so that the listener is still usable:
/// accept(2) also reports network errors of the new connection. Other errors, such as a lack of descriptors
/// or memory, would recur immediately.
fn is_connection_error(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let connection_errors = [
        Errno::CONNABORTED,
        Errno::CONNRESET,
        Errno::INTR,
        #[cfg(unix)]
        Errno::PERM,
        #[cfg(unix)]
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::NETDOWN,
        Errno::NETUNREACH,
        Errno::OPNOTSUPP,
    ];
    Errno::from_io_error(error).is_some_and(|errno| connection_errors.contains(&errno))
}

#[cfg(test)]
mod tests {
    use crate::server::accept::is_connection_error;

    #[test]
    fn errors_of_one_connection_do_not_delay_the_listener() {
        let concerns = |errno: rustix::io::Errno| is_connection_error(&errno.into());
        use rustix::io::Errno;
        assert!(
            [Errno::CONNABORTED, Errno::HOSTUNREACH, Errno::PROTO, Errno::INTR].into_iter().all(concerns)
        );
        assert!(
            ![Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::INVAL]
                .into_iter()
                .any(concerns)
        );
        assert!(!is_connection_error(&std::io::Error::other("not an error of the system")));
    }
}

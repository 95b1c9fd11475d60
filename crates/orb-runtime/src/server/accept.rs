//! Accepting connections.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use giop_codec::giop::{MessageHeader, MessageType};
use giop_codec::{ByteOrder, Version};
use giop_proto::{Config, Limit, Role, Streams};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use crate::connection::SharedConnection;
use crate::runtime::Shared;
use crate::server::connection_limiter::ConnectionLimiter;
#[cfg(feature = "tls")]
use crate::server::tls_handshake;
use crate::transport;
use crate::transport::threads::IoThreads;
use crate::transport::{Peer, last, unix};

/// Delay before the next accept after the system has run out of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);

/// Interval at which a closing ORB checks whether TCP handshakes with a listener are still in progress.
const HANDSHAKES: Duration = Duration::from_millis(10);

/// Maximum number of handshake checks. It bounds the time for which a half-open connection, whose peer may be
/// gone, keeps the listener open.
const MOST_HANDSHAKES: u32 = 25;

/// Maximum number of backlog connections that are accepted when the ORB closes. It is larger than a backlog,
/// but finite because clients may keep connecting.
const MOST_TURNED_AWAY: usize = 8192;

/// Connections that are accepted before the task yields, so that a client that keeps connecting cannot
/// monopolize the thread.
const IN_A_ROW: u32 = 16;

/// A socket on which an ORB accepts connections.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    /// A TCP listener that was handed in. Other processes may listen on the same socket, now or later.
    Given(TcpListener),
    /// A TCP listener whose connections use TLS.
    Tls(TcpListener),
    Unix(unix::Listener),
}

impl Listener {
    async fn accept(&self) -> std::io::Result<(TcpStream, Peer)> {
        match self {
            Self::Tcp(listener) | Self::Given(listener) | Self::Tls(listener) => {
                listener.accept().await.map(|(stream, address)| (stream, Peer::Tcp(address)))
            }
            Self::Unix(listener) => {
                listener.accept().await.map(|stream| (stream, Peer::Unix(listener.path().to_owned())))
            }
        }
    }
}

impl Listener {
    /// Accepts a connection from the backlog. Unlike [`accept`](Self::accept) it always asks the system,
    /// regardless of the readiness that the runtime has cached.
    fn accept_now(&self) -> std::io::Result<(TcpStream, Peer)> {
        let (socket, address) = match self {
            Self::Tcp(listener) | Self::Given(listener) | Self::Tls(listener) => {
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

/// Accepts the connections of one listener.
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

    /// Accepts connections until the ORB closes. Then it accepts and closes those that are left in the
    /// backlog.
    pub(crate) fn spawn(self) {
        let orb = Arc::clone(&self.orb);
        orb.tasks.listening.spawn(async move {
            let mut closed = pin!(self.orb.closing.wait());
            let mut in_a_row = 0;
            while !self.orb.closing.has_begun() {
                let accepted = tokio::select! {
                    accepted = self.listener.accept() => accepted,
                    () = &mut closed => break,
                };
                match accepted {
                    Ok((stream, peer)) => {
                        self.admit(stream, peer);
                        in_a_row += 1;
                        if in_a_row == IN_A_ROW {
                            in_a_row = 0;
                            tokio::task::yield_now().await;
                        }
                    }
                    Err(error) if concerns_one(&error) => {
                        tracing::debug!(target: "zorb", %error, "a connection was gone before it was accepted");
                        // Yield, so that a client that repeatedly aborts its connections does not delay other
                        // tasks.
                        tokio::task::yield_now().await;
                    }
                    Err(error) => {
                        tracing::warn!(target: "zorb", %error, "cannot accept a connection now");
                        tokio::select! {
                            () = tokio::time::sleep(OUT_OF_DESCRIPTORS) => {}
                            () = &mut closed => break,
                        }
                    }
                }
            }
            let ends = match &self.listener {
                Listener::Tcp(listener) | Listener::Tls(listener) if last::drop_new_syns(listener) => {
                    listener.local_addr().ok()
                }
                _ => None,
            };
            self.turn_away();
            if let Some(address) = ends {
                for _ in 0..MOST_HANDSHAKES {
                    tokio::time::sleep(HANDSHAKES).await;
                    let more = last::makes_connections(address.port()).await;
                    self.turn_away();
                    if !more {
                        break;
                    }
                }
            }
        });
    }

    /// Accepts all connections in the backlog. They are closed gracefully, like all connections that are
    /// accepted after the ORB has begun to close. If the listener were closed first, the system would reset
    /// them, and the clients could not tell whether a request that they sent was executed.
    fn turn_away(&self) {
        for _ in 0..MOST_TURNED_AWAY {
            match self.listener.accept_now() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if concerns_one(&error) => {}
                // The backlog is empty, or the system cannot accept now.
                Err(_) => break,
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: Peer) {
        let Self { orb, listener, limiter } = self;
        let (all, per_address) =
            (orb.config.server.max_connections, orb.config.server.max_connections_per_address);
        let secure = matches!(listener, Listener::Tls(_));
        let address = peer.address();
        let seat = match ConnectionLimiter::enter(limiter, address) {
            Ok((seat, displaces)) => {
                if displaces {
                    orb.counters.hit(Limit::Displaced);
                }
                seat
            }
            Err(limit) => {
                orb.counters.hit(limit);
                if !secure {
                    refuse(&stream);
                }
                if let Some(refused) = limiter.tell() {
                    tracing::warn!(
                        target: "zorb",
                        %peer,
                        refused,
                        "connections refused: over the limit of {all} connections, {per_address} from one address (OrbBuilder::max_connections)"
                    );
                }
                return;
            }
        };
        let thread = orb.sockets.threads().and_then(IoThreads::in_turn);
        let ready = transport::prepare(&stream)
            .and_then(|()| if address.is_some() { self.prepare(&stream) } else { Ok(()) });
        #[cfg(feature = "tls")]
        if secure && ready.is_ok() {
            return tls_handshake::admit(orb, stream, peer, seat);
        }
        let socket = ready.and_then(|()| orb.sockets.wrap(stream, &orb.pool, thread));
        let socket = match socket {
            Ok(socket) => socket,
            Err(error) => {
                tracing::debug!(target: "zorb", %peer, %error, "the connection was gone before it was served");
                return;
            }
        };
        let link = SharedConnection::new(socket, peer, orb.link_config(Role::Server), &orb.config.connection);
        seat.is_for(&link);
        orb.drive(&link, seat);
    }

    /// Sets the options of an accepted socket.
    fn prepare(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(stream);
        self.orb.notice_silence(&socket);
        if self.orb.accepts_bidirectional() { self.orb.keep_alive(&socket) } else { Ok(()) }
    }
}

impl Shared {
    /// Returns the GIOP configuration for connections of this ORB.
    pub(crate) fn link_config(&self, role: Role) -> Config {
        let mut config = Config::new(role, Arc::clone(&self.config.limits), Arc::clone(&self.pool));
        config.budget = Arc::clone(&self.budget);
        #[cfg(feature = "experiments")]
        {
            config.deposit = self.config.connection.deposit;
        }
        config.fragment_size = self.config.connection.fragment_size;
        config.unannounced = self.config.unannounced(Version::V1_2);
        config.streams = Some(Arc::clone(self.adapter()) as Arc<dyn Streams>);
        config
    }
}

/// Sends a rejected client CloseConnection, which says that none of its requests were executed. Clients that
/// use TLS see only the end of the stream.
fn refuse(stream: &TcpStream) {
    let header = MessageHeader::new(Version::V1_0, ByteOrder::Big, MessageType::CloseConnection);
    // The send buffer of a new socket always has capacity for one header. An error means that the peer is
    // gone.
    let _ = SockRef::from(stream).send(&header.encode());
}

/// Returns whether an error of accept concerns one connection only and the listener is usable: accept(2) also
/// reports network errors that are pending on the new connection. Other errors, such as a lack of descriptors
/// or memory, would recur immediately.
fn concerns_one(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let of_the_connection = [
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
    Errno::from_io_error(error).is_some_and(|errno| of_the_connection.contains(&errno))
}

#[cfg(test)]
mod tests {
    use crate::server::accept::concerns_one;

    #[test]
    fn only_a_lack_of_something_stops_the_listener_for_a_while() {
        let concerns = |errno: rustix::io::Errno| concerns_one(&errno.into());
        use rustix::io::Errno;
        assert!(
            [Errno::CONNABORTED, Errno::HOSTUNREACH, Errno::PROTO, Errno::INTR].into_iter().all(concerns)
        );
        assert!(
            ![Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::INVAL]
                .into_iter()
                .any(concerns)
        );
        assert!(!concerns_one(&std::io::Error::other("no error of the system")));
    }
}

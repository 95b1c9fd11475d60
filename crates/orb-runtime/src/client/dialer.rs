//! [`Dialer`], which opens connections to servers: look-up of host names, sockets, TLS, and timeouts.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use giop_codec::exception::{SystemException, minor};
use giop_proto::{Limit, Role};
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};

use crate::client::dial;
#[cfg(feature = "tls")]
use crate::client::tls_handshake;
use crate::connection::exclusive::ConnectionTarget;
use crate::connection::{SharedConnection, now};
use crate::endpoint::{AddressFamily, Endpoint, interleaved};
use crate::runtime::Shared;
use crate::transport::pipe::{PipeFaults, pipe};
use crate::transport::threads::IoThread;
use crate::transport::{Peer, Socket, unix};

pub(crate) type DialResult = Result<Arc<SharedConnection>, SystemException>;

pub(crate) enum ConnectionUse {
    Shared,
    Exclusive,
}

pub(crate) struct Dialer<'a> {
    pub(crate) orb: &'a Arc<Shared>,
    /// The I/O thread that drives the connection, if it has one.
    pub(crate) thread: Option<&'a Arc<IoThread>>,
    /// The deadline for trying all addresses.
    pub(crate) deadline: Option<Instant>,
}

impl Dialer<'_> {
    /// Opens a connection that carries one call at a time. `guard` is dropped when the connection ends.
    pub(crate) async fn open_exclusive(
        &self,
        target: &ConnectionTarget,
        guard: impl Send + 'static,
    ) -> DialResult {
        self.with_timeout(&target.endpoint, self.open(target, guard, ConnectionUse::Exclusive)).await?
    }

    /// Opens a connection without a timeout. `guard` is dropped when the connection ends. Over an
    /// exclusive connection, the server must not make callbacks.
    pub(crate) async fn open(
        &self,
        target: &ConnectionTarget,
        guard: impl Send + 'static,
        usage: ConnectionUse,
    ) -> DialResult {
        let ConnectionTarget { endpoint, .. } = target;
        let dialed = self.dial_endpoint(endpoint).await;
        let (socket, peer) = dialed.map_err(|error| connect_exception(endpoint, &error))?;
        let orb = self.orb;
        let mut config = orb.link_config(Role::Client);
        config.max_version = target.version;
        // An ORB that shuts down must not accept requests on new connections.
        config.accepts_requests = matches!(usage, ConnectionUse::Shared)
            && orb.offers_bidirectional(target.version)
            && !orb.closing.has_begun();
        let accepts_callbacks = config.accepts_requests;
        let link = SharedConnection::new(socket, peer, config, &orb.config.connection);
        if accepts_callbacks {
            orb.disable_idle_timeout(&link);
        }
        link.set_code_sets(target.code_sets);
        orb.drive(&link, guard);
        Ok(link)
    }

    /// Waits for a connection until the deadline of the call or the connect timeout, whichever is earlier.
    pub(crate) async fn with_timeout(
        &self,
        endpoint: &Endpoint,
        dialing: impl Future<Output = DialResult>,
    ) -> Result<DialResult, SystemException> {
        let limit = self.orb.config.client.connect_timeout;
        let left = self.deadline.map(|at| at.saturating_duration_since(now()));
        let timeout = left.map_or(limit, |left| left.min(limit));
        match tokio::time::timeout(timeout, dialing).await {
            Ok(outcome) => Ok(outcome),
            Err(_) if left.is_some_and(|left| left <= limit) => Err(SystemException::timeout()
                .with_minor(minor::TIMEOUT_REQUEST_END)
                .with_reason(format!("no connection to {endpoint} was open at the deadline of the call"))),
            Err(_) => {
                self.orb.counters.hit(Limit::ConnectTime);
                Err(unreachable(format!(
                    "no connection to {endpoint} could be opened within {limit:?} (OrbBuilder::connect_timeout)"
                )))
            }
        }
    }

    async fn dial_endpoint(&self, endpoint: &Endpoint) -> io::Result<(Socket, Peer)> {
        let orb = self.orb;
        match endpoint {
            Endpoint::Iiop { host, port } => {
                if let Some(network) = &orb.config.client.memory_network {
                    return network.connect(host).map(|pipe| (Socket::Pipe(pipe), Peer::Memory));
                }
                let (stream, address) = self.dial_host(host, *port).await?;
                Ok((orb.transport.wrap(stream, &orb.pool, self.thread)?, Peer::Tcp(address)))
            }
            #[cfg(feature = "tls")]
            Endpoint::Ssl { host, port } => {
                let (stream, address) = self.dial_host(host, *port).await?;
                Ok((tls_handshake::secure(orb, stream, host).await?, Peer::Tcp(address)))
            }
            #[cfg(not(feature = "tls"))]
            Endpoint::Ssl { .. } => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "TLS is not compiled in (feature `tls`)"))
            }
            Endpoint::Unix { path } => {
                let stream = unix::connect(Path::new(path), orb.config.connection.socket_buffer).await?;
                Ok((orb.transport.wrap(stream, &orb.pool, self.thread)?, Peer::Unix(path.into())))
            }
            Endpoint::ThisOrb => {
                let (near, far) = pipe(PipeFaults::default(), PipeFaults::default());
                let config = orb.link_config(Role::Server);
                let link =
                    SharedConnection::new(Socket::Pipe(far), Peer::Local, config, &orb.config.connection);
                orb.drive(&link, ());
                Ok((Socket::Pipe(near), Peer::Local))
            }
        }
    }

    async fn dial_host(&self, host: &str, port: u16) -> io::Result<(TcpStream, SocketAddr)> {
        let addresses = tokio::net::lookup_host((host, port)).await?;
        let addresses = interleaved(addresses, AddressFamily::of_address);
        let delay = dial::attempt_delay(addresses.len(), self.deadline);
        let dialed = dial::race(addresses, delay, |address| async move {
            self.dial_address(address).await.map(|stream| (stream, address)).map_err(|error| (address, error))
        });
        dialed.await.map_err(combine_errors)
    }

    async fn dial_address(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        let config = &self.orb.config.connection;
        if let Some(size) = config.socket_buffer {
            let size = u32::try_from(size).unwrap_or(u32::MAX);
            socket.set_recv_buffer_size(size)?;
            socket.set_send_buffer_size(size)?;
        }
        socket.set_nodelay(true)?;
        let options = SockRef::from(&socket);
        self.orb.set_user_timeout(&options);
        if self.orb.offers_bidirectional(config.max_version) {
            self.orb.enable_keepalive(&options)?;
        }
        socket.connect(address).await
    }
}

fn connect_exception(endpoint: &Endpoint, error: &io::Error) -> SystemException {
    #[cfg(feature = "tls")]
    if let Some(exception) = tls_handshake::exception_of(endpoint, error) {
        return exception;
    }
    unreachable(format!("cannot connect to {endpoint}: {error}"))
}

fn combine_errors(mut errors: Vec<(SocketAddr, io::Error)>) -> io::Error {
    let Some((_, last)) = errors.pop() else {
        return io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    };
    if errors.is_empty() {
        return last;
    }
    let kind = last.kind();
    let before = errors.iter().map(|(address, error)| format!("{address}: {error}; "));
    io::Error::new(kind, before.collect::<String>() + &format!("and {last}"))
}

pub(crate) fn unreachable(text: String) -> SystemException {
    SystemException::transient().with_minor(minor::TRANSIENT_NO_USABLE_PROFILE).with_reason(text)
}

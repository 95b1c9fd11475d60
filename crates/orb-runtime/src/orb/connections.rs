//! Outgoing connections: one that calls share for each runtime in which they are driven, address, version and pair of code
//! sets, and those that calls have for themselves.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use giop_codec::Version;
use giop_codec::cdr::CodeSets;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_proto::Role;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use super::OrbCore;
use super::alone::Alone;
use crate::link::Link;
use crate::transport::threads::IoThread;
use crate::transport::{Peer, Socket};

/// Where to connect, and what is agreed with whom is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) version: Version,
    pub(crate) code_sets: CodeSets,
}

pub(super) type Key = (tokio::runtime::Id, Target);
type Cell = OnceCell<Arc<Link>>;

/// A connection's entry among those that are shared, until its driver ends.
struct Entered {
    core: Weak<OrbCore>,
    key: Key,
    cell: Weak<Cell>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let (Some(core), Some(cell)) = (self.core.upgrade(), self.cell.upgrade()) {
            core.connections.forget(&self.key, &cell);
        }
    }
}

/// The connections that calls share.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<HashMap<Key, Arc<Cell>>>,
    pub(super) alone: Alone,
}

impl OrbCore {
    /// A usable connection to the target: one that is there, or a new one. Callers that ask at the same time share it.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        target: &Target,
        deadline: Option<Instant>,
    ) -> Result<Arc<Link>, SystemException> {
        if self.is_closing() {
            return Err(closed());
        }
        let (key, thread) = self.place(target)?;
        loop {
            let cell = Arc::clone(self.connections.lock().entry(key.clone()).or_default());
            let link = cell.get_or_try_init(|| self.dial_shared(&key, &cell, thread, deadline)).await;
            match link {
                Ok(link) if link.is_usable() => return Ok(Arc::clone(link)),
                Ok(_) => self.connections.forget(&key, &cell),
                Err(error) => {
                    self.connections.forget(&key, &cell);
                    return Err(error);
                }
            }
        }
    }

    async fn dial_shared(
        self: &Arc<Self>,
        key: &Key,
        cell: &Arc<Cell>,
        thread: Option<&Arc<IoThread>>,
        deadline: Option<Instant>,
    ) -> Result<Arc<Link>, SystemException> {
        let (core, key) = (Arc::downgrade(self), key.clone());
        let target = key.1.clone();
        self.dial(&target, thread, Entered { core, key, cell: Arc::downgrade(cell) }, deadline).await
    }

    /// Where a connection for the caller is driven, and what is shared by all callers for whom that is so.
    pub(super) fn place(&self, target: &Target) -> Result<(Key, Option<&Arc<IoThread>>), SystemException> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| no_runtime())?.id();
        let thread = self.sockets.threads().and_then(|threads| threads.for_calls(runtime, target));
        let runtime = thread.map_or(runtime, |thread| thread.runtime().id());
        Ok(((runtime, target.clone()), thread))
    }

    /// A new connection. `guest` is kept until it ends.
    pub(super) async fn dial(
        self: &Arc<Self>,
        target: &Target,
        thread: Option<&Arc<IoThread>>,
        guest: impl Send + 'static,
        deadline: Option<Instant>,
    ) -> Result<Arc<Link>, SystemException> {
        let Target { host, port, .. } = target;
        let limit = self.config.connect_timeout;
        let left = deadline.map(|at| at.saturating_duration_since(crate::link::now()));
        let dialing = self.dial_any(host, *port, thread);
        let within = left.map_or(limit, |left| left.min(limit));
        match tokio::time::timeout(within, dialing).await {
            Ok(Ok((socket, peer))) => {
                let mut config = self.link_config(Role::Client);
                config.max_version = target.version;
                let link = Link::new(socket, peer, config, &self.config);
                link.set_code_sets(target.code_sets);
                self.drive(&link, guest);
                Ok(link)
            }
            Ok(Err(error)) => Err(unreachable(host, *port, &error)),
            Err(_) if left.is_some_and(|left| left <= limit) => Err(SystemException::new(
                SystemExceptionKind::Timeout,
                minor::TIMEOUT_REQUEST_END,
                CompletionStatus::No,
            )
            .because(format!("no connection to {host}:{port} before the call's deadline"))),
            Err(_) => Err(transient(format!(
                "no connection to {host}:{port} within {} (OrbBuilder::connect_timeout)",
                seconds(limit)
            ))),
        }
    }

    /// Tries the addresses of the host in turn.
    async fn dial_any(
        &self,
        host: &str,
        port: u16,
        thread: Option<&Arc<IoThread>>,
    ) -> std::io::Result<(Socket, Peer)> {
        if let Some(network) = &self.config.memory {
            return network.connect(host).map(|pipe| (Socket::Pipe(pipe), Peer::Memory));
        }
        let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the host name has no address");
        for address in tokio::net::lookup_host((host, port)).await? {
            match self.dial_one(address).await {
                Ok(stream) => {
                    return Ok((self.sockets.wrap(stream, &self.pool, thread)?, Peer::Tcp(address)));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn dial_one(&self, address: SocketAddr) -> std::io::Result<TcpStream> {
        let socket = match address {
            SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4()?,
            SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6()?,
        };
        if let Some(octets) = self.config.socket_buffer {
            let octets = u32::try_from(octets).unwrap_or(u32::MAX);
            socket.set_recv_buffer_size(octets)?;
            socket.set_send_buffer_size(octets)?;
        }
        socket.set_nodelay(true)?;
        socket.connect(address).await
    }
}

impl Connections {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Cell>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, key: &Key, cell: &Arc<Cell>) {
        let mut open = self.lock();
        if open.get(key).is_some_and(|current| Arc::ptr_eq(current, cell)) {
            open.remove(key);
        }
    }
}

fn unreachable(host: &str, port: u16, error: &std::io::Error) -> SystemException {
    transient(format!("cannot connect to {host}:{port}: {error}"))
}

fn transient(text: String) -> SystemException {
    SystemException::new(
        SystemExceptionKind::Transient,
        minor::TRANSIENT_NO_USABLE_PROFILE,
        CompletionStatus::No,
    )
    .because(text)
}

/// A call after the shutdown.
pub(crate) fn closed() -> SystemException {
    SystemException::new(
        SystemExceptionKind::BadInvOrder,
        minor::BAD_INV_ORDER_SHUTDOWN,
        CompletionStatus::No,
    )
    .because("the ORB has shut down")
}

fn no_runtime() -> SystemException {
    SystemException::new(
        SystemExceptionKind::Initialize,
        giop_codec::exception::MinorCode::NONE,
        CompletionStatus::No,
    )
    .because("calls need a tokio runtime; from a plain thread use zorb::blocking::wait")
}

/// A duration for people.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{duration:?}")
}

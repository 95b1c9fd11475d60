//! The byte streams of connections: TCP, TLS, Unix sockets, and an in-memory pipe for tests.
//!
//! OrbTransport and the pipe are read and written when they are ready. An io_uring ([`uring`]) instead takes
//! ownership of buffers and reports completed reads and writes later: see `connection::ring`.

#[cfg(not(windows))]
mod calls;
#[cfg(windows)]
#[path = "calls_windows.rs"]
mod calls;
pub(crate) mod close_listener;
#[cfg(not(all(feature = "tls", feature = "uring", target_os = "linux")))]
mod disabled;
pub(crate) mod faults;
#[cfg(unix)]
mod low_water;
mod outcome;
pub(crate) mod pipe;
mod tcp;
pub(crate) mod threads;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(unix)]
pub(crate) mod unix;
#[cfg(all(feature = "uring", target_os = "linux"))]
pub(crate) mod uring;

use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use giop_codec::Printable;
use giop_proto::outbox::Transmit;
use giop_proto::pool::BufferPool;
use giop_proto::receive::ReadBuf;
#[cfg(unix)]
use rustix::fd::AsFd;
use tokio::net::TcpStream;

pub(crate) use calls::prevent_sigpipe;
#[cfg(not(feature = "tls"))]
pub(crate) use disabled::tls;
#[cfg(not(unix))]
pub(crate) use disabled::unix;
#[cfg(not(all(feature = "uring", target_os = "linux")))]
pub(crate) use disabled::uring;
pub(crate) use outcome::{Progress, ReadCompletion, RingRead, drop_loans, shut_down};

use crate::lock::lock;
use crate::tls::TlsSession;
use crate::transport::threads::{IoThread, IoThreads};
use crate::transport::tls::TlsSocket;
use crate::transport::uring::{RingHandle, UringSocket};

/// The peer of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// A TCP endpoint.
    Tcp(SocketAddr),
    /// A process on this machine. The path is that of the Unix socket on which the server listens.
    Unix(PathBuf),
    /// The other end of an in-memory pipe.
    Memory,
    /// This process, for calls whose servant is in the same process.
    Local,
}

impl Peer {
    pub(crate) fn ip_address(&self) -> Option<std::net::IpAddr> {
        match self {
            Self::Tcp(address) => Some(address.ip()),
            Self::Unix(_) | Self::Memory | Self::Local => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "uiop://{}", Printable::new(&path.to_string_lossy())),
            Self::Memory => f.write_str("in-memory pipe"),
            Self::Local => f.write_str("this process"),
        }
    }
}

/// The I/O mechanism of an ORB's connections: see `OrbBuilder::transport`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Transport {
    /// tokio waits until a socket is ready. Each read and each write is then a system call.
    #[default]
    Epoll,
    /// Each tokio runtime has an io_uring. This requires the feature `uring`, Linux 5.17 and a current_thread
    /// runtime. If one is missing, connections use [`Epoll`](Self::Epoll), and a warning is logged.
    IoUring,
    /// The ORB has this number of threads (at least one), each with an io_uring, for multi-threaded runtimes.
    ///
    /// * The first connection starts the threads. They end with `Orb::shutdown` or the drop of the ORB.
    /// * Connections are distributed over the threads. They can be used from any runtime and thread.
    /// * Servants run on these threads. A servant that takes long delays other connections. Tasks that
    ///   servants spawn end with the ORB. Servants that are activated as `spawned` or `blocking` run in the
    ///   runtime in which the ORB was built.
    /// * If the threads cannot be started, connections use epoll, and a warning is logged.
    IoUringThreads(usize),
}

/// The counters of an ORB's transports: see `Orb::transport_stats`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportStats {
    /// Connections that use an io_uring.
    pub ring_connections: u64,
    /// Connections for which io_uring was requested but not available.
    pub fallbacks: u64,
    /// Sends and receives that were submitted to io_urings.
    pub submissions: u64,
    /// Calls of `io_uring_enter` for the rings of these connections, also on behalf of other ORBs.
    pub enter_calls: u64,
    /// Running threads of [`Transport::IoUringThreads`].
    pub threads: usize,
    /// Established TLS sessions, in both directions.
    pub tls_sessions: u64,
    /// TLS handshakes that failed, timed out or were cancelled, in both directions.
    pub tls_failures: u64,
    /// Clients that were rejected because they sent plain IIOP to a TLS port.
    pub tls_plaintext: u64,
    /// Clients that were rejected because they sent TLS to a port of plain IIOP.
    pub tls_misdirected: u64,
    /// Clients that were rejected because of the maximum number of concurrent handshakes.
    pub tls_rejected_by_limit: u64,
}

#[derive(Debug, Default)]
pub(crate) struct TlsCounters {
    pub(crate) sessions: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) plaintext: AtomicU64,
    pub(crate) misdirected: AtomicU64,
    pub(crate) rejected_by_limit: AtomicU64,
}

/// The configured transport of an ORB, its counters, and its threads.
#[derive(Debug, Default)]
pub(crate) struct OrbTransport {
    transport: Transport,
    ring_connections: AtomicU64,
    fallbacks: AtomicU64,
    submissions: Arc<AtomicU64>,
    enter_calls: Mutex<Vec<Arc<AtomicU64>>>,
    pub(crate) tls: TlsCounters,
    /// Set by the first connection. `None` if the threads could not be started.
    threads: OnceLock<Option<IoThreads>>,
}

impl OrbTransport {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { transport, ..Self::default() }
    }

    /// Returns the threads of the ORB, if they are configured. Starts them on the first call.
    pub(crate) fn threads(&self) -> Option<&IoThreads> {
        let Transport::IoUringThreads(count) = self.transport else { return None };
        let start = || match IoThreads::start(count.max(1)) {
            Ok(threads) => Some(threads),
            Err(reason) => {
                tracing::warn!(target: "zorb", %reason, "cannot start threads with an io_uring: connections use epoll");
                None
            }
        };
        self.threads.get_or_init(start).as_ref()
    }

    pub(crate) fn started_threads(&self) -> Option<&IoThreads> {
        self.threads.get().and_then(Option::as_ref)
    }

    /// Wraps a connected stream in the configured transport. Its driver must run on `thread`, if any.
    pub(crate) fn wrap(
        &self,
        stream: TcpStream,
        pool: &Arc<BufferPool>,
        thread: Option<&Arc<IoThread>>,
    ) -> io::Result<Socket> {
        match (self.transport, thread) {
            (Transport::Epoll, _) => Ok(Socket::Tcp(stream)),
            (Transport::IoUring, _) => {
                self.wrap_for_ring(stream, pool, RingHandle::of_current_runtime(), None)
            }
            (Transport::IoUringThreads(_), Some(thread)) => {
                self.wrap_for_ring(stream, pool, thread.ring(), Some(thread))
            }
            (Transport::IoUringThreads(_), None) => {
                // A warning was logged when the threads could not be started.
                self.fallbacks.fetch_add(1, Ordering::Relaxed);
                Ok(Socket::Tcp(stream))
            }
        }
    }

    #[cold]
    fn wrap_for_ring(
        &self,
        stream: TcpStream,
        pool: &Arc<BufferPool>,
        ring: io::Result<RingHandle>,
        thread: Option<&Arc<IoThread>>,
    ) -> io::Result<Socket> {
        match ring {
            Ok(ring) => {
                self.ring_connections.fetch_add(1, Ordering::Relaxed);
                let mut enter_calls = lock(&self.enter_calls);
                if !enter_calls.iter().any(|known| Arc::ptr_eq(known, ring.enter_calls())) {
                    enter_calls.push(Arc::clone(ring.enter_calls()));
                }
                drop(enter_calls);
                UringSocket::new(ring, stream, pool, &self.submissions, thread.cloned()).map(Socket::Uring)
            }
            Err(reason) => {
                if self.fallbacks.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::warn!(target: "zorb", %reason, "cannot use io_uring: connections use epoll");
                }
                Ok(Socket::Tcp(stream))
            }
        }
    }

    pub(crate) fn stats(&self) -> TransportStats {
        let enter_calls = lock(&self.enter_calls);
        TransportStats {
            ring_connections: self.ring_connections.load(Ordering::Relaxed),
            fallbacks: self.fallbacks.load(Ordering::Relaxed),
            submissions: self.submissions.load(Ordering::Relaxed),
            enter_calls: enter_calls.iter().map(|count| count.load(Ordering::Relaxed)).sum(),
            threads: self.started_threads().map_or(0, IoThreads::running_count),
            tls_sessions: self.tls.sessions.load(Ordering::Relaxed),
            tls_failures: self.tls.failed.load(Ordering::Relaxed),
            tls_plaintext: self.tls.plaintext.load(Ordering::Relaxed),
            tls_misdirected: self.tls.misdirected.load(Ordering::Relaxed),
            tls_rejected_by_limit: self.tls.rejected_by_limit.load(Ordering::Relaxed),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Socket {
    /// A TCP or Unix socket.
    Tcp(TcpStream),
    Pipe(pipe::PipeEnd),
    Uring(UringSocket),
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only the feature `tls` creates values"))]
    Tls(Box<TlsSocket>),
}

impl Socket {
    /// Reads once. Returns `Ok(None)` if nothing is available, and `Ok(Some(0))` at the end of the stream.
    #[inline]
    pub(crate) fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        match self {
            Self::Tcp(stream) => tcp::try_read(stream, buf),
            Self::Pipe(pipe) => pipe.try_read(buf),
            Self::Tls(tls) => tls.try_read(buf),
            // A ring reads only into buffers that it owns.
            Self::Uring(_) => Ok(None),
        }
    }

    /// Reads until bytes arrive or `max_time` has passed, without tokio's readiness. Reads a pipe once.
    pub(crate) fn spin_read(&self, buf: &mut ReadBuf, max_time: Duration) -> io::Result<Option<usize>> {
        match self {
            Self::Tcp(stream) => tcp::spin_read(stream, buf, max_time),
            Self::Pipe(pipe) => pipe.try_read(buf),
            Self::Tls(tls) => tls.spin_read(buf, max_time),
            Self::Uring(_) => Ok(None),
        }
    }

    /// Writes until everything is written or the socket blocks.
    #[inline]
    pub(crate) fn try_write(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        match self {
            Self::Tcp(stream) => tcp::try_write(stream, transmit),
            Self::Pipe(pipe) => pipe.try_write(transmit),
            Self::Tls(tls) => tls.try_write(transmit),
            Self::Uring(_) => Ok(Progress::Blocked),
        }
    }

    #[inline]
    pub(crate) fn ring(&self) -> Option<&UringSocket> {
        match self {
            Self::Uring(ring) => Some(ring),
            Self::Tcp(_) | Self::Pipe(_) | Self::Tls(_) => None,
        }
    }

    /// Returns the ORB's thread to which the socket belongs, if it does not belong to a runtime.
    pub(crate) fn thread(&self) -> Option<&Arc<IoThread>> {
        self.ring().and_then(UringSocket::thread)
    }

    /// Writes like [`try_write`](Self::try_write), but does not ask tokio whether the socket is ready.
    pub(crate) fn write_now(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        match self {
            Self::Tcp(stream) => tcp::write_now(stream, transmit),
            Self::Pipe(pipe) => pipe.try_write(transmit),
            Self::Tls(tls) => tls.write_now(transmit),
            Self::Uring(_) => Ok(Progress::Blocked),
        }
    }

    /// Returns whether a thread can block in [`wait`](Self::wait).
    pub(crate) fn can_block(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Tls(_))
    }

    /// Blocks the thread until the socket is readable or writable, as requested, or `max_time` has passed.
    pub(crate) fn wait(&self, read: bool, write: bool, max_time: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => tcp::wait(stream, read, write, max_time),
            Self::Tls(tls) => tls.wait(read, write, max_time),
            Self::Pipe(_) | Self::Uring(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(crate) fn shut_down_write(&self) {
        match self {
            Self::Tcp(stream) => shut_down(stream, Shutdown::Write),
            Self::Pipe(pipe) => pipe.shut_down_write(),
            Self::Uring(ring) => ring.shut_down_write(),
            Self::Tls(tls) => tls.shut_down_write(),
        }
    }

    /// Shuts down both directions. For the peer, this is like closing the socket.
    pub(crate) fn shut_down_socket(&self) {
        match self {
            Self::Tcp(stream) => shut_down(stream, Shutdown::Both),
            Self::Pipe(pipe) => pipe.shut_down_socket(),
            Self::Uring(ring) => ring.close(),
            Self::Tls(tls) => tls.shut_down_socket(),
        }
    }

    #[inline]
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Pipe(pipe) => pipe.poll_read_ready(cx),
            Self::Uring(ring) => ring.poll_read_ready(cx),
            Self::Tls(tls) => tls.poll_read_ready(cx),
        }
    }

    /// Makes the socket readable only when this number of bytes is available, or at the end of the stream.
    #[cold]
    pub(crate) fn set_low_water(&self, bytes: usize) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Tcp(stream) => low_water::set(stream.as_fd(), bytes),
            // Windows does not have this option.
            #[cfg(not(unix))]
            Self::Tcp(_) => Ok(()),
            Self::Uring(ring) => ring.set_low_water(bytes),
            // With TLS, some of the expected bytes may be in an incomplete record that was already read. The
            // socket might then never become readable. A pipe has no such option.
            Self::Pipe(_) | Self::Tls(_) => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(cx),
            Self::Pipe(pipe) => pipe.poll_write_ready(cx),
            Self::Uring(_) => Poll::Ready(Ok(())),
            Self::Tls(tls) => tls.poll_write_ready(cx),
        }
    }

    pub(crate) fn tls_session(&self) -> Option<&Arc<TlsSession>> {
        match self {
            Self::Tls(tls) => Some(tls.session()),
            Self::Tcp(_) | Self::Pipe(_) | Self::Uring(_) => None,
        }
    }
}

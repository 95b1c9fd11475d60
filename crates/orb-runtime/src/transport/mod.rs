//! Byte streams between two GIOP machines: TCP, Unix sockets, and an in-memory pipe for tests.
//!
//! Sockets and the pipe are asked to read and write when they are ready. A ring ([`uring`]) is given buffers, and says later what
//! became of them: `link::ring` deals with that.

#[cfg(not(windows))]
mod calls;
#[cfg(windows)]
#[path = "calls_windows.rs"]
mod calls;
pub(crate) mod last;
#[cfg(unix)]
mod low_water;
pub(crate) mod pipe;
mod tcp;
pub(crate) mod threads;
#[cfg(feature = "tls")]
pub(crate) mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_absent.rs"]
pub(crate) mod tls;
#[cfg(unix)]
pub(crate) mod unix;
#[cfg(not(unix))]
#[path = "unix_absent.rs"]
pub(crate) mod unix;
#[cfg(all(feature = "uring", target_os = "linux"))]
pub(crate) mod uring;
#[cfg(not(all(feature = "uring", target_os = "linux")))]
#[path = "uring/absent.rs"]
pub(crate) mod uring;

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use giop_codec::Printable;
use giop_proto::outbox::Transmit;
use giop_proto::pool::BufferPool;
use giop_proto::receive::{PIECE_HEADER_LEN, ReadBuf};
#[cfg(unix)]
use rustix::fd::AsFd;
use threads::{IoThread, IoThreads};
use tls::TlsSocket;
use tokio::net::TcpStream;
use uring::{RingHandle, UringSocket};

use crate::tls::TlsSession;

/// The other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// A TCP endpoint.
    Tcp(SocketAddr),
    /// A process on this machine, by the Unix socket on which the server of the two listens.
    Unix(PathBuf),
    /// The other end of an in-memory pipe.
    Memory,
    /// This process: a collocated call.
    Local,
}

impl Peer {
    /// Its address, where connections from one address are counted together.
    pub(crate) fn address(&self) -> Option<std::net::IpAddr> {
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

/// How the connections of an ORB are read and written: see `OrbBuilder::transport`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Transport {
    /// Readiness by tokio, then a system call for each read and write.
    #[default]
    Epoll,
    /// An io_uring in each runtime: the kernel finishes reads and writes by itself. It needs the feature `uring`, Linux 5.17 and
    /// a current_thread runtime; without these, connections are made as with [`Epoll`](Self::Epoll), and a warning is logged.
    IoUring,
    /// The same for runtimes with several threads: the ORB starts so many threads of its own (at least one) with its first
    /// connection, each with an io_uring. Connections are spread over them, and calls go to them from any runtime and thread.
    /// They end with `Orb::shutdown`, or after the ORB was dropped. Where they can not be had, connections use epoll in the
    /// runtimes of their users, and a warning is logged.
    ///
    /// Servants run on these threads, so those that take long stop other connections, and tasks that they spawn end with the
    /// ORB. Servants that are activated as `spawned` or `blocking` run in the runtime in which the ORB was built.
    IoUringThreads(usize),
}

/// What the transport of an ORB counted. See `Orb::transport_stats`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportStats {
    /// Connections that went to an io_uring.
    pub ring_connections: u64,
    /// Connections for which io_uring was asked for and not to be had.
    pub fallbacks: u64,
    /// Operations that were given to io_urings: sends, receives and waits for a header.
    pub submissions: u64,
    /// System calls by which the io_urings that these connections use were given operations, those of other ORBs of the same
    /// runtime included.
    pub enters: u64,
    /// Threads of the ORB's own that run now: see [`Transport::IoUringThreads`].
    pub threads: usize,
    /// TLS sessions that were made, in both directions.
    pub tls_sessions: u64,
    /// Handshakes that failed, took too long or were given up, in both directions.
    pub tls_failures: u64,
    /// Clients that were sent away because they spoke plain IIOP to a port for TLS.
    pub tls_plaintext: u64,
    /// Clients that were sent away because they spoke TLS to a port of plain IIOP.
    pub tls_misdirected: u64,
    /// Clients that were sent away because too many handshakes were under way.
    pub tls_shed: u64,
}

/// What TLS counts: see [`TransportStats`].
#[derive(Debug, Default)]
pub(crate) struct TlsCounts {
    pub(crate) sessions: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) plaintext: AtomicU64,
    pub(crate) misdirected: AtomicU64,
    pub(crate) shed: AtomicU64,
}

/// Where the statistics are counted, and how sockets are made.
#[derive(Debug)]
pub(crate) struct Sockets {
    transport: Transport,
    ring_connections: AtomicU64,
    fallbacks: AtomicU64,
    submissions: Arc<AtomicU64>,
    /// The counts of all rings that were used.
    enters: Mutex<Vec<Arc<AtomicU64>>>,
    pub(crate) tls: TlsCounts,
    /// Started by the first connection; `None`: they can not be had.
    threads: OnceLock<Option<IoThreads>>,
}

/// What there is to take from the reading side of a ring's connection.
#[cfg_attr(not(all(feature = "uring", target_os = "linux")), expect(dead_code, reason = "nobody has a ring"))]
pub(crate) enum RingRead {
    /// Nothing is under way.
    Idle,
    /// The kernel is at work.
    Pending,
    /// A read into the buffer is over; 0 octets: the end of the stream.
    Read(ReadBuf, io::Result<usize>),
    /// The first octets of what follows.
    Early([u8; PIECE_HEADER_LEN], usize),
    /// Nothing follows, or reading failed.
    Ended(io::Result<()>),
}

/// When a read into a buffer of a ring's connection is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtATime {
    /// With whatever there is.
    Any,
    /// When as much is there as the socket was told to wait for.
    LowWater,
    /// When a message that is deposited is there whole, and behind it one header; of others, with whatever there is.
    Whole,
}

impl Sockets {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            ring_connections: AtomicU64::new(0),
            fallbacks: AtomicU64::new(0),
            submissions: Arc::default(),
            enters: Mutex::default(),
            tls: TlsCounts::default(),
            threads: OnceLock::new(),
        }
    }

    /// The ORB's threads, if it is to have any.
    pub(crate) fn threads(&self) -> Option<&IoThreads> {
        let Transport::IoUringThreads(count) = self.transport else { return None };
        let start = || match IoThreads::start(count.max(1)) {
            Ok(threads) => Some(threads),
            Err(reason) => {
                tracing::warn!(target: "zorb", %reason, "no threads with an io_uring: connections use epoll");
                None
            }
        };
        self.threads.get_or_init(start).as_ref()
    }

    /// The same, without starting them.
    pub(crate) fn started_threads(&self) -> Option<&IoThreads> {
        self.threads.get().and_then(Option::as_ref)
    }

    /// Wraps a connected stream, whose driver then runs on `thread` if there is one.
    pub(crate) fn wrap(
        &self,
        stream: TcpStream,
        pool: &Arc<BufferPool>,
        thread: Option<&Arc<IoThread>>,
    ) -> io::Result<Socket> {
        match (self.transport, thread) {
            (Transport::Epoll, _) => Ok(Socket::Tcp(stream)),
            (Transport::IoUring, _) => self.wrap_for_ring(stream, pool, RingHandle::here(), None),
            (Transport::IoUringThreads(_), Some(thread)) => {
                self.wrap_for_ring(stream, pool, thread.ring(), Some(thread))
            }
            (Transport::IoUringThreads(_), None) => {
                // It was logged when they were to be started.
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
                self.count_enters(ring.enters());
                UringSocket::new(ring, stream, pool, &self.submissions, thread.cloned()).map(Socket::Uring)
            }
            Err(reason) => {
                if self.fallbacks.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::warn!(target: "zorb", %reason, "no io_uring: connections use epoll");
                }
                Ok(Socket::Tcp(stream))
            }
        }
    }

    fn count_enters(&self, of: &Arc<AtomicU64>) {
        let mut enters = self.enters.lock().unwrap_or_else(PoisonError::into_inner);
        if !enters.iter().any(|known| Arc::ptr_eq(known, of)) {
            enters.push(Arc::clone(of));
        }
    }

    pub(crate) fn stats(&self) -> TransportStats {
        let enters = self.enters.lock().unwrap_or_else(PoisonError::into_inner);
        TransportStats {
            ring_connections: self.ring_connections.load(Ordering::Relaxed),
            fallbacks: self.fallbacks.load(Ordering::Relaxed),
            submissions: self.submissions.load(Ordering::Relaxed),
            enters: enters.iter().map(|count| count.load(Ordering::Relaxed)).sum(),
            threads: self.started_threads().map_or(0, IoThreads::running),
            tls_sessions: self.tls.sessions.load(Ordering::Relaxed),
            tls_failures: self.tls.failed.load(Ordering::Relaxed),
            tls_plaintext: self.tls.plaintext.load(Ordering::Relaxed),
            tls_misdirected: self.tls.misdirected.load(Ordering::Relaxed),
            tls_shed: self.tls.shed.load(Ordering::Relaxed),
        }
    }
}

/// How far a write came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All of it is written.
    Done,
    /// The socket takes no more now.
    Blocked,
}

/// A connected stream.
#[derive(Debug)]
pub(crate) enum Socket {
    /// TCP, or a Unix socket.
    Tcp(TcpStream),
    Pipe(pipe::PipeEnd),
    Uring(UringSocket),
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "nobody has a session"))]
    Tls(Box<TlsSocket>),
}

/// Sets what every accepted socket needs, of whatever family.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    calls::prepare(stream)
}

/// Ends a direction of a socket.
pub(crate) fn shut_down(stream: &TcpStream, way: Shutdown) {
    // One that is gone already needs no telling.
    let _ = socket2::SockRef::from(stream).shutdown(way);
}

impl Socket {
    /// Reads once. `Ok(None)`: nothing there; `Ok(Some(0))`: the end of the stream.
    #[inline]
    pub(crate) fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        match self {
            Self::Tcp(stream) => tcp::try_read(stream, buf),
            Self::Pipe(pipe) => pipe.try_read(buf),
            Self::Tls(tls) => tls.try_read(buf),
            // It reads into what it is given.
            Self::Uring(_) => Ok(None),
        }
    }

    /// Asks again and again for up to `longest`, whatever tokio thinks of the socket. As [`try_read`](Self::try_read).
    pub(crate) fn spin_read(&self, buf: &mut ReadBuf, longest: Duration) -> io::Result<Option<usize>> {
        match self {
            Self::Tcp(stream) => tcp::spin_read(stream, buf, longest),
            Self::Pipe(pipe) => pipe.try_read(buf),
            Self::Tls(tls) => tls.spin_read(buf, longest),
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

    /// Whether reads and writes are given to a ring, which wakes the driver when they are over.
    #[inline]
    pub(crate) fn ring(&self) -> Option<&UringSocket> {
        match self {
            Self::Uring(ring) => Some(ring),
            Self::Tcp(_) | Self::Pipe(_) | Self::Tls(_) => None,
        }
    }

    /// The thread to which the socket belongs; `None`: it belongs to the runtime in which it was made.
    pub(crate) fn thread(&self) -> Option<&Arc<IoThread>> {
        self.ring().and_then(UringSocket::thread)
    }

    /// As [`try_write`](Self::try_write), whatever tokio thinks of the socket.
    pub(crate) fn write_now(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        match self {
            Self::Tcp(stream) => tcp::write_now(stream, transmit),
            Self::Pipe(pipe) => pipe.try_write(transmit),
            Self::Tls(tls) => tls.write_now(transmit),
            Self::Uring(_) => Ok(Progress::Blocked),
        }
    }

    /// Whether a thread can wait on it.
    pub(crate) fn can_wait(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Tls(_))
    }

    /// Lets the thread sleep until the socket can be read or written, as asked for, or `longest` is over.
    pub(crate) fn wait(&self, read: bool, write: bool, longest: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => tcp::wait(stream, read, write, longest),
            Self::Tls(tls) => tls.wait(read, write, longest),
            Self::Pipe(_) | Self::Uring(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Tells the peer that nothing follows.
    pub(crate) fn shut_down_write(&self) {
        match self {
            Self::Tcp(stream) => shut_down(stream, Shutdown::Write),
            Self::Pipe(pipe) => pipe.shut_down_write(),
            Self::Uring(ring) => ring.shut_down_write(),
            Self::Tls(tls) => tls.shut_down_write(),
        }
    }

    /// Ends both directions, as if the socket were closed: whoever reads at the other end, or sends, is told so.
    pub(crate) fn hang_up(&self) {
        match self {
            Self::Tcp(stream) => shut_down(stream, Shutdown::Both),
            Self::Pipe(pipe) => pipe.hang_up(),
            Self::Uring(ring) => ring.close(),
            Self::Tls(tls) => tls.hang_up(),
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

    /// Lets the socket become readable only once so many octets are there, or its end.
    #[cold]
    pub(crate) fn set_low_water(&self, octets: usize) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Tcp(stream) => low_water::set(stream.as_fd(), octets),
            // The system has no such option.
            #[cfg(not(unix))]
            Self::Tcp(_) => Ok(()),
            Self::Uring(ring) => ring.set_low_water(octets),
            // Of what is missing, some may be here already, in a record that is not whole: nobody would be woken.
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

    /// What TLS found out about the peer.
    pub(crate) fn session(&self) -> Option<&Arc<TlsSession>> {
        match self {
            Self::Tls(tls) => Some(tls.session()),
            Self::Tcp(_) | Self::Pipe(_) | Self::Uring(_) => None,
        }
    }
}

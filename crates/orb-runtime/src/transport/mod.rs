//! Byte streams between two GIOP machines: TCP, and an in-memory pipe for tests.
//!
//! A transport reads into a buffer that is lent to it and writes octets that it owns until the write is done, so
//! readiness-based and completion-based ones fit behind the same three methods.

mod low_water;
pub(crate) mod pipe;
mod tcp;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::task::{Context, Poll};
use std::time::Duration;

use giop_proto::outbox::Transmit;
use giop_proto::receive::ReadBuf;
use tokio::net::TcpStream;

/// The other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Peer {
    /// A TCP endpoint.
    Tcp(SocketAddr),
    /// The other end of an in-memory pipe.
    Memory,
    /// This process: a collocated call.
    Local,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Memory => f.write_str("in-memory pipe"),
            Self::Local => f.write_str("this process"),
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
    Tcp(TcpStream),
    Pipe(pipe::PipeEnd),
}

impl Socket {
    /// Reads once. `Ok(None)`: nothing there; `Ok(Some(0))`: the end of the stream.
    #[inline]
    pub(crate) fn try_read(&self, buf: &mut ReadBuf) -> io::Result<Option<usize>> {
        match self {
            Self::Tcp(stream) => tcp::try_read(stream, buf),
            Self::Pipe(pipe) => pipe.try_read(buf),
        }
    }

    /// Asks again and again for up to `longest`, whatever tokio thinks of the socket. As [`try_read`](Self::try_read).
    pub(crate) fn spin_read(&self, buf: &mut ReadBuf, longest: Duration) -> io::Result<Option<usize>> {
        match self {
            Self::Tcp(stream) => tcp::spin_read(stream, buf, longest),
            Self::Pipe(pipe) => pipe.try_read(buf),
        }
    }

    /// Writes until everything is written or the socket blocks.
    #[inline]
    pub(crate) fn try_write(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        match self {
            Self::Tcp(stream) => tcp::try_write(stream, transmit),
            Self::Pipe(pipe) => pipe.try_write(transmit),
        }
    }

    /// As [`try_write`](Self::try_write), whatever tokio thinks of the socket.
    pub(crate) fn write_now(&self, transmit: &mut Transmit) -> io::Result<Progress> {
        match self {
            Self::Tcp(stream) => tcp::write_now(stream, transmit),
            Self::Pipe(pipe) => pipe.try_write(transmit),
        }
    }

    /// Whether a thread can wait on it.
    pub(crate) fn can_wait(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Lets the thread sleep until the socket can be read or written, as asked for, or `longest` is over.
    pub(crate) fn wait(&self, read: bool, write: bool, longest: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => tcp::wait(stream, read, write, longest),
            Self::Pipe(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Tells the peer that nothing follows.
    pub(crate) fn shut_down_write(&self) {
        match self {
            // A socket that is gone already needs no telling.
            Self::Tcp(stream) => drop(socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write)),
            Self::Pipe(pipe) => pipe.shut_down_write(),
        }
    }

    #[inline]
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Pipe(pipe) => pipe.poll_read_ready(cx),
        }
    }

    /// Lets the socket become readable only once so many octets are there, or its end.
    #[cold]
    pub(crate) fn set_low_water(&self, octets: usize) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => low_water::set(stream.as_fd(), octets),
            Self::Pipe(_) => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(cx),
            Self::Pipe(pipe) => pipe.poll_write_ready(cx),
        }
    }
}

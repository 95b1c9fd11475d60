//! System calls that read and write connected sockets, on Unix.

use std::io::{IoSlice, IoSliceMut};

use rustix::fd::AsFd;
use rustix::io::Result;
use rustix::net::SendFlags;
use tokio::net::TcpStream;

/// Prevents SIGPIPE if the peer has closed the connection. Apple's systems do not have this flag.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// Sets the socket option that prevents SIGPIPE on Apple's systems. Does nothing on other systems.
pub(crate) fn prevent_sigpipe(stream: &TcpStream) -> std::io::Result<()> {
    #[cfg(target_vendor = "apple")]
    socket2::SockRef::from(stream).set_nosigpipe(true)?;
    let _ = stream;
    Ok(())
}

#[inline]
pub(super) fn read(stream: &TcpStream, into: &mut [u8]) -> Result<usize> {
    rustix::io::read(stream.as_fd(), into)
}

#[inline]
pub(super) fn read_vectored(stream: &TcpStream, into: &mut [IoSliceMut<'_>]) -> Result<usize> {
    rustix::io::readv(stream.as_fd(), into)
}

#[inline]
pub(super) fn write(stream: &TcpStream, bytes: &[u8]) -> Result<usize> {
    rustix::net::send(stream.as_fd(), bytes, SEND_FLAGS)
}

#[inline]
pub(super) fn write_vectored(stream: &TcpStream, slices: &[IoSlice<'_>]) -> Result<usize> {
    rustix::io::writev(stream.as_fd(), slices)
}

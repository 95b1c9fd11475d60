//! System calls that read and write connected sockets, on Windows.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};

use rustix::io::{Errno, Result};
use socket2::SockRef;
use tokio::net::TcpStream;

/// Does nothing, because Windows has no SIGPIPE.
pub(crate) fn prevent_sigpipe(_: &TcpStream) -> io::Result<()> {
    Ok(())
}

pub(super) fn read(stream: &TcpStream, into: &mut [u8]) -> Result<usize> {
    (&*SockRef::from(stream)).read(into).map_err(errno)
}

pub(super) fn read_vectored(stream: &TcpStream, into: &mut [IoSliceMut<'_>]) -> Result<usize> {
    (&*SockRef::from(stream)).read_vectored(into).map_err(errno)
}

pub(super) fn write(stream: &TcpStream, bytes: &[u8]) -> Result<usize> {
    (&*SockRef::from(stream)).write(bytes).map_err(errno)
}

pub(super) fn write_vectored(stream: &TcpStream, slices: &[IoSlice<'_>]) -> Result<usize> {
    (&*SockRef::from(stream)).write_vectored(slices).map_err(errno)
}

#[cold]
fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
}

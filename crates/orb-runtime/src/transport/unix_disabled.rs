//! Replacement of Unix sockets on systems where tokio does not support them. None can be created, so most of
//! this never runs.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use socket2::{SockAddr, Socket};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Listener(Infallible);

#[derive(Debug)]
pub(crate) struct SocketFile(Infallible);

impl Listener {
    pub(crate) fn new(_: OwnedFd, file: SocketFile) -> io::Result<Self> {
        match file.0 {}
    }

    pub(crate) async fn accept(&self) -> io::Result<TcpStream> {
        match self.0 {}
    }

    pub(crate) fn accept_now(&self) -> io::Result<(Socket, SockAddr)> {
        match self.0 {}
    }

    pub(crate) fn path(&self) -> &Path {
        match self.0 {}
    }
}

pub(crate) fn bind(_: &Path, _: Option<u32>, _: Option<usize>) -> io::Result<(OwnedFd, SocketFile)> {
    Err(unsupported())
}

pub(crate) async fn connect(_: &Path, _: Option<usize>) -> io::Result<TcpStream> {
    Err(unsupported())
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "Unix sockets are not supported on this system")
}

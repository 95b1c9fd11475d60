//! Sockets that an ORB is to listen on.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;

use super::BuildError;
use crate::transport::unix::{self as sockets, SocketFile};

/// A socket that listens and is not served yet.
pub(super) enum Bound {
    /// With the host as written.
    Tcp(String, std::net::TcpListener),
    /// With the host that it is bound to: one that was handed in.
    Given(String, std::net::TcpListener),
    /// With the host as written, for TLS.
    Tls(String, std::net::TcpListener),
    /// With its path.
    Unix(String, OwnedFd, SocketFile),
}

/// Binds `uiop://PATH`.
pub(super) fn unix(
    endpoint: &str,
    path: &str,
    mode: Option<u32>,
    buffer: Option<usize>,
) -> Result<Bound, BuildError> {
    let malformed = |reason: &str| BuildError::Endpoint { endpoint: endpoint.into(), reason: reason.into() };
    if path.is_empty() {
        return Err(malformed("it has no path"));
    }
    if path.contains(['\0', '|', ',']) {
        return Err(malformed("its path has a character that references can not say"));
    }
    let fail = |source| BuildError::Listen { endpoint: endpoint.into(), source };
    let path = std::path::absolute(path).map_err(fail)?;
    let (socket, file) = sockets::bind(&path, mode, buffer).map_err(fail)?;
    let path = path.into_os_string().into_string().map_err(|_| malformed("its directory is no UTF-8"))?;
    Ok(Bound::Unix(path, socket, file))
}

/// `HOST:PORT` of an endpoint with TLS: `ssliop://HOST:PORT`, or the same without slashes.
pub(super) fn secure_address(endpoint: &str) -> Option<&str> {
    let address = endpoint.strip_prefix("ssliop:")?;
    Some(address.strip_prefix("//").unwrap_or(address))
}

/// Binds the `HOST:PORT` of an endpoint; gives the host as written.
pub(super) fn tcp(
    endpoint: &str,
    address: &str,
    buffer: Option<usize>,
) -> Result<(String, std::net::TcpListener), BuildError> {
    let malformed = |reason: &str| BuildError::Endpoint { endpoint: endpoint.into(), reason: reason.into() };
    let (host, port) = address.rsplit_once(':').ok_or_else(|| malformed("it has no port"))?;
    let port: u16 = port.parse().map_err(|_| malformed("its port is no number up to 65535"))?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let fail = |source| BuildError::Listen { endpoint: endpoint.into(), source };
    let bind_to = if bare.is_empty() { "0.0.0.0" } else { bare };
    let addresses: Vec<SocketAddr> = (bind_to, port).to_socket_addrs().map_err(fail)?.collect();
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match open(address, buffer) {
            Ok(listener) => return Ok((bare.to_owned(), listener)),
            Err(error) => last = error,
        }
    }
    Err(fail(last))
}

fn open(address: SocketAddr, buffer: Option<usize>) -> std::io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if let Some(octets) = buffer {
        socket.set_recv_buffer_size(octets)?;
        socket.set_send_buffer_size(octets)?;
    }
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

//! The sockets on which an ORB listens.

use std::net::{SocketAddr, ToSocketAddrs};

use giop_codec::Printable;
use rustix::fd::OwnedFd;
use tokio::net::TcpListener;

use crate::config::{BuildError, Config};
use crate::endpoint::Endpoint;
use crate::server::accept::Listener;
use crate::server::published_address as publish;
use crate::server::published_address::{Listening, Surroundings};
use crate::transport::unix as sockets;
use crate::transport::unix::SocketFile;

/// A listening socket that is not served yet.
pub(crate) enum Bound {
    /// TCP, with the host as written.
    Tcp(String, std::net::TcpListener),
    /// A socket that was handed in, with the host to which it is bound.
    Given(String, std::net::TcpListener),
    /// TCP with TLS, with the host as written.
    Tls(String, std::net::TcpListener),
    /// A Unix socket, with its path.
    Unix(String, OwnedFd, SocketFile),
}

impl Bound {
    /// Returns whether its traffic can be read by others on the network.
    #[cfg(feature = "csi")]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Tcp(..) | Self::Given(..))
    }
}

/// The endpoints that the builder was given.
#[derive(Debug, Default)]
pub(crate) struct ListenConfig {
    pub(crate) endpoints: Vec<String>,
    /// Sockets that were handed in.
    pub(crate) listeners: Vec<std::net::TcpListener>,
    /// Templates of the published addresses.
    pub(crate) publish: Vec<String>,
    /// The file mode of Unix sockets.
    pub(crate) unix_mode: Option<u32>,
}

impl ListenConfig {
    /// Binds all configured endpoints.
    pub(crate) fn bind(&mut self, config: &Config) -> Result<Vec<Bound>, BuildError> {
        let mut listeners = Vec::new();
        let buffer = config.connection.socket_buffer;
        for endpoint in &self.endpoints {
            listeners.push(match endpoint.strip_prefix("uiop://") {
                Some(path) => unix(endpoint, path, self.unix_mode, buffer)?,
                None => match secure_address(endpoint) {
                    Some(address) => {
                        check_tls(config, endpoint)?;
                        let (host, listener) = tcp(endpoint, address, buffer)?;
                        Bound::Tls(host, listener)
                    }
                    None => {
                        let address = endpoint.strip_prefix("iiop://");
                        let malformed = || BuildError::Endpoint {
                            endpoint: endpoint.clone(),
                            reason: "it starts with neither iiop:// nor ssliop:// nor uiop://".to_owned(),
                        };
                        let (host, listener) = tcp(endpoint, address.ok_or_else(malformed)?, buffer)?;
                        Bound::Tcp(host, listener)
                    }
                },
            });
        }
        for listener in self.listeners.drain(..) {
            let shown = || format!("{listener:?}");
            let fail = |source| BuildError::Listen { endpoint: shown(), source };
            listener.set_nonblocking(true).map_err(fail)?;
            let local = listener.local_addr().map_err(fail)?;
            listeners.push(Bound::Given(local.ip().to_string(), listener));
        }
        Ok(listeners)
    }
}

fn check_tls(config: &Config, endpoint: &str) -> Result<(), BuildError> {
    let reason = match &config.tls {
        Some(tls) if tls.has_identity() => return Ok(()),
        Some(_) => "TLS has no certificate to show (TlsBuilder::identity)",
        None if cfg!(feature = "tls") => "there is no TLS for it (OrbBuilder::tls)",
        None => "TLS is not compiled in (feature `tls`)",
    };
    Err(BuildError::Endpoint { endpoint: endpoint.to_owned(), reason: reason.to_owned() })
}

/// Registers the sockets with the runtime. Returns the endpoints that references name, and the listeners.
pub(crate) fn open(
    bound: Vec<Bound>,
    templates: &[String],
) -> Result<(Vec<Endpoint>, Vec<Listener>), BuildError> {
    let around = Surroundings::here();
    let (mut plain, mut secure, mut endpoints, mut listeners) = (vec![], vec![], vec![], vec![]);
    for bound in bound {
        let (host, socket, listener): (_, _, fn(TcpListener) -> Listener) = match bound {
            Bound::Tcp(host, socket) => (host, socket, Listener::Tcp),
            Bound::Given(host, socket) => (host, socket, Listener::Given),
            Bound::Tls(host, socket) => (host, socket, Listener::Tls),
            Bound::Unix(path, socket, file) => {
                let fail = |source| BuildError::Listen { endpoint: path.clone(), source };
                listeners.push(Listener::Unix(sockets::Listener::new(socket, file).map_err(fail)?));
                endpoints.push(Endpoint::Unix { path });
                continue;
            }
        };
        let fail = |source| BuildError::Listen { endpoint: host.clone(), source };
        let local = socket.local_addr().map_err(fail)?;
        let listener = listener(TcpListener::from_std(socket).map_err(fail)?);
        let at = Listening { host, local };
        if matches!(listener, Listener::Tls(_)) {
            secure.push(at);
        } else {
            if templates.is_empty() {
                let (host, port) = at.published(&around);
                endpoints.push(Endpoint::Iiop { host, port });
            }
            plain.push(at);
        }
        listeners.push(listener);
    }
    if !listeners.is_empty() {
        publish(templates, &plain, &secure, &around, &mut endpoints)?;
    }
    plain.append(&mut secure);
    for found in publish::unroutable(&endpoints, &plain, !templates.is_empty()) {
        tracing::warn!(
            target: "zorb",
            host = %Printable::new(&found.host),
            "references name an address by which clients may not get here: {found} (OrbBuilder::publish says another)"
        );
    }
    Ok((endpoints, listeners))
}

/// Adds the addresses from the templates, those without TLS first.
fn publish(
    templates: &[String],
    plain: &[Listening],
    secure: &[Listening],
    around: &Surroundings<'_>,
    endpoints: &mut Vec<Endpoint>,
) -> Result<(), BuildError> {
    let published = |templates: &[String], sockets: &[Listening]| {
        publish::published(templates, sockets, around)
            .map_err(|(template, reason)| BuildError::Publish { template, reason })
    };
    let (for_tls, templates): (Vec<String>, Vec<String>) =
        templates.iter().cloned().partition(|text| text.starts_with("ssliop:"));
    let for_tls: Vec<String> =
        for_tls.iter().filter_map(|text| secure_address(text)).map(str::to_owned).collect();
    let others = published(&templates, plain)?;
    let mut by_tls = published(&for_tls, secure)?;
    if for_tls.is_empty() {
        // A template with a port of its own means a port without TLS.
        by_tls = published(&templates, secure)?;
        by_tls.retain(|address| !others.contains(address));
    }
    if by_tls.is_empty() {
        by_tls = secure.iter().map(|socket| socket.published(around)).collect();
    }
    endpoints.extend(by_tls.into_iter().map(|(host, port)| Endpoint::Ssl { host, port }));
    let others = others.into_iter().map(|(host, port)| Endpoint::Iiop { host, port });
    endpoints.splice(..0, others);
    Ok(())
}

/// Binds `uiop://PATH`.
fn unix(endpoint: &str, path: &str, mode: Option<u32>, buffer: Option<usize>) -> Result<Bound, BuildError> {
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

/// Returns `HOST:PORT` of an endpoint with TLS: `ssliop://HOST:PORT`, or the same without slashes.
fn secure_address(endpoint: &str) -> Option<&str> {
    let address = endpoint.strip_prefix("ssliop:")?;
    Some(address.strip_prefix("//").unwrap_or(address))
}

/// Binds the `HOST:PORT` of an endpoint. Returns the host as written.
fn tcp(
    endpoint: &str,
    address: &str,
    buffer: Option<usize>,
) -> Result<(String, std::net::TcpListener), BuildError> {
    let malformed = |reason: &str| BuildError::Endpoint { endpoint: endpoint.into(), reason: reason.into() };
    let (host, port) = address.rsplit_once(':').ok_or_else(|| malformed("it has no port"))?;
    let ports = ports(port)
        .ok_or_else(|| malformed("its port is no number up to 65535, nor a range FIRST-LAST of these"))?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let fail = |source| BuildError::Listen { endpoint: endpoint.into(), source };
    let bind_to = if bare.is_empty() { "0.0.0.0" } else { bare };
    let addresses: Vec<SocketAddr> = (bind_to, 0).to_socket_addrs().map_err(fail)?.collect();
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for port in ports {
        for mut address in addresses.iter().copied() {
            address.set_port(port);
            match listen(address, buffer) {
                Ok(listener) => return Ok((bare.to_owned(), listener)),
                Err(error) => last = error,
            }
        }
        // Only a port in use justifies trying the next one.
        if last.kind() != std::io::ErrorKind::AddrInUse {
            break;
        }
    }
    Err(fail(last))
}

/// Parses a port, or a range of ports: `FIRST-LAST`.
fn ports(text: &str) -> Option<std::ops::RangeInclusive<u16>> {
    let Some((first, last)) = text.split_once('-') else { return text.parse().ok().map(|port| port..=port) };
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (0 < first && first <= last).then_some(first..=last)
}

fn listen(address: SocketAddr, buffer: Option<usize>) -> std::io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    // On Windows the option would let other processes take the port.
    #[cfg(not(windows))]
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

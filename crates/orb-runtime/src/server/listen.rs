//! The sockets on which an ORB listens.

use std::net::{SocketAddr, ToSocketAddrs};

use giop_codec::Printable;
use rustix::fd::OwnedFd;
use tokio::net::TcpListener;

use crate::config::{BuildError, Config};
use crate::endpoint::Endpoint;
use crate::server::accept::Listener;
use crate::server::published_address as publish;
use crate::server::published_address::{ListeningSocket, PublishContext};
use crate::transport::unix as unix_sockets;
use crate::transport::unix::SocketFile;

/// A listening socket that does not accept connections yet, with its host or the path of its Unix socket.
pub(crate) enum BoundSocket {
    Tcp(String, std::net::TcpListener),
    /// A TCP socket that the program provided, with the address to which it is bound.
    Provided(String, std::net::TcpListener),
    Tls(String, std::net::TcpListener),
    Unix(String, OwnedFd, SocketFile),
}

impl BoundSocket {
    #[cfg(feature = "csi")]
    pub(crate) fn is_plaintext(&self) -> bool {
        matches!(self, Self::Tcp(..) | Self::Provided(..))
    }
}

#[derive(Debug, Default)]
pub(crate) struct ListenConfig {
    pub(crate) endpoints: Vec<String>,
    /// Sockets that the program provided.
    pub(crate) listeners: Vec<std::net::TcpListener>,
    /// Templates of the published addresses.
    pub(crate) publish_templates: Vec<String>,
    pub(crate) unix_mode: Option<u32>,
}

impl ListenConfig {
    pub(crate) fn bind(&mut self, config: &Config) -> Result<Vec<BoundSocket>, BuildError> {
        let mut listeners = Vec::new();
        let buffer_bytes = config.connection.socket_buffer;
        for endpoint in &self.endpoints {
            if let Some(path) = endpoint.strip_prefix("uiop://") {
                listeners.push(bind_unix(endpoint, path, self.unix_mode, buffer_bytes)?);
            } else if let Some(address) = secure_address(endpoint) {
                check_tls(config, endpoint)?;
                let (host, listener) = bind_tcp(endpoint, address, buffer_bytes)?;
                listeners.push(BoundSocket::Tls(host, listener));
            } else {
                let malformed = || BuildError::Endpoint {
                    endpoint: endpoint.clone(),
                    reason: "it does not start with iiop://, ssliop:// or uiop://".to_owned(),
                };
                let address = endpoint.strip_prefix("iiop://").ok_or_else(malformed)?;
                let (host, listener) = bind_tcp(endpoint, address, buffer_bytes)?;
                listeners.push(BoundSocket::Tcp(host, listener));
            }
        }
        for listener in self.listeners.drain(..) {
            let fail = |source| BuildError::Listen { endpoint: format!("{listener:?}"), source };
            listener.set_nonblocking(true).map_err(fail)?;
            let local = listener.local_addr().map_err(fail)?;
            listeners.push(BoundSocket::Provided(local.ip().to_string(), listener));
        }
        Ok(listeners)
    }
}

fn check_tls(config: &Config, endpoint: &str) -> Result<(), BuildError> {
    let reason = match &config.tls {
        Some(tls) if tls.has_identity() => return Ok(()),
        Some(_) => "TLS is configured without a certificate (TlsBuilder::identity)",
        None if cfg!(feature = "tls") => "TLS is not configured (OrbBuilder::tls)",
        None => "TLS is not compiled in (feature `tls`)",
    };
    Err(BuildError::Endpoint { endpoint: endpoint.to_owned(), reason: reason.to_owned() })
}

/// Registers the sockets with the runtime. Returns the endpoints for references, and the listeners.
pub(crate) fn prepare_listeners(
    bound: Vec<BoundSocket>,
    templates: &[String],
) -> Result<(Vec<Endpoint>, Vec<Listener>), BuildError> {
    let context = PublishContext::of_process();
    let (mut plain, mut secure, mut endpoints, mut listeners) = (vec![], vec![], vec![], vec![]);
    for bound in bound {
        let (host, socket, listener): (_, _, fn(TcpListener) -> Listener) = match bound {
            BoundSocket::Tcp(host, socket) => (host, socket, Listener::Tcp),
            BoundSocket::Provided(host, socket) => (host, socket, Listener::Provided),
            BoundSocket::Tls(host, socket) => (host, socket, Listener::Tls),
            BoundSocket::Unix(path, socket, file) => {
                let fail = |source| BuildError::Listen { endpoint: path.clone(), source };
                listeners.push(Listener::Unix(unix_sockets::Listener::new(socket, file).map_err(fail)?));
                endpoints.push(Endpoint::Unix { path });
                continue;
            }
        };
        let fail = |source| BuildError::Listen { endpoint: host.clone(), source };
        let local = socket.local_addr().map_err(fail)?;
        let listener = listener(TcpListener::from_std(socket).map_err(fail)?);
        let listening = ListeningSocket { host, local };
        if matches!(listener, Listener::Tls(_)) {
            secure.push(listening);
        } else {
            if templates.is_empty() {
                let (host, port) = listening.published_address(&context);
                endpoints.push(Endpoint::Iiop { host, port });
            }
            plain.push(listening);
        }
        listeners.push(listener);
    }
    if !listeners.is_empty() {
        add_published_addresses(templates, &plain, &secure, &context, &mut endpoints)?;
    }
    plain.append(&mut secure);
    for found in publish::find_unroutable(&endpoints, &plain, !templates.is_empty()) {
        tracing::warn!(
            target: "zorb",
            host = %Printable::new(&found.host),
            "references contain an address at which clients may be unable to reach this server: {found} (configure another one with OrbBuilder::publish)"
        );
    }
    Ok((endpoints, listeners))
}

/// Adds the addresses from the templates to the endpoints: addresses without TLS at the start, and addresses
/// with TLS at the end. TLS sockets that no template concerns are published with their own addresses.
fn add_published_addresses(
    templates: &[String],
    plain: &[ListeningSocket],
    secure: &[ListeningSocket],
    context: &PublishContext<'_>,
    endpoints: &mut Vec<Endpoint>,
) -> Result<(), BuildError> {
    let published = |templates: &[String], sockets: &[ListeningSocket]| {
        publish::published_addresses(templates, sockets, context)
            .map_err(|(template, reason)| BuildError::Publish { template, reason })
    };
    let (tls_templates, templates): (Vec<String>, Vec<String>) =
        templates.iter().cloned().partition(|text| text.starts_with("ssliop:"));
    let tls_templates: Vec<String> =
        tls_templates.iter().filter_map(|text| secure_address(text)).map(str::to_owned).collect();
    let plaintext_addresses = published(&templates, plain)?;
    let mut tls_addresses = published(&tls_templates, secure)?;
    if tls_templates.is_empty() {
        // A template that contains a port refers to a port without TLS.
        tls_addresses = published(&templates, secure)?;
        tls_addresses.retain(|address| !plaintext_addresses.contains(address));
    }
    if tls_addresses.is_empty() {
        tls_addresses = secure.iter().map(|socket| socket.published_address(context)).collect();
    }
    endpoints.extend(tls_addresses.into_iter().map(|(host, port)| Endpoint::Ssl { host, port }));
    let plaintext_addresses =
        plaintext_addresses.into_iter().map(|(host, port)| Endpoint::Iiop { host, port });
    endpoints.splice(..0, plaintext_addresses);
    Ok(())
}

fn bind_unix(
    endpoint: &str,
    path: &str,
    mode: Option<u32>,
    buffer_bytes: Option<usize>,
) -> Result<BoundSocket, BuildError> {
    let malformed = |reason: &str| BuildError::Endpoint { endpoint: endpoint.into(), reason: reason.into() };
    if path.is_empty() {
        return Err(malformed("it has no path"));
    }
    if path.contains(['\0', '|', ',']) {
        return Err(malformed("its path contains a character that references cannot contain"));
    }
    let fail = |source| BuildError::Listen { endpoint: endpoint.into(), source };
    let path = std::path::absolute(path).map_err(fail)?;
    let (socket, file) = unix_sockets::bind(&path, mode, buffer_bytes).map_err(fail)?;
    let path =
        path.into_os_string().into_string().map_err(|_| malformed("its directory is not valid UTF-8"))?;
    Ok(BoundSocket::Unix(path, socket, file))
}

/// Returns `HOST:PORT` of an endpoint with TLS: `ssliop://HOST:PORT`, or the same without slashes.
fn secure_address(endpoint: &str) -> Option<&str> {
    let address = endpoint.strip_prefix("ssliop:")?;
    Some(address.strip_prefix("//").unwrap_or(address))
}

/// Binds a TCP socket to the `HOST:PORT` of an endpoint. Returns the host as the endpoint names it.
fn bind_tcp(
    endpoint: &str,
    address: &str,
    buffer_bytes: Option<usize>,
) -> Result<(String, std::net::TcpListener), BuildError> {
    let malformed = |reason: &str| BuildError::Endpoint { endpoint: endpoint.into(), reason: reason.into() };
    let (host, port) = address.rsplit_once(':').ok_or_else(|| malformed("it has no port"))?;
    let ports = parse_ports(port)
        .ok_or_else(|| malformed("its port is neither a number up to 65535 nor a range FIRST-LAST"))?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let fail = |source| BuildError::Listen { endpoint: endpoint.into(), source };
    let bind_to = if bare.is_empty() { "0.0.0.0" } else { bare };
    let addresses: Vec<SocketAddr> = (bind_to, 0).to_socket_addrs().map_err(fail)?.collect();
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for port in ports {
        for mut address in addresses.iter().copied() {
            address.set_port(port);
            match listen(address, buffer_bytes) {
                Ok(listener) => return Ok((bare.to_owned(), listener)),
                Err(error) => last = error,
            }
        }
        // Try the next port only if this one is in use.
        if last.kind() != std::io::ErrorKind::AddrInUse {
            break;
        }
    }
    Err(fail(last))
}

/// Parses a port, or a range of ports: `FIRST-LAST`.
fn parse_ports(text: &str) -> Option<std::ops::RangeInclusive<u16>> {
    let Some((first, last)) = text.split_once('-') else { return text.parse().ok().map(|port| port..=port) };
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (0 < first && first <= last).then_some(first..=last)
}

fn listen(address: SocketAddr, buffer_bytes: Option<usize>) -> std::io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    // On Windows, the option would let other processes bind the same port.
    #[cfg(not(windows))]
    socket.set_reuse_address(true)?;
    if let Some(size) = buffer_bytes {
        socket.set_recv_buffer_size(size)?;
        socket.set_send_buffer_size(size)?;
    }
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

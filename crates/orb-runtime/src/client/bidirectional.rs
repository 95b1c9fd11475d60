//! Callbacks to clients over connections that they have opened ("Bi-directional IIOP"), on both sides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use giop_codec::exception::SystemException;
use giop_codec::giop::{BiDirIiopServiceContext, ListenPoint, MAX_LISTEN_POINTS, ServiceContext};
use giop_codec::{EncodeError, Version};
use socket2::{SockRef, TcpKeepalive};

use crate::config::CallbackRule;
use crate::connection::SharedConnection;
use crate::endpoint::{Endpoint, Route};
use crate::runtime::Shared;

/// The minimum number of addresses at which those without a connection are removed.
const MIN_CLEANUP_SIZE: usize = 4096;

/// An idle timeout of ten years, which never expires in practice.
const NO_IDLE_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The idle time before the first TCP keepalive probe, and the interval between probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(60);

/// The connections over which clients are called back, by the address that the client announced.
#[derive(Debug, Default)]
pub(crate) struct Bidirectional {
    routes: Mutex<BidirRoutes>,
}

#[derive(Debug, Default)]
struct BidirRoutes {
    by_point: HashMap<ListenPoint, BidirRoute>,
    /// The number of addresses at which those without a connection are removed next.
    cleanup_size: usize,
}

/// The connection of an address. The entry remains after the connection has ended, until the next cleanup,
/// because calls to the address must fail, rather than open a new connection.
#[derive(Debug)]
struct BidirRoute {
    link: Weak<SharedConnection>,
    runtime: Option<tokio::runtime::Id>,
}

impl Bidirectional {
    fn lock(&self) -> std::sync::MutexGuard<'_, BidirRoutes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(
        &self,
        point: &ListenPoint,
    ) -> Option<(Option<Arc<SharedConnection>>, Option<tokio::runtime::Id>)> {
        self.lock().by_point.get(point).map(|route| (route.link.upgrade(), route.runtime))
    }

    /// Inserts the address unless it belongs to an open connection. Returns whether it was inserted.
    fn insert(&self, point: ListenPoint, link: &Arc<SharedConnection>) -> bool {
        let runtime = tokio::runtime::Handle::try_current().ok().map(|runtime| runtime.id());
        let route = BidirRoute { link: Arc::downgrade(link), runtime };
        let mut routes = self.lock();
        let known = routes.by_point.get(&point).and_then(|route| route.link.upgrade());
        if known.as_ref().is_some_and(|link| link.is_usable()) {
            return false;
        }
        if routes.by_point.len() >= routes.cleanup_size {
            routes.by_point.retain(|_, route| route.link.strong_count() > 0);
            routes.cleanup_size = MIN_CLEANUP_SIZE.max(2 * routes.by_point.len());
        }
        routes.by_point.insert(point, route);
        drop(routes);
        true
    }
}

impl Shared {
    /// Returns whether this ORB permits callbacks from servers that it calls in this GIOP version.
    pub(crate) fn offers_bidirectional(&self, version: Version) -> bool {
        let offers = self.config.client.offers_bidirectional || self.adapter().has_bidirectional_poas();
        offers && version >= Version::V1_2
    }

    /// Returns the service context that permits callbacks, for the first requests of a connection.
    pub(crate) fn bidirectional_context(&self) -> Result<ServiceContext, EncodeError> {
        let points = self.endpoints.iter().filter_map(|endpoint| match endpoint {
            Endpoint::Iiop { host, port } | Endpoint::Ssl { host, port } => {
                Some(ListenPoint::new(host, *port))
            }
            Endpoint::Unix { .. } | Endpoint::ThisOrb => None,
        });
        BiDirIiopServiceContext { listen_points: points.take(MAX_LISTEN_POINTS).collect() }
            .to_service_context()
    }

    /// Disables the idle timeout of a connection that carries callbacks, unless the user has configured one.
    pub(crate) fn disable_idle_timeout(&self, link: &SharedConnection) {
        if self.config.limits.idle_timeout.is_none() {
            link.set_idle_timeout(NO_IDLE_TIMEOUT);
        }
    }

    /// Enables TCP keepalive on a connection that carries callbacks, to detect unreachable peers.
    pub(crate) fn enable_keepalive(&self, socket: &SockRef<'_>) -> std::io::Result<()> {
        let probes = TcpKeepalive::new().with_time(KEEPALIVE_INTERVAL).with_interval(KEEPALIVE_INTERVAL);
        socket.set_tcp_keepalive(&probes)
    }

    /// Lets the operating system end the connection if the peer's host acknowledges or accepts nothing for
    /// `Limits::write_timeout`. By default, the system retransmits to an unreachable host for about 15
    /// minutes, and all calls over the connection time out.
    pub(crate) fn set_user_timeout(&self, socket: &SockRef<'_>) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            // Ignore an error, because without this option the system only waits longer.
            let _ = rustix::net::sockopt::set_tcp_user_timeout(
                &**socket,
                user_timeout(self.config.limits.write_timeout),
            );
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = socket;
    }

    pub(crate) fn accepts_bidirectional(&self) -> bool {
        self.config.server.bidirectional.0.is_some()
    }

    /// Registers the addresses that a client has announced on its connection, if the callback rule allows
    /// them. Skips an address that belongs to another open connection.
    #[cold]
    pub(crate) fn accept_listen_points(&self, link: &Arc<SharedConnection>) {
        let CallbackRule(Some(allows)) = &self.config.server.bidirectional else { return };
        let routes = &self.connection_pool().bidirectional;
        for point in link.peer_listen_points() {
            let owner = routes.find(&point).and_then(|(link, _)| link);
            let free = !owner.is_some_and(|link| link.is_usable());
            if free && allows(link.peer(), &point.host, point.port) && routes.insert(point, link) {
                self.disable_idle_timeout(link);
            }
        }
    }

    /// Returns the connection of the client that has announced an address of this route, so that its objects
    /// are called over this connection. Returns `None` if a new connection must be opened. Fails with
    /// TRANSIENT if the connection of the client has ended.
    pub(crate) fn callback_connection(
        &self,
        route: &Route,
    ) -> Result<Option<Arc<SharedConnection>>, SystemException> {
        let Route { profile, endpoints } = route;
        if self.config.server.bidirectional.0.is_none()
            || profile.version.min(self.config.connection.max_version) < Version::V1_2
        {
            return Ok(None);
        }
        let mut ended = None;
        for endpoint in endpoints {
            let secure = matches!(endpoint, Endpoint::Ssl { .. });
            let (Endpoint::Iiop { host, port } | Endpoint::Ssl { host, port }) = endpoint else { continue };
            let point = ListenPoint { host: host.clone(), port: *port };
            let Some((link, runtime)) = self.connection_pool().bidirectional.find(&point) else { continue };
            match link.filter(|link| link.allows_callbacks()) {
                // An object whose reference requires TLS is not called over a plaintext connection.
                Some(link) if secure && link.tls_session().is_none() => {}
                Some(link) if link.serves_callers_of(runtime) => return Ok(Some(link)),
                Some(_) => {}
                None => ended = Some(point),
            }
        }
        match ended {
            None => Ok(None),
            Some(ListenPoint { host, port }) => Err(SystemException::transient().with_reason(format!(
                "the connection for callbacks to the client at {host}:{port} has ended"
            ))),
        }
    }
}

/// Returns a timeout in milliseconds for TCP_USER_TIMEOUT. The maximum is that of an `int` (about 24 days),
/// and the minimum is 1, because 0 means the system's default.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn user_timeout(limit: Duration) -> u32 {
    limit.as_millis().clamp(1, i32::MAX as u128) as u32
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::Orb;

    #[test]
    fn keepalive_is_enabled_with_its_interval() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Orb::builder().core.build_core(Vec::new()).enable_keepalive(&SockRef::from(&stream)).unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_INTERVAL);
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn user_timeout_is_the_write_timeout_within_the_range_of_the_system() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for (limit, timeout_ms) in
            [(Duration::ZERO, 1), (Duration::from_secs(30), 30_000), (Duration::MAX, i32::MAX as u32)]
        {
            let mut limits = giop_proto::Limits::default();
            limits.write_timeout = limit;
            Orb::builder()
                .limits(limits)
                .core
                .build_core(Vec::new())
                .set_user_timeout(&SockRef::from(&stream));
            assert_eq!(rustix::net::sockopt::tcp_user_timeout(&stream).unwrap(), timeout_ms);
        }
    }
}

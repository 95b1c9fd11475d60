//! Bidirectional IIOP, on both sides: callbacks to clients over the connections that they opened
//! ("Bi-directional IIOP").

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

/// Minimum number of addresses at which those without a connection are removed.
const REMEMBERED: usize = 4096;

/// An idle timeout that never expires in practice: ten years.
const QUIET: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Idle time before the first TCP keepalive probe, and between probes.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

/// The connections to call clients back over, by address.
#[derive(Debug, Default)]
pub(crate) struct Bidirectional {
    routes: Mutex<BidirRoutes>,
}

#[derive(Debug, Default)]
struct BidirRoutes {
    by_point: HashMap<ListenPoint, BidirRoute>,
    /// The number of addresses at which those without a connection are removed.
    full: usize,
}

/// The connection of an address. The entry remains after the connection has ended, so that the address is not
/// dialled.
#[derive(Debug)]
struct BidirRoute {
    link: Weak<SharedConnection>,
    runtime: Option<tokio::runtime::Id>,
}

impl Bidirectional {
    fn lock(&self) -> std::sync::MutexGuard<'_, BidirRoutes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection and runtime of the address, if it is known.
    fn find(
        &self,
        point: &ListenPoint,
    ) -> Option<(Option<Arc<SharedConnection>>, Option<tokio::runtime::Id>)> {
        self.lock().by_point.get(point).map(|way| (way.link.upgrade(), way.runtime))
    }

    /// Returns whether the address belongs to an open connection.
    fn is_taken(&self, point: &ListenPoint) -> bool {
        self.find(point).and_then(|(link, _)| link).is_some_and(|link| link.is_usable())
    }

    /// Enters the address unless it belongs to an open connection. Returns whether it was entered.
    fn enter(&self, point: ListenPoint, link: &Arc<SharedConnection>) -> bool {
        let runtime = tokio::runtime::Handle::try_current().ok().map(|runtime| runtime.id());
        let way = BidirRoute { link: Arc::downgrade(link), runtime };
        let mut routes = self.lock();
        let known = routes.by_point.get(&point).and_then(|way| way.link.upgrade());
        if known.as_ref().is_some_and(|link| link.is_usable()) {
            return false;
        }
        if routes.by_point.len() >= routes.full {
            routes.by_point.retain(|_, way| way.link.strong_count() > 0);
            routes.full = REMEMBERED.max(2 * routes.by_point.len());
        }
        routes.by_point.insert(point, way);
        drop(routes);
        true
    }
}

impl Shared {
    /// Returns whether servers that are called in that version are offered callbacks.
    pub(crate) fn offers_bidirectional(&self, version: Version) -> bool {
        let offers = self.config.client.offers_bidirectional || self.adapter().has_bidirectional();
        offers && version >= Version::V1_2
    }

    /// Returns the service context with the offer, which is sent with the first requests of a connection.
    ///
    /// # Errors
    /// The host cannot be encoded.
    pub(crate) fn offer(&self) -> Result<ServiceContext, EncodeError> {
        let points = self.endpoints.iter().filter_map(|endpoint| match endpoint {
            Endpoint::Iiop { host, port } | Endpoint::Ssl { host, port } => {
                Some(ListenPoint::new(host, *port))
            }
            Endpoint::Unix { .. } | Endpoint::Itself => None,
        });
        BiDirIiopServiceContext { listen_points: points.take(MAX_LISTEN_POINTS).collect() }
            .to_service_context()
    }

    /// Disables the idle timeout of a connection that carries callbacks, unless the user has configured one.
    pub(crate) fn disable_idle_timeout(&self, link: &SharedConnection) {
        if self.config.limits.idle_timeout.is_none() {
            link.set_idle_timeout(QUIET);
        }
    }

    /// Enables TCP keepalive on such a connection's socket, to detect peers that vanished.
    pub(crate) fn keep_alive(&self, socket: &SockRef<'_>) -> std::io::Result<()> {
        let probes = TcpKeepalive::new().with_time(SIGN_OF_LIFE).with_interval(SIGN_OF_LIFE);
        socket.set_tcp_keepalive(&probes)
    }

    /// Lets the system end the connection if the peer's system acknowledges or accepts nothing for
    /// `Limits::write_timeout`. Otherwise the system would retransmit to a vanished host for about 15
    /// minutes, and each call over that connection would run into its deadline.
    pub(crate) fn notice_silence(&self, socket: &SockRef<'_>) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            // An error is ignored: a system without this option waits longer, with no other effect.
            let _ = rustix::net::sockopt::set_tcp_user_timeout(
                &**socket,
                user_timeout(self.config.limits.write_timeout),
            );
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = socket;
    }

    /// Returns whether clients may be called back over their connections.
    pub(crate) fn accepts_bidirectional(&self) -> bool {
        self.config.server.bidirectional.0.is_some()
    }

    /// Enters the addresses that a client announced on its connection, if the rule allows them. An address
    /// that belongs to another open connection is skipped.
    #[cold]
    pub(crate) fn accept_listen_points(&self, link: &Arc<SharedConnection>) {
        let CallbackRule(Some(allows)) = &self.config.server.bidirectional else { return };
        let routes = &self.connections().bidirectional;
        for point in link.peer_listen_points() {
            let free = !routes.is_taken(&point);
            if free && allows(link.peer(), &point.host, point.port) && routes.enter(point, link) {
                self.disable_idle_timeout(link);
            }
        }
    }

    /// Returns the connection, opened by a client, over which objects of that profile are called at those
    /// addresses. `None` means that there never was one, so the addresses must be dialled.
    ///
    /// # Errors
    /// TRANSIENT if there was such a connection and it has ended.
    pub(crate) fn way_back(&self, route: &Route) -> Result<Option<Arc<SharedConnection>>, SystemException> {
        let Route { profile, ways } = route;
        if self.config.server.bidirectional.0.is_none()
            || profile.version.min(self.config.connection.max_version) < Version::V1_2
        {
            return Ok(None);
        }
        let mut gone = None;
        for endpoint in ways {
            let secure = matches!(endpoint, Endpoint::Ssl { .. });
            let (Endpoint::Iiop { host, port } | Endpoint::Ssl { host, port }) = endpoint else { continue };
            let point = ListenPoint { host: host.clone(), port: *port };
            let Some((link, runtime)) = self.connections().bidirectional.find(&point) else { continue };
            match link.filter(|link| link.lets_call()) {
                // Objects that are called by TLS are called back by TLS.
                Some(link) if secure && link.session().is_none() => {}
                Some(link) if link.serves_callers_of(runtime) => return Ok(Some(link)),
                Some(_) => {}
                None => gone = Some(point),
            }
        }
        match gone {
            None => Ok(None),
            Some(ListenPoint { host, port }) => Err(SystemException::transient().with_reason(format!(
                "the connection by which the client at {host}:{port} wanted to be called back is gone"
            ))),
        }
    }
}

/// Returns a timeout in milliseconds for TCP_USER_TIMEOUT. The maximum is that of an `int`, about 24 days.
/// The minimum is 1, because 0 means the system's default.
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
    fn the_system_asks_whether_the_peer_is_still_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Orb::builder().parts.core(Vec::new()).keep_alive(&SockRef::from(&stream)).unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), SIGN_OF_LIFE);
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn the_system_waits_for_acknowledgements_as_long_as_it_can_where_that_is_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        for (limit, taken) in
            [(Duration::ZERO, 1), (Duration::from_secs(30), 30_000), (Duration::MAX, i32::MAX as u32)]
        {
            let mut limits = giop_proto::Limits::default();
            limits.write_timeout = limit;
            Orb::builder().limits(limits).parts.core(Vec::new()).notice_silence(&SockRef::from(&stream));
            assert_eq!(rustix::net::sockopt::tcp_user_timeout(&stream).unwrap(), taken);
        }
    }
}

//! Ways back: objects of clients that are called over the connections that these clients opened ("Bi-directional IIOP"), on both sides.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use giop_codec::giop::{BiDirIiopServiceContext, ListenPoint, MAX_LISTEN_POINTS, ServiceContext};
use giop_codec::{EncodeError, Version};
use socket2::{SockRef, TcpKeepalive};

use super::{Endpoint, OrbCore, Route};
use crate::link::Link;
use crate::transport::Peer;

/// Addresses that are remembered before those are forgotten of which the connection is gone.
const REMEMBERED: usize = 4096;

/// Ten years.
const QUIET: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// How long a connection may be silent before its peer's system is asked whether it is there, and asked again.
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);

/// Decides which clients may say that their objects are called back over their connections.
#[derive(Clone, Default)]
pub(crate) struct Rule(Option<Arc<Allows>>);

type Allows = dyn Fn(&Peer, &str, u16) -> bool + Send + Sync;

impl Rule {
    pub(crate) fn new(allows: impl Fn(&Peer, &str, u16) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(allows)))
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Rule(..)" } else { "Rule(none)" })
    }
}

/// Which connection leads to which address.
#[derive(Debug, Default)]
pub(super) struct WaysBack {
    ways: Mutex<Ways>,
}

#[derive(Debug, Default)]
struct Ways {
    by_point: HashMap<ListenPoint, Way>,
    /// How many there are when those are forgotten of which the connection is gone.
    full: usize,
}

/// It stays when its connection is gone: such an address is not dialled.
#[derive(Debug)]
struct Way {
    link: Weak<Link>,
    runtime: Option<tokio::runtime::Id>,
}

impl WaysBack {
    fn lock(&self) -> std::sync::MutexGuard<'_, Ways> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the address.
    fn find(&self, point: &ListenPoint) -> Option<(Option<Arc<Link>>, Option<tokio::runtime::Id>)> {
        self.lock().by_point.get(point).map(|way| (way.link.upgrade(), way.runtime))
    }

    /// Whether an open connection leads there.
    fn is_taken(&self, point: &ListenPoint) -> bool {
        self.find(point).and_then(|(link, _)| link).is_some_and(|link| link.is_usable())
    }

    /// Enters the address, unless an open connection leads there, and says whether it did.
    fn enter(&self, point: ListenPoint, link: &Arc<Link>) -> bool {
        let runtime = tokio::runtime::Handle::try_current().ok().map(|runtime| runtime.id());
        let way = Way { link: Arc::downgrade(link), runtime };
        let mut ways = self.lock();
        let known = ways.by_point.get(&point).and_then(|way| way.link.upgrade());
        if known.as_ref().is_some_and(|link| link.is_usable()) {
            return false;
        }
        if ways.by_point.len() >= ways.full {
            ways.by_point.retain(|_, way| way.link.strong_count() > 0);
            ways.full = REMEMBERED.max(2 * ways.by_point.len());
        }
        ways.by_point.insert(point, way);
        drop(ways);
        true
    }
}

impl OrbCore {
    /// Whether servers that are called in that version are asked to call back.
    pub(crate) fn offers_ways_back(&self, version: Version) -> bool {
        let offers = self.config.offers_ways_back || self.adapter().has_bidirectional();
        offers && version >= Version::V1_2
    }

    /// What asks them to: it goes out with the first requests of a connection.
    ///
    /// # Errors
    /// A host that has no encoding.
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

    /// A connection over which a server calls its client: neither side closes it because it is quiet, unless the user says so.
    pub(super) fn keep_quiet(&self, link: &Link) {
        if self.config.limits.idle_timeout.is_none() {
            link.set_idle_timeout(QUIET);
        }
    }

    /// The same for its socket: a peer that is gone without a word is noticed all the same.
    pub(super) fn keep_alive(&self, socket: &SockRef<'_>) -> std::io::Result<()> {
        let probes = TcpKeepalive::new().with_time(SIGN_OF_LIFE).with_interval(SIGN_OF_LIFE);
        socket.set_tcp_keepalive(&probes)
    }

    /// Lets the system end the connection when the peer's system acknowledges nothing, or takes nothing, for `Limits::write_timeout`. Else a
    /// host that is gone without a word would be written to for a quarter of an hour, and each call over that connection would
    /// run into its deadline.
    pub(super) fn notice_silence(&self, socket: &SockRef<'_>) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            // A system that does not have it waits longer: that is all.
            let _ = rustix::net::sockopt::set_tcp_user_timeout(
                &**socket,
                user_timeout(self.config.limits.write_timeout),
            );
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = socket;
    }

    /// Whether clients may be called back over their connections.
    pub(super) fn takes_ways_back(&self) -> bool {
        self.config.ways_back.0.is_some()
    }

    /// Learns the addresses that a client announced on its connection, as far as the rule allows it. One that another open
    /// connection leads to stays with that.
    #[cold]
    pub(crate) fn learn_ways_back(&self, link: &Arc<Link>) {
        let Rule(Some(allows)) = &self.config.ways_back else { return };
        let ways = &self.connections.ways_back;
        for point in link.peer_listen_points() {
            let free = !ways.is_taken(&point);
            if free && allows(link.peer(), &point.host, point.port) && ways.enter(point, link) {
                self.keep_quiet(link);
            }
        }
    }

    /// The connection that a client opened and over which objects of that profile, at those addresses, are called; `None`: there never
    /// was one, so that they are to be dialled.
    ///
    /// # Errors
    /// TRANSIENT: there was one, and it is gone.
    pub(crate) fn way_back(&self, route: &Route) -> Result<Option<Arc<Link>>, SystemException> {
        let Route { profile, ways } = route;
        if self.config.ways_back.0.is_none() || profile.version.min(self.config.max_version) < Version::V1_2 {
            return Ok(None);
        }
        let mut gone = None;
        for endpoint in ways {
            let secure = matches!(endpoint, Endpoint::Ssl { .. });
            let (Endpoint::Iiop { host, port } | Endpoint::Ssl { host, port }) = endpoint else { continue };
            let point = ListenPoint { host: host.clone(), port: *port };
            let Some((link, runtime)) = self.connections.ways_back.find(&point) else { continue };
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
            Some(ListenPoint { host, port }) => Err(SystemException::new(
                SystemExceptionKind::Transient,
                MinorCode::NONE,
                CompletionStatus::No,
            )
            .because(format!(
                "the connection by which the client at {host}:{port} wanted to be called back is gone"
            ))),
        }
    }
}

/// A time as the system takes it for TCP_USER_TIMEOUT, in milliseconds: what an `int` holds, some 24 days. 0 would be its own time.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn user_timeout(limit: Duration) -> u32 {
    limit.as_millis().clamp(1, i32::MAX as u128) as u32
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::orb::Orb;

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

//! Ways back: objects of clients that are called over the connections that these clients opened ("Bi-directional IIOP"), on both sides.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use giop_codec::exception::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use giop_codec::giop::{BiDirIiopServiceContext, ListenPoint, MAX_LISTEN_POINTS, ServiceContext};
use giop_codec::ior::IiopProfile;
use giop_codec::{EncodeError, Version};

use super::{Endpoint, OrbCore};
use crate::link::Link;
use crate::transport::Peer;

/// Addresses that are remembered before those are forgotten of which the connection is gone.
const REMEMBERED: usize = 4096;

/// Ten years.
const QUIET: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

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
    ways: Mutex<HashMap<ListenPoint, Way>>,
}

/// It stays when its connection is gone: such an address is not dialled.
#[derive(Debug)]
struct Way {
    link: Weak<Link>,
    runtime: Option<tokio::runtime::Id>,
}

impl WaysBack {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ListenPoint, Way>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the address.
    fn find(&self, point: &ListenPoint) -> Option<(Option<Arc<Link>>, Option<tokio::runtime::Id>)> {
        self.lock().get(point).map(|way| (way.link.upgrade(), way.runtime))
    }

    fn enter(&self, point: ListenPoint, link: &Arc<Link>) {
        let runtime = tokio::runtime::Handle::try_current().ok().map(|runtime| runtime.id());
        let mut ways = self.lock();
        if ways.len() >= REMEMBERED {
            ways.retain(|_, way| way.link.strong_count() > 0);
        }
        ways.insert(point, Way { link: Arc::downgrade(link), runtime });
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
            Endpoint::Iiop { host, port } => Some(ListenPoint::new(host, *port)),
            Endpoint::Unix { .. } | Endpoint::Itself => None,
        });
        BiDirIiopServiceContext { listen_points: points.take(MAX_LISTEN_POINTS).collect() }
            .to_service_context()
    }

    /// A connection of this ORB's over which servers call: it is not closed because it is quiet, unless the user says so.
    pub(super) fn open_to_calls(&self, config: &mut giop_proto::Config) {
        config.accept_requests = true;
        if config.limits.idle_timeout.is_none() {
            let mut limits = (*config.limits).clone();
            limits.idle_timeout = Some(QUIET);
            config.limits = Arc::new(limits);
        }
    }

    /// Learns the addresses that a client announced on its connection, as far as the rule allows it. One that another open
    /// connection leads to stays with that.
    #[cold]
    pub(crate) fn learn_ways_back(&self, link: &Arc<Link>) {
        let Rule(Some(allows)) = &self.config.ways_back else { return };
        let ways = &self.connections.ways_back;
        for point in link.peer_listen_points() {
            let taken = ways.find(&point).and_then(|(link, _)| link).is_some_and(|link| link.is_usable());
            if !taken && allows(link.peer(), &point.host, point.port) {
                ways.enter(point, link);
            }
        }
    }

    /// The connection that a client opened and over which the objects of the profile are called; `None`: there never was one, so that
    /// their address is to be dialled.
    ///
    /// # Errors
    /// TRANSIENT: there was one, and it is gone.
    pub(crate) fn way_back(&self, profile: &IiopProfile) -> Result<Option<Arc<Link>>, SystemException> {
        if self.config.ways_back.0.is_none() || profile.version.min(self.config.max_version) < Version::V1_2 {
            return Ok(None);
        }
        let mut gone = None;
        for endpoint in self.ways(profile) {
            let Endpoint::Iiop { host, port } = endpoint else { continue };
            let point = ListenPoint { host, port };
            let Some((link, runtime)) = self.connections.ways_back.find(&point) else { continue };
            match link.filter(|link| link.is_usable()) {
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

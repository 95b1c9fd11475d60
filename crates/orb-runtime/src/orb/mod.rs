//! The public handle of an ORB, [`Orb`], with its builder and command-line options. The state of the ORB is
//! in `runtime`.

mod activation;
mod args;
mod args_endpoints;
#[cfg(feature = "tls")]
mod args_tls;
mod builder;
mod builder_text;
mod resolve;
#[cfg(feature = "csi")]
mod security;
mod shutdown;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use giop_proto::Stats;
use giop_proto::pool::PoolStats;

pub use activation::{ActivateError, Activation};
pub use args::ArgsError;
pub use builder::OrbBuilder;
pub use shutdown::ShutdownReport;

use crate::poa::manager::{ManagerCore, PoaManager, PoaManagerState};
use crate::poa::{ManagerAlreadyExists, Poa};
use crate::runtime::{CloseGuard, Shared};
use crate::servant::Request;
use crate::transport::TransportStats;

/// An Object Request Broker: it creates references, calls objects and serves them.
///
/// Cloning is cheap, and all clones are handles of the same ORB. When the last clone is dropped, the ORB
/// closes at once, and unlike [`shutdown`](Self::shutdown) does not wait for running requests. An ORB uses no
/// global state, and starts no threads unless [`Transport::IoUringThreads`](crate::Transport::IoUringThreads)
/// is configured.
#[doc(alias = "CORBA::ORB")]
#[derive(Clone)]
pub struct Orb {
    pub(crate) core: Arc<Shared>,
    /// Keeps the ORB open. `None` in a handle that was created after the ORB had closed.
    pub(crate) _guard: Option<Arc<CloseGuard>>,
}

impl Orb {
    /// Returns a builder with the default configuration, in which the ORB does not listen.
    pub fn builder() -> OrbBuilder {
        OrbBuilder::new()
    }

    pub(crate) fn from_core(core: &Arc<Shared>) -> Self {
        let guard = core.close_guard.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        Self { core: Arc::clone(core), _guard: guard }
    }

    pub(crate) fn core(&self) -> &Arc<Shared> {
        &self.core
    }

    /// Returns the addresses in the references of this ORB, as `host:port`, `ssliop://host:port` and
    /// `uiop://PATH`. These are the addresses of [`OrbBuilder::publish`], or if there are none, the addresses
    /// of [`OrbBuilder::listen`]. Unix sockets are always included. Addresses with TLS are last.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        let published = self.core.endpoints.iter().filter(|endpoint| !endpoint.is_placeholder());
        published.map(ToString::to_string).collect()
    }

    /// Returns the root POA, which also has the objects of [`activate`](Self::activate). Its manager,
    /// `RootPOAManager`, is initially active.
    #[doc(alias = "resolve_initial_references")]
    #[must_use]
    pub fn root_poa(&self) -> Poa {
        Poa::new(Arc::clone(self.core().adapter().root()), self.core())
    }

    /// Creates a POA manager in the holding state. Pass it to the builders of the POAs that it is to manage.
    ///
    /// # Errors
    /// A manager with this id exists.
    #[doc(alias = "create_POAManager")]
    pub fn create_poa_manager(&self, id: &str) -> Result<PoaManager, ManagerAlreadyExists> {
        let orb = self.core();
        let mut managers = orb.adapter().managers();
        if managers.contains_key(id) {
            return Err(ManagerAlreadyExists(id.to_owned()));
        }
        let core = ManagerCore::new(id, PoaManagerState::Holding, false);
        managers.insert(id.into(), Arc::clone(&core));
        Ok(PoaManager::new(core, Arc::clone(orb)))
    }

    /// Returns the POA manager with this id.
    #[doc(alias = "PortableServer::POAManagerFactory::find")]
    #[must_use]
    pub fn find_poa_manager(&self, id: &str) -> Option<PoaManager> {
        let orb = self.core();
        let core = orb.adapter().managers().get(id).map(Arc::clone);
        core.map(|core| PoaManager::new(core, Arc::clone(orb)))
    }

    /// Returns all POA managers, sorted by id.
    #[doc(alias = "PortableServer::POAManagerFactory::list")]
    #[must_use]
    pub fn poa_managers(&self) -> Vec<PoaManager> {
        let orb = self.core();
        let mut all: Vec<_> = orb.adapter().managers().values().map(Arc::clone).collect();
        all.sort_by(|a, b| a.id().cmp(b.id()));
        all.into_iter().map(|core| PoaManager::new(core, Arc::clone(orb))).collect()
    }

    /// Returns the TLS configuration, if `OrbBuilder::tls` or [`from_args`](Self::from_args) has set one.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(&self) -> Option<&crate::tls::Tls> {
        self.core.config.tls.as_ref()
    }

    /// Returns the number of active objects.
    #[must_use]
    pub fn active_objects(&self) -> usize {
        self.core.adapter().active_objects()
    }

    /// Returns the number of open connections, in both directions.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.core.connections.lock().len()
    }

    /// Returns the number of oneway requests that failed. Their callers receive no error.
    #[must_use]
    pub fn failed_oneways(&self) -> u64 {
        self.core.counters.failed_oneways.load(Ordering::Relaxed)
    }

    /// Returns the counters of all connections of the ORB, in both directions, including closed ones.
    ///
    /// Each connection is locked for a moment: do not call this in a tight loop.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Returns the counters of the pool of receive buffers, for example its memory and its limit.
    #[must_use]
    pub fn pool_stats(&self) -> PoolStats {
        self.core.pool.stats()
    }

    /// Returns the counters of the transport, for example the connections that use an io_uring.
    #[must_use]
    pub fn transport_stats(&self) -> TransportStats {
        self.core.transport.stats()
    }
}

impl Request {
    /// Returns the ORB that serves the request.
    #[must_use]
    pub fn orb(&self) -> Orb {
        Orb::from_core(self.core())
    }
}

impl fmt::Debug for Orb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb").field("endpoints", &self.core.endpoints).finish_non_exhaustive()
    }
}

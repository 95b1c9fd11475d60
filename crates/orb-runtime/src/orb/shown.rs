//! What the admin endpoint shows of an ORB.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{Orb, OrbCore};
use crate::admin::calls::Calls;
use crate::admin::history::History;
use crate::link::Link;

/// Asks a part of the program what is wrong with it.
type Check = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// What is kept for the admin endpoint.
pub(crate) struct Shown {
    begun: Instant,
    started: SystemTime,
    address: OnceLock<SocketAddr>,
    /// `None`: there is no such endpoint, and nothing is counted for it.
    calls: Option<Arc<Calls>>,
    history: Mutex<History>,
    /// What `Orb::add_health_check` was given.
    checks: Mutex<Vec<Check>>,
}

impl Shown {
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            begun: Instant::now(),
            started: SystemTime::now(),
            address: OnceLock::new(),
            calls: wanted.then(Arc::default),
            history: Mutex::default(),
            checks: Mutex::default(),
        }
    }
}

impl Shown {
    fn checks(&self) -> MutexGuard<'_, Vec<Check>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orb {
    /// Where the endpoint of [`OrbBuilder::admin`](crate::OrbBuilder::admin) is. `None`: there is none.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.core.shown.address.get().copied()
    }

    /// Adds a check to `/health` of the admin endpoint: where `check` returns a text, `/health` answers 503 with it. It is called for each
    /// request of `/health` and `/status.json`, so it must not block.
    ///
    /// The ORB keeps `check` as long as it lives; a check that holds an [`Orb`] would keep it open.
    pub fn add_health_check(&self, check: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.core.shown.checks().push(Box::new(check));
    }
}

impl OrbCore {
    pub(super) fn serve_admin(self: &Arc<Self>, opened: crate::admin::Opened) {
        let _ = self.shown.address.set(opened.address());
        opened.serve(self);
    }

    /// Calls by operation, where they are counted.
    #[inline]
    pub(crate) fn calls(&self) -> Option<&Arc<Calls>> {
        self.shown.calls.as_ref()
    }

    /// What is wrong with parts of the program now, as their checks say.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.shown.checks().iter().filter_map(|check| check()).collect()
    }

    /// Whether requests are served now.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_closing() && !self.is_on_hold()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.shown.begun.elapsed()
    }

    /// When the ORB was built, by the machine's clock.
    pub(crate) fn started(&self) -> SystemTime {
        self.shown.started
    }

    /// What it did in the last minutes.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.shown.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn endpoint_texts(&self) -> Vec<String> {
        let endpoints = self.endpoints.iter().filter(|endpoint| !endpoint.is_nowhere());
        endpoints.map(ToString::to_string).collect()
    }

    pub(crate) fn links_now(&self) -> Vec<Weak<Link>> {
        self.links().values().cloned().collect()
    }
}

//! The state that the admin endpoint shows of an ORB.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::admin::history::History;
use crate::orb::Orb;
use crate::runtime::Shared;
use crate::telemetry::operation_stats::OperationStats;

/// A health check of a part of the program. Returns a description of its problem.
type Check = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The state that is kept for the admin endpoint.
pub(crate) struct AdminState {
    begun: Instant,
    started: SystemTime,
    address: OnceLock<SocketAddr>,
    /// `None` if there is no such endpoint, so that nothing is counted for it.
    calls: Option<Arc<OperationStats>>,
    history: Mutex<History>,
    /// The checks of `Orb::add_health_check`.
    checks: Mutex<Vec<Check>>,
}

impl AdminState {
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            begun: Instant::now(),
            started: SystemTime::now(),
            address: OnceLock::new(),
            calls: wanted.then(Arc::default),
            history: Mutex::default(),
            checks: Mutex::default(),
        }
    }

    fn checks(&self) -> MutexGuard<'_, Vec<Check>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the health checks. Returns the problems that they report.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.checks().iter().filter_map(|check| check()).collect()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the time at which the ORB was built, by the machine's clock.
    pub(crate) fn started(&self) -> SystemTime {
        self.started
    }

    /// Returns the history of the last minutes.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orb {
    /// Returns the address of the endpoint of [`OrbBuilder::admin`](crate::OrbBuilder::admin), or `None` if
    /// there is none.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.core.admin().address.get().copied()
    }

    /// Adds a check to `/health` of the admin endpoint. If `check` returns a text, `/health` answers 503 with
    /// it. The check is called for each request of `/health` and `/status.json`, so it must not block.
    ///
    /// The ORB keeps `check` as long as it exists. A check that holds an [`Orb`] would keep that open.
    pub fn add_health_check(&self, check: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.core.admin().checks().push(Box::new(check));
    }
}

impl Shared {
    #[inline]
    #[expect(clippy::expect_used, reason = "`start_counting` always sets it")]
    pub(crate) fn admin(&self) -> &AdminState {
        self.extensions.admin.get().expect("the builder starts the counters")
    }

    /// Starts the clock and the counters of the endpoint.
    pub(crate) fn start_counting(&self) {
        let wanted = self.config.server.admin.is_some();
        self.extensions.admin.set(AdminState::new(wanted));
    }

    pub(crate) fn serve_admin(self: &Arc<Self>, opened: crate::admin::Opened) {
        let _ = self.admin().address.set(opened.address());
        opened.serve(self);
    }

    /// Returns the counters of calls by operation, if they are counted.
    #[inline]
    pub(crate) fn calls(&self) -> Option<&Arc<OperationStats>> {
        self.admin().calls.as_ref()
    }

    /// Returns whether requests are served now.
    pub(crate) fn is_ready(&self) -> bool {
        !self.closing.has_begun() && !self.pauses.is_on_hold()
    }

    pub(crate) fn endpoint_texts(&self) -> Vec<String> {
        let endpoints = self.endpoints.iter().filter(|endpoint| !endpoint.is_nowhere());
        endpoints.map(ToString::to_string).collect()
    }
}

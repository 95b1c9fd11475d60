//! The data of an ORB that only its admin endpoint uses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::admin::history::History;
use crate::orb::Orb;
use crate::runtime::Shared;
use crate::telemetry::operation_stats::OperationStats;

/// A health check of a part of the program. Returns a description of the problem if there is one.
type HealthCheck = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The state that is kept for the admin endpoint.
pub(crate) struct AdminState {
    started: Instant,
    started_by_clock: SystemTime,
    address: OnceLock<SocketAddr>,
    /// `None` if the ORB has no admin endpoint. Then calls are not counted.
    calls: Option<Arc<OperationStats>>,
    history: Mutex<History>,
    /// The checks of `Orb::add_health_check`.
    checks: Mutex<Vec<HealthCheck>>,
}

impl AdminState {
    pub(crate) fn new(has_endpoint: bool) -> Self {
        Self {
            started: Instant::now(),
            started_by_clock: SystemTime::now(),
            address: OnceLock::new(),
            calls: has_endpoint.then(Arc::default),
            history: Mutex::default(),
            checks: Mutex::default(),
        }
    }

    fn checks(&self) -> MutexGuard<'_, Vec<HealthCheck>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the health checks and returns the problems that they report.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.checks().iter().filter_map(|check| check()).collect()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the time at which the ORB was built, by the machine's clock.
    pub(crate) fn started_by_clock(&self) -> SystemTime {
        self.started_by_clock
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
    /// that text. `check` is called for each request of `/health` and `/status.json`, so it must not block.
    ///
    /// The ORB never drops `check` while it exists. Therefore `check` must not contain an [`Orb`], or the ORB
    /// would never be dropped.
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
        let has_endpoint = self.config.server.admin.is_some();
        self.extensions.admin.set(AdminState::new(has_endpoint));
    }

    pub(crate) fn serve_admin(self: &Arc<Self>, listener: crate::admin::AdminListener) {
        let _ = self.admin().address.set(listener.address());
        listener.serve(self);
    }

    /// Returns the call counters of each operation, if calls are counted.
    #[inline]
    pub(crate) fn calls(&self) -> Option<&Arc<OperationStats>> {
        self.admin().calls.as_ref()
    }

    /// Returns whether requests are served now.
    pub(crate) fn is_ready(&self) -> bool {
        !self.closing.has_begun() && !self.pauses.is_on_hold()
    }

    pub(crate) fn endpoint_texts(&self) -> Vec<String> {
        let endpoints = self.endpoints.iter().filter(|endpoint| !endpoint.is_placeholder());
        endpoints.map(ToString::to_string).collect()
    }
}

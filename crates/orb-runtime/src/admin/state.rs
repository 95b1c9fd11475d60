//! The data of an ORB that only its admin endpoint uses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::admin::history::History;
use crate::lock::lock;
use crate::orb::Orb;
use crate::runtime::Shared;
use crate::telemetry::operation_stats::OperationStats;

/// A health check of a part of the program. Returns a description of the problem, if there is one.
type HealthCheck = Box<dyn Fn() -> Option<String> + Send + Sync>;

pub(crate) struct AdminState {
    started_instant: Instant,
    pub(super) started_at: SystemTime,
    address: OnceLock<SocketAddr>,
    /// The statistics of calls. `None` if the ORB has no admin endpoint.
    operation_stats: Option<Arc<OperationStats>>,
    history: Mutex<History>,
    checks: Mutex<Vec<HealthCheck>>,
}

impl AdminState {
    pub(crate) fn new(has_endpoint: bool) -> Self {
        Self {
            started_instant: Instant::now(),
            started_at: SystemTime::now(),
            address: OnceLock::new(),
            operation_stats: has_endpoint.then(Arc::default),
            history: Mutex::default(),
            checks: Mutex::default(),
        }
    }

    /// Runs the health checks and returns the problems that they report.
    pub(crate) fn problems(&self) -> Vec<String> {
        lock(&self.checks).iter().filter_map(|check| check()).collect()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started_instant.elapsed()
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }
}

impl Orb {
    /// Returns the address of [`OrbBuilder::admin`](crate::OrbBuilder::admin), if the endpoint is enabled.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.core.admin().address.get().copied()
    }

    /// Adds a health check to the admin endpoint. If `check` returns a text, `/health` answers 503 with it.
    /// `check` is called for each request of `/health` and `/status.json`, so it must not block.
    ///
    /// `check` must not own an [`Orb`]: the ORB owns `check`, so neither of them would ever be dropped.
    pub fn add_health_check(&self, check: impl Fn() -> Option<String> + Send + Sync + 'static) {
        lock(&self.core.admin().checks).push(Box::new(check));
    }
}

impl Shared {
    #[inline]
    #[expect(clippy::expect_used, reason = "`create_admin_state` always sets it")]
    pub(crate) fn admin(&self) -> &AdminState {
        self.extensions.admin.get().expect("the builder must call `create_admin_state`")
    }

    pub(crate) fn create_admin_state(&self) {
        let has_endpoint = self.config.server.admin.is_some();
        self.extensions.admin.set(AdminState::new(has_endpoint));
    }

    pub(crate) fn serve_admin(self: &Arc<Self>, listener: crate::admin::AdminListener) {
        let _ = self.admin().address.set(listener.address);
        listener.serve(self);
    }

    #[inline]
    pub(crate) fn operation_stats(&self) -> Option<&Arc<OperationStats>> {
        self.admin().operation_stats.as_ref()
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.closing.has_begun() && !self.pauses.awaits_resume()
    }
}

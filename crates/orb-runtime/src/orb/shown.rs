//! What the admin endpoint shows of an ORB.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use super::{Orb, OrbCore};
use crate::admin::calls::Calls;
use crate::link::Link;

/// What is kept for the admin endpoint.
#[derive(Debug)]
pub(crate) struct Shown {
    begun: Instant,
    address: OnceLock<SocketAddr>,
    /// `None`: there is no such endpoint, and nothing is counted for it.
    calls: Option<Arc<Calls>>,
}

impl Shown {
    pub(super) fn new(wanted: bool) -> Self {
        Self { begun: Instant::now(), address: OnceLock::new(), calls: wanted.then(Arc::default) }
    }
}

impl Orb {
    /// Where the endpoint of [`OrbBuilder::admin`](crate::OrbBuilder::admin) is. `None`: there is none.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.core.shown.address.get().copied()
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

    /// Whether requests are served now.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_closing() && !self.is_on_hold()
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.shown.begun.elapsed()
    }

    pub(crate) fn endpoint_texts(&self) -> Vec<String> {
        let endpoints = self.endpoints.iter().filter(|endpoint| !endpoint.is_nowhere());
        endpoints.map(ToString::to_string).collect()
    }

    pub(crate) fn links_now(&self) -> Vec<Weak<Link>> {
        self.links().values().cloned().collect()
    }
}

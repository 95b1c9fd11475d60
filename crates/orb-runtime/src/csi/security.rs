//! The security configuration of an ORB, and the counters of logins and refused requests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use giop_codec::ior::TaggedComponent;

use crate::connection::SharedConnection;
use crate::csi::authorizer::Authorizer;
use crate::csi::credentials::Credentials;
use crate::csi::guard::Guard;
use crate::csi::logins::{Logins, Required};
use crate::runtime::Shared;
use crate::transport::Peer;

#[derive(Clone, Default)]
pub(crate) struct Security {
    pub(crate) logins: Option<Arc<Logins>>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(super) counters: Arc<Counters>,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) logins: AtomicU64,
    pub(super) failed_logins: AtomicU64,
    pub(super) throttled_logins: AtomicU64,
    pub(super) unknown_callers: AtomicU64,
    pub(super) refused_contexts: AtomicU64,
    pub(super) denied: AtomicU64,
}

/// Counters of logins and refused requests: [`Orb::csi_stats`](crate::Orb::csi_stats).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CsiStats {
    /// Logins that were checked and accepted. A login is counted again if it must be checked again.
    pub logins: u64,
    /// Logins that were refused, including logins that were not checked because too many others had failed.
    pub failed_logins: u64,
    /// Logins that were not checked, because too many from their address had failed or too many were queued.
    pub throttled_logins: u64,
    /// Requests that did not identify their caller, although this was required.
    pub unknown_callers: u64,
    /// Requests whose security context was refused, unless it was malformed or the queue of logins was full.
    pub refused_contexts: u64,
    /// Requests that the authorizer denied.
    pub denied: u64,
}

impl Security {
    /// Returns the guard of a connection, or `None` if its requests are not checked.
    pub(crate) fn guard(&self, link: &SharedConnection) -> Option<Box<Guard>> {
        let checks_requests = self.logins.is_some() || self.authorizer.is_some();
        let is_guarded = checks_requests && !matches!(link.peer(), Peer::Local);
        is_guarded.then(|| Box::new(Guard::new(self, link.peer().clone(), link.tls_session().cloned())))
    }

    /// Returns the reason why no caller could log in, if there is one. `only_plain_tcp` is true if the ORB
    /// listens only on plain TCP.
    pub(crate) fn login_obstacle(&self, only_plain_tcp: bool) -> Option<&'static str> {
        let logins = self.logins.as_ref()?;
        (only_plain_tcp && logins.required == Required::Login && !logins.allows_plaintext).then_some(
            "every caller must log in, but passwords are not accepted over plain TCP: listen on ssliop:// or uiop://, \
             or use Logins::allow_plaintext_passwords",
        )
    }

    pub(crate) fn stats(&self) -> CsiStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CsiStats {
            logins: read(&self.counters.logins),
            failed_logins: read(&self.counters.failed_logins),
            throttled_logins: read(&self.counters.throttled_logins),
            unknown_callers: read(&self.counters.unknown_callers),
            refused_contexts: read(&self.counters.refused_contexts),
            denied: read(&self.counters.denied),
        }
    }
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("logins", &self.logins)
            .field("credentials", &self.credentials)
            .field("authorizer", &self.authorizer.is_some())
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn security(&self) -> &Security {
        self.extensions.security.get_or_default()
    }

    /// Returns the component of a profile: see [`Security::component`]. `tls_port` is the TLS port at `host`.
    pub(crate) fn csi_component(
        &self,
        host: &str,
        tls_port: Option<u16>,
        plain_is_private: Option<bool>,
    ) -> Option<TaggedComponent> {
        let tls = self.config.tls.as_ref();
        let ssl = tls_port.and_then(|port| Some(tls?.component(port, plain_is_private.is_some())));
        self.security().component(host, ssl, plain_is_private)
    }
}

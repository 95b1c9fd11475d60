//! The security configuration of an ORB, and its counters.

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

/// Authentication and authorization of callers, and the credentials of this ORB's own calls.
#[derive(Clone, Default)]
pub(crate) struct Security {
    pub(crate) logins: Option<Arc<Logins>>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(super) counts: Arc<Counts>,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) logins: AtomicU64,
    pub(super) failed_logins: AtomicU64,
    pub(super) throttled_logins: AtomicU64,
    pub(super) unknown_callers: AtomicU64,
    pub(super) refused_contexts: AtomicU64,
    pub(super) denied: AtomicU64,
}

/// Counters of callers: [`Orb::csi_stats`](crate::Orb::csi_stats).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CsiStats {
    /// Logins that were checked and accepted. Further requests with a login that the connection knows are not
    /// counted.
    pub logins: u64,
    /// Logins that were refused, including those that were not checked because too many before had failed.
    pub failed_logins: u64,
    /// Logins that were not checked, because too many from their address had failed or too many were queued.
    pub throttled_logins: u64,
    /// Requests that did not identify their caller although it is required.
    pub unknown_callers: u64,
    /// Requests whose context was refused, for any reason.
    pub refused_contexts: u64,
    /// Requests that the authorizer denied.
    pub denied: u64,
}

impl Security {
    /// Returns the guard of a connection's requests, or `None` if all are served.
    pub(crate) fn guard(&self, link: &SharedConnection) -> Option<Box<Guard>> {
        let judges = self.judges() && !matches!(link.peer(), Peer::Local);
        judges.then(|| Box::new(Guard::new(self, link.peer().clone(), link.session().cloned())))
    }

    /// Returns whether requests are checked.
    pub(crate) fn judges(&self) -> bool {
        self.logins.is_some() || self.authorizer.is_some()
    }

    /// Returns why no caller could ever log in, if the ORB listens on plain TCP only.
    pub(crate) fn unusable(&self, plain_tcp_alone: bool) -> Option<&'static str> {
        let logins = self.logins.as_ref()?;
        (plain_tcp_alone && logins.required == Required::Login && !logins.plaintext).then_some(
            "every caller must log in, and passwords may not go over plain TCP: listen on ssliop:// or uiop://, \
             or take them all the same (Logins::allow_plaintext_passwords)",
        )
    }

    pub(crate) fn stats(&self) -> CsiStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CsiStats {
            logins: read(&self.counts.logins),
            failed_logins: read(&self.counts.failed_logins),
            throttled_logins: read(&self.counts.throttled_logins),
            unknown_callers: read(&self.counts.unknown_callers),
            refused_contexts: read(&self.counts.refused_contexts),
            denied: read(&self.counts.denied),
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
    /// Returns access control and credentials.
    pub(crate) fn security(&self) -> &Security {
        self.extensions.security.get_or_default()
    }

    /// Returns what the server requires of callers on its TLS port, and on its addresses without TLS: see
    /// `csi`.
    pub(crate) fn csi_component(
        &self,
        host: &str,
        port: Option<u16>,
        plain: Option<bool>,
    ) -> Option<TaggedComponent> {
        let tls = self.config.tls.as_ref();
        let ssl = port.and_then(|port| Some(tls?.component(port, plain.is_some())));
        self.security().component(host, ssl, plain)
    }
}

//! The security configuration of an ORB, and its counters.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Authorizer, Credentials, Guard, Logins, Required};
use crate::link::Link;
use crate::orb::{Orb, OrbBuilder};
use crate::transport::Peer;

/// Authentication and authorization of callers, and the credentials of this ORB's own calls.
#[derive(Clone, Default)]
pub(crate) struct Security {
    pub(super) logins: Option<Arc<Logins>>,
    pub(super) credentials: Option<Credentials>,
    pub(super) authorizer: Option<Arc<dyn Authorizer>>,
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

/// Counters of callers: [`Orb::csi_stats`].
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
    pub(crate) fn guard(&self, link: &Link) -> Option<Box<Guard>> {
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

impl OrbBuilder {
    /// Sets which logins this ORB requires of callers, and how they are checked: see [`csi`](crate::csi).
    /// References of the ORB carry this. By default no login is required.
    ///
    /// [`build`](Self::build) fails if every caller must log in, but the ORB listens on plain TCP only and
    /// passwords are not allowed there.
    #[doc(alias = "CSIv2")]
    pub fn logins(mut self, logins: Logins) -> Self {
        self.parts.config.security.logins = Some(Arc::new(logins));
        self
    }

    /// Sets the credentials for servers whose references ask for a login, or accept an asserted identity: see
    /// [`csi`](crate::csi). By default there are none.
    /// [`Reference::with_credentials`](crate::Reference::with_credentials) sets others for one object.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.parts.config.security.credentials = Some(credentials);
        self
    }

    /// Sets credentials with a user name and a password: [`Credentials::login`].
    pub fn login(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials(Credentials::login(user, password))
    }

    /// Sets the authorizer of requests that arrive over connections, such as [`Rules`](super::Rules) from a
    /// file. By default all requests are allowed.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.parts.config.security.authorizer = Some(Arc::new(authorizer));
        self
    }
}

impl Orb {
    /// Returns the counters of callers: logins, and requests that were refused.
    #[must_use]
    pub fn csi_stats(&self) -> CsiStats {
        self.core().config.security.stats()
    }
}

//! What an ORB was given of it: by its builder, and what it counts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Authorizer, Credentials, Guard, Logins, Required};
use crate::link::Link;
use crate::orb::{Orb, OrbBuilder};
use crate::transport::Peer;

/// Who may call, and as whom this ORB calls.
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

/// What an ORB counted of its callers: [`Orb::csi_stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CsiStats {
    /// Logins that were checked and good. Those of further requests of a connection are known, and not counted.
    pub logins: u64,
    /// Logins that were not good, and those that were not checked because too many before had failed.
    pub failed_logins: u64,
    /// Those of them that were not checked because too many from their address had failed.
    pub throttled_logins: u64,
    /// Requests that did not say who calls where they have to.
    pub unknown_callers: u64,
    /// Requests of which the context was refused, for whatever reason.
    pub refused_contexts: u64,
    /// Requests that the authoriser did not allow.
    pub denied: u64,
}

impl Security {
    /// The judge of a connection's requests; `None`: all are served.
    pub(crate) fn guard(&self, link: &Link) -> Option<Box<Guard>> {
        let judges = self.judges() && !matches!(link.peer(), Peer::Local);
        judges.then(|| Box::new(Guard::new(self, link.peer().clone(), link.session().cloned())))
    }

    /// Whether requests are judged.
    pub(crate) fn judges(&self) -> bool {
        self.logins.is_some() || self.authorizer.is_some()
    }

    /// Why nobody could ever log in who comes by plain TCP alone.
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
    /// What this ORB wants to know of those who call its objects, and who checks it: see [`csi`](crate::csi). Its references say so. Default: nothing.
    ///
    /// [`build`](Self::build) fails where every caller must log in and could only do so over plain TCP, which takes no passwords.
    #[doc(alias = "CSIv2")]
    pub fn logins(mut self, logins: Logins) -> Self {
        self.parts.config.security.logins = Some(Arc::new(logins));
        self
    }

    /// As whom this ORB calls servers whose references ask for a login, or take an asserted identity: see [`csi`](crate::csi). Default: as nobody.
    /// [`Reference::with_credentials`](crate::Reference::with_credentials) takes others for an object.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.parts.config.security.credentials = Some(credentials);
        self
    }

    /// The same with a user name and a password: [`Credentials::login`].
    pub fn login(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials(Credentials::login(user, password))
    }

    /// Who decides about each request that comes over a connection, such as [`Rules`](super::Rules) from a file. Default: all are allowed.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.parts.config.security.authorizer = Some(Arc::new(authorizer));
        self
    }
}

impl Orb {
    /// What was counted of callers: logins, and requests that were refused.
    #[must_use]
    pub fn csi_stats(&self) -> CsiStats {
        self.core().config.security.stats()
    }
}

//! Access control of an ORB: see [`csi`](crate::csi).

use std::sync::Arc;

use crate::csi::{Authorizer, Credentials, CsiStats, Logins};
use crate::orb::{Orb, OrbBuilder};

impl OrbBuilder {
    /// Sets which logins this ORB requires of callers, and how they are checked: see [`csi`](crate::csi).
    /// References of the ORB carry this. By default no login is required.
    ///
    /// [`build`](Self::build) fails if every caller must log in, but the ORB listens on plain TCP only and
    /// passwords are not allowed there.
    #[doc(alias = "CSIv2")]
    pub fn logins(mut self, logins: Logins) -> Self {
        self.parts.security.logins = Some(Arc::new(logins));
        self
    }

    /// Sets the credentials for servers whose references ask for a login, or accept an asserted identity: see
    /// [`csi`](crate::csi). By default there are none.
    /// [`Reference::with_credentials`](crate::Reference::with_credentials) sets others for one object.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.parts.security.credentials = Some(credentials);
        self
    }

    /// Sets credentials with a user name and a password: [`Credentials::login`].
    pub fn login(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials(Credentials::login(user, password))
    }

    /// Sets the authorizer of requests that arrive over connections, such as [`Rules`](crate::csi::Rules)
    /// from a file. By default all requests are allowed.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.parts.security.authorizer = Some(Arc::new(authorizer));
        self
    }
}

impl Orb {
    /// Returns the counters of callers: logins, and requests that were refused.
    #[must_use]
    pub fn csi_stats(&self) -> CsiStats {
        self.core().security().stats()
    }
}

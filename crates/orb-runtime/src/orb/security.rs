//! Options of the builder for authentication and authorization: see [`csi`](crate::csi).

use std::sync::Arc;

use crate::csi::{Authorizer, Credentials, CsiStats, Logins};
use crate::orb::{Orb, OrbBuilder};

impl OrbBuilder {
    /// Sets which logins this ORB requires of callers, and how they are checked: see [`csi`](crate::csi).
    /// References of the ORB contain the requirements. By default no login is required.
    ///
    /// [`build`](Self::build) fails if every caller must log in, but the ORB listens only on plain TCP and
    /// passwords over plain TCP are not allowed.
    #[doc(alias = "CSIv2")]
    pub fn logins(mut self, logins: Logins) -> Self {
        self.core.security.logins = Some(Arc::new(logins));
        self
    }

    /// Sets the credentials for servers whose references request a login or accept an asserted identity: see
    /// [`csi`](crate::csi). By default there are no credentials.
    /// [`Reference::with_credentials`](crate::Reference::with_credentials) sets other ones for a reference.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.core.security.credentials = Some(credentials);
        self
    }

    /// Sets credentials with a user name and a password: [`Credentials::login`].
    pub fn login(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials(Credentials::login(user, password))
    }

    /// Sets the authorizer of requests that are received over connections, such as
    /// [`Rules`](crate::csi::Rules) from a file. By default all requests are allowed.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.core.security.authorizer = Some(Arc::new(authorizer));
        self
    }
}

impl Orb {
    /// Returns the counters of logins and refused requests.
    #[must_use]
    pub fn csi_stats(&self) -> CsiStats {
        self.core().security().stats()
    }
}

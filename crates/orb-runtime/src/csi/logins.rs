//! [`Logins`], by which a server configures how its callers must identify themselves.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use giop_codec::csi::ExportedName;

use crate::csi::login_queue::LoginQueue;
use crate::csi::principal::{Principal, PrincipalKind};
use crate::csi::throttle::Throttle;
use crate::transport::Peer;

const DEFAULT_MAX_WAITING: usize = 256;

/// Checks user names and passwords.
///
/// [`check`](Self::check) is called on a thread for blocking operations, so it may compute a slow hash or
/// query a directory. The last 32 logins that were accepted on a connection are not checked again until
/// [`epoch`](Self::epoch) changes.
pub trait Authenticator: Send + Sync + 'static {
    /// Checks the user's password. Returns the name of the user, which becomes [`Principal::name`].
    ///
    /// # Errors
    /// [`LoginRefused`] with a reason for the log. The client does not receive the reason.
    fn check(&self, login: &Login<'_>, peer: &Peer) -> Result<String, LoginRefused>;

    /// Returns a number. It must change whenever an accepted user or password may have become invalid.
    fn epoch(&self) -> u64 {
        0
    }
}

/// A user name with a password.
#[derive(Clone, Copy)]
pub struct Login<'a> {
    pub(super) user: &'a str,
    pub(super) password: &'a str,
}

impl<'a> Login<'a> {
    /// Returns the user's name without the realm of this server: `ann` for `ann@bank` in the realm `bank`.
    #[must_use]
    pub fn user(&self) -> &'a str {
        self.user
    }

    /// Returns the password. Hash it, and compare the hash in constant time.
    #[must_use]
    pub fn password(&self) -> &'a str {
        self.password
    }
}

/// Does not show the password.
impl fmt::Debug for Login<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The reason why a login is not accepted.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LoginRefused(String);

impl LoginRefused {
    /// Creates an error with a reason for the server's log. The reason must not contain the password.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The identification of the caller that a server requires of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Required {
    /// No identification. If a request contains a login or an identity, that is still checked.
    Nothing,
    /// A login, unless the client has presented a certificate for the connection.
    Identity,
    /// A login.
    #[default]
    Login,
}

/// The configuration of how a server's callers must identify themselves, and of the callers that may assert
/// other identities: [`OrbBuilder::logins`](crate::OrbBuilder::logins). Clones share the authenticator.
#[derive(Clone)]
#[must_use]
pub struct Logins {
    pub(super) authenticator: Arc<dyn Authenticator>,
    pub(super) required: Required,
    pub(super) realm: Option<String>,
    pub(super) allows_plaintext: bool,
    pub(super) trusted_users: HashSet<String>,
    pub(super) trusted_subjects: HashSet<String>,
    pub(super) max_failures: u32,
    pub(super) throttle: Arc<Throttle>,
    pub(super) max_contexts: usize,
    pub(super) max_checks: usize,
    pub(super) max_waiting: usize,
    pub(super) queue: Arc<LoginQueue>,
}

impl Logins {
    /// Requires a login for every request, which `authenticator`, such as [`Users`](super::Users), checks.
    pub fn new(authenticator: impl Authenticator) -> Self {
        Self {
            authenticator: Arc::new(authenticator),
            required: Required::default(),
            realm: None,
            allows_plaintext: false,
            trusted_users: HashSet::new(),
            trusted_subjects: HashSet::new(),
            max_failures: 3,
            throttle: Throttle::new(30, Duration::from_secs(4)),
            max_contexts: 64,
            max_checks: 4,
            max_waiting: DEFAULT_MAX_WAITING,
            queue: LoginQueue::new(4, DEFAULT_MAX_WAITING),
        }
    }

    /// Sets the identification that each request must contain. The default is a login.
    pub fn required(mut self, required: Required) -> Self {
        self.required = required;
        self
    }

    /// Sets the realm in which user names are valid. References contain the realm, and logins for other
    /// realms are refused. User names may have the form `user@realm`. By default, there is no realm.
    pub fn realm(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }

    /// Permits passwords over plain TCP, where others on the network can read them.
    pub fn allow_plaintext_passwords(mut self) -> Self {
        self.allows_plaintext = true;
        self
    }

    /// Permits the user with this name to assert the identity of other callers. Can be called several times.
    pub fn trust_user(mut self, user: impl Into<String>) -> Self {
        self.trusted_users.insert(user.into());
        self
    }

    /// Permits clients with a certificate for this subject to assert the identity of other callers. It has
    /// the form of `TlsSession::subject`, such as `CN=gateway,O=Example`. Can be repeated.
    pub fn trust_subject(mut self, subject: impl Into<String>) -> Self {
        self.trusted_subjects.insert(subject.into());
        self
    }

    /// Sets the number of logins that may fail on a connection, 3 by default. After that, new logins on the
    /// connection are refused without being checked. Its last 32 accepted logins remain valid.
    pub fn max_failures(mut self, failures: u32) -> Self {
        self.max_failures = failures;
        self
    }

    /// Sets the number of logins from one address that may fail, 30 by default, and the interval after which
    /// one failure is no longer counted, 4 s by default. A client that tries passwords over many connections
    /// has `failures` attempts immediately, and then one in each `interval`.
    ///
    /// Further logins from the address are refused without being checked. The last 32 accepted logins of each
    /// connection remain valid. All IPv6 addresses with the same first 64 bits are one address. Unix sockets
    /// and pipes are not counted.
    pub fn max_failures_per_address(mut self, failures: u32, interval: Duration) -> Self {
        self.throttle = Throttle::new(failures, interval);
        self
    }

    /// Sets the maximum number of security contexts that the ORB keeps for each connection, 64 by default.
    /// For further contexts, clients must send the login, not only a number, with each request.
    pub fn max_contexts(mut self, contexts: usize) -> Self {
        self.max_contexts = contexts;
        self
    }

    /// Sets the maximum number of concurrent checks of logins, 4 by default, with at most one per connection.
    pub fn max_checks(mut self, checks: usize) -> Self {
        self.max_checks = checks;
        self.queue = LoginQueue::new(checks, self.max_waiting);
        self
    }

    /// Sets the maximum number of queued logins, 256 by default. Their requests may have up to 16 MiB in all.
    /// A login that is queued alone may have a larger request.
    ///
    /// If the queue is full, a login from an address with few queued logins evicts the last login of the
    /// address with the most. Otherwise, the new login is rejected. The request of the evicted or rejected
    /// login gets `TRANSIENT`, COMPLETED_NO, with zorb's minor code 1 (`minor::TRANSIENT_OVERLOADED`). While
    /// a login is queued, its connection is not read.
    pub fn max_waiting(mut self, logins: usize) -> Self {
        self.max_waiting = logins;
        self.queue = LoginQueue::new(self.max_checks, logins);
        self
    }

    pub(super) fn may_assert(&self, principal: &Principal) -> bool {
        match principal.kind() {
            PrincipalKind::Login => self.trusted_users.contains(principal.name()),
            PrincipalKind::Certificate => self.trusted_subjects.contains(principal.name()),
            _ => false,
        }
    }

    pub(super) fn target_name(&self) -> bytes::Bytes {
        let name =
            self.realm.as_ref().and_then(|realm| ExportedName::gssup(&format!("@{realm}")).to_octets());
        name.unwrap_or_default()
    }

    /// Returns whether this server accepts a login with this target name. Many clients send an empty name.
    pub(super) fn accepts_target(&self, target: &[u8]) -> bool {
        target.is_empty() || self.realm.is_none() || self.target_name() == target
    }

    /// Returns the user's name without this server's realm.
    pub(super) fn local_user<'a>(&self, user: &'a str) -> &'a str {
        let strip = |realm: &String| user.strip_suffix(realm.as_str())?.strip_suffix('@');
        self.realm.as_ref().and_then(strip).unwrap_or(user)
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins")
            .field("required", &self.required)
            .field("realm", &self.realm)
            .field("plaintext", &self.allows_plaintext)
            .finish_non_exhaustive()
    }
}

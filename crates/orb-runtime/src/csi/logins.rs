//! Requirements of a server on its callers.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use giop_codec::csi::ExportedName;

use crate::csi::checks::Checks;
use crate::csi::principal::{Principal, PrincipalKind};
use crate::csi::throttle::Throttle;
use crate::transport::Peer;

/// Default number of logins that may be queued for a check.
const WAITING: usize = 256;

/// Checks user names and passwords.
///
/// It is called on a thread for blocking work, so it may compute a slow hash or query a directory. An
/// accepted login is valid for its connection until [`epoch`](Self::epoch) changes.
pub trait Authenticator: Send + Sync + 'static {
    /// Checks whether this is the user's password. Returns the name by which the user is known afterwards.
    ///
    /// # Errors
    /// [`LoginRefused`] with a reason for the log. The client does not receive the reason.
    fn check(&self, login: &Login<'_>, peer: &Peer) -> Result<String, LoginRefused>;

    /// Returns a number that changes when an accepted user or password may have become invalid.
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
    /// Returns the user's name as received, but without the realm of this server: for `ann@bank` at the realm
    /// `bank` it is `ann`.
    #[must_use]
    pub fn user(&self) -> &'a str {
        self.user
    }

    /// Returns the password. Compare it by a hash in constant time.
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

/// A login that is not accepted.
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

/// What a request must contain to identify its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Required {
    /// Nothing. Identities that a request contains are checked nevertheless.
    Nothing,
    /// A login, unless the caller's certificate is known from the connection.
    Identity,
    /// A login.
    #[default]
    Login,
}

/// Requirements of a server on its callers, and the callers that it trusts:
/// [`OrbBuilder::logins`](crate::OrbBuilder::logins). Clones share the authenticator.
#[derive(Clone)]
pub struct Logins {
    pub(super) authenticator: Arc<dyn Authenticator>,
    pub(super) required: Required,
    pub(super) realm: Option<String>,
    pub(super) plaintext: bool,
    pub(super) trusted_users: HashSet<String>,
    pub(super) trusted_subjects: HashSet<String>,
    pub(super) max_failures: u32,
    pub(super) throttle: Arc<Throttle>,
    pub(super) max_contexts: usize,
    /// Maximum number of concurrent checks.
    pub(super) max_checks: usize,
    /// Maximum number of queued logins.
    pub(super) max_waiting: usize,
    pub(super) checks: Arc<Checks>,
}

impl Logins {
    /// Requires a login of every request, checked by `authenticator`, such as [`Users`](super::Users).
    #[must_use]
    pub fn new(authenticator: impl Authenticator) -> Self {
        Self {
            authenticator: Arc::new(authenticator),
            required: Required::default(),
            realm: None,
            plaintext: false,
            trusted_users: HashSet::new(),
            trusted_subjects: HashSet::new(),
            max_failures: 3,
            throttle: Throttle::new(30, Duration::from_secs(4)),
            max_contexts: 64,
            max_checks: 4,
            max_waiting: WAITING,
            checks: Checks::new(4, WAITING),
        }
    }

    /// Sets what requests must contain (default: a login).
    #[must_use]
    pub fn required(mut self, required: Required) -> Self {
        self.required = required;
        self
    }

    /// Sets the realm in which user names are valid. References name it, and a login for another realm is
    /// refused. Users may then call themselves `user@realm`. By default there is none, and no login is
    /// refused for its realm.
    #[must_use]
    pub fn realm(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }

    /// Accepts passwords over plain TCP too, where others on the network can read them.
    #[must_use]
    pub fn allow_plaintext_passwords(mut self) -> Self {
        self.plaintext = true;
        self
    }

    /// Trusts the logged-in user of that name to assert the identity of other callers. May be called again
    /// for others.
    #[must_use]
    pub fn trust_user(mut self, user: impl Into<String>) -> Self {
        self.trusted_users.insert(user.into());
        self
    }

    /// Trusts clients with a certificate of that subject to assert the identity of other callers. The subject
    /// has the form of `TlsSession::subject`: `CN=gateway,O=Example`. May be called again for others.
    #[must_use]
    pub fn trust_subject(mut self, subject: impl Into<String>) -> Self {
        self.trusted_subjects.insert(subject.into());
        self
    }

    /// Sets the number of logins that may fail on a connection (default 3). After that, new logins on it are
    /// refused without a check. Accepted logins remain valid.
    #[must_use]
    pub fn max_failures(mut self, failures: u32) -> Self {
        self.max_failures = failures;
        self
    }

    /// Sets the number of logins from one address that may fail, and the interval after which one failure is
    /// forgiven (default 30 and 4 s). A client that tries passwords over many connections gets `failures`
    /// attempts at once, and then one each `forgiven`.
    ///
    /// Beyond that, no login from the address is checked, not even one with a correct password. Accepted
    /// logins remain valid. IPv6 addresses are counted by their first 64 bits, and sockets of this machine
    /// are not counted.
    #[must_use]
    pub fn max_failures_per_address(mut self, failures: u32, forgiven: Duration) -> Self {
        self.throttle = Throttle::new(failures, forgiven);
        self
    }

    /// Sets the number of contexts that the ORB keeps for each connection, so that clients may refer to them
    /// instead of sending the login (default 64). A client that uses more sends the login again with each
    /// request.
    #[must_use]
    pub fn max_contexts(mut self, contexts: usize) -> Self {
        self.max_contexts = contexts;
        self
    }

    /// Sets the number of logins that are checked concurrently (default 4). Each connection has at most one;
    /// others are queued.
    #[must_use]
    pub fn max_checks(mut self, checks: usize) -> Self {
        self.max_checks = checks;
        self.checks = Checks::new(checks, self.max_waiting);
        self
    }

    /// Sets the number of logins that may be queued for a check (default 256), with at most 16 MiB of
    /// requests. Beyond that, a login from an address with fewer entries evicts the last login of the address
    /// with the most. Otherwise the new login is refused: its request gets `TRANSIENT` with zorb's minor 1
    /// (`minor::TRANSIENT_OVERLOADED`), completed no. A connection is not read while its login is queued.
    #[must_use]
    pub fn max_waiting(mut self, logins: usize) -> Self {
        self.max_waiting = logins;
        self.checks = Checks::new(self.max_checks, logins);
        self
    }

    /// Returns whether any caller may assert the identity of others.
    pub(super) fn trusts(&self) -> bool {
        !(self.trusted_users.is_empty() && self.trusted_subjects.is_empty())
    }

    /// Returns whether `principal` may assert the identity of others.
    pub(super) fn believes(&self, principal: &Principal) -> bool {
        match principal.kind() {
            PrincipalKind::Login => self.trusted_users.contains(principal.name()),
            PrincipalKind::Certificate => self.trusted_subjects.contains(principal.name()),
            _ => false,
        }
    }

    /// Returns the realm as references encode it.
    pub(super) fn target_name(&self) -> bytes::Bytes {
        let name =
            self.realm.as_ref().and_then(|realm| ExportedName::gssup(&format!("@{realm}")).to_octets());
        name.unwrap_or_default()
    }

    /// Returns whether a login for the server of that name is meant for this server. Many clients name none.
    pub(super) fn is_meant(&self, target: &[u8]) -> bool {
        target.is_empty() || self.realm.is_none() || self.target_name() == target
    }

    /// Returns the user's name without this server's realm.
    pub(super) fn local_user<'a>(&self, user: &'a str) -> &'a str {
        let here = |realm: &String| user.strip_suffix(realm.as_str())?.strip_suffix('@');
        self.realm.as_ref().and_then(here).unwrap_or(user)
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins")
            .field("required", &self.required)
            .field("realm", &self.realm)
            .field("plaintext", &self.plaintext)
            .finish_non_exhaustive()
    }
}

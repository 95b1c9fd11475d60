//! What a server wants to know of its callers.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use giop_codec::csi::ExportedName;

use super::checks::Checks;
use super::principal::{Principal, PrincipalKind};
use super::throttle::Throttle;
use crate::transport::Peer;

/// Logins that wait for a check, by default.
const WAITING: usize = 256;

/// Checks user names and passwords.
///
/// It is called on a thread for what blocks: a hash may take its time, a directory may be asked. What was found good holds for the connection on which
/// it was found, until [`epoch`](Self::epoch) changes.
pub trait Authenticator: Send + Sync + 'static {
    /// Whether this is the user's password; then the name by which the user is known from here on.
    ///
    /// # Errors
    /// [`LoginRefused`], the reason of which goes to the log. The client is not told it.
    fn check(&self, login: &Login<'_>, peer: &Peer) -> Result<String, LoginRefused>;

    /// A number that changes when a user or password that was good may be so no longer.
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
    /// The user's name as it came, but for the realm of this server: of `ann@bank` at the realm `bank` it is `ann`.
    #[must_use]
    pub fn user(&self) -> &'a str {
        self.user
    }

    /// The password. Compare it by a hash that takes as long for each.
    #[must_use]
    pub fn password(&self) -> &'a str {
        self.password
    }
}

/// Without the password.
impl fmt::Debug for Login<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A login that is not good.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LoginRefused(String);

impl LoginRefused {
    /// The reason, for the server's log: not the password, please.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// What a request must say of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Required {
    /// Nothing. What it says all the same must be true.
    Nothing,
    /// A login, or the connection has the caller's certificate.
    Identity,
    /// A login.
    #[default]
    Login,
}

/// What a server wants to know of its callers, and whom it believes: [`OrbBuilder::logins`](crate::OrbBuilder::logins). Clones share
/// the authenticator.
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
    /// Checks that may run at a time.
    pub(super) max_checks: usize,
    /// Logins that may wait for one.
    pub(super) max_waiting: usize,
    pub(super) checks: Arc<Checks>,
}

impl Logins {
    /// Logins that `authenticator` checks, such as [`Users`](super::Users). Every request must come with one.
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

    /// What requests must say (default: a login).
    #[must_use]
    pub fn required(mut self, required: Required) -> Self {
        self.required = required;
        self
    }

    /// The realm in which user names are valid; references say it, and a login that is meant for another is refused. Users may call themselves
    /// `user@realm` then. Default: none, and no login is refused for its realm.
    #[must_use]
    pub fn realm(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }

    /// Takes passwords over plain TCP, where others on the way can read them, too.
    #[must_use]
    pub fn allow_plaintext_passwords(mut self) -> Self {
        self.plaintext = true;
        self
    }

    /// Believes the user of that name, logged in, for whom it calls. May be called again for others.
    #[must_use]
    pub fn trust_user(mut self, user: impl Into<String>) -> Self {
        self.trusted_users.insert(user.into());
        self
    }

    /// Believes who shows a certificate of that subject (`CN=gateway,O=Example`, as `TlsSession::subject` gives it) for whom it calls. May be called
    /// again for others.
    #[must_use]
    pub fn trust_subject(mut self, subject: impl Into<String>) -> Self {
        self.trusted_subjects.insert(subject.into());
        self
    }

    /// Logins that may fail on a connection (default 3). After that no new one is checked there: it is refused at once. Who is logged in stays so.
    #[must_use]
    pub fn max_failures(mut self, failures: u32) -> Self {
        self.max_failures = failures;
        self
    }

    /// Logins from one address that may fail, and after which time one of them is forgiven (default 30 and 4 s): who tries passwords over many
    /// connections gets `failures` at once, and then one each `forgiven`. Beyond that nothing is checked that comes from the address, good
    /// passwords neither; who is logged in stays so. Addresses of IPv6 count by their first 64 bits, and sockets of this machine not at all.
    #[must_use]
    pub fn max_failures_per_address(mut self, failures: u32, forgiven: Duration) -> Self {
        self.throttle = Throttle::new(failures, forgiven);
        self
    }

    /// Contexts that the ORB keeps for each connection, so that clients may name them in place of the login (default 64). Who wants
    /// more sends the login again with each request.
    #[must_use]
    pub fn max_contexts(mut self, contexts: usize) -> Self {
        self.max_contexts = contexts;
        self
    }

    /// Logins that are checked at a time (default 4), one on a connection; others wait.
    #[must_use]
    pub fn max_checks(mut self, checks: usize) -> Self {
        self.max_checks = checks;
        self.checks = Checks::new(checks, self.max_waiting);
        self
    }

    /// Logins that wait for a check (default 256), with at most 16 MiB of requests. Beyond that the address with the most loses its last
    /// one for a login from an address with fewer, or the newcomer is refused: its request gets `TRANSIENT` with zorb's minor 1
    /// (`minor::TRANSIENT_OVERLOADED`), completed no. A connection whose login waits is not read meanwhile.
    #[must_use]
    pub fn max_waiting(mut self, logins: usize) -> Self {
        self.max_waiting = logins;
        self.checks = Checks::new(self.max_checks, logins);
        self
    }

    /// Whether anybody may speak for others.
    pub(super) fn trusts(&self) -> bool {
        !(self.trusted_users.is_empty() && self.trusted_subjects.is_empty())
    }

    /// Whether `principal` may.
    pub(super) fn believes(&self, principal: &Principal) -> bool {
        match principal.kind() {
            PrincipalKind::Login => self.trusted_users.contains(principal.name()),
            PrincipalKind::Certificate => self.trusted_subjects.contains(principal.name()),
            _ => false,
        }
    }

    /// The realm as references have it.
    pub(super) fn target_name(&self) -> bytes::Bytes {
        let name =
            self.realm.as_ref().and_then(|realm| ExportedName::gssup(&format!("@{realm}")).to_octets());
        name.unwrap_or_default()
    }

    /// Whether a login for a server of that name is meant for this one. Many clients name none.
    pub(super) fn is_meant(&self, target: &[u8]) -> bool {
        target.is_empty() || self.realm.is_none() || self.target_name() == target
    }

    /// The user's name without this server's realm.
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

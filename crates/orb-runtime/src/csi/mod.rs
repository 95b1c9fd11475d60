//! Authentication and authorization of callers: logins and asserted identities in requests (CSIv2, the OMG's
//! Common Secure Interoperability), and rules for calls.
//!
//! **Servers** use [`OrbBuilder::logins`](crate::OrbBuilder::logins) to configure how passwords are checked
//! and whether callers must log in. Their references contain these requirements (`TAG_CSI_SEC_MECH_LIST`). A
//! servant gets the caller, a [`Principal`], from [`Request::principal`](crate::Request::principal). An
//! [`Authorizer`], such as [`Rules`] from a file, decides for each request whether it is dispatched.
//!
//! **Clients** use [`OrbBuilder::credentials`](crate::OrbBuilder::credentials) to configure their
//! credentials, or [`Reference::with_credentials`](crate::Reference::with_credentials) for one reference. The
//! login is sent with each request to servers whose references request a login.
//!
//! A password is sent over TLS, Unix sockets and in-memory pipes. It is sent over plain TCP, where others can
//! read it, only if both sides allow that ([`Logins::allow_plaintext_passwords`],
//! [`Credentials::allow_plaintext_passwords`]).
//!
//! ```no_run
//! # use orb_runtime::Orb;
//! use orb_runtime::csi::{Credentials, Logins, Rules, Users};
//!
//! # async fn build() -> Result<(), Box<dyn std::error::Error>> {
//! let users = Users::file("users.txt")?; // lines of `zorb::csi::Users::hash_entry("ann", "her password")`
//! let rules = Rules::file("rules.toml")?;
//! let server = Orb::builder()
//!     .listen("uiop:///run/bank.sock")
//!     .logins(Logins::new(users.clone()).realm("bank"))
//!     .authorizer(rules.clone())
//!     .build()
//!     .await?;
//! // After the files have changed:
//! users.reload()?;
//! rules.reload()?;
//!
//! let client = Orb::builder().credentials(Credentials::login("ann", "her password")).build().await?;
//! # Ok(()) }
//! ```
//!
//! # Which requests are checked
//! Every request that is received over a connection is checked, including the operations that every object
//! has (`_is_a`, `_non_existent`, ...):
//!
//! 1. The caller is authenticated, if logins are configured.
//! 2. The object is looked up.
//! 3. The authorizer is called, before a servant activator creates a servant or an adapter activator creates
//!    a POA.
//!
//! A LocateRequest cannot identify its caller. If logins or an authorizer are configured, the answer to every
//! LocateRequest is that the server has the object, and the following request is checked. Calls from this
//! process to its own objects are not checked, because the caller could call the servant directly.
//!
//! Refused requests get `NO_PERMISSION`, `COMPLETED_NO`, with
//! [`NO_PERMISSION_AUTHENTICATION_REQUIRED`](crate::minor::NO_PERMISSION_AUTHENTICATION_REQUIRED),
//! [`NO_PERMISSION_INVALID_CREDENTIALS`](crate::minor::NO_PERMISSION_INVALID_CREDENTIALS) or
//! [`NO_PERMISSION_DENIED`](crate::minor::NO_PERMISSION_DENIED).
//!
//! Source clause: "Secure Interoperability / Common Secure Interoperability".

mod authentication;
mod authorizer;
mod credentials;
mod guard;
mod login_queue;
mod logins;
mod mechanisms;
mod principal;
mod rules;
mod security;
mod throttle;
mod users;

pub(crate) use authentication::{AuthOutcome, LoginCheck, Refusal};
pub use authorizer::{Access, Authorizer, Decision};
pub(crate) use credentials::with_refusal_reason;
pub use credentials::{AssertedIdentity, Credentials};
pub(crate) use guard::{Caller, Guard};
pub use logins::{Authenticator, Login, LoginRefused, Logins, Required};
pub(crate) use principal::certified_principal;
pub use principal::{Principal, PrincipalKind};
pub use rules::{Rules, RulesError};
pub use security::CsiStats;
pub(crate) use security::Security;
pub use users::{Users, UsersError};

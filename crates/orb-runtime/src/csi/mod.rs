//! Who calls, and what he may: logins and asserted identities beside requests (CSIv2), and rules for calls.
//!
//! **Servers** say by [`OrbBuilder::logins`](crate::OrbBuilder::logins) who checks a user's password, and whether callers must be
//! known; their references say it too (`TAG_CSI_SEC_MECH_LIST`). The servant asks its request for the [`Principal`]:
//! [`Request::principal`](crate::Request::principal). An [`Authorizer`], such as [`Rules`] from a file, decides before
//! each request is dispatched.
//!
//! **Clients** say by [`OrbBuilder::credentials`](crate::OrbBuilder::credentials), or for one reference by
//! [`Reference::with_credentials`](crate::Reference::with_credentials), as whom they call. The login travels with each request
//! to servers whose references ask for one.
//!
//! A password is as secret as the connection it travels over: it goes over TLS, Unix sockets and in-memory pipes, and over plain TCP only
//! where both sides say so ([`Logins::allow_plaintext_passwords`], [`Credentials::allow_plaintext_passwords`]).
//!
//! ```no_run
//! # use orb_runtime::Orb;
//! use orb_runtime::csi::{Credentials, Logins, Rules, Users};
//!
//! # async fn build() -> Result<(), Box<dyn std::error::Error>> {
//! let users = Users::file("users.txt")?; // lines of `zorb::csi::Users::line("ann", "her password")`
//! let rules = Rules::file("rules.toml")?;
//! let server = Orb::builder()
//!     .listen("uiop:///run/bank.sock")
//!     .logins(Logins::new(users.clone()).realm("bank"))
//!     .authorizer(rules.clone())
//!     .build()
//!     .await?;
//! // When the files are new:
//! users.reload()?;
//! rules.reload()?;
//!
//! let client = Orb::builder().credentials(Credentials::login("ann", "her password")).build().await?;
//! # Ok(()) }
//! ```
//!
//! # What is judged
//! Every request that comes over a connection, the operations of every object (`_is_a`, `_non_existent`, ...) included. First it must say
//! who calls, if that is required; then the object is looked up; then the authoriser is asked, before a servant activator makes a servant or an
//! adapter activator a POA. A LocateRequest can not say who calls: where
//! logins or an authoriser are set, it is answered that the object is there, whatever its key, and the request behind it is judged. Calls
//! of this process to its own objects are not judged: their caller could as well call the servant.
//!
//! What is refused is `NO_PERMISSION`, `COMPLETED_NO`, with [`NO_PERMISSION_UNKNOWN_CALLER`](crate::minor::NO_PERMISSION_UNKNOWN_CALLER),
//! [`NO_PERMISSION_NOT_BELIEVED`](crate::minor::NO_PERMISSION_NOT_BELIEVED) or
//! [`NO_PERMISSION_DENIED`](crate::minor::NO_PERMISSION_DENIED).
//!
//! Source clause: "Secure Interoperability / Common Secure Interoperability".

mod authorizer;
mod checks;
mod credentials;
mod guard;
mod judge;
mod logins;
mod mechanisms;
mod principal;
mod rules;
mod security;
mod throttle;
mod users;

pub use authorizer::{Access, Authorizer, Decision};
pub(crate) use credentials::explained;
pub use credentials::{AssertedIdentity, Credentials};
pub(crate) use guard::{Caller, Guard};
pub(crate) use judge::{Check, Judged, Refused};
pub use logins::{Authenticator, Login, LoginRefused, Logins, Required};
pub(crate) use principal::by_certificate;
pub use principal::{Principal, PrincipalKind};
pub use rules::{Rules, RulesError};
pub use security::CsiStats;
pub(crate) use security::Security;
pub use users::{Users, UsersError};

//! Authentication and authorization: logins, asserted identities, rules, and hostile clients.

mod asserted;
mod hostile;
mod logins;
mod rules;
mod users;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use test_support::transport;
use tokio::sync::Mutex;
use zorb::csi::{Authenticator, Credentials, Login, LoginRefused, Logins, Principal};
use zorb::prelude::*;
use zorb::tls::{Identity, Tls, TlsBuilder, Trust};
use zorb::{MinorCode, OrbBuilder, Peer, minor};

use test_support::certificates::Authority;

zorb::idl! {
    module Guarded {
        interface Vault {
            string who();
            long add(in long a, in long b);
            oneway void push(in long number);
            long pushed();
            void fail();
        };
    };
}

use guarded::{VaultRef, VaultServant};
pub(crate) use transport::builder;

#[derive(Default)]
pub(crate) struct Vault {
    pushed: AtomicI32,
    pub(crate) calls: Arc<AtomicU32>,
}

/// Returns a principal in the format of the tests.
pub(crate) fn shown(principal: Option<&Principal>) -> String {
    let Some(principal) = principal else { return "nobody".to_owned() };
    let asserted_by = principal.asserted_by().map(|asserted_by| format!(" by {}", shown(Some(asserted_by))));
    format!("{:?} {}{}", principal.kind(), principal.name(), asserted_by.unwrap_or_default())
}

impl VaultServant for Vault {
    async fn who(&self) -> Result<String, SystemException> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(shown(zorb::request().principal().as_deref()))
    }
    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(a + b)
    }
    async fn push(&self, number: i32) -> Result<(), SystemException> {
        // Each must find the result of its predecessor.
        let before = self.pushed.swap(number, Ordering::Relaxed);
        assert_eq!(before + 1, number, "in the order in which they came");
        Ok(())
    }
    async fn pushed(&self) -> Result<i32, SystemException> {
        Ok(self.pushed.load(Ordering::Relaxed))
    }
    async fn fail(&self) -> Result<(), SystemException> {
        Err(SystemException::no_resources().completed(CompletionStatus::Yes))
    }
}

/// A store of plaintext passwords that counts its queries.
#[derive(Clone, Default)]
pub(crate) struct Known {
    passwords: HashMap<&'static str, &'static str>,
    pub(crate) asked: Arc<AtomicU32>,
    /// Held by a test to delay logins.
    pub(crate) slow: Arc<Mutex<()>>,
}

impl Known {
    pub(crate) fn new(passwords: &[(&'static str, &'static str)]) -> Self {
        Self { passwords: passwords.iter().copied().collect(), ..Self::default() }
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Authenticator for Known {
    fn check(&self, login: &Login<'_>, _: &Peer) -> Result<String, LoginRefused> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        assert_ne!(login.user(), "bomb", "this user is too much");
        drop(self.slow.blocking_lock());
        match self.passwords.get(login.user()) {
            Some(password) if *password == login.password() => Ok(login.user().to_owned()),
            _ => Err(LoginRefused::because("not known")),
        }
    }
}

/// Two users and a gateway.
pub(crate) fn known() -> Known {
    Known::new(&[("ann", "a secret"), ("bob", "another"), ("gateway", "opens")])
}

/// Their logins over plain TCP.
pub(crate) fn logins() -> Logins {
    Logins::new(known()).allow_plaintext_passwords()
}

pub(crate) fn as_user(user: &str, password: &str) -> Credentials {
    Credentials::login(user, password).allow_plaintext_passwords()
}

/// Returns a server at a port of this machine, and its reference as a string.
pub(crate) async fn serve(builder: OrbBuilder) -> (Orb, String) {
    serve_at(builder.listen("iiop://127.0.0.1:0")).await
}

pub(crate) async fn serve_at(builder: OrbBuilder) -> (Orb, String) {
    let orb = builder.build().await.unwrap();
    let vault: VaultRef = orb.activate(Vault::default()).unwrap();
    (orb.clone(), vault.to_string())
}

/// Returns the object as called by an ORB of its own.
pub(crate) async fn call(builder: OrbBuilder, reference: &str) -> (Orb, VaultRef) {
    let orb = builder.build().await.unwrap();
    let vault = orb.resolve_unchecked(reference).await.unwrap();
    (orb, vault)
}

/// Returns TLS with a certificate of the CA, and with trust in the CA.
pub(crate) fn tls(authority: &Authority, name: &str) -> TlsBuilder {
    let (certificate, key) = authority.issue(name);
    Tls::builder().identity(Identity::pem(certificate, key)).trust(Trust::pem(authority.pem()))
}

/// Asserts that the call was rejected before execution, with that minor code, and with a message that
/// contains the text.
#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(
    result: Result<T, SystemException>,
    minor: MinorCode,
    words: &str,
) {
    let exception = result.unwrap_err();
    assert_eq!(exception.kind, SystemExceptionKind::NoPermission, "{exception:?}");
    assert_eq!((exception.minor, exception.completed), (minor, CompletionStatus::No), "{exception:?}");
    let source = std::error::Error::source(&exception).map(ToString::to_string).unwrap_or_default();
    assert!(source.contains(words), "{source}");
}

pub(crate) const UNKNOWN: MinorCode = minor::NO_PERMISSION_AUTHENTICATION_REQUIRED;
pub(crate) const NOT_BELIEVED: MinorCode = minor::NO_PERMISSION_INVALID_CREDENTIALS;
pub(crate) const DENIED: MinorCode = minor::NO_PERMISSION_DENIED;
/// Rejected by the client's own ORB.
pub(crate) const HERE: MinorCode = MinorCode::NONE;

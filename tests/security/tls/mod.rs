//! Calls by TLS: trust, rejections and their errors, and that everything else is the same as without TLS.

mod calls;
mod options;
mod refusals;
mod resumption;
mod revocation;
mod ways;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use test_support::{contents, transport};
use zorb::prelude::*;
use zorb::tls::{Identity, Tls, TlsSession, Trust};

use contents::octets;

use test_support::certificates::Authority;

zorb::idl! {
    module Safe {
        typedef sequence<octet> Octets;
        interface Bell {
            long ring(in long number);
        };
        interface Vault {
            long add(in long a, in long b);
            Octets echo(in Octets octets);
            string caller();
            long back(in Bell bell, in long number);
            oneway void push(in Octets octets);
            long pushed();
        };
    };
}

use safe::{BellRef, VaultRef, VaultServant};

#[derive(Default)]
pub(crate) struct Vault {
    pushed: std::sync::atomic::AtomicI32,
}

/// Describes the sender of a request.
pub(crate) fn shown(session: Option<&Arc<TlsSession>>) -> String {
    let Some(session) = session else { return "plaintext".to_owned() };
    let subject = session.subject().unwrap_or("nobody");
    format!("{:?} {subject} {}", session.version(), session.certificates().len())
}

impl VaultServant for Vault {
    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a + b)
    }
    async fn echo(&self, octets: Bytes) -> Result<Bytes, SystemException> {
        Ok(octets)
    }
    async fn caller(&self) -> Result<String, SystemException> {
        Ok(shown(zorb::request().tls()))
    }
    async fn back(&self, bell: Option<BellRef>, number: i32) -> Result<i32, SystemException> {
        bell.unwrap().ring(number).await
    }
    async fn push(&self, _: Bytes) -> Result<(), SystemException> {
        self.pushed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
    async fn pushed(&self) -> Result<i32, SystemException> {
        Ok(self.pushed.load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// Returns the identity that the CA issues to `name` for 127.0.0.1.
pub(crate) fn identity(authority: &Authority, name: &str) -> Identity {
    let (certificate, key) = authority.issue(name);
    Identity::pem(certificate, key)
}

/// Returns TLS with a certificate of the CA, and with trust in the CA.
pub(crate) fn tls(authority: &Authority, name: &str) -> zorb::tls::TlsBuilder {
    Tls::builder().identity(identity(authority, name)).trust(Trust::pem(authority.pem()))
}

/// A directory for the files of a test.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("zorb-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file in it, and returns its path.
    pub(crate) fn file(&self, name: &str, octets: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.0.join(name), octets).unwrap();
        self.0.join(name)
    }

    /// Writes a file in it, and returns its path as a string.
    pub(crate) fn path(&self, name: &str, octets: impl AsRef<[u8]>) -> String {
        self.file(name, octets).into_os_string().into_string().unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a server with TLS, and its reference as a string.
pub(crate) async fn server(tls: Tls) -> (Orb, String) {
    let orb = transport::builder().tls(tls).listen("ssliop://127.0.0.1:0").build().await.unwrap();
    let vault: VaultRef = orb.activate(Vault::default()).unwrap();
    (orb.clone(), vault.to_string())
}

/// Returns the server's object, called by another ORB.
pub(crate) async fn client(tls: Tls, reference: &str) -> (Orb, VaultRef) {
    let orb = transport::builder().tls(tls).build().await.unwrap();
    let vault = orb.resolve_unchecked(reference).await.unwrap();
    (orb, vault)
}

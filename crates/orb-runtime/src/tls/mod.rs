//! TLS for connections (SSLIOP): the identity of this ORB, the CAs that it trusts, and its requirements for
//! peers.
//!
//! An ORB with a [`Tls`] listens on `ssliop://HOST:PORT` and publishes the port in its references
//! (`TAG_SSL_SEC_TRANS`). It calls servers over TLS if their references contain such a port. A servant gets
//! the [`TlsSession`] of its caller from the request: `Request::tls`.
//!
//! ```no_run
//! # use orb_runtime::Orb;
//! use orb_runtime::tls::{ClientCertificates, Identity, Tls, Trust};
//!
//! # async fn build() -> Result<(), Box<dyn std::error::Error>> {
//! let tls = Tls::builder()
//!     .identity(Identity::files("server.pem", "server.key"))
//!     .trust(Trust::file("ca.pem"))
//!     .client_certificates(ClientCertificates::Required)
//!     .build()?;
//! let orb = Orb::builder().tls(tls.clone()).listen("ssliop://0.0.0.0:0").build().await?;
//! // When the files are new:
//! tls.reload()?;
//! # Ok(()) }
//! ```
//!
//! rustls checks certificates, and ring performs the cryptography. TLS 1.2 and 1.3 are supported, only with
//! forward secrecy and authenticated ciphers. Older versions, and the anonymous ciphers that the
//! specification of SSLIOP lists, are not supported. Sessions are never resumed: each connection begins with
//! a handshake that checks the certificates.

pub(crate) mod failure;
pub(crate) mod handshakes;
mod pem;
mod revocation;
mod session;
mod verify;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use giop_codec::ior::SslSecTrans;
use rustls::client::Resumption;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ServerConfig, SupportedProtocolVersion};

pub use pem::{Identity, Trust};
pub use revocation::{RevocationCheck, RevocationList};
pub use session::TlsSession;

use crate::tls::revocation::Revocations;

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    V1_2,
    /// TLS 1.3 (RFC 8446).
    V1_3,
}

/// The certificates that a server requests of its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClientCertificates {
    /// No certificate is requested: clients are not authenticated.
    #[default]
    None,
    /// A certificate is requested, but optional. One that is not trusted fails the handshake.
    Wanted,
    /// A certificate is required: the handshake fails without one.
    Required,
}

/// Whether the certificate of a server must be issued for the host that its reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ServerNames {
    /// The host, a name or an IP address, must be among the certificate's subject alternative names.
    #[default]
    Checked,
    /// Any certificate of a trusted CA is accepted, as is usual in CORBA. In this case, trust only the CA of
    /// your own servers.
    Unchecked,
}

/// The choice between plaintext and TLS, if a reference offers both, in the same profile or in several.
///
/// No choice falls back from TLS to plaintext, because an attacker that can block a port or break a handshake
/// could force that. If TLS fails, the call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Outgoing {
    /// Uses only TLS if a reference offers it, even if its server cannot be reached by TLS. Uses plaintext if
    /// the reference offers nothing else. The issuer of a reference therefore decides, so references must be
    /// obtained over a trusted channel.
    #[default]
    Preferred,
    /// Uses only TLS. A reference without it raises `NO_PERMISSION`, `COMPLETED_NO`. Sockets on this machine
    /// are used nevertheless.
    Required,
    /// Uses plaintext. Uses TLS only for profiles that offer nothing else, after those that offer plaintext.
    WhereRequired,
}

/// An error of creating a [`Tls`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file or text has invalid content.
    #[error("{origin}: {reason}")]
    Content {
        /// The file, or a description of the text.
        origin: String,
        /// The problem.
        reason: String,
    },
    /// Client certificates are requested, but no CA is trusted.
    #[error("clients are asked for certificates, but no CA is trusted: TlsBuilder::trust says which")]
    NoTrust,
    /// No version of TLS is allowed.
    #[error("no version of TLS is allowed: TlsBuilder::versions names some")]
    NoVersion,
    /// rustls rejects the configuration.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

/// Identity, trust and rules of TLS. Clones share all of it, so that a reload through one clone applies to
/// the ORBs of all clones.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Shared>,
}

struct Shared {
    rules: Rules,
    current: ArcSwap<Current>,
    replacing: Mutex<()>,
}

#[derive(Debug, Clone)]
pub(crate) struct Rules {
    client_certificates: ClientCertificates,
    server_names: ServerNames,
    fingerprints: Vec<[u8; 32]>,
    revocation_check: RevocationCheck,
    versions: Vec<TlsVersion>,
    pub(crate) outgoing: Outgoing,
    pub(crate) handshake_timeout: Duration,
    pub(crate) max_handshakes: usize,
}

/// The configuration that is read, and read again by a reload.
#[derive(Debug, Clone, Default)]
struct Sources {
    identity: Option<Identity>,
    trust: Option<Trust>,
    revocation_lists: Vec<RevocationList>,
}

/// The configuration of new handshakes.
struct Current {
    sources: Sources,
    server: Option<Arc<ServerConfig>>,
    /// `None` if there is no trust by which a server could be accepted.
    client: Option<Arc<ClientConfig>>,
}

/// Builds a [`Tls`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct TlsBuilder {
    sources: Sources,
    rules: Rules,
}

impl Tls {
    /// Returns a builder without identity and trust.
    pub fn builder() -> TlsBuilder {
        let rules = Rules {
            client_certificates: ClientCertificates::default(),
            server_names: ServerNames::default(),
            fingerprints: Vec::new(),
            revocation_check: RevocationCheck::default(),
            versions: vec![TlsVersion::V1_2, TlsVersion::V1_3],
            outgoing: Outgoing::default(),
            handshake_timeout: Duration::from_secs(10),
            max_handshakes: 256,
        };
        TlsBuilder { sources: Sources::default(), rules }
    }

    /// Reads the files again. New handshakes use their current content. Open connections continue.
    ///
    /// # Errors
    /// [`TlsError`]. In this case, nothing changes.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.replace(|_| {})
    }

    /// Replaces the identity, and reloads as [`reload`](Self::reload) does.
    ///
    /// # Errors
    /// Those of [`reload`](Self::reload).
    pub fn set_identity(&self, identity: Identity) -> Result<(), TlsError> {
        self.replace(|sources| sources.identity = Some(identity))
    }

    /// Replaces the trusted CAs, and reloads as [`reload`](Self::reload) does.
    ///
    /// # Errors
    /// Those of [`reload`](Self::reload).
    pub fn set_trust(&self, trust: Trust) -> Result<(), TlsError> {
        self.replace(|sources| sources.trust = Some(trust))
    }

    /// Replaces the revocation lists, and reloads as [`reload`](Self::reload) does.
    ///
    /// # Errors
    /// Those of [`reload`](Self::reload).
    pub fn set_revocation_lists(
        &self,
        lists: impl IntoIterator<Item = RevocationList>,
    ) -> Result<(), TlsError> {
        let lists = lists.into_iter().collect();
        self.replace(|sources| sources.revocation_lists = lists)
    }

    fn replace(&self, change: impl FnOnce(&mut Sources)) -> Result<(), TlsError> {
        // Serialize replacements, so that no change of a concurrent one is lost.
        let _one = self.shared.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sources = self.shared.current.load().sources.clone();
        change(&mut sources);
        self.shared.current.store(Arc::new(Current::load(sources, &self.shared.rules)?));
        Ok(())
    }

    /// Returns whether TLS is used for a server that offers it. `plaintext`: the server offers plaintext,
    /// too.
    pub(crate) fn takes_tls(&self, plaintext: bool) -> bool {
        !plaintext || self.rules().outgoing != Outgoing::WhereRequired
    }

    /// Returns whether plaintext is used for a server that offers it. `tls`: the server offers TLS, too.
    pub(crate) fn takes_plaintext(&self, tls: bool) -> bool {
        match self.rules().outgoing {
            // An attacker on the path could force a fallback to plaintext.
            Outgoing::Preferred => !tls,
            Outgoing::Required => false,
            Outgoing::WhereRequired => true,
        }
    }

    pub(crate) fn has_identity(&self) -> bool {
        self.shared.current.load().server.is_some()
    }

    pub(crate) fn max_handshakes(&self) -> usize {
        self.rules().max_handshakes
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.shared.rules
    }

    /// Returns the configuration of servers; `None` without an identity.
    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.shared.current.load().server.clone()
    }

    /// Returns the configuration of clients; `None` without trust.
    pub(crate) fn client(&self) -> Option<Arc<ClientConfig>> {
        self.shared.current.load().client.clone()
    }

    /// Returns the component of references for a port with TLS. `plaintext`: there is a port without TLS,
    /// too.
    ///
    /// Source clause: "Security Service / TAG_SSL_SEC_TRANS".
    pub(crate) fn component(&self, port: u16, plaintext: bool) -> SslSecTrans {
        let mut target_supports =
            SslSecTrans::PROTECTED | SslSecTrans::DETECTS | SslSecTrans::TRUST_IN_TARGET;
        let mut target_requires = SslSecTrans::PROTECTED;
        match self.rules().client_certificates {
            ClientCertificates::None => {}
            ClientCertificates::Wanted => target_supports |= SslSecTrans::TRUST_IN_CLIENT,
            ClientCertificates::Required => {
                target_supports |= SslSecTrans::TRUST_IN_CLIENT;
                target_requires |= SslSecTrans::TRUST_IN_CLIENT;
            }
        }
        if plaintext {
            target_supports |= SslSecTrans::NO_PROTECTION;
            target_requires = SslSecTrans::NO_PROTECTION;
        }
        SslSecTrans { target_supports, target_requires, port }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(self.rules()).finish()
    }
}

impl TlsBuilder {
    /// Sets the identity of this ORB. Servers need it; clients present it to servers that request it.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.sources.identity = Some(identity);
        self
    }

    /// Sets the CAs that are trusted to issue the certificates of servers, and of clients if these are
    /// requested.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.sources.trust = Some(trust);
        self
    }

    /// Adds a list of revoked certificates, which are rejected although a trusted CA issued them. The list
    /// applies to the certificates of servers, and of clients if these are requested. May be called again for
    /// the lists of other CAs.
    ///
    /// If there is a list, every certificate below a trusted one is looked up according to
    /// [`revocation_check`](Self::revocation_check). [`build`](Self::build) and [`Tls::reload`] read the
    /// lists. Lists are never downloaded. A new list applies to new handshakes: open connections continue.
    pub fn revocation_list(mut self, list: RevocationList) -> Self {
        self.sources.revocation_lists.push(list);
        self
    }

    /// Sets the rule for certificates without a revocation list, or with an outdated one. By default they are
    /// rejected. Without [`revocation_list`](Self::revocation_list), revocation is not checked.
    pub fn revocation_check(mut self, check: RevocationCheck) -> Self {
        self.rules.revocation_check = check;
        self
    }

    /// Sets the certificates that clients are requested to present. Default: none.
    pub fn client_certificates(mut self, asked: ClientCertificates) -> Self {
        self.rules.client_certificates = asked;
        self
    }

    /// Sets whether certificates of servers must name the called host. By default they must.
    pub fn server_names(mut self, names: ServerNames) -> Self {
        self.rules.server_names = names;
        self
    }

    /// Accepts only servers with exactly this certificate, given by its SHA-256 digest. May be called again
    /// to accept further ones. Issuer, subject, validity and revocation of such a certificate are not
    /// checked: the source of the digest must have done that.
    pub fn pin(mut self, fingerprint: [u8; 32]) -> Self {
        self.rules.fingerprints.push(fingerprint);
        self
    }

    /// Sets the supported versions. Default: TLS 1.2 and 1.3.
    pub fn versions(mut self, versions: &[TlsVersion]) -> Self {
        self.rules.versions = versions.to_vec();
        self
    }

    /// Sets the choice between plaintext and TLS if a reference offers both. Default: TLS.
    pub fn outgoing(mut self, outgoing: Outgoing) -> Self {
        self.rules.outgoing = outgoing;
        self
    }

    /// Sets the timeout of a client's handshake, after which its connection is closed. Default: 10 s. The
    /// handshake with a server is limited by `OrbBuilder::connect_timeout`.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.rules.handshake_timeout = timeout;
        self
    }

    /// Sets the maximum number of concurrent handshakes of clients. Default: 256. Beyond that, a new
    /// connection evicts the oldest handshake that has taken longer than
    /// [`OrbBuilder::evict_idle_after`](crate::OrbBuilder::evict_idle_after), or whose address has at
    /// least two more handshakes than that of the new connection. Handshakes without a ClientHello are
    /// evicted first. If none can be evicted, the new connection is closed immediately, and counted.
    pub fn max_handshakes(mut self, handshakes: usize) -> Self {
        self.rules.max_handshakes = handshakes.max(1);
        self
    }

    /// Reads the files and checks the configuration.
    ///
    /// # Errors
    /// [`TlsError`] with the file and the problem.
    pub fn build(self) -> Result<Tls, TlsError> {
        let current = ArcSwap::from_pointee(Current::load(self.sources, &self.rules)?);
        Ok(Tls { shared: Arc::new(Shared { rules: self.rules, current, replacing: Mutex::default() }) })
    }
}

impl Current {
    fn load(sources: Sources, rules: &Rules) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions: Vec<&'static SupportedProtocolVersion> =
            [(TlsVersion::V1_2, &TLS12), (TlsVersion::V1_3, &TLS13)]
                .into_iter()
                .filter(|(version, _)| rules.versions.contains(version))
                .map(|(_, version)| version)
                .collect();
        if versions.is_empty() {
            return Err(TlsError::NoVersion);
        }
        let certified = sources.identity.as_ref().map(|identity| identity.load(&provider)).transpose()?;
        let roots = sources.trust.as_ref().map(Trust::load).transpose()?.map(Arc::new);
        let (lists, check) = (&sources.revocation_lists, rules.revocation_check);
        let revocations = Revocations::load(lists, check, roots.as_ref(), &provider)?;

        let server = match &certified {
            None => None,
            Some(certified) => {
                let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
                let builder = builder.with_protocol_versions(&versions)?;
                let builder = match (rules.client_certificates, &roots) {
                    (ClientCertificates::None, _) => builder.with_no_client_auth(),
                    (_, None) => return Err(TlsError::NoTrust),
                    (asked, Some(roots)) => {
                        let clients = WebPkiClientVerifier::builder_with_provider(
                            Arc::clone(roots),
                            Arc::clone(&provider),
                        );
                        let clients = revocations.of_clients(clients);
                        let clients = match asked {
                            ClientCertificates::Required => clients,
                            _ => clients.allow_unauthenticated(),
                        };
                        let built = clients.build();
                        builder.with_client_cert_verifier(built.map_err(|error| TlsError::Content {
                            origin: "the trusted certificates".to_owned(),
                            reason: error.to_string(),
                        })?)
                    }
                };
                let mut server = builder.with_cert_resolver(Arc::new(pem::Only(Arc::clone(certified))));
                // A resumed session skips the check of certificates, so they would be accepted after their
                // expiry or revocation. Connections of ORBs are few and long-lived, so resumption would save
                // little.
                server.session_storage = Arc::new(NoServerSessionStorage {});
                server.send_tls13_tickets = 0;
                Some(Arc::new(server))
            }
        };

        let client = if roots.is_none() && rules.fingerprints.is_empty() {
            None
        } else {
            let fingerprints = rules.fingerprints.clone();
            let servers =
                verify::Servers::new(roots, rules.server_names, fingerprints, &revocations, &provider)?;
            let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions)?;
            let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(servers));
            let mut client = match certified {
                None => builder.with_no_client_auth(),
                Some(certified) => builder.with_client_cert_resolver(Arc::new(pem::Only(certified))),
            };
            client.resumption = Resumption::disabled();
            Some(Arc::new(client))
        };
        Ok(Self { sources, server, client })
    }
}

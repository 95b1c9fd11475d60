//! TLS for connections (SSLIOP): the ORB's certificate, the trusted CAs, and the requirements for peers.
//!
//! An ORB with a [`Tls`] can listen on `ssliop://HOST:PORT`, and publishes the port in its references
//! (`TAG_SSL_SEC_TRANS`). By default, it calls a server over TLS if the server's reference contains a TLS
//! port. A servant gets the [`TlsSession`] of its caller by `Request::tls`.
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
//! // After the files have changed:
//! tls.reload()?;
//! # Ok(()) }
//! ```
//!
//! rustls implements TLS 1.2 and 1.3, with the cryptography of ring. Older versions are not supported.
//! Ciphers without forward secrecy or authentication are not supported, although the specification of SSLIOP
//! lists some. Sessions are never resumed, so that each handshake checks the certificates.

pub(crate) mod failure;
pub(crate) mod handshakes;
mod pem;
mod revocation;
mod session;
mod verify;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use giop_codec::ior::SslSecTrans;
use rustls::client::{Resumption, VerifierBuilderError};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ServerConfig, SupportedProtocolVersion};

pub use pem::{Identity, Trust};
pub use revocation::{RevocationCheck, RevocationList};
pub use session::TlsSession;

use crate::lock::lock;
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
    /// No certificate is requested. Clients are not authenticated by TLS.
    #[default]
    None,
    /// A certificate is requested. The handshake fails if it is invalid, but succeeds without a certificate.
    Optional,
    /// A certificate is requested. The handshake fails if the client does not send a valid one.
    Required,
}

/// Whether the certificate of a server must be valid for the host in the server's reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ServerNames {
    /// The host (a name or an IP address) must be among the certificate's subject alternative names.
    #[default]
    Checked,
    /// Every certificate of a trusted CA is accepted, as is usual in CORBA. Then trust only a CA of your own.
    Unchecked,
}

/// The choice between plaintext and TLS for calls, if a reference offers both, in one or in several profiles.
///
/// There is no fallback from TLS to plaintext. If TLS fails, the call fails. With a fallback, an attacker
/// could force plaintext by blocking a port or by breaking a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OutgoingTls {
    /// TLS if the reference offers TLS, otherwise plaintext. An attacker that can modify a reference can
    /// force plaintext. Therefore references must be obtained over a trusted channel.
    #[default]
    Preferred,
    /// Only TLS. Calls through a reference that does not offer TLS fail with `NO_PERMISSION`, `COMPLETED_NO`.
    /// Unix sockets of this machine are still used.
    Required,
    /// Plaintext if a profile offers it. Profiles that offer only TLS are tried after the others, over TLS.
    WhereRequired,
}

/// The reason why a [`Tls`] cannot be created or reloaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path of the file.
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
    #[error("client certificates are requested, but no CA is trusted: configure TlsBuilder::trust")]
    NoTrust,
    /// No version of TLS is enabled.
    #[error("no version of TLS is enabled: configure TlsBuilder::versions")]
    NoVersion,
    /// rustls rejects the configuration.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

impl TlsError {
    fn of_trust(error: VerifierBuilderError) -> Self {
        Self::Content { origin: "the trusted certificates".to_owned(), reason: error.to_string() }
    }
}

/// The TLS configuration of an ORB. Clones share it, so that a reload applies to the ORBs of all clones.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Shared>,
}

struct Shared {
    rules: Rules,
    current: ArcSwap<LoadedConfig>,
    reload_lock: Mutex<()>,
}

/// The part of the configuration that a reload does not change.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    client_certificates: ClientCertificates,
    server_names: ServerNames,
    fingerprints: Vec<[u8; 32]>,
    revocation_check: RevocationCheck,
    versions: Vec<TlsVersion>,
    pub(crate) outgoing: OutgoingTls,
    pub(crate) handshake_timeout: Duration,
    pub(crate) max_handshakes: usize,
}

/// The sources of certificates, keys and lists. A reload reads them again.
#[derive(Debug, Clone, Default)]
struct Sources {
    identity: Option<Identity>,
    trust: Option<Trust>,
    revocation_lists: Vec<RevocationList>,
}

/// The configuration of new handshakes, loaded from the sources.
struct LoadedConfig {
    sources: Sources,
    /// For handshakes with clients. `None` if this ORB has no certificate.
    server: Option<Arc<ServerConfig>>,
    /// For handshakes with servers. `None` if no CA or certificate is trusted.
    client: Option<Arc<ClientConfig>>,
}

/// Builds a [`Tls`].
#[derive(Debug)]
#[must_use = "`build` creates the `Tls`"]
pub struct TlsBuilder {
    sources: Sources,
    rules: Rules,
}

impl Tls {
    /// Returns a builder without identity and without trusted CAs.
    pub fn builder() -> TlsBuilder {
        let rules = Rules {
            client_certificates: ClientCertificates::default(),
            server_names: ServerNames::default(),
            fingerprints: Vec::new(),
            revocation_check: RevocationCheck::default(),
            versions: vec![TlsVersion::V1_2, TlsVersion::V1_3],
            outgoing: OutgoingTls::default(),
            handshake_timeout: Duration::from_secs(10),
            max_handshakes: 256,
        };
        TlsBuilder { sources: Sources::default(), rules }
    }

    /// Reads all files again. New handshakes use their new content. Open connections are not affected.
    ///
    /// # Errors
    /// A file cannot be read or is invalid. The configuration is then not changed.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.replace(|_| {})
    }

    /// Replaces the identity, and then does a [`reload`](Self::reload).
    ///
    /// # Errors
    /// The same as for [`reload`](Self::reload).
    pub fn set_identity(&self, identity: Identity) -> Result<(), TlsError> {
        self.replace(|sources| sources.identity = Some(identity))
    }

    /// Replaces the trusted CAs, and then does a [`reload`](Self::reload).
    ///
    /// # Errors
    /// The same as for [`reload`](Self::reload).
    pub fn set_trust(&self, trust: Trust) -> Result<(), TlsError> {
        self.replace(|sources| sources.trust = Some(trust))
    }

    /// Replaces the revocation lists, and then does a [`reload`](Self::reload).
    ///
    /// # Errors
    /// The same as for [`reload`](Self::reload).
    pub fn set_revocation_lists(
        &self,
        lists: impl IntoIterator<Item = RevocationList>,
    ) -> Result<(), TlsError> {
        let lists = lists.into_iter().collect();
        self.replace(|sources| sources.revocation_lists = lists)
    }

    fn replace(&self, change: impl FnOnce(&mut Sources)) -> Result<(), TlsError> {
        // Without this lock, one of two concurrent changes could be lost.
        let _lock = lock(&self.shared.reload_lock);
        let mut sources = self.shared.current.load().sources.clone();
        change(&mut sources);
        self.shared.current.store(Arc::new(LoadedConfig::load(sources, &self.shared.rules)?));
        Ok(())
    }

    /// Returns whether calls use TLS for a profile that offers TLS. `offers_plaintext` tells whether the
    /// profile also offers plaintext.
    pub(crate) fn uses_tls(&self, offers_plaintext: bool) -> bool {
        !offers_plaintext || self.rules().outgoing != OutgoingTls::WhereRequired
    }

    /// Returns whether calls use plaintext for a profile that offers plaintext. `offers_tls` tells whether
    /// any profile of the reference offers TLS.
    pub(crate) fn uses_plaintext(&self, offers_tls: bool) -> bool {
        match self.rules().outgoing {
            // Otherwise an attacker on the path could force a fallback to plaintext.
            OutgoingTls::Preferred => !offers_tls,
            OutgoingTls::Required => false,
            OutgoingTls::WhereRequired => true,
        }
    }

    pub(crate) fn has_identity(&self) -> bool {
        self.shared.current.load().server.is_some()
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.shared.rules
    }

    /// Returns the configuration of handshakes with clients, or `None` without an identity.
    pub(crate) fn server_config(&self) -> Option<Arc<ServerConfig>> {
        self.shared.current.load().server.clone()
    }

    /// Returns the configuration of handshakes with servers, or `None` if no CA or certificate is trusted.
    pub(crate) fn client_config(&self) -> Option<Arc<ClientConfig>> {
        self.shared.current.load().client.clone()
    }

    /// Returns the tagged component that announces a TLS port in references (clause "Security Service
    /// TAG_SSL_SEC_TRANS").
    pub(crate) fn component(&self, port: u16, has_plaintext: bool) -> SslSecTrans {
        let mut target_supports = SslSecTrans::PROTECTED
            | SslSecTrans::DETECT_REPLAY_AND_MISORDERING
            | SslSecTrans::TRUST_IN_TARGET;
        let mut target_requires = SslSecTrans::PROTECTED;
        match self.rules().client_certificates {
            ClientCertificates::None => {}
            ClientCertificates::Optional => target_supports |= SslSecTrans::TRUST_IN_CLIENT,
            ClientCertificates::Required => {
                target_supports |= SslSecTrans::TRUST_IN_CLIENT;
                target_requires |= SslSecTrans::TRUST_IN_CLIENT;
            }
        }
        if has_plaintext {
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
    /// Sets the ORB's certificate and key. Servers need them, and clients if a server requires a certificate.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.sources.identity = Some(identity);
        self
    }

    /// Sets the CAs that are trusted to issue the certificates of servers, and of clients if
    /// [`client_certificates`](Self::client_certificates) are requested.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.sources.trust = Some(trust);
        self
    }

    /// Adds a CA's list of revoked certificates, which are then rejected. Can be called several times.
    ///
    /// If there is at least one list, all certificates of a chain below the trusted CA are checked according
    /// to [`revocation_check`](Self::revocation_check). [`build`](Self::build) and [`Tls::reload`] read the
    /// lists from files or memory. Lists are never downloaded. A new list applies only to new handshakes.
    pub fn revocation_list(mut self, list: RevocationList) -> Self {
        self.sources.revocation_lists.push(list);
        self
    }

    /// Sets the rule for certificates whose CA has no revocation list, or only an outdated one. It applies if
    /// there is at least one [`revocation_list`](Self::revocation_list). By default, they are rejected.
    pub fn revocation_check(mut self, check: RevocationCheck) -> Self {
        self.rules.revocation_check = check;
        self
    }

    /// Sets whether clients are asked for a certificate. By default, they are not.
    pub fn client_certificates(mut self, requested: ClientCertificates) -> Self {
        self.rules.client_certificates = requested;
        self
    }

    /// Sets whether the certificates of servers must be valid for the called host. By default, they must.
    pub fn server_names(mut self, names: ServerNames) -> Self {
        self.rules.server_names = names;
        self
    }

    /// Accepts only servers whose certificate has this SHA-256 digest. If this is called several times, each
    /// of the digests is accepted.
    ///
    /// Issuer, subject, validity and revocation of the certificate are not checked.
    pub fn pin(mut self, fingerprint: [u8; 32]) -> Self {
        self.rules.fingerprints.push(fingerprint);
        self
    }

    /// Sets the enabled versions. By default, these are TLS 1.2 and 1.3.
    pub fn versions(mut self, versions: &[TlsVersion]) -> Self {
        self.rules.versions = versions.to_vec();
        self
    }

    /// Sets the choice between plaintext and TLS for calls. The default is [`OutgoingTls::Preferred`].
    pub fn outgoing(mut self, outgoing: OutgoingTls) -> Self {
        self.rules.outgoing = outgoing;
        self
    }

    /// Sets the timeout of handshakes with clients (default: 10 s). For servers, `connect_timeout` applies.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.rules.handshake_timeout = timeout;
        self
    }

    /// Sets the maximum number of concurrent handshakes with clients. The default is 256.
    ///
    /// If it is reached, a new connection evicts a handshake that has run for at least
    /// [`OrbBuilder::evict_idle_after`](crate::OrbBuilder::evict_idle_after), or whose client's address has
    /// at least two more handshakes than the new client's. A handshake without a ClientHello is preferred. If
    /// no handshake can be evicted, the new connection is closed.
    pub fn max_handshakes(mut self, handshakes: usize) -> Self {
        self.rules.max_handshakes = handshakes.max(1);
        self
    }

    /// Reads the files and checks the configuration.
    ///
    /// # Errors
    /// A file cannot be read or is invalid, or the options are incomplete or not supported.
    pub fn build(self) -> Result<Tls, TlsError> {
        let current = ArcSwap::from_pointee(LoadedConfig::load(self.sources, &self.rules)?);
        Ok(Tls { shared: Arc::new(Shared { rules: self.rules, current, reload_lock: Mutex::default() }) })
    }
}

impl LoadedConfig {
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
                    (requested, Some(roots)) => {
                        let (roots, provider) = (Arc::clone(roots), Arc::clone(&provider));
                        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider);
                        let clients = revocations.configure_client_check(clients);
                        let clients = match requested {
                            ClientCertificates::Required => clients,
                            _ => clients.allow_unauthenticated(),
                        };
                        let verifier = clients.build().map_err(TlsError::of_trust)?;
                        builder.with_client_cert_verifier(verifier)
                    }
                };
                let mut server =
                    builder.with_cert_resolver(Arc::new(pem::SingleCertificate(Arc::clone(certified))));
                // A resumed session would accept a certificate that has since expired or been revoked.
                // Resumption would save little, because the connections of ORBs are few and long-lived.
                server.session_storage = Arc::new(NoServerSessionStorage {});
                server.send_tls13_tickets = 0;
                Some(Arc::new(server))
            }
        };

        let client = if roots.is_none() && rules.fingerprints.is_empty() {
            None
        } else {
            let servers = verify::ServerVerifier::new(roots, rules, &revocations, &provider)?;
            let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions)?;
            let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(servers));
            let mut client = match certified {
                None => builder.with_no_client_auth(),
                Some(certified) => {
                    builder.with_client_cert_resolver(Arc::new(pem::SingleCertificate(certified)))
                }
            };
            client.resumption = Resumption::disabled();
            Some(Arc::new(client))
        };
        Ok(Self { sources, server, client })
    }
}

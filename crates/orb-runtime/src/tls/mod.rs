//! TLS for connections (SSLIOP): who this ORB is, whom it trusts, and what it asks of its peers.
//!
//! An ORB that was given a [`Tls`] listens on `ssliop://HOST:PORT`, names the port in its references (`TAG_SSL_SEC_TRANS`), and calls
//! servers whose references name one. The servant asks its request for the [`TlsSession`] of its caller: `Request::tls`.
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
//! Certificates are checked by rustls, keys are used by ring. TLS 1.2 and 1.3 are spoken, with forward secrecy and authenticated
//! ciphers only: older versions and the anonymous ciphers that the specification of SSLIOP names are not there. Sessions are never
//! resumed: each connection begins with a handshake in which the certificates are checked.

mod connect;
pub(crate) mod failure;
pub(crate) mod handshakes;
pub(crate) mod inside;
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

pub(crate) use connect::exception_of;
pub use pem::{Identity, Trust};
use revocation::Revocations;
pub use revocation::{RevocationCheck, RevocationList};
pub use session::TlsSession;

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    V1_2,
    /// TLS 1.3 (RFC 8446).
    V1_3,
}

/// What a server asks of its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClientCertificates {
    /// Nothing: clients stay unknown.
    #[default]
    None,
    /// A certificate, which clients may leave out. One that is not trusted ends the handshake.
    Wanted,
    /// A certificate: the handshake fails without one.
    Required,
}

/// Whether the certificate of a server must be made out to the host that its reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ServerNames {
    /// The host, a name or an IP address, must be among the certificate's subject alternative names.
    #[default]
    Checked,
    /// Any certificate of those who are trusted will do, as is the habit of CORBA: trust nobody but the CA of your servers then.
    Unchecked,
}

/// Which way calls go where a reference offers plaintext and TLS, in the same profile or in several.
///
/// No choice leads from TLS to plaintext: whoever can block a port, or break a handshake, would make it. What fails by TLS fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Outgoing {
    /// TLS alone where a reference offers it, also where its server can not be reached so; plaintext where it offers nothing else.
    /// Whoever hands out references decides, so these must come by a way that can be trusted.
    #[default]
    Preferred,
    /// TLS alone: a reference without it is `NO_PERMISSION`, `COMPLETED_NO`. Sockets of this machine are called all the same.
    Required,
    /// Plaintext, and TLS for profiles that offer nothing else, after those that do.
    WhereRequired,
}

/// Why a [`Tls`] could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file can not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file or text does not hold what it should.
    #[error("{origin}: {reason}")]
    Content {
        /// The file, or which text it is.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// Clients are asked for certificates, and nobody is trusted to make them out.
    #[error("clients are asked for certificates, but no CA is trusted: TlsBuilder::trust says which")]
    NoTrust,
    /// No version of TLS is left.
    #[error("no version of TLS is allowed: TlsBuilder::versions names some")]
    NoVersion,
    /// Something that rustls does not take.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

/// Identity, trust and rules of TLS. Clones share all of it, so that what one of them reloads holds for the ORBs that have others.
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

/// What is read, and read again by a reload.
#[derive(Debug, Clone, Default)]
struct Sources {
    identity: Option<Identity>,
    trust: Option<Trust>,
    revocation_lists: Vec<RevocationList>,
}

/// What new handshakes use.
struct Current {
    sources: Sources,
    server: Option<Arc<ServerConfig>>,
    /// `None`: there is nothing by which a server could be trusted.
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
    /// A builder: no identity, nobody trusted.
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

    /// Reads the files again. New handshakes use what they hold now; connections that are open go on.
    ///
    /// # Errors
    /// [`TlsError`]: then everything stays as it was.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.replace(|_| {})
    }

    /// Takes another identity, as [`reload`](Self::reload) does.
    ///
    /// # Errors
    /// As [`reload`](Self::reload).
    pub fn set_identity(&self, identity: Identity) -> Result<(), TlsError> {
        self.replace(|sources| sources.identity = Some(identity))
    }

    /// Trusts others than before, as [`reload`](Self::reload) does.
    ///
    /// # Errors
    /// As [`reload`](Self::reload).
    pub fn set_trust(&self, trust: Trust) -> Result<(), TlsError> {
        self.replace(|sources| sources.trust = Some(trust))
    }

    /// Takes other revocation lists in place of those there were, as [`reload`](Self::reload) does.
    ///
    /// # Errors
    /// As [`reload`](Self::reload).
    pub fn set_revocation_lists(
        &self,
        lists: impl IntoIterator<Item = RevocationList>,
    ) -> Result<(), TlsError> {
        let lists = lists.into_iter().collect();
        self.replace(|sources| sources.revocation_lists = lists)
    }

    fn replace(&self, change: impl FnOnce(&mut Sources)) -> Result<(), TlsError> {
        // One at a time: what another one changed is not lost.
        let _one = self.shared.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sources = self.shared.current.load().sources.clone();
        change(&mut sources);
        self.shared.current.store(Arc::new(Current::load(sources, &self.shared.rules)?));
        Ok(())
    }

    /// Whether a server is called by TLS that offers it, perhaps beside plaintext.
    pub(crate) fn takes_tls(&self, plaintext: bool) -> bool {
        !plaintext || self.rules().outgoing != Outgoing::WhereRequired
    }

    /// Whether a server is called in plaintext that offers that, perhaps beside TLS.
    pub(crate) fn takes_plaintext(&self, tls: bool) -> bool {
        match self.rules().outgoing {
            // A fall back would be one that whoever is in the way can bring about.
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

    /// What servers use; `None` without an identity.
    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.shared.current.load().server.clone()
    }

    /// What clients use; `None` where nobody is trusted.
    pub(crate) fn client(&self) -> Option<Arc<ClientConfig>> {
        self.shared.current.load().client.clone()
    }

    /// What references say of a port with TLS, beside a port without it or alone.
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
    /// Who this ORB is. Servers need it; clients show it to servers that ask.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.sources.identity = Some(identity);
        self
    }

    /// Who is trusted to make out the certificates of servers, and of clients where these are asked for.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.sources.trust = Some(trust);
        self
    }

    /// A list of certificates that are refused although somebody trusted made them out: those of servers, and of clients where these are
    /// asked for. May be called again for the lists of other CAs.
    ///
    /// With a list every certificate below a trusted one is looked up, as [`revocation_check`](Self::revocation_check) says.
    /// Lists are read by [`build`](Self::build) and by [`Tls::reload`]; nobody fetches them. A new list is for new handshakes:
    /// connections that are open go on.
    pub fn revocation_list(mut self, list: RevocationList) -> Self {
        self.sources.revocation_lists.push(list);
        self
    }

    /// What becomes of certificates for which there is no revocation list, or an old one (default: they are refused). Without
    /// [`revocation_list`](Self::revocation_list) nothing is asked.
    pub fn revocation_check(mut self, check: RevocationCheck) -> Self {
        self.rules.revocation_check = check;
        self
    }

    /// What clients are asked for (default: nothing).
    pub fn client_certificates(mut self, asked: ClientCertificates) -> Self {
        self.rules.client_certificates = asked;
        self
    }

    /// Whether certificates of servers must name the host that is called (default: they must).
    pub fn server_names(mut self, names: ServerNames) -> Self {
        self.rules.server_names = names;
        self
    }

    /// Takes servers that show this very certificate, by its SHA-256 digest, and no others; may be called again for further ones. Who made
    /// it out, for whom and until when, and whether it is revoked, is not looked at then: whoever gave you the digest did.
    pub fn pin(mut self, fingerprint: [u8; 32]) -> Self {
        self.rules.fingerprints.push(fingerprint);
        self
    }

    /// The versions that are spoken (default: TLS 1.2 and 1.3).
    pub fn versions(mut self, versions: &[TlsVersion]) -> Self {
        self.rules.versions = versions.to_vec();
        self
    }

    /// Which way calls go where there is a choice (default: TLS).
    pub fn outgoing(mut self, outgoing: Outgoing) -> Self {
        self.rules.outgoing = outgoing;
        self
    }

    /// How long a client may take for its handshake (default 10 s); then its connection is closed. A server has until
    /// `OrbBuilder::connect_timeout`.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.rules.handshake_timeout = timeout;
        self
    }

    /// Handshakes of clients under way at a time (default 256). Beyond that the oldest one ends for a newcomer, if it takes longer than
    /// [`OrbBuilder::newcomers_displace`](crate::OrbBuilder::newcomers_displace) or its address has more of them than the newcomer's;
    /// those without a ClientHello end first. Where none does, the newcomer is closed at once, and counted.
    pub fn max_handshakes(mut self, handshakes: usize) -> Self {
        self.rules.max_handshakes = handshakes.max(1);
        self
    }

    /// Reads files and checks that everything fits.
    ///
    /// # Errors
    /// [`TlsError`] names the file and what is wrong with it.
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
                // A session that is taken up again skips the certificates: they would hold beyond their time, and that of the lists.
                // Connections of ORBs are few and long, so little is lost.
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

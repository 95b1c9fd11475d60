//! Revocation lists: which certificates their CAs have taken back.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::{ServerCertVerifierBuilder, VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::server::ClientCertVerifierBuilder;

use super::TlsError;
use super::pem::Source;

/// A list of the certificates that a CA has taken back (CRL, RFC 5280). Read as an [`Identity`](super::Identity) is.
#[derive(Debug, Clone)]
pub struct RevocationList(Source);

/// What becomes of a certificate of which no revocation list says surely that it still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RevocationCheck {
    /// It is refused: where there is no list of the CA that made it out, or of one between that and the trusted one, and where that
    /// list is out of date (its `nextUpdate` has passed). Whoever keeps new lists away gains nothing by it.
    #[default]
    Strict,
    /// It is taken. Only what a list names is refused, however old the list is.
    Listed,
}

impl RevocationList {
    /// A file with one list or more in PEM, or with one in DER.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    /// The same in memory.
    pub fn pem(lists: impl AsRef<[u8]>) -> Self {
        Self(Source::Text("the PEM text of the revocation lists", lists.as_ref().into()))
    }

    fn load(
        &self,
        roots: &Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        let lists = self.0.revocation_lists()?;
        // Each source by itself, so that an error can name it.
        let tried = WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .with_crls(lists.iter().cloned())
            .build();
        match tried {
            Err(VerifierBuilderError::InvalidCrl(error)) => {
                Err(self.0.wrong(format!("the revocation list in it is of no use: {error:?}")))
            }
            _ => Ok(lists),
        }
    }
}

/// All lists that were read, and how they are used. Without any nothing is looked up.
pub(super) struct Revocations {
    lists: Vec<CertificateRevocationListDer<'static>>,
    check: RevocationCheck,
}

impl Revocations {
    pub(super) fn load(
        lists: &[RevocationList],
        check: RevocationCheck,
        roots: Option<&Arc<RootCertStore>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let mut all = Vec::new();
        for list in lists {
            let roots = roots.ok_or_else(|| {
                list.0.wrong("no CA is trusted whose certificates it could take back (TlsBuilder::trust)")
            })?;
            all.extend(list.load(roots, provider)?);
        }
        Ok(Self { lists: all, check })
    }

    /// For the certificates of servers.
    pub(super) fn of_servers(&self, builder: ServerCertVerifierBuilder) -> ServerCertVerifierBuilder {
        let builder = builder.with_crls(self.lists.iter().cloned());
        match self.check {
            RevocationCheck::Strict => builder.enforce_revocation_expiration(),
            RevocationCheck::Listed => builder.allow_unknown_revocation_status(),
        }
    }

    /// For the certificates of clients.
    pub(super) fn of_clients(&self, builder: ClientCertVerifierBuilder) -> ClientCertVerifierBuilder {
        let builder = builder.with_crls(self.lists.iter().cloned());
        match self.check {
            RevocationCheck::Strict => builder.enforce_revocation_expiration(),
            RevocationCheck::Listed => builder.allow_unknown_revocation_status(),
        }
    }
}

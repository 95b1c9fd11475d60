//! Lists of certificates that CAs have revoked.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::{ServerCertVerifierBuilder, VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::server::ClientCertVerifierBuilder;

use crate::tls::TlsError;
use crate::tls::pem::Source;

/// A list of certificates that a CA has revoked (CRL, RFC 5280). It is read like an
/// [`Identity`](super::Identity).
#[derive(Debug, Clone)]
pub struct RevocationList(Source);

/// The rule for a certificate that no current revocation list covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RevocationCheck {
    /// It is rejected if there is no list of its CA or of an intermediate CA, or if that list is outdated
    /// (its `nextUpdate` has passed). Suppressing new lists therefore does not help an attacker.
    #[default]
    Strict,
    /// It is accepted. Only certificates that a list names are rejected, whatever the age of the list.
    Listed,
}

impl RevocationList {
    /// Reads one or more lists in PEM, or one list in DER, from a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    /// Reads one or more lists in PEM from memory.
    pub fn pem(lists: impl AsRef<[u8]>) -> Self {
        Self(Source::Text("the PEM text of the revocation lists", lists.as_ref().into()))
    }

    fn load(
        &self,
        roots: &Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        let lists = self.0.revocation_lists()?;
        // Check each source separately, so that an error can name it.
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

/// All lists that were read, and the rule for their use. Without lists, revocation is not checked.
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

    /// Configures the check of server certificates.
    pub(super) fn of_servers(&self, builder: ServerCertVerifierBuilder) -> ServerCertVerifierBuilder {
        let builder = builder.with_crls(self.lists.iter().cloned());
        match self.check {
            RevocationCheck::Strict => builder.enforce_revocation_expiration(),
            RevocationCheck::Listed => builder.allow_unknown_revocation_status(),
        }
    }

    /// Configures the check of client certificates.
    pub(super) fn of_clients(&self, builder: ClientCertVerifierBuilder) -> ClientCertVerifierBuilder {
        let builder = builder.with_crls(self.lists.iter().cloned());
        match self.check {
            RevocationCheck::Strict => builder.enforce_revocation_expiration(),
            RevocationCheck::Listed => builder.allow_unknown_revocation_status(),
        }
    }
}

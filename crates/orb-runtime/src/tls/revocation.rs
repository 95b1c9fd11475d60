//! Certificate revocation lists (CRLs).

use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::{ServerCertVerifierBuilder, VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::server::ClientCertVerifierBuilder;

use crate::tls::TlsError;
use crate::tls::pem::PemSource;

/// The source of lists of revoked certificates (CRL, RFC 5280).
/// [`TlsBuilder::build`](super::TlsBuilder::build) and [`Tls::reload`](super::Tls::reload) read it.
#[derive(Debug, Clone)]
pub struct RevocationList(PemSource);

/// The rule for a certificate that no current revocation list covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RevocationCheck {
    /// The certificate is rejected if its CA or an intermediate CA has no list, or only a list whose
    /// `nextUpdate` has passed. Therefore an attacker gains nothing by suppressing new lists.
    #[default]
    Strict,
    /// The certificate is accepted. Only certificates in a list are rejected, even if that list is outdated.
    Listed,
}

impl RevocationList {
    /// Takes one or more lists in PEM, or one list in DER, from a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(PemSource::File(path.into()))
    }

    /// Takes one or more lists in PEM from memory.
    pub fn pem(lists: impl AsRef<[u8]>) -> Self {
        Self(PemSource::Text("the PEM text of the revocation lists", lists.as_ref().into()))
    }

    fn load(
        &self,
        roots: &Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        let lists = self.0.revocation_lists()?;
        // Check the lists of each source separately, so that an error names the source.
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
            .with_crls(lists.iter().cloned())
            .build();
        match verifier {
            Err(VerifierBuilderError::InvalidCrl(error)) => {
                Err(self.0.error(format!("the revocation list is invalid: {error:?}")))
            }
            _ => Ok(lists),
        }
    }
}

/// All revocation lists, and the rule for missing or outdated ones. Without lists, revocation is not checked.
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
            let roots = roots
                .ok_or_else(|| list.0.error("a revocation list requires a trusted CA (TlsBuilder::trust)"))?;
            all.extend(list.load(roots, provider)?);
        }
        Ok(Self { lists: all, check })
    }

    pub(super) fn configure_server_check(
        &self,
        builder: ServerCertVerifierBuilder,
    ) -> ServerCertVerifierBuilder {
        let builder = builder.with_crls(self.lists.iter().cloned());
        match self.check {
            RevocationCheck::Strict => builder.enforce_revocation_expiration(),
            RevocationCheck::Listed => builder.allow_unknown_revocation_status(),
        }
    }

    pub(super) fn configure_client_check(
        &self,
        builder: ClientCertVerifierBuilder,
    ) -> ClientCertVerifierBuilder {
        let builder = builder.with_crls(self.lists.iter().cloned());
        match self.check {
            RevocationCheck::Strict => builder.enforce_revocation_expiration(),
            RevocationCheck::Listed => builder.allow_unknown_revocation_status(),
        }
    }
}

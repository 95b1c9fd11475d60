//! The verification of server certificates.

use std::sync::Arc;

use ring::digest::{SHA256, digest};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::tls::revocation::Revocations;
use crate::tls::{Rules, ServerNames, TlsError};

/// Returns the SHA-256 digest of a certificate.
pub(super) fn fingerprint(certificate: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, certificate).as_ref());
    bytes
}

/// Verifies server certificates. If digests are configured, only the digest is checked. Otherwise the chain
/// is checked, and also the name in the certificate unless that is disabled.
#[derive(Debug)]
pub(super) struct ServerVerifier {
    chain_verifier: Option<Arc<WebPkiServerVerifier>>,
    names: ServerNames,
    fingerprints: Vec<[u8; 32]>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerVerifier {
    pub(super) fn new(
        roots: Option<Arc<RootCertStore>>,
        rules: &Rules,
        revocations: &Revocations,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let chain_verifier = roots.map(|roots| {
            let builder = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider));
            revocations.configure_server_check(builder).build().map_err(TlsError::of_trust)
        });
        Ok(Self {
            chain_verifier: chain_verifier.transpose()?,
            names: rules.server_names,
            fingerprints: rules.fingerprints.clone(),
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.fingerprints.is_empty() {
            return match self.fingerprints.contains(&fingerprint(certificate)) {
                true => Ok(ServerCertVerified::assertion()),
                false => Err(CertificateError::ApplicationVerificationFailure.into()),
            };
        }
        let Some(chain_verifier) = &self.chain_verifier else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        match chain_verifier.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The verifier checks the name last. Therefore everything else is valid.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.names == ServerNames::Unchecked => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

//! The results of a TLS handshake.

use std::fmt;
use std::sync::OnceLock;

use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use crate::tls::TlsVersion;
use crate::tls::verify::fingerprint;

/// The TLS session of a connection, with the peer's certificate. Servants get it by `Request::tls`.
pub struct TlsSession {
    version: TlsVersion,
    cipher_suite: &'static str,
    chain: Vec<CertificateDer<'static>>,
    subject: OnceLock<Option<String>>,
}

impl TlsSession {
    pub(crate) fn new(connection: &rustls::CommonState) -> Self {
        Self {
            version: match connection.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_2) => TlsVersion::V1_2,
                _ => TlsVersion::V1_3,
            },
            cipher_suite: connection
                .negotiated_cipher_suite()
                .and_then(|suite| suite.suite().as_str())
                .unwrap_or("unknown"),
            chain: connection
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .map(|certificate| certificate.clone().into_owned())
                .collect(),
            subject: OnceLock::new(),
        }
    }

    /// Returns the negotiated version.
    #[must_use]
    pub fn version(&self) -> TlsVersion {
        self.version
    }

    /// Returns the IANA name of the cipher suite, such as `TLS13_AES_256_GCM_SHA384`.
    #[must_use]
    pub fn cipher_suite(&self) -> &str {
        self.cipher_suite
    }

    /// Returns the certificates that the peer sent, in DER: first its own, then the certificates of CAs.
    pub fn certificates(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.chain.iter().map(|certificate| certificate.as_ref())
    }

    /// Returns whether the peer sent a certificate. The handshake has verified the certificate.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        !self.chain.is_empty()
    }

    /// Returns the subject of the peer's certificate in the format of RFC 4514, such as
    /// `CN=billing,O=Example`. Returns `None` if the peer sent no certificate, or if it cannot be parsed.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        let read = || {
            let certificate = Certificate::from_der(self.chain.first()?).ok()?;
            Some(certificate.tbs_certificate.subject.to_string())
        };
        self.subject.get_or_init(read).as_deref()
    }

    /// Returns the SHA-256 digest of the peer's certificate, if it sent one, for `TlsBuilder::pin`.
    #[must_use]
    pub fn fingerprint(&self) -> Option<[u8; 32]> {
        self.chain.first().map(|certificate| fingerprint(certificate))
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession")
            .field("version", &self.version)
            .field("cipher_suite", &self.cipher_suite)
            .field("subject", &self.subject())
            .finish()
    }
}

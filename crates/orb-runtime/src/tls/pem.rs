//! Certificates and keys in PEM, from files or memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, SignatureScheme};

use crate::tls::TlsError;

/// The source of a certificate and its private key. [`TlsBuilder::build`](super::TlsBuilder::build) and
/// [`Tls::reload`](super::Tls::reload) read it.
#[derive(Debug, Clone)]
pub struct Identity {
    chain: PemSource,
    key: PemSource,
}

/// The source of trusted CA certificates. [`TlsBuilder::build`](super::TlsBuilder::build) and
/// [`Tls::reload`](super::Tls::reload) read it.
#[derive(Debug, Clone)]
pub struct Trust(PemSource);

#[derive(Clone)]
pub(super) enum PemSource {
    File(PathBuf),
    /// A description for error messages, and the PEM text.
    Text(&'static str, Arc<[u8]>),
}

impl Identity {
    /// Takes the certificate and the private key from PEM files. They may be in the same file.
    ///
    /// The certificate comes first in `chain`. The certificates of intermediate CAs follow, if there are any.
    /// The private key must be unencrypted, in PKCS#8, PKCS#1 (RSA) or SEC1 (EC) format.
    pub fn files(chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { chain: PemSource::File(chain.into()), key: PemSource::File(key.into()) }
    }

    /// Takes the certificate and the private key from memory, in the same formats as [`files`](Self::files).
    pub fn pem(chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        Self {
            chain: PemSource::Text("the PEM text of the certificate", chain.as_ref().into()),
            key: PemSource::Text("the PEM text of the private key", key.as_ref().into()),
        }
    }

    pub(super) fn load(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
        let chain = self.chain.certificates()?;
        let key = self.key.read()?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| match error {
            Error::NoItemsFound if contains(&key, b"BEGIN ENCRYPTED PRIVATE KEY") => {
                self.key.error("the private key is encrypted: use a key without a password")
            }
            Error::NoItemsFound => self.key.error("it contains no private key (BEGIN PRIVATE KEY)"),
            error => self.key.error(describe(&error)),
        })?;
        let key = provider.key_provider.load_private_key(key);
        let unusable = |error| self.key.error(format!("the private key cannot be used: {error}"));
        let certified = CertifiedKey::new(chain, key.map_err(unusable)?);
        match certified.keys_match() {
            // Keys that cannot be checked are accepted.
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
                Ok(Arc::new(certified))
            }
            Err(rustls::Error::InconsistentKeys(_)) => Err(self
                .key
                .error(format!("the private key does not match the certificate in {}", self.chain))),
            Err(error) => Err(self.chain.error(format!("the certificate cannot be used: {error}"))),
        }
    }
}

impl Trust {
    /// Takes the certificates of one or more CAs from a PEM file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(PemSource::File(path.into()))
    }

    /// Takes the certificates of one or more CAs from a PEM text in memory.
    pub fn pem(certificates: impl AsRef<[u8]>) -> Self {
        Self(PemSource::Text("the PEM text of the trusted certificates", certificates.as_ref().into()))
    }

    pub(super) fn load(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for (number, certificate) in self.0.certificates()?.into_iter().enumerate() {
            roots.add(certificate).map_err(|error| {
                self.0.error(format!("certificate {} cannot be trusted: {error}", number + 1))
            })?;
        }
        Ok(roots)
    }
}

impl PemSource {
    fn read(&self) -> Result<Arc<[u8]>, TlsError> {
        match self {
            Self::Text(_, bytes) => Ok(Arc::clone(bytes)),
            Self::File(path) => match fs::read(path) {
                Ok(bytes) => Ok(bytes.into()),
                Err(source) => Err(TlsError::Read { path: Path::to_owned(path), source }),
            },
        }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        self.parse_all(&self.read()?, "it contains no certificate (BEGIN CERTIFICATE)")
    }

    pub(super) fn revocation_lists(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        let bytes = self.read()?;
        // Most CAs publish lists in DER, which begins with the tag of a sequence. PEM has a `BEGIN` line.
        if bytes.starts_with(&[0x30]) && !contains(&bytes, b"-----BEGIN ") {
            return Ok(vec![bytes.to_vec().into()]);
        }
        self.parse_all(&bytes, "it contains no revocation list (BEGIN X509 CRL)")
    }

    fn parse_all<T: PemObject>(&self, pem: &[u8], none_found: &str) -> Result<Vec<T>, TlsError> {
        match T::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>() {
            Ok(all) if all.is_empty() => Err(self.error(none_found)),
            Ok(all) => Ok(all),
            Err(error) => Err(self.error(describe(&error))),
        }
    }

    pub(super) fn error(&self, reason: impl Into<String>) -> TlsError {
        TlsError::Content { origin: self.to_string(), reason: reason.into() }
    }
}

impl fmt::Display for PemSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Text(name, _) => f.write_str(name),
        }
    }
}

/// Writes only the path or the description, because the content may be a private key.
impl fmt::Debug for PemSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PemSource({self})")
    }
}

fn describe(error: &Error) -> String {
    match error {
        Error::MissingSectionEnd { end_marker } => {
            format!("the line `-----END {}-----` is missing", end_marker.escape_ascii())
        }
        Error::IllegalSectionStart { line } => format!("`{}` does not begin a section", line.escape_ascii()),
        error => format!("it is not valid PEM: {error}"),
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A resolver that sends the same certificate to every peer.
#[derive(Debug)]
pub(super) struct SingleCertificate(pub(super) Arc<CertifiedKey>);

impl ResolvesServerCert for SingleCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

impl ResolvesClientCert for SingleCertificate {
    /// Ignores the CAs that the server names. If the server rejects the certificate, it sends an alert.
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.key.choose_scheme(schemes).map(|_| Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

//! Certificates and keys in PEM, from files or memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{RootCertStore, SignatureScheme};

use crate::tls::TlsError;

/// A certificate with its key. It is read by [`TlsBuilder::build`](super::TlsBuilder::build), which reports
/// errors.
#[derive(Debug, Clone)]
pub struct Identity {
    chain: Source,
    key: Source,
}

/// Certificates of trusted CAs. They are read by [`TlsBuilder::build`](super::TlsBuilder::build), which
/// reports errors.
#[derive(Debug, Clone)]
pub struct Trust(Source);

#[derive(Clone)]
pub(super) enum Source {
    File(PathBuf),
    /// The text, with its description.
    Text(&'static str, Arc<[u8]>),
}

impl Identity {
    /// Reads the certificate and the private key from files. The certificate is followed by those of
    /// intermediate CAs. The key is in PKCS#8, PKCS#1 (RSA) or SEC1 (EC), not encrypted. Both may be in the
    /// same file.
    pub fn files(chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { chain: Source::File(chain.into()), key: Source::File(key.into()) }
    }

    /// Reads the certificate and the private key from memory: see [`files`](Self::files).
    pub fn pem(chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        Self {
            chain: Source::Text("the PEM text of the certificate", chain.as_ref().into()),
            key: Source::Text("the PEM text of the private key", key.as_ref().into()),
        }
    }

    pub(super) fn load(&self, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
        let chain = self.chain.certificates()?;
        let key = self.key.read()?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| match error {
            Error::NoItemsFound if contains(&key, b"BEGIN ENCRYPTED PRIVATE KEY") => {
                self.key.wrong("the private key is encrypted; write it without a password")
            }
            Error::NoItemsFound => self.key.wrong("there is no private key in it (BEGIN PRIVATE KEY)"),
            error => self.key.wrong(text(&error)),
        })?;
        let key: Arc<dyn SigningKey> = provider
            .key_provider
            .load_private_key(key)
            .map_err(|error| self.key.wrong(format!("the private key is of no use: {error}")))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            // Keys that do not support the check are accepted.
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
                Ok(Arc::new(certified))
            }
            Err(rustls::Error::InconsistentKeys(_)) => Err(self
                .key
                .wrong(format!("the private key is not that of the certificate in {}", self.chain))),
            Err(error) => Err(self.chain.wrong(format!("the certificate is of no use: {error}"))),
        }
    }
}

impl Trust {
    /// Reads the certificates of one or more CAs from a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    /// Reads the certificates of one or more CAs from memory.
    pub fn pem(certificates: impl AsRef<[u8]>) -> Self {
        Self(Source::Text("the PEM text of the trusted certificates", certificates.as_ref().into()))
    }

    pub(super) fn load(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for (number, certificate) in self.0.certificates()?.into_iter().enumerate() {
            roots.add(certificate).map_err(|error| {
                self.0.wrong(format!("certificate {} can not be trusted: {error}", number + 1))
            })?;
        }
        Ok(roots)
    }
}

impl Source {
    fn read(&self) -> Result<Arc<[u8]>, TlsError> {
        match self {
            Self::Text(_, octets) => Ok(Arc::clone(octets)),
            Self::File(path) => match fs::read(path) {
                Ok(octets) => Ok(octets.into()),
                Err(source) => Err(TlsError::Read { path: Path::to_owned(path), source }),
            },
        }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let octets = self.read()?;
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&octets).collect();
        match all {
            Ok(all) if all.is_empty() => Err(self.wrong("there is no certificate in it (BEGIN CERTIFICATE)")),
            Ok(all) => Ok(all),
            Err(error) => Err(self.wrong(text(&error))),
        }
    }

    pub(super) fn revocation_lists(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        let octets = self.read()?;
        // A sequence of ASN.1 is a list in DER, the format in which CAs publish lists. PEM has a line that
        // begins a section.
        if octets.starts_with(&[0x30]) && !contains(&octets, b"-----BEGIN ") {
            return Ok(vec![octets.to_vec().into()]);
        }
        let all: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&octets).collect();
        match all {
            Ok(all) if all.is_empty() => {
                Err(self.wrong("there is no revocation list in it (BEGIN X509 CRL)"))
            }
            Ok(all) => Ok(all),
            Err(error) => Err(self.wrong(text(&error))),
        }
    }

    pub(super) fn wrong(&self, reason: impl Into<String>) -> TlsError {
        TlsError::Content { origin: self.to_string(), reason: reason.into() }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Text(name, _) => f.write_str(name),
        }
    }
}

/// Does not show keys.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({self})")
    }
}

/// Describes an error in a PEM text readably: markers are shown as text.
fn text(error: &Error) -> String {
    match error {
        Error::MissingSectionEnd { end_marker } => {
            format!("the line `-----END {}-----` is missing", end_marker.escape_ascii())
        }
        Error::IllegalSectionStart { line } => format!("`{}` begins no section", line.escape_ascii()),
        error => format!("it is no PEM: {error}"),
    }
}

fn contains(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}

/// Presents one certificate to every peer.
#[derive(Debug)]
pub(super) struct Only(pub(super) Arc<CertifiedKey>);

impl ResolvesServerCert for Only {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

impl ResolvesClientCert for Only {
    /// Ignores the CAs that the server names, because the server reports the reason if it rejects the
    /// certificate.
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.key.choose_scheme(schemes).map(|_| Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

//! Failures of handshakes, and the exceptions that callers get.

use std::fmt;
use std::io;

use giop_codec::OneLine;
use giop_codec::exception::{MinorCode, SystemException, SystemExceptionKind, minor};
use giop_proto::PeerRefusal;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// A handshake that failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The socket failed, or the peer closed it during the handshake.
    Io(io::Error),
    /// The peer sent a GIOP message.
    Plaintext,
    /// The handshake timed out.
    Slow,
    /// The peer violated TLS or the configured rules.
    Tls(Error),
    /// This side is not configured to call servers over TLS.
    NotConfigured(&'static str),
}

impl Failure {
    /// Returns whether a side does not trust the other's certificate.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Tls(
                Error::InvalidCertificate(_)
                | Error::NoCertificatesPresented
                | Error::InvalidCertRevocationList(_),
            ) => true,
            Self::Tls(Error::AlertReceived(alert)) => refusal(*alert).is_some(),
            Self::NotConfigured(_) => true,
            _ => false,
        }
    }

    /// Returns the exception for a caller whose server could not be called: nothing was sent.
    pub(crate) fn to_exception(&self, endpoint: &dyn fmt::Display) -> SystemException {
        let (kind, minor) = match self {
            _ if self.is_refusal() => (SystemExceptionKind::NoPermission, MinorCode::NONE),
            Self::Io(_) | Self::Slow => (SystemExceptionKind::Transient, minor::TRANSIENT_NO_USABLE_PROFILE),
            _ => (SystemExceptionKind::CommFailure, MinorCode::NONE),
        };
        SystemException::from(kind)
            .with_minor(minor)
            .with_reason(format!("no TLS session with {endpoint}: {self}"))
    }
}

/// Returns the meaning of an alert that rejects a certificate, or the lack of one.
pub(crate) fn refusal(alert: AlertDescription) -> Option<PeerRefusal> {
    Some(PeerRefusal(match alert {
        AlertDescription::CertificateRequired => "the peer requires a certificate (TlsBuilder::identity)",
        AlertDescription::BadCertificate => "the peer finds the certificate of this side bad",
        AlertDescription::UnsupportedCertificate => "the peer can not use a certificate of this side's kind",
        AlertDescription::CertificateRevoked => "the certificate of this side is revoked",
        AlertDescription::CertificateExpired => "the certificate of this side has expired",
        AlertDescription::CertificateUnknown => "the peer does not accept the certificate of this side",
        AlertDescription::UnknownCA => {
            "the peer does not know the CA of this side's certificate, or not whether it took the certificate back"
        }
        AlertDescription::AccessDenied => "the peer denies access to the owner of this side's certificate",
        AlertDescription::DecryptError => "the peer could not check a signature of this side",
        _ => return None,
    }))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("the peer closed the connection during the handshake")
            }
            Self::Io(error) => OneLine::new(error).fmt(f),
            Self::Plaintext => f.write_str(
                "the client speaks plain IIOP to a port for TLS: give it a reference of this server, or listen on iiop:// too",
            ),
            Self::Slow => f.write_str("the handshake took too long (TlsBuilder::handshake_timeout)"),
            Self::Tls(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                f.write_str("what the peer sends is not TLS: is it a port of plain IIOP?")
            }
            Self::Tls(Error::AlertReceived(alert)) => match refusal(*alert) {
                Some(PeerRefusal(text)) => f.write_str(text),
                None => write!(f, "the peer ended the handshake: {alert:?}"),
            },
            Self::Tls(Error::NoCertificatesPresented) => f.write_str("the peer shows no certificate"),
            Self::Tls(Error::InvalidCertificate(CertificateError::Revoked)) => {
                f.write_str("the peer's certificate, or that of a CA of its, is revoked")
            }
            Self::Tls(Error::InvalidCertificate(CertificateError::UnknownRevocationStatus)) => f.write_str(
                "no revocation list is of the CA of the peer's certificate, or of a CA between it and the trusted one \
                 (TlsBuilder::revocation_list gives one, ::revocation_check does without)",
            ),
            Self::Tls(Error::InvalidCertificate(
                reason @ (CertificateError::ExpiredRevocationList
                | CertificateError::ExpiredRevocationListContext { .. }),
            )) => write!(
                f,
                "the revocation list for the peer's certificate is out of date: {} (Tls::reload reads a new one, \
                 TlsBuilder::revocation_check takes the old one)",
                OneLine::new(reason)
            ),
            Self::Tls(Error::InvalidCertRevocationList(reason)) => write!(
                f,
                "the revocation list for the peer's certificate is of no use: {reason:?} (TlsBuilder::revocation_list)"
            ),
            Self::Tls(Error::InvalidCertificate(reason)) => write!(
                f,
                "the peer's certificate is not accepted: {} (TlsBuilder::trust, ::server_names and ::pin decide)",
                OneLine::new(reason)
            ),
            Self::Tls(error) => OneLine::new(error).fmt(f),
            Self::NotConfigured(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Tls(error)
    }
}

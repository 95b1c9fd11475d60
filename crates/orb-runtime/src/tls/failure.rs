//! Failures of TLS handshakes, and their exceptions for callers.

use std::fmt;
use std::io;

use giop_codec::OneLine;
use giop_codec::exception::{MinorCode, SystemException, SystemExceptionKind, minor};
use giop_proto::PeerRefusal;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

#[derive(Debug)]
pub(crate) enum HandshakeFailure {
    Io(io::Error),
    /// The client sent a GIOP message instead of TLS.
    Plaintext,
    TimedOut,
    /// The peer violated TLS or the configured rules, or aborted the handshake with an alert.
    Tls(Error),
    /// This side cannot perform the handshake, for this reason. Usually something is not configured.
    NotConfigured(&'static str),
}

impl HandshakeFailure {
    /// Returns whether the reason is a certificate that is rejected, missing or not configured.
    fn is_about_certificates(&self) -> bool {
        match self {
            Self::Tls(
                Error::InvalidCertificate(_)
                | Error::NoCertificatesPresented
                | Error::InvalidCertRevocationList(_),
            ) => true,
            Self::Tls(Error::AlertReceived(alert)) => rejection_of_alert(*alert).is_some(),
            Self::NotConfigured(_) => true,
            _ => false,
        }
    }

    /// Returns the exception for the caller. It has COMPLETED_NO, because no request was sent.
    pub(crate) fn to_exception(&self, endpoint: &dyn fmt::Display) -> SystemException {
        let (kind, minor) = match self {
            _ if self.is_about_certificates() => (SystemExceptionKind::NoPermission, MinorCode::NONE),
            Self::Io(_) | Self::TimedOut => {
                (SystemExceptionKind::Transient, minor::TRANSIENT_NO_USABLE_PROFILE)
            }
            _ => (SystemExceptionKind::CommFailure, MinorCode::NONE),
        };
        SystemException::from(kind)
            .with_minor(minor)
            .with_reason(format!("the TLS handshake with {endpoint} failed: {self}"))
    }
}

/// Returns why the peer rejects or requires a certificate, or `None` for alerts with other meanings.
pub(crate) fn rejection_of_alert(alert: AlertDescription) -> Option<PeerRefusal> {
    Some(PeerRefusal(match alert {
        AlertDescription::CertificateRequired => "the peer requires a certificate (TlsBuilder::identity)",
        AlertDescription::BadCertificate => "the peer rejects this side's certificate as malformed",
        AlertDescription::UnsupportedCertificate => {
            "the peer does not support this side's type of certificate"
        }
        AlertDescription::CertificateRevoked => "this side's certificate is revoked",
        AlertDescription::CertificateExpired => "this side's certificate has expired",
        AlertDescription::CertificateUnknown => "the peer rejects this side's certificate",
        AlertDescription::UnknownCA => {
            "the peer does not trust the CA of this side's certificate, or has no revocation list of the CA"
        }
        AlertDescription::AccessDenied => "the peer denies access to the subject of this side's certificate",
        AlertDescription::DecryptError => "the peer could not verify a signature that this side made",
        _ => return None,
    }))
}

impl fmt::Display for HandshakeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("the peer closed the connection during the handshake")
            }
            Self::Io(error) => OneLine::new(error).fmt(f),
            Self::Plaintext => f.write_str(
                "the client sends plain IIOP to a TLS port: give it a reference of this server, or also listen on iiop://",
            ),
            Self::TimedOut => f.write_str("the handshake timed out (TlsBuilder::handshake_timeout)"),
            Self::Tls(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                f.write_str("the peer does not send TLS: is the port for plain IIOP?")
            }
            Self::Tls(Error::AlertReceived(alert)) => match rejection_of_alert(*alert) {
                Some(PeerRefusal(text)) => f.write_str(text),
                None => write!(f, "the peer aborted the handshake: {alert:?}"),
            },
            Self::Tls(Error::NoCertificatesPresented) => f.write_str("the peer has not sent a certificate"),
            Self::Tls(Error::InvalidCertificate(CertificateError::Revoked)) => {
                f.write_str("the peer's certificate, or the certificate of a CA that issued it, is revoked")
            }
            Self::Tls(Error::InvalidCertificate(CertificateError::UnknownRevocationStatus)) => f.write_str(
                "a CA that issued the peer's certificate has no revocation list: add it by \
                 TlsBuilder::revocation_list, or change TlsBuilder::revocation_check",
            ),
            Self::Tls(Error::InvalidCertificate(
                reason @ (CertificateError::ExpiredRevocationList
                | CertificateError::ExpiredRevocationListContext { .. }),
            )) => write!(
                f,
                "the revocation list for the peer's certificate is outdated: {}; read a new list by Tls::reload, \
                 or change TlsBuilder::revocation_check",
                OneLine::new(reason)
            ),
            Self::Tls(Error::InvalidCertRevocationList(reason)) => write!(
                f,
                "the revocation list for the peer's certificate is invalid: {reason:?} (TlsBuilder::revocation_list)"
            ),
            Self::Tls(Error::InvalidCertificate(reason)) => write!(
                f,
                "the peer's certificate is rejected: {} (see TlsBuilder::trust, server_names and pin)",
                OneLine::new(reason)
            ),
            Self::Tls(error) => OneLine::new(error).fmt(f),
            Self::NotConfigured(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for HandshakeFailure {}

impl From<io::Error> for HandshakeFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for HandshakeFailure {
    fn from(error: Error) -> Self {
        Self::Tls(error)
    }
}

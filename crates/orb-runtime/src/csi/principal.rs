//! The identity of a caller.

use std::fmt;
use std::sync::Arc;

use giop_codec::Printable;

use crate::tls::TlsSession;

/// The identity of a caller that the server has accepted: [`Request::principal`](crate::Request::principal).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    kind: PrincipalKind,
    name: String,
    asserted_by: Option<Box<Principal>>,
}

/// The way in which a [`Principal`] was authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PrincipalKind {
    /// By user name and password.
    Login,
    /// By a certificate that TLS checked. The name is its subject in the form of RFC 4514.
    Certificate,
    /// A trusted caller asserts that it calls for a user of that name.
    AssertedName,
    /// A trusted caller asserts that it calls for the subject of a certificate, or a distinguished name, in
    /// the form of RFC 4514.
    AssertedSubject,
    /// A trusted caller asserts that it calls for an unknown caller. The name is empty.
    Anonymous,
}

impl Principal {
    pub(crate) fn new(kind: PrincipalKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), asserted_by: None }
    }

    /// Creates a principal whose identity is asserted by another one.
    pub(crate) fn asserted(kind: PrincipalKind, name: impl Into<String>, by: Self) -> Self {
        Self { kind, name: name.into(), asserted_by: Some(Box::new(by)) }
    }

    /// Returns how the principal was authenticated.
    #[must_use]
    pub fn kind(&self) -> PrincipalKind {
        self.kind
    }

    /// Returns the name: of a user, or a certificate's subject such as `CN=billing,O=Example`. It comes from
    /// the network, so escape it before you display it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the user's name, of a login or an asserted name.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        matches!(self.kind, PrincipalKind::Login | PrincipalKind::AssertedName).then_some(&self.name)
    }

    /// Returns the principal that asserts this identity, if it is an asserted one.
    #[must_use]
    pub fn asserted_by(&self) -> Option<&Self> {
        self.asserted_by.as_deref()
    }
}

/// Returns the principal of the session's certificate.
pub(crate) fn by_certificate(session: Option<&TlsSession>) -> Option<Arc<Principal>> {
    let subject = session.and_then(TlsSession::subject)?;
    Some(Arc::new(Principal::new(PrincipalKind::Certificate, subject)))
}

/// Formats the principal for people. The name is [`Printable`].
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Printable::new(&self.name);
        match self.kind {
            PrincipalKind::Login => write!(f, "user `{name}`"),
            PrincipalKind::Certificate => write!(f, "`{name}` by certificate"),
            PrincipalKind::AssertedName => write!(f, "user `{name}`"),
            PrincipalKind::AssertedSubject => write!(f, "`{name}`"),
            PrincipalKind::Anonymous => f.write_str("somebody"),
        }?;
        self.asserted_by.as_ref().map_or(Ok(()), |asserted_by| write!(f, ", as {asserted_by} says"))
    }
}

/// Returns a distinguished name in DER in the form of RFC 4514.
#[cfg(feature = "tls")]
pub(super) fn distinguished_name(der: &[u8]) -> Option<String> {
    use x509_cert::der::Decode;
    x509_cert::name::Name::from_der(der).ok().map(|name| name.to_string())
}

/// Returns the subject of the first of a sequence of certificates in DER.
#[cfg(feature = "tls")]
pub(super) fn subject_of_chain(der: &[u8]) -> Option<String> {
    use x509_cert::der::Decode;
    let chain = Vec::<x509_cert::Certificate>::from_der(der).ok()?;
    chain.first().map(|certificate| certificate.tbs_certificate.subject.to_string())
}

/// Returns `None`: names of certificates are decoded with the feature `tls` only.
#[cfg(not(feature = "tls"))]
pub(super) fn distinguished_name(_: &[u8]) -> Option<String> {
    None
}

/// Returns `None`: subjects of certificates are decoded with the feature `tls` only.
#[cfg(not(feature = "tls"))]
pub(super) fn subject_of_chain(_: &[u8]) -> Option<String> {
    None
}

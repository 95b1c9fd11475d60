//! [`Principal`], the identity of a caller.

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
    /// By a certificate that TLS has verified. The name is its subject in the form of RFC 4514.
    Certificate,
    /// By a trusted caller, which asserts that it calls on behalf of the user with this name.
    AssertedName,
    /// By a trusted caller, which asserts that it calls on behalf of the subject of a certificate, or of a
    /// distinguished name. The name has the form of RFC 4514.
    AssertedSubject,
    /// By a trusted caller, which asserts that it calls on behalf of an unknown caller. The name is empty.
    Anonymous,
}

impl Principal {
    pub(crate) fn new(kind: PrincipalKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), asserted_by: None }
    }

    pub(crate) fn asserted(kind: PrincipalKind, name: impl Into<String>, by: Self) -> Self {
        Self { kind, name: name.into(), asserted_by: Some(Box::new(by)) }
    }

    /// Returns how the principal was authenticated.
    #[must_use]
    pub fn kind(&self) -> PrincipalKind {
        self.kind
    }

    /// Returns the name of the user, or the subject, such as `CN=billing,O=Example`. Escape it for display.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the user, if the principal is a login or an asserted name.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        matches!(self.kind, PrincipalKind::Login | PrincipalKind::AssertedName).then_some(&self.name)
    }

    /// Returns the trusted caller that asserted this identity, or `None` if the identity is not asserted.
    #[must_use]
    pub fn asserted_by(&self) -> Option<&Self> {
        self.asserted_by.as_deref()
    }
}

pub(crate) fn certified_principal(session: Option<&TlsSession>) -> Option<Arc<Principal>> {
    let subject = session.and_then(TlsSession::subject)?;
    Some(Arc::new(Principal::new(PrincipalKind::Certificate, subject)))
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Printable::new(&self.name);
        match self.kind {
            PrincipalKind::Login | PrincipalKind::AssertedName => write!(f, "user `{name}`"),
            PrincipalKind::Certificate => write!(f, "`{name}` by certificate"),
            PrincipalKind::AssertedSubject => write!(f, "`{name}`"),
            PrincipalKind::Anonymous => f.write_str("an anonymous caller"),
        }?;
        self.asserted_by.as_ref().map_or(Ok(()), |asserted_by| write!(f, ", asserted by {asserted_by}"))
    }
}

/// Converts a distinguished name from DER to the form of RFC 4514.
#[cfg(feature = "tls")]
pub(super) fn distinguished_name(der: &[u8]) -> Option<String> {
    use x509_cert::der::Decode;
    x509_cert::name::Name::from_der(der).ok().map(|name| name.to_string())
}

#[cfg(feature = "tls")]
pub(super) fn subject_of_chain(der: &[u8]) -> Option<String> {
    use x509_cert::der::Decode;
    let chain = Vec::<x509_cert::Certificate>::from_der(der).ok()?;
    chain.first().map(|certificate| certificate.tbs_certificate.subject.to_string())
}

/// Returns `None`, because distinguished names and certificates are decoded only with the feature `tls`.
#[cfg(not(feature = "tls"))]
pub(super) fn distinguished_name(_: &[u8]) -> Option<String> {
    None
}

#[cfg(not(feature = "tls"))]
pub(super) fn subject_of_chain(_: &[u8]) -> Option<String> {
    None
}

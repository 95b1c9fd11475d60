//! Who calls.

use std::fmt;
use std::sync::Arc;

use giop_codec::Printable;

use crate::tls::TlsSession;

/// Who calls, as far as the server believes it: [`Request::principal`](crate::Request::principal).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal {
    kind: PrincipalKind,
    name: String,
    speaker: Option<Box<Principal>>,
}

/// How a [`Principal`] is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PrincipalKind {
    /// By user name and password.
    Login,
    /// By a certificate that TLS checked; the name is its subject as RFC 4514 writes it.
    Certificate,
    /// Somebody who is trusted to do so says that he calls for a user of that name.
    AssertedName,
    /// The same, for the subject of a certificate, or a distinguished name, as RFC 4514 writes it.
    AssertedSubject,
    /// The same, for somebody whom he does not know. The name is empty.
    Anonymous,
}

impl Principal {
    pub(crate) fn new(kind: PrincipalKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), speaker: None }
    }

    /// One for whom another speaks.
    pub(crate) fn asserted(kind: PrincipalKind, name: impl Into<String>, by: Self) -> Self {
        Self { kind, name: name.into(), speaker: Some(Box::new(by)) }
    }

    /// How he is known.
    #[must_use]
    pub fn kind(&self) -> PrincipalKind {
        self.kind
    }

    /// The name: of a user, or a certificate's subject such as `CN=billing,O=Example`. It comes from the network: escape it where you show it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The user's name, of a login and of an asserted name.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        matches!(self.kind, PrincipalKind::Login | PrincipalKind::AssertedName).then_some(&self.name)
    }

    /// Who says so, of an asserted identity.
    #[must_use]
    pub fn speaker(&self) -> Option<&Self> {
        self.speaker.as_deref()
    }
}

/// Who showed a certificate.
pub(crate) fn by_certificate(session: Option<&TlsSession>) -> Option<Arc<Principal>> {
    let subject = session.and_then(TlsSession::subject)?;
    Some(Arc::new(Principal::new(PrincipalKind::Certificate, subject)))
}

/// For people: the name is [`Printable`].
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
        self.speaker.as_ref().map_or(Ok(()), |speaker| write!(f, ", as {speaker} says"))
    }
}

/// A distinguished name in DER as RFC 4514 writes it.
#[cfg(feature = "tls")]
pub(super) fn distinguished_name(der: &[u8]) -> Option<String> {
    use x509_cert::der::Decode;
    x509_cert::name::Name::from_der(der).ok().map(|name| name.to_string())
}

/// The subject of the first of a sequence of certificates in DER.
#[cfg(feature = "tls")]
pub(super) fn subject_of_chain(der: &[u8]) -> Option<String> {
    use x509_cert::der::Decode;
    let chain = Vec::<x509_cert::Certificate>::from_der(der).ok()?;
    chain.first().map(|certificate| certificate.tbs_certificate.subject.to_string())
}

/// Names of certificates are read where TLS is.
#[cfg(not(feature = "tls"))]
pub(super) fn distinguished_name(_: &[u8]) -> Option<String> {
    None
}

/// As above.
#[cfg(not(feature = "tls"))]
pub(super) fn subject_of_chain(_: &[u8]) -> Option<String> {
    None
}

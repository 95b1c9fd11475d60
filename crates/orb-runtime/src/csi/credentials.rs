//! Credentials of a client's calls.

use std::fmt;

use bytes::Bytes;
use giop_codec::csi::gssup::{self, LoginError};
use giop_codec::csi::{
    AsContextSec, AssociationOptions, CompoundSecMech, EstablishContext, ExportedName, IdentityToken, Oid,
    SasContext, TransportMechanism,
};
use giop_codec::exception::{MinorCode, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{ContextId, ServiceContext};
use giop_codec::ior::IiopProfile;
use giop_proto::Reply;

use crate::csi::judge::no_permission;
use crate::csi::security::Security;

/// Credentials of outgoing calls: [`OrbBuilder::credentials`](crate::OrbBuilder::credentials), or
/// [`Reference::with_credentials`](crate::Reference::with_credentials) for one object.
///
/// They are sent only to servers whose references ask for them. A call is `NO_PERMISSION`, `COMPLETED_NO` if
/// the server requires something that is missing here, or that must not be sent to it. The exception says
/// which.
///
/// A reference with credentials of its own is bound anew. Its connections are shared with others to the same
/// server.
#[derive(Clone, Default)]
pub struct Credentials {
    login: Option<(String, String)>,
    realm: Option<String>,
    identity: IdentityToken,
    plaintext: bool,
    unasked: bool,
}

/// The identity for which a client calls, if it is not its own. The server must trust the client to assert
/// it: `Logins::trust_user`, `Logins::trust_subject`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssertedIdentity {
    /// An unknown caller.
    Anonymous,
    /// The user of that name.
    Name(String),
    /// An X.501 distinguished name, in DER.
    DistinguishedName(Bytes),
    /// The subject of the first of these certificates, which are an ASN.1 sequence in DER.
    Certificates(Bytes),
}

impl Credentials {
    /// Returns credentials with a password and a user name: `user`, or `user@realm`.
    pub fn login(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { login: Some((user.into(), password.into())), ..Self::default() }
    }

    /// Returns credentials without a login, for clients that are known by their certificate and call for
    /// others.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Sends the login only to servers whose references name that realm. By default it is sent to all that
    /// ask for one.
    #[must_use]
    pub fn for_realm(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }

    /// Asserts the identity of another caller. Servers that accept no asserted identity are not called.
    /// Servers whose references say nothing of security are called without it.
    #[must_use]
    pub fn assert_identity(mut self, identity: AssertedIdentity) -> Self {
        self.identity = match identity {
            AssertedIdentity::Anonymous => IdentityToken::Anonymous,
            AssertedIdentity::Name(name) => IdentityToken::PrincipalName(ExportedName::gssup(&name)),
            AssertedIdentity::DistinguishedName(der) => IdentityToken::DistinguishedName(der),
            AssertedIdentity::Certificates(der) => IdentityToken::X509CertChain(der),
        };
        self
    }

    /// Sends the password and the asserted identity over plain TCP too, where others on the network can read
    /// and change them.
    #[must_use]
    pub fn allow_plaintext_passwords(mut self) -> Self {
        self.plaintext = true;
        self
    }

    /// Sends all of it also to servers whose references say nothing of security, such as those made from
    /// `corbaloc:`.
    #[must_use]
    pub fn always_send(mut self) -> Self {
        self.unasked = true;
        self
    }

    /// Returns the security context of each request to the profile's server. `tls` means that TLS protects
    /// the connection, `private` that it is private in another way.
    fn context(&self, profile: &IiopProfile, tls: bool, private: bool) -> Result<Option<SasContext>, String> {
        let private = private || self.plaintext;
        let Some(offered) = profile.csi_mechanisms() else {
            let sends =
                self.unasked && private && (self.login.is_some() || self.identity != IdentityToken::Absent);
            return if sends {
                self.establish(true, &Bytes::new(), self.identity.clone()).map(Some)
            } else {
                Ok(None)
            };
        };
        let mut refused = None;
        for mechanism in &offered.mechanisms {
            match self.by(mechanism, tls, private) {
                Ok(context) => return Ok(context),
                // The error is that of the first mechanism that suits the connection.
                Err(Unfit::Other) => {}
                Err(Unfit::Lacks(text)) => refused = refused.or(Some(text)),
            }
        }
        match refused {
            Some(text) => Err(text),
            None if offered.mechanisms.is_empty() => Ok(None),
            None => Err("the server takes none but mechanisms of security that this ORB, or this connection, does not have".to_owned()),
        }
    }

    fn by(&self, mechanism: &CompoundSecMech, tls: bool, private: bool) -> Result<Option<SasContext>, Unfit> {
        /// The options that TLS under the messages provides.
        const BY_TLS: AssociationOptions = AssociationOptions(2 | 4 | 8 | 16 | 32);
        let lacks = |text: &str| Err(Unfit::Lacks(text.to_owned()));
        match &mechanism.transport {
            TransportMechanism::Tls(_) if tls => {}
            // A mechanism without requirements on the transport suits every connection.
            TransportMechanism::None if tls || mechanism.target_requires.0 & BY_TLS.0 == 0 => {}
            _ => return Err(Unfit::Other),
        }
        let AsContextSec { supports, requires, mechanism: oid, target_name } = &mechanism.authentication;
        let who = AssociationOptions::ESTABLISH_TRUST_IN_CLIENT;
        let takes = supports.has(who) && *oid == Oid::GSSUP && self.is_for(target_name);
        let login = takes && private && self.login.is_some();
        if requires.has(who) && !login {
            return match (&self.login, private) {
                (None, _) => {
                    lacks("the server wants a login: OrbBuilder::login, or with_credentials of the reference")
                }
                (Some(_), _) if *oid != Oid::GSSUP => {
                    lacks("the server wants a login by another mechanism than user and password")
                }
                (Some(_), false) => lacks(
                    "the server wants a login, and the password may not go over plain TCP: take TLS, or Credentials::allow_plaintext_passwords",
                ),
                (Some(_), true) => {
                    lacks("the server wants a login, and is of another realm than this one is for")
                }
            };
        }
        let attributes = &mechanism.attributes;
        let asserts = self.identity != IdentityToken::Absent;
        if asserts {
            let takes = attributes.supports.has(AssociationOptions::IDENTITY_ASSERTION)
                && attributes.identity_types.has(self.identity.form());
            if !takes {
                return lacks(
                    "the server takes no asserted identity of that form (Credentials::assert_identity)",
                );
            }
            if !private {
                return lacks(
                    "an identity may not be asserted over plain TCP: take TLS, or Credentials::allow_plaintext_passwords",
                );
            }
        } else if attributes.requires.has(AssociationOptions::IDENTITY_ASSERTION) {
            return lacks(
                "the server wants to be told for whom this side speaks: Credentials::assert_identity",
            );
        }
        if !login && !asserts {
            return Ok(None);
        }
        self.establish(login, target_name, self.identity.clone()).map(Some).map_err(Unfit::Lacks)
    }

    /// Returns whether the login may be sent to the server of that name.
    fn is_for(&self, target_name: &Bytes) -> bool {
        let Some(realm) = &self.realm else { return true };
        let named = ExportedName::from_octets(target_name);
        named
            .as_ref()
            .and_then(ExportedName::as_gssup)
            .is_some_and(|name| name.trim_start_matches('@') == realm)
    }

    fn establish(&self, login: bool, target: &Bytes, identity: IdentityToken) -> Result<SasContext, String> {
        let token = match self.login.as_ref().filter(|_| login) {
            None => Bytes::new(),
            Some((user, password)) => {
                let octets = |text: &str| Bytes::copy_from_slice(text.as_bytes());
                let login =
                    gssup::Login { user: octets(user), password: octets(password), target: target.clone() };
                login.to_token().map_err(|error| format!("the login can not be sent: {error}"))?
            }
        };
        Ok(SasContext::Establish(EstablishContext { identity, authentication: token, ..Default::default() }))
    }
}

/// The reason for which a mechanism is not used.
enum Unfit {
    /// It is for another kind of connection.
    Other,
    /// It requires something that is missing here.
    Lacks(String),
}

/// Does not show the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.login.as_ref().map(|(user, _)| user))
            .field("realm", &self.realm)
            .field("identity", &self.identity)
            .field("plaintext", &self.plaintext)
            .finish_non_exhaustive()
    }
}

impl Security {
    /// Returns the security context of each request to the profile's server, with a reference's own
    /// credentials or those of the ORB.
    ///
    /// No state is kept for the server, so that a reference may use any connection to it. The same bytes are
    /// sent with each request, and their header is encoded once.
    pub(crate) fn context_for(
        &self,
        own: Option<&Credentials>,
        profile: &IiopProfile,
        link: &crate::connection::SharedConnection,
    ) -> Result<Option<ServiceContext>, SystemException> {
        // Without credentials the call is made as without this feature. The server responds with what it
        // requires.
        let Some(credentials) = own.or(self.credentials.as_ref()) else { return Ok(None) };
        let tls = link.session().is_some();
        let private = super::guard::is_private(link.peer(), tls);
        match credentials.context(profile, tls, private) {
            Ok(None) => Ok(None),
            Ok(Some(context)) => Ok(Some(context.to_service_context()?)),
            Err(text) => Err(no_permission(MinorCode::NONE, text)),
        }
    }
}

/// Adds a description to an exception of a server that refused the caller, and what to do about it.
#[cold]
pub(crate) fn explained(exception: SystemException, reply: &Reply) -> SystemException {
    if exception.kind != SystemExceptionKind::NoPermission {
        return exception;
    }
    let contexts = reply.contexts();
    let context = contexts.find(ContextId::SECURITY_ATTRIBUTE_SERVICE);
    let context = context.and_then(|context| SasContext::from_service_context(&context).ok().flatten());
    let Some(SasContext::Error { failure, error_token, .. }) = context else {
        let wanted = exception.minor == minor::NO_PERMISSION_UNKNOWN_CALLER;
        let text = "the server wants to know who calls: OrbBuilder::login, or Reference::with_credentials";
        return if wanted { exception.with_reason(text) } else { exception };
    };
    let text = match (failure.major, LoginError::from_token(&error_token)) {
        (1, Ok(LoginError::BadTarget)) => "the server is of another realm than the login is for".to_owned(),
        (1, Ok(_)) => "the server does not take the login: user or password is wrong, or too many failed".to_owned(),
        (1, Err(_)) => {
            "the server does not believe who calls: the login is missing or wrong, or it trusts this side not to speak for others".to_owned()
        }
        (2, _) => "the server does not take this form of login or identity".to_owned(),
        (3, _) => "what is said of who calls is against the server's rules, such as a password over plain TCP".to_owned(),
        (4, _) => "the server has forgotten who calls".to_owned(),
        (major, _) => format!("the server refuses who calls, for reason {major}.{}", failure.minor),
    };
    exception.with_reason(text)
}

//! [`Credentials`], with which a client identifies itself in its calls.

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

use crate::csi::authentication::no_permission;
use crate::csi::security::Security;

/// Credentials of outgoing calls: [`OrbBuilder::credentials`](crate::OrbBuilder::credentials), or
/// [`Reference::with_credentials`](crate::Reference::with_credentials) for one object.
///
/// By default, they are sent only to servers whose references request them. A call fails with
/// `NO_PERMISSION`, `COMPLETED_NO`, if the credentials lack something that the server requires, or must not
/// be sent over the connection. The text of the exception gives the reason.
///
/// A reference with its own credentials may use the same connections as other references.
#[derive(Clone, Default)]
#[must_use]
pub struct Credentials {
    login: Option<(String, String)>,
    realm: Option<String>,
    identity: IdentityToken,
    allows_plaintext: bool,
    always_sent: bool,
}

/// The identity of a third party on whose behalf a trusted client calls (`Logins::trust_user`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssertedIdentity {
    /// An unknown caller.
    Anonymous,
    /// The user with this name.
    Name(String),
    /// An X.501 distinguished name, in DER.
    DistinguishedName(Bytes),
    /// A sequence of X.509 certificates, in DER. The identity is the subject of the first one.
    Certificates(Bytes),
}

impl Credentials {
    /// Creates credentials with a password and a user name: `user`, or `user@realm`.
    pub fn login(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { login: Some((user.into(), password.into())), ..Self::default() }
    }

    /// Creates credentials without a login, for clients that are authenticated by their certificate.
    pub fn none() -> Self {
        Self::default()
    }

    /// Sends the login only to servers whose references specify this realm, not to all that request a login.
    pub fn for_realm(mut self, realm: impl Into<String>) -> Self {
        self.realm = Some(realm.into());
        self
    }

    /// Asserts the identity of another caller. Calls to servers that do not accept asserted identities fail.
    pub fn assert_identity(mut self, identity: AssertedIdentity) -> Self {
        self.identity = match identity {
            AssertedIdentity::Anonymous => IdentityToken::Anonymous,
            AssertedIdentity::Name(name) => IdentityToken::PrincipalName(ExportedName::gssup(&name)),
            AssertedIdentity::DistinguishedName(der) => IdentityToken::DistinguishedName(der),
            AssertedIdentity::Certificates(der) => IdentityToken::X509CertChain(der),
        };
        self
    }

    /// Also sends the password and the asserted identity over plain TCP, where others can read them.
    pub fn allow_plaintext_passwords(mut self) -> Self {
        self.allows_plaintext = true;
        self
    }

    /// Also sends the credentials if the reference has no security information, like a `corbaloc:` URL.
    pub fn always_send(mut self) -> Self {
        self.always_sent = true;
        self
    }

    /// Returns the security context for the profile's server. `private` is true if others cannot read the
    /// connection.
    fn context(&self, profile: &IiopProfile, tls: bool, private: bool) -> Result<Option<SasContext>, String> {
        let may_send = private || self.allows_plaintext;
        let Some(offered) = profile.csi_mechanisms() else {
            let has_content = self.login.is_some() || self.identity != IdentityToken::Absent;
            let sends = self.always_sent && may_send && has_content;
            return if sends {
                self.establish(true, &Bytes::new(), self.identity.clone()).map(Some)
            } else {
                Ok(None)
            };
        };
        let mut unmet = None;
        for mechanism in &offered.mechanisms {
            match self.context_for_mechanism(mechanism, tls, may_send) {
                Ok(context) => return Ok(context),
                // Report the first mechanism that the connection supports.
                Err(MechanismError::OtherConnection) => {}
                Err(MechanismError::Unmet(text)) => unmet = unmet.or(Some(text)),
            }
        }
        match unmet {
            Some(text) => Err(text),
            None if offered.mechanisms.is_empty() => Ok(None),
            None => Err(
                "the server accepts only security mechanisms that this ORB or this connection does not have"
                    .to_owned(),
            ),
        }
    }

    fn context_for_mechanism(
        &self,
        mechanism: &CompoundSecMech,
        tls: bool,
        may_send: bool,
    ) -> Result<Option<SasContext>, MechanismError> {
        const TLS_OPTIONS: AssociationOptions = AssociationOptions(2 | 4 | 8 | 16 | 32);
        let unmet = |text: &str| Err(MechanismError::Unmet(text.to_owned()));
        match &mechanism.transport {
            TransportMechanism::Tls(_) if tls => {}
            // A mechanism without requirements on the transport can be used over every connection.
            TransportMechanism::None if tls || mechanism.target_requires.0 & TLS_OPTIONS.0 == 0 => {}
            _ => return Err(MechanismError::OtherConnection),
        }
        let AsContextSec { supports, requires, mechanism: oid, target_name } = &mechanism.authentication;
        let authentication = AssociationOptions::ESTABLISH_TRUST_IN_CLIENT;
        let accepts = supports.has(authentication) && *oid == Oid::GSSUP && self.may_log_in_to(target_name);
        let login = accepts && may_send && self.login.is_some();
        if requires.has(authentication) && !login {
            return match (&self.login, may_send) {
                (None, _) => {
                    unmet("the server requires a login: use OrbBuilder::login or Reference::with_credentials")
                }
                (Some(_), _) if *oid != Oid::GSSUP => {
                    unmet("the server requires a login by another mechanism than user name and password")
                }
                (Some(_), false) => unmet(
                    "the server requires a login, and the password must not be sent over plain TCP: use TLS or Credentials::allow_plaintext_passwords",
                ),
                (Some(_), true) => unmet(
                    "the server requires a login for a realm other than that of these credentials (Credentials::for_realm)",
                ),
            };
        }
        let attributes = &mechanism.attributes;
        let asserts = self.identity != IdentityToken::Absent;
        if asserts {
            let accepts = attributes.supports.has(AssociationOptions::IDENTITY_ASSERTION)
                && attributes.identity_types.has(self.identity.form());
            if !accepts {
                return unmet(
                    "the server accepts no asserted identity of this form (Credentials::assert_identity)",
                );
            }
            if !may_send {
                return unmet(
                    "an identity must not be asserted over plain TCP: use TLS or Credentials::allow_plaintext_passwords",
                );
            }
        } else if attributes.requires.has(AssociationOptions::IDENTITY_ASSERTION) {
            return unmet("the server requires an asserted identity: use Credentials::assert_identity");
        }
        if !login && !asserts {
            return Ok(None);
        }
        self.establish(login, target_name, self.identity.clone()).map(Some).map_err(MechanismError::Unmet)
    }

    /// Returns whether the login may be sent to a server whose reference specifies this target name.
    fn may_log_in_to(&self, target_name: &Bytes) -> bool {
        let Some(realm) = &self.realm else { return true };
        let name = ExportedName::from_octets(target_name);
        name.as_ref()
            .and_then(ExportedName::as_gssup)
            .is_some_and(|name| name.trim_start_matches('@') == realm)
    }

    fn establish(&self, login: bool, target: &Bytes, identity: IdentityToken) -> Result<SasContext, String> {
        let token = match self.login.as_ref().filter(|_| login) {
            None => Bytes::new(),
            Some((user, password)) => {
                let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
                let login =
                    gssup::Login { user: bytes(user), password: bytes(password), target: target.clone() };
                login.to_token().map_err(|error| format!("the login cannot be encoded: {error}"))?
            }
        };
        Ok(SasContext::Establish(EstablishContext { identity, authentication: token, ..Default::default() }))
    }
}

enum MechanismError {
    OtherConnection,
    Unmet(String),
}

/// Does not show the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.login.as_ref().map(|(user, _)| user))
            .field("realm", &self.realm)
            .field("identity", &self.identity)
            .field("plaintext", &self.allows_plaintext)
            .finish_non_exhaustive()
    }
}

impl Security {
    /// Returns the security context for the profile's server, with the credentials `own` or else the ORB's.
    pub(crate) fn context_for(
        &self,
        own: Option<&Credentials>,
        profile: &IiopProfile,
        link: &crate::connection::SharedConnection,
    ) -> Result<Option<ServiceContext>, SystemException> {
        // Without credentials, send no context. A server that requires one refuses the call.
        let Some(credentials) = own.or(self.credentials.as_ref()) else { return Ok(None) };
        let tls = link.tls_session().is_some();
        let private = super::guard::is_private(link.peer(), tls);
        match credentials.context(profile, tls, private) {
            Ok(None) => Ok(None),
            Ok(Some(context)) => Ok(Some(context.to_service_context()?)),
            Err(text) => Err(no_permission(MinorCode::NONE, text)),
        }
    }
}

/// Adds a reason to the exception of a server that refused the caller.
#[cold]
pub(crate) fn with_refusal_reason(exception: SystemException, reply: &Reply) -> SystemException {
    if exception.kind != SystemExceptionKind::NoPermission {
        return exception;
    }
    let contexts = reply.contexts();
    let context = contexts.find(ContextId::SECURITY_ATTRIBUTE_SERVICE);
    let context = context.and_then(|context| SasContext::from_service_context(&context).ok().flatten());
    let Some(SasContext::Error { failure, error_token, .. }) = context else {
        let is_unknown = exception.minor == minor::NO_PERMISSION_AUTHENTICATION_REQUIRED;
        let text =
            "the server does not know the caller: use OrbBuilder::login or Reference::with_credentials";
        return if is_unknown { exception.with_reason(text) } else { exception };
    };
    let text = match (failure.major, LoginError::from_token(&error_token)) {
        (1, Ok(LoginError::BadTarget)) => "the login is for a realm other than that of the server",
        (1, Ok(_)) => {
            "the server does not accept the login: the user or password is wrong, or too many logins have failed"
        }
        (1, Err(_)) => {
            "the server does not accept the identity of the caller: the login is missing or wrong, or the server does not trust this client to assert identities"
        }
        (2, _) => "the server does not support this form of login or identity",
        (3, _) => {
            "the security context violates a rule of the server, for example because it has a password over plain TCP"
        }
        (4, _) => "the server no longer has the security context of this connection",
        (major, _) => {
            let minor = failure.minor;
            return exception.with_reason(format!(
                "the server refuses the security context, with reason {major}.{minor}"
            ));
        }
    };
    exception.with_reason(text)
}

//! [`Authorizer`], which decides whether requests may be dispatched.

use std::fmt;

use crate::csi::principal::Principal;
use crate::object_key::PoaPath;
use crate::tls::TlsSession;
use crate::transport::Peer;

/// Decides whether a request may be dispatched: [`OrbBuilder::authorizer`](crate::OrbBuilder::authorizer).
///
/// It is called in the task of the connection before each request, so it must not block. If a request has to
/// wait, for example for a servant activator or its POA, it is called again afterwards.
pub trait Authorizer: Send + Sync + 'static {
    /// Decides whether the request may be dispatched.
    fn decide(&self, access: &Access<'_>) -> Decision;
}

/// The decision of an [`Authorizer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Dispatch the request.
    Allow,
    /// Refuse the request with the minor code [`NO_PERMISSION_DENIED`](crate::minor::NO_PERMISSION_DENIED).
    Deny,
}

/// A request that is to be authorized.
pub struct Access<'a> {
    pub(crate) principal: Option<&'a Principal>,
    pub(crate) path: PoaPath<'a>,
    pub(crate) object_id: &'a [u8],
    pub(crate) interface: Option<&'a str>,
    pub(crate) operation: &'a str,
    pub(crate) session: Option<&'a TlsSession>,
    pub(crate) peer: &'a Peer,
}

impl<'a> Access<'a> {
    /// Returns the caller, or `None` if it is unknown.
    #[must_use]
    pub fn principal(&self) -> Option<&'a Principal> {
        self.principal
    }

    /// Returns the names of the object's POA and its ancestors below the RootPOA, the outermost first.
    pub fn poa(&self) -> impl Iterator<Item = &'a str> + Clone {
        self.path.names().into_iter().flatten()
    }

    /// Returns the id of the object within its POA, or the whole key of an object with a plain key.
    #[must_use]
    pub fn object_id(&self) -> &'a [u8] {
        self.object_id
    }

    /// Returns the repository id of the object's interface, or `None` before its servant has been created.
    #[must_use]
    pub fn interface(&self) -> Option<&'a str> {
        self.interface
    }

    /// Returns the operation's name in the request, such as `deposit`, `_get_balance` or `_is_a`.
    #[must_use]
    pub fn operation(&self) -> &'a str {
        self.operation
    }

    /// Returns the TLS session of the connection, if it has one.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(&self) -> Option<&'a TlsSession> {
        self.session
    }

    /// Returns the subject of the certificate that the peer of the connection has presented, if it has.
    #[must_use]
    pub fn subject(&self) -> Option<&'a str> {
        self.session.and_then(TlsSession::subject)
    }

    /// Returns the peer of the connection.
    #[must_use]
    pub fn peer(&self) -> &'a Peer {
        self.peer
    }
}

impl fmt::Debug for Access<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("principal", &self.principal)
            .field("poa", &self.path)
            .field("object_id", &format_args!("{}", self.object_id.escape_ascii()))
            .field("interface", &self.interface)
            .field("operation", &self.operation)
            .field("peer", &self.peer)
            .finish()
    }
}

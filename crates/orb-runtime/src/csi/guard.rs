//! The accepted callers and contexts of a connection.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest as _};
use giop_codec::csi::SasContext;
use giop_codec::giop::ServiceContext;

use crate::csi::judge::PendingLogin;
use crate::csi::principal::{Principal, by_certificate};
use crate::csi::security::Security;
use crate::tls::TlsSession;
use crate::transport::Peer;

/// Number of recent contexts that are recognized without decoding them.
const RECENT: usize = 16;

/// Maximum number of logins that are kept for a connection. The oldest one is checked again when it is used
/// after its removal.
const LOGINS: usize = 32;

/// Authenticates and authorizes the requests of one connection.
pub(crate) struct Guard {
    pub(super) security: Security,
    pub(super) peer: Peer,
    /// Passwords cannot be read on the network.
    pub(super) private: bool,
    /// The caller according to the certificate.
    pub(super) certificate: Caller,
    pub(super) known: Contexts,
    /// The login that is being checked, or the last one that was.
    pub(super) tried: Option<PendingLogin>,
    pub(super) failures: u32,
    /// A refused request was logged as a warning.
    pub(super) warned: bool,
}

/// The caller of a request. The default is an unknown caller.
#[derive(Clone, Default)]
pub(crate) struct Caller(Option<Arc<Known>>);

struct Known {
    principal: Option<Arc<Principal>>,
    /// The service context of the reply.
    complete: Option<ServiceContext>,
}

/// A hash of bytes from the network. The bytes are not kept, because they include a password.
pub(super) type TokenDigest = [u8; 32];

/// The contexts and logins that were accepted on a connection.
pub(super) struct Contexts {
    salt: [u8; 16],
    epoch: u64,
    recent: Vec<(TokenDigest, Caller)>,
    next: usize,
    logins: Vec<(TokenDigest, Arc<Principal>)>,
    /// By context number, which the client chooses.
    pub(super) table: HashMap<u64, (TokenDigest, Caller)>,
}

impl Guard {
    pub(super) fn new(security: &Security, peer: Peer, session: Option<Arc<TlsSession>>) -> Self {
        let principal = by_certificate(session.as_deref());
        Self {
            private: is_private(&peer, session.is_some()),
            security: security.clone(),
            peer,
            certificate: Caller::new(principal, None),
            known: Contexts::default(),
            tried: None,
            failures: 0,
            warned: false,
        }
    }
}

/// Returns whether data on the connection cannot be read on the network.
pub(super) fn is_private(peer: &Peer, tls: bool) -> bool {
    tls || !matches!(peer, Peer::Tcp(_))
}

impl Caller {
    pub(super) fn new(principal: Option<Arc<Principal>>, complete: Option<ServiceContext>) -> Self {
        if principal.is_none() && complete.is_none() {
            return Self(None);
        }
        Self(Some(Arc::new(Known { principal, complete })))
    }

    /// Returns the principal.
    #[inline]
    pub(crate) fn principal(&self) -> Option<&Arc<Principal>> {
        self.0.as_ref()?.principal.as_ref()
    }

    /// Returns the service context of the reply.
    #[inline]
    pub(crate) fn complete(&self) -> Option<&ServiceContext> {
        self.0.as_ref()?.complete.as_ref()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.principal().fmt(f)
    }
}

impl Default for Contexts {
    fn default() -> Self {
        // The keys come from the process's random numbers.
        let (one, other) = (RandomState::new().hash_one(0), RandomState::new().hash_one(1));
        let salt = (u128::from(one) << 64 | u128::from(other)).to_be_bytes();
        Self { salt, epoch: 0, recent: Vec::new(), next: 0, logins: Vec::new(), table: HashMap::new() }
    }
}

impl Contexts {
    /// Removes all entries if the users have changed since they were accepted.
    pub(super) fn keep_to(&mut self, epoch: u64) {
        if self.epoch != epoch {
            *self = Self { epoch, salt: self.salt, ..Self::default() };
        }
    }

    pub(super) fn fingerprint(&self, octets: &[u8]) -> TokenDigest {
        Blake2b::<U32>::new().chain_update(self.salt).chain_update(octets).finalize().into()
    }

    #[inline]
    pub(super) fn recent(&self, fingerprint: &TokenDigest) -> Option<&Caller> {
        self.recent.iter().find(|(other, _)| other == fingerprint).map(|(_, caller)| caller)
    }

    pub(super) fn login(&self, fingerprint: &TokenDigest) -> Option<&Arc<Principal>> {
        self.logins.iter().find(|(other, _)| other == fingerprint).map(|(_, principal)| principal)
    }

    pub(super) fn keep_login(&mut self, fingerprint: TokenDigest, principal: &Arc<Principal>) {
        if self.logins.len() >= LOGINS {
            self.logins.remove(0);
        }
        self.logins.push((fingerprint, Arc::clone(principal)));
    }

    /// Keeps an accepted context. A numbered context is also kept by its number, as long as `most` allows, so
    /// that the client may refer to it.
    pub(super) fn keep(
        &mut self,
        fingerprint: TokenDigest,
        number: u64,
        principal: Option<Arc<Principal>>,
        most: usize,
    ) -> Caller {
        let stateful = number != 0 && self.table.len() < most;
        if stateful {
            self.table.insert(number, (fingerprint, Caller::new(principal.clone(), None)));
        }
        let complete =
            SasContext::Complete { client_context_id: number, stateful, final_token: bytes::Bytes::new() };
        let caller = Caller::new(principal, complete.to_service_context().ok());
        let entry = (fingerprint, caller.clone());
        match self.recent.get_mut(self.next) {
            Some(oldest) => *oldest = entry,
            None => self.recent.push(entry),
        }
        self.next = (self.next + 1) % RECENT;
        caller
    }
}

//! [`Guard`], which authenticates and authorizes the requests of one connection.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest as _};
use giop_codec::csi::SasContext;
use giop_codec::giop::ServiceContext;

use crate::csi::authentication::PendingLogin;
use crate::csi::principal::{Principal, certified_principal};
use crate::csi::security::Security;
use crate::tls::TlsSession;
use crate::transport::Peer;

/// The maximum number of recent contexts that are recognized without decoding them.
const MAX_RECENT: usize = 16;
/// The maximum number of accepted logins of a connection. If there are more, the oldest one is forgotten.
const MAX_LOGINS: usize = 32;

pub(crate) struct Guard {
    pub(super) security: Security,
    pub(super) peer: Peer,
    /// True if others on the network cannot read the connection.
    pub(super) is_private: bool,
    /// The caller according to the certificate of the peer, if it has one.
    pub(super) certified_caller: Caller,
    pub(super) accepted: AcceptedContexts,
    /// The login that is being checked, or that was checked last.
    pub(super) pending_login: Option<PendingLogin>,
    pub(super) failures: u32,
    pub(super) has_warned: bool,
}

/// The caller of a request. The default is an unknown caller.
#[derive(Clone, Default)]
pub(crate) struct Caller(Option<Arc<CallerData>>);

struct CallerData {
    principal: Option<Arc<Principal>>,
    /// The service context of the reply, which confirms the security context.
    confirmation: Option<ServiceContext>,
}

/// A hash of a security context or of a login, which are not kept because they may contain a password.
pub(super) type TokenDigest = [u8; 32];

#[derive(Default)]
pub(super) struct AcceptedContexts {
    salt: [u8; 16],
    /// See [`Authenticator::epoch`](crate::csi::Authenticator::epoch).
    epoch: u64,
    recent: Vec<(TokenDigest, Caller)>,
    /// The index in `recent` that the next context replaces.
    next_replaced: usize,
    logins: Vec<(TokenDigest, Arc<Principal>)>,
    /// The contexts to which the client can refer, by the number that the client has chosen.
    pub(super) numbered: HashMap<u64, (TokenDigest, Caller)>,
}

impl Guard {
    pub(super) fn new(security: &Security, peer: Peer, session: Option<Arc<TlsSession>>) -> Self {
        let principal = certified_principal(session.as_deref());
        Self {
            is_private: is_private(&peer, session.is_some()),
            security: security.clone(),
            peer,
            certified_caller: Caller::new(principal, None),
            accepted: AcceptedContexts::new(),
            pending_login: None,
            failures: 0,
            has_warned: false,
        }
    }
}

pub(super) fn is_private(peer: &Peer, tls: bool) -> bool {
    tls || !matches!(peer, Peer::Tcp(_))
}

impl Caller {
    pub(super) fn new(principal: Option<Arc<Principal>>, confirmation: Option<ServiceContext>) -> Self {
        if principal.is_none() && confirmation.is_none() {
            return Self(None);
        }
        Self(Some(Arc::new(CallerData { principal, confirmation })))
    }

    #[inline]
    pub(crate) fn principal(&self) -> Option<&Arc<Principal>> {
        self.0.as_ref()?.principal.as_ref()
    }

    #[inline]
    pub(crate) fn confirmation(&self) -> Option<&ServiceContext> {
        self.0.as_ref()?.confirmation.as_ref()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.principal().fmt(f)
    }
}

impl AcceptedContexts {
    fn new() -> Self {
        // `RandomState` contains random numbers.
        let (one, other) = (RandomState::new().hash_one(0), RandomState::new().hash_one(1));
        Self { salt: (u128::from(one) << 64 | u128::from(other)).to_be_bytes(), ..Self::default() }
    }

    /// Removes all entries if users may have changed since the entries were accepted.
    pub(super) fn discard_outdated(&mut self, epoch: u64) {
        if self.epoch != epoch {
            *self = Self { epoch, salt: self.salt, ..Self::default() };
        }
    }

    pub(super) fn digest(&self, bytes: &[u8]) -> TokenDigest {
        Blake2b::<U32>::new().chain_update(self.salt).chain_update(bytes).finalize().into()
    }

    #[inline]
    pub(super) fn recent_caller(&self, digest: &TokenDigest) -> Option<&Caller> {
        self.recent.iter().find(|(other, _)| other == digest).map(|(_, caller)| caller)
    }

    pub(super) fn login_principal(&self, digest: &TokenDigest) -> Option<&Arc<Principal>> {
        self.logins.iter().find(|(other, _)| other == digest).map(|(_, principal)| principal)
    }

    pub(super) fn insert_login(&mut self, digest: TokenDigest, principal: &Arc<Principal>) {
        if self.logins.len() >= MAX_LOGINS {
            self.logins.remove(0);
        }
        self.logins.push((digest, Arc::clone(principal)));
    }

    /// Inserts an accepted context. The client can refer to it by `number`, unless that is 0 or there are
    /// already `max_numbered` contexts with a number.
    pub(super) fn insert(
        &mut self,
        digest: TokenDigest,
        number: u64,
        principal: Option<Arc<Principal>>,
        max_numbered: usize,
    ) -> Caller {
        let stateful = number != 0 && self.numbered.len() < max_numbered;
        if stateful {
            self.numbered.insert(number, (digest, Caller::new(principal.clone(), None)));
        }
        let complete =
            SasContext::Complete { client_context_id: number, stateful, final_token: bytes::Bytes::new() };
        let caller = Caller::new(principal, complete.to_service_context().ok());
        let entry = (digest, caller.clone());
        match self.recent.get_mut(self.next_replaced) {
            Some(oldest) => *oldest = entry,
            None => self.recent.push(entry),
        }
        self.next_replaced = (self.next_replaced + 1) % MAX_RECENT;
        caller
    }
}

//! What a connection knows of its callers.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest as _};
use giop_codec::csi::SasContext;
use giop_codec::giop::ServiceContext;

use super::judge::Tried;
use super::principal::{Principal, by_certificate};
use super::security::Security;
use crate::tls::TlsSession;
use crate::transport::Peer;

/// Requests of that many different contexts are known without decoding them.
const RECENT: usize = 16;

/// Logins that are kept for a connection: whoever was checked longest ago is checked again.
const LOGINS: usize = 32;

/// Judges the requests of one connection.
pub(crate) struct Guard {
    pub(super) security: Security,
    pub(super) peer: Peer,
    /// Nobody on the way can read a password.
    pub(super) private: bool,
    /// Who shows that certificate.
    pub(super) certificate: Caller,
    pub(super) known: Contexts,
    /// The login that is being checked, or was last.
    pub(super) tried: Option<Tried>,
    pub(super) failures: u32,
    /// What is refused was logged.
    pub(super) warned: bool,
}

/// Who calls, by a request: nobody that the ORB asked for is known by default.
#[derive(Clone, Default)]
pub(crate) struct Caller(Option<Arc<Known>>);

struct Known {
    principal: Option<Arc<Principal>>,
    /// What the reply says.
    complete: Option<ServiceContext>,
}

/// What stands for octets from the network: they are not kept, since a password is among them.
pub(super) type Fingerprint = [u8; 32];

/// What was found good on a connection.
pub(super) struct Contexts {
    salt: [u8; 16],
    epoch: u64,
    recent: Vec<(Fingerprint, Caller)>,
    next: usize,
    logins: Vec<(Fingerprint, Arc<Principal>)>,
    /// By the clients' numbers.
    pub(super) table: HashMap<u64, (Fingerprint, Caller)>,
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

/// Whether nobody on the way can read what goes over the connection.
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

    /// Who it is.
    #[inline]
    pub(crate) fn principal(&self) -> Option<&Arc<Principal>> {
        self.0.as_ref()?.principal.as_ref()
    }

    /// What is to be said in the reply.
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
        // Keys of the process's own random numbers.
        let (one, other) = (RandomState::new().hash_one(0), RandomState::new().hash_one(1));
        let salt = (u128::from(one) << 64 | u128::from(other)).to_be_bytes();
        Self { salt, epoch: 0, recent: Vec::new(), next: 0, logins: Vec::new(), table: HashMap::new() }
    }
}

impl Contexts {
    /// Forgets everything that was found good under other users.
    pub(super) fn keep_to(&mut self, epoch: u64) {
        if self.epoch != epoch {
            *self = Self { epoch, salt: self.salt, ..Self::default() };
        }
    }

    pub(super) fn fingerprint(&self, octets: &[u8]) -> Fingerprint {
        Blake2b::<U32>::new().chain_update(self.salt).chain_update(octets).finalize().into()
    }

    #[inline]
    pub(super) fn recent(&self, fingerprint: &Fingerprint) -> Option<&Caller> {
        self.recent.iter().find(|(other, _)| other == fingerprint).map(|(_, caller)| caller)
    }

    pub(super) fn login(&self, fingerprint: &Fingerprint) -> Option<&Arc<Principal>> {
        self.logins.iter().find(|(other, _)| other == fingerprint).map(|(_, principal)| principal)
    }

    pub(super) fn keep_login(&mut self, fingerprint: Fingerprint, principal: &Arc<Principal>) {
        if self.logins.len() >= LOGINS {
            self.logins.remove(0);
        }
        self.logins.push((fingerprint, Arc::clone(principal)));
    }

    /// Keeps a context that is good. A numbered one is kept for its number, too, as long as there is room: then the client may name it.
    pub(super) fn keep(
        &mut self,
        fingerprint: Fingerprint,
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

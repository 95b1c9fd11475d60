//! Requests of one connection that can not start yet, in the order in which they came.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use giop_proto::{IncomingRequest, ServeToken};

use crate::orb::OrbCore;
use crate::poa::Refusal;
use crate::poa::core::{Gate, PoaCore};
use crate::poa::manager::Held;
use crate::poa::steps::Making;

/// What a request waits for.
pub(crate) enum Until {
    /// `Orb::accept`.
    Accepting,
    /// A POA manager that holds.
    Open(Held),
    /// A step of the object, which its POA's servant activator makes or ends.
    Made(Held, Making),
    /// Earlier requests for the same object, which wait.
    Turn(Held),
    /// Who calls: the login is being checked.
    #[cfg(feature = "csi")]
    Login(crate::csi::Check),
}

struct Waits {
    incoming: IncomingRequest,
    until: Until,
}

/// The requests that wait.
#[derive(Default)]
pub(crate) struct Waiting {
    requests: VecDeque<Waits>,
}

impl Waiting {
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Puts a request behind the others. What it pins of the connection's memory, it has for itself from now on.
    pub(crate) fn push(&mut self, mut incoming: IncomingRequest, until: Until) {
        incoming.detach();
        self.requests.push_back(Waits { incoming, until });
    }

    /// Whether a login is being checked: until the caller is known, nothing more of the connection is read.
    pub(crate) fn is_for_login(&self) -> bool {
        #[cfg(feature = "csi")]
        return self.requests.iter().any(|waits| matches!(waits.until, Until::Login(_)));
        #[cfg(not(feature = "csi"))]
        false
    }

    /// Whether all requests wait, whatever they are for.
    pub(crate) fn is_for_all(&self) -> bool {
        self.requests.iter().any(|waits| waits.until.is_for_all())
    }

    /// Whether one waits for the POA's manager, so that a later one of the manager's may not overtake it.
    pub(crate) fn is_for(&self, poa: &PoaCore) -> bool {
        self.requests.iter().any(|waits| waits.until.is_for(poa))
    }

    /// Whether one waits for that object, so that a later one may not overtake it.
    pub(crate) fn is_for_object(&self, poa: &Arc<PoaCore>, key: &[u8]) -> bool {
        self.requests.iter().any(|waits| waits.is_for_object(poa, key))
    }

    /// Gives up one.
    pub(crate) fn cancel(&mut self, token: ServeToken) -> bool {
        let at = self.requests.iter().position(|waits| waits.incoming.token() == token);
        at.is_some_and(|at| self.requests.remove(at).is_some())
    }

    /// Whether some wait until somebody lets them start, or it is known who calls.
    pub(crate) fn keeps(&self) -> bool {
        self.requests.iter().any(Waits::is_kept)
    }

    /// Gives these up.
    pub(crate) fn give_up(&mut self) -> Vec<IncomingRequest> {
        let (kept, left): (VecDeque<_>, _) = self.requests.drain(..).partition(Waits::is_kept);
        self.requests = left;
        kept.into_iter().map(|waits| waits.incoming).collect()
    }

    /// The requests that need not wait any more, in order, those with what they get that are not served; `number` is the
    /// connection's.
    pub(crate) fn poll(
        &mut self,
        orb: &OrbCore,
        number: u64,
        cx: &mut Context<'_>,
    ) -> VecDeque<(IncomingRequest, Option<Refusal>)> {
        let mut ready = VecDeque::new();
        let mut left: VecDeque<Waits> = VecDeque::new();
        for mut waits in self.requests.drain(..) {
            // One that became ready between two looks does not overtake.
            let behind = left.iter().any(|other| waits.is_behind(other));
            match if behind { Poll::Pending } else { waits.until.poll(orb, number, cx) } {
                Poll::Pending => left.push_back(waits),
                Poll::Ready(refusal) => ready.push_back((waits.incoming, refusal)),
            }
        }
        self.requests = left;
        ready
    }
}

impl Waits {
    fn is_kept(&self) -> bool {
        match self.until {
            Until::Accepting | Until::Open(_) => true,
            Until::Made(..) | Until::Turn(_) => false,
            // Nobody says when it is checked.
            #[cfg(feature = "csi")]
            Until::Login(_) => true,
        }
    }

    fn is_for_object(&self, poa: &Arc<PoaCore>, key: &[u8]) -> bool {
        match &self.until {
            Until::Made(held, _) | Until::Turn(held) => {
                Arc::ptr_eq(held.poa(), poa) && self.incoming.key() == key
            }
            Until::Accepting | Until::Open(_) => false,
            #[cfg(feature = "csi")]
            Until::Login(_) => false,
        }
    }

    fn is_behind(&self, other: &Self) -> bool {
        match &self.until {
            Until::Accepting => other.until.is_for_all(),
            // Nothing gets past it, and it was not behind anything.
            #[cfg(feature = "csi")]
            Until::Login(_) => false,
            Until::Open(held) | Until::Made(held, _) | Until::Turn(held) => {
                other.until.is_for(held.poa()) || other.is_for_object(held.poa(), self.incoming.key())
            }
        }
    }
}

impl Until {
    /// Whether all of that POA's manager wait behind it.
    fn is_for(&self, poa: &PoaCore) -> bool {
        match self {
            Self::Accepting => true,
            Self::Open(held) => Arc::ptr_eq(&held.poa().manager, &poa.manager),
            Self::Made(..) | Self::Turn(_) => false,
            #[cfg(feature = "csi")]
            Self::Login(_) => true,
        }
    }

    /// Whether all requests wait behind it, whatever they are for.
    fn is_for_all(&self) -> bool {
        match self {
            Self::Accepting => true,
            #[cfg(feature = "csi")]
            Self::Login(_) => true,
            _ => false,
        }
    }

    fn poll(&mut self, orb: &OrbCore, number: u64, cx: &mut Context<'_>) -> Poll<Option<Refusal>> {
        let waits = match self {
            Self::Accepting => orb.is_holding(cx, number),
            Self::Open(held) => held.poll_gate(cx) == Gate::Holding,
            Self::Made(_, making) => return making.poll_unpin(cx).map(Result::err),
            Self::Turn(_) => false,
            #[cfg(feature = "csi")]
            Self::Login(check) => return check.poll_unpin(cx).map(|()| None),
        };
        if waits { Poll::Pending } else { Poll::Ready(None) }
    }
}

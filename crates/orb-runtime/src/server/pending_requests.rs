//! Requests of one connection that cannot start yet, in order of arrival.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use giop_proto::{IncomingRequest, ServeToken};

use crate::poa::Refusal;
use crate::poa::manager::Held;
use crate::poa::step_queue::Making;
use crate::runtime::Shared;
use crate::servant::poa_gate::{Gate, PoaGate};

/// The condition for which a request waits.
pub(crate) enum WaitCondition {
    /// `Orb::resume`.
    Accepting,
    /// The POA manager leaves the holding state.
    Open(Held),
    /// An activator completes a step: incarnation or etherealization of the object, or creation of its POA.
    Made(Held, Making),
    /// Earlier requests for the same object start.
    Turn(Held),
    /// The check of the caller's login completes.
    #[cfg(feature = "csi")]
    Login(crate::csi::Check),
}

struct Waits {
    incoming: IncomingRequest,
    until: WaitCondition,
}

/// The pending requests of one connection.
#[derive(Default)]
pub(crate) struct PendingRequests {
    requests: VecDeque<Waits>,
}

impl PendingRequests {
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Appends a request. Copies what it references in the connection's buffers.
    pub(crate) fn push(&mut self, mut incoming: IncomingRequest, until: WaitCondition) {
        incoming.detach();
        self.requests.push_back(Waits { incoming, until });
    }

    /// Returns whether a login is being checked. Until the caller is known, the connection is not read.
    pub(crate) fn is_for_login(&self) -> bool {
        #[cfg(feature = "csi")]
        return self.requests.iter().any(|waits| matches!(waits.until, WaitCondition::Login(_)));
        #[cfg(not(feature = "csi"))]
        false
    }

    /// Returns whether a request holds all later ones, regardless of their objects.
    pub(crate) fn is_for_all(&self) -> bool {
        self.requests.iter().any(|waits| waits.until.is_for_all())
    }

    /// Returns whether a request waits for the POA's manager. A later request of the same manager must not
    /// overtake it.
    pub(crate) fn is_for(&self, poa: &PoaGate) -> bool {
        self.requests.iter().any(|waits| waits.until.is_for(poa))
    }

    /// Returns whether a request waits for that object. A later one for the same object must not overtake it.
    pub(crate) fn is_for_object(&self, poa: &Arc<PoaGate>, key: &[u8]) -> bool {
        self.requests.iter().any(|waits| waits.is_for_object(poa, key))
    }

    /// Removes a request. Returns whether it was pending.
    pub(crate) fn cancel(&mut self, token: ServeToken) -> bool {
        let at = self.requests.iter().position(|waits| waits.incoming.token() == token);
        at.is_some_and(|at| self.requests.remove(at).is_some())
    }

    /// Returns whether requests wait for the application to start them, or for a login check.
    pub(crate) fn keeps(&self) -> bool {
        self.requests.iter().any(Waits::is_kept)
    }

    /// Removes the requests that wait for the application or a login check, and returns them.
    pub(crate) fn give_up(&mut self) -> Vec<IncomingRequest> {
        let (kept, left): (VecDeque<_>, _) = self.requests.drain(..).partition(Waits::is_kept);
        self.requests = left;
        kept.into_iter().map(|waits| waits.incoming).collect()
    }

    /// Returns the requests that may continue, in order. Rejected ones have a refusal. `number` is that of
    /// the connection.
    pub(crate) fn poll(
        &mut self,
        orb: &Shared,
        number: u64,
        cx: &mut Context<'_>,
    ) -> VecDeque<(IncomingRequest, Option<Refusal>)> {
        let mut ready = VecDeque::new();
        let mut left: VecDeque<Waits> = VecDeque::new();
        for mut waits in self.requests.drain(..) {
            // A request that became ready between two polls must not overtake an earlier one.
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
            WaitCondition::Accepting | WaitCondition::Open(_) => true,
            WaitCondition::Made(..) | WaitCondition::Turn(_) => false,
            // The duration of the check is not bounded.
            #[cfg(feature = "csi")]
            WaitCondition::Login(_) => true,
        }
    }

    fn is_for_object(&self, poa: &Arc<PoaGate>, key: &[u8]) -> bool {
        match &self.until {
            WaitCondition::Made(held, _) | WaitCondition::Turn(held) => {
                Arc::ptr_eq(held.poa(), poa) && self.incoming.key() == key
            }
            WaitCondition::Accepting | WaitCondition::Open(_) => false,
            #[cfg(feature = "csi")]
            WaitCondition::Login(_) => false,
        }
    }

    fn is_behind(&self, other: &Self) -> bool {
        match &self.until {
            WaitCondition::Accepting => other.until.is_for_all(),
            // It waits only for its check. All later requests wait for it.
            #[cfg(feature = "csi")]
            WaitCondition::Login(_) => false,
            WaitCondition::Open(held) | WaitCondition::Made(held, _) | WaitCondition::Turn(held) => {
                other.until.is_for(held.poa()) || other.is_for_object(held.poa(), self.incoming.key())
            }
        }
    }
}

impl WaitCondition {
    /// Returns whether it holds all later requests of that POA's manager.
    fn is_for(&self, poa: &PoaGate) -> bool {
        match self {
            Self::Accepting => true,
            Self::Open(held) => Arc::ptr_eq(&held.poa().node().manager, &poa.node().manager),
            Self::Made(..) | Self::Turn(_) => false,
            #[cfg(feature = "csi")]
            Self::Login(_) => true,
        }
    }

    /// Returns whether it holds all later requests, regardless of their objects.
    fn is_for_all(&self) -> bool {
        match self {
            Self::Accepting => true,
            #[cfg(feature = "csi")]
            Self::Login(_) => true,
            _ => false,
        }
    }

    fn poll(&mut self, orb: &Shared, number: u64, cx: &mut Context<'_>) -> Poll<Option<Refusal>> {
        let waits = match self {
            Self::Accepting => orb.pauses.is_holding(cx, number),
            Self::Open(held) => held.poll_gate(cx) == Gate::Holding,
            Self::Made(_, making) => return making.poll_unpin(cx).map(Result::err),
            Self::Turn(_) => false,
            #[cfg(feature = "csi")]
            Self::Login(check) => return check.poll_unpin(cx).map(|()| None),
        };
        if waits { Poll::Pending } else { Poll::Ready(None) }
    }
}

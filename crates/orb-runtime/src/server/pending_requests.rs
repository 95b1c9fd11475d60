//! The requests of one connection that may not start yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use giop_proto::{IncomingRequest, ServeToken};

use crate::poa::Refusal;
use crate::poa::manager::HeldRequest;
use crate::poa::step_table::RunningStep;
use crate::runtime::Shared;
use crate::servant::poa_core::{Gate, PoaCore};

/// What must happen before a pending request may start.
pub(crate) enum WaitCondition {
    /// The program has resumed the ORB (`Orb::resume`), and no earlier request holds all later ones.
    Resume,
    /// The POA manager leaves the holding state.
    GateOpen(HeldRequest),
    /// An activator completes a step: incarnation or etherealization of the object, or creation of its POA.
    StepCompleted(HeldRequest, RunningStep),
    /// Earlier requests for the same object have started. [`PendingRequest::must_follow`] checks this.
    EarlierRequests(HeldRequest),
    /// The check of the client's login has ended.
    #[cfg(feature = "csi")]
    Login(crate::csi::LoginCheck),
}

struct PendingRequest {
    incoming: IncomingRequest,
    condition: WaitCondition,
}

#[derive(Default)]
pub(crate) struct PendingRequests {
    requests: VecDeque<PendingRequest>,
}

impl PendingRequests {
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Appends a request. Copies it first if it is part of the connection's receive buffer.
    pub(crate) fn push(&mut self, mut incoming: IncomingRequest, condition: WaitCondition) {
        incoming.detach();
        self.requests.push_back(PendingRequest { incoming, condition });
    }

    /// Returns whether a login is being checked. Meanwhile, the connection is read only if this ORB awaits
    /// replies over it.
    pub(crate) fn has_login_check(&self) -> bool {
        #[cfg(feature = "csi")]
        return self.requests.iter().any(|request| matches!(request.condition, WaitCondition::Login(_)));
        #[cfg(not(feature = "csi"))]
        false
    }

    /// Returns whether all later requests must wait for a pending one, regardless of their objects.
    pub(crate) fn blocks_all(&self) -> bool {
        self.requests.iter().any(|request| request.condition.blocks_all())
    }

    /// Returns whether later requests of the POA's manager must wait for a pending one, to keep their order.
    pub(crate) fn blocks_manager_of(&self, poa: &PoaCore) -> bool {
        self.requests.iter().any(|request| request.condition.blocks_manager_of(poa))
    }

    /// Returns whether later requests for this object must wait for a pending one, to keep their order.
    pub(crate) fn blocks_object(&self, poa: &Arc<PoaCore>, key: &[u8]) -> bool {
        self.requests.iter().any(|request| request.blocks_object(poa, key))
    }

    pub(crate) fn cancel(&mut self, token: ServeToken) -> bool {
        let at = self.requests.iter().position(|request| request.incoming.token() == token);
        at.is_some_and(|at| self.requests.remove(at).is_some())
    }

    /// Returns whether a request waits for the ORB, a POA manager or a login check, which have no time limit.
    pub(crate) fn has_unbounded_wait(&self) -> bool {
        self.requests.iter().any(PendingRequest::is_wait_unbounded)
    }

    pub(crate) fn take_unbounded_waits(&mut self) -> Vec<IncomingRequest> {
        let (unbounded, left): (VecDeque<_>, _) =
            self.requests.drain(..).partition(PendingRequest::is_wait_unbounded);
        self.requests = left;
        unbounded.into_iter().map(|request| request.incoming).collect()
    }

    /// Removes and returns the requests that no longer need to wait, in the order in which they arrived. If a
    /// request is returned with a refusal, the refusal is its reply. `number` identifies the connection.
    pub(crate) fn poll(
        &mut self,
        orb: &Shared,
        number: u64,
        cx: &mut Context<'_>,
    ) -> VecDeque<(IncomingRequest, Option<Refusal>)> {
        let mut ready = VecDeque::new();
        let mut left: VecDeque<PendingRequest> = VecDeque::new();
        for mut request in self.requests.drain(..) {
            // A request that became ready between two polls must not overtake an earlier one.
            let must_wait = left.iter().any(|other| request.must_follow(other));
            match if must_wait { Poll::Pending } else { request.condition.poll(orb, number, cx) } {
                Poll::Pending => left.push_back(request),
                Poll::Ready(refusal) => ready.push_back((request.incoming, refusal)),
            }
        }
        self.requests = left;
        ready
    }
}

impl PendingRequest {
    fn is_wait_unbounded(&self) -> bool {
        !matches!(self.condition, WaitCondition::StepCompleted(..) | WaitCondition::EarlierRequests(_))
    }

    fn blocks_object(&self, poa: &Arc<PoaCore>, key: &[u8]) -> bool {
        match &self.condition {
            WaitCondition::StepCompleted(held, _) | WaitCondition::EarlierRequests(held) => {
                Arc::ptr_eq(&held.poa, poa) && self.incoming.key() == key
            }
            _ => false,
        }
    }

    fn must_follow(&self, other: &Self) -> bool {
        match &self.condition {
            WaitCondition::Resume => other.condition.blocks_all(),
            // A login check does not wait for other requests, but all later requests wait for it.
            #[cfg(feature = "csi")]
            WaitCondition::Login(_) => false,
            WaitCondition::GateOpen(held)
            | WaitCondition::StepCompleted(held, _)
            | WaitCondition::EarlierRequests(held) => {
                other.condition.blocks_manager_of(&held.poa)
                    || other.blocks_object(&held.poa, self.incoming.key())
            }
        }
    }
}

impl WaitCondition {
    fn blocks_manager_of(&self, poa: &PoaCore) -> bool {
        match self {
            Self::GateOpen(held) => Arc::ptr_eq(&held.poa.node().manager, &poa.node().manager),
            other => other.blocks_all(),
        }
    }

    fn blocks_all(&self) -> bool {
        match self {
            Self::Resume => true,
            #[cfg(feature = "csi")]
            Self::Login(_) => true,
            _ => false,
        }
    }

    fn poll(&mut self, orb: &Shared, number: u64, cx: &mut Context<'_>) -> Poll<Option<Refusal>> {
        let must_wait = match self {
            Self::Resume => orb.pauses.poll_hold(cx, number),
            Self::GateOpen(held) => held.poll_gate(cx) == Gate::Holding,
            Self::StepCompleted(_, step) => return step.poll_unpin(cx).map(Result::err),
            Self::EarlierRequests(_) => false,
            #[cfg(feature = "csi")]
            Self::Login(check) => return check.poll_unpin(cx).map(|()| None),
        };
        if must_wait { Poll::Pending } else { Poll::Ready(None) }
    }
}

//! The requests of one connection that may not start yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use giop_proto::{IncomingRequest, ServeToken};

use crate::poa::Refusal;
use crate::poa::manager::HeldRequest;
use crate::poa::step_queue::RunningStep;
use crate::runtime::Shared;
use crate::servant::poa_gate::{Gate, PoaGate};

pub(crate) enum WaitCondition {
    Resume,
    /// The POA manager leaves the holding state.
    GateOpen(HeldRequest),
    /// An activator completes a step: incarnation or etherealization of the object, or creation of its POA.
    StepCompleted(HeldRequest, RunningStep),
    /// Earlier requests for the same object have started.
    EarlierRequests(HeldRequest),
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

    /// Appends a request, detached from the connection's buffers.
    pub(crate) fn push(&mut self, mut incoming: IncomingRequest, condition: WaitCondition) {
        incoming.detach();
        self.requests.push_back(PendingRequest { incoming, condition });
    }

    /// Returns whether a login is being checked. Meanwhile, the connection is not read.
    pub(crate) fn has_login_check(&self) -> bool {
        #[cfg(feature = "csi")]
        return self.requests.iter().any(|request| matches!(request.condition, WaitCondition::Login(_)));
        #[cfg(not(feature = "csi"))]
        false
    }

    /// Returns whether a pending request holds all later requests, regardless of their objects.
    pub(crate) fn holds_all(&self) -> bool {
        self.requests.iter().any(|request| request.condition.holds_all())
    }

    /// Returns whether a pending request holds later requests of the POA's manager, to keep their order.
    pub(crate) fn holds_manager_of(&self, poa: &PoaGate) -> bool {
        self.requests.iter().any(|request| request.condition.holds_manager_of(poa))
    }

    /// Returns whether a pending request holds later requests for this object, to keep their order.
    pub(crate) fn holds_object(&self, poa: &Arc<PoaGate>, key: &[u8]) -> bool {
        self.requests.iter().any(|request| request.holds_object(poa, key))
    }

    pub(crate) fn cancel(&mut self, token: ServeToken) -> bool {
        let at = self.requests.iter().position(|request| request.incoming.token() == token);
        at.is_some_and(|at| self.requests.remove(at).is_some())
    }

    /// Returns whether a request waits for the program or a login check, and thus for an unlimited time.
    pub(crate) fn has_unbounded(&self) -> bool {
        self.requests.iter().any(PendingRequest::is_unbounded)
    }

    pub(crate) fn take_unbounded(&mut self) -> Vec<IncomingRequest> {
        let (unbounded, left): (VecDeque<_>, _) =
            self.requests.drain(..).partition(PendingRequest::is_unbounded);
        self.requests = left;
        unbounded.into_iter().map(|request| request.incoming).collect()
    }

    /// Removes and returns the requests that need not wait any more, in order. A request that must be
    /// rejected has a refusal. `number` is the number of the connection.
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
    fn is_unbounded(&self) -> bool {
        !matches!(self.condition, WaitCondition::StepCompleted(..) | WaitCondition::EarlierRequests(_))
    }

    fn holds_object(&self, poa: &Arc<PoaGate>, key: &[u8]) -> bool {
        match &self.condition {
            WaitCondition::StepCompleted(held, _) | WaitCondition::EarlierRequests(held) => {
                Arc::ptr_eq(&held.poa, poa) && self.incoming.key() == key
            }
            _ => false,
        }
    }

    fn must_follow(&self, other: &Self) -> bool {
        match &self.condition {
            WaitCondition::Resume => other.condition.holds_all(),
            // A login check does not wait for other requests, but all later requests wait for it.
            #[cfg(feature = "csi")]
            WaitCondition::Login(_) => false,
            WaitCondition::GateOpen(held)
            | WaitCondition::StepCompleted(held, _)
            | WaitCondition::EarlierRequests(held) => {
                other.condition.holds_manager_of(&held.poa)
                    || other.holds_object(&held.poa, self.incoming.key())
            }
        }
    }
}

impl WaitCondition {
    fn holds_manager_of(&self, poa: &PoaGate) -> bool {
        match self {
            Self::GateOpen(held) => Arc::ptr_eq(&held.poa.node().manager, &poa.node().manager),
            other => other.holds_all(),
        }
    }

    fn holds_all(&self) -> bool {
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

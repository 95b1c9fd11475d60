//! Requests of one connection that can not start yet, in the order in which they came.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use giop_proto::{IncomingRequest, ServeToken};

use crate::orb::OrbCore;
use crate::poa::core::{Gate, PoaCore};
use crate::poa::manager::Held;

/// What a request waits for.
pub(crate) enum Until {
    /// `Orb::accept`.
    Accepting,
    /// A POA manager that holds.
    Open(Held),
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

    /// Whether all requests wait, whatever they are for.
    pub(crate) fn is_for_all(&self) -> bool {
        self.requests.iter().any(|waits| matches!(waits.until, Until::Accepting))
    }

    /// Whether one waits for the POA's manager, so that a later one of the manager's may not overtake it.
    pub(crate) fn is_for(&self, poa: &PoaCore) -> bool {
        self.requests.iter().any(|waits| waits.until.is_for(poa))
    }

    /// Gives up one.
    pub(crate) fn cancel(&mut self, token: ServeToken) -> bool {
        let at = self.requests.iter().position(|waits| waits.incoming.token() == token);
        at.is_some_and(|at| self.requests.remove(at).is_some())
    }

    /// The requests that need not wait any more, in order; `number` is the connection's.
    pub(crate) fn poll(
        &mut self,
        orb: &OrbCore,
        number: u64,
        cx: &mut Context<'_>,
    ) -> VecDeque<IncomingRequest> {
        let mut ready = VecDeque::new();
        let mut left: VecDeque<Waits> = VecDeque::new();
        for waits in self.requests.drain(..) {
            // One that became ready between two looks does not overtake.
            let behind = left.iter().any(|other| waits.until.is_behind(&other.until));
            if behind || waits.until.poll(orb, number, cx).is_pending() {
                left.push_back(waits);
            } else {
                ready.push_back(waits.incoming);
            }
        }
        self.requests = left;
        ready
    }
}

impl Until {
    fn is_for(&self, poa: &PoaCore) -> bool {
        match self {
            Self::Accepting => true,
            Self::Open(held) => Arc::ptr_eq(&held.poa().manager, &poa.manager),
        }
    }

    fn is_behind(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Accepting) => true,
            (Self::Open(held), other) => other.is_for(held.poa()),
            _ => false,
        }
    }

    fn poll(&self, orb: &OrbCore, number: u64, cx: &mut Context<'_>) -> Poll<()> {
        let waits = match self {
            Self::Accepting => orb.is_holding(cx, number),
            Self::Open(held) => held.poll_gate(cx) == Gate::Holding,
        };
        if waits { Poll::Pending } else { Poll::Ready(()) }
    }
}

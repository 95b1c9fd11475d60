//! A POA, as the way of a request sees it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use tokio::sync::{Notify, Semaphore};

use super::manager::ManagerCore;
use crate::serve::entry::ById;

/// Whether requests may start. One word for each POA: its manager's state, until the POA is destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Gate {
    Active = 0,
    Holding = 1,
    Discarding = 2,
    Inactive = 3,
    Destroyed = 4,
}

/// What a POA's objects have in common.
pub(crate) struct PoaCore {
    gate: AtomicU8,
    pub(crate) name: Box<str>,
    /// The objects that are found by their id.
    pub(crate) objects: papaya::HashSet<ById>,
    pub(crate) manager: Arc<ManagerCore>,
    /// Told when the last request of an object is done that somebody waits for.
    pub(crate) idle: Notify,
    /// The bounded threads of the ORB, for servants that block.
    pub(crate) threads: Arc<Semaphore>,
}

impl Gate {
    fn from_octet(octet: u8) -> Self {
        [Self::Active, Self::Holding, Self::Discarding, Self::Inactive]
            .into_iter()
            .find(|gate| *gate as u8 == octet)
            .unwrap_or(Self::Destroyed)
    }
}

impl Gate {
    /// What requests get that it does not let through.
    #[cold]
    pub(crate) fn refusal(self) -> SystemException {
        let (kind, minor, text) = match self {
            Self::Active | Self::Holding => (
                SystemExceptionKind::Transient,
                minor::TRANSIENT_DISCARDED,
                "the POA manager holds requests, and has as many as it may keep: Limits::max_held_requests, max_held_octets",
            ),
            Self::Discarding => (
                SystemExceptionKind::Transient,
                minor::TRANSIENT_DISCARDED,
                "the POA manager discards requests",
            ),
            Self::Inactive => (
                SystemExceptionKind::ObjAdapter,
                minor::OBJ_ADAPTER_UNKNOWN_ADAPTER,
                "the POA manager is inactive",
            ),
            Self::Destroyed => (
                SystemExceptionKind::Transient,
                minor::TRANSIENT_POA_DESTROYED,
                "the object's POA is destroyed",
            ),
        };
        SystemException::new(kind, minor, CompletionStatus::No).because(text)
    }
}

impl PoaCore {
    pub(crate) fn new(name: &str, manager: &Arc<ManagerCore>, threads: Arc<Semaphore>) -> Arc<Self> {
        let poa = Arc::new(Self {
            gate: AtomicU8::new(Gate::Holding as u8),
            name: name.into(),
            objects: papaya::HashSet::new(),
            manager: Arc::clone(manager),
            idle: Notify::new(),
            threads,
        });
        manager.adopt(&poa);
        poa
    }

    /// Whether requests may start now. To be looked at behind entering an object: see [`Count`](crate::serve::count::Count).
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.gate.load(Ordering::SeqCst) == Gate::Active as u8
    }

    pub(crate) fn gate(&self) -> Gate {
        Gate::from_octet(self.gate.load(Ordering::SeqCst))
    }

    pub(super) fn set_gate(&self, gate: Gate) {
        self.gate.store(gate as u8, Ordering::SeqCst);
    }
}

impl fmt::Debug for PoaCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoaCore")
            .field("name", &self.name)
            .field("gate", &self.gate())
            .finish_non_exhaustive()
    }
}

//! The part of a POA's state that is used for dispatching requests.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use giop_codec::exception::{SystemException, minor};
use tokio::sync::{Notify, Semaphore};

use crate::servant::thread_model::Turn;

/// Whether requests of a POA may start. This is the state of its manager, except that a POA holds requests
/// instead of being active while it is initialized. A destroyed POA stays destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Gate {
    Active = 0,
    Holding = 1,
    Discarding = 2,
    Inactive = 3,
    Destroyed = 4,
}

/// A POA, with the state that is used for dispatching requests. The rest of its state is in `node`.
pub(crate) struct PoaCore {
    gate: AtomicU8,
    /// Notified when the last request of an object ends, if a task waits for this event.
    pub(crate) idle_notify: Notify,
    pub(crate) blocking_threads: Arc<Semaphore>,
    /// Serializes requests and calls of the servant manager, if the thread model requires it.
    pub(crate) turn: Option<Turn>,
    /// Whether requests run in the task that runs `Orb::run_until`.
    pub(crate) uses_main_thread: bool,
    /// Whether a servant activator may etherealize the POA's objects.
    pub(crate) uses_servant_activator: bool,
    /// The state that is private to module `poa`: a `PoaNode`.
    node: Box<dyn Any + Send + Sync>,
}

impl Gate {
    fn from_u8(value: u8) -> Self {
        [Self::Active, Self::Holding, Self::Discarding, Self::Inactive]
            .into_iter()
            .find(|gate| *gate as u8 == value)
            .unwrap_or(Self::Destroyed)
    }

    /// Returns the exception for a request that is refused because of this gate.
    #[cold]
    pub(crate) fn refusal(self) -> SystemException {
        let transient = |minor| SystemException::transient().with_minor(minor);
        let (exception, text) = match self {
            Self::Active | Self::Holding => (
                transient(minor::TRANSIENT_DISCARDED),
                "the POA manager holds too many requests: increase Limits::max_held_requests or Limits::max_held_bytes",
            ),
            Self::Discarding => (transient(minor::TRANSIENT_DISCARDED), "the POA manager discards requests"),
            Self::Inactive => (
                SystemException::obj_adapter().with_minor(minor::OBJ_ADAPTER_UNKNOWN_ADAPTER),
                "the POA manager is inactive",
            ),
            Self::Destroyed => (transient(minor::TRANSIENT_POA_DESTROYED), "the object's POA is destroyed"),
        };
        exception.with_reason(text)
    }
}

impl PoaCore {
    pub(crate) fn with_node(
        blocking_threads: Arc<Semaphore>,
        turn: Option<Turn>,
        uses_main_thread: bool,
        uses_servant_activator: bool,
        node: impl Any + Send + Sync,
    ) -> Self {
        Self {
            gate: AtomicU8::new(Gate::Holding as u8),
            idle_notify: Notify::new(),
            blocking_threads,
            turn,
            uses_main_thread,
            uses_servant_activator,
            node: Box::new(node),
        }
    }

    #[inline]
    pub(crate) fn node_as<T: Any>(&self) -> Option<&T> {
        self.node.downcast_ref()
    }

    /// Returns whether requests may start now. The caller must have counted its request on the object before:
    /// see [`RequestCount`](crate::servant::request_counter::RequestCount).
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.gate.load(Ordering::SeqCst) == Gate::Active as u8
    }

    pub(crate) fn gate(&self) -> Gate {
        Gate::from_u8(self.gate.load(Ordering::SeqCst))
    }

    /// Sets the state. The caller must hold the lock of the POA's manager.
    pub(crate) fn store_gate(&self, gate: Gate) {
        self.gate.store(gate as u8, Ordering::SeqCst);
    }
}

impl fmt::Debug for PoaCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoaCore").field("gate", &self.gate()).finish_non_exhaustive()
    }
}

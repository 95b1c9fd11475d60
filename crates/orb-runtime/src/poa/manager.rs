//! POA managers, which decide whether the requests of their POAs are served, held or rejected.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};

use giop_codec::exception::{SystemException, minor};
use giop_proto::Limits;

use crate::poa::step_queue as steps;
use crate::poa::step_queue::Making;
use crate::runtime::Shared;
use crate::servant::poa_gate::{Gate, PoaGate};

/// The state of a POA manager, which decides about the requests of its POAs.
///
/// Source clause: "The Object Adapter / POAManager Interface" (`PortableServer::POAManager::State`).
#[doc(alias = "PortableServer::POAManager::State")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoaManagerState {
    /// Requests are held, up to `Limits::max_held_requests` and `Limits::max_held_bytes`. Those beyond get
    /// TRANSIENT minor OMG 1, COMPLETED_NO.
    Holding,
    /// Requests are served.
    Active,
    /// Requests get TRANSIENT minor OMG 1, COMPLETED_NO.
    Discarding,
    /// Requests get OBJ_ADAPTER minor OMG 1, COMPLETED_NO, permanently.
    Inactive,
}

/// The manager is inactive, which is final.
///
/// Source clause: "The Object Adapter / POAManager Interface" (`AdapterInactive`).
#[doc(alias = "PortableServer::POAManager::AdapterInactive")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the POA manager is inactive, which is for good: make a POA with a manager of its own")]
pub struct AdapterInactive;

/// Decides whether the requests of its POAs are served.
///
/// Cheap to clone; clones are the same manager. POAs that are created without another manager have
/// `orb.root_poa().manager()`.
///
/// Source clause: "The Object Adapter / POAManager Interface".
#[doc(alias = "PortableServer::POAManager")]
#[derive(Clone)]
pub struct PoaManager {
    core: Arc<ManagerCore>,
    orb: Arc<Shared>,
}

/// The requests that were running when a manager changed its state. Dropping it has no effect.
#[must_use = "the state has changed already; `completed().await` waits for the requests under way"]
#[derive(Debug)]
pub struct Completion {
    manager: PoaManager,
    endings: Vec<Making>,
}

pub(crate) struct ManagerCore {
    id: Box<str>,
    /// It was created for one POA, and is removed with it.
    for_one: bool,
    inner: Mutex<Inner>,
    /// The number of held requests, and their total size in bytes.
    held: AtomicUsize,
    held_octets: AtomicUsize,
}

struct Inner {
    state: PoaManagerState,
    poas: Vec<Weak<PoaGate>>,
    /// Wakers of held requests, by number. Woken when the state changes.
    waiting: HashMap<u64, Waker>,
    next: u64,
}

/// A held request, and its share of the manager's limits.
pub(crate) struct Held {
    poa: Arc<PoaGate>,
    number: u64,
    octets: usize,
}

impl PoaManagerState {
    fn gate(self) -> Gate {
        match self {
            Self::Holding => Gate::Holding,
            Self::Active => Gate::Active,
            Self::Discarding => Gate::Discarding,
            Self::Inactive => Gate::Inactive,
        }
    }
}

impl PoaManager {
    pub(crate) fn new(core: Arc<ManagerCore>, orb: Arc<Shared>) -> Self {
        Self { core, orb }
    }

    pub(crate) fn core(&self) -> &Arc<ManagerCore> {
        &self.core
    }

    /// Returns its id, unique within the ORB: `RootPOAManager` for that of the root POA.
    #[must_use]
    #[doc(alias = "get_id")]
    pub fn id(&self) -> &str {
        &self.core.id
    }

    /// Returns the current state.
    #[must_use]
    #[doc(alias = "get_state")]
    pub fn state(&self) -> PoaManagerState {
        self.core.state()
    }

    /// Serves requests. Held requests are served first, in the order of arrival on each connection.
    ///
    /// # Errors
    /// [`AdapterInactive`].
    pub fn activate(&self) -> Result<(), AdapterInactive> {
        self.core.change(PoaManagerState::Active)
    }

    /// Holds requests from now on. Running requests continue.
    ///
    /// # Errors
    /// [`AdapterInactive`].
    pub fn hold_requests(&self) -> Result<Completion, AdapterInactive> {
        self.change(PoaManagerState::Holding)
    }

    /// Rejects new and held requests with TRANSIENT minor OMG 1. Running requests continue.
    ///
    /// # Errors
    /// [`AdapterInactive`].
    pub fn discard_requests(&self) -> Result<Completion, AdapterInactive> {
        self.change(PoaManagerState::Discarding)
    }

    /// Rejects new and held requests with OBJ_ADAPTER minor OMG 1, permanently. Running requests continue.
    /// With `etherealize`, servant activators etherealize their objects after the last requests.
    ///
    /// # Errors
    /// [`AdapterInactive`].
    pub fn deactivate(&self, etherealize: bool) -> Result<Completion, AdapterInactive> {
        let mut completion = self.change(PoaManagerState::Inactive)?;
        if etherealize {
            for poa in self.core.poas().into_iter().filter(|poa| poa.node().servant_activations.is_set()) {
                for entry in self.orb.adapter().objects_of(&poa) {
                    self.orb.deactivate(&entry, true);
                    completion.endings.extend(poa.ending(&entry));
                }
            }
        }
        Ok(completion)
    }

    fn change(&self, state: PoaManagerState) -> Result<Completion, AdapterInactive> {
        self.core.change(state)?;
        Ok(Completion { manager: self.clone(), endings: Vec::new() })
    }
}

impl Completion {
    /// Waits until every request of the manager's POAs that had started before is done.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` minor OMG 3, `COMPLETED_NO`, if a servant of this ORB calls it, because it would wait
    /// for its own request.
    ///
    /// # Cancel safety
    /// Dropping this future does not change the state.
    pub async fn completed(self) -> Result<(), SystemException> {
        let PoaManager { core, orb } = self.manager;
        would_deadlock(&orb)?;
        for poa in core.poas() {
            orb.adapter().idle(&poa).await;
        }
        futures_util::future::join_all(self.endings).await;
        Ok(())
    }
}

/// Returns an error if the caller is in a request or a servant manager's step of this ORB, and would
/// therefore wait for itself.
pub(crate) fn would_deadlock(orb: &Arc<Shared>) -> Result<(), SystemException> {
    let in_request = crate::servant::try_request().is_some_and(|request| Arc::ptr_eq(request.core(), orb));
    if !in_request && !steps::is_step_of(orb) {
        return Ok(());
    }
    Err(SystemException::bad_inv_order().with_minor(minor::BAD_INV_ORDER_WOULD_DEADLOCK)
    .with_reason("a servant, or its manager, would wait for its own request: wait in a task of your own, without its Request"))
}

impl ManagerCore {
    pub(crate) fn new(id: impl Into<Box<str>>, state: PoaManagerState, for_one: bool) -> Arc<Self> {
        Arc::new(Self {
            id: id.into(),
            for_one,
            inner: Mutex::new(Inner { state, poas: Vec::new(), waiting: HashMap::new(), next: 0 }),
            held: AtomicUsize::new(0),
            held_octets: AtomicUsize::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn state(&self) -> PoaManagerState {
        self.lock().state
    }

    /// Returns whether it was created for one POA, and all its POAs are destroyed.
    pub(crate) fn is_for_one(&self) -> bool {
        self.for_one && self.lock().poas.iter().all(|poa| poa.upgrade().is_none_or(|poa| poa.is_destroyed()))
    }

    /// Removes a POA that is being destroyed. Its requests are rejected, including held ones.
    pub(crate) fn lose(&self, poa: &Arc<PoaGate>) {
        let mut inner = self.lock();
        poa.set_gate(Gate::Destroyed);
        inner.poas.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(poa)));
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Adds a POA, and sets its gate from now on.
    pub(crate) fn adopt(&self, poa: &Arc<PoaGate>) {
        let mut inner = self.lock();
        poa.set_gate(inner.state.gate());
        inner.poas.retain(|poa| poa.strong_count() > 0);
        inner.poas.push(Arc::downgrade(poa));
    }

    pub(crate) fn is_active(&self) -> bool {
        self.state() == PoaManagerState::Active
    }

    /// Applies a change to a POA that affects its gate, and updates the gate.
    pub(crate) fn takes_up(&self, poa: &PoaGate, change: impl FnOnce()) {
        let mut inner = self.lock();
        change();
        poa.set_gate(inner.state.gate());
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Returns the POAs that it manages.
    pub(crate) fn poas(&self) -> Vec<Arc<PoaGate>> {
        self.lock().poas.iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn change(&self, state: PoaManagerState) -> Result<(), AdapterInactive> {
        let mut inner = self.lock();
        if inner.state == PoaManagerState::Inactive {
            return Err(AdapterInactive);
        }
        inner.state = state;
        for poa in inner.poas.iter().filter_map(Weak::upgrade) {
            poa.set_gate(state.gate());
        }
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        waiting.into_values().for_each(Waker::wake);
        Ok(())
    }
}

impl Held {
    /// Counts a request as held. Returns `None` if a limit is exceeded.
    pub(crate) fn new(poa: &Arc<PoaGate>, octets: usize, limits: &Limits) -> Option<Self> {
        let manager = &poa.node().manager;
        let requests = manager.held.fetch_add(1, Ordering::Relaxed);
        let before = manager.held_octets.fetch_add(octets, Ordering::Relaxed);
        let number = {
            let mut inner = manager.lock();
            inner.next += 1;
            inner.next
        };
        let held = Self { poa: Arc::clone(poa), number, octets };
        let fits =
            requests < limits.max_held_requests && before.saturating_add(octets) <= limits.max_held_bytes;
        fits.then_some(held)
    }

    pub(crate) fn poa(&self) -> &Arc<PoaGate> {
        &self.poa
    }

    /// Returns the POA's gate. If it is holding, registers the task to be woken on a change.
    pub(crate) fn poll_gate(&self, cx: &mut Context<'_>) -> Gate {
        let mut inner = self.poa.node().manager.lock();
        let gate = self.poa.gate();
        if gate == Gate::Holding {
            inner.waiting.insert(self.number, cx.waker().clone());
        }
        gate
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let manager = &self.poa.node().manager;
        manager.held.fetch_sub(1, Ordering::Relaxed);
        manager.held_octets.fetch_sub(self.octets, Ordering::Relaxed);
        manager.lock().waiting.remove(&self.number);
    }
}

impl fmt::Debug for PoaManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoaManager")
            .field("id", &self.id())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl PartialEq for PoaManager {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl Eq for PoaManager {}

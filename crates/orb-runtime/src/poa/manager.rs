//! POA managers, which decide whether the requests of their POAs are served, held or rejected.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};

use giop_codec::exception::{SystemException, minor};
use giop_proto::Limits;

use crate::poa::step_table::{RunningStep, is_in_activator_of};
use crate::runtime::Shared;
use crate::servant::poa_core::{Gate, PoaCore};

/// The state of a POA manager: what happens to requests of its POAs.
///
/// Source clause: "The Object Adapter / POAManager Interface" (`PortableServer::POAManager::State`).
#[doc(alias = "PortableServer::POAManager::State")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoaManagerState {
    /// Requests are held, up to `Limits::max_held_requests` and `Limits::max_held_bytes`. Further requests
    /// get TRANSIENT minor OMG 1, COMPLETED_NO.
    Holding,
    /// Requests are served.
    Active,
    /// Requests get TRANSIENT minor OMG 1, COMPLETED_NO.
    Discarding,
    /// Requests get OBJ_ADAPTER minor OMG 1, COMPLETED_NO, permanently.
    Inactive,
}

/// The manager is inactive and cannot be activated again.
///
/// Source clause: "The Object Adapter / POAManager Interface" (`AdapterInactive`).
#[doc(alias = "PortableServer::POAManager::AdapterInactive")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the POA manager is permanently inactive: create a POA with a manager of its own")]
pub struct AdapterInactive;

/// A POA manager, which determines whether the requests of its POAs are served.
///
/// Clones are cheap, and control the same manager. By default, a POA has the manager of its parent.
///
/// Source clause: "The Object Adapter / POAManager Interface".
#[doc(alias = "PortableServer::POAManager")]
#[derive(Clone)]
pub struct PoaManager {
    core: Arc<ManagerCore>,
    orb: Arc<Shared>,
}

/// The running requests and etherealizations of a manager whose state has changed. May be dropped.
#[must_use = "the state has changed already; `completed().await` waits for the running requests"]
#[derive(Debug)]
pub struct Completion {
    manager: PoaManager,
    etherealizations: Vec<RunningStep>,
}

pub(crate) struct ManagerCore {
    id: Box<str>,
    /// Whether the manager was created for one POA. It is then removed together with the POA.
    is_for_one_poa: bool,
    inner: Mutex<Inner>,
    next_held_number: AtomicU64,
    held_requests: AtomicUsize,
    held_bytes: AtomicUsize,
}

struct Inner {
    state: PoaManagerState,
    poas: Vec<Weak<PoaCore>>,
    /// The wakers of held requests, by number. They are woken when the state changes.
    held_wakers: HashMap<u64, Waker>,
}

/// A request that its POA holds. It is counted in the limits of the manager until this value is dropped.
pub(crate) struct HeldRequest {
    pub(crate) poa: Arc<PoaCore>,
    number: u64,
    size_bytes: usize,
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

    /// Returns the manager's id, which is unique in the ORB. The root POA's manager is `RootPOAManager`.
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

    /// Serves requests from now on. Held requests are served first, for each connection in order of arrival.
    pub fn activate(&self) -> Result<(), AdapterInactive> {
        self.core.change(PoaManagerState::Active)
    }

    /// Holds requests from now on. Running requests continue.
    pub fn hold_requests(&self) -> Result<Completion, AdapterInactive> {
        self.change(PoaManagerState::Holding)
    }

    /// Rejects new and held requests with TRANSIENT minor OMG 1. Running requests continue.
    pub fn discard_requests(&self) -> Result<Completion, AdapterInactive> {
        self.change(PoaManagerState::Discarding)
    }

    /// Rejects new and held requests with OBJ_ADAPTER minor OMG 1, permanently. Running requests continue.
    /// With `etherealize`, servant activators etherealize each object after its last request.
    pub fn deactivate(&self, etherealize: bool) -> Result<Completion, AdapterInactive> {
        let mut completion = self.change(PoaManagerState::Inactive)?;
        if etherealize {
            let has_activator = |poa: &Arc<PoaCore>| poa.node().servant_activations.has_activator();
            for poa in self.core.poas().into_iter().filter(has_activator) {
                for entry in self.orb.adapter().objects_of(&poa) {
                    self.orb.deactivate(&entry, true);
                    completion.etherealizations.extend(poa.running_etherealization(&entry));
                }
            }
        }
        Ok(completion)
    }

    fn change(&self, state: PoaManagerState) -> Result<Completion, AdapterInactive> {
        self.core.change(state)?;
        Ok(Completion { manager: self.clone(), etherealizations: Vec::new() })
    }
}

impl Completion {
    /// Waits until the running requests of the manager's POAs have ended, and objects are etherealized if
    /// this was requested.
    ///
    /// # Errors
    /// `BAD_INV_ORDER` minor OMG 3, `COMPLETED_NO`, if the caller is a servant, servant manager or adapter
    /// activator of this ORB, because it might wait for itself.
    ///
    /// # Cancel safety
    /// Dropping this future does not change the state.
    pub async fn completed(self) -> Result<(), SystemException> {
        let PoaManager { core, orb } = self.manager;
        check_deadlock(&orb)?;
        for poa in core.poas() {
            orb.adapter().wait_until_idle(&poa).await;
        }
        futures_util::future::join_all(self.etherealizations).await;
        Ok(())
    }
}

/// Returns an error if the current task runs a servant or activator, and might therefore wait for itself.
pub(crate) fn check_deadlock(orb: &Arc<Shared>) -> Result<(), SystemException> {
    let in_request = crate::servant::try_request().is_some_and(|request| Arc::ptr_eq(request.core(), orb));
    if !in_request && !is_in_activator_of(orb) {
        return Ok(());
    }
    Err(SystemException::bad_inv_order().with_minor(minor::BAD_INV_ORDER_WOULD_DEADLOCK)
    .with_reason("a servant, servant manager or adapter activator might wait for itself: wait in a spawned task, outside of the request"))
}

impl ManagerCore {
    pub(crate) fn new(id: impl Into<Box<str>>, state: PoaManagerState, is_for_one_poa: bool) -> Arc<Self> {
        Arc::new(Self {
            id: id.into(),
            is_for_one_poa,
            inner: Mutex::new(Inner { state, poas: Vec::new(), held_wakers: HashMap::new() }),
            next_held_number: AtomicU64::new(0),
            held_requests: AtomicUsize::new(0),
            held_bytes: AtomicUsize::new(0),
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

    /// Returns whether the manager was created for one POA, and all its POAs are destroyed.
    pub(crate) fn is_removable(&self) -> bool {
        self.is_for_one_poa
            && self.lock().poas.iter().all(|poa| poa.upgrade().is_none_or(|poa| poa.is_destroyed()))
    }

    /// Removes a POA that is being destroyed. New and held requests of the POA are rejected from now on.
    pub(crate) fn remove_poa(&self, poa: &Arc<PoaCore>) {
        let mut inner = self.lock();
        poa.set_gate(Gate::Destroyed);
        inner.poas.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(poa)));
        let held_wakers = std::mem::take(&mut inner.held_wakers);
        drop(inner);
        held_wakers.into_values().for_each(Waker::wake);
    }

    /// Adds a POA, whose gate follows the manager's state from now on.
    pub(crate) fn add_poa(&self, poa: &Arc<PoaCore>) {
        let mut inner = self.lock();
        poa.set_gate(inner.state.gate());
        inner.poas.retain(|poa| poa.strong_count() > 0);
        inner.poas.push(Arc::downgrade(poa));
    }

    /// Applies a change that affects the gate of a POA, updates the gate and wakes held requests.
    pub(crate) fn change_poa(&self, poa: &PoaCore, change: impl FnOnce()) {
        let mut inner = self.lock();
        change();
        poa.set_gate(inner.state.gate());
        let held_wakers = std::mem::take(&mut inner.held_wakers);
        drop(inner);
        held_wakers.into_values().for_each(Waker::wake);
    }

    pub(crate) fn poas(&self) -> Vec<Arc<PoaCore>> {
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
        let held_wakers = std::mem::take(&mut inner.held_wakers);
        drop(inner);
        held_wakers.into_values().for_each(Waker::wake);
        Ok(())
    }
}

impl HeldRequest {
    /// Counts a request of this size as held. Returns `None` if a limit is exceeded.
    pub(crate) fn new(poa: &Arc<PoaCore>, size_bytes: usize, limits: &Limits) -> Option<Self> {
        let manager = &poa.node().manager;
        let requests = manager.held_requests.fetch_add(1, Ordering::Relaxed);
        let before = manager.held_bytes.fetch_add(size_bytes, Ordering::Relaxed);
        let number = manager.next_held_number.fetch_add(1, Ordering::Relaxed);
        let held = Self { poa: Arc::clone(poa), number, size_bytes };
        let fits =
            requests < limits.max_held_requests && before.saturating_add(size_bytes) <= limits.max_held_bytes;
        fits.then_some(held)
    }

    /// Returns the POA's gate. If it is holding, registers the task to be woken on a change.
    pub(crate) fn poll_gate(&self, cx: &mut Context<'_>) -> Gate {
        let mut inner = self.poa.node().manager.lock();
        let gate = self.poa.gate();
        if gate == Gate::Holding {
            inner.held_wakers.insert(self.number, cx.waker().clone());
        }
        gate
    }
}

impl Drop for HeldRequest {
    fn drop(&mut self) {
        let manager = &self.poa.node().manager;
        manager.held_requests.fetch_sub(1, Ordering::Relaxed);
        manager.held_bytes.fetch_sub(self.size_bytes, Ordering::Relaxed);
        manager.lock().held_wakers.remove(&self.number);
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

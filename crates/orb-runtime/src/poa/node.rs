//! The part of a POA's state that module `servant` does not use: its parent, children, manager and objects.
//!
//! [`PoaCore`] is the part that is used for dispatching requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwapOption;
use giop_codec::exception::{SystemException, minor};
use tokio::sync::Semaphore;

use crate::object_key::PoaPathBuf;
use crate::poa::adapter_activation::AdapterActivations;
use crate::poa::destroy::DestructionFuture;
use crate::poa::manager::{ManagerCore, PoaManagerState};
use crate::poa::policies::Policies;
use crate::poa::policy::{
    IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, RequestProcessingPolicy, ThreadModel,
};
use crate::poa::servant_activation::ServantActivations;
use crate::poa::slots::ObjectLookup;
use crate::poa::step_table::is_in_activator_of;
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::poa_core::{Gate, PoaCore};
use crate::servant::thread_model::Turn;

pub(crate) struct PoaNode {
    /// Whether this POA or an ancestor is still being initialized. Requests are held meanwhile.
    pub(crate) is_initializing: AtomicBool,
    pub(crate) lookup: ObjectLookup,
    pub(crate) active_count: AtomicUsize,
    /// The default servant or servant locator, which serves requests for objects that are not active.
    pub(crate) fallback: ArcSwapOption<ActiveObject>,
    pub(crate) policies: Policies,
    pub(crate) number: u32,
    pub(crate) manager: Arc<ManagerCore>,
    pub(crate) name: Box<str>,
    pub(crate) path: PoaPathBuf,
    pub(crate) parent: Weak<PoaCore>,
    pub(crate) servant_activations: ServantActivations,
    pub(crate) adapter_activations: AdapterActivations,
    pub(crate) children: Mutex<ChildPoas>,
    /// The objects of each servant that the program can still refer to, by the servant's address.
    pub(crate) objects_by_servant: Mutex<HashMap<usize, Vec<Weak<ActiveObject>>>>,
}

#[derive(Default)]
pub(crate) struct ChildPoas {
    pub(crate) by_name: HashMap<Box<str>, Arc<PoaCore>>,
    /// The number of [`ChildInitGuard`]s of each child that is being initialized, by name.
    init_guards: HashMap<Box<str>, usize>,
    /// Set when the destruction of the POA begins. From then on, no child can be created.
    pub(crate) destruction: Option<DestructionFuture>,
}

/// A guard that holds the requests for a child POA until it is dropped, even if the child exists already.
pub(crate) struct ChildInitGuard<'a> {
    parent: &'a Arc<PoaCore>,
    name: &'a str,
}

pub(crate) struct PoaParams {
    pub(crate) name: Box<str>,
    pub(crate) path: PoaPathBuf,
    pub(crate) policies: Policies,
    pub(crate) lookup: ObjectLookup,
    pub(crate) parent: Weak<PoaCore>,
    pub(crate) is_initializing: bool,
}

impl PoaCore {
    #[inline]
    #[expect(clippy::expect_used, reason = "`new` is the only constructor and always sets a node")]
    pub(crate) fn node(&self) -> &PoaNode {
        self.node_as().expect("a POA has a node")
    }

    pub(crate) fn new(
        params: PoaParams,
        number: u32,
        manager: &Arc<ManagerCore>,
        blocking_threads: &Arc<Semaphore>,
        main_turn: &Turn,
    ) -> Arc<Self> {
        let PoaParams { name, path, policies, lookup, parent, is_initializing } = params;
        let turn = match policies.thread {
            ThreadModel::OrbControl => None,
            ThreadModel::Single => Some(Arc::new(Semaphore::new(1))),
            ThreadModel::Main => Some(Arc::clone(main_turn)),
        };
        let uses_main_thread = policies.thread == ThreadModel::Main;
        let node = PoaNode {
            is_initializing: AtomicBool::new(is_initializing),
            lookup,
            active_count: AtomicUsize::new(0),
            fallback: ArcSwapOption::empty(),
            policies,
            number,
            manager: Arc::clone(manager),
            name,
            path,
            parent,
            servant_activations: ServantActivations::default(),
            adapter_activations: AdapterActivations::default(),
            children: Mutex::default(),
            objects_by_servant: Mutex::default(),
        };
        let (threads, uses_activator) = (Arc::clone(blocking_threads), policies.uses_servant_activator());
        let poa = Arc::new(Self::with_node(threads, turn, uses_main_thread, uses_activator, node));
        manager.add_poa(&poa);
        poa
    }

    /// Sets the gate for a state of the manager, whose lock the caller must hold. While the POA is being
    /// initialized, it holds requests instead of being active. A destroyed POA stays destroyed.
    pub(crate) fn set_gate(&self, gate: Gate) {
        let gate = if gate == Gate::Active && self.is_initializing() { Gate::Holding } else { gate };
        if self.gate() != Gate::Destroyed {
            self.store_gate(gate);
        }
    }

    fn is_initializing(&self) -> bool {
        self.node().is_initializing.load(Ordering::Relaxed)
    }

    /// Returns whether requests for a child with this name must be held. `children` are the POA's, locked.
    pub(crate) fn must_hold_child(&self, children: &ChildPoas, name: &str) -> bool {
        self.is_initializing() || children.init_guards.contains_key(name)
    }

    /// Returns whether this POA serves collocated calls of the current task although it is being initialized,
    /// because the task runs an activator of this ORB.
    pub(crate) fn serves_activator_task(&self, orb: &Shared) -> bool {
        self.is_initializing()
            && is_in_activator_of(orb)
            && self.node().manager.state() == PoaManagerState::Active
    }

    /// Ends the initialization of this POA and of its descendants, except those with a [`ChildInitGuard`] of
    /// their own. Held requests are served from now on.
    fn finish_initialization(self: &Arc<Self>) {
        let children = self.children();
        self.node().manager.change_poa(self, || self.node().is_initializing.store(false, Ordering::Relaxed));
        let done = children.by_name.iter().filter(|(name, _)| !children.init_guards.contains_key(*name));
        let done: Vec<_> = done.map(|(_, child)| Arc::clone(child)).collect();
        drop(children);
        done.iter().for_each(Self::finish_initialization);
    }

    pub(crate) fn children(&self) -> MutexGuard<'_, ChildPoas> {
        self.node().children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn child(&self, name: &str) -> Option<Arc<Self>> {
        self.children().by_name.get(name).map(Arc::clone)
    }

    pub(crate) fn count_activation(&self, in_orb: &AtomicUsize) {
        self.node().active_count.fetch_add(1, Ordering::Relaxed);
        in_orb.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_deactivation(&self, in_orb: &AtomicUsize) {
        self.node().active_count.fetch_sub(1, Ordering::Relaxed);
        in_orb.fetch_sub(1, Ordering::Relaxed);
    }

    #[cfg(feature = "admin")]
    pub(crate) fn active_objects(&self) -> usize {
        self.node().active_count.load(Ordering::Relaxed)
    }

    /// Returns whether objects are looked up by an index, which their ids contain.
    pub(crate) fn is_indexed(&self) -> bool {
        self.node().lookup.is_indexed
    }

    pub(crate) fn chooses_ids(&self) -> bool {
        self.node().policies.id_assignment == IdAssignmentPolicy::System
    }

    pub(crate) fn has_unique_ids(&self) -> bool {
        self.node().policies.id_uniqueness == IdUniquenessPolicy::Unique
    }

    /// Returns the object with this id. If it is not active, returns the default servant or servant locator.
    pub(crate) fn find(&self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        let found = self.node().policies.retains().then(|| self.node().lookup.objects.get(id)).flatten();
        found.or_else(|| self.node().fallback.load_full())
    }

    /// Returns the exception for a request whose object is not active and that nothing else serves.
    #[cold]
    pub(crate) fn inactive_object_exception(
        &self,
        no_such_object: impl FnOnce() -> SystemException,
    ) -> SystemException {
        let (minor, text) = match self.node().policies.request_processing {
            RequestProcessingPolicy::ActiveObjectMapOnly => return no_such_object(),
            RequestProcessingPolicy::DefaultServant => {
                (minor::OBJ_ADAPTER_NO_DEFAULT_SERVANT, "the object's POA has no default servant yet")
            }
            RequestProcessingPolicy::ServantManager => {
                (minor::OBJ_ADAPTER_NO_SERVANT_MANAGER, "the object's POA has no servant manager yet")
            }
        };
        SystemException::obj_adapter().with_minor(minor).with_reason(text)
    }

    pub(crate) fn key(&self, id: &[u8]) -> Vec<u8> {
        [&*self.node().lookup.key_prefix, id].concat()
    }

    /// Records that the servant with this address serves the object. Returns `false` if `exclusive` is set
    /// and the servant already serves an object of this POA.
    pub(crate) fn record_servant(&self, servant: usize, entry: &Arc<ActiveObject>, exclusive: bool) -> bool {
        let mut by_servant = self.node().objects_by_servant.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = by_servant.entry(servant).or_default();
        objects.retain(|object| object.upgrade().is_some_and(|object| !object.is_deactivated()));
        if exclusive && !objects.is_empty() {
            return false;
        }
        if !objects.iter().any(|object| std::ptr::eq(object.as_ptr(), Arc::as_ptr(entry))) {
            objects.push(Arc::downgrade(entry));
        }
        true
    }

    pub(crate) fn objects_of_servant(&self, servant: usize) -> Vec<Arc<ActiveObject>> {
        let by_servant = self.node().objects_by_servant.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = by_servant.get(&servant).map(Vec::as_slice).unwrap_or_default();
        objects.iter().filter_map(Weak::upgrade).filter(|object| !object.is_deactivated()).collect()
    }

    pub(crate) fn forget_servant(&self, entry: &ActiveObject) {
        let mut by_servant = self.node().objects_by_servant.lock().unwrap_or_else(PoisonError::into_inner);
        let servant = entry.servant_address();
        if let Some(objects) = by_servant.get_mut(&servant) {
            objects.retain(|object| !std::ptr::eq(object.as_ptr(), entry));
            if objects.is_empty() {
                by_servant.remove(&servant);
            }
        }
    }

    /// Returns whether the POA is destroyed or being destroyed.
    pub(crate) fn is_destroyed(&self) -> bool {
        self.gate() == Gate::Destroyed
    }

    pub(crate) fn release_fallback(&self) {
        if let Some(shared) = self.node().fallback.swap(None) {
            shared.mark_deactivated();
        }
    }

    /// Drops all references to objects, activators and children, because these may refer to this POA.
    pub(crate) fn release(&self) {
        self.node().lookup.objects.clear();
        self.node().servant_activations.release();
        self.node().adapter_activations.release();
        self.release_fallback();
        let children = std::mem::take(&mut self.children().by_name);
        children.into_values().for_each(|child| child.release());
    }
}

impl<'a> ChildInitGuard<'a> {
    pub(crate) fn new(parent: &'a Arc<PoaCore>, name: &'a str) -> Self {
        *parent.children().init_guards.entry(name.into()).or_default() += 1;
        Self { parent, name }
    }
}

impl Drop for ChildInitGuard<'_> {
    fn drop(&mut self) {
        let mut children = self.parent.children();
        let Some(guards) = children.init_guards.get_mut(self.name) else { return };
        *guards -= 1;
        if *guards > 0 {
            return;
        }
        children.init_guards.remove(self.name);
        let child =
            children.by_name.get(self.name).filter(|_| !self.parent.is_initializing()).map(Arc::clone);
        drop(children);
        if let Some(child) = child {
            child.finish_initialization();
        }
    }
}

impl Policies {
    /// Returns whether objects can be looked up by index. This requires that the POA chooses the ids, and
    /// serves only active objects of this run.
    pub(crate) fn can_be_indexed(&self) -> bool {
        self.lifespan == LifespanPolicy::Transient
            && self.id_assignment == IdAssignmentPolicy::System
            && self.retains()
            && self.request_processing == RequestProcessingPolicy::ActiveObjectMapOnly
    }
}

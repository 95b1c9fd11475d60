//! The state of a POA that only this module knows: its place in the tree, its manager and its objects.
//!
//! The part that objects and their requests use is [`PoaGate`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwapOption;
use giop_codec::exception::{SystemException, minor};
use tokio::sync::Semaphore;

use crate::object_key::PathBuf;
use crate::poa::adapter_activation::AdapterActivations;
use crate::poa::destroy::Ending;
use crate::poa::manager::ManagerCore;
use crate::poa::places::Keys;
use crate::poa::policies::Policies;
use crate::poa::policy::{
    IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, RequestProcessingPolicy, ThreadModel,
};
use crate::poa::servant_activation::ServantActivations;
use crate::poa::step_queue as steps;
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::poa_gate::{Gate, PoaGate};
use crate::servant::thread_model::Turn;

/// A POA in the tree of POAs, with its objects and their managers.
pub(crate) struct PoaNode {
    /// This POA or an ancestor is still being initialized, by a builder or an adapter activator: requests are
    /// held.
    pub(crate) initializing: AtomicBool,
    /// Its objects and their keys.
    pub(crate) keys: Keys,
    /// The number of active objects.
    pub(crate) active: AtomicUsize,
    /// The default servant or servant locator: serves requests for objects that are not active.
    pub(crate) default: ArcSwapOption<ActiveObject>,
    pub(crate) policies: Policies,
    /// The number of the POA within the ORB.
    pub(crate) number: u32,
    pub(crate) manager: Arc<ManagerCore>,
    pub(crate) name: Box<str>,
    pub(crate) path: PathBuf,
    pub(crate) parent: Weak<PoaGate>,
    pub(crate) servant_activations: ServantActivations,
    pub(crate) adapter_activations: AdapterActivations,
    pub(crate) family: Mutex<Children>,
    /// The objects of each servant of which programs have handles.
    pub(crate) servants: Mutex<HashMap<usize, Vec<Weak<ActiveObject>>>>,
}

#[derive(Default)]
pub(crate) struct Children {
    pub(crate) children: HashMap<Box<str>, Arc<PoaGate>>,
    /// The children that are being initialized, with the number of [`ChildInitGuard`] guards of each.
    awaited: HashMap<Box<str>, usize>,
    /// Set once the POA is being destroyed. No child can be created any more.
    pub(crate) ending: Option<Ending>,
}

/// Guard that holds requests for a child POA while it is initialized, even if the child exists already.
pub(crate) struct ChildInitGuard<'a> {
    parent: &'a Arc<PoaGate>,
    name: &'a str,
}

/// The parameters of [`PoaGate::new`] that differ between sibling POAs.
pub(crate) struct PoaParams {
    pub(crate) name: Box<str>,
    pub(crate) path: PathBuf,
    pub(crate) policies: Policies,
    pub(crate) keys: Keys,
    pub(crate) parent: Weak<PoaGate>,
    pub(crate) initializing: bool,
}

impl PoaGate {
    /// Returns the POA's place in the tree of POAs, and its objects.
    #[inline]
    #[expect(clippy::expect_used, reason = "`new` is the only constructor")]
    pub(crate) fn node(&self) -> &PoaNode {
        self.node_as().expect("a POA has a node")
    }

    pub(crate) fn new(
        birth: PoaParams,
        number: u32,
        manager: &Arc<ManagerCore>,
        threads: &Arc<Semaphore>,
        main: &Turn,
    ) -> Arc<Self> {
        let PoaParams { name, path, policies, keys, parent, initializing } = birth;
        let turn = match policies.thread {
            ThreadModel::OrbControl => None,
            ThreadModel::Single => Some(Arc::new(Semaphore::new(1))),
            ThreadModel::Main => Some(Arc::clone(main)),
        };
        let is_main = policies.thread == ThreadModel::Main;
        let node = PoaNode {
            initializing: AtomicBool::new(initializing),
            keys,
            active: AtomicUsize::new(0),
            default: ArcSwapOption::empty(),
            policies,
            number,
            manager: Arc::clone(manager),
            name,
            path,
            parent,
            servant_activations: ServantActivations::default(),
            adapter_activations: AdapterActivations::default(),
            family: Mutex::default(),
            servants: Mutex::default(),
        };
        let poa =
            Arc::new(Self::with_node(Arc::clone(threads), turn, is_main, policies.has_activator(), node));
        manager.adopt(&poa);
        poa
    }

    /// Sets the state of the manager. The caller holds the manager's lock.
    pub(crate) fn set_gate(&self, gate: Gate) {
        let gate = if gate == Gate::Active && self.is_initializing() { Gate::Holding } else { gate };
        if self.gate() != Gate::Destroyed {
            self.store_gate(gate);
        }
    }

    fn is_initializing(&self) -> bool {
        self.node().initializing.load(Ordering::Relaxed)
    }

    /// Returns whether requests for a child of that name must be held. `family` is that of this POA.
    pub(crate) fn holds_child(&self, family: &Children, name: &str) -> bool {
        self.is_initializing() || family.awaited.contains_key(name)
    }

    /// Returns whether this POA serves the calling task although it is being initialized: the task is its
    /// adapter activator.
    pub(crate) fn serves_its_activator(&self, orb: &Shared) -> bool {
        self.is_initializing() && steps::is_step_of(orb) && self.node().manager.is_active()
    }

    /// Ends the initialization: requests of this POA start, and those of its children that are not being
    /// initialized.
    fn finish_initialization(self: &Arc<Self>) {
        let family = self.family();
        self.node().manager.takes_up(self, || self.node().initializing.store(false, Ordering::Relaxed));
        let done = family.children.iter().filter(|(name, _)| !family.awaited.contains_key(*name));
        let children: Vec<_> = done.map(|(_, child)| Arc::clone(child)).collect();
        drop(family);
        children.iter().for_each(Self::finish_initialization);
    }

    pub(crate) fn family(&self) -> MutexGuard<'_, Children> {
        self.node().family.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn child(&self, name: &str) -> Option<Arc<Self>> {
        self.family().children.get(name).map(Arc::clone)
    }

    /// Counts an object as active, in this POA and in the whole ORB.
    pub(crate) fn count_activation(&self, in_orb: &AtomicUsize) {
        self.node().active.fetch_add(1, Ordering::Relaxed);
        in_orb.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an object as no longer active.
    pub(crate) fn count_deactivation(&self, in_orb: &AtomicUsize) {
        self.node().active.fetch_sub(1, Ordering::Relaxed);
        in_orb.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of active objects.
    #[cfg(feature = "admin")]
    pub(crate) fn active_objects(&self) -> usize {
        self.node().active.load(Ordering::Relaxed)
    }

    /// Returns whether its objects are looked up by index, with ids that are made of index and generation.
    pub(crate) fn is_indexed(&self) -> bool {
        self.node().keys.indexed
    }

    pub(crate) fn chooses_ids(&self) -> bool {
        self.node().policies.id_assignment == IdAssignmentPolicy::System
    }

    pub(crate) fn is_unique(&self) -> bool {
        self.node().policies.id_uniqueness == IdUniquenessPolicy::Unique
    }

    /// Returns the object of that id, or else the default servant or servant locator.
    pub(crate) fn find(&self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        let found = if self.node().policies.retains() { self.node().keys.objects.get(id) } else { None };
        match found {
            Some(entry) => Some(entry),
            None => self.node().default.load_full(),
        }
    }

    /// Returns the exception for a request whose object is not active.
    #[cold]
    pub(crate) fn nothing(&self, no_such_object: impl FnOnce() -> SystemException) -> SystemException {
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

    /// Returns the key of an object.
    pub(crate) fn key(&self, id: &[u8]) -> Vec<u8> {
        [&*self.node().keys.prefix, id].concat()
    }

    /// Records that the servant has the object. Returns `false` if `exclusive` is set and the servant has an
    /// object already.
    pub(crate) fn note_servant(&self, servant: usize, entry: &Arc<ActiveObject>, exclusive: bool) -> bool {
        let mut servants = self.node().servants.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = servants.entry(servant).or_default();
        objects.retain(|object| object.upgrade().is_some_and(|object| !object.is_gone()));
        if exclusive && !objects.is_empty() {
            return false;
        }
        if !objects.iter().any(|object| std::ptr::eq(object.as_ptr(), Arc::as_ptr(entry))) {
            objects.push(Arc::downgrade(entry));
        }
        true
    }

    /// Returns the active objects of a servant.
    pub(crate) fn objects_of(&self, servant: usize) -> Vec<Arc<ActiveObject>> {
        let servants = self.node().servants.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = servants.get(&servant).map(Vec::as_slice).unwrap_or_default();
        objects.iter().filter_map(Weak::upgrade).filter(|object| !object.is_gone()).collect()
    }

    pub(crate) fn forget_servant(&self, entry: &ActiveObject) {
        let mut servants = self.node().servants.lock().unwrap_or_else(PoisonError::into_inner);
        let servant = entry.servant();
        if let Some(objects) = servants.get_mut(&servant) {
            objects.retain(|object| !std::ptr::eq(object.as_ptr(), entry));
            if objects.is_empty() {
                servants.remove(&servant);
            }
        }
    }

    /// Returns whether the POA is destroyed or being destroyed.
    pub(crate) fn is_destroyed(&self) -> bool {
        self.gate() == Gate::Destroyed
    }

    pub(crate) fn release_default(&self) {
        if let Some(shared) = self.node().default.swap(None) {
            shared.retire();
        }
    }

    /// Drops all references, so that reference cycles between objects and POAs are freed.
    pub(crate) fn release(&self) {
        self.node().keys.objects.clear();
        self.node().servant_activations.release();
        self.node().adapter_activations.release();
        self.release_default();
        let children = std::mem::take(&mut self.family().children);
        children.into_values().for_each(|child| child.release());
    }
}

impl<'a> ChildInitGuard<'a> {
    pub(crate) fn new(parent: &'a Arc<PoaGate>, name: &'a str) -> Self {
        *parent.family().awaited.entry(name.into()).or_default() += 1;
        Self { parent, name }
    }
}

impl Drop for ChildInitGuard<'_> {
    fn drop(&mut self) {
        let mut family = self.parent.family();
        let Some(others) = family.awaited.get_mut(self.name) else { return };
        *others -= 1;
        if *others > 0 {
            return;
        }
        family.awaited.remove(self.name);
        let child = family.children.get(self.name).filter(|_| !self.parent.is_initializing()).map(Arc::clone);
        drop(family);
        if let Some(child) = child {
            child.finish_initialization();
        }
    }
}

impl Policies {
    /// Returns whether objects are looked up by index: only the POA chooses their ids, and it serves active
    /// objects only.
    pub(crate) fn is_indexed(&self) -> bool {
        self.lifespan == LifespanPolicy::Transient
            && self.id_assignment == IdAssignmentPolicy::System
            && self.retains()
            && self.request_processing == RequestProcessingPolicy::ActiveObjectMapOnly
    }
}

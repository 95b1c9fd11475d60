//! The state of a POA that request dispatch and other POAs use.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwapOption;
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use tokio::sync::{Notify, Semaphore};

use super::births::Births;
use super::destroy::Ending;
use super::key::{PathBuf, Place};
use super::making::Makers;
use super::manager::ManagerCore;
use super::map::ObjectMap;
use super::policies::Policies;
use super::policy::{
    IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, RequestProcessingPolicy, ThreadModel,
};
use super::steps;
use crate::orb::OrbCore;
use crate::serve::demux::ObjectDemux;
use crate::serve::entry::Entry;
use crate::serve::turns::Turn;

/// The state that decides whether requests may start: that of the POA's manager, until the POA is destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Gate {
    Active = 0,
    Holding = 1,
    Discarding = 2,
    Inactive = 3,
    Destroyed = 4,
}

/// The shared state of a POA and its objects.
pub(crate) struct PoaCore {
    gate: AtomicU8,
    /// This POA or an ancestor is still being initialized, by a builder or an adapter activator: requests are
    /// held.
    unborn: AtomicBool,
    /// The objects that are looked up by id.
    pub(crate) objects: ObjectMap,
    /// The number of active objects.
    active: AtomicUsize,
    /// The default servant or servant locator: serves requests for objects that are not active.
    pub(crate) default: ArcSwapOption<Entry>,
    pub(crate) policies: Policies,
    indexed: bool,
    /// The prefix of the keys of its objects. The object id follows it.
    pub(crate) prefix: Box<[u8]>,
    /// The slot in the table of POAs that are looked up by index.
    pub(crate) place: Option<Place>,
    /// The number of the POA within the ORB.
    pub(crate) number: u32,
    pub(crate) manager: Arc<ManagerCore>,
    /// Notified when the last request of an object ends, if a task waits for that.
    pub(crate) idle: Notify,
    /// Limits the threads of the ORB for servants that block.
    pub(crate) threads: Arc<Semaphore>,
    /// Serializes requests and calls of the servant manager, if the thread model requires it.
    pub(crate) turn: Option<Turn>,
    pub(crate) name: Box<str>,
    pub(crate) path: PathBuf,
    pub(crate) parent: Weak<PoaCore>,
    pub(crate) makers: Makers,
    pub(crate) births: Births,
    family: Mutex<Family>,
    /// The objects of each servant of which programs have handles.
    servants: Mutex<HashMap<usize, Vec<Weak<Entry>>>>,
}

#[derive(Default)]
pub(crate) struct Family {
    pub(crate) children: HashMap<Box<str>, Arc<PoaCore>>,
    /// The children that are being initialized, with the number of [`Awaited`] guards of each.
    awaited: HashMap<Box<str>, usize>,
    /// Set once the POA is being destroyed. No child can be created any more.
    pub(crate) ending: Option<Ending>,
}

/// Guard that holds requests for a child POA while it is initialized, even if the child exists already.
pub(super) struct Awaited<'a> {
    parent: &'a Arc<PoaCore>,
    name: &'a str,
}

/// The parameters of [`PoaCore::new`] that differ between sibling POAs.
pub(crate) struct Birth {
    pub(crate) name: Box<str>,
    pub(crate) path: PathBuf,
    pub(crate) policies: Policies,
    pub(crate) demux: ObjectDemux,
    pub(crate) prefix: Box<[u8]>,
    pub(crate) place: Option<Place>,
    pub(crate) parent: Weak<PoaCore>,
    pub(crate) unborn: bool,
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
    /// Returns the exception for requests that this state rejects.
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
    pub(crate) fn new(
        birth: Birth,
        number: u32,
        manager: &Arc<ManagerCore>,
        threads: &Arc<Semaphore>,
        main: &Turn,
    ) -> Arc<Self> {
        let Birth { name, path, policies, demux, prefix, place, parent, unborn } = birth;
        let turn = match policies.thread {
            ThreadModel::OrbControl => None,
            ThreadModel::Single => Some(Arc::new(Semaphore::new(1))),
            ThreadModel::Main => Some(Arc::clone(main)),
        };
        let poa = Arc::new(Self {
            gate: AtomicU8::new(Gate::Holding as u8),
            unborn: AtomicBool::new(unborn),
            objects: ObjectMap::new(demux),
            active: AtomicUsize::new(0),
            default: ArcSwapOption::empty(),
            policies,
            indexed: policies.is_indexed(demux),
            prefix,
            place,
            number,
            manager: Arc::clone(manager),
            idle: Notify::new(),
            threads: Arc::clone(threads),
            turn,
            name,
            path,
            parent,
            makers: Makers::default(),
            births: Births::default(),
            family: Mutex::default(),
            servants: Mutex::default(),
        });
        manager.adopt(&poa);
        poa
    }

    /// Returns whether requests may start now. Call it after a request was counted on its object: see
    /// [`Count`](crate::serve::count::Count).
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.gate.load(Ordering::SeqCst) == Gate::Active as u8
    }

    pub(crate) fn gate(&self) -> Gate {
        Gate::from_octet(self.gate.load(Ordering::SeqCst))
    }

    /// Sets the state of the manager. The caller holds the manager's lock.
    pub(super) fn set_gate(&self, gate: Gate) {
        let gate = if gate == Gate::Active && self.is_unborn() { Gate::Holding } else { gate };
        if self.gate() != Gate::Destroyed {
            self.gate.store(gate as u8, Ordering::SeqCst);
        }
    }

    fn is_unborn(&self) -> bool {
        self.unborn.load(Ordering::Relaxed)
    }

    /// Returns whether requests for a child of that name must be held. `family` is that of this POA.
    pub(crate) fn bears(&self, family: &Family, name: &str) -> bool {
        self.is_unborn() || family.awaited.contains_key(name)
    }

    /// Returns whether this POA serves the calling task although it is being initialized: the task is its
    /// adapter activator.
    pub(crate) fn serves_its_activator(&self, orb: &OrbCore) -> bool {
        self.is_unborn() && steps::is_step_of(orb) && self.manager.is_active()
    }

    /// Ends the initialization: requests of this POA start, and those of its children that are not being
    /// initialized.
    fn is_born(self: &Arc<Self>) {
        let family = self.family();
        self.manager.takes_up(self, || self.unborn.store(false, Ordering::Relaxed));
        let done = family.children.iter().filter(|(name, _)| !family.awaited.contains_key(*name));
        let children: Vec<_> = done.map(|(_, child)| Arc::clone(child)).collect();
        drop(family);
        children.iter().for_each(Self::is_born);
    }

    pub(crate) fn family(&self) -> MutexGuard<'_, Family> {
        self.family.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn child(&self, name: &str) -> Option<Arc<Self>> {
        self.family().children.get(name).map(Arc::clone)
    }

    /// Counts an object as active, in this POA and in the whole ORB.
    pub(crate) fn note_activated(&self, in_orb: &AtomicUsize) {
        self.active.fetch_add(1, Ordering::Relaxed);
        in_orb.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an object as no longer active.
    pub(crate) fn note_retired(&self, in_orb: &AtomicUsize) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        in_orb.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of active objects.
    #[cfg(feature = "admin")]
    pub(crate) fn active_objects(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Returns whether its objects are looked up by index, with ids that are made of index and generation.
    pub(crate) fn is_indexed(&self) -> bool {
        self.indexed
    }

    pub(crate) fn chooses_ids(&self) -> bool {
        self.policies.id_assignment == IdAssignmentPolicy::System
    }

    pub(crate) fn is_unique(&self) -> bool {
        self.policies.id_uniqueness == IdUniquenessPolicy::Unique
    }

    /// Returns the object of that id, or else the default servant or servant locator.
    pub(crate) fn find(&self, id: &[u8]) -> Option<Arc<Entry>> {
        let found = if self.policies.retains() { self.objects.get(id) } else { None };
        match found {
            Some(entry) => Some(entry),
            None => self.default.load_full(),
        }
    }

    /// Returns the exception for a request whose object is not active.
    #[cold]
    pub(crate) fn nothing(&self, no_such_object: impl FnOnce() -> SystemException) -> SystemException {
        let (minor, text) = match self.policies.request_processing {
            RequestProcessingPolicy::ActiveObjectMapOnly => return no_such_object(),
            RequestProcessingPolicy::DefaultServant => {
                (minor::OBJ_ADAPTER_NO_DEFAULT_SERVANT, "the object's POA has no default servant yet")
            }
            RequestProcessingPolicy::ServantManager => {
                (minor::OBJ_ADAPTER_NO_SERVANT_MANAGER, "the object's POA has no servant manager yet")
            }
        };
        SystemException::new(SystemExceptionKind::ObjAdapter, minor, CompletionStatus::No).because(text)
    }

    /// Returns the key of an object.
    pub(crate) fn key(&self, id: &[u8]) -> Vec<u8> {
        [&*self.prefix, id].concat()
    }

    /// Records that the servant has the object. Returns `false` if `exclusive` is set and the servant has an
    /// object already.
    pub(crate) fn note_servant(&self, servant: usize, entry: &Arc<Entry>, exclusive: bool) -> bool {
        let mut servants = self.servants.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub(crate) fn objects_of(&self, servant: usize) -> Vec<Arc<Entry>> {
        let servants = self.servants.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = servants.get(&servant).map(Vec::as_slice).unwrap_or_default();
        objects.iter().filter_map(Weak::upgrade).filter(|object| !object.is_gone()).collect()
    }

    pub(crate) fn forget_servant(&self, entry: &Entry) {
        let mut servants = self.servants.lock().unwrap_or_else(PoisonError::into_inner);
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

    pub(super) fn let_go_of_default(&self) {
        if let Some(shared) = self.default.swap(None) {
            shared.retire();
        }
    }

    /// Drops all references, so that reference cycles between objects and POAs are freed.
    pub(crate) fn let_go(&self) {
        self.objects.clear();
        self.makers.let_go();
        self.births.let_go();
        self.let_go_of_default();
        let children = std::mem::take(&mut self.family().children);
        children.into_values().for_each(|child| child.let_go());
    }
}

impl<'a> Awaited<'a> {
    pub(super) fn new(parent: &'a Arc<PoaCore>, name: &'a str) -> Self {
        *parent.family().awaited.entry(name.into()).or_default() += 1;
        Self { parent, name }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let mut family = self.parent.family();
        let Some(others) = family.awaited.get_mut(self.name) else { return };
        *others -= 1;
        if *others > 0 {
            return;
        }
        family.awaited.remove(self.name);
        let child = family.children.get(self.name).filter(|_| !self.parent.is_unborn()).map(Arc::clone);
        drop(family);
        if let Some(child) = child {
            child.is_born();
        }
    }
}

impl Policies {
    /// Returns whether objects are looked up by index: only the POA chooses their ids, and it serves active
    /// objects only.
    pub(crate) fn is_indexed(&self, demux: ObjectDemux) -> bool {
        demux == ObjectDemux::Active
            && self.lifespan == LifespanPolicy::Transient
            && self.id_assignment == IdAssignmentPolicy::System
            && self.retains()
            && self.request_processing == RequestProcessingPolicy::ActiveObjectMapOnly
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

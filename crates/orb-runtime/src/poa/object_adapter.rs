//! The tables in which an ORB looks up objects and POAs by object key.
//!
//! In a transient POA that chooses the ids and serves only active objects, the key of an object contains the
//! index of its slot, so that no search is needed. A generation in the key detects that the slot was reused.
//! The objects of other POAs, and objects with plain keys (`corbaloc:.../Account`), are looked up by id in
//! concurrent hash maps. Look-ups take no lock.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use giop_proto::StreamSelector;
use tokio::sync::Semaphore;

use crate::object_key;
use crate::object_key::{BootId, Key, PoaPath, PoaPathBuf, SlotId};
use crate::poa::error::PoaError;
use crate::poa::manager::{ManagerCore, PoaManagerState};
use crate::poa::node::PoaParams;
use crate::poa::policies::Policies;
use crate::poa::policy::{BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy};
use crate::poa::slots::{ObjectLookup, SlotTable};
use crate::servant::active_object::{ActiveObject, NO_SLOT};
use crate::servant::poa_core::PoaCore;
use crate::servant::thread_model::MainThreadQueue;
use crate::servant::{Servant, Skeleton};

pub(crate) struct ObjectAdapter {
    /// Distinguishes the keys of this run from those of earlier runs.
    pub(super) boot: BootId,
    #[cfg(feature = "experiments")]
    pub(crate) strategies: crate::poa::experiments::Strategies,
    slots: SlotTable<ActiveObject>,
    active_count: AtomicUsize,
    /// Whether an object has been activated whose servant has operations with streams.
    has_streams: AtomicBool,
    /// Whether an object has been activated whose servant takes arguments as undecoded bytes.
    has_raw_servants: AtomicBool,
    /// Whether a POA has been created whose objects may be called over connections that this ORB opened.
    has_bidirectional_poas: AtomicBool,
    root: Arc<PoaCore>,
    pub(crate) plain_poa: Arc<PoaCore>,
    /// The transient POAs whose keys contain the POA's slot.
    transient_poas: SlotTable<PoaCore>,
    /// The persistent POAs, by their encoded paths.
    persistent_poas: papaya::HashMap<Box<[u8]>, Arc<PoaCore>>,
    managers: Mutex<HashMap<Box<str>, Arc<ManagerCore>>>,
    next_object_number: AtomicU64,
    next_poa_number: AtomicU32,
    blocking_threads: Arc<Semaphore>,
    pub(crate) main_thread: MainThreadQueue,
}

pub(crate) enum Located<'a> {
    Object(Arc<ActiveObject>),
    /// The POA exists, but has no active object with this id.
    MissingObject(Arc<PoaCore>, &'a [u8]),
    /// The POA does not exist. Contains its nearest existing ancestor, and the name of the missing child.
    MissingPoa(Arc<PoaCore>, &'a str),
    /// There is no such object, or no such POA, or the key is malformed.
    NotFound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainKeyError {
    InUse,
    /// The key has the form of the keys that the ORB generates.
    Reserved,
}

impl StreamSelector for ObjectAdapter {
    fn any_streamed(&self) -> bool {
        self.has_streams.load(Ordering::Relaxed)
    }

    fn is_streamed(&self, key: &[u8], operation: &[u8]) -> bool {
        let found = self.find(key);
        found.is_some_and(|entry| {
            entry.skeleton.streamed_operations().iter().any(|name| name.as_bytes() == operation)
        })
    }

    fn any_raw(&self) -> bool {
        self.has_raw_servants.load(Ordering::Relaxed)
    }

    fn is_raw(&self, key: &[u8]) -> bool {
        self.find(key).is_some_and(|entry| entry.skeleton.takes_raw_arguments())
    }
}

impl ObjectAdapter {
    pub(crate) fn new(
        boot: BootId,
        blocking_threads: usize,
        #[cfg(feature = "experiments")] demux: crate::experiments::Demux,
    ) -> Self {
        let blocking_threads = Arc::new(Semaphore::new(blocking_threads));
        let main_thread = MainThreadQueue::default();
        let manager = ManagerCore::new("RootPOAManager", PoaManagerState::Active, false);
        let transient_poas = SlotTable::new();
        let poa = |number, name: &str, policies, lookup| {
            let (name, path) = (name.into(), PoaPathBuf::default());
            let (parent, is_initializing) = (Weak::new(), false);
            let params = PoaParams { name, path, policies, lookup, parent, is_initializing };
            PoaCore::new(params, number, &manager, &blocking_threads, &main_thread.turn)
        };
        let (policies, path) = (Policies::root(), PoaPathBuf::default());
        #[cfg(feature = "experiments")]
        let strategies = crate::poa::experiments::Strategies::new(demux);
        #[cfg(feature = "experiments")]
        let lookup = strategies.object_lookup(boot, 0, (&policies, path.as_path()), &transient_poas);
        #[cfg(not(feature = "experiments"))]
        let lookup = ObjectLookup::new(boot, (&policies, path.as_path()), true, &transient_poas);
        // The path of the root POA is empty, so its keys are never too long.
        let root = poa(0, "RootPOA", policies, lookup.unwrap_or_default());
        publish_poa(&transient_poas, &root);
        let plain = Policies {
            lifespan: LifespanPolicy::Persistent,
            id_assignment: IdAssignmentPolicy::User,
            id_uniqueness: IdUniquenessPolicy::Multiple,
            ..Policies::default()
        };
        Self {
            boot,
            #[cfg(feature = "experiments")]
            strategies,
            slots: SlotTable::new(),
            active_count: AtomicUsize::new(0),
            has_streams: AtomicBool::new(false),
            has_raw_servants: AtomicBool::new(false),
            has_bidirectional_poas: AtomicBool::new(false),
            root,
            plain_poa: poa(1, "plain keys", plain, ObjectLookup::default()),
            transient_poas,
            persistent_poas: papaya::HashMap::new(),
            managers: Mutex::new([("RootPOAManager".into(), Arc::clone(&manager))].into()),
            next_object_number: AtomicU64::new(0),
            next_poa_number: AtomicU32::new(2),
            blocking_threads,
            main_thread,
        }
    }

    pub(crate) fn active_objects(&self) -> usize {
        self.active_count.load(Ordering::Relaxed)
    }

    pub(crate) fn has_bidirectional_poas(&self) -> bool {
        self.has_bidirectional_poas.load(Ordering::Relaxed)
    }

    pub(crate) fn root(&self) -> &Arc<PoaCore> {
        &self.root
    }

    pub(crate) fn managers(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<ManagerCore>>> {
        self.managers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn activate_named(
        &self,
        name: &[u8],
        servant: Servant,
    ) -> Result<Arc<ActiveObject>, PlainKeyError> {
        if object_key::is_reserved(name) {
            return Err(PlainKeyError::Reserved);
        }
        self.activate_with_id(&self.plain_poa, name, servant).ok_or(PlainKeyError::InUse)
    }

    /// Activates an object that is found by id. Returns `None` if another object is active under the id.
    pub(crate) fn activate_with_id(
        &self,
        poa: &Arc<PoaCore>,
        id: &[u8],
        servant: Servant,
    ) -> Option<Arc<ActiveObject>> {
        let entry = self.new_entry(poa, id, NO_SLOT, servant);
        if !poa.node().lookup.objects.insert(&entry) {
            return None;
        }
        poa.count_activation(&self.active_count);
        #[cfg(feature = "experiments")]
        self.strategies.record_activation(&entry);
        Some(entry)
    }

    fn new_entry(&self, poa: &Arc<PoaCore>, id: &[u8], slot: u32, servant: Servant) -> Arc<ActiveObject> {
        self.record_skeleton(&*servant.skeleton);
        let id_start = poa.node().lookup.key_prefix.len();
        Arc::new(ActiveObject::new(&poa.key(id), id_start, slot, Arc::clone(poa), servant))
    }

    /// Activates an object in an unused slot. The POA must find its objects by index.
    pub(crate) fn activate(&self, poa: &Arc<PoaCore>, servant: Servant) -> Arc<ActiveObject> {
        self.activate_at(poa, self.reserve(poa), servant)
    }

    /// Reserves an unused slot, which is reused only after an object in it was deactivated.
    pub(crate) fn reserve(&self, poa: &PoaCore) -> SlotId {
        let slot_id = self.slots.take();
        if let Some(slot) = self.slots.get(slot_id.index) {
            slot.poa_number.store(poa.node().number, Ordering::Relaxed);
        }
        slot_id
    }

    fn activate_at(&self, poa: &Arc<PoaCore>, slot_id: SlotId, servant: Servant) -> Arc<ActiveObject> {
        poa.count_activation(&self.active_count);
        let entry = self.new_entry(poa, &slot_id.to_bytes(), slot_id.index, servant);
        self.slots.put(slot_id.index, &entry);
        #[cfg(feature = "experiments")]
        self.strategies.record_activation(&entry);
        entry
    }

    /// Activates an object in a reserved slot. Returns `None` if an object is active in it.
    pub(crate) fn activate_reserved(
        &self,
        poa: &Arc<PoaCore>,
        slot_id: SlotId,
        servant: Servant,
    ) -> Option<Arc<ActiveObject>> {
        // Serializes concurrent activations in one slot.
        let _lock = poa.children();
        let taken = self.slots.get(slot_id.index).is_none_or(|slot| slot.value.load().is_some());
        (!taken).then(|| self.activate_at(poa, slot_id, servant))
    }

    /// Returns whether the slot was reserved for an object of this POA, active or not.
    pub(crate) fn is_reserved(&self, slot_id: SlotId, poa: &PoaCore) -> bool {
        self.slots.get(slot_id.index).is_some_and(|slot| {
            slot.generation.load(Ordering::Relaxed) == slot_id.generation
                && slot.poa_number.load(Ordering::Relaxed) == poa.node().number
        })
    }

    /// Returns a new object id. If `across_runs` is set, it also differs from the ids of earlier runs.
    pub(crate) fn next_id(&self, across_runs: bool) -> Vec<u8> {
        let number = self.next_object_number.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        if across_runs { [self.boot, number].concat() } else { number.to_vec() }
    }

    /// Returns whether [`next_id`](Self::next_id) chose the id, possibly in another run.
    pub(crate) fn was_chosen(&self, id: &[u8], across_runs: bool) -> bool {
        let (boot, number) = match id.split_first_chunk() {
            _ if !across_runs => (self.boot, id),
            Some((boot, number)) => (*boot, number),
            None => return false,
        };
        let next = self.next_object_number.load(Ordering::Relaxed);
        number.try_into().is_ok_and(|number| boot != self.boot || u64::from_be_bytes(number) < next)
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<Arc<ActiveObject>> {
        let Located::Object(entry) = self.locate(key) else { return None };
        Some(entry)
    }

    pub(crate) fn locate<'a>(&self, key: &'a [u8]) -> Located<'a> {
        #[cfg(feature = "experiments")]
        if let Some(located) = self.locate_layered(key) {
            return located;
        }
        let (poa, id) = match Key::parse(key) {
            Ok(Key::Active { slot, .. }) => {
                return self.object_at(slot, key).map_or(Located::NotFound, Located::Object);
            }
            Ok(Key::Transient { boot, poa, id }) if boot == self.boot => (self.poa_at(poa), id),
            Ok(Key::Persistent { path, id }) => {
                (self.persistent_poas.pin().get(path.as_slice()).cloned(), id)
            }
            Ok(Key::Plain(id)) => {
                let missing = || Located::MissingObject(Arc::clone(&self.plain_poa), id);
                return self.plain_poa.find(id).map_or_else(missing, Located::Object);
            }
            _ => return Located::NotFound,
        };
        let Some(poa) = poa else { return Located::NotFound };
        poa.find(id).map_or(Located::MissingObject(poa, id), Located::Object)
    }

    #[inline]
    pub(super) fn object_at(&self, slot_id: SlotId, key: &[u8]) -> Option<Arc<ActiveObject>> {
        let found = self.slots.get(slot_id.index)?.value.load();
        // The whole key is compared, because it also contains the boot id and the generation.
        found.as_ref().filter(|entry| entry.key() == key).map(Arc::clone)
    }

    /// Looks up a key. If a POA of its path does not exist, returns [`Located::MissingPoa`].
    pub(crate) fn locate_with_missing_poa<'a>(&self, key: &'a [u8]) -> Located<'a> {
        let located = self.locate(key);
        if !matches!(located, Located::NotFound) {
            return located;
        }
        let Ok(Key::Persistent { path, .. }) = Key::parse(key) else { return Located::NotFound };
        match self.find_poa(path) {
            // The POA was created concurrently.
            Ok(_) => self.locate(key),
            Err(Some((parent, name))) => Located::MissingPoa(parent, name),
            Err(None) => Located::NotFound,
        }
    }

    /// Finds a POA by the names of its path, from the root down. The error is the deepest existing POA with
    /// the name of its missing child, or `None` if the names are malformed.
    pub(super) fn find_poa<'a>(
        &self,
        path: PoaPath<'a>,
    ) -> Result<Arc<PoaCore>, Option<(Arc<PoaCore>, &'a str)>> {
        let mut poa = Arc::clone(&self.root);
        for name in path.names().map_err(|_| None)? {
            poa = poa.child(name).ok_or(Some((poa, name)))?;
        }
        Ok(poa)
    }

    fn poa_at(&self, slot_id: SlotId) -> Option<Arc<PoaCore>> {
        let poa = self.transient_poas.get(slot_id.index)?.value.load_full()?;
        (poa.node().lookup.poa_slot == Some(slot_id)).then_some(poa)
    }

    pub(crate) fn create_poa(
        &self,
        parent: &Arc<PoaCore>,
        name: &str,
        policies: Policies,
        manager: &Arc<ManagerCore>,
    ) -> Result<Arc<PoaCore>, PoaError> {
        let path = parent.node().path.child(name)?;
        let mut children = parent.children();
        if children.destruction.is_some() {
            return Err(PoaError::being_destroyed(&parent.node().name));
        }
        if children.by_name.contains_key(name) {
            return Err(PoaError::AdapterAlreadyExists(name.to_owned()));
        }
        let number = self.next_poa_number.fetch_add(1, Ordering::Relaxed);
        let policies_and_path = (&policies, path.as_path());
        #[cfg(feature = "experiments")]
        let lookup =
            self.strategies.object_lookup(self.boot, number, policies_and_path, &self.transient_poas)?;
        #[cfg(not(feature = "experiments"))]
        let lookup = ObjectLookup::new(self.boot, policies_and_path, true, &self.transient_poas)?;
        let params = PoaParams {
            name: name.into(),
            path,
            policies,
            lookup,
            parent: Arc::downgrade(parent),
            is_initializing: parent.must_hold_child(&children, name),
        };
        let poa = PoaCore::new(params, number, manager, &self.blocking_threads, &self.main_thread.turn);
        if policies.bidirectional == BidirectionalPolicy::Both {
            self.has_bidirectional_poas.store(true, Ordering::Relaxed);
        }
        publish_poa(&self.transient_poas, &poa);
        if policies.lifespan == LifespanPolicy::Persistent {
            self.persistent_poas.pin().insert(poa.node().path.as_path().as_slice().into(), Arc::clone(&poa));
        }
        // Publish last: `locate_with_missing_poa` must not find a POA that is not in the tables above.
        children.by_name.insert(name.into(), Arc::clone(&poa));
        Ok(poa)
    }

    pub(crate) fn set_fallback(&self, poa: &Arc<PoaCore>, servant: Servant) {
        self.record_skeleton(&*servant.skeleton);
        let entry = ActiveObject::shared(&poa.node().lookup.key_prefix, Arc::clone(poa), servant);
        // Concurrent look-ups find the old or the new entry.
        if let Some(before) = poa.node().fallback.swap(Some(Arc::new(entry))) {
            before.mark_deactivated();
        }
    }

    /// Returns whether the key is valid and contains no index of an object, so that an object can be
    /// activated under it.
    pub(crate) fn is_activatable_key(&self, key: &[u8]) -> bool {
        !matches!(Key::parse(key), Ok(Key::Active { .. }) | Err(_))
    }

    pub(crate) fn count_deactivation(&self, poa: &PoaCore) {
        poa.count_deactivation(&self.active_count);
    }

    /// Deactivates an object without a servant activator. Returns `false` if it was deactivated before.
    pub(crate) fn deactivate(&self, entry: &ActiveObject) -> bool {
        if !entry.mark_deactivated() {
            return false;
        }
        self.remove_from_tables(entry);
        if entry.slot != NO_SLOT {
            self.slots.free(entry.slot);
        }
        entry.poa.forget_servant(entry);
        self.count_deactivation(&entry.poa);
        true
    }

    /// Removes a deactivated object from the tables by id. Its id can then be used for another object.
    pub(crate) fn remove_from_tables(&self, entry: &ActiveObject) {
        #[cfg(feature = "experiments")]
        self.strategies.remove_from_tables(entry);
        if entry.slot == NO_SLOT {
            entry.poa.node().lookup.objects.remove(entry.id());
        }
    }

    /// Waits until the POA's objects have finished the requests that they serve at the time of the call. The
    /// default servant or servant locator is included.
    pub(crate) async fn wait_until_idle(&self, poa: &Arc<PoaCore>) {
        let mut busy = poa.node().lookup.objects.filter(ActiveObject::is_busy);
        busy.extend(poa.node().fallback.load_full().filter(|entry| entry.is_busy()));
        busy.extend(self.slots.values().filter(|entry| entry.is_busy() && Arc::ptr_eq(&entry.poa, poa)));
        for entry in busy {
            entry.wait_until_idle().await;
        }
    }

    /// Returns all active objects of the POA. The default servant is not included.
    pub(crate) fn objects_of(&self, poa: &Arc<PoaCore>) -> Vec<Arc<ActiveObject>> {
        let mut all = poa.node().lookup.objects.filter(|entry| !entry.is_deactivated());
        if poa.is_indexed() {
            all.extend(self.slots.values().filter(|entry| Arc::ptr_eq(&entry.poa, poa)));
        }
        all
    }

    pub(crate) fn forget_poa(&self, poa: &Arc<PoaCore>) {
        if let Some(slot_id) = poa.node().lookup.poa_slot {
            self.transient_poas.free(slot_id.index);
        }
        let path = poa.node().path.as_path().as_slice();
        let persistent_poas = self.persistent_poas.pin();
        if persistent_poas.get(path).is_some_and(|found| Arc::ptr_eq(found, poa)) {
            persistent_poas.remove(path);
        }
        if poa.node().manager.is_removable() {
            self.managers().remove(poa.node().manager.id());
        }
    }

    /// Records whether a skeleton needs the slower handling of streams or raw requests.
    fn record_skeleton(&self, skeleton: &dyn Skeleton) {
        if !skeleton.streamed_operations().is_empty() {
            self.has_streams.store(true, Ordering::Relaxed);
        }
        if skeleton.takes_raw_arguments() {
            self.has_raw_servants.store(true, Ordering::Relaxed);
        }
    }
}

fn publish_poa(poas: &SlotTable<PoaCore>, poa: &Arc<PoaCore>) {
    if let Some(slot_id) = poa.node().lookup.poa_slot {
        poas.put(slot_id.index, poa);
    }
}

impl fmt::Debug for ObjectAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectAdapter").field("active", &self.active_objects()).finish_non_exhaustive()
    }
}

impl Drop for ObjectAdapter {
    /// Breaks the reference cycles between objects and their POAs.
    fn drop(&mut self) {
        self.root.release();
        self.plain_poa.release();
    }
}

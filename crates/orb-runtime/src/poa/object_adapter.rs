//! The tables in which an ORB looks up objects and POAs by object key.
//!
//! The key of an object whose id the POA chose contains the index of its slot, so that no search is needed. A
//! generation in the key detects that the slot was reused. Other objects, such as those with plain keys
//! (`corbaloc:.../Account`), are looked up by id in concurrent hash maps. Look-ups take no lock.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use giop_proto::Streams;
use tokio::sync::Semaphore;

use crate::object_key;
use crate::object_key::{Boot, Key, Path, PathBuf, Place};
use crate::poa::core::PoaParams;
use crate::poa::error::PoaError;
use crate::poa::manager::{ManagerCore, PoaManagerState};
use crate::poa::places::{Keys, Slots};
use crate::poa::policies::Policies;
use crate::poa::policy::{BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy};
use crate::servant::active_object::{ActiveObject, NO_SLOT};
use crate::servant::poa_gate::PoaGate;
use crate::servant::thread_model::MainThread;
use crate::servant::{Servant, Skeleton};

pub(crate) struct ObjectAdapter {
    /// Distinguishes the keys of this run from those of earlier runs.
    pub(super) boot: Boot,
    #[cfg(feature = "experiments")]
    pub(crate) strategies: crate::poa::experiments::Strategies,
    slots: Slots<ActiveObject>,
    active_count: AtomicUsize,
    has_streams: AtomicBool,
    /// Whether an object has been activated whose servant takes arguments as undecoded bytes.
    has_raw_servants: AtomicBool,
    /// Whether a POA has been created whose objects may be called over connections that this ORB opened.
    has_bidirectional: AtomicBool,
    root: Arc<PoaGate>,
    pub(crate) plain_poa: Arc<PoaGate>,
    /// The transient POAs whose keys contain their place, by index.
    transient: Slots<PoaGate>,
    /// The persistent POAs, by the encoded names from the root down.
    persistent: papaya::HashMap<Box<[u8]>, Arc<PoaGate>>,
    managers: Mutex<HashMap<Box<str>, Arc<ManagerCore>>>,
    next_id: AtomicU64,
    next_poa: AtomicU32,
    blocking_threads: Arc<Semaphore>,
    pub(crate) main_thread: MainThread,
}

pub(crate) enum Located<'a> {
    Object(Arc<ActiveObject>),
    /// The POA exists, but has no active object with this id.
    MissingObject(Arc<PoaGate>, &'a [u8]),
    /// The POA does not exist. Contains its nearest existing ancestor, and the name of the missing child.
    MissingPoa(Arc<PoaGate>, &'a str),
    NotFound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainKeyError {
    InUse,
    /// The key has the form of the keys that the ORB generates.
    Reserved,
}

impl Streams for ObjectAdapter {
    fn any(&self) -> bool {
        self.has_streams.load(Ordering::Relaxed)
    }

    fn streams(&self, key: &[u8], operation: &[u8]) -> bool {
        let found = self.find(key);
        found.is_some_and(|entry| entry.skeleton.streamed().iter().any(|name| name.as_bytes() == operation))
    }

    fn any_forwarded(&self) -> bool {
        self.has_raw_servants.load(Ordering::Relaxed)
    }

    fn passes(&self, key: &[u8]) -> bool {
        self.find(key).is_some_and(|entry| entry.skeleton.takes_raw_arguments())
    }
}

impl ObjectAdapter {
    pub(crate) fn new(
        boot: Boot,
        blocking_threads: usize,
        #[cfg(feature = "experiments")] demux: crate::experiments::Demux,
    ) -> Self {
        let blocking_threads = Arc::new(Semaphore::new(blocking_threads));
        let main_thread = MainThread::default();
        let manager = ManagerCore::new("RootPOAManager", PoaManagerState::Active, false);
        let transient = Slots::new();
        let poa = |number, name: &str, policies, keys| {
            let (name, path) = (name.into(), PathBuf::default());
            let (parent, initializing) = (Weak::new(), false);
            let params = PoaParams { name, path, policies, keys, parent, initializing };
            PoaGate::new(params, number, &manager, &blocking_threads, &main_thread.turn)
        };
        let (policies, path) = (Policies::root(), PathBuf::default());
        #[cfg(feature = "experiments")]
        let strategies = crate::poa::experiments::Strategies::new(demux);
        #[cfg(feature = "experiments")]
        let keys = strategies.keys(boot, 0, (&policies, path.as_path()), &transient);
        #[cfg(not(feature = "experiments"))]
        let keys = Keys::new(boot, (&policies, path.as_path()), true, &transient);
        // The root POA has no name, so its key is never too long.
        let root = poa(0, "RootPOA", policies, keys.unwrap_or_default());
        publish_poa(&transient, &root);
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
            slots: Slots::new(),
            active_count: AtomicUsize::new(0),
            has_streams: AtomicBool::new(false),
            has_raw_servants: AtomicBool::new(false),
            has_bidirectional: AtomicBool::new(false),
            root,
            plain_poa: poa(1, "plain keys", plain, Keys::default()),
            transient,
            persistent: papaya::HashMap::new(),
            managers: Mutex::new([("RootPOAManager".into(), Arc::clone(&manager))].into()),
            next_id: AtomicU64::new(0),
            next_poa: AtomicU32::new(2),
            blocking_threads,
            main_thread,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.active_count.load(Ordering::Relaxed)
    }

    pub(crate) fn has_bidirectional(&self) -> bool {
        self.has_bidirectional.load(Ordering::Relaxed)
    }

    pub(crate) fn root(&self) -> &Arc<PoaGate> {
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
        poa: &Arc<PoaGate>,
        id: &[u8],
        servant: Servant,
    ) -> Option<Arc<ActiveObject>> {
        let entry = self.new_entry(poa, id, NO_SLOT, servant);
        if !poa.node().keys.objects.insert(&entry) {
            return None;
        }
        poa.count_activation(&self.active_count);
        #[cfg(feature = "experiments")]
        self.strategies.record_activation(&entry);
        Some(entry)
    }

    fn new_entry(&self, poa: &Arc<PoaGate>, id: &[u8], slot: u32, servant: Servant) -> Arc<ActiveObject> {
        self.record_skeleton(&*servant.skeleton);
        let id_start = poa.node().keys.prefix.len();
        Arc::new(ActiveObject::new(&poa.key(id), id_start, slot, Arc::clone(poa), servant))
    }

    /// Activates an object at an unused place, in a POA that finds objects by index.
    pub(crate) fn activate(&self, poa: &Arc<PoaGate>, servant: Servant) -> Arc<ActiveObject> {
        self.activate_at(poa, self.reserve(poa), servant)
    }

    /// Reserves an unused place, which is reused only after an object was deactivated there.
    pub(crate) fn reserve(&self, poa: &PoaGate) -> Place {
        let place = self.slots.take();
        if let Some(slot) = self.slots.get(place.index) {
            slot.owner.store(poa.node().number, Ordering::Relaxed);
        }
        place
    }

    fn activate_at(&self, poa: &Arc<PoaGate>, place: Place, servant: Servant) -> Arc<ActiveObject> {
        poa.count_activation(&self.active_count);
        let entry = self.new_entry(poa, &place.to_bytes(), place.index, servant);
        self.slots.put(place.index, &entry);
        #[cfg(feature = "experiments")]
        self.strategies.record_activation(&entry);
        entry
    }

    /// Activates an object at a reserved place. Returns `None` if an object is active there.
    pub(crate) fn activate_reserved(
        &self,
        poa: &Arc<PoaGate>,
        place: Place,
        servant: Servant,
    ) -> Option<Arc<ActiveObject>> {
        // Serializes concurrent activations at one place.
        let _lock = poa.children();
        let taken = self.slots.get(place.index).is_none_or(|slot| slot.value.load().is_some());
        (!taken).then(|| self.activate_at(poa, place, servant))
    }

    /// Returns whether the place was reserved for an object of this POA, active or not.
    pub(crate) fn is_reserved(&self, place: Place, poa: &PoaGate) -> bool {
        self.slots.get(place.index).is_some_and(|slot| {
            slot.generation.load(Ordering::Relaxed) == place.generation
                && slot.owner.load(Ordering::Relaxed) == poa.node().number
        })
    }

    /// Returns an id that the ORB has not returned before. If `across_runs`, earlier runs have not either.
    pub(crate) fn next_id(&self, across_runs: bool) -> Vec<u8> {
        let number = self.next_id.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        if across_runs { [self.boot, number].concat() } else { number.to_vec() }
    }

    /// Returns whether [`next_id`](Self::next_id) chose the id, possibly in another run.
    pub(crate) fn was_chosen(&self, id: &[u8], across_runs: bool) -> bool {
        let (boot, number) = match id.split_first_chunk() {
            _ if !across_runs => (self.boot, id),
            Some((boot, number)) => (*boot, number),
            None => return false,
        };
        let next = self.next_id.load(Ordering::Relaxed);
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
            Ok(Key::Active { place, .. }) => {
                return self.object_at(place, key).map_or(Located::NotFound, Located::Object);
            }
            Ok(Key::Transient { boot, poa, id }) if boot == self.boot => (self.poa_at(poa), id),
            Ok(Key::Persistent { path, id }) => (self.persistent.pin().get(path.as_slice()).cloned(), id),
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
    pub(super) fn object_at(&self, place: Place, key: &[u8]) -> Option<Arc<ActiveObject>> {
        let found = self.slots.get(place.index)?.value.load();
        // The key also contains the boot stamp and the generation.
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
        path: Path<'a>,
    ) -> Result<Arc<PoaGate>, Option<(Arc<PoaGate>, &'a str)>> {
        let mut poa = Arc::clone(&self.root);
        for name in path.names().map_err(|_| None)? {
            poa = poa.child(name).ok_or(Some((poa, name)))?;
        }
        Ok(poa)
    }

    fn poa_at(&self, place: Place) -> Option<Arc<PoaGate>> {
        let poa = self.transient.get(place.index)?.value.load_full()?;
        (poa.node().keys.place == Some(place)).then_some(poa)
    }

    pub(crate) fn create_poa(
        &self,
        parent: &Arc<PoaGate>,
        name: &str,
        policies: Policies,
        manager: &Arc<ManagerCore>,
    ) -> Result<Arc<PoaGate>, PoaError> {
        let path = parent.node().path.child(name)?;
        let mut children = parent.children();
        if children.destruction.is_some() {
            return Err(PoaError::being_destroyed(&parent.node().name));
        }
        if children.by_name.contains_key(name) {
            return Err(PoaError::AdapterAlreadyExists(name.to_owned()));
        }
        let number = self.next_poa.fetch_add(1, Ordering::Relaxed);
        let policies_and_path = (&policies, path.as_path());
        #[cfg(feature = "experiments")]
        let keys = self.strategies.keys(self.boot, number, policies_and_path, &self.transient)?;
        #[cfg(not(feature = "experiments"))]
        let keys = Keys::new(self.boot, policies_and_path, true, &self.transient)?;
        let params = PoaParams {
            name: name.into(),
            path,
            policies,
            keys,
            parent: Arc::downgrade(parent),
            initializing: parent.holds_child(&children, name),
        };
        let poa = PoaGate::new(params, number, manager, &self.blocking_threads, &self.main_thread.turn);
        if policies.bidirectional == BidirectionalPolicy::Both {
            self.has_bidirectional.store(true, Ordering::Relaxed);
        }
        publish_poa(&self.transient, &poa);
        if policies.lifespan == LifespanPolicy::Persistent {
            self.persistent.pin().insert(poa.node().path.as_path().as_slice().into(), Arc::clone(&poa));
        }
        // Publish last: `locate_with_missing_poa` must not find a POA that is not in the tables above.
        children.by_name.insert(name.into(), Arc::clone(&poa));
        Ok(poa)
    }

    pub(crate) fn set_fallback(&self, poa: &Arc<PoaGate>, servant: Servant) {
        self.record_skeleton(&*servant.skeleton);
        let entry = ActiveObject::shared(&poa.node().keys.prefix, Arc::clone(poa), servant);
        // Concurrent look-ups find the old or the new entry.
        if let Some(before) = poa.node().fallback.swap(Some(Arc::new(entry))) {
            before.retire();
        }
    }

    /// Returns whether an object can be activated later under a key of this form: one without an index.
    pub(crate) fn can_be_activated(&self, key: &[u8]) -> bool {
        !matches!(Key::parse(key), Ok(Key::Active { .. }) | Err(_))
    }

    /// Counts the removal of an object that has a servant activator.
    pub(crate) fn count_deactivation(&self, poa: &PoaGate) {
        poa.count_deactivation(&self.active_count);
    }

    /// Deactivates an object that has no servant activator. Active requests continue.
    pub(crate) fn deactivate(&self, entry: &ActiveObject) -> bool {
        if !entry.retire() {
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

    /// Removes a retired object from the tables by id. Then another object can be activated under its id.
    pub(crate) fn remove_from_tables(&self, entry: &ActiveObject) {
        #[cfg(feature = "experiments")]
        self.strategies.remove_from_tables(entry);
        if entry.slot == NO_SLOT {
            entry.poa.node().keys.objects.remove(entry.id());
        }
    }

    /// Waits until the POA's objects have finished the requests that they serve at the time of the call. The
    /// default servant or servant locator is included.
    pub(crate) async fn wait_until_idle(&self, poa: &Arc<PoaGate>) {
        let mut busy = poa.node().keys.objects.filter(ActiveObject::is_busy);
        busy.extend(poa.node().fallback.load_full().filter(|entry| entry.is_busy()));
        busy.extend(self.slots.values().filter(|entry| entry.is_busy() && Arc::ptr_eq(&entry.poa, poa)));
        for entry in busy {
            entry.wait_until_idle().await;
        }
    }

    /// Returns all active objects of the POA. The default servant is not included.
    pub(crate) fn objects_of(&self, poa: &Arc<PoaGate>) -> Vec<Arc<ActiveObject>> {
        let mut all = poa.node().keys.objects.filter(|entry| !entry.is_deactivated());
        if poa.is_indexed() {
            all.extend(self.slots.values().filter(|entry| Arc::ptr_eq(&entry.poa, poa)));
        }
        all
    }

    pub(crate) fn forget_poa(&self, poa: &Arc<PoaGate>) {
        if let Some(place) = poa.node().keys.place {
            self.transient.free(place.index);
        }
        let path = poa.node().path.as_path().as_slice();
        let persistent = self.persistent.pin();
        if persistent.get(path).is_some_and(|found| Arc::ptr_eq(found, poa)) {
            persistent.remove(path);
        }
        if poa.node().manager.is_removable() {
            self.managers().remove(poa.node().manager.id());
        }
    }

    /// Records whether a skeleton needs the slower handling of streams or raw requests.
    fn record_skeleton(&self, skeleton: &dyn Skeleton) {
        if !skeleton.streamed().is_empty() {
            self.has_streams.store(true, Ordering::Relaxed);
        }
        if skeleton.takes_raw_arguments() {
            self.has_raw_servants.store(true, Ordering::Relaxed);
        }
    }
}

fn publish_poa(poas: &Slots<PoaGate>, poa: &Arc<PoaGate>) {
    if let Some(place) = poa.node().keys.place {
        poas.put(place.index, poa);
    }
}

impl fmt::Debug for ObjectAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectAdapter").field("active", &self.len()).finish_non_exhaustive()
    }
}

impl Drop for ObjectAdapter {
    /// Breaks the reference cycles between objects and their POAs.
    fn drop(&mut self) {
        self.root.release();
        self.plain_poa.release();
    }
}

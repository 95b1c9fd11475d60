//! Where requests find their objects.
//!
//! A key that the ORB made carries an index and a generation, so it leads to its entry without a search, and a stale
//! one to nothing. Plain keys (`corbaloc:.../Account`) go through a concurrent hash map. Both are read without locks.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwapOption;
use giop_proto::Streams;
use tokio::sync::Semaphore;

use super::demux::{Demux, PathDemux};
use super::entry::{Entry, NO_SLOT, RunMode};
use super::skeleton::{Servant, Skeleton};
use super::together::Together;
use super::turns::MainThread;
use crate::poa::core::{Birth, PoaCore};
use crate::poa::key::{self, Boot, Key, Path, PathBuf, Place};
use crate::poa::manager::{ManagerCore, PoaManagerState};
use crate::poa::{
    BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, PoaError, Policies,
};

/// The objects of one ORB.
pub(crate) struct Adapter {
    /// Distinguishes the keys of this run from those of an earlier one.
    boot: Boot,
    demux: Demux,
    slots: boxcar::Vec<Slot<Entry>>,
    free: Mutex<VecDeque<u32>>,
    active: AtomicUsize,
    /// An object with streamed operations was activated.
    streams: AtomicBool,
    /// Whether an object's requests are passed on as octets.
    passes: AtomicBool,
    /// A POA was created whose objects may be called over connections that this ORB opened.
    bidirectional: AtomicBool,
    root: Arc<PoaCore>,
    /// Of the objects under plain keys.
    pub(crate) plain: Arc<PoaCore>,
    /// POAs whose keys are good for this run, by index.
    transient: boxcar::Vec<Slot<PoaCore>>,
    free_poas: Mutex<VecDeque<u32>>,
    /// POAs whose keys are good for ever, by the octets of their names.
    persistent: papaya::HashMap<Box<[u8]>, Arc<PoaCore>>,
    /// Operations of objects by one look-up, where that is how they are found.
    together: Option<Together>,
    managers: Mutex<HashMap<Box<str>, Arc<ManagerCore>>>,
    next_id: AtomicU64,
    next_poa: AtomicU32,
    threads: Arc<Semaphore>,
    /// Of POAs with MAIN_THREAD_MODEL.
    pub(crate) main: MainThread,
}

struct Slot<T> {
    held: ArcSwapOption<T>,
    generation: AtomicU32,
    /// The POA that has the place.
    owner: AtomicU32,
}

/// What a key leads to.
pub(crate) enum Located<'a> {
    Object(Arc<Entry>),
    /// The POA is there, no object of the id is.
    Missing(Arc<PoaCore>, &'a [u8]),
    /// Not even the POA: it would be below this one, first the one of that name.
    Level(Arc<PoaCore>, &'a str),
    /// Not even the POA.
    Nowhere,
}

/// Why a plain key can not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRefused {
    /// Another object is active under it.
    InUse,
    /// It looks like one that the ORB makes.
    Reserved,
}

impl Streams for Adapter {
    fn any(&self) -> bool {
        self.streams.load(Ordering::Relaxed)
    }

    fn streams(&self, key: &[u8], operation: &[u8]) -> bool {
        let found = self.find(key);
        found.is_some_and(|entry| entry.skeleton.streamed().iter().any(|name| name.as_bytes() == operation))
    }

    fn any_passed(&self) -> bool {
        self.passes.load(Ordering::Relaxed)
    }

    fn passes(&self, key: &[u8]) -> bool {
        self.find(key).is_some_and(|entry| entry.skeleton.passes_on())
    }
}

impl Adapter {
    pub(crate) fn new(boot: Boot, blocking_threads: usize, demux: Demux) -> Self {
        let threads = Arc::new(Semaphore::new(blocking_threads));
        let main = MainThread::default();
        let manager = ManagerCore::new("RootPOAManager", PoaManagerState::Active, false);
        let transient = boxcar::Vec::new();
        let free_poas = Mutex::default();
        let poa = |number, name: &str, policies, (prefix, place)| {
            let (name, path, objects) = (name.into(), PathBuf::default(), demux.objects);
            let (parent, unborn) = (Weak::new(), false);
            let birth = Birth { name, path, policies, demux: objects, prefix, place, parent, unborn };
            PoaCore::new(birth, number, &manager, &threads, &main.turn)
        };
        let root = PathBuf::default();
        // The first of all, without a name: no key would be too long.
        let at_root = start_of_keys(boot, demux, (0, &Policies::root(), root.as_path()), || {
            take_place(&transient, &free_poas)
        });
        let root = poa(0, "RootPOA", Policies::root(), at_root.unwrap_or_default());
        place_poa(&transient, &root);
        let plain = Policies {
            lifespan: LifespanPolicy::Persistent,
            id_assignment: IdAssignmentPolicy::User,
            id_uniqueness: IdUniquenessPolicy::Multiple,
            ..Policies::default()
        };
        Self {
            boot,
            demux,
            slots: boxcar::Vec::new(),
            free: Mutex::default(),
            active: AtomicUsize::new(0),
            streams: AtomicBool::new(false),
            passes: AtomicBool::new(false),
            bidirectional: AtomicBool::new(false),
            root,
            plain: poa(1, "plain keys", plain, Default::default()),
            transient,
            free_poas,
            persistent: papaya::HashMap::new(),
            together: (demux.path == PathDemux::DeLayered).then(Together::default),
            managers: Mutex::new([("RootPOAManager".into(), Arc::clone(&manager))].into()),
            next_id: AtomicU64::new(0),
            next_poa: AtomicU32::new(2),
            threads,
            main,
        }
    }

    /// How many objects are active.
    pub(crate) fn len(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    pub(crate) fn has_bidirectional(&self) -> bool {
        self.bidirectional.load(Ordering::Relaxed)
    }

    pub(crate) fn root(&self) -> &Arc<PoaCore> {
        &self.root
    }

    pub(crate) fn managers(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<ManagerCore>>> {
        self.managers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Activates under a plain key.
    pub(crate) fn activate_named(
        &self,
        name: &[u8],
        skeleton: Arc<dyn Skeleton>,
        mode: RunMode,
    ) -> Result<Arc<Entry>, KeyRefused> {
        if key::is_reserved(name) {
            return Err(KeyRefused::Reserved);
        }
        self.activate_with_id(&self.plain, name, skeleton, mode).ok_or(KeyRefused::InUse)
    }

    /// Activates in a POA that finds its objects by their ids; `None`: another is active under the id.
    pub(crate) fn activate_with_id(
        &self,
        poa: &Arc<PoaCore>,
        id: &[u8],
        skeleton: Arc<dyn Skeleton>,
        mode: RunMode,
    ) -> Option<Arc<Entry>> {
        self.note(&*skeleton);
        let key = poa.key(id);
        let entry = Arc::new(Entry::new(&key, poa.prefix.len(), NO_SLOT, Arc::clone(poa), (skeleton, mode)));
        if !poa.objects.insert(&entry) {
            return None;
        }
        poa.note_activated(&self.active);
        self.put_together(&entry);
        Some(entry)
    }

    /// Activates in a POA that finds its objects by index, under a place that nobody has.
    pub(crate) fn activate(
        &self,
        poa: &Arc<PoaCore>,
        skeleton: Arc<dyn Skeleton>,
        mode: RunMode,
    ) -> Arc<Entry> {
        let place = self.reserve(poa);
        self.activate_at(poa, place, skeleton, mode)
    }

    /// A place for an object: nobody has it, and nobody else gets it before it was used.
    pub(crate) fn reserve(&self, poa: &PoaCore) -> Place {
        let place = take_place(&self.slots, &self.free);
        if let Some(slot) = self.slots.get(place.index as usize) {
            slot.owner.store(poa.number, Ordering::Relaxed);
        }
        place
    }

    fn activate_at(
        &self,
        poa: &Arc<PoaCore>,
        place: Place,
        skeleton: Arc<dyn Skeleton>,
        mode: RunMode,
    ) -> Arc<Entry> {
        self.note(&*skeleton);
        poa.note_activated(&self.active);
        let key = poa.key(&place.octets());
        let entry =
            Arc::new(Entry::new(&key, poa.prefix.len(), place.index, Arc::clone(poa), (skeleton, mode)));
        if let Some(slot) = self.slots.get(place.index as usize) {
            slot.held.store(Some(Arc::clone(&entry)));
        }
        self.put_together(&entry);
        entry
    }

    fn put_together(&self, entry: &Arc<Entry>) {
        if let Some(together) = &self.together {
            together.insert(entry);
        }
    }

    /// Activates at a place that was reserved; `None`: an object is there. The place is one of this ORB's.
    pub(crate) fn activate_reserved(
        &self,
        poa: &Arc<PoaCore>,
        place: Place,
        skeleton: Arc<dyn Skeleton>,
        mode: RunMode,
    ) -> Option<Arc<Entry>> {
        let _one_at_a_time = poa.family();
        let taken = self.slots.get(place.index as usize).is_none_or(|slot| slot.held.load().is_some());
        (!taken).then(|| self.activate_at(poa, place, skeleton, mode))
    }

    /// Whether the place was given to an object of the POA that may still come, or is there.
    pub(crate) fn is_reserved(&self, place: Place, poa: &PoaCore) -> bool {
        self.slots.get(place.index as usize).is_some_and(|slot| {
            slot.generation.load(Ordering::Relaxed) == place.generation
                && slot.owner.load(Ordering::Relaxed) == poa.number
        })
    }

    /// An id that the ORB never chose before; `for_ever`: in no run.
    pub(crate) fn next_id(&self, for_ever: bool) -> Vec<u8> {
        let number = self.next_id.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        if for_ever { [self.boot, number].concat() } else { number.to_vec() }
    }

    /// Whether the id is one that [`next_id`](Self::next_id) gave, in another run perhaps.
    pub(crate) fn is_chosen(&self, id: &[u8], for_ever: bool) -> bool {
        let (boot, number) = if for_ever {
            match id.split_first_chunk() {
                Some((boot, number)) => (*boot, number),
                None => return false,
            }
        } else {
            (self.boot, id)
        };
        let given = self.next_id.load(Ordering::Relaxed);
        number.try_into().is_ok_and(|number| boot != self.boot || u64::from_be_bytes(number) < given)
    }

    /// The object of that key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Arc<Entry>> {
        match self.locate(key) {
            Located::Object(entry) => Some(entry),
            Located::Missing(..) | Located::Level(..) | Located::Nowhere => None,
        }
    }

    /// What the key leads to.
    pub(crate) fn locate<'a>(&self, key: &'a [u8]) -> Located<'a> {
        let (poa, id) = match Key::parse(key) {
            Ok(Key::Active { place, .. }) => {
                return self.at(place, key).map_or(Located::Nowhere, Located::Object);
            }
            Ok(Key::Transient { boot, poa, id }) if boot == self.boot => (self.poa_at(poa), id),
            Ok(Key::Persistent { path, id }) if self.is_layered() => {
                let lasts = |poa: &Arc<PoaCore>| poa.policies.lifespan == LifespanPolicy::Persistent;
                (self.walk(path).ok().filter(lasts), id)
            }
            Ok(Key::Persistent { path, id }) => {
                (self.persistent.pin().get(path.as_slice()).map(Arc::clone), id)
            }
            Ok(Key::Layered { boot, number, path, id }) if self.is_layered() && boot == self.boot => {
                let poa = self.walk(path).ok();
                // A persistent one has other keys.
                let poa = poa.filter(|poa| poa.number == number && key.starts_with(&poa.prefix));
                if let Some(poa) = poa.as_ref().filter(|poa| poa.is_indexed()) {
                    let place = id.try_into().map(Place::from_octets);
                    let found = place.ok().and_then(|place| self.at(place, key));
                    return found.map_or(Located::Missing(Arc::clone(poa), id), Located::Object);
                }
                (poa, id)
            }
            Ok(Key::Plain(id)) => {
                return found(&self.plain, id)
                    .unwrap_or_else(|| Located::Missing(Arc::clone(&self.plain), id));
            }
            Ok(Key::Transient { .. } | Key::Layered { .. }) | Err(_) => (None, key),
        };
        let Some(poa) = poa else { return Located::Nowhere };
        found(&poa, id).unwrap_or(Located::Missing(poa, id))
    }

    /// What the key and the name of the operation lead to by one look-up: the object, and the operation's number there.
    pub(crate) fn find_together(&self, key: &[u8], operation: &[u8]) -> Option<(Arc<Entry>, u16)> {
        let found = self.together.as_ref()?.get(key, operation);
        found.filter(|(entry, _)| !entry.is_gone())
    }

    fn is_layered(&self) -> bool {
        self.demux.path == PathDemux::Layered
    }

    /// The object at that place, if it is the key's.
    #[inline]
    fn at(&self, place: Place, key: &[u8]) -> Option<Arc<Entry>> {
        let held = self.slots.get(place.index as usize)?.held.load();
        // The whole key is compared: boot stamp and generation with it.
        held.as_ref().filter(|entry| entry.key() == key).map(Arc::clone)
    }

    /// What the key leads to; for a key of names of which one is missing, how far.
    pub(crate) fn locate_or_level<'a>(&self, key: &'a [u8]) -> Located<'a> {
        let nowhere = match self.locate(key) {
            Located::Nowhere => Key::parse(key),
            found => return found,
        };
        let Ok(Key::Persistent { path, .. }) = nowhere else { return Located::Nowhere };
        match self.walk(path) {
            // It came in between.
            Ok(_) => self.locate(key),
            Err(missing) => missing.map_or(Located::Nowhere, |(parent, name)| Located::Level(parent, name)),
        }
    }

    /// The POA of these names, from the root down.
    ///
    /// # Errors
    /// A name is missing, below which POA; `None`: they are no names.
    fn walk<'a>(&self, path: Path<'a>) -> Result<Arc<PoaCore>, Option<(Arc<PoaCore>, &'a str)>> {
        let mut poa = Arc::clone(&self.root);
        for name in path.names().map_err(|_| None)? {
            match poa.child(name) {
                Some(child) => poa = child,
                None => return Err(Some((poa, name))),
            }
        }
        Ok(poa)
    }

    fn poa_at(&self, place: Place) -> Option<Arc<PoaCore>> {
        let held = self.transient.get(place.index as usize)?.held.load_full();
        held.filter(|poa| poa.place == Some(place))
    }

    /// Makes a POA.
    pub(crate) fn create_poa(
        &self,
        parent: &Arc<PoaCore>,
        name: &str,
        policies: Policies,
        manager: &Arc<ManagerCore>,
    ) -> Result<Arc<PoaCore>, PoaError> {
        let path = parent.path.child(name)?;
        let mut family = parent.family();
        if family.ending.is_some() {
            return Err(PoaError::destroyed(&parent.name));
        }
        if family.children.contains_key(name) {
            return Err(PoaError::AdapterAlreadyExists(name.to_owned()));
        }
        let number = self.next_poa.fetch_add(1, Ordering::Relaxed);
        let born = (number, &policies, path.as_path());
        let (prefix, place) =
            start_of_keys(self.boot, self.demux, born, || take_place(&self.transient, &self.free_poas))?;
        let birth = Birth {
            name: name.into(),
            path,
            policies,
            demux: self.demux.objects,
            prefix,
            place,
            parent: Arc::downgrade(parent),
            unborn: parent.bears(&family, name),
        };
        let poa = PoaCore::new(birth, number, manager, &self.threads, &self.main.turn);
        if policies.bidirectional == BidirectionalPolicy::Both {
            self.bidirectional.store(true, Ordering::Relaxed);
        }
        place_poa(&self.transient, &poa);
        if policies.lifespan == LifespanPolicy::Persistent {
            self.persistent.pin().insert(poa.path.as_path().as_slice().into(), Arc::clone(&poa));
        }
        // The last of all: see `locate_or_level`.
        family.children.insert(name.into(), Arc::clone(&poa));
        Ok(poa)
    }

    /// Sets what stands for all objects of the POA that are not there.
    pub(crate) fn set_default(&self, poa: &Arc<PoaCore>, servant: Servant) {
        self.note(&*servant.skeleton);
        let entry = Entry::shared(&poa.prefix, Arc::clone(poa), (servant.skeleton, servant.mode));
        // Whoever looks finds the one or the other.
        if let Some(before) = poa.default.swap(Some(Arc::new(entry))) {
            before.retire();
        }
    }

    /// Whether an object can be activated under that key.
    pub(crate) fn may_come(&self, key: &[u8]) -> bool {
        !matches!(Key::parse(key), Ok(Key::Active { .. }) | Err(_))
    }

    /// An object is out of the map that has a servant activator.
    pub(crate) fn note_retired(&self, poa: &PoaCore) {
        poa.note_retired(&self.active);
    }

    /// Takes an object out of the map that has no servant activator. Requests under way go on.
    pub(crate) fn deactivate(&self, entry: &Entry) -> bool {
        if !entry.retire() {
            return false;
        }
        self.take_out(entry);
        if entry.slot != NO_SLOT {
            if let Some(slot) = self.slots.get(entry.slot as usize) {
                slot.held.store(None);
            }
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push_back(entry.slot);
        }
        entry.poa.forget_servant(entry);
        self.note_retired(&entry.poa);
        true
    }

    /// Removes an object that is out of service from where it is found by its id. Then another of the id may come.
    pub(crate) fn take_out(&self, entry: &Entry) {
        if let Some(together) = &self.together {
            together.remove(entry);
        }
        if entry.slot == NO_SLOT {
            entry.poa.objects.remove(entry.id());
        }
    }

    /// Waits until none of the POA's objects has a request under way that is there now.
    pub(crate) async fn idle(&self, poa: &Arc<PoaCore>) {
        for entry in self.busy(poa) {
            entry.idle().await;
        }
    }

    /// All active objects of the POA but what stands for many.
    pub(crate) fn objects_of(&self, poa: &Arc<PoaCore>) -> Vec<Arc<Entry>> {
        let mut all = poa.objects.filter(|entry| !entry.is_gone());
        if poa.is_indexed() {
            let slots = self.slots.iter().filter_map(|(_, slot)| slot.held.load_full());
            all.extend(slots.filter(|entry| Arc::ptr_eq(&entry.poa, poa)));
        }
        all
    }

    /// A POA is no more: its keys lead nowhere.
    pub(crate) fn forget_poa(&self, poa: &Arc<PoaCore>) {
        if let Some(place) = poa.place {
            if let Some(slot) = self.transient.get(place.index as usize) {
                slot.held.store(None);
            }
            self.free_poas.lock().unwrap_or_else(PoisonError::into_inner).push_back(place.index);
        }
        let path = poa.path.as_path().as_slice();
        let persistent = self.persistent.pin();
        if persistent.get(path).is_some_and(|found| Arc::ptr_eq(found, poa)) {
            persistent.remove(path);
        }
        if poa.manager.is_for_one() {
            self.managers().remove(poa.manager.id());
        }
    }

    /// The POA's objects with requests under way.
    fn busy(&self, poa: &Arc<PoaCore>) -> Vec<Arc<Entry>> {
        let mut busy = poa.objects.filter(Entry::is_busy);
        busy.extend(poa.default.load_full().filter(|entry| entry.is_busy()));
        let slots = self.slots.iter().filter_map(|(_, slot)| slot.held.load_full());
        busy.extend(slots.filter(|entry| entry.is_busy() && Arc::ptr_eq(&entry.poa, poa)));
        busy
    }

    fn note(&self, skeleton: &dyn Skeleton) {
        if !skeleton.streamed().is_empty() {
            self.streams.store(true, Ordering::Relaxed);
        }
        if skeleton.passes_on() {
            self.passes.store(true, Ordering::Relaxed);
        }
    }
}

fn found<'a>(poa: &PoaCore, id: &[u8]) -> Option<Located<'a>> {
    poa.find(id).map(Located::Object)
}

/// How the keys of a POA's objects start, and its place where they name that.
fn start_of_keys(
    boot: Boot,
    demux: Demux,
    (number, policies, path): (u32, &Policies, Path<'_>),
    place: impl FnOnce() -> Place,
) -> Result<(Box<[u8]>, Option<Place>), key::NoKey> {
    let (mut taken, id) = (None, &[][..]);
    let start = if policies.lifespan == LifespanPolicy::Persistent {
        Key::Persistent { path, id }.encode()?
    } else if demux.path == PathDemux::Layered {
        Key::Layered { boot, number, path, id }.encode()?
    } else if policies.is_indexed(demux.objects) {
        active_prefix(boot).into()
    } else {
        let poa = place();
        taken = Some(poa);
        Key::Transient { boot, poa, id }.encode()?
    };
    Ok((start.into(), taken))
}

/// Makes a POA one that is found by its place, if it has one.
fn place_poa(poas: &boxcar::Vec<Slot<PoaCore>>, poa: &Arc<PoaCore>) {
    if let Some(slot) = poa.place.and_then(|place| poas.get(place.index as usize)) {
        slot.held.store(Some(Arc::clone(poa)));
    }
}

fn active_prefix(boot: Boot) -> [u8; 12] {
    let mut prefix = [0; 12];
    let place = Place { index: 0, generation: 0 };
    for (to, from) in prefix.iter_mut().zip(Key::Active { boot, place }.encode().unwrap_or_default()) {
        *to = from;
    }
    prefix
}

/// A place that nobody has, of the next generation.
fn take_place<T>(slots: &boxcar::Vec<Slot<T>>, free: &Mutex<VecDeque<u32>>) -> Place {
    let reused = free.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let index = reused.unwrap_or_else(|| {
        let slot = Slot { held: ArcSwapOption::empty(), generation: 0.into(), owner: 0.into() };
        u32::try_from(slots.push(slot)).unwrap_or(u32::MAX)
    });
    let slot = slots.get(index as usize);
    let generation = slot.map_or(0, |slot| slot.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
    Place { index, generation }
}

impl Drop for Adapter {
    /// Objects know their POAs, which know them.
    fn drop(&mut self) {
        self.root.let_go();
        self.plain.let_go();
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("active", &self.len()).finish_non_exhaustive()
    }
}

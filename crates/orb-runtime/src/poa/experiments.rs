//! Look-up of POAs and objects by other strategies than the default. Feature `experiments`.
//!
//! [`Together`] is the combined table of all operations of all objects: object key and operation name lead to
//! object and number.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use giop_codec::giop::ObjectKey;
use giop_codec::ior::OperationNumbers;
use papaya::{Equivalent, Guard};

use crate::experiments::{Demux, ObjectDemux, OperationDemux, PathDemux};
use crate::object_key::{Boot, Key, NoKey, Path, Place};
use crate::poa::active_object_map;
use crate::poa::object_adapter::{Located, ObjectAdapter};
use crate::poa::places::{Keys, Slots};
use crate::poa::policies::Policies;
use crate::poa::policy::LifespanPolicy;
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::poa_gate::PoaGate;

/// The strategies of an object adapter, and the tables that only they need.
pub(crate) struct Strategies {
    demux: Demux,
    /// The combined table of objects and operations, if [`PathDemux::DeLayered`] is configured.
    together: Option<Together>,
}

impl Strategies {
    pub(crate) fn new(demux: Demux) -> Self {
        Self { demux, together: (demux.path == PathDemux::DeLayered).then(Together::default) }
    }

    /// Returns the keys of a new POA.
    pub(crate) fn keys(
        &self,
        boot: Boot,
        number: u32,
        (policies, path): (&Policies, Path<'_>),
        poas: &Slots<PoaGate>,
    ) -> Result<Keys, NoKey> {
        let indexed = self.demux.objects == ObjectDemux::Active;
        let keys = if self.demux.path == PathDemux::Layered && policies.lifespan != LifespanPolicy::Persistent
        {
            let prefix = Key::Layered { boot, number, path, id: &[] }.encode()?.into();
            Keys { prefix, indexed: indexed && policies.is_indexed(), ..Keys::default() }
        } else {
            Keys::new(boot, (policies, path), indexed, poas)?
        };
        Ok(Keys { objects: ObjectMap::new(self.demux.objects), ..keys })
    }

    /// Records that an object is in the table of its POA.
    pub(crate) fn activated(&self, entry: &Arc<ActiveObject>) {
        if let Some(together) = &self.together {
            together.insert(entry);
        }
    }

    /// Removes a retired object.
    pub(crate) fn take_out(&self, entry: &ActiveObject) {
        if let Some(together) = &self.together {
            together.remove(entry);
        }
    }

    /// Finds the object and the number of its operation by one look-up.
    pub(crate) fn find_together(&self, key: &[u8], operation: &[u8]) -> Option<(Arc<ActiveObject>, u16)> {
        let found = self.together.as_ref()?.get(key, operation);
        found.filter(|(entry, _)| !entry.is_gone())
    }
}

impl ObjectAdapter {
    /// Looks up a key by the names of its POAs, from the root down. `None`: its form or the configuration
    /// asks for another look-up.
    pub(super) fn locate_layered<'a>(&self, key: &'a [u8]) -> Option<Located<'a>> {
        if self.strategies.demux.path != PathDemux::Layered {
            return None;
        }
        let (poa, id) = match Key::parse(key) {
            Ok(Key::Persistent { path, id }) => {
                let lasts = |poa: &Arc<PoaGate>| poa.node().policies.lifespan == LifespanPolicy::Persistent;
                (self.walk(path).ok().filter(lasts), id)
            }
            Ok(Key::Layered { boot, number, path, id }) if boot == self.boot => {
                // The keys of a persistent POA have another form.
                let is_it = |poa: &Arc<PoaGate>| {
                    poa.node().number == number && key.starts_with(&poa.node().keys.prefix)
                };
                let poa = self.walk(path).ok().filter(is_it);
                if let Some(poa) = poa.as_ref().filter(|poa| poa.is_indexed()) {
                    let place = id.try_into().map(Place::from_octets);
                    let found = place.ok().and_then(|place| self.at(place, key));
                    return Some(found.map_or(Located::Missing(Arc::clone(poa), id), Located::Object));
                }
                (poa, id)
            }
            _ => return None,
        };
        let Some(poa) = poa else { return Some(Located::Nowhere) };
        Some(poa.find(id).map_or(Located::Missing(poa, id), Located::Object))
    }
}

impl Shared {
    /// Returns the numbers of an object's operations, if references publish them. They are known while a
    /// servant is active.
    pub(crate) fn operation_numbers(&self, key: &ObjectKey) -> Option<OperationNumbers> {
        if self.config.server.demux.operations != OperationDemux::Numeric {
            return None;
        }
        let entry = self.adapter().find(key.as_slice())?;
        entry.skeleton.operations().numbers(entry.skeleton.repository_ids())
    }
}

/// Objects by id, found by hash or by linear search.
#[derive(Default)]
pub(crate) struct ObjectMap {
    by_hash: active_object_map::ObjectMap,
    /// The same objects for linear search, if that is configured.
    in_order: Option<Box<InOrder>>,
}

/// Objects in the order of insertion. Slots of removed objects are reused.
#[derive(Default)]
struct InOrder {
    places: boxcar::Vec<ArcSwapOption<ActiveObject>>,
    taken: Mutex<Taken>,
}

/// Bookkeeping for insertion and removal. Look-ups do not use it.
#[derive(Default)]
struct Taken {
    /// The slot of each object, by its address.
    by: HashMap<usize, usize>,
    free: Vec<usize>,
}

impl ObjectMap {
    fn new(demux: ObjectDemux) -> Self {
        let in_order = (demux == ObjectDemux::Linear).then(Box::default);
        Self { by_hash: Default::default(), in_order }
    }

    pub(crate) fn get(&self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        match &self.in_order {
            Some(in_order) => in_order.get(id),
            None => self.by_hash.get(id),
        }
    }

    /// Adds an object. Returns `false` if another has its id.
    pub(crate) fn insert(&self, entry: &Arc<ActiveObject>) -> bool {
        let added = self.by_hash.insert(entry);
        if added && let Some(in_order) = &self.in_order {
            in_order.push(entry);
        }
        added
    }

    /// Removes an object.
    pub(crate) fn remove(&self, id: &[u8]) {
        // Remove it from the list first: while it is in the table, no other object can take its id.
        if let Some(in_order) = &self.in_order
            && let Some(found) = self.by_hash.get(id)
        {
            in_order.remove(&found);
        }
        self.by_hash.remove(id);
    }

    /// Removes all objects.
    pub(crate) fn clear(&self) {
        if let Some(in_order) = &self.in_order {
            in_order.clear();
        }
        self.by_hash.clear();
    }

    /// Returns the objects for which the predicate holds.
    pub(crate) fn filter(&self, wanted: impl Fn(&ActiveObject) -> bool) -> Vec<Arc<ActiveObject>> {
        self.by_hash.filter(wanted)
    }
}

impl InOrder {
    fn get(&self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        self.places.iter().find_map(|(_, place)| {
            let held = place.load();
            held.as_ref().filter(|entry| entry.id() == id).map(Arc::clone)
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, entry: &Arc<ActiveObject>) {
        let mut taken = self.taken();
        let free = taken.free.pop();
        let at = free.unwrap_or_else(|| self.places.push(ArcSwapOption::empty()));
        taken.by.insert(Arc::as_ptr(entry) as usize, at);
        if let Some(place) = self.places.get(at) {
            place.store(Some(Arc::clone(entry)));
        }
    }

    fn remove(&self, entry: &Arc<ActiveObject>) {
        let mut taken = self.taken();
        let Some(at) = taken.by.remove(&(Arc::as_ptr(entry) as usize)) else { return };
        if let Some(place) = self.places.get(at) {
            // The caller holds another reference, so that no servant is dropped under the lock.
            place.store(None);
        }
        taken.free.push(at);
    }

    fn clear(&self) {
        self.places.iter().for_each(|(_, place)| place.store(None));
        *self.taken() = Taken::default();
    }
}

/// Every operation of every active object. Keys and names are not copied: they belong to the objects.
#[derive(Default)]
struct Together(papaya::HashMap<Pair, ()>);

struct Pair {
    entry: Arc<ActiveObject>,
    number: u16,
}

/// The key and operation name of a request.
struct Asked<'a> {
    key: &'a [u8],
    operation: &'a [u8],
}

impl Together {
    fn get(&self, key: &[u8], operation: &[u8]) -> Option<(Arc<ActiveObject>, u16)> {
        let table = self.0.pin();
        let (pair, ()) = table.get_key_value(&Asked { key, operation })?;
        Some((Arc::clone(&pair.entry), pair.number))
    }

    /// Adds an object that is in its POA's table. Replaces an earlier object with the same key.
    fn insert(&self, entry: &Arc<ActiveObject>) {
        let table = self.0.pin();
        for (number, name) in (0..=u16::MAX).zip(entry.skeleton.operations().names) {
            let asked = Asked { key: entry.key(), operation: name.as_bytes() };
            // Inserting over an existing key would keep the old key.
            table.remove(&asked);
            table.insert(Pair { entry: Arc::clone(entry), number }, ());
        }
        drop(table);
        if entry.is_gone() {
            // The task that deactivated the object may have called `remove` before the insertion.
            self.remove(entry);
        }
    }

    /// Removes a retired object, while no other object can have its key.
    fn remove(&self, entry: &ActiveObject) {
        let guard = self.0.guard();
        for name in entry.skeleton.operations().names {
            let asked = Asked { key: entry.key(), operation: name.as_bytes() };
            let _ = self.0.remove_if(&asked, |pair, ()| std::ptr::eq(&*pair.entry, entry), &guard);
        }
        guard.flush();
    }
}

impl Pair {
    fn asked(&self) -> Asked<'_> {
        let name = self.entry.skeleton.operations().names.get(usize::from(self.number));
        Asked { key: self.entry.key(), operation: name.map_or(&[], |name| name.as_bytes()) }
    }
}

impl Asked<'_> {
    fn is(&self, other: &Asked<'_>) -> bool {
        self.operation == other.operation && self.key == other.key
    }
}

impl Equivalent<Pair> for Asked<'_> {
    fn equivalent(&self, pair: &Pair) -> bool {
        self.is(&pair.asked())
    }
}

impl Hash for Asked<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.key);
        state.write(self.operation);
    }
}

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.asked().hash(state);
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.asked().is(&other.asked())
    }
}

impl Eq for Pair {}

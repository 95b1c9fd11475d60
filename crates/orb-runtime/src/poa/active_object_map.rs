//! The active object map of one POA, from ids to objects. Reads take no lock.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use papaya::Guard;

use crate::experiments::ObjectDemux;
use crate::servant::active_object::ActiveObject;

/// Objects by id. The id is a part of the object's key, so that it is stored only once.
pub(crate) struct ObjectMap {
    by_id: papaya::HashMap<ById, ()>,
    /// The same objects for linear search, if that is configured.
    in_order: Option<Box<InOrder>>,
}

struct ById(Arc<ActiveObject>);

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
    pub(crate) fn new(demux: ObjectDemux) -> Self {
        let in_order = (demux == ObjectDemux::Linear).then(Box::default);
        Self { by_id: papaya::HashMap::new(), in_order }
    }

    pub(crate) fn get(&self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        if let Some(in_order) = &self.in_order {
            return in_order.get(id);
        }
        self.by_id.pin().get_key_value(id).map(|(found, ())| Arc::clone(&found.0))
    }

    /// Adds an object. Returns `false` if another has its id.
    pub(crate) fn insert(&self, entry: &Arc<ActiveObject>) -> bool {
        let added = self.by_id.pin().try_insert(ById(Arc::clone(entry)), ()).is_ok();
        if added && let Some(in_order) = &self.in_order {
            in_order.push(entry);
        }
        added
    }

    /// Removes an object. The reference to its servant is dropped immediately, not in a later batch.
    pub(crate) fn remove(&self, id: &[u8]) {
        // Remove it from the list first: while it is in the table, no other object can take its id.
        let guard = self.by_id.guard();
        if let Some(in_order) = &self.in_order
            && let Some((found, ())) = self.by_id.get_key_value(id, &guard)
        {
            in_order.remove(&found.0);
        }
        self.by_id.remove(id, &guard);
        guard.flush();
    }

    /// Removes all objects. Uses an owned guard, because thread-locals may already be destroyed when an ORB
    /// is dropped at thread exit.
    pub(crate) fn clear(&self) {
        if let Some(in_order) = &self.in_order {
            in_order.clear();
        }
        let guard = self.by_id.owned_guard();
        self.by_id.clear(&guard);
        guard.flush();
    }

    /// Returns the objects for which the predicate holds.
    pub(crate) fn filter(&self, wanted: impl Fn(&ActiveObject) -> bool) -> Vec<Arc<ActiveObject>> {
        self.by_id.pin().keys().filter(|found| wanted(&found.0)).map(|found| Arc::clone(&found.0)).collect()
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

impl Borrow<[u8]> for ById {
    fn borrow(&self) -> &[u8] {
        self.0.id()
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for ById {}

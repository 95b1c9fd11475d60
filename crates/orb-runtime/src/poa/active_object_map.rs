//! The active object map of one POA, from ids to objects. Reads take no lock.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use papaya::Guard;

use crate::servant::active_object::ActiveObject;

/// A concurrent hash map from ids to objects. It stores no ids, because each object's key contains its id.
#[derive(Default)]
pub(crate) struct ObjectMap {
    by_id: papaya::HashMap<KeyedById, ()>,
}

struct KeyedById(Arc<ActiveObject>);

impl ObjectMap {
    pub(crate) fn get(&self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        self.by_id.pin().get_key_value(id).map(|(found, ())| Arc::clone(&found.0))
    }

    /// Adds an object. Returns `false` if the map contains another object with the same id.
    pub(crate) fn insert(&self, entry: &Arc<ActiveObject>) -> bool {
        self.by_id.pin().try_insert(KeyedById(Arc::clone(entry)), ()).is_ok()
    }

    /// Removes an object. The reference to its servant is dropped immediately, not in a later batch.
    pub(crate) fn remove(&self, id: &[u8]) {
        let guard = self.by_id.guard();
        self.by_id.remove(id, &guard);
        guard.flush();
    }

    /// Removes all objects. Uses an owned guard, because thread-locals may already be destroyed when an ORB
    /// is dropped at thread exit.
    pub(crate) fn clear(&self) {
        let guard = self.by_id.owned_guard();
        self.by_id.clear(&guard);
        guard.flush();
    }

    pub(crate) fn filter(&self, wanted: impl Fn(&ActiveObject) -> bool) -> Vec<Arc<ActiveObject>> {
        self.by_id.pin().keys().filter(|found| wanted(&found.0)).map(|found| Arc::clone(&found.0)).collect()
    }
}

impl Borrow<[u8]> for KeyedById {
    fn borrow(&self) -> &[u8] {
        self.0.id()
    }
}

impl Hash for KeyedById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl PartialEq for KeyedById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for KeyedById {}

//! The active object map of one POA: ids to objects, read without locks.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use papaya::Guard;

use crate::serve::entry::Entry;

/// Objects by their ids. An id lies in its object's key, so that nothing is kept twice.
#[derive(Default)]
pub(crate) struct ObjectMap(papaya::HashMap<ById, ()>);

struct ById(Arc<Entry>);

impl ObjectMap {
    pub(crate) fn get(&self, id: &[u8]) -> Option<Arc<Entry>> {
        self.0.pin().get_key_value(id).map(|(found, ())| Arc::clone(&found.0))
    }

    /// Adds an object, unless there is one of its id.
    pub(crate) fn insert(&self, entry: &Arc<Entry>) -> bool {
        self.0.pin().try_insert(ById(Arc::clone(entry)), ()).is_ok()
    }

    /// Removes an object; its servant is let go of at once, not only with others.
    pub(crate) fn remove(&self, id: &[u8]) {
        let guard = self.0.guard();
        self.0.remove(id, &guard);
        guard.flush();
    }

    /// Not by this thread's own guard: an ORB may end with the thread, when that has none any more.
    pub(crate) fn clear(&self) {
        let guard = self.0.owned_guard();
        self.0.clear(&guard);
        guard.flush();
    }

    /// The objects for which that holds.
    pub(crate) fn filter(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Arc<Entry>> {
        self.0.pin().keys().filter(|found| wanted(&found.0)).map(|found| Arc::clone(&found.0)).collect()
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

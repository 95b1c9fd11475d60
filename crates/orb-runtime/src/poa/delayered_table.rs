//! The combined table of all operations of all objects: object key and operation name lead to object and
//! number.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use papaya::{Equivalent, Guard};

use crate::servant::active_object::ActiveObject;

/// Every operation of every active object. Keys and names are not copied: they belong to the objects.
#[derive(Default)]
pub(crate) struct Together(papaya::HashMap<Pair, ()>);

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
    pub(crate) fn get(&self, key: &[u8], operation: &[u8]) -> Option<(Arc<ActiveObject>, u16)> {
        let table = self.0.pin();
        let (pair, ()) = table.get_key_value(&Asked { key, operation })?;
        Some((Arc::clone(&pair.entry), pair.number))
    }

    /// Adds an object that is in its POA's table. Replaces an earlier object with the same key.
    pub(crate) fn insert(&self, entry: &Arc<ActiveObject>) {
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
    pub(crate) fn remove(&self, entry: &ActiveObject) {
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

//! Operations of objects in one table: an object key and a name lead to an object and a number.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use papaya::{Equivalent, Guard};

use super::entry::Entry;

/// Every operation of every active object. Nothing is kept twice: key and name are the object's.
#[derive(Default)]
pub(crate) struct Together(papaya::HashMap<Pair, ()>);

struct Pair {
    entry: Arc<Entry>,
    number: u16,
}

/// What a request asks for.
struct Asked<'a> {
    key: &'a [u8],
    operation: &'a [u8],
}

impl Together {
    pub(crate) fn get(&self, key: &[u8], operation: &[u8]) -> Option<(Arc<Entry>, u16)> {
        let table = self.0.pin();
        let (pair, ()) = table.get_key_value(&Asked { key, operation })?;
        Some((Arc::clone(&pair.entry), pair.number))
    }

    /// Adds an object that is in its POA's map, in place of the one before of its key.
    pub(crate) fn insert(&self, entry: &Arc<Entry>) {
        let table = self.0.pin();
        for (number, name) in (0..=u16::MAX).zip(entry.skeleton.operations().names) {
            let asked = Asked { key: entry.key(), operation: name.as_bytes() };
            // A key that is there stays the one that it is.
            table.remove(&asked);
            table.insert(Pair { entry: Arc::clone(entry), number }, ());
        }
        drop(table);
        if entry.is_gone() {
            // Who took it out may have looked before.
            self.remove(entry);
        }
    }

    /// Removes an object that is out of service, while no other can have its key.
    pub(crate) fn remove(&self, entry: &Entry) {
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

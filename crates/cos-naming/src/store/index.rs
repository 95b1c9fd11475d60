//! All bindings in memory, read without locks: lookups never wait for changes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use papaya::{Equivalent, HashMap};

use super::{Bound, ContextId, Key, Lookup};

/// The contents of every context of a store, for lookups.
///
/// A binding takes about 200 bytes in addition to its reference. One million bindings with references of 150
/// bytes take 350 MB.
#[derive(Default)]
pub(super) struct Index {
    contexts: HashMap<ContextId, ()>,
    bindings: HashMap<Place, Arc<Bound>>,
}

#[derive(PartialEq, Eq)]
struct Place(ContextId, Key);

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        PlaceRef(self.0, &self.1).hash(state);
    }
}

/// A [`Place`] that borrows its key.
#[derive(Hash)]
struct PlaceRef<'a>(ContextId, &'a Key);

impl Equivalent<Place> for PlaceRef<'_> {
    fn equivalent(&self, place: &Place) -> bool {
        self.0 == place.0 && *self.1 == place.1
    }
}

impl Index {
    pub(super) fn lookup(&self, context: ContextId, key: &Key) -> Lookup {
        match self.bindings.pin().get(&PlaceRef(context, key)) {
            Some(bound) => Lookup::Bound(Arc::clone(bound)),
            None if self.has(context) => Lookup::Free,
            None => Lookup::NoContext,
        }
    }

    pub(super) fn has(&self, context: ContextId) -> bool {
        self.contexts.pin().contains_key(&context)
    }

    pub(super) fn add_context(&self, context: ContextId) {
        self.contexts.pin().insert(context, ());
    }

    pub(super) fn remove_context(&self, context: ContextId) {
        self.contexts.pin().remove(&context);
    }

    pub(super) fn bind(&self, context: ContextId, key: Key, bound: Bound) {
        self.bindings.pin().insert(Place(context, key), Arc::new(bound));
    }

    /// Takes over the contents of another index. Returns the number of contexts and bindings that differed.
    ///
    /// Lookups continue meanwhile. Entries that both have are found all the time.
    pub(super) fn assign(&self, other: &Self) -> usize {
        let mut differences = 0;
        let (contexts, others) = (self.contexts.pin(), other.contexts.pin());
        for context in others.keys().filter(|context| !contexts.contains_key(*context)) {
            contexts.insert(*context, ());
            differences += 1;
        }
        let (bindings, new) = (self.bindings.pin(), other.bindings.pin());
        for (Place(context, key), bound) in &new {
            let here = bindings.get(&PlaceRef(*context, key));
            if here.is_none_or(|here| here.target != bound.target) {
                bindings.insert(Place(*context, key.clone()), Arc::clone(bound));
                differences += 1;
            }
        }
        for (place, _) in bindings.iter().filter(|(Place(at, key), _)| !new.contains_key(&PlaceRef(*at, key)))
        {
            bindings.remove(place);
            differences += 1;
        }
        for context in contexts.keys().filter(|context| !others.contains_key(*context)) {
            contexts.remove(context);
            differences += 1;
        }
        differences
    }

    pub(super) fn unbind(&self, context: ContextId, key: &Key) {
        self.bindings.pin().remove(&PlaceRef(context, key));
    }
}

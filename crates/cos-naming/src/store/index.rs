//! [`Index`], which holds all bindings in memory. Lookups need no lock, so they never wait for changes.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use papaya::{Equivalent, HashMap};

use super::{ContextId, Key, Lookup, StoredBinding};

/// All contexts and bindings of a store. A binding occupies about 200 bytes in addition to its reference.
#[derive(Default)]
pub(super) struct Index {
    contexts: HashMap<ContextId, ()>,
    bindings: HashMap<BindingId, Arc<StoredBinding>>,
}

#[derive(PartialEq, Eq)]
struct BindingId(ContextId, Key);

impl Hash for BindingId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        BindingIdRef(self.0, &self.1).hash(state);
    }
}

/// A [`BindingId`] that borrows its key.
#[derive(Hash)]
struct BindingIdRef<'a>(ContextId, &'a Key);

impl Equivalent<BindingId> for BindingIdRef<'_> {
    fn equivalent(&self, id: &BindingId) -> bool {
        self.0 == id.0 && *self.1 == id.1
    }
}

impl Index {
    pub(super) fn lookup(&self, context: ContextId, key: &Key) -> Lookup {
        match self.bindings.pin().get(&BindingIdRef(context, key)) {
            Some(bound) => Lookup::Bound(Arc::clone(bound)),
            None if self.has_context(context) => Lookup::NotBound,
            None => Lookup::NoContext,
        }
    }

    pub(super) fn has_context(&self, context: ContextId) -> bool {
        self.contexts.pin().contains_key(&context)
    }

    pub(super) fn add_context(&self, context: ContextId) {
        self.contexts.pin().insert(context, ());
    }

    pub(super) fn remove_context(&self, context: ContextId) {
        self.contexts.pin().remove(&context);
    }

    pub(super) fn bind(&self, context: ContextId, key: Key, bound: StoredBinding) {
        self.bindings.pin().insert(BindingId(context, key), Arc::new(bound));
    }

    /// Replaces the contents with those of `other`. Returns the number of contexts and bindings that
    /// differed. During this, concurrent lookups find all entries that are in both indexes.
    pub(super) fn replace_contents(&self, other: &Self) -> usize {
        let mut differences = 0;
        let (contexts, others) = (self.contexts.pin(), other.contexts.pin());
        for context in others.keys().filter(|context| !contexts.contains_key(*context)) {
            contexts.insert(*context, ());
            differences += 1;
        }
        let (bindings, new) = (self.bindings.pin(), other.bindings.pin());
        for (BindingId(context, key), bound) in &new {
            let current = bindings.get(&BindingIdRef(*context, key));
            if current.is_none_or(|current| current.target != bound.target) {
                bindings.insert(BindingId(*context, key.clone()), Arc::clone(bound));
                differences += 1;
            }
        }
        for (id, _) in bindings
            .iter()
            .filter(|(BindingId(context, key), _)| !new.contains_key(&BindingIdRef(*context, key)))
        {
            bindings.remove(id);
            differences += 1;
        }
        for context in contexts.keys().filter(|context| !others.contains_key(*context)) {
            contexts.remove(context);
            differences += 1;
        }
        differences
    }

    pub(super) fn unbind(&self, context: ContextId, key: &Key) {
        self.bindings.pin().remove(&BindingIdRef(context, key));
    }
}

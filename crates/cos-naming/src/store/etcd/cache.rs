//! A copy of the contents of etcd, maintained by the watch, from which lookups are answered.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::ops::Bound as Edge;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use zorb::cos_naming::BindingType;

use super::api::{Event, KeyValue, Long};
use super::keys::{Keys, Place, open};
use super::{Bound, ContextId, Key, Lookup, Page, PageLimit, StoreError, Target};

/// All entries below the prefix.
#[derive(Default)]
pub(super) struct Cache(RwLock<Content>);

#[derive(Default)]
pub(super) struct Content {
    contexts: HashSet<ContextId>,
    /// In the order of their keys, for pages.
    bindings: HashMap<ContextId, BTreeMap<Key, Entry>>,
}

/// A binding.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// `None` if its value was not written by a naming service.
    pub(super) bound: Option<Arc<Bound>>,
    /// The revision of its last change.
    pub(super) revision: Long,
    /// The lease with which it ends, or 0.
    pub(super) lease: Long,
    /// The mark of the change that made it.
    pub(super) mark: u128,
}

impl Entry {
    /// Decodes a binding received from etcd.
    pub(super) fn of(context: ContextId, key: &Key, kv: &KeyValue) -> Self {
        let (bound, mark) = match open(context, key, &kv.value.0) {
            Some((mark, target)) => (Some(Arc::new(Bound::new(target))), mark),
            None => {
                tracing::error!(%key, context = context.0, "a binding in etcd is not what was written");
                (None, 0)
            }
        };
        Self { bound, revision: kv.mod_revision, lease: kv.lease, mark }
    }

    /// Returns the target of the binding.
    pub(super) fn target(&self) -> Result<&Target, StoreError> {
        self.bound.as_ref().map(|bound| &bound.target).ok_or_else(damaged)
    }
}

#[cold]
fn damaged() -> StoreError {
    StoreError::new("the binding in etcd is not what was written; unbinding the name takes it away")
}

impl Content {
    pub(super) fn put(&mut self, keys: &Keys, kv: &KeyValue) {
        match keys.place(&kv.key.0) {
            Some(Place::Context(context)) => drop(self.contexts.insert(context)),
            Some(Place::Binding(context, key)) => {
                let entry = Entry::of(context, &key, kv);
                self.bindings.entry(context).or_default().insert(key, entry);
            }
            None => {}
        }
    }

    fn delete(&mut self, keys: &Keys, key: &[u8]) {
        match keys.place(key) {
            Some(Place::Context(context)) => drop(self.contexts.remove(&context)),
            Some(Place::Binding(context, key)) => {
                if let Some(bindings) = self.bindings.get_mut(&context) {
                    bindings.remove(&key);
                    if bindings.is_empty() {
                        self.bindings.remove(&context);
                    }
                }
            }
            None => {}
        }
    }
}

impl Cache {
    fn read(&self) -> RwLockReadGuard<'_, Content> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the whole contents.
    pub(super) fn replace(&self, content: Content) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = content;
    }

    /// Applies the events of one or several revisions atomically.
    pub(super) fn apply(&self, keys: &Keys, events: &[Event]) {
        let mut content = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            match event.kind.as_str() {
                "DELETE" => content.delete(keys, &event.kv.key.0),
                _ => content.put(keys, &event.kv),
            }
        }
    }

    pub(super) fn lookup(&self, context: ContextId, key: &Key) -> Result<Lookup, StoreError> {
        let content = self.read();
        match content.bindings.get(&context).and_then(|bindings| bindings.get(key)) {
            Some(entry) => entry.bound.clone().map(Lookup::Bound).ok_or_else(damaged),
            None if content.contexts.contains(&context) => Ok(Lookup::Free),
            None => Ok(Lookup::NoContext),
        }
    }

    pub(super) fn entry(&self, context: ContextId, key: &Key) -> Option<Entry> {
        self.read().bindings.get(&context)?.get(key).cloned()
    }

    pub(super) fn has(&self, context: ContextId) -> bool {
        self.read().contexts.contains(&context)
    }

    pub(super) fn has_bindings(&self, context: ContextId) -> bool {
        self.read().bindings.contains_key(&context)
    }

    pub(super) fn page(&self, context: ContextId, after: Option<&Key>, limit: PageLimit) -> Option<Page> {
        let content = self.read();
        if !content.contexts.contains(&context) {
            return None;
        }
        let Some(bindings) = content.bindings.get(&context) else { return Some(Page::default()) };
        let begin = after.map_or(Edge::Unbounded, Edge::Excluded);
        let all = bindings.range((begin, Edge::Unbounded));
        // A damaged binding is listed, too.
        let kind = |entry: &Entry| entry.target().map_or(BindingType::Nobject, Target::binding_type);
        let all = all.map(|(key, entry)| Ok::<_, Infallible>((key.clone(), kind(entry))));
        let Ok(page) = Page::of(all, limit);
        Some(page)
    }
}

/// Returns whether `target` is the same object. A repeated timed bind renews its lease only in this case.
pub(super) fn same_object(target: &Target, object: &Target) -> bool {
    let octets = |target: &Target| match target {
        Target::Object(octets) => Some(Bytes::clone(octets)),
        _ => None,
    };
    octets(target).is_some_and(|of| octets(object).is_some_and(|other| of == other))
}

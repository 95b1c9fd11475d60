//! [`Cache`], a copy of all names in etcd that a watch keeps up to date. Lookups use it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use zorb::cos_naming::BindingType;

use super::api::{Event, KeyValue, TextI64};
use super::keys::{KeyTarget, Keys, decode_value};
use super::{ContextId, Key, Lookup, Page, PageLimit, StoreError, StoredBinding, Target};

#[derive(Default)]
pub(super) struct Cache(RwLock<Content>);

#[derive(Default)]
pub(super) struct Content {
    contexts: HashSet<ContextId>,
    /// The bindings of each context, in the order of their keys. A context without bindings has no entry.
    bindings: HashMap<ContextId, BTreeMap<Key, Entry>>,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// `None` if the value in etcd is damaged.
    pub(super) binding: Option<Arc<StoredBinding>>,
    /// The revision of etcd in which the binding was last written.
    pub(super) revision: TextI64,
    /// The lease on which the binding depends, or 0.
    pub(super) lease: TextI64,
    /// The id of the change that wrote the binding.
    pub(super) change_id: u128,
}

impl Entry {
    pub(super) fn decode(context: ContextId, key: &Key, kv: &KeyValue) -> Self {
        let (binding, change_id) = match decode_value(context, key, &kv.value.0) {
            Some((change_id, target)) => (Some(Arc::new(StoredBinding::new(target))), change_id),
            None => {
                tracing::error!(%key, context = context.0, "a binding in etcd is damaged");
                (None, 0)
            }
        };
        Self { binding, revision: kv.mod_revision, lease: kv.lease, change_id }
    }

    pub(super) fn target(&self) -> Result<&Target, StoreError> {
        self.binding.as_ref().map(|binding| &binding.target).ok_or_else(damaged_binding)
    }
}

#[cold]
fn damaged_binding() -> StoreError {
    StoreError::broken("the binding in etcd is damaged; unbind the name to remove it")
}

impl Content {
    pub(super) fn put(&mut self, keys: &Keys, kv: &KeyValue) {
        match keys.decode(&kv.key.0) {
            Some(KeyTarget::Context(context)) => drop(self.contexts.insert(context)),
            Some(KeyTarget::Binding(context, key)) => {
                let entry = Entry::decode(context, &key, kv);
                self.bindings.entry(context).or_default().insert(key, entry);
            }
            None => {}
        }
    }

    fn delete(&mut self, keys: &Keys, key: &[u8]) {
        match keys.decode(key) {
            Some(KeyTarget::Context(context)) => drop(self.contexts.remove(&context)),
            Some(KeyTarget::Binding(context, key)) => {
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

    pub(super) fn replace(&self, content: Content) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = content;
    }

    /// Applies the events of one or more revisions in one step: concurrent lookups find all or none of them.
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
            Some(entry) => entry.binding.clone().map(Lookup::Bound).ok_or_else(damaged_binding),
            None if content.contexts.contains(&context) => Ok(Lookup::NotBound),
            None => Ok(Lookup::NoContext),
        }
    }

    pub(super) fn entry(&self, context: ContextId, key: &Key) -> Option<Entry> {
        self.read().bindings.get(&context)?.get(key).cloned()
    }

    pub(super) fn has_context(&self, context: ContextId) -> bool {
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
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let all = bindings.range((start, Bound::Unbounded));
        // List damaged bindings too, so that they can be found and unbound.
        let binding_type = |entry: &Entry| entry.target().map_or(BindingType::Nobject, Target::binding_type);
        let all = all.map(|(key, entry)| Ok::<_, Infallible>((key.clone(), binding_type(entry))));
        let Ok(page) = Page::from_bindings(all, limit);
        Some(page)
    }
}

/// Returns whether both targets are the same object, so that a repeated `bind_for` renews the lease.
pub(super) fn is_same_object(one: &Target, other: &Target) -> bool {
    matches!((one, other), (Target::Object(one), Target::Object(other)) if one == other)
}

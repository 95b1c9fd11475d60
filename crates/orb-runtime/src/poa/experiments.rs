//! Alternative strategies for looking up POAs and objects, for comparison (feature `experiments`).

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use giop_codec::giop::ObjectKey;
use giop_codec::ior::OperationNumbers;
use papaya::{Equivalent, Guard};

use crate::experiments::{Demux, ObjectDemux, OperationDemux, PathDemux};
use crate::object_key::{BootId, Key, KeyError, PoaPath, SlotId};
use crate::poa::active_object_map;
use crate::poa::object_adapter::{Located, ObjectAdapter};
use crate::poa::policies::Policies;
use crate::poa::policy::LifespanPolicy;
use crate::poa::slots::{ObjectLookup, SlotTable};
use crate::runtime::Shared;
use crate::servant::active_object::ActiveObject;
use crate::servant::poa_core::PoaCore;

pub(crate) struct Strategies {
    demux: Demux,
    /// The combined table of objects and operations, if [`PathDemux::DeLayered`] is configured.
    combined_table: Option<CombinedTable>,
}

impl Strategies {
    pub(crate) fn new(demux: Demux) -> Self {
        Self { demux, combined_table: (demux.path == PathDemux::DeLayered).then(CombinedTable::default) }
    }

    pub(crate) fn object_lookup(
        &self,
        boot: BootId,
        number: u32,
        (policies, path): (&Policies, PoaPath<'_>),
        poas: &SlotTable<PoaCore>,
    ) -> Result<ObjectLookup, KeyError> {
        let prefers_index = self.demux.objects == ObjectDemux::Active;
        let is_persistent = policies.lifespan == LifespanPolicy::Persistent;
        let lookup = if self.demux.path == PathDemux::Layered && !is_persistent {
            let key_prefix = Key::Layered { boot, number, path, id: &[] }.encode()?.into();
            let is_indexed = prefers_index && policies.can_be_indexed();
            ObjectLookup { key_prefix, is_indexed, ..ObjectLookup::default() }
        } else {
            ObjectLookup::new(boot, (policies, path), prefers_index, poas)?
        };
        Ok(ObjectLookup { objects: ObjectMap::new(self.demux.objects), ..lookup })
    }

    pub(crate) fn record_activation(&self, entry: &Arc<ActiveObject>) {
        if let Some(combined_table) = &self.combined_table {
            combined_table.insert(entry);
        }
    }

    pub(crate) fn remove_from_tables(&self, entry: &ActiveObject) {
        if let Some(combined_table) = &self.combined_table {
            combined_table.remove(entry);
        }
    }

    pub(crate) fn find_combined(&self, key: &[u8], operation: &[u8]) -> Option<(Arc<ActiveObject>, u16)> {
        let found = self.combined_table.as_ref()?.get(key, operation);
        found.filter(|(entry, _)| !entry.is_deactivated())
    }
}

impl ObjectAdapter {
    /// Looks up a key by the names of its POAs, from the root down. Returns `None` if the key has no names or
    /// comes from another run, or if [`PathDemux::Layered`] is not configured.
    pub(super) fn locate_layered<'a>(&self, key: &'a [u8]) -> Option<Located<'a>> {
        if self.strategies.demux.path != PathDemux::Layered {
            return None;
        }
        let (poa, id) = match Key::parse(key) {
            Ok(Key::Persistent { path, id }) => {
                let is_persistent =
                    |poa: &Arc<PoaCore>| poa.node().policies.lifespan == LifespanPolicy::Persistent;
                (self.find_poa(path).ok().filter(is_persistent), id)
            }
            Ok(Key::Layered { boot, number, path, id }) if boot == self.boot => {
                // The POA that has these names now need not be the one that created the key.
                let has_key = |poa: &Arc<PoaCore>| {
                    poa.node().number == number && key.starts_with(&poa.node().lookup.key_prefix)
                };
                let poa = self.find_poa(path).ok().filter(has_key);
                if let Some(poa) = poa.as_ref().filter(|poa| poa.is_indexed()) {
                    let slot = id.try_into().map(SlotId::from_bytes);
                    let found = slot.ok().and_then(|slot| self.object_at(slot, key));
                    return Some(found.map_or(Located::MissingObject(Arc::clone(poa), id), Located::Object));
                }
                (poa, id)
            }
            _ => return None,
        };
        let Some(poa) = poa else { return Some(Located::NotFound) };
        Some(poa.find(id).map_or(Located::MissingObject(poa, id), Located::Object))
    }
}

impl Shared {
    /// Returns the numbers of an object's operations for its reference. Returns `None` if
    /// [`OperationDemux::Numeric`] is not configured, or if the object is not active.
    pub(crate) fn operation_numbers(&self, key: &ObjectKey) -> Option<OperationNumbers> {
        if self.config.server.demux.operations != OperationDemux::Numeric {
            return None;
        }
        let entry = self.adapter().find(key.as_slice())?;
        entry.skeleton.operations().numbers(entry.skeleton.repository_ids())
    }
}

/// The objects of one POA, which are found by id with a hash table or a linear search.
#[derive(Default)]
pub(crate) struct ObjectMap {
    by_hash: active_object_map::ObjectMap,
    /// The same objects for linear search, if [`ObjectDemux::Linear`] is configured.
    search_list: Option<Box<SearchList>>,
}

/// Objects for linear search. Slots of removed objects are reused.
#[derive(Default)]
struct SearchList {
    slots: boxcar::Vec<ArcSwapOption<ActiveObject>>,
    used: Mutex<UsedSlots>,
}

/// The used and free slots of a [`SearchList`], for insertion and removal. Look-ups do not need them.
#[derive(Default)]
struct UsedSlots {
    /// The slot of each object, by the object's address.
    slot_of: HashMap<usize, usize>,
    free_slots: Vec<usize>,
}

impl ObjectMap {
    fn new(demux: ObjectDemux) -> Self {
        let search_list = (demux == ObjectDemux::Linear).then(Box::default);
        Self { by_hash: Default::default(), search_list }
    }

    pub(crate) fn get(&self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        self.search_list.as_ref().map_or_else(|| self.by_hash.get(id), |search_list| search_list.get(id))
    }

    /// Adds an object. Returns `false` if another object with the same id is in the map.
    pub(crate) fn insert(&self, entry: &Arc<ActiveObject>) -> bool {
        let added = self.by_hash.insert(entry);
        if added && let Some(search_list) = &self.search_list {
            search_list.push(entry);
        }
        added
    }

    pub(crate) fn remove(&self, id: &[u8]) {
        // Remove the object from the list first: while the hash map contains it, no other one can get its id.
        if let Some(search_list) = &self.search_list
            && let Some(found) = self.by_hash.get(id)
        {
            search_list.remove(&found);
        }
        self.by_hash.remove(id);
    }

    pub(crate) fn clear(&self) {
        if let Some(search_list) = &self.search_list {
            search_list.clear();
        }
        self.by_hash.clear();
    }

    pub(crate) fn filter(&self, wanted: impl Fn(&ActiveObject) -> bool) -> Vec<Arc<ActiveObject>> {
        self.by_hash.filter(wanted)
    }
}

impl SearchList {
    fn get(&self, id: &[u8]) -> Option<Arc<ActiveObject>> {
        self.slots.iter().find_map(|(_, slot)| slot.load().as_ref().filter(|entry| entry.id() == id).cloned())
    }

    fn used(&self) -> MutexGuard<'_, UsedSlots> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, entry: &Arc<ActiveObject>) {
        let mut used = self.used();
        let free = used.free_slots.pop();
        let at = free.unwrap_or_else(|| self.slots.push(ArcSwapOption::empty()));
        used.slot_of.insert(Arc::as_ptr(entry) as usize, at);
        if let Some(slot) = self.slots.get(at) {
            slot.store(Some(Arc::clone(entry)));
        }
    }

    fn remove(&self, entry: &Arc<ActiveObject>) {
        let mut used = self.used();
        let Some(at) = used.slot_of.remove(&(Arc::as_ptr(entry) as usize)) else { return };
        if let Some(slot) = self.slots.get(at) {
            // The caller holds another reference, so no servant is dropped under the lock.
            slot.store(None);
        }
        used.free_slots.push(at);
    }

    fn clear(&self) {
        self.slots.iter().for_each(|(_, slot)| slot.store(None));
        *self.used() = UsedSlots::default();
    }
}

/// A table with every operation of every active object, by object key and operation name. It contains no
/// copies of keys and names.
#[derive(Default)]
struct CombinedTable(papaya::HashMap<CombinedEntry, ()>);

struct CombinedEntry {
    entry: Arc<ActiveObject>,
    operation_number: u16,
}

struct CombinedKey<'a> {
    key: &'a [u8],
    operation: &'a [u8],
}

impl CombinedTable {
    fn get(&self, key: &[u8], operation: &[u8]) -> Option<(Arc<ActiveObject>, u16)> {
        let table = self.0.pin();
        let (pair, ()) = table.get_key_value(&CombinedKey { key, operation })?;
        Some((Arc::clone(&pair.entry), pair.operation_number))
    }

    /// Adds an object that is in its POA's table. Replaces an earlier object with the same key.
    fn insert(&self, entry: &Arc<ActiveObject>) {
        let table = self.0.pin();
        for (operation_number, name) in (0..=u16::MAX).zip(entry.skeleton.operations().names) {
            let key = CombinedKey { key: entry.key(), operation: name.as_bytes() };
            // `insert` alone would replace the value, but not the key, which contains the object.
            table.remove(&key);
            table.insert(CombinedEntry { entry: Arc::clone(entry), operation_number }, ());
        }
        drop(table);
        if entry.is_deactivated() {
            // The task that deactivated the object may have called `remove` before the insertion.
            self.remove(entry);
        }
    }

    /// Removes a deactivated object. Must be called before another object can have the same key.
    fn remove(&self, entry: &ActiveObject) {
        let guard = self.0.guard();
        for name in entry.skeleton.operations().names {
            let key = CombinedKey { key: entry.key(), operation: name.as_bytes() };
            let _ = self.0.remove_if(&key, |pair, ()| std::ptr::eq(&*pair.entry, entry), &guard);
        }
        guard.flush();
    }
}

impl CombinedEntry {
    fn key(&self) -> CombinedKey<'_> {
        let name = self.entry.skeleton.operations().names.get(usize::from(self.operation_number));
        CombinedKey { key: self.entry.key(), operation: name.map_or(&[], |name| name.as_bytes()) }
    }
}

impl CombinedKey<'_> {
    fn is(&self, other: &CombinedKey<'_>) -> bool {
        self.operation == other.operation && self.key == other.key
    }
}

impl Equivalent<CombinedEntry> for CombinedKey<'_> {
    fn equivalent(&self, pair: &CombinedEntry) -> bool {
        self.is(&pair.key())
    }
}

impl Hash for CombinedKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.key);
        state.write(self.operation);
    }
}

impl Hash for CombinedEntry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialEq for CombinedEntry {
    fn eq(&self, other: &Self) -> bool {
        self.key().is(&other.key())
    }
}

impl Eq for CombinedEntry {}

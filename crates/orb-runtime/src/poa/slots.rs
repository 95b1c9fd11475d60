//! Tables of objects and POAs that are looked up by an index in the object key, and the forms of keys.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use crate::object_key::{BootId, Key, KeyError, PoaPath, SlotId};
#[cfg(not(feature = "experiments"))]
use crate::poa::active_object_map::ObjectMap;
#[cfg(feature = "experiments")]
use crate::poa::experiments::ObjectMap;
use crate::poa::policies::Policies;
use crate::poa::policy::LifespanPolicy;
use crate::servant::poa_core::PoaCore;

/// A table whose slots are reused, each time with another generation. Reads take no lock.
pub(crate) struct SlotTable<T> {
    slots: boxcar::Vec<Slot<T>>,
    free_indexes: Mutex<VecDeque<u32>>,
}

pub(crate) struct Slot<T> {
    pub(crate) value: ArcSwapOption<T>,
    pub(crate) generation: AtomicU32,
    /// In the table of objects, the number of the POA for which the slot is reserved.
    pub(crate) poa_number: AtomicU32,
}

impl<T> SlotTable<T> {
    pub(crate) fn new() -> Self {
        Self { slots: boxcar::Vec::new(), free_indexes: Mutex::default() }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Slot<T>> {
        self.slots.get(index as usize)
    }

    /// Reserves an unused slot, and increments its generation.
    pub(crate) fn take(&self) -> SlotId {
        let reused = self.free_indexes.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let index = reused.unwrap_or_else(|| {
            let slot = Slot { value: ArcSwapOption::empty(), generation: 0.into(), poa_number: 0.into() };
            u32::try_from(self.slots.push(slot)).unwrap_or(u32::MAX)
        });
        let slot = self.get(index);
        let generation =
            slot.map_or(0, |slot| slot.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        SlotId { index, generation }
    }

    pub(crate) fn put(&self, index: u32, value: &Arc<T>) {
        if let Some(slot) = self.get(index) {
            slot.value.store(Some(Arc::clone(value)));
        }
    }

    pub(crate) fn free(&self, index: u32) {
        if let Some(slot) = self.get(index) {
            slot.value.store(None);
        }
        self.free_indexes.lock().unwrap_or_else(PoisonError::into_inner).push_back(index);
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = Arc<T>> {
        self.slots.iter().filter_map(|(_, slot)| slot.value.load_full())
    }
}

/// The form of the keys of one POA's objects, and the objects that are found by id.
#[derive(Default)]
pub(crate) struct ObjectLookup {
    /// The bytes of each key before the object id.
    pub(crate) key_prefix: Box<[u8]>,
    /// The POA's slot in the table of transient POAs, if the keys contain it.
    pub(crate) poa_slot: Option<SlotId>,
    /// Whether the keys contain the slots of the objects, so that `objects` is not used.
    pub(crate) is_indexed: bool,
    pub(crate) objects: ObjectMap,
}

impl ObjectLookup {
    /// Creates the form of the keys of a new POA. With `prefers_index`, objects are looked up by index if the
    /// policies allow it.
    pub(crate) fn new(
        boot: BootId,
        (policies, path): (&Policies, PoaPath<'_>),
        prefers_index: bool,
        poas: &SlotTable<PoaCore>,
    ) -> Result<Self, KeyError> {
        let (mut poa_slot, id) = (None, &[][..]);
        let is_indexed = prefers_index && policies.can_be_indexed();
        let key_prefix = if policies.lifespan == LifespanPolicy::Persistent {
            Key::Persistent { path, id }.encode()?
        } else if is_indexed {
            // In the key of an object, the object's slot follows, which is also its id.
            let slot = SlotId { index: 0, generation: 0 };
            let mut key = Key::Active { boot, slot }.encode()?;
            key.truncate(key.len() - slot.to_bytes().len());
            key
        } else {
            let poa = poas.take();
            poa_slot = Some(poa);
            Key::Transient { boot, poa, id }.encode()?
        };
        Ok(Self { key_prefix: key_prefix.into(), poa_slot, is_indexed, objects: ObjectMap::default() })
    }
}

//! Tables of objects and POAs that are looked up by an index in the object key.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use crate::object_key::{Boot, Key, KeyError, Path, Place};
#[cfg(not(feature = "experiments"))]
use crate::poa::active_object_map::ObjectMap;
#[cfg(feature = "experiments")]
use crate::poa::experiments::ObjectMap;
use crate::poa::policies::Policies;
use crate::poa::policy::LifespanPolicy;
use crate::servant::poa_gate::PoaGate;

/// A table whose slots are reused, each time with another generation. Reads take no lock.
pub(crate) struct Slots<T> {
    slots: boxcar::Vec<Slot<T>>,
    free: Mutex<VecDeque<u32>>,
}

pub(crate) struct Slot<T> {
    pub(crate) value: ArcSwapOption<T>,
    pub(crate) generation: AtomicU32,
    /// The number of the POA that uses the slot.
    pub(crate) owner: AtomicU32,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { slots: boxcar::Vec::new(), free: Mutex::default() }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Slot<T>> {
        self.slots.get(index as usize)
    }

    /// Reserves an unused slot, and increments its generation.
    pub(crate) fn take(&self) -> Place {
        let reused = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let index = reused.unwrap_or_else(|| {
            let slot = Slot { value: ArcSwapOption::empty(), generation: 0.into(), owner: 0.into() };
            u32::try_from(self.slots.push(slot)).unwrap_or(u32::MAX)
        });
        let slot = self.get(index);
        let generation =
            slot.map_or(0, |slot| slot.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        Place { index, generation }
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
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push_back(index);
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = Arc<T>> {
        self.slots.iter().filter_map(|(_, slot)| slot.value.load_full())
    }
}

/// How the keys of a POA's objects are formed, and the objects that are found by id.
#[derive(Default)]
pub(crate) struct Keys {
    /// The bytes of each key before the object id.
    pub(crate) prefix: Box<[u8]>,
    /// The POA's place in the table of transient POAs, if the keys contain it.
    pub(crate) place: Option<Place>,
    pub(crate) indexed: bool,
    pub(crate) objects: ObjectMap,
}

impl Keys {
    /// Returns the keys of a new POA. With `indexed`, objects are looked up by index if the policies allow
    /// it.
    pub(crate) fn new(
        boot: Boot,
        (policies, path): (&Policies, Path<'_>),
        indexed: bool,
        poas: &Slots<PoaGate>,
    ) -> Result<Self, KeyError> {
        let (mut place, id) = (None, &[][..]);
        let indexed = indexed && policies.is_indexed();
        let prefix = if policies.lifespan == LifespanPolicy::Persistent {
            Key::Persistent { path, id }.encode()?
        } else if indexed {
            // The place of an object, which is its id, follows in its key.
            let place = Place { index: 0, generation: 0 };
            let mut key = Key::Active { boot, place }.encode()?;
            key.truncate(key.len() - place.to_bytes().len());
            key
        } else {
            let poa = poas.take();
            place = Some(poa);
            Key::Transient { boot, poa, id }.encode()?
        };
        Ok(Self { prefix: prefix.into(), place, indexed, objects: ObjectMap::default() })
    }
}

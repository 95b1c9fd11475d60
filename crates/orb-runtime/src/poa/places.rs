//! The places of objects and POAs in the tables that keys index.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use crate::object_key::{Boot, Key, NoKey, Path, Place};
#[cfg(not(feature = "experiments"))]
use crate::poa::active_object_map::ObjectMap;
#[cfg(feature = "experiments")]
use crate::poa::experiments::ObjectMap;
use crate::poa::policies::Policies;
use crate::poa::policy::LifespanPolicy;
use crate::servant::poa_gate::PoaGate;

/// A table whose places are used again, each time with another generation. Reads take no lock.
pub(crate) struct Slots<T> {
    slots: boxcar::Vec<Slot<T>>,
    free: Mutex<VecDeque<u32>>,
}

pub(crate) struct Slot<T> {
    pub(crate) held: ArcSwapOption<T>,
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

    /// Takes an unused place, with the next generation.
    pub(crate) fn take(&self) -> Place {
        let reused = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let index = reused.unwrap_or_else(|| {
            let slot = Slot { held: ArcSwapOption::empty(), generation: 0.into(), owner: 0.into() };
            u32::try_from(self.slots.push(slot)).unwrap_or(u32::MAX)
        });
        let slot = self.get(index);
        let generation =
            slot.map_or(0, |slot| slot.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        Place { index, generation }
    }

    /// Publishes a value at a place that was taken.
    pub(crate) fn put(&self, index: u32, value: &Arc<T>) {
        if let Some(slot) = self.get(index) {
            slot.held.store(Some(Arc::clone(value)));
        }
    }

    /// Empties a place, which may then be taken again.
    pub(crate) fn free(&self, index: u32) {
        if let Some(slot) = self.get(index) {
            slot.held.store(None);
        }
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push_back(index);
    }

    /// Returns all values.
    pub(crate) fn values(&self) -> impl Iterator<Item = Arc<T>> {
        self.slots.iter().filter_map(|(_, slot)| slot.held.load_full())
    }
}

/// The keys of a POA's objects, and the table in which they are found.
#[derive(Default)]
pub(crate) struct Keys {
    /// The prefix of the keys. The object id follows it.
    pub(crate) prefix: Box<[u8]>,
    /// The POA's place if the keys contain it.
    pub(crate) place: Option<Place>,
    /// Whether objects are looked up by index, with ids that are made of index and generation.
    pub(crate) indexed: bool,
    /// The objects that are looked up by id.
    pub(crate) objects: ObjectMap,
}

impl Keys {
    /// Returns the keys of a new POA. `indexed`: objects are looked up by index if the policies allow it.
    pub(crate) fn new(
        boot: Boot,
        (policies, path): (&Policies, Path<'_>),
        indexed: bool,
        poas: &Slots<PoaGate>,
    ) -> Result<Self, NoKey> {
        let (mut place, id) = (None, &[][..]);
        let indexed = indexed && policies.is_indexed();
        let prefix = if policies.lifespan == LifespanPolicy::Persistent {
            Key::Persistent { path, id }.encode()?
        } else if indexed {
            active_prefix(boot).into()
        } else {
            let poa = poas.take();
            place = Some(poa);
            Key::Transient { boot, poa, id }.encode()?
        };
        Ok(Self { prefix: prefix.into(), place, indexed, objects: ObjectMap::default() })
    }
}

pub(crate) fn active_prefix(boot: Boot) -> [u8; 12] {
    let mut prefix = [0; 12];
    let place = Place { index: 0, generation: 0 };
    for (to, from) in prefix.iter_mut().zip(Key::Active { boot, place }.encode().unwrap_or_default()) {
        *to = from;
    }
    prefix
}

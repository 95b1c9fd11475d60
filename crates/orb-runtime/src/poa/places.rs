//! The places of objects and POAs in the tables that keys index.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use crate::experiments::{Demux, PathDemux};
use crate::object_key::{self, Boot, Key, Path, Place};
use crate::poa::policies::Policies;
use crate::poa::policy::LifespanPolicy;
use crate::servant::poa_gate::PoaGate;

pub(crate) struct Slot<T> {
    pub(crate) held: ArcSwapOption<T>,
    pub(crate) generation: AtomicU32,
    /// The number of the POA that uses the slot.
    pub(crate) owner: AtomicU32,
}

/// Returns the prefix of the keys of a POA's objects, and the POA's place if the keys contain it.
pub(crate) fn start_of_keys(
    boot: Boot,
    demux: Demux,
    (number, policies, path): (u32, &Policies, Path<'_>),
    place: impl FnOnce() -> Place,
) -> Result<(Box<[u8]>, Option<Place>), object_key::NoKey> {
    let (mut taken, id) = (None, &[][..]);
    let start = if policies.lifespan == LifespanPolicy::Persistent {
        Key::Persistent { path, id }.encode()?
    } else if demux.path == PathDemux::Layered {
        Key::Layered { boot, number, path, id }.encode()?
    } else if policies.is_indexed(demux.objects) {
        active_prefix(boot).into()
    } else {
        let poa = place();
        taken = Some(poa);
        Key::Transient { boot, poa, id }.encode()?
    };
    Ok((start.into(), taken))
}

/// Publishes a POA at its place, if it has one.
pub(crate) fn place_poa(poas: &boxcar::Vec<Slot<PoaGate>>, poa: &Arc<PoaGate>) {
    if let Some(slot) = poa.node().place.and_then(|place| poas.get(place.index as usize)) {
        slot.held.store(Some(Arc::clone(poa)));
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

/// Takes an unused place, with the next generation.
pub(crate) fn take_place<T>(slots: &boxcar::Vec<Slot<T>>, free: &Mutex<VecDeque<u32>>) -> Place {
    let reused = free.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let index = reused.unwrap_or_else(|| {
        let slot = Slot { held: ArcSwapOption::empty(), generation: 0.into(), owner: 0.into() };
        u32::try_from(slots.push(slot)).unwrap_or(u32::MAX)
    });
    let slot = slots.get(index as usize);
    let generation = slot.map_or(0, |slot| slot.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
    Place { index, generation }
}

//! Where requests find their objects.
//!
//! A key that the ORB made carries an index and a generation, so it leads to its entry without a search, and a stale
//! one to nothing. Plain keys (`corbaloc:.../Account`) go through a concurrent hash map. Both are read without locks.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use giop_proto::Streams;
use tokio::sync::Semaphore;

use super::entry::{ById, Entry, NO_SLOT, RunMode};
use super::skeleton::Skeleton;
use crate::poa::core::PoaCore;
use crate::poa::manager::{ManagerCore, PoaManagerState};

/// How keys made by the ORB start: no text, so that they never meet a plain key.
const MAGIC: [u8; 4] = [0xfb, b'z', b'o', 1];
const ID_AT: usize = 4 + 8;
const KEY_LEN: usize = ID_AT + 4 + 4;

/// The objects of one ORB.
pub(crate) struct Adapter {
    /// Distinguishes the keys of this run from those of an earlier one.
    boot: [u8; 8],
    slots: boxcar::Vec<Slot>,
    free: Mutex<VecDeque<u32>>,
    active: AtomicUsize,
    /// An object with streamed operations was activated.
    streams: AtomicBool,
    root: Arc<PoaCore>,
    /// Of the objects under plain keys.
    plain: Arc<PoaCore>,
}

struct Slot {
    entry: ArcSwapOption<Entry>,
    generation: AtomicU32,
}

/// Why a plain key can not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRefused {
    /// Another object is active under it.
    InUse,
    /// It looks like one that the ORB makes.
    Reserved,
}

impl Streams for Adapter {
    fn any(&self) -> bool {
        self.streams.load(Ordering::Relaxed)
    }

    fn streams(&self, key: &[u8], operation: &[u8]) -> bool {
        let found = self.find(key);
        found.is_some_and(|entry| entry.skeleton.streamed().iter().any(|name| name.as_bytes() == operation))
    }
}

impl Adapter {
    pub(crate) fn new(boot: [u8; 8], blocking_threads: usize) -> Self {
        let threads = Arc::new(Semaphore::new(blocking_threads));
        let manager = ManagerCore::new("RootPOAManager", PoaManagerState::Active);
        let poa = |name| PoaCore::new(name, &manager, Arc::clone(&threads));
        Self {
            boot,
            slots: boxcar::Vec::new(),
            free: Mutex::new(VecDeque::new()),
            active: AtomicUsize::new(0),
            streams: AtomicBool::new(false),
            root: poa("RootPOA"),
            plain: poa("plain keys"),
        }
    }

    /// How many objects are active.
    pub(crate) fn len(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    pub(crate) fn root(&self) -> &Arc<PoaCore> {
        &self.root
    }

    /// Activates under a plain key.
    pub(crate) fn activate_named(
        &self,
        name: &[u8],
        skeleton: Arc<dyn Skeleton>,
        mode: RunMode,
    ) -> Result<Arc<Entry>, KeyRefused> {
        if name.starts_with(&MAGIC) {
            return Err(KeyRefused::Reserved);
        }
        self.note(&*skeleton);
        let entry = Arc::new(Entry::new(name, 0, NO_SLOT, Arc::clone(&self.plain), (skeleton, mode)));
        if !self.plain.objects.pin().insert(ById(Arc::clone(&entry))) {
            return Err(KeyRefused::InUse);
        }
        self.active.fetch_add(1, Ordering::Relaxed);
        Ok(entry)
    }

    /// Activates under a key of the ORB's.
    pub(crate) fn activate(&self, skeleton: Arc<dyn Skeleton>, mode: RunMode) -> Arc<Entry> {
        self.note(&*skeleton);
        self.active.fetch_add(1, Ordering::Relaxed);
        let reused = self.free().pop_front();
        let index = reused.unwrap_or_else(|| {
            let slot = Slot { entry: ArcSwapOption::empty(), generation: 0.into() };
            u32::try_from(self.slots.push(slot)).unwrap_or(u32::MAX)
        });
        let slot = self.slots.get(index as usize);
        let generation =
            slot.map_or(0, |slot| slot.generation.fetch_add(1, Ordering::Relaxed).wrapping_add(1));
        let mut key = Vec::with_capacity(KEY_LEN);
        key.extend_from_slice(&MAGIC);
        key.extend_from_slice(&self.boot);
        key.extend_from_slice(&index.to_be_bytes());
        key.extend_from_slice(&generation.to_be_bytes());
        let entry = Arc::new(Entry::new(&key, ID_AT, index, Arc::clone(&self.root), (skeleton, mode)));
        if let Some(slot) = slot {
            slot.entry.store(Some(Arc::clone(&entry)));
        }
        entry
    }

    /// The object of that key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Arc<Entry>> {
        if let Some((head, tail)) = key.split_first_chunk::<ID_AT>()
            && head.starts_with(&MAGIC)
        {
            let index = tail.first_chunk::<4>().map(|octets| u32::from_be_bytes(*octets))?;
            let entry = self.slots.get(index as usize)?.entry.load();
            // The whole key is compared: boot stamp and generation with it.
            return entry.as_ref().filter(|entry| entry.key() == key).map(Arc::clone);
        }
        self.plain.objects.pin().get(key).map(|found| Arc::clone(&found.0))
    }

    /// Whether an object can be activated under that key.
    pub(crate) fn may_come(&self, key: &[u8]) -> bool {
        !key.starts_with(&MAGIC)
    }

    /// Takes an object out of the map. Requests under way go on.
    pub(crate) fn deactivate(&self, entry: &Entry) -> bool {
        if !entry.retire() {
            return false;
        }
        if entry.slot == NO_SLOT {
            entry.poa.objects.pin().remove(entry.id());
        } else {
            if let Some(slot) = self.slots.get(entry.slot as usize) {
                slot.entry.store(None);
            }
            self.free().push_back(entry.slot);
        }
        self.active.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Waits until none of the POA's objects has a request under way that is there now.
    pub(crate) async fn idle(&self, poa: &Arc<PoaCore>) {
        for entry in self.busy(poa) {
            entry.idle().await;
        }
    }

    /// The POA's objects with requests under way.
    fn busy(&self, poa: &Arc<PoaCore>) -> Vec<Arc<Entry>> {
        let mut busy: Vec<_> = poa
            .objects
            .pin()
            .iter()
            .map(|found| Arc::clone(&found.0))
            .filter(|entry| entry.is_busy())
            .collect();
        let slots = self.slots.iter().filter_map(|(_, slot)| slot.entry.load_full());
        busy.extend(slots.filter(|entry| entry.is_busy() && Arc::ptr_eq(&entry.poa, poa)));
        busy
    }

    fn note(&self, skeleton: &dyn Skeleton) {
        if !skeleton.streamed().is_empty() {
            self.streams.store(true, Ordering::Relaxed);
        }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, VecDeque<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("active", &self.len()).finish_non_exhaustive()
    }
}

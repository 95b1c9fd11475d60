//! The active object map: object keys to servants.
//!
//! A key that the ORB made carries an index and a generation, so it leads to its entry without a search, and a stale
//! one to nothing. Plain keys (`corbaloc:.../Account`) go through a concurrent hash map. Both are read without locks.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use giop_codec::giop::ObjectKey;
use giop_proto::Streams;
use tokio::sync::{Notify, Semaphore};

use super::skeleton::Skeleton;

/// How keys made by the ORB start: no text, so that they never meet a plain key.
const MAGIC: [u8; 4] = [0xfb, b'z', b'o', 1];
const KEY_LEN: usize = 4 + 8 + 4 + 4;

/// The objects of one ORB.
pub(crate) struct Adapter {
    /// Distinguishes the keys of this run from those of an earlier one.
    boot: [u8; 8],
    slots: boxcar::Vec<Slot>,
    named: papaya::HashMap<Bytes, Arc<Entry>>,
    free: Mutex<VecDeque<u32>>,
    active: AtomicUsize,
    /// An object with streamed operations was activated.
    streams: AtomicBool,
    blocking: Arc<Semaphore>,
}

struct Slot {
    entry: ArcSwapOption<Entry>,
    generation: std::sync::atomic::AtomicU32,
}

/// How the requests of an object are run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunMode {
    /// On a bounded pool of threads of their own.
    pub(crate) blocking: bool,
    /// Each in a task of its own.
    pub(crate) spawned: bool,
    /// A oneway need not be done before the object's next request starts.
    pub(crate) concurrent: bool,
}

/// An activated object.
pub(crate) struct Entry {
    pub(crate) key: ObjectKey,
    pub(crate) skeleton: Arc<dyn Skeleton>,
    pub(crate) mode: RunMode,
    pub(crate) threads: Arc<Semaphore>,
    index: Option<u32>,
    /// [`GONE`], and how many requests are under way.
    state: AtomicUsize,
    idle: Notify,
}

/// The object is out of the map: nothing enters it any more. In one word with the count, so that whoever waits for the last
/// request misses none that was just about to start.
const GONE: usize = 1 << (usize::BITS - 1);

/// Keeps an entry's count of requests under way.
pub(crate) struct InFlight<E: Deref<Target = Entry> = Arc<Entry>>(E);

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
        Self {
            boot,
            slots: boxcar::Vec::new(),
            named: papaya::HashMap::new(),
            free: Mutex::new(VecDeque::new()),
            active: AtomicUsize::new(0),
            streams: AtomicBool::new(false),
            blocking: Arc::new(Semaphore::new(blocking_threads)),
        }
    }

    /// How many objects are active.
    pub(crate) fn len(&self) -> usize {
        self.active.load(Ordering::Relaxed)
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
        let key = ObjectKey::from(name);
        let entry = Arc::new(self.entry(key.clone(), skeleton, mode, None));
        match self.named.pin().try_insert(key.into_bytes(), Arc::clone(&entry)) {
            Ok(_) => {
                self.active.fetch_add(1, Ordering::Relaxed);
                Ok(entry)
            }
            Err(_) => Err(KeyRefused::InUse),
        }
    }

    /// Activates under a key of the ORB's.
    pub(crate) fn activate(&self, skeleton: Arc<dyn Skeleton>, mode: RunMode) -> Arc<Entry> {
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
        let entry = Arc::new(self.entry(key.into(), skeleton, mode, Some(index)));
        if let Some(slot) = slot {
            slot.entry.store(Some(Arc::clone(&entry)));
        }
        entry
    }

    /// The object of that key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Arc<Entry>> {
        if let Some((head, tail)) = key.split_first_chunk::<12>()
            && head.starts_with(&MAGIC)
        {
            let index = tail.first_chunk::<4>().map(|octets| u32::from_be_bytes(*octets))?;
            let entry = self.slots.get(index as usize)?.entry.load();
            // The whole key is compared: boot stamp and generation with it.
            return entry.as_ref().filter(|entry| entry.key.as_slice() == key).map(Arc::clone);
        }
        self.named.pin().get(key).map(Arc::clone)
    }

    /// Whether an object can be activated under that key.
    pub(crate) fn may_come(&self, key: &[u8]) -> bool {
        !key.starts_with(&MAGIC)
    }

    /// Takes an object out of the map. Requests under way go on.
    pub(crate) fn deactivate(&self, entry: &Entry) -> bool {
        if entry.state.fetch_or(GONE, Ordering::AcqRel) & GONE != 0 {
            return false;
        }
        match entry.index {
            Some(index) => {
                if let Some(slot) = self.slots.get(index as usize) {
                    slot.entry.store(None);
                }
                self.free().push_back(index);
            }
            None => {
                self.named.pin().remove(entry.key.as_slice());
            }
        }
        self.active.fetch_sub(1, Ordering::Relaxed);
        true
    }

    fn entry(&self, key: ObjectKey, skeleton: Arc<dyn Skeleton>, mode: RunMode, index: Option<u32>) -> Entry {
        if !skeleton.streamed().is_empty() {
            self.streams.store(true, Ordering::Relaxed);
        }
        Entry {
            key,
            skeleton,
            mode,
            threads: Arc::clone(&self.blocking),
            index,
            state: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, VecDeque<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Whether the object is no longer in the map.
    pub(crate) fn is_gone(&self) -> bool {
        self.state.load(Ordering::Acquire) & GONE != 0
    }

    /// Counts a request as under way until the guard is dropped; `None`: the object is gone.
    #[inline]
    pub(crate) fn enter(&self) -> Option<InFlight<&Self>> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        let entered = InFlight(self);
        (before & GONE == 0).then_some(entered)
    }

    /// The same with a guard that may outlive the borrow.
    pub(crate) fn enter_owned(self: &Arc<Self>) -> Option<InFlight> {
        let entered = self.stay();
        (!self.is_gone()).then_some(entered)
    }

    /// Counts a request that has entered once more, whatever became of the object since.
    pub(crate) fn stay(self: &Arc<Self>) -> InFlight {
        self.state.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }

    /// Waits until no request is under way.
    pub(crate) async fn idle(&self) {
        loop {
            let notified = self.idle.notified();
            if self.state.load(Ordering::Acquire) & !GONE == 0 {
                return;
            }
            notified.await;
        }
    }
}

impl InFlight {
    /// Whether it counts for that entry.
    #[inline]
    pub(crate) fn is(&self, entry: &Arc<Entry>) -> bool {
        Arc::ptr_eq(&self.0, entry)
    }
}

impl<E: Deref<Target = Entry>> Drop for InFlight<E> {
    fn drop(&mut self) {
        if self.0.state.fetch_sub(1, Ordering::AcqRel) == GONE | 1 {
            self.0.idle.notify_waiters();
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("key", &self.key).field("ids", &self.skeleton.repository_ids()).finish()
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("active", &self.len()).finish_non_exhaustive()
    }
}

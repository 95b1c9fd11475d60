//! Receive buffers that are allocated and faulted in once, and used again.
//!
//! A [`BufferPool`] keeps a *master* handle of every buffer that it gave out. A buffer is free again as soon as
//! the master is its only handle, so nobody has to give anything back: dropping the last view of a message is
//! enough. Taking a free buffer allocates nothing, and its octets stay initialised, so no read ever needs
//! uninitialised memory (and the crate no `unsafe`).

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};

/// The alignment of the first octet of every buffer. A message that starts there has all its CDR values at
/// addresses that agree with their CDR offset modulo 8.
pub const BASE_ALIGN: usize = 64;

/// The size of the smallest class: the read window for small messages.
pub const WINDOW: usize = 64 * 1024;

/// Four classes for each power of two from 64 KiB to 1 GiB.
const CLASSES: usize = 4 * 15;

/// How many parked masters of a class are looked at before a new buffer is made.
const PROBES: usize = 8;

/// A recycling pool of receive buffers in size classes.
#[derive(Debug)]
pub struct BufferPool {
    classes: Vec<Mutex<VecDeque<Bytes>>>,
    cap: usize,
    held: AtomicUsize,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What a [`BufferPool`] counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStats {
    /// Octets of all pooled buffers, free ones and ones that views still pin.
    pub held: usize,
    /// The most octets that the pool may hold.
    pub cap: usize,
    /// Buffers that were taken without an allocation.
    pub hits: u64,
    /// Buffers that had to be allocated.
    pub misses: u64,
}

/// An exclusively owned buffer, all of it initialised. It goes back by [`BufferPool::share`] or
/// [`BufferPool::give_back`]; one that is just dropped stays charged to the pool.
#[derive(Debug)]
pub struct Buffer {
    mem: BytesMut,
    base: usize,
    pooled: bool,
}

impl BufferPool {
    /// A pool that holds `cap` octets at the most; buffers beyond that are allocated and freed one by one.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        let classes = (0..CLASSES).map(|_| Mutex::new(VecDeque::new())).collect();
        Self { classes, cap, held: AtomicUsize::new(0), hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// A buffer of `size` octets or more.
    #[must_use]
    pub fn take(&self, size: usize) -> Buffer {
        let (class, size) = class_of(size);
        if let Some(list) = self.classes.get(class) {
            let mut list = lock(list);
            for _ in 0..list.len().min(PROBES) {
                let Some(master) = list.pop_back() else { break };
                match master.try_into_mut() {
                    Ok(mem) => {
                        self.hits.fetch_add(1, Ordering::Relaxed);
                        return Buffer { base: base_of(&mem), mem, pooled: true };
                    }
                    Err(pinned) => list.push_front(pinned),
                }
            }
        }
        self.allocate(class, size)
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        PoolStats {
            held: self.held.load(Ordering::Relaxed),
            cap: self.cap,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// Makes the buffer shareable. The pool keeps a handle, by which it gets the buffer back.
    #[must_use]
    pub fn share(&self, buffer: Buffer) -> Bytes {
        let Buffer { mem, base, pooled } = buffer;
        let capacity = mem.len();
        let master = mem.freeze();
        let view = master.slice(base..);
        if pooled {
            self.park(capacity, master);
        }
        view
    }

    /// Takes a buffer back that was never shared.
    pub fn give_back(&self, buffer: Buffer) {
        if buffer.pooled {
            self.park(buffer.mem.len(), buffer.mem.freeze());
        }
    }

    fn park(&self, capacity: usize, master: Bytes) {
        let (class, _) = class_of(capacity - BASE_ALIGN);
        if let Some(list) = self.classes.get(class) {
            lock(list).push_back(master);
        }
    }

    #[cold]
    fn allocate(&self, class: usize, size: usize) -> Buffer {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let capacity = size + BASE_ALIGN;
        let room = |held: usize| held.checked_add(capacity).filter(|sum| *sum <= self.cap);
        let pooled =
            class < CLASSES && self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok();
        // Splitting makes the buffer reference counted from the start: freezing it and turning it back are then
        // free of allocations for good.
        let mut mem = BytesMut::zeroed(capacity + 1);
        drop(mem.split_off(capacity));
        Buffer { base: base_of(&mem), mem, pooled }
    }
}

impl Buffer {
    /// How many octets it takes, counted from its aligned base.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.mem.len() - self.base
    }

    /// All its octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.mem.get(self.base..).unwrap_or_default()
    }

    /// All its octets, to be written.
    #[must_use]
    pub fn octets_mut(&mut self) -> &mut [u8] {
        self.mem.get_mut(self.base..).unwrap_or_default()
    }
}

fn base_of(mem: &BytesMut) -> usize {
    // An address taken as a number: nothing is read through it.
    (mem.as_ptr() as usize).wrapping_neg() % BASE_ALIGN
}

/// The index and the size of the smallest class that holds `size` octets. Sizes past the largest class get an
/// index behind the last: they are never pooled.
fn class_of(size: usize) -> (usize, usize) {
    let size = size.max(WINDOW);
    let power = size.ilog2() as usize; // 2^power <= size
    let quarter = 1usize << (power - 2);
    let steps = (size - (1 << power)).div_ceil(quarter);
    (4 * (power - WINDOW.ilog2() as usize) + steps, (1usize << power) + steps * quarter)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A list of handles stays valid wherever a panic struck.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_promise() {
        for size in [0, 1, WINDOW, WINDOW + 1, 100_000, 1 << 20, (1 << 20) + 12, (1 << 24) + 5, 1 << 30] {
            let (class, rounded) = class_of(size);
            assert!(rounded >= size);
            assert!(rounded <= size.max(WINDOW) * 5 / 4);
            assert_eq!(class_of(rounded), (class, rounded), "{size}");
        }
    }

    #[test]
    fn dropped_views_make_the_buffer_free_again() {
        let pool = BufferPool::new(1 << 20);
        let first = pool.share(pool.take(1000));
        let address = first.as_ptr();
        assert_eq!(address as usize % BASE_ALIGN, 0);
        let view = first.slice(10..20);
        drop(first);
        let other = pool.share(pool.take(1000));
        assert_ne!(other.as_ptr(), address, "the view pins the first buffer");
        drop((view, other));
        for _ in 0..4 {
            let again = pool.share(pool.take(1000));
            let unshared = pool.take(1000);
            assert_ne!(again.as_ptr(), unshared.octets().as_ptr());
            pool.give_back(unshared);
        }
        assert_eq!(pool.stats().misses, 2);
    }

    #[test]
    fn past_the_cap_buffers_are_not_kept() {
        let pool = BufferPool::new(WINDOW);
        let buffer = pool.take(10);
        assert_eq!(pool.stats().held, 0);
        drop(pool.share(buffer));
        drop(pool.take(10));
        assert_eq!(pool.stats().misses, 2);
    }
}

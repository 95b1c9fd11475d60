//! Receive buffers that are allocated once and then reused.
//!
//! When a buffer is given back, the [`BufferPool`] keeps a handle of it, which is called the *master*. Views
//! of the buffer are further handles. The buffer is free as soon as the master is the only handle. Therefore
//! the buffer of a message is free when the last view of the message is dropped.
//!
//! Reusing a buffer allocates nothing. Its bytes stay initialised, so that this crate needs no `unsafe`. A
//! new buffer for a large message reserves address space for the whole message, but is initialised only as
//! memory is granted. Therefore bytes that never arrive occupy no memory.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};

/// The alignment in bytes of the first byte of every buffer. If a message starts there, the address of each
/// of its values is equal to the CDR offset of the value, modulo 8.
pub const BASE_ALIGN: usize = 64;

/// The size in bytes of the smallest buffers, into which small messages are read. They are called windows.
pub const WINDOW_SIZE: usize = 64 * 1024;

/// The number of size classes: four for each power of two from 64 KiB to 1 GiB.
const CLASS_COUNT: usize = 4 * 15;

/// The maximum number of masters of a size class that are examined before a new buffer is allocated.
const MAX_PROBES: usize = 8;

/// The maximum number of connections that keep their window between reads.
const MAX_KEPT_WINDOWS: usize = 64;

/// A pool of receive buffers, which are sorted into classes by their sizes.
#[derive(Default)]
pub struct BufferPool {
    classes: Vec<Mutex<SizeClass>>,
    /// The maximum number of bytes that the pool may hold.
    cap: usize,
    held: AtomicUsize,
    outside: AtomicUsize,
    /// The number of bytes queued for peers by connections with large queues.
    queued_bytes: AtomicUsize,
    /// The number of bytes of replies queued by connections with large queues of replies.
    queued_reply_bytes: AtomicUsize,
    /// True while a connection may use memory beyond the cap.
    is_overdrawn: AtomicBool,
    kept_windows: AtomicUsize,
    /// The number of buffers that were allocated.
    misses: AtomicU64,
}

#[derive(Default)]
struct SizeClass {
    masters: VecDeque<Bytes>,
    /// The number of buffers that were reused.
    hits: u64,
    /// True if a buffer was taken or returned since the last [`trim`](BufferPool::trim).
    is_used: bool,
}

/// The state of a [`BufferPool`], and its counters since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStats {
    /// The number of bytes of all pooled buffers, whether they are free or not.
    pub held: usize,
    /// The part of `held` that is free. All of it is free if nothing is connected or in use.
    pub free: usize,
    /// The number of bytes of received data that is not in pooled buffers but counts against the cap: values
    /// decoded from requests that are being served, and pieces of incomplete messages.
    pub outside: usize,
    /// The number of bytes queued for peers by connections with more than 64 KiB queued. They do not count
    /// against the cap together with received data, but are compared with it separately.
    pub queued: usize,
    /// The maximum number of bytes that the pool may hold.
    pub cap: usize,
    /// The number of buffers that were reused.
    pub hits: u64,
    /// The number of buffers that were allocated.
    pub misses: u64,
}

/// A buffer of a [`BufferPool`]: either writable, or frozen so that there may be views of it.
///
/// If it is dropped, but not given to `share` or `give_back` of the pool, it stays charged.
#[derive(Debug, Default)]
pub struct Buffer {
    mem: BufferMemory,
    /// The offset of the first aligned byte, at which the usable bytes begin.
    base: usize,
    /// The capacity in bytes, including the bytes before `base`.
    capacity: usize,
    /// The number of bytes charged to the pool, which keeps only buffers that are completely charged.
    charged: usize,
}

enum BufferMemory {
    Owned(BytesMut),
    Frozen(Bytes),
}

/// The output omits the contents of the buffers, which can be megabytes of application data.
impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("cap", &self.cap)
            .field("held", &self.held)
            .field("outside", &self.outside)
            .field("queued_bytes", &self.queued_bytes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BufferMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owned(bytes) => write!(f, "Owned({} bytes)", bytes.len()),
            Self::Frozen(bytes) => write!(f, "Frozen({} bytes)", bytes.len()),
        }
    }
}

impl BufferPool {
    /// Creates a pool that holds at most `cap` bytes.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self { classes: (0..CLASS_COUNT).map(|_| Mutex::default()).collect(), cap, ..Self::default() }
    }

    /// Returns a buffer of at least `size` bytes, which is freed after use if the cap is exceeded.
    #[must_use]
    pub fn take(&self, size: usize) -> Buffer {
        self.try_take(size).unwrap_or_else(|| self.take_unpooled(size))
    }

    /// Returns a buffer of at least `size` bytes, if the cap allows it.
    pub(crate) fn try_take(&self, size: usize) -> Option<Buffer> {
        let (class, size) = class_of(size);
        let list = self.classes.get(class)?;
        let mut list = lock(list);
        for _ in 0..list.masters.len().min(MAX_PROBES) {
            let Some(master) = list.masters.pop_back() else { break };
            match master.try_into_mut() {
                Ok(mem) => {
                    list.hits += 1;
                    list.is_used = true;
                    let (base, all) = (base_of(&mem), mem.len());
                    return Some(Buffer { base, capacity: all, charged: all, mem: BufferMemory::Owned(mem) });
                }
                Err(pinned) => list.masters.push_front(pinned),
            }
        }
        drop(list);
        let capacity = size + BASE_ALIGN;
        self.charge(capacity).then(|| Buffer { charged: capacity, ..self.allocate(size, size) })
    }

    /// Returns a new buffer of at least `size` bytes that is not charged to the pool.
    #[cold]
    pub(crate) fn take_unpooled(&self, size: usize) -> Buffer {
        self.allocate(size, size)
    }

    /// Returns a new buffer of at least `size` bytes, of which `charge` are charged, if the cap allows it.
    #[cold]
    pub(crate) fn take_growing(&self, size: usize, charge: usize) -> Option<Buffer> {
        let (_, size) = class_of(size);
        self.charge(charge).then(|| Buffer { charged: charge, ..self.allocate(size, charge) })
    }

    /// Returns a buffer of at least `size` bytes, of which `granted` are writable, if the cap allows it.
    pub(crate) fn try_take_granted(&self, size: usize, granted: usize) -> Option<Buffer> {
        if size <= granted { self.try_take(size) } else { self.take_growing(size, granted) }
    }

    /// Charges the first `to` bytes and makes them writable. Returns `false` if the cap does not allow it.
    #[cold]
    pub(crate) fn charge_more(&self, buffer: &mut Buffer, to: usize) -> bool {
        let to = if to >= buffer.capacity() { buffer.capacity } else { to };
        let more = to.saturating_sub(buffer.charged);
        let is_charged = more == 0 || self.charge(more);
        if is_charged {
            buffer.charged += more;
            buffer.make_writable(to);
        }
        is_charged
    }

    pub(crate) fn can_hold(&self, size: usize) -> bool {
        let (class, size) = class_of(size);
        class < CLASS_COUNT && size + BASE_ALIGN <= self.cap
    }

    /// Returns the counters.
    pub fn stats(&self) -> PoolStats {
        let free = |master: &&Bytes| master.is_unique();
        PoolStats {
            held: self.held.load(Ordering::Relaxed),
            outside: self.outside.load(Ordering::Relaxed),
            queued: self.queued_bytes.load(Ordering::Relaxed),
            free: self
                .classes
                .iter()
                .map(|class| lock(class).masters.iter().filter(free).map(Bytes::len).sum::<usize>())
                .sum(),
            cap: self.cap,
            hits: self.classes.iter().map(|class| lock(class).hits).sum(),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// Freezes a buffer, gives it back, and returns a view of it. It is reused when no view is left.
    #[must_use]
    pub fn share(&self, mut buffer: Buffer) -> Bytes {
        buffer.freeze();
        let view = buffer.view(0..buffer.bytes().len());
        self.give_back(buffer);
        view
    }

    /// Gives a buffer back to the pool, to be reused when no view is left. It is kept only if fully charged.
    pub fn give_back(&self, buffer: Buffer) {
        let Buffer { mem, capacity, charged, .. } = buffer;
        let master = match mem {
            BufferMemory::Owned(mem) => mem.freeze(),
            BufferMemory::Frozen(mem) => mem,
        };
        let (class, _) = class_of(master.len().saturating_sub(BASE_ALIGN));
        match self.classes.get(class) {
            Some(list) if charged == capacity && charged == master.len() && charged > 0 => {
                let mut list = lock(list);
                list.is_used = true;
                list.masters.push_back(master);
            }
            _ => self.discharge(charged),
        }
    }

    /// If `message` is the only view of its buffer, calls `f` with the bytes of `message` for writing.
    /// Returns whether it called `f`. The buffer may be pooled or not.
    ///
    /// Only the latest masters are searched, because `message` must have been received shortly before.
    pub fn write_to(&self, message: &mut Bytes, f: impl FnOnce(&mut [u8])) -> bool {
        let (class, _) = class_of(message.len());
        for list in self.classes.get(class..).unwrap_or_default() {
            let mut list = lock(list);
            let inside = |master: &Bytes| master.as_ptr_range().contains(&message.as_ptr());
            let Some(at) = list.masters.iter().rev().take(MAX_PROBES).position(inside) else { continue };
            let at = list.masters.len() - 1 - at;
            let Some(master) = list.masters.remove(at) else { return false };
            let start = message.as_ptr().addr() - master.as_ptr().addr();
            let range = start..start + message.len();
            drop(std::mem::take(message));
            let (master, written) = write_if_unique(master, range.clone(), f);
            *message = master.slice(range);
            list.masters.push_back(master);
            return written;
        }
        let len = message.len();
        let (bytes, written) = write_if_unique(std::mem::take(message), 0..len, f);
        *message = bytes;
        written
    }

    /// Charges received data outside of pooled buffers until [`discharge_outside`](Self::discharge_outside).
    pub fn charge_outside(&self, bytes: usize) {
        self.outside.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Reverts [`charge_outside`](Self::charge_outside).
    pub fn discharge_outside(&self, bytes: usize) {
        self.outside.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns whether received data exceeds the cap, although all free buffers were freed.
    #[inline]
    pub(crate) fn exceeds_cap(&self) -> bool {
        self.outside.load(Ordering::Relaxed) > 0 && self.exceeds_cap_after_freeing()
    }

    #[cold]
    fn exceeds_cap_after_freeing(&self) -> bool {
        let over = || self.held.load(Ordering::Relaxed) + self.outside.load(Ordering::Relaxed) > self.cap;
        while over() {
            if !self.free_one() {
                return true;
            }
        }
        false
    }

    pub(crate) fn replace_queued(&self, before: usize, now: usize) {
        self.queued_bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    pub(crate) fn replace_queued_replies(&self, before: usize, now: usize) {
        self.queued_reply_bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Returns the number of queued reply bytes of all connections with more than 64 KiB of them.
    #[inline]
    pub fn queued_reply_bytes(&self) -> usize {
        self.queued_reply_bytes.load(Ordering::Relaxed)
    }

    /// Returns whether [queued replies](Self::queued_reply_bytes) exceed half of the cap.
    #[inline]
    pub fn is_half_full_of_replies(&self) -> bool {
        self.queued_reply_bytes() > self.cap / 2
    }

    /// Returns whether the [queued replies](Self::queued_reply_bytes) reach the cap.
    #[inline]
    pub fn is_full_of_replies(&self) -> bool {
        self.queued_reply_bytes() >= self.cap
    }

    /// Returns the maximum number of bytes that the pool may hold.
    #[inline]
    pub fn cap(&self) -> usize {
        self.cap
    }

    #[cold]
    pub(crate) fn exceeds_queue_cap(&self) -> bool {
        self.queued_bytes.load(Ordering::Relaxed) > self.cap
    }

    /// Allows one connection at a time to exceed the cap until [`end_overdraft`](Self::end_overdraft).
    #[cold]
    pub(crate) fn start_overdraft(&self) -> bool {
        !self.is_overdrawn.swap(true, Ordering::Relaxed)
    }

    #[cold]
    pub(crate) fn end_overdraft(&self) {
        self.is_overdrawn.store(false, Ordering::Relaxed);
    }

    /// Frees the unused buffers of each size class of which no buffer was used since the last call. Keeps
    /// windows. Returns whether there are buffers left that a later call may free.
    pub fn trim(&self) -> bool {
        let mut is_any_left = false;
        for list in self.classes.iter().skip(1) {
            let mut list = lock(list);
            if !std::mem::take(&mut list.is_used) {
                self.free_unused(&mut list, usize::MAX);
            }
            is_any_left |= !list.masters.is_empty();
        }
        is_any_left
    }

    /// Returns the number of bytes of all pooled buffers.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Allows keeping a window between reads. Returns `false` if too many connections do.
    pub(crate) fn start_keeping_window(&self) -> bool {
        let increased = |kept_windows| (kept_windows < MAX_KEPT_WINDOWS).then_some(kept_windows + 1);
        self.kept_windows.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increased).is_ok()
    }

    pub(crate) fn stop_keeping_window(&self) {
        self.kept_windows.fetch_sub(1, Ordering::Relaxed);
    }

    /// Charges bytes, and frees unused buffers for that. Returns `false` if the cap does not allow it.
    #[cold]
    fn charge(&self, bytes: usize) -> bool {
        let cap = self.cap.saturating_sub(self.outside.load(Ordering::Relaxed));
        let increased = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= cap);
        loop {
            if self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increased).is_ok() {
                return true;
            }
            if !self.free_one() {
                return false;
            }
        }
    }

    fn discharge(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn free_one(&self) -> bool {
        self.classes.iter().rev().any(|list| self.free_unused(&mut lock(list), 1))
    }

    /// Frees up to `max` unused buffers of a size class. Returns whether it freed `max` buffers.
    fn free_unused(&self, list: &mut SizeClass, max: usize) -> bool {
        let mut freed = 0;
        for _ in 0..list.masters.len() {
            match list.masters.pop_front().map(Bytes::try_into_mut) {
                Some(Ok(mem)) => {
                    self.discharge(mem.len());
                    freed += 1;
                }
                Some(Err(pinned)) => list.masters.push_back(pinned),
                None => {}
            }
            if freed == max {
                return true;
            }
        }
        false
    }

    /// Allocates a buffer whose first `writable_len` bytes are writable. Nothing is charged.
    #[cold]
    fn allocate(&self, size: usize, writable_len: usize) -> Buffer {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let capacity = size + BASE_ALIGN;
        let whole = giop_codec::cdr::allocation_size(capacity + 1);
        let mut mem =
            if writable_len >= size { BytesMut::zeroed(whole) } else { BytesMut::with_capacity(whole) };
        // Splitting makes the memory reference-counted, so that freezing and reclaiming it never allocate.
        drop(mem.split_off(capacity));
        let mut buffer = Buffer { base: base_of(&mem), mem: BufferMemory::Owned(mem), capacity, charged: 0 };
        buffer.make_writable(writable_len);
        buffer
    }
}

impl Buffer {
    /// Returns the number of bytes that the buffer can hold.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity.saturating_sub(self.base)
    }

    /// Returns all bytes that are writable, or were before the buffer was frozen.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.mem {
            BufferMemory::Owned(mem) => mem,
            BufferMemory::Frozen(mem) => mem,
        };
        all.get(self.base..).unwrap_or_default()
    }

    /// Returns all writable bytes. There are none if the buffer is frozen.
    #[inline]
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.mem {
            BufferMemory::Owned(mem) => mem.get_mut(self.base..).unwrap_or_default(),
            BufferMemory::Frozen(_) => &mut [],
        }
    }

    /// Makes a range of bytes writable, even if it is not charged, and returns it.
    pub(crate) fn writable_range(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        self.make_writable(range.end);
        self.bytes_mut().get_mut(range)
    }

    /// Makes the first `to` bytes writable, even if they are not charged.
    #[inline]
    pub(crate) fn make_writable(&mut self, to: usize) {
        let to = self.capacity.min(self.base.saturating_add(to));
        if let BufferMemory::Owned(mem) = &mut self.mem
            && mem.len() < to
        {
            mem.resize(to, 0);
        }
    }

    /// Returns the number of charged bytes, or the capacity if no bytes are charged.
    pub(crate) fn charged_len(&self) -> usize {
        if self.charged == 0 { self.capacity() } else { self.charged.saturating_sub(self.base) }
    }

    #[inline]
    pub(crate) fn freeze(&mut self) {
        if let BufferMemory::Owned(mem) = &mut self.mem {
            self.mem = BufferMemory::Frozen(std::mem::take(mem).freeze());
        }
    }

    /// Makes a frozen buffer writable again if no view is left. Returns whether it is writable.
    #[inline]
    pub(crate) fn reclaim(&mut self) -> bool {
        if let BufferMemory::Frozen(mem) = &mut self.mem {
            match std::mem::take(mem).try_into_mut() {
                Ok(own) => self.mem = BufferMemory::Owned(own),
                Err(pinned) => {
                    *mem = pinned;
                    return false;
                }
            }
        }
        true
    }

    /// Returns a view of a range of bytes. The buffer must be frozen, and the range must be within its bytes.
    #[inline]
    pub(crate) fn view(&self, range: Range<usize>) -> Bytes {
        match &self.mem {
            BufferMemory::Frozen(mem) => mem.slice(self.base + range.start..self.base + range.end),
            BufferMemory::Owned(_) => Bytes::new(),
        }
    }

    /// Returns whether the buffer is a window, and all its bytes are charged.
    #[inline]
    pub(crate) fn is_window(&self) -> bool {
        self.charged == WINDOW_SIZE + BASE_ALIGN && self.len() == self.charged
    }

    #[inline]
    fn len(&self) -> usize {
        match &self.mem {
            BufferMemory::Owned(mem) => mem.len(),
            BufferMemory::Frozen(mem) => mem.len(),
        }
    }
}

impl Default for BufferMemory {
    fn default() -> Self {
        Self::Frozen(Bytes::new())
    }
}

fn base_of(mem: &BytesMut) -> usize {
    // The address is used only as a number.
    (mem.as_ptr() as usize).wrapping_neg() % BASE_ALIGN
}

/// Returns the index of the smallest size class for `size` bytes, and the size of its buffers. The index for
/// a size above the largest class is not the index of a class. Such buffers are never pooled.
fn class_of(size: usize) -> (usize, usize) {
    let size = size.max(WINDOW_SIZE);
    let power = size.ilog2() as usize; // 2^power <= size
    let quarter = 1usize << (power - 2);
    let steps = (size - (1 << power)).div_ceil(quarter);
    (
        4 * (power - WINDOW_SIZE.ilog2() as usize) + steps,
        (1usize << power).saturating_add(steps.saturating_mul(quarter)),
    )
}

/// Calls `f` with a range of the bytes if there is no other view of them. Returns whether it did.
fn write_if_unique(bytes: Bytes, range: Range<usize>, f: impl FnOnce(&mut [u8])) -> (Bytes, bool) {
    match bytes.try_into_mut() {
        Ok(mut mem) => {
            f(mem.get_mut(range).unwrap_or_default());
            (mem.freeze(), true)
        }
        Err(pinned) => (pinned, false),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Even if a thread panicked while it held the lock, the list of handles is valid.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

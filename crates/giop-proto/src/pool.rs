//! Receive buffers that are allocated once, and then reused.
//!
//! A [`BufferPool`] keeps a *master* handle of every buffer that it returned. A buffer is free as soon as
//! the master is its only handle. Dropping the last view of a message therefore returns its buffer.
//!
//! Reusing a buffer allocates nothing. Its bytes stay initialised, so that reads never need uninitialised
//! memory, and the crate needs no `unsafe`. A new buffer for a large message reserves address space for all
//! of it. Its bytes are initialised as memory is granted, so that bytes that never arrive occupy no memory.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};

/// The alignment in bytes of the first byte of every buffer. All CDR values of a message that starts there
/// have addresses that agree with their CDR offsets modulo 8.
pub const BASE_ALIGN: usize = 64;

/// The size in bytes of the smallest class: the read window for small messages.
pub const WINDOW: usize = 64 * 1024;

/// Four size classes for each power of two from 64 KiB to 1 GiB.
const CLASS_COUNT: usize = 4 * 15;

/// The maximum number of masters of a class that are examined before a new buffer is allocated.
const MAX_PROBES: usize = 8;

/// The maximum number of connections that keep their window between reads.
const MAX_KEPT_WINDOWS: usize = 64;

/// A recycling pool of receive buffers in size classes.
#[derive(Default)]
pub struct BufferPool {
    classes: Vec<Mutex<Class>>,
    cap: usize,
    held: AtomicUsize,
    /// Bytes of received messages outside of pooled buffers.
    outside: AtomicUsize,
    /// Bytes queued for peers by connections with large queues.
    queued: AtomicUsize,
    /// The part of `queued_bytes` that is replies.
    owed: AtomicUsize,
    /// True if a connection uses memory beyond the cap.
    overdrawn: AtomicBool,
    kept_windows: AtomicUsize,
    misses: AtomicU64,
}

#[derive(Default)]
struct Class {
    masters: VecDeque<Bytes>,
    hits: u64,
    /// True if a buffer was taken or returned since the last [`trim`](BufferPool::trim).
    is_used: bool,
}

/// The counters of a [`BufferPool`] since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStats {
    /// Bytes of all pooled buffers, whether free or not.
    pub held: usize,
    /// The part of `held` that is free. All is free without connections, if nothing received is kept.
    pub free: usize,
    /// Bytes of values decoded from requests that are being served, and of pieces of incomplete messages.
    /// They are not in pooled buffers, but count against the cap.
    pub outside: usize,
    /// Bytes queued for peers by connections with more than 64 KiB queued. They are compared with the cap
    /// separately, and reading does not wait for them.
    pub queued: usize,
    /// The maximum number of bytes that the pool may hold.
    pub cap: usize,
    /// The number of buffers that were reused.
    pub hits: u64,
    /// The number of buffers that were allocated.
    pub misses: u64,
}

/// A buffer. Its writable bytes are initialised. It is either writable, or frozen and possibly viewed.
///
/// It must be returned by [`BufferPool::share`] or [`BufferPool::give_back`]. A buffer that is merely
/// dropped stays charged to the pool.
#[derive(Debug, Default)]
pub struct Buffer {
    mem: BufferMemory,
    base: usize,
    /// The capacity in bytes, including the bytes before `base`.
    capacity: usize,
    /// Bytes that are charged to the pool. The pool keeps only buffers of which all bytes are charged.
    charged: usize,
}

enum BufferMemory {
    Owned(BytesMut),
    Frozen(Bytes),
}

/// Omits the contents of the buffers, which are megabytes of application data.
impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("cap", &self.cap)
            .field("held", &self.held)
            .field("outside", &self.outside)
            .field("queued", &self.queued)
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

    /// Returns a buffer of at least `size` bytes. A buffer beyond the cap is freed after use.
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

    #[cold]
    pub(crate) fn take_unpooled(&self, size: usize) -> Buffer {
        self.allocate(size, size)
    }

    /// Returns a new buffer of at least `size` bytes, of which `charge` are writable and charged.
    #[cold]
    pub(crate) fn take_growing(&self, size: usize, charge: usize) -> Option<Buffer> {
        let (_, size) = class_of(size);
        self.charge(charge).then(|| Buffer { charged: charge, ..self.allocate(size, charge) })
    }

    /// Returns a buffer of at least `size` bytes, of which `granted` may be used at once, within the cap.
    pub(crate) fn try_take_granted(&self, size: usize, granted: usize) -> Option<Buffer> {
        if size <= granted { self.try_take(size) } else { self.take_growing(size, granted) }
    }

    /// Charges the first `to` bytes of a buffer and makes them writable. Fails if the cap does not allow it.
    #[cold]
    pub(crate) fn charge_more(&self, buffer: &mut Buffer, to: usize) -> bool {
        let to = if to >= buffer.capacity() { buffer.capacity } else { to };
        let more = to.saturating_sub(buffer.charged);
        let charged = more == 0 || self.charge(more);
        if charged {
            buffer.charged += more;
            buffer.make_writable(to);
        }
        charged
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
            queued: self.queued.load(Ordering::Relaxed),
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

    /// Freezes a buffer and returns a view of all its bytes. The pool reuses it when no view is left.
    #[must_use]
    pub fn share(&self, mut buffer: Buffer) -> Bytes {
        buffer.freeze();
        let view = buffer.view(0..buffer.bytes().len());
        self.give_back(buffer);
        view
    }

    /// Returns a buffer to the pool. It is reused when no view of it is left.
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

    /// Calls `f` with the bytes of `message` if no other view of its buffer exists, and returns whether it
    /// did. `message` is a view of a pooled buffer or of a buffer of its own.
    ///
    /// Only the most recently returned masters are searched, because `message` was received just before.
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

    /// Charges received data that is not in pooled buffers, until
    /// [`discharge_outside`](Self::discharge_outside).
    pub fn charge_outside(&self, bytes: usize) {
        self.outside.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Reverts [`charge_outside`](Self::charge_outside).
    pub fn discharge_outside(&self, bytes: usize) {
        self.outside.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns whether received data exceeds the cap even without the free buffers.
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
        self.queued.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    pub(crate) fn replace_queued_replies(&self, before: usize, now: usize) {
        self.owed.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Returns the number of queued reply bytes of all connections with more than 64 KiB of them.
    #[inline]
    pub fn owed(&self) -> usize {
        self.owed.load(Ordering::Relaxed)
    }

    /// Returns whether queued replies exceed half of the cap. Requests with large replies should wait then.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.owed() > self.cap / 2
    }

    /// Returns whether queued replies reach the cap.
    #[inline]
    pub fn is_full_of_replies(&self) -> bool {
        self.owed() >= self.cap
    }

    /// Returns the maximum number of bytes that the pool may hold.
    #[inline]
    pub fn cap(&self) -> usize {
        self.cap
    }

    #[cold]
    pub(crate) fn exceeds_queue_cap(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > self.cap
    }

    /// Allows one connection at a time to exceed the cap, until [`end_overdraft`](Self::end_overdraft).
    #[cold]
    pub(crate) fn start_overdraft(&self) -> bool {
        !self.overdrawn.swap(true, Ordering::Relaxed)
    }

    #[cold]
    pub(crate) fn end_overdraft(&self) {
        self.overdrawn.store(false, Ordering::Relaxed);
    }

    /// Frees buffers larger than a window if no buffer of the same size class was used since the last call.
    /// Returns whether a later call may free more.
    pub fn trim(&self) -> bool {
        let mut later = false;
        for list in self.classes.iter().skip(1) {
            let mut list = lock(list);
            if !std::mem::take(&mut list.is_used) {
                self.free_unused(&mut list, usize::MAX);
            }
            later |= !list.masters.is_empty();
        }
        later
    }

    /// Returns the number of bytes of all pooled buffers.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn start_keeping_window(&self) -> bool {
        let writable_range = |kept_windows| (kept_windows < MAX_KEPT_WINDOWS).then_some(kept_windows + 1);
        self.kept_windows.fetch_update(Ordering::Relaxed, Ordering::Relaxed, writable_range).is_ok()
    }

    pub(crate) fn stop_keeping_window(&self) {
        self.kept_windows.fetch_sub(1, Ordering::Relaxed);
    }

    #[cold]
    fn charge(&self, bytes: usize) -> bool {
        let cap = self.cap.saturating_sub(self.outside.load(Ordering::Relaxed));
        let writable_range = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= cap);
        loop {
            if self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, writable_range).is_ok() {
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

    /// Frees one unused buffer. Returns `false` if there is none.
    fn free_one(&self) -> bool {
        self.classes.iter().rev().any(|list| self.free_unused(&mut lock(list), 1))
    }

    /// Frees up to `max` unused buffers of a class. Returns whether it freed so many.
    fn free_unused(&self, list: &mut Class, max: usize) -> bool {
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

    #[cold]
    fn allocate(&self, size: usize, make_writable: usize) -> Buffer {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let capacity = size + BASE_ALIGN;
        let whole = giop_codec::cdr::mapped_size(capacity + 1);
        let mut mem =
            if make_writable >= size { BytesMut::zeroed(whole) } else { BytesMut::with_capacity(whole) };
        // Splitting makes the buffer reference counted, so that freezing and reclaiming it never allocate.
        drop(mem.split_off(capacity));
        let mut buffer = Buffer { base: base_of(&mem), mem: BufferMemory::Owned(mem), capacity, charged: 0 };
        buffer.make_writable(make_writable);
        buffer
    }
}

impl Buffer {
    /// Returns the capacity in bytes, counted from the aligned base.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity.saturating_sub(self.base)
    }

    /// Returns all bytes that may be written to.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.mem {
            BufferMemory::Owned(mem) => mem,
            BufferMemory::Frozen(mem) => mem,
        };
        all.get(self.base..).unwrap_or_default()
    }

    /// Returns all bytes that may be written to, for writing. Empty if the buffer is frozen.
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

    /// Returns the number of charged bytes, or the capacity if none is charged.
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

    /// Returns a view of a range of bytes. The buffer must be frozen, and the range must exist.
    #[inline]
    pub(crate) fn view(&self, range: Range<usize>) -> Bytes {
        match &self.mem {
            BufferMemory::Frozen(mem) => mem.slice(self.base + range.start..self.base + range.end),
            BufferMemory::Owned(_) => Bytes::new(),
        }
    }

    /// Returns whether the buffer is charged and of the size class of read windows.
    #[inline]
    pub(crate) fn is_window(&self) -> bool {
        self.charged == WINDOW + BASE_ALIGN && self.len() == self.charged
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
    // The address is used as a number only; nothing is read through it.
    (mem.as_ptr() as usize).wrapping_neg() % BASE_ALIGN
}

/// Returns the index and size of the smallest class for `size` bytes. Sizes above the largest class get an
/// index after the last one: such buffers are never pooled.
fn class_of(size: usize) -> (usize, usize) {
    let size = size.max(WINDOW);
    let power = size.ilog2() as usize; // 2^power <= size
    let quarter = 1usize << (power - 2);
    let steps = (size - (1 << power)).div_ceil(quarter);
    (
        4 * (power - WINDOW.ilog2() as usize) + steps,
        (1usize << power).saturating_add(steps.saturating_mul(quarter)),
    )
}

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
    // A panic while the lock was held leaves a list of handles valid.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

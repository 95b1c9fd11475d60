//! Receive buffers that are allocated and faulted in once, and then reused.
//!
//! A [`BufferPool`] keeps a *master* handle of every buffer that it gave out. A buffer is free as soon as the
//! master is its only handle. Dropping the last view of a message therefore returns its buffer.
//!
//! Taking a free buffer allocates nothing. Its bytes stay initialised, so no read ever needs uninitialised
//! memory, and the crate needs no `unsafe`. A buffer for a message that was only announced reserves address
//! space for all of it. Its bytes are initialised as they are granted, so bytes that never arrive take no
//! memory, whatever the allocator does.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};

/// The alignment of the first byte of every buffer. All CDR values of a message that starts there have
/// addresses that agree with their CDR offsets modulo 8.
pub const BASE_ALIGN: usize = 64;

/// The size of the smallest class: the read window for small messages.
pub const WINDOW: usize = 64 * 1024;

/// Four classes for each power of two from 64 KiB to 1 GiB.
const CLASSES: usize = 4 * 15;

/// The number of parked masters of a class that are examined before a new buffer is allocated.
const PROBES: usize = 8;

/// The number of connections that may keep their window between two reads, which saves the way through the
/// pool.
const KEEPERS: usize = 64;

/// A recycling pool of receive buffers in size classes.
pub struct BufferPool {
    classes: Vec<Mutex<Class>>,
    cap: usize,
    held: AtomicUsize,
    /// Bytes of received messages outside of the pool's buffers.
    outside: AtomicUsize,
    /// Bytes queued for peers by connections with large queues.
    queued: AtomicUsize,
    /// The part of `queued` that is replies.
    owed: AtomicUsize,
    /// A connection is using memory beyond the cap.
    overdrawn: AtomicBool,
    keepers: AtomicUsize,
    misses: AtomicU64,
}

#[derive(Default)]
struct Class {
    masters: VecDeque<Bytes>,
    hits: u64,
    /// A buffer was taken or given back since the last [`trim`](BufferPool::trim).
    is_used: bool,
}

/// The counters of a [`BufferPool`] since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStats {
    /// Bytes of all pooled buffers, both free ones and ones pinned by views.
    pub held: usize,
    /// Bytes of `held` that are free: no read targets them, and no view of them exists. All held bytes are
    /// free in an ORB without connections whose servants and callers keep nothing that they received.
    pub free: usize,
    /// Bytes of received messages outside of the pooled buffers: values decoded from requests that are being
    /// served, and pieces of incomplete messages. They count against the cap.
    pub outside: usize,
    /// Bytes queued for peers by connections with more than 64 KiB queued. They are compared with the cap
    /// separately: reading does not wait for them.
    pub queued: usize,
    /// The maximum number of bytes that the pool may hold.
    pub cap: usize,
    /// Buffers that were taken from the pool's lists.
    pub hits: u64,
    /// Buffers that had to be allocated.
    pub misses: u64,
}

/// A buffer whose writable bytes are all initialised. It is either exclusively owned and writable, or frozen
/// and possibly viewed. It changes between the two in place.
///
/// It is returned by [`BufferPool::share`] or [`BufferPool::give_back`]. A buffer that is merely dropped
/// stays charged to the pool.
#[derive(Debug, Default)]
pub struct Buffer {
    mem: BufferMemory,
    base: usize,
    /// Bytes that it has space for, including those before the base. They are all writable once they are
    /// granted.
    reserved: usize,
    /// Bytes that are charged to the pool. If this is all of them, the pool keeps the buffer.
    charged: usize,
}

enum BufferMemory {
    Own(BytesMut),
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
            Self::Own(octets) => write!(f, "Own({} octets)", octets.len()),
            Self::Frozen(octets) => write!(f, "Frozen({} octets)", octets.len()),
        }
    }
}

impl BufferPool {
    /// Creates a pool that holds at most `cap` bytes.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self {
            classes: (0..CLASSES).map(|_| Mutex::default()).collect(),
            cap,
            held: AtomicUsize::new(0),
            outside: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            owed: AtomicUsize::new(0),
            overdrawn: AtomicBool::new(false),
            keepers: AtomicUsize::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns a buffer of at least `size` bytes. Beyond the cap the buffer is allocated, and freed after
    /// use.
    #[must_use]
    pub fn take(&self, size: usize) -> Buffer {
        self.try_take(size).unwrap_or_else(|| self.take_unpooled(size))
    }

    /// Returns a buffer of at least `size` bytes, if the cap allows it.
    pub(crate) fn try_take(&self, size: usize) -> Option<Buffer> {
        let (class, size) = class_of(size);
        let list = self.classes.get(class)?;
        let mut list = lock(list);
        for _ in 0..list.masters.len().min(PROBES) {
            let Some(master) = list.masters.pop_back() else { break };
            match master.try_into_mut() {
                Ok(mem) => {
                    list.hits += 1;
                    list.is_used = true;
                    let (base, all) = (base_of(&mem), mem.len());
                    return Some(Buffer { base, reserved: all, charged: all, mem: BufferMemory::Own(mem) });
                }
                Err(pinned) => list.masters.push_front(pinned),
            }
        }
        drop(list);
        let capacity = size + BASE_ALIGN;
        self.charge(capacity).then(|| Buffer { charged: capacity, ..self.allocate(size, size) })
    }

    /// Returns a buffer that is not charged to the pool.
    #[cold]
    pub(crate) fn take_unpooled(&self, size: usize) -> Buffer {
        self.allocate(size, size)
    }

    /// Returns a new buffer with space for at least `size` bytes, of which `charge` are writable and charged
    /// to the pool. The rest is charged by [`charge_more`](Self::charge_more).
    #[cold]
    pub(crate) fn take_growing(&self, size: usize, charge: usize) -> Option<Buffer> {
        let (_, size) = class_of(size);
        self.charge(charge).then(|| Buffer { charged: charge, ..self.allocate(size, charge) })
    }

    /// Charges the first `to` bytes of a buffer, or all of them, to the pool and makes them writable.
    #[cold]
    pub(crate) fn charge_more(&self, buffer: &mut Buffer, to: usize) -> bool {
        let to = if to >= buffer.capacity() { buffer.reserved } else { to };
        let more = to.saturating_sub(buffer.charged);
        let charged = more == 0 || self.charge(more);
        if charged {
            buffer.charged += more;
            buffer.open(to);
        }
        charged
    }

    /// Returns whether a buffer of that size could ever be charged.
    pub(crate) fn could_hold(&self, size: usize) -> bool {
        let (class, size) = class_of(size);
        class < CLASSES && size + BASE_ALIGN <= self.cap
    }

    /// Returns the counters.
    #[must_use]
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

    /// Makes the buffer shareable. The pool keeps a handle, through which it regains the buffer.
    #[must_use]
    pub fn share(&self, buffer: Buffer) -> Bytes {
        let mut buffer = buffer;
        buffer.freeze();
        let view = buffer.view(0..buffer.octets().len());
        self.give_back(buffer);
        view
    }

    /// Takes a buffer back. It is reused when no view of it is left.
    pub fn give_back(&self, buffer: Buffer) {
        let Buffer { mem, reserved, charged, .. } = buffer;
        let master = match mem {
            BufferMemory::Own(mem) => mem.freeze(),
            BufferMemory::Frozen(mem) => mem,
        };
        let (class, _) = class_of(master.len().saturating_sub(BASE_ALIGN));
        match self.classes.get(class) {
            Some(list) if charged == reserved && charged == master.len() && charged > 0 => {
                let mut list = lock(list);
                list.is_used = true;
                list.masters.push_back(master);
            }
            _ => self.discharge(charged),
        }
    }

    /// Lets `f` write to `message` if no other view of its buffer exists, and returns whether it did.
    /// `message` is a view of one of the pool's buffers or of a buffer of its own.
    ///
    /// Only the most recently returned masters are searched, because `message` was received just before.
    pub fn write_to(&self, message: &mut Bytes, f: impl FnOnce(&mut [u8])) -> bool {
        let (class, _) = class_of(message.len());
        for list in self.classes.get(class..).unwrap_or_default() {
            let mut list = lock(list);
            let inside = |master: &Bytes| master.as_ptr_range().contains(&message.as_ptr());
            let Some(at) = list.masters.iter().rev().take(PROBES).position(inside) else { continue };
            let at = list.masters.len() - 1 - at;
            let Some(master) = list.masters.remove(at) else { return false };
            let start = message.as_ptr().addr() - master.as_ptr().addr();
            let range = start..start + message.len();
            drop(std::mem::take(message));
            let (master, written) = match master.try_into_mut() {
                Ok(mut mem) => {
                    f(mem.get_mut(range.clone()).unwrap_or_default());
                    (mem.freeze(), true)
                }
                Err(pinned) => (pinned, false),
            };
            *message = master.slice(range);
            list.masters.push_back(master);
            return written;
        }
        match std::mem::take(message).try_into_mut() {
            Ok(mut mem) => {
                f(&mut mem);
                *message = mem.freeze();
                true
            }
            Err(pinned) => {
                *message = pinned;
                false
            }
        }
    }

    /// Charges bytes that received data occupies outside of the pool's buffers, until
    /// [`discharge_outside`](Self::discharge_outside). They may exceed the cap: then connections are not
    /// read.
    pub fn charge_outside(&self, octets: usize) {
        self.outside.fetch_add(octets, Ordering::Relaxed);
    }

    /// Reverts [`charge_outside`](Self::charge_outside).
    pub fn discharge_outside(&self, octets: usize) {
        self.outside.fetch_sub(octets, Ordering::Relaxed);
    }

    /// Returns whether received data exceeds the cap although no free buffer is kept.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.outside.load(Ordering::Relaxed) > 0 && self.is_over_outside()
    }

    #[cold]
    fn is_over_outside(&self) -> bool {
        let over = || self.held.load(Ordering::Relaxed) + self.outside.load(Ordering::Relaxed) > self.cap;
        while over() {
            if !self.free_one() {
                return true;
            }
        }
        false
    }

    /// Replaces the number of bytes that a connection has queued.
    pub(crate) fn count_queued(&self, before: usize, now: usize) {
        self.queued.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Replaces the number of reply bytes that a connection has queued.
    pub(crate) fn count_owed(&self, before: usize, now: usize) {
        self.owed.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Returns the number of queued reply bytes, over the connections with more than 64 KiB of them.
    #[inline]
    #[must_use]
    pub fn owed(&self) -> usize {
        self.owed.load(Ordering::Relaxed)
    }

    /// Returns whether queued replies exceed half of the cap. If so, requests with large replies should wait.
    #[inline]
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.owed() > self.cap / 2
    }

    /// Returns whether queued replies take the whole cap.
    #[inline]
    #[must_use]
    pub fn is_full_of_replies(&self) -> bool {
        self.owed() >= self.cap
    }

    /// Returns the maximum number of bytes that the pool may hold.
    #[inline]
    #[must_use]
    pub fn cap(&self) -> usize {
        self.cap
    }

    /// Returns whether more is queued for peers than the pool may hold.
    #[cold]
    pub(crate) fn is_overqueued(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > self.cap
    }

    /// Starts an overdraft, unless another connection already has one. Returns whether the caller may take
    /// memory beyond the cap until [`end_overdraft`](Self::end_overdraft).
    #[cold]
    pub(crate) fn start_overdraft(&self) -> bool {
        !self.overdrawn.swap(true, Ordering::Relaxed)
    }

    /// Ends the overdraft that [`start_overdraft`](Self::start_overdraft) started.
    #[cold]
    pub(crate) fn end_overdraft(&self) {
        self.overdrawn.store(false, Ordering::Relaxed);
    }

    /// Frees buffers larger than a window if no buffer of the same size was used since the last call. The
    /// system thus regains the memory of large buffers. Returns whether there are buffers that a later call
    /// may free.
    pub fn trim(&self) -> bool {
        let mut later = false;
        for list in self.classes.iter().skip(1) {
            let mut list = lock(list);
            if std::mem::take(&mut list.is_used) {
                later |= !list.masters.is_empty();
                continue;
            }
            for _ in 0..list.masters.len() {
                let Some(master) = list.masters.pop_front() else { break };
                match master.try_into_mut() {
                    Ok(mem) => self.discharge(mem.len()),
                    Err(pinned) => list.masters.push_back(pinned),
                }
            }
            later |= !list.masters.is_empty();
        }
        later
    }

    /// Returns the number of bytes of all pooled buffers.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns whether one more connection may keep its window, and counts it if so.
    pub(crate) fn start_keeping(&self) -> bool {
        let room = |keepers| (keepers < KEEPERS).then_some(keepers + 1);
        self.keepers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
    }

    /// Reverts [`start_keeping`](Self::start_keeping).
    pub(crate) fn stop_keeping(&self) {
        self.keepers.fetch_sub(1, Ordering::Relaxed);
    }

    #[cold]
    fn charge(&self, octets: usize) -> bool {
        let cap = self.cap.saturating_sub(self.outside.load(Ordering::Relaxed));
        let room = |held: usize| held.checked_add(octets).filter(|sum| *sum <= cap);
        loop {
            if self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok() {
                return true;
            }
            if !self.free_one() {
                return false;
            }
        }
    }

    fn discharge(&self, octets: usize) {
        self.held.fetch_sub(octets, Ordering::Relaxed);
    }

    /// Frees the memory of one unused buffer.
    fn free_one(&self) -> bool {
        for list in self.classes.iter().rev() {
            let mut list = lock(list);
            for _ in 0..list.masters.len() {
                let Some(master) = list.masters.pop_front() else { break };
                match master.try_into_mut() {
                    Ok(mem) => {
                        self.discharge(mem.len());
                        return true;
                    }
                    Err(pinned) => list.masters.push_back(pinned),
                }
            }
        }
        false
    }

    #[cold]
    fn allocate(&self, size: usize, open: usize) -> Buffer {
        self.misses.fetch_add(1, Ordering::Relaxed);
        let reserved = size + BASE_ALIGN;
        let whole = giop_codec::cdr::mapped_size(reserved + 1);
        let mut mem = if open >= size { BytesMut::zeroed(whole) } else { BytesMut::with_capacity(whole) };
        // Splitting makes the buffer reference counted from the start. Freezing it and turning it back then
        // never allocate.
        drop(mem.split_off(reserved));
        let mut buffer = Buffer { base: base_of(&mem), mem: BufferMemory::Own(mem), reserved, charged: 0 };
        buffer.open(open);
        buffer
    }
}

impl Buffer {
    /// Returns the number of bytes that it has space for, from its aligned base.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.reserved.saturating_sub(self.base)
    }

    /// Returns all bytes that may be written to.
    #[inline]
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        let all: &[u8] = match &self.mem {
            BufferMemory::Own(mem) => mem,
            BufferMemory::Frozen(mem) => mem,
        };
        all.get(self.base..).unwrap_or_default()
    }

    /// Returns all bytes that may be written to, for writing. Empty if the buffer is frozen.
    #[inline]
    #[must_use]
    pub fn octets_mut(&mut self) -> &mut [u8] {
        match &mut self.mem {
            BufferMemory::Own(mem) => mem.get_mut(self.base..).unwrap_or_default(),
            BufferMemory::Frozen(_) => &mut [],
        }
    }

    /// Returns a range of its bytes for writing. The range may extend beyond what was granted.
    pub(crate) fn room(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        self.open(range.end);
        self.octets_mut().get_mut(range)
    }

    /// Makes the first `to` bytes writable, up to the reserved space, whatever is charged to the pool.
    #[inline]
    pub(crate) fn open(&mut self, to: usize) {
        let to = self.reserved.min(self.base.saturating_add(to));
        if let BufferMemory::Own(mem) = &mut self.mem
            && mem.len() < to
        {
            mem.resize(to, 0);
        }
    }

    /// Returns the number of bytes that may be written to: the charged ones, or all if none is charged.
    pub(crate) fn granted(&self) -> usize {
        if self.charged == 0 { self.capacity() } else { self.charged.saturating_sub(self.base) }
    }

    /// Freezes the buffer, so that views of it can be made.
    #[inline]
    pub(crate) fn freeze(&mut self) {
        if let BufferMemory::Own(mem) = &mut self.mem {
            self.mem = BufferMemory::Frozen(std::mem::take(mem).freeze());
        }
    }

    /// Makes the buffer writable again if no view is left. Returns whether it is writable.
    #[inline]
    pub(crate) fn reclaim(&mut self) -> bool {
        if let BufferMemory::Frozen(mem) = &mut self.mem {
            match std::mem::take(mem).try_into_mut() {
                Ok(own) => self.mem = BufferMemory::Own(own),
                Err(pinned) => {
                    *mem = pinned;
                    return false;
                }
            }
        }
        true
    }

    /// Returns a view of a range of its bytes, which must exist. The buffer must be frozen.
    #[inline]
    pub(crate) fn view(&self, range: Range<usize>) -> Bytes {
        match &self.mem {
            BufferMemory::Frozen(mem) => mem.slice(self.base + range.start..self.base + range.end),
            BufferMemory::Own(_) => Bytes::new(),
        }
    }

    /// Returns whether it is pooled and of the size class of read windows.
    #[inline]
    pub(crate) fn is_window(&self) -> bool {
        self.charged == WINDOW + BASE_ALIGN && self.len() == self.charged
    }

    #[inline]
    fn len(&self) -> usize {
        match &self.mem {
            BufferMemory::Own(mem) => mem.len(),
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

/// Returns the index and the size of the smallest class that holds `size` bytes. A size above the largest
/// class gets an index after the last one: such buffers are never pooled.
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic elsewhere leaves a list of handles valid.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

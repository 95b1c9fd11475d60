//! In-flight request counter and deactivated flag of an object, packed in one atomic word.
//!
//! A task that waits for the last request sets a bit in the word that counts requests. Therefore it misses no
//! request that is starting, and the last request knows that a task waits.

use super::atomic::{AtomicU32, Ordering};

/// The object is deactivated: no request enters it any more.
const GONE: u32 = 1 << 31;
/// A task waits until no request is active.
const WATCHED: u32 = 1 << 30;
/// Mask of the number of active requests. The number of connections times their requests is far smaller.
const REQUESTS: u32 = WATCHED - 1;

/// The request count of one object.
///
/// Entering and then reading a gate is sequentially consistent with closing the gate and then reading counts.
/// Either the request sees the closed gate, or the task that closed it sees the request.
#[derive(Debug)]
pub(crate) struct Count(AtomicU32);

impl Count {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Counts a request. Returns whether the object is active. In both cases [`leave`](Self::leave) must
    /// follow.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) & GONE == 0
    }

    /// Counts a request made by an active request, even if the object was deactivated since. The outer
    /// request outlasts it. Returns whether any request was active. In both cases [`leave`](Self::leave) must
    /// follow.
    pub(crate) fn enter_nested(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) & REQUESTS != 0
    }

    /// Counts a request as completed. Returns whether the tasks that wait for the last one must be woken.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        before & REQUESTS == 1 && before & (GONE | WATCHED) != 0
    }

    /// Deactivates the object. Returns whether this call did it.
    pub(crate) fn retire(&self) -> bool {
        self.0.fetch_or(GONE, Ordering::SeqCst) & GONE == 0
    }

    /// Requests a wake-up after the last request. Returns whether any request is active.
    pub(crate) fn watch(&self) -> bool {
        self.0.fetch_or(WATCHED, Ordering::SeqCst) & REQUESTS != 0
    }

    /// Clears the wake-up request if no request is active. A task that waits for a later request is still
    /// woken.
    pub(crate) fn unwatch(&self) {
        let _ = self.0.compare_exchange(WATCHED, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.0.load(Ordering::SeqCst) & REQUESTS != 0
    }

    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.0.load(Ordering::SeqCst) & GONE != 0
    }
}

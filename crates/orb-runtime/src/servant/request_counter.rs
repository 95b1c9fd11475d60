//! The number of active requests of an object, and whether it is deactivated, in one atomic word.
//!
//! A task that waits for the last request sets a bit in the same word. Therefore it sees every request that
//! was counted before, and the last request sees that a task waits.

use super::atomic::{AtomicU32, Ordering};

/// The bit for a deactivated object, for which no new request may start.
const DEACTIVATED: u32 = 1 << 31;
/// The bit that is set while a task waits until no request is active.
const HAS_WAITER: u32 = 1 << 30;
/// The bits for the number of active requests. The limits of connections and requests keep this number far
/// below the maximum.
const COUNT_MASK: u32 = HAS_WAITER - 1;

/// The active requests of one object.
///
/// All accesses are sequentially consistent. A request is counted and then reads the gate of the POA. A task
/// that closes the gate then reads the count. Therefore the request sees the closed gate, or the task sees
/// the request.
#[derive(Debug)]
pub(crate) struct RequestCount(AtomicU32);

impl RequestCount {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Counts a request. Returns whether the object is active. The caller must call [`leave`](Self::leave) in
    /// both cases.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) & DEACTIVATED == 0
    }

    /// Counts a request that an active request makes, even if the object has been deactivated. Returns
    /// whether a request was active. The caller must call [`leave`](Self::leave) in both cases.
    pub(crate) fn enter_nested(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) & COUNT_MASK != 0
    }

    /// Counts a request as completed. Returns whether tasks that wait for the last request must be woken.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        before & COUNT_MASK == 1 && before & (DEACTIVATED | HAS_WAITER) != 0
    }

    /// Deactivates the object. Returns `false` if it was deactivated before.
    pub(crate) fn mark_deactivated(&self) -> bool {
        self.0.fetch_or(DEACTIVATED, Ordering::SeqCst) & DEACTIVATED == 0
    }

    /// Requests a wake-up after the last request. Returns whether a request is active.
    pub(crate) fn watch(&self) -> bool {
        self.0.fetch_or(HAS_WAITER, Ordering::SeqCst) & COUNT_MASK != 0
    }

    /// Cancels the wake-up, unless the object is deactivated or has an active request again.
    pub(crate) fn unwatch(&self) {
        let _ = self.0.compare_exchange(HAS_WAITER, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.0.load(Ordering::SeqCst) & COUNT_MASK != 0
    }

    #[inline]
    pub(crate) fn is_deactivated(&self) -> bool {
        self.0.load(Ordering::SeqCst) & DEACTIVATED != 0
    }
}

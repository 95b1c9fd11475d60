//! How many requests of an object are under way, and whether it is still to be had: one word.
//!
//! Whoever waits for the last request sets a bit in the word that requests count in, so he misses none that was just about
//! to start, and the last one knows that somebody waits.

use super::atomic::{AtomicU32, Ordering};

/// The object is out of the map: nothing enters it any more.
const GONE: u32 = 1 << 31;
/// Somebody waits until no request is under way.
const WATCHED: u32 = 1 << 30;
/// Requests under way. Connections times their requests at once are far fewer.
const REQUESTS: u32 = WATCHED - 1;

/// The count of one object.
///
/// Entering and then looking at a gate is sequentially consistent with closing the gate and then looking at counts: either the
/// request sees the closed gate, or who closed it sees the request.
#[derive(Debug)]
pub(crate) struct Count(AtomicU32);

impl Count {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Counts a request; says whether the object is there. Whatever it says, [`leave`](Self::leave) comes after it.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) & GONE == 0
    }

    /// Counts a request that one under way makes, whatever became of the object since: it does not end before that one. Says whether any was
    /// under way. Whatever it says, [`leave`](Self::leave) comes after it.
    pub(crate) fn enter_again(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) & REQUESTS != 0
    }

    /// A request is done. Says whether those that wait for the last one are to be told.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        before & REQUESTS == 1 && before & (GONE | WATCHED) != 0
    }

    /// Takes the object out of service; says whether this is who did it.
    pub(crate) fn retire(&self) -> bool {
        self.0.fetch_or(GONE, Ordering::SeqCst) & GONE == 0
    }

    /// Has the last request tell that it is done; says whether any is under way.
    pub(crate) fn watch(&self) -> bool {
        self.0.fetch_or(WATCHED, Ordering::SeqCst) & REQUESTS != 0
    }

    /// Nobody waits any more, if nothing is under way: somebody who waits for a request that came since is still told.
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

//! Pauses, in which requests are held before they start, until the program calls `Orb::resume` or until
//! memory for replies is available.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The flag of the pause that `Orb::resume` ends.
pub(crate) const UNTIL_RESUME: u8 = 1;

/// The flag of the pause in which requests with large replies are held until memory is available.
pub(crate) const SHORT_OF_MEMORY: u8 = 2;

#[derive(Debug)]
pub(crate) struct Pauses {
    flags: AtomicU8,
    /// The wakers of requests held by [`UNTIL_RESUME`], by the number of their connection or call.
    wakers: Mutex<HashMap<u64, Waker>>,
}

impl Pauses {
    pub(crate) fn new(starts_paused: bool) -> Self {
        Self { flags: AtomicU8::new(if starts_paused { UNTIL_RESUME } else { 0 }), wakers: Mutex::default() }
    }

    /// Returns whether requests may be held before they start.
    #[inline]
    pub(crate) fn may_hold(&self) -> bool {
        self.flags.load(Ordering::Acquire) != 0
    }

    pub(crate) fn set(&self, flag: u8, is_paused: bool) {
        if is_paused {
            self.flags.fetch_or(flag, Ordering::AcqRel);
        } else {
            self.flags.fetch_and(!flag, Ordering::AcqRel);
        }
    }

    pub(crate) fn awaits_resume(&self) -> bool {
        self.flags.load(Ordering::Acquire) & UNTIL_RESUME != 0
    }

    fn wakers(&self) -> MutexGuard<'_, HashMap<u64, Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether requests are held until `Orb::resume`. If so, registers the task to be woken then.
    pub(crate) fn poll_hold(&self, cx: &mut Context<'_>, number: u64) -> bool {
        if !self.awaits_resume() {
            return false;
        }
        let mut wakers = self.wakers();
        if !self.awaits_resume() {
            return false;
        }
        wakers.insert(number, cx.waker().clone());
        true
    }

    pub(crate) fn remove_waker(&self, number: u64) {
        if self.awaits_resume() {
            self.wakers().remove(&number);
        }
    }

    /// Waits until requests are no longer held by [`UNTIL_RESUME`]. `number` returns a number for this call.
    pub(crate) async fn wait_for_resume(&self, number: impl FnOnce() -> u64) {
        struct Call<'a>(&'a Pauses, u64);
        impl Drop for Call<'_> {
            fn drop(&mut self) {
                self.0.remove_waker(self.1);
            }
        }
        if !self.awaits_resume() {
            return;
        }
        let call = Call(self, number());
        poll_fn(|cx| if self.poll_hold(cx, call.1) { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    /// Ends the pause of [`UNTIL_RESUME`], and wakes all requests that it holds.
    pub(crate) fn resume(&self) {
        self.set(UNTIL_RESUME, false);
        let wakers = std::mem::take(&mut *self.wakers());
        wakers.into_values().for_each(Waker::wake);
    }
}

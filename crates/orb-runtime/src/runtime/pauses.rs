//! Pauses, in which requests are held before they start, until the program calls `Orb::resume` or until
//! memory for replies is available.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The flag of the pause that `Orb::resume` ends.
pub(crate) const ON_HOLD: u8 = 1;

/// The flag of the pause in which requests with large replies are held until memory is available.
pub(crate) const SHORT_OF_MEMORY: u8 = 2;

#[derive(Debug)]
pub(crate) struct Pauses {
    flags: AtomicU8,
    /// The wakers of requests held by [`ON_HOLD`], by the number of their connection or call.
    wakers: Mutex<HashMap<u64, Waker>>,
}

impl Pauses {
    pub(crate) fn new(starts_on_hold: bool) -> Self {
        Self { flags: AtomicU8::new(if starts_on_hold { ON_HOLD } else { 0 }), wakers: Mutex::default() }
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

    pub(crate) fn is_on_hold(&self) -> bool {
        self.flags.load(Ordering::Acquire) & ON_HOLD != 0
    }

    fn wakers(&self) -> MutexGuard<'_, HashMap<u64, Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether requests are held until `Orb::resume`. If so, registers the task to be woken then.
    pub(crate) fn poll_hold(&self, cx: &mut Context<'_>, number: u64) -> bool {
        if !self.is_on_hold() {
            return false;
        }
        let mut wakers = self.wakers();
        if !self.is_on_hold() {
            return false;
        }
        wakers.insert(number, cx.waker().clone());
        true
    }

    pub(crate) fn remove_waker(&self, number: u64) {
        if self.is_on_hold() {
            self.wakers().remove(&number);
        }
    }

    /// Waits until requests are no longer held by [`ON_HOLD`]. `number` returns a number for this call.
    pub(crate) async fn wait_until_accepting(&self, number: impl FnOnce() -> u64) {
        struct Call<'a>(&'a Pauses, u64);
        impl Drop for Call<'_> {
            fn drop(&mut self) {
                self.0.remove_waker(self.1);
            }
        }
        if !self.is_on_hold() {
            return;
        }
        let call = Call(self, number());
        poll_fn(|cx| if self.poll_hold(cx, call.1) { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    /// Ends the pause of [`ON_HOLD`], and wakes all requests that it holds.
    pub(crate) fn resume(&self) {
        self.set(ON_HOLD, false);
        let wakers = std::mem::take(&mut *self.wakers());
        wakers.into_values().for_each(Waker::wake);
    }
}

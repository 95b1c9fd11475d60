//! Holding requests before they start: until the program accepts them, or until memory for replies is
//! available.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Pause flag: requests are held until `Orb::resume`.
pub(crate) const HELD: u8 = 1;

/// Pause flag: requests with large replies are held until memory is available.
pub(crate) const CROWDED: u8 = 2;

/// The reasons for which requests may be held.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// [`HELD`] and [`CROWDED`].
    flags: AtomicU8,
    /// Wakers of requests held by [`HELD`], by connection or call number.
    held: Mutex<HashMap<u64, Waker>>,
}

impl Pauses {
    pub(crate) fn new(hold: bool) -> Self {
        Self { flags: AtomicU8::new(if hold { HELD } else { 0 }), held: Mutex::default() }
    }

    /// Returns whether requests may be held before they start.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.flags.load(Ordering::Acquire) != 0
    }

    pub(crate) fn set(&self, why: u8, pauses: bool) {
        if pauses {
            self.flags.fetch_or(why, Ordering::AcqRel);
        } else {
            self.flags.fetch_and(!why, Ordering::AcqRel);
        }
    }

    /// Returns whether requests are held until `Orb::resume`.
    pub(crate) fn is_on_hold(&self) -> bool {
        self.flags.load(Ordering::Acquire) & HELD != 0
    }

    fn held(&self) -> MutexGuard<'_, HashMap<u64, Waker>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether requests are held. If so, registers the task to be woken by `Orb::resume`.
    pub(crate) fn is_holding(&self, cx: &mut Context<'_>, number: u64) -> bool {
        if !self.is_on_hold() {
            return false;
        }
        let mut held = self.held();
        if !self.is_on_hold() {
            return false;
        }
        held.insert(number, cx.waker().clone());
        true
    }

    /// Removes the connection or call from those that wait for `Orb::resume`.
    pub(crate) fn stop_holding(&self, number: u64) {
        if self.is_on_hold() {
            self.held().remove(&number);
        }
    }

    /// Waits until requests are no longer held. `number` returns the number of a new call.
    pub(crate) async fn accepting(&self, number: impl FnOnce() -> u64) {
        /// Removes the entry of a call that is dropped.
        struct Call<'a>(&'a Pauses, u64);
        impl Drop for Call<'_> {
            fn drop(&mut self) {
                self.0.stop_holding(self.1);
            }
        }
        if !self.is_on_hold() {
            return;
        }
        let call = Call(self, number());
        poll_fn(|cx| if self.is_holding(cx, call.1) { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    /// Ends the hold of the builder, and wakes all requests that it holds.
    pub(crate) fn resume(&self) {
        self.set(HELD, false);
        let held = std::mem::take(&mut *self.held());
        held.into_values().for_each(Waker::wake);
    }
}

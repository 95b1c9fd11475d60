//! Reads and writes through an io_uring (*ring*), which replace those by readiness.
//!
//! Only the driver handles completions, unless a caller spins. An idle connection lends the ring no read
//! buffer: the next header is received into a few bytes that belong to the ring.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::connection::{
    LockedState, MAX_LOW_WATER_BYTES, SLOW_READ_BYTES, SharedConnection, State, before_first_message, now,
};
use crate::transport::uring::UringSocket;
use crate::transport::{ReadCompletion, RingRead};

/// If [`SLOW_READ_BYTES`] bytes take longer, the kernel completes a receive only after a larger amount,
/// because one operation for the whole message would process each segment separately.
const SLOW_READ_TIME: Duration = Duration::from_micros(200);

/// The maximum number of replies that callers take by spinning before the driver and other tasks run.
const MAX_INLINE_REPLIES: usize = 64;

impl SharedConnection {
    /// Takes back a completed write, and registers the driver's waker. Called at each of its polls.
    #[inline]
    pub(crate) fn complete_ring_io<'a>(&self, state: LockedState<'a>, cx: &Context<'_>) -> LockedState<'a> {
        match self.socket.ring() {
            None => state,
            Some(ring) => self.settle_ring(ring, state, cx),
        }
    }

    fn settle_ring<'a>(
        &self,
        ring: &UringSocket,
        mut state: LockedState<'a>,
        cx: &Context<'_>,
    ) -> LockedState<'a> {
        ring.set_waker(cx);
        take_written(ring, &mut state);
        if !state.machine.may_wait_with_buf() && !state.ring.parked {
            // The machine released its read buffer, so the ring must not use it any longer.
            state.ring.parked = true;
            ring.cancel_read();
        }
        state
    }

    /// Polls for input that is already in the socket. With a ring, submits the pending receive first.
    #[cold]
    pub(crate) fn poll_last_input<'a>(
        &'a self,
        mut state: LockedState<'a>,
        cx: &mut Context<'_>,
    ) -> (LockedState<'a>, Poll<io::Result<()>>) {
        let mut ready = self.socket.poll_read_ready(cx);
        if let Some(ring) = self.socket.ring().filter(|_| ready.is_pending()) {
            drop(state);
            ring.process_completions();
            state = self.lock();
            ready = self.socket.poll_read_ready(cx);
        }
        (state, ready)
    }

    /// Polls the ring for the spin time before the driver sleeps. Returns whether something completed.
    pub(crate) fn spin_ring<'a>(
        &'a self,
        ring: &UringSocket,
        state: LockedState<'a>,
    ) -> (LockedState<'a>, bool) {
        drop(state);
        let received = ring.spin(self.spin);
        (self.lock(), received)
    }

    /// Polls the ring for the reply of the only pending call, if the caller runs on the driver's thread.
    /// Returns whether something was received. The caller must drain the events.
    pub(crate) fn spin_for_reply<'a>(
        &'a self,
        ring: &UringSocket,
        mut state: LockedState<'a>,
    ) -> (LockedState<'a>, bool) {
        if state.ring.inline_replies >= MAX_INLINE_REPLIES || !ring.is_on_ring_thread() {
            return (state, false);
        }
        let begun = now();
        loop {
            take_written(ring, &mut state);
            (state, _) = self.flush(state);
            if !state.machine.wants_read() {
                return (state, false);
            }
            let received;
            (state, received) = self.read_ring(ring, state);
            if received {
                // If no call follows, the driver must continue to read.
                state.ring.inline_replies += 1;
                state.wake_driver();
                return (state, true);
            }
            drop(state);
            let left = self.spin.saturating_sub(now().saturating_duration_since(begun));
            let completed = !left.is_zero() && ring.spin(left);
            state = self.lock();
            if !completed {
                return (state, false);
            }
        }
    }

    /// Submits all queued messages. The kernel completes writes that the socket does not accept at once.
    pub(crate) fn submit<'a>(&'a self, ring: &UringSocket, mut state: LockedState<'a>) {
        if !ring.is_on_ring_thread() {
            drop(state);
            return self.wait_until_flushed();
        }
        while state.write.writing || state.machine.has_output() {
            (state, _) = self.flush(state);
            drop(state);
            ring.process_completions();
            state = self.lock();
            take_written(ring, &mut state);
            if state.write.writing || state.machine.lifecycle().is_closed() {
                return;
            }
        }
    }

    #[cold]
    fn wait_until_flushed(&self) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut flushed = pin!(self.flushed());
        while flushed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
    }

    /// Takes received bytes, or starts a receive. Returns whether the caller must drain events.
    #[inline(never)]
    pub(crate) fn read_ring<'a>(
        &self,
        ring: &UringSocket,
        mut state: LockedState<'a>,
    ) -> (LockedState<'a>, bool) {
        let read = ring.take_read();
        let received = !matches!(read, RingRead::Pending | RingRead::Idle);
        if matches!(read, RingRead::Pending) {
            return (state, received);
        }
        let now = now();
        state.clock = now;
        match read {
            RingRead::Pending => {}
            RingRead::Idle if state.machine.may_wait_with_buf() && !state.ring.parked => {
                let rest = state.machine.input().rest();
                let slow = state.ring.receives_slowly && rest >= SLOW_READ_BYTES;
                #[cfg(feature = "experiments")]
                let slow = slow && self.adapts_low_water;
                let completion = if before_first_message(&state) {
                    ReadCompletion::AnyBytes
                } else if slow {
                    ReadCompletion::LowWater
                } else {
                    ReadCompletion::Message
                };
                let is_raised = completion == ReadCompletion::LowWater;
                self.apply_low_water(&mut state, if is_raised { rest.min(MAX_LOW_WATER_BYTES) } else { 1 });
                state.ring.receive_started = now;
                ring.start_read(state.machine.take_read_buf(), completion);
            }
            RingRead::Idle => {
                self.apply_low_water(&mut state, 1);
                ring.start_header();
            }
            RingRead::Header(bytes, n) => {
                state.ring.parked = false;
                if !state.machine.handle_early(bytes.get(..n).unwrap_or_default(), now) {
                    // Cannot happen: the machine always has capacity for one header.
                    state.machine.handle_read_error(&io::ErrorKind::InvalidData.into(), now);
                }
            }
            RingRead::Read(buf, outcome) => {
                let n = outcome.as_ref().map_or(0, |n| *n);
                if buf.is_deposit() && n >= SLOW_READ_BYTES {
                    let duration = now.saturating_duration_since(state.ring.receive_started);
                    state.ring.receives_slowly =
                        duration.as_nanos() * SLOW_READ_BYTES as u128 > SLOW_READ_TIME.as_nanos() * n as u128;
                }
                let socket_emptied = n < buf.capacity();
                state.machine.handle_read(buf, n, now);
                state.ring.parked &= n == 0;
                state.ring.parked |= socket_emptied && state.machine.lifecycle().discards_input();
                match outcome {
                    Ok(0) => state.machine.handle_eof(now),
                    Ok(_) => {}
                    Err(error) if is_cancelled(&error) => {}
                    Err(error) => state.machine.handle_read_error(&error, now),
                }
            }
            RingRead::Ended(Ok(())) => state.machine.handle_eof(now),
            RingRead::Ended(Err(error)) => state.machine.handle_read_error(&error, now),
        }
        (state, received)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn take_written(ring: &UringSocket, state: &mut State) {
    if let Some((transmit, outcome)) = ring.take_written() {
        let now = state.clock;
        state.machine.handle_written(transmit, now);
        if let Err(error) = outcome {
            state.machine.handle_write_error(&error, now);
        }
        state.write.writing = false;
        state.wake_after_write();
    }
}

/// Returns whether a read ended without data because it was cancelled.
fn is_cancelled(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || error.raw_os_error() == Some(rustix::io::Errno::CANCELED.raw_os_error())
}

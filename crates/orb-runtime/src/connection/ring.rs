//! Reads and writes a socket through an io_uring (*ring*), instead of waiting until the socket is ready.
//!
//! Only the driver handles completions, unless a caller polls the ring. The ring does not hold a read buffer
//! of an idle connection: the next header is received into a few bytes that belong to the ring.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::connection::{
    LockedState, MAX_LOW_WATER_BYTES, SLOW_READ_BYTES, SharedConnection, State, is_before_first_message, now,
};
use crate::transport::uring::UringSocket;
use crate::transport::{ReadCompletion, RingRead};

/// A message arrives slowly if [`SLOW_READ_BYTES`] bytes take longer than this. The kernel then completes a
/// receive only after many bytes, because it would otherwise process each segment separately.
const SLOW_READ_TIME: Duration = Duration::from_micros(200);

/// The maximum number of replies that callers receive by polling the ring before the driver runs.
const MAX_INLINE_REPLIES: usize = 64;

impl SharedConnection {
    /// Handles a completed write, and registers the driver's waker. Called whenever the driver is polled.
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
        if !state.machine.may_wait_with_buf() && !state.ring.is_buffer_withheld {
            // The machine wants its read buffer back, so the ring must no longer use it.
            state.ring.is_buffer_withheld = true;
            ring.cancel_read();
        }
        state
    }

    /// Polls for bytes that the socket has already received. With a ring, first submits the pending receive.
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

    /// Polls the ring for up to the spin time. Returns whether an operation has completed.
    pub(crate) fn spin_ring<'a>(
        &'a self,
        ring: &UringSocket,
        state: LockedState<'a>,
    ) -> (LockedState<'a>, bool) {
        drop(state);
        let received = ring.spin(self.spin_time);
        (self.lock(), received)
    }

    /// Polls the ring for the reply to the only pending call, if the caller runs on the ring's thread.
    /// Returns whether something was received. The caller must then drain the events.
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
                // The driver must continue to read if no further call is made.
                state.ring.inline_replies += 1;
                state.wake_driver();
                return (state, true);
            }
            drop(state);
            let left = self.spin_time.saturating_sub(now().saturating_duration_since(begun));
            let completed = !left.is_zero() && ring.spin(left);
            state = self.lock();
            if !completed {
                return (state, false);
            }
        }
    }

    /// Submits all queued messages. If the socket does not accept them, the kernel completes the write later.
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

    /// Handles received bytes, or starts a receive. Returns whether the caller must drain the events.
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
            RingRead::Idle if state.machine.may_wait_with_buf() && !state.ring.is_buffer_withheld => {
                let rest = state.machine.input().granted_missing_bytes();
                let slow = state.ring.receives_slowly && rest >= SLOW_READ_BYTES;
                #[cfg(feature = "experiments")]
                let slow = slow && self.adapts_low_water;
                let completion = if is_before_first_message(&state) {
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
                ring.start_header_read();
            }
            RingRead::Header(bytes, n) => {
                state.ring.is_buffer_withheld = false;
                if !state.machine.handle_early_bytes(bytes.get(..n).unwrap_or_default(), now) {
                    // Unreachable, because the machine can always take one header.
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
                state.ring.is_buffer_withheld &= n == 0;
                state.ring.is_buffer_withheld |= socket_emptied && state.machine.lifecycle().discards_input();
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

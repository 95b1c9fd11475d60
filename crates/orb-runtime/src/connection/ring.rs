//! Reads and writes through a ring (`io_uring`), which replace the readiness-based ones.
//!
//! Only the driver handles completions, unless a caller spins. Callers queue and wait to be woken. While no
//! message is expected, a few bytes that belong to the ring receive the next header. A window, or the buffer
//! of a large message, is lent when there is something to receive, or if the connection keeps its window
//! anyway.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::connection::{LOW_WATER, SLOW_READ_BYTES, SharedConnection, State, before_first_message, now};
use crate::transport::uring::UringSocket;
use crate::transport::{ReadCompletion, RingRead};

/// Time for [`SLOW_READ_BYTES`] bytes from which a large message counts as slow. The kernel then waits for
/// larger amounts. It would otherwise handle each segment separately while one operation receives the whole
/// message.
const SLOW: Duration = Duration::from_micros(200);

/// Number of replies that a caller may take by spinning before other tasks of its thread run, the driver
/// included.
const SPINS: usize = 64;

impl SharedConnection {
    /// Takes back a completed write, and registers the driver's waker with the ring. Called at each poll of
    /// the driver.
    #[inline]
    pub(crate) fn complete_ring_io<'a>(
        &self,
        state: MutexGuard<'a, State>,
        cx: &Context<'_>,
    ) -> MutexGuard<'a, State> {
        match self.socket.ring() {
            None => state,
            Some(ring) => self.settle_ring(ring, state, cx),
        }
    }

    fn settle_ring<'a>(
        &self,
        ring: &UringSocket,
        mut state: MutexGuard<'a, State>,
        cx: &Context<'_>,
    ) -> MutexGuard<'a, State> {
        ring.set_waker(cx);
        take_written(ring, &mut state);
        if !state.machine.may_wait_with_buf() && !state.ring.parked {
            // The machine gave up its window, so the ring must not keep it.
            state.ring.parked = true;
            ring.cancel_read();
        }
        state
    }

    /// Polls for input so that nothing in the socket is missed. A receive that was passed to a ring may not
    /// be submitted yet.
    #[cold]
    pub(crate) fn poll_last_input<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        cx: &mut Context<'_>,
    ) -> (MutexGuard<'a, State>, Poll<io::Result<()>>) {
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
        state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, bool) {
        drop(state);
        let came = ring.spin(self.spin);
        (self.lock(), came)
    }

    /// Polls the ring as the only caller that waits, on the driver's thread: the caller takes its reply
    /// itself. Returns whether something was received. The caller drains the events.
    pub(crate) fn spin_for_reply<'a>(
        &'a self,
        ring: &UringSocket,
        mut state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, bool) {
        if state.ring.inline_replies >= SPINS || !ring.is_on_ring_thread() {
            return (state, false);
        }
        let begun = now();
        loop {
            take_written(ring, &mut state);
            (state, _) = self.flush(state);
            if !state.machine.wants_read() {
                return (state, false);
            }
            let came;
            (state, came) = self.read_ring(ring, state);
            if came {
                // If no call follows, the driver must continue to read.
                state.ring.inline_replies += 1;
                state.wake_driver();
                return (state, true);
            }
            drop(state);
            let left = self.spin.saturating_sub(now().saturating_duration_since(begun));
            let news = !left.is_zero() && ring.spin(left);
            state = self.lock();
            if !news {
                return (state, false);
            }
        }
    }

    /// Submits everything queued. The kernel completes what the socket does not accept at once.
    pub(crate) fn submit<'a>(&'a self, ring: &UringSocket, mut state: MutexGuard<'a, State>) {
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

    /// Blocks until the thread of the ring has written the queue, or the connection is lost.
    #[cold]
    fn wait_until_flushed(&self) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut flushed = pin!(self.flushed());
        while flushed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
    }

    /// Takes what the ring has received, or starts a receive. Returns whether something was received. The
    /// caller drains the events.
    #[inline(never)]
    pub(crate) fn read_ring<'a>(
        &self,
        ring: &UringSocket,
        mut state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, bool) {
        let got = ring.take_read();
        let came = !matches!(got, RingRead::Pending | RingRead::Idle);
        if matches!(got, RingRead::Pending) {
            return (state, came);
        }
        let now = now();
        state.clock = now;
        match got {
            RingRead::Pending => {}
            RingRead::Idle if state.machine.may_wait_with_buf() && !state.ring.parked => {
                let rest = state.machine.input().rest();
                let slow = state.ring.slow && rest >= SLOW_READ_BYTES;
                #[cfg(feature = "experiments")]
                let slow = slow && self.trickles;
                let completion = if before_first_message(&state) {
                    ReadCompletion::AnyBytes
                } else if slow {
                    ReadCompletion::LowWater
                } else {
                    ReadCompletion::Message
                };
                self.await_octets(
                    &mut state,
                    if completion == ReadCompletion::LowWater { rest.min(LOW_WATER) } else { 1 },
                );
                state.ring.receive_started = now;
                ring.start_read(state.machine.take_read_buf(), completion);
            }
            RingRead::Idle => {
                self.await_octets(&mut state, 1);
                ring.start_header();
            }
            RingRead::Header(octets, n) => {
                state.ring.parked = false;
                if !state.machine.handle_early(octets.get(..n).unwrap_or_default(), now) {
                    // The machine always has capacity for one expected header.
                    state.machine.handle_read_error(&io::ErrorKind::InvalidData.into(), now);
                }
            }
            RingRead::Read(buf, outcome) => {
                let n = outcome.as_ref().map_or(0, |n| *n);
                if buf.is_deposit() && n >= SLOW_READ_BYTES {
                    let took = now.saturating_duration_since(state.ring.receive_started);
                    state.ring.slow = took.as_nanos() * SLOW_READ_BYTES as u128 > SLOW.as_nanos() * n as u128;
                }
                let emptied = n < buf.capacity();
                state.machine.handle_read(buf, n, now);
                state.ring.parked &= n == 0;
                state.ring.parked |= emptied && state.machine.lifecycle().throws_away();
                match outcome {
                    Ok(0) => state.machine.handle_eof(now),
                    Ok(_) => {}
                    Err(error) if is_nothing(&error) => {}
                    Err(error) => state.machine.handle_read_error(&error, now),
                }
            }
            RingRead::Ended(Ok(())) => state.machine.handle_eof(now),
            RingRead::Ended(Err(error)) => state.machine.handle_read_error(&error, now),
        }
        (state, came)
    }
}

/// Waker that unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Takes back a completed write.
fn take_written(ring: &UringSocket, state: &mut State) {
    if let Some((transmit, outcome)) = ring.take_written() {
        let now = state.clock;
        state.machine.handle_written(transmit, now);
        if let Err(error) = outcome {
            state.machine.handle_write_error(&error, now);
        }
        state.write.writing = false;
        state.wrote();
    }
}

/// Returns whether a read ended without data because it was cancelled.
fn is_nothing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || error.raw_os_error() == Some(rustix::io::Errno::CANCELED.raw_os_error())
}

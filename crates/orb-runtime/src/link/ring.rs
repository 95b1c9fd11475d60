//! Reads and writes that are given to a ring, in place of those that are made when the socket is ready.
//!
//! Only the driver deals with what the ring gives back; callers queue, and wait to be woken. While nothing is expected, a few
//! octets of the ring wait for the next header; a window, or the buffer of a large message, is lent where there is something to
//! receive, or where the connection keeps its window anyway.

use std::io;
use std::sync::MutexGuard;
use std::task::Context;

use super::{BACKLOG, Link, State, now};
use crate::transport::RingRead;
use crate::transport::uring::UringSocket;

impl Link {
    /// Takes back a write that is over. Called by the driver at each of its turns, which also hears of the ring from now on.
    #[inline]
    pub(super) fn settle<'a>(&self, state: MutexGuard<'a, State>, cx: &Context<'_>) -> MutexGuard<'a, State> {
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
        if !state.machine.may_wait_with_buf() && !state.quiet {
            // The machine gave up its window: the ring must not keep it.
            state.quiet = true;
            ring.cancel_read();
        }
        state
    }

    /// Submits all that is queued. What the socket does not take now, the kernel goes on with by itself.
    pub(super) fn submit<'a>(&'a self, ring: &UringSocket, mut state: MutexGuard<'a, State>) {
        while state.writing || state.machine.has_output() {
            (state, _) = self.flush(state);
            drop(state);
            ring.look();
            state = self.lock();
            take_written(ring, &mut state);
            if state.writing || state.machine.is_closed() {
                return;
            }
        }
    }

    /// Takes what the ring has received, or starts to receive; says whether something came. The caller drains the events.
    #[inline(never)]
    pub(super) fn read_ring<'a>(
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
            RingRead::Idle if state.machine.may_wait_with_buf() && !state.quiet => {
                ring.start_read(state.machine.take_read_buf());
            }
            RingRead::Idle => ring.start_header(),
            RingRead::Early(octets, n) => {
                state.quiet = false;
                if !state.machine.handle_early(octets.get(..n).unwrap_or_default(), now) {
                    // There is always room for the header that was waited for.
                    state.machine.handle_read_error(&io::ErrorKind::InvalidData.into(), now);
                }
            }
            RingRead::Read(buf, outcome) => {
                let n = outcome.as_ref().map_or(0, |n| *n);
                state.machine.handle_read(buf, n, now);
                state.quiet &= n == 0;
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

/// Takes back a write that is over.
fn take_written(ring: &UringSocket, state: &mut State) {
    if let Some((transmit, outcome)) = ring.take_written() {
        let now = state.clock;
        state.machine.handle_written(transmit, now);
        if let Err(error) = outcome {
            state.machine.handle_write_error(&error, now);
        }
        state.writing = false;
        if state.machine.backlog() < BACKLOG {
            state.wake_room();
        }
    }
}

/// Whether a read ended with nothing because it was told to.
fn is_nothing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || error.raw_os_error() == Some(rustix::io::Errno::CANCELED.raw_os_error())
}

//! The payload of a request that is served while it comes, or of a reply that is taken so.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::MutexGuard;
use std::task::{Context, Poll};
use std::time::Instant;

use giop_proto::{Chunk, Loan, Returned, StreamOf};

use super::{Link, State, now};

/// What becomes of lent memory.
#[derive(Debug)]
pub(crate) enum Lent {
    /// It comes back.
    Back(Box<Loan>),
    /// Nothing was read into it: only chunks are there to be taken, or the end.
    Useless(Box<Loan>),
    /// The runtime that reads is gone, and keeps it.
    Lost,
}

impl Link {
    /// Keeps the payload until it is taken or given up. `size` is the number of bytes, or `None` if it is not known; `phase` is the
    /// offset of the first of them in an element, or `None` for bytes.
    pub(crate) fn open_stream(&self, of: StreamOf, size: Option<u64>, phase: Option<usize>) {
        let mut state = self.lock();
        state.machine.open_stream(of, size);
        if let Some(phase) = phase {
            state.machine.align_stream(of, phase);
        }
    }

    /// Ends the connection at the deadline, unless all of the payload has been received by then.
    pub(crate) fn limit_stream(&self, of: StreamOf, deadline: Instant) {
        let mut state = self.lock();
        state.machine.limit_stream(of, deadline);
        state.rearm(deadline);
    }

    /// The number of bytes that the peer has still to send, or `u64::MAX` if it is not known.
    pub(crate) fn stream_rest(&self, of: StreamOf) -> u64 {
        self.lock().machine.stream_rest(of)
    }

    /// Whether a payload is being received.
    pub(crate) fn has_stream(&self) -> bool {
        self.lock().machine.has_stream()
    }

    /// The largest payload that may come as a stream.
    pub(crate) fn max_stream_size(&self) -> u64 {
        self.lock().machine.limits().max_stream_size
    }

    /// Takes the next bytes of the payload, or its end.
    pub(crate) fn poll_chunk(&self, of: StreamOf, cx: &mut Context<'_>) -> Poll<Chunk> {
        let mut state = self.lock();
        let chunk = state.machine.take_chunk(of, now());
        // There is room for the next one, or one is asked for.
        state.let_driver_read();
        if let Chunk::Pending = chunk {
            state.stream = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(chunk)
    }

    /// The next octets of the payload, if they are there: nothing is read for it.
    pub(crate) fn ready_chunk(&self, of: StreamOf) -> Chunk {
        let mut state = self.lock();
        let chunk = state.machine.take_ready_chunk(of);
        if matches!(chunk, Chunk::End | Chunk::Lost) {
            state.wake_driver();
        }
        chunk
    }

    /// Lends memory for the next octets of the payload, once, and waits until it comes back.
    pub(crate) fn poll_lent(
        &self,
        of: StreamOf,
        loan: &mut Option<Box<Loan>>,
        cx: &mut Context<'_>,
    ) -> Poll<Lent> {
        let mut state = self.lock();
        if let Some(loan) = loan.take() {
            if let Err(loan) = state.machine.lend(of, loan, now()) {
                return Poll::Ready(Lent::Useless(loan));
            }
            state.let_driver_read();
        }
        match state.machine.take_loan() {
            Returned::Loan(loan) => Poll::Ready(Lent::Back(loan)),
            Returned::Nothing => Poll::Ready(Lent::Lost),
            Returned::Pending => {
                state.stream = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Counts octets of the payload that were copied to their place.
    pub(crate) fn count_copied(&self, octets: usize) {
        self.lock().machine.count_copied(octets);
    }

    /// The octets that a payload may occupy before they come.
    pub(crate) fn granted(&self) -> usize {
        self.lock().machine.granted()
    }

    /// The rest of the payload is not wanted.
    pub(crate) fn abandon_stream(&self, of: StreamOf) {
        let mut state = self.lock();
        let loan = state.machine.abandon_stream(of);
        state.let_driver_read();
        if state.machine.is_loan_read()
            && let Some(ring) = self.socket.ring()
        {
            // The kernel lets go of it before it is full.
            ring.cancel_read();
        }
        drop(state);
        // It runs the code of whoever lent it, which may come here again.
        drop(loan);
    }

    /// Drops what servants had lent and do not wait for.
    #[inline]
    pub(super) fn bury<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let dead = state.machine.take_dead();
        if dead.is_empty() {
            return state;
        }
        drop(state);
        drop_lent(dead);
        self.lock()
    }

    /// Takes back what a ring has of a servant's memory, behind the end of the connection. Says whether it has none any more.
    pub(super) fn recall<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        cx: &mut Context<'_>,
    ) -> (MutexGuard<'a, State>, bool) {
        if state.machine.is_loan_read()
            && let Some(ring) = self.socket.ring()
        {
            ring.cancel_read();
            if ring.poll_read_ready(cx).is_pending() {
                return (state, false);
            }
            (state, _) = self.read_ring(ring, state);
            // A ring that has ended keeps it.
            state.machine.lose_loan();
        }
        state.wake_stream();
        (self.bury(state), true)
    }

    /// Nobody reads any more: what is with the kernel does not come back to whoever lent it.
    #[cold]
    pub(super) fn end_streams(&self) {
        let mut state = self.lock();
        state.machine.lose_loan();
        state.wake_room();
        drop(self.bury(state));
    }
}

/// Drops memory that servants had lent; a panic in their code costs nothing here.
#[cold]
#[expect(clippy::vec_box, reason = "the boxes go round")]
pub(crate) fn drop_lent(loans: Vec<Box<Loan>>) {
    for loan in loans {
        if catch_unwind(AssertUnwindSafe(|| drop(loan))).is_err() {
            tracing::warn!(target: "zorb", "a deposit target panicked when it was dropped");
        }
    }
}

//! Streams: payloads of requests and replies that are processed while they are received.

use std::task::{Context, Poll};
use std::time::Instant;

use giop_proto::{Chunk, Loan, LoanReturn, StreamId};

use crate::connection::{LockedState, SharedConnection, now};
use crate::transport::drop_loans;

/// The result of lending memory to the connection, which reads the next bytes of a payload into it.
#[derive(Debug)]
pub(crate) enum LoanResult {
    /// The memory was returned. It may be only partly filled.
    Returned(Box<Loan>),
    /// The memory was not used: the next bytes, or the end of the payload, must be taken as a chunk.
    Unused(Box<Loan>),
    /// The memory is lost, because the code that reads the socket has ended without returning it.
    Lost,
}

impl SharedConnection {
    /// Opens the payload, which is kept until it is taken or abandoned. `size` is its size in bytes, if
    /// known. `element_offset` is the position within an element at which it begins, or `None` for bytes.
    pub(crate) fn open_stream(&self, stream_id: StreamId, size: Option<u64>, element_offset: Option<usize>) {
        let mut state = self.lock();
        state.machine.input_mut().open_stream(stream_id, size);
        if let Some(element_offset) = element_offset {
            state.machine.input_mut().align_stream(stream_id, element_offset);
        }
    }

    /// Ends the connection at the deadline, unless the whole payload has been received before.
    pub(crate) fn set_stream_deadline(&self, stream_id: StreamId, deadline: Instant) {
        let mut state = self.lock();
        state.machine.input_mut().set_stream_deadline(stream_id, deadline);
        state.rearm(deadline);
    }

    /// Returns the number of bytes of the payload that are still to be received, or `u64::MAX` if unknown.
    pub(crate) fn missing_stream_bytes(&self, stream_id: StreamId) -> u64 {
        self.lock().machine.input().missing_stream_bytes(stream_id)
    }

    pub(crate) fn max_stream_size(&self) -> u64 {
        self.lock().machine.limits().max_stream_size
    }

    pub(crate) fn poll_chunk(&self, stream_id: StreamId, cx: &mut Context<'_>) -> Poll<Chunk> {
        let mut state = self.lock();
        let chunk = state.machine.stream(stream_id).take_chunk(now());
        // The connection can now receive the next chunk.
        state.let_driver_read();
        if let Chunk::Pending = chunk {
            state.stream_reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(chunk)
    }

    /// Returns the next bytes of the payload if they have already been received.
    pub(crate) fn ready_chunk(&self, stream_id: StreamId) -> Chunk {
        let mut state = self.lock();
        let chunk = state.machine.stream(stream_id).take_ready_chunk();
        if matches!(chunk, Chunk::End | Chunk::Lost) {
            state.wake_driver();
        }
        chunk
    }

    /// Lends the memory in `loan` for the next bytes of the payload, and waits until it is returned.
    pub(crate) fn poll_loan(
        &self,
        stream_id: StreamId,
        loan: &mut Option<Box<Loan>>,
        cx: &mut Context<'_>,
    ) -> Poll<LoanResult> {
        let mut state = self.lock();
        if let Some(loan) = loan.take() {
            if let Err(loan) = state.machine.stream(stream_id).lend(loan, now()) {
                return Poll::Ready(LoanResult::Unused(loan));
            }
            state.let_driver_read();
        }
        match state.machine.input_mut().take_loan() {
            LoanReturn::Loan(loan) => Poll::Ready(LoanResult::Returned(loan)),
            LoanReturn::Nothing => Poll::Ready(LoanResult::Lost),
            LoanReturn::Pending => {
                state.stream_reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn count_copied(&self, bytes: usize) {
        self.lock().machine.input_mut().count_copied(bytes);
    }

    /// Returns how many bytes may be allocated for a payload before they are received.
    pub(crate) fn preallocation_limit(&self) -> usize {
        self.lock().machine.input().largest_received_bytes()
    }

    pub(crate) fn abandon_stream(&self, stream_id: StreamId) {
        let mut state = self.lock();
        let loan = state.machine.stream(stream_id).abandon();
        state.let_driver_read();
        if state.machine.input().is_loan_in_use()
            && let Some(ring) = self.socket.ring()
        {
            // Without this, the kernel would use the memory until it is full.
            ring.cancel_read();
        }
        drop(state);
        // Drop the memory without the lock, because its owner's code may use this connection.
        drop(loan);
    }

    /// Drops the memory of servants that no longer wait for it.
    #[inline]
    pub(crate) fn drop_orphaned_loans<'a>(&'a self, mut state: LockedState<'a>) -> LockedState<'a> {
        let orphaned = state.machine.input_mut().take_orphaned_loans();
        if orphaned.is_empty() {
            return state;
        }
        drop(state);
        drop_loans(orphaned);
        self.lock()
    }

    /// Takes lent memory back from an io_uring after the end of the connection. Returns whether it is back.
    pub(crate) fn reclaim_ring_buffers<'a>(
        &'a self,
        mut state: LockedState<'a>,
        cx: &mut Context<'_>,
    ) -> (LockedState<'a>, bool) {
        if state.machine.input().is_loan_in_use()
            && let Some(ring) = self.socket.ring()
        {
            ring.cancel_read();
            if ring.poll_read_ready(cx).is_pending() {
                return (state, false);
            }
            (state, _) = self.read_ring(ring, state);
            // If the io_uring itself has ended, it does not return the memory.
            state.machine.input_mut().lose_loan();
        }
        state.wake_stream();
        (self.drop_orphaned_loans(state), true)
    }

    /// Wakes all waiting tasks after reading has ended. Memory that the kernel still uses is lost.
    #[cold]
    pub(crate) fn end_streams(&self) {
        let mut state = self.lock();
        state.machine.input_mut().lose_loan();
        state.wake_waiters();
        drop(self.drop_orphaned_loans(state));
    }
}

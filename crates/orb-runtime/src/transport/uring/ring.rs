//! An io_uring and its operations in the kernel. This is the only file of this transport with `unsafe`.
//!
//! # Soundness
//! The kernel accesses memory between the submission of an operation and its completion.
//!
//! * All such memory belongs to a [`RingConnection`]. Buffers are moved into it before their addresses are
//!   taken. They are moved out only by [`Ring::complete`], after the operation has completed.
//! * Moving a `ReadBuf`, a `Transmit` or a `RingConnection` moves a box, not the memory that the kernel uses.
//! * A descriptor is closed with its `RingConnection`, which is dropped after its last operation. Therefore
//!   no entry contains a descriptor that was reused.
//! * A ring that is dropped before its operations have completed leaks their memory.
//! * A servant can lend memory (`DepositTarget`). The method that lends it borrows the target, which is
//!   neither used nor dropped before the operation has completed.
//!
//! # Locks
//! The queues have their own lock, which is held during system calls. Meanwhile, the lock of the connections
//! is taken only briefly. Therefore a thread that queues an operation need not wait for the kernel.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;
use std::{io, mem, ptr};

use giop_proto::Loan;
use giop_proto::outbox::Transmit;
use giop_proto::pool::BufferPool;
use giop_proto::receive::{HEADER_LEN, ReadBuf};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue, types};

use crate::lock::lock;
use crate::transport::outcome::{ReadCompletion, RingRead};
use crate::transport::uring::conn::{
    CANCEL, Chain, ConnIndex, HEADER, HeaderState, KIND_BITS, MAX_CHAIN_LEN, MAX_VECTORS, MAX_WRITE_BYTES,
    POLL_FIRST, READ, ReadState, RingConnection, WRITE, WriteState, cancellation_entry, header_read_entry,
    ring_ended_error, user_data,
};

/// The number of entries of the submission queue. Further entries wait in [`Ring`].
const SUBMISSION_QUEUE_SIZE: u32 = 256;
/// The number of entries of the completion queue. The kernel keeps further completions.
const COMPLETION_QUEUE_SIZE: u32 = 4096;
/// The maximum number of submissions of one [`Queues::process`].
const MAX_SUBMISSIONS: usize = 16;

pub(super) struct Queues {
    io: IoUring,
    enter_calls: Arc<AtomicU64>,
}

pub(super) struct State {
    pub(super) ring: Ring,
    pub(super) reaper: Option<Waker>,
    /// Whether the reaper was woken to submit entries, and has not run yet.
    pub(super) reaper_woken: bool,
}

#[derive(Default)]
pub(super) struct Ring {
    conns: Vec<Option<Box<RingConnection>>>,
    free_indexes: Vec<u32>,
    queued: VecDeque<QueuedEntry>,
    /// The number of operations that have not completed.
    in_flight: usize,
    /// Whether the ring has ended. If so, the kernel is no longer entered for it.
    ended: bool,
    /// The wakers of connections with new completions.
    pub(super) wakers: Vec<Waker>,
    /// Memory that servants have lent. It must be dropped without the lock, because that may run their code.
    #[expect(clippy::vec_box, reason = "loans are boxed everywhere, so that moving them is cheap")]
    pub(super) returned_loans: Vec<Box<Loan>>,
}

struct QueuedEntry {
    entry: squeue::Entry,
    /// Whether the next entry is linked to this one.
    linked: bool,
}

/// The lists of slices of a chain of vectored writes.
pub(super) struct Vectors {
    slices: [[libc::iovec; MAX_VECTORS]; MAX_CHAIN_LEN],
    pub(super) messages: [libc::msghdr; MAX_CHAIN_LEN],
}

// SAFETY: the addresses refer to buffers of the same connection. After a submission, only the kernel reads
// them.
unsafe impl Send for Vectors {}

impl Queues {
    /// Creates the queues. The flags are chosen for these reasons:
    ///
    /// * Completions run while the submitting thread is in the kernel anyway, and need no system call.
    /// * `DEFER_TASKRUN` is not used, because the kernel would not notify epoll of completions.
    /// * The ring does not belong to a thread. Therefore the runtime may move to another thread.
    pub(super) fn new(enter_calls: Arc<AtomicU64>) -> io::Result<Self> {
        let builder = || {
            let mut builder = IoUring::builder();
            builder.setup_clamp().setup_cqsize(COMPLETION_QUEUE_SIZE);
            builder
        };
        let io = match builder().setup_coop_taskrun().setup_taskrun_flag().build(SUBMISSION_QUEUE_SIZE) {
            // Kernels before Linux 5.19 do not support these flags.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                builder().build(SUBMISSION_QUEUE_SIZE)?
            }
            other => other?,
        };
        let params = io.params();
        if !params.is_feature_nodrop()
            || !params.is_feature_ext_arg()
            || !params.is_feature_skip_cqe_on_success()
        {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel is older than Linux 5.17"));
        }
        Ok(Self { io, enter_calls })
    }

    pub(super) fn raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }

    /// Takes completions and submits entries. Waits for `min_completions` completions, but at most for
    /// `wait`. After an error, the ring must be ended.
    pub(super) fn process(
        &mut self,
        state: &Mutex<State>,
        min_completions: u32,
        wait: Duration,
    ) -> io::Result<()> {
        self.take_completions(state);
        for _ in 0..MAX_SUBMISSIONS {
            let mut locked = lock(state);
            locked.reaper_woken = false;
            if locked.ring.ended {
                break;
            }
            locked.ring.move_to_submission_queue(&mut self.io);
            drop(locked);
            let mut queue = self.io.submission();
            let (queued, overflow) = (queue.len(), queue.cq_overflow());
            queue.sync();
            drop(queue);
            if queued == 0 && min_completions == 0 && !overflow {
                break;
            }
            self.enter_calls.fetch_add(1, Ordering::Relaxed);
            let outcome = if min_completions > 0 {
                let time = types::Timespec::from(wait);
                self.io
                    .submitter()
                    .submit_with_args(min_completions as usize, &types::SubmitArgs::new().timespec(&time))
            } else {
                self.io.submitter().submit()
            };
            self.take_completions(state);
            match outcome {
                // The kernel may have split a chain of linked entries. The rest would then run unlinked.
                Ok(taken) if taken < queued => {
                    return Err(io::Error::new(
                        io::ErrorKind::OutOfMemory,
                        "the kernel accepted only a part of a submission",
                    ));
                }
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    // Not fatal: a queue or the memory is full, a signal arrived, or the wait timed out.
                    Some(libc::EBUSY | libc::EAGAIN | libc::EINTR | libc::ETIME) => {}
                    _ => return Err(error),
                },
            }
            if min_completions > 0 {
                break;
            }
        }
        Ok(())
    }

    /// Takes completions and submits queued entries. Makes no system call if there is nothing to do.
    pub(super) fn poll(&mut self, state: &Mutex<State>) -> io::Result<()> {
        if self.io.submission().taskrun() {
            self.run_completions(state)
        } else {
            self.process(state, 0, Duration::ZERO)
        }
    }

    /// Lets the kernel run pending completions. Then takes completions and submits entries.
    pub(super) fn run_completions(&mut self, state: &Mutex<State>) -> io::Result<()> {
        let flags = EnterFlags::GETEVENTS.bits();
        self.enter_calls.fetch_add(1, Ordering::Relaxed);
        // SAFETY: no entry is submitted, and there is no argument.
        drop(unsafe { self.io.submitter().enter::<libc::sigset_t>(0, 0, flags, None) });
        self.process(state, 0, Duration::ZERO)
    }

    /// Returns whether the submission queue has entries that were not submitted.
    pub(super) fn has_entries(&mut self) -> bool {
        !self.io.submission().is_empty()
    }

    /// Completes operations. Makes no system call unless the queue overflowed.
    pub(super) fn take_completions(&mut self, state: &Mutex<State>) {
        let mut completions = self.io.completion();
        if completions.is_empty() {
            return;
        }
        let ring = &mut lock(state).ring;
        loop {
            for completion in &mut completions {
                ring.complete(completion.user_data(), completion.result(), completion.flags());
            }
            // More completions may have arrived, or the kernel kept some because the queue was full.
            completions.sync();
            if completions.is_empty() {
                return;
            }
        }
    }
}

impl Ring {
    /// Adds a socket in blocking mode. In non-blocking mode, operations would fail with `EAGAIN`.
    pub(super) fn insert(&mut self, fd: OwnedFd, pool: Arc<BufferPool>, count: Arc<AtomicU64>) -> ConnIndex {
        let conn = Box::new(RingConnection::new(fd, pool, count));
        if let Some(index) = self.free_indexes.pop()
            && let Some(place) = self.conns.get_mut(index as usize)
        {
            *place = Some(conn);
            return ConnIndex(index);
        }
        self.conns.push(Some(conn));
        ConnIndex(self.conns.len() as u32 - 1)
    }

    pub(super) fn has_entries(&self) -> bool {
        !self.ended && !self.queued.is_empty()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(super) fn set_waker(&mut self, index: ConnIndex, waker: &Waker) {
        if let Some(conn) = self.conn(index)
            && !conn.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            conn.waker = Some(waker.clone());
        }
    }

    pub(super) fn swap_waker(&mut self, index: ConnIndex, waker: Option<Waker>) -> Option<Waker> {
        self.conn(index).and_then(|conn| mem::replace(&mut conn.waker, waker))
    }

    /// Keeps an empty list of wakers, to reuse its memory.
    pub(super) fn reuse_wakers(&mut self, wakers: Vec<Waker>) {
        if self.wakers.is_empty() {
            self.wakers = wakers;
        }
    }

    pub(super) fn fd(&self, index: ConnIndex) -> Option<&OwnedFd> {
        self.conns.get(index.0 as usize)?.as_deref().map(|conn| &conn.fd)
    }

    /// Returns whether [`take_read`](Self::take_read) would return [`RingRead::Pending`].
    pub(super) fn is_read_pending(&mut self, index: ConnIndex) -> bool {
        !self.ended
            && self.conn(index).is_some_and(|conn| match conn.read {
                ReadState::InKernel(_) => true,
                ReadState::Done(..) => false,
                ReadState::Idle => matches!(conn.header, HeaderState::InKernel),
            })
    }

    /// Returns whether [`take_read`](Self::take_read) or [`take_written`](Self::take_written) has a result.
    pub(super) fn has_result(&mut self, index: ConnIndex) -> bool {
        !self.is_read_pending(index)
            || self.conn(index).is_some_and(|conn| matches!(conn.write, WriteState::Done(..)))
    }

    pub(super) fn take_read(&mut self, index: ConnIndex) -> RingRead {
        let ended = self.ended;
        let Some(conn) = self.conn(index) else { return RingRead::Ended(Err(ring_ended_error())) };
        let ended = ended || conn.is_closed;
        let pending = if ended { RingRead::Ended(Err(ring_ended_error())) } else { RingRead::Pending };
        match mem::replace(&mut conn.read, ReadState::Idle) {
            ReadState::InKernel(buf) => {
                conn.read = ReadState::InKernel(buf);
                return pending;
            }
            ReadState::Done(buf, outcome) => return RingRead::Read(buf, outcome),
            ReadState::Idle => {}
        }
        match mem::replace(&mut conn.header, HeaderState::Idle) {
            HeaderState::Idle if ended => pending,
            HeaderState::Idle => RingRead::Idle,
            HeaderState::InKernel => {
                conn.header = HeaderState::InKernel;
                pending
            }
            HeaderState::Done(Ok(0)) => RingRead::Ended(Ok(())),
            HeaderState::Done(Ok(n)) => RingRead::Header(*conn.next_header, n),
            HeaderState::Done(Err(error)) => RingRead::Ended(Err(error)),
        }
    }

    /// Starts to receive into the buffer. No other read may be pending.
    pub(super) fn start_read(&mut self, index: ConnIndex, buf: ReadBuf, completion: ReadCompletion) {
        let ended = self.ended;
        let Some(conn) = self.conn(index).filter(|conn| !conn.is_reading()) else { return };
        let waits_for_all = buf.is_deposit() && completion == ReadCompletion::Message;
        conn.read = ReadState::InKernel(buf);
        if ended || conn.is_closed {
            return self.finish_read(index, ring_ended_error());
        }
        let fd = types::Fd(conn.fd.as_raw_fd());
        let ReadState::InKernel(buf) = &mut conn.read else { return };
        let [into, next] = &mut buf.io_slices();
        let header_len = next.len();
        let linked = waits_for_all && header_len > 0;
        if into.is_empty() {
            self.finish_read(index, io::ErrorKind::WouldBlock.into());
            return;
        }
        let len = u32::try_from(into.len()).unwrap_or(u32::MAX);
        let flags = if waits_for_all { libc::MSG_WAITALL } else { 0 };
        let mut read = opcode::Recv::new(fd, into.as_mut_ptr(), len)
            .flags(flags)
            .ioprio(if completion == ReadCompletion::LowWater { POLL_FIRST } else { 0 })
            .build()
            .user_data(user_data(index, READ));
        if linked {
            read = read.flags(squeue::Flags::IO_LINK);
        }
        let header = linked.then(|| {
            conn.header = HeaderState::InKernel;
            header_read_entry(index, conn, header_len)
        });
        conn.count_submitted(1 + u64::from(linked));
        self.in_flight += 1 + usize::from(linked);
        self.queued.push_back(QueuedEntry { entry: read, linked });
        self.queued.extend(header.map(|entry| QueuedEntry { entry, linked: false }));
    }

    /// Starts to receive a header without a receive buffer. No other read may be pending.
    pub(super) fn start_header_read(&mut self, index: ConnIndex) {
        let ended = self.ended;
        let Some(conn) = self.conn(index).filter(|conn| !conn.is_reading()) else { return };
        if ended || conn.is_closed {
            conn.header = HeaderState::Done(Err(ring_ended_error()));
            return;
        }
        conn.header = HeaderState::InKernel;
        let header = header_read_entry(index, conn, HEADER_LEN);
        conn.count_submitted(1);
        self.in_flight += 1;
        self.queued.push_back(QueuedEntry { entry: header, linked: false });
    }

    /// Cancels a pending read, which completes with the bytes that it has received.
    pub(super) fn cancel_read(&mut self, index: ConnIndex) {
        if self.conn(index).is_some_and(|conn| matches!(conn.read, ReadState::InKernel(_))) {
            self.cancel(index, READ);
        }
    }

    #[cfg(test)]
    pub(super) fn zero_copy(&mut self, index: ConnIndex) -> Option<crate::transport::uring::conn::ZeroCopy> {
        self.conn(index).map(|conn| conn.zero_copy)
    }

    /// Starts to write everything, or the first [`MAX_WRITE_BYTES`] bytes. No other write may be pending.
    pub(super) fn start_write(&mut self, index: ConnIndex, transmit: Transmit) {
        let ended = self.ended;
        let Some(conn) = self.conn(index).filter(|conn| !conn.is_writing()) else { return };
        if ended || conn.is_closed {
            conn.write = WriteState::Done(transmit, Err(ring_ended_error()));
            let waker = conn.waker.clone();
            self.wakers.extend(waker);
            return;
        }
        let mut entries = [const { None }; MAX_CHAIN_LEN];
        conn.prepare_write(index, transmit, &mut entries);
        self.push_chain(entries);
    }

    /// Returns the completed write, if any. The bytes that are left in the `Transmit` were not sent.
    pub(super) fn take_written(&mut self, index: ConnIndex) -> Option<(Transmit, io::Result<()>)> {
        let conn = self.conn(index)?;
        match mem::replace(&mut conn.write, WriteState::Idle) {
            WriteState::Done(transmit, outcome) => Some((transmit, outcome)),
            other => {
                conn.write = other;
                None
            }
        }
    }

    /// Closes the connection and cancels its operations. Their memory is kept until they have completed.
    pub(super) fn close(&mut self, index: ConnIndex) {
        let Some(conn) = self.conn(index) else { return };
        if mem::replace(&mut conn.is_closed, true) {
            return;
        }
        conn.waker = None;
        // A receive that is linked to a cancelled operation may still start. The shutdown completes it.
        let _ = rustix::net::shutdown(&conn.fd, rustix::net::Shutdown::Both);
        let read = matches!(conn.read, ReadState::InKernel(_)).then_some(READ);
        let header = matches!(conn.header, HeaderState::InKernel).then_some(HEADER);
        let writes = if let WriteState::InKernel(_, chain) = &conn.write { chain.count } else { 0 };
        let writes = (0..writes).map(|position| WRITE + position as u64);
        for kind in read.into_iter().chain(header).chain(writes) {
            self.cancel(index, kind);
        }
    }

    /// Closes the connection, and drops it after its last operation.
    pub(super) fn drop_handle(&mut self, index: ConnIndex) {
        self.close(index);
        if let Some(conn) = self.conn(index) {
            conn.is_released = true;
        }
        self.drop_if_done(index);
    }

    /// Closes all connections. If `reset` is true, also resets the connections with pending writes.
    pub(super) fn close_all(&mut self, reset: bool) {
        self.wakers.extend(self.conns.iter().flatten().filter_map(|conn| conn.waker.clone()));
        for index in 0..self.conns.len() as u32 {
            self.close(ConnIndex(index));
        }
        self.conns.iter().flatten().filter(|conn| reset && conn.is_writing()).for_each(|conn| conn.reset());
    }

    /// Ends the ring. New operations fail. Operations in the kernel keep their memory permanently.
    pub(super) fn end(&mut self) {
        self.ended = true;
        for QueuedEntry { entry, .. } in mem::take(&mut self.queued) {
            if entry.get_user_data() & ((1 << KIND_BITS) - 1) <= WRITE {
                self.complete(entry.get_user_data(), -libc::ECANCELED, 0);
            }
        }
        self.wakers.extend(self.conns.iter().flatten().filter_map(|conn| conn.waker.clone()));
    }

    fn conn(&mut self, index: ConnIndex) -> Option<&mut RingConnection> {
        self.conns.get_mut(index.0 as usize)?.as_deref_mut()
    }

    fn cancel(&mut self, index: ConnIndex, kind: u64) {
        self.queued.push_back(QueuedEntry { entry: cancellation_entry(index, kind), linked: false });
    }

    /// Queues a chain of writes. It counts as one operation, because it has one completion.
    fn push_chain(&mut self, entries: [Option<squeue::Entry>; MAX_CHAIN_LEN]) {
        self.in_flight += usize::from(entries.first().is_some_and(Option::is_some));
        let mut entries = entries.into_iter().flatten().peekable();
        while let Some(entry) = entries.next() {
            let linked = entries.peek().is_some();
            self.queued.push_back(QueuedEntry { entry, linked });
        }
    }

    /// Moves entries to the submission queue, linked ones together. A link cannot cross two submissions.
    fn move_to_submission_queue(&mut self, io: &mut IoUring) {
        let mut queue = io.submission();
        loop {
            let chain = self.queued.iter().take_while(|entry| entry.linked).count() + 1;
            if self.queued.is_empty() || queue.capacity() - queue.len() < chain {
                return;
            }
            for QueuedEntry { entry, .. } in self.queued.drain(..chain.min(self.queued.len())) {
                // SAFETY: the memory and the descriptor of the entry belong to a `RingConnection` until the
                // operation has completed: see the top of this file. The queue has space.
                let _ = unsafe { queue.push(&entry) };
            }
        }
    }

    /// Completes a read that was not submitted to the kernel, with an error.
    fn finish_read(&mut self, index: ConnIndex, error: io::Error) {
        if let Some(conn) = self.conn(index)
            && let ReadState::InKernel(buf) = mem::replace(&mut conn.read, ReadState::Idle)
        {
            conn.read = ReadState::Done(buf, Err(error));
            let waker = conn.waker.clone();
            self.wakers.extend(waker);
        }
    }

    /// Completes an operation. The kernel no longer uses its memory.
    fn complete(&mut self, user_data: u64, result: i32, flags: u32) {
        let kind = user_data & ((1 << KIND_BITS) - 1);
        if kind == CANCEL {
            return;
        }
        let index = ConnIndex((user_data >> KIND_BITS) as u32);
        let Some(conn) = self.conns.get_mut(index.0 as usize).and_then(Option::as_deref_mut) else { return };
        match kind {
            READ => self.returned_loans.extend(conn.complete_read(result)),
            HEADER => conn.complete_header(result),
            // The kernel uses the memory until it sends a notification.
            _ if cqueue::more(flags) => return conn.record_sent(result),
            _ if cqueue::notif(flags) => conn.complete_zero_copy(result as u32),
            write => conn.complete_write(write.saturating_sub(WRITE) as usize, result),
        }
        if let Some(waker) = &conn.waker {
            self.wakers.push(waker.clone());
        }
        self.in_flight -= 1;
        self.drop_if_done(index);
    }

    /// Drops a connection whose handle is dropped and whose operations have completed.
    fn drop_if_done(&mut self, index: ConnIndex) {
        let Some(place) = self.conns.get_mut(index.0 as usize) else { return };
        if place.as_ref().is_some_and(|conn| conn.is_released && !conn.is_reading() && !conn.is_writing()) {
            self.returned_loans.extend(place.as_mut().and_then(|conn| conn.release_read_buffer()));
            *place = None;
            self.free_indexes.push(index.0);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            // The ring cancels its operations asynchronously. Until then, the kernel may write to the memory.
            mem::forget(mem::take(&mut self.conns));
        }
    }
}

impl Vectors {
    pub(super) fn boxed() -> Box<Self> {
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: a message header of zeros is valid. It has no address, no slices and no control data.
        let message = unsafe { mem::zeroed::<libc::msghdr>() };
        Box::new(Self { slices: [[empty; MAX_VECTORS]; MAX_CHAIN_LEN], messages: [message; MAX_CHAIN_LEN] })
    }

    /// Lists the slices of `transmit` that fit in one chain of writes, and describes the chain.
    pub(super) fn fill(&mut self, transmit: &Transmit, chain: &mut Chain) {
        *chain = Chain::default();
        let (mut pieces, mut left) = (transmit.pieces(), MAX_WRITE_BYTES);
        for ((slices, message), len) in self.slices.iter_mut().zip(&mut self.messages).zip(&mut chain.sizes) {
            let mut used = 0;
            for slice in slices.iter_mut() {
                let Some(piece) = (left > 0).then(|| pieces.next()).flatten() else { break };
                let bytes = piece.len().min(left);
                *slice = libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: bytes };
                *len += bytes;
                left -= bytes;
                used += 1;
            }
            if used == 0 {
                return;
            }
            message.msg_iov = slices.as_mut_ptr();
            message.msg_iovlen = used as _;
            chain.count += 1;
        }
    }
}

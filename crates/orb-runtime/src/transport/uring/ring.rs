//! The ring and its operations in the kernel. This is the only file of this transport with `unsafe`.
//!
//! # Soundness
//! The kernel accesses memory between the submission of an operation and its completion.
//!
//! * All such memory belongs to a [`Conn`]. Receive and transmit buffers are moved into it before their
//!   addresses are taken. They are moved out only by [`Ring::complete`], after the operation has completed.
//! * Moving a `ReadBuf`, a `Transmit` or a `Conn` moves a box, not the memory that the kernel uses.
//! * A descriptor is closed with its `Conn`, which is dropped after its last operation. Therefore no entry
//!   contains a descriptor that was reused.
//! * A ring that is dropped before its operations have completed leaks their memory.
//! * Memory that a servant lends (`DepositTarget`) is returned by a method that borrows the target. The
//!   target is neither used nor dropped before the operation has completed: the memory stays borrowed.
//!
//! # Locks
//! The queues have their own lock, which is held during system calls. The lock of the connections is taken
//! inside of it for short times, so that a thread that queues an operation does not wait for the kernel.

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
    CANCEL, Chain, Conn, HEADER, Header, Index, KIND_BITS, MAX_CHAIN, MAX_VECTORS, MAX_WRITE, POLL_FIRST,
    READ, Read, WRITE, Write, cancellation, receive_header, ring_ended_error, user_data,
};

/// The size of the submission queue. Entries that do not fit wait in [`Ring`].
const SUBMISSION_QUEUE_SIZE: u32 = 256;
/// The size of the completion queue. The kernel keeps completions that do not fit.
const COMPLETION_QUEUE_SIZE: u32 = 4096;
/// The maximum number of submissions of one [`Queues::turn`].
const MAX_SUBMISSIONS: usize = 16;

pub(super) struct Queues {
    io: IoUring,
    enters: Arc<AtomicU64>,
}

pub(super) struct State {
    pub(super) ring: Ring,
    pub(super) reaper: Option<Waker>,
    /// Whether the reaper was woken to submit entries, and has not run yet.
    pub(super) reaper_woken: bool,
}

#[derive(Default)]
pub(super) struct Ring {
    conns: Vec<Option<Box<Conn>>>,
    free: Vec<u32>,
    queued: VecDeque<QueuedEntry>,
    /// The number of operations that have not completed.
    in_flight: usize,
    /// Whether the ring has ended, so that the kernel is not entered any more.
    ended: bool,
    /// The wakers of connections with new completions.
    pub(super) wakers: Vec<Waker>,
    /// Memory that servants lent. It is dropped without the lock, because that may run their code.
    #[expect(clippy::vec_box, reason = "loans are boxed everywhere, so that moving them is cheap")]
    pub(super) returned_loans: Vec<Box<Loan>>,
}

struct QueuedEntry {
    entry: squeue::Entry,
    /// Whether the next entry is linked to this one.
    linked: bool,
}

/// The slice lists of a chain of vectored writes.
pub(super) struct Vectors {
    slices: [[libc::iovec; MAX_VECTORS]; MAX_CHAIN],
    pub(super) messages: [libc::msghdr; MAX_CHAIN],
}

// SAFETY: the addresses refer to buffers of the same `Conn`. They are written before a submission, and only
// the kernel reads them.
unsafe impl Send for Vectors {}

impl Queues {
    /// Completions run when the submitting thread is in the kernel anyway, usually while tokio waits, so that
    /// they need no system call. `DEFER_TASKRUN` is not used: with this flag, completions would wait for a
    /// system call, and the kernel would not notify epoll of them. The ring does not belong to a thread, so
    /// that the runtime may move to another thread.
    pub(super) fn new(enters: Arc<AtomicU64>) -> io::Result<Self> {
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
        Ok(Self { io, enters })
    }

    pub(super) fn raw_fd(&self) -> RawFd {
        self.io.as_raw_fd()
    }

    /// Takes completions and submits entries. Waits up to `wait` for `min_completions`. An error ends the
    /// ring.
    pub(super) fn turn(
        &mut self,
        state: &Mutex<State>,
        min_completions: u32,
        wait: Duration,
    ) -> io::Result<()> {
        self.reap(state);
        for _ in 0..MAX_SUBMISSIONS {
            let mut locked = lock(state);
            locked.reaper_woken = false;
            if locked.ring.ended {
                break;
            }
            locked.ring.queue_waiting(&mut self.io);
            drop(locked);
            let mut queue = self.io.submission();
            let (queued, overflow) = (queue.len(), queue.cq_overflow());
            queue.sync();
            drop(queue);
            if queued == 0 && min_completions == 0 && !overflow {
                break;
            }
            self.enters.fetch_add(1, Ordering::Relaxed);
            let outcome = if min_completions > 0 {
                let time = types::Timespec::from(wait);
                self.io
                    .submitter()
                    .submit_with_args(min_completions as usize, &types::SubmitArgs::new().timespec(&time))
            } else {
                self.io.submitter().submit()
            };
            self.reap(state);
            match outcome {
                // The remaining entries may begin inside of a chain. They would then run unlinked.
                Ok(taken) if taken < queued => {
                    return Err(io::Error::new(
                        io::ErrorKind::OutOfMemory,
                        "the kernel accepted only a part of a submission",
                    ));
                }
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    // Completions had to be taken first, memory is short, or the wait timed out.
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
            self.turn(state, 0, Duration::ZERO)
        }
    }

    /// Enters the kernel, so that it runs pending completions.
    pub(super) fn run_completions(&mut self, state: &Mutex<State>) -> io::Result<()> {
        let flags = EnterFlags::GETEVENTS.bits();
        self.enters.fetch_add(1, Ordering::Relaxed);
        // SAFETY: no entry is submitted, and there is no argument.
        drop(unsafe { self.io.submitter().enter::<libc::sigset_t>(0, 0, flags, None) });
        self.turn(state, 0, Duration::ZERO)
    }

    /// Returns whether the submission queue has entries that were not submitted.
    pub(super) fn has_entries(&mut self) -> bool {
        !self.io.submission().is_empty()
    }

    pub(super) fn reap(&mut self, state: &Mutex<State>) {
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
    /// Adds a socket. It must be in blocking mode, so that the kernel waits instead of failing with `EAGAIN`.
    pub(super) fn insert(&mut self, fd: OwnedFd, pool: Arc<BufferPool>, submitted: Arc<AtomicU64>) -> Index {
        let conn = Box::new(Conn::new(fd, pool, submitted));
        if let Some(index) = self.free.pop()
            && let Some(place) = self.conns.get_mut(index as usize)
        {
            *place = Some(conn);
            return Index(index);
        }
        self.conns.push(Some(conn));
        Index(self.conns.len() as u32 - 1)
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

    pub(super) fn set_waker(&mut self, index: Index, waker: &Waker) {
        if let Some(conn) = self.conn(index)
            && !conn.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            conn.waker = Some(waker.clone());
        }
    }

    pub(super) fn swap_waker(&mut self, index: Index, waker: Option<Waker>) -> Option<Waker> {
        self.conn(index).and_then(|conn| mem::replace(&mut conn.waker, waker))
    }

    /// Reuses the memory of an empty list of wakers.
    pub(super) fn reuse_wakers(&mut self, wakers: Vec<Waker>) {
        if self.wakers.is_empty() {
            self.wakers = wakers;
        }
    }

    pub(super) fn fd(&self, index: Index) -> Option<&OwnedFd> {
        self.conns.get(index.0 as usize)?.as_deref().map(|conn| &conn.fd)
    }

    /// Returns whether [`take_read`](Self::take_read) would return [`RingRead::Pending`].
    pub(super) fn is_read_pending(&mut self, index: Index) -> bool {
        !self.ended
            && self.conn(index).is_some_and(|conn| match conn.read {
                Read::InKernel(_) => true,
                Read::Done(..) => false,
                Read::Idle => matches!(conn.header, Header::InKernel),
            })
    }

    /// Returns whether [`take_read`](Self::take_read) or [`take_written`](Self::take_written) has a result.
    pub(super) fn has_result(&mut self, index: Index) -> bool {
        !self.is_read_pending(index)
            || self.conn(index).is_some_and(|conn| matches!(conn.write, Write::Done(..)))
    }

    pub(super) fn take_read(&mut self, index: Index) -> RingRead {
        let ended = self.ended;
        let Some(conn) = self.conn(index) else { return RingRead::Ended(Err(ring_ended_error())) };
        let ended = ended || conn.is_closed;
        let pending = if ended { RingRead::Ended(Err(ring_ended_error())) } else { RingRead::Pending };
        match mem::replace(&mut conn.read, Read::Idle) {
            Read::InKernel(buf) => {
                conn.read = Read::InKernel(buf);
                return pending;
            }
            Read::Done(buf, outcome) => return RingRead::Read(buf, outcome),
            Read::Idle => {}
        }
        match mem::replace(&mut conn.header, Header::Idle) {
            Header::Idle if ended => pending,
            Header::Idle => RingRead::Idle,
            Header::InKernel => {
                conn.header = Header::InKernel;
                pending
            }
            Header::Done(Ok(0)) => RingRead::Ended(Ok(())),
            Header::Done(Ok(n)) => RingRead::Header(*conn.next_header, n),
            Header::Done(Err(error)) => RingRead::Ended(Err(error)),
        }
    }

    /// Starts to receive into the buffer. No other read may be pending.
    pub(super) fn start_read(&mut self, index: Index, buf: ReadBuf, completion: ReadCompletion) {
        let ended = self.ended;
        let Some(conn) = self.conn(index).filter(|conn| !conn.is_reading()) else { return };
        let waits_for_all = buf.is_deposit() && completion == ReadCompletion::Message;
        conn.read = Read::InKernel(buf);
        if ended || conn.is_closed {
            return self.finish_read(index, ring_ended_error());
        }
        let fd = types::Fd(conn.fd.as_raw_fd());
        let Read::InKernel(buf) = &mut conn.read else { return };
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
            conn.header = Header::InKernel;
            receive_header(index, conn, header_len)
        });
        conn.count(1 + u64::from(linked));
        self.in_flight += 1 + usize::from(linked);
        self.queued.push_back(QueuedEntry { entry: read, linked });
        self.queued.extend(header.map(|entry| QueuedEntry { entry, linked: false }));
    }

    /// Starts to receive a header without a receive buffer. No other read may be pending.
    pub(super) fn start_header(&mut self, index: Index) {
        let ended = self.ended;
        let Some(conn) = self.conn(index).filter(|conn| !conn.is_reading()) else { return };
        if ended || conn.is_closed {
            conn.header = Header::Done(Err(ring_ended_error()));
            return;
        }
        conn.header = Header::InKernel;
        let header = receive_header(index, conn, HEADER_LEN);
        conn.count(1);
        self.in_flight += 1;
        self.queued.push_back(QueuedEntry { entry: header, linked: false });
    }

    /// Cancels a pending read, which completes with the bytes that it has received.
    pub(super) fn cancel_read(&mut self, index: Index) {
        if self.conn(index).is_some_and(|conn| matches!(conn.read, Read::InKernel(_))) {
            self.cancel(index, READ);
        }
    }

    #[cfg(test)]
    pub(super) fn zero_copy(&mut self, index: Index) -> Option<crate::transport::uring::conn::ZeroCopy> {
        self.conn(index).map(|conn| conn.zero_copy)
    }

    /// Starts to write everything, or the first [`MAX_WRITE`] bytes. No other write may be pending.
    pub(super) fn start_write(&mut self, index: Index, transmit: Transmit) {
        let ended = self.ended;
        let Some(conn) = self.conn(index).filter(|conn| !conn.is_writing()) else { return };
        if ended || conn.is_closed {
            conn.write = Write::Done(transmit, Err(ring_ended_error()));
            let waker = conn.waker.clone();
            self.wakers.extend(waker);
            return;
        }
        let mut entries = [const { None }; MAX_CHAIN];
        conn.prepare_write(index, transmit, &mut entries);
        self.push_chain(entries);
    }

    /// Returns a completed write. The bytes that are left in the `Transmit` were not sent.
    pub(super) fn take_written(&mut self, index: Index) -> Option<(Transmit, io::Result<()>)> {
        let conn = self.conn(index)?;
        match mem::replace(&mut conn.write, Write::Idle) {
            Write::Done(transmit, outcome) => Some((transmit, outcome)),
            other => {
                conn.write = other;
                None
            }
        }
    }

    /// Closes the connection and cancels its operations, which keep their memory until they have completed.
    pub(super) fn release(&mut self, index: Index) {
        let Some(conn) = self.conn(index) else { return };
        if mem::replace(&mut conn.is_closed, true) {
            return;
        }
        conn.waker = None;
        // A receive that is linked to a cancelled operation may start after it. The shutdown completes it.
        let _ = rustix::net::shutdown(&conn.fd, rustix::net::Shutdown::Both);
        let read = matches!(conn.read, Read::InKernel(_)).then_some(READ);
        let header = matches!(conn.header, Header::InKernel).then_some(HEADER);
        let writes = if let Write::InKernel(_, chain) = &conn.write { chain.count } else { 0 };
        let writes = (0..writes).map(|position| WRITE + position as u64);
        for kind in read.into_iter().chain(header).chain(writes) {
            self.cancel(index, kind);
        }
    }

    pub(super) fn free(&mut self, index: Index) {
        self.release(index);
        if let Some(conn) = self.conn(index) {
            conn.handle_dropped = true;
        }
        self.drop_if_done(index);
    }

    /// Closes all connections. With `reset`, resets those with pending writes.
    pub(super) fn release_all(&mut self, reset: bool) {
        self.wakers.extend(self.conns.iter().flatten().filter_map(|conn| conn.waker.clone()));
        for index in 0..self.conns.len() as u32 {
            self.release(Index(index));
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

    fn conn(&mut self, index: Index) -> Option<&mut Conn> {
        self.conns.get_mut(index.0 as usize)?.as_deref_mut()
    }

    fn cancel(&mut self, index: Index, kind: u64) {
        self.queued.push_back(QueuedEntry { entry: cancellation(index, kind), linked: false });
    }

    /// Queues a chain of writes, which has one completion.
    fn push_chain(&mut self, entries: [Option<squeue::Entry>; MAX_CHAIN]) {
        self.in_flight += usize::from(entries.first().is_some_and(Option::is_some));
        let mut entries = entries.into_iter().flatten().peekable();
        while let Some(entry) = entries.next() {
            let linked = entries.peek().is_some();
            self.queued.push_back(QueuedEntry { entry, linked });
        }
    }

    /// Moves entries to the submission queue, linked ones together, because links end with a submission.
    fn queue_waiting(&mut self, io: &mut IoUring) {
        let mut queue = io.submission();
        loop {
            let chain = self.queued.iter().take_while(|entry| entry.linked).count() + 1;
            if self.queued.is_empty() || queue.capacity() - queue.len() < chain {
                return;
            }
            for QueuedEntry { entry, .. } in self.queued.drain(..chain.min(self.queued.len())) {
                // SAFETY: the memory and the descriptor of the entry belong to a `Conn` until the operation
                // has completed: see the top of this file. The queue has space.
                let _ = unsafe { queue.push(&entry) };
            }
        }
    }

    /// Completes a read that was not submitted.
    fn finish_read(&mut self, index: Index, error: io::Error) {
        if let Some(conn) = self.conn(index)
            && let Read::InKernel(buf) = mem::replace(&mut conn.read, Read::Idle)
        {
            conn.read = Read::Done(buf, Err(error));
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
        let index = Index((user_data >> KIND_BITS) as u32);
        let Some(conn) = self.conns.get_mut(index.0 as usize).and_then(Option::as_deref_mut) else { return };
        match kind {
            READ => self.returned_loans.extend(conn.complete_read(result)),
            HEADER => conn.complete_header(result),
            // The kernel uses the memory until a notification follows.
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
    fn drop_if_done(&mut self, index: Index) {
        let Some(place) = self.conns.get_mut(index.0 as usize) else { return };
        if place.as_ref().is_some_and(|conn| conn.handle_dropped && !conn.is_reading() && !conn.is_writing())
        {
            self.returned_loans.extend(place.as_mut().and_then(|conn| conn.clear()));
            *place = None;
            self.free.push(index.0);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            // The kernel may still write to the memory, because closing the ring cancels asynchronously.
            mem::forget(mem::take(&mut self.conns));
        }
    }
}

impl Vectors {
    pub(super) fn boxed() -> Box<Self> {
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: a message header of zeros is valid. It has no address, no slices and no control data.
        let message = unsafe { mem::zeroed::<libc::msghdr>() };
        Box::new(Self { slices: [[empty; MAX_VECTORS]; MAX_CHAIN], messages: [message; MAX_CHAIN] })
    }

    /// Lists the slices of `transmit` that fit in one chain of writes.
    pub(super) fn fill(&mut self, transmit: &Transmit, chain: &mut Chain) {
        *chain = Chain::default();
        let (mut pieces, mut left) = (transmit.pieces(), MAX_WRITE);
        for ((slices, message), len) in self.slices.iter_mut().zip(&mut self.messages).zip(&mut chain.len) {
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

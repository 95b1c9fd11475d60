//! The ring and its operations in the kernel. This is the only file of this transport with `unsafe`.
//!
//! # Why it is sound
//! The kernel reads and writes memory between the submission of an operation and its completion. All such
//! memory belongs to a [`Conn`]. Receive and transmit buffers are moved into it before their addresses are
//! taken. They leave it only by [`Ring::complete`], after their operation's completion was seen. Moving a
//! `ReadBuf`, a `Transmit` or a `Conn` moves a box, never the memory that the kernel uses. A connection's
//! descriptor is closed with its `Conn`, which is dropped after its last operation. No entry can therefore
//! name a descriptor that was reused. A ring that ends before its operations leaks their memory.
//!
//! Memory that a servant lends (`DepositTarget`) is obtained by a method that borrows the target for as long
//! as the memory is used. A target can observe the end of that borrow only when it is used again or dropped.
//! Neither happens before the completion, so the memory stays exclusively borrowed until then.
//!
//! The queues have a lock of their own, which is held during system calls. The lock of the connections is
//! taken inside it, for short times. A thread that queues an operation therefore never waits for the kernel.

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
use giop_proto::receive::{HEADER_LEN, PIECE_HEADER_LEN, ReadBuf};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue, types};

use crate::transport::uring::conn::{
    CANCEL, CHAIN, Chain, Conn, HEADER, Header, Index, KIND_BITS, MAX_WRITE, POLL_FIRST, READ, Read, VECTORS,
    WRITE, Write, ZeroCopy, cancellation, gone, receive_header, user_data,
};
use crate::transport::uring::lock;
use crate::transport::{AtATime, RingRead};

/// The size of the submission queue. Entries that do not fit wait in [`Ring`].
const ENTRIES: u32 = 256;

/// The size of the completion queue. The kernel keeps completions that do not fit.
const COMPLETIONS: u32 = 4096;

/// The maximum number of submissions of one turn.
const TURNS: usize = 16;

/// The queues of an io_uring.
pub(super) struct Queues {
    io: IoUring,
    /// The number of system calls.
    enters: Arc<AtomicU64>,
}

/// The state that users of a ring share with its reaper.
pub(super) struct State {
    pub(super) ring: Ring,
    pub(super) reaper: Option<Waker>,
    /// The reaper was woken to submit entries, and has not run yet.
    pub(super) asked: bool,
}

/// The connections of an io_uring.
#[derive(Default)]
pub(super) struct Ring {
    conns: Vec<Option<Box<Conn>>>,
    free: Vec<u32>,
    /// Entries that wait for space in the submission queue.
    waiting: VecDeque<Waiting>,
    /// The number of operations whose completion was not seen.
    in_flight: usize,
    /// The ring has ended: the kernel is not entered any more.
    ended: bool,
    /// Wakers of the connections whose completions were seen.
    pub(super) wakers: Vec<Waker>,
    /// Unused memory of servants. It is dropped outside of the lock, because that may run their code.
    #[expect(clippy::vec_box, reason = "the boxes go round")]
    pub(super) dead: Vec<Box<Loan>>,
}

/// An entry that waits for space in the submission queue.
struct Waiting {
    entry: squeue::Entry,
    /// The next entry is linked to it.
    linked: bool,
}

/// The slice lists of a chain of vectored writes.
pub(super) struct Vectors {
    slices: [[libc::iovec; VECTORS]; CHAIN],
    pub(super) messages: [libc::msghdr; CHAIN],
}

// SAFETY: the addresses in it are those of buffers that the same `Conn` owns; they are written before a
// submission and read by the kernel alone.
unsafe impl Send for Vectors {}

impl Queues {
    /// Creates a ring. Completions run when the thread that submitted is in the kernel anyway, usually in
    /// tokio's wait, so they need no system call. (With `DEFER_TASKRUN` they would wait for a system call of
    /// this thread, and the kernel would not notify epoll of them.) The ring does not belong to a thread, so
    /// the runtime may move to another one.
    pub(super) fn new(enters: Arc<AtomicU64>) -> io::Result<Self> {
        let builder = || {
            let mut builder = IoUring::builder();
            builder.setup_clamp().setup_cqsize(COMPLETIONS);
            builder
        };
        let io = match builder().setup_coop_taskrun().setup_taskrun_flag().build(ENTRIES) {
            // Kernels before Linux 5.19 do not know these flags.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => builder().build(ENTRIES)?,
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

    /// Takes completions and submits entries. If `least` > 0, waits at most `wait` for that many completions.
    ///
    /// # Errors
    /// The ring is lost. The caller must call [`Ring::end`].
    pub(super) fn turn(&mut self, state: &Mutex<State>, least: u32, wait: Duration) -> io::Result<()> {
        self.reap(state);
        for _ in 0..TURNS {
            let mut locked = lock(state);
            locked.asked = false;
            if locked.ring.ended {
                break;
            }
            locked.ring.queue_waiting(&mut self.io);
            drop(locked);
            let mut queue = self.io.submission();
            let (queued, overflow) = (queue.len(), queue.cq_overflow());
            queue.sync();
            drop(queue);
            if queued == 0 && least == 0 && !overflow {
                break;
            }
            self.enters.fetch_add(1, Ordering::Relaxed);
            let outcome = if least > 0 {
                let time = types::Timespec::from(wait);
                self.io
                    .submitter()
                    .submit_with_args(least as usize, &types::SubmitArgs::new().timespec(&time))
            } else {
                self.io.submitter().submit()
            };
            self.reap(state);
            match outcome {
                // The rest may begin inside a chain, whose entries would then run unlinked.
                Ok(taken) if taken < queued => {
                    return Err(io::Error::new(
                        io::ErrorKind::OutOfMemory,
                        "the kernel took half of a submission",
                    ));
                }
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    // Completions had to be taken first (done), memory is short, or the wait timed out.
                    Some(libc::EBUSY | libc::EAGAIN | libc::EINTR | libc::ETIME) => {}
                    _ => return Err(error),
                },
            }
            if least > 0 {
                break;
            }
        }
        Ok(())
    }

    /// Takes the available completions.
    pub(super) fn take_completions(&mut self, state: &Mutex<State>) -> io::Result<()> {
        self.reap(state);
        Ok(())
    }

    /// Takes completions and submits waiting entries. Makes no system call if there is nothing to do.
    pub(super) fn poll(&mut self, state: &Mutex<State>) -> io::Result<()> {
        if self.io.submission().taskrun() { self.look(state) } else { self.turn(state, 0, Duration::ZERO) }
    }

    /// Enters the kernel, so that it runs pending completions.
    pub(super) fn look(&mut self, state: &Mutex<State>) -> io::Result<()> {
        let flags = EnterFlags::GETEVENTS.bits();
        self.enters.fetch_add(1, Ordering::Relaxed);
        // SAFETY: nothing is submitted; there is no argument.
        drop(unsafe { self.io.submitter().enter::<libc::sigset_t>(0, 0, flags, None) });
        self.turn(state, 0, Duration::ZERO)
    }

    /// Returns whether entries were not submitted.
    pub(super) fn has_entries(&mut self) -> bool {
        !self.io.submission().is_empty()
    }

    fn reap(&mut self, state: &Mutex<State>) {
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
    /// Adds a stream. It must be in blocking mode: the kernel then waits instead of failing with `EAGAIN`.
    pub(super) fn insert(&mut self, fd: OwnedFd, pool: Arc<BufferPool>, submitted: Arc<AtomicU64>) -> Index {
        let conn = Box::new(Conn {
            fd,
            pool,
            submitted,
            waker: None,
            read: Read::Idle,
            header: Header::Idle,
            write: Write::Idle,
            next: Box::new([0; PIECE_HEADER_LEN]),
            vectors: None,
            zero_copy: ZeroCopy::Untried,
            released: false,
            dropped: false,
        });
        if let Some(index) = self.free.pop()
            && let Some(place) = self.conns.get_mut(index as usize)
        {
            *place = Some(conn);
            return Index(index);
        }
        self.conns.push(Some(conn));
        Index(self.conns.len() as u32 - 1)
    }

    /// Returns whether entries wait to be submitted.
    pub(super) fn has_entries(&self) -> bool {
        !self.ended && !self.waiting.is_empty()
    }

    /// Returns whether the ring has ended, so that all operations fail.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the number of operations whose completion was not seen.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Sets the waker of the connection's completions.
    pub(super) fn set_waker(&mut self, index: Index, waker: &Waker) {
        if let Some(conn) = self.conn(index)
            && !conn.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            conn.waker = Some(waker.clone());
        }
    }

    /// Replaces the waker of the connection's completions, and returns the previous one.
    pub(super) fn swap_waker(&mut self, index: Index, waker: Option<Waker>) -> Option<Waker> {
        self.conn(index).and_then(|conn| mem::replace(&mut conn.waker, waker))
    }

    /// Reuses the memory of the list of wakers.
    pub(super) fn keep(&mut self, wakers: Vec<Waker>) {
        if self.wakers.is_empty() {
            self.wakers = wakers;
        }
    }

    /// Returns the connection's descriptor.
    pub(super) fn fd(&self, index: Index) -> Option<&OwnedFd> {
        self.conns.get(index.0 as usize)?.as_deref().map(|conn| &conn.fd)
    }

    /// Returns whether [`take_read`](Self::take_read) would return [`RingRead::Pending`].
    pub(super) fn is_read_pending(&mut self, index: Index) -> bool {
        !self.ended
            && self.conn(index).is_some_and(|conn| match conn.read {
                Read::Lent(_) => true,
                Read::Done(..) => false,
                Read::Idle => matches!(conn.header, Header::Lent),
            })
    }

    /// Returns whether [`take_read`](Self::take_read) or [`take_written`](Self::take_written) has a result.
    pub(super) fn has_news(&mut self, index: Index) -> bool {
        !self.is_read_pending(index)
            || self.conn(index).is_some_and(|conn| matches!(conn.write, Write::Done(..)))
    }

    pub(super) fn take_read(&mut self, index: Index) -> RingRead {
        let ended = self.ended;
        let Some(conn) = self.conn(index) else { return RingRead::Ended(Err(gone())) };
        match mem::replace(&mut conn.read, Read::Idle) {
            Read::Lent(buf) => {
                conn.read = Read::Lent(buf);
                return if ended || conn.released { RingRead::Ended(Err(gone())) } else { RingRead::Pending };
            }
            Read::Done(buf, outcome) => return RingRead::Read(buf, outcome),
            Read::Idle => {}
        }
        match mem::replace(&mut conn.header, Header::Idle) {
            Header::Idle if ended || conn.released => RingRead::Ended(Err(gone())),
            Header::Idle => RingRead::Idle,
            Header::Lent => {
                conn.header = Header::Lent;
                if ended || conn.released { RingRead::Ended(Err(gone())) } else { RingRead::Pending }
            }
            Header::Done(Ok(0)) => RingRead::Ended(Ok(())),
            Header::Done(Ok(n)) => RingRead::Early(*conn.next, n),
            Header::Done(Err(error)) => RingRead::Ended(Err(error)),
        }
    }

    /// Starts to receive into the buffer. No other read may be pending.
    pub(super) fn start_read(&mut self, index: Index, buf: ReadBuf, at_a_time: AtATime) {
        let ended = self.ended;
        let Some(conn) = self.conn(index).filter(|conn| !conn.is_reading()) else { return };
        let whole = buf.is_deposit() && at_a_time == AtATime::Whole;
        conn.read = Read::Lent(buf);
        if ended || conn.released {
            return self.finish_read(index, gone());
        }
        let fd = types::Fd(conn.fd.as_raw_fd());
        let Read::Lent(buf) = &mut conn.read else { return };
        let [into, next] = &mut buf.io_slices();
        let behind = next.len();
        let linked = whole && behind > 0;
        if into.is_empty() {
            self.finish_read(index, io::ErrorKind::WouldBlock.into());
            return;
        }
        let len = u32::try_from(into.len()).unwrap_or(u32::MAX);
        let flags = if whole { libc::MSG_WAITALL } else { 0 };
        let mut read = opcode::Recv::new(fd, into.as_mut_ptr(), len)
            .flags(flags)
            .ioprio(if at_a_time == AtATime::LowWater { POLL_FIRST } else { 0 })
            .build()
            .user_data(user_data(index, READ));
        if linked {
            read = read.flags(squeue::Flags::IO_LINK);
        }
        let header = linked.then(|| {
            conn.header = Header::Lent;
            receive_header(index, conn, behind)
        });
        conn.count(1 + u64::from(linked));
        self.in_flight += 1 + usize::from(linked);
        self.waiting.push_back(Waiting { entry: read, linked });
        self.waiting.extend(header.map(|entry| Waiting { entry, linked: false }));
    }

    /// Starts to receive the first bytes of the next message into a small buffer of the connection, so that
    /// an idle connection holds no window. No other read may be pending.
    pub(super) fn start_header(&mut self, index: Index) {
        let ended = self.ended;
        let Some(conn) = self.conn(index).filter(|conn| !conn.is_reading()) else { return };
        if ended || conn.released {
            conn.header = Header::Done(Err(gone()));
            return;
        }
        conn.header = Header::Lent;
        let header = receive_header(index, conn, HEADER_LEN);
        conn.count(1);
        self.in_flight += 1;
        self.waiting.push_back(Waiting { entry: header, linked: false });
    }

    /// Cancels a pending read: it completes with the bytes that it has.
    pub(super) fn cancel_read(&mut self, index: Index) {
        if self.conn(index).is_some_and(|conn| matches!(conn.read, Read::Lent(_))) {
            self.cancel(index, READ);
        }
    }

    /// Returns the state of zero-copy for large writes.
    #[cfg(test)]
    pub(super) fn zero_copy(&mut self, index: Index) -> Option<ZeroCopy> {
        self.conn(index).map(|conn| conn.zero_copy)
    }

    /// Starts to write everything, or the first [`MAX_WRITE`] bytes. No other write may be pending.
    pub(super) fn start_write(&mut self, index: Index, transmit: Transmit) {
        let ended = self.ended;
        let Some(conn) = self.conn(index).filter(|conn| !conn.is_writing()) else { return };
        if ended || conn.released {
            conn.write = Write::Done(transmit, Err(gone()));
            let waker = conn.waker.clone();
            self.wakers.extend(waker);
            return;
        }
        let mut entries = [const { None }; CHAIN];
        conn.lend(index, transmit, &mut entries);
        self.push_chain(entries);
    }

    /// Returns a completed write. The bytes that are left in it were not sent.
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

    /// Closes the connection. Cancelled operations keep their memory until they have completed.
    pub(super) fn release(&mut self, index: Index) {
        let Some(conn) = self.conn(index) else { return };
        if mem::replace(&mut conn.released, true) {
            return;
        }
        conn.waker = None;
        // This ends a receive that is linked to a cancelled operation and starts after it.
        let _ = rustix::net::shutdown(&conn.fd, rustix::net::Shutdown::Both);
        let (read, header) = (matches!(conn.read, Read::Lent(_)), matches!(conn.header, Header::Lent));
        let writes = if let Write::Lent(_, chain) = &conn.write { chain.count } else { 0 };
        if read {
            self.cancel(index, READ);
        }
        if header {
            self.cancel(index, HEADER);
        }
        for write in 0..writes {
            self.cancel(index, WRITE + write as u64);
        }
    }

    /// Releases the connection of a dropped handle.
    pub(super) fn free(&mut self, index: Index) {
        self.release(index);
        if let Some(conn) = self.conn(index) {
            conn.dropped = true;
        }
        self.forget_if_over(index);
    }

    /// Releases every connection. With `reset`, resets those with pending writes.
    pub(super) fn release_all(&mut self, reset: bool) {
        self.wakers.extend(self.conns.iter().flatten().filter_map(|conn| conn.waker.clone()));
        for index in 0..self.conns.len() as u32 {
            self.release(Index(index));
        }
        self.conns.iter().flatten().filter(|conn| reset && conn.is_writing()).for_each(|conn| conn.reset());
    }

    /// Ends the ring. Operations fail from now on. Those in the kernel keep their memory permanently.
    pub(super) fn end(&mut self) {
        self.ended = true;
        for Waiting { entry, .. } in mem::take(&mut self.waiting) {
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
        self.waiting.push_back(Waiting { entry: cancellation(index, kind), linked: false });
    }

    /// Queues a chain of writes, which has one completion.
    fn push_chain(&mut self, entries: [Option<squeue::Entry>; CHAIN]) {
        self.in_flight += usize::from(entries.first().is_some_and(Option::is_some));
        let mut entries = entries.into_iter().flatten().peekable();
        while let Some(entry) = entries.next() {
            let linked = entries.peek().is_some();
            self.waiting.push_back(Waiting { entry, linked });
        }
    }

    /// Moves entries into the submission queue. Linked ones move together: a chain ends with its submission.
    fn queue_waiting(&mut self, io: &mut IoUring) {
        let mut queue = io.submission();
        loop {
            let chain = self.waiting.iter().take_while(|waiting| waiting.linked).count() + 1;
            if self.waiting.is_empty() || queue.capacity() - queue.len() < chain {
                return;
            }
            for Waiting { entry, .. } in self.waiting.drain(..chain.min(self.waiting.len())) {
                // SAFETY: what the entry points to belongs to a `Conn` until `complete` has seen its
                // completion, and that is also what keeps its descriptor open: see the top of this file.
                // There is space.
                let _ = unsafe { queue.push(&entry) };
            }
        }
    }

    /// Completes a read that was not submitted.
    fn finish_read(&mut self, index: Index, error: io::Error) {
        if let Some(conn) = self.conn(index)
            && let Read::Lent(buf) = mem::replace(&mut conn.read, Read::Idle)
        {
            conn.read = Read::Done(buf, Err(error));
            let waker = conn.waker.clone();
            self.wakers.extend(waker);
        }
    }

    /// Completes an operation: its memory belongs to the connection only.
    fn complete(&mut self, user_data: u64, result: i32, flags: u32) {
        let kind = user_data & ((1 << KIND_BITS) - 1);
        if kind == CANCEL {
            return;
        }
        let index = Index((user_data >> KIND_BITS) as u32);
        let Some(conn) = self.conns.get_mut(index.0 as usize).and_then(Option::as_deref_mut) else { return };
        match kind {
            READ => self.dead.extend(conn.read_over(result)),
            HEADER => conn.header_over(result),
            // A notification follows. The memory is lent until then.
            _ if cqueue::more(flags) => return conn.write_sent(result),
            _ if cqueue::notif(flags) => conn.write_let_go(result as u32),
            place => conn.write_over(place.saturating_sub(WRITE) as usize, result),
        }
        if let Some(waker) = &conn.waker {
            self.wakers.push(waker.clone());
        }
        self.in_flight -= 1;
        self.forget_if_over(index);
    }

    /// Drops a connection whose handle is dropped and whose operations have completed.
    fn forget_if_over(&mut self, index: Index) {
        let Some(place) = self.conns.get_mut(index.0 as usize) else { return };
        if place.as_ref().is_some_and(|conn| conn.dropped && !conn.is_lent()) {
            self.dead.extend(place.as_mut().and_then(|conn| conn.clear()));
            *place = None;
            self.free.push(index.0);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            // The kernel may still write to it: closing the ring cancels operations asynchronously.
            mem::forget(mem::take(&mut self.conns));
        }
    }
}

impl Vectors {
    pub(super) fn boxed() -> Box<Self> {
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        // SAFETY: a message header of zeros is valid: no address, no slices, no control data.
        let message = unsafe { mem::zeroed::<libc::msghdr>() };
        Box::new(Self { slices: [[empty; VECTORS]; CHAIN], messages: [message; CHAIN] })
    }

    /// Lists the pieces of `transmit` that fit into one write.
    pub(super) fn fill(&mut self, transmit: &Transmit, chain: &mut Chain) {
        *chain = Chain::default();
        let (mut pieces, mut left) = (transmit.pieces(), MAX_WRITE);
        for ((slices, message), len) in self.slices.iter_mut().zip(&mut self.messages).zip(&mut chain.len) {
            let mut used = 0;
            for slice in slices.iter_mut() {
                let piece = if left > 0 { pieces.next() } else { None };
                let Some(piece) = piece else { break };
                let octets = piece.len().min(left);
                *slice = libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: octets };
                *len += octets;
                left -= octets;
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

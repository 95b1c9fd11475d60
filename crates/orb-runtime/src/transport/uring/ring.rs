//! The ring and the operations that are with the kernel: the only file of this transport with `unsafe`.
//!
//! # Why it is sound
//! The kernel reads and writes memory between the submission of an operation and its completion. All such memory belongs to
//! a [`Conn`]: receive and transmit buffers are moved into it before their addresses are taken, and leave it by
//! [`Ring::complete`] alone, when their operation's completion was seen. Moving a `ReadBuf`, a `Transmit` or a `Conn` moves a
//! box, never what the kernel sees. A connection's descriptor is closed with its `Conn`, which goes when none of its operations
//! is left, so no entry names a descriptor that means something else by now. A ring that ends before these leaks their memory.
//!
//! Memory that a servant lends (`DepositTarget`) is given by a method that borrows the target for as long as the memory is used. A
//! target can not see that borrow end but by being used again or dropped, and nobody uses or drops it before the completion: so
//! its memory is as exclusive until then as if it were borrowed still.
//!
//! The queues have a lock of their own, which is held in system calls; that of the connections is taken inside it, for
//! moments. So whoever queues an operation never waits for the kernel.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use giop_proto::Loan;
use giop_proto::outbox::Transmit;
use giop_proto::pool::BufferPool;
use giop_proto::receive::{HEADER_LEN, PIECE_HEADER_LEN, ReadBuf};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue, types};

use super::conn::{
    CANCEL, CHAIN, Chain, Conn, HEADER, Header, Index, KIND_BITS, MAX_WRITE, POLL_FIRST, READ, Read, VECTORS,
    WRITE, Write, ZeroCopy, cancellation, gone, receive_header, user_data,
};
use super::lock;
use crate::transport::{AtATime, RingRead};

/// Entries of the submission queue. What finds no place waits in front of it.
const ENTRIES: u32 = 256;

/// Entries of the completion queue. The kernel keeps what finds no place.
const COMPLETIONS: u32 = 4096;

/// Submissions of one turn.
const TURNS: usize = 16;

/// The queues of an io_uring.
pub(super) struct Queues {
    io: IoUring,
    /// System calls.
    enters: Arc<AtomicU64>,
}

/// What users of a ring share with its reaper.
pub(super) struct State {
    pub(super) ring: Ring,
    pub(super) reaper: Option<Waker>,
    /// The reaper was told that there is something to submit, and has not looked yet.
    pub(super) asked: bool,
}

/// The connections of an io_uring.
#[derive(Default)]
pub(super) struct Ring {
    conns: Vec<Option<Box<Conn>>>,
    free: Vec<u32>,
    /// Entries that wait for room in the submission queue.
    waiting: VecDeque<Waiting>,
    /// Operations whose completion was not seen.
    in_flight: usize,
    /// The kernel is not asked any more.
    ended: bool,
    /// Whom the completions seen so far concern.
    pub(super) wakers: Vec<Waker>,
    /// Memory of servants that nobody waits for: to be dropped where their code may run.
    #[expect(clippy::vec_box, reason = "the boxes go round")]
    pub(super) dead: Vec<Box<Loan>>,
}

/// An entry in front of the submission queue.
struct Waiting {
    entry: squeue::Entry,
    /// The next one is linked to it.
    linked: bool,
}

/// The lists of slices of a chain of vectored writes.
pub(super) struct Vectors {
    slices: [[libc::iovec; VECTORS]; CHAIN],
    pub(super) messages: [libc::msghdr; CHAIN],
}

// SAFETY: the addresses in it are those of buffers that the same `Conn` owns; they are written before a submission and
// read by the kernel alone.
unsafe impl Send for Vectors {}

impl Queues {
    /// A ring. Completions are made when the thread that submitted is in the kernel anyway, in tokio's wait above all, so that
    /// taking them costs no system call. (With `DEFER_TASKRUN` they would wait for a call of our own, and the kernel would not
    /// tell epoll of them.) It belongs to no thread, so a runtime may go on elsewhere.
    pub(super) fn new(enters: Arc<AtomicU64>) -> io::Result<Self> {
        let builder = || {
            let mut builder = IoUring::builder();
            builder.setup_clamp().setup_cqsize(COMPLETIONS);
            builder
        };
        let io = match builder().setup_coop_taskrun().setup_taskrun_flag().build(ENTRIES) {
            // Before Linux 5.19.
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

    /// Takes completions, and submits what waits. With `least` > 0 it waits for as many completions, up to `wait`.
    ///
    /// # Errors
    /// The ring is lost. [`Ring::end`] comes next.
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
                // Half a chain may be among what it left: what was linked would run unlinked.
                Ok(taken) if taken < queued => {
                    return Err(io::Error::new(
                        io::ErrorKind::OutOfMemory,
                        "the kernel took half of a submission",
                    ));
                }
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    // It wants completions taken first, as they were, has no memory now, or the time is up.
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

    /// Takes the completions that are there.
    pub(super) fn take_completions(&mut self, state: &Mutex<State>) -> io::Result<()> {
        self.reap(state);
        Ok(())
    }

    /// Does what there is to do; where there is nothing, without a system call.
    pub(super) fn poll(&mut self, state: &Mutex<State>) -> io::Result<()> {
        if self.io.submission().taskrun() { self.look(state) } else { self.turn(state, 0, Duration::ZERO) }
    }

    /// Enters the kernel, so that it completes what it can.
    pub(super) fn look(&mut self, state: &Mutex<State>) -> io::Result<()> {
        let flags = EnterFlags::GETEVENTS.bits();
        self.enters.fetch_add(1, Ordering::Relaxed);
        // SAFETY: nothing is submitted; there is no argument.
        drop(unsafe { self.io.submitter().enter::<libc::sigset_t>(0, 0, flags, None) });
        self.turn(state, 0, Duration::ZERO)
    }

    /// Whether entries are left that were not submitted.
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
            // More may have come, or was kept by the kernel for want of room.
            completions.sync();
            if completions.is_empty() {
                return;
            }
        }
    }
}

impl Ring {
    /// Takes a stream in. It must be in blocking mode: the kernel then waits, and does not fail with `EAGAIN`.
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

    /// Whether entries wait to be submitted.
    pub(super) fn has_entries(&self) -> bool {
        !self.ended && !self.waiting.is_empty()
    }

    /// Whether every operation fails.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Operations whose completion was not seen yet.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Who hears of the connection's completions.
    pub(super) fn set_waker(&mut self, index: Index, waker: &Waker) {
        if let Some(conn) = self.conn(index)
            && !conn.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            conn.waker = Some(waker.clone());
        }
    }

    /// Who hears of the connection's completions from now on, in place of whom is given back.
    pub(super) fn swap_waker(&mut self, index: Index, waker: Option<Waker>) -> Option<Waker> {
        self.conn(index).and_then(|conn| mem::replace(&mut conn.waker, waker))
    }

    /// Takes back the memory of the list of wakers.
    pub(super) fn keep(&mut self, wakers: Vec<Waker>) {
        if self.wakers.is_empty() {
            self.wakers = wakers;
        }
    }

    /// The connection's descriptor.
    pub(super) fn fd(&self, index: Index) -> Option<&OwnedFd> {
        self.conns.get(index.0 as usize)?.as_deref().map(|conn| &conn.fd)
    }

    /// Whether [`take_read`](Self::take_read) gives something else than [`RingRead::Pending`].
    pub(super) fn is_read_pending(&mut self, index: Index) -> bool {
        !self.ended
            && self.conn(index).is_some_and(|conn| match conn.read {
                Read::Lent(_) => true,
                Read::Done(..) => false,
                Read::Idle => matches!(conn.header, Header::Lent),
            })
    }

    /// Whether [`take_read`](Self::take_read) or [`take_written`](Self::take_written) gives something.
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

    /// Receives into the buffer what comes next. Nothing else must be under way on the reading side.
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

    /// Receives the first octets of the next message into a few octets of the connection's own, so that one that waits holds
    /// no window. Nothing else must be under way on the reading side.
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

    /// Gives up waiting for octets: the read ends with what it has.
    pub(super) fn cancel_read(&mut self, index: Index) {
        if self.conn(index).is_some_and(|conn| matches!(conn.read, Read::Lent(_))) {
            self.cancel(index, READ);
        }
    }

    /// Whether the connection sends large writes without a copy.
    #[cfg(test)]
    pub(super) fn zero_copy(&mut self, index: Index) -> Option<ZeroCopy> {
        self.conn(index).map(|conn| conn.zero_copy)
    }

    /// Writes all of it, or the first [`MAX_WRITE`] octets. Nothing else must be under way on the writing side.
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

    /// A write that is over: what is left of it was not taken.
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

    /// Closes the connection. What is under way is cancelled and keeps its memory until it is over.
    pub(super) fn release(&mut self, index: Index) {
        let Some(conn) = self.conn(index) else { return };
        if mem::replace(&mut conn.released, true) {
            return;
        }
        conn.waker = None;
        // A receive that a link starts behind a cancellation ends by this.
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

    /// The handle of the connection is gone.
    pub(super) fn free(&mut self, index: Index) {
        self.release(index);
        if let Some(conn) = self.conn(index) {
            conn.dropped = true;
        }
        self.forget_if_over(index);
    }

    /// Releases every connection, and resets those that still write.
    pub(super) fn release_all(&mut self, reset: bool) {
        self.wakers.extend(self.conns.iter().flatten().filter_map(|conn| conn.waker.clone()));
        for index in 0..self.conns.len() as u32 {
            self.release(Index(index));
        }
        self.conns.iter().flatten().filter(|conn| reset && conn.is_writing()).for_each(|conn| conn.reset());
    }

    /// The kernel is not asked any more: operations fail from now on, and those that it has keep their memory for good.
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

    /// Moves entries into the submission queue. Linked ones go together: a chain ends where a submission does.
    fn queue_waiting(&mut self, io: &mut IoUring) {
        let mut queue = io.submission();
        loop {
            let chain = self.waiting.iter().take_while(|waiting| waiting.linked).count() + 1;
            if self.waiting.is_empty() || queue.capacity() - queue.len() < chain {
                return;
            }
            for Waiting { entry, .. } in self.waiting.drain(..chain.min(self.waiting.len())) {
                // SAFETY: what the entry points to belongs to a `Conn` until `complete` has seen its completion, and that is
                // also what keeps its descriptor open: see the top of this file. There is room.
                let _ = unsafe { queue.push(&entry) };
            }
        }
    }

    /// Ends a read that was not started.
    fn finish_read(&mut self, index: Index, error: io::Error) {
        if let Some(conn) = self.conn(index)
            && let Read::Lent(buf) = mem::replace(&mut conn.read, Read::Idle)
        {
            conn.read = Read::Done(buf, Err(error));
            let waker = conn.waker.clone();
            self.wakers.extend(waker);
        }
    }

    /// An operation is over: its memory is the connection's own again.
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
            // A notification follows, until which the memory is lent.
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

    /// Closes a released connection with which the kernel is done.
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
            // The kernel may still write there: closing the ring cancels the rest at its leisure.
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

    /// Lists the pieces of `transmit`, as many as find room and make up one write.
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

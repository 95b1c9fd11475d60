//! io_uring: the kernel completes reads and writes asynchronously. There is one ring for each current_thread
//! runtime. This is a runtime of the program, or of one of the ORB's own threads.
//!
//! Connections only queue operations, on any thread. A task of the runtime, the *reaper*, submits all queued
//! operations by one system call, takes completions, and wakes the drivers of the affected connections. The
//! descriptor of the ring is registered with tokio, so that completions wake the reaper.

mod conn;
#[expect(unsafe_code, reason = "the kernel reads and writes memory without the knowledge of the compiler")]
mod ring;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::future::Future;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use std::{fmt, io};

use giop_proto::outbox::Transmit;
use giop_proto::pool::BufferPool;
use giop_proto::receive::ReadBuf;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::lock::lock;
use crate::transport::low_water;
use crate::transport::outcome::{ReadCompletion, RingRead, drop_loans};
use crate::transport::threads::IoThread;
use crate::transport::uring::conn::ConnIndex;
use crate::transport::uring::ring::{Queues, Ring, State};

/// The duration of one wait until the kernel has released all buffers, when a runtime ends.
const FINAL_WAIT: Duration = Duration::from_millis(20);
/// The maximum number of final waits.
const MAX_FINAL_WAITS: usize = 50;
/// The number of final waits after which connections with pending writes are reset.
const WAITS_BEFORE_RESET: usize = 25;

thread_local! {
    /// The rings of this thread's runtimes. The reapers own them.
    static RINGS: RefCell<Vec<(tokio::runtime::Id, Weak<Shared>)>> = const { RefCell::new(Vec::new()) };
}

pub(crate) struct UringSocket {
    shared: Arc<Shared>,
    index: ConnIndex,
    thread: Option<Arc<IoThread>>,
}

#[derive(Clone)]
pub(crate) struct RingHandle(Arc<Shared>);

/// A ring, which its reaper and its connections share.
struct Shared {
    queues: Mutex<Queues>,
    state: Mutex<State>,
    enter_calls: Arc<AtomicU64>,
    /// If set, only this thread may enter the kernel, because completions run on the thread that submitted.
    owner: Option<ThreadId>,
}

/// The task that submits operations and takes completions.
struct Reaper {
    shared: Arc<Shared>,
    fd: Option<AsyncFd<RingFd>>,
    wakers: Vec<Waker>,
}

struct RingFd {
    fd: RawFd,
    /// Keeps the descriptor open.
    _shared: Arc<Shared>,
}

impl UringSocket {
    /// Moves a connected stream from tokio to the ring. The stream is then in blocking mode.
    pub(crate) fn new(
        ring: RingHandle,
        stream: tokio::net::TcpStream,
        pool: &Arc<BufferPool>,
        submissions: &Arc<AtomicU64>,
        thread: Option<Arc<IoThread>>,
    ) -> io::Result<Self> {
        let stream = stream.into_std()?;
        // In blocking mode, the kernel waits for bytes instead of failing with EAGAIN.
        stream.set_nonblocking(false)?;
        Ok(Self::with_ring(ring.0, stream.into(), pool, submissions, thread))
    }

    fn with_ring(
        shared: Arc<Shared>,
        fd: OwnedFd,
        pool: &Arc<BufferPool>,
        submissions: &Arc<AtomicU64>,
        thread: Option<Arc<IoThread>>,
    ) -> Self {
        let index = shared.lock().ring.insert(fd, Arc::clone(pool), Arc::clone(submissions));
        Self { shared, index, thread }
    }

    pub(crate) fn thread(&self) -> Option<&Arc<IoThread>> {
        self.thread.as_ref()
    }

    pub(crate) fn is_on_ring_thread(&self) -> bool {
        self.shared.is_on_ring_thread()
    }

    pub(crate) fn set_waker(&self, cx: &Context<'_>) {
        self.shared.lock().ring.set_waker(self.index, cx.waker());
    }

    /// Becomes ready when no read is pending. [`take_read`](Self::take_read) then returns the result, if any.
    pub(crate) fn poll_read_ready(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        state.ring.set_waker(self.index, cx.waker());
        if state.ring.is_read_pending(self.index) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    pub(crate) fn take_read(&self) -> RingRead {
        self.shared.lock().ring.take_read(self.index)
    }

    /// Starts to receive into the buffer. [`take_read`](Self::take_read) returns the buffer.
    pub(crate) fn start_read(&self, buf: ReadBuf, completion: ReadCompletion) {
        self.shared.queue_operations(|ring| ring.start_read(self.index, buf, completion));
    }

    #[cold]
    pub(crate) fn set_low_water(&self, bytes: usize) -> io::Result<()> {
        let state = self.shared.lock();
        state.ring.fd(self.index).map_or(Ok(()), |fd| low_water::set(fd.as_fd(), bytes))
    }

    /// Starts to receive the first bytes of a message. This needs no receive buffer.
    pub(crate) fn start_header_read(&self) {
        self.shared.queue_operations(|ring| ring.start_header_read(self.index));
    }

    /// Cancels a pending read, so that its buffer is returned.
    pub(crate) fn cancel_read(&self) {
        self.shared.queue_operations(|ring| ring.cancel_read(self.index));
    }

    /// Starts to write. [`take_written`](Self::take_written) returns the buffer.
    pub(crate) fn start_write(&self, transmit: Transmit) {
        self.shared.queue_operations(|ring| ring.start_write(self.index, transmit));
    }

    pub(crate) fn take_written(&self) -> Option<(Transmit, io::Result<()>)> {
        self.shared.lock().ring.take_written(self.index)
    }

    /// Processes completions immediately. Does not wait until the reaper runs.
    pub(crate) fn process_completions(&self) {
        let mut wakers = Vec::new();
        let more = if self.is_on_ring_thread() {
            self.shared.use_queues(&mut wakers, Queues::run_completions)
        } else {
            // Completions that occurred while the ring's thread was asleep are already in the queue.
            self.shared.use_queues(&mut wakers, |queues, state| {
                queues.take_completions(state);
                Ok(())
            })
        };
        self.shared.lock().ring.reuse_wakers(wakers);
        if more {
            self.shared.wake_reaper();
        }
    }

    /// Submits queued operations, and polls until an operation of this connection completes or `max_time` has
    /// passed. Returns whether an operation has completed. Does not wake the waker of this connection.
    pub(crate) fn spin(&self, max_time: Duration) -> bool {
        if !self.is_on_ring_thread() {
            return false;
        }
        let begun = Instant::now();
        let own = self.shared.lock().ring.swap_waker(self.index, None);
        let mut wakers = Vec::new();
        loop {
            let more = self.shared.use_queues(&mut wakers, Queues::poll);
            let mut state = self.shared.lock();
            state.ring.reuse_wakers(std::mem::take(&mut wakers));
            let has_result = state.ring.has_result(self.index);
            if has_result || begun.elapsed() >= max_time {
                // Restore the waker before the lock is released, so that no completion is missed.
                state.ring.swap_waker(self.index, own);
                drop(state);
                if more {
                    self.shared.wake_reaper();
                }
                return has_result;
            }
            drop(state);
            std::hint::spin_loop();
        }
    }

    pub(crate) fn shut_down_write(&self) {
        let state = self.shared.lock();
        if let Some(fd) = state.ring.fd(self.index) {
            // Ignore the error of a socket that is already disconnected.
            let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Write);
        }
    }

    /// Closes the connection and cancels its pending operations. Their buffers are freed when they complete.
    pub(crate) fn close(&self) {
        self.shared.queue_operations(|ring| ring.close(self.index));
    }
}

impl Drop for UringSocket {
    fn drop(&mut self) {
        self.shared.queue_operations(|ring| ring.drop_handle(self.index));
    }
}

impl fmt::Debug for UringSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UringSocket").field("index", &self.index).finish_non_exhaustive()
    }
}

impl RingHandle {
    /// Returns the ring of the current runtime, and creates it if necessary. Fails in multi-threaded
    /// runtimes.
    pub(crate) fn of_current_runtime() -> io::Result<Self> {
        let handle = Handle::try_current().map_err(io::Error::other)?;
        if handle.runtime_flavor() != RuntimeFlavor::CurrentThread {
            let text = "the runtime has several threads, but an io_uring requires a current_thread runtime";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let id = handle.id();
        let known = RINGS.with_borrow_mut(|rings| {
            rings.retain(|(_, ring)| ring.strong_count() > 0);
            rings.iter().find(|(known, _)| *known == id).and_then(|(_, ring)| ring.upgrade())
        });
        if let Some(shared) = known.filter(|shared| !shared.lock().ring.has_ended()) {
            return Ok(Self(shared));
        }
        let ring = Self::start(&handle, None)?;
        RINGS.with_borrow_mut(|rings| {
            rings.retain(|(known, _)| *known != id);
            rings.push((id, Arc::downgrade(&ring.0)));
        });
        Ok(ring)
    }

    /// Creates a ring for a current_thread runtime that always runs on the thread `owner`.
    pub(crate) fn for_thread(runtime: &Handle, owner: ThreadId) -> io::Result<Self> {
        Self::start(runtime, Some(owner))
    }

    fn start(runtime: &Handle, owner: Option<ThreadId>) -> io::Result<Self> {
        let enter_calls = Arc::default();
        let queues = Mutex::new(Queues::new(Arc::clone(&enter_calls))?);
        let state = Mutex::new(State { ring: Ring::default(), reaper: None, reaper_woken: false });
        let shared = Arc::new(Shared { queues, state, enter_calls, owner });
        runtime.spawn(Reaper { shared: Arc::clone(&shared), fd: None, wakers: Vec::new() });
        Ok(Self(shared))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.lock().ring.has_ended()
    }

    pub(crate) fn enter_calls(&self) -> &Arc<AtomicU64> {
        &self.0.enter_calls
    }
}

impl Shared {
    fn is_on_ring_thread(&self) -> bool {
        self.owner.is_none_or(|owner| owner == std::thread::current().id())
    }

    /// Locks the state of the connections. The lock must be held only briefly.
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Locks the queues. A thread that locks both must lock the queues before the state.
    fn queues(&self) -> MutexGuard<'_, Queues> {
        lock(&self.queues)
    }

    /// Queues operations and wakes the reaper to submit them.
    fn queue_operations(&self, queue: impl FnOnce(&mut Ring)) {
        let mut state = self.lock();
        queue(&mut state.ring);
        let must_wake = state.ring.has_entries() && !std::mem::replace(&mut state.reaper_woken, true);
        let reaper = if must_wake { state.reaper.clone() } else { None };
        // The list of wakers is usually empty. It is then not taken, so that it keeps its memory.
        let is_empty = state.ring.wakers.is_empty();
        let drivers = if is_empty { Vec::new() } else { std::mem::take(&mut state.ring.wakers) };
        let returned_loans = std::mem::take(&mut state.ring.returned_loans);
        drop(state);
        drop_loans(returned_loans);
        // Wakers are called after the lock is released, because they may run any code.
        reaper.into_iter().chain(drivers).for_each(Waker::wake);
    }

    #[cold]
    fn wake_reaper(&self) {
        let mut state = self.lock();
        let reaper =
            if std::mem::replace(&mut state.reaper_woken, true) { None } else { state.reaper.clone() };
        drop(state);
        reaper.into_iter().for_each(Waker::wake);
    }

    /// Runs `action`, and then wakes the affected drivers. Returns whether entries remain to be submitted.
    fn use_queues(
        &self,
        wakers: &mut Vec<Waker>,
        action: impl FnOnce(&mut Queues, &Mutex<State>) -> io::Result<()>,
    ) -> bool {
        let mut queues = self.queues();
        let outcome = action(&mut queues, &self.state);
        let mut state = self.lock();
        if let Err(error) = outcome {
            state.ring.end();
            tracing::warn!(target: "zorb", %error, "an io_uring failed: its connections are closed");
        }
        let more = state.ring.has_entries() || (queues.has_entries() && !state.ring.has_ended());
        drop(queues);
        std::mem::swap(wakers, &mut state.ring.wakers);
        let returned_loans = std::mem::take(&mut state.ring.returned_loans);
        drop(state);
        drop_loans(returned_loans);
        wakers.drain(..).for_each(Waker::wake);
        more
    }
}

impl Reaper {
    fn start(&mut self) -> io::Result<()> {
        let fd = RingFd { fd: self.shared.queues().raw_fd(), _shared: Arc::clone(&self.shared) };
        #[allow(deprecated, reason = "its successor is `unsafe`; `RingFd` keeps the descriptor open")]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        self.fd = Some(fd);
        Ok(())
    }
}

impl Future for Reaper {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.fd.is_none()
            && let Err(error) = this.start()
        {
            tracing::warn!(target: "zorb", %error, "cannot register an io_uring with tokio: its connections are closed");
            return Poll::Ready(());
        }
        let Some(fd) = &this.fd else { return Poll::Ready(()) };
        loop {
            match fd.poll_read_ready(cx) {
                Poll::Ready(Ok(mut guard)) => guard.clear_ready(),
                // The runtime is shutting down.
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        let mut state = this.shared.lock();
        if state.ring.has_ended() {
            return Poll::Ready(());
        }
        if !state.reaper.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            state.reaper = Some(cx.waker().clone());
        }
        drop(state);
        if this.shared.use_queues(&mut this.wakers, |queues, state| queues.process(state, 0, Duration::ZERO))
        {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Reaper {
    /// Waits at most one second until the kernel has released all buffers.
    fn drop(&mut self) {
        let mut queues = self.shared.queues();
        for wait in 0..MAX_FINAL_WAITS {
            let mut state = self.shared.lock();
            // Repeat this before each wait, because other threads may have added operations.
            state.ring.close_all(wait >= WAITS_BEFORE_RESET);
            let is_done = state.ring.in_flight() == 0;
            drop(state);
            if is_done || queues.process(&self.shared.state, 1, FINAL_WAIT).is_err() {
                break;
            }
        }
        let mut state = self.shared.lock();
        drop(queues);
        state.ring.end();
        let wakers = std::mem::take(&mut state.ring.wakers);
        let reaper = state.reaper.take();
        let returned_loans = std::mem::take(&mut state.ring.returned_loans);
        drop(state);
        drop_loans(returned_loans);
        drop(reaper);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl AsRawFd for RingFd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd
    }
}

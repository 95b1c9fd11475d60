//! Threads of an ORB, each with a current_thread runtime and an io_uring, for connections that are shared by
//! callers on many threads.
//!
//! A connection belongs to one thread permanently: its driver runs there, and so do the servants that it
//! serves in place. The first connection starts all threads, only if `Transport::IoUringThreads` is
//! configured.

use std::future::Future;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io, mem};

use tokio::runtime::{Builder, Handle, Id, Runtime};
use tokio::sync::{oneshot, watch};
use tokio_util::task::TaskTracker;

use crate::transport::uring::RingHandle;

/// Timeout of a shutdown for the threads, after their connections have ended. The kernel has one second of it
/// to release buffers.
const JOIN: Duration = Duration::from_secs(2);

/// Timeout of an ending thread for blocking tasks that servants have left in its runtime.
const LEFTOVERS: Duration = Duration::from_millis(100);

/// The threads of an ORB. Dropping them stops the threads without waiting for them.
#[derive(Debug)]
pub(crate) struct IoThreads {
    threads: Vec<Arc<IoThread>>,
    /// The number of assigned accepted connections.
    next: AtomicUsize,
}

/// A thread with a runtime and a ring.
pub(crate) struct IoThread {
    runtime: Handle,
    ring: Mutex<RingHandle>,
    drivers: TaskTracker,
    joining: Mutex<Joining>,
    /// Closed when the thread has ended.
    ended: watch::Receiver<()>,
}

struct Joining {
    /// Receives the time that drivers have left.
    stop: Option<oneshot::Sender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl IoThreads {
    /// Starts that many threads, or none.
    ///
    /// # Errors
    /// A thread or its ring cannot be created.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let threads = (0..count).map(IoThread::start).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { threads, next: AtomicUsize::new(0) })
    }

    /// Returns the number of threads that have not ended.
    pub(crate) fn running(&self) -> usize {
        self.threads.iter().filter(|thread| thread.ended.has_changed().is_ok()).count()
    }

    /// Returns the thread for calls from that runtime to that target. It is always the same, and the caller's
    /// own if it is one of them.
    pub(crate) fn for_calls(&self, runtime: Id, target: &impl Hash) -> Option<&Arc<IoThread>> {
        if let Some(own) = self.threads.iter().find(|thread| thread.runtime.id() == runtime) {
            return Some(own);
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((runtime, target));
        self.at(hash as usize)
    }

    /// Returns the thread for an accepted connection, in rotation.
    pub(crate) fn in_turn(&self) -> Option<&Arc<IoThread>> {
        self.at(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn at(&self, number: usize) -> Option<&Arc<IoThread>> {
        self.threads.get(number.checked_rem(self.threads.len())?)
    }

    /// Stops the threads. Drivers with running servants have `grace` to finish.
    pub(crate) fn leave(&self, grace: Duration) {
        for thread in &self.threads {
            if let Some(stop) = thread.joining().stop.take() {
                // A thread that has ended no longer receives.
                let _ = stop.send(grace);
            }
        }
    }

    /// Stops the threads and waits for them, for a bounded time. Returns the number of threads that did not
    /// end because a servant blocks them.
    ///
    /// # Cancel safety
    /// The threads stop even if this future is dropped.
    pub(crate) async fn join(&self) -> usize {
        self.leave(Duration::ZERO);
        let ended = async {
            for thread in &self.threads {
                // Nothing is ever sent: this waits until the sender is dropped.
                let _ = thread.ended.clone().changed().await;
                let handle = thread.joining().thread.take();
                // The thread has ended its work, so joining does not block.
                drop(handle.map(JoinHandle::join));
            }
        };
        let _ = tokio::time::timeout(JOIN, ended).await;
        self.running()
    }
}

impl IoThread {
    fn start(number: usize) -> io::Result<Arc<Self>> {
        let runtime = Owned(Some(Builder::new_current_thread().enable_all().build()?));
        let Some(handle) = runtime.0.as_ref().map(|runtime| runtime.handle().clone()) else {
            return Err(io::ErrorKind::Other.into());
        };
        let (stop, stopped) = oneshot::channel();
        let (ending, ended) = watch::channel(());
        let drivers = TaskTracker::new();
        let theirs = drivers.clone();
        let thread = thread::Builder::new().name(format!("zorb-io-{number}")).spawn(move || {
            run(runtime, stopped, &theirs);
            drop(ending);
        })?;
        // If there is no ring, the sender is dropped, which stops the thread.
        let ring = Mutex::new(RingHandle::on(&handle, thread.thread().id())?);
        let joining = Mutex::new(Joining { stop: Some(stop), thread: Some(thread) });
        Ok(Arc::new(Self { runtime: handle, ring, drivers, joining, ended }))
    }

    /// Returns the thread's ring, or creates another one if it was lost.
    pub(crate) fn ring(&self) -> io::Result<RingHandle> {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if ring.has_ended() {
            let Some(owner) = self.joining().thread.as_ref().map(|thread| thread.thread().id()) else {
                return Err(io::Error::other("the thread of the ring has ended"));
            };
            *ring = RingHandle::on(&self.runtime, owner)?;
        }
        Ok(ring.clone())
    }

    /// Returns the thread's runtime.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Registers a driver, whose end the thread waits for.
    pub(crate) fn track<F: Future>(&self, driver: F) -> impl Future<Output = F::Output> + use<F> {
        self.drivers.track_future(driver)
    }

    fn joining(&self) -> MutexGuard<'_, Joining> {
        self.joining.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A runtime that can be dropped where a thread must not block.
struct Owned(Option<Runtime>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The main function of a thread: runs the tasks of its runtime until it is stopped.
fn run(mut runtime: Owned, stopped: oneshot::Receiver<Duration>, drivers: &TaskTracker) {
    let Some(runtime) = mem::take(&mut runtime.0) else { return };
    runtime.block_on(async {
        let grace = stopped.await.unwrap_or_default();
        drivers.close();
        let _ = tokio::time::timeout(grace, drivers.wait()).await;
    });
    runtime.shutdown_timeout(LEFTOVERS);
}

impl fmt::Debug for IoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoThread").field("runtime", &self.runtime.id()).finish_non_exhaustive()
    }
}

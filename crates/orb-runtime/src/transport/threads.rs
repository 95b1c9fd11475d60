//! Threads of an ORB's own, each with a current_thread runtime and an io_uring, for connections that callers on many threads
//! share.
//!
//! A connection belongs to one of them for good: its driver runs there, and so do the servants that it serves in place. They
//! are started by the first connection, all together, and only where `Transport::IoUringThreads` asks for them.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::io;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Id, Runtime};
use tokio::sync::{oneshot, watch};
use tokio_util::task::TaskTracker;

use super::uring::RingHandle;

/// How long a shutdown waits for the threads, after their connections: the kernel has a second to let go of buffers.
const JOIN: Duration = Duration::from_secs(2);

/// How long a thread that ends waits for what servants left to its runtime's blocking threads.
const LEFTOVERS: Duration = Duration::from_millis(100);

/// The threads of an ORB. Dropping them lets them end, without waiting for it.
#[derive(Debug)]
pub(crate) struct IoThreads {
    threads: Vec<Arc<IoThread>>,
    /// Connections that were taken in.
    next: AtomicUsize,
}

/// One thread.
pub(crate) struct IoThread {
    runtime: Handle,
    ring: Mutex<RingHandle>,
    drivers: TaskTracker,
    joining: Mutex<Joining>,
    /// Closed when the thread has ended.
    ended: watch::Receiver<()>,
}

struct Joining {
    /// Takes how long drivers may go on.
    stop: Option<oneshot::Sender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl IoThreads {
    /// Starts so many threads, or none.
    ///
    /// # Errors
    /// Why one of them has no ring, or can not be had.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let threads = (0..count).map(IoThread::start).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { threads, next: AtomicUsize::new(0) })
    }

    /// How many there are that have not ended.
    pub(crate) fn running(&self) -> usize {
        self.threads.iter().filter(|thread| thread.ended.has_changed().is_ok()).count()
    }

    /// The thread for calls from that runtime to that target: always the same, and the caller's own if it is one of them.
    pub(crate) fn for_calls(&self, runtime: Id, target: &impl Hash) -> Option<&Arc<IoThread>> {
        if let Some(own) = self.threads.iter().find(|thread| thread.runtime.id() == runtime) {
            return Some(own);
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((runtime, target));
        self.at(hash as usize)
    }

    /// The thread for a connection that was taken in: each in turn.
    pub(crate) fn in_turn(&self) -> Option<&Arc<IoThread>> {
        self.at(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn at(&self, number: usize) -> Option<&Arc<IoThread>> {
        self.threads.get(number.checked_rem(self.threads.len())?)
    }

    /// Lets the threads end, with so much time for drivers that still have servants under way.
    pub(crate) fn leave(&self, grace: Duration) {
        for thread in &self.threads {
            if let Some(stop) = thread.joining().stop.take() {
                // One that has ended already hears nothing.
                let _ = stop.send(grace);
            }
        }
    }

    /// Lets the threads end and waits for that, for a bounded time. Says how many did not: a servant blocks them.
    ///
    /// # Cancel safety
    /// They end all the same.
    pub(crate) async fn join(&self) -> usize {
        self.leave(Duration::ZERO);
        let ended = async {
            for thread in &self.threads {
                // It is never sent to: this waits for the sender to go.
                let _ = thread.ended.clone().changed().await;
                let handle = thread.joining().thread.take();
                // It has nothing left to do.
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
        // Should there be no ring, the thread ends because nobody can stop it any more.
        let ring = Mutex::new(RingHandle::on(&handle, thread.thread().id())?);
        let joining = Mutex::new(Joining { stop: Some(stop), thread: Some(thread) });
        Ok(Arc::new(Self { runtime: handle, ring, drivers, joining, ended }))
    }

    /// The thread's ring: another one if it was lost.
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

    /// The thread's runtime.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// A driver whose end the thread waits for.
    pub(crate) fn track<F: Future>(&self, driver: F) -> impl Future<Output = F::Output> + use<F> {
        self.drivers.track_future(driver)
    }

    fn joining(&self) -> MutexGuard<'_, Joining> {
        self.joining.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A runtime that may be dropped where a thread must not wait.
struct Owned(Option<Runtime>);

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What a thread does: everything that is spawned on its runtime, until it is told to end.
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

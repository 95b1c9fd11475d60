//! The threads of `Transport::IoUringThreads`. Each has a current_thread runtime and an io_uring.
//!
//! The driver and the servants of a connection run on one thread. Calls can be made from any thread.

use std::future::Future;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io, mem};

use tokio::runtime::{Builder, Handle, Id, Runtime};
use tokio::sync::{oneshot, watch};
use tokio_util::task::TaskTracker;

use crate::lock::lock;
use crate::transport::uring::RingHandle;

/// How long a shutdown waits for the threads, including a second in which the kernel releases buffers.
const JOIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an ending thread waits for blocking tasks that servants have started in its runtime.
const BLOCKING_TASK_TIMEOUT: Duration = Duration::from_millis(100);

/// The threads of an ORB. Dropping them stops the threads without waiting for them.
#[derive(Debug)]
pub(crate) struct IoThreads {
    threads: Vec<Arc<IoThread>>,
    /// The number of accepted connections. They are distributed over the threads in turn.
    accepted_count: AtomicUsize,
}

pub(crate) struct IoThread {
    runtime: Handle,
    ring: Mutex<RingHandle>,
    drivers: TaskTracker,
    control: Mutex<ThreadControl>,
    /// Its sender is dropped when the thread ends.
    ended: watch::Receiver<()>,
}

struct ThreadControl {
    /// Stops the thread. The sent value is the time for which drivers may continue.
    stop: Option<oneshot::Sender<Duration>>,
    thread: Option<JoinHandle<()>>,
}

impl IoThreads {
    /// Starts `count` threads. If a thread or its io_uring cannot be created, all threads are stopped.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let threads = (0..count).map(IoThread::start).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { threads, accepted_count: AtomicUsize::new(0) })
    }

    pub(crate) fn running_count(&self) -> usize {
        self.threads.iter().filter(|thread| thread.ended.has_changed().is_ok()).count()
    }

    /// Returns the thread for connections that `runtime` opens to a target. If `runtime` does not belong to
    /// one of the threads, the result is always the same for the same runtime and target.
    pub(crate) fn thread_for_calls(&self, runtime: Id, target: &impl Hash) -> Option<&Arc<IoThread>> {
        if let Some(own) = self.threads.iter().find(|thread| thread.runtime.id() == runtime) {
            return Some(own);
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((runtime, target));
        self.by_number(hash as usize)
    }

    /// Returns the thread for the next accepted connection.
    pub(crate) fn thread_for_accepted_connection(&self) -> Option<&Arc<IoThread>> {
        self.by_number(self.accepted_count.fetch_add(1, Ordering::Relaxed))
    }

    fn by_number(&self, number: usize) -> Option<&Arc<IoThread>> {
        self.threads.get(number.checked_rem(self.threads.len())?)
    }

    /// Stops the threads. Drivers with running servants may continue for `grace`.
    pub(crate) fn stop(&self, grace: Duration) {
        for thread in &self.threads {
            if let Some(stop) = lock(&thread.control).stop.take() {
                // The error means that the thread has already ended.
                let _ = stop.send(grace);
            }
        }
    }

    /// Stops the threads, even if the future is dropped. Waits for at most [`JOIN_TIMEOUT`] until they have
    /// ended. Returns the number of threads that have not ended, because servants block them.
    pub(crate) async fn join(&self) -> usize {
        self.stop(Duration::ZERO);
        let ended = async {
            for thread in &self.threads {
                // Nothing is sent over this channel. This waits until the sender is dropped.
                let _ = thread.ended.clone().changed().await;
                let handle = lock(&thread.control).thread.take();
                // The thread is about to end. Therefore joining it does not block for long.
                drop(handle.map(JoinHandle::join));
            }
        };
        let _ = tokio::time::timeout(JOIN_TIMEOUT, ended).await;
        self.running_count()
    }
}

impl IoThread {
    fn start(number: usize) -> io::Result<Arc<Self>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let runtime = BackgroundRuntime(Some(runtime));
        let (stop, stopped) = oneshot::channel();
        let (ending, ended) = watch::channel(());
        let drivers = TaskTracker::new();
        let tracked = drivers.clone();
        let thread = thread::Builder::new().name(format!("zorb-io-{number}")).spawn(move || {
            run(runtime, stopped, &tracked);
            drop(ending);
        })?;
        // If this fails, `stop` is dropped, which stops the thread.
        let ring = Mutex::new(RingHandle::for_thread(&handle, thread.thread().id())?);
        let control = Mutex::new(ThreadControl { stop: Some(stop), thread: Some(thread) });
        Ok(Arc::new(Self { runtime: handle, ring, drivers, control, ended }))
    }

    /// Returns the thread's ring. If it has failed, replaces it by a new one.
    pub(crate) fn ring(&self) -> io::Result<RingHandle> {
        let mut ring = lock(&self.ring);
        if ring.has_ended() {
            let Some(owner) = lock(&self.control).thread.as_ref().map(|thread| thread.thread().id()) else {
                return Err(io::Error::other("the thread of the ring has ended"));
            };
            *ring = RingHandle::for_thread(&self.runtime, owner)?;
        }
        Ok(ring.clone())
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Registers a driver. A stopped thread waits for its registered drivers, for the time given to `stop`.
    pub(crate) fn track<F: Future>(&self, driver: F) -> impl Future<Output = F::Output> + use<F> {
        self.drivers.track_future(driver)
    }
}

/// A runtime whose drop does not block, so that it can be dropped in an asynchronous context.
struct BackgroundRuntime(Option<Runtime>);

impl Drop for BackgroundRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn run(mut runtime: BackgroundRuntime, stopped: oneshot::Receiver<Duration>, drivers: &TaskTracker) {
    let Some(runtime) = mem::take(&mut runtime.0) else { return };
    runtime.block_on(async {
        let grace = stopped.await.unwrap_or_default();
        drivers.close();
        let _ = tokio::time::timeout(grace, drivers.wait()).await;
    });
    runtime.shutdown_timeout(BLOCKING_TASK_TIMEOUT);
}

impl fmt::Debug for IoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoThread").field("runtime", &self.runtime.id()).finish_non_exhaustive()
    }
}

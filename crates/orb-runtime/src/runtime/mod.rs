//! The state of an ORB that its modules share.
//!
//! [`Shared`] owns the configuration, the connections, the pool of receive buffers and the counters of one
//! ORB. Each module that depends on this one keeps its own state in an [`Extension`], whose type only that
//! module knows. Therefore a reference can keep the ORB alive without depending on the object adapter.

mod addresses;
pub(crate) mod backpressure;
mod extension;
mod pauses;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use giop_codec::giop::HeaderError;
use giop_codec::{DecodeError, OneLine};
use giop_proto::pool::BufferPool;
use giop_proto::{Limit, ProtocolError, RequestBudget, Stats};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

pub(crate) use extension::{Extension, Extensions};
pub(crate) use pauses::{Pauses, SHORT_OF_MEMORY};

use crate::config::Config;
use crate::connection::SharedConnection;
use crate::endpoint::Endpoint;
use crate::transport::OrbTransport;

/// The interval between trims. Each trim frees the buffers that were unused for a whole interval.
const TRIM_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum size of the pool, in bytes, that is not trimmed.
const MAX_UNTRIMMED_BYTES: usize = 1 << 20;

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) extensions: Extensions,
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) budget: Arc<RequestBudget>,
    pub(crate) transport: OrbTransport,
    #[cfg(feature = "tls")]
    pub(crate) handshakes: Arc<crate::tls::handshakes::Handshakes>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) connections: OpenConnections,
    pub(crate) counters: Counters,
    pub(crate) tasks: Tasks,
    pub(crate) pauses: Pauses,
    pub(crate) backpressure: backpressure::Backpressure,
    /// Whether a task is trimming the pool.
    is_trimming: AtomicBool,
    pub(crate) closing: Closing,
    /// The guard that closes the ORB. It exists while the program has a handle of the ORB.
    pub(crate) close_guard: Mutex<Weak<CloseGuard>>,
}

/// Closes the ORB when the program drops the last handle.
pub(crate) struct CloseGuard(pub(crate) Weak<Shared>);

/// The open connections of one ORB, by number.
#[derive(Default)]
pub(crate) struct OpenConnections {
    open: Mutex<HashMap<u64, Weak<SharedConnection>>>,
    next_number: AtomicU64,
}

/// The counters of an ORB, without the counters of its open connections.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// How often each limit was reached. Connections count the limits that they reach themselves.
    limit_hits: [AtomicU32; Limit::ALL.len()],
    /// The sums of the counters of closed connections. Must be locked after [`OpenConnections`].
    closed_connections: Mutex<Stats>,
    pub(crate) failed_oneways: AtomicU64,
    /// The number of oneway requests that were held until the ORB closed.
    pub(crate) discarded_oneways: AtomicUsize,
}

pub(crate) struct Tasks {
    /// Tasks of connections over which only this ORB calls, and all other tasks.
    pub(crate) other: TaskTracker,
    /// Tasks of connections over which peers call objects.
    pub(crate) serving: TaskTracker,
    pub(crate) listening: TaskTracker,
    /// The runtime in which the ORB was built. It runs requests of blocking and spawned servants even if the
    /// connection is driven by the runtime of an I/O thread that zorb created.
    pub(crate) runtime: Option<tokio::runtime::Handle>,
}

#[derive(Debug, Default)]
pub(crate) struct Closing {
    has_begun: AtomicBool,
    /// Whether requests of peers are no longer served.
    has_ended_serving: AtomicBool,
    notify: Notify,
}

pub(crate) struct SharedParams {
    pub(crate) config: Config,
    pub(crate) extensions: Extensions,
    pub(crate) endpoints: Vec<Endpoint>,
    /// The capacity of the pool of receive buffers, in bytes.
    pub(crate) pool_bytes: usize,
    /// Whether requests are held until `Orb::resume`.
    pub(crate) starts_paused: bool,
}

impl Shared {
    /// Creates the state of an ORB in the current runtime, if there is one.
    pub(crate) fn new(params: SharedParams) -> Arc<Self> {
        let SharedParams { config, extensions, endpoints, pool_bytes, starts_paused } = params;
        Arc::new(Self {
            #[cfg(feature = "tls")]
            handshakes: {
                let max = config.tls.as_ref().map_or(0, |tls| tls.rules().max_handshakes);
                crate::tls::handshakes::Handshakes::new(max, config.server.evict_idle_after)
            },
            transport: OrbTransport::new(config.connection.transport),
            budget: Arc::new(RequestBudget::new(config.limits.max_total_requests)),
            config,
            extensions,
            pool: Arc::new(BufferPool::new(pool_bytes)),
            endpoints,
            connections: OpenConnections::default(),
            counters: Counters::default(),
            tasks: Tasks {
                other: TaskTracker::new(),
                serving: TaskTracker::new(),
                listening: TaskTracker::new(),
                runtime: tokio::runtime::Handle::try_current().ok(),
            },
            pauses: Pauses::new(starts_paused),
            backpressure: Default::default(),
            is_trimming: AtomicBool::new(false),
            closing: Closing::default(),
            close_guard: Mutex::new(Weak::new()),
        })
    }

    pub(crate) fn stats(&self) -> Stats {
        let links = self.connections.lock();
        let mut sum = *self.counters.closed_connections.lock().unwrap_or_else(PoisonError::into_inner);
        for (limit, count) in Limit::ALL.iter().zip(&self.counters.limit_hits) {
            sum.limit_hits.add(*limit, count.load(Ordering::Relaxed));
        }
        for link in links.values().filter_map(Weak::upgrade) {
            sum += link.stats();
        }
        sum
    }

    /// Removes a closed connection, and adds its counters to those of the ORB.
    pub(crate) fn record_closed_connection(self: &Arc<Self>, id: u64, link: &SharedConnection) {
        self.trim_pool_later();
        if let Some(ProtocolError::Header(error @ HeaderError::Magic([0x16, 3, ..]))) = link.protocol_error()
        {
            self.transport.tls.misdirected.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(target: "zorb", peer = %link.peer(), "connection closed: {error}");
        }
        let mut links = self.connections.lock();
        if links.remove(&id).is_some() {
            *self.counters.closed_connections.lock().unwrap_or_else(PoisonError::into_inner) += link.stats();
        }
    }

    pub(crate) fn start_metrics_export(self: &Arc<Self>) {
        #[cfg(feature = "metrics")]
        self.spawn_metrics_export();
    }

    /// Spawns a task, which is cancelled when the ORB closes.
    pub(crate) fn spawn_until_closed(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let core = Arc::clone(self);
        self.tasks.other.spawn(async move {
            tokio::select! {
                biased;
                () = core.closing.wait() => {}
                () = task => {}
            }
        });
    }

    /// Starts a task that trims the pool if it is large. Called when a connection becomes idle or is closed,
    /// because its buffers may be unused then.
    pub(crate) fn trim_pool_later(self: &Arc<Self>) {
        if self.pool.held() > MAX_UNTRIMMED_BYTES
            && !self.closing.has_begun()
            && !self.is_trimming.swap(true, Ordering::Relaxed)
        {
            self.spawn_until_closed(trim(Arc::downgrade(self)));
        }
    }

    /// Begins the shutdown: from now on, new work is rejected. Returns `false` if it had begun before.
    pub(crate) fn begin_closing(&self) -> bool {
        let first = self.closing.begin();
        self.resume_all_for_shutdown();
        first
    }
}

impl OpenConnections {
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<u64, Weak<SharedConnection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn to_vec(&self) -> Vec<Arc<SharedConnection>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }
}

impl Counters {
    #[cold]
    pub(crate) fn hit(&self, limit: Limit) {
        if let Some(count) = self.limit_hits.get(limit as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts the limit that caused a decoding error, if a limit was the cause.
    #[cold]
    pub(crate) fn hit_decoding_limit(&self, error: &DecodeError) {
        if let Some(limit) = Limit::of_decoding(error) {
            self.hit(limit);
        }
    }

    #[cold]
    pub(crate) fn record_failed_oneway(&self, exception: &dyn fmt::Display) {
        self.failed_oneways.fetch_add(1, Ordering::Relaxed);
        let exception = OneLine::new(exception);
        tracing::warn!(target: "zorb", %exception, "a oneway request failed; the caller is not notified");
    }
}

impl Closing {
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// Begins the shutdown, and wakes all tasks that wait for it. Returns `false` if it had begun before.
    fn begin(&self) -> bool {
        let first = !self.has_begun.swap(true, Ordering::AcqRel);
        self.notify.notify_waiters();
        first
    }

    pub(crate) async fn wait(&self) {
        let closed = self.notify.notified();
        tokio::pin!(closed);
        closed.as_mut().enable();
        if !self.has_begun() {
            closed.await;
        }
    }

    /// Ends the serving of requests from peers. From now on, calls that running servants make are rejected.
    pub(crate) fn end_serving(&self) {
        self.has_ended_serving.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended_serving(&self) -> bool {
        self.has_ended_serving.load(Ordering::Acquire)
    }

    /// Returns whether this connection must be closed now because of the shutdown.
    pub(crate) fn must_close(&self, link: &SharedConnection) -> bool {
        self.has_begun() && (self.has_ended_serving() || link.serves_peer())
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

async fn trim(core: Weak<Shared>) {
    loop {
        tokio::time::sleep(TRIM_INTERVAL).await;
        let Some(core) = core.upgrade() else { return };
        if !core.pool.trim() {
            core.is_trimming.store(false, Ordering::Relaxed);
            return;
        }
    }
}

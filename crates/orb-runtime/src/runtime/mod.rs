//! The state of an ORB that its modules share.
//!
//! [`Shared`] owns the configuration, the connections, the pool and the counters of one ORB. A module above
//! this one, such as the object adapter, keeps its own state in an [`Extension`], whose type only that module
//! knows. Therefore a reference can keep the whole ORB alive without depending on what serves its objects.

mod addresses;
pub(crate) mod backpressure;
mod extension;
mod limit_counters;
mod pauses;
mod trimming;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use giop_codec::OneLine;
use giop_codec::giop::HeaderError;
use giop_proto::pool::BufferPool;
use giop_proto::{Load, ProtocolError, Stats};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

pub(crate) use extension::{Extension, Extensions};
pub(crate) use pauses::{CROWDED, Pauses};

use crate::config::Config;
use crate::connection::SharedConnection;
use crate::endpoint::Endpoint;
use crate::transport::Sockets;

/// The state of an ORB that all of its modules use.
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// The state of the modules above this one.
    pub(crate) extensions: Extensions,
    pub(crate) pool: Arc<BufferPool>,
    /// Requests in flight on all connections.
    pub(crate) load: Arc<Load>,
    pub(crate) sockets: Sockets,
    /// The limiter of TLS handshakes with clients.
    #[cfg(feature = "tls")]
    pub(crate) handshakes: Arc<crate::tls::handshakes::Handshakes>,
    pub(crate) endpoints: Vec<Endpoint>,
    links: Mutex<HashMap<u64, Weak<SharedConnection>>>,
    next_number: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) tasks: Tasks,
    pub(crate) pauses: Pauses,
    backpressure: backpressure::Backpressure,
    trimming: trimming::Trimming,
    pub(crate) closing: Closing,
    /// The guard that closes the ORB, while a program has a handle.
    pub(crate) guard: Mutex<Weak<Guard>>,
}

/// Closes the ORB when the last handle is dropped.
pub(crate) struct Guard(pub(crate) Weak<Shared>);

/// The counters of an ORB that no open connection has.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    limits: limit_counters::LimitCounters,
    /// Counters of closed connections. Locked after [`Shared::links`].
    ended: Mutex<Stats>,
    pub(crate) failed_oneways: AtomicU64,
    /// Oneways that were held until the ORB closed.
    pub(crate) discarded_oneways: AtomicUsize,
}

/// The tasks of an ORB.
pub(crate) struct Tasks {
    /// Tasks of connections over which this ORB only calls, and all other tasks.
    pub(crate) other: TaskTracker,
    /// Tasks of connections over which peers call objects.
    pub(crate) serving: TaskTracker,
    /// Tasks that accept connections.
    pub(crate) listening: TaskTracker,
    /// The runtime in which the ORB was built.
    home: Option<tokio::runtime::Handle>,
}

/// The progress of an ORB's end.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    begun: AtomicBool,
    /// Requests of peers are no longer served.
    ending: AtomicBool,
    pub(crate) notify: Notify,
}

/// The parameters of [`Shared::new`].
pub(crate) struct Init {
    pub(crate) config: Config,
    pub(crate) extensions: Extensions,
    pub(crate) endpoints: Vec<Endpoint>,
    /// The capacity of the receive buffers, in bytes.
    pub(crate) pool: usize,
    /// Whether requests are held until `Orb::resume`.
    pub(crate) hold: bool,
}

impl Shared {
    /// Creates the state of an ORB in the current runtime, if there is one.
    pub(crate) fn new(init: Init) -> Arc<Self> {
        let Init { config, extensions, endpoints, pool, hold } = init;
        Arc::new(Self {
            #[cfg(feature = "tls")]
            handshakes: {
                let most = config.tls.as_ref().map_or(0, crate::tls::Tls::max_handshakes);
                crate::tls::handshakes::Handshakes::new(most, config.server.evict_idle_after)
            },
            sockets: Sockets::new(config.connection.transport),
            load: Arc::new(Load::new(config.limits.max_total_requests)),
            config,
            extensions,
            pool: Arc::new(BufferPool::new(pool)),
            endpoints,
            links: Mutex::default(),
            next_number: AtomicU64::new(0),
            counters: Counters::default(),
            tasks: Tasks {
                other: TaskTracker::new(),
                serving: TaskTracker::new(),
                listening: TaskTracker::new(),
                home: tokio::runtime::Handle::try_current().ok(),
            },
            pauses: Pauses::new(hold),
            backpressure: Default::default(),
            trimming: Default::default(),
            closing: Closing::default(),
            guard: Mutex::new(Weak::new()),
        })
    }

    #[inline]
    pub(crate) fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.begun.load(Ordering::Acquire)
    }

    /// Returns whether a connection like this one must be closed now.
    pub(crate) fn closes(&self, link: &SharedConnection) -> bool {
        self.is_closing() && (self.closing.ending.load(Ordering::Acquire) || link.serves_others())
    }

    /// Waits until the ORB closes.
    pub(crate) async fn closing(&self) {
        let closed = self.closing.notify.notified();
        tokio::pin!(closed);
        closed.as_mut().enable();
        if !self.is_closing() {
            closed.await;
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    #[cold]
    pub(crate) fn note_failed_oneway(&self, exception: &dyn fmt::Display) {
        self.counters.failed_oneways.fetch_add(1, Ordering::Relaxed);
        let exception = OneLine::new(exception);
        tracing::warn!(target: "zorb", %exception, "a oneway failed in its servant; the caller is not told");
    }

    pub(crate) fn links(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Weak<SharedConnection>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stats(&self) -> Stats {
        let links = self.links();
        let mut sum = *self.counters.ended.lock().unwrap_or_else(PoisonError::into_inner);
        sum.limits += self.counters.limits.read();
        for link in links.values().filter_map(Weak::upgrade) {
            sum += link.stats();
        }
        sum
    }

    /// Adds the counters of a closed connection to those of the ORB.
    pub(crate) fn ended(self: &Arc<Self>, id: u64, link: &SharedConnection) {
        self.trim_pool_later();
        if let Some(ProtocolError::Header(error @ HeaderError::Magic([0x16, 3, ..]))) = link.protocol_error()
        {
            self.sockets.tls.misdirected.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(target: "zorb", peer = %link.peer(), "connection closed: {error}");
        }
        let mut links = self.links();
        if links.remove(&id).is_some() {
            *self.counters.ended.lock().unwrap_or_else(PoisonError::into_inner) += link.stats();
        }
    }

    /// Starts to export metrics if the feature `metrics` is enabled.
    pub(crate) fn has_counted(self: &Arc<Self>) {
        #[cfg(feature = "metrics")]
        self.report_metrics();
    }

    /// Returns the counters of TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn tls_counts(&self) -> &crate::transport::TlsCounts {
        &self.sockets.tls
    }

    #[cfg(feature = "tls")]
    pub(crate) fn handshakes(&self) -> &Arc<crate::tls::handshakes::Handshakes> {
        &self.handshakes
    }

    /// Spawns a task that ends when the ORB closes.
    pub(crate) fn spawn_until_closed(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let core = Arc::clone(self);
        self.tasks.other.spawn(async move {
            let closed = core.closing.notify.notified();
            tokio::pin!(closed);
            closed.as_mut().enable();
            if !core.is_closing() {
                tokio::select! {
                    () = task => {}
                    () = closed => {}
                }
            }
        });
    }

    /// Returns the runtime for requests that are not served in place, if the connection runs in a runtime of
    /// zorb's own.
    pub(crate) fn home(&self) -> Option<&tokio::runtime::Handle> {
        self.tasks.home.as_ref()
    }

    /// Stops new work. Returns whether this call did it.
    pub(crate) fn begin_closing(&self) -> bool {
        let first = !self.closing.begun.swap(true, Ordering::AcqRel);
        self.closing.notify.notify_waiters();
        self.stop_waiting_for_memory();
        first
    }

    pub(crate) fn open_links(&self) -> Vec<Arc<SharedConnection>> {
        self.links().values().filter_map(std::sync::Weak::upgrade).collect()
    }

    /// Ends the service for peers: running servants may no longer call.
    pub(crate) fn end_serving(&self) {
        self.closing.ending.store(true, Ordering::Release);
    }

    /// Returns whether requests of peers are no longer served.
    pub(crate) fn has_ended_serving(&self) -> bool {
        self.closing.ending.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

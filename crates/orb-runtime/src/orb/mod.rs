//! The ORB, which owns objects, connections and configuration.

mod accept;
mod activation;
mod alone;
mod args;
mod args_endpoints;
#[cfg(feature = "tls")]
mod args_tls;
#[cfg(not(feature = "tls"))]
#[path = "args_tls_absent.rs"]
mod args_tls;
pub(crate) mod backpressure;
mod bind;
mod builder;
mod builder_text;
mod connections;
pub(crate) mod dial;
pub(crate) mod endpoint;
#[cfg(any(feature = "admin", feature = "metrics"))]
pub(crate) mod figures;
mod guests;
mod hits;
#[cfg(feature = "metrics")]
mod metrics;
mod publish;
mod reverse;
#[cfg(feature = "admin")]
mod shown;
mod shutdown;
mod trimming;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use giop_codec::OneLine;
use giop_codec::cdr::{DecodeContext, InvalidText, TypeCodeCache};
use giop_codec::code_set::{CodeSetComponentInfo, CodeSetId};
use giop_codec::exception::{CompletionStatus, SystemException, SystemExceptionKind, minor};
use giop_codec::giop::{HeaderError, ObjectKey};
use giop_codec::typecode::TypeCode;
use giop_codec::value::Factories;
use giop_proto::pool::{BufferPool, PoolStats};
use giop_proto::{Limits, Load, ProtocolError, Stats};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

pub use activation::{ActivateError, Activation};
pub(crate) use alone::Lease;
pub use args::ArgsError;
pub use builder::{BuildError, OrbBuilder};
pub(crate) use connections::{Connections, Target, closed, no_runtime, seconds};
pub(crate) use endpoint::{Endpoint, Route};
pub(crate) use guests::Seat;
pub use shutdown::ShutdownReport;

use crate::dynamic::source::Known;
use crate::link::Link;
use crate::poa::core::Gate;
use crate::serve::adapter::{Adapter, Located};
use crate::serve::entry::Entry;
use crate::tls::Tls;
use crate::transport::{Sockets, Transport, TransportStats};

/// An Object Request Broker: it creates references, calls objects and serves them.
///
/// Cloning is cheap, and all clones are the same ORB. When the last clone is dropped, the ORB closes at once,
/// without the drain of [`shutdown`](Self::shutdown). The ORB has no global state, and starts no thread
/// unless [`Transport::IoUringThreads`] is configured.
#[doc(alias = "CORBA::ORB")]
#[derive(Clone)]
pub struct Orb {
    core: Arc<OrbCore>,
    /// `None` in the handle that a servant gets, so that it does not keep the ORB open.
    _guard: Option<Arc<Guard>>,
}

/// Closes the ORB when the last [`Orb`] is dropped.
struct Guard(Weak<OrbCore>);

/// Pause flag: requests are held until `Orb::accept`.
const HELD: u8 = 1;

/// Pause flag: requests with large replies are held until memory is available.
const CROWDED: u8 = 2;

pub(crate) struct OrbCore {
    pub(crate) config: Config,
    pub(crate) connections: Connections,
    adapter: Arc<Adapter>,
    pool: Arc<BufferPool>,
    /// Requests in flight on all connections.
    load: Arc<Load>,
    hits: hits::Hits,
    sockets: Sockets,
    /// The limiter of TLS handshakes with clients.
    #[cfg(feature = "tls")]
    handshakes: Arc<crate::tls::handshakes::Handshakes>,
    endpoints: Vec<Endpoint>,
    links: Mutex<HashMap<u64, Weak<Link>>>,
    next_number: AtomicU64,
    /// Counters of closed connections. Locked after `links`.
    ended: Mutex<Stats>,
    tasks: TaskTracker,
    /// Tasks of connections over which peers call objects.
    serving: TaskTracker,
    /// Oneways that were held until the ORB closed.
    pub(crate) discarded_oneways: AtomicUsize,
    /// Tasks that accept connections.
    listening: TaskTracker,
    /// The runtime in which the ORB was built.
    home: Option<tokio::runtime::Handle>,
    /// The reasons for which requests may be held: [`HELD`] and [`CROWDED`].
    pauses: AtomicU8,
    pub(crate) backpressure: backpressure::Backpressure,
    trimming: trimming::Trimming,
    /// Wakers of requests held by [`HELD`], by connection or call number.
    held: Mutex<HashMap<u64, Waker>>,
    closing: AtomicBool,
    /// Requests of peers are no longer served.
    ending: AtomicBool,
    closed: Notify,
    failed_oneways: AtomicU64,
    /// Types and interfaces known at run time.
    pub(crate) known: Known,
    #[cfg(feature = "metrics")]
    metrics: metrics::Metrics,
    /// State for the admin endpoint.
    #[cfg(feature = "admin")]
    shown: shown::Shown,
    guard: Mutex<Weak<Guard>>,
}

/// Gives decoded references their ORB, and access to its registered value types.
impl DecodeContext for OrbCore {
    fn factories(&self) -> Option<&Factories> {
        Some(&self.config.values)
    }

    fn value_type(&self, repository_id: &str) -> Option<TypeCode> {
        self.known.value_type(repository_id)
    }

    fn type_codes(&self) -> Option<&dyn TypeCodeCache> {
        Some(&self.known.type_codes)
    }

    fn invalid_text(&self) -> InvalidText {
        self.config.invalid_text
    }
}

/// The configuration that the builder made.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) timeout: Option<Duration>,
    pub(crate) connect_timeout: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) limits: Arc<Limits>,
    pub(crate) initial: HashMap<String, String>,
    pub(crate) default_initial: Option<String>,
    pub(crate) max_connections: usize,
    pub(crate) max_connections_per_address: usize,
    /// Age from which a connection without a complete message can be evicted if the endpoint is full.
    pub(crate) newcomers_displace: Option<Duration>,
    pub(crate) socket_buffer: Option<usize>,
    /// Whether to connect to Unix sockets that references name.
    pub(crate) unix_sockets: bool,
    pub(crate) max_version: giop_codec::Version,
    pub(crate) code_sets: Arc<CodeSetComponentInfo>,
    /// The code set of wide text for peers that name none.
    pub(crate) assumed_wide: CodeSetId,
    pub(crate) invalid_text: InvalidText,
    pub(crate) latency: Latency,
    pub(crate) low_water: bool,
    pub(crate) deposit: bool,
    pub(crate) fragment_size: Option<usize>,
    /// The clients that are called back over their own connections.
    pub(crate) ways_back: reverse::Rule,
    /// Whether to offer servers to call objects of this ORB back over its connections.
    pub(crate) offers_ways_back: bool,
    pub(crate) demux: crate::serve::Demux,
    pub(crate) tls: Option<Tls>,
    /// Authentication and authorization of callers, and the credentials of this ORB's own calls.
    #[cfg(feature = "csi")]
    pub(crate) security: crate::csi::Security,
    pub(crate) transport: Transport,
    /// The address of the admin endpoint.
    #[cfg(feature = "admin")]
    pub(crate) admin: Option<crate::admin::Wanted>,
    /// The source of trace and span ids, if it is not zorb.
    #[cfg(feature = "tracing")]
    pub(crate) propagate: Option<crate::telemetry::Propagator>,
    pub(crate) values: Factories,
    /// Hosts that are connected by pipes in memory, in tests.
    pub(crate) memory: Option<Arc<crate::testing::Network>>,
}

/// The strategy for waiting for the next message.
///
/// ```
/// # use orb_runtime::{Latency, Orb};
/// # use std::time::Duration;
/// let builder = Orb::builder().latency(Latency::Spin(Duration::from_micros(50)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Latency {
    /// The thread sleeps in the system until something arrives.
    #[default]
    Park,
    /// The thread polls the socket for up to this long before it sleeps. If the answer arrives within that
    /// time, a round trip takes half as long as with [`Park`](Self::Park).
    ///
    /// A thread spins while a caller waits for the only call of a connection, and after a server has served
    /// one. Spinning needs a core of its own: other tasks of the thread, and other threads of the core, are
    /// delayed.
    Spin(Duration),
}

impl Latency {
    /// Returns the maximum time to spin.
    pub(crate) fn spin(self) -> Duration {
        match self {
            Self::Park => Duration::ZERO,
            Self::Spin(longest) => longest,
        }
    }
}

impl Orb {
    /// Returns a builder with the defaults of a client.
    pub fn builder() -> OrbBuilder {
        OrbBuilder::new()
    }

    pub(crate) fn from_core(core: &Arc<OrbCore>) -> Self {
        let guard = core.guard.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        Self { core: Arc::clone(core), _guard: guard }
    }

    pub(crate) fn core(&self) -> &Arc<OrbCore> {
        &self.core
    }

    /// Returns the addresses that references carry, as `host:port` and `uiop://PATH`. These are the addresses
    /// of the builder's `publish` calls, or otherwise those it listens on, in the order of the `listen`
    /// calls.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.core
            .endpoints
            .iter()
            .filter(|endpoint| !endpoint.is_nowhere())
            .map(ToString::to_string)
            .collect()
    }

    /// Returns the TLS configuration: that of `OrbBuilder::tls`, or that of the command line
    /// ([`from_args`](Self::from_args)).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(&self) -> Option<&crate::tls::Tls> {
        self.core.config.tls.as_ref()
    }

    /// Returns the number of active objects.
    #[must_use]
    pub fn active_objects(&self) -> usize {
        self.core.adapter.len()
    }

    /// Returns the number of open connections, in both directions.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.core.links().len()
    }

    /// Returns the number of oneways that failed in their servants. Their callers receive no error.
    #[must_use]
    pub fn failed_oneways(&self) -> u64 {
        self.core.failed_oneways.load(Ordering::Relaxed)
    }

    /// Returns the counters of all connections of the ORB, in both directions, including closed ones.
    ///
    /// Each connection is locked for a moment: do not call this in a tight loop.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Returns the counters of the pool of receive buffers: its cap, the memory that it holds, and how often
    /// it had a free buffer.
    #[must_use]
    pub fn pool_stats(&self) -> PoolStats {
        self.core.pool.stats()
    }

    /// Returns the counters of the transport: connections that use an io_uring, and operations submitted to
    /// it.
    #[must_use]
    pub fn transport_stats(&self) -> TransportStats {
        self.core.sockets.stats()
    }
}

impl OrbCore {
    #[inline]
    pub(crate) fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    #[inline]
    pub(crate) fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Returns whether calls from this task are refused now. Servants that run when the ORB closes may
    /// continue to call.
    #[inline]
    pub(crate) fn refuses_calls(&self) -> bool {
        self.is_closing() && !self.lets_servants_call()
    }

    #[cold]
    fn lets_servants_call(&self) -> bool {
        !self.ending.load(Ordering::Acquire)
            && crate::serve::try_request().is_some_and(|request| std::ptr::eq(&**request.core(), self))
    }

    /// Returns whether a connection like this one must be closed now.
    fn closes(&self, link: &Link) -> bool {
        self.is_closing() && (self.ending.load(Ordering::Acquire) || link.serves_others())
    }

    /// Waits until the ORB closes.
    pub(crate) async fn closing(&self) {
        let closed = self.closed.notified();
        tokio::pin!(closed);
        closed.as_mut().enable();
        if !self.is_closing() {
            closed.await;
        }
    }

    /// Returns whether requests may be held before they start.
    #[inline]
    pub(crate) fn pauses(&self) -> bool {
        self.pauses.load(Ordering::Acquire) != 0
    }

    fn set_pause(&self, why: u8, pauses: bool) {
        if pauses {
            self.pauses.fetch_or(why, Ordering::AcqRel);
        } else {
            self.pauses.fetch_and(!why, Ordering::AcqRel);
        }
    }

    /// Returns whether requests are held until `Orb::accept`.
    fn is_on_hold(&self) -> bool {
        self.pauses.load(Ordering::Acquire) & HELD != 0
    }

    /// Returns whether requests are held. If so, registers the task to be woken by `Orb::accept`.
    pub(crate) fn is_holding(&self, cx: &mut Context<'_>, number: u64) -> bool {
        if !self.is_on_hold() {
            return false;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_on_hold() {
            return false;
        }
        held.insert(number, cx.waker().clone());
        true
    }

    /// Removes the connection or call from those that wait for `Orb::accept`.
    pub(crate) fn waits_no_more(&self, number: u64) {
        if self.is_on_hold() {
            self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        }
    }

    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until requests are no longer held.
    pub(crate) async fn accepting(&self) {
        /// Removes the entry of a call that is dropped.
        struct Call<'a>(&'a OrbCore, u64);
        impl Drop for Call<'_> {
            fn drop(&mut self) {
                self.0.waits_no_more(self.1);
            }
        }
        if !self.is_on_hold() {
            return;
        }
        let number = self.number();
        let _call = Call(self, number);
        std::future::poll_fn(|cx| {
            if self.is_holding(cx, number) { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
        })
        .await;
    }

    /// Returns whether a request for the key would find an object, or may find one after requests are no
    /// longer held.
    pub(crate) fn may_be_here(&self, key: &[u8]) -> bool {
        match self.adapter.locate_or_level(key) {
            Located::Object(entry) if !entry.is_gone() || entry.poa.makers.are_there() => true,
            Located::Missing(poa, _) if poa.gate() == Gate::Holding || poa.makers.are_there() => true,
            Located::Level(parent, _) if parent.gate() == Gate::Holding || parent.births.are_possible() => {
                true
            }
            _ => self.is_on_hold() && self.adapter.may_come(key),
        }
    }

    /// Takes an object out of service. Its servant activator etherealizes it after its last request. Returns
    /// whether this call deactivated it.
    pub(crate) fn deactivate(self: &Arc<Self>, entry: &Arc<Entry>, cleanup_in_progress: bool) -> bool {
        if entry.poa.makers.are_there() {
            entry.poa.unmake(self, entry, cleanup_in_progress)
        } else {
            self.adapter.deactivate(entry)
        }
    }

    #[cold]
    pub(crate) fn no_such_object(&self, key: &[u8]) -> SystemException {
        let key = ObjectKey::from(key);
        SystemException::new(
            SystemExceptionKind::ObjectNotExist,
            minor::OBJECT_NOT_EXIST_NO_OBJECT,
            CompletionStatus::No,
        )
        .because(format!("no object is active under the key {key}"))
    }

    /// Returns the exception for a key whose POA does not exist. If the index in the key leads nowhere, it
    /// says that the object does not exist.
    #[cold]
    pub(crate) fn no_such_adapter(&self, key: &[u8]) -> SystemException {
        let minor = if self.adapter.may_come(key) {
            minor::OBJECT_NOT_EXIST_NO_ADAPTER
        } else {
            minor::OBJECT_NOT_EXIST_NO_OBJECT
        };
        let mut exception = self.no_such_object(key);
        exception.minor = minor;
        exception
    }

    /// Returns the exception for a POA that the adapter activator did not create.
    #[cold]
    pub(crate) fn no_such_poa(&self, name: &str) -> SystemException {
        SystemException::new(
            SystemExceptionKind::ObjectNotExist,
            minor::OBJECT_NOT_EXIST_NO_ADAPTER,
            CompletionStatus::No,
        )
        .because(format!("there is no POA `{name}`"))
    }

    #[cold]
    pub(crate) fn note_failed_oneway(&self, exception: &dyn fmt::Display) {
        self.failed_oneways.fetch_add(1, Ordering::Relaxed);
        let exception = OneLine::new(exception);
        tracing::warn!(target: "zorb", %exception, "a oneway failed in its servant; the caller is not told");
    }

    fn links(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Weak<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stats(&self) -> Stats {
        let links = self.links();
        let mut sum = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        sum.limits += self.hits.read();
        for link in links.values().filter_map(Weak::upgrade) {
            sum += link.stats();
        }
        sum
    }

    /// Adds the counters of a closed connection to those of the ORB.
    fn ended(self: &Arc<Self>, id: u64, link: &Link) {
        self.trim_pool_later();
        if let Some(ProtocolError::Header(error @ HeaderError::Magic([0x16, 3, ..]))) = link.protocol_error()
        {
            self.sockets.tls.misdirected.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(target: "zorb", peer = %link.peer(), "connection closed: {error}");
        }
        let mut links = self.links();
        if links.remove(&id).is_some() {
            *self.ended.lock().unwrap_or_else(PoisonError::into_inner) += link.stats();
        }
    }

    /// Spawns the driver of a link. Registers the link, and keeps `guest`, until the driver ends.
    pub(crate) fn drive(self: &Arc<Self>, link: &Arc<Link>, guest: impl Send + 'static) {
        let id = self.number();
        self.links().insert(id, Arc::downgrade(link));
        self.has_counted();
        let service = crate::link::Service { orb: Arc::clone(self) };
        let driver = crate::link::Driver::new(Arc::clone(link), service, id);
        let thread = link.thread().cloned();
        let made = link;
        let (core, link) = (Arc::clone(self), Arc::clone(link));
        let driving = async move {
            driver.await;
            core.ended(id, &link);
            drop(guest);
        };
        let tasks = if made.serves_others() { &self.serving } else { &self.tasks };
        match thread {
            None => tasks.spawn(driving),
            Some(thread) => tasks.spawn_on(thread.track(driving), thread.runtime()),
        };
        // A connection that was made while the ORB began to close may have missed the notification.
        if self.closes(made) {
            made.close();
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
        self.tasks.spawn(async move {
            let closed = core.closed.notified();
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
        self.home.as_ref()
    }
}

impl fmt::Debug for Orb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb").field("endpoints", &self.core.endpoints).finish_non_exhaustive()
    }
}

impl fmt::Debug for OrbCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrbCore").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

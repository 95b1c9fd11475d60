//! Building an ORB.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use giop_codec::Version;
use giop_codec::cdr::InvalidText;
use giop_codec::code_set::{CodeSetComponentInfo, CodeSetId};
use giop_codec::value::{Factories, ValueType};
use giop_proto::Limits;

#[cfg(feature = "admin")]
use crate::config::AdminConfig;
use crate::config::{
    BuildError, CallbackRule, ClientConfig, Config, ConnectionConfig, ServerConfig, WaitStrategy,
};
use crate::endpoint::Endpoint;
#[cfg(feature = "experiments")]
use crate::experiments::Demux;
use crate::orb::Orb;
use crate::poa::object_adapter::ObjectAdapter;
use crate::runtime::{Extension, Extensions, Guard, Shared, SharedParams};
use crate::server::accept::Acceptor;
#[cfg(feature = "csi")]
use crate::server::listen::BoundSocket;
use crate::server::listen::{ListenConfig, open};
use crate::transport::{Peer, Transport};

/// Default capacity of the receive buffers of an ORB, in bytes.
const POOL: usize = 256 << 20;

/// Builds an [`Orb`]. It reads nothing from the environment: see [`Orb::from_args`] for that.
///
/// ```
/// # use orb_runtime::Orb;
/// # use std::time::Duration;
/// # async fn build() -> Result<(), orb_runtime::BuildError> {
/// let orb = Orb::builder().listen("iiop://127.0.0.1:0").timeout(Duration::from_secs(5)).build().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct OrbBuilder {
    pub(crate) listen: ListenConfig,
    pub(crate) parts: Parts,
}

/// The configuration of an ORB without its listeners.
#[derive(Debug)]
pub(crate) struct Parts {
    hold: bool,
    pool: usize,
    blocking_threads: usize,
    pub(crate) config: Config,
    /// Authentication and authorization of callers, and the credentials of this ORB's own calls.
    #[cfg(feature = "csi")]
    pub(crate) security: crate::csi::Security,
    /// The source of trace and span ids, if it is not zorb.
    #[cfg(feature = "tracing")]
    propagator: Option<crate::telemetry::Propagator>,
}

impl OrbBuilder {
    pub(crate) fn new() -> Self {
        let config = Config {
            connection: ConnectionConfig {
                socket_buffer: None,
                max_version: Version::V1_2,
                code_sets: Arc::new(CodeSetComponentInfo::zorb()),
                assumed_wide: CodeSetId::NONE,
                invalid_text: InvalidText::Refuse,
                wait_strategy: WaitStrategy::Park,
                #[cfg(feature = "experiments")]
                low_water: true,
                #[cfg(feature = "experiments")]
                deposit: true,
                fragment_size: None,
                transport: Transport::default(),
            },
            client: ClientConfig {
                timeout: Some(Duration::from_secs(60)),
                connect_timeout: Duration::from_secs(10),
                initial: HashMap::new(),
                default_initial: None,
                unix_sockets: true,
                offers_bidirectional: false,
                memory: None,
            },
            server: ServerConfig {
                max_connections: 1024,
                max_connections_per_address: 64,
                evict_idle_after: Some(Duration::from_secs(1)),
                bidirectional: CallbackRule::default(),
                #[cfg(feature = "experiments")]
                demux: Demux::default(),
                #[cfg(feature = "admin")]
                admin: None,
            },
            limits: Arc::new(Limits::default()),
            drain_timeout: Duration::from_secs(10),
            tls: None,
            values: Factories::default(),
        };
        Self {
            listen: ListenConfig::default(),
            parts: Parts {
                hold: false,
                pool: POOL,
                blocking_threads: 64,
                config,
                #[cfg(feature = "csi")]
                security: Default::default(),
                #[cfg(feature = "tracing")]
                propagator: None,
            },
        }
    }

    /// Listens on an endpoint. May be called again for further addresses: references name all of them.
    ///
    /// * `iiop://HOST:PORT`: TCP. Port 0 takes a free one, `FIRST-LAST` the first free one of a range. IPv6
    ///   addresses are in brackets: `[::1]`.
    /// * `ssliop://HOST:PORT`: TLS only. `tls` must provide a certificate (feature `tls`).
    /// * `uiop://PATH`: a Unix socket.
    ///
    /// The file of a Unix socket is created, and removed when the ORB closes. A file that a dead server left
    /// is replaced. Clients on the same machine that support such sockets prefer them to TCP: zorb, omniORB
    /// (`giop:unix`) and TAO (UIOP).
    pub fn listen(mut self, endpoint: impl Into<String>) -> Self {
        self.listen.endpoints.push(endpoint.into());
        self
    }

    /// Listens on an inherited socket, for example from socket activation or from a test.
    pub fn listener(mut self, listener: std::net::TcpListener) -> Self {
        self.listen.listeners.push(listener);
        self
    }

    /// Sets the permission bits of the Unix sockets that the ORB listens on, such as `0o660`. Processes that
    /// may write to the file may connect. By default the file mode creation mask of the process decides. The
    /// directory is not changed.
    pub fn unix_mode(mut self, mode: u32) -> Self {
        self.listen.unix_mode = Some(mode & 0o777);
        self
    }

    /// Sets whether to connect to Unix sockets that references name, if they are of this machine (default
    /// `true`). A reference can name any socket. A process with more rights than the creators of its
    /// references, such as one of root, should use `false`.
    pub fn unix_sockets(mut self, unix_sockets: bool) -> Self {
        self.parts.config.client.unix_sockets = unix_sockets;
        self
    }

    /// Adds an address that references carry in place of those listened on (NAT, containers). May be called
    /// again: references name all of them in this order.
    ///
    /// The form is `HOST`, `HOST:PORT`, `iiop://HOST:PORT` or, for endpoints with TLS, `ssliop://HOST:PORT`.
    /// An IPv6 address before a port is in brackets. Without a port, or with `{port}`, the port of each
    /// listening socket is used. These placeholders are replaced:
    ///
    /// * `{hostname}`: the name of this machine
    /// * `{ip}`, `{ipv4}`, `{ipv6}`: the address from which this machine calls others
    /// * `{env:NAME}` and `{env:NAME|DEFAULT}`: a variable that [`build`](Self::build) reads
    ///
    /// ```
    /// # use orb_runtime::Orb;
    /// let builder = Orb::builder()
    ///     .listen("iiop://0.0.0.0:9000")
    ///     .publish("iiop://{env:PUBLIC_HOST|localhost}:8080") // outside of the container
    ///     .publish("{hostname}"); // between containers
    /// ```
    ///
    /// [`build`](Self::build) logs a warning for each address that clients may not reach: unspecified,
    /// loopback and link-local addresses, and names of containers.
    pub fn publish(mut self, address: impl Into<String>) -> Self {
        self.listen.publish.push(address.into());
        self
    }

    /// Holds requests until [`Orb::resume`] or [`Orb::run_until`]. Use it for servers with a fixed port.
    ///
    /// Clients remember the address of a server and call it as soon as it listens again. Without `hold`, a
    /// request that arrives before its object is active gets OBJECT_NOT_EXIST, which means that the object is
    /// gone permanently. With `start_paused`, the request waits. Slow initialization, such as opening a
    /// database, belongs before [`build`](Self::build): until then nothing listens, and clients get
    /// TRANSIENT.
    ///
    /// ```no_run
    /// # use orb_runtime::Orb;
    /// # async fn serve(activate_all: impl Fn(&Orb)) -> Result<(), Box<dyn std::error::Error>> {
    /// let orb = Orb::builder().listen("iiop://127.0.0.1:2900").start_paused().build().await?;
    /// activate_all(&orb);
    /// orb.run_until(std::future::pending::<Result<(), std::io::Error>>()).await?;
    /// # Ok(()) }
    /// ```
    pub fn start_paused(mut self) -> Self {
        self.parts.hold = true;
        self
    }

    /// Sets the timeout of calls whose reference has none of its own (default 60 s). A call that exceeds it
    /// ends with TIMEOUT.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.parts.config.client.timeout = Some(timeout);
        self
    }

    /// Removes the timeout of calls.
    pub fn no_timeout(mut self) -> Self {
        self.parts.config.client.timeout = None;
        self
    }

    /// Sets the timeout of connecting to one host (default 10 s). TRANSIENT is raised when it expires. If a
    /// server has several hosts, an attempt to reach the next one starts at most 250 ms later, concurrently
    /// with those before it.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.parts.config.client.connect_timeout = timeout;
        self
    }

    /// Sets how long [`Orb::shutdown`] waits for running requests (default 10 s).
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.parts.config.drain_timeout = timeout;
        self
    }

    /// Sets the limits of every connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.parts.config.limits = Arc::new(limits);
        self
    }

    /// Sets the capacity for received data of all connections together, in bytes (default 256 MiB). It covers
    /// buffers that are kept for the next messages, buffers that messages and views of them pin, fragments of
    /// incomplete messages, and arguments of running requests.
    ///
    /// Beyond this, requests are left unread until memory is released. Replies to this ORB's own calls are
    /// always read. If incomplete messages hold all memory, one message at a time may exceed the capacity.
    ///
    /// The same capacity applies separately to data that is queued for peers:
    ///
    /// * Beyond it, requests of connections with more than 64 KiB queued are left unread.
    /// * From half of it on, requests of operations with replies of 64 KiB or more are held, and slow clients
    ///   are closed to free memory. A client is slow if it would need more than
    ///   [`Limits::write_timeout`](crate::Limits::write_timeout) for its queue, at the rate of the last
    ///   seconds.
    /// * A large reply that is made when all of it is taken is replaced by `TRANSIENT`, completed yes.
    pub fn max_receive_memory(mut self, octets: usize) -> Self {
        self.parts.pool = octets;
        self
    }

    /// Sets the maximum number of accepted connections (default 1,024), and of those from one address
    /// (default 64). Further connections are closed at once, unless one is evicted
    /// ([`evict_idle_after`](Self::evict_idle_after)).
    pub fn max_connections(mut self, all: usize, per_address: usize) -> Self {
        self.parts.config.server.max_connections = all;
        self.parts.config.server.max_connections_per_address = per_address;
        self
    }

    /// Sets the age from which a connection without a complete message can be evicted (default 1 s). A
    /// connection is evicted when a new one arrives and the endpoint or its share for the address is full.
    ///
    /// Of the evictable connections, the oldest one is closed gracefully: a client that has sent nothing yet
    /// reconnects with its next call. A connection is not evictable after its first complete message, or
    /// while that message arrives at least as fast as
    /// [`Limits::min_message_rate`](crate::Limits::min_message_rate). With `None`, new connections are
    /// rejected instead.
    pub fn evict_idle_after(mut self, silent: impl Into<Option<Duration>>) -> Self {
        self.parts.config.server.evict_idle_after = silent.into();
        self
    }

    /// Sets the number of requests that `blocking` servants run concurrently (default 64).
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.parts.blocking_threads = threads.max(1);
        self
    }

    /// Sets the size of socket buffers, in bytes. By default the kernel tunes them, which is usually better.
    pub fn socket_buffer(mut self, octets: usize) -> Self {
        self.parts.config.connection.socket_buffer = Some(octets);
        self
    }

    /// Sets how connections are read and written (default [`Transport::Epoll`]). An unavailable transport is
    /// replaced by epoll, with a warning that gives the reason: see [`Transport::IoUring`] and
    /// [`Transport::IoUringThreads`].
    pub fn transport(mut self, transport: Transport) -> Self {
        self.parts.config.connection.transport = transport;
        self
    }

    /// Opens an HTTP endpoint that shows the state of the ORB. The address is `HOST:PORT` of loopback, such
    /// as `127.0.0.1:0`, where port 0 takes a free one ([`Orb::admin_address`]). By default there is none.
    ///
    /// `/` is a page for people, `/metrics` has the metrics for Prometheus, `/status.json` the data of the
    /// command `zorb top`, and `/health` and `/ready` return 200 or 503.
    ///
    /// The endpoint is read-only and has no authentication: any process that can connect sees names of
    /// operations and addresses of peers. Requests that name a host other than an address or `localhost` are
    /// refused. While the endpoint is enabled, calls are counted and timed by operation. The first 1,024
    /// operations have rows of their own.
    ///
    /// [`build`](Self::build) fails with [`BuildError::Admin`] if the address is not of loopback, and with
    /// [`BuildError::Listen`] if the system refuses it.
    #[cfg(feature = "admin")]
    pub fn admin(mut self, address: impl Into<String>) -> Self {
        self.parts.config.server.admin = Some(AdminConfig { address: address.into(), anywhere: false });
        self
    }

    /// Opens the endpoint of [`admin`](Self::admin) on any address, even if other machines can reach it. It
    /// is meant for networks where all hosts may read it.
    #[cfg(feature = "admin")]
    pub fn admin_unprotected(mut self, address: impl Into<String>) -> Self {
        self.parts.config.server.admin = Some(AdminConfig { address: address.into(), anywhere: true });
        self
    }

    /// Takes the ids of traces and spans from another tracing system, such as OpenTelemetry, instead of
    /// generating them: see [`Propagate`](crate::telemetry::Propagate).
    #[cfg(feature = "tracing")]
    pub fn propagate(mut self, ids: impl crate::telemetry::Propagate) -> Self {
        self.parts.propagator = Some(crate::telemetry::Propagator(Arc::new(ids)));
        self
    }

    /// Sets how threads wait for the next message (default [`WaitStrategy::Park`]).
    pub fn wait_strategy(mut self, strategy: WaitStrategy) -> Self {
        self.parts.config.connection.wait_strategy = strategy;
        self
    }

    /// Sets whether to use `SO_RCVLOWAT` for large messages that arrive in small segments (default `true`).
    /// The ORB is woken only when much more of the message has arrived, which saves most of the receiver's
    /// work on a slow link. `false` is for comparisons.
    #[cfg(feature = "experiments")]
    pub fn receive_low_water_mark(mut self, low_water: bool) -> Self {
        self.parts.config.connection.low_water = low_water;
        self
    }

    /// Sets the highest GIOP version of outgoing calls (default 1.2), for peers that overstate theirs.
    pub fn max_giop_version(mut self, version: Version) -> Self {
        self.parts.config.connection.max_version = version;
        self
    }

    /// Sets whether bulk data is sent and received without copies (default `true`): it is sent from the
    /// caller's memory and received into its final buffer.
    ///
    /// `false` makes a conventional copying ORB, for comparisons. Bulk arguments are marshalled through one
    /// request buffer. Everything received is read through a staging buffer of 64 KiB, copied into its
    /// message's buffer, and sequences are copied out of that. The bytes on the wire are the same.
    #[cfg(feature = "experiments")]
    pub fn zero_copy(mut self, deposit: bool) -> Self {
        self.parts.config.connection.deposit = deposit;
        self
    }

    /// Sends GIOP 1.2 requests and replies that are larger than this in fragments of at most `octets` bytes,
    /// including message headers. The size is rounded down to a multiple of 8, and is at least 24.
    ///
    /// By default every message is sent whole, which is faster. The exceptions are `@stream` results that are
    /// produced while they are sent: they use fragments of 64 KiB, or of this size if it is smaller.
    ///
    /// Other messages are sent between the fragments of a large one, so that small calls of the same
    /// connection do not wait for it. Fragments of 64 KiB or more cost little. Oneways must not be overtaken,
    /// so nothing is sent between their fragments. Calls whose last argument is read from a source
    /// (`@stream`) are sent whole, as is everything to peers of GIOP 1.0 and 1.1. JacORB reads fragments, and
    /// sends none. GlassFish gets all larger messages in fragments of 64 KiB in any case.
    ///
    /// The command line option is `-ORBMaxMessageSize OCTETS`.
    pub fn fragment_size(mut self, octets: usize) -> Self {
        self.parts.config.connection.fragment_size = Some(octets);
        self
    }

    /// Offers servers to call objects of this ORB back over the connections that it opens (Bidirectional
    /// GIOP, in GIOP 1.2). Callbacks then need no port and pass firewalls and address translation. An ORB
    /// that does not listen can have references then. They carry a made-up address (`ff10::…`, multicast of a
    /// reserved scope) that is only usable by such servers.
    ///
    /// The server decides whether it calls back: zorb by
    /// [`accept_bidirectional`](Self::accept_bidirectional), omniORB and JacORB by their policies and
    /// options. A server that does may call any object of this ORB whose key it knows. This side keeps the
    /// connections open while they are idle, unless [`Limits::idle_timeout`] is set. Callbacks end with the
    /// connection, until the client calls again.
    ///
    /// Replies are read by the connection's task instead of the caller, so calls take slightly longer.
    #[doc(alias = "BiDirPolicy")]
    pub fn offer_bidirectional(mut self) -> Self {
        self.parts.config.client.offers_bidirectional = true;
        self
    }

    /// Calls objects of clients back over the connections that the clients opened (Bidirectional GIOP). The
    /// client must offer that and `rule` must allow it. The rule receives the client, and the host and port
    /// in the references to its objects. By default such objects are called over a new connection to their
    /// address.
    ///
    /// A client can claim any address, including that of another process, and then receives the calls that
    /// are meant for objects there. Therefore allow only addresses that the client is known to own, or all if
    /// clients are trusted. An address that belongs to one open connection is not given to another.
    ///
    /// Such a connection stays open while it is idle, unless [`Limits::idle_timeout`] is set. The system
    /// checks once a minute that the client's machine is still reachable (TCP keepalive).
    ///
    /// After the connection has ended, calls to such objects are TRANSIENT until the client reconnects and
    /// offers again. Calls whose last argument is read from a source (`@stream`) need a connection of their
    /// own and are not sent back.
    #[doc(alias = "BiDirPolicy")]
    pub fn accept_bidirectional(
        mut self,
        rule: impl Fn(&Peer, &str, u16) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.parts.config.server.bidirectional = CallbackRule::new(rule);
        self
    }

    /// Sets how requests find their POAs, objects and operations. The alternatives exist for comparisons:
    /// none is as fast as the default. Object keys of persistent objects do not depend on it.
    ///
    /// ```
    /// # use orb_runtime::{Demux, ObjectDemux, OperationDemux, Orb, PathDemux};
    /// let numbers = Orb::builder().demux(Demux::new().operations(OperationDemux::Numeric));
    /// let classical = Demux::new().path(PathDemux::Layered).objects(ObjectDemux::Hash);
    /// let builder = Orb::builder().demux(classical.operations(OperationDemux::Sorted));
    /// ```
    #[cfg(feature = "experiments")]
    pub fn demux(mut self, demux: Demux) -> Self {
        self.parts.config.server.demux = demux;
        self
    }

    /// Registers the value type `V`, so that peers may send it where a base of it, or any value, is expected.
    /// May be called again for further types.
    ///
    /// A value of an unregistered type is truncated to its nearest base that allows it and is registered or
    /// expected. Without such a base it is `MARSHAL` minor OMG 1. Types that are expected exactly need no
    /// registration.
    pub fn register_value_type<V: ValueType>(mut self) -> Self {
        self.parts.config.values.register::<V>();
        self
    }

    /// Sets the object URL to which [`Orb::initial`] resolves the name (`-ORBInitRef NAME=URL`).
    pub fn init_ref(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.parts.config.client.initial.insert(name.into(), url.into());
        self
    }

    /// Sets the URL prefix for names without an `init_ref` (`-ORBDefaultInitRef URL`).
    pub fn default_init_ref(mut self, url: impl Into<String>) -> Self {
        self.parts.config.client.default_initial = Some(url.into());
        self
    }

    /// Sets the TLS configuration for both directions: see [`tls`](crate::tls). References to servers that
    /// offer TLS are then called with it, unless `TlsBuilder::outgoing` says otherwise.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::tls::Tls) -> Self {
        self.parts.config.tls = Some(tls);
        self
    }

    /// Opens the listeners and starts to serve.
    ///
    /// # Errors
    /// [`BuildError`] if an address is malformed or taken, a template of [`publish`](Self::publish) yields
    /// none, or a code set is not supported.
    ///
    /// # Cancel safety
    /// Dropping the future opens nothing.
    pub async fn build(mut self) -> Result<Orb, BuildError> {
        self.parts.config.check_code_sets()?;
        let listeners = self.listen.bind(&self.parts.config)?;
        #[cfg(feature = "csi")]
        {
            let alone = !listeners.is_empty() && listeners.iter().all(BoundSocket::is_plaintext);
            self.parts.security.unusable(alone).map_or(Ok(()), |reason| Err(BuildError::Logins(reason)))?;
        }
        if !listeners.is_empty() && tokio::runtime::Handle::try_current().is_err() {
            return Err(BuildError::NoRuntime);
        }
        #[cfg(feature = "admin")]
        let admin = match &self.parts.config.server.admin {
            Some(_) if tokio::runtime::Handle::try_current().is_err() => return Err(BuildError::NoRuntime),
            Some(wanted) => Some(wanted.open()?),
            None => None,
        };
        let (endpoints, sockets) = open(listeners, &self.listen.publish)?;
        let core = self.parts.core(endpoints);
        for socket in sockets {
            Acceptor::new(&core, socket).spawn();
        }
        #[cfg(feature = "admin")]
        if let Some(admin) = admin {
            core.serve_admin(admin);
        }
        Ok(core.open())
    }
}

/// Returns eight bytes that no earlier run of any ORB used.
fn boot_stamp() -> [u8; 8] {
    use std::hash::{BuildHasher, Hasher};
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Its key is random in each process.
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u128(time.as_nanos());
    hasher.write_u32(std::process::id());
    hasher.finish().to_be_bytes()
}

impl Parts {
    pub(crate) fn core(self, mut endpoints: Vec<Endpoint>) -> Arc<Shared> {
        let boot = boot_stamp();
        if self.config.client.offers_bidirectional
            && !endpoints.iter().any(|at| matches!(at, Endpoint::Iiop { .. } | Endpoint::Ssl { .. }))
        {
            endpoints.push(Endpoint::nowhere(boot));
        }
        let extensions = Extensions {
            adapter: Extension::new(Arc::new(ObjectAdapter::new(
                boot,
                self.blocking_threads,
                #[cfg(feature = "experiments")]
                self.config.server.demux,
            ))),
            #[cfg(feature = "csi")]
            security: Extension::new(self.security),
            #[cfg(feature = "tracing")]
            propagator: self.propagator.map(Extension::new).unwrap_or_default(),
            ..Extensions::default()
        };
        let Self { hold, pool, config, .. } = self;
        let core = Shared::new(SharedParams { config, extensions, endpoints, pool, hold });
        #[cfg(feature = "admin")]
        core.start_counting();
        core
    }
}

impl Shared {
    /// Returns the handle whose last clone closes the ORB.
    pub(crate) fn open(self: Arc<Self>) -> Orb {
        let guard = Arc::new(Guard(Arc::downgrade(&self)));
        *self.guard.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::downgrade(&guard);
        Orb { core: self, _guard: Some(guard) }
    }
}

//! The builder of an ORB.

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
use crate::runtime::{CloseGuard, Extension, Extensions, Shared, SharedParams};
use crate::server::accept::Acceptor;
#[cfg(feature = "csi")]
use crate::server::listen::BoundSocket;
use crate::server::listen::{ListenConfig, prepare_listeners};
use crate::transport::{Peer, Transport};

const DEFAULT_RECEIVE_MEMORY_BYTES: usize = 256 << 20;

/// Builds an [`Orb`]. Except for [`publish`](Self::publish), it does not read environment variables itself.
///
/// ```
/// # use orb_runtime::Orb;
/// # use std::time::Duration;
/// # async fn build() -> Result<(), orb_runtime::BuildError> {
/// let orb = Orb::builder().listen("iiop://127.0.0.1:0").timeout(Duration::from_secs(5)).build().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct OrbBuilder {
    pub(crate) listen: ListenConfig,
    pub(crate) core: CoreBuilder,
}

/// Builds the state of an ORB without its listening sockets.
#[derive(Debug)]
pub(crate) struct CoreBuilder {
    starts_paused: bool,
    max_receive_memory_bytes: usize,
    blocking_threads: usize,
    pub(crate) config: Config,
    #[cfg(feature = "csi")]
    pub(crate) security: crate::csi::Security,
    /// The tracing system that generates the ids of traces and spans, if it is not zorb.
    #[cfg(feature = "tracing")]
    propagator: Option<crate::telemetry::Propagator>,
}

impl OrbBuilder {
    pub(crate) fn new() -> Self {
        let config = Config {
            connection: ConnectionConfig {
                socket_buffer: None,
                max_version: Version::V1_2,
                code_sets: Arc::new(CodeSetComponentInfo::zorb_default()),
                assumed_wchar_set: CodeSetId::NONE,
                invalid_text: InvalidText::Refuse,
                wait_strategy: WaitStrategy::Park,
                #[cfg(feature = "experiments")]
                adapts_low_water: true,
                #[cfg(feature = "experiments")]
                deposits_enabled: true,
                fragment_size: None,
                transport: Transport::default(),
            },
            client: ClientConfig {
                timeout: Some(Duration::from_secs(60)),
                connect_timeout: Duration::from_secs(10),
                initial_references: HashMap::new(),
                default_initial_url: None,
                uses_unix_sockets: true,
                offers_bidirectional: false,
                memory_network: None,
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
            value_factories: Factories::default(),
        };
        Self {
            listen: ListenConfig::default(),
            core: CoreBuilder {
                starts_paused: false,
                max_receive_memory_bytes: DEFAULT_RECEIVE_MEMORY_BYTES,
                blocking_threads: 64,
                config,
                #[cfg(feature = "csi")]
                security: Default::default(),
                #[cfg(feature = "tracing")]
                propagator: None,
            },
        }
    }

    /// Listens on an endpoint. Can be called several times. References contain all endpoints, unless
    /// [`publish`](Self::publish) replaces them.
    ///
    /// * `iiop://HOST:PORT`: TCP. Port 0 selects a free port, `FIRST-LAST` the first free port of a range.
    ///   IPv6 addresses are in brackets: `[::1]`.
    /// * `ssliop://HOST:PORT`: only TLS. `tls` must provide a certificate (feature `tls`).
    /// * `uiop://PATH`: a Unix socket.
    ///
    /// The file of a Unix socket is created, and removed when the ORB closes. A file on which no server
    /// listens any longer is replaced. On the same machine, clients of zorb, omniORB (`giop:unix`) and TAO
    /// (UIOP) prefer Unix sockets to TCP.
    pub fn listen(mut self, endpoint: impl Into<String>) -> Self {
        self.listen.endpoints.push(endpoint.into());
        self
    }

    /// Listens on an inherited socket, for example from socket activation or from a test.
    pub fn listener(mut self, listener: std::net::TcpListener) -> Self {
        self.listen.listeners.push(listener);
        self
    }

    /// Sets the permission bits of the Unix sockets on which the ORB listens, such as `0o660`. Processes that
    /// may write to the file may connect. The default follows from the umask of the process. The permissions
    /// of the directory are not changed.
    pub fn unix_mode(mut self, mode: u32) -> Self {
        self.listen.unix_mode = Some(mode & 0o777);
        self
    }

    /// Sets whether to connect to the Unix sockets in references, if they are on this machine (default
    /// `true`). A reference can contain the path of any socket. A process with more rights than the creators
    /// of its references, such as a process of root, should use `false`.
    pub fn unix_sockets(mut self, unix_sockets: bool) -> Self {
        self.core.config.client.uses_unix_sockets = unix_sockets;
        self
    }

    /// Adds an address that references contain in place of the addresses on which the ORB listens, for
    /// example with address translation or in a container. Can be called several times. References contain
    /// all addresses in the order of the calls, and those with TLS last.
    ///
    /// The form is `HOST`, `HOST:PORT`, `iiop://HOST:PORT` or, for endpoints with TLS, `ssliop://HOST:PORT`.
    /// An IPv6 address that is followed by a port is in brackets. Without a port, or with `{port}`, the port
    /// of each listening socket is used. These placeholders are replaced:
    ///
    /// * `{hostname}`: the name of this machine
    /// * `{ip}`, `{ipv4}`, `{ipv6}`: the address from which this machine connects to other machines
    /// * `{env:NAME}` and `{env:NAME|DEFAULT}`: an environment variable, read by [`build`](Self::build)
    ///
    /// ```
    /// # use orb_runtime::Orb;
    /// let builder = Orb::builder()
    ///     .listen("iiop://0.0.0.0:9000")
    ///     .publish("iiop://{env:PUBLIC_HOST|localhost}:8080") // outside of the container
    ///     .publish("{hostname}"); // between containers
    /// ```
    ///
    /// [`build`](Self::build) logs a warning for each address that clients may be unable to reach:
    /// unspecified, loopback, link-local, multicast and broadcast addresses, and names of containers.
    pub fn publish(mut self, address: impl Into<String>) -> Self {
        self.listen.publish_templates.push(address.into());
        self
    }

    /// Holds requests until a call of [`Orb::resume`] or [`Orb::run_until`], for servers with a fixed port.
    ///
    /// Clients remember the address of a server and call it as soon as it listens again after a restart. By
    /// default, a request that arrives before its object is active gets OBJECT_NOT_EXIST, which means that
    /// the object no longer exists. With `start_paused`, the request waits. Do slow initialization, such as
    /// opening a database, before [`build`](Self::build). Clients get TRANSIENT until the ORB listens.
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
        self.core.starts_paused = true;
        self
    }

    /// Sets the timeout of calls whose reference has no timeout of its own (default 60 s). A call that
    /// exceeds the timeout fails with TIMEOUT.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.core.config.client.timeout = Some(timeout);
        self
    }

    /// Removes the timeout of calls.
    pub fn no_timeout(mut self) -> Self {
        self.core.config.client.timeout = None;
        self
    }

    /// Sets the timeout of connecting to a server (default 10 s). When it expires, the call fails with
    /// TRANSIENT. If a server has several addresses, the attempt to connect to the next one starts at most
    /// 250 ms after the previous attempt, and runs concurrently with it.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.core.config.client.connect_timeout = timeout;
        self
    }

    /// Sets how long [`Orb::shutdown`] waits for running requests (default 10 s).
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.core.config.drain_timeout = timeout;
        self
    }

    /// Sets the limits of every connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.core.config.limits = Arc::new(limits);
        self
    }

    /// Sets the maximum memory for received data of all connections together, in bytes (default 256 MiB). It
    /// includes free receive buffers, buffers that are in use by messages and views, fragments of incomplete
    /// messages, and decoded arguments of running requests.
    ///
    /// When the maximum is reached, requests are not read until memory is released. Replies to this ORB's own
    /// calls are always read. If incomplete messages occupy all memory, one message at a time may exceed the
    /// maximum.
    ///
    /// The same maximum applies separately to data that is queued for peers:
    ///
    /// * When it is reached, requests of connections with more than 64 KiB of queued data are not read, and a
    ///   new large reply is replaced by `TRANSIENT`, COMPLETED_YES.
    /// * When half of it is reached, requests of operations with replies of 64 KiB or more are held, and the
    ///   connections of slow clients are closed to free memory. A client is slow if it would need more than
    ///   [`Limits::write_timeout`](crate::Limits::write_timeout) to receive its queue, at the rate of the
    ///   last seconds.
    pub fn max_receive_memory(mut self, bytes: usize) -> Self {
        self.core.max_receive_memory_bytes = bytes;
        self
    }

    /// Sets the maximum number of accepted connections (default 1,024), and the maximum number from one
    /// address (default 64). Further connections are closed at once, unless another connection is evicted for
    /// them ([`evict_idle_after`](Self::evict_idle_after)).
    pub fn max_connections(mut self, all: usize, per_address: usize) -> Self {
        self.core.config.server.max_connections = all;
        self.core.config.server.max_connections_per_address = per_address;
        self
    }

    /// Sets the age at which a connection without a complete message can be evicted (default 1 s). A
    /// connection is evicted when a new one arrives and one of the limits of
    /// [`max_connections`](Self::max_connections) is reached.
    ///
    /// Of the evictable connections, the oldest one is closed gracefully: a client that has sent nothing yet
    /// reconnects with its next call. A connection is not evictable after its first complete message, or
    /// while that message arrives at least as fast as
    /// [`Limits::min_message_rate`](crate::Limits::min_message_rate). With `None`, no connection is evicted,
    /// and new connections are rejected.
    pub fn evict_idle_after(mut self, age: impl Into<Option<Duration>>) -> Self {
        self.core.config.server.evict_idle_after = age.into();
        self
    }

    /// Sets the maximum number of concurrent requests of `blocking` servants (default 64, at least 1).
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.core.blocking_threads = threads.max(1);
        self
    }

    /// Sets the size of socket buffers in bytes. By default the kernel adapts the size, which is usually
    /// better.
    pub fn socket_buffer(mut self, bytes: usize) -> Self {
        self.core.config.connection.socket_buffer = Some(bytes);
        self
    }

    /// Sets how connections are read and written (default [`Transport::Epoll`]). An unavailable transport is
    /// replaced by epoll, with a warning that gives the reason: see [`Transport::IoUring`] and
    /// [`Transport::IoUringThreads`].
    pub fn transport(mut self, transport: Transport) -> Self {
        self.core.config.connection.transport = transport;
        self
    }

    /// Opens an HTTP endpoint that shows the state of the ORB. The address must be a loopback address
    /// `HOST:PORT`, such as `127.0.0.1:0`, where port 0 selects a free port ([`Orb::admin_address`]). By
    /// default there is no endpoint.
    ///
    /// * `/` is a page for browsers.
    /// * `/metrics` has the metrics for Prometheus.
    /// * `/status.json` has the data of the command `zorb top`.
    /// * `/health` and `/ready` return the HTTP status 200 or 503.
    ///
    /// The endpoint is read-only and has no authentication: any process that can connect sees names of
    /// operations and addresses of peers. A request is refused unless its `Host` is an IP address or
    /// `localhost`. While the endpoint is enabled, calls are counted and timed by operation, separately for
    /// the first 1,024 operations and together for further ones.
    ///
    /// [`build`](Self::build) fails with [`BuildError::Admin`] if the address is not a loopback address, and
    /// with [`BuildError::Listen`] if the operating system cannot listen on it.
    #[cfg(feature = "admin")]
    pub fn admin(mut self, address: impl Into<String>) -> Self {
        self.core.config.server.admin =
            Some(AdminConfig { address: address.into(), is_remote_allowed: false });
        self
    }

    /// Opens the endpoint of [`admin`](Self::admin) on any address, even if other machines can reach it. Use
    /// this only in networks where all hosts may read the data of the endpoint.
    #[cfg(feature = "admin")]
    pub fn admin_unprotected(mut self, address: impl Into<String>) -> Self {
        self.core.config.server.admin =
            Some(AdminConfig { address: address.into(), is_remote_allowed: true });
        self
    }

    /// Takes the ids of traces and spans from another tracing system, such as OpenTelemetry, instead of
    /// generating them: see [`Propagate`](crate::telemetry::Propagate).
    #[cfg(feature = "tracing")]
    pub fn propagate(mut self, ids: impl crate::telemetry::Propagate) -> Self {
        self.core.propagator = Some(crate::telemetry::Propagator(Arc::new(ids)));
        self
    }

    /// Sets how threads wait for the next message (default [`WaitStrategy::Park`]).
    pub fn wait_strategy(mut self, strategy: WaitStrategy) -> Self {
        self.core.config.connection.wait_strategy = strategy;
        self
    }

    /// Sets whether to use `SO_RCVLOWAT` for large messages that arrive in small segments (default `true`).
    /// The receiver is then woken only when a large part of the message has arrived, which saves most of its
    /// work on a slow network. `false` is for benchmarks.
    #[cfg(feature = "experiments")]
    pub fn receive_low_water_mark(mut self, low_water: bool) -> Self {
        self.core.config.connection.adapts_low_water = low_water;
        self
    }

    /// Sets the highest GIOP version of outgoing calls (default 1.2), for servers that do not support the
    /// version in their references.
    pub fn max_giop_version(mut self, version: Version) -> Self {
        self.core.config.connection.max_version = version;
        self
    }

    /// Sets whether bulk data is sent and received without copies (default `true`): it is sent from the
    /// caller's memory and received into its final buffer.
    ///
    /// With `false`, for benchmarks, the ORB copies like conventional ones. Bulk arguments are copied into
    /// the request buffer. Received data is read into a buffer of 64 KiB and copied into the buffer of its
    /// message, from which sequences are copied again. The bytes on the wire are the same.
    #[cfg(feature = "experiments")]
    pub fn zero_copy(mut self, zero_copy: bool) -> Self {
        self.core.config.connection.deposits_enabled = zero_copy;
        self
    }

    /// Sends GIOP 1.2 requests and replies of more than `bytes` bytes in fragments of at most this size,
    /// including message headers. The size is rounded down to a multiple of 8, and is at least 24.
    ///
    /// By default, messages are not fragmented, which is faster. Only `@stream` results that are produced
    /// while they are sent use fragments, of 64 KiB or of this size if it is smaller.
    ///
    /// Other messages are sent between the fragments of a large one, so that small calls of the same
    /// connection do not wait for it. Fragments of 64 KiB or more cost little. Nothing is sent between the
    /// fragments of a oneway, because later requests must not overtake it. Calls with a `@stream` argument
    /// that is read from a source, and messages to peers of GIOP 1.0 and 1.1, are not fragmented. JacORB
    /// receives fragments, but does not send them. Messages to GlassFish are always sent in fragments of at
    /// most 64 KiB.
    ///
    /// The command-line option is `-ORBMaxMessageSize BYTES`.
    pub fn fragment_size(mut self, bytes: usize) -> Self {
        self.core.config.connection.fragment_size = Some(bytes);
        self
    }

    /// Offers bidirectional GIOP 1.2: servers may call objects of this ORB over the connections that this ORB
    /// opens. Callbacks then need no listening port and pass firewalls and address translation. References
    /// of an ORB that does not listen then contain a placeholder address (`ff10::…`, multicast of a reserved
    /// scope). Only servers that call back over the connection can use them.
    ///
    /// The server decides whether it calls back. [`accept_bidirectional`](Self::accept_bidirectional)
    /// configures this in zorb, and policies and options configure it in omniORB and JacORB. Such a server
    /// may call any object of this ORB whose key it knows. The connections stay open while they are idle,
    /// unless [`Limits::idle_timeout`] is set. After a connection has ended, the server cannot call back
    /// until this ORB calls it again.
    ///
    /// Replies are read by the task of the connection instead of the caller, so calls take slightly longer.
    #[doc(alias = "BiDirPolicy")]
    pub fn offer_bidirectional(mut self) -> Self {
        self.core.config.client.offers_bidirectional = true;
        self
    }

    /// Calls objects of clients over the connections that the clients opened (bidirectional GIOP), if the
    /// client offers this and `rule` allows it. The rule gets the client, and the host and port in the
    /// references to its objects. By default, such objects are called over a new connection to their address.
    ///
    /// A client can announce any address, even the address of another process, and then receives the calls
    /// for objects of that process. Therefore allow only addresses that belong to the client, or all
    /// addresses if all clients are trusted. An address that belongs to an open connection cannot be
    /// announced over another one.
    ///
    /// A connection with an announced address stays open while it is idle, unless [`Limits::idle_timeout`] is
    /// set. The operating system checks once a minute that the client's machine is reachable (TCP keepalive).
    ///
    /// After the connection has ended, calls of the client's objects fail with TRANSIENT until the client
    /// reconnects and offers callbacks again. Calls with a `@stream` argument that is read from a source need
    /// an exclusive connection, so they are not sent over the client's connection.
    #[doc(alias = "BiDirPolicy")]
    pub fn accept_bidirectional(
        mut self,
        rule: impl Fn(&Peer, &str, u16) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.core.config.server.bidirectional = CallbackRule::new(rule);
        self
    }

    /// Sets how the POA, object and operation of a request are found. The alternatives exist for benchmarks
    /// only: none is faster than the default. Object keys of persistent objects do not depend on this
    /// setting.
    ///
    /// ```
    /// # use orb_runtime::{Demux, ObjectDemux, OperationDemux, Orb, PathDemux};
    /// let numbers = Orb::builder().demux(Demux::new().operations(OperationDemux::Numeric));
    /// let classical = Demux::new().path(PathDemux::Layered).objects(ObjectDemux::Hash);
    /// let builder = Orb::builder().demux(classical.operations(OperationDemux::Sorted));
    /// ```
    #[cfg(feature = "experiments")]
    pub fn demux(mut self, demux: Demux) -> Self {
        self.core.config.server.demux = demux;
        self
    }

    /// Registers the value type `V`, so that peers may send it where one of its base types, or any value, is
    /// expected. Can be called several times for several types.
    ///
    /// A received value of an unregistered type is truncated to its nearest base type that is registered or
    /// expected, if the type allows truncation. Otherwise the message is refused with `MARSHAL` minor OMG 1.
    /// A type that an operation itself expects needs no registration.
    pub fn register_value_type<V: ValueType>(mut self) -> Self {
        self.core.config.value_factories.register::<V>();
        self
    }

    /// Sets the object URL to which [`Orb::initial`] resolves the name (`-ORBInitRef NAME=URL`).
    pub fn init_ref(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.core.config.client.initial_references.insert(name.into(), url.into());
        self
    }

    /// Sets the URL prefix to which [`Orb::initial`] appends names without an `init_ref`
    /// (`-ORBDefaultInitRef URL`).
    pub fn default_init_ref(mut self, url: impl Into<String>) -> Self {
        self.core.config.client.default_initial_url = Some(url.into());
        self
    }

    /// Sets the TLS configuration for both directions: see [`tls`](crate::tls). Servers that offer TLS are
    /// then called with TLS, unless `TlsBuilder::outgoing` configures otherwise.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::tls::Tls) -> Self {
        self.core.config.tls = Some(tls);
        self
    }

    /// Opens the listeners and starts to serve.
    ///
    /// # Errors
    /// [`BuildError`], for example if an address is malformed or in use, or a code set is not supported.
    ///
    /// # Cancel safety
    /// Dropping the future before it is complete leaves nothing open.
    pub async fn build(mut self) -> Result<Orb, BuildError> {
        self.core.config.check_code_sets()?;
        let listeners = self.listen.bind(&self.core.config)?;
        #[cfg(feature = "csi")]
        {
            let only_plain_tcp = !listeners.is_empty() && listeners.iter().all(BoundSocket::is_plaintext);
            if let Some(reason) = self.core.security.login_obstacle(only_plain_tcp) {
                return Err(BuildError::Logins(reason));
            }
        }
        if !listeners.is_empty() && tokio::runtime::Handle::try_current().is_err() {
            return Err(BuildError::NoRuntime);
        }
        #[cfg(feature = "admin")]
        let admin = match &self.core.config.server.admin {
            Some(_) if tokio::runtime::Handle::try_current().is_err() => return Err(BuildError::NoRuntime),
            Some(config) => Some(config.open()?),
            None => None,
        };
        let (endpoints, sockets) = prepare_listeners(listeners, &self.listen.publish_templates)?;
        let core = self.core.build_core(endpoints);
        for socket in sockets {
            Acceptor::new(&core, socket).spawn();
        }
        #[cfg(feature = "admin")]
        if let Some(admin) = admin {
            core.serve_admin(admin);
        }
        Ok(core.into_orb())
    }
}

/// Returns eight bytes that differ in each run of an ORB.
fn new_boot_id() -> [u8; 8] {
    use std::hash::{BuildHasher, Hasher};
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // The hash has a random key in each process.
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u128(time.as_nanos());
    hasher.write_u32(std::process::id());
    hasher.finish().to_be_bytes()
}

impl CoreBuilder {
    /// Creates the state of the ORB, with these endpoints in its references. Opens no sockets.
    pub(crate) fn build_core(self, mut endpoints: Vec<Endpoint>) -> Arc<Shared> {
        let boot = new_boot_id();
        if self.config.client.offers_bidirectional
            && !endpoints.iter().any(|one| matches!(one, Endpoint::Iiop { .. } | Endpoint::Ssl { .. }))
        {
            endpoints.push(Endpoint::placeholder(boot));
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
        let Self { starts_paused, max_receive_memory_bytes: pool_bytes, config, .. } = self;
        let core = Shared::new(SharedParams { config, extensions, endpoints, pool_bytes, starts_paused });
        #[cfg(feature = "admin")]
        core.create_admin_state();
        core
    }
}

impl Shared {
    /// Returns the first handle. The ORB closes when the last clone of the handle is dropped.
    pub(crate) fn into_orb(self: Arc<Self>) -> Orb {
        let guard = Arc::new(CloseGuard(Arc::downgrade(&self)));
        *self.close_guard.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::downgrade(&guard);
        Orb { core: self, _guard: Some(guard) }
    }
}

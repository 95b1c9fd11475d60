//! Building an ORB.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use giop_codec::Version;
use giop_codec::cdr::InvalidText;
use giop_codec::code_set::{CodeSetComponentInfo, CodeSetId};
use giop_codec::value::{Factories, ValueType};
use giop_proto::pool::BufferPool;
use giop_proto::{Limits, Load};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::bind;
use super::reverse::Rule;
use super::{Config, Connections, Endpoint, Guard, Latency, Orb, OrbCore};
use crate::serve::Demux;
use crate::serve::adapter::Adapter;
use crate::transport::{Peer, Sockets, Transport};

/// Receive buffers of all connections of an ORB.
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
    pub(super) listen: Vec<String>,
    pub(super) listeners: Vec<std::net::TcpListener>,
    pub(super) publish: Vec<String>,
    pub(super) unix_mode: Option<u32>,
    pub(crate) parts: Parts,
}

/// What an ORB is made of, besides its listeners.
#[derive(Debug)]
pub(crate) struct Parts {
    hold: bool,
    pool: usize,
    blocking_threads: usize,
    pub(crate) config: Config,
}

/// Why an ORB could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The text of `listen` is no endpoint.
    #[error(
        "cannot listen on `{endpoint}`: {reason}; write it as iiop://HOST:PORT, such as iiop://127.0.0.1:0, as ssliop://HOST:PORT or as uiop://PATH"
    )]
    Endpoint {
        /// The text.
        endpoint: String,
        /// What is wrong.
        reason: String,
    },
    /// The operating system refused the address.
    #[error("cannot listen on `{endpoint}`: {source}")]
    Listen {
        /// The endpoint.
        endpoint: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A template of `publish` does not give an address.
    #[error("cannot publish `{template}`: {reason}; write it as HOST, HOST:PORT or iiop://HOST:PORT")]
    Publish {
        /// The template.
        template: String,
        /// What is wrong.
        reason: String,
    },
    /// Nobody could ever log in (`OrbBuilder::logins`).
    #[error("no caller could log in: {0}")]
    Logins(&'static str),
    /// A code set that this build can not convert.
    #[error("code set {0} is not here: with the feature `encoding_rs` there are more")]
    CodeSet(CodeSetId),
    /// The admin endpoint would be open to other machines (`OrbBuilder::admin`).
    #[cfg(feature = "admin")]
    #[error(
        "the admin endpoint `{0}` is not of loopback: OrbBuilder::admin_anywhere opens it to others, who need no password"
    )]
    Admin(String),
    /// There is no tokio runtime with I/O and time.
    #[error("an ORB that listens must be built inside a tokio runtime with I/O and time enabled")]
    NoRuntime,
}

impl OrbBuilder {
    pub(crate) fn new() -> Self {
        let config = Config {
            timeout: Some(Duration::from_secs(60)),
            connect_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(10),
            limits: Arc::new(Limits::default()),
            initial: HashMap::new(),
            default_initial: None,
            max_connections: 1024,
            max_connections_per_address: 64,
            newcomers_displace: Some(Duration::from_secs(1)),
            socket_buffer: None,
            unix_sockets: true,
            transport: Transport::default(),
            memory: None,
            max_version: Version::V1_2,
            code_sets: Arc::new(CodeSetComponentInfo::zorb()),
            assumed_wide: CodeSetId::NONE,
            invalid_text: InvalidText::Refuse,
            latency: Latency::Park,
            low_water: true,
            deposit: true,
            fragment_size: None,
            ways_back: Rule::default(),
            offers_ways_back: false,
            demux: Demux::default(),
            values: Factories::default(),
            tls: None,
            #[cfg(feature = "csi")]
            security: Default::default(),
            #[cfg(feature = "admin")]
            admin: None,
            #[cfg(feature = "tracing")]
            propagate: None,
        };
        Self {
            listen: Vec::new(),
            listeners: Vec::new(),
            publish: Vec::new(),
            unix_mode: None,
            parts: Parts { hold: false, pool: POOL, blocking_threads: 64, config },
        }
    }

    /// Listens on `iiop://HOST:PORT`; port 0 takes a free one, `FIRST-LAST` the first free one of a range, `[::1]` is IPv6. Or by TLS alone on `ssliop://HOST:PORT`, for which
    /// `tls` (feature `tls`) must give a certificate. Or on a Unix socket, `uiop://PATH`. May be called again for further addresses:
    /// references name all of them.
    ///
    /// The file of a Unix socket is made, and removed when the ORB closes. One that a dead server left behind is replaced. Processes on
    /// the same machine that know the socket take it before TCP: zorb's, omniORB's (`giop:unix`) and TAO's (UIOP).
    pub fn listen(mut self, endpoint: impl Into<String>) -> Self {
        self.listen.push(endpoint.into());
        self
    }

    /// Serves an inherited socket (socket activation, a test's own).
    pub fn listener(mut self, listener: std::net::TcpListener) -> Self {
        self.listeners.push(listener);
        self
    }

    /// The permission bits of Unix sockets that are listened on, such as `0o660`: who may write to the file may connect. Without them
    /// the process's file mode creation mask decides. It does not touch the directory.
    pub fn unix_mode(mut self, mode: u32) -> Self {
        self.unix_mode = Some(mode & 0o777);
        self
    }

    /// Whether Unix sockets that references name are connected to (default `true`), where they are of this machine. A process with
    /// rights that the makers of its references do not have, such as one of root's, may want `false`: a reference can name any socket.
    pub fn unix_sockets(mut self, unix_sockets: bool) -> Self {
        self.parts.config.unix_sockets = unix_sockets;
        self
    }

    /// An address that references carry in place of those listened on (NAT, containers). May be called again: references name all of
    /// them, the first one first.
    ///
    /// `HOST`, `HOST:PORT`, `iiop://HOST:PORT` or, for what is listened on by TLS, `ssliop://HOST:PORT`; IPv6 addresses in brackets before a port. Without a port, or with `{port}`, it is that
    /// of each listening socket. In braces may stand: `{hostname}`, the name of this machine; `{ip}`, `{ipv4}`, `{ipv6}`, the address
    /// by which it calls others; `{env:NAME}` and `{env:NAME|DEFAULT}`, a variable of the environment, which [`build`](Self::build)
    /// reads.
    ///
    /// ```
    /// # use orb_runtime::Orb;
    /// let builder = Orb::builder()
    ///     .listen("iiop://0.0.0.0:9000")
    ///     .publish("iiop://{env:PUBLIC_HOST|localhost}:8080") // outside of the container
    ///     .publish("{hostname}"); // between containers
    /// ```
    ///
    /// [`build`](Self::build) logs a warning for each address that clients may not reach: any address, loopback or link-local ones, names of
    /// containers.
    pub fn publish(mut self, address: impl Into<String>) -> Self {
        self.publish.push(address.into());
        self
    }

    /// Holds requests until [`Orb::accept`] or [`Orb::run_until`]. Call it in every server with a fixed port.
    ///
    /// Clients remember the address of a server and call it as soon as it listens again. Without `hold`, a request that comes
    /// before its object is active gets OBJECT_NOT_EXIST, which tells the client that the object is gone for good. With it, the
    /// request waits. What takes long, such as opening a database, belongs before [`build`](Self::build): until then nothing
    /// listens, and clients get TRANSIENT.
    ///
    /// ```no_run
    /// # use orb_runtime::Orb;
    /// # async fn serve(activate_all: impl Fn(&Orb)) -> Result<(), Box<dyn std::error::Error>> {
    /// let orb = Orb::builder().listen("iiop://127.0.0.1:2900").hold().build().await?;
    /// activate_all(&orb);
    /// orb.run_until(std::future::pending::<Result<(), std::io::Error>>()).await?;
    /// # Ok(()) }
    /// ```
    pub fn hold(mut self) -> Self {
        self.parts.hold = true;
        self
    }

    /// How long a call may take unless its reference says otherwise (default 60 s): TIMEOUT afterwards.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.parts.config.timeout = Some(timeout);
        self
    }

    /// Lets calls take as long as they like.
    pub fn no_timeout(mut self) -> Self {
        self.parts.config.timeout = None;
        self
    }

    /// How long connecting to one host may take (default 10 s): TRANSIENT afterwards. Of several hosts of a server each next one is tried
    /// after 250 ms at the latest, beside those before it.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.parts.config.connect_timeout = timeout;
        self
    }

    /// How long [`Orb::shutdown`] waits for requests under way (default 10 s).
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.parts.config.drain_timeout = timeout;
        self
    }

    /// The limits of every connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.parts.config.limits = Arc::new(limits);
        self
    }

    /// Octets of memory for what connections receive, all together (default 256 MiB): buffers that are kept for the next messages, those
    /// that messages and views of them pin, pieces of messages that are not whole, and arguments of requests that are being served.
    ///
    /// Beyond it requests are left unread until memory comes back; replies to this ORB's own calls never wait. Where all memory is held by
    /// messages that wait for more, one at a time goes past it.
    ///
    /// As much again may be queued for peers that do not take it: beyond that, requests of connections with more than 64 KiB queued are left
    /// unread. From half of it on, requests of operations with replies of 64 KiB or more wait, and clients that take their replies too
    /// slowly are closed for them: those that would need more than [`Limits::write_timeout`](crate::Limits::write_timeout) for what is
    /// queued, at the rate of the last seconds. A large reply that is made when all of it is taken is replaced by `TRANSIENT`, completed yes.
    pub fn pool_cap(mut self, octets: usize) -> Self {
        self.parts.pool = octets;
        self
    }

    /// Connections accepted at a time (default 1,024), and from one address (default 64); more are closed at once, unless somebody gives
    /// way ([`newcomers_displace`](Self::newcomers_displace)).
    pub fn max_connections(mut self, all: usize, per_address: usize) -> Self {
        self.parts.config.max_connections = all;
        self.parts.config.max_connections_per_address = per_address;
        self
    }

    /// How long a connection may be there without a whole message before it gives way to a newcomer, where the endpoint is full, or the newcomer's
    /// address has all that it may have (default 1 s). Of those, the one that has been there longest is closed in good order: who had sent
    /// nothing yet connects again with the next call. Who sends a first message no slower than
    /// [`Limits::min_message_rate`](crate::Limits::min_message_rate) stays, and so does everybody who has spoken once. `None`: newcomers are closed.
    pub fn newcomers_displace(mut self, silent: impl Into<Option<Duration>>) -> Self {
        self.parts.config.newcomers_displace = silent.into();
        self
    }

    /// Requests that `blocking` servants run at a time (default 64).
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.parts.blocking_threads = threads.max(1);
        self
    }

    /// Fixes the size of the sockets' buffers, in octets. Left alone, the kernel tunes them, mostly better.
    pub fn socket_buffer(mut self, octets: usize) -> Self {
        self.parts.config.socket_buffer = Some(octets);
        self
    }

    /// How connections are read and written (default [`Transport::Epoll`]). What can not be had is replaced by epoll, with a
    /// warning that gives the reason: see [`Transport::IoUring`] and [`Transport::IoUringThreads`].
    pub fn transport(mut self, transport: Transport) -> Self {
        self.parts.config.transport = transport;
        self
    }

    /// Opens an HTTP endpoint that shows what the ORB is doing: `HOST:PORT` of loopback, such as `127.0.0.1:0`, where port 0 takes a free one
    /// ([`Orb::admin_address`]). There is none by default.
    ///
    /// `/` is a page for people, `/metrics` has the figures for Prometheus, `/status.json` for `zorb top`, `/health` and `/ready` say 200 or
    /// 503. It changes nothing and asks nobody who he is: whoever may connect sees names of operations and addresses of peers. Requests
    /// that name a host other than an address or `localhost` are refused. With it, calls are counted and timed by their operations, of which the
    /// first 1,024 have rows of their own.
    ///
    /// [`build`](Self::build) fails with [`BuildError::Admin`] for an address that is not of loopback, and with [`BuildError::Listen`] where
    /// the system refuses it.
    #[cfg(feature = "admin")]
    pub fn admin(mut self, address: impl Into<String>) -> Self {
        self.parts.config.admin = Some(crate::admin::Wanted { address: address.into(), anywhere: false });
        self
    }

    /// The same on any address, also one that other machines can reach: for networks where everybody may see it.
    #[cfg(feature = "admin")]
    pub fn admin_anywhere(mut self, address: impl Into<String>) -> Self {
        self.parts.config.admin = Some(crate::admin::Wanted { address: address.into(), anywhere: true });
        self
    }

    /// Takes the ids of traces and spans from another tracing system, such as OpenTelemetry, in place of making them:
    /// see [`Propagate`](crate::telemetry::Propagate).
    #[cfg(feature = "tracing")]
    pub fn propagate(mut self, ids: impl crate::telemetry::Propagate) -> Self {
        self.parts.config.propagate = Some(crate::telemetry::Propagator(Arc::new(ids)));
        self
    }

    /// How whoever waits for the next message waits (default [`Latency::Park`]).
    pub fn latency(mut self, latency: Latency) -> Self {
        self.parts.config.latency = latency;
        self
    }

    /// Whether the system is told, in the middle of a large message that comes in small pieces, to wake the ORB only when much
    /// more of it is there (`SO_RCVLOWAT`; default `true`). On a slow link that spares most of the receiver's work. `false` is there
    /// to compare with.
    pub fn low_water(mut self, low_water: bool) -> Self {
        self.parts.config.low_water = low_water;
        self
    }

    /// The highest GIOP version to speak as a client (default 1.2), for peers that claim more than they can.
    pub fn max_giop(mut self, version: Version) -> Self {
        self.parts.config.max_version = version;
        self
    }

    /// Whether bulk data keeps out of the way of copies (default `true`): it is sent from where it lies, and received where it
    /// stays.
    ///
    /// `false` makes the classical ORB, to compare with: bulk arguments are marshalled through one request buffer,
    /// everything received is read through a staging buffer of 64 KiB and copied into its message's buffer, and sequences
    /// are copied out of that. What goes over the wire is the same.
    pub fn deposit(mut self, deposit: bool) -> Self {
        self.parts.config.deposit = deposit;
        self
    }

    /// Sends GIOP 1.2 requests and replies that are larger than this in fragments of so many octets, message headers included (rounded
    /// down to a multiple of 8, at least 24). Default: every message leaves whole, which is faster, but `@stream` results that are made
    /// while they leave: in fragments of 64 KiB, or of so many octets if that is less.
    ///
    /// Between the fragments of a large message others leave: small calls of the same connection do not wait behind it. 64 KiB and more
    /// cost little. Oneways may not be overtaken, so nothing leaves between theirs. Calls whose last argument is read from a source
    /// (`@stream`) leave whole, and so does all that goes to peers of GIOP 1.0 and 1.1. JacORB reads fragments, and sends none.
    /// To GlassFish all larger messages leave in fragments of 64 KiB in any case.
    ///
    /// `-ORBMaxMessageSize OCTETS` on the command line.
    pub fn fragment_size(mut self, octets: usize) -> Self {
        self.parts.config.fragment_size = Some(octets);
        self
    }

    /// Offers every server that is called to call objects of this ORB back over the same connection (Bidirectional GIOP), in GIOP 1.2: no
    /// port is needed for callbacks, and firewalls and address translation are not in the way. An ORB that does not listen has references
    /// all the same then, with a made-up address (`ff10::…`, multicast of a reserved scope) that leads nowhere but to such servers.
    ///
    /// The server decides whether it does so: zorb's by [`call_back_over`](Self::call_back_over), omniORB's and JacORB's by their
    /// policies and options. One that does may call any object of this ORB whose key it knows. Connections stay open when idle, unless
    /// [`Limits::idle_timeout`] is set, as far as it depends on this side; callbacks end with the connection, until something is
    /// called again.
    ///
    /// Replies are read by the connection's task, not by the caller: calls take a little longer.
    #[doc(alias = "BiDirPolicy")]
    pub fn offer_call_backs(mut self) -> Self {
        self.parts.config.offers_ways_back = true;
        self
    }

    /// Calls objects of clients back over the connections that the clients opened, where they offer that (Bidirectional GIOP) and `rule` allows
    /// it: it is given the client, and the host and port that stand in the references to its objects. Default: never; such objects are
    /// called like all others, by a connection of this ORB's to their address.
    ///
    /// A client can name any address, also that of somebody else, and gets the calls that are meant for objects there: allow what the
    /// client is known to own, or all where clients are trusted. An address that one open connection leads to is not given to another.
    ///
    /// Such a connection stays open however quiet it is, unless [`Limits::idle_timeout`] is set; whether the client's machine is still there
    /// is asked for once a minute by the system (TCP keepalive).
    ///
    /// Once the connection is gone, calls to such objects are TRANSIENT until the client comes back and offers again. Calls whose last
    /// argument is read from a source (`@stream`) need a connection of their own and do not go back.
    #[doc(alias = "BiDirPolicy")]
    pub fn call_back_over(mut self, rule: impl Fn(&Peer, &str, u16) -> bool + Send + Sync + 'static) -> Self {
        self.parts.config.ways_back = Rule::new(rule);
        self
    }

    /// How requests find their POAs, objects and operations: there to compare the ways, since none is as fast as the default. Object keys of
    /// persistent objects are the same with all of them.
    ///
    /// ```
    /// # use orb_runtime::{Demux, ObjectDemux, OperationDemux, Orb, PathDemux};
    /// let numbers = Orb::builder().demux(Demux::new().operations(OperationDemux::Numeric));
    /// let classical = Demux::new().path(PathDemux::Layered).objects(ObjectDemux::Hash);
    /// let builder = Orb::builder().demux(classical.operations(OperationDemux::Sorted));
    /// ```
    pub fn demux(mut self, demux: Demux) -> Self {
        self.parts.config.demux = demux;
        self
    }

    /// Lets peers send values of the type `V` where a base of it is expected, or any value. May be called again for further types.
    ///
    /// A value of a type that is not registered is taken as the nearest of its bases to which it may be truncated and which
    /// is registered, or expected there; else it is `MARSHAL` minor OMG 1. Types that are expected as they are need no entry.
    pub fn value<V: ValueType>(mut self) -> Self {
        self.parts.config.values.register::<V>();
        self
    }

    /// What [`Orb::initial`] resolves the name to: any object URL (`-ORBInitRef NAME=URL`).
    pub fn init_ref(mut self, name: impl Into<String>, url: impl Into<String>) -> Self {
        self.parts.config.initial.insert(name.into(), url.into());
        self
    }

    /// What stands before the names that `init_ref` does not know (`-ORBDefaultInitRef URL`).
    pub fn default_init_ref(mut self, url: impl Into<String>) -> Self {
        self.parts.config.default_initial = Some(url.into());
        self
    }

    /// What connections by TLS are made with, in both directions: see [`tls`](crate::tls). References to servers that offer TLS are
    /// called by it from then on, unless `TlsBuilder::outgoing` says otherwise.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::tls::Tls) -> Self {
        self.parts.config.tls = Some(tls);
        self
    }

    /// Opens the listeners and starts to serve.
    ///
    /// # Errors
    /// [`BuildError`] when an address is malformed or taken, a template of [`publish`](Self::publish) gives none, or a code set is not here.
    ///
    /// # Cancel safety
    /// Dropping the future opens nothing.
    pub async fn build(mut self) -> Result<Orb, BuildError> {
        self.parts.config.check_code_sets()?;
        let listeners = self.bind()?;
        #[cfg(feature = "csi")]
        {
            let alone = !listeners.is_empty() && listeners.iter().all(bind::Bound::is_plain);
            self.parts
                .config
                .security
                .unusable(alone)
                .map_or(Ok(()), |reason| Err(BuildError::Logins(reason)))?;
        }
        if !listeners.is_empty() && tokio::runtime::Handle::try_current().is_err() {
            return Err(BuildError::NoRuntime);
        }
        #[cfg(feature = "admin")]
        let admin = match &self.parts.config.admin {
            Some(_) if tokio::runtime::Handle::try_current().is_err() => return Err(BuildError::NoRuntime),
            Some(wanted) => Some(wanted.open()?),
            None => None,
        };
        let (endpoints, sockets) = bind::open(listeners, &self.publish)?;
        let core = self.parts.core(endpoints);
        for socket in sockets {
            core.serve(socket);
        }
        #[cfg(feature = "admin")]
        if let Some(admin) = admin {
            core.serve_admin(admin);
        }
        Ok(core.open())
    }
}

/// Eight octets that no earlier run of any ORB used.
fn boot_stamp() -> [u8; 8] {
    use std::hash::{BuildHasher, Hasher};
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    // Randomly keyed for each process.
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u128(time.as_nanos());
    hasher.write_u32(std::process::id());
    hasher.finish().to_be_bytes()
}

impl Parts {
    pub(crate) fn core(self, mut endpoints: Vec<Endpoint>) -> Arc<OrbCore> {
        let boot = boot_stamp();
        if self.config.offers_ways_back
            && !endpoints.iter().any(|at| matches!(at, Endpoint::Iiop { .. } | Endpoint::Ssl { .. }))
        {
            endpoints.push(Endpoint::nowhere(boot));
        }
        Arc::new(OrbCore {
            #[cfg(feature = "tls")]
            handshakes: {
                let most = self.config.tls.as_ref().map_or(0, crate::tls::Tls::max_handshakes);
                crate::tls::handshakes::Handshakes::new(most, self.config.newcomers_displace)
            },
            #[cfg(feature = "admin")]
            shown: super::shown::Shown::new(self.config.admin.is_some()),
            sockets: Sockets::new(self.config.transport),
            adapter: Arc::new(Adapter::new(boot, self.blocking_threads, self.config.demux)),
            connections: Connections::default(),
            load: Arc::new(Load::new(self.config.limits.max_total_requests)),
            hits: Default::default(),
            config: self.config,
            pool: Arc::new(BufferPool::new(self.pool)),
            endpoints,
            links: Mutex::default(),
            next_number: AtomicU64::new(0),
            ended: Mutex::default(),
            tasks: TaskTracker::new(),
            serving: TaskTracker::new(),
            discarded_oneways: Default::default(),
            listening: TaskTracker::new(),
            home: tokio::runtime::Handle::try_current().ok(),
            pauses: AtomicU8::new(if self.hold { super::HELD } else { 0 }),
            backpressure: Default::default(),
            trimming: Default::default(),
            held: Mutex::default(),
            closing: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            closed: Notify::new(),
            failed_oneways: AtomicU64::new(0),
            known: Default::default(),
            #[cfg(feature = "metrics")]
            metrics: Default::default(),
            guard: Mutex::new(Weak::new()),
        })
    }
}

impl OrbCore {
    /// The handle whose last clone closes the ORB.
    pub(crate) fn open(self: Arc<Self>) -> Orb {
        let guard = Arc::new(Guard(Arc::downgrade(&self)));
        *self.guard.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::downgrade(&guard);
        Orb { core: self, _guard: Some(guard) }
    }
}

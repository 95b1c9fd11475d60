//! The configuration of an ORB, as the builder leaves it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use giop_codec::Version;
use giop_codec::cdr::InvalidText;
use giop_codec::code_set::{CodeSetComponentInfo, CodeSetId};
use giop_codec::value::Factories;
use giop_proto::Limits;

#[cfg(feature = "experiments")]
use crate::experiments::Demux;
use crate::tls::Tls;
use crate::transport::pipe::PipeEnd;
use crate::transport::{Peer, Transport};

/// The configuration that the builder made.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) connection: ConnectionConfig,
    pub(crate) client: ClientConfig,
    pub(crate) server: ServerConfig,
    pub(crate) limits: Arc<Limits>,
    pub(crate) drain_timeout: Duration,
    pub(crate) tls: Option<Tls>,
    pub(crate) values: Factories,
}

/// The configuration of connections in both directions.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionConfig {
    pub(crate) socket_buffer: Option<usize>,
    pub(crate) max_version: Version,
    pub(crate) code_sets: Arc<CodeSetComponentInfo>,
    /// The code set of wide text for peers that name none.
    pub(crate) assumed_wide: CodeSetId,
    pub(crate) invalid_text: InvalidText,
    pub(crate) wait_strategy: WaitStrategy,
    #[cfg(feature = "experiments")]
    pub(crate) low_water: bool,
    #[cfg(feature = "experiments")]
    pub(crate) deposit: bool,
    pub(crate) fragment_size: Option<usize>,
    pub(crate) transport: Transport,
}

/// The configuration of calls to other ORBs.
#[derive(Debug, Clone)]
pub(crate) struct ClientConfig {
    pub(crate) timeout: Option<Duration>,
    pub(crate) connect_timeout: Duration,
    pub(crate) initial: HashMap<String, String>,
    pub(crate) default_initial: Option<String>,
    /// Whether to connect to Unix sockets that references name.
    pub(crate) unix_sockets: bool,
    /// Whether to offer servers to call objects of this ORB back over its connections.
    pub(crate) offers_bidirectional: bool,
    /// Hosts that are connected by pipes in memory, in tests.
    pub(crate) memory: Option<Arc<dyn MemoryNetwork>>,
}

/// The configuration of listeners and of requests.
#[derive(Debug, Clone)]
pub(crate) struct ServerConfig {
    pub(crate) max_connections: usize,
    pub(crate) max_connections_per_address: usize,
    /// Age from which a connection without a complete message can be evicted if the endpoint is full.
    pub(crate) evict_idle_after: Option<Duration>,
    /// The clients that are called back over their own connections.
    pub(crate) bidirectional: CallbackRule,
    #[cfg(feature = "experiments")]
    pub(crate) demux: Demux,
    /// The address of the admin endpoint.
    #[cfg(feature = "admin")]
    pub(crate) admin: Option<AdminConfig>,
}

/// The strategy for waiting for the next message.
///
/// ```
/// # use orb_runtime::{WaitStrategy, Orb};
/// # use std::time::Duration;
/// let builder = Orb::builder().wait_strategy(WaitStrategy::BusyPoll(Duration::from_micros(50)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// The thread sleeps in the system until something arrives.
    #[default]
    Park,
    /// The thread polls the socket for up to this long before it sleeps. If the answer arrives within that
    /// time, a round trip takes half as long as with [`Park`](Self::Park).
    ///
    /// A thread spins while a caller waits for the only call of a connection, and after a server has served
    /// one. Spinning needs a core of its own: other tasks of the thread, and other threads of the core, are
    /// delayed.
    BusyPoll(Duration),
}

impl WaitStrategy {
    /// Returns the maximum time to spin.
    pub(crate) fn spin(self) -> Duration {
        match self {
            Self::Park => Duration::ZERO,
            Self::BusyPoll(longest) => longest,
        }
    }
}

/// The rule for which clients may be called back over their connections.
#[derive(Clone, Default)]
pub(crate) struct CallbackRule(pub(crate) Option<Arc<Allows>>);

pub(crate) type Allows = dyn Fn(&Peer, &str, u16) -> bool + Send + Sync;

impl CallbackRule {
    pub(crate) fn new(allows: impl Fn(&Peer, &str, u16) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(allows)))
    }
}

impl fmt::Debug for CallbackRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Rule(..)" } else { "Rule(none)" })
    }
}

/// The configured address of the admin endpoint.
#[cfg(feature = "admin")]
#[derive(Debug, Clone)]
pub(crate) struct AdminConfig {
    pub(crate) address: String,
    pub(crate) anywhere: bool,
}

/// Hosts that are reached by pipes in memory instead of sockets, in tests.
pub(crate) trait MemoryNetwork: fmt::Debug + Send + Sync {
    /// Connects to the ORB of that name.
    fn connect(&self, host: &str) -> io::Result<PipeEnd>;
}

/// The reason for which an ORB could not be built.
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
        /// The error of the system.
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
    /// No caller could ever log in (`OrbBuilder::logins`).
    #[error("no caller could log in: {0}")]
    Logins(&'static str),
    /// This build cannot convert the code set.
    #[error("code set {0} is not here: with the feature `encoding_rs` there are more")]
    CodeSet(CodeSetId),
    /// The admin endpoint would be reachable from other machines (`OrbBuilder::admin`).
    #[cfg(feature = "admin")]
    #[error(
        "the admin endpoint `{0}` is not of loopback: OrbBuilder::admin_unprotected opens it to others, who need no password"
    )]
    Admin(String),
    /// The current thread has no tokio runtime with I/O and time.
    #[error("an ORB that listens must be built inside a tokio runtime with I/O and time enabled")]
    NoRuntime,
}

//! The configuration of an ORB, created by its builder.

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

#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) connection: ConnectionConfig,
    pub(crate) client: ClientConfig,
    pub(crate) server: ServerConfig,
    pub(crate) limits: Arc<Limits>,
    pub(crate) drain_timeout: Duration,
    pub(crate) tls: Option<Tls>,
    pub(crate) value_factories: Factories,
}

#[derive(Debug, Clone)]
pub(crate) struct ConnectionConfig {
    pub(crate) socket_buffer: Option<usize>,
    pub(crate) max_version: Version,
    pub(crate) code_sets: Arc<CodeSetComponentInfo>,
    /// The code set of wide text for peers whose references and requests specify none.
    pub(crate) assumed_wchar_set: CodeSetId,
    pub(crate) invalid_text: InvalidText,
    pub(crate) wait_strategy: WaitStrategy,
    #[cfg(feature = "experiments")]
    pub(crate) adapts_low_water: bool,
    #[cfg(feature = "experiments")]
    pub(crate) deposits_enabled: bool,
    pub(crate) fragment_size: Option<usize>,
    pub(crate) transport: Transport,
}

#[derive(Debug, Clone)]
pub(crate) struct ClientConfig {
    pub(crate) timeout: Option<Duration>,
    pub(crate) connect_timeout: Duration,
    pub(crate) initial_references: HashMap<String, String>,
    pub(crate) default_initial_url: Option<String>,
    pub(crate) uses_unix_sockets: bool,
    /// Whether servers may call objects of this ORB over connections that it has opened (bidirectional GIOP).
    pub(crate) offers_bidirectional: bool,
    pub(crate) memory_network: Option<Arc<dyn MemoryNetwork>>,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerConfig {
    pub(crate) max_connections: usize,
    pub(crate) max_connections_per_address: usize,
    /// The age from which a connection that has sent no complete message may be evicted from a full endpoint.
    pub(crate) evict_idle_after: Option<Duration>,
    pub(crate) bidirectional: CallbackRule,
    #[cfg(feature = "experiments")]
    pub(crate) demux: Demux,
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
    /// The thread sleeps in the operating system until data arrives.
    #[default]
    Park,
    /// The thread polls the socket for up to this duration before it sleeps. If the message arrives during
    /// this time, a round trip takes about half as long as with [`Park`](Self::Park).
    ///
    /// A client polls while only one call is in flight on the connection. A server polls after it has sent a
    /// reply. Each polling thread should have its own processor core.
    BusyPoll(Duration),
}

impl WaitStrategy {
    pub(crate) fn max_spin_time(self) -> Duration {
        match self {
            Self::Park => Duration::ZERO,
            Self::BusyPoll(max) => max,
        }
    }
}

/// The rule for which clients may be called back over their connections. `None` permits no client.
#[derive(Clone, Default)]
pub(crate) struct CallbackRule(pub(crate) Option<Arc<CallbackPredicate>>);

/// Returns whether to permit callbacks to a client at the host and the port that it announced.
type CallbackPredicate = dyn Fn(&Peer, &str, u16) -> bool + Send + Sync;

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

#[cfg(feature = "admin")]
#[derive(Debug, Clone)]
pub(crate) struct AdminConfig {
    pub(crate) address: String,
    pub(crate) is_remote_allowed: bool,
}

/// A network of in-memory pipes instead of sockets, for tests.
pub(crate) trait MemoryNetwork: fmt::Debug + Send + Sync {
    fn connect(&self, host: &str) -> io::Result<PipeEnd>;
}

/// The reason why an ORB could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The text that was passed to `OrbBuilder::listen` is not a valid endpoint.
    #[error(
        "cannot listen on `{endpoint}`: {reason}; write it as iiop://HOST:PORT, such as iiop://127.0.0.1:0, as ssliop://HOST:PORT or as uiop://PATH"
    )]
    Endpoint {
        /// The text.
        endpoint: String,
        /// The fault in the text.
        reason: String,
    },
    /// The operating system cannot listen on the address.
    #[error("cannot listen on `{endpoint}`: {source}")]
    Listen {
        /// The endpoint.
        endpoint: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text that was passed to `OrbBuilder::publish` does not yield an address.
    #[error(
        "cannot publish `{template}`: {reason}; write it as HOST, HOST:PORT, iiop://HOST:PORT or ssliop://HOST:PORT"
    )]
    Publish {
        /// The text, which may contain placeholders.
        template: String,
        /// The fault in the text.
        reason: String,
    },
    /// With this configuration of `OrbBuilder::logins`, no caller could log in.
    #[error("no caller could log in: {0}")]
    Logins(&'static str),
    /// This build cannot convert the code set.
    #[error("this build does not support code set {0}; the feature `encoding_rs` adds code sets")]
    CodeSet(CodeSetId),
    /// The admin endpoint would be reachable from other machines (`OrbBuilder::admin`).
    #[cfg(feature = "admin")]
    #[error(
        "the address of the admin endpoint `{0}` is not a loopback address; to serve it to other machines without a password, use OrbBuilder::admin_unprotected"
    )]
    Admin(String),
    /// The current thread is not in a tokio runtime with I/O and time enabled.
    #[error("an ORB that listens must be built inside a tokio runtime with I/O and time enabled")]
    NoRuntime,
}

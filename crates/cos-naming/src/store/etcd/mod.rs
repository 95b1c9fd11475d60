//! The store in an etcd cluster: several servers of one service, none of which keeps state of its own.

mod api;
mod cache;
mod change;
mod follow;
mod http;
mod keys;
mod tls;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use zorb::{CompletionStatus, OneLine, Printable};

use self::cache::Cache;
use self::http::{Cluster, Failure};
use self::keys::Keys;
use super::{
    Bound, Change, ChangeError, ContextId, Key, Lookup, Page, PageLimit, Store, StoreError, StoreState,
    Target,
};

/// A store of contexts and bindings in an etcd cluster (3.4 or later), for several servers of one service.
/// Each server serves all names, and any of them may fail.
///
/// A change is a transaction of etcd: if two servers bind one name, one of them succeeds. A change is
/// acknowledged when a majority of the members has it on disk and this server has read it. Lookups are
/// answered from memory, which follows etcd by a watch. A name that is not in memory is looked up in etcd
/// before a client gets a negative answer ([`Reads`]). If one member does not answer, the next one is asked.
///
/// While no majority answers, lookups are answered from memory, [`state`](Store::state) reports the outage,
/// and changes fail with [`StoreError::Away`].
///
/// The store runs in tasks of the runtime in which it was created. Dropping it ends them.
pub struct EtcdStore {
    shared: Arc<Shared>,
    tasks: [AbortHandle; 2],
}

/// The configuration of names in etcd.
#[derive(Clone)]
#[must_use = "it does nothing until `EtcdStore::connect`"]
pub struct EtcdConfig {
    endpoints: Vec<String>,
    prefix: String,
    reads: Reads,
    patience: Duration,
    timeout: Duration,
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
    login: Option<(String, String)>,
}

/// The consistency of lookups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reads {
    /// A name that is known here is returned without asking etcd. For other names etcd is asked, so that each
    /// acknowledged name is found by every server. A name that was unbound or rebound meanwhile may still
    /// return the old object for a moment.
    #[default]
    Cached,
    /// Every lookup asks etcd: each acknowledged change is visible to every server. While etcd is
    /// unavailable, lookups fail.
    Latest,
}

/// The reason why names in etcd cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The configuration is invalid.
    #[error("names can not be kept in etcd: {0}")]
    Config(String),
    /// No member of the cluster executes requests.
    #[error("etcd does not answer: {}", OneLine::new(.0))]
    Away(String),
    /// The contents below the prefix were written by another version of the service, or by another program.
    #[error(
        "what etcd has below {prefix} has format {}; this naming service knows format {FORMAT}",
        Printable::new(found)
    )]
    Format {
        /// The prefix.
        prefix: String,
        /// The format found.
        found: String,
    },
}

/// The format of the contents. It changes with anything that this code would read incorrectly.
const FORMAT: &str = "1";

impl EtcdConfig {
    /// Creates a configuration for a cluster with these client URLs of its members: `http://HOST:PORT` or
    /// `https://HOST:PORT`, port 2379 by default.
    pub fn new<I: IntoIterator<Item: Into<String>>>(endpoints: I) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: "/zorb/names".to_owned(),
            reads: Reads::Cached,
            patience: Duration::from_secs(2),
            timeout: Duration::from_secs(6),
            ca: None,
            identity: None,
            login: None,
        }
    }

    /// Sets the prefix of all keys, `/zorb/names` by default. Services with different prefixes share nothing.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the consistency of lookups, [`Reads::Cached`] by default.
    pub fn reads(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// Sets the timeout for one member, two seconds by default. After it the next one is asked.
    pub fn member_timeout(mut self, timeout: Duration) -> Self {
        self.patience = timeout;
        self
    }

    /// Sets the timeout for all members together, six seconds by default. After it etcd counts as
    /// unavailable.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // Limited to a value that can be added to the current time.
        self.timeout = timeout.min(Duration::from_secs(365 * 86_400));
        self
    }

    /// Sets the PEM file of the CA certificates for the members. Required for `https://`.
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// Sets the PEM files of the certificates and the key of this side, for clusters that authenticate
    /// clients.
    pub fn identity(mut self, certificates: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificates.into(), key.into()));
        self
    }

    /// Sets the user and password, for clusters with authentication.
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Some((user.into(), password.into()));
        self
    }
}

/// Omits the password.
impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.login.as_ref().map(|(user, _)| user);
        let mut out = f.debug_struct("EtcdConfig");
        out.field("endpoints", &self.endpoints).field("prefix", &self.prefix).field("user", &user);
        out.finish_non_exhaustive()
    }
}

/// The state that the store shares with its tasks.
struct Shared {
    cluster: Cluster,
    keys: Keys,
    cache: Cache,
    reads: Reads,
    patience: Duration,
    timeout: Duration,
    /// The revision up to which the cache is complete.
    applied: watch::Sender<i64>,
    /// The time since when etcd does not answer.
    away: Mutex<Option<Instant>>,
    /// Notified when the watch lags and another member may be faster.
    restart: Notify,
    /// The number of completed barriers. Locked while one is requested.
    barrier: tokio::sync::Mutex<u64>,
    /// The number of started barriers.
    barriers: AtomicU64,
    /// Numbers for contexts that are reserved for this server.
    ids: tokio::sync::Mutex<Range<u64>>,
    /// A random number that distinguishes the changes of this server from those of others.
    seed: u64,
    marks: AtomicU64,
}

impl EtcdStore {
    /// Reads all names below the prefix, and follows their changes from then on.
    ///
    /// # Errors
    /// [`ConnectError::Away`] if no majority of the cluster answers in time. After the connection is
    /// established, the store waits for an unavailable cluster to return.
    pub async fn connect(config: EtcdConfig) -> Result<Self, ConnectError> {
        let shared = Arc::new(Shared::new(&config)?);
        shared.begin().await?;
        let follow = tokio::spawn(follow::follow(Arc::clone(&shared)));
        let probe = tokio::spawn(follow::probe(Arc::clone(&shared)));
        Ok(Self { shared, tasks: [follow.abort_handle(), probe.abort_handle()] })
    }
}

impl Shared {
    fn new(config: &EtcdConfig) -> Result<Self, ConnectError> {
        let seed = RandomState::new().hash_one(std::process::id());
        Ok(Self {
            cluster: Cluster::new(config)?,
            keys: Keys::new(&config.prefix),
            cache: Cache::default(),
            reads: config.reads,
            patience: config.patience,
            timeout: config.timeout,
            applied: watch::Sender::new(0),
            away: Mutex::default(),
            restart: Notify::new(),
            barrier: tokio::sync::Mutex::default(),
            barriers: AtomicU64::new(0),
            ids: tokio::sync::Mutex::default(),
            seed,
            marks: AtomicU64::new(0),
        })
    }

    /// Returns a number that no other change has.
    fn mark(&self) -> u128 {
        u128::from(self.seed) << 64 | u128::from(self.marks.fetch_add(1, Ordering::Relaxed))
    }

    fn away_since(&self) -> Option<Instant> {
        *self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn set_away(&self, error: &Failure) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if away.is_none() {
            *away = Some(Instant::now());
            metrics::gauge!("zorb_names_store_away").set(1.0);
            tracing::warn!(%error, "etcd is away: names are read from memory, and none can be changed");
        }
    }

    fn set_current(&self) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = away.take() {
            metrics::gauge!("zorb_names_store_away").set(0.0);
            tracing::info!(seconds = since.elapsed().as_secs(), "etcd is back");
        }
    }

    /// Waits until the cache has the contents of etcd. If etcd is unavailable, this is an error only with
    /// [`Reads::Latest`].
    async fn catch_up(&self) -> Result<(), StoreError> {
        let failed = match self.away_since() {
            Some(_) => Failure::NotSent("no majority of etcd's members answers".to_owned()),
            None => match self.barrier().await {
                Ok(()) => return Ok(()),
                Err(failed) => failed,
            },
        };
        match self.reads {
            Reads::Cached => Ok(()),
            Reads::Latest => Err(away(&failed, CompletionStatus::No)),
        }
    }
}

#[cold]
fn away(failure: &Failure, completion: CompletionStatus) -> StoreError {
    StoreError::Away { what: failure.to_string().into(), completion }
}

impl Store for EtcdStore {
    async fn lookup(&self, context: ContextId, key: &Key) -> Result<Lookup, StoreError> {
        // A name that is missing or damaged here may be present in etcd.
        if self.shared.reads == Reads::Cached
            && let Ok(found @ Lookup::Bound(_)) = self.shared.cache.lookup(context, key)
        {
            return Ok(found);
        }
        self.shared.catch_up().await?;
        self.shared.cache.lookup(context, key)
    }

    async fn has_context(&self, context: ContextId) -> Result<bool, StoreError> {
        if self.shared.reads == Reads::Cached && self.shared.cache.has(context) {
            return Ok(true);
        }
        self.shared.catch_up().await?;
        Ok(self.shared.cache.has(context))
    }

    async fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> Result<Option<Page>, StoreError> {
        // Omitting an existing name would be a wrong negative answer.
        self.shared.catch_up().await?;
        Ok(self.shared.cache.page(context, after, limit))
    }

    async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        self.shared.change(change).await
    }

    fn state(&self) -> StoreState {
        StoreState { away: self.shared.away_since().map(|since| since.elapsed()) }
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("prefix", &self.shared.keys.prefix).finish_non_exhaustive()
    }
}

//! [`EtcdStore`], which stores the names in an etcd cluster, so that several servers can serve them.

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
    Change, ChangeError, ContextId, Key, Lookup, Page, PageLimit, Store, StoreError, StoreState,
    StoredBinding, Target,
};

/// A store of contexts and bindings in an etcd cluster (3.4 or later), for several servers of one naming
/// service. Each server serves all names, so the service continues if a server fails.
///
/// A change is a transaction of etcd: if two servers bind the same name, only one of them succeeds. A change
/// is acknowledged when a majority of the cluster's members has it on disk and this server has read it.
/// Lookups use a copy in memory, which an etcd watch keeps up to date. Before the server reports that a name
/// does not exist, it queries etcd ([`ReadConsistency`]). If a member fails, the next one is queried.
///
/// While no majority of the members answers, changes fail with [`StoreError::Unavailable`], and
/// [`state`](Store::state) reports the outage. Lookups still use the copy in memory, except with
/// [`ReadConsistency::Latest`].
///
/// The store runs in tasks of the tokio runtime in which it was created. Dropping the store ends them.
pub struct EtcdStore {
    shared: Arc<Shared>,
    tasks: [AbortHandle; 2],
}

/// The configuration of an [`EtcdStore`].
#[derive(Clone)]
#[must_use = "the store is created by `EtcdStore::connect`"]
pub struct EtcdConfig {
    endpoints: Vec<String>,
    prefix: String,
    read_consistency: ReadConsistency,
    member_timeout: Duration,
    timeout: Duration,
    ca: Option<PathBuf>,
    /// The files of the client's certificates and of its key.
    identity: Option<(PathBuf, PathBuf)>,
    login: Option<(String, String)>,
}

/// The consistency of lookups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReadConsistency {
    /// A name that is in memory is looked up without querying etcd. For other names, etcd is queried, so
    /// every server finds each name whose binding has been acknowledged. After another server has unbound a
    /// name or bound it to another object, this server may return the old object for a moment.
    #[default]
    Cached,
    /// Every lookup queries etcd, so every server sees each acknowledged change. Without etcd, lookups fail.
    Latest,
}

/// The reason why an [`EtcdStore`] cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The configuration is invalid.
    #[error("the etcd configuration is invalid: {0}")]
    Config(String),
    /// The cluster does not answer, or rejects the requests.
    #[error("the names cannot be read from etcd: {}", OneLine::new(.0))]
    Unavailable(String),
    /// The data below the prefix was written by another version of the service, or by another program.
    #[error(
        "the data below {prefix} in etcd has format {}, but this naming service supports only format {FORMAT}",
        Printable::new(found)
    )]
    Format {
        /// The prefix.
        prefix: String,
        /// The format of the data.
        found: String,
    },
}

/// The format of the data in etcd. Replace it if the previous code cannot read the new data.
const FORMAT: &str = "1";

impl EtcdConfig {
    /// Creates a configuration for a cluster whose members have these client URLs. Their form is
    /// `http://HOST:PORT` or `https://HOST:PORT`. The port is 2379 by default.
    pub fn new<I: IntoIterator<Item: Into<String>>>(endpoints: I) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: "/zorb/names".to_owned(),
            read_consistency: ReadConsistency::Cached,
            member_timeout: Duration::from_secs(2),
            timeout: Duration::from_secs(6),
            ca: None,
            identity: None,
            login: None,
        }
    }

    /// Sets the prefix of all keys, `/zorb/names` by default. Each naming service must have its own prefix.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the consistency of lookups, [`ReadConsistency::Cached`] by default.
    pub fn read_consistency(mut self, consistency: ReadConsistency) -> Self {
        self.read_consistency = consistency;
        self
    }

    /// Sets the timeout of a request to one member before the next one is queried, two seconds by default.
    pub fn member_timeout(mut self, timeout: Duration) -> Self {
        self.member_timeout = timeout;
        self
    }

    /// Sets the timeout after which etcd counts as unavailable if no member answers, six seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // The limit prevents an overflow when the timeout is added to the current time.
        self.timeout = timeout.min(Duration::from_secs(365 * 86_400));
        self
    }

    /// Sets the PEM file with the CA certificates for verifying the members. It is required for `https://`.
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// Sets the PEM files with the client's certificates and key, for clusters that require them.
    pub fn identity(mut self, certificates: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificates.into(), key.into()));
        self
    }

    /// Sets the user and the password, for clusters that require a login.
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Some((user.into(), password.into()));
        self
    }
}

/// Does not show the password.
impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.login.as_ref().map(|(user, _)| user);
        let mut out = f.debug_struct("EtcdConfig");
        out.field("endpoints", &self.endpoints).field("prefix", &self.prefix).field("user", &user);
        out.finish_non_exhaustive()
    }
}

struct Shared {
    cluster: Cluster,
    keys: Keys,
    cache: Cache,
    read_consistency: ReadConsistency,
    member_timeout: Duration,
    timeout: Duration,
    /// The revision of etcd up to which the cache has all changes.
    applied_revision: watch::Sender<i64>,
    /// The time since when etcd has not answered.
    unavailable_since: Mutex<Option<Instant>>,
    /// Notified when the watch is too slow and must be restarted at another member.
    restart_watch: Notify,
    /// The number of the last successful [`barrier`](Self::barrier). Locked while a barrier runs.
    last_finished_barrier: tokio::sync::Mutex<u64>,
    started_barriers: AtomicU64,
    /// The context numbers that are reserved for this server and have not been used yet.
    reserved_ids: tokio::sync::Mutex<Range<u64>>,
    /// A random number that distinguishes the changes of this server from those of others.
    server_id: u64,
    next_change: AtomicU64,
}

impl EtcdStore {
    /// Reads all names below the prefix, and follows their changes. Creates the root context if it is
    /// missing.
    ///
    /// # Errors
    /// [`ConnectError`]. After this function has succeeded, the store recovers from every outage of the
    /// cluster.
    pub async fn connect(config: EtcdConfig) -> Result<Self, ConnectError> {
        let shared = Arc::new(Shared::new(&config)?);
        shared.initialize().await?;
        let follow = tokio::spawn(follow::follow(Arc::clone(&shared)));
        let probe = tokio::spawn(follow::probe(Arc::clone(&shared)));
        Ok(Self { shared, tasks: [follow.abort_handle(), probe.abort_handle()] })
    }
}

impl Shared {
    fn new(config: &EtcdConfig) -> Result<Self, ConnectError> {
        let server_id = RandomState::new().hash_one(std::process::id());
        Ok(Self {
            cluster: Cluster::new(config)?,
            keys: Keys::new(&config.prefix),
            cache: Cache::default(),
            read_consistency: config.read_consistency,
            member_timeout: config.member_timeout,
            timeout: config.timeout,
            applied_revision: watch::Sender::new(0),
            unavailable_since: Mutex::default(),
            restart_watch: Notify::new(),
            last_finished_barrier: tokio::sync::Mutex::default(),
            started_barriers: AtomicU64::new(0),
            reserved_ids: tokio::sync::Mutex::default(),
            server_id,
            next_change: AtomicU64::new(0),
        })
    }

    fn unique_change_id(&self) -> u128 {
        u128::from(self.server_id) << 64 | u128::from(self.next_change.fetch_add(1, Ordering::Relaxed))
    }

    fn unavailable_since(&self) -> Option<Instant> {
        *self.unavailable_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn set_unavailable(&self, error: &Failure) {
        let mut since = self.unavailable_since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_none() {
            *since = Some(Instant::now());
            metrics::gauge!("zorb_names_store_away").set(1.0);
            tracing::warn!(%error, "etcd does not answer: names are read from memory and cannot be changed");
        }
    }

    fn set_available(&self) {
        let mut unavailable_since = self.unavailable_since.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = unavailable_since.take() {
            metrics::gauge!("zorb_names_store_away").set(0.0);
            tracing::info!(seconds = since.elapsed().as_secs(), "etcd answers again");
        }
    }

    /// Waits until the cache has the contents of etcd. Fails only with [`ReadConsistency::Latest`].
    async fn catch_up(&self) -> Result<(), StoreError> {
        let failure = match self.unavailable_since() {
            Some(_) => Failure::NotSent("no majority of the members of etcd answers".to_owned()),
            None => match self.barrier().await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            },
        };
        match self.read_consistency {
            ReadConsistency::Cached => Ok(()),
            ReadConsistency::Latest => Err(unavailable(&failure, CompletionStatus::No)),
        }
    }
}

#[cold]
fn unavailable(failure: &Failure, completion: CompletionStatus) -> StoreError {
    StoreError::Unavailable { reason: failure.to_string().into(), completion }
}

impl Store for EtcdStore {
    async fn lookup(&self, context: ContextId, key: &Key) -> Result<Lookup, StoreError> {
        // A name that is missing or damaged in the cache may be valid in etcd.
        if self.shared.read_consistency == ReadConsistency::Cached
            && let Ok(found @ Lookup::Bound(_)) = self.shared.cache.lookup(context, key)
        {
            return Ok(found);
        }
        self.shared.catch_up().await?;
        self.shared.cache.lookup(context, key)
    }

    async fn has_context(&self, context: ContextId) -> Result<bool, StoreError> {
        if self.shared.read_consistency == ReadConsistency::Cached && self.shared.cache.has_context(context) {
            return Ok(true);
        }
        self.shared.catch_up().await?;
        Ok(self.shared.cache.has_context(context))
    }

    async fn page(
        &self,
        context: ContextId,
        after: Option<&Key>,
        limit: PageLimit,
    ) -> Result<Option<Page>, StoreError> {
        // Query etcd in both modes, because a page must contain every name that exists.
        self.shared.catch_up().await?;
        Ok(self.shared.cache.page(context, after, limit))
    }

    async fn change(&self, change: Change) -> Result<Option<ContextId>, ChangeError> {
        self.shared.change(change).await
    }

    fn state(&self) -> StoreState {
        StoreState { unavailable_for: self.shared.unavailable_since().map(|since| since.elapsed()) }
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

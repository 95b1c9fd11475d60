//! The store in an etcd cluster: several servers of one service, none of which keeps anything.

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

/// Keeps contexts and bindings in an etcd cluster (3.4 or later), for several servers of one service: each serves all names, and any of
/// them may go.
///
/// A change is a transaction of etcd: of two servers that bind one name, one succeeds. It is acknowledged when a majority of the members has
/// it on disk and this server reads it itself. Lookups are answered from memory, which follows etcd by a watch; what is not there is
/// looked for in etcd before a client is told so ([`Reads`]). Where one member does not answer the next one is asked.
///
/// While no majority answers, lookups are answered from memory, [`state`](Store::state) says so, and changes are [`StoreError::Away`].
///
/// It works in tasks of the runtime in which it was made. Dropping it ends them.
pub struct EtcdStore {
    shared: Arc<Shared>,
    tasks: [AbortHandle; 2],
}

/// How names in etcd are reached.
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

/// What lookups wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reads {
    /// For nothing, where the name is known here. That it is not, etcd has to say: what was acknowledged anywhere is found everywhere.
    /// A name that was unbound or bound to something else meanwhile may for a moment give the old object.
    #[default]
    Cached,
    /// For etcd, always: what was acknowledged anywhere is seen everywhere. While etcd is away lookups fail.
    Latest,
}

/// Why names in etcd can not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// What is asked for makes no sense.
    #[error("names can not be kept in etcd: {0}")]
    Config(String),
    /// No member of the cluster does what it is asked.
    #[error("etcd does not answer: {}", OneLine::new(.0))]
    Away(String),
    /// What is there is of another version of the service, or of something else.
    #[error(
        "what etcd has below {prefix} has format {}; this naming service knows format {FORMAT}",
        Printable::new(found)
    )]
    Format {
        /// Where it is.
        prefix: String,
        /// What it says.
        found: String,
    },
}

/// Another one for anything that this code would read wrongly.
const FORMAT: &str = "1";

impl EtcdConfig {
    /// Of a cluster by the client URLs of its members: `http://HOST:PORT` or `https://HOST:PORT`, port 2379 by default.
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

    /// What all keys begin with, `/zorb/names` by default. Services of different prefixes have nothing in common.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// What lookups wait for, [`Reads::Cached`] by default.
    pub fn reads(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// How long one member may take, two seconds by default: then the next one is asked.
    pub fn member_timeout(mut self, timeout: Duration) -> Self {
        self.patience = timeout;
        self
    }

    /// How long all of them may take, six seconds by default: then etcd is away.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // Longer than anybody waits, and no more than can be added to the time of day.
        self.timeout = timeout.min(Duration::from_secs(365 * 86_400));
        self
    }

    /// The certificates, in a PEM file, of those who vouch for the members: needed for `https://`.
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// The certificates and the key of this side, in PEM files: for clusters that ask clients for theirs.
    pub fn identity(mut self, certificates: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((certificates.into(), key.into()));
        self
    }

    /// Who logs in, for clusters that have users.
    pub fn login(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Some((user.into(), password.into()));
        self
    }
}

/// Without the password.
impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.login.as_ref().map(|(user, _)| user);
        let mut out = f.debug_struct("EtcdConfig");
        out.field("endpoints", &self.endpoints).field("prefix", &self.prefix).field("user", &user);
        out.finish_non_exhaustive()
    }
}

/// What the store shares with its tasks.
struct Shared {
    cluster: Cluster,
    keys: Keys,
    cache: Cache,
    reads: Reads,
    patience: Duration,
    timeout: Duration,
    /// Up to which revision the cache has what happened.
    applied: watch::Sender<i64>,
    /// Since when nobody answers.
    away: Mutex<Option<Instant>>,
    /// The watch lags behind: another member may be faster.
    restart: Notify,
    /// How many barriers are through; held while one is asked for.
    barrier: tokio::sync::Mutex<u64>,
    /// How many have begun.
    barriers: AtomicU64,
    /// Numbers for contexts, which this server alone has.
    ids: tokio::sync::Mutex<Range<u64>>,
    /// Tells the changes of this server from those of others, with a number.
    seed: u64,
    marks: AtomicU64,
}

impl EtcdStore {
    /// Reads all names below the prefix, and follows them from then on.
    ///
    /// # Errors
    /// [`ConnectError::Away`]: no majority of the cluster answers in time. One that goes away later is waited for.
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

    /// A number that no other change has.
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

    /// Waits for the cache to have what etcd has, unless that is away: then, if only the latest will do, it is an error.
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
        // What is missing or damaged here may be mended there.
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
        // What is not listed is said not to be there.
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

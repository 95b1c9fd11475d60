//! The pool of outgoing connections. Calls with the same tokio runtime, address, GIOP version and code sets
//! share one connection, except calls with streams, which use exclusive connections.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared as SharedFuture};
use giop_codec::exception::SystemException;

use crate::client::bidirectional::Bidirectional;
use crate::client::dial;
use crate::client::dialer::{ConnectionUse, DialResult, Dialer, unreachable};
use crate::connection::SharedConnection;
use crate::connection::exclusive::{ConnectionEndGuard, ConnectionTarget, IdleConnections, Lease, PoolKey};
use crate::errors::{no_runtime, orb_shut_down};
use crate::runtime::Shared;
use crate::transport::threads::IoThread;

type Dialing = SharedFuture<BoxFuture<'static, DialResult>>;

/// A connection that is open or being opened. All callers that wait for it poll the shared future. Therefore,
/// a caller that stops polling, for example one with a deferred call, cannot stall the others.
#[derive(Default)]
struct PoolEntry {
    link: OnceLock<Arc<SharedConnection>>,
    dialing: OnceLock<Dialing>,
}

impl PoolEntry {
    fn dialing(self: &Arc<Self>, key: &PoolKey, dialer: &Dialer<'_>) -> Dialing {
        let (orb, thread, deadline) = (Arc::clone(dialer.orb), dialer.thread.cloned(), dialer.deadline);
        let guard =
            PoolEntryGuard { core: Arc::downgrade(&orb), key: key.clone(), entry: Arc::downgrade(self) };
        let (target, entry) = (key.target.clone(), Arc::downgrade(self));
        async move {
            let dialer = Dialer { orb: &orb, thread: thread.as_ref(), deadline };
            let link = dialer.open(&target, guard, ConnectionUse::Shared).await?;
            if let Some(entry) = entry.upgrade() {
                let _ = entry.link.set(Arc::clone(&link));
            }
            Ok(link)
        }
        .boxed()
        .shared()
    }
}

impl fmt::Debug for PoolEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolEntry").field("is_open", &self.link.get().is_some()).finish_non_exhaustive()
    }
}

/// Removes the entry of a shared connection when its driver ends.
struct PoolEntryGuard {
    core: Weak<Shared>,
    key: PoolKey,
    entry: Weak<PoolEntry>,
}

impl Drop for PoolEntryGuard {
    fn drop(&mut self) {
        // While the connection is being opened, the entry must stay for other callers that wait for it.
        if let (Some(core), Some(entry)) = (self.core.upgrade(), self.entry.upgrade())
            && entry.link.get().is_some()
        {
            core.connection_pool().remove(&self.key, &entry);
        }
    }
}

/// A caller that waits for a connection. If the last such caller gives up before the connection is open, the
/// entry is removed.
struct DialGuard<'a> {
    pool: &'a ConnectionPool,
    key: &'a PoolKey,
    entry: Option<Arc<PoolEntry>>,
}

impl Drop for DialGuard<'_> {
    fn drop(&mut self) {
        let mut entries = self.pool.lock();
        let Some(entry) = self.entry.take() else { return };
        // If no other caller waits, only the map and this guard have references, which the lock protects.
        let is_current = || entries.get(self.key).is_some_and(|current| Arc::ptr_eq(current, &entry));
        if entry.link.get().is_none() && Arc::strong_count(&entry) == 2 && is_current() {
            entries.remove(self.key);
        }
        drop(entry);
        drop(entries);
    }
}

#[derive(Debug, Default)]
pub(crate) struct ConnectionPool {
    entries: Mutex<HashMap<PoolKey, Arc<PoolEntry>>>,
    pub(crate) exclusive: Arc<IdleConnections>,
    pub(crate) bidirectional: Bidirectional,
}

impl Shared {
    pub(crate) fn connection_pool(&self) -> &ConnectionPool {
        self.extensions.client.get_or_default()
    }

    /// Returns a usable connection to the target: an open one or a new one. Concurrent callers share it.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        target: &ConnectionTarget,
        deadline: Option<Instant>,
    ) -> Result<Arc<SharedConnection>, SystemException> {
        let (key, thread) = self.pool_key(target)?;
        loop {
            if self.refuses_calls() {
                return Err(orb_shut_down());
            }
            // Declared before `entry`, so that the guard is dropped after it and does not count it.
            let mut guard = DialGuard { pool: self.connection_pool(), key: &key, entry: None };
            let entry = Arc::clone(self.connection_pool().lock().entry(key.clone()).or_default());
            guard.entry = Some(Arc::clone(&entry));
            let outcome = match entry.link.get() {
                Some(link) => Ok(Arc::clone(link)),
                None => {
                    let dialer = Dialer { orb: self, thread, deadline };
                    let dialing = entry.dialing.get_or_init(|| entry.dialing(&key, &dialer));
                    // If the deadline of this caller expires, the other callers still poll the shared future.
                    dialer.with_timeout(&target.endpoint, dialing.clone()).await?
                }
            };
            match outcome {
                Ok(link) if link.is_usable() => return Ok(link),
                outcome => {
                    self.connection_pool().remove(&key, &entry);
                    outcome?;
                }
            }
        }
    }

    /// Returns a usable connection to one of several addresses of a server: one that is already open, or else
    /// the first that can be opened (see [`dial`]).
    pub(crate) async fn connect_any(
        self: &Arc<Self>,
        targets: &[ConnectionTarget],
        deadline: Option<Instant>,
    ) -> Result<Arc<SharedConnection>, SystemException> {
        if let [target] = targets {
            return self.connect(target, deadline).await;
        }
        for target in targets {
            let (key, _) = self.pool_key(target)?;
            if let Some(link) = self.connection_pool().find_usable(&key) {
                return Ok(link);
            }
        }
        let delay = dial::attempt_delay(targets.len(), deadline);
        dial::race(targets, delay, |target| self.connect(target, deadline)).await.map_err(combine_errors)
    }

    /// Returns an exclusive connection to one of several addresses of a server: an idle one, or a new one.
    pub(crate) async fn connect_any_exclusive(
        self: &Arc<Self>,
        targets: &[ConnectionTarget],
        deadline: Option<Instant>,
    ) -> Result<Lease, SystemException> {
        for target in targets {
            let (key, _) = self.pool_key(target)?;
            let pool = &self.connection_pool().exclusive;
            if let Some(link) = pool.take(&key) {
                return Ok(Lease::new(pool, key, link));
            }
        }
        let delay = dial::attempt_delay(targets.len(), deadline);
        let dialed = dial::race(targets, delay, |target| async move {
            if self.refuses_calls() {
                return Err(orb_shut_down());
            }
            let (key, thread) = self.pool_key(target)?;
            let pool = &self.connection_pool().exclusive;
            let link = match pool.take(&key) {
                Some(link) => link,
                None => {
                    let guard = ConnectionEndGuard::new(pool, key.clone());
                    Dialer { orb: self, thread, deadline }.open_exclusive(target, guard).await?
                }
            };
            Ok(Lease::new(pool, key, link))
        });
        dialed.await.map_err(combine_errors)
    }

    /// Returns the key of the caller's connections to the target, and their I/O thread, if any.
    pub(crate) fn pool_key(
        &self,
        target: &ConnectionTarget,
    ) -> Result<(PoolKey, Option<&Arc<IoThread>>), SystemException> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| no_runtime())?.id();
        let thread = self.transport.threads().and_then(|threads| threads.thread_for_calls(runtime, target));
        let runtime = thread.map_or(runtime, |thread| thread.runtime().id());
        Ok((PoolKey { runtime, target: target.clone() }, thread))
    }
}

impl ConnectionPool {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PoolKey, Arc<PoolEntry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_usable(&self, key: &PoolKey) -> Option<Arc<SharedConnection>> {
        let entries = self.lock();
        entries.get(key).and_then(|entry| entry.link.get()).filter(|link| link.is_usable()).cloned()
    }

    /// Removes the entry, unless another one has replaced it.
    fn remove(&self, key: &PoolKey, entry: &Arc<PoolEntry>) {
        let mut entries = self.lock();
        if entries.get(key).is_some_and(|current| Arc::ptr_eq(current, entry)) {
            entries.remove(key);
        }
    }
}

/// Combines the errors for all addresses of a server: the last exception, with the texts of all.
fn combine_errors(mut errors: Vec<SystemException>) -> SystemException {
    let Some(last) = errors.pop() else { return unreachable("the server has no address".to_owned()) };
    if errors.is_empty() {
        return last;
    }
    let text = |error: &SystemException| {
        std::error::Error::source(error).map_or_else(|| error.to_string(), |source| source.to_string())
    };
    let before: String = errors.iter().map(|error| text(error) + "; ").collect();
    let text = before + &text(&last);
    SystemException::new(last.kind, last.minor, last.completed).with_reason(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use futures_util::FutureExt;

    use super::*;
    use crate::Orb;
    use crate::endpoint::Endpoint;
    use giop_codec::Version;
    use giop_codec::cdr::CodeSets;
    use giop_codec::exception::{CompletionStatus, SystemExceptionKind};
    use std::time::Duration;
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn connection_attempt_without_waiting_calls_is_removed() {
        let server = FullServer::new("interest");
        let (core, target) = (Orb::builder().core.build_core(Vec::new()), server.target());
        let entries = || core.connection_pool().lock().len();
        let mut one = Box::pin(core.connect(&target, None));
        let mut other = Box::pin(core.connect(&target, None));
        assert!(one.as_mut().now_or_never().is_none() && other.as_mut().now_or_never().is_none());
        assert_eq!(entries(), 1);
        drop(one);
        assert_eq!(entries(), 1, "the other call waits for the connection");
        drop(other);
        assert_eq!(entries(), 0);
    }

    #[tokio::test]
    async fn unpolled_connection_attempt_does_not_stall_other_calls() {
        let mut server = FullServer::new("stalls");
        let (core, target) = (Orb::builder().core.build_core(Vec::new()), server.target());
        let mut unpolled = Box::pin(core.connect(&target, None));
        assert!(unpolled.as_mut().now_or_never().is_none());
        // The deadline of a call applies although another call began the connection.
        let soon = Instant::now() + Duration::from_millis(20);
        let error = core.connect(&target, Some(soon)).await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::No));
        server.accept_all();
        let link = core.connect(&target, None).await.unwrap();
        assert!(Arc::ptr_eq(&unpolled.await.unwrap(), &link), "both calls have the same connection");
    }

    #[tokio::test]
    async fn connection_that_opens_during_the_shutdown_is_closed() {
        let mut server = FullServer::new("ends");
        let (core, target) = (Orb::builder().core.build_core(Vec::new()), server.target());
        let mut late = Box::pin(core.connect(&target, None));
        assert!(late.as_mut().now_or_never().is_none());
        Orb::from_core(&core).shutdown().await;
        server.accept_all();
        let error = late.await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
        let ended = tokio::time::timeout(Duration::from_secs(20), core.tasks.other.wait()).await;
        assert!(ended.is_ok(), "the task of the connection still runs");
        assert_eq!(core.connections.lock().len(), 0);
    }

    #[tokio::test]
    async fn connection_that_opens_after_the_last_orb_was_dropped_is_closed() {
        let mut server = FullServer::new("dropped");
        let (core, target) = (Orb::builder().core.build_core(Vec::new()), server.target());
        let orb = Arc::clone(&core).into_orb();
        let mut late = Box::pin(core.connect(&target, None));
        assert!(late.as_mut().now_or_never().is_none());
        drop(orb);
        server.accept_all();
        let error = late.await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
        core.tasks.other.close();
        let ended = tokio::time::timeout(Duration::from_secs(20), core.tasks.other.wait()).await;
        assert!(ended.is_ok(), "the task of the connection still runs");
    }

    /// A server whose backlog of connections is full.
    struct FullServer {
        directory: std::path::PathBuf,
        listener: UnixListener,
        backlog: Vec<TcpStream>,
    }

    impl FullServer {
        fn new(name: &str) -> FullServer {
            let directory = std::env::temp_dir().join(format!("zorb-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&directory).unwrap();
            let path = directory.join("socket");
            let listener = UnixListener::bind(&path).unwrap();
            rustix::net::listen(&listener, 0).unwrap();
            // Further connections have to wait until the server accepts.
            let mut backlog = Vec::new();
            while let Some(stream) = crate::transport::unix::connect(&path, None).now_or_never() {
                backlog.push(stream.unwrap());
                assert!(backlog.len() < 64);
            }
            FullServer { directory, listener, backlog }
        }

        fn target(&self) -> ConnectionTarget {
            ConnectionTarget {
                endpoint: Endpoint::Unix { path: self.directory.join("socket").to_str().unwrap().to_owned() },
                version: Version::V1_2,
                code_sets: CodeSets::default_for(Version::V1_2),
            }
        }

        /// Accepts the connections of the backlog, so that another one can be opened.
        fn accept_all(&mut self) {
            for _ in 0..self.backlog.len() {
                self.listener.accept().unwrap();
            }
        }
    }

    impl Drop for FullServer {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

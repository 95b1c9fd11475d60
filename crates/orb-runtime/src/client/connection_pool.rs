//! Outgoing connections. Calls share one for each runtime that drives them, address, version and pair of code
//! sets. Some calls have one of their own.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::Shared as SharedFuture;
use giop_codec::exception::SystemException;

use crate::client::bidirectional::Bidirectional;
use crate::client::dial;
use crate::client::dialer::{Dialer, Made, transient};
use crate::connection::SharedConnection;
use crate::connection::exclusive::{IdleConnections, Key, Target};
use crate::errors::{closed, no_runtime};
use crate::runtime::Shared;
use crate::transport::threads::IoThread;

type Dialing = SharedFuture<Pin<Box<dyn Future<Output = Made> + Send>>>;

/// A connection that is open or being opened.
///
/// Every caller that waits for it polls the shared future. Therefore a caller that stops polling, such as one
/// that holds a deferred call, cannot stall the others.
#[derive(Default)]
struct PoolEntry {
    link: OnceLock<Arc<SharedConnection>>,
    dialing: OnceLock<Dialing>,
}

impl PoolEntry {
    /// Returns the shared future that opens the connection.
    fn dialing(self: &Arc<Self>, key: &Key, dialer: &Dialer<'_>) -> Dialing {
        let (orb, thread, deadline) = (Arc::clone(dialer.orb), dialer.thread.cloned(), dialer.deadline);
        let entered =
            PoolEntryGuard { core: Arc::downgrade(&orb), key: key.clone(), cell: Arc::downgrade(self) };
        let (target, cell) = (key.1.clone(), Arc::downgrade(self));
        let dialing = async move {
            let dialer = Dialer { orb: &orb, thread: thread.as_ref(), deadline };
            let link = dialer.make(&target, entered, true).await?;
            if let Some(cell) = cell.upgrade() {
                let _ = cell.link.set(Arc::clone(&link));
            }
            Ok(link)
        };
        let dialing: Pin<Box<dyn Future<Output = Made> + Send>> = Box::pin(dialing);
        dialing.shared()
    }
}

impl fmt::Debug for PoolEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("made", &self.link.get().is_some()).finish_non_exhaustive()
    }
}

/// Removes the entry of a shared connection when its driver ends.
struct PoolEntryGuard {
    core: Weak<Shared>,
    key: Key,
    cell: Weak<PoolEntry>,
}

impl Drop for PoolEntryGuard {
    fn drop(&mut self) {
        // If dialling was abandoned, the entry stays for other callers that wait for it.
        if let (Some(core), Some(cell)) = (self.core.upgrade(), self.cell.upgrade())
            && cell.link.get().is_some()
        {
            core.connections().forget(&self.key, &cell);
        }
    }
}

/// A caller's interest in a connection that may not be open yet. The entry is removed if the last interested
/// caller gives up before the connection is open.
struct DialGuard<'a> {
    connections: &'a Connections,
    key: &'a Key,
    cell: Option<Arc<PoolEntry>>,
}

impl Drop for DialGuard<'_> {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        let Some(cell) = self.cell.take() else { return };
        // The remaining references are that of the entry and this one. Both change under the lock only.
        let is_entered = || open.get(self.key).is_some_and(|entered| Arc::ptr_eq(entered, &cell));
        if cell.link.get().is_none() && Arc::strong_count(&cell) == 2 && is_entered() {
            open.remove(self.key);
        }
        drop(cell);
        drop(open);
    }
}

/// The connections of an ORB that calls use.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<HashMap<Key, Arc<PoolEntry>>>,
    pub(crate) exclusive: Arc<IdleConnections>,
    pub(crate) bidirectional: Bidirectional,
}

impl Shared {
    /// Returns the connections to servers.
    pub(crate) fn connections(&self) -> &Connections {
        self.extensions.client.get_or_default()
    }

    /// Returns a usable connection to the target: an open one or a new one. Concurrent callers share it.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        target: &Target,
        deadline: Option<Instant>,
    ) -> Result<Arc<SharedConnection>, SystemException> {
        let (key, thread) = self.place(target)?;
        loop {
            if self.refuses_calls() {
                return Err(closed());
            }
            // Declared before the other clone of the cell, so that it is dropped last and its count is right.
            let mut interest = DialGuard { connections: self.connections(), key: &key, cell: None };
            let cell = Arc::clone(self.connections().lock().entry(key.clone()).or_default());
            interest.cell = Some(Arc::clone(&cell));
            let made = match cell.link.get() {
                Some(link) => Ok(Arc::clone(link)),
                None => {
                    let dialer = Dialer { orb: self, thread, deadline };
                    let dialing = cell.dialing.get_or_init(|| cell.dialing(&key, &dialer));
                    // A caller whose deadline expires leaves the dialling to the other callers.
                    dialer.in_time(&target.endpoint, dialing.clone()).await?
                }
            };
            match made {
                Ok(link) if link.is_usable() => return Ok(link),
                Ok(_) => self.connections().forget(&key, &cell),
                Err(error) => {
                    self.connections().forget(&key, &cell);
                    return Err(error);
                }
            }
        }
    }

    /// Returns a usable connection to one of several addresses of a server: an open one if there is any,
    /// otherwise the first that answers, see [`dial`].
    pub(crate) async fn connect_any(
        self: &Arc<Self>,
        targets: &[Target],
        deadline: Option<Instant>,
    ) -> Result<Arc<SharedConnection>, SystemException> {
        if let [target] = targets {
            return self.connect(target, deadline).await;
        }
        for target in targets {
            let (key, _) = self.place(target)?;
            if let Some(link) = self.connections().usable(&key) {
                return Ok(link);
            }
        }
        let delay = dial::delay(targets.len(), deadline);
        dial::race(targets, delay, |target| self.connect(target, deadline)).await.map_err(none_of)
    }

    /// Returns the key of the runtime that drives a connection for the caller, and its I/O thread if it has
    /// one. Callers with the same key share the connection.
    pub(crate) fn place(&self, target: &Target) -> Result<(Key, Option<&Arc<IoThread>>), SystemException> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| no_runtime())?.id();
        let thread = self.sockets.threads().and_then(|threads| threads.for_calls(runtime, target));
        let runtime = thread.map_or(runtime, |thread| thread.runtime().id());
        Ok(((runtime, target.clone()), thread))
    }
}

impl Connections {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<PoolEntry>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection if it is open and usable.
    fn usable(&self, key: &Key) -> Option<Arc<SharedConnection>> {
        let open = self.lock();
        open.get(key).and_then(|cell| cell.link.get()).filter(|link| link.is_usable()).cloned()
    }

    fn forget(&self, key: &Key, cell: &Arc<PoolEntry>) {
        let mut open = self.lock();
        if open.get(key).is_some_and(|current| Arc::ptr_eq(current, cell)) {
            open.remove(key);
        }
    }
}

/// Combines the errors of all addresses of a server: the last exception with the texts of all.
pub(crate) fn none_of(mut errors: Vec<SystemException>) -> SystemException {
    let Some(last) = errors.pop() else { return transient("the server has no address".to_owned()) };
    if errors.is_empty() {
        return last;
    }
    let text = |error: &SystemException| match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
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
        let crowd = Crowd::new("interest");
        let (core, target) = (Orb::builder().parts.core(Vec::new()), crowd.target());
        let entries = || core.connections().lock().len();
        let mut one = Box::pin(core.connect(&target, None));
        let mut other = Box::pin(core.connect(&target, None));
        assert!(one.as_mut().now_or_never().is_none() && other.as_mut().now_or_never().is_none());
        assert_eq!(entries(), 1);
        drop(one);
        assert_eq!(entries(), 1, "the other waits for it");
        drop(other);
        assert_eq!(entries(), 0);
    }

    #[tokio::test]
    async fn unpolled_connection_attempt_does_not_stall_other_calls() {
        let mut crowd = Crowd::new("stalls");
        let (core, target) = (Orb::builder().parts.core(Vec::new()), crowd.target());
        let mut held = Box::pin(core.connect(&target, None));
        assert!(held.as_mut().now_or_never().is_none());
        // Its deadline fires although another caller began the connection.
        let soon = Instant::now() + Duration::from_millis(20);
        let error = core.connect(&target, Some(soon)).await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::Timeout, CompletionStatus::No));
        crowd.let_in();
        let link = core.connect(&target, None).await.unwrap();
        assert!(Arc::ptr_eq(&held.await.unwrap(), &link), "both have the same one");
    }

    #[tokio::test]
    async fn a_connection_that_is_made_while_the_orb_ends_is_closed() {
        let mut crowd = Crowd::new("ends");
        let (core, target) = (Orb::builder().parts.core(Vec::new()), crowd.target());
        let mut late = Box::pin(core.connect(&target, None));
        assert!(late.as_mut().now_or_never().is_none());
        Orb::from_core(&core).shutdown().await;
        crowd.let_in();
        let error = late.await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
        let ended = tokio::time::timeout(Duration::from_secs(20), core.tasks.other.wait()).await;
        assert!(ended.is_ok(), "its task goes on");
        assert_eq!(core.links.lock().len(), 0);
    }

    #[tokio::test]
    async fn a_connection_that_is_made_when_the_last_orb_was_dropped_is_closed() {
        let mut crowd = Crowd::new("dropped");
        let (core, target) = (Orb::builder().parts.core(Vec::new()), crowd.target());
        let orb = Arc::clone(&core).open();
        let mut late = Box::pin(core.connect(&target, None));
        assert!(late.as_mut().now_or_never().is_none());
        drop(orb);
        crowd.let_in();
        let error = late.await.unwrap_err();
        assert_eq!((error.kind, error.completed), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
        core.tasks.other.close();
        let ended = tokio::time::timeout(Duration::from_secs(20), core.tasks.other.wait()).await;
        assert!(ended.is_ok(), "its task goes on");
    }

    /// A server whose backlog is full.
    struct Crowd {
        directory: std::path::PathBuf,
        listener: UnixListener,
        inside: Vec<TcpStream>,
    }

    impl Crowd {
        fn new(name: &str) -> Crowd {
            let directory = std::env::temp_dir().join(format!("zorb-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&directory).unwrap();
            let path = directory.join("socket");
            let listener = UnixListener::bind(&path).unwrap();
            rustix::net::listen(&listener, 0).unwrap();
            // Fill the backlog, so that further connections have to wait.
            let mut inside = Vec::new();
            while let Some(stream) = crate::transport::unix::connect(&path, None).now_or_never() {
                inside.push(stream.unwrap());
                assert!(inside.len() < 64);
            }
            Crowd { directory, listener, inside }
        }

        fn target(&self) -> Target {
            Target {
                endpoint: Endpoint::Unix { path: self.directory.join("socket").to_str().unwrap().to_owned() },
                version: Version::V1_2,
                code_sets: CodeSets::default_for(Version::V1_2),
            }
        }

        /// Accepts those in the backlog, so that another connection can be made.
        fn let_in(&mut self) {
            for _ in 0..self.inside.len() {
                self.listener.accept().unwrap();
            }
        }
    }

    impl Drop for Crowd {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

//! Connections that carry one call at a time, for streamed arguments and results: in use and idle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use giop_codec::Version;
use giop_codec::cdr::CodeSets;
use giop_proto::CloseReason;

use crate::connection::SharedConnection;
use crate::endpoint::Endpoint;

/// The endpoint to connect to, and what is negotiated with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    pub(crate) version: Version,
    pub(crate) code_sets: CodeSets,
}

/// A connection that calls may share: the runtime that drives it, and its target.
pub(crate) type Key = (tokio::runtime::Id, Target);
/// Idle connections that are kept for each address.
const KEPT: usize = 4;

/// The idle connections that carry one call at a time, by target.
#[derive(Debug, Default)]
pub(crate) struct IdleConnections {
    idle: Mutex<HashMap<Key, Vec<Arc<SharedConnection>>>>,
}

/// A connection that carries one call. Dropping the lease returns it to the idle connections, or closes it if
/// the request or the result is not complete.
#[derive(Debug)]
pub(crate) struct Lease {
    home: Weak<IdleConnections>,
    key: Key,
    link: Arc<SharedConnection>,
    /// The reply, of any length, is pending.
    awaits_result: bool,
}

/// Removes an ended connection from the idle ones when its driver ends.
pub(crate) struct Ended {
    home: Weak<IdleConnections>,
    key: Key,
}

impl IdleConnections {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<SharedConnection>>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the idle connection that was used last.
    pub(crate) fn take(&self, key: &Key) -> Option<Arc<SharedConnection>> {
        let mut idle = self.lock();
        let links = idle.get_mut(key)?;
        std::iter::from_fn(|| links.pop()).find(|link| link.is_usable())
    }

    /// Keeps the connection, or closes it if there are enough idle ones.
    fn keep(&self, key: &Key, link: &Arc<SharedConnection>) {
        let mut idle = self.lock();
        let links = idle.entry(key.clone()).or_default();
        if links.len() < KEPT {
            links.push(Arc::clone(link));
        } else {
            link.close();
        }
    }

    /// Removes connections that are closed.
    fn forget(&self, key: &Key) {
        let mut idle = self.lock();
        if let Some(links) = idle.get_mut(key) {
            links.retain(|link| link.is_usable());
            if links.is_empty() {
                idle.remove(key);
            }
        }
    }
}

impl Lease {
    /// Wraps a connection that returns to `home` after its call.
    pub(crate) fn new(home: &Arc<IdleConnections>, key: Key, link: Arc<SharedConnection>) -> Self {
        Self { home: Arc::downgrade(home), key, link, awaits_result: false }
    }

    pub(crate) fn link(&self) -> &Arc<SharedConnection> {
        &self.link
    }

    /// Sets whether a reply, of any length, is pending. The next call would have to wait for it, so the
    /// connection is not used again.
    pub(crate) fn set_awaits_result(&mut self, awaits: bool) {
        self.awaits_result = awaits;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.link.owes() > 0 || self.link.has_stream() {
            self.link.abort(CloseReason::Local);
        } else if self.awaits_result {
            self.link.close();
        } else if let Some(home) = self.home.upgrade()
            && self.link.is_usable()
        {
            home.keep(&self.key, &self.link);
            if !self.link.is_usable() {
                // It ended in the meantime. Its `Ended` ran before it was kept, so it must be removed here.
                home.forget(&self.key);
            }
        }
    }
}

impl Ended {
    pub(crate) fn new(home: &Arc<IdleConnections>, key: Key) -> Self {
        Self { home: Arc::downgrade(home), key }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.forget(&self.key);
        }
    }
}

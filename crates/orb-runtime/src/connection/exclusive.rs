//! Connections that carry one call at a time, for streamed arguments and results.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use giop_codec::Version;
use giop_codec::cdr::CodeSets;
use giop_proto::CloseReason;

use crate::connection::SharedConnection;
use crate::endpoint::Endpoint;

/// The endpoint to connect to, with the GIOP version and code sets of the calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    pub(crate) version: Version,
    pub(crate) code_sets: CodeSets,
}

/// The key of a connection: the runtime that drives it, and its target.
pub(crate) type Key = (tokio::runtime::Id, Target);

/// The maximum number of idle connections for each key.
const MAX_IDLE: usize = 4;

/// The idle exclusive connections.
#[derive(Debug, Default)]
pub(crate) struct IdleConnections {
    idle: Mutex<HashMap<Key, Vec<Arc<SharedConnection>>>>,
}

/// A connection that is in use by one call. Dropping the lease returns the connection to the idle ones, or
/// closes it if the request or the result is incomplete.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Weak<IdleConnections>,
    key: Key,
    link: Arc<SharedConnection>,
    /// Whether a streamed reply is expected and has not begun.
    awaits_result: bool,
}

/// Removes an ended connection from the idle ones. The driver of the connection drops it.
pub(crate) struct EndGuard {
    pool: Weak<IdleConnections>,
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

    /// Inserts the connection, or closes it if there are enough idle ones.
    fn insert(&self, key: &Key, link: &Arc<SharedConnection>) {
        let mut idle = self.lock();
        let links = idle.entry(key.clone()).or_default();
        if links.len() < MAX_IDLE {
            links.push(Arc::clone(link));
        } else {
            link.close();
        }
    }

    /// Removes the closed connections of the key.
    fn remove_closed(&self, key: &Key) {
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
    /// Wraps a connection that returns to `pool` after its call.
    pub(crate) fn new(pool: &Arc<IdleConnections>, key: Key, link: Arc<SharedConnection>) -> Self {
        Self { pool: Arc::downgrade(pool), key, link, awaits_result: false }
    }

    pub(crate) fn link(&self) -> &Arc<SharedConnection> {
        &self.link
    }

    /// Sets whether a streamed reply is expected and has not begun. If the lease is dropped in this state,
    /// the connection is closed, because the next call would have to wait for that reply, which may be long.
    pub(crate) fn set_awaits_result(&mut self, awaits: bool) {
        self.awaits_result = awaits;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.link.unsent_payload_bytes() > 0 || self.link.has_stream() {
            self.link.abort(CloseReason::Local);
        } else if self.awaits_result {
            self.link.close();
        } else if let Some(pool) = self.pool.upgrade()
            && self.link.is_usable()
        {
            pool.insert(&self.key, &self.link);
            if !self.link.is_usable() {
                // The connection has ended in the meantime. Its `EndGuard` may have been dropped before the
                // insertion, so the connection must be removed here.
                pool.remove_closed(&self.key);
            }
        }
    }
}

impl EndGuard {
    pub(crate) fn new(pool: &Arc<IdleConnections>, key: Key) -> Self {
        Self { pool: Arc::downgrade(pool), key }
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.remove_closed(&self.key);
        }
    }
}

//! Exclusive connections, which carry one call at a time, for streamed arguments and results.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use giop_codec::Version;
use giop_codec::cdr::CodeSets;
use giop_proto::CloseReason;

use crate::connection::SharedConnection;
use crate::endpoint::Endpoint;
use crate::lock::lock;

/// The address to which a connection is opened, with the GIOP version and the code sets of its messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionTarget {
    pub(crate) endpoint: Endpoint,
    pub(crate) version: Version,
    pub(crate) code_sets: CodeSets,
}

/// Determines which calls may share a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey {
    /// The runtime that drives the connection.
    pub(crate) runtime: tokio::runtime::Id,
    pub(crate) target: ConnectionTarget,
}

const MAX_IDLE_PER_KEY: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct IdleConnections {
    idle: Mutex<HashMap<PoolKey, Vec<Arc<SharedConnection>>>>,
}

/// An exclusive connection in use by a call. On drop, it becomes idle, unless a message is incomplete.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Weak<IdleConnections>,
    key: PoolKey,
    link: Arc<SharedConnection>,
    awaits_result: bool,
}

/// Removes a connection from the idle ones on drop, after the connection has ended.
pub(crate) struct ConnectionEndGuard {
    pool: Weak<IdleConnections>,
    key: PoolKey,
}

impl IdleConnections {
    /// Takes the idle connection that was used last.
    pub(crate) fn take(&self, key: &PoolKey) -> Option<Arc<SharedConnection>> {
        let mut idle = lock(&self.idle);
        let links = idle.get_mut(key)?;
        std::iter::from_fn(|| links.pop()).find(|link| link.is_usable())
    }

    /// Inserts the connection, or closes it if there are [`MAX_IDLE_PER_KEY`] already.
    fn insert(&self, key: &PoolKey, link: &Arc<SharedConnection>) {
        let mut idle = lock(&self.idle);
        let links = idle.entry(key.clone()).or_default();
        if links.len() < MAX_IDLE_PER_KEY {
            links.push(Arc::clone(link));
        } else {
            link.close();
        }
    }

    fn remove_closed(&self, key: &PoolKey) {
        let mut idle = lock(&self.idle);
        if let Some(links) = idle.get_mut(key) {
            links.retain(|link| link.is_usable());
            if links.is_empty() {
                idle.remove(key);
            }
        }
    }
}

impl Lease {
    pub(crate) fn new(pool: &Arc<IdleConnections>, key: PoolKey, link: Arc<SharedConnection>) -> Self {
        Self { pool: Arc::downgrade(pool), key, link, awaits_result: false }
    }

    pub(crate) fn link(&self) -> &Arc<SharedConnection> {
        &self.link
    }

    /// Sets whether a streamed reply is expected, for which the next call would have to wait.
    pub(crate) fn set_awaits_result(&mut self, awaits: bool) {
        self.awaits_result = awaits;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.link.unsent_payload_bytes() > 0 || self.link.lock().machine.input().has_stream() {
            self.link.abort(CloseReason::Local);
        } else if self.awaits_result {
            self.link.close();
        } else if let Some(pool) = self.pool.upgrade()
            && self.link.is_usable()
        {
            pool.insert(&self.key, &self.link);
            if !self.link.is_usable() {
                // The connection has ended in the meantime. Its guard may have been dropped before the
                // insertion, so the connection must be removed here.
                pool.remove_closed(&self.key);
            }
        }
    }
}

impl ConnectionEndGuard {
    pub(crate) fn new(pool: &Arc<IdleConnections>, key: PoolKey) -> Self {
        Self { pool: Arc::downgrade(pool), key }
    }
}

impl Drop for ConnectionEndGuard {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.remove_closed(&self.key);
        }
    }
}

//! Outgoing connections that carry one call at a time: calls with a streamed argument or a streamed result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use giop_codec::exception::SystemException;
use giop_proto::CloseReason;

use super::connections::{Key, none_of};
use super::{OrbCore, Target, closed, dial};
use crate::link::Link;

/// Idle connections that are kept for each address.
const KEPT: usize = 4;

/// The idle connections that carry one call at a time, by target.
#[derive(Debug, Default)]
pub(super) struct Alone {
    idle: Mutex<HashMap<Key, Vec<Arc<Link>>>>,
}

/// A connection that carries one call. Dropping the lease returns it to the idle connections, or closes it if
/// the request or the result is not complete.
#[derive(Debug)]
pub(crate) struct Lease {
    core: Weak<OrbCore>,
    key: Key,
    link: Arc<Link>,
    /// The reply, of any length, is pending.
    awaits_result: bool,
}

/// Removes an ended connection from the idle ones when its driver ends.
struct Ended {
    core: Weak<OrbCore>,
    key: Key,
}

impl OrbCore {
    /// Returns a connection to the target that no other call uses: an idle or a new one.
    async fn connect_alone(
        self: &Arc<Self>,
        target: &Target,
        deadline: Option<Instant>,
    ) -> Result<Lease, SystemException> {
        if self.refuses_calls() {
            return Err(closed());
        }
        let (key, thread) = self.place(target)?;
        let core = Arc::downgrade(self);
        let link = match self.connections.alone.take(&key) {
            Some(link) => link,
            None => {
                let ended = Ended { core: Weak::clone(&core), key: key.clone() };
                self.dial(target, thread, ended, false, deadline).await?
            }
        };
        Ok(Lease { core, key, link, awaits_result: false })
    }

    /// Returns a connection that no other call uses to one of several addresses of a server: the first one
    /// that answers.
    pub(crate) async fn connect_any_alone(
        self: &Arc<Self>,
        targets: &[Target],
        deadline: Option<Instant>,
    ) -> Result<Lease, SystemException> {
        for target in targets {
            let (key, _) = self.place(target)?;
            if let Some(link) = self.connections.alone.take(&key) {
                return Ok(Lease { core: Arc::downgrade(self), key, link, awaits_result: false });
            }
        }
        let delay = dial::delay(targets.len(), deadline);
        dial::race(targets, delay, |target| self.connect_alone(target, deadline)).await.map_err(none_of)
    }
}

impl Alone {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<Link>>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the idle connection that was used last.
    fn take(&self, key: &Key) -> Option<Arc<Link>> {
        let mut idle = self.lock();
        let links = idle.get_mut(key)?;
        std::iter::from_fn(|| links.pop()).find(|link| link.is_usable())
    }

    /// Keeps the connection, or closes it if there are enough idle ones.
    fn keep(&self, key: &Key, link: &Arc<Link>) {
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
    pub(crate) fn link(&self) -> &Arc<Link> {
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
        } else if let Some(core) = self.core.upgrade()
            && self.link.is_usable()
        {
            core.connections.alone.keep(&self.key, &self.link);
            if !self.link.is_usable() {
                // It ended in the meantime. Its `Ended` ran before it was kept, so it must be removed here.
                core.connections.alone.forget(&self.key);
            }
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.connections.alone.forget(&self.key);
        }
    }
}

//! Opening connections that carry one call at a time.

use std::sync::Arc;
use std::time::Instant;

use giop_codec::exception::SystemException;

use crate::client::connection_pool::combine_errors;
use crate::client::dial;
use crate::client::dialer::Dialer;
use crate::connection::exclusive::{EndGuard, Lease, Target};
use crate::errors::orb_shut_down;
use crate::runtime::Shared;

impl Shared {
    /// Returns a connection to the target that no other call uses: an idle or a new one.
    async fn connect_exclusive(
        self: &Arc<Self>,
        target: &Target,
        deadline: Option<Instant>,
    ) -> Result<Lease, SystemException> {
        if self.refuses_calls() {
            return Err(orb_shut_down());
        }
        let (key, thread) = self.pool_key(target)?;
        let pool = &self.connections().exclusive;
        let link = match pool.take(&key) {
            Some(link) => link,
            None => {
                let guard = EndGuard::new(pool, key.clone());
                Dialer { orb: self, thread, deadline }.dial(target, guard).await?
            }
        };
        Ok(Lease::new(pool, key, link))
    }

    /// Returns a connection that no other call uses to one of several addresses of a server: an idle one if
    /// there is any, otherwise the first that can be opened.
    pub(crate) async fn connect_any_exclusive(
        self: &Arc<Self>,
        targets: &[Target],
        deadline: Option<Instant>,
    ) -> Result<Lease, SystemException> {
        for target in targets {
            let (key, _) = self.pool_key(target)?;
            let pool = &self.connections().exclusive;
            if let Some(link) = pool.take(&key) {
                return Ok(Lease::new(pool, key, link));
            }
        }
        let delay = dial::attempt_delay(targets.len(), deadline);
        let dialed = dial::race(targets, delay, |target| self.connect_exclusive(target, deadline));
        dialed.await.map_err(combine_errors)
    }
}

//! Opening connections that carry one call at a time.

use std::sync::Arc;
use std::time::Instant;

use giop_codec::exception::SystemException;

use crate::client::connection_pool::none_of;
use crate::client::dial;
use crate::client::dialer::Dialer;
use crate::connection::exclusive::{Ended, Lease, Target};
use crate::errors::closed;
use crate::runtime::Shared;

impl Shared {
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
        let home = &self.connections().exclusive;
        let link = match home.take(&key) {
            Some(link) => link,
            None => {
                let ended = Ended::new(home, key.clone());
                Dialer { orb: self, thread, deadline }.dial(target, ended).await?
            }
        };
        Ok(Lease::new(home, key, link))
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
            let home = &self.connections().exclusive;
            if let Some(link) = home.take(&key) {
                return Ok(Lease::new(home, key, link));
            }
        }
        let delay = dial::delay(targets.len(), deadline);
        dial::race(targets, delay, |target| self.connect_alone(target, deadline)).await.map_err(none_of)
    }
}

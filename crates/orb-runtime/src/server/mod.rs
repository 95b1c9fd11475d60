//! The server's side of connections: listeners, limits on connections, and the driver, which dispatches
//! requests to objects.
//!
//! `listen` opens sockets, and `accept` accepts connections within the limits of `connection_limiter`. Each
//! connection has one `driver`, even one that this ORB opened. `admission` decides whether a request starts,
//! waits (`pending_requests`) or is rejected. `active_requests` polls the requests that have started.

pub(crate) mod accept;
mod active_requests;
mod admission;
#[cfg(feature = "csi")]
mod authentication;
pub(crate) mod connection_limiter;
pub(crate) mod driver;
pub(crate) mod listen;
mod pending_requests;
mod published_address;
mod replies;
#[cfg(feature = "tls")]
pub(crate) mod tls_handshake;

use std::sync::Arc;

use crate::connection::SharedConnection;
use crate::runtime::Shared;

impl Shared {
    /// Spawns the driver of a link. Registers the link, and keeps `guest`, until the driver ends.
    pub(crate) fn drive(self: &Arc<Self>, link: &Arc<SharedConnection>, guest: impl Send + 'static) {
        let id = self.links.number();
        self.links.lock().insert(id, Arc::downgrade(link));
        self.has_counted();
        let service = driver::Service { orb: Arc::clone(self) };
        let driver = driver::Driver::new(Arc::clone(link), service, id);
        let thread = link.thread().cloned();
        let made = link;
        let (core, link) = (Arc::clone(self), Arc::clone(link));
        let driving = async move {
            driver.await;
            core.ended(id, &link);
            drop(guest);
        };
        let tasks = if made.serves_others() { &self.tasks.serving } else { &self.tasks.other };
        match thread {
            None => tasks.spawn(driving),
            Some(thread) => tasks.spawn_on(thread.track(driving), thread.runtime()),
        };
        // A connection that was made while the ORB began to close may have missed the notification.
        if self.closing.closes(made) {
            made.close();
        }
    }
}

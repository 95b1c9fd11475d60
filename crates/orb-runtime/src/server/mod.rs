//! The server side: listeners, limits on connections, and the drivers that dispatch requests.
//!
//! `listen` opens sockets, and `accept` accepts connections within the limits of `connection_limiter`. Each
//! connection has a `driver`, even if this ORB opened it. `admission` decides whether a request starts, waits
//! (`pending_requests`) or is rejected. `active_requests` polls the requests that have started.

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
    /// Registers a connection and spawns its driver. `slot` is a guard, such as the connection's place in a
    /// limit. It is dropped when the driver has ended.
    pub(crate) fn drive(self: &Arc<Self>, link: &Arc<SharedConnection>, slot: impl Send + 'static) {
        let id = self.connections.next_number();
        self.connections.lock().insert(id, Arc::downgrade(link));
        self.start_metrics_export();
        let driver = driver::Driver::new(Arc::clone(link), Arc::clone(self), id);
        let (orb, driven) = (Arc::clone(self), Arc::clone(link));
        let task = async move {
            driver.await;
            orb.record_closed_connection(id, &driven);
            drop(slot);
        };
        let tasks = if link.serves_peer() { &self.tasks.serving } else { &self.tasks.other };
        match link.thread() {
            None => tasks.spawn(task),
            Some(thread) => tasks.spawn_on(thread.track(task), thread.runtime()),
        };
        // An ORB that shuts down may have closed all its connections before this one was registered.
        if self.closing.must_close(link) {
            link.close();
        }
    }
}

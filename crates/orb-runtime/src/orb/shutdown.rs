//! Holding and accepting requests, and shutting an ORB down.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use giop_proto::{CloseReason, later};

use crate::connection::now;
use crate::orb::Orb;
use crate::poa::manager::check_deadlock;
use crate::runtime::{Guard, Shared};

/// Time for closing connections that were aborted after the drain timeout.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The result of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Connections that were open when it began.
    pub connections: usize,
    /// Connections that were aborted because their requests did not end in time.
    pub cut: usize,
    /// Oneways that were received and not executed, because a POA manager or
    /// [`OrbBuilder::start_paused`](crate::OrbBuilder::start_paused) held them until the end.
    pub discarded_oneways: usize,
}

impl Orb {
    /// Serves the requests that `OrbBuilder::start_paused` held, and all following ones.
    pub fn resume(&self) {
        self.core.pauses.resume();
    }

    /// Serves until `end` is ready, then shuts down. Requests of POAs with
    /// [`ThreadModel::Main`](crate::poa::ThreadModel::Main) run in the task that awaits this.
    ///
    /// # Errors
    /// Those of `end`, such as the errors of [`signal::shutdown`](crate::signal::shutdown).
    ///
    /// # Cancel safety
    /// If the future is dropped, the ORB continues to serve, or stays in the middle of its shutdown.
    pub async fn run_until<E>(&self, end: impl Future<Output = Result<(), E>>) -> Result<ShutdownReport, E> {
        self.resume();
        let main = &self.core.adapter().main_thread;
        main.serve(end).await?;
        let report = main.serve(self.shutdown()).await;
        main.drop_requests();
        Ok(report)
    }

    /// Shuts the ORB down.
    ///
    /// It stops accepting connections, lets running requests finish (`OrbBuilder::drain_timeout`), answers no
    /// further ones, and closes all connections gracefully. Therefore peers know that unanswered requests
    /// were not executed.
    ///
    /// Oneways have no answer: those that have arrived, including those in the socket buffers, are executed
    /// first. Requests that [`OrbBuilder::start_paused`](crate::OrbBuilder::start_paused) or a POA manager
    /// holds are not executed; [`ShutdownReport::discarded_oneways`] counts the oneways among them.
    ///
    /// Servants may make calls until they finish. Other calls get `BAD_INV_ORDER`. Threads of
    /// `Transport::IoUringThreads` have ended afterwards, except those that a servant blocks, for which it
    /// waits at most 2 s.
    ///
    /// # Cancel safety
    /// If the future is dropped, the shutdown continues in the connections' tasks, but connections are not
    /// aborted after the drain timeout.
    pub async fn shutdown(&self) -> ShutdownReport {
        self.core.shutdown().await
    }
}

impl Shared {
    async fn shutdown(self: &Arc<Self>) -> ShutdownReport {
        self.begin_closing();
        let until = later(now(), self.config.drain_timeout).into();
        // Stop listening before connections are closed, so that a client that reconnects is refused.
        self.tasks.listening.close();
        let _ = tokio::time::timeout_at(until, self.tasks.listening.wait()).await;
        let links = self.links.open();
        let connections = links.len();
        // Do not keep the links: a socket stays open while a link exists, and its peer may wait for the end
        // of the stream.
        for link in links {
            if link.serves_others() { link.close() } else { link.wake_driver_now() }
        }
        // Running servants may make calls until they finish.
        self.tasks.serving.close();
        let served = tokio::time::timeout_at(until, self.tasks.serving.wait()).await.is_ok();
        self.closing.end_serving();
        for link in self.links.open() {
            link.close();
        }
        self.tasks.other.close();
        let drained = served && tokio::time::timeout_at(until, self.tasks.other.wait()).await.is_ok();
        let left = if drained { Vec::new() } else { self.links.open() };
        for link in &left {
            link.abort(CloseReason::Local);
        }
        let cut = left.len();
        drop(left);
        if cut > 0 {
            tracing::warn!(target: "zorb", cut, "requests were not done in time (OrbBuilder::drain_timeout)");
            let ended = async { tokio::join!(self.tasks.serving.wait(), self.tasks.other.wait()) };
            let _ = tokio::time::timeout(LAST_WORDS, ended).await;
        }
        let ended = self.adapter().root().destroy(self, true);
        // A servant that shuts its own ORB down must not wait for its own request.
        if check_deadlock(self).is_ok()
            && tokio::time::timeout(self.config.drain_timeout, ended).await.is_err()
        {
            tracing::warn!(target: "zorb", "objects did not end in time (OrbBuilder::drain_timeout)");
        }
        if let Some(threads) = self.sockets.started_threads() {
            let stuck = threads.join().await;
            if stuck > 0 {
                tracing::warn!(target: "zorb", stuck, "threads of the ORB still run: servants block them");
            }
        }
        self.adapter().main_thread.drop_requests();
        #[cfg(feature = "trace-stderr")]
        crate::trace::flushed().await;
        let discarded_oneways = self.counters.discarded_oneways.load(Ordering::Relaxed);
        if discarded_oneways > 0 {
            tracing::warn!(target: "zorb", discarded_oneways, "oneways that were kept from starting are not executed");
        }
        ShutdownReport { connections, cut, discarded_oneways }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(core) = self.0.upgrade() else { return };
        // Nothing is awaited here. A connection that is being made is closed as soon as it exists.
        core.closing.end_serving();
        if core.begin_closing() {
            let links = core.links.open();
            if !links.is_empty() {
                tracing::info!(
                    target: "zorb",
                    connections = links.len(),
                    "the last Orb was dropped: connections are cut; call `shutdown().await` to drain them"
                );
            }
            for link in links {
                link.abort(CloseReason::Local);
            }
            if let Some(threads) = core.sockets.started_threads() {
                // Running servants may finish, as they may in a runtime of the user.
                threads.stop(core.config.drain_timeout);
            }
        }
    }
}

//! Resuming, running and shutting down an ORB.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use giop_proto::{CloseReason, later};

use crate::connection::now;
use crate::orb::Orb;
use crate::poa::manager::check_deadlock;
use crate::runtime::{CloseGuard, Shared};

/// How long the shutdown waits for the tasks of aborted connections.
const ABORT_TIMEOUT: Duration = Duration::from_millis(200);

/// The result of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The number of connections that were open when the shutdown began.
    pub connections: usize,
    /// The number of connections that were aborted because their requests did not end in time.
    pub aborted_connections: usize,
    /// The number of oneways that were received but not executed, because a POA manager or
    /// [`OrbBuilder::start_paused`](crate::OrbBuilder::start_paused) held them.
    pub discarded_oneways: usize,
}

impl Orb {
    /// Serves the requests that `OrbBuilder::start_paused` held, and all following ones.
    pub fn resume(&self) {
        self.core.pauses.resume();
    }

    /// Serves until `end`, such as [`signal::shutdown`](crate::signal::shutdown), is ready, then shuts down.
    /// Requests of POAs with [`ThreadModel::Main`](crate::poa::ThreadModel::Main) run in the task that awaits
    /// this method.
    ///
    /// # Errors
    /// The error of `end`. The ORB then keeps running.
    ///
    /// # Cancel safety
    /// If the future is dropped before `end` is ready, the ORB continues to serve. If it is dropped later,
    /// the same applies as for [`shutdown`](Self::shutdown).
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
    /// The ORB stops accepting connections, waits until running requests have finished
    /// (`OrbBuilder::drain_timeout`), starts no further ones, and closes all connections gracefully. A
    /// graceful close tells peers that unanswered requests were not executed.
    ///
    /// Because oneways have no reply, all oneways that have arrived, including those in the socket buffers,
    /// are executed first. Requests that [`OrbBuilder::start_paused`](crate::OrbBuilder::start_paused) or a
    /// POA manager holds are not executed. [`ShutdownReport::discarded_oneways`] is the number of oneways
    /// among them.
    ///
    /// Servants may make calls until they finish. Other calls get `BAD_INV_ORDER`. When the future completes,
    /// the threads of `Transport::IoUringThreads` have ended, except those that servants have blocked for
    /// over 2 s.
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
        let links = self.connections.to_vec();
        let connections = links.len();
        // Consume `links`, because a socket stays open while its connection is referenced, and the peer may
        // wait for the end of the stream.
        for link in links {
            if link.serves_peer() { link.close() } else { link.lock().wake_driver() }
        }
        // Running servants may make calls until they finish.
        self.tasks.serving.close();
        let served = tokio::time::timeout_at(until, self.tasks.serving.wait()).await.is_ok();
        self.closing.end_serving();
        for link in self.connections.to_vec() {
            link.close();
        }
        self.tasks.other.close();
        let drained = served && tokio::time::timeout_at(until, self.tasks.other.wait()).await.is_ok();
        let left = if drained { Vec::new() } else { self.connections.to_vec() };
        for link in &left {
            link.abort(CloseReason::Local);
        }
        let aborted_connections = left.len();
        drop(left);
        if aborted_connections > 0 {
            tracing::warn!(
                target: "zorb",
                aborted_connections,
                "requests did not finish in time (OrbBuilder::drain_timeout); their connections were aborted"
            );
            let ended = async { tokio::join!(self.tasks.serving.wait(), self.tasks.other.wait()) };
            let _ = tokio::time::timeout(ABORT_TIMEOUT, ended).await;
        }
        let ended = self.adapter().root().destroy(self, true);
        // A servant that shuts its own ORB down must not wait for its own request.
        if check_deadlock(self).is_ok()
            && tokio::time::timeout(self.config.drain_timeout, ended).await.is_err()
        {
            tracing::warn!(target: "zorb", "objects were not deactivated in time (OrbBuilder::drain_timeout)");
        }
        if let Some(threads) = self.transport.started_threads() {
            let stuck = threads.join().await;
            if stuck > 0 {
                tracing::warn!(target: "zorb", stuck, "I/O threads of the ORB still run, because servants block them");
            }
        }
        self.adapter().main_thread.drop_requests();
        #[cfg(feature = "trace-stderr")]
        crate::trace::flush_stderr().await;
        let discarded_oneways = self.counters.discarded_oneways.load(Ordering::Relaxed);
        if discarded_oneways > 0 {
            tracing::warn!(target: "zorb", discarded_oneways, "held oneways were not executed");
        }
        ShutdownReport { connections, aborted_connections, discarded_oneways }
    }
}

impl Drop for CloseGuard {
    fn drop(&mut self) {
        let Some(core) = self.0.upgrade() else { return };
        // `drop` cannot wait. A connection that is being opened is closed as soon as it is open.
        core.closing.end_serving();
        if core.begin_closing() {
            let links = core.connections.to_vec();
            if !links.is_empty() {
                tracing::info!(
                    target: "zorb",
                    connections = links.len(),
                    "the last Orb was dropped, and its connections are aborted; call `shutdown().await` before, to drain them"
                );
            }
            for link in links {
                link.abort(CloseReason::Local);
            }
            if let Some(threads) = core.transport.started_threads() {
                // Running servants may finish within the drain timeout, as they could in another runtime.
                threads.stop(core.config.drain_timeout);
            }
        }
    }
}

//! The resources that a process uses, which it reports on request.

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::system;

/// The resources that a child currently uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Resident memory in bytes.
    pub(super) memory: u64,
    /// Number of open descriptors.
    pub(super) files: u64,
    /// Number of threads.
    pub(super) threads: u64,
    /// Number of tasks of the tokio runtime.
    pub(super) tasks: u64,
    /// Bytes in the pool of receive buffers.
    pub(super) pooled: u64,
    /// Capacity of this pool, bytes.
    pub(super) max_receive_memory: u64,
    /// Number of open connections.
    pub(super) connections: u64,
    /// Number of calls that the server is executing.
    pub(super) busy: u64,
    /// Number of connections that fell back from io_uring to epoll.
    pub(super) fallbacks: u64,
}

impl State {
    /// Returns the state of this process and of the current runtime.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub(super) fn of_this_process() -> anyhow::Result<State> {
        let own = std::process::id();
        Ok(State {
            memory: system::resident_bytes(own).context("a soak needs /proc")?,
            // Without the descriptor that counting them opens.
            files: system::open_file_count(own)? - 1,
            threads: system::thread_count(own)?,
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks() as u64,
            ..State::default()
        })
    }

    /// Adds the resources of an ORB.
    pub(super) fn with(mut self, orb: &zorb::Orb) -> State {
        let pool = orb.pool_stats();
        self.pooled += pool.held as u64;
        self.max_receive_memory += pool.cap as u64;
        self.connections += orb.open_connections() as u64;
        self.fallbacks += orb.transport_stats().fallbacks;
        self
    }
}

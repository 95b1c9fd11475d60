//! The resources of a process, which it reports on the order `state`.

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::system;

/// The resources: bytes of resident memory, numbers of open files, threads and tokio tasks, and others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) memory: u64,
    pub(super) files: u64,
    pub(super) threads: u64,
    pub(super) tasks: u64,
    /// Bytes of receive buffers that the ORBs hold.
    pub(super) pooled: u64,
    /// The limit that the ORBs enforce for `pooled`.
    pub(super) max_receive_memory: u64,
    pub(super) connections: u64,
    /// Calls that servants are executing.
    #[serde(rename = "busy")]
    pub(super) executing_calls: u64,
    /// Connections that used epoll, because io_uring was not available.
    pub(super) fallbacks: u64,
}

impl State {
    pub(super) fn of_this_process() -> anyhow::Result<State> {
        let own = std::process::id();
        Ok(State {
            memory: system::resident_bytes(own).context("a soak needs /proc")?,
            // The count includes the descriptor by which the kernel's list is read.
            files: system::open_file_count(own)? - 1,
            threads: system::thread_count(own)?,
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks() as u64,
            ..State::default()
        })
    }

    pub(super) fn with_orb(mut self, orb: &zorb::Orb) -> State {
        let pool = orb.pool_stats();
        self.pooled += pool.held as u64;
        self.max_receive_memory += pool.cap as u64;
        self.connections += orb.open_connections() as u64;
        self.fallbacks += orb.transport_stats().fallbacks;
        self
    }
}

//! The resources of a process, as it reports them on request.

use std::fs;

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// The current resources of a child.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Resident memory in bytes.
    pub(super) memory: u64,
    /// Open descriptors.
    pub(super) files: u64,
    /// Threads.
    pub(super) threads: u64,
    /// Tasks of the runtime.
    pub(super) tasks: u64,
    /// Bytes that the pool of receive buffers holds.
    pub(super) pooled: u64,
    /// Capacity of the pool.
    pub(super) max_receive_memory: u64,
    /// Open connections of its ORBs.
    pub(super) connections: u64,
    /// Calls in progress.
    pub(super) busy: u64,
    /// Connections and calls that fell back from io_uring to epoll.
    pub(super) fallbacks: u64,
}

impl State {
    /// Returns the state of this process and of the current runtime.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub(super) fn of_this_process() -> anyhow::Result<State> {
        let status = fs::read_to_string("/proc/self/status").context("a soak needs /proc")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        };
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        Ok(State {
            memory: field("VmRSS:").context("no VmRSS")? << 10,
            // Except the descriptor with which they are counted.
            files: fs::read_dir("/proc/self/fd")?.count() as u64 - 1,
            threads: field("Threads:").context("no Threads")?,
            tasks: tasks as u64,
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

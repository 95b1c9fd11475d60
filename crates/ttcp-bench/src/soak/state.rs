//! What a process holds, as it says when it is asked.

use std::fs;

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// What a child holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Octets of memory that are resident.
    pub(super) memory: u64,
    /// Open descriptors.
    pub(super) files: u64,
    /// Threads.
    pub(super) threads: u64,
    /// Tasks of the runtime.
    pub(super) tasks: u64,
    /// Octets that the pool of receive buffers holds.
    pub(super) pooled: u64,
    /// The most it may hold.
    pub(super) pool_cap: u64,
    /// Open connections of its ORBs.
    pub(super) connections: u64,
    /// Calls under way.
    pub(super) busy: u64,
    /// Connections and calls that use epoll where io_uring was asked for.
    pub(super) fallbacks: u64,
}

impl State {
    /// What the system says of this process, and the runtime that this is called in.
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
            // But the one by which they are counted.
            files: fs::read_dir("/proc/self/fd")?.count() as u64 - 1,
            threads: field("Threads:").context("no Threads")?,
            tasks: tasks as u64,
            ..State::default()
        })
    }

    /// Counts what an ORB holds as well.
    pub(super) fn with(mut self, orb: &zorb::Orb) -> State {
        let pool = orb.pool_stats();
        self.pooled += pool.held as u64;
        self.pool_cap += pool.cap as u64;
        self.connections += orb.open_connections() as u64;
        self.fallbacks += orb.transport_stats().fallbacks;
        self
    }
}

//! `ttcp abuse`: the service that a well-behaved client gets from a server under attack.
//!
//! | module | contents |
//! |---|---|
//! | `phases` | the phases: before, each attack, all at once, after; and the criteria |
//! | `report` | the results |
//! | `server`, `contract` | the process that is attacked |
//! | `client` | the well-behaved process |
//! | `attackers`, `attacks` | the attacking process |
//!
//! Server, client and attackers are separate processes. On a machine with few cores an attacker takes
//! processor time from the others, which an attacker from the network could not do. Therefore attackers run
//! at the lowest priority and at a limited rate, which the report states. The limit can be disabled.

mod attackers;
mod attacks;
mod client;
mod contract;
mod phases;
mod report;
mod server;

use std::path::PathBuf;

use clap::Args;

pub use attackers::{AbuseAttackersArgs, abuse_attackers};
pub use client::{AbuseClientArgs, abuse_client};
pub use phases::abuse;
pub use server::{AbuseServerArgs, Sabotage, abuse_server};

use crate::cli::Transport;

/// Options of `ttcp abuse`.
#[derive(Debug, Clone, Args)]
pub struct AbuseArgs {
    /// Seconds of each phase (default: 20; --quick: 1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: Option<u64>,
    /// Less of everything, to see that it works
    #[arg(long)]
    pub quick: bool,
    /// Slow peers (default: 1000; --quick: 100)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub peers: Option<u32>,
    /// Rate of each attack per second, of all its peers together: bytes of slow peers, bombs, connections,
    /// and bursts of 100 CancelRequests and LocateRequests (default: 1000; --quick: 200)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,
    /// Attack without a pace: as much as the attackers get of the processors, which they take from the others
    #[arg(long, conflicts_with = "rate")]
    pub unpaced: bool,
    /// Addresses that the attackers come from: 127.0.0.2 and on; the client has 127.0.0.1 for itself
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=200))]
    pub addresses: u8,
    /// Calls per second of the well-behaved client, at fixed moments, over one connection (default: 500;
    /// --quick: 100)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub calls: Option<u32>,
    /// How much the 99th percentile of its calls may grow
    #[arg(long, value_name = "TIMES", default_value_t = 3.0)]
    pub most: f64,
    /// How server and client read and write connections
    #[arg(long, value_enum, default_value_t = Transport::Epoll)]
    pub transport: Transport,
    /// End with the first phase in which something is wrong
    #[arg(long)]
    pub first: bool,
    /// Make the server err, to see that it is found
    #[arg(long, value_enum, hide = true)]
    pub sabotage: Option<Sabotage>,
    /// Write the result to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl AbuseArgs {
    /// Returns the requested amount, or the default of a full or quick run.
    fn or<T>(&self, wanted: Option<T>, full: T, quick: T) -> T {
        wanted.unwrap_or(if self.quick { quick } else { full })
    }
}

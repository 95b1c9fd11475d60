//! `ttcp abuse`: the service that a well-behaved client gets from a server under attack.
//!
//! | module | contents |
//! |---|---|
//! | `phases` | the phases (before, each attack, all attacks, after) and the criteria |
//! | `report` | the results |
//! | `server`, `contract` | the server process and its interface |
//! | `client` | the process of the well-behaved client |
//! | `attackers`, `attacks` | the attacking process |
//!
//! Server, client and attackers are separate processes. On a machine with few cores, attackers take processor
//! time from the others, which attackers from the network could not do. Therefore the attackers run at the
//! lowest priority and at a limited rate, which the report contains. The limit can be disabled.

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
    /// Keep the test as short as possible, only to check that everything works
    #[arg(long)]
    pub quick: bool,
    /// Number of slow peers (default: 1000; --quick: 100)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub peers: Option<u32>,
    /// Rate of each attack, of all its peers together, per second (default: 1000; --quick: 200). The unit
    /// depends on the attack: a byte of a slow peer, a message with a false length, a connection, or a burst
    /// of 100 messages (CancelRequests and LocateRequests)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,
    /// Do not limit the rate of attacks, so that they also take processor time from server and client
    #[arg(long, conflicts_with = "rate")]
    pub unpaced: bool,
    /// Number of addresses of the attackers, from 127.0.0.2 on (the client uses 127.0.0.1)
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=200))]
    pub addresses: u8,
    /// Calls per second of the well-behaved client, at fixed times over one connection (default: 500;
    /// --quick: 100)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub calls: Option<u32>,
    /// Maximum growth of the 99th percentile of the client's call times, as a factor
    #[arg(long, value_name = "FACTOR", default_value_t = 3.0)]
    pub max_growth: f64,
    /// How server and client read and write connections
    #[arg(long, value_enum, default_value_t = Transport::Epoll)]
    pub transport: Transport,
    /// End after the first phase with a violation
    #[arg(long)]
    pub fail_fast: bool,
    /// Make the server misbehave, to test that the test detects it
    #[arg(long, value_enum, hide = true)]
    pub sabotage: Option<Sabotage>,
    /// Write the result to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl AbuseArgs {
    /// Returns the requested amount, or else the default of a full or a quick run.
    fn or_full_or_quick<T>(&self, requested: Option<T>, full: T, quick: T) -> T {
        requested.unwrap_or(if self.quick { quick } else { full })
    }
}

//! The baseline: blocking sockets and nothing else, the minimal work of any middleware over TCP.
//!
//! A oneway message is an 8-byte header (kind, payload length) and its payload. A two-way message has a
//! 4-byte request id between the two. Its reply has the id too, and its header repeats the kind. All words
//! are in host byte order: nothing is converted. Each message is sent by one `writev`; each payload is
//! received into a buffer of its own.

mod client;
mod conn;
mod series;
mod server;

use std::net::Ipv4Addr;

use clap::Args;

pub use client::client;
pub(crate) use client::echo;
pub use server::server;

use crate::parent_watch::ParentWatchArgs;
use crate::work::{Work, parse_size};

/// The port of the contract's socket peers.
pub const DEFAULT_PORT: u16 = 47_001;

/// Options of `ttcp raw-server`.
#[derive(Debug, Clone, Args)]
pub struct RawServerArgs {
    /// IPv4 address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: Ipv4Addr,
    /// TCP port (0: any free one)
    #[arg(long, default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// Socket buffer sizes, both directions (default: the kernel's autotuning)
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub sockbuf: Option<u64>,
    /// Hold replies to pings back while more requests are already read in
    #[arg(long)]
    pub batch: bool,
    /// Compare each byte with the one that clients send, and end at the first difference
    #[arg(long)]
    pub check: bool,
    /// Common options.
    #[command(flatten)]
    pub lifeline: ParentWatchArgs,
}

/// Options of `ttcp raw-client`.
#[derive(Debug, Clone, Args)]
pub struct RawClientArgs {
    /// The experiment.
    #[command(flatten)]
    pub work: Work,
    /// IPv4 address of the server
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: Ipv4Addr,
    /// TCP port of the server
    #[arg(long, default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// Send requests that become due at once by one write (pipeline)
    #[arg(long)]
    pub batch: bool,
}

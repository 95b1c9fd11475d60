//! The baseline: plain blocking sockets, which do the minimal work of any middleware over TCP.
//!
//! A oneway message is an 8-byte header (kind, payload length) and its payload. A two-way message has a
//! 4-byte request id between header and payload. Its reply has the same kind and request id. All numbers are
//! in host byte order, so nothing is converted. Each message is sent by one `writev`, except in the test
//! `pipeline`, in which one can send several. The server receives each payload into a new buffer.

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

/// The default port of all servers that use plain sockets.
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
    /// Socket buffer sizes in both directions (default: the kernel's autotuning)
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub sockbuf: Option<u64>,
    /// Delay the replies to pings while further requests are already buffered, and send them by one write
    #[arg(long)]
    pub batch: bool,
    /// Compare each byte of floods with the test pattern, and exit at the first difference
    #[arg(long)]
    pub check: bool,
    /// The option to exit with the parent process.
    #[command(flatten)]
    pub parent_watch: ParentWatchArgs,
}

/// Options of `ttcp raw-client`.
#[derive(Debug, Clone, Args)]
pub struct RawClientArgs {
    /// The test and its options.
    #[command(flatten)]
    pub work: Work,
    /// IPv4 address of the server
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: Ipv4Addr,
    /// TCP port of the server
    #[arg(long, default_value_t = DEFAULT_PORT)]
    pub port: u16,
    /// Delay requests while further replies are already buffered, and send them by one write (pipeline)
    #[arg(long)]
    pub batch: bool,
}

//! `ttcp crowd`: many clients connect at the same moment, each with one connection and one call.
//!
//! Like `ttcp hold`, it replaces the client program of a peer.

use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use serde_json::json;

use super::hold::Server;
use crate::parent_watch::ParentWatchArgs;
use crate::report::{Latency, print_line};
use crate::system;

const STACK_BYTES: usize = 128 << 10;

/// Options of `ttcp crowd`.
#[derive(Debug, Clone, Args)]
pub struct CrowdArgs {
    /// Number of clients
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub clients: u32,
    /// Id of the server process, whose memory is measured
    #[arg(long, value_name = "PID")]
    pub server_pid: u32,
    /// Address of the server, or path of a file with its IOR
    #[arg(long, value_name = "IP:PORT|PATH")]
    pub server_address: String,
    /// The option to exit with the parent process.
    #[command(flatten)]
    pub parent_watch: ParentWatchArgs,
}

/// Lets all clients connect and call at the same moment. Prints their times, and the memory of the server
/// before and after. All connections stay open until that memory is measured.
pub fn crowd(args: &CrowdArgs) -> anyhow::Result<ExitCode> {
    args.parent_watch.start()?;
    system::raise_open_file_limit();
    let server = Arc::new(Server::of(&args.server_address)?);
    // The first connection triggers one-time initialization in a server.
    drop(server.connect_and_call(0)?);
    let memory_before = system::memory_bytes(args.server_pid)?;
    let barrier = Arc::new(Barrier::new(args.clients as usize + 1));
    let mut threads = Vec::new();
    for number in 1..=args.clients {
        let (server, barrier) = (Arc::clone(&server), Arc::clone(&barrier));
        let client = move || {
            barrier.wait();
            let start = Instant::now();
            server.connect_and_call(number).map(|stream| (stream, start, Instant::now()))
        };
        let builder = std::thread::Builder::new().name("client".into()).stack_size(STACK_BYTES);
        threads.push(builder.spawn(client).context("cannot start a client thread")?);
    }
    barrier.wait();
    let mut clients = Vec::new();
    for thread in threads {
        clients.push(thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??);
    }
    // The threads leave the barrier one after the other. The earliest start counts as the start of all.
    let start = clients.iter().map(|(_, start, _)| *start).min().context("there are no clients")?;
    let times = clients.iter().map(|(_, _, end)| end.saturating_duration_since(start)).collect();
    let memory_with_all = system::memory_bytes(args.server_pid)?;
    let Latency { mean_us, p50_us, p99_us, max_us } = Latency::of(times);
    let line = json!({
        "clients": args.clients,
        "mean_us": mean_us,
        "p50_us": p50_us,
        "p99_us": p99_us,
        "max_us": max_us,
        "memory_bytes": memory_before,
        "all_memory_bytes": memory_with_all,
    });
    print_line(&line)?;
    Ok(ExitCode::SUCCESS)
}

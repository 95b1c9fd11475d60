//! `ttcp crowd`: many clients connect at the same moment, each with one connection and one call.
//!
//! Like `ttcp hold`, it replaces the client of a peer.

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

const STACK_SIZE: usize = 128 << 10;

/// Options of `ttcp crowd`.
#[derive(Debug, Clone, Args)]
pub struct CrowdArgs {
    /// Number of clients
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub clients: u32,
    /// Server process whose memory is measured
    #[arg(long, value_name = "PID")]
    pub server: u32,
    /// Address of the server, from its READY line
    #[arg(long, value_name = "HOST:PORT|PATH|corbaloc:...")]
    pub ready: String,
    /// Common options.
    #[command(flatten)]
    pub parent_watch: ParentWatchArgs,
}

/// Lets all clients connect and call at the same moment, and prints their times and the memory of the server.
/// All connections stay open until all clients have replies.
pub fn crowd(args: &CrowdArgs) -> anyhow::Result<ExitCode> {
    args.parent_watch.start()?;
    system::raise_open_file_limit();
    let service = Arc::new(Server::of(&args.ready)?);
    // The first connection triggers one-time initialization in a server.
    drop(service.open(0)?);
    let before = system::memory_bytes(args.server)?;
    let all = Arc::new(Barrier::new(args.clients as usize + 1));
    let mut threads = Vec::new();
    for number in 1..=args.clients {
        let (service, all) = (Arc::clone(&service), Arc::clone(&all));
        let client = move || {
            all.wait();
            let start = Instant::now();
            service.open(number).map(|stream| (stream, start, Instant::now()))
        };
        let builder = std::thread::Builder::new().name("client".into()).stack_size(STACK_SIZE);
        threads.push(builder.spawn(client).context("cannot start a client thread")?);
    }
    all.wait();
    let mut held = Vec::new();
    for thread in threads {
        held.push(thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??);
    }
    // The threads leave the barrier one after the other: the first one marks the common start.
    let start = held.iter().map(|(_, start, _)| *start).min().context("no clients")?;
    let times = held.iter().map(|(_, _, end)| end.saturating_duration_since(start)).collect();
    let all_memory = system::memory_bytes(args.server)?;
    let Latency { mean_us, p50_us, p99_us, max_us } = Latency::of(times);
    let line = json!({
        "clients": args.clients,
        "mean_us": mean_us,
        "p50_us": p50_us,
        "p99_us": p99_us,
        "max_us": max_us,
        "memory_bytes": before,
        "all_memory_bytes": all_memory,
    });
    print_line(&line)?;
    Ok(ExitCode::SUCCESS)
}

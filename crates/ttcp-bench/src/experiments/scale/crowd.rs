//! `ttcp crowd`: clients that connect all at the same moment, each with one connection and one call.
//!
//! It replaces the client of a peer, as `ttcp hold` does.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use serde_json::json;

use super::hold::Service;
use crate::parent_watch::ParentWatchArgs;
use crate::report::Latency;
use crate::system;

/// Stack size of a client in bytes: it uses almost none.
const STACK: usize = 128 << 10;

/// Options of `ttcp crowd`.
#[derive(Debug, Clone, Args)]
pub struct CrowdArgs {
    /// Clients
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000))]
    pub clients: u32,
    /// The process whose memory is measured
    #[arg(long, value_name = "PID")]
    pub server: u32,
    /// How to reach it: what it said after READY
    #[arg(long, value_name = "HOST:PORT|PATH|corbaloc:...")]
    pub ready: String,
    /// Common options.
    #[command(flatten)]
    pub lifeline: ParentWatchArgs,
}

/// Lets all clients connect and call at the same moment, and prints the time and memory that this took. No
/// client disconnects before all were answered.
///
/// # Errors
/// A client gets no connection, no answer, or a wrong answer.
pub fn crowd(args: &CrowdArgs) -> anyhow::Result<ExitCode> {
    args.lifeline.watch()?;
    system::raise_files();
    let service = Arc::new(Service::of(&args.ready)?);
    // The first connection triggers one-time initialization in a server.
    drop(service.open(0)?);
    let before = system::memory(args.server)?;
    let all = Arc::new(Barrier::new(args.clients as usize + 1));
    let mut threads = Vec::new();
    for number in 1..=args.clients {
        let (service, all) = (Arc::clone(&service), Arc::clone(&all));
        let client = move || {
            all.wait();
            let came = Instant::now();
            service.open(number).map(|stream| (stream, came, Instant::now()))
        };
        let builder = std::thread::Builder::new().name("client".into()).stack_size(STACK);
        threads.push(builder.spawn(client).context("so many threads can not be had")?);
    }
    all.wait();
    let mut held = Vec::new();
    for thread in threads {
        held.push(thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??);
    }
    // The threads leave the barrier one after the other: the first of them marks the common start.
    let start = held.iter().map(|(_, came, _)| *came).min().context("nobody came")?;
    let times = held.iter().map(|(_, _, answered)| answered.saturating_duration_since(start)).collect();
    let all_memory = system::memory(args.server)?;
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
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

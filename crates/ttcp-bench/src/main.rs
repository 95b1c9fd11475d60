//! `ttcp`: the zorb ORB performance experiments.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ttcp_bench::run::{self, BuiltIn};
use ttcp_bench::{cli, raw, zorb_peer};

/// Performance experiments: floods servers, times calls, and compares with plain sockets.
#[derive(Parser)]
#[command(name = "ttcp", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// The one place where a built-in peer is wired: its two subcommands, its entry in `built_in`, its two lines in `perform`.

#[derive(Subcommand)]
enum Command {
    /// Measure all peers in turn and print a table
    Run(run::RunArgs),
    /// Serve the bench contract with zorb until killed
    Server(cli::ServerArgs),
    /// Run one test of the contract with zorb against any server
    Client(cli::ClientArgs),
    /// The socket baseline's server
    #[command(hide = true)]
    RawServer(raw::RawServerArgs),
    /// The socket baseline's client
    #[command(hide = true)]
    RawClient(raw::RawClientArgs),
}

fn built_in() -> [BuiltIn; 2] {
    [
        BuiltIn::new("raw", "raw-server --lifeline --port 0", "raw-client {args} --port {port}").with_batch(),
        BuiltIn::new("zorb", "server --lifeline --ior {dir}/zorb.ior", "client {args} --ior {ready}")
            .with_zero_copy(),
    ]
}

fn perform(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => return run::run(&args, &built_in()),
        Command::Server(args) => zorb_peer::server(&args)?,
        Command::Client(args) => zorb_peer::client(&args)?.print()?,
        Command::RawServer(args) => raw::server(&args)?,
        Command::RawClient(args) => raw::client(&args)?.print()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    perform(Cli::parse().command).unwrap_or_else(|e| {
        eprintln!("ttcp: {e:#}");
        ExitCode::FAILURE
    })
}

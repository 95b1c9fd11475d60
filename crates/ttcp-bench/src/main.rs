//! `ttcp`: the zorb ORB performance experiments.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ttcp_bench::abuse::{self, AbuseArgs, AbuseAttackersArgs, AbuseClientArgs, AbuseServerArgs};
use ttcp_bench::experiments::{
    self, CompareArgs, CrowdArgs, DemultiplexingArgs, DepositArgs, HoldArgs, LadderArgs, LatencyArgs,
    ReportArgs, ScaleArgs, SeriesArgs, ThroughputArgs, WhiteboxArgs, compare, report,
};
use ttcp_bench::external_peers::{PeersCommand, peers};
use ttcp_bench::harness::BuiltInPeer;
use ttcp_bench::ladder::measurement::{LadderStepArgs, ladder_step};
use ttcp_bench::priority::{PrioritiseArgs, load, prioritise};
use ttcp_bench::run;
use ttcp_bench::soak::{self, SoakArgs, SoakClientArgs, SoakServerArgs};
use ttcp_bench::{cli, raw, zorb_peer};

/// Performance experiments: flood servers, measure the times of calls, and compare with plain sockets
#[derive(Parser)]
#[command(name = "ttcp", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// To add a built-in peer, add two subcommands here, an entry in `built_in_peers`, and two lines in `perform`.

#[derive(Subcommand)]
enum Command {
    /// Measure all peers in turn and print a table
    Run(run::RunArgs),
    /// Flood servers with sequences of every type and size
    Throughput(ThroughputArgs),
    /// Profile floods: measure the cost of each function on both sides
    Whitebox(WhiteboxArgs),
    /// Call the last of very many operations, with each strategy by which a server looks up operations
    #[command(alias = "demux")]
    Demultiplexing(DemultiplexingArgs),
    /// Measure the times of calls without parameters and with sequences
    Latency(LatencyArgs),
    /// Measure calls with many objects, connections and clients
    Scale(ScaleArgs),
    /// Flood servers with large sequences of bytes, with and without copies
    Deposit(DepositArgs),
    /// Measure messages of every kind and size, as calls and one-way, one in each time frame
    ///
    /// By default, 50 messages of each of 7 kinds in 11 sizes are sent, as calls and one-way, in frames of 70
    /// ms. This takes 9 minutes for each ORB, 3 for the sockets, and 7 more to start JacORB for each series.
    /// A smaller --frame shortens it: ttcp run --all uses frames of 10 ms, and the series take 12 minutes.
    Series(SeriesArgs),
    /// Measure encoding in steps, from an interpreter of type codes to compiled stubs
    Ladder(LadderArgs),
    /// Make calls of all kinds while processes are killed, suspended and restarted, and check that no call is
    /// lost or hangs, and that no resource leaks
    Soak(SoakArgs),
    /// Attack a server in several ways, and measure its service to a well-behaved client
    Abuse(AbuseArgs),
    /// Build or list other middleware to compare with
    #[command(subcommand)]
    Peers(PeersCommand),
    /// Create a report of the results in a directory
    Report(ReportArgs),
    /// Compare the results in two directories, and test whether the differences are significant
    Compare(CompareArgs),
    /// Run the zorb server of the tests until it is killed
    Server(cli::ServerArgs),
    /// Run one test with the zorb client against any server
    Client(cli::ClientArgs),
    /// Run a program with a different priority
    #[command(hide = true)]
    Prioritise(PrioritiseArgs),
    /// Occupy a core at the lowest priority
    #[command(hide = true)]
    Load,
    /// Run one measurement of the ladder
    #[command(hide = true)]
    LadderStep(LadderStepArgs),
    /// The server of plain sockets
    #[command(hide = true)]
    RawServer(raw::RawServerArgs),
    /// The client of plain sockets
    #[command(hide = true)]
    RawClient(raw::RawClientArgs),
    /// The server of ttcp soak
    #[command(hide = true)]
    SoakServer(SoakServerArgs),
    /// A client of ttcp soak
    #[command(hide = true)]
    SoakClient(SoakClientArgs),
    /// The server of ttcp abuse
    #[command(hide = true)]
    AbuseServer(AbuseServerArgs),
    /// The well-behaved client of ttcp abuse
    #[command(hide = true)]
    AbuseClient(AbuseClientArgs),
    /// The attacking process of ttcp abuse
    #[command(hide = true)]
    AbuseAttackers(AbuseAttackersArgs),
    /// Connect many clients simultaneously
    #[command(hide = true)]
    Crowd(CrowdArgs),
    /// Run a client while many other connections are open
    #[command(hide = true)]
    Hold(HoldArgs),
}

fn built_in_peers() -> [BuiltInPeer; 2] {
    [
        BuiltInPeer::new(
            "raw",
            "raw-server --lifeline --host {host} --port 0 {check}",
            "raw-client {args} --host {host} --port {port}",
        )
        .with_batch()
        .with_samples(),
        BuiltInPeer::new(
            "zorb",
            "server --lifeline --host {host} --ior {dir}/zorb.ior {check}",
            "client {args} --ior {ready}",
        )
        .with_zstruct()
        .with_samples(),
    ]
}

fn perform(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) if args.all => return experiments::run_all(&args.common, &built_in_peers()),
        Command::Run(args) => return run::run(&args, &built_in_peers()),
        Command::Throughput(args) => return args.run(&built_in_peers()),
        Command::Deposit(args) => return args.run(&built_in_peers()),
        Command::Ladder(args) => return args.run(&built_in_peers()),
        Command::Scale(args) => return args.run(&built_in_peers()),
        Command::Hold(args) => return experiments::hold(&args),
        Command::Crowd(args) => return experiments::crowd(&args),
        Command::Whitebox(args) => return args.run(&built_in_peers()),
        Command::Demultiplexing(args) => return args.run(&built_in_peers()),
        Command::Latency(args) => return args.run(&built_in_peers()),
        Command::Series(args) => return args.run(&built_in_peers()),
        Command::Soak(args) => return soak::soak(&args),
        Command::SoakServer(args) => soak::soak_server(&args)?,
        Command::SoakClient(args) => soak::soak_client(&args)?,
        Command::Abuse(args) => return abuse::abuse(&args),
        Command::AbuseServer(args) => abuse::abuse_server(&args)?,
        Command::AbuseClient(args) => abuse::abuse_client(&args)?,
        Command::AbuseAttackers(args) => abuse::abuse_attackers(&args)?,
        Command::Prioritise(args) => prioritise(&args)?,
        Command::Load => load()?,
        Command::Peers(command) => return peers(&command),
        Command::Report(args) => report(&args)?,
        Command::Compare(args) => compare(&args)?,
        Command::Server(args) => zorb_peer::server(&args)?,
        Command::Client(args) => zorb_peer::client(&args)?.print()?,
        Command::LadderStep(args) => ladder_step(&args)?,
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

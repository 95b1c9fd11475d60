//! `ttcp run`: runs the tests with all peers in turn, in several rounds, and prints a table of the results.

mod measure;
mod plan;
mod results;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;

use plan::Cell;
use results::Results;

use crate::external_peers;
use crate::figures::format_figure;
use crate::harness::children::Children;
use crate::harness::cores::PinnedCores;
use crate::harness::environment::Environment;
use crate::harness::peers::{Failure, RunContext};
use crate::harness::placement::Placement;
use crate::harness::progress::Progress;
use crate::harness::{BuiltInPeer, CommonArgs, EXIT_INTERRUPTED, Peer};
use crate::work::{Element, Test, parse_bytes, parse_size};

/// The maximum duration of a run with `--quick`.
const MAX_QUICK_DURATION: Duration = Duration::from_secs(55);

/// Options of `ttcp run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Run all experiments with all built peers into --out, or continue an interrupted run; this takes hours
    #[arg(long, conflicts_with_all = ["tests", "types", "sizes", "total", "n", "depth", "processor"])]
    pub all: bool,
    /// Options of every experiment. Without `--all`, there are five rounds by default, or three with
    /// `--quick`, and `--out` and `--dry-run` are errors.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Run only these tests
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TESTS")]
    pub tests: Option<Vec<Test>>,
    /// Measure only these element types
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPES")]
    pub types: Option<Vec<Element>>,
    /// Buffer sizes of the flood (default: 1K,8K,64K,1M)
    #[arg(long, value_parser = parse_size, value_delimiter = ',', value_name = "SIZES")]
    pub sizes: Option<Vec<u64>>,
    /// Bytes of elements in each flood (default: depends on the buffer size)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
    /// Number of calls in each other test (default: depends on the test)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: Option<u32>,
    /// Number of outstanding calls (pipeline)
    #[arg(long, value_name = "CALLS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: u32,
    /// Also print a table of the processor time of client and server, per GB or per call
    #[arg(long)]
    pub processor: bool,
}

/// Measures the selected peers, and prints the table. The exit code is success if all measurements succeeded.
pub fn run(args: &RunArgs, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
    ensure!(
        args.common.out.is_none(),
        "--out requires --all: use --json FILE to store the results of the table"
    );
    ensure!(!args.common.dry_run, "--dry-run requires --all, or another command such as ttcp latency");
    for test in args.tests.iter().flatten() {
        let experiment = match test {
            Test::Series => "series",
            Test::Objects | Test::Clients => "scale",
            _ => continue,
        };
        bail!("the test '{test}' belongs to another experiment: use ttcp {experiment}");
    }
    let peers = selected_peers(args, built_in)?;
    let cells = Cell::all(args);
    ensure!(!cells.is_empty(), "nothing to measure: the table has no row for these --tests and --types");
    // The file is created first, so that an error is found before the measurements.
    let json = args.common.json.as_deref().map(create).transpose()?;
    let repeat = args.common.repeat.unwrap_or(if args.common.quick { 3 } else { 5 });
    let mut results = Results::new(Environment::current(), repeat, peers, cells);
    if !results.environment.optimised {
        eprintln!("ttcp: the figures of a debug build are meaningless: use cargo run --profile bench-lto");
    }
    let failures = measure_all(args, &mut results)?;

    let mut out = std::io::stdout().lock();
    writeln!(out, "{}\n\n{}\n\n{}", results.environment.summary(), results.table(), results.legend())?;
    if args.processor {
        writeln!(out, "\n{}\n\n{}", results.processor_table(), Results::PROCESSOR_LEGEND)?;
    }
    if let Some((mut file, path)) = json {
        serde_json::to_writer_pretty(&mut file, &results)
            .map_err(std::io::Error::from)
            .and_then(|()| writeln!(file))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    for failure in &failures {
        eprintln!("ttcp: {failure}");
    }
    if results.interrupted {
        eprintln!("ttcp: interrupted; the table has the results so far");
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    match results.failure_count() {
        0 => Ok(ExitCode::SUCCESS),
        n => {
            eprintln!("ttcp: {n} measurement(s) failed");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Returns the peers in the order of columns: first the selected ones, then the peers of `--peer`.
fn selected_peers(args: &RunArgs, built_in: &[BuiltInPeer]) -> anyhow::Result<Vec<Peer>> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut available: Vec<Peer> = built_in.iter().map(|p| Peer::built_in(&program, p)).collect();
    let selected = args.common.peers.as_deref();
    if selected.is_some() {
        available.extend(external_peers::built_peers()?);
    }
    external_peers::select_peers(available, args.common.extra_peers.clone(), selected, |peer| peer)
}

fn create(path: &Path) -> anyhow::Result<(File, &Path)> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok((file, path))
}

/// Performs all rounds. Returns the distinct failures, with their peers and tests.
fn measure_all(args: &RunArgs, results: &mut Results) -> anyhow::Result<Vec<String>> {
    let cores = args.common.pin.then(PinnedCores::choose).transpose()?;
    let mut children = Children::new();
    children.watch_signals().context("cannot handle signals")?;
    let dir = tempfile::Builder::new().prefix("ttcp-").tempdir().context("cannot create a directory")?;
    let (rows, columns) = (results.cells.len(), results.peers.len());
    let mut progress = Progress::new(u64::from(results.repeat) * (rows * columns) as u64);
    let start = Instant::now();
    let mut context = RunContext {
        children: &mut children,
        dir: dir.path(),
        placement: Placement::loopback(),
        cores: cores.as_ref(),
        timeout: Duration::from_secs(args.common.timeout),
        deadline: args.common.quick.then(|| start + MAX_QUICK_DURATION),
    };
    let mut failures = Vec::new();
    for round in 0..results.repeat {
        if args.common.quick && round > 0 && start.elapsed() * (round + 1) / round > MAX_QUICK_DURATION {
            progress.print(&format!("only {round} round(s) of {} fit into a minute", results.repeat));
            break;
        }
        for row in 0..rows {
            for position in 0..columns {
                // Each round starts with a different peer, because its position may affect a peer's figures.
                let column = (position + round as usize) % columns;
                let (Some(test), Some(peer)) = (results.cells.get(row), results.peers.get(column)) else {
                    continue;
                };
                let title = format!("round {}/{} {} {}", round + 1, results.repeat, peer.name, test.name);
                progress.begin(&title);
                let result = peer.measure(&test.cell, &mut context);
                let outcome = match &result {
                    Ok(sample) => format!("{} {}", format_figure(Some(sample.figure)), test.unit.name()),
                    Err(Failure::Interrupted) => {
                        progress.finish();
                        results.interrupted = true;
                        return Ok(failures);
                    }
                    Err(failure) => {
                        let text = failure.to_string();
                        let message = format!("{} {}: {text}", peer.name, test.name);
                        if !failures.contains(&message) {
                            failures.push(message);
                        }
                        format!("failed: {}", text.lines().next().unwrap_or_default())
                    }
                };
                results.add(row, column, result);
                progress.end(&title, &outcome);
            }
        }
        results.rounds = round + 1;
    }
    progress.finish();
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::parse_options;

    fn names(line: &str) -> anyhow::Result<Vec<String>> {
        let words = line.split('|').filter(|w| !w.is_empty());
        let built_in = [
            BuiltInPeer::new("raw", "raw-server", "raw-client"),
            BuiltInPeer::new("zorb", "server", "client"),
        ];
        let peers = selected_peers(&parse_options(words)?, &built_in)?;
        Ok(peers.into_iter().map(|p| p.name).collect())
    }

    #[test]
    fn peers_are_the_selected_built_in_ones_and_additional_ones() {
        assert_eq!(names("").unwrap(), ["raw", "zorb"]);
        assert_eq!(names("--peers|zorb").unwrap(), ["zorb"]);
        assert_eq!(names("--peer|a=s::c|--peer|b=s::c").unwrap(), ["raw", "zorb", "a", "b"]);
        assert!(names("--peers|zorp").unwrap_err().to_string().contains("only: raw, zorb"));
        assert!(names("--peer|zorb=s::c").unwrap_err().to_string().contains("two peers are called 'zorb'"));
        assert!(names("--peer|nonsense").unwrap_err().to_string().contains("NAME=SERVER_CMD::CLIENT_CMD"));
    }
}

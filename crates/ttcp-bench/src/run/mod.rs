//! `ttcp run`: every peer in turn, in rounds, and a table.

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
use crate::figures::shown;
use crate::harness::children::Children;
use crate::harness::cores::Pins;
use crate::harness::environment::Environment;
use crate::harness::peers::{Failure, Site};
use crate::harness::placement::Placement;
use crate::harness::progress::Progress;
use crate::harness::{BuiltIn, CommonArgs, INTERRUPTED, Peer};
use crate::work::{Element, Test, parse_bytes, parse_size};

/// Time limit of `--quick`.
const QUICK: Duration = Duration::from_secs(55);

/// Options of `ttcp run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// All experiments, by all peers that are built, into --out: for hours, and goes on where it ended
    #[arg(long, conflicts_with_all = ["tests", "types", "sizes", "total", "n", "depth", "processor"])]
    pub all: bool,
    /// Options of every experiment. For the table: five rounds, three with --quick, which takes under a
    /// minute in total; `--peers none`: only those of --peer; --out and --dry-run are for --all.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Only these tests
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TESTS")]
    pub tests: Option<Vec<Test>>,
    /// Only these element types
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPES")]
    pub types: Option<Vec<Element>>,
    /// Buffer sizes of the flood (default: 1K,8K,64K,1M)
    #[arg(long, value_parser = parse_size, value_delimiter = ',', value_name = "SIZES")]
    pub sizes: Option<Vec<u64>>,
    /// User bytes of each flood (default: by size)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
    /// Calls of each of the other tests (default: by test)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: Option<u32>,
    /// Calls outstanding at a time in pipeline
    #[arg(long, value_name = "CALLS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: u32,
    /// Print a second table: processor time of both sides, and of client and server, per GB or per call
    #[arg(long)]
    pub processor: bool,
}

/// Measures `built_in` and further peers, prints the table on stdout, and returns the exit code: success only
/// if every measurement succeeded.
///
/// # Errors
/// The run cannot begin, or its results cannot be written.
pub fn run(args: &RunArgs, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
    ensure!(
        args.common.out.is_none(),
        "--out is for the results of --all; --json FILE is for those of the table"
    );
    ensure!(!args.common.dry_run, "--dry-run is for --all, and for the experiments");
    for test in args.tests.iter().flatten() {
        let experiment = match test {
            Test::Series => "series",
            Test::Objects | Test::Clients => "scale",
            _ => continue,
        };
        bail!("{test} is an experiment of its own: ttcp {experiment}");
    }
    let peers = selected_peers(args, built_in)?;
    let cells = Cell::all(args);
    ensure!(!cells.is_empty(), "nothing to measure: no test of --tests has a type of --types");
    // Fails before minutes of measurements rather than afterwards.
    let json = args.common.json.as_deref().map(create).transpose()?;
    let repeat = args.common.repeat.unwrap_or(if args.common.quick { 3 } else { 5 });
    let mut results = Results::new(Environment::of_now(), repeat, peers, cells);
    if !results.environment.optimised {
        eprintln!("ttcp: this is a debug build, its figures mean nothing: use cargo run --profile bench-lto");
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
        eprintln!("ttcp: interrupted; the table holds what was measured before");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    match results.failed() {
        0 => Ok(ExitCode::SUCCESS),
        n => {
            eprintln!("ttcp: {n} measurement(s) failed");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Returns the peers in column order: the selected built-in ones, then further ones.
fn selected_peers(args: &RunArgs, built_in: &[BuiltIn]) -> anyhow::Result<Vec<Peer>> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut own: Vec<Peer> = built_in.iter().map(|p| Peer::built_in(&program, p)).collect();
    let wanted = args.common.peers.as_deref();
    if wanted.is_some() {
        own.extend(external_peers::built_peers()?);
    }
    external_peers::select_peers(own, args.common.extra.clone(), wanted, |peer| peer)
}

fn create(path: &Path) -> anyhow::Result<(File, &Path)> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok((file, path))
}

/// Performs all rounds. Returns the failures, each once, with where they happened.
fn measure_all(args: &RunArgs, results: &mut Results) -> anyhow::Result<Vec<String>> {
    let pins = args.common.pin.then(Pins::choose).transpose()?;
    let mut children = Children::new();
    children.watch_signals().context("cannot take signals")?;
    let dir = tempfile::Builder::new().prefix("ttcp-").tempdir().context("cannot make a directory")?;
    let (rows, columns) = (results.cells.len(), results.peers.len());
    let mut progress = Progress::new(u64::from(results.repeat) * (rows * columns) as u64);
    let start = Instant::now();
    let mut site = Site {
        children: &mut children,
        dir: dir.path(),
        placement: Placement::loopback(),
        pins: pins.as_ref(),
        timeout: Duration::from_secs(args.common.timeout),
        deadline: args.common.quick.then(|| start + QUICK),
    };
    let mut failures = Vec::new();
    for round in 0..results.repeat {
        if args.common.quick && round > 0 && start.elapsed() * (round + 1) / round > QUICK {
            progress.note(&format!("{round} round(s) of {} are what fits into a minute", results.repeat));
            break;
        }
        for row in 0..rows {
            for place in 0..columns {
                // A different peer begins in each round, because the state of the machine may depend on the
                // position.
                let column = (place + round as usize) % columns;
                let (Some(cell), Some(peer)) = (results.cells.get(row), results.peers.get(column)) else {
                    continue;
                };
                let what = format!("round {}/{} {} {}", round + 1, results.repeat, peer.name, cell.name);
                progress.begin(&what);
                let result = peer.measure(&cell.cell, &mut site);
                let outcome = match &result {
                    Ok(sample) => format!("{} {}", shown(Some(sample.figure)), cell.unit.name()),
                    Err(Failure::Interrupted) => {
                        progress.finish();
                        results.interrupted = true;
                        return Ok(failures);
                    }
                    Err(failure) => {
                        let text = failure.to_string();
                        let text_of_failure = format!("{} {}: {text}", peer.name, cell.name);
                        if !failures.contains(&text_of_failure) {
                            failures.push(text_of_failure);
                        }
                        format!("failed: {}", text.lines().next().unwrap_or_default())
                    }
                };
                results.add(row, column, result);
                progress.end(&what, &outcome);
            }
        }
        results.rounds = round + 1;
    }
    progress.finish();
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Run {
        #[command(flatten)]
        args: RunArgs,
    }

    fn names(line: &str) -> anyhow::Result<Vec<String>> {
        let words = ["run"].into_iter().chain(line.split('|').filter(|w| !w.is_empty()));
        let built_in =
            [BuiltIn::new("raw", "raw-server", "raw-client"), BuiltIn::new("zorb", "server", "client")];
        let peers = selected_peers(&Run::try_parse_from(words)?.args, &built_in)?;
        Ok(peers.into_iter().map(|p| p.name).collect())
    }

    #[test]
    fn peers_are_the_built_in_ones_and_those_given() {
        assert_eq!(names("").unwrap(), ["raw", "zorb"]);
        assert_eq!(names("--peers|zorb").unwrap(), ["zorb"]);
        assert_eq!(names("--peer|a=s::c|--peer|b=s::c").unwrap(), ["raw", "zorb", "a", "b"]);
        assert!(names("--peers|zorp").unwrap_err().to_string().contains("only: raw, zorb"));
        assert!(names("--peer|zorb=s::c").unwrap_err().to_string().contains("two peers are called 'zorb'"));
        assert!(names("--peer|nonsense").unwrap_err().to_string().contains("NAME=SERVER_CMD::CLIENT_CMD"));
    }
}

//! The experiments: what each measures, how it is measured, and its section of the report.
//!
//! An experiment is a list of cells, each measured by every peer, in rounds. The peers of a cell are measured
//! one directly after the other, and in each round a different one begins. Results are stored sample by
//! sample.

mod calls;
pub mod compare;
mod contenders;
mod demultiplexing;
mod deposit;
mod driver;
mod integrity;
mod ladder;
mod latency;
pub mod report;
mod scale;
mod series;
mod store;
mod throughput;
mod whitebox;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::figures::Section;
use crate::run::links::Link;
use crate::run::peers::{Failure, Site};
use crate::run::{BuiltIn, Peer, RunArgs};

pub use demultiplexing::DemultiplexingArgs;
pub use deposit::DepositArgs;
pub use ladder::LadderArgs;
pub use latency::LatencyArgs;
pub use scale::{CrowdArgs, HoldArgs, ScaleArgs, crowd, hold};
pub use series::SeriesArgs;
pub use throughput::ThroughputArgs;
pub use whitebox::WhiteboxArgs;

use contenders::Contender;
use store::{Cell, Data, Outcome};

/// Options of every experiment.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Rounds, of which medians are shown (default: by experiment)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// Less of everything: seconds in all, to see that it works
    #[arg(long)]
    pub quick: bool,
    /// Only tell how many measurements there would be
    #[arg(long)]
    pub dry_run: bool,
    /// Directory of the results; what it has is not measured again (default: a new one in ttcp-results)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write environment and all samples, as one JSON object, to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Only these peers, built-in ones or of `ttcp peers`; `none`: only those of --peer
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub peers: Option<Vec<String>>,
    /// A further peer: NAME=SERVER_CMD::CLIENT_CMD
    ///
    /// Words are split at blanks. {dir} stands for a directory of this run's own, {host} for the address that servers listen at (without it in its server's words a
    /// peer is measured over loopback only); in the client's words {ready} for what
    /// the server said after READY, {port} for the digits at its end, {args} for the test and its options (else they
    /// come last). In the server's words {check} stands for --check where contents are to be checked, else for nothing.
    #[arg(long = "peer", value_name = "NAME=SERVER_CMD::CLIENT_CMD")]
    pub extra: Vec<Peer>,
    /// Keep servers on one core and clients on another: steadier figures, for peers of one thread
    #[arg(long)]
    pub pin: bool,
    /// The longest time that one client may take, seconds
    #[arg(long, value_name = "SECS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
}

/// The setting of a cell that names the link between client and server. Without it: the loopback device.
pub(crate) const LINK: &str = "link";

/// A kind of experiment.
pub(crate) struct Kind {
    /// Its name: the subcommand, and the name in its samples.
    pub(crate) name: &'static str,
    /// The published results that it reproduces: ids of [`literature`](crate::literature).
    pub(crate) covers: &'static [&'static str],
    /// Builds its section from its samples, of which there is at least one.
    pub(crate) section: fn(&Data) -> Section,
}

/// All kinds, in the order of the report.
pub(crate) const KINDS: &[Kind] = &[
    throughput::KIND,
    whitebox::KIND,
    demultiplexing::KIND,
    latency::KIND,
    scale::KIND,
    series::KIND,
    deposit::KIND,
    ladder::KIND,
];

/// One measurement of an experiment, performed once a round.
pub(crate) struct Step {
    /// The cell that is measured.
    pub(crate) cell: Cell,
    /// The peer that is measured.
    pub(crate) peer: Peer,
    /// Additional arguments of the server.
    pub(crate) server: Vec<String>,
    /// The client's arguments.
    pub(crate) client: Vec<String>,
    /// Computes the figures from what the client printed and wrote to its directory.
    pub(crate) figures: fn(&driver::Said<'_>) -> Result<Figures, String>,
    /// Performs the measurement: [`Step::once`] if one run of server and client yields all figures.
    pub(crate) perform: fn(&Step, &mut Site<'_>) -> Result<Outcome, Failure>,
}

/// Figures by their names, which end in their units.
pub(crate) type Figures = BTreeMap<String, f64>;

/// An experiment that is ready to run.
pub(crate) struct Plan {
    /// Its name.
    pub(crate) name: &'static str,
    /// Default number of rounds.
    pub(crate) rounds: u32,
    /// The links that cells name by [`LINK`], without the loopback device.
    pub(crate) links: Vec<Link>,
    /// Steps that are performed once before the rounds: see [`integrity::check`] and [`calls::count`].
    pub(crate) checks: Vec<Step>,
    /// The measurements of a round; those of one cell are adjacent.
    pub(crate) steps: Vec<Step>,
}

/// Runs one experiment and prints its section.
fn run(
    common: &Common,
    built_in: &[BuiltIn],
    plan: impl FnOnce(&[Contender]) -> Plan,
) -> anyhow::Result<ExitCode> {
    let contenders = contenders::contenders(common, built_in)?;
    driver::run(common, &[plan(&contenders)])
}

/// Runs all experiments, as `ttcp run --all`.
///
/// # Errors
/// It cannot begin, or its results cannot be written.
pub fn run_all(args: &RunArgs, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
    let contenders = contenders::contenders(&args.common, built_in)?;
    driver::run(&args.common, &plans(&args.common, &contenders)?)
}

/// Returns the plans of all kinds, in the order of [`KINDS`].
fn plans(common: &Common, contenders: &[Contender]) -> anyhow::Result<[Plan; KINDS.len()]> {
    Ok([
        throughput::plan(&ThroughputArgs::of(common.clone()), contenders),
        whitebox::plan(&WhiteboxArgs::of(common.clone()), contenders),
        demultiplexing::plan(&DemultiplexingArgs::of(common.clone()), contenders),
        latency::plan(&LatencyArgs::of(common.clone()), contenders),
        scale::plan(&ScaleArgs::of(common.clone()), contenders),
        series::plan(&SeriesArgs::of(common.clone()), contenders)?,
        deposit::plan(&DepositArgs::of(common.clone()), contenders),
        ladder::plan(&LadderArgs::of(common.clone()), contenders),
    ])
}

/// Returns a figure of the client's line.
fn of_line(line: &Value, name: &str) -> Result<f64, String> {
    let figure = line.get(name).and_then(Value::as_f64).ok_or_else(|| format!("it has no {name}"))?;
    if figure.is_finite() && figure > 0.0 { Ok(figure) } else { Err(format!("its {name} is {figure}")) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser;

    use super::*;
    use crate::cli::Element;
    use crate::literature::{Published, uncovered};

    /// Published tables that no section contains.
    const WITHOUT: &[&str] = &[];

    #[test]
    fn kinds_have_names_of_their_own_and_cover_what_there_is() {
        let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        for id in KINDS.iter().flat_map(|kind| kind.covers) {
            assert!(Published::of(id).is_some(), "{id}");
        }
        assert_eq!(uncovered(KINDS.iter().flat_map(|kind| kind.covers).copied()), WITHOUT);
    }

    #[test]
    fn every_experiment_is_of_zorb_of_omniorb_and_of_sockets() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            common: Common,
        }
        let all = ["raw", "zorb", "omniorb"].map(|name| Contender {
            peer: format!("{name}=server {{check}}::client").parse().unwrap(),
            structs: Element::Struct,
            only_structs: false,
            flat: name == "raw",
        });
        for quick in [&["x", "--quick"][..], &["x"]] {
            let plans = plans(&Line::parse_from(quick).common, &all).unwrap();
            assert!(plans.iter().map(|plan| plan.name).eq(KINDS.iter().map(|kind| kind.name)));
            for plan in plans {
                let steps = || plan.checks.iter().chain(&plan.steps);
                for contender in &all {
                    let name = contender.peer.name.as_str();
                    let is_its = |step: &Step| match (plan.name, name) {
                        // The last step of the ladder.
                        ("ladder", "zorb") => step.peer.name == crate::ladder::Step::Compiled.title(),
                        _ => step.peer.name.split('-').next() == Some(name),
                    };
                    assert!(steps().any(is_its), "{}: no cell of {name}", plan.name);
                }
            }
        }
    }
}

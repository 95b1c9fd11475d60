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
use std::process::ExitCode;

use serde_json::Value;

use crate::figures::Section;
use crate::harness::links::Link;
use crate::harness::peers::{Failure, Site};
use crate::harness::{BuiltIn, CommonArgs, Peer};

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

/// The setting of a cell that names the link between client and server. Without it: the loopback device.
pub(crate) const LINK: &str = "link";

/// A kind of experiment.
pub(crate) struct Experiment {
    /// Its name: the subcommand, and the name in its samples.
    pub(crate) name: &'static str,
    /// The published results that it reproduces: ids of [`literature`](crate::literature).
    pub(crate) covers: &'static [&'static str],
    /// Builds its section from its samples, of which there is at least one.
    pub(crate) section: fn(&Data) -> Section,
}

/// All kinds, in the order of the report.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    throughput::EXPERIMENT,
    whitebox::EXPERIMENT,
    demultiplexing::EXPERIMENT,
    latency::EXPERIMENT,
    scale::EXPERIMENT,
    series::EXPERIMENT,
    deposit::EXPERIMENT,
    ladder::EXPERIMENT,
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
    pub(crate) figures: fn(&driver::ClientOutput<'_>) -> Result<Figures, String>,
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
    common: &CommonArgs,
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
pub fn run_all(common: &CommonArgs, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
    let contenders = contenders::contenders(common, built_in)?;
    driver::run(common, &plans(common, &contenders)?)
}

/// Returns the plans of all kinds, in the order of [`EXPERIMENTS`].
fn plans(common: &CommonArgs, contenders: &[Contender]) -> anyhow::Result<[Plan; EXPERIMENTS.len()]> {
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
    use crate::literature::{Published, uncovered};
    use crate::work::Element;

    /// Published tables that no section contains.
    const WITHOUT: &[&str] = &[];

    #[test]
    fn kinds_have_names_of_their_own_and_cover_what_there_is() {
        let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), EXPERIMENTS.len());
        for id in EXPERIMENTS.iter().flat_map(|kind| kind.covers) {
            assert!(Published::of(id).is_some(), "{id}");
        }
        assert_eq!(uncovered(EXPERIMENTS.iter().flat_map(|kind| kind.covers).copied()), WITHOUT);
    }

    #[test]
    fn every_experiment_is_of_zorb_of_omniorb_and_of_sockets() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            common: CommonArgs,
        }
        let all = ["raw", "zorb", "omniorb"].map(|name| Contender {
            peer: format!("{name}=server {{check}}::client").parse().unwrap(),
            structs: Element::Struct,
            only_structs: false,
            flat: name == "raw",
        });
        for quick in [&["x", "--quick"][..], &["x"]] {
            let plans = plans(&Line::parse_from(quick).common, &all).unwrap();
            assert!(plans.iter().map(|plan| plan.name).eq(EXPERIMENTS.iter().map(|kind| kind.name)));
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

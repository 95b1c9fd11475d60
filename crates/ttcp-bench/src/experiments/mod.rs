//! The experiments: their measurements, and their sections of the report.
//!
//! An experiment is a list of cells. Each cell is measured with each peer, in several rounds. The peers of a
//! cell are measured directly after each other, and each round starts with a different peer. Each sample is
//! stored immediately.

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

/// The setting of a cell with the name of the link between client and server. Cells without it use the
/// loopback device.
pub(crate) const LINK: &str = "link";

/// A kind of experiment.
pub(crate) struct Experiment {
    /// The name of the subcommand, also used in samples.
    pub(crate) name: &'static str,
    /// The published results that the experiment reproduces: ids of [`literature`](crate::literature).
    pub(crate) published_ids: &'static [&'static str],
    /// Builds the section of the report. The data has at least one sample of the experiment.
    pub(crate) section: fn(&Data) -> Section,
}

/// All experiments, in the order of the report.
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

/// A measurement of a cell with a peer, performed once in each round.
pub(crate) struct Step {
    pub(crate) cell: Cell,
    pub(crate) peer: Peer,
    /// Additional arguments of the server.
    pub(crate) server: Vec<String>,
    /// The client's arguments.
    pub(crate) client: Vec<String>,
    /// Computes the figures from the client's output.
    pub(crate) figures: FigureFn,
    /// Performs the measurement: [`Step::run_once`] if one run of server and client yields all figures.
    pub(crate) perform: fn(&Step, &mut Site<'_>) -> Result<Outcome, Failure>,
}

impl Step {
    /// Returns a measurement by one run of server and client.
    fn new(cell: &Cell, peer: &Peer, client: Vec<String>, figures: FigureFn) -> Step {
        let (cell, peer) = (cell.clone(), peer.clone());
        Step { cell, peer, server: Vec::new(), client, figures, perform: Step::run_once }
    }
}

/// Computes the figures of a measurement.
pub(crate) type FigureFn = fn(&driver::ClientOutput<'_>) -> Result<Figures, String>;

/// Figures by their names, which end in their units.
pub(crate) type Figures = BTreeMap<String, f64>;

/// An experiment that is ready to run.
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    /// Default number of rounds.
    pub(crate) rounds: u32,
    /// The links of the cells that have the setting [`LINK`].
    pub(crate) links: Vec<Link>,
    /// Steps that are performed once before the rounds: see [`integrity::check`] and
    /// [`calls::counting_step`].
    pub(crate) checks: Vec<Step>,
    /// The measurements of a round. Those of one cell are adjacent.
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

/// Runs all experiments, for `ttcp run --all`.
///
/// # Errors
/// The run cannot start, or its results cannot be written.
pub fn run_all(common: &CommonArgs, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
    let contenders = contenders::contenders(common, built_in)?;
    driver::run(common, &plans(common, &contenders)?)
}

/// Returns the plans of all experiments, in the order of [`EXPERIMENTS`].
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
fn line_figure(line: &Value, name: &str) -> Result<f64, String> {
    let figure = line.get(name).and_then(Value::as_f64).ok_or_else(|| format!("it has no {name}"))?;
    if figure.is_finite() && figure > 0.0 { Ok(figure) } else { Err(format!("{name} is {figure}")) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser;

    use super::*;
    use crate::literature::{Published, uncovered};
    use crate::work::Element;

    #[test]
    fn experiments_have_unique_names_and_cover_all_published_tables() {
        let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), EXPERIMENTS.len());
        for id in EXPERIMENTS.iter().flat_map(|kind| kind.published_ids) {
            assert!(Published::of(id).is_some(), "{id}");
        }
        assert_eq!(uncovered(EXPERIMENTS.iter().flat_map(|kind| kind.published_ids).copied()), [""; 0]);
    }

    #[test]
    fn every_experiment_measures_zorb_omniorb_and_sockets() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            common: CommonArgs,
        }
        let all = ["raw", "zorb", "omniorb"].map(|name| Contender {
            peer: format!("{name}=server {{check}}::client").parse().unwrap(),
            struct_element: Element::Struct,
            is_for_structs_only: false,
            sends_memory: name == "raw",
        });
        for quick in [&["x", "--quick"][..], &["x"]] {
            let plans = plans(&Line::parse_from(quick).common, &all).unwrap();
            assert!(plans.iter().map(|plan| plan.name).eq(EXPERIMENTS.iter().map(|kind| kind.name)));
            for plan in plans {
                let steps = || plan.checks.iter().chain(&plan.steps);
                for contender in &all {
                    let name = contender.peer.name.as_str();
                    let is_its = |step: &Step| match (plan.name, name) {
                        // Zorb is the last step of the ladder.
                        ("ladder", "zorb") => step.peer.name == crate::ladder::Step::Compiled.title(),
                        _ => step.peer.name.split('-').next() == Some(name),
                    };
                    assert!(steps().any(is_its), "{}: no cell of {name}", plan.name);
                }
            }
        }
    }
}

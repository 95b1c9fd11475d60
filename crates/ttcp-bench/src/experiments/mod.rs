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
mod plan;
pub mod report;
mod scale;
mod series;
mod store;
mod throughput;
mod whitebox;

use std::process::ExitCode;

use crate::harness::{BuiltIn, CommonArgs};

pub use demultiplexing::DemultiplexingArgs;
pub use deposit::DepositArgs;
pub use ladder::LadderArgs;
pub use latency::LatencyArgs;
pub use scale::{CrowdArgs, HoldArgs, ScaleArgs, crowd, hold};
pub use series::SeriesArgs;
pub use throughput::ThroughputArgs;
pub use whitebox::WhiteboxArgs;

use contenders::Contender;
use plan::{Experiment, Plan};

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
            assert!(
                plans.iter().map(|plan| plan.experiment.name).eq(EXPERIMENTS.iter().map(|kind| kind.name))
            );
            for plan in plans {
                let steps = || plan.checks.iter().chain(&plan.steps);
                for contender in &all {
                    let name = contender.peer.name.as_str();
                    let is_its = |step: &plan::Step| match (plan.experiment.name, name) {
                        // Zorb is the last step of the ladder.
                        ("ladder", "zorb") => step.peer.name == crate::ladder::Step::Compiled.title(),
                        _ => step.peer.name.split('-').next() == Some(name),
                    };
                    assert!(steps().any(is_its), "{}: no cell of {name}", plan.experiment.name);
                }
            }
        }
    }
}

//! The experiments: their measurements, and their sections of the report.
//!
//! An experiment is a list of cells. A cell is a combination of settings, such as an element type and a size.
//! It is measured with each peer, which is a client and a server of the same middleware, in several rounds.
//! The peers of a cell are measured directly after each other, and each round starts with a different peer.
//! Each result is stored immediately as a sample.

mod calls;
mod compare;
mod contenders;
mod demultiplexing;
mod deposit;
mod driver;
mod integrity;
mod ladder;
mod latency;
mod plan;
mod report;
mod scale;
mod series;
mod store;
mod throughput;
mod whitebox;

use std::process::ExitCode;

use crate::harness::{BuiltInPeer, CommonArgs};

pub use compare::{CompareArgs, compare};
pub use demultiplexing::DemultiplexingArgs;
pub use deposit::DepositArgs;
pub use ladder::LadderArgs;
pub use latency::LatencyArgs;
pub use report::{ReportArgs, report};
pub use scale::{CrowdArgs, HoldArgs, ScaleArgs, crowd, hold};
pub use series::SeriesArgs;
pub use throughput::ThroughputArgs;
pub use whitebox::WhiteboxArgs;

use contenders::Contender;
use plan::{Experiment, Plan};

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
pub fn run_all(common: &CommonArgs, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
    let contenders = contenders::contenders(common, built_in)?;
    driver::run(common, &plans(common, &contenders)?)
}

fn plans(common: &CommonArgs, contenders: &[Contender]) -> anyhow::Result<[Plan; EXPERIMENTS.len()]> {
    let common = || common.clone();
    Ok([
        throughput::plan(&ThroughputArgs { common: common(), ..Default::default() }, contenders),
        whitebox::plan(&WhiteboxArgs::in_full_run(common()), contenders),
        demultiplexing::plan(&DemultiplexingArgs { common: common(), ..Default::default() }, contenders),
        latency::plan(&LatencyArgs { common: common(), ..Default::default() }, contenders),
        scale::plan(&ScaleArgs { common: common(), ..Default::default() }, contenders),
        series::plan(&SeriesArgs::in_full_run(common()), contenders)?,
        deposit::plan(&DepositArgs { common: common(), ..Default::default() }, contenders),
        ladder::plan(&LadderArgs { common: common(), ..Default::default() }, contenders),
    ])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::literature::{PublishedTable, uncovered};
    use crate::work::{Element, parse_options};

    #[test]
    fn experiments_have_unique_names_and_cover_all_published_tables() {
        let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
        assert_eq!(names.len(), EXPERIMENTS.len());
        for id in EXPERIMENTS.iter().flat_map(|experiment| experiment.published_ids) {
            assert!(PublishedTable::of(id).is_some(), "{id}");
        }
        assert_eq!(uncovered(EXPERIMENTS.iter().flat_map(|one| one.published_ids).copied()), [""; 0]);
    }

    #[test]
    fn every_experiment_measures_zorb_omniorb_and_sockets() {
        let all = ["raw", "zorb", "omniorb"].map(|name| Contender {
            peer: format!("{name}=server {{check}}::client").parse().unwrap(),
            struct_element: Element::Struct,
            is_for_structs_only: false,
            sends_struct32: name == "raw",
        });
        for quick in [&["--quick"][..], &[]] {
            let plans = plans(&parse_options(quick.iter().copied()).unwrap(), &all).unwrap();
            assert!(plans.iter().map(|plan| plan.experiment.name).eq(EXPERIMENTS.iter().map(|one| one.name)));
            for plan in plans {
                let steps = || plan.initial_steps.iter().chain(&plan.steps);
                for contender in &all {
                    let name = contender.peer.name.as_str();
                    let is_its = |step: &plan::Step| match (plan.experiment.name, name) {
                        // In the ladder, zorb is measured as the last step.
                        ("ladder", "zorb") => step.peer.name == crate::ladder::Step::Compiled.title(),
                        _ => step.peer.name.split('-').next() == Some(name),
                    };
                    assert!(steps().any(is_its), "{}: no cell of {name}", plan.experiment.name);
                }
            }
        }
    }
}

//! The cost of finding an operation. The last of an interface's many operations is called, with each look-up
//! strategy of zorb and with other ORBs.

mod functions;
mod section;

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::contenders::Contender;
use super::driver;
use super::plan::{ClientOutput, Experiment, Figures, Plan, Step, line_figure};
use super::store::Cell;
use crate::harness::CommonArgs;
use crate::harness::{BuiltInPeer, Peer};
use crate::work::{CALLS_PER_ITERATION, OPERATION_COUNTS, parse_operations};
use crate::zorb_peer::HAS_THOUSAND_OPERATIONS;

const NAME: &str = "demultiplexing";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    published_ids: &[
        "sigcomm96.t4",
        "sigcomm96.t5",
        "sigcomm96.t6",
        "sigcomm96.t7",
        "sigcomm96.t8",
        "sigcomm96.t9",
        "sigcomm96.t10",
        "gigabit97.setup",
    ],
    section: section::section,
};

/// The published numbers of iterations; one iteration has a hundred calls.
const ITERATIONS: [u32; 4] = [1, 100, 500, 1_000];
const ITERATIONS_QUICK: [u32; 2] = [1, 10];
/// The kinds of calls, and whether they are one-way.
const CALL_KINDS: [(&str, bool); 2] = [("twoway", false), ("oneway", true)];
/// The participants in addition to zorb and the peers of the user. Other configurations of sockets and of
/// zorb find operations in the same way.
const OTHER_PEERS: [&str; 4] = ["raw", "c", "omniorb", "jacorb"];

/// The way in which zorb finds an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Strategy {
    /// Linear search in the order of the IDL
    Linear,
    /// Binary search in the sorted names
    Sorted,
    /// Hash table
    Hash,
    /// Perfect hash made at compile time, the default of zorb
    Perfect,
    /// Array access by a number in place of the name
    Numeric,
    /// One look-up in a hash table for object and operation
    Delayered,
}

impl Strategy {
    const ALL: [Strategy; 6] = [
        Strategy::Linear,
        Strategy::Sorted,
        Strategy::Hash,
        Strategy::Perfect,
        Strategy::Numeric,
        Strategy::Delayered,
    ];

    /// Returns the name of the peer with this strategy. The default strategy has the name of zorb.
    fn peer_name(self) -> &'static str {
        match self {
            Strategy::Linear => "zorb-linear",
            Strategy::Sorted => "zorb-sorted",
            Strategy::Hash => "zorb-hash",
            Strategy::Perfect => "zorb",
            Strategy::Numeric => "zorb-numeric",
            Strategy::Delayered => "zorb-delayered",
        }
    }

    fn server_options(self) -> [&'static str; 2] {
        match self {
            Strategy::Linear => ["--demux-operations", "linear"],
            Strategy::Sorted => ["--demux-operations", "sorted"],
            Strategy::Hash => ["--demux-operations", "hash"],
            Strategy::Perfect => ["--demux-operations", "perfect"],
            Strategy::Numeric => ["--demux-operations", "numeric"],
            Strategy::Delayered => ["--demux-path", "delayered"],
        }
    }

    fn description(self) -> &'static str {
        match self {
            Strategy::Linear => "linear: linear search",
            Strategy::Sorted => "sorted: binary search",
            Strategy::Hash => "hash: table made at run time",
            Strategy::Perfect => "perfect: hash made at compile time",
            Strategy::Numeric => "numeric: number in place of the name",
            Strategy::Delayered => "de-layered: object and operation together",
        }
    }
}

/// Options of `ttcp demultiplexing`.
#[derive(Debug, Clone, Default, Args)]
pub struct DemultiplexingArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Operations of the interfaces (default: 100,1000; --quick: 100)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = parse_operations)]
    pub operations: Option<Vec<u32>>,
    /// Iterations of a hundred calls (default: 1,100,500,1000; --quick: 1,10)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub iterations: Option<Vec<u32>>,
    /// Strategies of zorb to find operations (default: all)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STRATEGIES")]
    pub strategies: Option<Vec<Strategy>>,
}

impl DemultiplexingArgs {
    /// Runs the experiment and prints its section.
    pub fn run(&self, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
        driver::run_one(&self.common, built_in, |contenders| plan(self, contenders))
    }
}

pub(crate) fn plan(args: &DemultiplexingArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let operations =
        args.operations.as_deref().unwrap_or(if quick { &OPERATION_COUNTS[..1] } else { &OPERATION_COUNTS });
    let iterations =
        args.iterations.as_deref().unwrap_or(if quick { &ITERATIONS_QUICK } else { &ITERATIONS });
    let is_extra_peer = |name: &str| args.common.extra_peers.iter().any(|peer| peer.name == name);
    let takes_part = |name: &str| {
        name == Strategy::Perfect.peer_name() || OTHER_PEERS.contains(&name) || is_extra_peer(name)
    };
    let contenders: Vec<&Contender> = contenders.iter().filter(|one| takes_part(&one.peer.name)).collect();
    let peers = peers(args.strategies.as_deref().unwrap_or(&Strategy::ALL), &contenders);
    let mut steps = Vec::new();
    for operations in operations.iter().copied() {
        if peers.iter().any(|one| !one.has_interface(operations)) {
            eprintln!(
                "ttcp: {NAME}: zorb is left out for {operations} operations, because this build has no such interface: \
                 use cargo run --profile bench-lto --features thousand (rustc needs minutes)"
            );
        }
        for (call, oneway) in CALL_KINDS {
            for iterations in iterations {
                let cell = cell(operations, call, *iterations);
                for one in peers.iter().filter(|one| one.has_interface(operations)) {
                    steps.push(one.step(cell.clone(), operations, oneway, *iterations));
                }
            }
        }
    }
    // Counts of instructions hardly differ between rounds, so they are made only once.
    Plan {
        experiment: &EXPERIMENT,
        links: Vec::new(),
        rounds: 5,
        initial_steps: functions::steps(&peers, operations, quick),
        steps,
    }
}

fn cell(operations: u32, call: &str, iterations: u32) -> Cell {
    Cell::default()
        .with("operations", u64::from(operations))
        .with("call", call)
        .with("iterations", u64::from(iterations))
}

/// A participant and, if it is zorb, its strategy.
struct StrategyPeer {
    peer: Peer,
    strategy: Option<Strategy>,
}

/// Returns the participants: zorb once with each selected strategy, and the others.
fn peers(strategies: &[Strategy], contenders: &[&Contender]) -> Vec<StrategyPeer> {
    let mut peers = Vec::new();
    for contender in contenders {
        if contender.peer.name != Strategy::Perfect.peer_name() {
            peers.push(StrategyPeer { peer: contender.peer.clone(), strategy: None });
            continue;
        }
        for strategy in Strategy::ALL.into_iter().filter(|strategy| strategies.contains(strategy)) {
            let mut peer = Peer { name: strategy.peer_name().to_owned(), ..contender.peer.clone() };
            peer.server.extend(strategy.server_options().map(String::from));
            peers.push(StrategyPeer { peer, strategy: Some(strategy) });
        }
    }
    peers
}

impl StrategyPeer {
    fn has_interface(&self, operations: u32) -> bool {
        operations <= 100 || HAS_THOUSAND_OPERATIONS || self.strategy.is_none()
    }

    fn step(&self, cell: Cell, operations: u32, oneway: bool, iterations: u32) -> Step {
        let (operations, iterations) = (operations.to_string(), iterations.to_string());
        let words = ["last", "--operations", &operations, "--iterations", &iterations];
        let mut client = words.map(String::from).to_vec();
        client.extend(oneway.then(|| "--oneway".to_owned()));
        // The de-layered strategy has no separate look-up to measure.
        let has_lookup = self.strategy.is_some_and(|strategy| strategy != Strategy::Delayered);
        client.extend(has_lookup.then(|| "--lookup".to_owned()));
        Step::new(&cell, &self.peer, client, figures)
    }
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let of = |name: &str| line_figure(output.line, name);
    let calls = of("iterations")? * f64::from(CALLS_PER_ITERATION);
    let counted = of("counted")?;
    if (counted - calls).abs() > 0.5 {
        return Err(format!("the server counted {counted} of {calls} calls"));
    }
    let (secs, counted_secs) = (of("secs")?, of("counted_secs")?);
    let mut figures: Figures = [
        ("call_us", secs / calls * 1e6),
        ("counted_call_us", counted_secs / calls * 1e6),
        ("secs", secs),
        ("counted_secs", counted_secs),
    ]
    .map(|(name, figure)| (name.to_owned(), figure))
    .into();
    if output.line.get("lookup_ns").is_some() {
        figures.insert("lookup_ns".to_owned(), of("lookup_ns")?);
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    #[test]
    fn figures_require_the_exact_count_of_calls() {
        let of = |counted: u64| {
            let line = json!({ "iterations": 2, "counted": counted, "secs": 0.004, "counted_secs": 0.005, "lookup_ns": 7.5 });
            figures(&ClientOutput { line: &line, dir: Path::new("/none") })
        };
        let good = of(200).unwrap();
        assert!((good["call_us"] - 20.0).abs() < 1e-9 && (good["counted_call_us"] - 25.0).abs() < 1e-9);
        assert!((good["lookup_ns"] - 7.5).abs() < 1e-9);
        for counted in [199, 201] {
            assert_eq!(of(counted).unwrap_err(), format!("the server counted {counted} of 200 calls"));
        }
        let line = json!({ "iterations": 2, "secs": 1.0, "counted_secs": 1.0 });
        let error = figures(&ClientOutput { line: &line, dir: Path::new("/none") }).unwrap_err();
        assert_eq!(error, "it has no counted", "without the server's count there is no result");
    }

    #[test]
    fn each_strategy_of_zorb_is_a_peer() {
        let contender = |name: &str| Contender {
            peer: format!("{name}=server::client").parse().unwrap(),
            struct_element: crate::work::Element::Struct,
            is_for_structs_only: false,
            sends_struct32: false,
        };
        let all = ["raw", "zorb", "omniorb", "mine"].map(contender);
        let all: Vec<&Contender> = all.iter().collect();
        let names = |strategies: &[Strategy]| {
            peers(strategies, &all).into_iter().map(|one| one.peer.name).collect::<Vec<_>>().join(" ")
        };
        let expected = "raw zorb-linear zorb-sorted zorb-hash zorb zorb-numeric zorb-delayered omniorb mine";
        assert_eq!(names(&Strategy::ALL), expected);
        assert_eq!(names(&[Strategy::Hash, Strategy::Linear]), "raw zorb-linear zorb-hash omniorb mine");
        let delayered = &peers(&[Strategy::Delayered], &all)[1];
        assert_eq!(delayered.peer.server.join(" "), "server --demux-path delayered");
        let step = delayered.step(cell(100, "oneway", 5), 100, true, 5);
        assert_eq!(step.client_arguments.join(" "), "last --operations 100 --iterations 5 --oneway");
    }
}

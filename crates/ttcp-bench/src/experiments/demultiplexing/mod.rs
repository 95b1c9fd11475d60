//! The cost of finding an operation: the last of very many is called, with every look-up strategy of zorb,
//! and at other ORBs.

mod functions;
mod section;

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::contenders::Contender;
use super::driver::ClientOutput;
use super::store::Cell;
use super::{CommonArgs, Experiment, Figures, Plan, Step, of_line};
use crate::harness::{BuiltIn, Peer};
use crate::work::{CALLS_AN_ITERATION, OPERATIONS, parse_operations};
use crate::zorb_peer::HAS_THOUSAND;

const NAME: &str = "demultiplexing";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    covers: &[
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

/// Iterations of a hundred calls, as published.
const ITERATIONS: [u32; 4] = [1, 100, 500, 1_000];
const ITERATIONS_QUICK: [u32; 2] = [1, 10];
/// The kinds of calls, and whether they are oneways.
const CALLS: [(&str, bool); 2] = [("twoway", false), ("oneway", true)];
/// The participants beside zorb and the peers of the user. Other configurations of sockets and of zorb differ
/// in aspects that do not matter here.
const PARTS: [&str; 4] = ["raw", "c", "omniorb", "jacorb"];

/// How a server of zorb finds operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Strategy {
    /// Name by name, in the order of the IDL
    Linear,
    /// By a binary search among the sorted names
    Sorted,
    /// In a hash table
    Hash,
    /// By a perfect hash that is made at compile time, as it does where it is not told otherwise
    Perfect,
    /// By a number in place of the name, one array access
    Numeric,
    /// With the object, by one look-up in a hash table
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

    /// Returns the name of the peer that has this strategy. The default is zorb itself.
    fn peer(self) -> &'static str {
        match self {
            Strategy::Linear => "zorb-linear",
            Strategy::Sorted => "zorb-sorted",
            Strategy::Hash => "zorb-hash",
            Strategy::Perfect => "zorb",
            Strategy::Numeric => "zorb-numeric",
            Strategy::Delayered => "zorb-delayered",
        }
    }

    /// Returns the server's options for it.
    fn server(self) -> [&'static str; 2] {
        match self {
            Strategy::Linear => ["--demux-operations", "linear"],
            Strategy::Sorted => ["--demux-operations", "sorted"],
            Strategy::Hash => ["--demux-operations", "hash"],
            Strategy::Perfect => ["--demux-operations", "perfect"],
            Strategy::Numeric => ["--demux-operations", "numeric"],
            Strategy::Delayered => ["--demux-path", "delayered"],
        }
    }

    /// Returns its description in tables.
    fn about(self) -> &'static str {
        match self {
            Strategy::Linear => "linear: name by name",
            Strategy::Sorted => "sorted: binary search",
            Strategy::Hash => "hash: table made at run time",
            Strategy::Perfect => "perfect: hash made at compile time",
            Strategy::Numeric => "numeric: number in place of the name",
            Strategy::Delayered => "de-layered: object and operation together",
        }
    }
}

/// Options of `ttcp demultiplexing`.
#[derive(Debug, Clone, Args)]
pub struct DemultiplexingArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Operations of the interfaces (default: 100,1000; --quick: 100)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = parse_operations)]
    pub operations: Option<Vec<u32>>,
    /// Times a hundred calls (default: 1,100,500,1000; --quick: 1,10)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub iterations: Option<Vec<u32>>,
    /// Ways of zorb to find operations (default: all)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STRATEGIES")]
    pub strategies: Option<Vec<Strategy>>,
}

impl DemultiplexingArgs {
    /// Runs the experiment and prints its section.
    ///
    /// # Errors
    /// It cannot begin, or its results cannot be written.
    pub fn run(&self, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
        super::run(&self.common, built_in, |contenders| plan(self, contenders))
    }

    /// Arguments for the whole experiment.
    pub(crate) fn of(common: CommonArgs) -> DemultiplexingArgs {
        DemultiplexingArgs { common, operations: None, iterations: None, strategies: None }
    }
}

/// Returns the measurements of a round.
pub(crate) fn plan(args: &DemultiplexingArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let operations = args.operations.as_deref().unwrap_or(if quick { &OPERATIONS[..1] } else { &OPERATIONS });
    let iterations =
        args.iterations.as_deref().unwrap_or(if quick { &ITERATIONS_QUICK } else { &ITERATIONS });
    let of_user = |name: &str| args.common.extra.iter().any(|peer| peer.name == name);
    let part = |name: &str| name == Strategy::Perfect.peer() || PARTS.contains(&name) || of_user(name);
    let contenders: Vec<&Contender> = contenders.iter().filter(|one| part(&one.peer.name)).collect();
    let peers = peers(args.strategies.as_deref().unwrap_or(&Strategy::ALL), &contenders);
    let mut steps = Vec::new();
    for operations in operations.iter().copied() {
        if peers.iter().any(|one| !one.has(operations)) {
            eprintln!(
                "ttcp: {NAME}: zorb is left out with {operations} operations, which this build has not: \
                 use cargo run --profile bench-lto --features thousand, which takes rustc minutes"
            );
        }
        for (call, oneway) in CALLS {
            for iterations in iterations {
                let cell = cell(operations, call, *iterations);
                for one in peers.iter().filter(|one| one.has(operations)) {
                    steps.push(one.step(cell.clone(), operations, oneway, *iterations));
                }
            }
        }
    }
    // Instruction counts hardly differ, so they are made once, not in every round.
    Plan {
        name: NAME,
        links: Vec::new(),
        rounds: 5,
        checks: functions::steps(&peers, operations, quick),
        steps,
    }
}

fn cell(operations: u32, call: &str, iterations: u32) -> Cell {
    Cell::default()
        .with("operations", u64::from(operations))
        .with("call", call)
        .with("iterations", u64::from(iterations))
}

/// A participant.
struct StrategyPeer {
    peer: Peer,
    /// The strategy of zorb; `None` for other peers.
    strategy: Option<Strategy>,
}

/// Returns the participants; zorb is replaced by zorb with each strategy.
fn peers(strategies: &[Strategy], contenders: &[&Contender]) -> Vec<StrategyPeer> {
    let mut peers = Vec::new();
    for contender in contenders {
        if contender.peer.name != Strategy::Perfect.peer() {
            peers.push(StrategyPeer { peer: contender.peer.clone(), strategy: None });
            continue;
        }
        for strategy in Strategy::ALL.into_iter().filter(|strategy| strategies.contains(strategy)) {
            let mut peer = Peer { name: strategy.peer().to_owned(), ..contender.peer.clone() };
            peer.server.extend(strategy.server().map(String::from));
            peers.push(StrategyPeer { peer, strategy: Some(strategy) });
        }
    }
    peers
}

impl StrategyPeer {
    /// Returns whether it has an interface with `operations` operations.
    fn has(&self, operations: u32) -> bool {
        operations <= 100 || HAS_THOUSAND || self.strategy.is_none()
    }

    fn step(&self, cell: Cell, operations: u32, oneway: bool, iterations: u32) -> Step {
        let (operations, iterations) = (operations.to_string(), iterations.to_string());
        let words = ["last", "--operations", &operations, "--iterations", &iterations];
        let mut client = words.map(String::from).to_vec();
        client.extend(oneway.then(|| "--oneway".to_owned()));
        // Where the operation is found together with the object, there is no separate look-up to measure.
        let looks_up = self.strategy.is_some_and(|strategy| strategy != Strategy::Delayered);
        client.extend(looks_up.then(|| "--lookup".to_owned()));
        Step { cell, peer: self.peer.clone(), server: Vec::new(), client, figures, perform: Step::once }
    }
}

/// Returns the figures of a line if the server counted all of its calls and no others.
fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let of = |name: &str| of_line(output.line, name);
    let calls = of("iterations")? * f64::from(CALLS_AN_ITERATION);
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
    fn only_what_the_server_counted_whole_has_figures() {
        let of = |counted: u64| {
            let line = json!({ "iterations": 2, "counted": counted, "secs": 0.004, "counted_secs": 0.005, "lookup_ns": 7.5 });
            figures(&ClientOutput { line: &line, dir: Path::new("/none") })
        };
        let good = of(200).unwrap();
        assert!((good["call_us"] - 20.0).abs() < 1e-9 && (good["counted_call_us"] - 25.0).abs() < 1e-9);
        assert!((good["lookup_ns"] - 7.5).abs() < 1e-9);
        for (counted, told) in [(199, "199"), (201, "201")] {
            assert_eq!(of(counted).unwrap_err(), format!("the server counted {told} of 200 calls"));
        }
        let line = json!({ "iterations": 2, "secs": 1.0, "counted_secs": 1.0 });
        let error = figures(&ClientOutput { line: &line, dir: Path::new("/none") }).unwrap_err();
        assert_eq!(error, "it has no counted", "a client that does not ask has no result");
    }

    #[test]
    fn each_strategy_is_a_peer_in_the_place_of_zorb() {
        let contender = |name: &str| Contender {
            peer: format!("{name}=server::client").parse().unwrap(),
            structs: crate::work::Element::Struct,
            only_structs: false,
            flat: false,
        };
        let all = ["raw", "zorb", "omniorb", "mine"].map(contender);
        let all: Vec<&Contender> = all.iter().collect();
        let names = |strategies: &[Strategy]| {
            peers(strategies, &all).into_iter().map(|one| one.peer.name).collect::<Vec<_>>().join(" ")
        };
        let wanted = "raw zorb-linear zorb-sorted zorb-hash zorb zorb-numeric zorb-delayered omniorb mine";
        assert_eq!(names(&Strategy::ALL), wanted);
        assert_eq!(names(&[Strategy::Hash, Strategy::Linear]), "raw zorb-linear zorb-hash omniorb mine");
        let delayered = &peers(&[Strategy::Delayered], &all)[1];
        assert_eq!(delayered.peer.server.join(" "), "server --demux-path delayered");
        let step = delayered.step(cell(100, "oneway", 5), 100, true, 5);
        assert_eq!(step.client.join(" "), "last --operations 100 --iterations 5 --oneway");
    }
}

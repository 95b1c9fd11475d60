//! The experiment `ttcp whitebox`: profiles of floods. It measures the time of each function on both sides,
//! and the chains of calls between stub, kernel and servant.

mod measure;
mod section;

use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Args;

use super::contenders::Contender;
use super::driver;
use super::integrity;
use super::plan::{Experiment, Figures, Plan, Step, flood_arguments};
use super::store::Cell;
use crate::harness::{BuiltInPeer, CommonArgs};
use crate::profiler::callgrind::Callgrind;
use crate::profiler::perf::Perf;
use crate::work::{Element, parse_bytes, parse_size};

const NAME: &str = "whitebox";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    published_ids: &[
        "sigcomm96.t2",
        "sigcomm96.t3",
        "sigcomm96.text",
        "gigabit97.sii.orbix",
        "gigabit97.sii.visibroker",
        "gigabit97.dii.orbix",
        "gigabit97.dii.visibroker",
        "gigabit97.setup",
    ],
    section: section::section,
};

const TYPES: [Element; 6] =
    [Element::Char, Element::Short, Element::Long, Element::Double, Element::Struct, Element::Octet];
const BUFFER_BYTES: u64 = 128 << 10;
/// Number of bytes of elements to which all figures refer.
const TOTAL_BYTES: u64 = 64 << 20;
/// Size of the flood that perf samples. A flood of `TOTAL_BYTES` takes only a few dozen milliseconds.
const SAMPLED_BYTES: u64 = 1 << 30;

/// Peers that are omitted by default. Profilers do not know the functions of JacORB. The others of this
/// list differ little from peers that are measured, or the difference is not visible in profiles.
const EXCLUDED_PEERS: &[&str] = &["zorb-copying", "zorb-unix", "zorb-uring", "cxx", "c-zero-copy", "jacorb"];

/// Options of `ttcp whitebox`.
#[derive(Debug, Clone, Args)]
pub struct WhiteboxArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Element types (default: char, short, long, double, struct, octet)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPES")]
    pub types: Option<Vec<Element>>,
    /// Size of the sender's buffer
    #[arg(long, value_parser = parse_size, value_name = "BYTES", default_value = "128K")]
    pub size: u64,
    /// Bytes of elements to which the figures refer, and that are sent under callgrind (default: 64M)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
    /// Bytes of elements in the flood that perf samples (default: 1G)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub sampled: Option<u64>,
}

impl WhiteboxArgs {
    /// Runs the experiment and prints its section.
    pub fn run(&self, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
        driver::run_one(&self.common, built_in, |contenders| plan(self, contenders))
    }

    pub(crate) fn in_full_run(common: CommonArgs) -> WhiteboxArgs {
        WhiteboxArgs { common, types: None, size: BUFFER_BYTES, total: None, sampled: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

impl Side {
    const ALL: [Side; 2] = [Side::Sender, Side::Receiver];

    fn name(self) -> &'static str {
        match self {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        }
    }
}

const PERF: &str = "perf";
const CALLGRIND: &str = "callgrind";

struct Profilers {
    perf: Result<Perf, String>,
    callgrind: Result<Callgrind, String>,
}

impl Profilers {
    fn get() -> &'static Profilers {
        static PROFILERS: OnceLock<Profilers> = OnceLock::new();
        PROFILERS.get_or_init(|| Profilers { perf: Perf::find(), callgrind: Callgrind::find() })
    }

    /// Returns the names of the available profilers, and prints messages for the others.
    fn names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let mut add = |name, missing, error: Option<&String>| match error {
            None => names.push(name),
            Some(error) => eprintln!("ttcp: {NAME} measures no {missing}: {error}"),
        };
        add(PERF, "milliseconds", self.perf.as_ref().err());
        add(CALLGRIND, "calls and no chains of calls", self.callgrind.as_ref().err());
        if self.perf.as_ref().is_ok_and(|perf| !perf.counts_system_calls()) {
            eprintln!("ttcp: perf cannot count system calls, because it cannot access the kernel's tracefs");
        }
        names
    }
}

pub(crate) fn plan(args: &WhiteboxArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let types = args.types.as_deref().unwrap_or(if quick { &TYPES[..1] } else { &TYPES });
    let total = args.total.unwrap_or(if quick { 2 << 20 } else { TOTAL_BYTES });
    let sampled = args.sampled.unwrap_or(if quick { 16 << 20 } else { SAMPLED_BYTES });
    let is_requested =
        |name: &str| args.common.peers.as_ref().is_some_and(|peers| peers.iter().any(|peer| peer == name));
    let takes_part = |one: &&Contender| {
        let is_default = !one.is_for_structs_only && !EXCLUDED_PEERS.contains(&one.peer.name.as_str());
        is_requested(&one.peer.name) || is_default
    };
    // Returns each participant, with the type that it sends for `element`.
    let participants = |element: Element| {
        let with_element = move |one: &'_ Contender| Some((one.peer.clone(), one.sent_element(element)?));
        contenders.iter().filter(takes_part).filter_map(with_element).collect::<Vec<_>>()
    };
    let (mut checks, mut steps) = (Vec::new(), Vec::new());
    for element in types {
        for (peer, sent) in participants(*element) {
            let cell = Cell::default().with("type", element.to_string().as_str()).with("bytes", args.size);
            let checked = (4 * args.size).max(integrity::MIN_FLOOD_BYTES);
            checks.extend(integrity::check_step(&peer, cell, flood_arguments(sent, args.size, checked)));
        }
    }
    for by in Profilers::get().names() {
        for element in types {
            for side in Side::ALL {
                let cell = Cell::default()
                    .with("type", element.to_string().as_str())
                    .with("side", side.name())
                    .with("by", by)
                    .with("bytes", args.size)
                    .with("total", total);
                for (peer, sent) in participants(*element) {
                    let client = flood_arguments(sent, args.size, (by == PERF).then_some(sampled));
                    let step = Step::new(&cell, &peer, client, |_| Ok(Figures::new()));
                    let perform = if by == PERF { measure::by_perf } else { measure::by_callgrind };
                    steps.push(Step { perform, ..step });
                }
            }
        }
    }
    Plan { experiment: &EXPERIMENT, links: Vec::new(), rounds: 1, initial_steps: checks, steps }
}

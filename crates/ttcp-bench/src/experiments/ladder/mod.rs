//! The optimisation ladder: the speed-up of each step from an interpreter of type codes to compiled stubs.

mod published_tables;
mod section;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::contenders::Contender;
use super::driver;
use super::plan::{ClientOutput, Experiment, Figures, Plan, Step, line_figures};
use super::store::Cell;
use crate::harness::CommonArgs;
use crate::harness::{BuiltInPeer, Peer};
use crate::ladder;
use crate::ladder::case::{Case, ElementType, Order};
use crate::ladder::measurement::Side;
use crate::work::parse_bytes;

const NAME: &str = "ladder";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    published_ids: &[
        "iiop98.t1",
        "iiop98.t2",
        "iiop98.t3",
        "iiop98.t4",
        "iiop98.t5",
        "iiop98.align",
        "iiop98.giop",
        "iiop98.speedup",
        "iiop98.pies",
        "iiop98.ladder",
        "iiop98.text",
    ],
    section: section::section,
};

/// Size of the sequences that are marshalled.
const SEQUENCE_BYTES: u64 = 128 << 10;
/// The other ORBs whose clients can marshal without a connection.
const OTHER_ORBS: [&str; 1] = ["omniorb"];
/// The value of the setting `figure` in cells for the size of machine code.
const CODE: &str = "code";

/// Options of `ttcp ladder`.
#[derive(Debug, Clone, Default, Args)]
pub struct LadderArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Element types (default: all; --quick: double,binstruct)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPES")]
    pub types: Option<Vec<ElementType>>,
    /// Steps, or raw: a copy of the bytes (default: all)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STEPS")]
    pub steps: Option<Vec<ladder::Step>>,
    /// Minimum number of bytes that each measurement marshals (default: 64M; --quick: 128K). This is repeated
    /// until 20 ms have passed
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
}

impl LadderArgs {
    /// Runs the experiment and prints its section.
    pub fn run(&self, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
        driver::run_one(&self.common, built_in, |contenders| plan(self, contenders))
    }
}

/// Returns the measurements, each of which a single process without a server performs. Without `--steps`, all
/// steps are measured if the peer zorb takes part, and the copy of the bytes if the peer raw takes part.
pub(crate) fn plan(args: &LadderArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let types = args.types.as_deref().unwrap_or(if quick {
        &[ElementType::Double, ElementType::BinStruct]
    } else {
        &ElementType::ALL
    });
    let total = args.total.unwrap_or(if quick { SEQUENCE_BYTES } else { 64 << 20 }).to_string();
    let takes_part = |name: &str| contenders.iter().any(|one| one.peer.name == name);
    let is_selected = |step: &ladder::Step| match (&args.steps, step) {
        (Some(steps), step) => steps.contains(step),
        (None, ladder::Step::Raw) => takes_part("raw"),
        (None, _) => takes_part("zorb"),
    };
    let steps_to_measure: Vec<ladder::Step> =
        [ladder::Step::Raw].into_iter().chain(ladder::Step::ALL).filter(is_selected).collect();
    let client_only = |cell: &Cell, peer: &Peer, words: &[&str]| {
        let client = words.iter().map(|word| (*word).to_owned()).collect();
        Step { perform: Step::run_client_only, ..Step::new(cell, peer, client, figures) }
    };
    let code = Cell::default().with("figure", CODE);
    let mut steps: Vec<Step> = steps_to_measure
        .iter()
        .filter(|one| **one != ladder::Step::Raw)
        .map(|step| client_only(&code, &peer(*step), &["--code"]))
        .collect();
    for element in types {
        for side in Side::ALL {
            for order in Order::ALL {
                let words = [word(element), word(&side), word(&order)];
                let [element, side, order] = &words;
                let cell = cell(element, side, order);
                let size = SEQUENCE_BYTES.to_string();
                let settings = ["--type", element, "--side", side, "--order", order];
                let words = [&["marshal"][..], &settings, &["--size", &size, "--total", &total]].concat();
                let of_step = |step: &ladder::Step| client_only(&cell, &peer(*step), &words[1..]);
                steps.extend(steps_to_measure.iter().map(of_step));
                let is_other = |one: &&Contender| OTHER_ORBS.contains(&one.peer.name.as_str());
                let others = contenders.iter().filter(is_other).filter(|_| args.steps.is_none());
                steps.extend(others.map(|other| client_only(&cell, &other.peer, &words)));
            }
        }
    }
    Plan { experiment: &EXPERIMENT, links: Vec::new(), rounds: 7, initial_steps: Vec::new(), steps }
}

fn cell(element: &str, side: &str, order: &str) -> Cell {
    Cell::default().with("type", element).with("side", side).with("order", order)
}

fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn peer(step: ladder::Step) -> Peer {
    let program = std::env::current_exe().unwrap_or_else(|_| "ttcp".into());
    let client = [program.to_string_lossy().into_owned(), "ladder-step".into(), "--step".into(), word(&step)];
    Peer { name: step.title().to_owned(), client: client.to_vec(), ..Peer::default() }
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    if output.line.get("code_bytes").is_some() {
        return line_figures(output.line, &["code_bytes", "functions"]);
    }
    if let Some(digest) = output.line.get("digest").and_then(Value::as_str) {
        check_digest(output.line, digest)?;
    }
    let mut figures = line_figures(output.line, &["mbit_s", "secs", "bytes", "checked", "elements"])?;
    if let Some(calls) = output.line.get("calls").and_then(Value::as_object) {
        let elements = figures.get("elements").copied().unwrap_or(1.0);
        let mut all = 0.0;
        for (routine, calls) in calls {
            let calls = calls.as_f64().ok_or("the counts of calls are not numbers")?;
            all += calls;
            figures.insert(format!("calls_{routine}"), calls / elements);
        }
        figures.insert("calls".into(), all / elements);
    }
    Ok(figures)
}

fn check_digest(line: &Value, digest: &str) -> Result<(), String> {
    let word = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = ElementType::from_str(word("type"), false)?;
    let order = Order::from_str(word("order"), false)?;
    let size = line.get("size").and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let own = Case::new(kind, order, size.ok_or("the result has no size")?).digest();
    if digest == format!("{own:016x}") {
        Ok(())
    } else {
        Err("the encoded bytes differ from those of zorb's stubs".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_bytes_of_other_orbs_are_compared() {
        let line = serde_json::json!({ "type": "binstruct", "order": "foreign", "size": 131_072 });
        assert_eq!(check_digest(&line, "c6e339c3f3833d35"), Ok(()), "as omniORB 4.2 writes them");
        let error = check_digest(&line, "c6e339c3f3833d36").unwrap_err();
        assert_eq!(error, "the encoded bytes differ from those of zorb's stubs");
        assert!(check_digest(&serde_json::json!({ "type": "any", "order": "native" }), "").is_err());
    }
}

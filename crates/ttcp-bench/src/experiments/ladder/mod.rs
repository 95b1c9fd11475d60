//! The optimisation ladder: the gain of each step from an interpreter of type codes to compiled stubs.

mod reference;
mod section;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::contenders::Contender;
use super::driver::ClientOutput;
use super::store::Cell;
use super::{CommonArgs, Experiment, Figures, Plan, Step, of_line};
use crate::harness::{BuiltIn, Peer};
use crate::ladder;
use crate::ladder::case::{Case, Kind as Element, Order};
use crate::ladder::measurement::Side;
use crate::work::parse_bytes;

const NAME: &str = "ladder";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: NAME,
    covers: &[
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

/// Bytes of a sequence.
const SIZE: u64 = 128 << 10;
/// Other ORBs whose clients marshal without a connection.
const OTHERS: [&str; 1] = ["omniorb"];
/// The figure of cells about machine code.
const CODE: &str = "code";

/// Options of `ttcp ladder`.
#[derive(Debug, Clone, Args)]
pub struct LadderArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Element types (default: all)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPES")]
    pub types: Option<Vec<Element>>,
    /// Steps, and raw: bytes copied unchanged (default: all)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STEPS")]
    pub steps: Option<Vec<ladder::Step>>,
    /// Bytes marshalled by each measurement, again and again if that takes no time (default: 64M)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
}

impl LadderArgs {
    /// Runs the experiment and prints its section.
    ///
    /// # Errors
    /// It cannot begin, or its results cannot be written.
    pub fn run(&self, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
        super::run(&self.common, built_in, |contenders| plan(self, contenders))
    }

    /// Arguments for the whole experiment.
    pub(crate) fn of(common: CommonArgs) -> LadderArgs {
        LadderArgs { common, types: None, steps: None, total: None }
    }
}

/// Returns the measurements of a round. A single process without a server performs them: all steps are
/// zorb's, and the copy is attributed to the sockets.
pub(crate) fn plan(args: &LadderArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let types = args.types.as_deref().unwrap_or(if quick {
        &[Element::Double, Element::BinStruct]
    } else {
        &Element::ALL
    });
    let total = args.total.unwrap_or(if quick { SIZE } else { 64 << 20 }).to_string();
    let takes_part = |name: &str| contenders.iter().any(|one| one.peer.name == name);
    let wanted = |step: &ladder::Step| match (&args.steps, step) {
        (Some(steps), step) => steps.contains(step),
        (None, ladder::Step::Raw) => takes_part("raw"),
        (None, _) => takes_part("zorb"),
    };
    let climbed: Vec<ladder::Step> =
        [ladder::Step::Raw].into_iter().chain(ladder::Step::ALL).filter(wanted).collect();
    let step = |cell: &Cell, step: ladder::Step, words: &[&str]| {
        let client = words.iter().map(|word| (*word).to_owned()).collect();
        let peer = peer(step);
        Step { cell: cell.clone(), peer, server: Vec::new(), client, figures, perform: Step::alone }
    };
    let code = Cell::default().with("figure", CODE);
    let mut steps: Vec<Step> = climbed
        .iter()
        .filter(|one| **one != ladder::Step::Raw)
        .map(|one| step(&code, *one, &["--code"]))
        .collect();
    for element in types {
        for side in Side::ALL {
            for order in Order::ALL {
                let words = [word(element), word(&side), word(&order)];
                let [element, side, order] = &words;
                let cell = cell(element, side, order);
                let words = [
                    "--type",
                    element,
                    "--side",
                    side,
                    "--order",
                    order,
                    "--size",
                    &SIZE.to_string(),
                    "--total",
                    &total,
                ];
                steps.extend(climbed.iter().map(|one| step(&cell, *one, &words)));
                let is_other = |one: &&Contender| OTHERS.contains(&one.peer.name.as_str());
                for other in contenders.iter().filter(is_other).filter(|_| args.steps.is_none()) {
                    let client = ["marshal"].iter().chain(&words).map(|word| (*word).to_owned()).collect();
                    let (cell, peer) = (cell.clone(), other.peer.clone());
                    steps.push(Step {
                        cell,
                        peer,
                        server: Vec::new(),
                        client,
                        figures,
                        perform: Step::alone,
                    });
                }
            }
        }
    }
    Plan { name: NAME, links: Vec::new(), rounds: 7, checks: Vec::new(), steps }
}

fn cell(element: &str, side: &str, order: &str) -> Cell {
    Cell::default().with("type", element).with("side", side).with("order", order)
}

/// Returns the value as written on the command line.
fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn peer(step: ladder::Step) -> Peer {
    let program = std::env::current_exe().unwrap_or_else(|_| "ttcp".into());
    let client = [program.to_string_lossy().into_owned(), "ladder-step".into(), "--step".into(), word(&step)];
    Peer {
        name: step.title().to_owned(),
        server: Vec::new(),
        client: client.to_vec(),
        batch: false,
        zero_copy: false,
        samples: false,
    }
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    if output.line.get("code_bytes").is_some() {
        return ["code_bytes", "functions"]
            .into_iter()
            .map(|name| Ok((name.to_owned(), of_line(output.line, name)?)))
            .collect();
    }
    if let Some(digest) = output.line.get("digest").and_then(Value::as_str) {
        same_octets(output.line, digest)?;
    }
    let mut figures: Figures = ["mbit_s", "secs", "bytes", "checked", "elements"]
        .into_iter()
        .map(|name| Ok((name.to_owned(), of_line(output.line, name)?)))
        .collect::<Result<_, String>>()?;
    if let Some(calls) = output.line.get("calls").and_then(Value::as_object) {
        let elements = figures.get("elements").copied().unwrap_or(1.0);
        let mut all = 0.0;
        for (routine, calls) in calls {
            let calls = calls.as_f64().ok_or("its calls are no numbers")?;
            all += calls;
            figures.insert(format!("calls_{routine}"), calls / elements);
        }
        figures.insert("calls".into(), all / elements);
    }
    Ok(figures)
}

/// Checks whether the bytes that another ORB wrote are those of the stubs.
fn same_octets(line: &Value, digest: &str) -> Result<(), String> {
    let word = |name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = Element::from_str(word("type"), false)?;
    let order = Order::from_str(word("order"), false)?;
    let size = line.get("size").and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let own = Case::new(kind, order, size.ok_or("it has no size")?).digest();
    if digest == format!("{own:016x}") {
        Ok(())
    } else {
        Err("its octets are not those that stubs write".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_of_others_are_compared() {
        let line = serde_json::json!({ "type": "binstruct", "order": "foreign", "size": 131_072 });
        assert_eq!(same_octets(&line, "c6e339c3f3833d35"), Ok(()), "as omniORB 4.2 writes them");
        let error = same_octets(&line, "c6e339c3f3833d36").unwrap_err();
        assert_eq!(error, "its octets are not those that stubs write");
        assert!(same_octets(&serde_json::json!({ "type": "any", "order": "native" }), "").is_err());
    }
}

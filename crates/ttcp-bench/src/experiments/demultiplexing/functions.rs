//! The cost of a call in each function of the server, measured with callgrind.

use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::plan::{Figures, Step};
use super::super::store::{Cell, Outcome, StoredResults};
use super::{CALLS_PER_ITERATION, NAME, StrategyPeer};
use crate::figures::{Column, Section, Table, format_figure};
use crate::harness::peers::{Failure, RunContext};
use crate::profiler::Profile;
use crate::profiler::callgrind::Callgrind;
use crate::profiler::groups::Group;

const PROFILE_FILE: &str = "demultiplexing.callgrind";
const PROFILE_TIMEOUT: Duration = Duration::from_secs(60);
const SHORT_ITERATIONS: u32 = 1;
/// Additional iterations of the long execution, by default and with `--quick`.
const ADDITIONAL_ITERATIONS: [u32; 2] = [20, 2];
const MAX_STORED_FUNCTIONS: usize = 40;
const MAX_SHOWN_FUNCTIONS: usize = 10;
/// The setting of a cell that names the measuring tool.
const TOOL_SETTING: &str = "by";
const CALLGRIND: &str = "callgrind";
/// The peer that runs in a virtual machine. Callgrind would only see the functions of the machine.
const VIRTUAL_MACHINE_PEER: &str = "jacorb";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Function {
    name: String,
    /// Instructions per call of the client, excluding called functions.
    instructions: f64,
    /// Calls of this function per call of the client.
    calls: f64,
}

pub(super) fn is_measured_with_callgrind(cell: &Cell) -> bool {
    cell.word(TOOL_SETTING) == Some(CALLGRIND)
}

/// Returns the measurements of two-way calls, for each number of operations. If callgrind is not available,
/// prints a message and returns no measurements.
pub(super) fn steps(peers: &[StrategyPeer], operations: &[u32], quick: bool) -> Vec<Step> {
    if let Err(why) = callgrind_or_reason() {
        eprintln!("ttcp: {NAME} does not measure functions of the server: {why}");
        return Vec::new();
    }
    let mut steps = Vec::new();
    for operations in operations.iter().copied() {
        let cell = Cell::default()
            .with("operations", u64::from(operations))
            .with(TOOL_SETTING, CALLGRIND)
            .with("iterations", u64::from(ADDITIONAL_ITERATIONS[usize::from(quick)]));
        for one in peers.iter().filter(|one| one.has_interface(operations)) {
            if one.peer.name == VIRTUAL_MACHINE_PEER {
                eprintln!(
                    "ttcp: {NAME} does not measure functions of {VIRTUAL_MACHINE_PEER}: \
                     callgrind only sees its virtual machine"
                );
                continue;
            }
            let client = ["last", "--operations", &operations.to_string()].map(String::from).to_vec();
            let step = Step::new(&cell, &one.peer, client, |_| Ok(Figures::new()));
            steps.push(Step { perform: measure_with_callgrind, ..step });
        }
    }
    steps
}

fn callgrind_or_reason() -> &'static Result<Callgrind, String> {
    static FOUND: OnceLock<Result<Callgrind, String>> = OnceLock::new();
    FOUND.get_or_init(Callgrind::find)
}

/// Executes the server twice, with few calls and with more. The difference is the cost of the calls, without
/// program start and connection setup.
fn measure_with_callgrind(step: &Step, context: &mut RunContext<'_>) -> Result<Outcome, Failure> {
    let failed = |reason: String| Failure::Profiler { reason };
    let callgrind = *callgrind_or_reason().as_ref().map_err(|why| failed(why.clone()))?;
    let file = context.dir.join(PROFILE_FILE);
    let mut peer = step.peer.clone();
    drop(peer.server.splice(0..0, callgrind.command_prefix(&file.to_string_lossy(), false)));
    let mut execute = |iterations: u32| {
        let _ = std::fs::remove_file(&file);
        let arguments = ["--iterations".to_owned(), iterations.to_string()];
        let client = step.client_arguments.iter().cloned().chain(arguments).collect();
        context.children.set_grace_period(Some(PROFILE_TIMEOUT));
        let run = peer.run_once(&step.server_arguments, client, context);
        context.children.set_grace_period(None);
        let line = run?.line;
        Ok((line, callgrind.read(&file).map_err(failed)?.profile))
    };
    let additional = u32::try_from(step.cell.number("iterations").unwrap_or(1)).unwrap_or(u32::MAX);
    let (_, short) = execute(SHORT_ITERATIONS)?;
    let (mut line, long) = execute(SHORT_ITERATIONS + additional)?;
    // The warm-up adds a tenth of the calls.
    let calls = f64::from(additional * CALLS_PER_ITERATION) * 1.1;
    let functions = differences(&short, &long, calls);
    let all: f64 = functions.iter().map(|function| function.instructions).sum();
    let figures = [("call_instructions".to_owned(), all)].into();
    if let Value::Object(line) = &mut line {
        let kept = functions.get(..MAX_STORED_FUNCTIONS).unwrap_or(&functions);
        line.insert("functions".to_owned(), serde_json::to_value(kept).unwrap_or_default());
    }
    Ok(Outcome::Figures { figures, processor: None, line })
}

/// Returns the cost per call of each function, the most expensive function first.
fn differences(short: &Profile, long: &Profile, calls: f64) -> Vec<Function> {
    let mut functions: Vec<Function> = long
        .iter()
        .map(|(name, cost)| {
            let before = short.get(name).copied().unwrap_or_default();
            Function {
                name: name.clone(),
                instructions: (cost.own - before.own) / calls,
                calls: (cost.calls - before.calls) / calls,
            }
        })
        .filter(|function| function.instructions > 0.0)
        .collect();
    functions.sort_by(|a, b| b.instructions.total_cmp(&a.instructions));
    functions
}

pub(super) fn add_tables(data: &StoredResults, section: &mut Section) {
    let mut operations: Vec<u64> = data
        .samples_of(NAME)
        .filter(|sample| is_measured_with_callgrind(&sample.cell))
        .filter_map(|sample| sample.cell.number("operations"))
        .collect();
    operations.sort_unstable();
    operations.dedup();
    for operations in operations {
        let mut rows = Vec::new();
        for peer in data.peers(NAME) {
            // The instructions hardly differ between rounds.
            let Some((all, functions)) = data.samples_of(NAME).find_map(|sample| {
                let is_selected = is_measured_with_callgrind(&sample.cell)
                    && sample.peer == peer
                    && sample.cell.number("operations") == Some(operations);
                let Outcome::Figures { figures, line, .. } = &sample.outcome else { return None };
                let functions = line.get("functions").filter(|_| is_selected)?;
                let functions: Vec<Function> = serde_json::from_value(functions.clone()).ok()?;
                Some((figures.get("call_instructions").copied(), functions))
            }) else {
                continue;
            };
            for function in functions.iter().take(MAX_SHOWN_FUNCTIONS) {
                rows.push(vec![
                    peer.to_owned(),
                    function.name.clone(),
                    Group::of(&function.name).displayed_as().to_string(),
                    format_figure(Some(function.instructions)),
                    format_figure(all.map(|all| 100.0 * function.instructions / all)),
                    format_figure(Some(function.calls)),
                ]);
            }
            rows.push(vec![
                peer.to_owned(),
                "Total".into(),
                "-".into(),
                format_figure(all),
                "100".into(),
                "-".into(),
            ]);
        }
        let columns = vec![
            Column::words("version"),
            Column::words("function"),
            Column::words("group"),
            Column::figures("instructions per call"),
            Column::figures("%"),
            Column::figures("times per call"),
        ];
        section.table(Table {
            caption: format!(
                "The server's functions for a two-way call of the last of {operations} operations, the {MAX_SHOWN_FUNCTIONS} most expensive of each \
                 version: instructions outside the kernel as callgrind counts them, without those of called functions."
            ),
            columns,
            rows,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiler::Cost;

    #[test]
    fn cost_of_a_call_is_the_difference_per_call() {
        let of = |own: f64, calls: f64| Cost { own, calls };
        let short: Profile =
            [("start".to_owned(), of(900.0, 1.0)), ("find".to_owned(), of(110.0, 11.0))].into();
        let long: Profile = [
            ("start".to_owned(), of(900.0, 1.0)),
            ("find".to_owned(), of(330.0, 33.0)),
            ("late".to_owned(), of(44.0, 22.0)),
        ]
        .into();
        let functions = differences(&short, &long, 22.0);
        let shown: Vec<_> = functions.iter().map(|f| (f.name.as_str(), f.instructions, f.calls)).collect();
        assert_eq!(shown, [("find", 10.0, 1.0), ("late", 2.0, 1.0)]);
    }
}

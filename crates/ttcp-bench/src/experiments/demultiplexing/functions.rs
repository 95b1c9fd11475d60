//! The cost of a call in each of the server's functions, measured by callgrind.

use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::store::{Cell, Data, Outcome};
use super::super::{Figures, Step};
use super::{CALLS_AN_ITERATION, NAME, StrategyPeer};
use crate::figures::{Column, Section, Table, shown};
use crate::harness::peers::{Failure, Site};
use crate::profiler::Profile;
use crate::profiler::callgrind::Callgrind;
use crate::profiler::groups::Group;

/// The file to which callgrind writes its profile.
const FILE: &str = "demultiplexing.callgrind";
/// Timeout for writing the profile when its program is to end.
const GRACE: Duration = Duration::from_secs(60);
/// Iterations of the short execution with which the long one is compared.
const SHORT: u32 = 1;
/// Additional iterations of the long execution; with `--quick`.
const MORE: [u32; 2] = [20, 2];
/// How many functions of a peer are stored, and how many a table shows.
const KEPT: usize = 40;
const SHOWN: usize = 10;
/// The setting of a cell that names the measuring tool.
const BY: &str = "by";
const CALLGRIND: &str = "callgrind";
/// A peer in a virtual machine: callgrind would see the machine's functions, not the program's.
const VIRTUAL: &str = "jacorb";

/// A function in the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Function {
    name: String,
    /// Instructions for a call of the client, without those of called functions.
    instructions: f64,
    /// How often it runs for such a call.
    calls: f64,
}

/// Returns whether this module measures the cell.
pub(super) fn is_here(cell: &Cell) -> bool {
    cell.word(BY) == Some(CALLGRIND)
}

/// Returns the measurements: two-way calls of `operations` operations. Empty, with a message, where callgrind
/// does not work.
pub(super) fn steps(peers: &[StrategyPeer], operations: &[u32], quick: bool) -> Vec<Step> {
    if let Err(why) = found() {
        eprintln!("ttcp: {NAME} goes without callgrind, and so without the server's functions: {why}");
        return Vec::new();
    }
    let mut steps = Vec::new();
    for operations in operations.iter().copied() {
        let cell = Cell::default()
            .with("operations", u64::from(operations))
            .with(BY, CALLGRIND)
            .with("iterations", u64::from(MORE[usize::from(quick)]));
        for one in peers.iter().filter(|one| one.has(operations)) {
            if one.peer.name == VIRTUAL {
                eprintln!(
                    "ttcp: {NAME}: functions of {VIRTUAL} are not told: callgrind sees its virtual machine only"
                );
                continue;
            }
            let client = ["last", "--operations", &operations.to_string()].map(String::from).to_vec();
            steps.push(Step {
                cell: cell.clone(),
                peer: one.peer.clone(),
                server: Vec::new(),
                client,
                figures: |_| Ok(Figures::new()),
                perform: by_callgrind,
            });
        }
    }
    steps
}

fn found() -> &'static Result<Callgrind, String> {
    static FOUND: OnceLock<Result<Callgrind, String>> = OnceLock::new();
    FOUND.get_or_init(Callgrind::find)
}

/// Executes the server twice, for few calls and for more. The difference is the cost of calls, without
/// program start and connection setup.
fn by_callgrind(step: &Step, at: &mut Site<'_>) -> Result<Outcome, Failure> {
    let failed = |reason: String| Failure::Profiler { reason };
    let callgrind = *found().as_ref().map_err(|why| failed(why.clone()))?;
    let file = at.dir.join(FILE);
    let mut peer = step.peer.clone();
    drop(peer.server.splice(0..0, callgrind.around(&file.to_string_lossy(), false)));
    let mut execute = |iterations: u32| {
        let _ = std::fs::remove_file(&file);
        let more = ["--iterations".to_owned(), iterations.to_string()];
        let client = step.client.iter().cloned().chain(more).collect();
        at.children.set_grace(Some(GRACE));
        let performed = peer.run_once(&step.server, client, at);
        at.children.set_grace(None);
        let line = performed?.line;
        Ok((line, callgrind.read(&file).map_err(failed)?.profile))
    };
    let more = u32::try_from(step.cell.number("iterations").unwrap_or(1)).unwrap_or(u32::MAX);
    let (_, short) = execute(SHORT)?;
    let (line, long) = execute(SHORT + more)?;
    // A warm-up of another tenth precedes them.
    let calls = f64::from(more * CALLS_AN_ITERATION) * 1.1;
    let functions = differences(&short, &long, calls);
    let all: f64 = functions.iter().map(|function| function.instructions).sum();
    let figures = [("call_instructions".to_owned(), all)].into();
    let mut line = line;
    if let Value::Object(line) = &mut line {
        let kept = functions.get(..KEPT).unwrap_or(&functions);
        line.insert("functions".to_owned(), serde_json::to_value(kept).unwrap_or_default());
    }
    Ok(Outcome::Figures { figures, processor: None, line })
}

/// Returns the difference of each function per call, the most expensive first.
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

/// Adds the tables.
pub(super) fn tables(data: &Data, section: &mut Section) {
    let mut operations: Vec<u64> = data
        .of(NAME)
        .filter(|sample| is_here(&sample.cell))
        .filter_map(|sample| sample.cell.number("operations"))
        .collect();
    operations.sort_unstable();
    operations.dedup();
    for operations in operations {
        let mut rows = Vec::new();
        for peer in data.peers(NAME) {
            // Numbers of instructions hardly differ between rounds.
            let Some((all, functions)) = data.of(NAME).find_map(|sample| {
                let is_it = is_here(&sample.cell)
                    && sample.peer == peer
                    && sample.cell.number("operations") == Some(operations);
                let Outcome::Figures { figures, line, .. } = &sample.outcome else { return None };
                let functions = line.get("functions").filter(|_| is_it)?;
                let functions: Vec<Function> = serde_json::from_value(functions.clone()).ok()?;
                Some((figures.get("call_instructions").copied(), functions))
            }) else {
                continue;
            };
            for function in functions.iter().take(SHOWN) {
                rows.push(vec![
                    peer.to_owned(),
                    function.name.clone(),
                    Group::of(&function.name).shown().to_string(),
                    shown(Some(function.instructions)),
                    shown(all.map(|all| 100.0 * function.instructions / all)),
                    shown(Some(function.calls)),
                ]);
            }
            rows.push(vec![
                peer.to_owned(),
                "Total".into(),
                "-".into(),
                shown(all),
                "100".into(),
                "-".into(),
            ]);
        }
        let columns = vec![
            Column::words("version"),
            Column::words("function"),
            Column::words("for"),
            Column::figures("instructions a call"),
            Column::figures("%"),
            Column::figures("times a call"),
        ];
        section.table(Table {
            caption: format!(
                "The server's functions for a two-way call of the last of {operations} operations, the {SHOWN} costliest of each: instructions outside the \
                 kernel as callgrind counts them, each without what it calls."
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
    fn what_calls_cost_is_what_more_of_them_cost_more() {
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
        let told: Vec<_> = functions.iter().map(|f| (f.name.as_str(), f.instructions, f.calls)).collect();
        assert_eq!(told, [("find", 10.0, 1.0), ("late", 2.0, 1.0)]);
    }
}

//! The profiling of one side of a flood, which is the sender or the receiver.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::plan::{Figures, Step, line_figure};
use super::super::store::Outcome;
use super::{Profilers, Side};
use crate::harness::peers::{ClientRun, Failure, RunContext};
use crate::profiler::Profile;
use crate::profiler::callgrind::{Callgrind, Chain, Execution};
use crate::profiler::groups::{ChainEnd, Group};
use crate::work::Element;

const PROFILE_FILE: &str = "whitebox.profile";
/// Time that a profiler has to write its results when the profiled program ends.
const PROFILE_TIMEOUT: Duration = Duration::from_secs(60);
/// Functions with a smaller share are combined into [`REST`]. In profiles of perf, system calls are exempt.
const MIN_SHARE: f64 = 0.0005;
pub(super) const REST: &str = "(functions of less than 0.05 % each)";
/// Number of messages in the short one of two runs under callgrind, without the warm-up.
const SHORT_RUN_MESSAGES: u64 = 10;

/// Number of innermost functions of a chain of calls that are searched for the one that determines its group.
const MAX_SEARCHED_CALLERS: usize = 8;

/// The cost of a function in the results, scaled to the number of bytes in the setting `total` of the cell.
/// `own` is in milliseconds (perf) or instructions (callgrind).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) own: f64,
    pub(super) calls: f64,
}

/// Number of floods without a sample of perf after which the measurement fails. The time span of a flood is
/// derived from the time when the client's line is read. If a busy machine delays this, the span may miss a
/// short flood.
const MAX_ATTEMPTS: u32 = 5;

/// Profiles a side with perf. Costs are milliseconds on a processor during the measured part of the flood.
pub(super) fn by_perf(step: &Step, context: &mut RunContext<'_>) -> Result<Outcome, Failure> {
    let failed = |reason: String| Failure::Profiler { reason };
    let perf = Profilers::get().perf.as_ref().map_err(|error| failed(error.clone()))?;
    let file = context.dir.join(PROFILE_FILE);
    let command_prefix = perf.command_prefix(&file.to_string_lossy());
    for _ in 0..MAX_ATTEMPTS {
        let run = run_profiled(step, context, &command_prefix, &[])?;
        let bad_line = |reason: String| Failure::BadLine { reason, line: run.line.to_string() };
        let secs = line_figure(&run.line, "secs").map_err(bad_line)?;
        let flood = Duration::try_from_secs_f64(secs).unwrap_or_default();
        let span = run.line_received_at.saturating_sub(flood)..run.line_received_at;
        let (profile, samples) = perf.read(&file, &span).map_err(failed)?;
        if samples == 0 {
            continue;
        }
        let scale = cell_bytes(step, "total") / sent_bytes(step, total_option(step));
        let all: f64 = profile.values().map(|cost| cost.own).sum::<f64>() * scale;
        let figures = [("all_ms".to_owned(), all), ("samples".to_owned(), samples as f64)].into();
        return Ok(outcome(figures, run, functions(&profile, scale, true), None));
    }
    Err(failed(format!("perf took no sample in {MAX_ATTEMPTS} floods: send more bytes with --sampled")))
}

/// Executes a side under callgrind twice, with a few messages and with many. The difference is the cost of
/// the additional messages, without the start and the end of the program.
pub(super) fn by_callgrind(step: &Step, context: &mut RunContext<'_>) -> Result<Outcome, Failure> {
    let failed = |reason: String| Failure::Profiler { reason };
    let callgrind = *Profilers::get().callgrind.as_ref().map_err(|error| failed(error.clone()))?;
    let message_bytes = message_bytes(step);
    let requested = (cell_bytes(step, "total") / message_bytes as f64).round().max(1.0) as u64;
    let many = (SHORT_RUN_MESSAGES..)
        .find(|many| with_warm_up(*many) >= with_warm_up(SHORT_RUN_MESSAGES) + requested)
        .unwrap_or(SHORT_RUN_MESSAGES + requested);
    let mut execute = |messages: u64, records_chains| {
        let file = context.dir.join(PROFILE_FILE);
        let command_prefix = callgrind.command_prefix(&file.to_string_lossy(), records_chains);
        let total = ["--total".to_owned(), (messages * message_bytes).to_string()];
        let run = run_profiled(step, context, &command_prefix, &total)?;
        let execution = read_and_remove(callgrind, &file).map_err(failed)?;
        Ok((run, execution))
    };
    let (_, short) = execute(SHORT_RUN_MESSAGES, true)?;
    let (run, long) = execute(many, false)?;
    let additional = (with_warm_up(many) - with_warm_up(SHORT_RUN_MESSAGES)) as f64;
    let mut profile = long.profile;
    for (name, cost) in &mut profile {
        let before = short.profile.get(name).copied().unwrap_or_default();
        cost.own = (cost.own - before.own).max(0.0);
        cost.calls = (cost.calls - before.calls).max(0.0);
    }
    let chain = match profiled_side(step) {
        Side::Sender => chain_to_write(&short.chains),
        Side::Receiver => chain_to_servant(&short.chains),
    };
    let scale = requested as f64 / additional;
    let all: f64 = profile.values().map(|cost| cost.own).sum::<f64>() * scale;
    let mut figures: Figures = [("all_instructions".to_owned(), all)].into();
    if let Some(chain) = &chain {
        figures.insert("chain_calls".to_owned(), chain.len() as f64);
    }
    Ok(outcome(figures, run, functions(&profile, scale, false), chain))
}

fn outcome(
    figures: Figures,
    run: ClientRun,
    functions: Vec<Function>,
    chain: Option<Vec<String>>,
) -> Outcome {
    let mut line = run.line;
    if let Value::Object(line) = &mut line {
        line.insert("functions".to_owned(), serde_json::to_value(functions).unwrap_or_default());
        if let Some(chain) = chain {
            line.insert("chain".to_owned(), chain.into());
        }
    }
    Outcome::Figures { figures, processor: None, line }
}

fn read_and_remove(callgrind: Callgrind, file: &Path) -> Result<Execution, String> {
    let execution = callgrind.read(file);
    // If the next execution wrote no results, these would be read again.
    let _ = std::fs::remove_file(file);
    execution
}

/// Runs server and client, with `command_prefix` for the profiled side, and more `arguments` for the client.
fn run_profiled(
    step: &Step,
    context: &mut RunContext<'_>,
    command_prefix: &[String],
    arguments: &[String],
) -> Result<ClientRun, Failure> {
    let _ = std::fs::remove_file(context.dir.join(PROFILE_FILE));
    let mut peer = step.peer.clone();
    match profiled_side(step) {
        Side::Sender => drop(peer.client.splice(0..0, command_prefix.iter().cloned())),
        Side::Receiver => drop(peer.server.splice(0..0, command_prefix.iter().cloned())),
    }
    let client = step.client_arguments.iter().chain(arguments).cloned().collect();
    context.children.set_grace_period(Some(PROFILE_TIMEOUT));
    let run = peer.run_once(&step.server_arguments, client, context);
    context.children.set_grace_period(None);
    run
}

fn profiled_side(step: &Step) -> Side {
    let is_of_cell = |side: &Side| step.cell.word("side") == Some(side.name());
    Side::ALL.into_iter().find(is_of_cell).unwrap_or(Side::Sender)
}

fn cell_bytes(step: &Step, name: &str) -> f64 {
    step.cell.number(name).unwrap_or_default() as f64
}

/// Returns the bytes of elements in one message.
fn message_bytes(step: &Step) -> u64 {
    let size = step.cell.number("bytes").unwrap_or_default();
    let element = step.cell.word("type").and_then(|word| Element::from_str(word, true).ok());
    let each = element.map_or(1, Element::bytes);
    (size / each).max(1) * each
}

fn total_option(step: &Step) -> u64 {
    let option = step.client_arguments.iter().position(|word| word == "--total");
    option.and_then(|option| step.client_arguments.get(option + 1)?.parse().ok()).unwrap_or_default()
}

/// Returns the bytes that the client sends with `--total total`, which is a whole number of messages.
fn sent_bytes(step: &Step, total: u64) -> f64 {
    (total.div_ceil(message_bytes(step)) * message_bytes(step)) as f64
}

/// Returns the number of messages that a client sends for a flood of `messages`, including its warm-up.
fn with_warm_up(messages: u64) -> u64 {
    messages + messages.div_ceil(10)
}

/// Returns the functions with more than the minimum share, the most expensive one first, and then the sum of
/// the others. If `keeps_called` is set, also returns all functions whose calls are counted.
fn functions(profile: &Profile, scale: f64, keeps_called: bool) -> Vec<Function> {
    let all: f64 = profile.values().map(|cost| cost.own).sum();
    let (mut kept, mut rest) = (Vec::new(), 0.0);
    for (name, cost) in profile {
        if cost.own > all * MIN_SHARE || keeps_called && cost.calls > 0.0 {
            kept.push(Function { name: name.clone(), own: cost.own * scale, calls: cost.calls * scale });
        } else {
            rest += cost.own * scale;
        }
    }
    kept.sort_by(|a, b| b.own.total_cmp(&a.own));
    if rest > 0.0 {
        kept.push(Function { name: REST.to_owned(), own: rest, calls: 0.0 });
    }
    kept
}

/// Returns the functions from the stub to the write, outermost first. Of the frequent writes, uses the one
/// nearest to the caller, because writes of other tasks are called farther from it.
fn chain_to_write(chains: &[Chain]) -> Option<Vec<String>> {
    let caller =
        |chain: &&Chain| chain.functions.iter().position(|function| ChainEnd::Caller.contains(function));
    let writes = frequent_chains(chains, Group::Write).filter_map(|chain| Some((caller(&chain)?, chain)));
    let (caller, write) = writes.min_by_key(|(caller, _)| *caller)?;
    Some(write.functions.iter().take(caller).rev().cloned().collect())
}

/// Returns the functions that are in the servant's chain but not in a read's chain, outermost first. They run
/// between the read's return and the servant. Of the frequent reads, uses the one nearest to the servant.
fn chain_to_servant(chains: &[Chain]) -> Option<Vec<String>> {
    let is_servant =
        |chain: &&Chain| chain.functions.first().is_some_and(|function| ChainEnd::Servant.contains(function));
    let servant = chains.iter().filter(is_servant).max_by_key(|chain| chain.calls)?;
    let common = |read: &Chain| {
        let pairs = read.functions.iter().rev().zip(servant.functions.iter().rev());
        pairs.take_while(|(read, servant)| read == servant).count()
    };
    // Some peers also read while they unmarshal.
    let unmarshals =
        |read: &&Chain| read.functions.iter().any(|function| Group::of(function) == Group::Marshal);
    let shared = frequent_chains(chains, Group::Read).filter(|read| !unmarshals(read)).map(common).max()?;
    Some(servant.functions.iter().rev().skip(shared).cloned().collect())
}

/// Returns the chains of a group that make at least one system call for every two messages. The function that
/// belongs to the group may be a caller of the function that makes the system call.
fn frequent_chains(chains: &[Chain], group: Group) -> impl Iterator<Item = &Chain> {
    let of_group = move |chain: &&Chain| {
        let mut groups =
            chain.functions.iter().take(MAX_SEARCHED_CALLERS).map(|function| Group::of(function));
        groups.find(|group| matches!(group, Group::Read | Group::Write)) == Some(group)
    };
    chains.iter().filter(|chain| chain.system_calls >= with_warm_up(SHORT_RUN_MESSAGES) / 2).filter(of_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(functions: &str, calls: u64, system_calls: u64) -> Chain {
        Chain { functions: functions.split(' ').map(String::from).collect(), calls, system_calls }
    }

    #[test]
    fn chain_to_write_begins_at_the_caller() {
        let chains = [
            chain("write wake turn task poll run start main", 90, 90),
            chain("writev flush stub ttcp_bench::test_loops::flood run main", 11, 11),
            chain("writev hello stub ttcp_bench::test_loops::ttcp run main", 1, 1),
            chain("write wake turn ttcp_bench::test_loops::flood run main", 4, 4),
            chain("flush stub ttcp_bench::test_loops::flood run main", 11, 0),
        ];
        assert_eq!(chain_to_write(&chains).unwrap(), ["stub", "flush", "writev"]);
        assert_eq!(chain_to_write(&chains[2..]), None, "no frequent write");
    }

    #[test]
    fn chain_to_servant_begins_after_the_functions_of_the_read() {
        let chains = [
            chain("read load start main", 40, 40),
            chain("recvfrom fill loop thread", 20, 20),
            chain("recvfrom fill unmarshalArguments upcall dispatch loop thread", 90, 90),
            chain("TtcpImpl::sendCharSeq upcall dispatch loop thread", 11, 0),
            chain("TtcpImpl::sync upcall dispatch loop thread", 2, 0),
        ];
        assert_eq!(chain_to_servant(&chains).unwrap(), ["dispatch", "upcall", "TtcpImpl::sendCharSeq"]);
        assert_eq!(chain_to_servant(&chains[..2]), None, "sockets have none");
    }

    #[test]
    fn long_run_has_the_required_additional_messages() {
        let many = (SHORT_RUN_MESSAGES..)
            .find(|many| with_warm_up(*many) >= with_warm_up(SHORT_RUN_MESSAGES) + 512)
            .unwrap();
        assert_eq!(
            with_warm_up(many) - with_warm_up(SHORT_RUN_MESSAGES),
            512,
            "64 MiB in buffers of 128 KiB, so that calls are whole numbers"
        );
    }

    #[test]
    fn functions_with_small_shares_are_combined() {
        let cost = |own, calls| crate::profiler::Cost { own, calls };
        let profile: Profile = [
            ("a".to_owned(), cost(9_999.0, 0.0)),
            ("b".to_owned(), cost(1.0, 512.0)),
            ("c".to_owned(), cost(0.0, 7.0)),
        ]
        .into();
        let names = |functions: Vec<Function>| {
            functions.into_iter().map(|f| (f.name, f.own, f.calls)).collect::<Vec<_>>()
        };
        let kept = names(functions(&profile, 2.0, false));
        assert_eq!(kept, [("a".to_owned(), 19_998.0, 0.0), (REST.to_owned(), 2.0, 0.0)]);
        let kept = names(functions(&profile, 1.0, true));
        assert_eq!(kept.len(), 3, "system calls without a sample: {kept:?}");
    }
}

//! Profiles of one side of a flood.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::plan::line_figure;
use super::super::plan::{Figures, Step};
use super::super::store::Outcome;
use super::{Profilers, Side};
use crate::harness::peers::{ClientRun, Failure, Site};
use crate::profiler::Profile;
use crate::profiler::callgrind::{Callgrind, Chain, Execution};
use crate::profiler::groups::{ChainEnd, Group};
use crate::work::Element;

const FILE: &str = "whitebox.profile";
const PROFILE_TIMEOUT: Duration = Duration::from_secs(60);
/// Functions with a smaller share are combined into [`REST`], except system calls.
const MIN_SHARE: f64 = 0.0005;
pub(super) const REST: &str = "(functions of less than 0.05 % each)";
const SHORT_MESSAGES: u64 = 10;

/// Maximum number of callers of a system call that are searched for its group.
const MAX_SEARCHED_CALLERS: usize = 8;

/// A function in the results. The values refer to the `total` of the cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) own: f64,
    pub(super) calls: f64,
}

/// Maximum number of floods until one yields a sample. The time span of a flood is derived from the time when
/// its line was read. On a busy machine this may be too late for a short flood.
const MAX_ATTEMPTS: u32 = 5;

/// Samples a side with perf: milliseconds on a processor during the measured part of the flood.
pub(super) fn by_perf(step: &Step, site: &mut Site<'_>) -> Result<Outcome, Failure> {
    let failed = |reason: String| Failure::Profiler { reason };
    let perf = Profilers::get().perf.as_ref().map_err(|error| failed(error.clone()))?;
    let file = site.dir.join(FILE);
    let command_prefix = perf.command_prefix(&file.to_string_lossy());
    for _ in 0..MAX_ATTEMPTS {
        let run = run_profiled(step, site, &command_prefix, &[])?;
        let bad_line = |reason: String| Failure::BadLine { reason, line: run.line.to_string() };
        let secs = line_figure(&run.line, "secs").map_err(bad_line)?;
        let flood = Duration::try_from_secs_f64(secs).unwrap_or_default();
        let span = run.ended_at.saturating_sub(flood)..run.ended_at;
        let (profile, samples) = perf.read(&file, &span).map_err(failed)?;
        if samples == 0 {
            continue;
        }
        let scale = cell_bytes(step, "total") / sent_bytes(step, requested_bytes(step));
        let all: f64 = profile.values().map(|cost| cost.own).sum::<f64>() * scale;
        let figures = [("all_ms".to_owned(), all), ("samples".to_owned(), samples as f64)].into();
        return Ok(outcome(figures, run, functions(&profile, scale, true), None));
    }
    Err(failed(format!("{MAX_ATTEMPTS} floods yielded no sample: they are too short (--sampled)")))
}

/// Executes a side under callgrind twice, with a few messages and with many. The difference is the cost of
/// the messages, without start and end of the program.
pub(super) fn by_callgrind(step: &Step, site: &mut Site<'_>) -> Result<Outcome, Failure> {
    let failed = |reason: String| Failure::Profiler { reason };
    let callgrind = *Profilers::get().callgrind.as_ref().map_err(|error| failed(error.clone()))?;
    let payload = payload(step);
    let wanted = (cell_bytes(step, "total") / payload as f64).round().max(1.0) as u64;
    let many = (SHORT_MESSAGES..)
        .find(|many| messages(*many) >= messages(SHORT_MESSAGES) + wanted)
        .unwrap_or(SHORT_MESSAGES + wanted);
    let mut execute = |messages: u64, chains| {
        let file = site.dir.join(FILE);
        let command_prefix = callgrind.command_prefix(&file.to_string_lossy(), chains);
        let total = ["--total".to_owned(), (messages * payload).to_string()];
        let run = run_profiled(step, site, &command_prefix, &total)?;
        let execution = read_and_remove(callgrind, &file).map_err(failed)?;
        Ok((run, execution))
    };
    let (_, short) = execute(SHORT_MESSAGES, true)?;
    let (run, long) = execute(many, false)?;
    let additional = (messages(many) - messages(SHORT_MESSAGES)) as f64;
    let mut profile = long.profile;
    for (name, cost) in &mut profile {
        let before = short.profile.get(name).copied().unwrap_or_default();
        cost.own = (cost.own - before.own).max(0.0);
        cost.calls = (cost.calls - before.calls).max(0.0);
    }
    let chain = match side(step) {
        Side::Sender => chain_to_write(&short.chains),
        Side::Receiver => chain_to_servant(&short.chains),
    };
    let scale = wanted as f64 / additional;
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
    // If the next execution writes no results, these must not be taken for them.
    let _ = std::fs::remove_file(file);
    execution
}

/// Runs server and client. The command of the profiled side is prefixed with `command_prefix`, and the client
/// has additional `arguments`.
fn run_profiled(
    step: &Step,
    site: &mut Site<'_>,
    command_prefix: &[String],
    arguments: &[String],
) -> Result<ClientRun, Failure> {
    let _ = std::fs::remove_file(site.dir.join(FILE));
    let mut peer = step.peer.clone();
    match side(step) {
        Side::Sender => drop(peer.client.splice(0..0, command_prefix.iter().cloned())),
        Side::Receiver => drop(peer.server.splice(0..0, command_prefix.iter().cloned())),
    }
    let client = step.client.iter().chain(arguments).cloned().collect();
    site.children.set_grace_period(Some(PROFILE_TIMEOUT));
    let run = peer.run_once(&step.server, client, site);
    site.children.set_grace_period(None);
    run
}

fn side(step: &Step) -> Side {
    let is_of_cell = |side: &Side| step.cell.word("side") == Some(side.name());
    Side::ALL.into_iter().find(is_of_cell).unwrap_or(Side::Sender)
}

fn cell_bytes(step: &Step, name: &str) -> f64 {
    step.cell.number(name).unwrap_or_default() as f64
}

fn payload(step: &Step) -> u64 {
    let size = step.cell.number("bytes").unwrap_or_default();
    let element = step.cell.word("type").and_then(|word| Element::from_str(word, true).ok());
    let each = element.map_or(1, Element::bytes);
    (size / each).max(1) * each
}

fn requested_bytes(step: &Step) -> u64 {
    let place = step.client.iter().position(|word| word == "--total");
    place.and_then(|place| step.client.get(place + 1)?.parse().ok()).unwrap_or_default()
}

/// Returns the bytes that the client sends for `total`, which are whole messages.
fn sent_bytes(step: &Step, total: u64) -> f64 {
    (total.div_ceil(payload(step)) * payload(step)) as f64
}

fn messages(flood: u64) -> u64 {
    flood + flood.div_ceil(10)
}

/// Returns the functions with at least the minimum share, the most expensive first, and the sum of the
/// others. If `keeps_called` is set, all functions with calls are listed, which are system calls.
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

/// Returns the functions from the stub to the write, outermost first. It uses the frequent write that is
/// nearest to the caller: later writes of other tasks only share the program's start with the caller.
fn chain_to_write(chains: &[Chain]) -> Option<Vec<String>> {
    let caller =
        |chain: &&Chain| chain.functions.iter().position(|function| ChainEnd::Caller.contains(function));
    let writes = frequent(chains, Group::Write).filter_map(|chain| Some((caller(&chain)?, chain)));
    let (caller, write) = writes.min_by_key(|(caller, _)| *caller)?;
    Some(write.functions.iter().take(caller).rev().cloned().collect())
}

/// Returns the functions from the return of a read to the servant, outermost first. They are in the servant's
/// chain but not in that of the read. It uses the frequent read that is nearest to the servant.
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
    let shared = frequent(chains, Group::Read).filter(|read| !unmarshals(read)).map(common).max()?;
    Some(servant.functions.iter().rev().skip(shared).cloned().collect())
}

/// Returns the chains of a group with frequent system calls, at least one for every two messages. The
/// function of the group may be a caller of the one that makes the system call.
fn frequent(chains: &[Chain], group: Group) -> impl Iterator<Item = &Chain> {
    let of_group = move |chain: &&Chain| {
        let mut groups =
            chain.functions.iter().take(MAX_SEARCHED_CALLERS).map(|function| Group::of(function));
        groups.find(|group| matches!(group, Group::Read | Group::Write)) == Some(group)
    };
    chains.iter().filter(|chain| chain.system_calls >= messages(SHORT_MESSAGES) / 2).filter(of_group)
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
        let many = (SHORT_MESSAGES..).find(|many| messages(*many) >= messages(SHORT_MESSAGES) + 512).unwrap();
        assert_eq!(
            messages(many) - messages(SHORT_MESSAGES),
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

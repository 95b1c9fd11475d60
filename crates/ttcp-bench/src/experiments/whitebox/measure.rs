//! One side of a flood under a profiler.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::of_line;
use super::super::store::Outcome;
use super::super::{Figures, Step};
use super::{Profilers, Side};
use crate::harness::peers::{ClientRun, Failure, Site};
use crate::profiler::Profile;
use crate::profiler::callgrind::{Callgrind, Chain, Execution};
use crate::profiler::groups::{End, Group};
use crate::work::Element;

/// The file to which the profiler writes its results.
const FILE: &str = "whitebox.profile";
/// Timeout for the profiler to write them when its program is to end.
const GRACE: Duration = Duration::from_secs(60);
/// Share below which functions are combined into [`REST`], except system calls.
const LEAST: f64 = 0.0005;
/// The name of the combined functions.
pub(super) const REST: &str = "(functions of less than 0.05 % each)";
/// Messages of the short execution with which callgrind's long one is compared.
const SHORT: u64 = 10;

/// Number of callers above a system call that are searched for its purpose.
const NEAR: usize = 8;

/// A function in the results, per [`total`](Step) of user bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Function {
    /// Its name, without variants.
    pub(super) name: String,
    /// Milliseconds, or instructions, in the function itself.
    pub(super) own: f64,
    /// How often it was called; 0 where that is not counted.
    pub(super) calls: f64,
}

/// How often sampling a flood is attempted until it yields a sample. The flood's time span is derived from
/// when its line was read. On a busy machine that may be later than a short flood lasts.
const ATTEMPTS: u32 = 5;

/// Samples a side with perf: milliseconds on a processor during the measured part of the flood.
pub(super) fn by_perf(step: &Step, at: &mut Site<'_>) -> Result<Outcome, Failure> {
    let perf = Profilers::get().perf.as_ref().map_err(|e| Failure::Profiler { reason: e.clone() })?;
    let file = at.dir.join(FILE);
    let around = perf.around(&file.to_string_lossy());
    for _ in 0..ATTEMPTS {
        let performed = around_side(step, at, &around, &[])?;
        let bad = |reason: String| Failure::BadLine { reason, line: performed.line.to_string() };
        let flood =
            Duration::try_from_secs_f64(of_line(&performed.line, "secs").map_err(bad)?).unwrap_or_default();
        let within = performed.ended.saturating_sub(flood)..performed.ended;
        let (profile, samples) = perf.read(&file, &within).map_err(|reason| Failure::Profiler { reason })?;
        if samples == 0 {
            continue;
        }
        let scale = cell_bytes(step, "total") / sent(step, flooded(step));
        let all: f64 = profile.values().map(|cost| cost.own).sum::<f64>() * scale;
        let figures = [("all_ms".to_owned(), all), ("samples".to_owned(), samples as f64)].into();
        return Ok(outcome(figures, performed, functions(&profile, scale, true), None));
    }
    Err(Failure::Profiler {
        reason: format!("of {ATTEMPTS} floods it has no sample: they are too short (--sampled)"),
    })
}

/// Executes a side under callgrind twice, for a few messages and for many. The difference is the cost of the
/// messages, without start and end of the program.
pub(super) fn by_callgrind(step: &Step, at: &mut Site<'_>) -> Result<Outcome, Failure> {
    let callgrind =
        *Profilers::get().callgrind.as_ref().map_err(|e| Failure::Profiler { reason: e.clone() })?;
    let payload = payload(step);
    let wanted = (cell_bytes(step, "total") / payload as f64).round().max(1.0) as u64;
    let many = (SHORT..).find(|many| messages(*many) >= messages(SHORT) + wanted).unwrap_or(SHORT + wanted);
    let mut execute = |messages: u64, chains| {
        let file = at.dir.join(FILE);
        let around = callgrind.around(&file.to_string_lossy(), chains);
        let total = ["--total".to_owned(), (messages * payload).to_string()];
        let performed = around_side(step, at, &around, &total)?;
        let execution = read_removed(callgrind, &file).map_err(|reason| Failure::Profiler { reason })?;
        Ok((performed, execution))
    };
    let (_, short) = execute(SHORT, true)?;
    let (performed, long) = execute(many, false)?;
    let more = (messages(many) - messages(SHORT)) as f64;
    let mut profile = long.profile;
    for (name, cost) in &mut profile {
        let before = short.profile.get(name).copied().unwrap_or_default();
        cost.own = (cost.own - before.own).max(0.0);
        cost.calls = (cost.calls - before.calls).max(0.0);
    }
    let chain = match side(step) {
        Side::Sender => to_write(&short.chains),
        Side::Receiver => to_servant(&short.chains),
    };
    let scale = wanted as f64 / more;
    let all: f64 = profile.values().map(|cost| cost.own).sum::<f64>() * scale;
    let mut figures: Figures = [("all_instructions".to_owned(), all)].into();
    if let Some(chain) = &chain {
        figures.insert("chain_calls".to_owned(), chain.len() as f64);
    }
    Ok(outcome(figures, performed, functions(&profile, scale, false), chain))
}

fn outcome(
    figures: Figures,
    performed: ClientRun,
    functions: Vec<Function>,
    chain: Option<Vec<String>>,
) -> Outcome {
    let mut line = performed.line;
    if let Value::Object(line) = &mut line {
        line.insert("functions".to_owned(), serde_json::to_value(functions).unwrap_or_default());
        if let Some(chain) = chain {
            line.insert("chain".to_owned(), chain.into());
        }
    }
    Outcome::Figures { figures, processor: None, line }
}

fn read_removed(callgrind: Callgrind, file: &Path) -> Result<Execution, String> {
    let execution = callgrind.read(file);
    // Otherwise the next execution's result could be confused with this one, if it writes none.
    let _ = std::fs::remove_file(file);
    execution
}

/// Runs server and client, one of them with `before` as a prefix of its command line.
fn around_side(
    step: &Step,
    at: &mut Site<'_>,
    around: &[String],
    more: &[String],
) -> Result<ClientRun, Failure> {
    let _ = std::fs::remove_file(at.dir.join(FILE));
    let mut peer = step.peer.clone();
    match side(step) {
        Side::Sender => drop(peer.client.splice(0..0, around.iter().cloned())),
        Side::Receiver => drop(peer.server.splice(0..0, around.iter().cloned())),
    }
    let client = step.client.iter().chain(more).cloned().collect();
    at.children.set_grace(Some(GRACE));
    let performed = peer.run_once(&step.server, client, at);
    at.children.set_grace(None);
    performed
}

fn side(step: &Step) -> Side {
    let named = |side: &Side| step.cell.word("side") == Some(side.name());
    Side::ALL.into_iter().find(named).unwrap_or(Side::Sender)
}

fn cell_bytes(step: &Step, name: &str) -> f64 {
    step.cell.number(name).unwrap_or_default() as f64
}

/// Returns the user bytes of a message: as many elements as fit into the buffer.
fn payload(step: &Step) -> u64 {
    let size = step.cell.number("bytes").unwrap_or_default();
    let element = step.cell.word("type").and_then(|word| Element::from_str(word, true).ok());
    let each = element.map_or(1, Element::bytes);
    (size / each).max(1) * each
}

/// Returns the bytes that the client was asked to send.
fn flooded(step: &Step) -> u64 {
    let place = step.client.iter().position(|word| word == "--total");
    place.and_then(|place| step.client.get(place + 1)?.parse().ok()).unwrap_or_default()
}

/// Returns the bytes that it sends for `total`: whole messages.
fn sent(step: &Step, total: u64) -> f64 {
    (total.div_ceil(payload(step)) * payload(step)) as f64
}

/// Returns the messages of a flood and its warm-up, which is a tenth.
fn messages(flood: u64) -> u64 {
    flood + flood.div_ceil(10)
}

/// Returns the functions above the threshold, the most expensive first, and the sum of the others. If
/// `system` is set, functions with `calls` in the profile are system calls and are kept.
fn functions(profile: &Profile, scale: f64, system: bool) -> Vec<Function> {
    let all: f64 = profile.values().map(|cost| cost.own).sum();
    let (mut kept, mut rest) = (Vec::new(), 0.0);
    for (name, cost) in profile {
        let of_note = cost.own > all * LEAST || system && cost.calls > 0.0;
        if of_note {
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

/// Returns the functions from the stub to the write, outermost first. Of the frequent writes, the one nearest
/// to the caller is used: what another task writes later only shares the program's start with the caller.
fn to_write(chains: &[Chain]) -> Option<Vec<String>> {
    let caller = |chain: &&Chain| chain.functions.iter().position(|function| End::Caller.is(function));
    let often = often(chains, Group::Write);
    let nearest = often.filter_map(|chain| Some((caller(&chain)?, chain))).min_by_key(|(caller, _)| *caller);
    let (caller, write) = nearest?;
    Some(write.functions.iter().take(caller).rev().cloned().collect())
}

/// Returns the functions from the return of a read to the servant, outermost first: those on the servant's
/// call chain but not on the read's. Of the frequent reads, the nearest one is used.
fn to_servant(chains: &[Chain]) -> Option<Vec<String>> {
    let is_servant =
        |chain: &&Chain| chain.functions.first().is_some_and(|function| End::Servant.is(function));
    let servant = chains.iter().filter(is_servant).max_by_key(|chain| chain.calls)?;
    let common = |read: &Chain| {
        let pairs = read.functions.iter().rev().zip(servant.functions.iter().rev());
        pairs.take_while(|(read, servant)| read == servant).count()
    };
    // Some peers continue to read while they unmarshal.
    let within = |read: &&Chain| read.functions.iter().any(|function| Group::of(function) == Group::Marshal);
    let same = often(chains, Group::Read).filter(|read| !within(read)).map(common).max()?;
    Some(servant.functions.iter().rev().skip(same).cloned().collect())
}

/// Returns the chains of that group that make system calls often: at least one for every two messages. The
/// function that makes the system call may be some calls below the one that belongs to the group.
fn often(chains: &[Chain], group: Group) -> impl Iterator<Item = &Chain> {
    let of_group = move |chain: &&Chain| {
        let mut groups = chain.functions.iter().take(NEAR).map(|function| Group::of(function));
        groups.find(|group| matches!(group, Group::Read | Group::Write)) == Some(group)
    };
    chains.iter().filter(|chain| chain.system_calls >= messages(SHORT) / 2).filter(of_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(functions: &str, calls: u64, system_calls: u64) -> Chain {
        Chain { functions: functions.split(' ').map(String::from).collect(), calls, system_calls }
    }

    #[test]
    fn the_chain_to_write_is_that_of_the_program_that_calls() {
        let chains = [
            chain("write wake turn task poll run start main", 90, 90),
            chain("writev flush stub ttcp_bench::test_loops::flood run main", 11, 11),
            chain("writev hello stub ttcp_bench::test_loops::ttcp run main", 1, 1),
            chain("write wake turn ttcp_bench::test_loops::flood run main", 4, 4),
            chain("flush stub ttcp_bench::test_loops::flood run main", 11, 0),
        ];
        assert_eq!(to_write(&chains).unwrap(), ["stub", "flush", "writev"]);
        assert_eq!(to_write(&chains[2..]), None, "none that is made often");
    }

    #[test]
    fn the_chain_to_the_servant_begins_where_it_leaves_that_of_the_read() {
        let chains = [
            chain("read load start main", 40, 40),
            chain("recvfrom fill loop thread", 20, 20),
            chain("recvfrom fill unmarshalArguments upcall dispatch loop thread", 90, 90),
            chain("TtcpImpl::sendCharSeq upcall dispatch loop thread", 11, 0),
            chain("TtcpImpl::sync upcall dispatch loop thread", 2, 0),
        ];
        assert_eq!(to_servant(&chains).unwrap(), ["dispatch", "upcall", "TtcpImpl::sendCharSeq"]);
        assert_eq!(to_servant(&chains[..2]), None, "sockets have none");
    }

    #[test]
    fn a_long_run_has_the_messages_of_the_figures_more_than_a_short_one() {
        let many = (SHORT..).find(|many| messages(*many) >= messages(SHORT) + 512).unwrap();
        assert_eq!(
            messages(many) - messages(SHORT),
            512,
            "64 MiB in buffers of 128 KiB, so that calls are whole numbers"
        );
    }

    #[test]
    fn what_is_little_is_summed() {
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
        assert_eq!(kept.len(), 3, "calls of the system without a sample: {kept:?}");
    }
}

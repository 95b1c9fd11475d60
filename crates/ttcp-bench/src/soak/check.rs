//! The consistency check of calls and executions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use zorb::SystemExceptionKind;

use super::calls::KINDS;
use super::record_file::{Id, Outcome, RAW, Record};

/// Maximum number of violations of one kind that are reported per round.
const TOLD: usize = 5;

/// Numbers of calls by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// Calls begun, including oneways.
    pub(super) calls: u64,
    /// Calls with a reply, an exception of the operation or COMPLETED_YES; oneways that are known to have
    /// arrived.
    pub(super) answered: u64,
    /// Calls that ended with COMPLETED_NO.
    pub(super) not_executed: u64,
    /// Calls that ended with COMPLETED_MAYBE.
    pub(super) maybe: u64,
    /// Calls that their callers dropped, oneways with an unknown outcome, and calls of killed clients.
    pub(super) unknown: u64,
    /// Executions at the servers.
    pub(super) executions: u64,
}

impl Counts {
    /// Adds the counts of another round.
    pub(super) fn add(&mut self, other: &Counts) {
        self.calls += other.calls;
        self.answered += other.answered;
        self.not_executed += other.not_executed;
        self.maybe += other.maybe;
        self.unknown += other.unknown;
        self.executions += other.executions;
    }
}

/// The records of a round.
pub(super) struct Round<'r> {
    /// The records of clients.
    pub(super) records: &'r [Record],
    /// The records of servers.
    pub(super) executions: &'r [Id],
    /// Clients that were killed.
    pub(super) killed: &'r BTreeSet<u16>,
    /// Whether no server was killed or suspended. Each call that its caller awaited then had to be answered.
    pub(super) is_calm: bool,
}

/// Compares the records of both sides. Returns the counts, the counts by kind, and the violations.
pub(super) fn check(round: &Round<'_>) -> (Counts, BTreeMap<&'static str, Counts>, Vec<String>) {
    let mut executed: HashMap<Id, u32> = HashMap::new();
    for id in round.executions {
        *executed.entry(*id).or_default() += 1;
    }
    let mut calls: HashMap<Id, Record> = HashMap::new();
    let mut wrong = Violations::default();
    for record in round.records {
        match calls.get(&record.id) {
            Some(known) if record.outcome == Outcome::Begun && known.outcome == Outcome::Begun => {}
            Some(known) if known.outcome != Outcome::Begun => {
                wrong.add("told twice", || described(record, "its caller was told twice how it ended"));
            }
            _ => {
                calls.insert(record.id, *record);
            }
        }
    }
    let mut by_kind: BTreeMap<&'static str, Counts> = BTreeMap::new();
    for record in calls.values() {
        let times = executed.get(&record.id).copied().unwrap_or_default();
        let counts = by_kind.entry(kind(record)).or_default();
        counts.calls += 1;
        counts.executions += u64::from(times);
        *match record.outcome {
            Outcome::Answered | Outcome::Yes => &mut counts.answered,
            Outcome::No => &mut counts.not_executed,
            Outcome::Maybe => &mut counts.maybe,
            Outcome::Begun | Outcome::Unknown | Outcome::Hung => &mut counts.unknown,
        } += 1;
        let allowed = record.outcome.executions();
        if !allowed.contains(&times) {
            let told = format!("{:?} and executed {times} times", record.outcome);
            wrong.add(&told, || described(record, &told));
        }
        if record.outcome == Outcome::Hung {
            wrong.add("hung", || described(record, "it hung, long after its deadline"));
        }
        if record.outcome == Outcome::Begun && !round.killed.contains(&record.id.client()) {
            wrong.add("not told", || described(record, "its caller was never told how it ended"));
        }
        if record.outcome == Outcome::Maybe && record.owed && round.is_calm {
            wrong.add("not answered", || {
                described(record, "it was not answered, and no server was killed or stopped")
            });
        }
    }
    for (id, times) in &executed {
        if id.client() == RAW {
            if *times > 1 {
                wrong.add("raw", || format!("call {:x} of a raw socket was executed {times} times", id.0));
            }
        } else if !calls.contains_key(id) {
            wrong.add("unknown", || format!("call {:x} was executed and never sent in this round", id.0));
        }
    }
    let mut all = Counts::default();
    by_kind.values().for_each(|counts| all.add(counts));
    (all, by_kind, wrong.into_texts())
}

fn kind(record: &Record) -> &'static str {
    KINDS.get(usize::from(record.kind)).map_or("unknown", |(name, _)| name)
}

fn described(record: &Record, what: &str) -> String {
    let exception = usize::from(record.exception).checked_sub(1);
    let exception = exception
        .and_then(|place| SystemExceptionKind::ALL.get(place))
        .map_or_else(String::new, |kind| format!(" ({kind:?})"));
    format!("call {:x}, {}{exception}: {what}", record.id.0, kind(record))
}

/// Violations, with a limited number of each kind.
#[derive(Default)]
struct Violations(BTreeMap<String, (usize, Vec<String>)>);

impl Violations {
    fn add(&mut self, what: &str, text: impl FnOnce() -> String) {
        let (times, texts) = self.0.entry(what.to_owned()).or_default();
        *times += 1;
        if texts.len() < TOLD {
            texts.push(text());
        }
    }

    fn into_texts(self) -> Vec<String> {
        let mut all = Vec::new();
        for (times, texts) in self.0.into_values() {
            let more = times - texts.len();
            all.extend(texts);
            if more > 0 {
                all.push(format!("and {more} more of that kind"));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(place: u32, outcome: Outcome, owed: bool) -> Record {
        Record { id: Id::new(1, place), outcome, kind: 0, owed, exception: 0 }
    }

    fn wrong(records: &[Record], executions: &[Id], killed: &[u16], is_calm: bool) -> Vec<String> {
        let killed = killed.iter().copied().collect();
        check(&Round { records, executions, killed: &killed, is_calm }).2
    }

    #[test]
    fn each_outcome_allows_its_number_of_executions() {
        let id = Id::new(1, 0);
        let times = [&[][..], &[id], &[id, id]];
        for (outcome, allowed) in [
            (Outcome::Answered, [false, true, false]),
            (Outcome::Yes, [false, true, false]),
            (Outcome::No, [true, false, false]),
            (Outcome::Maybe, [true, true, false]),
            (Outcome::Unknown, [true, true, false]),
        ] {
            for (executions, allowed) in times.into_iter().zip(allowed) {
                let records = [record(0, Outcome::Begun, true), record(0, outcome, true)];
                let wrong = wrong(&records, executions, &[], false);
                assert_eq!(wrong.is_empty(), allowed, "{outcome:?}, {}: {wrong:?}", executions.len());
            }
        }
    }

    #[test]
    fn a_caller_is_told_once_unless_it_was_killed() {
        let begun = record(0, Outcome::Begun, true);
        assert_eq!(wrong(&[begun], &[], &[], false).len(), 1);
        assert!(wrong(&[begun], &[begun.id], &[1], false).is_empty());
        let told = record(0, Outcome::Maybe, true);
        assert_eq!(wrong(&[begun, told, told], &[], &[], false).len(), 1);
        assert_eq!(wrong(&[begun, record(0, Outcome::Hung, true)], &[], &[], false).len(), 1);
    }

    #[test]
    fn a_calm_server_owes_answers() {
        let begun = record(0, Outcome::Begun, true);
        assert_eq!(wrong(&[begun, record(0, Outcome::Maybe, true)], &[], &[], true).len(), 1);
        assert!(wrong(&[begun, record(0, Outcome::Maybe, true)], &[], &[], false).is_empty());
        assert!(wrong(&[begun, record(0, Outcome::Maybe, false)], &[], &[], true).is_empty());
    }

    #[test]
    fn executions_without_a_call_are_reported() {
        assert_eq!(wrong(&[], &[Id::new(1, 7)], &[], false).len(), 1);
        let raw = Id::new(RAW, 7);
        assert!(wrong(&[], &[raw], &[], false).is_empty());
        assert_eq!(wrong(&[], &[raw, raw], &[], false).len(), 1);
    }
}

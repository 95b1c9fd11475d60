//! The consistency check of the calls that clients recorded and the executions that the server recorded.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use zorb::SystemExceptionKind;

use super::calls::KINDS;
use super::record_file::{Id, Outcome, RAW_CLIENT, Record};

const MAX_REPORTED_PER_KIND: usize = 5;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// Calls that were started, including oneways.
    pub(super) calls: u64,
    /// Calls with a reply, a user exception or COMPLETED_YES, and oneways that are known to have arrived.
    pub(super) answered: u64,
    /// Calls that ended with COMPLETED_NO.
    pub(super) not_executed: u64,
    /// Calls that ended with COMPLETED_MAYBE.
    pub(super) maybe: u64,
    /// Calls that were dropped or hung, oneways with an unknown outcome, and pending calls of killed clients.
    pub(super) unknown: u64,
    pub(super) executions: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Counts) {
        self.calls += other.calls;
        self.answered += other.answered;
        self.not_executed += other.not_executed;
        self.maybe += other.maybe;
        self.unknown += other.unknown;
        self.executions += other.executions;
    }
}

pub(super) struct RoundRecords<'r> {
    pub(super) records: &'r [Record],
    pub(super) executions: &'r [Id],
    pub(super) killed_clients: &'r BTreeSet<u16>,
    /// Whether calls whose callers wait must be answered, because no server was killed or suspended.
    pub(super) requires_answers: bool,
}

/// Compares the records of clients and server. Returns the counts, the counts by kind, and the violations.
pub(super) fn check(round: &RoundRecords<'_>) -> (Counts, BTreeMap<&'static str, Counts>, Vec<String>) {
    let mut executed: HashMap<Id, u32> = HashMap::new();
    for id in round.executions {
        *executed.entry(*id).or_default() += 1;
    }
    let mut calls: HashMap<Id, Record> = HashMap::new();
    let mut violations = Violations::default();
    for record in round.records {
        match calls.get(&record.id) {
            Some(known) if record.outcome == Outcome::Begun && known.outcome == Outcome::Begun => {}
            Some(known) if known.outcome != Outcome::Begun => {
                violations.add("ended twice", || describe(record, "the caller recorded two outcomes"));
            }
            _ => {
                calls.insert(record.id, *record);
            }
        }
    }
    let mut by_kind: BTreeMap<&'static str, Counts> = BTreeMap::new();
    for record in calls.values() {
        let times = executed.get(&record.id).copied().unwrap_or_default();
        let counts = by_kind.entry(kind_name(record)).or_default();
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
            let text = format!("its outcome is {:?}, but it was executed {times} times", record.outcome);
            violations.add(&text, || describe(record, &text));
        }
        if record.outcome == Outcome::Hung {
            violations.add("hung", || describe(record, "it had not ended long after its deadline"));
        }
        if record.outcome == Outcome::Begun && !round.killed_clients.contains(&record.id.client()) {
            violations.add("no outcome", || describe(record, "the caller recorded no outcome"));
        }
        if record.outcome == Outcome::Maybe && record.must_be_answered && round.requires_answers {
            violations.add("not answered", || {
                describe(record, "it was not answered, although no server was killed or suspended")
            });
        }
    }
    for (id, times) in &executed {
        if id.client() == RAW_CLIENT {
            if *times > 1 {
                violations
                    .add("raw", || format!("call {:x} of a raw socket was executed {times} times", id.0));
            }
        } else if !calls.contains_key(id) {
            violations
                .add("unknown", || format!("call {:x} was executed, but was not sent in this round", id.0));
        }
    }
    let mut all = Counts::default();
    by_kind.values().for_each(|counts| all.add(counts));
    (all, by_kind, violations.into_texts())
}

fn kind_name(record: &Record) -> &'static str {
    KINDS.get(usize::from(record.kind)).map_or("unknown", |(name, _)| name)
}

fn describe(record: &Record, what: &str) -> String {
    let exception = usize::from(record.exception).checked_sub(1);
    let exception = exception
        .and_then(|index| SystemExceptionKind::ALL.get(index))
        .map_or_else(String::new, |kind| format!(" ({kind:?})"));
    format!("call {:x}, {}{exception}: {what}", record.id.0, kind_name(record))
}

/// The violations of each kind: their number, and the texts of the first ones.
#[derive(Default)]
struct Violations(BTreeMap<String, (usize, Vec<String>)>);

impl Violations {
    fn add(&mut self, kind: &str, text: impl FnOnce() -> String) {
        let (times, texts) = self.0.entry(kind.to_owned()).or_default();
        *times += 1;
        if texts.len() < MAX_REPORTED_PER_KIND {
            texts.push(text());
        }
    }

    fn into_texts(self) -> Vec<String> {
        let mut all = Vec::new();
        for (times, texts) in self.0.into_values() {
            let more = times - texts.len();
            all.extend(texts);
            if more > 0 {
                all.push(format!("and {more} more violations of this kind"));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(outcome: Outcome, must_be_answered: bool) -> Record {
        Record { id: Id::new(1, 0), outcome, kind: 0, must_be_answered, exception: 0 }
    }

    fn violations(
        records: &[Record],
        executions: &[Id],
        killed: &[u16],
        requires_answers: bool,
    ) -> Vec<String> {
        let killed = killed.iter().copied().collect();
        check(&RoundRecords { records, executions, killed_clients: &killed, requires_answers }).2
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
                let records = [record(Outcome::Begun, true), record(outcome, true)];
                let found = violations(&records, executions, &[], false);
                assert_eq!(found.is_empty(), allowed, "{outcome:?}, {}: {found:?}", executions.len());
            }
        }
    }

    #[test]
    fn a_call_has_exactly_one_outcome_unless_its_client_was_killed() {
        let begun = record(Outcome::Begun, true);
        assert_eq!(violations(&[begun], &[], &[], false).len(), 1);
        assert!(violations(&[begun], &[begun.id], &[1], false).is_empty());
        let ended = record(Outcome::Maybe, true);
        assert_eq!(violations(&[begun, ended, ended], &[], &[], false).len(), 1);
        assert_eq!(violations(&[begun, record(Outcome::Hung, true)], &[], &[], false).len(), 1);
    }

    #[test]
    fn awaited_calls_must_be_answered_in_calm_rounds() {
        let begun = record(Outcome::Begun, true);
        assert_eq!(violations(&[begun, record(Outcome::Maybe, true)], &[], &[], true).len(), 1);
        assert!(violations(&[begun, record(Outcome::Maybe, true)], &[], &[], false).is_empty());
        assert!(violations(&[begun, record(Outcome::Maybe, false)], &[], &[], true).is_empty());
    }

    #[test]
    fn executions_without_a_call_are_reported() {
        assert_eq!(violations(&[], &[Id::new(1, 7)], &[], false).len(), 1);
        let raw = Id::new(RAW_CLIENT, 7);
        assert!(violations(&[], &[raw], &[], false).is_empty());
        assert_eq!(violations(&[], &[raw, raw], &[], false).len(), 1);
    }
}

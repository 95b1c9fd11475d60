//! Measurements of calls, in memory that does not grow with their number.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use zorb::MinorCode;
use zorb::dynamic::DynamicException;

use crate::limits::in_options;

/// Maximum latency that is recorded exactly, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;
/// Significant digits of a latency.
const DIGITS: u8 = 3;
/// Maximum number of kinds of exceptions that are counted separately.
const KINDS: usize = 64;
/// Maximum characters of an example.
const EXAMPLE: usize = 300;

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome<'a> {
    Answered,
    /// A user exception, by its repository id.
    Raised(String),
    /// A failure, counted by its exception and minor code.
    Failed {
        kind: String,
        exception: &'a zorb::SystemException,
    },
}

impl<'a> Outcome<'a> {
    pub(super) fn of(outcome: &'a Result<(), DynamicException>) -> Self {
        match outcome {
            Ok(()) => Self::Answered,
            Err(DynamicException::System(exception)) => {
                let name = exception.kind.name();
                let kind = match exception.minor {
                    MinorCode::NONE => name.to_owned(),
                    minor => format!("{name} ({minor})"),
                };
                Self::Failed { kind, exception }
            }
            Err(exception) => Self::Raised(exception.repository_id()),
        }
    }
}

/// The number of occurrences of an outcome, and the first one as an example.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Kind {
    pub(super) count: u64,
    /// The text of the first occurrence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) example: String,
}

/// Latencies and counts.
pub(super) struct Figures(Mutex<Counts>);

pub(super) struct Counts {
    /// Latencies of all answers, including user exceptions, in nanoseconds. `None` if the histogram could not
    /// be created.
    pub(super) latencies: Option<Histogram<u64>>,
    pub(super) answered: u64,
    pub(super) raised: BTreeMap<String, Kind>,
    pub(super) failed: BTreeMap<String, Kind>,
}

impl Figures {
    pub(super) fn new() -> Self {
        let latencies = Histogram::new_with_bounds(1, LONGEST, DIGITS).ok();
        Self(Mutex::new(Counts { latencies, answered: 0, raised: BTreeMap::new(), failed: BTreeMap::new() }))
    }

    pub(super) fn record(&self, outcome: &Outcome<'_>, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.with(|counts| {
            match outcome {
                Outcome::Answered => counts.answered += 1,
                Outcome::Raised(id) => count(&mut counts.raised, id, String::new),
                Outcome::Failed { kind, exception } => {
                    return count(&mut counts.failed, kind, || {
                        in_options(&exception.to_string()).chars().take(EXAMPLE).collect()
                    });
                }
            }
            if let Some(latencies) = &mut counts.latencies {
                latencies.saturating_record(nanos);
            }
        });
    }

    /// Adds the counts of another instance.
    pub(super) fn add(&mut self, other: &Figures) {
        let own = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        other.with(|other| {
            if let (Some(own), Some(other)) = (&mut own.latencies, &other.latencies) {
                // Both have the same bounds, so this cannot fail.
                let _ = own.add(other);
            }
            own.answered += other.answered;
            for (own, other) in [(&mut own.raised, &other.raised), (&mut own.failed, &other.failed)] {
                for (kind, further) in other {
                    let known = own.entry(kind.clone()).or_default();
                    known.count += further.count;
                    if known.example.is_empty() {
                        known.example.clone_from(&further.example);
                    }
                }
            }
        });
    }

    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Counts) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts an occurrence of a kind. If there are too many kinds, further ones are counted together.
fn count(kinds: &mut BTreeMap<String, Kind>, kind: &str, example: impl FnOnce() -> String) {
    let kind = if kinds.contains_key(kind) || kinds.len() < KINDS { kind } else { "other" };
    if let Some(known) = kinds.get_mut(kind) {
        known.count += 1;
        return;
    }
    kinds.insert(kind.to_owned(), Kind { count: 1, example: example() });
}

#[cfg(test)]
mod tests {
    use zorb::{CompletionStatus, SystemException, SystemExceptionKind, minor};

    use super::*;

    #[test]
    fn outcomes_are_counted_by_kind_and_latencies_are_those_of_answers() {
        let one = Figures::new();
        one.record(&Outcome::Answered, Duration::from_millis(1));
        one.record(&Outcome::Raised("IDL:Broke:1.0".to_owned()), Duration::from_millis(3));
        let exception =
            |minor| SystemException::new(SystemExceptionKind::Transient, minor, CompletionStatus::No);
        let overloaded = Err(exception(minor::TRANSIENT_OVERLOADED).because("too much").into());
        one.record(&Outcome::of(&overloaded), Duration::from_secs(1));
        let other = Figures::new();
        other.record(&Outcome::Answered, Duration::from_millis(2));
        other.record(&Outcome::of(&overloaded), Duration::from_secs(1));
        other.record(&Outcome::of(&Err(exception(MinorCode::NONE).into())), Duration::from_secs(1));
        let mut all = Figures::new();
        all.add(&one);
        all.add(&other);
        all.with(|counts| {
            let latencies = counts.latencies.as_ref().unwrap();
            assert_eq!((counts.answered, latencies.len()), (2, 3), "failures have no latency");
            assert!((2_990_000..3_010_000).contains(&latencies.max()), "{}", latencies.max());
            assert_eq!(counts.raised["IDL:Broke:1.0"].count, 1);
            let kinds: Vec<(&str, u64)> =
                counts.failed.iter().map(|(kind, one)| (&**kind, one.count)).collect();
            assert_eq!(kinds, [("TRANSIENT", 1), ("TRANSIENT (zorb minor 1)", 2)]);
            assert!(counts.failed["TRANSIENT (zorb minor 1)"].example.contains("too much"));
        });
    }

    #[test]
    fn kinds_and_examples_are_bounded() {
        let figures = Figures::new();
        for number in 0..1000 {
            figures.record(&Outcome::Raised(format!("IDL:X{number}:1.0")), Duration::from_millis(1));
        }
        figures.with(|counts| {
            assert_eq!(counts.raised.len(), KINDS + 1);
            assert_eq!(counts.raised["other"].count, 1000 - KINDS as u64);
        });
        let long = SystemException::new(SystemExceptionKind::Unknown, MinorCode::NONE, CompletionStatus::No);
        let long = Err(long.because("é".repeat(10_000)).into());
        figures.record(&Outcome::of(&long), Duration::from_millis(1));
        figures.with(|counts| assert_eq!(counts.failed["UNKNOWN"].example.chars().count(), EXAMPLE));
    }
}

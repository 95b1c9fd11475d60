//! Measurements of calls. Their size in memory does not grow with the number of calls.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use zorb::MinorCode;
use zorb::dynamic::DynamicException;

use crate::limits::replace_library_options;

/// The maximum latency that is recorded: one hour. Longer latencies are recorded as one hour.
const MAX_LATENCY_NANOS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
const MAX_EXCEPTION_KINDS: usize = 64;
const MAX_EXAMPLE_CHARS: usize = 300;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome<'a> {
    Success,
    /// A user exception, by its repository id.
    UserException(String),
    /// A system exception. `kind` is its name with the minor code.
    Failure {
        kind: String,
        exception: &'a zorb::SystemException,
    },
}

impl<'a> Outcome<'a> {
    pub(super) fn new(result: &'a Result<(), DynamicException>) -> Self {
        match result {
            Ok(()) => Self::Success,
            Err(DynamicException::System(exception)) => {
                let name = exception.kind.name();
                let kind = match exception.minor {
                    MinorCode::NONE => name.to_owned(),
                    minor => format!("{name} ({minor})"),
                };
                Self::Failure { kind, exception }
            }
            Err(exception) => Self::UserException(exception.repository_id()),
        }
    }
}

/// The number of exceptions of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct KindCount {
    pub(super) count: u64,
    /// The text of one of the exceptions. Empty for user exceptions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) example: String,
}

pub(super) struct Measurements(Mutex<Counts>);

pub(super) struct Counts {
    /// The latencies of calls that did not fail, in nanoseconds. `None` if the histogram cannot be created.
    pub(super) latencies: Option<Histogram<u64>>,
    /// The number of calls that returned results.
    pub(super) answered: u64,
    pub(super) user_exceptions: BTreeMap<String, KindCount>,
    pub(super) failures: BTreeMap<String, KindCount>,
}

impl Measurements {
    pub(super) fn new() -> Self {
        let latencies = Histogram::new_with_bounds(1, MAX_LATENCY_NANOS, SIGNIFICANT_DIGITS).ok();
        Self(Mutex::new(Counts {
            latencies,
            answered: 0,
            user_exceptions: BTreeMap::new(),
            failures: BTreeMap::new(),
        }))
    }

    pub(super) fn record(&self, outcome: &Outcome<'_>, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.with(|counts| {
            match outcome {
                Outcome::Success => counts.answered += 1,
                Outcome::UserException(id) => count_exception(&mut counts.user_exceptions, id, String::new),
                Outcome::Failure { kind, exception } => {
                    return count_exception(&mut counts.failures, kind, || {
                        replace_library_options(&exception.to_string())
                            .chars()
                            .take(MAX_EXAMPLE_CHARS)
                            .collect()
                    });
                }
            }
            if let Some(latencies) = &mut counts.latencies {
                latencies.saturating_record(nanos);
            }
        });
    }

    pub(super) fn add(&mut self, other: &Measurements) {
        let own = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        other.with(|other| {
            if let (Some(own), Some(other)) = (&mut own.latencies, &other.latencies) {
                // Cannot fail, because both have the same bounds.
                let _ = own.add(other);
            }
            own.answered += other.answered;
            let pairs =
                [(&mut own.user_exceptions, &other.user_exceptions), (&mut own.failures, &other.failures)];
            for (own, other) in pairs {
                for (kind, added) in other {
                    let sum = own.entry(kind.clone()).or_default();
                    sum.count += added.count;
                    if sum.example.is_empty() {
                        sum.example.clone_from(&added.example);
                    }
                }
            }
        });
    }

    pub(super) fn with<R>(&self, f: impl FnOnce(&mut Counts) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts an exception, as `other` if there are already too many kinds.
fn count_exception(kinds: &mut BTreeMap<String, KindCount>, kind: &str, example: impl FnOnce() -> String) {
    let kind = if kinds.contains_key(kind) || kinds.len() < MAX_EXCEPTION_KINDS { kind } else { "other" };
    if let Some(known) = kinds.get_mut(kind) {
        known.count += 1;
        return;
    }
    kinds.insert(kind.to_owned(), KindCount { count: 1, example: example() });
}

#[cfg(test)]
mod tests {
    use zorb::{SystemException, minor};

    use super::*;

    #[test]
    fn outcomes_are_counted_by_kind_and_failures_have_no_latency() {
        let one = Measurements::new();
        one.record(&Outcome::Success, Duration::from_millis(1));
        one.record(&Outcome::UserException("IDL:Broke:1.0".to_owned()), Duration::from_millis(3));
        let exception = |minor| SystemException::transient().with_minor(minor);
        let overloaded = Err(exception(minor::TRANSIENT_OVERLOADED).with_reason("too much").into());
        one.record(&Outcome::new(&overloaded), Duration::from_secs(1));
        let other = Measurements::new();
        other.record(&Outcome::Success, Duration::from_millis(2));
        other.record(&Outcome::new(&overloaded), Duration::from_secs(1));
        other.record(&Outcome::new(&Err(exception(MinorCode::NONE).into())), Duration::from_secs(1));
        let mut all = Measurements::new();
        all.add(&one);
        all.add(&other);
        all.with(|counts| {
            let latencies = counts.latencies.as_ref().unwrap();
            assert_eq!((counts.answered, latencies.len()), (2, 3), "failures must have no latency");
            assert!((2_990_000..3_010_000).contains(&latencies.max()), "{}", latencies.max());
            assert_eq!(counts.user_exceptions["IDL:Broke:1.0"].count, 1);
            let kinds: Vec<(&str, u64)> =
                counts.failures.iter().map(|(kind, one)| (&**kind, one.count)).collect();
            assert_eq!(kinds, [("TRANSIENT", 1), ("TRANSIENT (zorb minor 1)", 2)]);
            assert!(counts.failures["TRANSIENT (zorb minor 1)"].example.contains("too much"));
        });
    }

    #[test]
    fn the_number_of_kinds_and_the_length_of_examples_are_limited() {
        let measurements = Measurements::new();
        for number in 0..1000 {
            measurements
                .record(&Outcome::UserException(format!("IDL:X{number}:1.0")), Duration::from_millis(1));
        }
        measurements.with(|counts| {
            assert_eq!(counts.user_exceptions.len(), MAX_EXCEPTION_KINDS + 1);
            assert_eq!(counts.user_exceptions["other"].count, 1000 - MAX_EXCEPTION_KINDS as u64);
        });
        let long = SystemException::unknown();
        let long = Err(long.with_reason("é".repeat(10_000)).into());
        measurements.record(&Outcome::new(&long), Duration::from_millis(1));
        measurements
            .with(|counts| assert_eq!(counts.failures["UNKNOWN"].example.chars().count(), MAX_EXAMPLE_CHARS));
    }
}

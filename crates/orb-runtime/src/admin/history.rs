//! The history of the last ten minutes, for the charts of the admin endpoint's page.
//!
//! The task of the endpoint takes a sample in each [`SAMPLE_INTERVAL`].

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use crate::runtime::Shared;
use crate::telemetry::operation_stats::{OperationStats, Side, Totals};

pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// The maximum number of samples. They cover ten minutes, and occupy about 13 KiB.
const MAX_SAMPLES: usize = 120;

#[derive(Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    /// The uptime of the ORB at which the interval of the oldest sample begins.
    oldest_begins_at: Duration,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    served: Totals,
    made: Totals,
    received_bytes: u64,
    sent_bytes: u64,
}

/// The changes since the previous sample, and the number of connections when the sample was taken.
#[derive(Debug)]
struct Sample {
    /// The uptime of the ORB at which the sample was taken.
    taken_at: Duration,
    served: FinishedCalls,
    made: FinishedCalls,
    connections: usize,
    received_bytes: u64,
    sent_bytes: u64,
}

#[derive(Debug)]
struct FinishedCalls {
    calls: u64,
    failures: u64,
    p99_us: Option<f64>,
}

impl History {
    /// Takes a sample. The first sample includes all calls since the start of the ORB.
    pub(crate) fn take_sample(&mut self, core: &Shared) {
        let Some(stats) = core.operation_stats() else { return };
        let now = core.counter_snapshot();
        self.add(core.admin().uptime(), stats, now.connections, (now.stats.bytes_in, now.stats.bytes_out));
    }

    fn add(
        &mut self,
        taken_at: Duration,
        operation_stats: &OperationStats,
        connections: usize,
        (received_bytes, sent_bytes): (u64, u64),
    ) {
        let table = |side| operation_stats.table(side).totals();
        let now =
            Counters { served: table(Side::Served), made: table(Side::Made), received_bytes, sent_bytes };
        let before = std::mem::replace(&mut self.counters, now);
        if self.samples.len() >= MAX_SAMPLES
            && let Some(oldest) = self.samples.pop_front()
        {
            self.oldest_begins_at = oldest.taken_at;
        }
        self.samples.push_back(Sample {
            taken_at,
            served: FinishedCalls::between(&before.served, &self.counters.served),
            made: FinishedCalls::between(&before.made, &self.counters.made),
            connections,
            received_bytes: received_bytes.saturating_sub(before.received_bytes),
            sent_bytes: sent_bytes.saturating_sub(before.sent_bytes),
        });
    }

    /// Returns columns with one value for each sample, the oldest first.
    pub(crate) fn json(&self) -> Value {
        let column = |value: fn(&Sample) -> Value| self.samples.iter().map(value).collect::<Vec<_>>();
        json!({
            "since_ms": self.oldest_begins_at.as_millis() as u64,
            "at_ms": column(|sample| (sample.taken_at.as_millis() as u64).into()),
            "served": {
                "calls": column(|sample| sample.served.calls.into()),
                "failures": column(|sample| sample.served.failures.into()),
                "p99_us": column(|sample| sample.served.p99_us.into()),
            },
            "made": {
                "calls": column(|sample| sample.made.calls.into()),
                "failures": column(|sample| sample.made.failures.into()),
                "p99_us": column(|sample| sample.made.p99_us.into()),
            },
            "connections": column(|sample| sample.connections.into()),
            "received_bytes": column(|sample| sample.received_bytes.into()),
            "sent_bytes": column(|sample| sample.sent_bytes.into()),
        })
    }
}

impl FinishedCalls {
    fn between(before: &Totals, now: &Totals) -> Self {
        let counts = now.latencies.since(&before.latencies);
        Self {
            calls: counts.total(),
            failures: now.failures.saturating_sub(before.failures),
            p99_us: counts.quantile(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::telemetry::operation_stats::{CallEnd, CountedCall};

    fn call(calls: &Arc<OperationStats>, side: Side, ending: CallEnd) {
        let counted_call = CountedCall::begin(calls, side, "I", "op");
        counted_call.set_end(ending);
        counted_call.count();
    }

    #[test]
    fn sample_has_the_changes_since_the_previous_sample() {
        let (mut history, calls) = (History::default(), Arc::<OperationStats>::default());
        call(&calls, Side::Served, CallEnd::Results);
        call(&calls, Side::Served, CallEnd::UserException);
        call(&calls, Side::Made, CallEnd::Failure);
        history.add(Duration::from_millis(5001), &calls, 3, (100, 10));
        history.add(Duration::from_secs(10), &calls, 2, (100, 10));
        call(&calls, Side::Served, CallEnd::Failure);
        history.add(Duration::from_secs(15), &calls, 0, (150, 11));
        let json = history.json();
        assert_eq!((&json["since_ms"], &json["at_ms"]), (&json!(0), &json!([5001, 10_000, 15_000])));
        assert_eq!(json["served"]["calls"], json!([2, 0, 1]));
        assert_eq!(json["served"]["failures"], json!([0, 0, 1]), "a user exception is an answer");
        assert_eq!(
            (&json["made"]["calls"], &json["made"]["failures"]),
            (&json!([1, 0, 0]), &json!([1, 0, 0]))
        );
        assert_eq!(json["connections"], json!([3, 2, 0]));
        assert_eq!(
            (&json["received_bytes"], &json["sent_bytes"]),
            (&json!([100, 0, 50]), &json!([10, 0, 1]))
        );
        let p99 = &json["served"]["p99_us"];
        assert!(p99[0].is_number() && p99[1].is_null() && p99[2].is_number(), "{p99}");
    }

    #[test]
    fn only_the_last_ten_minutes_are_kept() {
        let (mut history, calls) = (History::default(), OperationStats::default());
        for at in 1..=125_u32 {
            history.add(SAMPLE_INTERVAL * at, &calls, 0, (0, 0));
        }
        let json = history.json();
        assert_eq!(json["at_ms"].as_array().unwrap().len(), MAX_SAMPLES);
        assert_eq!(json["since_ms"], 25_000, "the time of the newest dropped sample");
        assert_eq!(json["at_ms"][0], 30_000);
        assert_eq!(SAMPLE_INTERVAL * u32::try_from(MAX_SAMPLES).unwrap(), Duration::from_secs(600));
    }
}

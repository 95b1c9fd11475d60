//! The history of the last minutes, for the charts of the page.
//!
//! The task of the admin endpoint takes a sample each [`INTERVAL`]. That is the only timer of an idle
//! endpoint. Without an endpoint there is no history.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use crate::runtime::Shared;
use crate::telemetry::operation_stats::{OperationStats, Side, Totals};

/// The time between two samples.
pub(crate) const INTERVAL: Duration = Duration::from_secs(5);

/// Number of samples that are kept: ten minutes, in about 10 KiB.
const POINTS: usize = 120;

/// The samples, and the counters at the time of the newest one.
#[derive(Debug, Default)]
pub(crate) struct History {
    points: VecDeque<Point>,
    /// The time at which the oldest sample begins, by the ORB's uptime.
    since: Duration,
    counted: Counted,
}

/// Counters at the time of a sample.
#[derive(Debug, Default)]
struct Counted {
    served: Totals,
    made: Totals,
    received: u64,
    sent: u64,
}

/// The changes from the previous sample to this one.
#[derive(Debug)]
struct Point {
    /// The time of the sample, by the ORB's uptime.
    at: Duration,
    served: Happened,
    made: Happened,
    /// Open connections at the time of the sample.
    connections: usize,
    received: u64,
    sent: u64,
}

#[derive(Debug)]
struct Happened {
    calls: u64,
    failures: u64,
    p99_us: Option<f64>,
}

impl History {
    /// Takes a sample. The first one includes everything before it.
    pub(crate) fn sample(&mut self, core: &Shared) {
        let Some(calls) = core.calls() else { return };
        let now = core.counted();
        self.add(core.admin().uptime(), calls, now.connections, (now.stats.octets_in, now.stats.octets_out));
    }

    fn add(
        &mut self,
        at: Duration,
        calls: &OperationStats,
        connections: usize,
        (received, sent): (u64, u64),
    ) {
        let table = |side| calls.table(side).totals();
        let now = Counted { served: table(Side::Served), made: table(Side::Made), received, sent };
        let before = std::mem::replace(&mut self.counted, now);
        if self.points.len() >= POINTS
            && let Some(oldest) = self.points.pop_front()
        {
            self.since = oldest.at;
        }
        self.points.push_back(Point {
            at,
            served: Happened::between(&before.served, &self.counted.served),
            made: Happened::between(&before.made, &self.counted.made),
            connections,
            received: received.saturating_sub(before.received),
            sent: sent.saturating_sub(before.sent),
        });
    }

    /// Returns columns with one value for each sample, oldest first. The values are counts since the previous
    /// sample, not rates.
    pub(crate) fn json(&self) -> Value {
        let column = |of: fn(&Point) -> Value| self.points.iter().map(of).collect::<Vec<_>>();
        json!({
            "since_ms": self.since.as_millis() as u64,
            "at_ms": column(|point| (point.at.as_millis() as u64).into()),
            "served": {
                "calls": column(|point| point.served.calls.into()),
                "failures": column(|point| point.served.failures.into()),
                "p99_us": column(|point| point.served.p99_us.into()),
            },
            "made": {
                "calls": column(|point| point.made.calls.into()),
                "failures": column(|point| point.made.failures.into()),
                "p99_us": column(|point| point.made.p99_us.into()),
            },
            "connections": column(|point| point.connections.into()),
            "received_bytes": column(|point| point.received.into()),
            "sent_bytes": column(|point| point.sent.into()),
        })
    }
}

impl Happened {
    fn between(before: &Totals, now: &Totals) -> Self {
        let counts = now.counts.since(&before.counts);
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
    use crate::telemetry::operation_stats::{CallEnd, Tally};

    fn call(calls: &Arc<OperationStats>, side: Side, ending: CallEnd) {
        let tally = Tally::begin(calls, side, "I", "op");
        tally.set_end(ending);
        tally.count();
    }

    #[test]
    fn points_have_what_happened_since_the_point_before() {
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
            history.add(INTERVAL * at, &calls, 0, (0, 0));
        }
        let json = history.json();
        assert_eq!(json["at_ms"].as_array().unwrap().len(), POINTS);
        assert_eq!(json["since_ms"], 25_000, "the newest of those that were dropped");
        assert_eq!(json["at_ms"][0], 30_000);
        assert_eq!(INTERVAL * u32::try_from(POINTS).unwrap(), Duration::from_secs(600));
    }
}

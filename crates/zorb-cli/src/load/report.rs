//! The report of `zorb load`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::measurements::{KindCount, Measurements};
use crate::output::{Node, Tone};

/// The parameters and the course of a run.
pub(super) struct Run {
    pub(super) operation: String,
    pub(super) elapsed: Duration,
    pub(super) concurrency: u32,
    pub(super) connections: usize,
    pub(super) rate: Option<f64>,
    pub(super) unfinished: u64,
    pub(super) not_begun: u64,
    pub(super) interrupted: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    operation: String,
    concurrency: u32,
    connections: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    seconds: f64,
    /// The number of calls that returned results.
    answered: u64,
    user_exceptions: BTreeMap<String, KindCount>,
    failures: BTreeMap<String, KindCount>,
    failed: u64,
    /// The number of calls that had no reply yet when the run ended.
    unfinished: u64,
    /// The number of calls that were due, but not started because too many calls were in progress.
    not_begun: u64,
    calls_per_second: f64,
    /// The latencies of calls that returned results or raised user exceptions. `None` if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_us: Option<Latency>,
    interrupted: bool,
}

#[derive(Debug, Serialize)]
struct Latency {
    min: f64,
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    #[serde(rename = "p99.9")]
    p999: f64,
    max: f64,
}

impl Report {
    pub(super) fn new(measurements: &Measurements, run: &Run) -> Self {
        measurements.with(|counts| {
            let us = |nanos: u64| nanos as f64 / 1e3;
            let latencies = counts.latencies.as_ref().filter(|latencies| !latencies.is_empty());
            let latency_us = latencies.map(|all| Latency {
                min: us(all.min()),
                mean: all.mean() / 1e3,
                p50: us(all.value_at_quantile(0.5)),
                p90: us(all.value_at_quantile(0.9)),
                p99: us(all.value_at_quantile(0.99)),
                p999: us(all.value_at_quantile(0.999)),
                max: us(all.max()),
            });
            let sum =
                |kinds: &BTreeMap<String, KindCount>| kinds.values().map(|kind| kind.count).sum::<u64>();
            let seconds = run.elapsed.as_secs_f64();
            Self {
                operation: run.operation.clone(),
                concurrency: run.concurrency,
                connections: run.connections,
                rate: run.rate,
                seconds,
                answered: counts.answered,
                failed: sum(&counts.failures),
                calls_per_second: (counts.answered + sum(&counts.user_exceptions)) as f64 / seconds.max(1e-9),
                user_exceptions: counts.user_exceptions.clone(),
                failures: counts.failures.clone(),
                unfinished: run.unfinished,
                not_begun: run.not_begun,
                latency_us,
                interrupted: run.interrupted,
            }
        })
    }

    pub(super) fn is_good(&self) -> bool {
        self.failed == 0 && self.latency_us.is_some()
    }

    pub(super) fn tree(&self) -> Vec<Node> {
        let user_exceptions: u64 = self.user_exceptions.values().map(|kind| kind.count).sum();
        let mut calls = format!("{} answered", self.answered);
        for (count, what) in [
            (user_exceptions, "raised user exceptions"),
            (self.failed, "failed"),
            (self.unfinished, "without a reply"),
            (self.not_begun, "due but not started"),
        ] {
            // The number of failed calls is shown even if it is 0.
            if count > 0 || what == "failed" {
                calls.push_str(&format!(", {count} {what}"));
            }
        }
        let tone = if self.is_good() { Tone::Good } else { Tone::Bad };
        let connections = if self.connections == 1 { "connection" } else { "connections" };
        let mut parameters =
            format!("{} concurrent calls over {} {connections}", self.concurrency, self.connections);
        if let Some(rate) = self.rate {
            parameters.push_str(&format!(", {rate} started per second"));
        }
        if self.interrupted {
            parameters.push_str(", interrupted");
        }
        let mut nodes = vec![
            Node::new("operation", &self.operation).tone(Tone::Head),
            Node::new("calls", calls).tone(tone),
            Node::new("load", parameters),
            Node::new("time", format!("{:.2} s", self.seconds)),
            Node::new("throughput", format!("{:.0} calls/s", self.calls_per_second)).tone(Tone::Head),
        ];
        if let Some(latency) = &self.latency_us {
            let rows = [
                ("min", latency.min),
                ("mean", latency.mean),
                ("p50", latency.p50),
                ("p90", latency.p90),
                ("p99", latency.p99),
                ("p99.9", latency.p999),
                ("max", latency.max),
            ];
            nodes.push(
                Node::new("latency", "").children(rows.map(|(name, us)| Node::new(name, time_text(us)))),
            );
        }
        for (name, kinds, tone) in [
            ("user exceptions", &self.user_exceptions, Tone::Doubtful),
            ("failures", &self.failures, Tone::Bad),
        ] {
            if !kinds.is_empty() {
                let rows = kinds.iter().map(|(kind, KindCount { count, example })| {
                    let example = if example.is_empty() { String::new() } else { format!("  {example}") };
                    Node::new(kind, format!("{count}{example}")).tone(tone)
                });
                nodes.push(Node::new(name, "").children(rows));
            }
        }
        nodes
    }
}

fn time_text(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.0} us"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::super::measurements::Outcome;
    use super::*;

    fn report(outcomes: &[(Outcome<'_>, u64)]) -> Report {
        let measurements = Measurements::new();
        for (outcome, ms) in outcomes {
            measurements.record(outcome, Duration::from_millis(*ms));
        }
        Report::new(
            &measurements,
            &Run {
                operation: "deposit".to_owned(),
                elapsed: Duration::from_secs(2),
                concurrency: 8,
                connections: 1,
                rate: None,
                unfinished: 0,
                not_begun: 0,
                interrupted: false,
            },
        )
    }

    #[test]
    fn percentiles_are_correct() {
        let outcomes: Vec<_> = (1..=1000).map(|ms| (Outcome::Success, ms)).collect();
        let report = report(&outcomes);
        let latency = report.latency_us.as_ref().unwrap();
        for (found, ms) in [
            (latency.min, 1.0),
            (latency.p50, 500.0),
            (latency.p90, 900.0),
            (latency.p99, 990.0),
            (latency.p999, 999.0),
            (latency.max, 1000.0),
        ] {
            assert!((found / 1e3 - ms).abs() <= ms * 2e-3, "{found} is not {ms} ms");
        }
        assert_eq!(report.calls_per_second, 500.0);
        assert!(report.is_good());
    }

    #[test]
    fn a_run_is_good_with_user_exceptions_but_not_without_replies() {
        let raised = report(&[(Outcome::UserException("IDL:Broke:1.0".to_owned()), 1)]);
        assert!(raised.is_good() && raised.latency_us.is_some());
        let nothing = report(&[]);
        assert!(!nothing.is_good() && nothing.latency_us.is_none());
    }
}

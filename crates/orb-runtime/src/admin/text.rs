//! Writes the metrics of an ORB in the text format of Prometheus.

use std::fmt::{self, Display, Write as _};

use giop_proto::Limit;

use crate::metrics::{LIMIT_HITS_HELP, LIMIT_HITS_NAME, METRICS};
use crate::runtime::Shared;
use crate::telemetry::operation_stats::{RowSnapshot, Side};

/// Returns the metrics of the ORB and of the calls of each operation, in version 0.0.4 of the format.
pub(crate) fn metrics(core: &Shared) -> String {
    let mut page = Page(String::with_capacity(8 * 1024));
    let now = core.counter_snapshot();
    for metric in METRICS {
        page.head(metric.name, metric.help, if metric.is_gauge { "gauge" } else { "counter" });
        page.line(metric.name, &[], metric.value(&now));
    }
    page.head(LIMIT_HITS_NAME, LIMIT_HITS_HELP, "counter");
    for limit in Limit::ALL {
        page.line(LIMIT_HITS_NAME, &[("limit", limit.name())], now.stats.limit_hits.of(*limit));
    }
    if let Some(operation_stats) = core.operation_stats() {
        let all = [(Side::Served, "served"), (Side::Made, "made")]
            .map(|(side, name)| (name, operation_stats.table(side).snapshots()));
        page.calls("zorb_calls_total", "finished calls, by operation", &all, |row| row.calls);
        page.calls(
            "zorb_call_user_exceptions_total",
            "calls that raised an exception of their operation",
            &all,
            |row| row.user_exceptions,
        );
        page.calls(
            "zorb_call_failures_total",
            "calls that ended with a system exception or were cancelled",
            &all,
            |row| row.failures,
        );
        page.durations(&all);
    }
    page.0
}

struct Page(String);

type Sides = [(&'static str, Vec<RowSnapshot>); 2];

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{}\"", if at == 0 { '{' } else { ',' }, Escaped(text));
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn calls(&mut self, name: &str, help: &str, sides: &Sides, value: impl Fn(&RowSnapshot) -> u64) {
        self.head(name, help, "counter");
        for (side, rows) in sides {
            for row in rows {
                self.line(name, &labels(side, row), value(row));
            }
        }
    }

    fn durations(&mut self, sides: &Sides) {
        let name = "zorb_call_duration_seconds";
        self.head(name, "durations of calls", "histogram");
        for (side, rows) in sides {
            for row in rows {
                let [side, interface, operation] = labels(side, row);
                let mut bucket = |bound: &str, sum| {
                    let labels = [side, interface, operation, ("le", bound)];
                    self.line("zorb_call_duration_seconds_bucket", &labels, sum);
                };
                for (bound, sum) in row.latencies.cumulative_by_octave() {
                    bucket(&(bound / 1e6).to_string(), sum);
                }
                bucket("+Inf", row.calls);
                let labels = [side, interface, operation];
                self.line("zorb_call_duration_seconds_sum", &labels, row.total_nanos as f64 / 1e9);
                self.line("zorb_call_duration_seconds_count", &labels, row.calls);
            }
        }
    }
}

fn labels<'a>(side: &'a str, row: &'a RowSnapshot) -> [(&'a str, &'a str); 3] {
    [("side", side), ("interface", &row.interface), ("operation", &row.operation)]
}

/// Formats the value of a label with escapes, because names of operations come from peers.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut page = Page(String::new());
        page.line("a", &[("b", "x\"\\\ny"), ("c", "d")], 1);
        page.line("a", &[], 0.5);
        assert_eq!(page.0, "a{b=\"x\\\"\\\\\\ny\",c=\"d\"} 1\na 0.5\n");
    }
}

//! The values that `zorb top` displays: counters of an ORB, and rates and latencies of the time between two
//! responses of its admin endpoint.

use std::collections::{BTreeMap, HashMap};

use giop_codec::Printable;
use serde::{Deserialize, Serialize};

/// The response of an admin endpoint: the state of an ORB. The field names are the JSON keys.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Status {
    /// The version of zorb.
    zorb: String,
    pid: u64,
    started_ms: u64,
    uptime_ms: u64,
    ready: bool,
    endpoints: Vec<String>,
    objects: u64,
    open_connections: u64,
    messages: Messages,
    pool: Pool,
    limits: BTreeMap<String, u64>,
    /// The upper bounds of all latency buckets except the last one, which has no bound.
    bounds_us: Vec<f64>,
    /// The calls to objects of the ORB.
    served: Vec<OperationCounters>,
    /// The calls that the ORB made as a client.
    made: Vec<OperationCounters>,
}

#[derive(Debug, Clone, Deserialize)]
struct Messages {
    received_bytes: u64,
    sent_bytes: u64,
}

/// The memory of received messages, in bytes.
#[derive(Debug, Clone, Deserialize)]
struct Pool {
    cap: u64,
    held: u64,
    queued: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct OperationCounters {
    interface: String,
    operation: String,
    calls: u64,
    user_exceptions: u64,
    failures: u64,
    max_us: f64,
    /// The index and the number of calls of each non-empty latency bucket, in the order of the indexes.
    buckets: Vec<(usize, u64)>,
}

/// The displayed values of an ORB. The field names are the JSON keys.
#[derive(Debug, Clone, Serialize)]
pub(super) struct View {
    pub(super) endpoints: Vec<String>,
    pub(super) ready: bool,
    pub(super) version: String,
    /// The start of the ORB in milliseconds since 1970.
    pub(super) started_ms: u64,
    pub(super) uptime_ms: u64,
    pub(super) objects: u64,
    pub(super) open_connections: u64,
    pub(super) received_bytes_per_second: f64,
    pub(super) sent_bytes_per_second: f64,
    pub(super) pool_held_bytes: u64,
    pub(super) pool_cap_bytes: u64,
    pub(super) queued_bytes: u64,
    /// How often each limit was reached since the ORB started. Limits that were never reached are omitted.
    pub(super) limits: BTreeMap<String, u64>,
    pub(super) served: Vec<Row>,
    pub(super) made: Vec<Row>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) interface: String,
    pub(super) operation: String,
    pub(super) calls_per_second: f64,
    pub(super) failures_per_second: f64,
    pub(super) calls: u64,
    /// The number of replies with user exceptions, which are not failures.
    pub(super) user_exceptions: u64,
    pub(super) failures: u64,
    /// The median latency. From 1 us to 134 s, its error is at most 7 %. It refers to the calls between the
    /// two responses, or to all calls if there were none between them.
    pub(super) p50_us: Option<f64>,
    pub(super) p90_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) max_us: f64,
}

impl View {
    /// Computes the values for the time between two responses. Without an earlier response of the same
    /// process, computes them for the time since the start of the ORB.
    pub(super) fn new(now: Status, before: Option<&Status>) -> Self {
        let before = before.filter(|before| before.pid == now.pid && before.uptime_ms < now.uptime_ms);
        let since = before.map_or(0, |before| before.uptime_ms);
        let seconds = (now.uptime_ms - since).max(1) as f64 / 1000.0;
        let rate = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(0)) as f64 / seconds;
        let messages = before.map(|before| &before.messages);
        let rows = |now_rows: &[OperationCounters], before_rows: Option<&[OperationCounters]>| {
            let key = |row: &OperationCounters| (row.interface.clone(), row.operation.clone());
            let previous_rows: HashMap<_, _> =
                before_rows.unwrap_or_default().iter().map(|row| (key(row), row)).collect();
            let mut rows: Vec<Row> = now_rows
                .iter()
                .map(|row| {
                    let previous = previous_rows.get(&key(row)).copied();
                    let mut buckets = bucket_increments(&row.buckets, previous);
                    if buckets.is_empty() {
                        buckets.clone_from(&row.buckets);
                    }
                    let latency = |fraction| quantile(&buckets, &now.bounds_us, row.max_us, fraction);
                    Row {
                        interface: row.interface.clone(),
                        operation: row.operation.clone(),
                        calls_per_second: rate(row.calls, previous.map(|previous| previous.calls)),
                        failures_per_second: rate(row.failures, previous.map(|previous| previous.failures)),
                        calls: row.calls,
                        user_exceptions: row.user_exceptions,
                        failures: row.failures,
                        p50_us: latency(0.5),
                        p90_us: latency(0.9),
                        p99_us: latency(0.99),
                        max_us: row.max_us,
                    }
                })
                .collect();
            rows.sort_by(|a, b| {
                b.calls_per_second.total_cmp(&a.calls_per_second).then_with(|| b.calls.cmp(&a.calls))
            });
            rows
        };
        Self {
            received_bytes_per_second: rate(
                now.messages.received_bytes,
                messages.map(|before| before.received_bytes),
            ),
            sent_bytes_per_second: rate(now.messages.sent_bytes, messages.map(|before| before.sent_bytes)),
            served: rows(&now.served, before.map(|before| &*before.served)),
            made: rows(&now.made, before.map(|before| &*before.made)),
            endpoints: now.endpoints,
            ready: now.ready,
            version: now.zorb,
            started_ms: now.started_ms,
            uptime_ms: now.uptime_ms,
            objects: now.objects,
            open_connections: now.open_connections,
            pool_held_bytes: now.pool.held,
            pool_cap_bytes: now.pool.cap,
            queued_bytes: now.pool.queued,
            limits: now.limits,
        }
    }

    /// Returns the total calls per second. `Iterator::sum` is not used, because it returns -0 for no rows.
    pub(super) fn total_rate(rows: &[Row]) -> f64 {
        rows.iter().fold(0.0, |sum, row| sum + row.calls_per_second)
    }

    pub(super) fn uptime_text(&self) -> String {
        let up = self.uptime_ms / 1000;
        format!("{}:{:02}:{:02}", up / 3600, up / 60 % 60, up % 60)
    }

    pub(super) fn pool_text(&self) -> String {
        format!(
            "{} of {}, {} queued",
            byte_text(self.pool_held_bytes as f64),
            byte_text(self.pool_cap_bytes as f64),
            byte_text(self.queued_bytes as f64)
        )
    }

    pub(super) fn lines(&self, address: &str) -> Vec<Line> {
        let state = if self.ready { "ready" } else { "not ready" };
        let mut lines = vec![
            Line::head(format!(
                "zorb top  {address}  zorb {}  {state}  up {}",
                Printable::new(&self.version),
                self.uptime_text()
            )),
            Line::plain(format!(
                "objects {}   connections {}   in {}/s   out {}/s",
                self.objects,
                self.open_connections,
                byte_text(self.received_bytes_per_second),
                byte_text(self.sent_bytes_per_second)
            )),
            Line::plain(format!("receive buffers {}", self.pool_text())),
        ];
        for (name, hits) in &self.limits {
            lines.push(Line {
                text: format!("limit {} hit {hits} times", Printable::new(name)),
                kind: LineKind::Bad,
            });
        }
        for (name, rows) in [("served", &self.served), ("made", &self.made)] {
            if rows.is_empty() {
                continue;
            }
            lines.push(Line::plain(String::new()));
            lines.push(Line::head(format!(
                "{:>7} {:>9} {:>8} {:>6} {:>7} {:>7} {:>7} {:>7}  {name}: {:.0} calls/s",
                "calls/s",
                "calls",
                "user exc",
                "failed",
                "p50",
                "p90",
                "p99",
                "max",
                Self::total_rate(rows)
            )));
            for row in rows {
                lines.push(Line {
                    text: format!(
                        "{:>7.0} {:>9} {:>8} {:>6} {:>7} {:>7} {:>7} {:>7}  {}",
                        row.calls_per_second,
                        row.calls,
                        row.user_exceptions,
                        row.failures,
                        time_text(row.p50_us),
                        time_text(row.p90_us),
                        time_text(row.p99_us),
                        time_text(Some(row.max_us)),
                        row.method()
                    ),
                    kind: if row.failures_per_second > 0.0 { LineKind::Bad } else { LineKind::Plain },
                });
            }
        }
        lines
    }
}

impl Row {
    /// Returns `operation  interface`, escaped, because names come from peers.
    pub(super) fn method(&self) -> String {
        format!("{}  {}", Printable::new(&self.operation), Printable::new(&self.interface))
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{:.1} calls/s; {} calls, {} user exceptions, {} failures; p50 {}, p90 {}, p99 {}, max {}",
            self.calls_per_second,
            self.calls,
            self.user_exceptions,
            self.failures,
            time_text(self.p50_us),
            time_text(self.p90_us),
            time_text(self.p99_us),
            time_text(Some(self.max_us))
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) kind: LineKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Plain,
    Head,
    Bad,
}

impl Line {
    fn plain(text: String) -> Self {
        Self { text, kind: LineKind::Plain }
    }

    fn head(text: String) -> Self {
        Self { text, kind: LineKind::Head }
    }
}

/// Returns the buckets that have more calls than before, and how many more.
fn bucket_increments(now: &[(usize, u64)], before: Option<&OperationCounters>) -> Vec<(usize, u64)> {
    let before: HashMap<_, _> = before.into_iter().flat_map(|row| row.buckets.iter().copied()).collect();
    let increments = now
        .iter()
        .map(|(index, calls)| (*index, calls.saturating_sub(before.get(index).copied().unwrap_or(0))));
    increments.filter(|(_, calls)| *calls > 0).collect()
}

/// Returns the approximate latency that this fraction of the calls did not exceed: the middle of its bucket
/// (of the last bucket, the lower bound), but at most `max`.
fn quantile(buckets: &[(usize, u64)], bounds: &[f64], max: f64, fraction: f64) -> Option<f64> {
    let total: u64 = buckets.iter().map(|(_, calls)| calls).sum();
    let mut seen = 0;
    let found = buckets.iter().find(|(_, calls)| {
        seen += calls;
        seen as f64 >= total as f64 * fraction
    });
    found.map(|(index, _)| {
        let lower = index.checked_sub(1).and_then(|index| bounds.get(index)).copied().unwrap_or(0.0);
        f64::midpoint(lower, bounds.get(*index).copied().unwrap_or(lower)).min(max)
    })
}

fn time_text(us: Option<f64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us) if us < 9.95 => format!("{us:.1} us"),
        Some(us) if us < 999.5 => format!("{us:.0} us"),
        Some(us) if us < 99_950.0 => format!("{:.1} ms", us / 1e3),
        Some(us) if us < 999_500.0 => format!("{:.0} ms", us / 1e3),
        Some(us) => format!("{:.1} s", us / 1e6),
    }
}

fn byte_text(mut number: f64) -> String {
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if number < 1024.0 {
            let digits = usize::from(unit != "B" && number < 10.0);
            return format!("{number:.digits$} {unit}");
        }
        number /= 1024.0;
    }
    format!("{number:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(uptime_ms: u64, calls: u64, buckets: &[(usize, u64)]) -> Status {
        serde_json::from_value(serde_json::json!({
            "zorb": "0.1.0", "pid": 1, "started_ms": 5, "uptime_ms": uptime_ms, "ready": true,
            "endpoints": ["127.0.0.1:1"], "objects": 2,
            "open_connections": 3, "messages": { "received_bytes": 2048 * calls, "sent_bytes": 0 },
            "pool": { "cap": 1 << 20, "held": 1536, "queued": 0 }, "limits": { "max_requests": 7 },
            "bounds_us": [1.0, 2.0, 4.0],
            "served": [
                {
                    "interface": "IDL:A:1.0", "operation": "a\u{1b}[2J", "calls": calls, "user_exceptions": calls / 5,
                    "failures": calls / 10, "max_us": 1_500_000.0, "buckets": buckets,
                },
                {
                    "interface": "IDL:A:1.0", "operation": "idle", "calls": 1, "user_exceptions": 0, "failures": 0,
                    "max_us": 0.4, "buckets": [[0, 1]],
                },
            ],
            "made": [],
        }))
        .unwrap()
    }

    #[test]
    fn rates_refer_to_the_time_between_two_responses() {
        let before = status(1000, 100, &[(0, 100)]);
        let now = status(3000, 300, &[(0, 100), (1, 150), (2, 48), (3, 2)]);
        let view = View::new(now.clone(), Some(&before));
        let row = &view.served[0];
        assert_eq!((row.calls_per_second, row.failures_per_second, row.calls), (100.0, 10.0, 300));
        assert_eq!((row.user_exceptions, row.failures), (60, 30));
        // Latencies of the interval, in the middle of their buckets.
        assert_eq!((row.p50_us, row.p90_us, row.p99_us), (Some(1.5), Some(3.0), Some(3.0)));
        assert_eq!(row.max_us, 1_500_000.0);
        let idle = &view.served[1];
        assert_eq!((idle.calls_per_second, idle.p50_us), (0.0, Some(0.4)), "not more than the maximum");
        assert_eq!(view.received_bytes_per_second, 204_800.0);
        assert_eq!((view.version.as_str(), view.started_ms), ("0.1.0", 5));
        // The earlier response is missing, or comes from another process.
        let first = View::new(now.clone(), None);
        assert_eq!(first.served[0].calls_per_second, 100.0);
        let other = Status { pid: 2, ..before };
        assert_eq!(View::new(now, Some(&other)).served[0].calls_per_second, 100.0);
    }

    /// `Iterator::sum` would return -0.
    #[test]
    fn the_rate_without_calls_is_0() {
        assert_eq!(format!("{:.0} calls/s", View::total_rate(&[])), "0 calls/s");
    }

    #[test]
    fn quantiles_above_all_bounds_are_the_last_bound() {
        assert_eq!(quantile(&[(3, 1)], &[1.0, 2.0, 4.0], 9.0, 0.5), Some(4.0));
        assert_eq!(quantile(&[], &[1.0], 0.0, 0.5), None);
    }

    #[test]
    fn times_have_at_most_seven_characters() {
        let times = [0.125, 9.96, 999.4, 999.6, 99_940.0, 99_960.0, 999_400.0, 134_217_728.0];
        let texts = times.map(|us| time_text(Some(us)));
        assert_eq!(texts, ["0.1 us", "10 us", "999 us", "1.0 ms", "99.9 ms", "100 ms", "999 ms", "134.2 s"]);
        assert_eq!(time_text(None), "-");
    }

    #[test]
    fn lines_show_all_values() {
        let view = View::new(status(3_661_000, 3661, &[(0, 1)]), None);
        let lines: Vec<String> = view.lines("127.0.0.1:9").iter().map(|line| line.text.clone()).collect();
        assert_eq!(
            lines,
            [
                "zorb top  127.0.0.1:9  zorb 0.1.0  ready  up 1:01:01",
                "objects 2   connections 3   in 2.0 KiB/s   out 0 B/s",
                "receive buffers 1.5 KiB of 1.0 MiB, 0 B queued",
                "limit max_requests hit 7 times",
                "",
                "calls/s     calls user exc failed     p50     p90     p99     max  served: 1 calls/s",
                r"      1      3661      732    366  0.5 us  0.5 us  0.5 us   1.5 s  a\x1b[2J  IDL:A:1.0",
                "      0         1        0      0  0.4 us  0.4 us  0.4 us  0.4 us  idle  IDL:A:1.0",
            ]
        );
    }
}

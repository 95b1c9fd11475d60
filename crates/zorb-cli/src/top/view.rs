//! What is shown: rates, and how long calls took, between two answers of an endpoint.

use std::collections::{BTreeMap, HashMap};

use giop_codec::Printable;
use serde::{Deserialize, Serialize};

/// What an admin endpoint says: what the ORB counted from its beginning.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Status {
    pid: u64,
    uptime_ms: u64,
    ready: bool,
    endpoints: Vec<String>,
    objects: u64,
    open_connections: u64,
    messages: Messages,
    pool: Pool,
    limits: BTreeMap<String, u64>,
    bounds_us: Vec<u64>,
    served: Vec<Counted>,
    made: Vec<Counted>,
}

#[derive(Debug, Clone, Deserialize)]
struct Messages {
    received_bytes: u64,
    sent_bytes: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct Pool {
    cap: u64,
    held: u64,
    queued: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct Counted {
    interface: String,
    operation: String,
    calls: u64,
    failures: u64,
    buckets: Vec<u64>,
}

/// What is shown of an ORB.
#[derive(Debug, Clone, Serialize)]
pub(super) struct View {
    pub(super) endpoints: Vec<String>,
    pub(super) ready: bool,
    pub(super) uptime_ms: u64,
    pub(super) objects: u64,
    pub(super) open_connections: u64,
    pub(super) received_bytes_per_second: f64,
    pub(super) sent_bytes_per_second: f64,
    pub(super) pool_held_bytes: u64,
    pub(super) pool_cap_bytes: u64,
    pub(super) queued_bytes: u64,
    /// Hits since the ORB began; those that were never hit are left out.
    pub(super) limits: BTreeMap<String, u64>,
    pub(super) served: Vec<Row>,
    pub(super) made: Vec<Row>,
}

/// An operation.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) interface: String,
    pub(super) operation: String,
    pub(super) calls_per_second: f64,
    pub(super) failures_per_second: f64,
    /// Since the ORB began.
    pub(super) calls: u64,
    pub(super) failures: u64,
    /// Half of the calls of the interval, or if there was none of all, took no longer. In microseconds, a power of two.
    pub(super) p50_us: Option<u64>,
    /// The same of 99 %.
    pub(super) p99_us: Option<u64>,
}

impl View {
    /// What happened between two answers; since the beginning, where there is no earlier one of the same process.
    pub(super) fn of(now: Status, before: Option<&Status>) -> Self {
        let before = before.filter(|before| before.pid == now.pid && before.uptime_ms < now.uptime_ms);
        let since = before.map_or(0, |before| before.uptime_ms);
        let seconds = (now.uptime_ms - since).max(1) as f64 / 1000.0;
        let rate = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(0)) as f64 / seconds;
        let messages = before.map(|before| &before.messages);
        let rows = |now_rows: &[Counted], before_rows: Option<&[Counted]>| {
            let key = |row: &Counted| (row.interface.clone(), row.operation.clone());
            let known: HashMap<_, _> =
                before_rows.unwrap_or_default().iter().map(|row| (key(row), row)).collect();
            let mut rows: Vec<Row> = now_rows
                .iter()
                .map(|row| {
                    let was = known.get(&key(row)).copied();
                    let recent = difference(&row.buckets, was);
                    let buckets =
                        if recent.iter().any(|count| *count > 0) { recent } else { row.buckets.clone() };
                    Row {
                        interface: row.interface.clone(),
                        operation: row.operation.clone(),
                        calls_per_second: rate(row.calls, was.map(|was| was.calls)),
                        failures_per_second: rate(row.failures, was.map(|was| was.failures)),
                        calls: row.calls,
                        failures: row.failures,
                        p50_us: quantile(&buckets, &now.bounds_us, 0.5),
                        p99_us: quantile(&buckets, &now.bounds_us, 0.99),
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
                messages.map(|was| was.received_bytes),
            ),
            sent_bytes_per_second: rate(now.messages.sent_bytes, messages.map(|was| was.sent_bytes)),
            served: rows(&now.served, before.map(|before| &*before.served)),
            made: rows(&now.made, before.map(|before| &*before.made)),
            endpoints: now.endpoints,
            ready: now.ready,
            uptime_ms: now.uptime_ms,
            objects: now.objects,
            open_connections: now.open_connections,
            pool_held_bytes: now.pool.held,
            pool_cap_bytes: now.pool.cap,
            queued_bytes: now.pool.queued,
            limits: now.limits,
        }
    }

    /// Calls per second of all rows. The sum of none is 0, not the -0 of `Sum`.
    pub(super) fn rate(rows: &[Row]) -> f64 {
        rows.iter().fold(0.0, |sum, row| sum + row.calls_per_second)
    }

    pub(super) fn pool_text(&self) -> String {
        format!(
            "{} of {}, {} queued",
            octets(self.pool_held_bytes as f64),
            octets(self.pool_cap_bytes as f64),
            octets(self.queued_bytes as f64)
        )
    }

    /// The lines of a terminal of that width.
    pub(super) fn lines(&self, at: &str) -> Vec<Line> {
        let state = if self.ready { "ready" } else { "not ready" };
        let up = self.uptime_ms / 1000;
        let mut lines = vec![
            Line::head(format!(
                "zorb top  {at}  {state}  up {}:{:02}:{:02}",
                up / 3600,
                up / 60 % 60,
                up % 60
            )),
            Line::plain(format!(
                "objects {}   connections {}   in {}/s   out {}/s",
                self.objects,
                self.open_connections,
                octets(self.received_bytes_per_second),
                octets(self.sent_bytes_per_second)
            )),
            Line::plain(format!("receive buffers {}", self.pool_text())),
        ];
        for (name, hits) in &self.limits {
            lines.push(Line {
                text: format!("limit {} hit {hits} times", Printable::new(name)),
                kind: Kind::Bad,
            });
        }
        for (name, rows) in [("served", &self.served), ("made", &self.made)] {
            if rows.is_empty() {
                continue;
            }
            lines.push(Line::plain(String::new()));
            lines.push(Line::head(format!(
                "{:>10} {:>10} {:>9} {:>9} {:>9}  {name}: {:.0} calls/s",
                "calls/s",
                "calls",
                "failed",
                "half in",
                "99% in",
                Self::rate(rows)
            )));
            for row in rows {
                lines.push(Line {
                    text: format!(
                        "{:>10.0} {:>10} {:>9} {:>9} {:>9}  {}",
                        row.calls_per_second,
                        row.calls,
                        row.failures,
                        time(row.p50_us),
                        time(row.p99_us),
                        row.method()
                    ),
                    kind: if row.failures_per_second > 0.0 { Kind::Bad } else { Kind::Plain },
                });
            }
        }
        lines
    }
}

impl Row {
    /// `operation  interface`, escaped: names come from peers.
    pub(super) fn method(&self) -> String {
        format!("{}  {}", Printable::new(&self.operation), Printable::new(&self.interface))
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{:.1} calls/s, {} in all, {} failed; half within {}, 99 % within {}",
            self.calls_per_second,
            self.calls,
            self.failures,
            time(self.p50_us),
            time(self.p99_us)
        )
    }
}

/// A line, and what to make of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Head,
    Bad,
}

impl Line {
    fn plain(text: String) -> Self {
        Self { text, kind: Kind::Plain }
    }

    fn head(text: String) -> Self {
        Self { text, kind: Kind::Head }
    }
}

/// What came since, by bucket.
fn difference(now: &[u64], before: Option<&Counted>) -> Vec<u64> {
    let before = before.map(|row| row.buckets.as_slice()).unwrap_or_default();
    let before = before.iter().copied().chain(std::iter::repeat(0));
    now.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect()
}

/// The bound that so much of the calls took no longer than.
fn quantile(buckets: &[u64], bounds: &[u64], part: f64) -> Option<u64> {
    let all: u64 = buckets.iter().sum();
    let mut seen = 0;
    for (at, count) in buckets.iter().enumerate() {
        seen += count;
        if all > 0 && seen as f64 >= all as f64 * part {
            return bounds.get(at).or(bounds.last()).copied();
        }
    }
    None
}

fn time(us: Option<u64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us) if us < 1000 => format!("{us} us"),
        Some(us) if us < 1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        Some(us) => format!("{:.1} s", us as f64 / 1e6),
    }
}

fn octets(mut number: f64) -> String {
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

    fn status(uptime_ms: u64, calls: u64, buckets: [u64; 4]) -> Status {
        serde_json::from_value(serde_json::json!({
            "pid": 1, "uptime_ms": uptime_ms, "ready": true, "endpoints": ["127.0.0.1:1"], "objects": 2,
            "open_connections": 3, "messages": { "received_bytes": 2048 * calls, "sent_bytes": 0 },
            "pool": { "cap": 1 << 20, "held": 1536, "queued": 0 }, "limits": { "max_requests": 7 },
            "bounds_us": [1, 2, 4],
            "served": [
                { "interface": "IDL:A:1.0", "operation": "a\u{1b}[2J", "calls": calls, "failures": calls / 10, "buckets": buckets },
                { "interface": "IDL:A:1.0", "operation": "idle", "calls": 1, "failures": 0, "buckets": [1, 0, 0, 0] },
            ],
            "made": [],
        }))
        .unwrap()
    }

    #[test]
    fn rates_are_of_the_time_between_two_answers() {
        let (before, now) = (status(1000, 100, [100, 0, 0, 0]), status(3000, 300, [100, 100, 98, 2]));
        let view = View::of(now.clone(), Some(&before));
        let row = &view.served[0];
        assert_eq!((row.calls_per_second, row.failures_per_second, row.calls), (100.0, 10.0, 300));
        assert_eq!((row.p50_us, row.p99_us), (Some(2), Some(4)), "those of the interval");
        assert_eq!((view.served[1].calls_per_second, view.served[1].p50_us), (0.0, Some(1)));
        assert_eq!(view.received_bytes_per_second, 204_800.0);
        // Another process, or none before.
        let first = View::of(now.clone(), None);
        assert_eq!(first.served[0].calls_per_second, 100.0);
        let other = Status { pid: 2, ..before };
        assert_eq!(View::of(now, Some(&other)).served[0].calls_per_second, 100.0);
    }

    /// The sum of no numbers is -0, which would be shown.
    #[test]
    fn no_calls_are_shown_as_0() {
        assert_eq!(format!("{:.0} calls/s", View::rate(&[])), "0 calls/s");
    }

    #[test]
    fn lines_are_those_of_a_terminal() {
        let view = View::of(status(3_661_000, 3661, [1, 0, 0, 0]), None);
        let lines: Vec<String> = view.lines("127.0.0.1:9").iter().map(|line| line.text.clone()).collect();
        assert_eq!(
            lines,
            [
                "zorb top  127.0.0.1:9  ready  up 1:01:01",
                "objects 2   connections 3   in 2.0 KiB/s   out 0 B/s",
                "receive buffers 1.5 KiB of 1.0 MiB, 0 B queued",
                "limit max_requests hit 7 times",
                "",
                "   calls/s      calls    failed   half in    99% in  served: 1 calls/s",
                r"         1       3661       366      1 us      1 us  a\x1b[2J  IDL:A:1.0",
                "         0          1         0      1 us      1 us  idle  IDL:A:1.0",
            ]
        );
    }
}

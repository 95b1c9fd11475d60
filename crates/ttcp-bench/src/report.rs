//! The JSON line in which a client reports the result of its test.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use crate::series::SeriesLine;
use crate::work::{Element, Test, Work};

/// The result of one run of a client. It is serialised as one JSON line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report(pub(crate) Line);

/// The result of a test. In all lines, `n` is the number of measured calls, and `calls_s` calls per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Line {
    Flood(FloodLine),
    Latency(LatencyLine),
    Pipeline(PipelineLine),
    Series(SeriesLine),
    Clients(ClientsLine),
    Last(LastLine),
}

/// The result of `ttcp`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct FloodLine {
    pub(crate) peer: String,
    pub(crate) test: Test,
    #[serde(rename = "type")]
    pub(crate) element: Element,
    /// The value of `--size`: bytes of elements in one buffer.
    pub(crate) size: u64,
    /// Rate of the elements that the server has confirmed, in Mbit/s (10^6 bits per second).
    pub(crate) mbit_s: f64,
    /// Time from the first send to the return of the `sync` that confirmed the last byte.
    pub(crate) secs: f64,
    /// How often `sync` was called; absent after a single call, which is usual. More calls are needed if the
    /// server runs `sync` before earlier oneways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) syncs: Option<u32>,
}

/// The result of `ping`, `demux`, `echo` and `objects`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LatencyLine {
    pub(crate) peer: String,
    pub(crate) test: Test,
    /// Present only for `echo`, like the size.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) element: Option<Element>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// Number of called objects; present only for `objects`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) objects: Option<u32>,
    pub(crate) n: u32,
    #[serde(flatten)]
    pub(crate) latency: Latency,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PipelineLine {
    pub(crate) peer: String,
    pub(crate) test: Test,
    /// Number of calls that were outstanding at the same time.
    pub(crate) depth: u32,
    pub(crate) n: u32,
    /// Number of threads that made the calls.
    pub(crate) threads: u32,
    /// 1 with `--batch`, 0 without it; absent if the client has no such option.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<u8>,
    pub(crate) calls_s: f64,
    /// Time from the first call to the last reply.
    pub(crate) secs: f64,
}

/// The result of `clients`, for all clients together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ClientsLine {
    pub(crate) peer: String,
    pub(crate) test: Test,
    /// Number of clients.
    pub(crate) depth: u32,
    pub(crate) n: u32,
    pub(crate) calls_s: f64,
    /// Time from the first call to the last reply.
    pub(crate) secs: f64,
    #[serde(flatten)]
    pub(crate) latency: Latency,
}

/// The result of `last`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LastLine {
    pub(crate) peer: String,
    pub(crate) test: Test,
    /// Number of operations of the interface.
    pub(crate) operations: u32,
    pub(crate) oneway: bool,
    /// The value of `--iterations`: a hundredth of the number of calls, unless `--n` is given.
    pub(crate) iterations: u32,
    /// Number of calls of the last operation that the server counted. It equals the number of calls made.
    pub(crate) counted: u64,
    /// Time from the first call to the return of the last one.
    pub(crate) secs: f64,
    /// Time from the first call until the server had confirmed all calls.
    pub(crate) counted_secs: f64,
    /// Time that the server takes to look up the operation once, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lookup_ns: Option<f64>,
}

/// Exact statistics of the times of calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) mean_us: f64,
    /// The time at index n/2 of the sorted times.
    pub(crate) p50_us: f64,
    /// The time at index n*99/100 of the sorted times.
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
}

impl Report {
    /// Returns the result of a flood of which the server confirmed `bytes` bytes of elements in `time`.
    pub(crate) fn flood(peer: &str, work: &Work, bytes: u64, time: Duration, syncs: u32) -> Report {
        let secs = time.as_secs_f64();
        Report(Line::Flood(FloodLine {
            peer: peer.to_owned(),
            test: Test::Ttcp,
            element: work.element,
            size: work.size,
            mbit_s: rounded(bytes as f64 * 8.0 / secs / 1e6, 6),
            secs: rounded(secs, 6),
            syncs: (syncs > 1).then_some(syncs),
        }))
    }

    /// Returns the result of calls made one at a time.
    pub(crate) fn latency(peer: &str, work: &Work, samples: Vec<Duration>) -> Report {
        let echo = work.test == Test::Echo;
        Report(Line::Latency(LatencyLine {
            peer: peer.to_owned(),
            test: work.test,
            element: echo.then_some(work.element),
            size: echo.then_some(work.size),
            objects: None,
            n: u32::try_from(samples.len()).unwrap_or(u32::MAX),
            latency: Latency::of(samples),
        }))
    }

    #[must_use]
    pub(crate) fn with_objects(mut self, objects: usize) -> Report {
        if let Line::Latency(line) = &mut self.0 {
            line.objects = u32::try_from(objects).ok();
        }
        self
    }

    /// Returns the result of calls by `work.depth` clients in `time`.
    pub(crate) fn clients(peer: &str, work: &Work, samples: Vec<Duration>, time: Duration) -> Report {
        let secs = time.as_secs_f64();
        Report(Line::Clients(ClientsLine {
            peer: peer.to_owned(),
            test: Test::Clients,
            depth: work.depth,
            n: u32::try_from(samples.len()).unwrap_or(u32::MAX),
            calls_s: rounded(samples.len() as f64 / secs, 3),
            secs: rounded(secs, 6),
            latency: Latency::of(samples),
        }))
    }

    /// Returns the result of `work.calls()` calls of one thread, `work.depth` of them outstanding, in `time`.
    pub(crate) fn pipeline(peer: &str, work: &Work, batch: Option<bool>, time: Duration) -> Report {
        let secs = time.as_secs_f64();
        Report(Line::Pipeline(PipelineLine {
            peer: peer.to_owned(),
            test: Test::Pipeline,
            depth: work.depth,
            n: work.calls(),
            threads: 1,
            batch: batch.map(u8::from),
            calls_s: rounded(f64::from(work.calls()) / secs, 3),
            secs: rounded(secs, 6),
        }))
    }

    /// Returns the result of the test `last`. The times are measured until the last call returned,
    /// and until the server had counted all calls.
    pub(crate) fn last(peer: &str, work: &Work, counted: u64, times: [Duration; 2]) -> Report {
        let [until_returned, until_counted] = times.map(|time| rounded(time.as_secs_f64(), 9));
        Report(Line::Last(LastLine {
            peer: peer.to_owned(),
            test: Test::Last,
            operations: work.operations,
            oneway: work.oneway,
            iterations: work.iterations,
            counted,
            secs: until_returned,
            counted_secs: until_counted,
            lookup_ns: None,
        }))
    }

    /// Prints the line on stdout.
    pub fn print(&self) -> io::Result<()> {
        print_line(self)
    }
}

/// Prints a line of JSON on stdout.
pub(crate) fn print_line(object: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, object)?;
    writeln!(out)?;
    out.flush()
}

impl Latency {
    /// Returns the statistics of the times; zeros if there are none.
    pub(crate) fn of(mut samples: Vec<Duration>) -> Latency {
        samples.sort_unstable();
        let n = samples.len();
        let at = |i: usize| samples.get(i).map_or(0.0, |&d| micros(d));
        let sum: Duration = samples.iter().sum();
        Latency {
            mean_us: rounded(micros(sum) / n.max(1) as f64, 3),
            p50_us: at(n / 2),
            p99_us: at((n as u128 * 99 / 100) as usize),
            max_us: samples.last().map_or(0.0, |&d| micros(d)),
        }
    }
}

fn micros(d: Duration) -> f64 {
    rounded(d.as_nanos() as f64 / 1e3, 3)
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::parse_work;

    fn work(test: Test, element: Element, size: u64) -> Work {
        parse_work(&format!("{test} --type {element} --size {size} --n 4 --depth 64"))
    }

    fn line(report: &Report) -> String {
        serde_json::to_string(report).unwrap()
    }

    #[test]
    fn percentiles_are_exact_samples() {
        let us = |n: u64| Duration::from_micros(n);
        let l = Latency::of((1..=100).rev().map(us).collect());
        assert_eq!(l, Latency { mean_us: 50.5, p50_us: 51.0, p99_us: 100.0, max_us: 100.0 });
        let l = Latency::of((1..=1000).map(us).collect());
        assert_eq!(l, Latency { mean_us: 500.5, p50_us: 501.0, p99_us: 991.0, max_us: 1000.0 });
        let l = Latency::of(vec![Duration::from_nanos(1_234_567)]);
        assert_eq!(l, Latency { mean_us: 1234.567, p50_us: 1234.567, p99_us: 1234.567, max_us: 1234.567 });
        assert_eq!(Latency::of(vec![]).max_us, 0.0);
    }

    #[test]
    fn flood_line_has_the_documented_fields() {
        let w = work(Test::Ttcp, Element::Octet, 65_536);
        let report = Report::flood("zorb", &w, 268_435_456, Duration::from_millis(170), 1);
        assert_eq!(
            line(&report),
            r#"{"peer":"zorb","test":"ttcp","type":"octet","size":65536,"mbit_s":12632.256753,"secs":0.17}"#
        );
        let report = Report::flood("zorb", &w, 1_000_000, Duration::from_secs(1), 3);
        assert!(line(&report).ends_with(r#""mbit_s":8.0,"secs":1.0,"syncs":3}"#), "{}", line(&report));
        // A low rate must not be rounded to zero.
        let report = Report::flood("zorb", &w, 960, Duration::from_secs(10), 1);
        assert!(line(&report).ends_with(r#""mbit_s":0.000768,"secs":10.0}"#), "{}", line(&report));
    }

    #[test]
    fn latency_lines_have_the_documented_fields() {
        let samples = vec![Duration::from_micros(20); 4];
        let figures = r#""n":4,"mean_us":20.0,"p50_us":20.0,"p99_us":20.0,"max_us":20.0}"#;
        let ping = Report::latency("raw", &work(Test::Ping, Element::Octet, 65_536), samples.clone());
        assert_eq!(line(&ping), format!(r#"{{"peer":"raw","test":"ping",{figures}"#));
        let echo = Report::latency("raw", &work(Test::Echo, Element::Struct, 24_000), samples);
        assert_eq!(
            line(&echo),
            format!(r#"{{"peer":"raw","test":"echo","type":"struct","size":24000,{figures}"#)
        );
    }

    #[test]
    fn pipeline_line_has_the_documented_fields() {
        let w = work(Test::Pipeline, Element::Octet, 65_536);
        let report = Report::pipeline("zorb", &w, None, Duration::from_millis(2));
        assert_eq!(
            line(&report),
            r#"{"peer":"zorb","test":"pipeline","depth":64,"n":4,"threads":1,"calls_s":2000.0,"secs":0.002}"#
        );
        let report = Report::pipeline("raw", &w, Some(true), Duration::from_millis(2));
        assert!(line(&report).contains(r#""threads":1,"batch":1,"#));
    }
}

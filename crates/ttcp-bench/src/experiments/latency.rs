//! The latency of calls without parameters, and of calls with a sequence in both directions.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use hdrhistogram::Histogram;

use super::contenders::Contender;
use super::driver;
use super::plan::{ClientOutput, Experiment, Figures, Plan, Step, line_figures};
use super::store::{Cell, StoredResults};
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, format_figure};
use crate::harness::{BuiltInPeer, CommonArgs};
use crate::literature::PublishedTable;
use crate::statistics::{Summary, median};
use crate::work::Element;

const NAME: &str = "latency";

pub(crate) const EXPERIMENT: Experiment =
    Experiment { name: NAME, published_ids: &["gigabit97.latency"], section };

const ELEMENT_COUNTS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const ELEMENT_COUNTS_QUICK: [u64; 2] = [1, 1024];
const TYPES: [Element; 2] = [Element::Octet, Element::Struct];
/// The file to which the client writes the times of its calls.
const TIMES_FILE: &str = "times";

/// The longest time in the histogram, in nanoseconds. Longer calls are counted with this time.
const MAX_TIME_NS: u64 = 60_000_000_000;

/// Options of `ttcp latency`.
#[derive(Debug, Clone, Default, Args)]
pub struct LatencyArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Numbers of elements in a sequence (default: powers of two from 1 to 1024)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub units: Option<Vec<u64>>,
    /// Calls in each measurement (default: 20000 without parameters, 5000 with a sequence)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub n: Option<u32>,
}

impl LatencyArgs {
    /// Runs the experiment, and prints its section.
    pub fn run(&self, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
        driver::run_one(&self.common, built_in, |contenders| plan(self, contenders))
    }
}

pub(crate) fn plan(args: &LatencyArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let element_counts =
        args.units.as_deref().unwrap_or(if quick { &ELEMENT_COUNTS_QUICK } else { &ELEMENT_COUNTS });
    let calls = |full: u32| args.n.unwrap_or(if quick { full / 10 } else { full }).to_string();
    let step = |cell: &Cell, contender: &Contender, words: &[&str]| {
        let mut client: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if contender.peer.has_samples {
            client.extend(["--samples".to_owned(), format!("{{dir}}/{TIMES_FILE}")]);
        }
        Step::new(cell, &contender.peer, client, figures)
    };
    let ping = Cell::default().with("call", "ping");
    let mut steps: Vec<Step> = contenders
        .iter()
        .filter(|contender| !contender.is_for_structs_only)
        .map(|contender| step(&ping, contender, &["ping", "--n", &calls(20_000)]))
        .collect();
    for element in TYPES {
        for element_count in element_counts {
            let cell = Cell::default()
                .with("call", "echo")
                .with("type", element.to_string().as_str())
                .with("units", *element_count);
            let size = (element_count * element.bytes()).to_string();
            for contender in contenders {
                let Some(sent) = contender.sent_element(element) else { continue };
                let words = ["echo", "--type", &sent.to_string(), "--size", &size, "--n", &calls(5_000)];
                steps.push(step(&cell, contender, &words));
            }
        }
    }
    Plan { experiment: &EXPERIMENT, initial_steps: Vec::new(), links: Vec::new(), rounds: 5, steps }
}

/// Computes the figures from the client's file of times. Without this file, takes them from its line.
fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let path = output.dir.join(TIMES_FILE);
    if path.exists() {
        let figures = figures_of_times(&path);
        std::fs::remove_file(&path).map_err(|e| format!("the file of times cannot be removed: {e}"))?;
        return figures;
    }
    line_figures(output.line, &["p50_us", "p99_us", "max_us", "mean_us"])
}

fn figures_of_times(path: &Path) -> Result<Figures, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("the file of times cannot be read: {e}"))?;
    let times = text
        .lines()
        .map(|line| line.parse().map_err(|_| format!("{line:?} is not a time")))
        .collect::<Result<Vec<u64>, String>>()?;
    let median_time =
        median(&times.iter().map(|time| *time as f64).collect::<Vec<_>>()).ok_or("there are no times")?;
    let bad = |e: &dyn std::fmt::Display| format!("the times do not fit the histogram: {e}");
    let mut all = Histogram::<u64>::new_with_bounds(1, MAX_TIME_NS, 3).map_err(|e| bad(&e))?;
    let mut corrected = all.clone();
    for time in times {
        all.saturating_record(time.max(1));
        // The client awaits each reply. A slow call therefore hides the slow calls that a client with a fixed
        // schedule would have made in the meantime.
        let interval = median_time.max(1.0) as u64;
        corrected.record_correct(time.clamp(1, MAX_TIME_NS), interval).map_err(|e| bad(&e))?;
    }
    let at = |histogram: &Histogram<u64>, quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
    let figures = [
        ("mean_us", all.mean() / 1e3),
        ("p50_us", at(&all, 0.5)),
        ("p90_us", at(&all, 0.9)),
        ("p99_us", at(&all, 0.99)),
        ("p99.9_us", at(&all, 0.999)),
        ("max_us", all.max() as f64 / 1e3),
        ("corrected_p99_us", at(&corrected, 0.99)),
        ("corrected_p99.9_us", at(&corrected, 0.999)),
    ];
    Ok(figures.map(|(name, figure)| (name.to_owned(), figure)).into())
}

fn section(data: &StoredResults) -> Section {
    let mut section = Section::new(NAME, "Latency: the time of a call");
    section.text(
        "One client makes one call at a time over one connection, without parameters or with a sequence that is returned. The \
         client measures the time of each call by its monotonic clock, after a warm-up with a tenth of the calls. Percentiles are \
         computed for each measurement; the tables show their medians over the rounds. A slow call hides the slow calls that a client \
         with a fixed schedule would have made in the meantime (coordinated omission). The corrected percentiles include these \
         calls, at intervals of the median time.",
    );
    let peers = data.peers(NAME);
    let ping = Cell::default().with("call", "ping");
    let figure = |peer: &str, cell: &Cell, name: &str| median(&data.figures(NAME, peer, cell, name));
    let names = [
        "p50_us",
        "p90_us",
        "p99_us",
        "p99.9_us",
        "corrected_p99_us",
        "corrected_p99.9_us",
        "max_us",
        "mean_us",
    ];
    let titles =
        ["median", "90 %", "99 %", "99.9 %", "99 %, corrected", "99.9 %, corrected", "longest", "mean"];
    let mut columns = vec![Column::words("peer")];
    columns.extend(titles.map(|title| Column::figures(format!("{title}, us"))));
    let baseline = figure("raw", &ping, "p50_us");
    columns.push(Column::figures("median / raw"));
    let row = |peer: &&str| {
        let figures = names.map(|name| format_figure(figure(peer, &ping, name)));
        let ratio = figure(peer, &ping, "p50_us").zip(baseline).map(|(own, raw)| own / raw);
        std::iter::once((*peer).to_owned()).chain(figures).chain([format_figure(ratio)]).collect()
    };
    let rows = peers.iter().map(row).collect();
    section.table(Table { caption: "A call without parameters.".into(), columns, rows });
    for element in TYPES {
        add_element_type(data, &mut section, &peers, element);
    }
    add_published(&mut section, |peer| figure(peer, &ping, "mean_us"), &peers);
    section
}

fn add_element_type(data: &StoredResults, section: &mut Section, peers: &[&str], element: Element) {
    let word = element.to_string();
    let mut cells: Vec<(u64, &Cell)> = data
        .samples_of(NAME)
        .filter(|sample| sample.cell.word("type") == Some(&word))
        .filter_map(|sample| Some((sample.cell.number("units")?, &sample.cell)))
        .collect();
    cells.sort();
    cells.dedup();
    let summary = |peer: &str, cell: &Cell| Summary::of(&data.figures(NAME, peer, cell, "p50_us"));
    let line = |peer: &&str| {
        let points =
            cells.iter().filter_map(|(count, cell)| Some((*count as f64, summary(peer, cell)?.median)));
        Series::measured(*peer, points.collect())
    };
    section.chart(Chart {
        caption: format!("Median time of a call with a sequence of {word}s that is returned."),
        x: Axis::new("elements", Scale::PowersOfTwo),
        y: Axis::new("microseconds", Scale::Linear),
        series: peers.iter().map(line).collect(),
    });
    let mut columns = vec![Column::figures("elements")];
    for peer in peers {
        columns.extend([Column::figures(format!("{peer}, us")), Column::figures("min-max")]);
    }
    let row = |(count, cell): &(u64, &Cell)| {
        let mut row = vec![count.to_string()];
        for peer in peers {
            let summary = summary(peer, cell);
            row.push(format_figure(summary.map(|s| s.median)));
            row.push(summary.map_or_else(
                || "-".into(),
                |s| format!("{}-{}", format_figure(Some(s.min)), format_figure(Some(s.max))),
            ));
        }
        row
    };
    let caption =
        format!("Median and range, over the rounds, of the median time with a sequence of {word}s.");
    section.table(Table { caption, columns, rows: cells.iter().map(row).collect() });
}

/// Adds the published figures. The source has the times of several numbers of iterations, each of 100 calls.
/// The time of 1,000 iterations is used, because it is the most stable.
fn add_published(section: &mut Section, mean: impl Fn(&str) -> Option<f64>, peers: &[&str]) {
    let columns = vec![
        Column::words("version"),
        Column::words("source"),
        Column::published("two-way call, us"),
        Column::figures("two-way call in this run, us (mean)"),
    ];
    let mut rows = Vec::new();
    if let Some(table) = PublishedTable::of("gigabit97.latency") {
        for row in &table.rows {
            let call = table.number(row, "iterations_1000_s").map(|seconds| seconds / 100_000.0 * 1e6);
            let version = table.text(row, "version").unwrap_or("-");
            rows.push(vec![version.into(), table.source(), format_figure(call), "-".into()]);
        }
    }
    for peer in peers {
        rows.push(vec![(*peer).into(), "this run".into(), "-".into(), format_figure(mean(peer))]);
    }
    let caption = "Published times of a call without parameters to the last of 100 operations, over 155 Mbit/s ATM with machines of \
                   1997; and times of this run."
        .into();
    section.table(Table { caption, columns, rows });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of(text: &str) -> Result<Figures, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        figures_of_times(file.path())
    }

    #[test]
    fn corrected_percentiles_include_the_calls_that_a_slow_call_hides() {
        let mut times = vec![10_000u64; 999];
        times.push(10_000_000);
        let text: String = times.iter().map(|time| format!("{time}\n")).collect();
        let figures = figures_of(&text).unwrap();
        let near = |name: &str, expected: f64| {
            let figure = figures[name];
            assert!((figure - expected).abs() <= expected / 500.0, "{name}: {figure}");
        };
        near("p50_us", 10.0);
        near("p99_us", 10.0);
        near("max_us", 10_000.0);
        near("mean_us", 19.99);
        // The call of 10 ms hides 999 calls, which would have taken 5 ms on average: half of all are slow.
        near("corrected_p99_us", 9_800.0);
        assert!(figures["corrected_p99.9_us"] > figures["corrected_p99_us"]);
    }

    #[test]
    fn missing_and_invalid_times_are_errors() {
        assert_eq!(figures_of("10\nten\n").unwrap_err(), "\"ten\" is not a time");
        assert_eq!(figures_of("").unwrap_err(), "there are no times");
        assert!(figures_of("0\n").is_ok(), "a clock may have a low resolution");
        assert!(figures_of("99999999999999\n").is_ok(), "a call may take more than a minute");
    }
}

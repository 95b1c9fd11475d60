//! Latency of calls: without parameters, and with sequences in both directions.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use hdrhistogram::Histogram;

use super::contenders::Contender;
use super::driver::ClientOutput;
use super::store::{Cell, Data};
use super::{CommonArgs, Experiment, Figures, Plan, Step, of_line};
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, shown};
use crate::harness::BuiltIn;
use crate::literature::Published;
use crate::statistics::{Summary, median};
use crate::work::Element;

const NAME: &str = "latency";

pub(crate) const EXPERIMENT: Experiment = Experiment { name: NAME, covers: &["gigabit97.latency"], section };

/// Units of a sequence.
const UNITS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const UNITS_QUICK: [u64; 2] = [1, 1024];
/// Element types of the sequences.
const TYPES: [Element; 2] = [Element::Octet, Element::Struct];
/// The file to which the client writes the times of its calls.
const TIMES: &str = "times";

/// The longest call that is distinguished from longer ones: a minute, nanoseconds.
const LONGEST: u64 = 60_000_000_000;

/// Options of `ttcp latency`.
#[derive(Debug, Clone, Args)]
pub struct LatencyArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Elements of the sequences (default: 1, 2, 4 and so on to 1024)
    #[arg(long, value_delimiter = ',', value_name = "COUNTS", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub units: Option<Vec<u64>>,
    /// Calls a measurement (default: 20000 without parameters, 5000 with)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub n: Option<u32>,
}

impl LatencyArgs {
    /// Runs the experiment and prints its section.
    ///
    /// # Errors
    /// It cannot begin, or its results cannot be written.
    pub fn run(&self, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
        super::run(&self.common, built_in, |contenders| plan(self, contenders))
    }

    /// Arguments for the whole experiment.
    pub(crate) fn of(common: CommonArgs) -> LatencyArgs {
        LatencyArgs { common, units: None, n: None }
    }
}

/// Returns the measurements of a round.
pub(crate) fn plan(args: &LatencyArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let units = args.units.as_deref().unwrap_or(if quick { &UNITS_QUICK } else { &UNITS });
    let calls = |full: u32| args.n.unwrap_or(if quick { full / 10 } else { full }).to_string();
    let step = |cell: &Cell, contender: &Contender, words: &[&str]| {
        let mut client: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if contender.peer.samples {
            client.extend(["--samples".to_owned(), format!("{{dir}}/{TIMES}")]);
        }
        Step {
            cell: cell.clone(),
            peer: contender.peer.clone(),
            server: Vec::new(),
            client,
            figures,
            perform: Step::once,
        }
    };
    let ping = Cell::default().with("call", "ping");
    let plain = contenders.iter().filter(|contender| !contender.only_structs);
    let mut steps: Vec<Step> = plain.map(|one| step(&ping, one, &["ping", "--n", &calls(20_000)])).collect();
    for element in TYPES {
        for units in units {
            let cell = Cell::default()
                .with("call", "echo")
                .with("type", element.to_string().as_str())
                .with("units", *units);
            let size = (units * element.bytes()).to_string();
            for contender in contenders {
                let Some(sent) = contender.sends(element) else { continue };
                let words = ["echo", "--type", &sent.to_string(), "--size", &size, "--n", &calls(5_000)];
                steps.push(step(&cell, contender, &words));
            }
        }
    }
    Plan { name: NAME, checks: Vec::new(), links: Vec::new(), rounds: 5, steps }
}

/// Computes figures from the time of each call if the client wrote the times, otherwise from its line.
fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let path = output.dir.join(TIMES);
    if path.exists() {
        let figures = of_times(&path);
        std::fs::remove_file(&path).map_err(|e| format!("its times cannot be removed: {e}"))?;
        return figures;
    }
    ["p50_us", "p99_us", "max_us", "mean_us"]
        .into_iter()
        .map(|name| Ok((name.to_owned(), of_line(output.line, name)?)))
        .collect()
}

fn of_times(path: &Path) -> Result<Figures, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("its times cannot be read: {e}"))?;
    let times = text
        .lines()
        .map(|line| line.parse().map_err(|_| format!("a time of its is {line:?}")))
        .collect::<Result<Vec<u64>, String>>()?;
    let usual = median(&times.iter().map(|time| *time as f64).collect::<Vec<_>>()).ok_or("it has no time")?;
    let bad = |e: &dyn std::fmt::Display| format!("its times cannot be counted: {e}");
    let mut all = Histogram::<u64>::new_with_bounds(1, LONGEST, 3).map_err(|e| bad(&e))?;
    let mut corrected = all.clone();
    for time in times {
        all.saturating_record(time.max(1));
        // A single caller awaits each reply, so a slow call hides those that would have been made in the
        // meantime.
        corrected.record_correct(time.clamp(1, LONGEST), usual.max(1.0) as u64).map_err(|e| bad(&e))?;
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

fn section(data: &Data) -> Section {
    let mut section = Section::new(NAME, "Latency: how long a call takes");
    section.text(
        "One client, one connection, one call at a time: without parameters, and with a sequence that comes back. The time of \
         each call is taken by the client's monotonic clock, after a tenth of the calls to warm up. Percentiles are within a \
         measurement; the tables have their medians over the rounds. A call that takes long hides those that a caller with a \
         schedule would have made meanwhile (coordinated omission): the corrected percentiles count them, one for each \
         median time that it took.",
    );
    let peers = data.peers(NAME);
    let ping = Cell::default().with("call", "ping");
    let of = |peer: &str, cell: &Cell, name: &str| median(&data.figures(NAME, peer, cell, name));
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
    let baseline = of("raw", &ping, "p50_us");
    columns.push(Column::figures("median / raw"));
    let row = |peer: &&str| {
        let figures = names.map(|name| shown(of(peer, &ping, name)));
        let ratio = of(peer, &ping, "p50_us").zip(baseline).map(|(own, raw)| own / raw);
        std::iter::once((*peer).to_owned()).chain(figures).chain([shown(ratio)]).collect()
    };
    let rows = peers.iter().map(row).collect();
    section.table(Table { caption: "A call without parameters.".into(), columns, rows });
    for element in TYPES {
        by_units(data, &mut section, &peers, element);
    }
    published(&mut section, |peer| of(peer, &ping, "mean_us"), &peers);
    section
}

fn by_units(data: &Data, section: &mut Section, peers: &[&str], element: Element) {
    let word = element.to_string();
    let mut cells: Vec<(u64, &Cell)> = data
        .of(NAME)
        .filter(|sample| sample.cell.word("type") == Some(&word))
        .filter_map(|sample| Some((sample.cell.number("units")?, &sample.cell)))
        .collect();
    cells.sort();
    cells.dedup();
    let medians = |peer: &str, cell: &Cell| Summary::of(&data.figures(NAME, peer, cell, "p50_us"));
    let line = |peer: &&str| {
        let points =
            cells.iter().filter_map(|(units, cell)| Some((*units as f64, medians(peer, cell)?.median)));
        Series::measured(*peer, points.collect())
    };
    section.chart(Chart {
        caption: format!("Median time of a call with a sequence of {word}s there and back."),
        x: Axis::new("elements", Scale::Bytes),
        y: Axis::new("microseconds", Scale::Linear),
        series: peers.iter().map(line).collect(),
    });
    let mut columns = vec![Column::figures("elements")];
    for peer in peers {
        columns.extend([Column::figures(format!("{peer}, us")), Column::figures("min-max")]);
    }
    let row = |(units, cell): &(u64, &Cell)| {
        let mut row = vec![units.to_string()];
        for peer in peers {
            let summary = medians(peer, cell);
            row.push(shown(summary.map(|s| s.median)));
            row.push(
                summary
                    .map_or_else(|| "-".into(), |s| format!("{}-{}", shown(Some(s.min)), shown(Some(s.max)))),
            );
        }
        row
    };
    let caption = format!("Medians of the rounds, and their range, for a sequence of {word}s.");
    section.table(Table { caption, columns, rows: cells.iter().map(row).collect() });
}

/// Adds the published figures: seconds for 100 calls an iteration. The run of 1,000 iterations is the most
/// stable one.
fn published(section: &mut Section, mean: impl Fn(&str) -> Option<f64>, peers: &[&str]) {
    let columns = vec![
        Column::words("version"),
        Column::words("source"),
        Column::published("two-way call, us"),
        Column::figures("two-way call here, us (mean)"),
    ];
    let mut rows = Vec::new();
    if let Some(table) = Published::of("gigabit97.latency") {
        for row in &table.rows {
            let call = table.number(row, "iterations_1000_s").map(|seconds| seconds / 100_000.0 * 1e6);
            let version = table.text(row, "version").unwrap_or("-");
            rows.push(vec![version.into(), table.source(), shown(call), "-".into()]);
        }
    }
    for peer in peers {
        rows.push(vec![(*peer).into(), "this run".into(), "-".into(), shown(mean(peer))]);
    }
    let caption = "Published times of a call without parameters of the last of 100 operations, over 155 Mbit/s ATM, with machines \
                   of their day; and those of here."
        .into();
    section.table(Table { caption, columns, rows });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of(text: &str) -> Result<Figures, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        of_times(file.path())
    }

    #[test]
    fn percentiles_are_those_of_the_calls_and_a_stall_counts_for_the_calls_it_hides() {
        let mut times = vec![10_000u64; 999];
        times.push(10_000_000);
        let text: String = times.iter().map(|time| format!("{time}\n")).collect();
        let figures = figures_of(&text).unwrap();
        let near = |name: &str, wanted: f64| {
            let figure = figures[name];
            assert!((figure - wanted).abs() <= wanted / 500.0, "{name}: {figure}");
        };
        near("p50_us", 10.0);
        near("p99_us", 10.0);
        near("max_us", 10_000.0);
        near("mean_us", 19.99);
        // 10 ms hide 999 calls, which would have taken 5 ms on average: half of all are slow.
        near("corrected_p99_us", 9_800.0);
        assert!(figures["corrected_p99.9_us"] > figures["corrected_p99_us"]);
    }

    #[test]
    fn what_is_no_time_is_told() {
        assert_eq!(figures_of("10\nten\n").unwrap_err(), "a time of its is \"ten\"");
        assert_eq!(figures_of("").unwrap_err(), "it has no time");
        assert!(figures_of("0\n").is_ok(), "a clock may be coarse");
        assert!(figures_of("99999999999999\n").is_ok(), "a call may take more than a minute");
    }
}

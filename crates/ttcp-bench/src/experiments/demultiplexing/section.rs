//! The report's section about demultiplexing.

use super::super::store::{Cell, Sample, StoredResults};
use super::functions;
use super::{CALL_KINDS, ITERATIONS, NAME, Strategy, cell};
use crate::figures::{
    Axis, Chart, Column, Scale, Section, Series, Table, format_figure, format_percent, published_table,
};
use crate::literature::PublishedTable;
use crate::statistics::median;

/// The strategy with which zorb's other strategies are compared.
const BASELINE: Strategy = Strategy::Linear;
/// Ratio of all calls, including the warm-up, to the measured calls.
const WARM_UP_RATIO: f64 = 1.1;

pub(super) fn section(data: &StoredResults) -> Section {
    let samples = StrategySamples::of(data);
    let mut section = Section::new(NAME, "Demultiplexing: finding one of many operations");
    section.text(
        "A client calls the last operation of an interface with 100 or 1,000 operations, a hundred times per iteration, one call after \
         the other, two-way or one-way. The server counts its calls, and the client reads the count at the end and after a warm-up of \
         a tenth as many calls. A measurement is valid only if all calls arrived at the last operation. zorb finds operations in six \
         ways; omniORB compares the names one by one; JacORB has a hash table; the sockets (raw, c) send a number, so they have no \
         names to look up. The time of one-way calls ends when the last call returns. Messages may still be in transit then, so \
         there is also the time until the server has counted all calls.",
    );
    for (call, published) in [("twoway", "sigcomm96.t7"), ("oneway", "sigcomm96.t9")] {
        add_chart(&samples, &mut section, call, published);
    }
    for operations in &samples.operations {
        // The published interfaces have a hundred operations.
        let is_published = *operations == 100;
        for (call, times, gains) in
            [("twoway", "sigcomm96.t7", "sigcomm96.t8"), ("oneway", "sigcomm96.t9", "sigcomm96.t10")]
        {
            section.table(client_times(&samples, *operations, call, is_published.then_some(times)));
            section.table(improvement_table(&samples, *operations, call, is_published.then_some(gains)));
        }
    }
    add_server_times(&samples, &mut section);
    functions::add_tables(data, &mut section);
    for (id, what) in [
        ("sigcomm96.t4", "Published: time in the dispatcher of an ORB that compares the names one by one"),
        ("sigcomm96.t5", "Published: the same ORB, called by numbers"),
        ("sigcomm96.t6", "Published: an ORB that hashes names"),
    ] {
        section.table(published_table(
            id,
            &format!("{what}; the last of 100 operations is called 100 times per iteration"),
        ));
    }
    section.table(published_table(
        "gigabit97.setup",
        "Published: the parameters of the runs; this experiment repeats the runs for demultiplexing",
    ));
    section
}

struct StrategySamples<'d> {
    data: &'d StoredResults,
    peers: Vec<&'d str>,
    operations: Vec<u32>,
    iterations: Vec<u32>,
}

impl<'d> StrategySamples<'d> {
    fn of(data: &'d StoredResults) -> StrategySamples<'d> {
        let all = |setting: &str| {
            let mut all: Vec<u32> = data
                .samples_of(NAME)
                .filter_map(|sample| {
                    (!functions::is_measured_with_callgrind(&sample.cell))
                        .then_some(sample.cell.number(setting)?.try_into().ok()?)
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        StrategySamples {
            data,
            peers: data.peers(NAME),
            operations: all("operations"),
            iterations: all("iterations"),
        }
    }

    fn figure(&self, peer: &str, cell: &Cell, name: &str) -> Option<f64> {
        median(&self.data.figures(NAME, peer, cell, name))
    }

    /// Returns a value of each sample, with its round.
    fn by_round(&self, peer: &str, cell: &Cell, of: impl Fn(&Sample) -> Option<f64>) -> Vec<(u32, f64)> {
        let is_selected = |sample: &&Sample| sample.peer == peer && sample.cell == *cell;
        let selected = self.data.samples_of(NAME).filter(is_selected);
        selected.filter_map(|sample| Some((sample.round, of(sample)?))).collect()
    }

    /// Returns by how many percent a peer is faster than the baseline: the median of the improvements in each
    /// round, because a round measures both peers within a short time.
    fn improvement(&self, peer: &str, cell: &Cell, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let baseline = self.by_round(BASELINE.peer_name(), cell, &of);
        let improvements = self.by_round(peer, cell, &of).into_iter().filter_map(|(round, time)| {
            let (_, base) = baseline.iter().find(|(other, _)| *other == round)?;
            Some(100.0 * (base - time) / base)
        });
        median(&improvements.collect::<Vec<_>>())
    }

    /// Returns the measured strategies other than the baseline.
    fn strategies_to_compare(&self) -> impl Iterator<Item = Strategy> {
        let measured =
            |strategy: &Strategy| *strategy != BASELINE && self.peers.contains(&strategy.peer_name());
        Strategy::ALL.into_iter().filter(measured)
    }
}

fn server_ms(sample: &Sample) -> Option<f64> {
    Some(sample.processor_time()?.server / WARM_UP_RATIO * 1e3)
}

fn strategy_of_peer(peer: &str) -> &str {
    let own = Strategy::ALL.into_iter().find(|strategy| strategy.peer_name() == peer);
    own.map_or("-", Strategy::description)
}

fn add_chart(samples: &StrategySamples<'_>, section: &mut Section, call: &str, id: &str) {
    let Some(operations) = samples.operations.first().copied() else { return };
    let line = |peer: &&str| {
        let point = |iterations: &u32| {
            Some((
                f64::from(*iterations),
                samples.figure(peer, &cell(operations, call, *iterations), "secs")?,
            ))
        };
        Series::measured(*peer, samples.iterations.iter().filter_map(point).collect())
    };
    let mut series: Vec<Series> = samples.peers.iter().map(line).collect();
    if let Some(table) = PublishedTable::of(id).filter(|_| operations == 100) {
        series.extend(table.rows.iter().map(|row| {
            let points = ITERATIONS.iter().filter_map(|iterations| {
                Some((f64::from(*iterations), table.number(row, &format!("iterations_{iterations}_s"))?))
            });
            let name = format!("{} ({})", table.text(row, "version").unwrap_or("-"), table.document);
            Series::published(name, points.collect())
        }));
    }
    section.chart(Chart {
        caption: format!("{call} calls of the last of {operations} operations, and the published times."),
        x: Axis::new("iterations of 100 calls", Scale::PowersOfTen),
        y: Axis::new("seconds at the client", Scale::PowersOfTen),
        series,
    });
}

/// Returns the client's times, as in the published tables 7 and 9, whose times are in additional columns.
fn client_times(
    samples: &StrategySamples<'_>,
    operations: u32,
    call: &str,
    published: Option<&str>,
) -> Table {
    let is_oneway = CALL_KINDS.contains(&(call, true));
    let mut columns = vec![Column::words("version"), Column::words("strategy")];
    for iterations in &samples.iterations {
        columns.push(Column::figures(format!("{iterations} iterations, s")));
    }
    columns.push(Column::figures("per call, us"));
    if is_oneway {
        columns.push(Column::figures("per counted call, us"));
    }
    let row = |peer: &&str| {
        let at =
            |iterations: &u32, name: &str| samples.figure(peer, &cell(operations, call, *iterations), name);
        let at_max = |name: &str| samples.iterations.last().and_then(|iterations| at(iterations, name));
        let mut row = vec![(*peer).to_owned(), strategy_of_peer(peer).to_owned()];
        row.extend(samples.iterations.iter().map(|iterations| format_figure(at(iterations, "secs"))));
        row.push(format_figure(at_max("call_us")));
        row.extend(is_oneway.then(|| format_figure(at_max("counted_call_us"))));
        row
    };
    let rows =
        samples.peers.iter().map(row).filter(|row| row.iter().skip(2).any(|cell| cell != "-")).collect();
    let caption = format!(
        "Time of the client for {call} calls of the last of {operations} operations: medians of the rounds. The time per call is from \
         the measurement with the most iterations."
    );
    with_published(Table { caption, columns, rows }, published, "version", "s")
}

/// Returns the improvements over the linear search, as in the published tables 8 and 10.
fn improvement_table(
    samples: &StrategySamples<'_>,
    operations: u32,
    call: &str,
    published: Option<&str>,
) -> Table {
    let mut columns = vec![Column::words("version"), Column::words("strategy")];
    for iterations in &samples.iterations {
        columns.push(Column::figures(format!("{iterations} iterations, %")));
    }
    let gain = |strategy: Strategy, iterations: u32| {
        let cell = cell(operations, call, iterations);
        samples.improvement(strategy.peer_name(), &cell, |sample| sample.figure("counted_secs"))
    };
    let row = |strategy: Strategy| {
        let gains = samples.iterations.iter().map(|iterations| format_percent(gain(strategy, *iterations)));
        [strategy.peer_name().to_owned(), strategy.description().to_owned()]
            .into_iter()
            .chain(gains)
            .collect()
    };
    let caption = format!(
        "Improvement of {call} calls over {}, {operations} operations: percent less time of the client until all calls are counted, \
         medians of the rounds.",
        BASELINE.peer_name()
    );
    let rows = samples
        .strategies_to_compare()
        .map(row)
        .filter(|row: &Vec<String>| row.iter().skip(2).any(|cell| cell != "-"));
    with_published(Table { caption, columns, rows: rows.collect() }, published, "version", "pct")
}

/// Appends the rows of a published table, in additional columns.
fn with_published(mut table: Table, id: Option<&str>, name: &str, unit: &str) -> Table {
    let Some(published) = id.and_then(PublishedTable::of).filter(|_| !table.rows.is_empty()) else {
        return table;
    };
    let measured_columns = table.columns.len();
    let unit_shown = if unit == "pct" { "%" } else { unit };
    table.columns.extend(
        ITERATIONS.map(|iterations| Column::published(format!("{iterations} iterations, {unit_shown}"))),
    );
    for row in &mut table.rows {
        row.resize(measured_columns + ITERATIONS.len(), "-".to_owned());
    }
    for row in &published.rows {
        let mut cells = vec![published.text(row, name).unwrap_or("-").to_owned(), published.source()];
        cells.resize(measured_columns, "-".to_owned());
        cells.extend(ITERATIONS.map(|iterations| {
            published.text(row, &format!("iterations_{iterations}_{unit}")).unwrap_or("-").to_owned()
        }));
        table.rows.push(cells);
    }
    table
}

fn add_server_times(samples: &StrategySamples<'_>, section: &mut Section) {
    section.text(
        "Server: processor time of the whole process for the counted calls, including the kernel. The time of a look-up in zorb is the mean \
         of 10,000 repetitions within the server, with the tables in the processor's caches. The server's time includes the look-ups, \
         but other parts of it vary by more than they do.",
    );
    for operations in &samples.operations {
        for (call, _) in CALL_KINDS {
            let mut columns = vec![Column::words("version")];
            for iterations in &samples.iterations {
                columns.push(Column::figures(format!("{iterations} iterations, ms")));
            }
            columns.push(Column::figures("per call, us"));
            columns.push(Column::figures(format!("less than {}, %", BASELINE.peer_name())));
            columns.push(Column::figures("look-up, ns"));
            let row = |peer: &&str| {
                let server_ms_of = |iterations: u32| {
                    let by_round = samples.by_round(peer, &cell(*operations, call, iterations), server_ms);
                    median(&by_round.into_iter().map(|(_, ms)| ms).collect::<Vec<_>>())
                };
                let max_iterations = samples.iterations.last().copied().unwrap_or_default();
                let cell = cell(*operations, call, max_iterations);
                let calls = f64::from(max_iterations) * f64::from(crate::work::CALLS_PER_ITERATION);
                let gain = (samples.strategies_to_compare().any(|strategy| strategy.peer_name() == *peer))
                    .then(|| samples.improvement(peer, &cell, server_ms))
                    .flatten();
                let mut row = vec![(*peer).to_owned()];
                row.extend(samples.iterations.iter().map(|count| format_figure(server_ms_of(*count))));
                row.push(format_figure(server_ms_of(max_iterations).map(|ms| ms / calls * 1e3)));
                row.push(format_percent(gain));
                row.push(format_figure(samples.figure(peer, &cell, "lookup_ns")));
                row
            };
            let rows = samples.peers.iter().map(row).filter(|row| row.iter().skip(1).any(|cell| cell != "-"));
            let caption = format!(
                "Processor time of the server for {call} calls of the last of {operations} operations: medians of the rounds."
            );
            section.table(Table { caption, columns, rows: rows.collect() });
        }
    }
}

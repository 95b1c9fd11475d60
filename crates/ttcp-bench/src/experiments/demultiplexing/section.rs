//! The report's section on finding operations.

use super::super::store::{Cell, Data, Outcome, Sample};
use super::functions;
use super::{CALLS, ITERATIONS, NAME, Strategy, cell};
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, published_table, shown};
use crate::literature::Published;
use crate::statistics::median;

/// The strategy with which zorb's other strategies are compared.
const BASELINE: Strategy = Strategy::Linear;
/// Ratio of all calls, warm-up included, to the measured calls.
const WITH_WARM_UP: f64 = 1.1;

pub(super) fn section(data: &Data) -> Section {
    let samples = StrategySamples::of(data);
    let mut section = Section::new(NAME, "Demultiplexing: finding one of very many operations");
    section.text(
        "One client calls the last operation of an interface of 100 or 1,000, a hundred times an iteration, one call after the other: \
         two-way, or oneway. The server counts its calls, and the client asks it at the end, also of a warm-up of a tenth as many: a measurement counts \
         only if each call arrived at the last operation, and none at another. Zorb finds operations in six ways; omniORB compares \
         name by name, JacORB has a hash table, the sockets (raw, c) send a number and have no names to look up. Times of oneways are \
         until the last call has returned; behind it the messages may still be on their way, so the time until the server has counted \
         all of them stands beside.",
    );
    for (call, published) in [("twoway", "sigcomm96.t7"), ("oneway", "sigcomm96.t9")] {
        chart(&samples, &mut section, call, published);
    }
    for operations in &samples.operations {
        // The published interfaces have a hundred operations.
        let is_published = *operations == 100;
        for (call, times, gains) in
            [("twoway", "sigcomm96.t7", "sigcomm96.t8"), ("oneway", "sigcomm96.t9", "sigcomm96.t10")]
        {
            section.table(client_times(&samples, *operations, call, is_published.then_some(times)));
            section.table(improvement(&samples, *operations, call, is_published.then_some(gains)));
        }
    }
    server(&samples, &mut section);
    functions::tables(data, &mut section);
    for (id, what) in [
        ("sigcomm96.t4", "Published: time in the dispatcher of an ORB that compares names one by one"),
        ("sigcomm96.t5", "Published: the same ORB, called by numbers"),
        ("sigcomm96.t6", "Published: an ORB that hashes names"),
    ] {
        section.table(published_table(
            id,
            &format!("{what}; the last of 100 operations is called 100 times an iteration"),
        ));
    }
    section.table(published_table(
        "gigabit97.setup",
        "Published: the parameters of the runs, of which this experiment repeats those of demultiplexing",
    ));
    section
}

/// The samples of this experiment.
struct StrategySamples<'d> {
    data: &'d Data,
    peers: Vec<&'d str>,
    operations: Vec<u32>,
    iterations: Vec<u32>,
}

impl<'d> StrategySamples<'d> {
    fn of(data: &'d Data) -> StrategySamples<'d> {
        let all = |setting: &str| {
            let mut all: Vec<u32> = data
                .of(NAME)
                .filter_map(|sample| {
                    (!functions::is_here(&sample.cell))
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

    /// Returns a value of each sample, by rounds.
    fn by_round(&self, peer: &str, cell: &Cell, of: impl Fn(&Sample) -> Option<f64>) -> Vec<(u32, f64)> {
        let same = |sample: &&Sample| sample.peer == peer && sample.cell == *cell;
        self.data.of(NAME).filter(same).filter_map(|sample| Some((sample.round, of(sample)?))).collect()
    }

    /// Returns by how many percent it is faster than the baseline: the median of the rounds, because within a
    /// round both are measured shortly after each other.
    fn gain(&self, peer: &str, cell: &Cell, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let baseline = self.by_round(BASELINE.peer(), cell, &of);
        let pairs = self.by_round(peer, cell, &of).into_iter().filter_map(|(round, took)| {
            let (_, before) = baseline.iter().find(|(of, _)| *of == round)?;
            Some(100.0 * (before - took) / before)
        });
        median(&pairs.collect::<Vec<_>>())
    }

    /// Returns the measured strategies except the baseline.
    fn better(&self) -> impl Iterator<Item = Strategy> {
        let measured = |strategy: &Strategy| *strategy != BASELINE && self.peers.contains(&strategy.peer());
        Strategy::ALL.into_iter().filter(measured)
    }
}

/// Returns milliseconds of the server's processor for the measured calls.
fn server_ms(sample: &Sample) -> Option<f64> {
    match &sample.outcome {
        Outcome::Figures { processor: Some(used), .. } => Some(used.server / WITH_WARM_UP * 1e3),
        _ => None,
    }
}

/// Returns how a peer finds operations.
fn about(peer: &str) -> &str {
    let own = Strategy::ALL.into_iter().find(|strategy| strategy.peer() == peer);
    own.map_or("-", Strategy::about)
}

fn chart(samples: &StrategySamples<'_>, section: &mut Section, call: &str, id: &str) {
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
    if let Some(table) = Published::of(id).filter(|_| operations == 100) {
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
        x: Axis::new("iterations of 100 calls", Scale::Decades),
        y: Axis::new("seconds at the client", Scale::Decades),
        series,
    });
}

/// Latencies of the client, as in tables 7 and 9. The published ones follow below, in separate columns.
fn client_times(
    samples: &StrategySamples<'_>,
    operations: u32,
    call: &str,
    published: Option<&str>,
) -> Table {
    let is_oneway = CALLS.contains(&(call, true));
    let mut columns = vec![Column::words("version"), Column::words("operations are found")];
    for iterations in &samples.iterations {
        columns.push(Column::figures(format!("{iterations} iterations, s")));
    }
    columns.push(Column::figures("a call, us"));
    if is_oneway {
        columns.push(Column::figures("until it is counted, us"));
    }
    let row = |peer: &&str| {
        let at =
            |iterations: &u32, name: &str| samples.figure(peer, &cell(operations, call, *iterations), name);
        let most = |name: &str| samples.iterations.last().and_then(|iterations| at(iterations, name));
        let mut row = vec![(*peer).to_owned(), about(peer).to_owned()];
        row.extend(samples.iterations.iter().map(|iterations| shown(at(iterations, "secs"))));
        row.push(shown(most("call_us")));
        row.extend(is_oneway.then(|| shown(most("counted_call_us"))));
        row
    };
    let rows =
        samples.peers.iter().map(row).filter(|row| row.iter().skip(2).any(|cell| cell != "-")).collect();
    let caption = format!(
        "Time of the client for {call} calls of the last of {operations} operations: medians of the rounds. A call: of the most iterations."
    );
    with_published(Table { caption, columns, rows }, published, "version", "s")
}

/// Improvements over the linear search, as in tables 8 and 10.
fn improvement(samples: &StrategySamples<'_>, operations: u32, call: &str, published: Option<&str>) -> Table {
    let mut columns = vec![Column::words("version"), Column::words("operations are found")];
    for iterations in &samples.iterations {
        columns.push(Column::figures(format!("{iterations} iterations, %")));
    }
    let gain = |strategy: Strategy, iterations: u32| {
        let cell = cell(operations, call, iterations);
        samples.gain(strategy.peer(), &cell, |sample| sample.figure("counted_secs"))
    };
    let row = |strategy: Strategy| {
        let gains = samples.iterations.iter().map(|iterations| percent(gain(strategy, *iterations)));
        [strategy.peer().to_owned(), strategy.about().to_owned()].into_iter().chain(gains).collect()
    };
    let caption = format!(
        "Improvement of {call} calls over {}, {operations} operations: percent less time at the client until all are counted, medians of the rounds.",
        BASELINE.peer()
    );
    let rows =
        samples.better().map(row).filter(|row: &Vec<String>| row.iter().skip(2).any(|cell| cell != "-"));
    with_published(Table { caption, columns, rows: rows.collect() }, published, "version", "pct")
}

/// Appends the rows of a published table, in separate columns.
fn with_published(mut table: Table, id: Option<&str>, name: &str, unit: &str) -> Table {
    let Some(published) = id.and_then(Published::of).filter(|_| !table.rows.is_empty()) else { return table };
    let measured = table.columns.len();
    let unit_shown = if unit == "pct" { "%" } else { unit };
    table.columns.extend(
        ITERATIONS.map(|iterations| Column::published(format!("{iterations} iterations, {unit_shown}"))),
    );
    for row in &mut table.rows {
        row.resize(measured + ITERATIONS.len(), "-".to_owned());
    }
    for row in &published.rows {
        let mut cells = vec![published.text(row, name).unwrap_or("-").to_owned(), published.source()];
        cells.resize(measured, "-".to_owned());
        cells.extend(ITERATIONS.map(|iterations| {
            published.text(row, &format!("iterations_{iterations}_{unit}")).unwrap_or("-").to_owned()
        }));
        table.rows.push(cells);
    }
    table
}

/// Adds the processor time of the server.
fn server(samples: &StrategySamples<'_>, section: &mut Section) {
    section.text(
        "At the server: processor time of the whole process, in the kernel too, for the counted calls, and what zorb's own look-up of the name takes by \
         itself, again and again within the server, which finds it in the processor's caches: the mean of 10,000. What a look-up takes more or less is in the server's time; what \
         else is in it moves by more.",
    );
    for operations in &samples.operations {
        for (call, _) in CALLS {
            let mut columns = vec![Column::words("version")];
            for iterations in &samples.iterations {
                columns.push(Column::figures(format!("{iterations} iterations, ms")));
            }
            columns.push(Column::figures("a call, us"));
            columns.push(Column::figures(format!("less than {}, %", BASELINE.peer())));
            columns.push(Column::figures("look-up by itself, ns"));
            let row = |peer: &&str| {
                let at = |iterations: u32| {
                    let by_round = samples.by_round(peer, &cell(*operations, call, iterations), server_ms);
                    median(&by_round.into_iter().map(|(_, ms)| ms).collect::<Vec<_>>())
                };
                let most = samples.iterations.last().copied().unwrap_or_default();
                let cell = cell(*operations, call, most);
                let calls = f64::from(most) * f64::from(crate::work::CALLS_AN_ITERATION);
                let gain = (samples.better().any(|strategy| strategy.peer() == *peer))
                    .then(|| samples.gain(peer, &cell, server_ms))
                    .flatten();
                let mut row = vec![(*peer).to_owned()];
                row.extend(samples.iterations.iter().map(|iterations| shown(at(*iterations))));
                row.push(shown(at(most).map(|ms| ms / calls * 1e3)));
                row.push(percent(gain));
                row.push(shown(samples.figure(peer, &cell, "lookup_ns")));
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

/// Formats percentages with one decimal place, small ones too.
fn percent(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.1}"))
}

//! The results of `ttcp run` as a table and as JSON: samples, medians and ratios.

use serde::Serialize;

use super::measure::Sample;
use super::plan::{Cell, Unit};
use crate::figures::markdown::format_table;
use crate::figures::{Column, Table, format_figure};
use crate::harness::Peer;
use crate::harness::environment::Environment;
use crate::harness::peers::Failure;
use crate::harness::processor::ProcessorTime;
use crate::statistics::{Summary, median};

pub(crate) const BASELINE: &str = "raw";

#[derive(Debug, Serialize)]
pub(crate) struct Results {
    /// The version of this JSON format.
    pub(crate) format: u32,
    pub(crate) environment: Environment,
    /// The number of planned rounds.
    pub(crate) repeat: u32,
    /// The number of complete rounds.
    pub(crate) rounds: u32,
    pub(crate) interrupted: bool,
    pub(crate) peers: Vec<Peer>,
    /// The rows of the table, in its order.
    pub(crate) cells: Vec<Row>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) unit: Unit,
    pub(crate) more_is_better: bool,
    /// The results of each peer, in the order of [`Results::peers`].
    pub(crate) results: Vec<Entry>,
}

/// The results of one peer in one row.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Entry {
    pub(crate) peer: String,
    pub(crate) median: Option<f64>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    /// Median of the ratios to the baseline's figures in the same rounds. Figures are comparable only if they
    /// are measured soon after each other. More than 1 is better for throughput, less than 1 for latency.
    pub(crate) ratio: Option<f64>,
    /// Median processor time of server and client together, in seconds per GB or microseconds per call.
    pub(crate) processor: Option<f64>,
    /// Medians of the processor times of client and server, in the unit of `processor`.
    pub(crate) sides: Option<[f64; 2]>,
    pub(crate) samples: Vec<Sample>,
    /// The round of each sample.
    pub(crate) rounds: Vec<usize>,
    pub(crate) failures: Vec<String>,
}

impl Results {
    pub(crate) fn new(environment: Environment, repeat: u32, peers: Vec<Peer>, cells: Vec<Cell>) -> Results {
        let row = |cell: Cell| Row {
            name: cell.name(),
            unit: cell.unit(),
            more_is_better: cell.unit().more_is_better(),
            results: peers.iter().map(|p| Entry { peer: p.name.clone(), ..Entry::default() }).collect(),
            cell,
        };
        let cells = cells.into_iter().map(row).collect();
        Results { format: 1, environment, repeat, rounds: 0, interrupted: false, peers, cells }
    }

    /// Adds the next round's measurement of a peer in a row. Indices out of range are ignored.
    pub(crate) fn add(&mut self, row: usize, peer: usize, result: Result<Sample, Failure>) {
        let Some(row) = self.cells.get_mut(row) else { return };
        let Some(entry) = row.results.get_mut(peer) else { return };
        match result {
            Ok(sample) => {
                entry.rounds.push(entry.samples.len() + entry.failures.len());
                entry.samples.push(sample);
            }
            Err(failure) => entry.failures.push(failure.to_string()),
        }
        entry.summarise(row.cell.work());
        let baseline: Vec<(usize, f64)> =
            row.results.iter().filter(|e| e.peer == BASELINE).flat_map(Entry::figures).collect();
        for entry in row.results.iter_mut().filter(|e| e.peer != BASELINE) {
            entry.ratio = entry.ratio_to(&baseline);
        }
    }

    pub(crate) fn failure_count(&self) -> usize {
        self.cells.iter().flat_map(|row| &row.results).map(|e| e.failures.len()).sum()
    }

    /// Returns the table as Markdown that is readable on a terminal.
    pub(crate) fn table(&self) -> String {
        let compared = self.peers.iter().any(|p| p.name == BASELINE);
        let mut columns = ["test", "unit"].map(Column::words).to_vec();
        for peer in &self.peers {
            columns.extend([Column::figures(&peer.name), Column::figures("min-max")]);
            if compared && peer.name != BASELINE {
                columns.push(Column::figures(format!("{} / {BASELINE}", peer.name)));
            }
        }
        let line = |row: &Row| {
            let mut line = vec![row.name.clone(), row.unit.name().to_owned()];
            for entry in &row.results {
                line.extend(entry.format_median_and_range());
                if compared && entry.peer != BASELINE {
                    line.push(entry.ratio.map_or_else(|| "-".to_owned(), |r| format!("{r:.2} x")));
                }
            }
            line
        };
        format_table(&Table { caption: String::new(), columns, rows: self.cells.iter().map(line).collect() })
    }

    pub(crate) fn processor_table(&self) -> String {
        let mut columns = ["processor", "unit"].map(Column::words).to_vec();
        columns.extend(self.peers.iter().map(|peer| Column::figures(&peer.name)));
        let line = |row: &Row| {
            let (unit, scale) = if row.cell.total.is_some() { ("ms/GB", 1e3) } else { ("us/call", 1.0) };
            let figures = row.results.iter().map(|entry| entry.format_processor(scale));
            [row.name.clone(), unit.to_owned()].into_iter().chain(figures).collect()
        };
        format_table(&Table { caption: String::new(), columns, rows: self.cells.iter().map(line).collect() })
    }

    pub(crate) const PROCESSOR_LEGEND: &'static str = "Medians of the processor time in user and kernel mode, per GB \
         (10^9 bytes) of elements or per call: both sides together, and (client + server). The times include the start of the client and the warm-up.";

    pub(crate) fn legend(&self) -> String {
        format!(
            "Medians of {} interleaved round(s). A ratio is the median of the ratios within each round. ttcp: bits of elements that were sent, decoded and \
             confirmed (more is better); pipeline: calls (more is better); ping, demux, echo: median time of a call (less is better).",
            self.rounds
        )
    }
}

impl Entry {
    fn summarise(&mut self, work: f64) {
        let processor = |part: fn(ProcessorTime) -> f64| {
            let figures = self.samples.iter().filter_map(|s| s.processor).map(|p| part(p) / work);
            median(&figures.collect::<Vec<_>>())
        };
        let sides = processor(|p| p.client).zip(processor(|p| p.server));
        (self.processor, self.sides) = (processor(ProcessorTime::sum), sides.map(|(c, s)| [c, s]));
        let summary = Summary::of(&self.samples.iter().map(|s| s.figure).collect::<Vec<_>>());
        self.median = summary.map(|s| s.median);
        self.min = summary.map(|s| s.min);
        self.max = summary.map(|s| s.max);
    }

    fn figures(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.rounds.iter().copied().zip(self.samples.iter().map(|s| s.figure))
    }

    /// Returns the median of the ratios to the baseline's figures in the same rounds.
    fn ratio_to(&self, baseline: &[(usize, f64)]) -> Option<f64> {
        let base = |round| baseline.iter().find(|(other, _)| *other == round).map(|(_, figure)| figure);
        let ratios = self.figures().filter_map(|(round, figure)| base(round).map(|base| figure / base));
        median(&ratios.collect::<Vec<_>>())
    }

    fn format_processor(&self, scale: f64) -> String {
        let format = |figure: f64| format_figure(Some(scale * figure));
        match (self.processor, self.sides) {
            (Some(sum), Some([client, server])) => {
                format!("{} ({} + {})", format(sum), format(client), format(server))
            }
            _ => "-".to_owned(),
        }
    }

    /// Formats the median and the range of the figures. `!` means that some measurements failed.
    fn format_median_and_range(&self) -> [String; 2] {
        match (self.median, self.min, self.max) {
            (Some(median), Some(min), Some(max)) => {
                let mark = if self.failures.is_empty() { "" } else { " !" };
                [
                    format!("{}{mark}", format_figure(Some(median))),
                    format!("{}-{}", format_figure(Some(min)), format_figure(Some(max))),
                ]
            }
            _ if self.failures.is_empty() => ["-".to_owned(), "-".to_owned()],
            _ => ["failed".to_owned(), "-".to_owned()],
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::work::{Element, Test};

    fn results() -> Results {
        let peers = ["raw=s::c", "zorb=s::c"].map(|p| p.parse().unwrap()).to_vec();
        let ping = Cell { n: Some(9), ..Cell::new(Test::Ping) };
        let flood = Cell {
            element: Some(Element::Octet),
            size: Some(65_536),
            total: Some(1 << 20),
            ..Cell::new(Test::Ttcp)
        };
        Results::new(Environment::current(), 3, peers, vec![ping, flood])
    }

    fn sample(figure: f64) -> Result<Sample, Failure> {
        let processor = Some(ProcessorTime { server: figure, client: 2.0 * figure });
        Ok(Sample { figure, line: json!({"figure": figure}), processor })
    }

    #[test]
    fn the_table_has_medians_ranges_and_ratios() {
        let mut r = results();
        for (raw, zorb) in [(20.0, 24.0), (10.0, 12.0), (40.0, 50.0)] {
            r.add(0, 0, sample(raw));
            r.add(0, 1, sample(zorb));
        }
        r.add(1, 0, sample(44.0));
        r.add(1, 1, Err(Failure::RunTimeout));
        let table = r.table();
        let lines: Vec<Vec<_>> = table.lines().map(|l| l.split('|').map(str::trim).collect()).collect();
        assert_eq!(lines[0][1..8], ["test", "unit", "raw", "min-max", "zorb", "min-max", "zorb / raw"]);
        assert_eq!(lines[2][1..8], ["ping", "us", "20.0", "10.0-40.0", "24.0", "12.0-50.0", "1.20 x"]);
        assert_eq!(lines[3][1..8], ["ttcp octet 64 KiB", "Gbit/s", "44.0", "44.0-44.0", "failed", "-", "-"]);
        assert_eq!(r.failure_count(), 1);
    }

    #[test]
    fn ratios_compare_figures_of_the_same_round() {
        let mut r = results();
        for (raw, zorb) in [(20.0, Some(24.0)), (10.0, None), (40.0, Some(52.0)), (50.0, Some(70.0))] {
            r.add(0, 0, sample(raw));
            r.add(0, 1, zorb.map_or(Err(Failure::RunTimeout), sample));
        }
        assert_eq!(
            r.cells[0].results[1].ratio,
            Some(1.3),
            "the median of 1.2, 1.3 and 1.4, not the ratio of the medians 52 and 30"
        );
    }

    #[test]
    fn processor_time_is_per_gb_and_per_call() {
        let mut r = results();
        r.add(0, 0, sample(1.1e-3));
        r.add(1, 1, sample(1.1 * f64::from(1 << 20) / 1e9));
        let table = r.processor_table();
        let lines: Vec<Vec<_>> = table.lines().map(|l| l.split('|').map(str::trim).collect()).collect();
        assert_eq!(lines[0][1..5], ["processor", "unit", "raw", "zorb"]);
        // 3.3 ms for 9 calls and a warm-up of a tenth.
        assert_eq!(lines[2][1..5], ["ping", "us/call", "333 (222 + 111)", "-"]);
        assert_eq!(lines[3][1..5], ["ttcp octet 64 KiB", "ms/GB", "-", "3000 (2000 + 1000)"]);
    }

    #[test]
    fn a_partly_failed_cell_keeps_its_figures_and_is_marked() {
        let mut r = results();
        r.add(0, 1, sample(24.0));
        r.add(0, 1, Err(Failure::RunTimeout));
        let table = r.table();
        assert!(table.contains("24.0 !") && table.contains("24.0-24.0"), "{table}");
    }

    #[test]
    fn the_json_has_all_samples_and_the_environment() {
        let mut r = results();
        r.add(0, 0, sample(20.0));
        r.add(0, 1, sample(30.0));
        let json: Value = serde_json::to_value(&r).unwrap();
        assert_eq!(json["cells"][0]["results"][1]["ratio"], 1.5);
        assert_eq!(json["cells"][0]["results"][1]["samples"][0]["line"]["figure"], 30.0);
        assert_eq!(json["cells"][1]["type"], "octet");
        assert_eq!(json["cells"][1]["unit"], "Gbit/s");
        for name in ["kernel", "cpu", "cores", "congestion_control", "commit", "command", "version", "rustc"]
        {
            assert!(json["environment"].get(name).is_some(), "{name}");
        }
    }
}

//! `ttcp compare`: the differences between two results, and whether they are significant.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::integrity::CHECKED_MB;
use super::store::{Outcome, StoredResults};
use crate::figures::{Column, Table, format_figure, markdown};
use crate::statistics::{Interval, median};

/// Options of `ttcp compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// A directory of results
    pub a: PathBuf,
    /// Another directory with results of the same experiment
    pub b: PathBuf,
    /// Compare only figures whose names contain TEXT
    #[arg(long, value_name = "TEXT")]
    pub figure: Option<String>,
}

/// Prints a table with a row for each figure that is in both results.
///
/// # Errors
/// A directory has no results, or the results have no figure in common.
pub fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    let table = table(&StoredResults::read(&args.a)?, &StoredResults::read(&args.b)?, args.figure.as_deref());
    if table.rows.is_empty() {
        anyhow::bail!("{} and {} have no figure in common", args.a.display(), args.b.display());
    }
    let text = markdown::format_table(&table);
    writeln!(
        std::io::stdout().lock(),
        "{text}\n\nMedians of the rounds. The interval is the 95 % confidence interval of the ratio of the medians (bootstrap). If it \
         contains 1, or a result has fewer than three rounds, the difference is not significant."
    )?;
    Ok(())
}

fn table(a: &StoredResults, b: &StoredResults, name_part: Option<&str>) -> Table {
    let columns = ["experiment", "peer", "cell", "figure"].map(Column::words).into_iter();
    let columns =
        columns.chain(["A", "B", "B / A", "interval"].map(Column::figures)).chain([Column::words("verdict")]);
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    for sample in a.samples() {
        let Outcome::Figures { figures, .. } = &sample.outcome else { continue };
        // The number of checked bytes is not a measure of performance.
        let is_selected =
            |name: &&String| *name != CHECKED_MB && name_part.is_none_or(|part| name.contains(part));
        for name in figures.keys().filter(is_selected) {
            let (experiment, peer, cell) = (&sample.experiment, &sample.peer, &sample.cell);
            if !seen.insert((experiment, peer, cell, name)) {
                continue;
            }
            let figures = [a, b].map(|data| data.figures(experiment, peer, cell, name));
            let [Some(before), Some(after)] = [median(&figures[0]), median(&figures[1])] else { continue };
            let has_enough_rounds = figures.iter().all(|figures| figures.len() >= 3);
            let interval =
                if has_enough_rounds { Interval::of_ratio(&figures[1], &figures[0]) } else { None };
            rows.push(vec![
                experiment.clone(),
                peer.clone(),
                cell.name(),
                name.clone(),
                format_figure(Some(before)),
                format_figure(Some(after)),
                format_figure((before != 0.0).then(|| after / before)),
                interval.map_or_else(|| "-".into(), |i| format!("{:.3} to {:.3}", i.low, i.high)),
                verdict(name, interval).to_owned(),
            ]);
        }
    }
    Table { caption: String::new(), columns: columns.collect(), rows }
}

fn verdict(figure: &str, interval: Option<Interval>) -> &'static str {
    match interval {
        None => "too few rounds",
        Some(interval) if !interval.excludes(1.0) => "not significant",
        Some(interval) if (interval.low > 1.0) == more_is_better(figure) => "B is better",
        Some(_) => "A is better",
    }
}

/// Returns whether the figure with that name is a rate, so that larger values are better.
pub(crate) fn more_is_better(figure: &str) -> bool {
    figure.ends_with("bit_s") || figure.ends_with("calls_s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::store::{Cell, Sample};

    fn data(figures: &[f64]) -> StoredResults {
        let sample = |(round, figure): (u32, &f64)| Sample {
            experiment: "latency".into(),
            cell: Cell::default().with("call", "ping"),
            peer: "zorb".into(),
            round,
            run: 0,
            outcome: Outcome::Figures {
                figures: [("p50_us".to_owned(), *figure), ("mbit_s".to_owned(), 1.0 / figure)].into(),
                processor: None,
                line: serde_json::Value::Null,
            },
        };
        StoredResults::new(Vec::new(), (0..).zip(figures).map(sample).collect())
    }

    #[test]
    fn only_significant_differences_have_a_verdict() {
        let verdicts = |a: &[f64], b: &[f64]| -> Vec<String> {
            table(&data(a), &data(b), None).rows.into_iter().map(|row| row[8].clone()).collect()
        };
        let steady = [10.0, 10.1, 10.2, 10.1, 10.0];
        assert_eq!(verdicts(&steady, &[8.0, 8.1, 8.2, 8.1, 8.0]), ["B is better", "B is better"]);
        assert_eq!(verdicts(&steady, &[12.0, 12.1, 12.2, 12.1, 12.0]), ["A is better", "A is better"]);
        assert_eq!(verdicts(&steady, &[9.0, 10.1, 11.2, 10.3, 9.9]), ["not significant", "not significant"]);
        assert_eq!(verdicts(&steady, &[8.0]), ["too few rounds", "too few rounds"]);
        assert_eq!(table(&data(&steady), &data(&steady), Some("p50")).rows.len(), 1);
        assert!(table(&data(&steady), &StoredResults::default(), None).rows.is_empty());
    }
}

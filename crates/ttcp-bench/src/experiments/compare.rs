//! `ttcp compare`: the differences between two results, and whether they are significant.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::integrity::CHECKED;
use super::store::{Data, Outcome};
use crate::figures::{Column, Table, markdown, shown};
use crate::statistics::{Interval, median};

/// Options of `ttcp compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// A directory of results
    pub a: PathBuf,
    /// Another, of the same experiment
    pub b: PathBuf,
    /// Only figures with this in their names
    #[arg(long, value_name = "TEXT")]
    pub figure: Option<String>,
}

/// Prints a line for each figure that both results have.
///
/// # Errors
/// A directory has no results, or they have nothing in common.
pub fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    let table = table(&Data::read(&args.a)?, &Data::read(&args.b)?, args.figure.as_deref());
    if table.rows.is_empty() {
        anyhow::bail!("{} and {} have no figure in common", args.a.display(), args.b.display());
    }
    let text = markdown::of_table(&table);
    writeln!(
        std::io::stdout().lock(),
        "{text}\n\nMedians of the rounds. The interval has the ratio of the medians with 95 % (bootstrap); where it holds 1, or a side has \
         fewer than three rounds, no difference is shown."
    )?;
    Ok(())
}

fn table(a: &Data, b: &Data, wanted: Option<&str>) -> Table {
    let columns = ["experiment", "peer", "cell", "figure"].map(Column::words).into_iter();
    let columns =
        columns.chain(["A", "B", "B / A", "interval"].map(Column::figures)).chain([Column::words("verdict")]);
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    for sample in a.samples() {
        let Outcome::Figures { figures, .. } = &sample.outcome else { continue };
        // The number of checked bytes is no measure of performance.
        let of_interest =
            |name: &&String| *name != CHECKED && wanted.is_none_or(|wanted| name.contains(wanted));
        for name in figures.keys().filter(of_interest) {
            let (experiment, peer, cell) = (&sample.experiment, &sample.peer, &sample.cell);
            if !seen.insert((experiment, peer, cell, name)) {
                continue;
            }
            let figures = [a, b].map(|data| data.figures(experiment, peer, cell, name));
            let [Some(before), Some(after)] = [median(&figures[0]), median(&figures[1])] else { continue };
            let enough = figures.iter().all(|figures| figures.len() >= 3);
            let interval = if enough { Interval::of_ratio(&figures[1], &figures[0]) } else { None };
            rows.push(vec![
                experiment.clone(),
                peer.clone(),
                cell.name(),
                name.clone(),
                shown(Some(before)),
                shown(Some(after)),
                shown((before != 0.0).then(|| after / before)),
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
        Some(interval) if !interval.excludes(1.0) => "no difference shown",
        Some(interval) if (interval.low > 1.0) == more_is_better(figure) => "B is better",
        Some(_) => "A is better",
    }
}

/// Returns whether a larger figure of that name is better, which is true for rates.
pub(crate) fn more_is_better(figure: &str) -> bool {
    figure.ends_with("bit_s") || figure.ends_with("calls_s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::store::{Cell, Sample};

    fn data(figures: &[f64]) -> Data {
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
        Data::new(Vec::new(), (0..).zip(figures).map(sample).collect())
    }

    #[test]
    fn differences_are_shown_only_where_they_are_more_than_chance() {
        let verdicts = |a: &[f64], b: &[f64]| -> Vec<String> {
            table(&data(a), &data(b), None).rows.into_iter().map(|row| row[8].clone()).collect()
        };
        let steady = [10.0, 10.1, 10.2, 10.1, 10.0];
        assert_eq!(verdicts(&steady, &[8.0, 8.1, 8.2, 8.1, 8.0]), ["B is better", "B is better"]);
        assert_eq!(verdicts(&steady, &[12.0, 12.1, 12.2, 12.1, 12.0]), ["A is better", "A is better"]);
        assert_eq!(
            verdicts(&steady, &[9.0, 10.1, 11.2, 10.3, 9.9]),
            ["no difference shown", "no difference shown"]
        );
        assert_eq!(verdicts(&steady, &[8.0]), ["too few rounds", "too few rounds"]);
        assert_eq!(table(&data(&steady), &data(&steady), Some("p50")).rows.len(), 1);
        assert!(table(&data(&steady), &Data::default(), None).rows.is_empty());
    }
}

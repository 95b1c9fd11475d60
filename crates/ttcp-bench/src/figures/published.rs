//! Published tables, which reports show with unchanged figures beside the measured ones.

use super::{Column, Table};
use crate::literature::PublishedTable;

/// Suffixes of the column names in published tables, and their units. The first match counts.
const UNITS: &[(&str, &str)] = &[
    ("_ms_per_byte", "ms/byte"),
    ("_mbps", "Mbit/s"),
    ("_pct", "%"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_bytes", "bytes"),
];

/// Returns a whole published table, with its source after the caption. If the id is unknown, the table has no
/// rows, and [`Section::table`](super::Section::table) omits it.
pub(crate) fn published_table(id: &str, caption: &str) -> Table {
    published_rows(id, caption, |_, _| true)
}

/// Returns the selected rows of a published table.
pub(crate) fn published_rows(
    id: &str,
    caption: &str,
    is_selected: impl Fn(&PublishedTable, &[&'static str]) -> bool,
) -> Table {
    let Some(published) = PublishedTable::of(id) else { return Table::default() };
    let rows: Vec<&[&str]> =
        published.rows.iter().map(Vec::as_slice).filter(|row| is_selected(&published, row)).collect();
    let cells =
        |index: usize| rows.iter().filter_map(move |row| row.get(index)).filter(|cell| !cell.is_empty());
    // The columns `value` and `value_high` are shown as one column of ranges. Empty columns are omitted.
    let high = published.column("value_high").filter(|_| published.column("value").is_some());
    let indices: Vec<usize> = (0..published.columns.len())
        .filter(|index| Some(*index) != high && cells(*index).next().is_some())
        .collect();
    let column = |index: &usize| {
        let title = title(published.columns.get(*index).copied().unwrap_or_default());
        if cells(*index).all(|cell| cell.parse::<f64>().is_ok()) {
            Column::published(title)
        } else {
            Column::words(title)
        }
    };
    let cell = |row: &[&'static str], index: usize| {
        let cell = row.get(index).copied().unwrap_or_default();
        let high = high.filter(|_| published.column("value") == Some(index)).and_then(|high| row.get(high));
        match high {
            Some(high) if !high.is_empty() => format!("{cell} to {high}"),
            _ if cell.is_empty() && published.column("notes") != Some(index) => "-".to_owned(),
            _ => cell.to_owned(),
        }
    };
    Table {
        caption: format!("{} ({})", caption.trim_end_matches('.'), published.source()),
        columns: indices.iter().map(column).collect(),
        rows: rows.iter().map(|row| indices.iter().map(|index| cell(row, *index)).collect()).collect(),
    }
}

/// Returns the heading of a column: `share of run, %` for `share_of_run_pct`.
fn title(name: &str) -> String {
    let with_unit = |(suffix, unit): &(&str, &str)| {
        Some(format!("{}, {unit}", name.strip_suffix(suffix)?.replace('_', " ")))
    };
    UNITS.iter().find_map(with_unit).unwrap_or_else(|| name.replace('_', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_table_has_all_rows_and_readable_columns() {
        for id in PublishedTable::ids() {
            let (table, published) = (published_table(id, "All."), PublishedTable::of(id).unwrap());
            assert_eq!(table.rows.len(), published.rows.len(), "{id}");
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{id}");
            assert_eq!(table.caption, format!("All ({})", published.source()));
            assert!(
                table.columns.iter().all(|column| !column.title.contains('_')),
                "{id}: {:?}",
                table.columns
            );
        }
        assert!(published_table("sigcomm96.t99", "None.").rows.is_empty());
    }

    #[test]
    fn units_absent_cells_and_ranges_are_formatted() {
        let table = published_table("sigcomm96.t2", "Senders.");
        let titles: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(titles, ["ttcp version", "data type", "function", "time, ms", "share of run, %", "notes"]);
        assert_eq!(table.columns.iter().filter(|column| column.is_published).count(), 2);
        assert_eq!(table.rows[0], ["C/C++", "struct", "writev", "9415", "98", ""]);

        let is_size =
            |published: &PublishedTable, row: &[&'static str]| published.text(row, "unit") == Some("KB");
        let table = published_rows("sigcomm96.text", "Parts.", is_size);
        assert!(table.rows.iter().any(|row| row.contains(&"8 to 64".to_owned())), "{:?}", table.rows);
        let table = published_table("sigcomm96.t1", "Summary.");
        assert!(table.columns.iter().any(|column| column.title == "remote scalars hi, Mbit/s"));
        let table = published_table("rtorb00.f3", "Selected.");
        let absent = table.rows.iter().flatten().filter(|cell| *cell == "-").count();
        assert_eq!(absent, 2, "two times of non-aligned records are not published");
    }
}

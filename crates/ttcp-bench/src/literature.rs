//! The published figures of the research that these experiments repeat. The tables are in `literature/`, and
//! its `README.md` names their sources.
//!
//! A cell is empty if the publication has no figure for it. Reports show `-` in it, except in column `notes`.

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../literature/", $name, ".tsv")))),*] };
}

const FILES: &[(&str, &str)] = files!(
    "gigabit97_dii_orbix",
    "gigabit97_dii_visibroker",
    "gigabit97_latency",
    "gigabit97_setup",
    "gigabit97_sii_orbix_sender",
    "gigabit97_sii_visibroker_sender",
    "iiop98_cdr_alignment",
    "iiop98_giop_messages",
    "iiop98_ladder",
    "iiop98_pies",
    "iiop98_speedups",
    "iiop98_table1_principles",
    "iiop98_table2_receiver_after_step1",
    "iiop98_table3_receiver_after_step2",
    "iiop98_table4_problems_solutions",
    "iiop98_table5_tckind",
    "iiop98_text_facts",
    "rtorb00_fig01_cr_average",
    "rtorb00_fig03_cr_average_selected",
    "rtorb00_fig04_cr_stddev",
    "rtorb00_fig06_ow_average",
    "rtorb00_fig08_ow_average_selected",
    "rtorb00_fig10_cr_latency",
    "rtorb00_fig11_ow_latency",
    "rtorb00_fig13_cr_latency_stddev",
    "rtorb00_fig14_ow_latency_stddev",
    "rtorb00_table1_trend",
    "rtorb00_table2_trend",
    "rtorb00_table3_trend",
    "rtorb00_table4_trend",
    "rtorb00_table5_trend",
    "rtorb00_table6_trend",
    "rtorb00_text_facts",
    "rtorb00_trend_refit",
    "sigcomm96_table01_throughput_summary",
    "sigcomm96_table02_sender_overhead",
    "sigcomm96_table03_receiver_overhead",
    "sigcomm96_table04_demux_orbix",
    "sigcomm96_table05_demux_orbix_optimised",
    "sigcomm96_table06_demux_orbeline",
    "sigcomm96_table07_latency_twoway",
    "sigcomm96_table08_latency_twoway_improvement",
    "sigcomm96_table09_latency_oneway",
    "sigcomm96_table10_latency_oneway_improvement",
    "sigcomm96_text_peaks",
    "zerocopy03_text",
);

const INDEX: &str = include_str!("../literature/index.tsv");

/// A table of published figures, with the text of each cell as it is printed.
#[derive(Debug, Clone)]
pub(crate) struct PublishedTable {
    /// The document, such as `sigcomm96`.
    pub(crate) document: &'static str,
    /// The table or figure in the document, such as `table 1`.
    pub(crate) place: &'static str,
    pub(crate) subject: &'static str,
    /// The names of the columns, with their units.
    pub(crate) columns: Vec<&'static str>,
    /// The cells, one for each column in each row; empty if the publication has no figure.
    pub(crate) rows: Vec<Vec<&'static str>>,
}

impl PublishedTable {
    /// Returns the table with this id of the index, such as `sigcomm96.t1`.
    pub(crate) fn of(id: &str) -> Option<PublishedTable> {
        let mut lines = lines(INDEX);
        let _column_names = lines.next();
        let entry: Vec<&'static str> = lines.find(|entry| entry.first() == Some(&id))?;
        let [_id, document, place, subject, _unit, _axes, file] = *entry.as_slice() else { return None };
        let (_, text) = FILES.iter().find(|(name, _)| Some(*name) == file.strip_suffix(".tsv"))?;
        let mut rows = self::lines(text);
        let columns = rows.next()?;
        let rows = rows
            .map(|mut row| {
                row.resize(columns.len(), "");
                row
            })
            .collect();
        Some(PublishedTable { document, place, subject, columns, rows })
    }

    /// Returns the ids of all tables, in the order of the index.
    #[cfg(test)]
    pub(crate) fn ids() -> Vec<&'static str> {
        lines(INDEX).skip(1).filter_map(|entry| entry.first().copied()).collect()
    }

    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column == name)
    }

    /// Returns the cell of a column; `None` if it is empty.
    pub(crate) fn text(&self, row: &[&'static str], column: &str) -> Option<&'static str> {
        row.get(self.column(column)?).copied().filter(|cell| !cell.is_empty())
    }

    /// Returns the number in the cell of a column; `None` if the cell has no number.
    pub(crate) fn number(&self, row: &[&'static str], column: &str) -> Option<f64> {
        self.text(row, column)?.parse().ok()
    }

    /// Returns the first row that has the given cells. Each cell is a pair of column name and text.
    pub(crate) fn row(&self, cells: &[(&str, &str)]) -> Option<&[&'static str]> {
        let has = |row: &[&'static str], (column, cell): &(&str, &str)| self.text(row, column) == Some(*cell);
        self.rows.iter().map(Vec::as_slice).find(|row| cells.iter().all(|cell| has(row, cell)))
    }

    /// Returns a point for each row that has a number in both columns `x` and `y`.
    pub(crate) fn points(&self, x: &str, y: &str) -> Vec<(f64, f64)> {
        self.rows.iter().filter_map(|row| self.number(row, x).zip(self.number(row, y))).collect()
    }

    /// Returns the source for captions, such as `sigcomm96, table 1`.
    pub(crate) fn source(&self) -> String {
        format!("{}, {}", self.document, self.place)
    }
}

/// Returns the ids of the index that are not in `covered`.
#[cfg(test)]
pub(crate) fn uncovered(covered: impl IntoIterator<Item = &'static str>) -> Vec<&'static str> {
    let covered: Vec<&str> = covered.into_iter().collect();
    PublishedTable::ids().into_iter().filter(|id| !covered.contains(id)).collect()
}

/// Returns the tab-separated cells of each line that is not empty.
fn lines(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.is_empty()).map(|line| line.split('\t').map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_table_of_the_index_is_included_and_complete() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("literature");
        let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let files: BTreeSet<String> = names
            .filter(|path| path.extension().is_some_and(|end| end == "tsv"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .filter(|name| name != "index")
            .collect();
        assert_eq!(files, FILES.iter().map(|(name, _)| (*name).to_owned()).collect());
        let ids = PublishedTable::ids();
        assert_eq!(ids.len(), FILES.len(), "each file has its line in the index");
        for id in ids {
            let table = PublishedTable::of(id).unwrap_or_else(|| panic!("{id}"));
            assert!(table.columns.len() > 1 && !table.rows.is_empty(), "{id}");
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{id}");
        }
    }

    #[test]
    fn cells_are_found_by_row_and_column() {
        let table = PublishedTable::of("sigcomm96.t1").unwrap();
        let orbix = table.row(&[("ttcp_version", "Orbix")]).unwrap();
        assert_eq!(table.number(orbix, "remote_scalars_hi_mbps"), Some(65.0));
        assert_eq!(table.number(orbix, "notes"), None);
        assert_eq!(table.source(), "sigcomm96, table 1");
        assert!(table.row(&[("ttcp_version", "omniORB")]).is_none());
        assert!(PublishedTable::of("sigcomm96.t99").is_none());
        assert!(!uncovered(["sigcomm96.t1"]).contains(&"sigcomm96.t1"));
    }
}

//! Comparison of the measured series of messages with the published ones.

use super::SOCKET_PEERS;
use super::section::{FIGURES, mode_title};
use super::summary::SettingSummary;
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, format_figure, published_table};
use crate::literature::PublishedTable;
use crate::work::{CallMode, MessageKind};

const TREND_TABLES: [&str; 6] =
    ["rtorb00.t1", "rtorb00.t2", "rtorb00.t3", "rtorb00.t4", "rtorb00.t5", "rtorb00.t6"];
const REFIT_TABLE: &str = "rtorb00.refit";

/// Returns the table of trend lines: the measured ones, compared with sockets, and the published ones.
pub(super) fn trends(summary: &SettingSummary<'_>, mode: CallMode) -> Table {
    let mut columns = vec![Column::words("system"), Column::words("type")];
    columns.extend(
        [
            "a, ns/byte",
            "b, us",
            "r²",
            "largest residual, us",
            "a / a of sockets",
            "b - b of sockets, us",
            "a of medians, ns/byte",
            "b of medians, us",
        ]
        .map(Column::figures),
    );
    columns
        .extend(["a, ns/byte", "b, us", "a / a of sockets", "b - b of sockets, us"].map(Column::published));
    let empty_cells = |count| std::iter::repeat_n("-".to_owned(), count);
    // The ratio to a line that does not rise is meaningless.
    let ratio = |own: f64, sockets: f64| (sockets > 0.0).then(|| own / sockets);
    let sockets = summary.trend(SOCKET_PEERS[0], MessageKind::Octets, mode, "mean_us");
    let mut rows: Vec<Vec<String>> = Vec::new();
    for peer in &summary.peers {
        let kinds =
            if SOCKET_PEERS.contains(peer) { &[MessageKind::Octets] } else { summary.kinds.as_slice() };
        for kind in kinds {
            let line = summary.trend(peer, *kind, mode, "mean_us");
            let of_medians = summary.trend(peer, *kind, mode, "p50_us");
            let compared = line.zip(sockets);
            let figures = [
                format_figure(line.map(|line| line.slope * 1e3)),
                format_figure(line.map(|line| line.intercept)),
                line.map_or_else(|| "-".into(), |line| format!("{:.4}", line.r_squared)),
                format_figure(line.map(|line| line.max_residual)),
                format_figure(compared.and_then(|(own, sockets)| ratio(own.slope, sockets.slope))),
                format_figure(compared.map(|(own, sockets)| own.intercept - sockets.intercept)),
                format_figure(of_medians.map(|line| line.slope * 1e3)),
                format_figure(of_medians.map(|line| line.intercept)),
            ];
            let names = [(*peer).to_owned(), kind.to_string()];
            rows.push(names.into_iter().chain(figures).chain(empty_cells(4)).collect());
        }
    }
    if let Some(refit) = PublishedTable::of(REFIT_TABLE) {
        let mode_code = if mode == CallMode::Call { "CR" } else { "OW" };
        let line = |row: &[&'static str]| {
            let number = |name| refit.number(row, name).map(|milliseconds| milliseconds * 1e3);
            Some((number("refit_slope_ms_per_byte")? * 1e3, number("refit_intercept_ms")?))
        };
        let sockets = refit.row(&[("mode", mode_code), ("middleware", "Socket")]).and_then(line);
        for row in refit.rows.iter().filter(|row| refit.text(row, "mode") == Some(mode_code)) {
            let name = |column| refit.text(row, column).unwrap_or("-").to_owned();
            let own = line(row);
            let compared = own.zip(sockets);
            let figures = [
                format_figure(own.map(|(a, _)| a)),
                format_figure(own.map(|(_, b)| b)),
                format_figure(compared.map(|((a, _), (base, _))| a / base)),
                format_figure(compared.map(|((_, b), (_, base))| b - base)),
            ];
            let names = [name("middleware"), name("data_type")];
            rows.push(names.into_iter().chain(empty_cells(8)).chain(figures).collect());
        }
    }
    let caption = format!(
        "{}: least-squares lines, time = a · size + b, through the mean times and through the medians, which a single slow message does \
         not affect. The sockets are those of {}. Published: lines through the published series of ORBs and machines of 1999.",
        mode_title(mode),
        SOCKET_PEERS[0]
    );
    Table { caption, columns, rows }
}

pub(super) fn add_published(section: &mut Section) {
    section.text(
        "The published series were measured in 1999 with frames of 70 ms, and with client and server on one host with LynxOS on PowerPC. \
         They have separate charts with the same axes, because their times are far above the times of this run. The source does not \
         state what the anys contained. They did not contain an any for each record, because the constant part of the lines of anys is \
         only twice that of the lines of records. The published one-way lines (tables 4 to 6) repeat the lines of call-and-return, so \
         the lines above are fitted again to the published series. Two means of TAO's records with padding are raised by one slow \
         operation each, which the source omits from its other figures.",
    );
    for figure in &FIGURES {
        section.chart(chart(figure.id, figure.title));
        section.table(published_table(figure.id, &format!("Published: {}", figure.title)));
    }
    for id in TREND_TABLES {
        let subject = PublishedTable::of(id).map_or("", |table| table.subject);
        let title = subject.strip_prefix("published straight line").unwrap_or(subject);
        section.table(published_table(id, &format!("Published: straight line{title}")));
    }
    section
        .table(published_table(REFIT_TABLE, "Lines fitted to the published series, and the published lines"));
    section.table(published_table(
        "rtorb00.text",
        "Published: frame, sizes and single operations that were slow",
    ));
}

fn chart(id: &str, title: &str) -> Chart {
    let mut chart = Chart {
        caption: format!("Published: {title}."),
        x: Axis::new("message, bytes", Scale::Linear),
        y: Axis::new("milliseconds", Scale::Linear),
        series: Vec::new(),
    };
    let Some(table) = PublishedTable::of(id) else { return chart };
    chart.caption = format!("Published: {title} ({}).", table.source());
    for column in table.columns.iter().filter(|column| column.ends_with("_ms")) {
        chart.series.push(Series::published(system_name(column), table.points("message_size_bytes", column)));
    }
    chart
}

/// Returns the name of a column's system: `ORBexpress NA Record` for `orbexpress_cr_na_record_ms`.
fn system_name(column: &str) -> String {
    let word = |word: &str| match word {
        "cr" | "ow" | "ms" => None,
        "orbexpress" => Some("ORBexpress".to_owned()),
        "tao" | "na" => Some(word.to_uppercase()),
        other => {
            let (first, rest) = other.split_at_checked(1)?;
            Some(first.to_uppercase() + rest)
        }
    };
    column.split('_').filter_map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_contain_every_published_series() {
        assert_eq!(system_name("orbexpress_cr_na_record_ms"), "ORBexpress NA Record");
        assert_eq!(system_name("socket_ms"), "Socket");
        let mut section = Section::new("a", "A");
        add_published(&mut section);
        assert_eq!(section.charts().count(), FIGURES.len());
        let series: Vec<usize> = section.charts().map(|chart| chart.series.len()).collect();
        assert_eq!(series, [9, 5, 7, 7, 2, 13, 14, 14, 14]);
        assert!(section.charts().flat_map(|chart| &chart.series).all(|series| series.points.len() >= 9));
    }
}

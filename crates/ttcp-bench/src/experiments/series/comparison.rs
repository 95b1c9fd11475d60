//! Published series, next to measured ones.

use super::SOCKETS;
use super::section::{FIGURES, named};
use super::summary::SettingSummary;
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, published_table, shown};
use crate::literature::Published;
use crate::work::{CallMode, MessageKind};

/// The published trend lines, which the text has in six tables.
const LINES: [&str; 6] = ["rtorb00.t1", "rtorb00.t2", "rtorb00.t3", "rtorb00.t4", "rtorb00.t5", "rtorb00.t6"];
const REFIT: &str = "rtorb00.refit";

/// Returns the trend lines of the mean times of each kind, next to those of the sockets and the published
/// ones.
pub(super) fn trends(summary: &SettingSummary<'_>, mode: CallMode) -> Table {
    let mut columns = vec![Column::words("system"), Column::words("type")];
    columns.extend(
        [
            "a, ns/byte",
            "b, us",
            "r²",
            "farthest mean, us",
            "a / that of sockets",
            "b - that of sockets, us",
            "a of medians, ns/byte",
            "b of medians, us",
        ]
        .map(Column::figures),
    );
    columns.extend(
        ["a, ns/byte", "b, us", "a / that of sockets", "b - that of sockets, us"].map(Column::published),
    );
    let none = |columns| std::iter::repeat_n("-".to_owned(), columns);
    // A ratio to a line without a slope is meaningless.
    let ratio = |own: f64, sockets: f64| (sockets > 0.0).then(|| own / sockets);
    let sockets = summary.trend(SOCKETS[0], MessageKind::Octets, mode, "mean_us");
    let mut rows: Vec<Vec<String>> = Vec::new();
    for peer in &summary.peers {
        let kinds = if SOCKETS.contains(peer) { &[MessageKind::Octets] } else { summary.kinds.as_slice() };
        for kind in kinds {
            let line = summary.trend(peer, *kind, mode, "mean_us");
            let of_medians = summary.trend(peer, *kind, mode, "p50_us");
            let beside = line.zip(sockets);
            let figures = [
                shown(line.map(|line| line.slope * 1e3)),
                shown(line.map(|line| line.intercept)),
                line.map_or_else(|| "-".into(), |line| format!("{:.4}", line.r_squared)),
                shown(line.map(|line| line.residual)),
                shown(beside.and_then(|(own, sockets)| ratio(own.slope, sockets.slope))),
                shown(beside.map(|(own, sockets)| own.intercept - sockets.intercept)),
                shown(of_medians.map(|line| line.slope * 1e3)),
                shown(of_medians.map(|line| line.intercept)),
            ];
            let names = [(*peer).to_owned(), kind.to_string()];
            rows.push(names.into_iter().chain(figures).chain(none(4)).collect());
        }
    }
    if let Some(refit) = Published::of(REFIT) {
        let short = if mode == CallMode::Call { "CR" } else { "OW" };
        let line = |row: &[&'static str]| {
            let number = |name| refit.number(row, name).map(|milliseconds| milliseconds * 1e3);
            Some((number("refit_slope_ms_per_byte")? * 1e3, number("refit_intercept_ms")?))
        };
        let sockets = refit.row(&[("mode", short), ("middleware", "Socket")]).and_then(line);
        for row in refit.rows.iter().filter(|row| refit.text(row, "mode") == Some(short)) {
            let name = |column| refit.text(row, column).unwrap_or("-").to_owned();
            let own = line(row);
            let beside = own.zip(sockets);
            let figures = [
                shown(own.map(|(a, _)| a)),
                shown(own.map(|(_, b)| b)),
                shown(beside.map(|((a, _), (base, _))| a / base)),
                shown(beside.map(|((_, b), (_, base))| b - base)),
            ];
            let names = [name("middleware"), name("data_type")];
            rows.push(names.into_iter().chain(none(8)).chain(figures).collect());
        }
    }
    let caption = format!(
        "{}: lines y = a x + b through the mean times of all sizes, by least squares, and through the medians, which a single slow \
         message does not raise; those of the sockets are {}'s. Published: lines through the published series, of ORBs of 1999 on \
         machines of their day.",
        named(mode),
        SOCKETS[0]
    );
    Table { caption, columns, rows }
}

/// Adds all published figures and tables.
pub(super) fn published(section: &mut Section) {
    section.text(
        "The published series were measured in 1999 with frames of 70 ms, client and server on one host with LynxOS on PowerPC. Their \
         axes are those of the charts above; their times are far above those of today, so they are charts of their own. What the \
         anys held is not printed; since the constant part of their lines is only twice that of the records', it was not an any \
         for each record. The published one-way lines (tables 4 to 6) repeat those of call-and-return: the lines above are \
         fitted anew to the published series. Two means of TAO's records with padding are raised by one slow operation each, which \
         the source leaves out of its other figures.",
    );
    for figure in &FIGURES {
        section.chart(chart(figure.id, figure.title));
        section.table(published_table(figure.id, &format!("Published: {}", figure.title)));
    }
    for id in LINES {
        let measures = Published::of(id).map_or("", |table| table.measures);
        let title = measures.strip_prefix("published straight line").unwrap_or(measures);
        section.table(published_table(id, &format!("Published: straight line{title}")));
    }
    section.table(published_table(REFIT, "Lines through the published series, beside the published lines"));
    section.table(published_table(
        "rtorb00.text",
        "Published: frame, sizes and single operations that were slow",
    ));
}

/// Returns a published figure.
fn chart(id: &str, title: &str) -> Chart {
    let mut chart = Chart {
        caption: format!("Published: {title}."),
        x: Axis::new("message, bytes", Scale::Linear),
        y: Axis::new("milliseconds", Scale::Linear),
        series: Vec::new(),
    };
    let Some(table) = Published::of(id) else { return chart };
    chart.caption = format!("Published: {title} ({}).", table.source());
    for column in table.columns.iter().filter(|column| column.ends_with("_ms")) {
        chart.series.push(Series::published(system(column), table.points("message_size_bytes", column)));
    }
    chart
}

/// Returns the system's name of a column: `ORBexpress NA Record` for `orbexpress_cr_na_record_ms`.
fn system(column: &str) -> String {
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
    fn every_published_series_is_drawn() {
        assert_eq!(system("orbexpress_cr_na_record_ms"), "ORBexpress NA Record");
        assert_eq!(system("socket_ms"), "Socket");
        let mut section = Section::new("a", "A");
        published(&mut section);
        assert_eq!(section.charts().count(), FIGURES.len());
        let series: Vec<usize> = section.charts().map(|chart| chart.series.len()).collect();
        assert_eq!(series, [9, 5, 7, 7, 2, 13, 14, 14, 14]);
        assert!(section.charts().flat_map(|chart| &chart.series).all(|series| series.points.len() >= 9));
    }
}

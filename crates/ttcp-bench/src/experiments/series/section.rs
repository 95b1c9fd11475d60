//! The section of the report: figures like those of the literature, tables, trend lines, outliers.

use super::comparison;
use super::summary::{Outlier, SettingSummary, size};
use super::{FRAME, NAME, SOCKETS};
use crate::experiments::store::Data;
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, shown};
use crate::work::{CallMode, MessageKind};

/// The kinds of the figures, like those of most figures of the literature.
const DRAWN: [MessageKind; 4] =
    [MessageKind::Float, MessageKind::Record, MessageKind::NaRecord, MessageKind::Any];
/// Number of outliers that are listed individually.
const SHOWN: usize = 40;

/// The peer whose times are far above the others': its virtual machine interprets at first.
const SLOW: &str = "jacorb";

/// A figure of the literature: its id, its title, and whether it includes the series that are far above the
/// others.
pub(super) struct PublishedFigure {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    mode: CallMode,
    figure: &'static str,
    all: bool,
}

/// All figures, in the literature's order.
pub(super) const FIGURES: [PublishedFigure; 9] = [
    figure("rtorb00.f1", "Time of a call-and-return operation, mean", CallMode::Call, "mean_us", true),
    figure(
        "rtorb00.f3",
        "Time of a call-and-return operation, mean, selected series",
        CallMode::Call,
        "mean_us",
        false,
    ),
    figure(
        "rtorb00.f4",
        "Time of a call-and-return operation, standard deviation",
        CallMode::Call,
        "deviation_us",
        true,
    ),
    figure("rtorb00.f6", "Time of a one-way operation, mean", CallMode::Oneway, "mean_us", true),
    figure(
        "rtorb00.f8",
        "Time of a one-way operation, mean, selected series",
        CallMode::Oneway,
        "mean_us",
        false,
    ),
    figure(
        "rtorb00.f10",
        "From client to server in call-and-return, mean",
        CallMode::Call,
        "latency_us",
        true,
    ),
    figure("rtorb00.f11", "From client to server one-way, mean", CallMode::Oneway, "latency_us", true),
    figure(
        "rtorb00.f13",
        "From client to server in call-and-return, standard deviation",
        CallMode::Call,
        "latency_deviation_us",
        true,
    ),
    figure(
        "rtorb00.f14",
        "From client to server one-way, standard deviation",
        CallMode::Oneway,
        "latency_deviation_us",
        true,
    ),
];

const fn figure(
    id: &'static str,
    title: &'static str,
    mode: CallMode,
    figure: &'static str,
    all: bool,
) -> PublishedFigure {
    PublishedFigure { id, title, mode, figure, all }
}

pub(super) fn section(data: &Data) -> Section {
    let mut section = Section::new(NAME, "Series: messages of every type and size, one a frame");
    section.text(
        "Messages of 16 bytes and units of 32, as sequences of short, long, float and double, of a record without padding and of one \
         with padding (11 bytes of 32), and of the former in an any, which is made of the sequence each time and taken apart again. \
         One is sent at the beginning of a frame; where it takes longer than that, the next is sent at the next multiple. \
         Call-and-return: from the call to its reply, which is 8 bytes. One-way: until the client has its thread back. From client \
         to server: from the beginning of the call until the servant has the elements, by the monotonic clock that both processes share. \
         Sockets send octets, whatever the type. Three messages before those that count are compared with what was sent, byte by \
         byte, and all that were sent have arrived. Nothing else goes before: the first messages find cold caches, and JacORB's \
         virtual machine interprets.",
    );
    let all = SettingSummary::all(data);
    for summary in &all {
        of_setting(summary, &mut section);
    }
    comparison::published(&mut section);
    section
}

fn of_setting(summary: &SettingSummary<'_>, section: &mut Section) {
    let priority = match summary.setting.priority {
        "nice" => "the server's nice value is 5 above the client's",
        "fifo" => "client and server have priorities of real time (SCHED_FIFO), 20 and 10",
        _ => "client and server have the same priority",
    };
    let frame = match summary.setting.frame {
        frame if frame == u64::from(FRAME) => format!("Frames of {frame} ms, as the published series"),
        frame => format!("Frames of {frame} ms (the published series: {FRAME}, as ttcp series by itself)"),
    };
    section.text(format!(
        "{frame}; {}; {priority}.",
        match summary.setting.load {
            "load" => "a process burns a core at the lowest priority",
            _ => "no load beside",
        }
    ));
    for figure in &FIGURES {
        section.chart(chart(summary, figure));
    }
    for mode in [CallMode::Call, CallMode::Oneway] {
        for kind in &summary.kinds {
            section.table(of_kind(summary, mode, *kind));
        }
    }
    for mode in [CallMode::Call, CallMode::Oneway] {
        section.table(comparison::trends(summary, mode));
    }
    far_out(summary, section);
}

/// Returns the measured counterpart of a figure of the literature.
fn chart(summary: &SettingSummary<'_>, figure: &PublishedFigure) -> Chart {
    let milliseconds = |peer: &str, kind| {
        let points = summary.points(peer, kind, figure.mode, figure.figure);
        points.into_iter().map(|(size, micros)| (size, micros / 1e3)).collect::<Vec<_>>()
    };
    let mut series = Vec::new();
    for peer in summary.peers.iter().filter(|peer| figure.all || **peer != SLOW) {
        if SOCKETS.contains(peer) {
            series.push(Series::measured(*peer, milliseconds(peer, MessageKind::Octets)));
            continue;
        }
        let kinds = DRAWN.iter().filter(|kind| summary.kinds.contains(kind));
        for kind in kinds.filter(|kind| figure.all || **kind != MessageKind::Any) {
            series.push(Series::measured(format!("{peer} {kind}"), milliseconds(peer, *kind)));
        }
    }
    series.retain(|series| !series.points.is_empty());
    Chart {
        caption: format!(
            "{}: frames of {} ms{}.",
            figure.title,
            summary.setting.frame,
            if figure.all { "" } else { ", without anys and JacORB" }
        ),
        x: Axis::new("message, bytes", Scale::Linear),
        y: Axis::new("milliseconds", Scale::Linear),
        series,
    }
}

/// Returns a table of every size of a kind in a mode.
fn of_kind(summary: &SettingSummary<'_>, mode: CallMode, kind: MessageKind) -> Table {
    let mut columns = vec![Column::figures("message, bytes")];
    for peer in &summary.peers {
        columns.push(Column::figures(format!("{peer}: time, us")));
        columns.push(Column::figures("without the first, us"));
        columns.push(Column::figures("to the server, us"));
    }
    let row = |units: &u64| {
        let mut row = vec![size(*units).to_string()];
        for peer in &summary.peers {
            let figure = |name: &str| summary.figure(peer, kind, mode, *units, name);
            let pairs = [
                ("mean_us", "deviation_us"),
                ("mean_without_first_us", "deviation_without_first_us"),
                ("latency_us", "latency_deviation_us"),
            ];
            row.extend(pairs.map(|(mean, deviation)| match figure(mean) {
                None => "-".to_owned(),
                mean => format!("{} ± {}", shown(mean), shown(figure(deviation))),
            }));
        }
        row
    };
    let caption = format!(
        "{}, {kind}: mean and standard deviation of a message's time, the same without the first message, and from client to server.",
        named(mode)
    );
    Table { caption, columns, rows: summary.units.iter().map(row).collect() }
}

/// Adds the number of outliers, and the largest ones.
fn far_out(summary: &SettingSummary<'_>, section: &mut Section) {
    let mut columns = vec![Column::words("peer"), Column::words("mode")];
    columns.extend(["messages", "outliers", "of them the first", "percent"].map(Column::figures));
    let (mut rows, mut farthest) = (Vec::new(), Vec::new());
    for peer in &summary.peers {
        for mode in [CallMode::Call, CallMode::Oneway] {
            let (messages, far) = summary.outliers(peer, mode);
            let first = far.iter().filter(|outlier| outlier.number == 1).count();
            let percent = 100.0 * far.len() as f64 / messages.max(1) as f64;
            let counts = [messages, far.len(), first].map(|count| count.to_string());
            let names = [(*peer).to_owned(), named(mode).to_owned()];
            rows.push(names.into_iter().chain(counts).chain([shown(Some(percent))]).collect());
            farthest.extend(far);
        }
    }
    section.table(Table {
        caption: "Messages whose time lies more than three times the distance of the quartiles beyond them, within their kind and size. \
                  They are in all means and deviations above."
            .into(),
        columns,
        rows,
    });
    let beyond = |outlier: &Outlier<'_>| outlier.took / outlier.median;
    farthest.sort_by(|a, b| beyond(b).total_cmp(&beyond(a)));
    let mut columns: Vec<Column> = ["peer", "mode", "kind"].map(Column::words).to_vec();
    columns.extend(
        ["message, bytes", "round", "number", "time, us", "median of its series, us"].map(Column::figures),
    );
    let row = |outlier: &Outlier<'_>| {
        let cell = &outlier.sample.cell;
        let word = |name| cell.word(name).unwrap_or("-").to_owned();
        vec![
            outlier.sample.peer.clone(),
            word("mode"),
            word("kind"),
            cell.number("units").map_or_else(|| "-".into(), |units| size(units).to_string()),
            (outlier.sample.round + 1).to_string(),
            outlier.number.to_string(),
            shown(Some(outlier.took)),
            shown(Some(outlier.median)),
        ]
    };
    let rows: Vec<Vec<String>> = farthest.iter().take(SHOWN).map(row).collect();
    let caption = format!("The {} of the {} that lie farthest out.", rows.len(), farthest.len());
    section.table(Table { caption, columns, rows });
}

/// Returns the mode's name in headings.
pub(super) fn named(mode: CallMode) -> &'static str {
    match mode {
        CallMode::Call => "Call-and-return",
        CallMode::Oneway => "One-way",
    }
}

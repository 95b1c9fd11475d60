//! The section of the report on `ttcp series`: charts like the published ones, tables, trend lines, outliers.

use super::comparison;
use super::summary::{Outlier, SettingSummary, message_bytes};
use super::{FRAME_MS, NAME, SOCKET_PEERS};
use crate::experiments::store::StoredResults;
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, format_figure};
use crate::work::CallMode::{self, Call, Oneway};
use crate::work::MessageKind;

/// The kinds of messages in the charts. Most published figures show the same kinds.
const CHART_KINDS: [MessageKind; 4] =
    [MessageKind::Float, MessageKind::Record, MessageKind::NaRecord, MessageKind::Any];
const MAX_LISTED_OUTLIERS: usize = 40;

/// The slowest peer by far. Its virtual machine interprets the code before it compiles it.
const SLOW_PEER: &str = "jacorb";

/// A published figure, and how to draw the same figure of the measured series.
pub(super) struct PublishedFigure {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    mode: CallMode,
    value_name: &'static str,
    /// Whether the figure includes the slowest series: all series of anys, and all series of [`SLOW_PEER`].
    includes_slow: bool,
}

pub(super) const FIGURES: [PublishedFigure; 9] = [
    figure("rtorb00.f1", "Time of call-and-return, mean", Call, "mean_us", true),
    figure("rtorb00.f3", "Time of call-and-return, mean, selected series", Call, "mean_us", false),
    figure("rtorb00.f4", "Time of call-and-return, standard deviation", Call, "deviation_us", true),
    figure("rtorb00.f6", "Time of a one-way call, mean", Oneway, "mean_us", true),
    figure("rtorb00.f8", "Time of a one-way call, mean, selected series", Oneway, "mean_us", false),
    figure("rtorb00.f10", "Client to server, call-and-return, mean", Call, "latency_us", true),
    figure("rtorb00.f11", "Client to server, one-way, mean", Oneway, "latency_us", true),
    figure("rtorb00.f13", "Client to server, call-and-return, deviation", Call, "latency_deviation_us", true),
    figure("rtorb00.f14", "Client to server, one-way, deviation", Oneway, "latency_deviation_us", true),
];

const fn figure(
    id: &'static str,
    title: &'static str,
    mode: CallMode,
    value_name: &'static str,
    includes_slow: bool,
) -> PublishedFigure {
    PublishedFigure { id, title, mode, value_name, includes_slow }
}

pub(super) fn section(data: &StoredResults) -> Section {
    let mut section = Section::new(NAME, "Series: messages of every type and size, one per frame");
    section.text(
        "A message has 16 bytes and a number of units of 32 bytes. It is a sequence of short, long, float or double, of a record \
         without padding, or of a record with padding (11 of 32 bytes). An any contains the sequence of records without padding; \
         it is created and decoded for each message. Sockets send plain bytes instead of each type. One message is sent at the beginning \
         of each frame. If it takes longer than a frame, the next one is sent at the next multiple of the frame. Call-and-return: the \
         time from the call to its reply of 8 bytes. One-way: the time until the call returns. From client to server: the time \
         from the beginning of the call until the servant has the elements, by the monotonic clock that both processes share. \
         Three messages before the counted ones are compared byte by byte, and all messages arrived. There is no other warm-up. \
         Therefore the first messages find cold caches, and JacORB's virtual machine still interprets.",
    );
    let all = SettingSummary::all(data);
    for summary in &all {
        add_setting(summary, &mut section);
    }
    comparison::add_published(&mut section);
    section
}

fn add_setting(summary: &SettingSummary<'_>, section: &mut Section) {
    let priority = match summary.setting.priority {
        "nice" => "the nice value of the server is 5 higher than that of the client",
        "fifo" => "client and server have the real-time priorities 20 and 10 (SCHED_FIFO)",
        _ => "client and server have the same priority",
    };
    let frame = match summary.setting.frame_ms {
        frame if frame == u64::from(FRAME_MS) => format!("Frames of {frame} ms, as in the published series"),
        frame => format!("Frames of {frame} ms instead of the {FRAME_MS} ms of the published series"),
    };
    let load = match summary.setting.load {
        "load" => "an additional process occupies a core at the lowest priority",
        _ => "no additional load",
    };
    section.text(format!("{frame}; {load}; {priority}."));
    for figure in &FIGURES {
        section.chart(chart(summary, figure));
    }
    for mode in [Call, Oneway] {
        for kind in &summary.kinds {
            section.table(kind_table(summary, mode, *kind));
        }
    }
    for mode in [Call, Oneway] {
        section.table(comparison::trends(summary, mode));
    }
    add_outliers(summary, section);
}

fn chart(summary: &SettingSummary<'_>, figure: &PublishedFigure) -> Chart {
    let milliseconds = |peer: &str, kind| {
        let points = summary.points(peer, kind, figure.mode, figure.value_name);
        points.into_iter().map(|(size, micros)| (size, micros / 1e3)).collect::<Vec<_>>()
    };
    let mut series = Vec::new();
    for peer in summary.peers.iter().filter(|peer| figure.includes_slow || **peer != SLOW_PEER) {
        if SOCKET_PEERS.contains(peer) {
            series.push(Series::measured(*peer, milliseconds(peer, MessageKind::Octets)));
            continue;
        }
        let kinds = CHART_KINDS.iter().filter(|kind| summary.kinds.contains(kind));
        for kind in kinds.filter(|kind| figure.includes_slow || **kind != MessageKind::Any) {
            series.push(Series::measured(format!("{peer} {kind}"), milliseconds(peer, *kind)));
        }
    }
    series.retain(|series| !series.points.is_empty());
    Chart {
        caption: format!(
            "{}: frames of {} ms{}.",
            figure.title,
            summary.setting.frame_ms,
            if figure.includes_slow { "" } else { ", without anys and JacORB" }
        ),
        x: Axis::new("message, bytes", Scale::Linear),
        y: Axis::new("milliseconds", Scale::Linear),
        series,
    }
}

fn kind_table(summary: &SettingSummary<'_>, mode: CallMode, kind: MessageKind) -> Table {
    let mut columns = vec![Column::figures("message, bytes")];
    for peer in &summary.peers {
        columns.push(Column::figures(format!("{peer}: time, us")));
        columns.push(Column::figures("without the first, us"));
        columns.push(Column::figures("to the server, us"));
    }
    let row = |units: &u64| {
        let mut row = vec![message_bytes(*units).to_string()];
        for peer in &summary.peers {
            let figure = |name: &str| summary.figure(peer, kind, mode, *units, name);
            let pairs = [
                ("mean_us", "deviation_us"),
                ("mean_without_first_us", "deviation_without_first_us"),
                ("latency_us", "latency_deviation_us"),
            ];
            row.extend(pairs.map(|(mean, deviation)| match figure(mean) {
                None => "-".to_owned(),
                mean => format!("{} ± {}", format_figure(mean), format_figure(figure(deviation))),
            }));
        }
        row
    };
    let caption = format!(
        "{}, {kind}: mean and standard deviation of the times of all messages, of all except the first, and from client to server.",
        mode_title(mode)
    );
    Table { caption, columns, rows: summary.units.iter().map(row).collect() }
}

fn add_outliers(summary: &SettingSummary<'_>, section: &mut Section) {
    let mut columns = vec![Column::words("peer"), Column::words("mode")];
    columns.extend(["messages", "outliers", "first messages", "percent"].map(Column::figures));
    let (mut rows, mut outliers) = (Vec::new(), Vec::new());
    for peer in &summary.peers {
        for mode in [Call, Oneway] {
            let (messages, found) = summary.outliers(peer, mode);
            let first = found.iter().filter(|outlier| outlier.message_number == 1).count();
            let percent = 100.0 * found.len() as f64 / messages.max(1) as f64;
            let counts = [messages, found.len(), first].map(|count| count.to_string());
            let names = [(*peer).to_owned(), mode_title(mode).to_owned()];
            rows.push(names.into_iter().chain(counts).chain([format_figure(Some(percent))]).collect());
            outliers.extend(found);
        }
    }
    section.table(Table {
        caption: "Outliers: messages whose time is above the upper quartile of their series, or below the lower one, by more than three \
                  times the interquartile range. The means and deviations above include them."
            .into(),
        columns,
        rows,
    });
    let ratio = |outlier: &Outlier<'_>| outlier.time_us / outlier.series_median_us;
    outliers.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)));
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
            cell.number("units").map_or_else(|| "-".into(), |units| message_bytes(units).to_string()),
            (outlier.sample.round + 1).to_string(),
            outlier.message_number.to_string(),
            format_figure(Some(outlier.time_us)),
            format_figure(Some(outlier.series_median_us)),
        ]
    };
    let rows: Vec<Vec<String>> = outliers.iter().take(MAX_LISTED_OUTLIERS).map(row).collect();
    let caption = format!("The {} largest of the {} outliers, by time / median.", rows.len(), outliers.len());
    section.table(Table { caption, columns, rows });
}

pub(super) fn mode_title(mode: CallMode) -> &'static str {
    match mode {
        Call => "Call-and-return",
        Oneway => "One-way",
    }
}

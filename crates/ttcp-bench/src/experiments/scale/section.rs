//! The section of the report on `ttcp scale`.

use super::super::store::StoredResults;
use super::hold::IDLE_CALL_US;
use super::{NAME, Part};
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, format_figure};
use crate::statistics::median;

/// The samples of one part of the experiment.
struct PartSamples<'d> {
    data: &'d StoredResults,
    part: Part,
    peers: Vec<&'d str>,
    counts: Vec<u32>,
}

/// A function that returns the figure of a peer for a number of objects, connections or clients.
type FigureByCount<'f> = &'f dyn Fn(&str, u32) -> Option<f64>;
/// A column of a table with a row for each peer: the heading, and the function that returns a peer's cell.
type PeerColumn<'f> = (&'f str, &'f dyn Fn(&str) -> String);

impl<'d> PartSamples<'d> {
    fn of(data: &'d StoredResults, part: Part) -> PartSamples<'d> {
        let (mut peers, mut counts) = (Vec::new(), Vec::new());
        for sample in data.samples_of(NAME) {
            let Some(count) = sample.cell.number(part.setting()) else { continue };
            counts.push(u32::try_from(count).unwrap_or(u32::MAX));
            if !peers.contains(&sample.peer.as_str()) {
                peers.push(&sample.peer);
            }
        }
        counts.sort_unstable();
        counts.dedup();
        PartSamples { data, part, peers, counts }
    }

    fn median(&self, peer: &str, count: u32, name: &str) -> Option<f64> {
        median(&self.data.figures(NAME, peer, &self.part.cell(count), name))
    }

    /// Returns a chart of a figure by count, with a line for each peer.
    fn chart(&self, caption: &str, x: Scale, y_title: &str, figure: FigureByCount<'_>) -> Chart {
        let line = |peer: &&str| {
            let point = |count: &u32| Some((f64::from(*count), figure(peer, *count)?));
            Series::measured(*peer, self.counts.iter().filter_map(point).collect())
        };
        Chart {
            caption: caption.to_owned(),
            x: Axis::new(self.part.setting(), x),
            y: Axis::new(y_title, Scale::Linear),
            series: self.peers.iter().map(line).collect(),
        }
    }

    /// Returns a table with a row for each count, and the same columns for each peer.
    fn table_by_count(&self, caption: &str, figures: &[(&str, FigureByCount<'_>)]) -> Table {
        let mut columns = vec![Column::figures(self.part.setting())];
        for peer in &self.peers {
            let column = |(index, (title, _)): (usize, &(&str, FigureByCount<'_>))| match index {
                0 => Column::figures(format!("{peer}, {title}")),
                _ => Column::figures(*title),
            };
            columns.extend(figures.iter().enumerate().map(column));
        }
        let row = |count: &u32| {
            let cells = self
                .peers
                .iter()
                .flat_map(|peer| figures.iter().map(move |(_, figure)| format_figure(figure(peer, *count))));
            std::iter::once(count.to_string()).chain(cells).collect()
        };
        let rows = self.counts.iter().map(row).collect();
        Table { caption: caption.to_owned(), columns, rows }
    }

    fn table_by_peer(&self, caption: &str, peer_columns: &[PeerColumn<'_>]) -> Table {
        let mut columns = vec![Column::words("peer")];
        columns.extend(peer_columns.iter().map(|(title, _)| Column::figures(*title)));
        let row = |peer: &&str| {
            let cells = peer_columns.iter().map(|(_, cell)| cell(peer));
            std::iter::once((*peer).to_owned()).chain(cells).collect()
        };
        Table { caption: caption.to_owned(), columns, rows: self.peers.iter().map(row).collect() }
    }

    /// Returns the largest count with which the peer has the figure `name`.
    fn max_count(&self, peer: &str, name: &str) -> Option<u32> {
        self.counts.iter().rev().copied().find(|count| self.median(peer, *count, name).is_some())
    }
}

fn format_integer(figure: Option<f64>) -> String {
    // Adding 0.0 removes the sign of a negative zero.
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{:.0}", figure.round() + 0.0))
}

fn to_mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

pub(super) fn section(data: &StoredResults) -> Section {
    let mut section = Section::new(NAME, "Scale: many objects, connections and clients, and crowds");
    section.text(
        "The cost of calls and the server's memory, for growing numbers of objects, connections and clients. Memory is the PSS of the \
         server's process. It does not include the kernel's memory for sockets and threads. The memory of a Java virtual machine \
         includes garbage that is not collected yet. Figures are medians of the rounds; - marks measurements that were omitted or failed.",
    );
    objects(&PartSamples::of(data, Part::Objects), &mut section);
    connections(&PartSamples::of(data, Part::Connections), &mut section);
    clients(&PartSamples::of(data, Part::Clients), &mut section);
    crowd(&PartSamples::of(data, Part::Crowd), &mut section);
    section
}

fn objects(samples: &PartSamples<'_>, section: &mut Section) {
    if samples.counts.is_empty() {
        return;
    }
    section.text(
        "Objects: each has its own servant, or all have one default servant. Up to 1,000 of them, evenly spread, are called in a random \
         order with a fixed seed, one call at a time. Before that, each receives the bytes of its number and confirms them, which \
         proves that the right object was called. The object ids of zorb are assigned by the POA, and contain the index of the object \
         in a table; those of zorb-ids are assigned by the program.",
    );
    let p50 = |peer: &str, count: u32| samples.median(peer, count, "p50_us");
    let p99 = |peer: &str, count: u32| samples.median(peer, count, "p99_us");
    section.chart(samples.chart(
        "Median time of a call, by objects of the server.",
        Scale::PowersOfTen,
        "microseconds",
        &p50,
    ));
    section.table(samples.table_by_count(
        "Time of a call without parameters: median and 99th percentile.",
        &[("us", &p50), ("99 %", &p99)],
    ));
    let memory = |peer: &str, count: u32| samples.median(peer, count, "memory_bytes");
    let fewest = samples.counts.first().copied().unwrap_or_default();
    let growth = |peer: &str| {
        let most = samples.max_count(peer, "memory_bytes").filter(|most| *most > fewest)?;
        Some((memory(peer, most)? - memory(peer, fewest)?) / f64::from(most - fewest))
    };
    let memory_of_most = |peer: &str| memory(peer, samples.max_count(peer, "memory_bytes")?);
    let with_least = |peer: &str| format_figure(memory(peer, fewest).map(to_mib));
    let with_most = |peer: &str| format_figure(memory_of_most(peer).map(to_mib));
    let per_object = |peer: &str| format_integer(growth(peer));
    section.table(samples.table_by_peer(
        "Memory of the server before the first call, with the fewest and with the most objects; and its growth with each additional object.",
        &[("fewest, MiB", &with_least), ("most, MiB", &with_most), ("an object, bytes", &per_object)],
    ));
}

fn connections(samples: &PartSamples<'_>, section: &mut Section) {
    if samples.counts.is_empty() {
        return;
    }
    section.text(
        "Connections: all connections but one are opened one after the other, with a call over each, by the same code for every server. \
         The peer's own client then opens the last connection, and calls over it while the others are idle. Finally, there is one more \
         call over each idle connection in turn. All replies are compared.",
    );
    let memory = |peer: &str, count: u32| {
        let all = samples.median(peer, count, "all_memory_bytes");
        all.or_else(|| samples.median(peer, count, "memory_bytes")).map(to_mib)
    };
    let p50 = |peer: &str, count: u32| samples.median(peer, count, "p50_us");
    let p99 = |peer: &str, count: u32| samples.median(peer, count, "p99_us");
    section.chart(samples.chart("Memory of the server, by connections.", Scale::PowersOfTen, "MiB", &memory));
    let caption = "Median time of a call over one of the connections.";
    section.chart(samples.chart(caption, Scale::PowersOfTen, "microseconds", &p50));
    section.table(samples.table_by_count(
        "Time of a call over one connection while the others are idle, and memory of the server.",
        &[("us", &p50), ("99 %", &p99), ("MiB", &memory)],
    ));
    let max_connections = |peer: &str| samples.max_count(peer, IDLE_CALL_US);
    let figure_of_most = |peer: &str, name: &str| samples.median(peer, max_connections(peer)?, name);
    // The two figures below differ by all connections except the first one and the client's own.
    let growth = |peer: &str| {
        let added = max_connections(peer)?.checked_sub(2).filter(|added| *added > 0)?;
        let bytes = figure_of_most(peer, "all_memory_bytes")? - figure_of_most(peer, "first_memory_bytes")?;
        Some(bytes / f64::from(added))
    };
    let count = |peer: &str| format_integer(max_connections(peer).map(f64::from));
    let per_connection = |peer: &str| format_integer(growth(peer));
    let threads = |peer: &str| format_integer(figure_of_most(peer, "threads"));
    let open_time = |peer: &str| format_integer(figure_of_most(peer, "open_secs").map(|secs| secs * 1e3));
    let time_in_turn = |peer: &str| format_figure(figure_of_most(peer, IDLE_CALL_US));
    section.table(samples.table_by_peer(
        "With the most connections: memory of the server per connection, threads of the server, time to open all connections with a \
         call over each, and time of a call over each in turn.",
        &[
            ("connections", &count),
            ("a connection, bytes", &per_connection),
            ("threads", &threads),
            ("open all, ms", &open_time),
            ("in turn, us", &time_in_turn),
        ],
    ));
}

fn clients(samples: &PartSamples<'_>, section: &mut Section) {
    if samples.counts.is_empty() {
        return;
    }
    section.text(
        "Clients: threads of one process call without pause until all calls are made. Each has its own connection, or its own ORB if \
         the clients of an ORB would share a connection. Each first sends bytes of its own, and compares them with the reply.",
    );
    let rate = |peer: &str, count: u32| samples.median(peer, count, "calls_s").map(|calls| calls / 1e3);
    let p50 = |peer: &str, count: u32| samples.median(peer, count, "p50_us");
    let p99 = |peer: &str, count: u32| samples.median(peer, count, "p99_us");
    let scale = Scale::PowersOfTwo;
    section.chart(samples.chart("Calls of all clients together.", scale, "thousand calls per second", &rate));
    section.chart(samples.chart("99th percentile of a call's time.", scale, "microseconds", &p99));
    section.table(samples.table_by_count(
        "Thousand calls per second of all clients together, and the time of a call: median and 99th percentile.",
        &[("kcalls/s", &rate), ("us", &p50), ("99 %", &p99)],
    ));
}

fn crowd(samples: &PartSamples<'_>, section: &mut Section) {
    if samples.counts.is_empty() {
        return;
    }
    section.text(
        "Crowd: clients, which are threads of one process, connect at the same moment. Each sends bytes of its own, and compares them \
         with the reply. Times count from that moment, so the longest is the time until all clients had replies. No client may fail.",
    );
    let ms = |name: &'static str| {
        move |peer: &str, count: u32| samples.median(peer, count, name).map(|us| us / 1e3)
    };
    let (p50, p99, last) = (ms("p50_us"), ms("p99_us"), ms("max_us"));
    section.table(samples.table_by_count(
        "Milliseconds until half, 99 % and all of the clients had replies.",
        &[("half", &p50), ("99 %", &p99), ("all", &last)],
    ));
    let per_client = |peer: &str, count: u32| {
        let growth =
            samples.median(peer, count, "all_memory_bytes")? - samples.median(peer, count, "memory_bytes")?;
        Some((growth / f64::from(count)).round().max(0.0))
    };
    let caption = "Memory of the server per client, in bytes.";
    section.table(samples.table_by_count(caption, &[("a client", &per_client)]));
}

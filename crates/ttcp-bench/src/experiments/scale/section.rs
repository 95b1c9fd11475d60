//! The section of the report.

use super::super::store::Data;
use super::{NAME, Part};
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, format_figure};
use crate::statistics::median;

struct PartSamples<'d> {
    data: &'d Data,
    part: Part,
    peers: Vec<&'d str>,
    counts: Vec<u32>,
}

/// Returns a figure of a peer and count.
type FigureFn<'f> = &'f dyn Fn(&str, u32) -> Option<f64>;
/// A column of a table by peer: the heading, and the function of its cells.
type PeerColumn<'f> = (&'f str, &'f dyn Fn(&str) -> String);

impl<'d> PartSamples<'d> {
    fn of(data: &'d Data, part: Part) -> PartSamples<'d> {
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

    fn chart(&self, caption: &str, x: Scale, label: &str, of: FigureFn<'_>) -> Chart {
        let line = |peer: &&str| {
            let points = self.counts.iter().filter_map(|count| Some((f64::from(*count), of(peer, *count)?)));
            Series::measured(*peer, points.collect())
        };
        Chart {
            caption: caption.to_owned(),
            x: Axis::new(self.part.setting(), x),
            y: Axis::new(label, Scale::Linear),
            series: self.peers.iter().map(line).collect(),
        }
    }

    /// Returns a table with a row for each count, and the same columns for each peer.
    fn by_count(&self, caption: &str, columns: &[(&str, FigureFn<'_>)]) -> Table {
        let mut heads = vec![Column::figures(self.part.setting())];
        for peer in &self.peers {
            let head = |(place, (title, _)): (usize, &(&str, FigureFn<'_>))| match place {
                0 => Column::figures(format!("{peer}, {title}")),
                _ => Column::figures(*title),
            };
            heads.extend(columns.iter().enumerate().map(head));
        }
        let row = |count: &u32| {
            let cells = self
                .peers
                .iter()
                .flat_map(|peer| columns.iter().map(move |(_, of)| format_figure(of(peer, *count))));
            std::iter::once(count.to_string()).chain(cells).collect()
        };
        let rows = self.counts.iter().map(row).collect();
        Table { caption: caption.to_owned(), columns: heads, rows }
    }

    fn by_peer(&self, caption: &str, columns: &[PeerColumn<'_>]) -> Table {
        let mut heads = vec![Column::words("peer")];
        heads.extend(columns.iter().map(|(title, _)| Column::figures(*title)));
        let row = |peer: &&str| {
            let cells = columns.iter().map(|(_, of)| of(peer));
            std::iter::once((*peer).to_owned()).chain(cells).collect()
        };
        Table { caption: caption.to_owned(), columns: heads, rows: self.peers.iter().map(row).collect() }
    }

    /// Returns the largest count for which the peer has that figure.
    fn max_count(&self, peer: &str, name: &str) -> Option<u32> {
        self.counts.iter().rev().copied().find(|count| self.median(peer, *count, name).is_some())
    }
}

fn format_integer(figure: Option<f64>) -> String {
    // Adding 0.0 removes the sign of a negative zero.
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{:.0}", figure.round() + 0.0))
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

pub(super) fn section(data: &Data) -> Section {
    let mut section = Section::new(NAME, "Scale: many objects, connections and clients, and crowds");
    section.text(
        "The cost of calls and the server's memory, for growing numbers of objects, connections and clients. Memory is the PSS of the \
         server's process. It does not include the kernel's memory for sockets and threads; that of a Java machine includes garbage \
         that is not collected yet. Figures are medians of the rounds; - marks what was omitted or failed.",
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
         order with a fixed seed, one call at a time. Before that, each receives the octets of its number and confirms them, which \
         proves that the right object was called. zorb has objects with ids of the POA, which contain the place of the object, and \
         objects with ids of the program.",
    );
    let p50 = |peer: &str, count: u32| samples.median(peer, count, "p50_us");
    let p99 = |peer: &str, count: u32| samples.median(peer, count, "p99_us");
    section.chart(samples.chart(
        "Median time of a call, by objects of the server.",
        Scale::Decades,
        "microseconds",
        &p50,
    ));
    section.table(samples.by_count(
        "Time of a call without parameters: median and 99th percentile.",
        &[("us", &p50), ("99 %", &p99)],
    ));
    let memory = |peer: &str, count: u32| samples.median(peer, count, "memory_bytes");
    let fewest = samples.counts.first().copied().unwrap_or_default();
    let growth = |peer: &str| {
        let most = samples.max_count(peer, "memory_bytes").filter(|most| *most > fewest)?;
        Some((memory(peer, most)? - memory(peer, fewest)?) / f64::from(most - fewest))
    };
    let at_most = |peer: &str| memory(peer, samples.max_count(peer, "memory_bytes")?);
    let least = |peer: &str| format_figure(memory(peer, fewest).map(mib));
    let most = |peer: &str| format_figure(at_most(peer).map(mib));
    let each = |peer: &str| format_integer(growth(peer));
    section.table(samples.by_peer(
        "Memory of the server before the first call, with the fewest and the most objects, and of each additional object.",
        &[("fewest, MiB", &least), ("most, MiB", &most), ("an object, bytes", &each)],
    ));
}

fn connections(samples: &PartSamples<'_>, section: &mut Section) {
    if samples.counts.is_empty() {
        return;
    }
    section.text(
        "Connections: the same code opens all connections but one to each server, one after the other, with a call over each. The peer's \
         own client then calls over the last connection while the others are idle. At last there is one more call over each idle \
         connection in turn. All replies are compared.",
    );
    let memory = |peer: &str, count: u32| {
        let all = samples.median(peer, count, "all_memory_bytes");
        all.or_else(|| samples.median(peer, count, "memory_bytes")).map(mib)
    };
    let p50 = |peer: &str, count: u32| samples.median(peer, count, "p50_us");
    let p99 = |peer: &str, count: u32| samples.median(peer, count, "p99_us");
    section.chart(samples.chart("Memory of the server, by connections.", Scale::Decades, "MiB", &memory));
    let caption = "Median time of a call over one of the connections.";
    section.chart(samples.chart(caption, Scale::Decades, "microseconds", &p50));
    section.table(samples.by_count(
        "Time of a call over one connection while the others are idle, and memory of the server.",
        &[("us", &p50), ("99 %", &p99), ("MiB", &memory)],
    ));
    let most = |peer: &str| samples.max_count(peer, "turn_us");
    let of_most = |peer: &str, name: &str| samples.median(peer, most(peer)?, name);
    // The first held connection is not counted, and the measured one is not among them.
    let growth = |peer: &str| {
        let added = most(peer)?.checked_sub(2).filter(|added| *added > 0)?;
        let bytes = of_most(peer, "all_memory_bytes")? - of_most(peer, "first_memory_bytes")?;
        Some(bytes / f64::from(added))
    };
    let count = |peer: &str| format_integer(most(peer).map(f64::from));
    let each = |peer: &str| format_integer(growth(peer));
    let threads = |peer: &str| format_integer(of_most(peer, "threads"));
    let open = |peer: &str| format_integer(of_most(peer, "open_secs").map(|secs| secs * 1e3));
    let turn = |peer: &str| format_figure(of_most(peer, "turn_us"));
    section.table(samples.by_peer(
        "With the most connections: memory of the server per connection, threads of the server, time to open all connections with a \
         call over each, and time of a call over each in turn.",
        &[
            ("connections", &count),
            ("a connection, bytes", &each),
            ("threads", &threads),
            ("open all, ms", &open),
            ("in turn, us", &turn),
        ],
    ));
}

fn clients(samples: &PartSamples<'_>, section: &mut Section) {
    if samples.counts.is_empty() {
        return;
    }
    section.text(
        "Clients: threads of one process, each with its own connection (its own ORB, where connections belong to the ORB), call without \
         pause until all calls are made. Each first has its own octets echoed, which are compared.",
    );
    let rate = |peer: &str, count: u32| samples.median(peer, count, "calls_s").map(|calls| calls / 1e3);
    let p50 = |peer: &str, count: u32| samples.median(peer, count, "p50_us");
    let p99 = |peer: &str, count: u32| samples.median(peer, count, "p99_us");
    section.chart(samples.chart("Calls of all clients.", Scale::Bytes, "thousand calls per second", &rate));
    section.chart(samples.chart("99th percentile of a call's time.", Scale::Bytes, "microseconds", &p99));
    section.table(samples.by_count(
        "Thousand calls per second of all clients, and the time of a call: median and 99th percentile.",
        &[("kcalls/s", &rate), ("us", &p50), ("99 %", &p99)],
    ));
}

fn crowd(samples: &PartSamples<'_>, section: &mut Section) {
    if samples.counts.is_empty() {
        return;
    }
    section.text(
        "Crowd: clients, which are threads of one process, connect at the same moment. Each has its own octets echoed, which are compared. \
         Times count from that moment, so the longest is the time until all were served. None may fail.",
    );
    let ms = |name: &'static str| {
        move |peer: &str, count: u32| samples.median(peer, count, name).map(|us| us / 1e3)
    };
    let (p50, p99, last) = (ms("p50_us"), ms("p99_us"), ms("max_us"));
    section.table(samples.by_count(
        "Milliseconds until half, 99 % and all of the clients had replies.",
        &[("half", &p50), ("99 %", &p99), ("all", &last)],
    ));
    let each = |peer: &str, count: u32| {
        let growth =
            samples.median(peer, count, "all_memory_bytes")? - samples.median(peer, count, "memory_bytes")?;
        Some((growth / f64::from(count)).round().max(0.0))
    };
    section.table(samples.by_count("Memory of the server per client, bytes.", &[("a client", &each)]));
}

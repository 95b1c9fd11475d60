//! The section of the report.

use super::super::store::Data;
use super::{NAME, Part};
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, shown};
use crate::statistics::median;

/// The samples of a part.
struct PartSamples<'d> {
    data: &'d Data,
    part: Part,
    peers: Vec<&'d str>,
    counts: Vec<u32>,
}

/// A figure by peer and count.
type FigureOf<'f> = &'f dyn Fn(&str, u32) -> Option<f64>;
/// A column of a table by peer: its heading and its cells.
type PeerColumn<'f> = (&'f str, &'f dyn Fn(&str) -> String);

impl<'d> PartSamples<'d> {
    fn of(data: &'d Data, part: Part) -> PartSamples<'d> {
        let (mut peers, mut counts) = (Vec::new(), Vec::new());
        for sample in data.of(NAME) {
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

    /// The median over the rounds.
    fn median(&self, peer: &str, count: u32, name: &str) -> Option<f64> {
        median(&self.data.figures(NAME, peer, &self.part.cell(count), name))
    }

    fn chart(&self, caption: &str, x: Scale, label: &str, of: FigureOf<'_>) -> Chart {
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

    /// Builds a table with a row for each count and the same columns for each peer.
    fn by_count(&self, caption: &str, columns: &[(&str, FigureOf<'_>)]) -> Table {
        let mut heads = vec![Column::figures(self.part.setting())];
        for peer in &self.peers {
            let head = |(place, (title, _)): (usize, &(&str, FigureOf<'_>))| match place {
                0 => Column::figures(format!("{peer}, {title}")),
                _ => Column::figures(*title),
            };
            heads.extend(columns.iter().enumerate().map(head));
        }
        let row = |count: &u32| {
            let cells =
                self.peers.iter().flat_map(|peer| columns.iter().map(move |(_, of)| shown(of(peer, *count))));
            std::iter::once(count.to_string()).chain(cells).collect()
        };
        let rows = self.counts.iter().map(row).collect();
        Table { caption: caption.to_owned(), columns: heads, rows }
    }

    /// Builds a table with a row for each peer.
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
    fn most(&self, peer: &str, name: &str) -> Option<u32> {
        self.counts.iter().rev().copied().find(|count| self.median(peer, *count, name).is_some())
    }
}

/// Formats a figure that is an integer by nature.
fn whole(figure: Option<f64>) -> String {
    // Adding 0.0 removes the sign of a negative zero.
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{:.0}", figure.round() + 0.0))
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// Returns the section of all parts for which there are samples.
pub(super) fn section(data: &Data) -> Section {
    let mut section = Section::new(NAME, "Scale: many objects, connections and clients, and crowds");
    section.text(
        "What calls cost, and the server's memory, as there are more objects, more connections and more clients. Memory is what the \
         system says of the server's process (PSS): not what the kernel has for its sockets and the stacks of its threads, and in \
         a Java machine with what has not been collected yet. Medians of the rounds; - stands for what was left out, or failed.",
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
        "Objects: each has a servant of its own, or one default servant serves them all. Up to 1,000 of them, drawn evenly from all, are called in an order \
         drawn with a fixed seed, one call at a time; before that each gets octets of a number of its own and confirms them, so it is the \
         one that is meant. zorb has them under ids that the POA chooses, which say where the object is, and under ids of the program's.",
    );
    let usual = |peer: &str, count: u32| samples.median(peer, count, "p50_us");
    let slow = |peer: &str, count: u32| samples.median(peer, count, "p99_us");
    section.chart(samples.chart(
        "Median time of a call, by objects of the server.",
        Scale::Decades,
        "microseconds",
        &usual,
    ));
    section.table(samples.by_count(
        "Time of a call without parameters: median, and 99 % of the calls took less.",
        &[("us", &usual), ("99 %", &slow)],
    ));
    let memory = |peer: &str, count: u32| samples.median(peer, count, "memory_bytes");
    let fewest = samples.counts.first().copied().unwrap_or_default();
    let grown = |peer: &str| {
        let most = samples.most(peer, "memory_bytes").filter(|most| *most > fewest)?;
        Some((memory(peer, most)? - memory(peer, fewest)?) / f64::from(most - fewest))
    };
    let at_most = |peer: &str| memory(peer, samples.most(peer, "memory_bytes")?);
    let least = |peer: &str| shown(memory(peer, fewest).map(mib));
    let most = |peer: &str| shown(at_most(peer).map(mib));
    let each = |peer: &str| whole(grown(peer));
    section.table(samples.by_peer(
        "Memory of the server before the first call, with the fewest and the most objects, and what each object more takes.",
        &[("fewest, MiB", &least), ("most, MiB", &most), ("an object, bytes", &each)],
    ));
}

fn connections(samples: &PartSamples<'_>, section: &mut Section) {
    if samples.counts.is_empty() {
        return;
    }
    section.text(
        "Connections: all but one are opened one after the other by the same few lines for every server, with a call over each, and held; \
         the peer's own client calls over the last one. Then there is one more call over each that was held, in turn. What comes back \
         is compared each time.",
    );
    let memory = |peer: &str, count: u32| {
        let all = samples.median(peer, count, "all_memory_bytes");
        all.or_else(|| samples.median(peer, count, "memory_bytes")).map(mib)
    };
    let usual = |peer: &str, count: u32| samples.median(peer, count, "p50_us");
    let slow = |peer: &str, count: u32| samples.median(peer, count, "p99_us");
    section.chart(samples.chart("Memory of the server, by connections.", Scale::Decades, "MiB", &memory));
    section.chart(samples.chart(
        "Median time of a call over one of so many connections.",
        Scale::Decades,
        "microseconds",
        &usual,
    ));
    section.table(samples.by_count(
        "Time of a call over one connection while the others idle, and memory of the server.",
        &[("us", &usual), ("99 %", &slow), ("MiB", &memory)],
    ));
    let most = |peer: &str| samples.most(peer, "turn_us");
    let of_most = |peer: &str, name: &str| samples.median(peer, most(peer)?, name);
    // The first held connection is not counted, and the measured one is not among them.
    let grown = |peer: &str| {
        let more = most(peer)?.checked_sub(2).filter(|more| *more > 0)?;
        let bytes = of_most(peer, "all_memory_bytes")? - of_most(peer, "first_memory_bytes")?;
        Some(bytes / f64::from(more))
    };
    let held = |peer: &str| whole(most(peer).map(f64::from));
    let each = |peer: &str| whole(grown(peer));
    let threads = |peer: &str| whole(of_most(peer, "threads"));
    let open = |peer: &str| whole(of_most(peer, "open_secs").map(|secs| secs * 1e3));
    let turn = |peer: &str| shown(of_most(peer, "turn_us"));
    section.table(samples.by_peer(
        "With the most connections: what each takes of the server's memory, threads of the server, the time to open all with a call \
         over each, and the time of a call over them in turn.",
        &[
            ("connections", &held),
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
        "Clients: so many threads of one process, each with a connection of its own (an ORB each, where connections belong to the ORB), call without \
         pause until all calls have been made. Each has an echo of its own octets first, which are compared.",
    );
    let rate = |peer: &str, count: u32| samples.median(peer, count, "calls_s").map(|calls| calls / 1e3);
    let usual = |peer: &str, count: u32| samples.median(peer, count, "p50_us");
    let slow = |peer: &str, count: u32| samples.median(peer, count, "p99_us");
    section.chart(samples.chart("Calls of all clients.", Scale::Bytes, "thousand calls a second", &rate));
    section.chart(samples.chart("99 % of the calls took less.", Scale::Bytes, "microseconds", &slow));
    section.table(samples.by_count(
        "Thousand calls a second of all clients; the time of a call: median, and 99 % took less.",
        &[("kcalls/s", &rate), ("us", &usual), ("99 %", &slow)],
    ));
}

fn crowd(samples: &PartSamples<'_>, section: &mut Section) {
    if samples.counts.is_empty() {
        return;
    }
    section.text(
        "A crowd: so many clients, threads of one process, connect at the same moment, and each has octets of its own echoed, which are compared. \
         Times count from that moment, so the longest is the time until all were served. Not one may fail.",
    );
    let ms = |name: &'static str| {
        move |peer: &str, count: u32| samples.median(peer, count, name).map(|us| us / 1e3)
    };
    let (usual, slow, last) = (ms("p50_us"), ms("p99_us"), ms("max_us"));
    section.table(samples.by_count(
        "Milliseconds until half, 99 % and all of the clients were answered.",
        &[("half", &usual), ("99 %", &slow), ("all", &last)],
    ));
    let each = |peer: &str, count: u32| {
        let grown =
            samples.median(peer, count, "all_memory_bytes")? - samples.median(peer, count, "memory_bytes")?;
        Some((grown / f64::from(count)).round().max(0.0))
    };
    section.table(samples.by_count("Memory of the server for each of them, octets.", &[("a client", &each)]));
}

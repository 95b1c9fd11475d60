//! Throughput of sequences in one direction: every type, every size of the sender's buffer, by socket queues,
//! over fast and slow links.

use std::process::ExitCode;

use clap::Args;

use super::contenders::Contender;
use super::driver::ClientOutput;
use super::store::{Cell, Data, Outcome, Sample};
use super::{CommonArgs, Experiment, Figures, LINK, Plan, Step, calls, integrity, of_line};
use crate::external_peers;
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, bytes, published_rows, shown};
use crate::harness::BuiltIn;
use crate::harness::links::{self, Link};
use crate::literature::Published;
use crate::statistics::{Summary, median};
use crate::work::{Element, parse_bytes, parse_size};

const NAME: &str = "throughput";

pub(crate) const EXPERIMENT: Experiment =
    Experiment { name: NAME, covers: &["sigcomm96.t1", "sigcomm96.text"], section };

const TYPES: [Element; 7] = [
    Element::Short,
    Element::Char,
    Element::Long,
    Element::Octet,
    Element::Double,
    Element::Struct,
    Element::Struct32,
];
const SIZES: [u64; 11] =
    [1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20];
const SIZES_QUICK: [u64; 2] = [1 << 10, 1 << 16];
/// Socket queues, bytes; 0: the kernel's automatic sizing.
const QUEUES: [u64; 3] = [0, 8 << 10, 64 << 10];
/// Bytes of a flood. Through small queues fewer are sent: there some peers stall between the segments of a
/// message until a kernel timer expires, and would take minutes for this amount.
const TOTAL: u64 = 64 << 20;
const SMALL_QUEUE: u64 = 16 << 10;
const TOTAL_SMALL_QUEUE: u64 = 8 << 20;
/// The buffer size for which processor time is shown.
const TYPICAL: u64 = 1 << 16;
const AUTOMATIC: &str = "automatic";
const LOOPBACK: &str = "loopback";
/// Links, in Mbit/s and bytes of a packet: those of the published experiments, which were ATM, and an
/// Ethernet.
const LINKS: [Link; 4] =
    [Link::Loopback, Link::Shaped(155, 9_180), Link::Shaped(622, 9_180), Link::Shaped(1_000, 1_500)];
const LINKS_QUICK: [Link; 2] = [Link::Loopback, Link::Shaped(622, 9_180)];
/// Fewer sizes on slow links, where adjacent sizes hardly differ.
const SIZES_SLOW: [u64; 6] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];

/// Options of `ttcp throughput`.
#[derive(Debug, Clone, Args)]
pub struct ThroughputArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Element types (default: short, char, long, octet, double, struct; struct32 for sockets)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPES")]
    pub types: Option<Vec<Element>>,
    /// Sizes of the sender's buffer (default: 1K, 2K, 4K and so on to 1M; every second one of these over slow
    /// links)
    #[arg(long, value_parser = parse_size, value_delimiter = ',', value_name = "SIZES")]
    pub sizes: Option<Vec<u64>>,
    /// Sizes of both socket queues of both sides; `auto`: as the kernel sees fit (default: auto,8K,64K)
    #[arg(long, value_parser = queue, value_delimiter = ',', value_name = "SIZES")]
    pub queues: Option<Vec<u64>>,
    /// User bytes of each flood (default: 64M; 8M through queues under 16 KiB; over slow links, the bytes of
    /// a quarter of a second)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
    /// What is between client and server: `loopback`, and links of so many Mbit/s (default:
    /// loopback,155,622,1000; with --host none of them)
    ///
    /// MBIT_S or MBIT_S:MTU. A slow link is a pair of virtual devices between two network namespaces, which
    /// exist only during its measurement. It requires root or user namespaces, and iproute2; without them
    /// such links are skipped. Its queues are automatic unless --queues is given.
    #[arg(long, value_delimiter = ',', value_name = "LINKS")]
    pub links: Option<Vec<Link>>,
    /// Start servers on another machine and measure over the network to it: its IPv4 address, as reached from
    /// here
    ///
    /// This program and the peers are at the same paths there.
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<String>,
    /// What runs a line of a shell on that machine, when it gets one more word (default: ssh ADDRESS)
    #[arg(long, value_name = "COMMAND", requires = "host")]
    pub shell: Option<String>,
}

impl ThroughputArgs {
    /// Runs the experiment and prints its section.
    ///
    /// # Errors
    /// It cannot begin, or its results cannot be written.
    pub fn run(&self, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
        super::run(&self.common, built_in, |contenders| plan(self, contenders))
    }

    /// Arguments for the whole experiment.
    pub(crate) fn of(common: CommonArgs) -> ThroughputArgs {
        ThroughputArgs {
            common,
            types: None,
            sizes: None,
            queues: None,
            total: None,
            links: None,
            host: None,
            shell: None,
        }
    }
}

fn queue(text: &str) -> Result<u64, String> {
    if text == "auto" { Ok(0) } else { parse_size(text) }
}

impl ThroughputArgs {
    /// Returns the links to measure, without those that cannot be set up here.
    fn links(&self) -> Vec<Link> {
        let usual: &[Link] = match (&self.host, self.common.quick) {
            (Some(_), _) => &[],
            (None, true) => &LINKS_QUICK,
            (None, false) => &LINKS,
        };
        let mut links = self.links.clone().unwrap_or_else(|| usual.to_vec());
        let is_shaped = |link: &Link| matches!(link, Link::Shaped(..));
        if links.iter().any(is_shaped)
            && let Err(why) = links::available()
        {
            let names: Vec<String> = links.iter().filter(|link| is_shaped(link)).map(Link::name).collect();
            eprintln!("ttcp: {NAME}: left out: {}: {why}", names.join("; "));
            links.retain(|link| !is_shaped(link));
        }
        if let Some(host) = &self.host {
            let shell = self.shell.clone().unwrap_or_else(|| format!("ssh {host}"));
            links.push(Link::Away(host.clone(), shlex::split(&shell).unwrap_or_default()));
        }
        links
    }
}

/// Returns the measurements of a round.
pub(crate) fn plan(args: &ThroughputArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let types = args.types.as_deref().unwrap_or(&TYPES);
    let sizes = args.sizes.as_deref().unwrap_or(if quick { &SIZES_QUICK } else { &SIZES });
    let slow_sizes = args.sizes.as_deref().unwrap_or(if quick { &SIZES_QUICK[1..] } else { &SIZES_SLOW });
    let links = args.links();
    let mut steps = Vec::new();
    for link in &links {
        let is_loopback = *link == Link::Loopback;
        let single = quick || !is_loopback;
        let queues = args.queues.as_deref().unwrap_or(if single { &QUEUES[..1] } else { &QUEUES });
        let usual = if quick { 2 << 20 } else { link.carries().unwrap_or(u64::MAX).min(TOTAL) };
        let sizes = if is_loopback { sizes } else { slow_sizes };
        for queue in queues {
            let is_small = (1..SMALL_QUEUE).contains(queue);
            let total = args.total.unwrap_or(if is_small { usual.min(TOTAL_SMALL_QUEUE) } else { usual });
            for element in types {
                for size in sizes {
                    let cell = cell(link, element, *size, *queue);
                    for contender in contenders {
                        let Some(element) = contender.sends(*element) else { continue };
                        if !(is_loopback || contender.peer.is_mobile()) {
                            continue;
                        }
                        // A zero-copy sender needs acknowledgements to get its buffers back. These are
                        // delayed while no data follows, and none follows if one buffer fills the queue: such
                        // a flood stalls for 40 ms a message.
                        if *queue > 0 && contender.peer.name == external_peers::ZERO_COPY {
                            continue;
                        }
                        let mut client = flood(element, *size, total);
                        let queue = (*queue > 0).then(|| ["--sockbuf".to_owned(), queue.to_string()]);
                        let server: Vec<String> = queue.into_iter().flatten().collect();
                        client.extend(server.iter().cloned());
                        steps.push(Step {
                            cell: cell.clone(),
                            peer: contender.peer.clone(),
                            server,
                            client,
                            figures,
                            perform: Step::once,
                        });
                    }
                }
            }
        }
    }
    let mut before = checks(contenders, types, sizes, quick);
    before.extend(counts(contenders, types, quick));
    Plan { name: NAME, links, rounds: 10, checks: before, steps }
}

/// Returns the cell of a measurement. A cell of the loopback device has no link setting.
fn cell(link: &Link, element: &Element, size: u64, queue: u64) -> Cell {
    let queue = if queue == 0 { AUTOMATIC.to_owned() } else { bytes(queue) };
    let cell = Cell::default()
        .with("type", element.to_string().as_str())
        .with("bytes", size)
        .with("queue", queue.as_str());
    if *link == Link::Loopback { cell } else { cell.with(LINK, link.name().as_str()) }
}

/// Returns a flood with compared contents for each peer, type and size; in a quick run only for the largest
/// buffers.
fn checks(contenders: &[Contender], types: &[Element], sizes: &[u64], quick: bool) -> Vec<Step> {
    let largest = sizes.iter().max().copied().into_iter();
    let sizes: Vec<u64> = if quick { largest.collect() } else { sizes.to_vec() };
    let mut checks = Vec::new();
    for element in types {
        for size in &sizes {
            let cell = Cell::default().with("type", element.to_string().as_str());
            let cell = if quick { cell } else { cell.with("bytes", *size) };
            let check = |contender: &Contender| {
                let total = (4 * size).max(integrity::LEAST);
                integrity::check(
                    &contender.peer,
                    cell.clone(),
                    flood(contender.sends(*element)?, *size, total),
                )
            };
            checks.extend(contenders.iter().filter_map(check));
        }
    }
    checks
}

/// Returns a flood with counted system calls for each peer and type; in a quick run only for one scalar type
/// and for structs.
fn counts(contenders: &[Contender], types: &[Element], quick: bool) -> Vec<Step> {
    if let Err(why) = calls::available() {
        eprintln!("ttcp: {NAME}: system calls are not counted: {why}");
        return Vec::new();
    }
    let is_struct = |element: &&&Element| **element == &Element::Struct;
    let scalar = types.iter().find(|element| !is_struct(&element));
    let types: Vec<&Element> = match quick {
        true => scalar.into_iter().chain(types.iter().filter(|element| is_struct(&element))).collect(),
        false => types.iter().collect(),
    };
    let of_type = |element: &&Element| {
        let count = |one: &Contender| Some(calls::count(&one.peer, **element, one.sends(**element)?, quick));
        contenders.iter().filter_map(count).collect::<Vec<_>>()
    };
    types.iter().flat_map(of_type).collect()
}

/// Returns the client's arguments for a flood.
fn flood(element: Element, size: u64, total: u64) -> Vec<String> {
    let words =
        ["ttcp", "--type", &element.to_string(), "--size", &size.to_string(), "--total", &total.to_string()];
    words.map(String::from).to_vec()
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    Ok([
        ("mbit_s".to_owned(), of_line(output.line, "mbit_s")?),
        ("secs".to_owned(), of_line(output.line, "secs")?),
    ]
    .into())
}

/// The samples of this experiment, in the order of the report.
struct FloodSamples<'d> {
    data: &'d Data,
    peers: Vec<&'d str>,
    types: Vec<&'d str>,
    sizes: Vec<u64>,
    /// Each link with its queues.
    links: Vec<(&'d str, Vec<&'d str>)>,
}

/// A link and socket queues.
#[derive(Clone, Copy)]
struct Path<'d> {
    link: &'d str,
    queue: &'d str,
}

impl<'d> FloodSamples<'d> {
    fn of(data: &'d Data) -> FloodSamples<'d> {
        let peers = data.peers(NAME);
        let mut samples =
            FloodSamples { data, peers, types: Vec::new(), sizes: Vec::new(), links: Vec::new() };
        for sample in data.of(NAME) {
            let Some((element, size, path)) = settings(&sample.cell) else { continue };
            if !samples.types.contains(&element) {
                samples.types.push(element);
            }
            samples.sizes.push(size);
            match samples.links.iter_mut().find(|(link, _)| *link == path.link) {
                Some((_, queues)) if queues.contains(&path.queue) => {}
                Some((_, queues)) => queues.push(path.queue),
                None => samples.links.push((path.link, vec![path.queue])),
            }
        }
        samples.sizes.sort_unstable();
        samples.sizes.dedup();
        samples
    }

    fn paths(&self) -> impl Iterator<Item = Path<'d>> {
        self.links.iter().flat_map(|(link, queues)| queues.iter().map(|queue| Path { link, queue }))
    }

    fn rate(&self, peer: &str, element: &str, size: u64, path: Path<'_>) -> Option<Summary> {
        let cell = Cell::default().with("type", element).with("bytes", size).with("queue", path.queue);
        let cell = if path.link == LOOPBACK { cell } else { cell.with(LINK, path.link) };
        Summary::of(&self.data.figures(NAME, peer, &cell, "mbit_s"))
    }

    /// Returns the medians of a peer over all sizes and queues of these types.
    fn rates(&self, peer: &str, link: &str, types: impl Fn(&str) -> bool) -> Vec<f64> {
        let mut rates = Vec::new();
        for element in self.types.iter().filter(|element| types(element)) {
            for size in &self.sizes {
                for path in self.paths().filter(|path| path.link == link) {
                    rates.extend(self.rate(peer, element, *size, path).map(|summary| summary.median));
                }
            }
        }
        rates
    }
}

fn settings(cell: &Cell) -> Option<(&str, u64, Path<'_>)> {
    let path = Path { link: cell.word(LINK).unwrap_or(LOOPBACK), queue: cell.word("queue")? };
    Some((cell.word("type")?, cell.number("bytes")?, path))
}

fn section(data: &Data) -> Section {
    let samples = FloodSamples::of(data);
    let mut section = Section::new(NAME, "Throughput: sequences that flow one way");
    section.text(
        "A client sends sequences by oneway calls until all user bytes are sent, and then asks what has arrived. The figure is user \
         bits over the time from the first send to that answer, in Mbit/s of 10^6 bits; the receiver has each element as a value of \
         its language. A tenth of the work goes before. Sockets send octets whatever the type: they are the limit, not an ORB.",
    );
    section.text(integrity::format_checks(data, NAME));
    if samples.peers.contains(&"zorb-dynamic") {
        section.text(
            "zorb-dynamic sends an any, which keeps its value encoded: its client marshals once, not for each message. Its server \
             makes values of all elements, as the compiled one does.",
        );
    }
    summary(&samples, &mut section);
    let on_loopback = samples.links.iter().any(|(link, _)| *link == LOOPBACK);
    if on_loopback {
        shares(&samples, &mut section);
    }
    for path in samples.paths() {
        for element in &samples.types {
            of_type(&samples, &mut section, element, path);
        }
    }
    if samples.links.iter().all(|(link, _)| *link == LOOPBACK) {
        section.text("No slow link was measured: that takes root or user namespaces, and iproute2.");
    }
    if on_loopback {
        processor(&samples, &mut section);
    }
    calls::section(data, NAME, &mut section);
    section
}

/// Adds the literature's summary: highest and lowest throughput of each system.
fn summary(samples: &FloodSamples<'_>, section: &mut Section) {
    let kinds = ["scalars, highest", "scalars, lowest", "struct, highest", "struct, lowest"];
    let mut columns = vec![Column::words("system"), Column::words("where")];
    columns.extend(kinds.map(|kind| Column::figures(format!("{kind}, Mbit/s"))));
    columns.extend(kinds.map(|kind| Column::published(format!("{kind}, Mbit/s"))));
    let none = || std::iter::repeat_n("-".to_owned(), kinds.len());
    let mut rows = Vec::new();
    for (peer, (link, _)) in
        samples.peers.iter().flat_map(|peer| samples.links.iter().map(move |link| (peer, link)))
    {
        let ends = |rates: Vec<f64>| {
            let end = |of: fn(f64, f64) -> f64| rates.iter().copied().reduce(of);
            [end(f64::max), end(f64::min)]
        };
        let is_struct = |element: &str| element.contains("struct");
        let scalars = ends(samples.rates(peer, link, |element| !is_struct(element)));
        let structs = ends(samples.rates(peer, link, is_struct));
        let figures: Vec<Option<f64>> = scalars.into_iter().chain(structs).collect();
        // Some peers do not support every link.
        if figures.iter().any(Option::is_some) {
            let words =
                [(*peer).to_owned(), (*link).to_owned()].into_iter().chain(figures.into_iter().map(shown));
            rows.push(words.chain(none()).collect());
        }
    }
    if let Some(table) = Published::of("sigcomm96.t1") {
        for row in &table.rows {
            for place in ["loopback", "remote"] {
                let name = |kind| format!("{place}_{kind}_mbps");
                let figures = ["scalars_hi", "scalars_lo", "struct_hi", "struct_lo"]
                    .map(|kind| shown(table.number(row, &name(kind))));
                let system = table.text(row, "ttcp_version").unwrap_or("-").to_owned();
                rows.push([system, place.to_owned()].into_iter().chain(none()).chain(figures).collect());
            }
        }
    }
    let caption = "Highest and lowest median of each system over all types, sizes and queues; and what was published of 1996, with two \
                   workstations over 155 Mbit/s ATM (remote) and within one (loopback)."
        .into();
    section.table(Table { caption, columns, rows });
}

/// Adds the percentage of a socket's throughput that each peer reaches, as in the literature: the ratio of
/// the peaks.
fn shares(samples: &FloodSamples<'_>, section: &mut Section) {
    let Some(socket) = ["c", "raw"].into_iter().find(|name| samples.peers.contains(name)) else { return };
    let is_struct = |element: &str| element.contains("struct");
    let peak = |peer: &str, of_structs: bool| {
        samples.rates(peer, LOOPBACK, |element| is_struct(element) == of_structs).into_iter().reduce(f64::max)
    };
    let share =
        |peer: &str, of_structs: bool| Some(100.0 * peak(peer, of_structs)? / peak(socket, of_structs)?);
    let mut columns = vec![Column::words("system")];
    columns.extend(["scalars", "structs"].map(|kind| Column::figures(format!("{kind}, % of {socket}"))));
    let row = |peer: &&str| vec![(*peer).to_owned(), shown(share(peer, false)), shown(share(peer, true))];
    let caption = format!("The highest median of each system, as a share of that of {socket}.");
    section.table(Table { caption, columns, rows: samples.peers.iter().map(row).collect() });
    let of_floods = |table: &Published, row: &[&'static str]| {
        let text = |column| table.text(row, column).unwrap_or_default();
        !calls::is_of_calls(table, row)
            && ["throughput", "C/C++", "level", "CORBA"].iter().any(|word| text("quantity").contains(word))
    };
    section.table(published_rows("sigcomm96.text", "What the text has of such peaks and shares", of_floods));
    let others =
        |table: &Published, row: &[&'static str]| !calls::is_of_calls(table, row) && !of_floods(table, row);
    section.table(published_rows(
        "sigcomm96.text",
        "What else it has: the testbed, and where the time went",
        others,
    ));
}

fn of_type(samples: &FloodSamples<'_>, section: &mut Section, element: &str, path: Path<'_>) {
    let rates = |peer: &str, size: u64| samples.rate(peer, element, size, path);
    let peers: Vec<&str> = samples
        .peers
        .iter()
        .copied()
        .filter(|peer| samples.sizes.iter().any(|size| rates(peer, *size).is_some()))
        .collect();
    if peers.is_empty() {
        return;
    }
    let what = format!("Sequences of {element}, socket queues {}, over {}", path.queue, path.link);
    let line = |peer: &&str| {
        let point = |size: &u64| Some((*size as f64, rates(peer, *size)?.median / 1e3));
        Series::measured(*peer, samples.sizes.iter().filter_map(point).collect())
    };
    section.chart(Chart {
        caption: format!("{what}."),
        x: Axis::new("sender's buffer, bytes", Scale::Bytes),
        y: Axis::new("Gbit/s", Scale::Linear),
        series: peers.iter().map(line).collect(),
    });
    let mut columns = vec![Column::figures("buffer")];
    for peer in &peers {
        columns.push(Column::figures(format!("{peer}, Mbit/s")));
        columns.push(Column::figures("mean ± deviation"));
    }
    let row = |size: &u64| {
        let mut row = vec![bytes(*size)];
        for peer in &peers {
            let summary = rates(peer, *size);
            row.push(shown(summary.map(|s| s.median)));
            row.push(summary.map_or_else(
                || "-".into(),
                |s| format!("{} ± {}", shown(Some(s.mean)), shown(Some(s.deviation))),
            ));
        }
        row
    };
    let rows: Vec<Vec<String>> = samples.sizes.iter().map(row).collect();
    let caption = format!("{what}: median, mean and standard deviation of the rounds.");
    section.table(Table { caption, columns, rows });
}

/// Adds the processor time per GB, at the typical size.
fn processor(samples: &FloodSamples<'_>, section: &mut Section) {
    let size = if samples.sizes.contains(&TYPICAL) {
        TYPICAL
    } else {
        samples.sizes.last().copied().unwrap_or_default()
    };
    let per_gb =
        |sample: &Sample, side: fn(crate::harness::processor::Processor) -> f64| match &sample.outcome {
            Outcome::Figures { figures, processor: Some(used), .. } => {
                let gigabytes = figures.get("mbit_s")? * figures.get("secs")? / 8e3 * 1.1;
                Some(side(*used) / gigabytes * 1e3)
            }
            _ => None,
        };
    let mut columns = vec![Column::words("type")];
    for peer in &samples.peers {
        columns.push(Column::figures(format!("{peer}: client + server")));
    }
    let row = |element: &&str| {
        let mut row = vec![(*element).to_owned()];
        for peer in &samples.peers {
            let side = |side: fn(crate::harness::processor::Processor) -> f64| {
                let same = |sample: &&Sample| {
                    let is_same = |(of, bytes, path): (&str, u64, Path<'_>)| {
                        (of, bytes, path.link, path.queue) == (*element, size, LOOPBACK, AUTOMATIC)
                    };
                    sample.peer == *peer && settings(&sample.cell).is_some_and(is_same)
                };
                median(
                    &samples.data.of(NAME).filter(same).filter_map(|s| per_gb(s, side)).collect::<Vec<_>>(),
                )
            };
            row.push(match (side(|used| used.client), side(|used| used.server)) {
                (Some(client), Some(server)) => format!("{} + {}", shown(Some(client)), shown(Some(server))),
                _ => "-".to_owned(),
            });
        }
        row
    };
    let rows = samples.types.iter().map(row).collect();
    let caption = format!(
        "Processor time, milliseconds a GB (10^9 bytes) of user data, medians, buffers of {}, queues automatic, loopback. The start of the client \
         and the work before the measured part are in it.",
        bytes(size)
    );
    section.table(Table { caption, columns, rows });
}

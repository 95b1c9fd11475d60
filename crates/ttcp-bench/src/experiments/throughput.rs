//! The experiment `ttcp throughput`: the throughput of sequences in one direction, by element type, size of
//! the sender's buffer, size of the socket queues, and network link.

use std::process::ExitCode;

use clap::Args;

use super::contenders::Contender;
use super::driver;
use super::plan::{ClientOutput, Experiment, Figures, LINK, Plan, Step, flood_arguments, line_figures};
use super::store::{Cell, Sample, StoredResults};
use super::{calls, integrity};
use crate::external_peers;
use crate::figures::{
    Axis, Chart, Column, Scale, Section, Series, Table, format_bytes, format_figure, published_rows,
};
use crate::harness::links::{self, Link};
use crate::harness::processor::ProcessorTime;
use crate::harness::{BuiltInPeer, CommonArgs};
use crate::literature::PublishedTable;
use crate::statistics::{Summary, median};
use crate::work::{Element, parse_bytes, parse_size};

const NAME: &str = "throughput";

pub(crate) const EXPERIMENT: Experiment =
    Experiment { name: NAME, published_ids: &["sigcomm96.t1", "sigcomm96.text"], section };

const TYPES: [Element; 7] = [
    Element::Short,
    Element::Char,
    Element::Long,
    Element::Octet,
    Element::Double,
    Element::Struct,
    Element::Struct32,
];
const BUFFER_BYTES: [u64; 11] =
    [1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20];
const BUFFER_BYTES_QUICK: [u64; 2] = [1 << 10, 1 << 16];
/// Sizes of socket queues. The size 0 means that the kernel chooses it.
const QUEUE_BYTES: [u64; 3] = [0, 8 << 10, 64 << 10];
const FLOOD_BYTES: u64 = 64 << 20;
const MIN_LARGE_QUEUE_BYTES: u64 = 16 << 10;
/// Size of a flood through smaller queues. Some peers stall there until a timer of the kernel expires.
const SMALL_QUEUE_FLOOD_BYTES: u64 = 8 << 20;
/// The buffer size in the table of processor times.
const PROCESSOR_TIME_BUFFER_BYTES: u64 = 1 << 16;
const AUTOMATIC: &str = "automatic";
const LOOPBACK: &str = "loopback";
/// Loopback, two links like those of the published experiments (ATM), and a link like Gigabit Ethernet.
const LINKS: [Link; 4] =
    [Link::Loopback, Link::Shaped(155, 9_180), Link::Shaped(622, 9_180), Link::Shaped(1_000, 1_500)];
const LINKS_QUICK: [Link; 2] = [Link::Loopback, Link::Shaped(622, 9_180)];
/// The buffer sizes on slow links, where adjacent sizes have nearly the same throughput.
const BUFFER_BYTES_SLOW: [u64; 6] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];

/// Options of `ttcp throughput`.
#[derive(Debug, Clone, Default, Args)]
pub struct ThroughputArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Element types (default: short, char, long, octet, double, struct; for sockets also struct32)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPES")]
    pub types: Option<Vec<Element>>,
    /// Sizes of the sender's buffer (default: powers of two from 1K to 1M; over slow links powers of four)
    #[arg(long, value_parser = parse_size, value_delimiter = ',', value_name = "SIZES")]
    pub sizes: Option<Vec<u64>>,
    /// Sizes of the socket queues of client and server; with `auto`, the kernel chooses them (default:
    /// auto,8K,64K; over slow links auto)
    #[arg(long, value_parser = parse_queue, value_delimiter = ',', value_name = "SIZES")]
    pub queues: Option<Vec<u64>>,
    /// Bytes of elements in each flood (default: 64M; at most 8M through queues below 16 KiB; at most the
    /// bytes of about a quarter of a second over slow links)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
    /// Network links between client and server: loopback, MBIT_S or MBIT_S:MTU (default:
    /// loopback,155,622,1000; with --host none of these)
    ///
    /// A link with a rate in Mbit/s is a pair of virtual devices between two network namespaces, which exist
    /// only during the measurement. It is skipped without iproute2, or with neither root nor user namespaces.
    #[arg(long, value_delimiter = ',', value_name = "LINKS")]
    pub links: Option<Vec<Link>>,
    /// Start servers on the machine with this IPv4 address, and measure over the network
    ///
    /// This program and the peers must have the same paths on that machine.
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<String>,
    /// Command that runs its last argument in a shell on that machine (default: ssh ADDRESS)
    #[arg(long, value_name = "COMMAND", requires = "host")]
    pub shell: Option<String>,
}

impl ThroughputArgs {
    /// Runs the experiment, and prints its section.
    pub fn run(&self, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
        driver::run_one(&self.common, built_in, |contenders| plan(self, contenders))
    }

    /// Returns the links to measure, without those that cannot be set up here.
    fn links(&self) -> Vec<Link> {
        let default: &[Link] = match (&self.host, self.common.quick) {
            (Some(_), _) => &[],
            (None, true) => &LINKS_QUICK,
            (None, false) => &LINKS,
        };
        let mut links = self.links.clone().unwrap_or_else(|| default.to_vec());
        let is_shaped = |link: &Link| matches!(link, Link::Shaped(..));
        if links.iter().any(is_shaped)
            && let Err(reason) = links::check_available()
        {
            let names: Vec<String> = links.iter().filter(|link| is_shaped(link)).map(Link::name).collect();
            eprintln!("ttcp: {NAME}: skipped the links {}: {reason}", names.join("; "));
            links.retain(|link| !is_shaped(link));
        }
        if let Some(host) = &self.host {
            let shell = self.shell.clone().unwrap_or_else(|| format!("ssh {host}"));
            links.push(Link::Remote(host.clone(), shlex::split(&shell).unwrap_or_default()));
        }
        links
    }
}

fn parse_queue(text: &str) -> Result<u64, String> {
    if text == "auto" { Ok(0) } else { parse_size(text) }
}

pub(crate) fn plan(args: &ThroughputArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let types = args.types.as_deref().unwrap_or(&TYPES);
    let sizes = args.sizes.as_deref().unwrap_or(if quick { &BUFFER_BYTES_QUICK } else { &BUFFER_BYTES });
    let default_slow_sizes = if quick { &BUFFER_BYTES_QUICK[1..] } else { &BUFFER_BYTES_SLOW };
    let slow_sizes = args.sizes.as_deref().unwrap_or(default_slow_sizes);
    let links = args.links();
    let mut steps = Vec::new();
    for link in &links {
        let is_loopback = *link == Link::Loopback;
        let has_one_queue_size = quick || !is_loopback;
        let default_queues = if has_one_queue_size { &QUEUE_BYTES[..1] } else { &QUEUE_BYTES };
        let queues = args.queues.as_deref().unwrap_or(default_queues);
        let link_total = link.bytes_per_quarter_second().unwrap_or(u64::MAX).min(FLOOD_BYTES);
        let default_total = if quick { 2 << 20 } else { link_total };
        let sizes = if is_loopback { sizes } else { slow_sizes };
        for queue in queues {
            let is_small = (1..MIN_LARGE_QUEUE_BYTES).contains(queue);
            let total = args.total.unwrap_or(if is_small {
                default_total.min(SMALL_QUEUE_FLOOD_BYTES)
            } else {
                default_total
            });
            for element in types {
                for size in sizes {
                    let cell = cell(link, element, *size, *queue);
                    for contender in contenders {
                        let Some(element) = contender.sent_element(*element) else { continue };
                        if !(is_loopback || contender.peer.has_host_placeholder()) {
                            continue;
                        }
                        // A zero-copy sender can reuse a buffer only after its acknowledgement, which is
                        // delayed if no further data arrives. If one buffer fills the queue, none arrives,
                        // and the flood would stall for 40 ms at each message.
                        if *queue > 0 && contender.peer.name == external_peers::ZERO_COPY_PEER {
                            continue;
                        }
                        let mut client = flood_arguments(element, *size, total);
                        let queue = (*queue > 0).then(|| ["--sockbuf".to_owned(), queue.to_string()]);
                        let server_arguments: Vec<String> = queue.into_iter().flatten().collect();
                        client.extend(server_arguments.iter().cloned());
                        let step = Step::new(&cell, &contender.peer, client, figures);
                        steps.push(Step { server_arguments, ..step });
                    }
                }
            }
        }
    }
    let mut initial_steps = check_steps(contenders, types, sizes, quick);
    initial_steps.extend(counting_steps(contenders, types, quick));
    Plan { experiment: &EXPERIMENT, links, rounds: 10, initial_steps, steps }
}

/// Returns the cell of a measurement. It has no setting `link` for the loopback device.
fn cell(link: &Link, element: &Element, size: u64, queue: u64) -> Cell {
    let queue = if queue == 0 { AUTOMATIC.to_owned() } else { format_bytes(queue) };
    let cell = Cell::default()
        .with("type", element.to_string().as_str())
        .with("bytes", size)
        .with("queue", queue.as_str());
    if *link == Link::Loopback { cell } else { cell.with(LINK, link.name().as_str()) }
}

/// Returns floods with checked contents for all peers, types and sizes, in a quick run for one size only.
fn check_steps(contenders: &[Contender], types: &[Element], sizes: &[u64], quick: bool) -> Vec<Step> {
    let largest = sizes.iter().max().copied().into_iter();
    let sizes: Vec<u64> = if quick { largest.collect() } else { sizes.to_vec() };
    let mut checks = Vec::new();
    for element in types {
        for size in &sizes {
            let cell = Cell::default().with("type", element.to_string().as_str());
            let cell = if quick { cell } else { cell.with("bytes", *size) };
            let check = |contender: &Contender| {
                let total = (4 * size).max(integrity::MIN_FLOOD_BYTES);
                integrity::check_step(
                    &contender.peer,
                    cell.clone(),
                    flood_arguments(contender.sent_element(*element)?, *size, total),
                )
            };
            checks.extend(contenders.iter().filter_map(check));
        }
    }
    checks
}

/// Returns floods with counted system calls for all peers and types, in a quick run for two types only.
fn counting_steps(contenders: &[Contender], types: &[Element], quick: bool) -> Vec<Step> {
    if let Err(reason) = calls::check_available() {
        eprintln!("ttcp: {NAME}: system calls are not counted: {reason}");
        return Vec::new();
    }
    let is_struct = |element: &&&Element| **element == &Element::Struct;
    let scalar = types.iter().find(|element| !is_struct(&element));
    let types: Vec<&Element> = match quick {
        true => scalar.into_iter().chain(types.iter().filter(|element| is_struct(&element))).collect(),
        false => types.iter().collect(),
    };
    let steps_of_type = |element: &&Element| {
        let step = |one: &Contender| {
            Some(calls::counting_step(&one.peer, **element, one.sent_element(**element)?, quick))
        };
        contenders.iter().filter_map(step).collect::<Vec<_>>()
    };
    types.iter().flat_map(steps_of_type).collect()
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    line_figures(output.line, &["mbit_s", "secs"])
}

struct FloodSamples<'d> {
    data: &'d StoredResults,
    peers: Vec<&'d str>,
    types: Vec<&'d str>,
    sizes: Vec<u64>,
    /// The links, each with its sizes of socket queues.
    links: Vec<(&'d str, Vec<&'d str>)>,
}

#[derive(Clone, Copy)]
struct Route<'d> {
    link: &'d str,
    queue: &'d str,
}

impl<'d> FloodSamples<'d> {
    fn of(data: &'d StoredResults) -> FloodSamples<'d> {
        let peers = data.peers(NAME);
        let mut samples =
            FloodSamples { data, peers, types: Vec::new(), sizes: Vec::new(), links: Vec::new() };
        for sample in data.samples_of(NAME) {
            let Some((element, size, route)) = cell_settings(&sample.cell) else { continue };
            if !samples.types.contains(&element) {
                samples.types.push(element);
            }
            samples.sizes.push(size);
            match samples.links.iter_mut().find(|(link, _)| *link == route.link) {
                Some((_, queues)) if queues.contains(&route.queue) => {}
                Some((_, queues)) => queues.push(route.queue),
                None => samples.links.push((route.link, vec![route.queue])),
            }
        }
        samples.sizes.sort_unstable();
        samples.sizes.dedup();
        samples
    }

    fn routes(&self) -> impl Iterator<Item = Route<'d>> {
        self.links.iter().flat_map(|(link, queues)| queues.iter().map(|queue| Route { link, queue }))
    }

    /// Returns the throughput of a cell in Mbit/s.
    fn rate(&self, peer: &str, element: &str, size: u64, route: Route<'_>) -> Option<Summary> {
        let cell = Cell::default().with("type", element).with("bytes", size).with("queue", route.queue);
        let cell = if route.link == LOOPBACK { cell } else { cell.with(LINK, route.link) };
        Summary::of(&self.data.figures(NAME, peer, &cell, "mbit_s"))
    }

    /// Returns the median rates of a peer over a link for the selected types, and all buffers and queues.
    fn rates(&self, peer: &str, link: &str, is_selected: impl Fn(&str) -> bool) -> Vec<f64> {
        let mut rates = Vec::new();
        for element in self.types.iter().filter(|element| is_selected(element)) {
            for size in &self.sizes {
                for route in self.routes().filter(|route| route.link == link) {
                    rates.extend(self.rate(peer, element, *size, route).map(|summary| summary.median));
                }
            }
        }
        rates
    }
}

fn cell_settings(cell: &Cell) -> Option<(&str, u64, Route<'_>)> {
    let route = Route { link: cell.word(LINK).unwrap_or(LOOPBACK), queue: cell.word("queue")? };
    Some((cell.word("type")?, cell.number("bytes")?, route))
}

fn section(data: &StoredResults) -> Section {
    let samples = FloodSamples::of(data);
    let mut section = Section::new(NAME, "Throughput: sequences in one direction");
    section.text(
        "A client sends sequences by oneway calls until all elements are sent, and then asks the server how many bytes have arrived. \
         The throughput is the number of bits of the elements, divided by the time from the first send to that answer, in Mbit/s (10^6 \
         bits per second). The receiver decodes each element to a value of its language. A warm-up with a tenth of the bytes is not \
         counted. Sockets send plain bytes instead of each type. Therefore their throughput is the upper limit.",
    );
    section.text(integrity::format_checks(data, NAME));
    if samples.peers.contains(&"zorb-dynamic") {
        section.text(
            "zorb-dynamic sends an any, which stores its value in encoded form. Therefore its client encodes the elements only once, not \
             for each message. Its server decodes all elements, as the server with compiled skeletons does.",
        );
    }
    add_summary(&samples, &mut section);
    let on_loopback = samples.links.iter().any(|(link, _)| *link == LOOPBACK);
    if on_loopback {
        add_shares(&samples, &mut section);
    }
    for route in samples.routes() {
        for element in &samples.types {
            add_type(&samples, &mut section, element, route);
        }
    }
    if samples.links.iter().all(|(link, _)| *link == LOOPBACK) {
        section.text("No slow link was measured. Slow links require iproute2, and root or user namespaces.");
    }
    if on_loopback {
        add_processor_times(&samples, &mut section);
    }
    calls::section(data, NAME, &mut section);
    section
}

/// Adds a summary like the published one: the highest and the lowest throughput of each system.
fn add_summary(samples: &FloodSamples<'_>, section: &mut Section) {
    let kinds = ["scalars, highest", "scalars, lowest", "struct, highest", "struct, lowest"];
    let mut columns = vec![Column::words("system"), Column::words("link")];
    columns.extend(kinds.map(|kind| Column::figures(format!("{kind}, Mbit/s"))));
    columns.extend(kinds.map(|kind| Column::published(format!("{kind}, Mbit/s"))));
    let empty_cells = || std::iter::repeat_n("-".to_owned(), kinds.len());
    let mut rows = Vec::new();
    for (peer, (link, _)) in
        samples.peers.iter().flat_map(|peer| samples.links.iter().map(move |link| (peer, link)))
    {
        let extremes = |rates: Vec<f64>| {
            let extreme = |select: fn(f64, f64) -> f64| rates.iter().copied().reduce(select);
            [extreme(f64::max), extreme(f64::min)]
        };
        let is_struct = |element: &str| element.contains("struct");
        let scalars = extremes(samples.rates(peer, link, |element| !is_struct(element)));
        let structs = extremes(samples.rates(peer, link, is_struct));
        let figures: Vec<Option<f64>> = scalars.into_iter().chain(structs).collect();
        // Some peers do not support every link.
        if figures.iter().any(Option::is_some) {
            let words = [(*peer).to_owned(), (*link).to_owned()]
                .into_iter()
                .chain(figures.into_iter().map(format_figure));
            rows.push(words.chain(empty_cells()).collect());
        }
    }
    if let Some(table) = PublishedTable::of("sigcomm96.t1") {
        for row in &table.rows {
            for link in ["loopback", "remote"] {
                let name = |kind| format!("{link}_{kind}_mbps");
                let figures = ["scalars_hi", "scalars_lo", "struct_hi", "struct_lo"]
                    .map(|kind| format_figure(table.number(row, &name(kind))));
                let system = table.text(row, "ttcp_version").unwrap_or("-").to_owned();
                let names = [system, link.to_owned()];
                rows.push(names.into_iter().chain(empty_cells()).chain(figures).collect());
            }
        }
    }
    let caption = "The highest and the lowest median of each system over all types and sizes of buffers and queues; and figures published in \
                   1996, of two workstations with 155 Mbit/s ATM (remote) and of one workstation (loopback)."
        .into();
    section.table(Table { caption, columns, rows });
}

/// Adds the highest median of each peer in percent of the highest median of sockets, as published.
fn add_shares(samples: &FloodSamples<'_>, section: &mut Section) {
    let Some(socket) = ["c", "raw"].into_iter().find(|name| samples.peers.contains(name)) else { return };
    let is_struct = |element: &str| element.contains("struct");
    let peak = |peer: &str, of_structs: bool| {
        samples.rates(peer, LOOPBACK, |element| is_struct(element) == of_structs).into_iter().reduce(f64::max)
    };
    let share =
        |peer: &str, of_structs: bool| Some(100.0 * peak(peer, of_structs)? / peak(socket, of_structs)?);
    let mut columns = vec![Column::words("system")];
    columns.extend(["scalars", "structs"].map(|kind| Column::figures(format!("{kind}, % of {socket}"))));
    let row = |peer: &&str| {
        vec![(*peer).to_owned(), format_figure(share(peer, false)), format_figure(share(peer, true))]
    };
    let caption = format!("The highest median of each system, in percent of the highest median of {socket}.");
    section.table(Table { caption, columns, rows: samples.peers.iter().map(row).collect() });
    let is_about_floods = |table: &PublishedTable, row: &[&'static str]| {
        let text = |column| table.text(row, column).unwrap_or_default();
        !calls::is_about_calls(table, row)
            && ["throughput", "C/C++", "level", "CORBA"].iter().any(|word| text("quantity").contains(word))
    };
    section.table(published_rows("sigcomm96.text", "Published peaks and shares", is_about_floods));
    let is_other = |table: &PublishedTable, row: &[&'static str]| {
        !calls::is_about_calls(table, row) && !is_about_floods(table, row)
    };
    section.table(published_rows("sigcomm96.text", "Other published figures: testbed and times", is_other));
}

fn add_type(samples: &FloodSamples<'_>, section: &mut Section, element: &str, route: Route<'_>) {
    let rates = |peer: &str, size: u64| samples.rate(peer, element, size, route);
    let peers: Vec<&str> = samples
        .peers
        .iter()
        .copied()
        .filter(|peer| samples.sizes.iter().any(|size| rates(peer, *size).is_some()))
        .collect();
    if peers.is_empty() {
        return;
    }
    let subject = format!("Sequences of {element}, socket queues {}, over {}", route.queue, route.link);
    let line = |peer: &&str| {
        let point = |size: &u64| Some((*size as f64, rates(peer, *size)?.median / 1e3));
        Series::measured(*peer, samples.sizes.iter().filter_map(point).collect())
    };
    section.chart(Chart {
        caption: format!("{subject}."),
        x: Axis::new("sender's buffer, bytes", Scale::PowersOfTwo),
        y: Axis::new("Gbit/s", Scale::Linear),
        series: peers.iter().map(line).collect(),
    });
    let mut columns = vec![Column::figures("buffer")];
    for peer in &peers {
        columns.push(Column::figures(format!("{peer}, Mbit/s")));
        columns.push(Column::figures("mean ± deviation"));
    }
    let row = |size: &u64| {
        let mut row = vec![format_bytes(*size)];
        for peer in &peers {
            let summary = rates(peer, *size);
            row.push(format_figure(summary.map(|s| s.median)));
            row.push(summary.map_or_else(
                || "-".into(),
                |s| format!("{} ± {}", format_figure(Some(s.mean)), format_figure(Some(s.deviation))),
            ));
        }
        row
    };
    let rows: Vec<Vec<String>> = samples.sizes.iter().map(row).collect();
    let caption = format!("{subject}: median, mean and standard deviation of the rounds.");
    section.table(Table { caption, columns, rows });
}

fn add_processor_times(samples: &FloodSamples<'_>, section: &mut Section) {
    let size = if samples.sizes.contains(&PROCESSOR_TIME_BUFFER_BYTES) {
        PROCESSOR_TIME_BUFFER_BYTES
    } else {
        samples.sizes.last().copied().unwrap_or_default()
    };
    let ms_per_gb = |sample: &Sample, side: fn(ProcessorTime) -> f64| {
        // The factor 1.1 includes the warm-up.
        let gigabytes = sample.figure("mbit_s")? * sample.figure("secs")? / 8e3 * 1.1;
        Some(side(sample.processor_time()?) / gigabytes * 1e3)
    };
    let mut columns = vec![Column::words("type")];
    for peer in &samples.peers {
        columns.push(Column::figures(format!("{peer}: client + server")));
    }
    let row = |element: &&str| {
        let mut row = vec![(*element).to_owned()];
        for peer in &samples.peers {
            let has_settings = |(cell_element, bytes, route): (&str, u64, Route<'_>)| {
                (cell_element, bytes, route.link, route.queue) == (*element, size, LOOPBACK, AUTOMATIC)
            };
            let is_selected = |sample: &&Sample| {
                sample.peer == *peer && cell_settings(&sample.cell).is_some_and(has_settings)
            };
            let median_of = |side: fn(ProcessorTime) -> f64| {
                let selected = samples.data.samples_of(NAME).filter(is_selected);
                median(&selected.filter_map(|sample| ms_per_gb(sample, side)).collect::<Vec<_>>())
            };
            row.push(match (median_of(|used| used.client), median_of(|used| used.server)) {
                (Some(client), Some(server)) => {
                    format!("{} + {}", format_figure(Some(client)), format_figure(Some(server)))
                }
                _ => "-".to_owned(),
            });
        }
        row
    };
    let rows = samples.types.iter().map(row).collect();
    let caption = format!(
        "Processor time in milliseconds per GB (10^9 bytes) of elements, in buffers of {} over loopback with automatic queues: medians. The \
         times include the start of the client and the warm-up.",
        format_bytes(size)
    );
    section.table(Table { caption, columns, rows });
}

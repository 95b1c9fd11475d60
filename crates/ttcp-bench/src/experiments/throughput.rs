//! The throughput of sequences in one direction, by element type, size of the sender's buffer, socket queues,
//! and link.

use std::process::ExitCode;

use clap::Args;

use super::contenders::Contender;
use super::driver;
use super::plan::{ClientOutput, Experiment, Figures, LINK, Plan, Step, flood, line_figures};
use super::store::{Cell, Data, Sample};
use super::{calls, integrity};
use crate::external_peers;
use crate::figures::{
    Axis, Chart, Column, Scale, Section, Series, Table, format_bytes, format_figure, published_rows,
};
use crate::harness::BuiltIn;
use crate::harness::CommonArgs;
use crate::harness::links::{self, Link};
use crate::harness::processor::ProcessorTime;
use crate::literature::Published;
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
const SIZES: [u64; 11] =
    [1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20];
const SIZES_QUICK: [u64; 2] = [1 << 10, 1 << 16];
/// Sizes of socket queues, bytes; 0: the kernel's automatic sizing.
const QUEUES: [u64; 3] = [0, 8 << 10, 64 << 10];
/// Bytes of a flood. Less is sent through small queues, through which some peers stall between the segments
/// of a message until a timer of the kernel expires.
const TOTAL: u64 = 64 << 20;
const MIN_LARGE_QUEUE: u64 = 16 << 10;
const TOTAL_THROUGH_SMALL_QUEUE: u64 = 8 << 20;
/// The buffer size of the table of processor times.
const PROCESSOR_TIME_SIZE: u64 = 1 << 16;
const AUTOMATIC: &str = "automatic";
const LOOPBACK: &str = "loopback";
/// The links: loopback, links like those of the published experiments (ATM), and one like Gigabit Ethernet.
const LINKS: [Link; 4] =
    [Link::Loopback, Link::Shaped(155, 9_180), Link::Shaped(622, 9_180), Link::Shaped(1_000, 1_500)];
const LINKS_QUICK: [Link; 2] = [Link::Loopback, Link::Shaped(622, 9_180)];
/// The sizes on slow links, on which adjacent sizes hardly differ.
const SIZES_SLOW: [u64; 6] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];

/// Options of `ttcp throughput`.
#[derive(Debug, Clone, Default, Args)]
pub struct ThroughputArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Element types (default: short, char, long, octet, double, struct; struct32 for sockets)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TYPES")]
    pub types: Option<Vec<Element>>,
    /// Sizes of the sender's buffer (default: powers of two from 1K to 1M; over slow links every second one)
    #[arg(long, value_parser = parse_size, value_delimiter = ',', value_name = "SIZES")]
    pub sizes: Option<Vec<u64>>,
    /// Sizes of both socket queues of both sides; `auto`: chosen by the kernel (default: auto,8K,64K)
    #[arg(long, value_parser = parse_queue, value_delimiter = ',', value_name = "SIZES")]
    pub queues: Option<Vec<u64>>,
    /// User bytes of each flood (default: 64M; 8M through queues below 16 KiB; over slow links, the bytes of
    /// a quarter of a second)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
    /// Links between client and server: loopback, MBIT_S or MBIT_S:MTU (default: loopback,155,622,1000; with
    /// --host none of them)
    ///
    /// A link with a rate in Mbit/s is a pair of virtual devices between two network namespaces, which exist
    /// only during the measurement. It requires iproute2, and root or user namespaces; without these, such
    /// links are skipped. Its socket queues are chosen by the kernel unless --queues is given.
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
    pub fn run(&self, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
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
            eprintln!("ttcp: {NAME}: skipped: {}: {reason}", names.join("; "));
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
    let sizes = args.sizes.as_deref().unwrap_or(if quick { &SIZES_QUICK } else { &SIZES });
    let slow_sizes = args.sizes.as_deref().unwrap_or(if quick { &SIZES_QUICK[1..] } else { &SIZES_SLOW });
    let links = args.links();
    let mut steps = Vec::new();
    for link in &links {
        let is_loopback = *link == Link::Loopback;
        let has_one_queue_size = quick || !is_loopback;
        let queues =
            args.queues.as_deref().unwrap_or(if has_one_queue_size { &QUEUES[..1] } else { &QUEUES });
        let default_total =
            if quick { 2 << 20 } else { link.bytes_per_quarter_second().unwrap_or(u64::MAX).min(TOTAL) };
        let sizes = if is_loopback { sizes } else { slow_sizes };
        for queue in queues {
            let is_small = (1..MIN_LARGE_QUEUE).contains(queue);
            let total = args.total.unwrap_or(if is_small {
                default_total.min(TOTAL_THROUGH_SMALL_QUEUE)
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
                        // A zero-copy sender needs acknowledgements to get its buffers back. They are delayed
                        // if no more data follows, and no data follows if one buffer fills the queue: such a
                        // flood would stall for 40 ms at each message.
                        if *queue > 0 && contender.peer.name == external_peers::ZERO_COPY {
                            continue;
                        }
                        let mut client = flood(element, *size, total);
                        let queue = (*queue > 0).then(|| ["--sockbuf".to_owned(), queue.to_string()]);
                        let server: Vec<String> = queue.into_iter().flatten().collect();
                        client.extend(server.iter().cloned());
                        steps.push(Step { server, ..Step::new(&cell, &contender.peer, client, figures) });
                    }
                }
            }
        }
    }
    let mut checks = check_steps(contenders, types, sizes, quick);
    checks.extend(counting_steps(contenders, types, quick));
    Plan { experiment: &EXPERIMENT, links, rounds: 10, checks, steps }
}

/// Returns the cell of a measurement. Cells of the loopback device have no link setting.
fn cell(link: &Link, element: &Element, size: u64, queue: u64) -> Cell {
    let queue = if queue == 0 { AUTOMATIC.to_owned() } else { format_bytes(queue) };
    let cell = Cell::default()
        .with("type", element.to_string().as_str())
        .with("bytes", size)
        .with("queue", queue.as_str());
    if *link == Link::Loopback { cell } else { cell.with(LINK, link.name().as_str()) }
}

/// Returns a checking flood for each peer, type and size; in a quick run only for the largest size.
fn check_steps(contenders: &[Contender], types: &[Element], sizes: &[u64], quick: bool) -> Vec<Step> {
    let largest = sizes.iter().max().copied().into_iter();
    let sizes: Vec<u64> = if quick { largest.collect() } else { sizes.to_vec() };
    let mut checks = Vec::new();
    for element in types {
        for size in &sizes {
            let cell = Cell::default().with("type", element.to_string().as_str());
            let cell = if quick { cell } else { cell.with("bytes", *size) };
            let check = |contender: &Contender| {
                let total = (4 * size).max(integrity::MIN_FLOOD_SIZE);
                integrity::check(
                    &contender.peer,
                    cell.clone(),
                    flood(contender.sent_element(*element)?, *size, total),
                )
            };
            checks.extend(contenders.iter().filter_map(check));
        }
    }
    checks
}

/// Returns a flood with counted system calls for each peer and type; in a quick run only for one scalar type
/// and for structs.
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
    let of_type = |element: &&Element| {
        let count = |one: &Contender| {
            Some(calls::counting_step(&one.peer, **element, one.sent_element(**element)?, quick))
        };
        contenders.iter().filter_map(count).collect::<Vec<_>>()
    };
    types.iter().flat_map(of_type).collect()
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    line_figures(output.line, &["mbit_s", "secs"])
}

struct FloodSamples<'d> {
    data: &'d Data,
    peers: Vec<&'d str>,
    types: Vec<&'d str>,
    sizes: Vec<u64>,
    links: Vec<(&'d str, Vec<&'d str>)>,
}

#[derive(Clone, Copy)]
struct Route<'d> {
    link: &'d str,
    queue: &'d str,
}

impl<'d> FloodSamples<'d> {
    fn of(data: &'d Data) -> FloodSamples<'d> {
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

    fn rate(&self, peer: &str, element: &str, size: u64, route: Route<'_>) -> Option<Summary> {
        let cell = Cell::default().with("type", element).with("bytes", size).with("queue", route.queue);
        let cell = if route.link == LOOPBACK { cell } else { cell.with(LINK, route.link) };
        Summary::of(&self.data.figures(NAME, peer, &cell, "mbit_s"))
    }

    /// Returns the medians of a peer on a link, for all sizes and queues, and the selected types.
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

fn section(data: &Data) -> Section {
    let samples = FloodSamples::of(data);
    let mut section = Section::new(NAME, "Throughput: sequences in one direction");
    section.text(
        "A client sends sequences by oneway calls until all user bytes are sent, and then asks the server how many bytes have arrived. \
         The figure is the number of user bits divided by the time from the first send to that answer, in Mbit/s of 10^6 bits. The \
         receiver decodes each element to a value of its language. A warm-up with a tenth of the bytes is not counted. Sockets send \
         bytes, whatever the type: their throughput is the upper limit.",
    );
    section.text(integrity::format_checks(data, NAME));
    if samples.peers.contains(&"zorb-dynamic") {
        section.text(
            "zorb-dynamic sends an any, which stores its value in encoded form: the client encodes only once, not for each message. Its \
             server decodes all elements, as the compiled one does.",
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
        section.text("No slow link was measured: this needs iproute2, and root or user namespaces.");
    }
    if on_loopback {
        add_processor_times(&samples, &mut section);
    }
    calls::section(data, NAME, &mut section);
    section
}

/// Adds a summary as in the literature: the highest and the lowest throughput of each system.
fn add_summary(samples: &FloodSamples<'_>, section: &mut Section) {
    let kinds = ["scalars, highest", "scalars, lowest", "struct, highest", "struct, lowest"];
    let mut columns = vec![Column::words("system"), Column::words("link")];
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
            let words = [(*peer).to_owned(), (*link).to_owned()]
                .into_iter()
                .chain(figures.into_iter().map(format_figure));
            rows.push(words.chain(none()).collect());
        }
    }
    if let Some(table) = Published::of("sigcomm96.t1") {
        for row in &table.rows {
            for link in ["loopback", "remote"] {
                let name = |kind| format!("{link}_{kind}_mbps");
                let figures = ["scalars_hi", "scalars_lo", "struct_hi", "struct_lo"]
                    .map(|kind| format_figure(table.number(row, &name(kind))));
                let system = table.text(row, "ttcp_version").unwrap_or("-").to_owned();
                rows.push([system, link.to_owned()].into_iter().chain(none()).chain(figures).collect());
            }
        }
    }
    let caption = "The highest and the lowest median of each system over all types, sizes and queues; and figures published in 1996, of two \
                   workstations with 155 Mbit/s ATM (remote) and of one workstation (loopback)."
        .into();
    section.table(Table { caption, columns, rows });
}

/// Adds the throughput of each peer in percent of a socket's throughput, as in the literature: the ratio of
/// the highest medians.
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
    let is_about_floods = |table: &Published, row: &[&'static str]| {
        let text = |column| table.text(row, column).unwrap_or_default();
        !calls::is_about_calls(table, row)
            && ["throughput", "C/C++", "level", "CORBA"].iter().any(|word| text("quantity").contains(word))
    };
    section.table(published_rows("sigcomm96.text", "Published peaks and shares", is_about_floods));
    let is_other = |table: &Published, row: &[&'static str]| {
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
    let what = format!("Sequences of {element}, socket queues {}, over {}", route.queue, route.link);
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
    let caption = format!("{what}: median, mean and standard deviation of the rounds.");
    section.table(Table { caption, columns, rows });
}

fn add_processor_times(samples: &FloodSamples<'_>, section: &mut Section) {
    let size = if samples.sizes.contains(&PROCESSOR_TIME_SIZE) {
        PROCESSOR_TIME_SIZE
    } else {
        samples.sizes.last().copied().unwrap_or_default()
    };
    let per_gb = |sample: &Sample, side: fn(ProcessorTime) -> f64| {
        let gigabytes = sample.figure("mbit_s")? * sample.figure("secs")? / 8e3 * 1.1;
        Some(side(sample.processor()?) / gigabytes * 1e3)
    };
    let mut columns = vec![Column::words("type")];
    for peer in &samples.peers {
        columns.push(Column::figures(format!("{peer}: client + server")));
    }
    let row = |element: &&str| {
        let mut row = vec![(*element).to_owned()];
        for peer in &samples.peers {
            let has_settings = |(of, bytes, route): (&str, u64, Route<'_>)| {
                (of, bytes, route.link, route.queue) == (*element, size, LOOPBACK, AUTOMATIC)
            };
            let is_selected = |sample: &&Sample| {
                sample.peer == *peer && cell_settings(&sample.cell).is_some_and(has_settings)
            };
            let median_of = |side: fn(ProcessorTime) -> f64| {
                let selected = samples.data.samples_of(NAME).filter(is_selected);
                median(&selected.filter_map(|sample| per_gb(sample, side)).collect::<Vec<_>>())
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
        "Processor time in milliseconds per GB (10^9 bytes) of user data: medians, buffers of {}, automatic queues, loopback. The times include the \
         start of the client and the warm-up.",
        format_bytes(size)
    );
    section.table(Table { caption, columns, rows });
}

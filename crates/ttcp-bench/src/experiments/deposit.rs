//! The transfer of large sequences of bytes with and without copies.

use std::process::ExitCode;

use clap::Args;

use super::contenders::Contender;
use super::driver;
use super::integrity;
use super::plan::{ClientOutput, Experiment, Figures, Plan, Step, flood_arguments, line_figures};
use super::store::{Cell, Sample, StoredResults};
use crate::external_peers::ZERO_COPY_PEER;
use crate::figures::{
    Axis, Chart, Column, Scale, Section, Series, Table, format_bytes, format_figure, published_table,
};
use crate::harness::BuiltInPeer;
use crate::harness::CommonArgs;
use crate::harness::processor::ProcessorTime;
use crate::statistics::median;
use crate::work::{Element, parse_bytes, parse_size};

const NAME: &str = "deposit";

pub(crate) const EXPERIMENT: Experiment =
    Experiment { name: NAME, published_ids: &["zerocopy03.text"], section };

/// The base-2 logarithms of the sizes: from a page to 16 MiB.
const SIZE_LOGARITHMS: std::ops::RangeInclusive<u32> = 12..=24;
const SIZES_QUICK: [u64; 2] = [1 << 12, 1 << 20];

/// The names of the participants, and their descriptions.
const PARTICIPANTS: [(&str, &str); 7] = [
    ("raw", "TCP sockets, Rust"),
    ("c", "TCP sockets, C"),
    (ZERO_COPY_PEER, "zero-copy TCP sockets, C"),
    ("omniorb", "ORB that copies, omniORB"),
    ("zorb-copying", "ORB that copies, zorb with --copying"),
    ("zorb", "zero-copy ORB"),
    ("zorb-uring", "zero-copy ORB over io_uring, with zero-copy TCP for large buffers if it avoids copies"),
];

/// Options of `ttcp deposit`.
#[derive(Debug, Clone, Default, Args)]
pub struct DepositArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Sizes of the sequences (default: powers of two from 4K to 16M)
    #[arg(long, value_parser = parse_size, value_delimiter = ',', value_name = "SIZES")]
    pub sizes: Option<Vec<u64>>,
    /// User bytes of each flood (default: 1G)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
}

impl DepositArgs {
    /// Runs the experiment, and prints its section.
    pub fn run(&self, built_in: &[BuiltInPeer]) -> anyhow::Result<ExitCode> {
        driver::run_one(&self.common, built_in, |contenders| plan(self, contenders))
    }
}

pub(crate) fn plan(args: &DepositArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let all_sizes = || SIZE_LOGARITHMS.map(|log| 1 << log).collect();
    let default_sizes = || if quick { SIZES_QUICK.to_vec() } else { all_sizes() };
    let sizes: Vec<u64> = args.sizes.clone().unwrap_or_else(default_sizes);
    let total = args.total.unwrap_or(if quick { 4 << 20 } else { 1 << 30 });
    let is_extra_peer = |name: &str| args.common.extra_peers.iter().any(|peer| peer.name == name);
    let takes_part = |contender: &&Contender| {
        let name = contender.peer.name.as_str();
        PARTICIPANTS.iter().any(|(participant, _)| *participant == name) || is_extra_peer(name)
    };
    let (mut checks, mut steps) = (Vec::new(), Vec::new());
    for size in sizes {
        let cell = Cell::default().with("bytes", size);
        for Contender { peer, .. } in contenders.iter().filter(takes_part) {
            let checked = (4 * size).max(integrity::MIN_FLOOD_BYTES);
            checks.extend(integrity::check_step(
                peer,
                cell.clone(),
                flood_arguments(Element::Octet, size, checked),
            ));
            steps.push(Step::new(&cell, peer, flood_arguments(Element::Octet, size, total), figures));
        }
    }
    Plan { experiment: &EXPERIMENT, links: Vec::new(), rounds: 7, initial_steps: checks, steps }
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let mut figures = line_figures(output.line, &["mbit_s", "secs"])?;
    if output.line.get("lent").is_some() {
        let count =
            |name: &str| output.line.get(name).and_then(serde_json::Value::as_f64).unwrap_or_default();
        figures.insert("copied_pct".into(), 100.0 * count("copied") / count("lent").max(1.0));
    }
    Ok(figures)
}

/// Returns the processor time of a side in percent of the elapsed time of the measurement and its warm-up.
fn processor_share(sample: &Sample, side: fn(ProcessorTime) -> f64) -> Option<f64> {
    Some(100.0 * side(sample.processor_time()?) / (sample.figure("secs")? * 1.1))
}

struct DepositSamples<'d> {
    data: &'d StoredResults,
    peers: Vec<&'d str>,
    sizes: Vec<u64>,
}

impl<'d> DepositSamples<'d> {
    fn of(data: &'d StoredResults) -> DepositSamples<'d> {
        let mut sizes: Vec<u64> =
            data.samples_of(NAME).filter_map(|sample| sample.cell.number("bytes")).collect();
        sizes.sort_unstable();
        sizes.dedup();
        DepositSamples { data, peers: data.peers(NAME), sizes }
    }

    fn rate(&self, peer: &str, size: u64) -> Option<f64> {
        median(&self.data.figures(NAME, peer, &Cell::default().with("bytes", size), "mbit_s"))
    }

    fn share(&self, peer: &str, size: u64, side: fn(ProcessorTime) -> f64) -> Option<f64> {
        let is_selected = |sample: &&Sample| sample.peer == peer && sample.cell.number("bytes") == Some(size);
        let selected = self.data.samples_of(NAME).filter(is_selected);
        median(&selected.filter_map(|sample| processor_share(sample, side)).collect::<Vec<_>>())
    }

    fn chart(&self, caption: &str, label: &str, figure: impl Fn(&str, u64) -> Option<f64>) -> Chart {
        let line = |peer: &&str| {
            let points = self.sizes.iter().filter_map(|size| Some((*size as f64, figure(peer, *size)?)));
            Series::measured(*peer, points.collect())
        };
        Chart {
            caption: caption.to_owned(),
            x: Axis::new("sequence, bytes", Scale::PowersOfTwo),
            y: Axis::new(label, Scale::Linear),
            series: self.peers.iter().map(line).collect(),
        }
    }
}

fn section(data: &StoredResults) -> Section {
    let samples = DepositSamples::of(data);
    let mut section = Section::new(NAME, "Direct deposit: large sequences of bytes without copies");
    section.text(
        "Sequences of octets are sent in one direction, in sizes from a page to 16 MiB. An ORB that copies encodes into a separate buffer, and \
         decodes from another one. The zero-copy ORB writes from the sender's memory, and reads into the receiver's memory. Zero-copy TCP also \
         avoids the copy into the kernel, which then sends from the program's buffers. Over loopback, the kernel may nevertheless copy, so that \
         the receiver does not share the sender's pages; the table of participants shows the percentage of such data. The processor share is the processor time of a \
         process in percent of the elapsed time.",
    );
    section.text(integrity::format_checks(data, NAME));
    section.chart(
        samples.chart("Throughput.", "Gbit/s", |peer, size| samples.rate(peer, size).map(|mbit| mbit / 1e3)),
    );
    section.chart(samples.chart(
        "Processor share, client and server together.",
        "percent of a core",
        |peer, size| samples.share(peer, size, ProcessorTime::sum),
    ));
    let mut columns = vec![Column::figures("sequence")];
    for peer in &samples.peers {
        columns.push(Column::figures(format!("{peer}, Mbit/s")));
        columns.push(Column::figures("client + server, %"));
    }
    let row = |size: &u64| {
        let mut row = vec![format_bytes(*size)];
        for peer in &samples.peers {
            let side = |side| samples.share(peer, *size, side);
            row.push(format_figure(samples.rate(peer, *size)));
            row.push(match (side(|used| used.client), side(|used| used.server)) {
                (Some(client), Some(server)) => format!("{client:.0} + {server:.0}"),
                _ => "-".to_owned(),
            });
        }
        row
    };
    let rows = samples.sizes.iter().map(row).collect();
    section.table(Table {
        caption: "Throughput and processor share: medians of the rounds.".into(),
        columns,
        rows,
    });
    add_participants(&samples, &mut section);
    section.table(published_table(
        "zerocopy03.text",
        "Published figures of a zero-copy ORB on 400 MHz computers with Gigabit Ethernet",
    ));
    section
}

/// Adds the table of participants: description, highest rate, and percentage of the zero-copy data that the
/// kernel copied nevertheless.
fn add_participants(samples: &DepositSamples<'_>, section: &mut Section) {
    let columns = vec![
        Column::words("peer"),
        Column::words("description"),
        Column::figures("highest, Mbit/s"),
        Column::figures("zero-copy data copied by the kernel, %"),
    ];
    let row = |peer: &&str| {
        let about = PARTICIPANTS.iter().find(|(name, _)| name == peer).map_or("-", |(_, about)| about);
        let best = samples.sizes.iter().filter_map(|size| samples.rate(peer, *size)).reduce(f64::max);
        let own = samples.data.samples_of(NAME).filter(|sample| sample.peer == *peer);
        let copied = median(&own.filter_map(|sample| sample.figure("copied_pct")).collect::<Vec<_>>());
        let copied = copied.map_or_else(|| "-".into(), |copied| format!("{copied:.0}"));
        vec![(*peer).to_owned(), about.to_owned(), format_figure(best), copied]
    };
    let rows = samples.peers.iter().map(row).collect();
    section.table(Table { caption: "The participants.".into(), columns, rows });
}

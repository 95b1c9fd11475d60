//! Bulk transfer into final memory: the cost of copies, and what is saved by avoiding them.

use std::process::ExitCode;

use clap::Args;

use super::contenders::Contender;
use super::driver::ClientOutput;
use super::store::{Cell, Data, Outcome, Sample};
use super::{CommonArgs, Experiment, Figures, Plan, Step, integrity, of_line};
use crate::external_peers::ZERO_COPY;
use crate::figures::{Axis, Chart, Column, Scale, Section, Series, Table, bytes, published_table, shown};
use crate::harness::BuiltIn;
use crate::harness::processor::Processor;
use crate::statistics::median;
use crate::work::{parse_bytes, parse_size};

const NAME: &str = "deposit";

pub(crate) const EXPERIMENT: Experiment = Experiment { name: NAME, covers: &["zerocopy03.text"], section };

/// From a page to 16 MiB.
const SIZES: [u64; 13] = [
    1 << 12,
    1 << 13,
    1 << 14,
    1 << 15,
    1 << 16,
    1 << 17,
    1 << 18,
    1 << 19,
    1 << 20,
    1 << 21,
    1 << 22,
    1 << 23,
    1 << 24,
];
const SIZES_QUICK: [u64; 2] = [1 << 12, 1 << 20];

/// The participants, and what each stands for.
const PARTS: [(&str, &str); 7] = [
    ("raw", "TCP sockets, Rust"),
    ("c", "TCP sockets, C"),
    (ZERO_COPY, "zero-copy TCP sockets, C"),
    ("omniorb", "ORB that copies, omniORB"),
    ("zorb-copying", "ORB that copies, zorb so set"),
    ("zorb", "zero-copy ORB"),
    (
        "zorb-uring",
        "zero-copy ORB over io_uring, which lends large buffers to the kernel where that copies nothing",
    ),
];

/// Options of `ttcp deposit`.
#[derive(Debug, Clone, Args)]
pub struct DepositArgs {
    /// Options of every experiment.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Sizes of the sequences (default: 4K, 8K, 16K and so on to 16M)
    #[arg(long, value_parser = parse_size, value_delimiter = ',', value_name = "SIZES")]
    pub sizes: Option<Vec<u64>>,
    /// User bytes of each flood (default: 1G)
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub total: Option<u64>,
}

impl DepositArgs {
    /// Runs the experiment and prints its section.
    ///
    /// # Errors
    /// It cannot begin, or its results cannot be written.
    pub fn run(&self, built_in: &[BuiltIn]) -> anyhow::Result<ExitCode> {
        super::run(&self.common, built_in, |contenders| plan(self, contenders))
    }

    /// Arguments for the whole experiment.
    pub(crate) fn of(common: CommonArgs) -> DepositArgs {
        DepositArgs { common, sizes: None, total: None }
    }
}

/// Returns the measurements of a round.
pub(crate) fn plan(args: &DepositArgs, contenders: &[Contender]) -> Plan {
    let quick = args.common.quick;
    let sizes = args.sizes.as_deref().unwrap_or(if quick { &SIZES_QUICK } else { &SIZES });
    let total = args.total.unwrap_or(if quick { 4 << 20 } else { 1 << 30 });
    let of_user = |name: &str| args.common.extra.iter().any(|peer| peer.name == name);
    let part = |name: &str| PARTS.iter().any(|(part, _)| *part == name) || of_user(name);
    let parts = || contenders.iter().filter(|contender| part(&contender.peer.name));
    let (mut checks, mut steps) = (Vec::new(), Vec::new());
    for size in sizes {
        let cell = Cell::default().with("bytes", *size);
        for Contender { peer, .. } in parts() {
            let compared = (4 * size).max(integrity::LEAST);
            checks.extend(integrity::check(peer, cell.clone(), flood(*size, compared)));
            let client = flood(*size, total);
            steps.push(Step {
                cell: cell.clone(),
                peer: peer.clone(),
                server: Vec::new(),
                client,
                figures,
                perform: Step::once,
            });
        }
    }
    Plan { name: NAME, links: Vec::new(), rounds: 7, checks, steps }
}

/// Returns the client's arguments for a flood.
fn flood(size: u64, total: u64) -> Vec<String> {
    let words = ["ttcp", "--type", "octet", "--size", &size.to_string(), "--total", &total.to_string()];
    words.map(String::from).to_vec()
}

fn figures(output: &ClientOutput<'_>) -> Result<Figures, String> {
    let mut figures: Figures = [
        ("mbit_s".to_owned(), of_line(output.line, "mbit_s")?),
        ("secs".to_owned(), of_line(output.line, "secs")?),
    ]
    .into();
    if output.line.get("lent").is_some() {
        let count =
            |name: &str| output.line.get(name).and_then(serde_json::Value::as_f64).unwrap_or_default();
        figures.insert("copied_pct".into(), 100.0 * count("copied") / count("lent").max(1.0));
    }
    Ok(figures)
}

/// Returns the processor time divided by the time of the measured part and its warm-up, percent of a core.
fn share(sample: &Sample, side: fn(Processor) -> f64) -> Option<f64> {
    match &sample.outcome {
        Outcome::Figures { figures, processor: Some(used), .. } => {
            Some(100.0 * side(*used) / (figures.get("secs")? * 1.1))
        }
        _ => None,
    }
}

/// The samples of this experiment.
struct DepositSamples<'d> {
    data: &'d Data,
    peers: Vec<&'d str>,
    sizes: Vec<u64>,
}

impl<'d> DepositSamples<'d> {
    fn of(data: &'d Data) -> DepositSamples<'d> {
        let mut sizes: Vec<u64> = data.of(NAME).filter_map(|sample| sample.cell.number("bytes")).collect();
        sizes.sort_unstable();
        sizes.dedup();
        DepositSamples { data, peers: data.peers(NAME), sizes }
    }

    fn rate(&self, peer: &str, size: u64) -> Option<f64> {
        median(&self.data.figures(NAME, peer, &Cell::default().with("bytes", size), "mbit_s"))
    }

    fn share(&self, peer: &str, size: u64, side: fn(Processor) -> f64) -> Option<f64> {
        let same = |sample: &&Sample| sample.peer == peer && sample.cell.number("bytes") == Some(size);
        let shares = self.data.of(NAME).filter(same).filter_map(|sample| share(sample, side));
        median(&shares.collect::<Vec<_>>())
    }

    fn chart(&self, caption: &str, label: &str, of: impl Fn(&str, u64) -> Option<f64>) -> Chart {
        let line = |peer: &&str| {
            let points = self.sizes.iter().filter_map(|size| Some((*size as f64, of(peer, *size)?)));
            Series::measured(*peer, points.collect())
        };
        Chart {
            caption: caption.to_owned(),
            x: Axis::new("sequence, bytes", Scale::Bytes),
            y: Axis::new(label, Scale::Linear),
            series: self.peers.iter().map(line).collect(),
        }
    }
}

fn section(data: &Data) -> Section {
    let samples = DepositSamples::of(data);
    let mut section = Section::new(NAME, "Direct deposit: bulk octets without copies");
    section.text(
        "Sequences of octets flow one way, in sizes from a page to 16 MiB. The copying ORB marshals into a buffer of its own and unmarshals \
         out of one; the zero-copy ORB writes octets from where they are, and reads them to where they stay. Zero-copy TCP saves the copy \
         into the kernel as well. Over loopback the kernel copies all the same, since the receiver would have the sender's pages: the \
         table says how much of what was lent. The processor's share is that of the process, of one core.",
    );
    section.text(integrity::format_checks(data, NAME));
    section.chart(
        samples.chart("Throughput.", "Gbit/s", |peer, size| samples.rate(peer, size).map(|mbit| mbit / 1e3)),
    );
    section.chart(samples.chart(
        "Processor share, client and server together.",
        "percent of a core",
        |peer, size| samples.share(peer, size, Processor::all),
    ));
    let mut columns = vec![Column::figures("sequence")];
    for peer in &samples.peers {
        columns.push(Column::figures(format!("{peer}, Mbit/s")));
        columns.push(Column::figures("client + server, %"));
    }
    let row = |size: &u64| {
        let mut row = vec![bytes(*size)];
        for peer in &samples.peers {
            let side = |side| samples.share(peer, *size, side);
            row.push(shown(samples.rate(peer, *size)));
            row.push(match (side(|used| used.client), side(|used| used.server)) {
                (Some(client), Some(server)) => format!("{client:.0} + {server:.0}"),
                _ => "-".to_owned(),
            });
        }
        row
    };
    let rows = samples.sizes.iter().map(row).collect();
    section.table(Table {
        caption: "Medians of the rounds, and the processor's share.".into(),
        columns,
        rows,
    });
    parts(&samples, &mut section);
    section.table(published_table(
        "zerocopy03.text",
        "What was published of a zero-copy ORB on 400 MHz computers with Gigabit Ethernet",
    ));
    section
}

/// Adds the table of participants: what each stands for, its best rate, and how much of the data lent to the
/// kernel the kernel copied nevertheless.
fn parts(samples: &DepositSamples<'_>, section: &mut Section) {
    let columns = vec![
        Column::words("peer"),
        Column::words("stands for"),
        Column::figures("highest, Mbit/s"),
        Column::figures("copied by the kernel of what was lent, %"),
    ];
    let row = |peer: &&str| {
        let about = PARTS.iter().find(|(name, _)| name == peer).map_or("-", |(_, about)| about);
        let best = samples.sizes.iter().filter_map(|size| samples.rate(peer, *size)).reduce(f64::max);
        let same = samples.data.of(NAME).filter(|sample| sample.peer == *peer);
        let copied = median(&same.filter_map(|sample| sample.figure("copied_pct")).collect::<Vec<_>>());
        let copied = copied.map_or_else(|| "-".into(), |copied| format!("{copied:.0}"));
        vec![(*peer).to_owned(), about.to_owned(), shown(best), copied]
    };
    let rows = samples.peers.iter().map(row).collect();
    section.table(Table { caption: "Who is who.".into(), columns, rows });
}
